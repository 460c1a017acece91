from .engines import infer_parts as infer_parts
from .estimators.oracle_crf import OracleCRF as OracleCRF
from .features import PartFeatures as PartFeatures
from .objective import OracleLikelihood as OracleLikelihood
from .structure import Parts as Parts, register_oracle as register_oracle

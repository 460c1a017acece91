from .estimators.oracle_crf import OracleCRF as OracleCRF
from .features import PartFeatures as PartFeatures
from .objective import OracleLikelihood as OracleLikelihood
from .registry import register_oracle as register_oracle

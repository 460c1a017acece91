"""Standard errors of a softmax regression, and their table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.results import FloatArray
from ...objectives.information import warn_of_many_weights
from ...objectives.l1 import L1Point
from ..objective.covariance import SEPARATED_CLASSES, covariance
from ..objective.elastic_net import ElasticNetPoint
from ..objective.latent import LatentPoint
from .problem import Ended

NOT_WITH_L1 = (
    "standard errors are not defined with l1 > 0: the estimates are biased towards zero, and exact zeros have no normal "
    "distribution; refit the chosen columns with l1=0, or use method='bootstrap'"
)


def variances(ended: Ended | None, l2: float, robust: bool, reference: int | None) -> FloatArray:
    """The variance of each weight, (rows of coef_, columns and intercept), or of its difference to the row `reference`.

    A ValueError says why there are none: a penalty, a constraint, separated classes, data that are gone or were changed.
    """
    if ended is None:
        raise ValueError("standard errors need the training data, which copies, files and streams do not keep: fit again")
    point, features = ended.point, ended.features
    held = ended.constrained is not None and ended.constrained.objective.l1 is not None
    if isinstance(point, ElasticNetPoint | L1Point) or held:
        raise ValueError(NOT_WITH_L1)
    if isinstance(point, LatentPoint):
        raise ValueError("standard errors need classes that are known, one by one: y has sets of classes")
    if ended.constrained is not None and ended.constrained.active:
        raise ValueError(
            "a constraint is active at the estimates: on the edge of the feasible set they are not asymptotically "
            "normal and have no standard error; drop the constraint, or use method='bootstrap'"
        )
    if ended.separated:
        raise ValueError(SEPARATED_CLASSES)
    if features.digest() != ended.digest:
        raise ValueError("X was changed in place after fit, and standard errors need the training data: fit again")
    warn_of_many_weights(features.size, features.n_examples, "rows", l2, "fewer columns")
    places = features.columns()
    matrix = covariance(point, robust=robust)
    own = matrix[places, places]
    if reference is None:
        return np.asarray(own)
    r = reference
    return np.asarray(own + own[r] - 2.0 * matrix[places, np.broadcast_to(places[r], places.shape)])


def differences(table: FloatArray, row: int) -> FloatArray:
    """The rows of a table but one, less that one."""
    return np.delete(table - table[row], row, axis=0)


def weight_names(labels: Sequence[object], columns: Sequence[object]) -> list[str]:
    """What the weights of a table are called, row by row."""
    return [f"{label}: {column}" for label in labels for column in columns]

"""Sizes of covariances of estimates, relative to each other."""

from __future__ import annotations

import numpy as np

from ...core.results import FloatArray
from ...core.validation import check_choice

MEASURES = ("det", "rdet", "trace")
#: Share of the largest eigenvalue below which a matrix counts as singular.
SINGULAR = 1e-12


def efficiency(covariance: FloatArray, information: FloatArray, measure: str = "det") -> float:
    """How many times the variance of the maximum likelihood estimate: determinants, their r-th root, or traces."""
    return relative_size(covariance, inverse_information(information, "the model"), measure)


def relative_size(covariance: FloatArray, reference: FloatArray, measure: str = "det") -> float:
    """The size of a covariance relative to another."""
    check_choice("measure", measure, MEASURES)
    if measure == "trace":
        return float(np.trace(covariance) / np.trace(reference))
    ratio = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(reference)[1]
    return float(np.exp(ratio / len(covariance) if measure == "rdet" else ratio))


def inverse_information(J: FloatArray, of: str) -> FloatArray:
    values = np.linalg.eigvalsh(J)
    if not values[0] > SINGULAR * values[-1]:
        raise ValueError(
            f"the information of {of} is singular: some weights are not determined (tables with a weight for every entry "
            "can be shifted, statistics='contrasts' cannot; or the objects do not cover the model)"
        )
    return np.asarray(np.linalg.inv(J))

"""Covariance of estimates on factor graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ...core.validation import check_choice
from ...objectives.information import dense_hessian
from ...objectives.uncertainty import METHODS, NOT_OF_COMPOSITES, SIZE_LIMIT, deviations, drawn_errors, sum_of_squares
from .composite import CompositePoint
from .likelihood import GraphPoint

#: Share of the largest eigenvalue below which the information along a direction counts as none,
SINGULAR = 1e-10
#: and the number of examples' worth of information (as at zero weights) below which the estimate runs to infinity.
SEPARATED = 0.01
#: The same, by factors taken alone, from which there is no doubt.
CLEAR = 1.0


def graph_covariance(point: GraphPoint | CompositePoint, method: str = "sandwich") -> FloatArray:
    """H^-1 K H^-1 (``"sandwich"``) with K the sum of outer products of the examples' scores, or H^-1 (``"information"``).

    H is the Hessian of the objective, penalty included, and what unknown states take from it. Directions in theta that
    change no probability get variance zero: estimates that start from zero have no part in them. H^-1 alone is right for
    the likelihood of a model that is true; for composite likelihoods it never is, and is refused.

    Raises
    ------
    ValueError
        When inference is not exact, or the estimates are not identified.
    """
    _check_engine(point, method)
    inverse = _inverse(point)
    if method == "information":
        return inverse
    return np.asarray(inverse @ sum_of_squares(point) @ inverse)


def determined(point: GraphPoint | CompositePoint) -> FloatArray:
    """Directions, as columns, about which the data say anything: without those that only the penalty decides."""
    values, Q = np.linalg.eigh(_matrix(point) - np.diag(point.objective.penalty))
    return np.asarray(Q[:, values > SINGULAR * values[-1]])


def graph_influence(point: GraphPoint | CompositePoint, scores: FloatArray | None = None) -> FloatArray:
    """What the estimates change by, to first order, for each example that is added once more: H^-1 times its score.

    Examples are those of the objective, or new ones with these `scores`.
    """
    _check_engine(point, "sandwich")
    if scores is None:
        weights = point.objective.weights[:, None]
        own = np.concatenate(list(point.score_chunks()))
        scores = np.divide(own, weights, out=np.zeros_like(own), where=weights > 0.0)
    return np.asarray(scores @ _inverse(point))


def _inverse(point: GraphPoint | CompositePoint) -> FloatArray:
    """The inverse of the Hessian, zero along directions that change no probability."""
    o = point.objective
    if o.size > SIZE_LIMIT:
        raise ValueError(f"a covariance needs a {o.size} x {o.size} matrix; the limit is {SIZE_LIMIT}")
    H = _matrix(point)
    Q = np.eye(o.size)
    alone = np.sqrt(o.uniform_diagonal + 1e-300)
    clear = np.linalg.eigvalsh(H / np.outer(alone, alone))[0] * o.weights.sum() >= CLEAR
    if not clear and not o.penalty.min() > 0.0:
        values, Q = np.linalg.eigh(_matrix(o.at(np.zeros(o.size)), complete=True))
        keep = values > SINGULAR * values[-1]
        Q = Q[:, keep] / np.sqrt(values[keep])
        if np.linalg.eigvalsh(Q.T @ H @ Q)[0] * o.weights.sum() < SEPARATED:
            raise ValueError(
                "the information is singular: the data leave some weights undetermined or drive them to infinity (a "
                "configuration that never occurs, or states that are never known); set l2 > 0"
            )
    return np.asarray(Q @ np.linalg.solve(Q.T @ H @ Q, Q.T))


def _check_engine(point: GraphPoint | CompositePoint, method: str) -> None:
    check_choice("method", method, METHODS[:2])
    o = point.objective
    if o.engine == "composite" and method == "information":
        raise ValueError(NOT_OF_COMPOSITES)
    if o.engine not in ("exact", "planar", "composite"):
        raise ValueError(
            f"standard errors need exact inference; engine {o.engine!r} maximises a surrogate, whose curvature says nothing "
            "about the spread of the estimates. Fit with likelihood='full' and engine='exact' (if that is too large, with a "
            "higher memory_limit in engine_options), or with likelihood='pseudo', or use method='bootstrap'"
        )


def graph_errors(
    point: GraphPoint | CompositePoint,
    method: str,
    draws: int,
    random_state: Any,
    units: Any = None,
    free: IntArray | None = None,
) -> FloatArray:
    """Standard errors: square roots of the diagonal of `graph_covariance`, or of ``units`` times the parameters.

    `free` are numbers of parameters that are known to be determined without a penalty, but for what changes no probability.

    Above the size where that is formed, the sandwich is estimated: for random signs e of the examples, the mean of
    ``(H^-1 sum_i e_i g_i)^2`` over `draws`, with a relative error of about ``1 / sqrt(2 draws)``.
    """
    o = point.objective
    if o.size <= SIZE_LIMIT or method != "sandwich":
        return deviations(graph_covariance(point, method), units)
    _check_engine(point, method)
    if not np.delete(o.penalty, [] if free is None else free).min(initial=np.inf) > 0.0:
        raise ValueError(
            f"standard errors of {o.size} weights (more than {SIZE_LIMIT}) need l2 > 0: whether the data determine all "
            "weights is not checked above that"
        )
    scaling = 1.0 / point.diagonal
    given = (point.score_chunks(), point.information_product(), lambda r: scaling * r, o.n_examples)
    return drawn_errors(*given, draws, random_state, units)


def _matrix(point: GraphPoint | CompositePoint, complete: bool = False) -> FloatArray:
    product = point.hessian_product() if complete else point.information_product()
    return dense_hessian(product, point.objective.size)

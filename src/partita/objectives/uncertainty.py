"""Covariances of estimates at a minimum, of any objective that is a sum over examples and knows their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from ..core.contracts import Product
from ..core.random import generator
from ..core.results import FloatArray
from ..core.validation import check_choice, check_count
from ..numerics.linalg import conjugate_gradient
from .composite.efficiency import relative_size
from .information import SINGULAR, dense_hessian

#: How standard errors are found.
METHODS = ("information", "sandwich", "bootstrap")
#: Parameters above which no matrix is formed.
SIZE_LIMIT = 3000
#: Accuracy and most products of solves for single draws, above that.
RTOL, PRODUCTS = 1e-3, 500
#: Share of the largest eigenvalue of the information elsewhere below which a direction changes no probability, and the
#: number of examples' worth of that information below which an estimate runs to infinity.
NOWHERE, SEPARATED = 1e-8, 0.01
NOT_OF_COMPOSITES = (
    "the inverse of the information is not the variance of composite likelihood estimates: use method='sandwich'"
)
FIT_AGAIN = "standard errors need the training data, which copies and files do not keep: fit again"


class ScoredPoint(Protocol):
    """A point of a sum over examples."""

    @property
    def parameters(self) -> FloatArray: ...
    @property
    def objective(self) -> Any: ...
    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v, of the objective itself."""
        ...

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> about H^-1 v, positive definite."""
        ...

    def score_chunks(self) -> Iterator[FloatArray]:
        """Gradients of the weighted log-likelihood of each example, (examples, parameters), some examples at a time."""
        ...


def covariance(point: ScoredPoint, method: str = "sandwich") -> FloatArray:
    """H^-1 K H^-1 (``"sandwich"``) with K the sum of outer products of the examples' scores, or H^-1 (``"information"``).

    H is the Hessian of the objective, penalty included: the observed information. Directions that change no probability get
    variance zero.

    Raises
    ------
    ValueError
        Where the estimates are no strict minimum, saying why.
    """
    check_choice("method", method, METHODS[:2])
    inverse = _inverse(point)
    return inverse if method == "information" else np.asarray(inverse @ sum_of_squares(point) @ inverse)


def sum_of_squares(point: ScoredPoint) -> FloatArray:
    """The sum of the outer products of the examples' scores."""
    size = len(point.parameters)
    out = np.zeros((size, size))
    for S in point.score_chunks():
        out += S.T @ S
    return out


def influence(point: ScoredPoint, scores: FloatArray | None = None) -> FloatArray:
    """What the estimates change by, to first order, for each example that is added to the sum: H^-1 times its score.

    That is ``-(1/n) (E psi')^-1 psi`` of n examples with estimating function psi. Examples are those of the sum, or new
    ones with these `scores`.
    """
    if scores is None:
        scores = np.concatenate(list(point.score_chunks()))
    return np.asarray(scores @ _inverse(point))


def errors(point: ScoredPoint, method: str, draws: int = 100, random_state: Any = None, change: Any = None) -> FloatArray:
    """Standard errors of the parameters, or of ``change`` times them.

    Above `SIZE_LIMIT` parameters, the sandwich is estimated from `draws` random vectors.
    """
    if len(point.parameters) > SIZE_LIMIT and method == "sandwich":
        if not point.objective.penalty.min() > 0.0:
            raise ValueError(
                f"standard errors of {len(point.parameters)} weights (more than {SIZE_LIMIT}) need l2 > 0: whether the data "
                "determine all weights is not checked above that"
            )
        given = (point.score_chunks(), point.hessian_product(), point.preconditioner(), point.objective.n_examples)
        return drawn_errors(*given, draws, random_state, change)
    if len(point.parameters) > SIZE_LIMIT:
        raise ValueError(
            f"the inverse of the information is a matrix of {len(point.parameters)} rows; the limit is {SIZE_LIMIT}: use "
            "method='sandwich'"
        )
    return deviations(covariance(point, method), change)


def deviations(matrix: FloatArray, change: Any = None) -> FloatArray:
    """Square roots of the diagonal of a covariance matrix, or of that of ``change`` times the parameters."""
    if sp.issparse(change):
        change = change.toarray()
    variances = np.diag(matrix) if change is None else np.einsum("ij,ij->i", change @ matrix, change)
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)))


def drawn_errors(
    chunks: Iterable[FloatArray],
    product: Product,
    precondition: Product,
    n_examples: int,
    draws: int,
    random_state: Any,
    change: Any = None,
) -> FloatArray:
    """Sandwich errors from random signs e of the examples: the mean of ``(H^-1 sum_i e_i g_i)^2``, whose relative error is
    about ``1 / sqrt(2 draws)``."""
    check_count("draws", draws, minimum=1)
    signs = np.where(generator(random_state).random((draws, n_examples)) < 0.5, -1.0, 1.0)
    sums, total, first = np.zeros((draws, 1)), np.zeros(1), 0
    for S in chunks:
        sums = sums + signs[:, first : first + len(S)] @ S
        first += len(S)
    for b in sums:
        found = conjugate_gradient(product, b, precondition, RTOL, PRODUCTS)[0]
        total = total + (found if change is None else change @ found) ** 2
    return np.asarray(np.sqrt(total / draws))


def relative_variance(point: ScoredPoint, other: ScoredPoint, composite: bool, measure: str) -> float:
    """How many times the variance that the estimates of another objective would have, both judged where they are.

    `composite` says whether the other is one, whose variance is a sandwich. Directions that only a penalty decides are left
    out.
    """
    values, Q = np.linalg.eigh(_hessian(other) - np.diag(other.objective.penalty))
    Q = Q[:, values > SINGULAR * values[-1]]
    reference = covariance(other, "sandwich" if composite else "information")
    return relative_size(Q.T @ covariance(point) @ Q, Q.T @ reference @ Q, measure)


def _hessian(point: ScoredPoint) -> FloatArray:
    return dense_hessian(point.hessian_product(), len(point.parameters))


def _inverse(point: ScoredPoint) -> FloatArray:
    """The inverse of the Hessian, zero along directions that change no probability."""
    size = len(point.parameters)
    if size > SIZE_LIMIT:
        raise ValueError(f"a covariance needs a {size} x {size} matrix; the limit is {SIZE_LIMIT}")
    H = _hessian(point)
    values, Q = np.linalg.eigh(H)
    least = SINGULAR * values[-1]
    if values[0] < -least:
        raise ValueError(
            "the information is not positive definite: training did not end at a minimum, but at a saddle or on its way; "
            "lower tol, raise max_iter, or start elsewhere"
        )
    kept = values > least
    if not point.objective.penalty.min(initial=np.inf) > 0.0 and not _determined(point, H, Q, kept):
        raise ValueError(
            "the information is singular: the data leave some weights undetermined or drive them to infinity; set l2 > 0"
        )
    return np.asarray((Q[:, kept] / values[kept]) @ Q[:, kept].T)


def _determined(point: ScoredPoint, H: FloatArray, Q: FloatArray, kept: Any) -> bool:
    """Whether directions without curvature have none at another place either, where no probability has vanished, and the
    others have not lost what they have there, where that is known to be the most (F is convex)."""
    elsewhere = generator(0).normal(scale=0.3, size=len(point.parameters))
    R, N, Q = _hessian(point.objective.at(elsewhere)), Q[:, ~kept], Q[:, kept]
    if np.abs(N.T @ R @ N).max(initial=0.0) > NOWHERE * np.abs(R).max():
        return False
    if not point.objective.convex:
        return True
    share = eigh(Q.T @ H @ Q, Q.T @ R @ Q, eigvals_only=True, subset_by_index=[0, 0])[0]
    return bool(share * point.objective.n_examples >= SEPARATED)

"""Quadratics above log Z of chains: as matrices for few parameters, by products or along one line for any number.

Let ``Z_t(v)`` be the sum over the labellings of positions up to t that end in v, and mu_t(v) the mean of their features. If

    log Z_{t-1}(u; theta + d) <= log Z_{t-1}(u; theta) + mu_{t-1}(u)'d + d' M_{t-1} d / 2    for every u,

with one M for all u, then ``exp(d' M d / 2)`` factors out of ``Z_t(v) = sum_u Z_{t-1}(u) exp(score of u, v)``. What is left
is a sum of exponentials of linear functions with features ``f(u, v) + mu_{t-1}(u)``, and any bound for those (Algorithm 1)
adds its curvature A_t(v). So the inequality holds at t with any M_t above ``M_{t-1} + A_t(v)`` for all v. The sum over the
last label is one step more.

Along one line, M and A are numbers, and the smallest M_t is ``M_{t-1} + max_v A_t(v)``. There A_t(v) bounds the cumulant
function of a variable of mean 0, variance s and largest value b by `kernels.bound.one_sided`, which is the best that
b and s allow. The same holds for the score of the whole chain; the smaller of both is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.contracts.capabilities import BOUNDS
from ..core.parallel import Workers
from ..core.results import FloatArray, IntArray
from ..core.validation import check_choice, check_weights
from ..numerics.curvature import algorithm_one
from ..softmax import SEQUENTIAL, Categorical, PartitionBound, potential_curvature
from .kernels import bound as kernels, shared_curvature
from .kernels.tuples import LineBounds, Potentials

UPPERS = ("sum", "positive")
#: Where Bennett's bound for short steps is given up: far beyond where it is the smaller one.
FAR = 500.0
#: How closely the best step is found.
STEP_TOLERANCE = 1e-3
#: The r of `kernels.shared_curvature`.
SPLIT = 0.5
#: Numbers in the largest array of `chain_bound`.
GROUP_ENTRIES = 4_000_000


@dataclass(frozen=True)
class LineBound:
    """``F(t) <= F(0) + slope t + K(r) t^2 / 2`` for ``0 <= t <= r``; K grows with r, from F''(0), and is bounded.

    K sums over the chains the smallest of three bounds: one for all t >= 0 (`curvatures`), one for ``t <= radius``
    (`nearby`), and for ``t <= r`` Bennett's, ``variance * 2 (e^x - 1 - x) / x^2`` at ``x = above * r``, since no labelling's
    score is more than `above` over the mean.
    """

    slope: float
    penalty: float
    weights: FloatArray
    radius: float
    curvatures: FloatArray
    nearby: FloatArray
    variances: FloatArray
    above: FloatArray

    @property
    def hessian(self) -> float:
        """F''(0)."""
        return float(self.weights @ self.variances) + self.penalty

    def curvature(self, radius: float = np.inf) -> float:
        """K(radius)."""
        x = np.minimum(radius * np.maximum(self.above, 1e-300), FAR)
        small = x < 1e-3
        safe = np.where(small, 1.0, x)
        growth = np.where(small, 1.0 + x / 3.0 + x * x / 12.0, 2.0 * (np.expm1(safe) - safe) / safe**2)
        short = np.where(x < FAR, self.variances * growth, np.inf)
        bounds = np.minimum(short, self.nearby if radius <= self.radius else self.curvatures)
        return float(self.weights @ bounds) + self.penalty

    def step(self, relaxation: float = 1.0) -> float:
        """The t with ``t K(t) = -slope * relaxation``: at 1 the minimum of the bound with radius t.

        F falls by at least ``-slope t (1 - relaxation / 2)``.
        """
        target, worst, best = -relaxation * self.slope, self.curvature(), self.hessian
        if not (target > 0.0 and worst > 0.0):
            return 0.0
        low = target / worst
        high = target / best if best > 1e-12 * worst else 1e12 * low
        while high > low * (1.0 + STEP_TOLERANCE):
            middle = float(np.sqrt(low * high))
            if middle * self.curvature(middle) <= target:
                low = middle
            else:
                high = middle
        return low


def line_curvatures(
    scores: tuple[FloatArray, FloatArray],
    image: tuple[FloatArray, FloatArray],
    offsets: IntArray,
    radius: float,
    ranges: list[tuple[int, int]],
    workers: Workers,
) -> LineBounds:
    """Curvatures, nearby, variances, above of `LineBound` for every chain, from `scores` along `image`."""
    bounds = LineBounds(*(np.empty(len(offsets) - 1) for _ in range(4)))
    line = (Potentials(*scores), Potentials(*image), offsets, radius)
    workers.run(kernels.line_bounds, [(*line, lo, hi, bounds) for lo, hi in ranges])
    return bounds


@dataclass(frozen=True)
class DenseChains:
    """Chains with few parameters, their features written out.

    Parameters
    ----------
    unary : array of shape (positions, labels, d)
        Features of each label at each position.
    pairs : array of shape (labels, labels, d)
        Features of each transition.
    offsets : array of int
        Where each chain starts, and where the last ends.
    """

    unary: FloatArray
    pairs: FloatArray
    offsets: IntArray

    def scores(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores of labels (positions, labels) and transitions (labels, labels)."""
        return self.unary @ theta, self.pairs @ theta


def chain_bound(
    chains: DenseChains,
    theta: ArrayLike,
    *,
    weights: Any = None,
    bound: str = "descending",
    upper: str = "sum",
    scores: tuple[FloatArray, FloatArray] | None = None,
) -> PartitionBound:
    """A quadratic above ``sum_i w_i log Z_i(theta)`` of chains, with a curvature shared by all labels of a position.

    Parameters
    ----------
    bound : str
        The bound applied at every position, see `partita.softmax.bounds.potential`.
    upper : {"sum", "positive"}
        What is taken to be above the curvatures A(v) of all labels v: their sum, or ``M <- M + (A(v) - M)_+``, label by
        label, which is tighter and costs an eigendecomposition for each label and position.
    scores : (U, A), optional
        The scores at theta, with -inf for what is forbidden; default those of theta.
    """
    check_choice("bound", bound, BOUNDS)
    check_choice("upper", upper, UPPERS)
    center = np.ascontiguousarray(theta, dtype=np.float64)
    U, A = chains.scores(center) if scores is None else scores
    lengths = np.diff(chains.offsets)
    w = check_weights("weights", weights, len(lengths))
    n, d = chains.unary.shape[1:]
    longest_first = np.argsort(-lengths, kind="stable")
    group = max(1, GROUP_ENTRIES // (n * n * d))
    log_z, mean, sigma = 0.0, np.zeros(d), np.zeros((d, d))
    for first in range(0, len(lengths), group):
        members = longest_first[first : first + group]
        log_z += _group_bound(chains, U, A, members, w[members], bound, upper, mean, sigma)
    return PartitionBound(center, log_z, mean, sigma)


def _group_bound(
    chains: DenseChains,
    U: FloatArray,
    A: FloatArray,
    members: IntArray,
    w: FloatArray,
    bound: str,
    upper: str,
    mean: FloatArray,
    sigma: FloatArray,
) -> float:
    """Add the means and curvatures of some chains, longest first, all at once position by position; returns sum w log Z."""
    begin, lengths = chains.offsets[members], np.diff(chains.offsets)[members]
    a, mu = U[begin], chains.unary[begin]
    total = 0.0
    for t in range(1, int(lengths[0]) + 1):
        active = int(np.searchsorted(-lengths, -t))  # the chains longer than t go on, the others end here
        if active < len(a):
            log_z, end, roots = _combine(a[active:, None, :], mu[active:], None, bound)
            total += float(w[active : len(a)] @ log_z[:, 0])
            mean += w[active : len(a)] @ end[:, 0]
            _add(roots, w[active : len(a)], sigma)
        if active:
            log_z, past, roots = _combine(a[:active, None, :] + A.T, mu[:active], chains.pairs.transpose(1, 0, 2), bound)
            rows = begin[:active] + t
            _add(above_all(roots) if upper == "positive" else roots, w[:active], sigma)
            a, mu = log_z + U[rows], past + chains.unary[rows]
    return total


def _combine(
    logits: FloatArray, mu: FloatArray, pairs: FloatArray | None, bound: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum over u: log Z (chains, v), mean features (chains, v, d) and rows r with A(v) = sum r r'.

    `logits` is (chains, v, u), `mu` (chains, u, d), `pairs` (v, u, d); the rows are (chains, v, labels - 1, d).
    """
    c, m, n = logits.shape
    log_z, stacked = shares_and_roots(logits, bound)
    out = (stacked.reshape(c, m * n, n) @ mu).reshape(c, m, n, -1)
    if pairs is not None:
        out += np.einsum("cvku,vud->cvkd", stacked, pairs, optimize=True)
    return log_z, out[:, :, 0], out[:, :, 1:]


def shares_and_roots(logits: FloatArray, bound: str) -> tuple[FloatArray, FloatArray]:
    """log Z (..., v) of sums over u, and for each the probabilities of u and below them rows a with S = sum a a', where S
    is above the curvature in the space of u: (..., v, u, u)."""
    n = logits.shape[-1]
    top = logits.max(-1, keepdims=True)
    live = np.isfinite(top)
    logits = np.where(live, logits - np.where(live, top, 0.0), 0.0)
    p = np.exp(logits)
    z = p.sum(-1, keepdims=True)
    log_z = np.where(live, top + np.log(z), -np.inf)[..., 0]
    shares = np.where(live, p / z, 0.0)
    rows = _label_roots(logits.reshape(-1, n), bound).reshape(*logits.shape[:-1], n - 1, n) * live[..., None]
    return log_z, np.concatenate([shares[..., None, :], rows], axis=-2)


def _label_roots(logits: FloatArray, bound: str) -> FloatArray:
    """Rows a with S = sum a a' in the space of labels, one for every visit but the first: (examples, labels - 1, labels)."""
    m, n = logits.shape
    curvature = potential_curvature(Categorical(n), logits, np.ones(m), bound)
    order, beta, kappa = (part.reshape(m, n) for part in curvature.sequence())
    roots, mean, every = np.zeros((m, n - 1, n)), np.zeros((m, n)), np.arange(m)
    for visit in range(n):
        if visit:
            roots[:, visit - 1] = -mean
            roots[every, visit - 1, order[:, visit]] += 1.0
            roots[:, visit - 1] *= np.sqrt(beta[:, visit, None])
        mean *= 1.0 - kappa[:, visit, None]
        mean[every, order[:, visit]] += kappa[:, visit]
    return roots


def above_all(roots: FloatArray) -> FloatArray:
    """Rows of one matrix per chain that is above A(v) for every v, by positive parts within the span of all rows."""
    c, m, k, d = roots.shape
    if k == 0:
        return roots
    R = roots.reshape(c, m * k, d)
    values, vectors = np.linalg.eigh(R @ R.transpose(0, 2, 1))
    scale = np.sqrt(np.maximum(values, 0.0))
    inside = scale > 1e-8 * scale[:, -1:]
    basis = (vectors * np.where(inside, 1.0 / np.where(inside, scale, 1.0), 0.0)[:, None]).transpose(0, 2, 1) @ R
    L = (R @ basis.transpose(0, 2, 1)).reshape(c, m, k, -1)
    M = np.zeros((c, L.shape[-1], L.shape[-1]))
    for v in range(m):
        values, vectors = np.linalg.eigh(L[:, v].transpose(0, 2, 1) @ L[:, v] - M)
        M += (vectors * np.maximum(values, 0.0)[:, None]) @ vectors.transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(M)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[:, None]).transpose(0, 2, 1) @ basis)


def _add(roots: FloatArray, w: FloatArray, sigma: FloatArray) -> None:
    """sigma += sum_i w_i sum r r' over the rows of chain i."""
    R = (roots * np.sqrt(w).reshape(-1, *[1] * (roots.ndim - 1))).reshape(-1, roots.shape[-1])
    sigma += R.T @ R


class SharedCurvature:
    """A matrix above the curvature of log Z of chains, by products with scores; see `kernels.shared_curvature`.

    Parameters
    ----------
    U, A : arrays
        Scores of labels and transitions; -inf forbids.
    offsets : array of int
        Where each chain starts, and where the last ends.
    weights : array
        Of the chains.
    kind : str
        ``"bohning"``, or any other of `BOUNDS` for the symmetric bound that is proved: orders have no common norm.
    """

    def __init__(
        self, U: FloatArray, A: FloatArray, offsets: IntArray, weights: FloatArray, kind: str, workers: Workers
    ) -> None:
        check_choice("bound", kind, BOUNDS)
        n, self.A, self.offsets, self.workers = U.shape[1], np.ascontiguousarray(A), offsets, workers
        self.ranges: list[tuple[int, int]] = Workers.balanced(offsets, 20.0 * n * n * len(U))
        self.log_a, self.within, self.last = np.empty(U.shape), np.zeros(U.shape), np.empty((len(offsets) - 1, n))
        parts = np.zeros((len(self.ranges), n, n))
        given, out = (U, self.A, offsets, weights, kind == "bohning"), (self.log_a, self.within, self.last)
        workers.run(shared_curvature.norms, [(*given, lo, hi, *out, parts[i]) for i, (lo, hi) in enumerate(self.ranges)])
        self.D: FloatArray = parts.sum(0)
        best = self.A.max(axis=0)
        self.M: FloatArray = np.exp(self.A - np.where(np.isfinite(best), best, 0.0))

    def product(self, dU: FloatArray, dA: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The matrix times (dU, dA)."""
        n, dA, middle = len(dA), np.ascontiguousarray(dA), dA.mean(axis=1)
        out, counts, means = np.empty_like(dU), *(np.zeros((len(self.ranges), *shape)) for shape in ((n, n), (n,)))
        given = (self.log_a, self.within, self.last, self.A, self.M, self.offsets, dU, dA, middle, 1.0 + SPLIT)
        tasks = [(*given, lo, hi, out, counts[i], means[i]) for i, (lo, hi) in enumerate(self.ranges)]
        self.workers.run(shared_curvature.product, tasks)
        rest = dA - middle[:, None]
        total = np.maximum(self.D.sum(0), 1e-300)
        apart = (1.0 + 1.0 / SPLIT) * self.D * (rest - (self.D * rest).sum(0) / total)
        back = counts.sum(0) + apart + ((means.sum(0) - apart.sum(1)) / n)[:, None]
        return out, back

    def diagonal(self) -> tuple[FloatArray, FloatArray]:
        """About the diagonal: the norms of the sums that scores enter first."""
        out = np.empty_like(self.within)
        out[:-1] = (1.0 + SPLIT) * self.within[1:]
        out[self.offsets[1:] - 1] = self.last
        return out, (1.0 + 1.0 / SPLIT) * self.D


def junction_tree_bound(chains: DenseChains, theta: ArrayLike, *, ordering: str = "descending") -> PartitionBound:
    """Algorithm 3 as printed, for one chain: the curvatures of all configurations of the children are summed.

    It is a bound, but it grows exponentially with the length: the reference for `chain_bound`, and no more.
    """
    check_choice("ordering", ordering, tuple(SEQUENTIAL))
    center = np.ascontiguousarray(theta, dtype=np.float64)
    U, A = chains.scores(center)
    if len(chains.offsets) != 2:
        raise ValueError(f"chains must hold one chain, got {len(chains.offsets) - 1}")
    a, mu = U[0], chains.unary[0]
    n, d = mu.shape
    sigma = np.zeros((n, d, d))
    for t in range(1, len(U)):
        scores = (a[:, None] + A + U[t]).T  # (v, u): the clique of positions t - 1 and t
        features = (mu[:, None] + chains.pairs + chains.unary[t]).transpose(1, 0, 2)
        children = sigma.sum(0)
        if t == len(U) - 1:
            return printed(center, scores.ravel(), features.reshape(n * n, d), n * children, ordering)
        parts = [printed(center, scores[v], features[v], children, ordering) for v in range(n)]
        a, mu = np.array([part.log_z for part in parts]), np.array([part.mean for part in parts])
        sigma = np.array([part.curvature for part in parts])
    return printed(center, a, mu, np.zeros((d, d)), ordering)


def printed(
    center: FloatArray, scores: FloatArray, features: FloatArray, children: FloatArray, ordering: str
) -> PartitionBound:
    """Algorithm 1 on given scores, plus the curvatures of the children."""
    mean, sigma = np.zeros(len(center)), children.copy()
    code, ends = SEQUENTIAL[ordering], np.array([0, len(scores)])
    log_z = algorithm_one(np.ascontiguousarray(features), scores, ends, np.ones(1), code, 0, 1, mean, sigma)
    return PartitionBound(center, float(log_z), mean, sigma)

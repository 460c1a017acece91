"""Standard errors of large chain models: sandwich and inverse Fisher information from random draws.

With r of covariance K, ``E[(H^-1 r)^2] = diag(H^-1 K H^-1)``. A draw is one r and one solve by conjugate gradients; a block
of draws is solved at once, with products with the Hessian on likely labels. For the sandwich, r is the sum of the chains'
scores with random signs; for the inverse information it is a labelling drawn from the model, less its mean, and noise for
the penalty, so that ``K = H``.

What an unlikely label does to the Hessian is too much to keep and too much to forget: of attributes only its part in the
diagonal is kept, of transitions also their covariances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.interrupts import pass_on_in_search
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.warn import warn
from ...numerics.linalg import conjugate_gradient
from ...objectives.information import dense_errors
from ...objectives.uncertainty import NOT_OF_COMPOSITES
from ..features.chain import ChainFeatures, transposed
from ..kernels import blocks
from ..kernels.blocks import WIDTH
from ..kernels.forward_backward import residual_counts, signed_counts
from ..kernels.tuples import Entries
from ..structure.pruned import PrunedChains
from .composite import CompositePoint
from .counts import observed
from .likelihood import ChainPoint

#: Probability from which a label counts where attributes are concerned,
LIKELY = 1e-2
#: and where only transitions are.
LIKELY_TRANSITION = 1e-3
#: Relative accuracy of solves, as a share of the noise of the draws, 1 / sqrt(2 draws).
TOLERANCE = 0.1
#: Parameters up to which matrices are formed and errors are exact.
EXACT = 2000
#: Most weights of transitions, starts and ends for which matrices are formed.
MOST_TRANSITIONS = 1000
#: Pairs of positions and labels whose features are written out at a time.
PAIRS = 200_000
#: Relative accuracy of a solve where the whole Hessian is used.
RTOL = 1e-4
UNDETERMINED = (
    "without it some weights are not determined (the same constant on every label changes nothing), or run to infinity "
    "(attributes that occur with one label only)"
)


class PrunedHessian:
    """The Hessian of a chain likelihood at a point, with labels of probability `delta` and less left out.

    Parameters
    ----------
    point : ChainPoint
    delta : float
        At 0 it is the Hessian itself.
    attributes : bool
        Without them, what concerns weights of transitions, starts and ends alone.

    Attributes
    ----------
    active : array of int
        The parameters that share entries with others; of the rest, the Hessian has the diagonal only.
    added : array
        The penalty, and the variances of labels of attributes that were left out.
    diagonal : array
        The diagonal, as if the labels of a chain were independent.
    n_iter : int
        Iterations of the last solve.
    """

    workers: Workers
    n_state: int

    n_iter = 0

    def __init__(self, point: ChainPoint, delta: float, attributes: bool = True) -> None:
        o, f = point.objective, point.objective.features
        self.workers, self.n_state = o.workers, f.n_state
        c = PrunedChains(point.sums, delta)
        self.chains: PrunedChains = c
        values, indices, pointers = f.pair_rows(c.position, c.label, c.before, c.after, attributes)
        used = np.bincount(indices, minlength=o.size) > 0
        used[f.n_state :] = True
        self.active: IntArray = np.flatnonzero(used)
        number = np.cumsum(used) - 1
        self._rows = Entries(values, number[indices].astype(np.uint32), pointers)
        columns = transposed(self._rows, len(self.active))
        self._columns = columns if len(values) else columns._replace(values=values)
        moves = f.transition_numbers().ravel()
        self._moves = np.flatnonzero(moves >= 0)
        self._weights = number[moves[self._moves]]
        variance = np.repeat(c.variances, np.diff(pointers).astype(np.int64))
        variance = np.bincount(indices, variance * values**2 if len(values) else variance, o.size).astype(np.float64)
        variance[moves[self._moves]] += c.edge_variances[self._moves]
        self.added: FloatArray = np.array(o.penalty)
        if attributes and delta > 0.0:
            self.added[: f.n_state] += np.maximum(point.diagonal - o.penalty - variance, 0.0)[: f.n_state]
        self.diagonal: FloatArray = variance + self.added
        work = 2.0 * WIDTH * len(indices)
        self._ranges = Workers.ranges(len(self.active), 10.0 * WIDTH * len(self.active))
        self._row_ranges = Workers.balanced(pointers, work)
        self._column_ranges = Workers.balanced(columns.indptr, work)
        self._scores, self._changes = np.empty((2, len(c.label), WIDTH))
        self._own, self._inverse = self.added[self.active], 1.0 / np.maximum(self.diagonal[self.active], 1e-300)

    @property
    def small(self) -> slice:
        """Where transitions, starts and ends are among the active parameters."""
        return slice(int(np.searchsorted(self.active, self.n_state)), len(self.active))

    def _run(self, kernel: Any, ranges: Any, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
        self.workers.run(kernel, [(*before, lo, hi, *after) for lo, hi in ranges])

    def _sum(self, kernel: Any, before: tuple[Any, ...], after: tuple[Any, ...]) -> FloatArray:
        """Run a kernel over the active parameters, and add up what it sums for each column."""
        parts = np.empty((len(self._ranges), WIDTH))
        self.workers.run(kernel, [(*before, lo, hi, *after, parts[i]) for i, (lo, hi) in enumerate(self._ranges)])
        return np.asarray(parts.sum(0))

    def _pull(self, R: FloatArray, C: FloatArray, out: FloatArray) -> None:
        """out = what pairs R and transitions C mean for the weights."""
        self._run(blocks.rows_times_block, self._column_ranges, (*self._columns, R), (out,))
        out[self._weights] += C[self._moves]

    def product(self, V: FloatArray, out: FloatArray) -> FloatArray:
        """out = H V for a block of vectors of the active parameters; returns their products with V, column by column."""
        self._run(blocks.rows_times_block, self._row_ranges, (*self._rows, V), (self._scores,))
        dA = np.zeros((self.chains.n_labels**2, WIDTH))
        dA[self._moves] = V[self._weights]
        C = self.chains.product(self._scores, dA, self._changes)
        self._pull(self._changes, C, out)
        return self._sum(blocks.add_scaled, (V, self._own), (out,))

    def products(self, Z: Any) -> FloatArray:
        """Z' H Z for the columns of a sparse matrix."""
        out, image = np.empty((Z.shape[1], Z.shape[1])), np.empty((len(self.active), WIDTH))
        for first in range(0, Z.shape[1], WIDTH):
            part = Z[:, first : first + WIDTH].toarray()
            V = np.zeros_like(image)
            V[:, : part.shape[1]] = part
            self.product(V, image)
            out[:, first : first + WIDTH] = (Z.T @ image)[:, : part.shape[1]]
        return np.asarray(0.5 * (out + out.T))

    def draw(self, random: np.random.Generator) -> FloatArray:
        """A block of random vectors whose covariance is H."""
        out = np.sqrt(self.added)[:, None] * random.standard_normal((len(self.added), WIDTH))
        pulled = np.empty((len(self.active), WIDTH))
        self._pull(*self.chains.draw(random), pulled)
        out[self.active] += pulled
        return out


class CorrectedHessian(PrunedHessian):
    """A pruned Hessian with the covariances of transitions as if less had been left out, and a way to solve with it.

    Constants that move between transitions and attributes change few probabilities, and steps scaled by the diagonal hardly
    see them. The preconditioner therefore adds an exact solve on the span of the transitions and of one vector for each
    label, its attributes that occur with many labels.
    """

    n_iter: int

    def __init__(self, point: ChainPoint, delta: float = LIKELY, transition_delta: float = LIKELY_TRANSITION) -> None:
        super().__init__(point, delta)
        count = point.objective.size - self.n_state
        self._root = np.zeros((count, 0))
        self._span: Any = None
        if not 0 < count <= MOST_TRANSITIONS:
            return
        if transition_delta < delta:
            fine, own = (PrunedHessian(point, each, attributes=False) for each in (transition_delta, delta))
            values, vectors = np.linalg.eigh(fine.products(_units(fine)) - own.products(_units(own)))
            keep = values > 0.0
            self._root = vectors[:, keep] * np.sqrt(values[keep])
        f = point.objective.features
        label = f.label[self.active[self.active < f.n_common]]
        shape = (len(self.active), f.n_labels)
        labels = sp.csc_matrix((np.ones(len(label)), (np.arange(len(label)), label)), shape)
        values, vectors = np.linalg.eigh(self.products(sp.hstack([_units(self), labels]).tocsc()))
        self._span_inverse = (vectors / np.maximum(values, 1e-12 * values[-1])) @ vectors.T
        self._span = labels[: len(label)].tocsr()

    def product(self, V: FloatArray, out: FloatArray) -> FloatArray:
        dots = super().product(V, out)
        here = self.small
        change = self._root @ (self._root.T @ V[here])
        out[here] += change
        return np.asarray(dots + np.einsum("ij,ij->j", V[here], change))

    def draw(self, random: np.random.Generator) -> FloatArray:
        out = super().draw(random)
        out[self.n_state :] += self._root @ random.standard_normal((self._root.shape[1], WIDTH))
        return out

    def _on_span(self, R: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The solve on the span for the residuals R, and their squared norm: `square` is that without the span."""
        if self._span is None:
            return np.zeros((0, WIDTH)), square
        pushed = np.concatenate([R[self.small], self._span.T @ R[: self._span.shape[0]]])
        inner = self._span_inverse @ pushed
        return inner, square + np.einsum("ij,ij->j", pushed, inner)

    def _add_span(self, inner: FloatArray, out: FloatArray) -> None:
        """out += the vector of the span with these coefficients."""
        if self._span is not None:
            count = len(inner) - self._span.shape[1]
            out[self.small] += inner[:count]
            out[: self._span.shape[0]] += self._span @ inner[count:]

    def solve(self, right: FloatArray, tol: float, max_iter: int = 1000) -> FloatArray:
        """H^-1 `right` for a block, by conjugate gradients, to the relative accuracy `tol` in the preconditioner's norm."""
        if self._span is None:
            tol *= 0.2  # this norm hardly sees what the span is for
        out, R = right / self.diagonal[:, None], right[self.active]
        X, P, image, beta = np.zeros_like(R), np.zeros_like(R), np.zeros_like(R), np.zeros(WIDTH)
        inner, square = self._on_span(R, self._sum(blocks.cg_step, (beta, P, image, self._inverse), (X, R)))
        first, self.n_iter = square, 0
        while self.n_iter < max_iter and np.any(square > tol * tol * first):
            self._run(blocks.cg_direction, self._ranges, (beta, R, self._inverse), (P,))
            self._add_span(inner, P)
            alpha = _ratio(square, self.product(P, image))
            inner, new = self._on_span(R, self._sum(blocks.cg_step, (alpha, P, image, self._inverse), (X, R)))
            beta, square = _ratio(new, square), new
            self.n_iter += 1
        out[self.active] = X
        return out


def _ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    """a / b, and 0 where b is."""
    return np.asarray(np.divide(a, b, out=np.zeros(WIDTH), where=b > 0.0))


def _units(H: PrunedHessian) -> Any:
    """Unit vectors of transitions, starts and ends."""
    here = np.arange(len(H.active))[H.small]
    return sp.csc_matrix((np.ones(len(here)), (here, np.arange(len(here)))), (len(H.active), len(here)))


class ChainScores:
    """The scores of the chains, gradients of the log-likelihood of each, as a matrix that is known by its products."""

    features: ChainFeatures
    workers: Workers

    def __init__(self, point: ChainPoint) -> None:
        o, f, sums = point.objective, point.objective.features, point.sums
        self.features, self.workers = f, o.workers
        self._chain = np.repeat(np.arange(f.n_examples), o.lengths)
        self._R = observed(o.y, f.offsets, o.weights, f.n_labels)[0] - sums.P
        self._state = (sums.transitions.M, sums.messages, sums.chains, o.y)
        self._by_weight: Any = None
        self._ranges = Workers.balanced(f.offsets, 2.0 * f.n_labels**2 * f.n_positions)

    def signed_sums(self, signs: FloatArray) -> FloatArray:
        """A block of sums of the scores, with `signs` (chains, WIDTH)."""
        f = self.features
        self._by_weight = self._by_weight or f.by_weight
        parts = np.zeros((len(self._ranges), f.n_labels**2, WIDTH))
        tasks = [(*self._state, signs, lo, hi, parts[i]) for i, (lo, hi) in enumerate(self._ranges)]
        self.workers.run(signed_counts, tasks)
        moves = parts.sum(0)[f.transitions @ [f.n_labels, 1]]
        out = [f.signed_adjoint(self._by_weight, self._R, self._chain, signs), moves]
        ends = [f.offsets[:-1]] * f.starts + [f.offsets[1:] - 1] * f.ends
        return np.concatenate(out + [self._R[places].T @ signs for places in ends])

    def squares(self) -> FloatArray:
        """The sum of the outer products of the scores, (size, size)."""
        f, n = self.features, self.features.n_labels
        out = np.zeros((f.size, f.size))
        edges = np.unique(np.searchsorted(f.offsets, np.arange(0, f.n_positions, max(1, PAIRS // n))))
        for lo, hi in zip(edges, [*edges[1:], f.n_examples], strict=True):
            part, count = f.block(lo, hi), hi - lo
            positions = np.repeat(np.arange(part.n_positions), n)
            values, indices, pointers = part.pair_rows(positions, np.tile(np.arange(n), part.n_positions))
            values = values if len(values) else np.ones(len(indices))
            rows = sp.csr_matrix((values, indices.astype(np.int64), pointers.astype(np.int64)), (len(positions), f.size))
            owner = self._chain[f.offsets[lo] : f.offsets[hi]] - lo
            R = self._R[f.offsets[lo] : f.offsets[hi]].ravel()
            sums = sp.csr_matrix((R, (np.repeat(owner, n), np.arange(len(R)))), (count, len(R)))
            scores = (sums @ rows).toarray()
            moves = np.empty((count, n, n))
            residual_counts(*self._state, lo, hi, moves)
            scores[:, f.n_state : f.n_state + len(f.transitions)] += moves[:, f.transitions[:, 0], f.transitions[:, 1]]
            out += scores.T @ scores
        return out


def chain_errors(
    point: ChainPoint | CompositePoint,
    method: str,
    draws: int,
    random: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    change: Any = None,
) -> FloatArray:
    """Standard errors of every parameter by ``"information"`` or ``"sandwich"``: exact for small models, else from draws.

    With `change`, a matrix, they are of the product of that with the parameters.

    Raises
    ------
    ValueError
        When they are not identified, or a chain cannot be summed without logarithms.
    """
    if isinstance(point, CompositePoint):
        return _composite_errors(point, method, draws, random, progress, change)
    if point.sums.n_hard:
        raise ValueError("standard errors are not available: the scores of a sequence are too large for products with them")
    if point.objective.size <= EXACT:
        return dense_errors(point, ChainScores(point).squares() if method == "sandwich" else None, change)
    if not point.objective.penalty.max() > 0.0:  # intercepts never have a penalty
        raise ValueError(f"standard errors of more than {EXACT} weights need l2 > 0: " + UNDETERMINED)
    return sampled_errors(point, method, draws, random, progress, change)


def _composite_errors(
    point: CompositePoint,
    method: str,
    draws: int,
    random: np.random.Generator,
    progress: Callable[[int], None] | None,
    change: Any = None,
) -> FloatArray:
    """Of a composite likelihood: a solve for each draw, or for each chain if there are not more of them."""
    o, n = point.objective, point.objective.n_examples
    if method == "information":
        raise ValueError(NOT_OF_COMPOSITES)
    if not o.penalty.max() > 0.0:
        raise ValueError("standard errors of composite likelihoods of chains need l2 > 0: " + UNDETERMINED)
    signs = np.eye(n) if n <= draws else random.choice([-1.0, 1.0], (draws, n))
    product, scaling, total = point.hessian_product(), 1.0 / point.diagonal, np.zeros(o.size)
    for done, sign in enumerate(signs):
        solution = conjugate_gradient(product, point.score(sign), lambda r: scaling * r, RTOL, 1000)[0]
        total += (solution if change is None else change @ solution) ** 2
        if progress is not None:
            progress(done + 1)
    return np.asarray(np.sqrt(total if n <= draws else total / draws))


def sampled_errors(
    point: ChainPoint,
    method: str,
    draws: int,
    random: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    change: Any = None,
) -> FloatArray:
    """Standard errors of every parameter, their relative error being about ``1 / sqrt(2 draws)``.

    An interrupt ends the draws; those done until then count, with a warning.
    """
    H = CorrectedHessian(point)
    scores = ChainScores(point) if method == "sandwich" else None
    tol, total, done = TOLERANCE / np.sqrt(2.0 * draws), np.zeros(point.objective.size), 0
    try:
        while done < draws:
            if scores is None:
                right = H.draw(random)
            else:
                right = scores.signed_sums(random.choice([-1.0, 1.0], (point.objective.n_examples, WIDTH)))
            solution = H.solve(right, tol)[:, : draws - done]
            solution = solution if change is None else change @ solution
            total += np.einsum("ij,ij->i", solution, solution)
            done += solution.shape[1]
            if progress is not None:
                progress(done)
    except KeyboardInterrupt:
        pass_on_in_search()
        if not done:
            raise
        warn(f"interrupted: standard errors are from {done} draws of {draws}", RuntimeWarning)
    return np.asarray(np.sqrt(total / done))

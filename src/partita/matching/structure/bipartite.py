"""Permutations: matchings of two sides with as many vertices."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from ...core.arrays.potentials import real_array, whole_array
from ...core.enumeration import check_few
from ...core.memory import check_memory, product
from ...core.results import FloatArray, IntArray
from ...core.validation import check_count
from ..kernels import many, permanent
from ..registry import find_engine
from .common import Matchings, which_example


class BipartiteMatching(Matchings):
    """Permutations: p(y) proportional to exp of the sum of ``W[i, y[i]]``.

    Parameters
    ----------
    n : int
        Vertices on each side.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Notes
    -----
    Potentials W have shape (n, n) or (examples, n, n); -inf forbids an edge. y is an array of n columns, one for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.structures import BipartiteMatching
    >>> W = np.log([[1.0, 2.0], [3.0, 4.0]])
    >>> np.exp(BipartiteMatching(2).log_partition(W)).round(6)
    array([10.])
    >>> BipartiteMatching(2).infer(W).marginals
    array([[0.4, 0.6],
           [0.6, 0.4]])
    """

    n_vertices: int
    left: int

    perfect = True

    def __init__(self, n: int, n_jobs: int | None = None) -> None:
        self.n: int = check_count("n", n, minimum=1)
        check_memory(f"a matching of n={n}", 64 * product((n, n)), "Lower n, or use Matching with the edges there are")
        self.n_vertices, self.left = 2 * n, n
        self.ends: IntArray = np.column_stack([np.repeat(np.arange(n), n), n + np.tile(np.arange(n), n)])
        super().__init__(n_jobs)

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials as a matrix: examples times edges, row by row."""
        W = real_array("potentials", potentials)
        if W.ndim not in (2, 3) or W.shape[-2:] != (self.n, self.n):
            n = self.n
            raise ValueError(f"potentials must have shape ({n}, {n}) or (examples, {n}, {n}), got {W.shape}")
        return self.checked(W.reshape(-1, self.n_edges), (self.n, self.n), W)

    def is_single(self, potentials: ArrayLike) -> bool:
        return np.ndim(potentials) == 2

    def shaped(self, values: FloatArray, potentials: ArrayLike) -> FloatArray:
        return values.reshape(np.shape(potentials))

    def permutations(self, y: ArrayLike) -> IntArray:
        """Checked permutations, a row for each example."""
        shape = f"{self.n} integers, a column for each row"
        columns = np.atleast_2d(whole_array("y", y, shape))
        if columns.ndim != 2 or columns.shape[1] != self.n or not len(columns):
            raise ValueError(f"y must be {shape}; got {columns.shape} of {columns.dtype}")
        wrong = np.flatnonzero((np.sort(columns, axis=1) != np.arange(self.n)).any(1))
        if len(wrong):
            where = which_example(int(wrong[0]), len(columns))
            alone = np.flatnonzero(columns[wrong[0]] == -1).tolist()
            if alone:
                raise ValueError(f"y leaves row {alone[0]} without a column (-1){where}, but all rows are matched here")
            raise ValueError(f"y must be a permutation of 0..{self.n - 1}{where}")
        return columns.astype(np.int64)

    def indicators(self, y: ArrayLike) -> FloatArray:
        columns = self.permutations(y)
        out = np.zeros((len(columns), self.n, self.n))
        np.put_along_axis(out, columns[:, :, None], 1.0, axis=2)
        return out.reshape(len(columns), -1)

    def exact_sums(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        A, shift = self._scaled(flat)
        log_z = np.empty(len(flat))
        tau = np.zeros((0, self.n, self.n)) if marginals is None else marginals.reshape(-1, self.n, self.n)
        self.for_each(many.assignments, flat, A, log_z, tau)
        return self.check_possible(log_z + shift)

    def _scaled(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Matrices with entries up to one, and ones for the best permutation; and the logarithms of their divisors."""
        W = self.as_given(flat).copy()
        shift = np.zeros(len(W))
        with np.errstate(invalid="ignore"):
            for axis in (2, 1):
                top = W.max(axis=axis, keepdims=True)
                top = np.where(top > -np.inf, top, 0.0)
                W -= top
                shift += top.sum(axis=(1, 2))
        for b in np.flatnonzero(W.min(axis=(1, 2)) < -300.0 / self.n):  # products of few entries could vanish
            finite = np.where(W[b] > -np.inf, W[b], -1e6 - np.abs(W[b][W[b] > -np.inf]).sum())
            columns = find_engine("assignment")(finite[None], self.workers)[0]
            u, v = find_engine("assignment_duals")(finite, columns)
            W[b] -= u[:, None] + v
            shift[b] += u.sum() + v.sum()
        return np.exp(np.minimum(W, 0.0)), shift

    def best(self, weights: FloatArray) -> IntArray:
        """The best permutations, for a checked matrix of examples times edges."""
        found: IntArray = find_engine("assignment")(self.as_given(self.rows(weights)), self.workers)
        return found

    def as_given(self, values: FloatArray) -> FloatArray:
        """A matrix of examples times edges as an array of matrices."""
        return values.reshape(-1, self.n, self.n)

    def draws(self, flat: FloatArray, size: int, random: np.random.Generator) -> IntArray:
        """Independent permutations of one example, shape (size, n)."""
        A, _ = self._scaled(flat)
        sums = np.empty(1 << self.n)
        permanent.assignments(A[0], sums)
        with np.errstate(divide="ignore"):
            self.check_possible(np.log(sums[-1:]))
        draws = np.empty((size, self.n), np.int64)
        many.draw_assignments(A[0], sums, random.random((size, self.n)), draws)
        return draws

    def enumerate(self) -> IntArray:
        """Every permutation for small n, shape (n!, n). A TooLargeError if there are more than a million."""
        check_few(float(math.factorial(min(self.n, 20))), self.n, "permutations")
        return np.array(list(itertools.permutations(range(self.n))), np.int64)

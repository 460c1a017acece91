"""Matchings of two sides: permutations, sides of different sizes, vertices that may stay alone."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.potentials import real_array, whole_array
from ...core.enumeration import check_few
from ...core.memory import check_memory, product
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_count, check_flag
from ..registry import find_engine
from .common import Matchings, which_example
from .subset_sums import SubsetSums, inverted


class BipartiteMatching(Matchings):
    """Matchings of n rows and m columns: p(y) proportional to exp of the sum of ``W[i, y[i]]`` over the matched rows.

    Parameters
    ----------
    n : int
        Rows.
    m : int, optional
        Columns. Default: as many, so that matchings are permutations. If there are more of one side, all vertices of the
        smaller one are matched, and some of the larger stay alone.
    allow_unmatched : bool
        Any vertex may stay alone, which has the score 0. (Scores of staying alone, r of rows and c of columns, are the same
        as weights ``W - r[:, None] - c`` and a constant, the sum of r and c.)
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Notes
    -----
    Potentials W have shape (n, m) or (examples, n, m); -inf forbids an edge. y is an array of n columns, one for each row,
    -1 for none.

    Exact sums go over the sets of vertices of the smaller side, and take about ``max(n, m) min(n, m) 2^min(n, m)`` products.
    Where sides are of different sizes and one of them is matched, the other engines see as many more vertices, with weights
    of zero, on the smaller side: log Z is then larger by ``log |m - n|!``, and bounds stay bounds.

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
    >>> np.exp(BipartiteMatching(2, allow_unmatched=True).log_partition(W)).round(6)
    array([21.])
    >>> np.exp(BipartiteMatching(1, 2).log_partition(W[:1])).round(6)
    array([3.])
    """

    n_vertices: int
    left: int

    def __init__(self, n: int, m: int | None = None, allow_unmatched: bool = False, n_jobs: int | None = None) -> None:
        self.n: int = check_count("n", n, minimum=1)
        self.m: int = self.n if m is None else check_count("m", m, minimum=1)
        self.allow_unmatched: bool = check_flag("allow_unmatched", allow_unmatched)
        n, m = self.n, self.m
        size = f"n={n}" if n == m else f"n={n}, m={m}"
        check_memory(f"a matching of {size}", 64 * product((n, m)), "Lower n, or use Matching with the edges there are")
        self.perfect: bool = n == m and not allow_unmatched
        self.n_vertices, self.left = n + m, n
        self.ends: IntArray = np.column_stack([np.repeat(np.arange(n), m), n + np.tile(np.arange(m), n)])
        super().__init__(n_jobs)
        self.sums: SubsetSums = SubsetSums(n, m, allow_unmatched, self.workers)

    @property
    def exact_size(self) -> int:
        return self.sums.smaller

    @property
    def exact_work(self) -> float:
        return self.sums.work

    @property
    def exact_room(self) -> float:
        return self.sums.room

    @cached_property
    def may_stay_alone(self) -> NDArray[np.bool_]:
        rows, columns = self.n > self.m or self.allow_unmatched, self.m > self.n or self.allow_unmatched
        return np.repeat([rows, columns], [self.n, self.m])

    @property
    def is_padded(self) -> bool:
        """Whether engines that are not exact see more vertices on the smaller side."""
        return self.n != self.m and not self.allow_unmatched

    @cached_property
    def padded(self) -> BipartiteMatching:
        """The permutations that have these matchings as their parts, each ``|m - n|!`` times."""
        return BipartiteMatching(max(self.n, self.m), n_jobs=self.n_jobs)

    def pad(self, flat: FloatArray) -> FloatArray:
        """Numbers of edges as those of `padded`, zero for the others."""
        out = np.zeros((len(flat), self.padded.n, self.padded.n))
        out[:, : self.n, : self.m] = self.as_given(flat)
        return out.reshape(len(flat), -1)

    def crop(self, flat: FloatArray) -> FloatArray:
        """The other way round."""
        return self.padded.as_given(flat)[:, : self.n, : self.m].reshape(len(flat), -1)

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials as a matrix: examples times edges, row by row."""
        W, n, m = real_array("potentials", potentials), self.n, self.m
        if W.ndim not in (2, 3) or W.shape[-2:] != (n, m):
            raise ValueError(f"potentials must have shape ({n}, {m}) or (examples, {n}, {m}), got {W.shape}")
        return self.checked(W.reshape(-1, self.n_edges), (n, m), W)

    def is_single(self, potentials: ArrayLike) -> bool:
        return np.ndim(potentials) == 2

    def shaped(self, values: FloatArray, potentials: ArrayLike) -> FloatArray:
        return values.reshape(np.shape(potentials))

    def columns(self, y: ArrayLike) -> IntArray:
        """Checked matchings as the columns of rows, -1 for none, a row for each example."""
        shape = f"{self.n} integers, a column for each row"
        found = np.atleast_2d(whole_array("y", y, shape))
        if found.ndim != 2 or found.shape[1] != self.n or not len(found):
            raise ValueError(f"y must be {shape}; got {found.shape} of {found.dtype}")
        wrong = (found < -1) | (found >= self.m)
        if wrong.any():
            b, i = np.argwhere(wrong)[0].tolist()
            where = which_example(b, len(found))
            raise ValueError(
                f"y must {self._meaning}: row {i} has column {found[b, i]}, not one from 0 to {self.m - 1}{where}"
            )
        counts = np.zeros((len(found), self.m + 1), np.int64)
        np.add.at(counts, (np.arange(len(found))[:, None], found), 1)  # -1 is the last
        self._check_partners(found.astype(np.int64), counts)
        return found.astype(np.int64)

    @property
    def _meaning(self) -> str:
        return f"be a permutation of 0..{self.n - 1}" if self.perfect else "give each column to one row at most"

    def _check_partners(self, found: IntArray, counts: IntArray) -> None:
        """No column has two rows, and whoever must has one."""
        twice = np.argwhere(counts[:, : self.m] > 1)
        if len(twice):
            b, j = twice[0].tolist()
            rows = np.flatnonzero(found[b] == j)[:2].tolist()
            raise ValueError(
                f"y must {self._meaning}: rows {rows[0]} and {rows[1]} have column {j}{which_example(b, len(found))}"
            )
        if self.allow_unmatched:
            return
        b = int(np.argmax(counts[:, self.m] > max(self.n - self.m, 0)))
        if counts[b, self.m] > max(self.n - self.m, 0):
            where = which_example(b, len(found))
            if self.n > self.m:
                j = int(np.argmin(counts[b, : self.m]))
                raise ValueError(f"y leaves column {j} without a row{where}, but all columns are matched here")
            i = int(np.argmin(found[b]))
            raise ValueError(f"y leaves row {i} without a column (-1){where}, but all rows are matched here")

    def indicators(self, y: ArrayLike) -> FloatArray:
        columns = self.columns(y)
        out = np.zeros((len(columns), self.n, self.m + 1))
        np.put_along_axis(out, columns[:, :, None], 1.0, axis=2)  # -1 is the last
        return np.ascontiguousarray(out[:, :, : self.m]).reshape(len(columns), -1)

    def exact_sums(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        return self.check_possible(self.sums.log_z(flat, marginals))

    def covariances(self, flat: FloatArray, directions: FloatArray) -> FloatArray:
        return self.sums.covariances(flat, directions)

    def ask(self, engine: str, weights: FloatArray, **options: Any) -> Result:
        if not self.is_padded:
            return super().ask(engine, weights, **options)
        result = self.padded.ask(engine, self.pad(self.rows(weights)), **options)
        shift = math.lgamma(abs(self.n - self.m) + 1.0)
        moved: dict[str, Any] = {
            name: None if value is None else value - shift
            for name, value in (("lower", result.lower), ("upper", result.upper), ("free_energy", result.free_energy))
        }
        return replace(result, log_z=result.log_z - shift, marginals=self.crop(result.marginals), **moved)

    def best(self, weights: FloatArray) -> IntArray:
        """The columns of rows in the best matchings, -1 for none, for a checked matrix of examples times edges."""
        W = self.as_given(self.rows(weights))
        if self.n > self.m:
            W = np.ascontiguousarray(W.transpose(0, 2, 1))
        if self.allow_unmatched:  # as many columns more, for those that stay alone
            W = np.concatenate([W, np.zeros((*W.shape[:2], W.shape[1]))], axis=2)
        found: IntArray = find_engine("assignment")(W, self.workers)
        if self.allow_unmatched:
            found[found >= max(self.n, self.m)] = -1
        return inverted(found, self.n) if self.n > self.m else found

    def as_given(self, values: FloatArray) -> FloatArray:
        """A matrix of examples times edges as an array of matrices."""
        return values.reshape(-1, self.n, self.m)

    def draws(self, flat: FloatArray, size: int, random: np.random.Generator) -> IntArray:
        """Independent matchings of one example, shape (size, n)."""
        found = self.sums.draws(flat, size, random)
        if found is None:
            self.check_possible(np.array([-np.inf]))
        return np.asarray(found)

    def enumerate(self) -> IntArray:
        """Every matching of few vertices, shape (matchings, n). A TooLargeError if there are more than a million."""
        n, m = self.n, self.m
        check_few(self._count(), n, "permutations" if self.perfect else "matchings")
        if not self.allow_unmatched and n <= m:
            return np.array(list(itertools.permutations(range(m), n)), np.int64)
        if not self.allow_unmatched:
            return inverted(np.array(list(itertools.permutations(range(n), m)), np.int64), n)
        rows: list[tuple[int, ...]] = [()]
        for _ in range(n):
            rows = [(*row, j) for row in rows for j in range(-1, m) if j < 0 or j not in row]
        return np.array(rows, np.int64)

    def _count(self) -> float:
        """How many matchings there are."""
        L, s = self.sums.larger, self.sums.smaller
        logs = [
            math.lgamma(L + 1.0) - math.lgamma(L - k + 1.0) + math.lgamma(s + 1.0) - math.lgamma(s - k + 1.0)
            - math.lgamma(k + 1.0)
            for k in (range(s + 1) if self.allow_unmatched else [s])
        ]  # fmt: skip
        return float(np.exp(np.minimum(logs, 700.0)).sum())

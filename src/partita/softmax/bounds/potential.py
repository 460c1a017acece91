"""Curvatures of ``sum_i w_i log Z_i`` as functions of the potentials: block-diagonal, one small matrix per example.

Kinds (`KINDS`), all but the first majorize log Z everywhere:

- ``"hessian"``: the second derivative at the point; for comparison and for Newton steps.
- ``"bohning"``: Böhning and Lindsay's fixed matrix (I - 11'/n) / 2.
- ``"descending"``, ``"given"``, ``"ascending"``: Algorithm 1 with the labels visited in that order of score.
- ``"symmetric"``: order-free and the tightest in practice. Its constant 10/9 is conjectured (never violated in search).
- ``"symmetric_proved"``: order-free, with a proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.contracts.capabilities import BOUNDS
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import check_choice
from ...numerics import curvature
from ..kernels import categorical
from ..structure import Binary, Categorical

_RANK_ONE = {
    "hessian": curvature.HESSIAN,
    "bohning": curvature.BOHNING,
    "symmetric": curvature.SYMMETRIC,
    "symmetric_proved": curvature.SYMMETRIC_PROVED,
}
SEQUENTIAL = {
    "descending": curvature.DESCENDING,
    "given": curvature.GIVEN,
    "ascending": curvature.ASCENDING,
}
KINDS = ("hessian", *BOUNDS)
#: The conjectured factor of the symmetric bound; two labels need none.
SYMMETRIC_FACTOR = 10.0 / 9.0


class PotentialCurvature:
    """The matrices S_i of a batch. `offsets` delimits the labels of each example in the flat arrays."""

    def __init__(self, offsets: NDArray[np.int64], workers: Workers) -> None:
        self.offsets = offsets
        self.n_examples: int = len(offsets) - 1
        self.workers = workers

    def _ranges(self, operations: float) -> list[tuple[int, int]]:
        return self.workers.ranges(self.n_examples, operations)

    def product(self, v: FloatArray) -> FloatArray:
        """S v, in the shape of v."""
        raise NotImplementedError

    def pairs(self) -> FloatArray:
        """Row ``j (j + 1) / 2 + k`` holds S_i[j, k] of every example, k <= j; all examples must have as many labels."""
        raise NotImplementedError

    def take(self, rows: Any, factor: float) -> PotentialCurvature:
        """The matrices of some examples, times a factor."""
        raise NotImplementedError

    def sequence(self) -> curvature.Visits:
        """The sequential form of Algorithm 1."""
        raise NotImplementedError

    def roots(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """Rows a and their examples i, with ``S_i = sum a a'`` over the rows of i."""
        width = int(np.diff(self.offsets).max())
        roots = np.zeros((int(self.offsets[-1]), width))
        examples = np.empty(len(roots), np.int64)
        count = curvature.sequential_roots(self.sequence(), self.offsets, 0, self.n_examples, roots, examples)
        return roots[:count], examples[:count]

    def peak(self) -> FloatArray:
        """A number above the largest eigenvalue of each S_i: twice its largest diagonal entry, as rows sum to zero."""
        return np.asarray(2.0 * np.maximum.reduceat(self.diagonal(), self.offsets[:-1]))

    def diagonal(self) -> FloatArray:
        """S_i[k, k], flat."""
        n = int(self.offsets[1])
        if np.any(np.diff(self.offsets) != n):
            return self._ragged_diagonal()
        rows = [j * (j + 1) // 2 + j for j in range(n)]
        return np.ascontiguousarray(self.pairs()[rows].T).ravel()

    def _ragged_diagonal(self) -> FloatArray:
        """By products with unit vectors, one for each position in the largest label set."""
        out = np.empty(int(self.offsets[-1]))
        counts = np.diff(self.offsets)
        for k in range(int(counts.max())):
            where = self.offsets[:-1][counts > k] + k
            unit = np.zeros_like(out)
            unit[where] = 1.0
            out[where] = self.product(unit)[where]
        return out


class ScalarCurvature(PotentialCurvature):
    """Binary problems: one number per example."""

    def __init__(self, D: FloatArray, workers: Workers) -> None:
        super().__init__(np.arange(len(D) + 1, dtype=np.int64), workers)
        self.D = D.reshape(-1, 1)
        self.top: IntArray = np.zeros(0, np.int64)

    def product(self, v: FloatArray) -> FloatArray:
        return v * self.D.reshape(v.shape)

    def take(self, rows: Any, factor: float) -> ScalarCurvature:
        return ScalarCurvature(factor * self.D[rows], self.workers)

    def pairs(self) -> FloatArray:
        return self.D.reshape(1, -1)

    def peak(self) -> FloatArray:
        return self.D.ravel()

    def roots(self) -> tuple[FloatArray, NDArray[np.int64]]:
        return np.sqrt(self.D), np.arange(self.n_examples)


class RankOneCurvature(PotentialCurvature):
    """diag(D) - D D' / sum(D) per example; D is (examples, labels), or flat for label sets that differ."""

    def __init__(self, D: FloatArray, top: NDArray[np.int64], offsets: NDArray[np.int64], workers: Workers) -> None:
        super().__init__(offsets, workers)
        self.top = top
        self.D = D

    def product(self, v: FloatArray) -> FloatArray:
        ranges = self._ranges(6.0 * v.size)
        if self.D.ndim == 1:
            out = np.array(v, dtype=np.float64)
            tasks = [(self.D, self.top, self.offsets, lo, hi, out) for lo, hi in ranges]
            self.workers.run(curvature.ragged_rank_one_product, tasks)
            return out
        out = np.array(v, dtype=np.float64).reshape(self.D.shape)
        self.workers.run(curvature.rank_one_product, [(self.D, self.top, lo, hi, out) for lo, hi in ranges])
        return out.reshape(v.shape)

    def take(self, rows: Any, factor: float) -> RankOneCurvature:
        D = factor * self.D[rows]
        return RankOneCurvature(D, self.top[rows], np.arange(len(D) + 1, dtype=np.int64) * D.shape[1], self.workers)

    def peak(self) -> FloatArray:
        return np.minimum(super().peak(), np.maximum.reduceat(self.D.ravel(), self.offsets[:-1]))

    def sequence(self) -> curvature.Visits:
        visits = _empty_visits(self.D.size)
        curvature.rank_one_sequence(self.D.ravel(), self.top, self.offsets, 0, self.n_examples, visits)
        return visits

    def diagonal(self) -> FloatArray:
        if self.D.ndim == 1:
            return super().diagonal()
        out = np.empty_like(self.D)
        ranges = self._ranges(3.0 * out.size)
        self.workers.run(curvature.rank_one_diagonal, [(self.D, self.top, lo, hi, out) for lo, hi in ranges])
        return out.ravel()

    def pairs(self) -> FloatArray:
        n = self.D.shape[1]
        check_memory(f"curvatures of {n} labels in {self.n_examples} examples", 4.0 * n * (n + 1) * self.n_examples)
        out = np.empty((n * (n + 1) // 2, self.n_examples))
        tasks = [(self.D, self.top, lo, hi, out) for lo, hi in self._ranges(2.0 * out.size)]
        self.workers.run(curvature.rank_one_pairs, tasks)
        return out


class SequentialCurvature(PotentialCurvature):
    """Algorithm 1 in potential space: products cost O(labels)."""

    def __init__(self, visits: curvature.Visits, offsets: NDArray[np.int64], workers: Workers) -> None:
        super().__init__(offsets, workers)
        self.visits = visits

    def sequence(self) -> curvature.Visits:
        return self.visits

    def product(self, v: FloatArray) -> FloatArray:
        out = np.array(v, dtype=np.float64).ravel()
        tasks = [(self.visits, self.offsets, lo, hi, out) for lo, hi in self._ranges(6.0 * out.size)]
        self.workers.run(curvature.sequential_product, tasks)
        return out.reshape(v.shape)

    def pairs(self) -> FloatArray:
        n = int(self.offsets[1])
        check_memory(f"curvatures of {n} labels in {self.n_examples} examples", 4.0 * n * (n + 1) * self.n_examples)
        out = np.empty((n * (n + 1) // 2, self.n_examples))
        tasks = [(self.visits, n, lo, hi, out) for lo, hi in self._ranges(3.0 * out.size)]
        self.workers.run(curvature.sequential_pairs, tasks)
        return out


class DifferenceCurvature(PotentialCurvature):
    """The curvature of one log-sum-exp less that of another over the same states."""

    first: PotentialCurvature
    second: PotentialCurvature

    def __init__(self, first: PotentialCurvature, second: PotentialCurvature) -> None:
        super().__init__(first.offsets, first.workers)
        self.first, self.second = first, second

    def product(self, v: FloatArray) -> FloatArray:
        return self.first.product(v) - self.second.product(v)

    def pairs(self) -> FloatArray:
        return self.first.pairs() - self.second.pairs()


class SumCurvature(PotentialCurvature):
    """The sum of two curvatures of the same examples."""

    first: PotentialCurvature
    second: PotentialCurvature

    def __init__(self, first: PotentialCurvature, second: PotentialCurvature) -> None:
        super().__init__(first.offsets, first.workers)
        self.first, self.second = first, second

    def product(self, v: FloatArray) -> FloatArray:
        return self.first.product(v) + self.second.product(v)

    def pairs(self) -> FloatArray:
        return self.first.pairs() + self.second.pairs()

    def diagonal(self) -> FloatArray:
        return self.first.diagonal() + self.second.diagonal()

    def peak(self) -> FloatArray:
        return self.first.peak() + self.second.peak()


class OuterCurvature(PotentialCurvature):
    """One outer product d d' for each example; the vectors d are flat, as the potentials are."""

    def __init__(self, d: FloatArray, offsets: NDArray[np.int64], workers: Workers) -> None:
        super().__init__(offsets, workers)
        self.d = d

    def product(self, v: FloatArray) -> FloatArray:
        sums = np.add.reduceat(self.d * v.ravel(), self.offsets[:-1])
        return np.asarray(self.d * np.repeat(sums, np.diff(self.offsets))).reshape(v.shape)

    def pairs(self) -> FloatArray:
        d = self.d.reshape(self.n_examples, -1).T
        return np.vstack([d[j] * d[: j + 1] for j in range(len(d))])

    def diagonal(self) -> FloatArray:
        return self.d**2

    def peak(self) -> FloatArray:
        return np.asarray(np.add.reduceat(self.d**2, self.offsets[:-1]))


def _empty_visits(size: int) -> curvature.Visits:
    return curvature.Visits(np.empty(size, np.int64), np.empty(size), np.empty(size))


def potential_curvature(
    structure: Categorical, u: FloatArray, weights: FloatArray, kind: str, workers: Workers | None = None
) -> PotentialCurvature:
    """The curvature of `kind` at scores `u` (base measure included), times the example weights.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.bounds import potential_curvature
    >>> from partita.structures import Categorical
    >>> S = potential_curvature(Categorical(3), np.zeros((1, 3)), np.ones(1), "bohning")
    >>> S.product(np.array([[1.0, 0.0, -1.0]]))
    array([[ 0.5,  0. , -0.5]])
    """
    check_choice("kind", kind, KINDS)
    workers = workers or Workers(1)
    n_examples = len(weights)
    flat = np.ascontiguousarray(u, dtype=np.float64).ravel()
    if isinstance(structure, Binary):
        D = np.empty_like(flat)
        code = {"hessian": 0, "bohning": 1}.get(kind, 2)
        tasks = [(code, flat, weights, lo, hi, D) for lo, hi in workers.ranges(n_examples, 20.0 * n_examples)]
        workers.run(categorical.binary_curvature, tasks)
        return ScalarCurvature(D, workers)
    offsets = structure.offsets(n_examples)
    ranges = workers.ranges(n_examples, 30.0 * flat.size)
    if kind in _RANK_ONE:
        most = structure.n_labels or int(np.diff(offsets).max())
        factor = 1.0 if most == 2 else SYMMETRIC_FACTOR
        D, top = np.empty_like(flat), np.empty(n_examples, np.int64)
        arguments = (_RANK_ONE[kind], factor, flat, offsets, weights)
        workers.run(curvature.rank_one_weights, [(*arguments, lo, hi, D, top) for lo, hi in ranges])
        return RankOneCurvature(D.reshape(u.shape), top, offsets, workers)
    visits = _empty_visits(flat.size)
    head = (SEQUENTIAL[kind], flat, offsets, weights)
    workers.run(curvature.sequential_weights, [(*head, lo, hi, visits) for lo, hi in ranges])
    return SequentialCurvature(visits, offsets, workers)

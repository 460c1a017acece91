"""Assignments of largest weight, by SciPy or lapx."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import check_choice, check_count
from ...inference.oracle import Answer, checked, scored
from ..kernels import assignment as kernels

SOLVERS = ("scipy", "lapx")


class AssignmentOracle:
    """The best permutation of n rows, for weights of n x n edges as one vector, row by row.

    Parameters
    ----------
    n : int
        Vertices on each side.
    solver : {"scipy", "lapx"}
        lapx, an extra (``partita[lapx]``), is two to six times as fast on random weights, and slower where weights are
        products of numbers of rows and columns. Both are exact in double precision; of equals they may choose another.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import AssignmentOracle
    >>> AssignmentOracle(2)(np.array([1.0, 2.0, 0.0, 5.0])).point
    array([1., 0., 0., 1.])
    """

    n: int
    solver: str

    polytope, delta = "exact", 0.0

    def __init__(self, n: int, solver: str = "scipy") -> None:
        self.n, self.solver = check_count("n", n, minimum=1), check_choice("solver", solver, SOLVERS)
        _find(solver)

    def __call__(self, potentials: FloatArray) -> Answer:
        n = self.n
        w = checked(potentials, n * n, f"weights, those of {n} x {n} edges row by row")
        columns = assignments(w.reshape(1, n, n), Workers(1), self.solver)[0]
        if (np.sort(columns) != np.arange(n)).any():
            raise RuntimeError("the solver failed: its answer is not a permutation")
        point = np.zeros(n * n)
        point[np.arange(n) * n + columns] = 1.0
        return scored(point, w, self.polytope)


def assignments(weights: FloatArray, workers: Workers, solver: str = "scipy") -> IntArray:
    """The best column of every row in each of many square matrices; -inf forbids an entry.

    >>> import numpy as np
    >>> from partita.core.parallel import Workers
    >>> assignments(np.array([[[1.0, 2.0], [0.0, 5.0]]]), Workers(1))
    array([[0, 1]])
    """
    best, out = _find(solver), np.empty(weights.shape[:2], np.int64)

    def run(lo: int, hi: int) -> None:
        for b in range(lo, hi):
            try:
                out[b] = best(weights[b])
            except ValueError as error:
                raise ValueError(f"there is no perfect matching in example {b}: {error}") from None

    workers.run(run, Workers.ranges(len(weights), 100.0 * weights.size))
    return out


def _find(solver: str) -> Callable[[FloatArray], IntArray]:
    """The best columns of one matrix, or a ValueError if there are none, by a solver of that name."""
    if solver == "scipy":
        return lambda W: np.asarray(linear_sum_assignment(W, maximize=True)[1])
    try:
        from lap import lapjvh
    except ImportError:
        raise ImportError("solver 'lapx' needs lapx 0.11 or newer, and not lap: pip install 'partita[lapx]'") from None
    return lambda W: np.asarray(lapjvh(-W, return_cost=False, precision="float64")[1])


def assignment_duals(weights: FloatArray, columns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Numbers of rows and of columns whose sums are at least the weights, and equal to those of the best assignment."""
    u, v = np.empty(len(weights)), np.empty(len(weights))
    chosen = weights[np.arange(len(weights)), columns]
    slack = 1e-12 * (1.0 + float(np.abs(chosen).max(initial=0.0)))
    kernels.duals(np.ascontiguousarray(weights), columns, slack, u, v)
    return u, v

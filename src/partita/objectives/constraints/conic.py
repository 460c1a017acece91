"""Sets that need cones, and quadratic programs over them: Clarabel, and cvxpy to write the cones down. Both are optional."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.results import FloatArray
from .feasible_set import Cone, FeasibleSet, NormBall

#: Accuracy asked of Clarabel.
TOLERANCE = 1e-10
#: Distance to a bound, relative, below which an interior-point solution is put on it if the multiplier is larger.
NEAR = 1e-6


def _import(name: str, extra: str, what: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{what} need {name}, which is not installed: pip install 'partita[{extra}]'") from error


def norm_ball(where: NDArray[np.int64], center: FloatArray, radius: float, norm: int, size: int) -> Cone:
    """The cone of a `NormBall`."""
    _import("clarabel", "constraints", "balls in the 1- and 2-norm")
    k = len(where)
    select = sp.csr_matrix((np.ones(k), (np.arange(k), where)), shape=(k, size))

    ball = NormBall(where, center, radius, norm)
    if norm == 2:
        matrix = sp.vstack([sp.csr_matrix((1, size)), -select], format="csr")
        offset = np.concatenate([[radius], -center])
        kinds: tuple[tuple[str, int], ...] = (("SecondOrder", k + 1),)
        return Cone(matrix, sp.csr_matrix((k + 1, 0)), offset, kinds, ball.excess, ball)
    # |x - center| <= t, sum t <= radius
    matrix = sp.vstack([select, -select, sp.csr_matrix((1, size))], format="csr")
    auxiliary = sp.vstack([-sp.eye(k), -sp.eye(k), sp.csr_matrix(np.ones((1, k)))], format="csr")
    offset = np.concatenate([center, -center, [radius]])
    return Cone(matrix, auxiliary, offset, (("Nonnegative", 2 * k + 1),), ball.excess, ball)


def canonical_cone(function: Callable[[Any], Any], positions: NDArray[np.int64], size: int) -> Cone:
    """The cones of a set written with cvxpy. cvxpy is used once, here; programs over them go straight to Clarabel."""
    cp = _import("cvxpy", "cvxpy", "sets written with cvxpy")
    _import("clarabel", "cvxpy", "sets written with cvxpy")
    coefficients = cp.Variable(positions.shape)
    constraints = function(coefficients)
    if not isinstance(constraints, list | tuple) or not all(isinstance(c, cp.Constraint) for c in constraints):
        raise ValueError(f"the function of CvxpySet must return a list of cvxpy constraints, got {constraints!r}")
    problem = cp.Problem(cp.Minimize(0.0), [*constraints, coefficients == coefficients])
    if not problem.is_dcp():
        raise ValueError("the function of CvxpySet must return convex constraints (cvxpy's DCP rules)")
    data, _, _ = problem.get_problem_data(cp.CLARABEL)
    A, offset = sp.csc_matrix(data["A"]), np.asarray(data["b"], dtype=np.float64)
    start = data["param_prob"].var_id_to_col[coefficients.id]
    order = np.arange(start, start + coefficients.size)  # cvxpy stacks columns
    spread = sp.csr_matrix(
        (np.ones(positions.size), (np.arange(positions.size), positions.ravel(order="F"))), shape=(positions.size, size)
    )
    rest = np.setdiff1d(np.arange(A.shape[1]), order)

    def excess(x: FloatArray) -> float:
        coefficients.value = x[positions]
        return float(max((np.max(c.violation()) for c in constraints), default=0.0))

    return Cone(sp.csr_matrix(A[:, order] @ spread), sp.csr_matrix(A[:, rest]), offset, _kinds(data["dims"]), excess)


def _kinds(dims: Any) -> tuple[tuple[str, int], ...]:
    if dims.p3d or getattr(dims, "pnd", None):
        raise ValueError("the function of CvxpySet may not use power cones")
    kinds = [("Zero", dims.zero), ("Nonnegative", dims.nonneg)]
    kinds += [("SecondOrder", k) for k in dims.soc] + [("PSDTriangle", k) for k in dims.psd]
    kinds += [("Exponential", 3)] * dims.exp
    return tuple((name, int(k)) for name, k in kinds if k)


@dataclass(frozen=True)
class ConicResult:
    """The solution, the multipliers of rows and cones (see `Cone` for signs), and whether Clarabel was content."""

    x: FloatArray
    row_multipliers: FloatArray
    cone_multipliers: tuple[FloatArray, ...]
    status: str

    @property
    def solved(self) -> bool:
        return self.status in ("Solved", "AlmostSolved")

    @property
    def infeasible(self) -> bool:
        return self.status in ("PrimalInfeasible", "AlmostPrimalInfeasible")


def solve_conic(C: Any, g: FloatArray, feasible: FeasibleSet, center: FloatArray) -> ConicResult:
    """``min 1/2 s'Cs + g's`` over steps s with ``center + s`` in the set; returns ``x = center + s``. C is None for zero."""
    clarabel = _import("clarabel", "constraints", "balls in the 1- and 2-norm")
    d = feasible.size
    blocks, offsets, cones = _blocks(clarabel, feasible, center)
    total = sum(cone.auxiliary.shape[1] for cone in feasible.cones)
    P = sp.csc_matrix((d + total, d + total))
    unit = 1.0  # Clarabel's tolerances suit objectives of about unit curvature
    if C is not None:
        unit = float(np.diag(C).mean()) or 1.0
        P = sp.block_diag([sp.csc_matrix(np.triu(C / unit)), sp.csc_matrix((total, total))], format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    linear = np.concatenate([g / unit, np.zeros(total)])
    solution = clarabel.DefaultSolver(
        sp.csc_matrix(P), linear, sp.csc_matrix(sp.vstack(blocks)), np.concatenate(offsets), cones, settings
    ).solve()
    step, z = np.array(solution.x)[:d], unit * np.array(solution.z)
    x, z = _on_bounds(center + step, z, feasible)
    m = 0 if feasible.rows is None else feasible.rows.shape[0]
    low, high = np.isfinite(feasible.row_bounds()[0]), np.isfinite(feasible.row_bounds()[1])
    row = np.zeros(m)
    row[low] += z[: low.sum()]
    row[high] -= z[low.sum() : low.sum() + high.sum()]
    position, multipliers = low.sum() + high.sum(), []
    for cone in feasible.cones:
        multipliers.append(z[position : position + len(cone.offset)])
        position += len(cone.offset)
    return ConicResult(x, row, tuple(multipliers), str(solution.status))


def _blocks(clarabel: Any, feasible: FeasibleSet, center: FloatArray) -> tuple[list[Any], list[Any], list[Any]]:
    """Rows, right-hand sides and cones of the program in the step: bounds, rows, then each cone with its own unknowns."""
    d = feasible.size
    widths = [cone.auxiliary.shape[1] for cone in feasible.cones]
    total = sum(widths)

    def padded(matrix: Any) -> Any:
        return sp.hstack([matrix, sp.csr_matrix((matrix.shape[0], total))], format="csr")

    identity = sp.identity(d, format="csr")
    low, high = np.isfinite(feasible.lower), np.isfinite(feasible.upper)
    blocks = [padded(-identity[low]), padded(identity[high])]
    offsets = [(center - feasible.lower)[low], (feasible.upper - center)[high]]
    if feasible.rows is not None:
        values = feasible.row_values(center)
        low, high = np.isfinite(feasible.row_lower), np.isfinite(feasible.row_upper)
        blocks += [padded(-feasible.rows[low]), padded(feasible.rows[high])]
        offsets += [(values - feasible.row_lower)[low], (feasible.row_upper - values)[high]]
    count = sum(block.shape[0] for block in blocks)
    cones = [clarabel.NonnegativeConeT(count)] if count else []
    start = 0
    for cone, width in zip(feasible.cones, widths, strict=True):
        rows = len(cone.offset)
        left, right = sp.csr_matrix((rows, start)), sp.csr_matrix((rows, total - start - width))
        blocks.append(sp.hstack([cone.matrix, left, cone.auxiliary, right], format="csr"))
        offsets.append(cone.offset - cone.matrix @ center)
        cones += [getattr(clarabel, name + "ConeT")(*(() if name == "Exponential" else (k,))) for name, k in cone.kinds]
        start += width
    return blocks, offsets, cones


def _on_bounds(x: FloatArray, z: FloatArray, feasible: FeasibleSet) -> tuple[FloatArray, FloatArray]:
    """Put x on the bounds that are active, and cut their multipliers off z."""
    low, high = np.isfinite(feasible.lower), np.isfinite(feasible.upper)
    lower, upper = np.zeros(len(x)), np.zeros(len(x))
    lower[low], upper[high] = z[: low.sum()], z[low.sum() : low.sum() + high.sum()]
    room = NEAR * (1.0 + np.abs(x))
    x = np.where((lower > x - feasible.lower) & (x - feasible.lower < room), feasible.lower, x)
    x = np.where((upper > feasible.upper - x) & (feasible.upper - x < room), feasible.upper, x)
    return x, z[low.sum() + high.sum() :]

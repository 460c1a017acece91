"""The convex relaxation of joint EM, over equivalence relations of hidden variables instead of their values.

Joint EM minimises, over hidden labels and weights, the sum over variables of the penalised log-linear regression on
their parents (form (3) of `relational`, penalty alpha/2 |W|^2, no intercepts). Labels enter only through M, which
is 1 where two rows agree and else 0. The relaxation lets M be any matrix with ones on its diagonal, non-negative entries and
eigenvalues. It is convex, knows nothing of the number of hidden values, and at a labelling whose values all occur it
is what joint EM minimises.

    child      min_F sum_i log sum_a exp F_ia - F_iy_i + alpha/2 tr(F' K^+ F)
    Gaussian   min_F sum_i (x_i - F_i)^2 / 2 sigma^2 + alpha/2 F' K^+ F
    hidden     min_U sum_b n_b log sum_j exp(U_bj - log (M1)_j) - sum_i U_b(i)i + alpha/2 sum_b U_b M^+ U_b'

K is M where rows agree in the observed parents, else 0; b(i) is the configuration of a hidden variable's own observed
parents in row i, and n_b how often it occurs.

M = VV' with rows of length one, F = VW, and L-BFGS moves V and W together, with Newton steps (`stationary`) where values
stand still. A lower bound comes from the dual (`lower_bound`): it holds whatever V and W are. Where it stays below, V
gets more columns.

Rows of data that are equal are one row with a weight. That loses nothing: averaged over equal rows a solution is as
good, and raising the entries among them to one keeps it feasible and can only lower the objective.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.contracts.progress import Callback
from ...core.interrupts import pass_on_in_search
from ...core.parallel import Workers, blas_limit
from ...core.random import generator
from ...core.results import FloatArray, Status, Trace
from ...core.validation import check_count, check_flag, check_real
from .hidden_terms import ChildTerm, Group, HiddenTerm, groups
from .relation_problem import Constraint, Problem, Relation
from .relation_search import GroupSolution, Search

__all__ = ["ChildTerm", "HiddenTerm", "Relaxation", "critical_alpha", "relax"]

#: Distinct rows up to which signs are enforced, with matrices of multipliers.
SIGN_LIMIT = 2000
#: Eigenvalues that come with a relaxation.
N_EIGENVALUES = 8


@dataclass(frozen=True)
class Relaxation:
    """A solution of the relaxation.

    Attributes
    ----------
    objective : float
        Value at the relations found. Above the optimum of the relaxation, unless `violation` is positive.
    lower : float
        Certified lower bound on the optimum of the relaxation, and so on joint EM with this `alpha` for all labels
        and weights. With more than `SIGN_LIMIT` distinct rows or ``nonnegative=False`` it is that of the relaxation
        without signs, which is lower and still a bound.
    gap : float
        ``(objective - lower) / |objective|``.
    alpha : float
    eigenvalues : tuple of arrays
        For every hidden variable the largest ones in the definition of the critical alpha, falling.
    trivial : bool
        All relations are a matrix of ones: `alpha` is so large that nothing is gained by telling rows apart.
    vectors : tuple of arrays of shape (n_rows, rank)
        V of every hidden variable, with rows of length one: ``M = V @ V.T``.
    violation : float
        The largest amount by which an entry breaks a constraint that was not (or not yet) enforced.
    n_distinct : int
        Distinct rows (the most, of hidden variables that hang together).
    status, n_iter, seconds, trace
        As of solvers.
    """

    objective: float
    lower: float
    alpha: float
    eigenvalues: tuple[FloatArray, ...]
    trivial: bool
    violation: float
    n_distinct: int
    status: Status
    n_iter: int
    seconds: float
    trace: Trace = field(repr=False)
    vectors: tuple[FloatArray, ...] = field(repr=False)

    @property
    def gap(self) -> float:
        return (self.objective - self.lower) / max(abs(self.objective), 1e-300)

    @property
    def alpha_crit(self) -> float:
        """The alpha from which on all relations are trivial; see `critical_alpha`."""
        return max(float(e[0]) for e in self.eigenvalues)

    @property
    def rank(self) -> int:
        return max(len(V[0]) for V in self.vectors)

    def relation(self, hidden: int = 0) -> FloatArray:
        """M of a hidden variable, of shape (n_rows, n_rows)."""
        V = self.vectors[hidden]
        return np.asarray(V @ V.T)

    @property
    def M(self) -> FloatArray:
        """The relation of the first hidden variable."""
        return self.relation()


def relax(
    terms: Sequence[HiddenTerm | ChildTerm],
    n_rows: int,
    alpha: float,
    *,
    rank: int | None = None,
    tol: float = 1e-6,
    max_iter: int = 5000,
    nonnegative: bool = True,
    random_state: Any = 0,
    callbacks: Iterable[Callback] = (),
    n_jobs: int | None = None,
) -> Relaxation:
    """Solve the relaxation.

    Hidden variables that share no child are solved one after the other. For those that do, the relation of agreement
    in all parents of a child is a matrix of its own, below each of theirs and at least their sum less their number
    but one. Such constraints, and signs where they matter, take an augmented Lagrangian with dense matrices: seconds
    for a few hundred distinct rows, and some minutes for 2000.

    Parameters
    ----------
    terms : sequence of HiddenTerm and ChildTerm
    n_rows : int
    alpha : float
        Penalty of all weights. It is to be seen relative to `critical_alpha`, which grows with the number of rows.
    rank : int, optional
        Columns of V to begin with; more are added where the certificate asks for them.
    tol : float
        Stop when the relative gap is at most so large. Below 1e-11 rounding may prevent that.
    max_iter : int
        Most iterations of L-BFGS in all.
    nonnegative : bool
        Enforce that entries of M are not negative, up to `SIGN_LIMIT` distinct rows.
    random_state : int, Generator or None
        For the start.
    callbacks : iterable of callables
        Called with a `Progress` after each iteration; a true value stops.
    n_jobs : int, optional
        Threads; results do not depend on it.

    Returns
    -------
    Relaxation
        Also after a keyboard interrupt: what was found until then.
    """
    start = time.perf_counter()
    check_real("alpha", alpha, minimum=0.0, strict=True)
    check_real("tol", tol, minimum=0.0)
    check_count("max_iter", max_iter)
    if rank is not None:
        check_count("rank", rank, minimum=1)
    check_flag("nonnegative", nonnegative)
    rng, workers = generator(random_state), Workers(n_jobs)
    with blas_limit(1):
        found = groups(terms, n_rows)
        parts = [GroupSolution.trivial(group, _problem(group, float(alpha), nonnegative, workers)) for group in found]
        spectra = {h: _critical(_alone(group, h, workers), N_EIGENVALUES) for group in found for h in group.hidden}
        run = Search(parts, tol, max_iter, tuple(callbacks), start)
        try:
            for part in parts:
                if not part.is_trivial(float(alpha)):
                    run.solve(part, [spectra[h][1] for h in part.group.hidden], rank, rng)
        except KeyboardInterrupt:
            pass_on_in_search()
            run.status = Status.INTERRUPTED
        for part in parts:
            part.mend(nonnegative)
        status = run.status or (Status.CONVERGED if all(p.settled(tol) for p in parts) else Status.PRECISION)
    vectors = {h: V[part.group.rows] for part in parts for h, V in zip(part.group.hidden, part.vectors(), strict=False)}
    return Relaxation(
        objective=sum(part.objective for part in parts),
        lower=sum(part.lower for part in parts),
        alpha=float(alpha),
        eigenvalues=tuple(spectra[h][0] for h in sorted(spectra)),
        trivial=all(part.looks_trivial() for part in parts),
        violation=max(part.violation for part in parts),
        n_distinct=max(part.problem.n for part in parts),
        status=status,
        n_iter=run.n_iter,
        seconds=run.seconds(),
        trace=run.trace(),
        vectors=tuple(vectors[h] for h in sorted(vectors)),
    )


def critical_alpha(
    terms: Sequence[HiddenTerm | ChildTerm], n_rows: int, hidden: int = 0, n_eigenvalues: int = N_EIGENVALUES
) -> tuple[float, FloatArray]:
    """The alpha from which on M = 11' is the solution, and the largest eigenvalues in its definition, falling.

    The alpha is the first of them; it solves ``alpha = e_1(alpha)``, because residuals depend on alpha. For a hidden
    variable that shares a child, the other parents are taken as constant: below the value the solution is not
    trivial.
    """
    check_count("n_eigenvalues", n_eigenvalues, minimum=1)
    for group in groups(terms, n_rows):
        if hidden in group.hidden:
            with blas_limit(1):
                values, _ = _critical(_alone(group, hidden, Workers(1)), n_eigenvalues)
            return float(values[0]), values
    raise ValueError(f"hidden must be one of the hidden variables of the terms, got {hidden!r}")


def _critical(relation: Relation, count: int) -> tuple[FloatArray, FloatArray]:
    """The fixed point of alpha -> e_1(alpha), by secants: residuals hardly depend on alpha."""
    alpha = before = relation.total
    slope = excess = 0.0
    for _ in range(100):
        values, vectors = relation.spectrum(alpha, count)
        last, excess = excess, float(values[0]) - alpha
        if values[0] <= 0.0 or abs(excess) <= 1e-11 * alpha:
            break
        slope = min(0.5, (excess - last) / (alpha - before) + 1.0) if alpha != before else 0.0
        before, alpha = alpha, max(0.1 * alpha, alpha + excess / (1.0 - slope))
    return values, vectors


def _alone(group: Group, hidden: int, workers: Workers) -> Relation:
    """The relation of one hidden variable, others constant."""
    return Relation(group.own[hidden], [c for c in group.children if hidden in c.parents], group.w, 1.0, workers)


def _problem(group: Group, alpha: float, nonnegative: bool, workers: Workers) -> Problem:
    """Relations of hidden variables, then one for each set of parents that share a child."""
    sets = sorted({c.parents for c in group.children if len(c.parents) > 1})
    relations = []
    for key in [*((h,) for h in group.hidden), *sets]:
        own = group.own[key[0]] if len(key) == 1 else None
        children = [c for c in group.children if c.parents == key]
        relations.append(Relation(own, children, group.w, alpha, workers))
    constraints = []
    if nonnegative and len(group.w) <= SIGN_LIMIT:
        constraints += [Constraint({k: 1.0}) for k in range(len(relations))]
    for k, key in enumerate(sets, start=len(group.hidden)):
        places = [group.hidden.index(h) for h in key]
        constraints += [Constraint({k: -1.0, place: 1.0}) for place in places]
        constraints.append(Constraint({k: 1.0, **dict.fromkeys(places, -1.0)}, len(key) - 1.0))
    return Problem(relations, constraints)

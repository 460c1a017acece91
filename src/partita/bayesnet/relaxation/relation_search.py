"""The search for the best relations of hidden variables that hang together: L-BFGS in rounds, until the gap is small.

`joint_em` says what is minimised.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ...core.contracts.progress import Callback, Progress
from ...core.results import FloatArray, Row, Status, Trace
from .hidden_terms import Group
from .relation_problem import Problem
from .stationary import to_stationary

#: Distinct rows among which entries are looked at for their sign.
SIGN_SAMPLE = 20_000
#: Columns of V to begin with, at most.
FIRST_RANK = 24
#: Iterations of L-BFGS between multipliers, steps it remembers, and iterations before the first certificate.
INNER, MEMORY, FIRST_CHECK = 200, 15, 30
INNER_TOL = 1e-2
#: Gap at which the search for multipliers begins.
ROUGH = 1e-2
#: Rounds without progress before it is given up, without and with multipliers (whose rounds are short).
PATIENCE, PATIENCE_WITH_MULTIPLIERS = 5, 20
#: How large a gap (of an example) is, relative to the gradient, at what must be a saddle.
SADDLE = 100.0
#: Mean entry of a row, less than one by so much, at which a relation counts as trivial.
TRIVIAL = 1e-8


@dataclass
class GroupSolution:
    """The best that is known of a group: parameters x, the objective there and a lower bound.

    `ceiling` is the objective at M = 11'.
    """

    group: Group
    problem: Problem
    x: FloatArray
    rank: int
    objective: float
    lower: float
    ceiling: float
    violation: float = 0.0

    @classmethod
    def trivial(cls, group: Group, problem: Problem) -> GroupSolution:
        """With relations M = 11'."""
        x = np.concatenate(
            [np.concatenate([r.rows_of(V).ravel(), W.ravel()]) for r in problem.relations for V, W in [r.trivial()]]
        )
        objective = problem.evaluate(x, 1)[0] * problem.total
        part = cls(group, problem, x, 1, objective, -np.inf, objective)
        part.certify()
        return part

    def is_trivial(self, alpha: float) -> bool:
        """Whether M = 11' is known to be best."""
        relations = self.problem.relations
        return len(relations) == 1 and float(relations[0].spectrum(alpha, 1)[0][0]) <= alpha * (1.0 + 1e-12)

    @property
    def gap(self) -> float:
        return abs(self.objective - self.lower) / max(abs(self.objective), 1e-300)

    def settled(self, tol: float) -> bool:
        """Whether the gap will be small after `mend`, or where that cannot be done, gap and violation are."""
        if len(self.problem.relations) > 1:
            return self.gap <= tol and self.violation <= tol
        share = self.violation / (1.0 + self.violation) if self.problem.constraints else 0.0
        return self.gap + share * (self.ceiling - self.objective) / max(abs(self.objective), 1e-300) <= tol

    def certify(self) -> tuple[float, list[FloatArray]]:
        """Raise the lower bound if that of this place is better; returns the latter, and directions of descent."""
        lower, directions = self.problem.lower_bound(self.x, self.rank)
        self.lower = max(self.lower, lower)
        return lower, directions

    def widen(self, directions: Sequence[FloatArray], rng: np.random.Generator) -> None:
        """Add columns to V, along directions in which the objective falls: the larger the gap, the longer."""
        more, length = max(2, self.rank // 2), min(0.1, 0.3 * float(np.sqrt(self.gap)))
        columns = []
        for known in directions:
            extra = 0.1 * rng.standard_normal((self.problem.n, more))
            used = min(more, known.shape[1])
            extra[:, :used] += known[:, :used] / np.abs(known[:, :used]).max(axis=0)
            columns.append(length * extra)
        self.x, self.rank = self.problem.widened(self.x, self.rank, columns)

    def looks_trivial(self) -> bool:
        """Whether rows agree in every hidden variable; agreement in several of them follows."""
        own = self.vectors()[: len(self.group.hidden)]
        return all(float((V @ V.mean(axis=0)).min()) >= 1.0 - TRIVIAL for V in own)

    def vectors(self) -> list[FloatArray]:
        return self.problem.vectors(self.x, self.rank)

    def mend(self, nonnegative: bool) -> None:
        """Mix M with 11' until no entry is negative; the objective is convex and at most the mixture of the two."""
        problem = self.problem
        self.objective = problem.evaluate(self.x, self.rank)[0] * problem.total
        if len(problem.relations) > 1:
            self.violation = max(0.0, problem.violation(self.x, self.rank))
            return
        V = self.vectors()[0]
        if not problem.constraints:
            sample = V[:: -(-len(V) // SIGN_SAMPLE)]
            blocks = np.array_split(sample, -(-len(sample) // 1000))
            self.violation = max(0.0, -min(float((block @ sample.T).min()) for block in blocks)) if nonnegative else 0.0
            return
        negative, self.violation = max(0.0, problem.violation(self.x, self.rank)), 0.0
        if negative == 0.0:
            return
        share = min(1.0, negative / (1.0 + negative) * (1.0 + 1e-12) + 1e-15)
        relation = problem.relations[0]
        ones, weights = relation.trivial()
        mixed = np.hstack([np.sqrt(1.0 - share) * V, np.sqrt(share) * ones])
        W = np.hstack([np.sqrt(1.0 - share) * problem.split(self.x, self.rank)[0][1], np.sqrt(share) * weights])
        self.x, self.rank = np.concatenate([relation.rows_of(mixed).ravel(), W.ravel()]), self.rank + 1
        self.objective = problem.evaluate(self.x, self.rank)[0] * problem.total


class Search:
    """L-BFGS in rounds: more columns, or other multipliers, until the gap is small."""

    def __init__(
        self, parts: Sequence[GroupSolution], tol: float, max_iter: int, callbacks: tuple[Callback, ...], start: float
    ) -> None:
        self.parts, self.tol, self.max_iter, self.callbacks, self.start = parts, tol, max_iter, callbacks, start
        self.status: Status | None = None
        self.gradient = np.inf
        self.rows: list[tuple[float, float, float, float]] = []

    @property
    def n_iter(self) -> int:
        return len(self.rows)

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def trace(self) -> Trace:
        """All iterations; where there were any, the last row describes what the parts are now."""
        trace = Trace.of(self.rows)
        return trace.ending(self.row()) if len(trace) else trace

    def row(self) -> Row:
        objective, lower = sum(p.objective for p in self.parts), sum(p.lower for p in self.parts)
        return objective, self.gradient, objective - lower, self.seconds()

    def record(self, x: FloatArray) -> bool:
        """Note where all parts are; whether to stop."""
        self.rows.append(self.row())
        progress = Progress("joint_em", self.n_iter - 1, *self.rows[-1], parameters=x)
        answers = [callback(progress) for callback in self.callbacks]
        if any(answers):
            self.status = Status.CALLBACK
        elif self.n_iter >= self.max_iter:
            self.status = Status.MAX_ITER
        return self.status is not None

    def solve(self, part: GroupSolution, spectra: Sequence[FloatArray], rank: int | None, rng: np.random.Generator) -> None:
        """Minimise one part."""
        if self.status is not None:
            return
        problem = part.problem
        # Without multipliers V is in the kernel of a diagonal less columns of residuals: its rank is at most theirs.
        widest = int(problem.relations[0].units[-1]) + 2 if len(problem.relations) == 1 else problem.n
        _spread(part, min(problem.n, rank or min(FIRST_RANK, widest)), spectra, rng)
        if len(problem.relations) > 1:
            problem.raise_multipliers(part.x, part.rank, False)
        last_gap = last_violation = np.inf
        idle = 0
        while True:
            before = part.x
            self._descend(part)
            violated = part.violation > self.tol
            if problem.multipliers or violated:
                problem.raise_multipliers(part.x, part.rank, violated and part.violation > 0.25 * last_violation)
            lower, directions = part.certify()
            if self.status is not None or part.settled(self.tol):
                return
            idle = idle + 1 if part.gap > 0.9 * last_gap and part.violation >= 0.9 * last_violation else 0
            saddle = part.objective - lower > SADDLE * problem.total * self.gradient
            # The same problem from the same place would end there again.
            again = np.array_equal(before, part.x) and not problem.multipliers and not saddle
            if again or idle >= (PATIENCE_WITH_MULTIPLIERS if problem.multipliers else PATIENCE):
                return
            if saddle:
                part.widen(directions, rng)
            last_gap, last_violation = part.gap, part.violation

    def _descend(self, part: GroupSolution) -> None:
        """L-BFGS until the gap is small, or for a round if there are multipliers; Newton steps where values stand still."""
        problem, rank, first, check = part.problem, part.rank, self.n_iter, FIRST_CHECK
        last, stopped = 0.0, False

        def value(x: FloatArray) -> tuple[float, FloatArray]:
            nonlocal last
            last, total, gradient = problem.evaluate(x, rank)
            self.gradient = float(np.abs(gradient).max())
            return total, gradient

        def note(x: FloatArray) -> bool:
            """Keep a place that was just evaluated; whether to stop there."""
            nonlocal check, stopped
            part.x, part.objective = x.copy(), last * problem.total
            stopped = self.record(part.x)
            if not problem.multipliers and self.n_iter - first >= check:
                check += 10 + check // 4
                part.certify()
                part.violation = problem.violation(part.x, rank) if part.gap <= ROUGH else 0.0
                stopped = stopped or part.violation > self.tol or part.gap <= self.tol
            return stopped

        def after(intermediate_result: Any) -> None:
            if note(intermediate_result.x):
                raise StopIteration

        limit = INNER if problem.multipliers else self.max_iter
        # While constraints are far from met, multipliers are rough, and their problem need not be solved well.
        accuracy = max(1e-13, INNER_TOL * part.violation) if problem.multipliers else 1e-13
        options = {"maxiter": limit, "maxfun": 20 * limit, "ftol": 0.0, "gtol": accuracy, "maxcor": MEMORY}
        ended = minimize(value, part.x, jac=True, method="L-BFGS-B", callback=after, options=options)
        if not stopped and ended.nit < limit:
            check = 0
            to_stationary(value, part.x, accuracy, note)
        value(part.x)  # so that the gradient is that of this place, not of the last one tried
        part.violation = max(0.0, problem.violation(part.x, rank))


def _spread(part: GroupSolution, rank: int, spectra: Sequence[FloatArray], rng: np.random.Generator) -> None:
    """Start near M = 11', along the directions in which it ceases to be best, and a little along others."""
    problem, found = part.problem, []
    for k, relation in enumerate(problem.relations):
        ones, weights = relation.trivial()
        V = np.hstack([ones, 0.2 * rng.standard_normal((problem.n, rank - 1))])
        if k < len(spectra):
            vectors = spectra[k][:, : rank - 1]
            V[:, 1 : 1 + vectors.shape[1]] += 0.5 * vectors / np.abs(vectors).max(axis=0)
        found += [relation.rows_of(V).ravel(), np.hstack([weights, np.zeros((len(weights), rank - 1))]).ravel()]
    part.x, part.rank = np.concatenate(found), rank

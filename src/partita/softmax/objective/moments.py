"""Moment problems on a finite space: the dual of minimum relative entropy, and which moments are possible at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import logsumexp

from ...core.results import FloatArray
from ...objectives.constraints.constrained import Constrained
from ...objectives.constraints.feasibility import smallest_conflict
from ...objectives.constraints.feasible_set import FeasibleSet
from ..features.labels import LabelFeatures
from ..structure import Categorical
from .likelihood import Likelihood


@dataclass(frozen=True)
class MomentProblem:
    """``min KL(p || prior)`` subject to ``F' p = target`` in the first `n_equal` columns, ``F' p >= target`` in the others.

    States of prior weight zero are not among the rows.
    """

    F: FloatArray
    target: FloatArray
    n_equal: int
    prior: FloatArray
    names: tuple[str, ...] = ()  # of the columns, for messages

    def restricted(self, states: Any) -> MomentProblem:
        """The problem on some of the states."""
        return MomentProblem(self.F[states], self.target, self.n_equal, self.prior[states], self.names)

    def name(self, j: int) -> str:
        """What users call column j."""
        if self.names:
            return self.names[j]
        return f"equality {j}" if j < self.n_equal else f"inequality {j - self.n_equal}"

    @cached_property
    def scale(self) -> FloatArray:
        """Largest distance of each column from its target."""
        largest = np.abs(self.F - self.target).max(0)
        return np.where(largest > 0.0, largest, 1.0)

    @cached_property
    def scaled(self) -> FloatArray:
        """Columns that must have mean zero (or at least zero), with entries in [-1, 1]."""
        return np.ascontiguousarray((self.F - self.target) / self.scale)

    def objective(self) -> Likelihood | Constrained:
        """The dual ``log sum q exp(scaled . lambda) - log q_0``, convex; multipliers of inequalities are >= 0.

        A likelihood of one example whose label is the state 0 of the heaviest prior; the linear term takes out its score.
        """
        label = int(np.argmax(self.prior))
        count = len(self.prior)
        dual = Likelihood(
            LabelFeatures(self.scaled[None]), Categorical(count, self.prior), np.array([label]), linear=self.scaled[label]
        )
        if self.n_equal == len(self.target):
            return dual
        whole = FeasibleSet.everything(len(self.target))
        whole.lower[self.n_equal :] = 0.0
        return Constrained(dual, whole)

    def log_probabilities(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """log p at multipliers of the scaled columns, and the log of ``sum prior exp(scaled . multipliers)``."""
        scores = np.log(self.prior) + self.scaled @ multipliers
        log_z = float(logsumexp(scores))
        return scores - log_z, log_z

    def check_ranges(self) -> None:
        """Raise a ValueError that names a moment outside the range of its feature."""
        low, high = self.F.min(0), self.F.max(0)
        for j, target in enumerate(self.target):
            if j < self.n_equal and not low[j] <= target <= high[j]:
                raise ValueError(f"{self.name(j)}: target {target:g} lies outside [{low[j]:g}, {high[j]:g}]")
            if target > high[j]:
                raise ValueError(f"{self.name(j)}: bound {target:g} lies above the largest value, {high[j]:g}")

    @property
    def on_edge(self) -> bool:
        """Whether a target is the end of its feature's range, so that probabilities must vanish."""
        low, high = self.F.min(0), self.F.max(0)
        at_end = (self.target >= high) | ((self.target <= low) & (np.arange(len(low)) < self.n_equal))
        return bool(np.any(at_end & (low < high)))

    def _system(self, columns: Sequence[int]) -> dict[str, Any]:
        """Rows of a linear program in the weights of the states."""
        equal = [j for j in columns if j < self.n_equal]
        least = [j for j in columns if j >= self.n_equal]
        return {
            "A_eq": self.scaled[:, equal].T,
            "b_eq": np.zeros(len(equal)),
            "A_ub": -self.scaled[:, least].T,
            "b_ub": np.zeros(len(least)),
        }

    def possible(self, columns: Sequence[int]) -> bool:
        """Whether some distribution has these moments."""
        count = len(self.prior)
        system = self._system(columns)
        system["A_eq"] = np.vstack([system["A_eq"], np.ones(count)])
        system["b_eq"] = np.append(system["b_eq"], 1.0)
        return bool(linprog(np.zeros(count), **system, bounds=(0.0, None), method="highs").status != 2)

    def support(self) -> NDArray[np.bool_] | None:
        """The states that some feasible distribution gives a positive probability; None if there is no such distribution.

        One linear program: ``max sum s`` over weights ``w = s + r``, ``0 <= s <= 1``, ``r >= 0``, that satisfy the moments.
        Weights need no sum, so every state that can have weight can have s = 1.
        """
        count = len(self.prior)
        system = self._system(range(len(self.target)))
        for key in ("A_eq", "A_ub"):
            system[key] = np.hstack([system[key], system[key]])
        bounds = np.zeros((2 * count, 2))
        bounds[:count, 1], bounds[count:, 1] = 1.0, np.inf
        cost = np.concatenate([-np.ones(count), np.zeros(count)])
        found = linprog(cost, **system, bounds=bounds, method="highs")
        if found.x is None:
            return np.ones(count, bool)
        states = found.x[:count] > 0.5
        return states if states.any() else None

    def raise_conflict(self) -> NoReturn:
        """Raise a ValueError that names a smallest group of moments that no distribution has."""
        group = smallest_conflict(range(len(self.target)), lambda columns: not self.possible(columns))
        names = [self.name(j) for j in group]
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        raise ValueError(f"no distribution on these states satisfies {listed}{' together' if len(names) > 1 else ''}")

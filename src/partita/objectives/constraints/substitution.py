"""The variables in which programs over a set are solved: one for each tied group, two where an l1 penalty has its kink."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.contracts.capabilities import Product
from ...core.results import FloatArray
from .feasible_set import Cone, FeasibleSet


class Substitution:
    """``x = T z``: z has one entry for each tied group of x, and where ``l1 |x_j|`` may have either sign, its two parts.

    A penalty on absolute values is then linear in z, ``cost' z``, and constraints on x are
    constraints of the same kinds on z. Where bounds fix the sign of a weight, its penalty is linear as it is.

    Attributes
    ----------
    T : CSR matrix
    feasible : FeasibleSet
        Of z; without ties, and without balls (parts of a weight lie in no ball).
    first : int array
        The first entry of x of each group.
    cost : array
        What the penalty costs per unit of z.
    """

    def __init__(self, feasible: FeasibleSet, l1: FloatArray | None) -> None:
        d = feasible.size
        self.trivial = feasible.numbers is None and l1 is None
        numbers = np.arange(d) if feasible.numbers is None else feasible.numbers
        count = int(numbers.max(initial=-1)) + 1
        self.first = np.full(count, d)
        np.minimum.at(self.first, numbers, np.arange(d))
        lower, upper = feasible.lower[self.first], feasible.upper[self.first]
        strength = np.zeros(count) if l1 is None else np.bincount(numbers, l1, minlength=count)
        self._open = np.flatnonzero((strength > 0.0) & (lower < 0.0) & (upper > 0.0))
        groups = sp.csr_matrix((np.ones(d), (np.arange(d), numbers)), shape=(d, count))
        self.T: Any = sp.hstack([groups, -groups[:, self._open]], format="csr")
        self._mean: Any = sp.csr_matrix(self.T @ sp.diags(1.0 / np.asarray(abs(self.T).sum(0)).ravel()))
        cost = np.where(lower >= 0.0, strength, -strength)
        cost[self._open] = strength[self._open]
        self.cost: FloatArray = np.concatenate([cost, strength[self._open]])
        below = np.concatenate([lower, np.zeros(len(self._open))])
        below[self._open] = 0.0
        self.feasible = feasible if self.trivial else self._lifted(feasible, below, np.append(upper, -lower[self._open]))

    def _lifted(self, feasible: FeasibleSet, lower: FloatArray, upper: FloatArray) -> FeasibleSet:
        rows = None if feasible.rows is None else sp.csr_matrix(feasible.rows @ self.T)
        cones = tuple(
            replace(cone, matrix=cone.matrix @ self.T, violation=partial(self._violation, cone), ball=None)
            for cone in feasible.cones
        )
        return FeasibleSet(lower, upper, rows, feasible.row_lower, feasible.row_upper, cones)

    def _violation(self, cone: Cone, z: FloatArray) -> float:
        return cone.violation(self.join(z))

    @property
    def size(self) -> int:
        """The number of variables."""
        return int(self.T.shape[1])

    @property
    def partners(self) -> tuple[Any, Any] | None:
        """The two parts of weights that have two; None if none has."""
        count = len(self._open)
        return (self._open, self.size - count + np.arange(count)) if count else None

    def split(self, x: FloatArray) -> FloatArray:
        """z of a feasible x, of which no weight has two parts."""
        z = x[self.first]
        parts = z[self._open]
        z[self._open] = np.maximum(parts, 0.0)
        return np.concatenate([z, np.maximum(-parts, 0.0)])

    def join(self, z: FloatArray) -> FloatArray:
        """``x = T z``."""
        return z if self.trivial else np.asarray(self.T @ z)

    def pull(self, gradient: FloatArray) -> FloatArray:
        """The gradient in z of a function of x, with that of the penalty."""
        return gradient if self.trivial else np.asarray(self.T.T @ gradient) + self.cost

    def matrix(self, C: FloatArray) -> FloatArray:
        """``T' C T``."""
        return C if self.trivial else np.asarray(self.T.T @ np.asarray(C @ self.T))

    def product(self, matvec: Product) -> Product:
        """v -> T' C T v."""
        return matvec if self.trivial else lambda v: np.asarray(self.T.T @ matvec(np.asarray(self.T @ v)))

    def preconditioner(self, precondition: Product) -> Product:
        """An approximate inverse of the same."""
        if self.trivial:
            return precondition
        return lambda v: np.asarray(self._mean.T @ precondition(np.asarray(self._mean @ v)))

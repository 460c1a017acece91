"""Is a set of constraints empty, and if so, which of them conflict?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from .conic import solve_conic
from .feasible_set import FeasibleSet
from .substitution import Substitution

#: Variables up to which a program over rows or cones is formed (a matrix of their square).
SIZE_LIMIT = 8000

T = TypeVar("T")


def is_empty(feasible: FeasibleSet) -> bool:
    """Whether no vector satisfies the constraints: by bounds alone, by a linear program, or with cones by Clarabel."""
    if np.any(feasible.lower > feasible.upper):
        return True
    if feasible.ties:
        feasible = Substitution(feasible, None).feasible
    if feasible.is_box or feasible.contains(np.clip(0.0, feasible.lower, feasible.upper)):
        return False
    if feasible.cones:
        center = np.clip(0.0, feasible.lower, feasible.upper)
        return solve_conic(None, np.zeros(feasible.size), feasible, center).infeasible
    # Only the parameters that occur in a row matter.
    used = np.unique(feasible.rows.indices)
    if used.size == 0:
        return bool(np.any(feasible.row_lower > 0.0) or np.any(feasible.row_upper < 0.0))
    A = sp.csc_matrix(feasible.rows)[:, used]
    low, high = np.isfinite(feasible.row_lower), np.isfinite(feasible.row_upper)
    A_ub = sp.vstack([A[high], -A[low]])
    b_ub = np.concatenate([feasible.row_upper[high], -feasible.row_lower[low]])
    bounds = np.column_stack([feasible.lower[used], feasible.upper[used]])
    return bool(linprog(np.zeros(used.size), A_ub=A_ub, b_ub=b_ub, bounds=bounds, method="highs").status == 2)


def smallest_conflict(items: Sequence[T], conflicting: Callable[[list[T]], bool]) -> list[T]:
    """A smallest group that still conflicts: leave out, one after the other, everything that can be left out."""
    kept = list(items)
    place = 0
    while place < len(kept):
        rest = kept[:place] + kept[place + 1 :]
        if conflicting(rest):
            kept = rest
        else:
            place += 1
    return kept


def check_feasible(names: Sequence[Any], parts: Sequence[FeasibleSet], whole: FeasibleSet) -> None:
    """Raise a ValueError that names a smallest group of constraints that cannot hold together."""
    if not is_empty(whole):
        return
    group = smallest_conflict(
        range(len(parts)), lambda chosen: is_empty(FeasibleSet.intersection(whole.size, [parts[i] for i in chosen]))
    )
    texts = [repr(names[i]) for i in group]
    if len(texts) == 1:
        raise ValueError(f"constraint {texts[0]} cannot hold: no coefficients satisfy it")
    raise ValueError(f"constraints {', '.join(texts[:-1])} and {texts[-1]} cannot hold together")


def intersected(names: Sequence[Any], parts: Sequence[FeasibleSet], size: int) -> FeasibleSet:
    """The set of all parts together; a ValueError names those that conflict, and a set that is too large."""
    whole = FeasibleSet.intersection(size, parts)
    check_feasible(names, parts, whole)
    count = size if whole.numbers is None else int(whole.numbers.max()) + 1
    if not whole.is_box and count > SIZE_LIMIT:
        raise ValueError(
            f"constraints other than bounds and ties need a {count} x {count} matrix, {8e-9 * count**2:.1f} GB and more; "
            f"the limit is {SIZE_LIMIT} weights. Use Box, Ties or Ball(norm=inf) only, or fewer features"
        )
    return whole

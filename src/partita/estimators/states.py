"""Numbers of states that may not be meant, said in a warning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..core.errors import DataWarning

#: States from which a column looks like a quantity rather than a set of labels.
MANY = 50
#: States that nothing shows, from which one value looks like a code for something else.
GAP = 5


def doubtful_states(name: Any, n_states: int, values: Sequence[Any], kind: str) -> str:
    """A sentence about a column whose number of states may not be meant; empty if it is not remarkable.

    Parameters
    ----------
    name : hashable
        The column.
    n_states : int
        States that it gets.
    values : sequence
        Different values that occur, sorted.
    kind : {"numbers", "values", "categories"}
        Why it gets them: whole numbers are states from 0 to the largest; each different value is one; a categorical column
        declares them.

    Examples
    --------
    >>> from partita.estimators.states import doubtful_states
    >>> doubtful_states("smoker", 1000, [0, 1, 999], "numbers")
    "'smoker' has 1000 states, 0 to 999, though only 3 values occur (0, 1, 999)"
    >>> doubtful_states("smoker", 2, [0, 1], "numbers")
    ''
    """
    seen = len(values)
    if kind == "categories" and n_states > seen:
        return f"{name!r} has {n_states} states, its categories, though only {seen} of them occur"
    if kind == "numbers" and n_states - seen >= max(GAP, seen):
        shown = ", ".join(map(str, values[:3])) + (", ..." if seen > 4 else "") + (f", {values[-1]}" if seen > 3 else "")
        return f"{name!r} has {n_states} states, 0 to {n_states - 1}, though only {seen} values occur ({shown})"
    if n_states > MANY:
        why = {"numbers": f"one for every whole number up to {n_states - 1}", "values": "one for each different value"}
        return f"{name!r} has {n_states} states, {why.get(kind, 'one for each category')}"
    return ""


def warn_states(sentences: Sequence[str], cure: str, stacklevel: int = 3) -> None:
    """One DataWarning for all columns that `doubtful_states` has something to say about."""
    told = [sentence for sentence in sentences if sentence]
    if told:
        more = f"; and {len(told) - 3} more columns" if len(told) > 3 else ""
        warnings.warn(f"{'; '.join(told[:3])}{more}. {cure}", DataWarning, stacklevel=stacklevel)

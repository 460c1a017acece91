"""Terms of the relaxed EM objective, as users give them, on distinct rows of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ...core.validation import check_count, check_real
from .relational import check_codes


@dataclass(frozen=True)
class HiddenTerm:
    """A hidden variable given its observed parents; every hidden variable has one.

    Attributes
    ----------
    hidden : int
        Which one: 0, 1, ...
    given : array of int, optional
        Code of the configuration of its observed parents in every row.
    parents : tuple of int
        Its hidden parents. There must be none: the objective is not convex in two relations whose product it has.
    """

    hidden: int = 0
    given: Any = None
    parents: tuple[int, ...] = ()


@dataclass(frozen=True)
class ChildTerm:
    """An observed child of hidden variables.

    Attributes
    ----------
    child : array
        Codes below `n_values`, or real numbers if that is 0 (Gaussian, of known variance; its constant is left out).
    parents : tuple of int
        Its hidden parents.
    given : array of int, optional
        Code of the configuration of its observed parents in every row.
    n_values : int
    variance : float
    """

    child: Any
    parents: tuple[int, ...] = (0,)
    given: Any = None
    n_values: int = 0
    variance: float = 1.0


@dataclass(frozen=True)
class Group:
    """Hidden variables that hang together, and their terms on distinct rows.

    Attributes
    ----------
    hidden : tuple of int
    own : dict
        Codes of the observed parents of each.
    children : tuple of ChildTerm
    w : array
        How often every distinct row occurs.
    rows : array
        Which of them every row of data is.
    """

    hidden: tuple[int, ...]
    own: dict[int, IntArray]
    children: tuple[ChildTerm, ...]
    w: FloatArray
    rows: IntArray


def groups(terms: Sequence[HiddenTerm | ChildTerm], n_rows: int) -> list[Group]:
    """Check the terms and put those together that share hidden variables."""
    check_count("n_rows", n_rows, minimum=2)
    own, children = _checked(terms, n_rows)
    sets = [{h} for h in sorted(own)]
    for child in children:
        touched = [s for s in sets if s & set(child.parents)]
        sets = [s for s in sets if s not in touched] + [set().union(*touched)]
    found = []
    for together in sorted(sets, key=min):
        mine = [c for c in children if c.parents[0] in together]
        found.append(_distinct(tuple(sorted(together)), own, mine, n_rows))
    return found


def _checked(terms: Sequence[HiddenTerm | ChildTerm], n_rows: int) -> tuple[dict[int, IntArray], list[ChildTerm]]:
    """Codes of the observed parents of hidden variables, and children, with arrays of the right types."""
    own: dict[int, IntArray] = {}
    for term in (t for t in terms if isinstance(t, HiddenTerm)):
        if term.parents:
            raise ValueError(
                f"hidden variable {term.hidden} has hidden parents {term.parents}: the relaxation is not convex there. "
                "Leave out that edge, or use EM"
            )
        if term.hidden in own:
            raise ValueError(f"hidden variable {term.hidden} has two HiddenTerms, expected one")
        own[term.hidden] = _given(f"given of hidden variable {term.hidden}", term.given, n_rows)
    if not own:
        raise ValueError("terms must have a HiddenTerm for every hidden variable, got none")
    children = []
    for k, child in enumerate(t for t in terms if isinstance(t, ChildTerm)):
        parents = tuple(sorted(set(child.parents)))
        if not parents or not set(parents) <= set(own):
            raise ValueError(
                f"parents of child term {k} must be among the hidden variables {sorted(own)}, got {child.parents}"
            )
        check_count(f"n_values of child term {k}", child.n_values)
        check_real(f"variance of child term {k}", child.variance, minimum=0.0, strict=True)
        values: Any
        if child.n_values:
            values = check_codes(f"child of child term {k}", child.child, child.n_values, n_rows)
        else:
            values = np.asarray(child.child, dtype=np.float64)
            if values.shape != (n_rows,) or not np.all(np.isfinite(values)):
                raise ValueError(f"child of child term {k} must be {n_rows} finite numbers, got shape {values.shape}")
        given = _given(f"given of child term {k}", child.given, n_rows)
        children.append(replace(child, child=values, parents=parents, given=given))
    return own, children


def _given(name: str, codes: Any, n_rows: int) -> IntArray:
    """Codes of the configurations that occur."""
    if codes is None:
        return np.zeros(n_rows, dtype=np.int64)
    return np.unique(check_codes(name, codes, None, n_rows), return_inverse=True)[1].astype(np.int64)


def _distinct(hidden: tuple[int, ...], own: dict[int, IntArray], children: Sequence[ChildTerm], n_rows: int) -> Group:
    """Collapse equal rows."""
    columns = [own[h] for h in hidden]
    for child in children:
        columns += [child.given, child.child]
    rows = np.zeros(n_rows, dtype=np.int64)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        _, first, rows = np.unique(rows * len(values) + codes, return_index=True, return_inverse=True)
    w = np.bincount(rows).astype(np.float64)
    kept = tuple(replace(c, child=c.child[first], given=c.given[first]) for c in children)
    return Group(hidden, {h: own[h][first] for h in hidden}, kept, w, rows)

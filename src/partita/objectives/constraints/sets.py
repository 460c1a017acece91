"""Convex constraints on weights, as users write them, and their compilation into a flat set.

Of `SoftmaxRegression` and `LatentSoftmax`, a constraint speaks of ``coef_`` (classes x features; one row for two classes,
one for each hidden state) and never of intercepts; of other models, of all weights, one after another as in ``parameters_``.
``features=`` (positions or names), ``classes=`` (positions) or ``labels=`` (names) select a part of the weights of features
for labels, ``transitions=`` those of pairs of labels, ``factors=`` those of factors. What has no weight in the model is left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...core.stored import stored
from ...core.validation import check_flag, check_real
from .conic import canonical_cone, norm_ball
from .constraint import Constraint
from .feasibility import intersected
from .feasible_set import FeasibleSet, merged_groups
from .named import HasColumns, NamedWeights


def _rows(entries: list[tuple[Any, Any]], size: int) -> Any:
    """A CSR matrix from (positions, values) of each row."""
    lengths = [len(where) for where, _ in entries]
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    where = np.concatenate([where for where, _ in entries]) if entries else np.zeros(0, np.int64)
    values = np.concatenate([values for _, values in entries]) if entries else np.zeros(0)
    return sp.csr_matrix((values, where, indptr), shape=(len(entries), size))


def _row_set(size: int, rows: Any, lower: Any, upper: Any, **more: Any) -> FeasibleSet:
    whole = FeasibleSet.everything(size)
    count = rows.shape[0]
    if count == 0:
        return whole
    low, high = (np.array(np.broadcast_to(side, (count,)), dtype=np.float64) for side in (lower, upper))
    return FeasibleSet(more.pop("box_lower", whole.lower), whole.upper, rows, low, high, **more)


@stored
@dataclass(frozen=True, eq=False, repr=False)
class Box(Constraint):
    """Bounds on single coefficients.

    Parameters
    ----------
    lower, upper : float or array
        Broadcast against the selected part of ``coef_``; -inf and inf for no bound.
    classes, features : positions, optional
        The part of ``coef_`` that is bounded; default all.

    Examples
    --------
    >>> from partita.constraints import Box
    >>> Box(lower=0.0, features=[0, 2])
    Box(lower=0.0, features=(0, 2))
    """

    lower: Any = -np.inf
    upper: Any = np.inf
    classes: Any = None
    features: Any = None
    _arrays: ClassVar[tuple[str, ...]] = ("lower", "upper")

    def __post_init__(self) -> None:
        for name, none in (("lower", -np.inf), ("upper", np.inf)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, none)
        self._freeze()
        if np.any(np.asarray(self.lower) == np.inf) or np.any(np.asarray(self.upper) == -np.inf):
            raise ValueError(f"lower must be below inf and upper above -inf, got {self!r}")

    def compile(self, weights: NamedWeights) -> FeasibleSet:
        part = weights.part(self)
        whole = FeasibleSet.everything(weights.size)
        for name, side in (("lower", whole.lower), ("upper", whole.upper)):
            try:
                values = np.broadcast_to(np.asarray(getattr(self, name), dtype=np.float64), part.shape)
                side[part[part >= 0]] = values[part >= 0]
            except ValueError:
                came = np.shape(getattr(self, name))
                raise ValueError(f"{name} of {self!r} must broadcast to coef_'s part {part.shape}, got {came}") from None
        return whole


@stored
@dataclass(frozen=True, eq=False, repr=False)
class Linear(Constraint):
    """Linear inequalities and equalities, ``lower <= sum A[r] * coef_ <= upper`` for every row r.

    Parameters
    ----------
    A : array of shape (m, classes, features) or (m, classes * features)
        Of the selected part of ``coef_``.
    lower, upper : float or array of shape (m,)
    equal : float or array of shape (m,), optional
        Both sides at once.
    classes, features : positions, optional

    Examples
    --------
    >>> from partita.constraints import Linear
    >>> Linear([[1.0, -2.0]], lower=0.0)  # two classes, two features: the first at least twice the second
    Linear(A=[[1.0, -2.0]], lower=0.0)
    """

    A: ArrayLike
    lower: Any = -np.inf
    upper: Any = np.inf
    equal: Any = None
    classes: Any = None
    features: Any = None
    _arrays: ClassVar[tuple[str, ...]] = ("A", "lower", "upper", "equal")

    def __post_init__(self) -> None:
        self._freeze()
        if np.ndim(self.A) not in (2, 3) or not np.isfinite(self.A).all():
            raise ValueError(f"A must be finite, (m, classes, features) or (m, classes * features); got {np.shape(self.A)}")
        if self.equal is not None and not (np.all(self.lower == -np.inf) and np.all(self.upper == np.inf)):
            raise ValueError("equal sets both sides: give either equal, or lower and upper")
        for name in ("lower", "upper", "equal"):
            shape = np.shape(getattr(self, name)) if getattr(self, name) is not None else ()
            if shape not in ((), (1,), (len(self.A),)):  # type: ignore[arg-type]
                raise ValueError(f"{name} must be a number or have shape ({len(self.A)},), one per row of A; got {shape}")  # type: ignore[arg-type]
        if self.equal is not None and not np.isfinite(self.equal).all():
            raise ValueError(f"equal must be finite, got {self.equal!r}")

    def compile(self, weights: NamedWeights) -> FeasibleSet:
        part = weights.part(self)
        A = np.asarray(self.A)
        if A.shape[1:] not in (part.shape, (part.size,)):
            raise ValueError(
                f"A of {self!r} must have shape (m, {part.shape[0]}, {part.shape[1]}) or (m, {part.size}); got {A.shape}"
            )
        flat = A.reshape(len(A), -1)
        where = part.ravel()
        used = (flat != 0.0) & (where >= 0)  # what has no weight counts as zero
        entries = [(where[own], row[own]) for row, own in zip(flat, used, strict=True)]
        lower, upper = (self.equal, self.equal) if self.equal is not None else (self.lower, self.upper)
        return _row_set(weights.size, _rows(entries, weights.size), lower, upper)


@stored
@dataclass(frozen=True, eq=False, repr=False)
class Ties(Constraint):
    """Coefficients that share one value, exactly.

    Parameters
    ----------
    groups : list of lists of (class, feature), optional
        Each group shares a value. Both by position, or by name.
    features : positions or names, optional
        Instead of groups: these columns share one value in each selected class.
    classes : positions, optional
    labels, transitions, factors : lists, optional
        As for all constraints. The transitions that are listed share one value; factors that are listed share their tables.

    Examples
    --------
    >>> from partita.constraints import Ties
    >>> Ties([[(0, 1), (2, 1)]])  # feature 1 has the same weight in classes 0 and 2
    Ties(groups=(((0, 1), (2, 1)),))
    >>> Ties(features=[0, 1, 2])
    Ties(features=(0, 1, 2))
    """

    groups: Any = None
    features: Any = None
    classes: Any = None

    def __post_init__(self) -> None:
        self._freeze()
        selected = [self.features, self.labels, self.classes, self.transitions, self.factors]
        if (self.groups is None) == all(choice is None for choice in selected):
            raise ValueError(
                "Ties needs either groups of (class, feature) pairs, or features (or labels, transitions, factors)"
            )
        if self.groups is not None:
            try:
                groups = tuple(tuple((_plain(c), _plain(f)) for c, f in group) for group in self.groups)
            except (TypeError, ValueError):
                raise ValueError(f"groups must be lists of (class, feature) pairs, got {self.groups!r}") from None
            object.__setattr__(self, "groups", groups)

    def compile(self, weights: NamedWeights) -> FeasibleSet:
        if self.groups is None:
            part = weights.part(self)
            rows = part.T if self.factors is not None and len(part) > 1 else part
            ties = [row[row >= 0] for row in rows]
        else:
            ties = [np.array([weights.place(pair, self) for pair in group]) for group in self.groups]
        whole = FeasibleSet.everything(weights.size)
        return FeasibleSet(whole.lower, whole.upper, ties=tuple(merged_groups(ties)))


def _plain(item: Any) -> Any:
    """A name, or a position as an integer."""
    return item if isinstance(item, str | tuple) else int(item)


@stored
@dataclass(frozen=True, eq=False, repr=False)
class Monotone(Constraint):
    """Coefficients ordered along features, in every selected class.

    Parameters
    ----------
    features : positions, optional
        In the order in which coefficients must not fall; default all, as they come.
    increasing : bool
        False: they must not rise.
    classes : positions, optional

    Examples
    --------
    >>> from partita.constraints import Monotone
    >>> Monotone(features=[3, 4, 5], increasing=False)
    Monotone(features=(3, 4, 5), increasing=False)
    """

    features: Any = None
    increasing: bool = True
    classes: Any = None

    def __post_init__(self) -> None:
        self._freeze()
        check_flag("increasing", self.increasing)

    def compile(self, weights: NamedWeights) -> FeasibleSet:
        sign = 1.0 if self.increasing else -1.0
        step = np.array([-sign, sign])
        rows = [row[row >= 0] for row in weights.part(self)]
        entries = [(pair, step) for row in rows for pair in np.column_stack([row[:-1], row[1:]])]
        return _row_set(weights.size, _rows(entries, weights.size), 0.0, np.inf)


@stored
@dataclass(frozen=True, eq=False, repr=False)
class Simplex(Constraint):
    """Non-negative coefficients with a given sum in every selected class.

    Parameters
    ----------
    total : float
        The sum.
    classes, features : positions, optional

    Examples
    --------
    >>> from partita.constraints import Simplex
    >>> Simplex(total=2.0)
    Simplex(total=2.0)
    """

    total: float = 1.0
    classes: Any = None
    features: Any = None

    def __post_init__(self) -> None:
        self._freeze()
        check_real("total", self.total, minimum=0.0)

    def compile(self, weights: NamedWeights) -> FeasibleSet:
        part = weights.part(self)
        lower = np.full(weights.size, -np.inf)
        lower[part[part >= 0]] = 0.0
        rows = [row[row >= 0] for row in part]
        entries = [(row, np.ones(len(row))) for row in rows if len(row)]
        return _row_set(weights.size, _rows(entries, weights.size), self.total, self.total, box_lower=lower)


@stored
@dataclass(frozen=True, eq=False, repr=False)
class Ball(Constraint):
    """Coefficients within a distance of a center. Norms 1 and 2 need Clarabel (``pip install partita[constraints]``).

    Parameters
    ----------
    radius : float
    norm : {1, 2, inf}
    center : float or array
        Broadcast against the selected part of ``coef_``.
    per_class : bool
        One ball for each class instead of one for the whole part.
    classes, features : positions, optional

    Examples
    --------
    >>> import numpy as np
    >>> from partita.constraints import Ball
    >>> Ball(0.5, norm=np.inf)
    Ball(radius=0.5, norm=inf)
    """

    radius: float
    norm: Any = 2
    center: Any = 0.0
    per_class: bool = False
    classes: Any = None
    features: Any = None
    _arrays: ClassVar[tuple[str, ...]] = ("center",)

    def __post_init__(self) -> None:
        self._freeze()
        check_real("radius", self.radius, minimum=0.0)
        check_flag("per_class", self.per_class)
        if self.norm not in (1, 2, np.inf):
            raise ValueError(f"norm must be 1, 2 or inf, got {self.norm!r}")
        if not np.isfinite(self.center).all():
            raise ValueError(f"center must be finite, got {self.center!r}")

    def compile(self, weights: NamedWeights) -> FeasibleSet:
        part = weights.part(self)
        try:
            center = np.array(np.broadcast_to(np.asarray(self.center, dtype=np.float64), part.shape))
        except ValueError:
            came = np.shape(self.center)
            raise ValueError(f"center of {self!r} must broadcast to coef_'s part {part.shape}, got {came}") from None
        whole, there = FeasibleSet.everything(weights.size), part >= 0
        if self.norm == np.inf:
            whole.lower[part[there]], whole.upper[part[there]] = center[there] - self.radius, center[there] + self.radius
            return whole
        rows = [(p[t], c[t]) for p, c, t in zip(part, center, there, strict=True) if t.any()]
        pairs = rows if self.per_class else [(part[there], center[there])]
        cones = tuple(norm_ball(where, middle, float(self.radius), int(self.norm), weights.size) for where, middle in pairs)
        return FeasibleSet(whole.lower, whole.upper, cones=cones)


@dataclass(frozen=True, eq=False, repr=False)
class CvxpySet(Constraint):
    """Any convex set that cvxpy can write. Needs cvxpy and Clarabel (``pip install partita[cvxpy]``).

    Parameters
    ----------
    function : callable
        Takes a cvxpy expression of the shape of ``coef_``, or of the matrix of weights that `labels`, `transitions` or
        `factors` select, and returns a list of cvxpy constraints. Of other models than `SoftmaxRegression` and
        `LatentSoftmax` without such a selection, and where some of the selected have no weight or are a single row, the
        weights come as a vector.

    Examples
    --------
    >>> from partita.constraints import CvxpySet
    >>> def small_rank(coef):
    ...     import cvxpy as cp
    ...     return [cp.normNuc(coef) <= 3.0]
    >>> SoftmaxRegression(constraints=[CvxpySet(small_rank)])  # doctest: +SKIP
    """

    function: Any

    def __post_init__(self) -> None:
        self._freeze()
        if not callable(self.function):
            raise ValueError(
                f"function must take a cvxpy expression and return a list of constraints; got {self.function!r}"
            )

    def compile(self, weights: NamedWeights) -> FeasibleSet:
        whole, part = FeasibleSet.everything(weights.size), weights.part(self)
        complete = len(part) > 1 and bool((part >= 0).all())
        part = part if complete or weights.whole is None else part[part >= 0]
        return FeasibleSet(whole.lower, whole.upper, cones=(canonical_cone(self.function, part, weights.size),))


def check_constraints(constraints: Any) -> tuple[Constraint, ...]:
    """A constraint or a list of them as a tuple; None and [] give ()."""
    if constraints is None:
        return ()
    items = (constraints,) if isinstance(constraints, Constraint) else constraints
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise ValueError(f"constraints must be a list of constraints such as Box(lower=0.0), got {constraints!r}")
    items = tuple(items)
    for item in items:
        if not isinstance(item, Constraint):
            raise ValueError(f"constraints must hold objects such as Box(lower=0.0), got {item!r} ({type(item).__name__})")
    return items


def compile_constraints(constraints: Sequence[Constraint], weights: NamedWeights | HasColumns) -> FeasibleSet:
    """The flat set of all constraints together; a ValueError names those that conflict."""
    named = weights if isinstance(weights, NamedWeights) else NamedWeights.of_columns(weights)
    return intersected(constraints, [constraint.compile(named) for constraint in constraints], named.size)

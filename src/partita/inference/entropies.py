"""Concave entropies of the probabilities of parts, for structures that only a solver for the best configuration knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..core.results import FloatArray, IntArray
from ..core.validation import check_flag
from ..numerics.cardinality import tilt
from ..numerics.exchanges import GroupTerms, group_terms
from .frank_wolfe import TINY

#: The least that probabilities are from one: their logarithms must be finite.
REST = 1e-15
#: Accuracy of probabilities of sets of several parts, and most sweeps to reach it.
EXACT, SWEEPS = 1e-12, 2000


class Entropy(Protocol):
    """A concave function of the probabilities of parts that takes the place of the entropy.

    `upper` says that it is nowhere below the entropy of a distribution with these probabilities: log Z with it is then an
    upper bound.
    """

    @property
    def upper(self) -> bool: ...
    def value(self, tau: FloatArray) -> float: ...
    def gradient(self, tau: FloatArray) -> FloatArray: ...
    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        """The slope of the value at steps in a direction."""
        ...

    def terms(self, size: int) -> GroupTerms | None:
        """The same as compiled exchanges take it, if they can."""
        ...

    def check(self, vertex: FloatArray, what: str) -> None:
        """Raise a ValueError that begins with `what` if it is none for such a configuration."""
        ...


class PlainEntropy:
    """What most entropies have in common: nothing compiled, and every configuration will do."""

    def terms(self, size: int) -> GroupTerms | None:
        return None

    def check(self, vertex: FloatArray, what: str) -> None:
        return None


class GivenEntropy(PlainEntropy):
    """An object of the user's with `upper`, `value`, `gradient` and `along`."""

    def __init__(self, entropy: Any) -> None:
        self.value, self.gradient, self.along = entropy.value, entropy.gradient, entropy.along
        self.upper: bool = check_flag("upper", entropy.upper)


class SeparableEntropy(PlainEntropy):
    """``sum_e h(tau_e)`` for a concave function h with its derivative, both of arrays of numbers between 0 and 1.

    Parameters
    ----------
    function, derivative : callable
    upper : bool
        Whether it is nowhere below the entropy: that of independent parts is not.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import SeparableEntropy
    >>> collisions = SeparableEntropy(lambda t: 2 * t * (1 - t), lambda t: 2 - 4 * t)
    >>> collisions.value(np.array([0.5, 1.0]))
    0.5
    """

    def __init__(
        self,
        function: Callable[[FloatArray], FloatArray],
        derivative: Callable[[FloatArray], FloatArray],
        upper: bool = False,
    ) -> None:
        self.function, self.derivative, self.upper = function, derivative, check_flag("upper", upper)
        t, h = np.linspace(0.02, 0.98, 25), 1e-5
        values, slopes = (np.asarray(f(t), dtype=np.float64) for f in (function, derivative))
        if values.shape != t.shape or slopes.shape != t.shape:
            raise ValueError("function and derivative must take an array and return one of the same shape")
        between = (np.asarray(function(t + h)) - np.asarray(function(t - h))) / (2.0 * h)
        if not np.allclose(slopes, between, rtol=1e-4, atol=1e-4):
            k = int(np.argmax(np.abs(slopes - between)))
            raise ValueError(f"derivative is {slopes[k]:g} at {t[k]:g}, where the function has a slope of {between[k]:g}")
        if not (np.diff(slopes) <= 1e-9 * (1.0 + np.abs(slopes).max())).all():
            raise ValueError("function must be concave: its derivative may not rise")

    def value(self, tau: FloatArray) -> float:
        return float(np.sum(self.function(np.clip(tau, 0.0, 1.0))))

    def gradient(self, tau: FloatArray) -> FloatArray:
        return np.asarray(self.derivative(_inside(tau)), dtype=np.float64)

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        used = np.flatnonzero(direction)
        d, t = direction[used], tau[used]
        return lambda step: float(d @ self.derivative(_inside(t + step * d)))


def _inside(tau: FloatArray) -> FloatArray:
    return np.clip(tau, TINY, 1.0 - REST)


def _binary(tau: FloatArray) -> FloatArray:
    t, rest = np.maximum(tau, TINY), np.maximum(1.0 - tau, TINY)
    return np.asarray(-tau * np.log(t) - (1.0 - tau) * np.log(rest))


def _log_odds_against(tau: FloatArray) -> FloatArray:
    return np.asarray(np.log1p(-tau) - np.log(tau))


class IndependentEntropy(SeparableEntropy):
    """The sum of the binary entropies of all parts: no distribution with these probabilities has more."""

    def __init__(self) -> None:
        super().__init__(_binary, _log_odds_against, upper=True)

    def terms(self, size: int) -> GroupTerms:
        none = np.zeros(0, np.int64)
        return group_terms(np.ones(size), np.zeros(size), np.zeros(0), none, none)


class TableEntropy(PlainEntropy):
    """``sum_e count_e h(tau_e)`` with ``h(t) = -t log t``: sums of entropies of tables, counted as often as each entry says.

    With one for the tables of the cliques of a junction tree and minus one for those of its separators, it is the entropy.

    Parameters
    ----------
    counts : array
        Of the entries of all tables.
    exact : bool
        Whether it is the entropy.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import Parts, TableEntropy, infer_parts
    >>> one = Parts(3, lambda scores: np.eye(3)[np.argmax(scores)])
    >>> np.exp(infer_parts(one, np.log([1.0, 2.0, 5.0]), TableEntropy(np.ones(3), exact=True)).log_z).round(4)
    array([8.])
    """

    def __init__(self, counts: FloatArray, exact: bool = False) -> None:
        self.counts, self.exact = np.asarray(counts, dtype=np.float64), check_flag("exact", exact)
        self.upper: bool = self.exact

    def value(self, tau: FloatArray) -> float:
        return -float(self.counts @ (tau * np.log(np.maximum(tau, TINY))))

    def gradient(self, tau: FloatArray) -> FloatArray:
        return np.asarray(-self.counts * (1.0 + np.log(np.maximum(tau, TINY))))

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        used = np.flatnonzero(direction)
        d, t, counted = direction[used], tau[used], direction[used] * self.counts[used]
        return lambda step: -float(counted @ (1.0 + np.log(np.maximum(t + step * d, TINY))))

    def terms(self, size: int) -> GroupTerms:
        none = np.zeros(0, np.int64)
        return group_terms(np.zeros(size), self.counts, np.zeros(0), none, none)


class PartGroup(NamedTuple):
    """Parts of which at most `b` are chosen, or exactly so many."""

    parts: ArrayLike
    b: int = 1
    exactly: bool = False


class GroupEntropy:
    """``sum_e (1 - R_e) H_e + sum_g rho_g H_g`` with ``R_e`` the sum of rho over the groups of a part.

    H_e is the entropy of one part, H_g the largest of a distribution over sets of (at most, or exactly) b parts of a group
    with these probabilities. With ``R_e <= 1`` everywhere it is above the entropy (Shearer's inequality) and concave; with
    rho = 1 it is Bethe's, which is concave where ``R_e <= 2`` and groups have b = 1 (as in matchings).

    Parameters
    ----------
    size : int
        Parts.
    groups : sequence of PartGroup or arrays
        Arrays of parts are groups of which at most one is chosen.
    rho : float or array, optional
        Of each group. Default: the same for all, as large as leaves it above the entropy.
    """

    def __init__(self, size: int, groups: Sequence[PartGroup | ArrayLike], rho: ArrayLike | None = None) -> None:
        self.size = size
        self.groups: list[PartGroup] = [_checked(k, group, size) for k, group in enumerate(groups)]
        if not self.groups:
            raise ValueError("groups must not be empty: without groups the entropy is that of independent parts")
        members: list[IntArray] = [np.asarray(group.parts) for group in self.groups]
        owner = np.repeat(np.arange(len(members)), [len(parts) for parts in members])
        flat = np.concatenate(members)
        if rho is None:
            rho = 1.0 / np.bincount(flat, minlength=size).max()
        numbers = np.asarray(rho, dtype=np.float64)
        if numbers.ndim and numbers.shape != (len(members),):
            raise ValueError(f"rho must be a number, or one for each of {len(members)} groups; got shape {numbers.shape}")
        numbers = np.broadcast_to(numbers, (len(members),)).copy()
        if not ((numbers >= 0.0) & (numbers <= 1.0)).all():
            raise ValueError(f"rho must be from 0 to 1, got {numbers.min():g} to {numbers.max():g}")
        self.rho: FloatArray = numbers
        self._total = np.bincount(flat, numbers[owner], size)
        most = float(self._total.max())
        large = [k for k, group in enumerate(self.groups) if group.b > 1 and numbers[k] > 0.0]
        if most > (1.0 if large else 2.0) + 1e-12:
            limit = 1.0 if large else 2.0
            raise ValueError(
                f"rho adds up to {most:g} over the groups of a part, and the entropy is concave for sure only up to "
                f"{limit:g}{' where groups have b > 1' if large else ''}: lower rho by a factor of {limit / most:.3g}"
            )
        self._upper = most <= 1.0 + 1e-12
        single = np.array([group.b == 1 for group in self.groups])
        inside = single[owner]
        self._flat, self._owner = flat[inside], owner[inside]
        self._single = np.bincount(self._flat, numbers[self._owner], size)
        self._slack = np.array([g.b == 1 and not g.exactly for g in self.groups]) * numbers
        self._large = [(members[k], self.groups[k], float(numbers[k])) for k in large]

    @property
    def upper(self) -> bool:
        """Whether it is above the entropy."""
        return self._upper

    def terms(self, size: int) -> GroupTerms | None:
        if self._large:
            return None
        return group_terms(1.0 - self._total, self._single, self._slack, self._flat, self._owner)

    def check(self, vertex: FloatArray, what: str) -> None:
        """Raise a ValueError if a configuration does not keep to the groups: the entropy would be no entropy of it."""
        for k, group in enumerate(self.groups):
            chosen = round(float(vertex[np.asarray(group.parts)].sum()))
            if chosen > group.b or (group.exactly and chosen < group.b):
                asked = "exactly" if group.exactly else "at most"
                raise ValueError(f"{what} has {chosen} parts of groups[{k}], of which {asked} {group.b} can be chosen")

    def _rest(self, tau: FloatArray) -> FloatArray:
        """What is missing to one in groups."""
        return np.asarray(1.0 - np.bincount(self._owner, tau[self._flat], len(self.rho)))

    def value(self, tau: FloatArray) -> float:
        t, s = np.clip(tau, 0.0, 1.0), np.maximum(self._rest(tau), 0.0)
        out = float((1.0 - self._total) @ _binary(t)) - float(self._single @ (t * np.log(np.maximum(t, TINY))))
        out -= float(self._slack @ (s * np.log(np.maximum(s, TINY))))
        return out + sum(rho * self._large_sum(k, tau)[0] for k, (_, _, rho) in enumerate(self._large))

    def gradient(self, tau: FloatArray) -> FloatArray:
        t, s = _inside(tau), np.maximum(self._rest(tau), TINY)
        out = (1.0 - self._total) * _log_odds_against(t) - self._single * (np.log(t) + 1.0)
        out += np.bincount(self._flat, (self._slack * (1.0 + np.log(s)))[self._owner], len(tau))
        for k, (parts, _, rho) in enumerate(self._large):
            out[parts] -= rho * self._large_sum(k, tau)[1]
        return np.asarray(out)

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        used = np.flatnonzero(direction)
        d, t, own, single = direction[used], tau[used], 1.0 - self._total[used], self._single[used]
        s, change = self._rest(tau), -np.bincount(self._owner, direction[self._flat], len(self.rho))
        moved = np.flatnonzero((change != 0.0) & (self._slack > 0.0))
        s, change, slack = s[moved], change[moved], self._slack[moved]
        large = [k for k, (parts, _, _) in enumerate(self._large) if direction[parts].any()]

        def slope(step: float) -> float:
            now = _inside(t + step * d)
            out = float(d @ (own * _log_odds_against(now) - single * (np.log(now) + 1.0)))
            out -= float((slack * change) @ (1.0 + np.log(np.maximum(s + step * change, TINY))))
            for k in large:
                parts, _, rho = self._large[k]
                out -= rho * float(direction[parts] @ self._large_sum(k, tau + step * direction)[1])
            return out

        return slope

    def _large_sum(self, k: int, tau: FloatArray) -> tuple[float, FloatArray]:
        """The entropy of sets of several parts of a group, and the log-odds of its parts."""
        parts, group, _ = self._large[k]
        t = _inside(tau[parts])
        w = np.log(t) - np.log1p(-t)  # always from here: what an earlier call found would be a memory of it
        left, right = np.empty((len(t) + 1, group.b + 1)), np.empty((len(t) + 1, group.b + 1))
        log_z, _ = tilt(t, group.b, group.exactly, w, left, right, EXACT, SWEEPS)
        return float(log_z - t @ w), w


def _checked(k: int, group: Any, size: int) -> PartGroup:
    found = group if isinstance(group, PartGroup) else PartGroup(group)
    parts = np.asarray(found.parts)
    if parts.ndim != 1 or not len(parts) or parts.dtype.kind not in "iu" or parts.min() < 0 or parts.max() >= size:
        raise ValueError(f"groups[{k}] must be numbers of parts from 0 to {size - 1}, got {_shown(parts)}")
    if len(np.unique(parts)) < len(parts):
        raise ValueError(f"groups[{k}] has a part twice")
    if not isinstance(found.b, int | np.integer) or isinstance(found.b, bool) or not found.b >= 1:
        raise ValueError(f"b of groups[{k}] must be an integer of at least 1, got {found.b!r}")
    if found.exactly and found.b > len(parts):
        raise ValueError(f"groups[{k}] has {len(parts)} parts, of which {found.b} cannot be chosen")
    return PartGroup(parts.astype(np.int64), min(int(found.b), len(parts)), bool(found.exactly))


def _shown(parts: Any) -> str:
    return f"{parts.tolist()!r}"[:60]

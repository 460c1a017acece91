"""Where EM begins."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ..data.network import NetworkLayout
from ..objective import NEVER, NetworkLikelihood

#: Standard deviation of the weights in random starts.
NOISE = 1.0
#: Counts that are added to a start if there is no penalty: what is zero there would be zero for ever.
SMOOTH = 0.1


def fresh_states(layout: NetworkLayout, states: IntArray) -> list[Any]:
    """For every variable, its states that no row shows, as an array of bool; none if it is neither hidden nor never known.

    Such states begin alike, and EM would never tell them apart.
    """
    out = []
    for v, name in enumerate(layout.discrete):
        known = states[:, v] >= 0
        free = not known.any() or (name in layout.hidden and not known.all())
        out.append((np.bincount(states[known, v], minlength=len(layout.states[name])) == 0) & free)
    return out


def random_starts(
    objective: NetworkLikelihood, fresh: Sequence[Any], rng: np.random.Generator, count: int
) -> list[FloatArray]:
    """Distributions as in the rows where they are known; random where a state that no row shows takes part."""
    net = objective.net
    counts = objective.sets.counts.copy()
    if objective.alpha == 0.0 and not objective.complete:
        counts[: net.size] += SMOOTH
    theta = objective.refit(counts, np.zeros(objective.size))
    noise = np.zeros(objective.size)
    for v in range(net.n):
        own = slice(net.offsets[v], net.offsets[v + 1])
        noise[own] = NOISE * _any_of(fresh, [*net.parents[v], v])
        unseen = _any_of(fresh, net.parents[v])  # given such parents there are no counts: as in all rows
        if unseen.any() and not fresh[v].all():
            states = objective.sets.states[:, v]
            seen = np.bincount(states[states >= 0], minlength=net.cardinalities[v]) + 1.0
            theta[own].reshape(len(unseen), -1)[unseen] = np.log(seen / seen.sum())
    first = net.size
    for of, size in zip(net.leaves, net.leaf_sizes, strict=True):
        unseen = _any_of(fresh, of)
        theta[first : first + size][unseen] = 0.0
        noise[first : first + size] = NOISE * unseen
        first += size
    return [theta + noise * rng.standard_normal(objective.size) for _ in range(count)]


def _any_of(fresh: Sequence[Any], variables: Sequence[int]) -> Any:
    """Configurations of variables, one after another, in which one of them is in a fresh state."""
    out = np.zeros(1, bool)
    for v in variables:
        out = (out[:, None] | fresh[v]).ravel()
    return out


def given_start(
    layout: NetworkLayout,
    objective: NetworkLikelihood,
    fresh: Sequence[Any],
    tables: Mapping[Hashable, Any],
    start: FloatArray,
) -> FloatArray:
    """`start` with the distributions that are given. Hidden states that are alike are refused."""
    net, theta = layout.net, start.copy()
    for name, given in tables.items():
        if name not in layout.number:
            raise ValueError(f"init has a table for {name!r}, which is no variable with states of the network")
        v = layout.number[name]
        table = np.asarray(given, dtype=np.float64)
        if table.shape != net.shape(v):
            raise ValueError(f"init[{name!r}] must have shape {net.shape(v)}, got {table.shape}")
        if not (table >= 0.0).all() or not np.allclose(table.sum(-1), 1.0, atol=1e-6):
            raise ValueError(f"init[{name!r}] must hold distributions that sum to one along the last axis")
        with np.errstate(divide="ignore"):
            theta[net.offsets[v] : net.offsets[v + 1]] = np.maximum(np.log(table), NEVER).ravel()
    p = net.tables(np.exp(net.log_distributions(theta[: net.size])))
    for v in range(net.n):
        for a, b in combinations(np.flatnonzero(fresh[v]).tolist(), 2):
            if _alike(net, p, v, a, b, objective.alpha) and not any(v in of for of in net.leaves):
                names = layout.states[layout.discrete[v]]
                raise ValueError(
                    f"the states {names[a]!r} and {names[b]!r} of hidden variable {layout.discrete[v]!r} are alike in init: "
                    "EM would never tell them apart; give different distributions, or leave some of the tables out to start "
                    "from random ones"
                )
    return theta


def _alike(net: Any, tables: list[FloatArray], v: int, a: int, b: int, alpha: float) -> bool:
    """Whether two states of v can be exchanged, up to their frequency if there is no penalty, without a change."""
    for child in range(net.n):
        scope = [*net.parents[child], child]
        if v in scope:
            first, second = (np.take(tables[child], state, axis=scope.index(v)) for state in (a, b))
            if child == v and alpha == 0.0:
                first, second = (part / max(part.sum(), 1e-300) for part in (first, second))
            if np.abs(first - second).max() > 1e-9:
                return False
    return True

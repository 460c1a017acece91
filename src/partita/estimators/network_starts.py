"""Where EM begins."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..core.results import FloatArray
from ..objectives.network import NEVER, NetworkLikelihood
from .network_data import NetworkLayout

#: Standard deviation of the weights in random starts.
NOISE = 1.0


def random_starts(objective: NetworkLikelihood, absent: Any, rng: np.random.Generator, count: int) -> list[FloatArray]:
    """Distributions as in the rows where they are known; random where a variable that is never known takes part."""
    net = objective.net
    theta = objective.refit(objective.sets.counts, np.zeros(objective.size))
    noise = np.zeros(objective.size)
    for v in range(net.n):
        if absent[[*net.parents[v], v]].any():
            own = slice(net.offsets[v], net.offsets[v + 1])
            noise[own] = NOISE
            if not absent[v]:
                states = objective.sets.states[:, v]
                seen = np.bincount(states[states >= 0], minlength=net.cardinalities[v]) + 1.0
                theta[own] = np.tile(np.log(seen / seen.sum()), net.configurations(net.parents[v]))
    first = net.size
    for of, size in zip(net.leaves, net.leaf_sizes, strict=True):
        if absent[list(of)].any():
            theta[first : first + size] = 0.0
            noise[first : first + size] = NOISE
        first += size
    return [theta + noise * rng.standard_normal(objective.size) for _ in range(count)]


def given_start(
    layout: NetworkLayout, objective: NetworkLikelihood, absent: Any, tables: Mapping[Hashable, Any], start: FloatArray
) -> FloatArray:
    """`start` with the distributions that are given. Hidden states that are all alike are refused."""
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
    p = net.tables(np.exp(objective.log_distributions(theta)))
    for v in np.flatnonzero(absent).tolist():
        if net.cardinalities[v] > 1 and _alike(net, p, v) and not any(v in of for of in net.leaves):
            raise ValueError(
                f"the states of hidden variable {layout.discrete[v]!r} are all alike in init: EM would never tell them "
                "apart; give different distributions, or leave some of the tables out to start from random ones"
            )
    return theta


def _alike(net: Any, tables: list[FloatArray], v: int) -> bool:
    """Whether the states of v can be exchanged without a change."""
    for child in range(net.n):
        scope = [*net.parents[child], child]
        if v in scope and np.ptp(tables[child], axis=scope.index(v)).max() > 1e-9:
            return False
    return True

"""Gibbs sampling of factor graphs: marginals by averages over draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result, Status
from ...core.validation import check_count
from ..kernels import gibbs as kernels
from ..kernels.factor_layout import Entries
from ..structure.factor_graph import FactorGraph
from ..structure.trivial_bounds import trivial_bounds
from .layout import Layout, given, layout
from .mean_field import configuration


def gibbs(
    graph: FactorGraph,
    potentials: FloatArray,
    *,
    n_samples: int = 1000,
    burn_in: int = 200,
    n_chains: int = 4,
    random_state: Any = None,
) -> Result:
    """Gibbs sampling: shares of draws as marginals; log Z is not known (NaN), only bounds on it.

    Parameters
    ----------
    graph, potentials
        A factor graph and a matrix of potentials, one set per row.
    n_samples, burn_in, n_chains
        Sweeps of each chain that count, and before them sweeps that do not; chains begin at random configurations.
    random_state
        The same seed gives the same draws at any number of threads.

    Notes
    -----
    Variables are drawn colour by colour: those of a colour share no table, so that a sweep does not depend on their order.
    Where tables forbid, chains begin at configurations that are allowed, and may not reach all others by changes of single
    variables.
    """
    check_count("n_samples", n_samples, minimum=1)
    potentials = given(graph, potentials)
    marginals, states = _run(graph, potentials, n_samples, burn_in, n_chains, random_state)
    lower, upper = trivial_bounds(graph, potentials)
    last = graph.score(potentials, states[:, 0])  # of the first chain: any configuration is a bound
    result = Result(
        np.full(len(potentials) * graph.n_examples, np.nan),
        marginals,
        Status.SAMPLED,
        False,
        n_iter=burn_in + n_samples,
        engine="gibbs",
        knows_log_z=False,
    )
    return result.within(np.maximum(lower, last), upper)


def gibbs_states(
    graph: FactorGraph, potentials: Any, *, burn_in: int = 200, n_chains: int = 4, random_state: Any = None
) -> IntArray:
    """The last configurations of chains, (rows, chains, variables): nearly independent draws after a long `burn_in`."""
    return _run(graph, given(graph, potentials), 0, burn_in, n_chains, random_state)[1]


def _run(
    graph: FactorGraph, potentials: FloatArray, n_samples: int, burn_in: int, n_chains: int, random_state: Any
) -> tuple[FloatArray, IntArray]:
    check_count("n_samples", n_samples)
    check_count("burn_in", burn_in)
    check_count("n_chains", n_chains, minimum=1)
    inner = layout(graph)
    states, tables = inner.scores(potentials)
    if not (inner.prune(states, tables) and (inner.constant(potentials) > -np.inf).all()):
        raise ValueError("potentials forbid every configuration: the partition function is zero")
    rows, rng = len(states), generator(random_state)
    seeds = rng.integers(0, 2**63, (rows, n_chains))
    y = np.empty((rows, n_chains, inner.n_variables), np.int64)
    for row in range(rows):
        free = not (np.isneginf(tables[row]).any() or np.isneginf(states[row]).any())
        for c in range(n_chains):
            if free:
                y[row, c] = rng.integers(0, graph.cardinalities)
                continue
            found = configuration(inner, states[row], tables[row], rng.random(inner.n_states))
            if found is None:
                raise ValueError("gibbs found no configuration that is not forbidden: use engine 'exact' or 'bp'")
            y[row, c] = found
    if "colours" not in inner.cache:
        inner.cache["colours"] = colour_order(inner)
    order = inner.cache["colours"]
    widest = int(graph.cardinalities.max())

    def work(row: int, c: int) -> Entries:
        counts = Entries(np.zeros(inner.n_states, np.int64), np.zeros(inner.size, np.int64))
        scores, score = Entries(states[row], tables[row]), np.empty(widest)
        kernels.chain(inner.arrays, scores, order, seeds[row, c], burn_in, n_samples, y[row, c], counts, score)
        return counts

    counted = graph.workers.run(work, [(row, c) for row in range(rows) for c in range(n_chains)])
    total = max(1, n_samples * n_chains)
    parts = [counted[row * n_chains : (row + 1) * n_chains] for row in range(rows)]
    b_states = np.array([np.sum([counts.states for counts in part], axis=0) for part in parts]) / total
    b_tables = np.array([np.sum([counts.tables for counts in part], axis=0) for part in parts]) / total
    return inner.marginals(b_states, b_tables), y


def colour_order(inner: Layout) -> IntArray:
    """Variables sorted by a greedy colouring in which those that share a table differ."""
    starts, edges = inner.arrays.var_ptr.tolist(), inner.arrays.var_edges.tolist()
    edge_factor = inner.arrays.edge_factor.tolist()
    colour = [-1] * inner.n_variables
    for i in sorted(range(inner.n_variables), key=lambda i: starts[i] - starts[i + 1]):
        taken = {colour[j] for k in range(starts[i], starts[i + 1]) for j in inner.scopes[edge_factor[edges[k]]]}
        c = 0
        while c in taken:
            c += 1
        colour[i] = c
    return np.argsort(np.array(colour), kind="stable").astype(np.int64)

"""Perturb-and-MAP on factor graphs: shares of best configurations under Gumbel noise on the states of variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result, Status
from ...core.validation import check_choice, check_count
from ...inference.oracle import answered, oracle_name, solver_of
from ...inference.perturb_and_map import check_answers, gumbel, perturbed_shares
from ..structure.evidence import answered_point
from ..structure.factor_graph import DECODERS, FactorGraph
from ..structure.trivial_bounds import trivial_bounds
from .layout import given


def perturb_and_map(
    graph: FactorGraph,
    potentials: FloatArray,
    *,
    n_samples: int = 1000,
    decoder: str = "auto",
    oracle: Any = None,
    random_state: Any = None,
) -> Result:
    """Marginals of a factor graph, with a Gumbel variable of mean zero for each state of each variable.

    Parameters
    ----------
    graph, potentials
        A factor graph and a matrix of potentials, one set per row.
    n_samples : int
        Best configurations of each row.
    decoder : {"auto", "exact", "bp", "max_flow"}
        See `FactorGraph.argmax`.
    oracle : Oracle, object with argmax, or callable, optional
        Finds best configurations instead, one after the other.
    random_state
        The same seed gives the same answer at any number of threads.

    Returns
    -------
    Result
        `log_z` is the mean of the largest scores. Its expectation is an upper bound on log Z, it is not one itself; where
        best configurations come from max-product, not even that is known, and it is NaN.
    """
    potentials = given(graph, potentials)
    check_count("n_samples", n_samples, minimum=1)
    check_choice("decoder", decoder, DECODERS)
    if oracle is not None and graph.n_examples > 1:
        raise ValueError("an oracle takes one graph at a time, not a union")
    spread = _spread(graph)
    known = oracle is not None or (decoder in ("auto", "exact") and graph.choose(decoder) == "exact")

    def noise(rng: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
        return gumbel(rng, (draws, spread.shape[0])) @ spread, np.zeros(draws)

    def best(noisy: FloatArray) -> tuple[FloatArray, FloatArray]:
        if oracle is not None:
            solver = solver_of(oracle, lambda y: answered_point(graph, y))
            answers = [answered(solver(row), f"oracle {oracle_name(solver)}", graph.offsets) for row in noisy]
            points, values = np.array([answer.point for answer in answers]), np.array([answer.value for answer in answers])
            check_answers(oracle_name(solver), noisy, points, max(answer.delta for answer in answers))
            return points.sum(0), values
        configurations, values = graph.argmax(noisy, decoder)
        return _counts(graph, configurations), values

    marginals, log_z = perturbed_shares(potentials, n_samples, generator(random_state), noise, best)
    log_z = log_z + _free(graph) if known else np.full_like(log_z, np.nan)
    result = Result(
        log_z.ravel(),
        marginals,
        Status.SAMPLED,
        False,
        n_iter=n_samples,
        engine="perturb_and_map",
        knows_log_z=known,
    )
    return result.within(*trivial_bounds(graph, potentials))


def _spread(graph: FactorGraph) -> Any:
    """From numbers of states of variables to entries of tables: those of the first factor that has the variable."""
    starts = np.concatenate(([0], np.cumsum(graph.cardinalities)))
    rows, columns, had = [], [], set()
    for k, scope in enumerate(graph.factors):
        entries = np.arange(graph.offsets[k], graph.offsets[k + 1])
        states = np.indices(tuple(graph.cardinalities[list(scope)])).reshape(len(scope), len(entries))
        for v, state in zip(scope, states, strict=True):
            if v not in had:
                had.add(v)
                rows.append(starts[v] + state)
                columns.append(entries)
    places = (np.concatenate([*rows, []]).astype(np.int64), np.concatenate([*columns, []]).astype(np.int64))
    return sp.csr_array((np.ones(len(places[0])), places), shape=(int(starts[-1]), graph.size))


def _free(graph: FactorGraph) -> FloatArray:
    """What variables in no factor add to log Z of each example."""
    had = np.zeros(graph.n_variables, dtype=bool)
    had[graph.members] = True
    logs = np.where(had, 0.0, np.log(graph.cardinalities))
    return np.asarray(np.bincount(graph.examples, weights=logs, minlength=graph.n_examples), dtype=np.float64)


def _counts(graph: FactorGraph, configurations: IntArray) -> FloatArray:
    """How many configurations pick each entry of each table."""
    out = np.zeros(graph.size)
    for numbers, scope, _, strides in graph.by_arity:
        for states in configurations:
            out[graph.offsets[numbers] + (states[scope] * strides).sum(1)] += 1.0
    return out

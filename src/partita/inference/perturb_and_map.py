"""Marginals as shares of best configurations under random changes of the potentials (perturb-and-MAP).

With a Gumbel variable for every configuration the best one would be a draw from the distribution. Here there is one for each
state of each variable, or for each edge. Shares are then near the marginals where potentials are weak, but not in general,
and more draws do not mend that. The mean of the largest scores is above log Z in expectation (Hazan and Jaakkola, 2012).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.errors import NumericalError
from ..core.random import generator
from ..core.results import FloatArray, IntArray, Result, Status
from ..core.validation import check_choice, check_count
from ..structures.factor_graph import DECODERS, FactorGraph
from ..structures.trivial_bounds import trivial_bounds
from .frank_wolfe import NOISE
from .layout import given
from .map import Oracle
from .map.oracle import answered

#: Numbers of potentials that are held at once.
_HELD = 2_000_000


def perturb_and_map(
    graph: FactorGraph,
    potentials: FloatArray,
    *,
    n_samples: int = 1000,
    decoder: str = "auto",
    oracle: Oracle | None = None,
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
    oracle : Oracle, optional
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
        return _gumbel(rng, (draws, spread.shape[0])) @ spread, np.zeros(draws)

    def best(noisy: FloatArray) -> tuple[FloatArray, FloatArray]:
        if oracle is not None:
            answers = [answered(oracle(row), f"oracle {type(oracle).__name__}", graph.offsets) for row in noisy]
            points, values = np.array([answer.point for answer in answers]), np.array([answer.value for answer in answers])
            _check_answers(type(oracle).__name__, noisy, points, max(answer.delta for answer in answers))
            return points.sum(0), values
        configurations, values = graph.argmax(noisy, decoder)
        return _counts(graph, configurations), values

    marginals, log_z = _run(potentials, n_samples, generator(random_state), noise, best)
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


def matching_perturb_and_map(
    structure: Any, weights: FloatArray, *, n_samples: int = 1000, random_state: Any = None
) -> Result:
    """Marginals of matchings, with a Gumbel variable of mean zero for each edge and, where they may stay alone, each vertex.

    The mean of the largest scores, `log_z`, is above log Z in expectation: vertex by vertex, the choice of a partner is an
    exact draw given the expected best of what follows, which by induction is above the logarithm of its sum.
    """
    weights = structure.rows(weights)
    check_count("n_samples", n_samples, minimum=1)
    ends = structure.ends

    def noise(rng: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
        edges = _gumbel(rng, (draws, structure.n_edges))
        if structure.perfect:
            return edges, np.zeros(draws)
        alone = _gumbel(rng, (draws, structure.n_vertices))  # an edge then costs what its vertices had alone
        return edges - alone[:, ends[:, 0]] - alone[:, ends[:, 1]], alone.sum(1)

    def best(noisy: FloatArray) -> tuple[FloatArray, FloatArray]:
        chosen = structure._edges(structure.best(noisy))
        return chosen.sum(0), np.where(chosen > 0.0, noisy, 0.0).sum(1)

    marginals, log_z = _run(weights, n_samples, generator(random_state), noise, best)
    return Result(log_z.ravel(), marginals, Status.SAMPLED, False, n_iter=n_samples, engine="perturb_and_map")


def _check_answers(oracle: str, noisy: FloatArray, points: FloatArray, delta: float) -> None:
    """An answer must be at least as good as the answer to the draw before it: that one is a configuration too."""
    if len(points) < 2:
        return
    with np.errstate(invalid="ignore"):
        used = np.where((points > 0.0) | (np.roll(points, 1, axis=0) > 0.0), noisy, 0.0)
        mine, others = (used * points).sum(1), (used * np.roll(points, 1, axis=0)).sum(1)
        room = delta + NOISE * (1.0 + np.abs(np.where(np.isfinite(used), used, 0.0)).sum(1))
        wrong = others > mine + room
    if wrong.any():
        i = int(wrong.argmax())
        raise NumericalError(
            f"oracle {oracle} answered with a configuration of score {mine[i]:.9g} where one of {others[i]:.9g} is known: "
            "it does not find the best configuration. Mend it, or state its largest error as delta"
        )


def _run(
    potentials: FloatArray,
    n_samples: int,
    rng: np.random.Generator,
    noise: Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]],
    best: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """Of each row, shares of entries in best configurations, and means of largest scores (for each example)."""
    size = max(1, potentials.shape[1])
    shares, means = np.zeros_like(potentials), []
    for i, row in enumerate(potentials):
        total: Any = 0.0
        for first in range(0, n_samples, max(1, _HELD // size)):
            draws = min(n_samples - first, max(1, _HELD // size))
            changes, constants = noise(rng, draws)
            counts, values = best(row + changes)
            shares[i] += counts
            total = total + values.reshape(draws, -1).sum(0) + constants.sum()
        means.append(total / n_samples)
    return shares / n_samples, np.array(means)


def _gumbel(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return np.asarray(rng.gumbel(-np.euler_gamma, 1.0, shape))


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

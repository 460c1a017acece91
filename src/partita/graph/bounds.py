"""Quadratics above log Z of a factor graph whose potentials are linear in few parameters.

The recursion is that of `chain.bounds` on a junction tree: if one matrix M is above the curvatures of a child's message for
all configurations of its separator, ``exp(d' M d / 2)`` factors out of the parent's sums, and Algorithm 1 bounds what is
left of each. Curvatures then add up along the tree instead of multiplying.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..chain import UPPERS, above_all, printed, shares_and_roots
from ..core.contracts.capabilities import BOUNDS
from ..core.results import FloatArray, IntArray
from ..core.validation import check_choice
from ..objectives.bounds.low_rank import LowRank, StreamingLowRank
from ..softmax import SEQUENTIAL, PartitionBound
from .structure.elimination import Clique
from .structure.factor_graph import FactorGraph

RECURSIONS = ("shared", "printed")
#: Entries of the last sum above which it takes Algorithm 1, whatever bound the others have: that needs no square matrix.
LONG = 128


def graph_bound(
    graph: FactorGraph,
    features: ArrayLike,
    theta: ArrayLike,
    *,
    base: ArrayLike | None = None,
    bound: str = "descending",
    upper: str = "sum",
    recursion: str = "shared",
    rank: int | None = None,
) -> PartitionBound | LowRank:
    """A quadratic above log Z of a graph with potentials ``base + features @ theta`` that touches it at `theta`.

    Parameters
    ----------
    features : array of shape (graph.size, d)
        What every entry of every table gets from each parameter.
    base : array of shape (graph.size,), optional
        Potentials that do not depend on the parameters; -inf forbids.
    bound : str
        The bound applied to every sum, see `partita.softmax.bounds.potential`.
    upper : {"sum", "positive"}
        What is taken to be above the curvatures of all configurations of a separator, see `chain_bound`.
    recursion : {"shared", "printed"}
        ``"printed"`` is Algorithm 3 of the paper, which sums the children's curvatures over configurations: a bound, but it
        grows exponentially with the depth. It takes `bound` as an order and is kept as the reference.
    rank : int, optional
        With ``"shared"``, a curvature of so many directions and a diagonal instead of a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.bounds import graph_bound
    >>> from partita.structures import FactorGraph
    >>> graph = FactorGraph.grid(2, 2)
    >>> features = np.random.default_rng(0).normal(size=(graph.size, 3))
    >>> found = graph_bound(graph, features, np.zeros(3))
    >>> bool(found.value(np.ones(3)) >= graph.log_partition(features @ np.ones(3))[0])
    True
    """
    check_choice("recursion", recursion, RECURSIONS)
    check_choice("upper", upper, UPPERS)
    check_choice("bound", bound, BOUNDS if recursion == "shared" else tuple(SEQUENTIAL))
    F = np.asarray(features, dtype=np.float64)
    center = np.ascontiguousarray(theta, dtype=np.float64)
    if F.ndim != 2 or F.shape[0] != graph.size or center.shape != (F.shape[1],):
        raise ValueError(f"features must have shape ({graph.size}, d) and theta (d,); got {F.shape} and {center.shape}")
    if graph.n_examples != 1:
        raise ValueError(f"graph must hold one example, got {graph.n_examples}")
    if rank is not None and recursion == "printed":
        raise ValueError("rank needs recursion='shared'")
    scores = graph.potentials(F @ center + (0.0 if base is None else np.asarray(base, dtype=np.float64)))[0]
    if recursion == "printed":
        return _printed_tree(graph, F, center, scores, bound)
    d = len(center)
    sigma = np.zeros((d, d))
    stream = None if rank is None else StreamingLowRank(d, rank)
    sums: list[tuple[FloatArray, FloatArray]] = []
    log_z, mean = 0.0, np.zeros(d)
    for log_w, G, parent in _cliques(graph, F, scores, sums):
        long = log_w.shape[1] > LONG
        if parent < 0 and stream is None and (bound in SEQUENTIAL or long):  # one sum: no rows need be written out
            root = printed(center, log_w[0], G[0], sigma, bound if bound in SEQUENTIAL else "descending")
            log_z, mean, sigma = log_z + root.log_z, mean + root.mean, root.curvature
            sums.append((np.array([root.log_z]), root.mean[None]))
            continue
        z, stacked = shares_and_roots(log_w, bound)
        out = stacked @ G
        mu, roots = out[:, 0], out[None, :, 1:]
        above = (above_all(roots) if upper == "positive" else roots).reshape(-1, d)
        if stream is None:
            sigma += above.T @ above
        else:
            stream.add(above)
        sums.append((z, mu))
        if parent < 0:
            log_z, mean = log_z + float(z[0]), mean + mu[0]
    log_z, mean = _with_constants(graph, F, scores, log_z, mean)
    if stream is None:
        return PartitionBound(center, log_z, mean, sigma)
    return LowRank(center, log_z, mean, stream.V, stream.S, stream.D + 1e-300)


def _printed_tree(
    graph: FactorGraph, F: FloatArray, center: FloatArray, scores: FloatArray, ordering: str
) -> PartitionBound:
    """Algorithm 3: every configuration of a separator has a curvature of its own."""
    d = len(center)
    sums: list[tuple[FloatArray, FloatArray]] = []
    curvatures: list[FloatArray] = []
    log_z, mean, sigma = 0.0, np.zeros(d), np.zeros((d, d))
    tree = graph.tree().elimination
    below = _children(tree.cliques)
    for c, (log_w, G, parent) in enumerate(_cliques(graph, F, scores, sums)):
        shape = log_w.shape
        order = (*tree.cliques[c].separator, *tree.cliques[c].residual)
        children = np.zeros((*shape, d, d))
        for b in below[c]:
            separator = tree.cliques[b].separator
            children += _spread(curvatures[b], separator, order, graph.cardinalities, 2).reshape(*shape, d, d)
        parts = [printed(center, log_w[s], G[s], children[s].sum(0), ordering) for s in range(shape[0])]
        sums.append((np.array([part.log_z for part in parts]), np.array([part.mean for part in parts])))
        curvatures.append(np.array([part.curvature for part in parts]))
        if parent < 0:
            log_z, mean, sigma = log_z + parts[0].log_z, mean + parts[0].mean, sigma + parts[0].curvature
    log_z, mean = _with_constants(graph, F, scores, log_z, mean)
    return PartitionBound(center, log_z, mean, sigma)


def _with_constants(
    graph: FactorGraph, F: FloatArray, scores: FloatArray, log_z: float, mean: FloatArray
) -> tuple[float, FloatArray]:
    """Add the factors that have one entry only."""
    alone = graph.offsets[graph.tree().constants]
    return log_z + float(scores[alone].sum()), mean + F[alone].sum(0)


def _cliques(graph: FactorGraph, F: FloatArray, scores: FloatArray, sums: list[tuple[FloatArray, FloatArray]]) -> Any:
    """For each clique, children first: scores (separator, residual), features (separator, residual, d), and its parent.

    `sums` must have got the log Z and the mean of every clique before.
    """
    tree = graph.tree()
    cliques, d = tree.elimination.cliques, F.shape[1]
    tables: list[list[int]] = [[] for _ in cliques]
    for k, home in enumerate(tree.homes):
        if home >= 0:
            tables[home].append(k)
    below = _children(cliques)
    for c, clique in enumerate(cliques):
        order = (*clique.separator, *clique.residual)
        shape = tuple(graph.cardinalities[list(order)].tolist())
        log_w, G = np.zeros(shape), np.zeros((*shape, d))
        for k in tables[c]:
            part = slice(graph.offsets[k], graph.offsets[k + 1])
            log_w = log_w + _spread(scores[part], graph.factors[k], order, graph.cardinalities, 0)
            G = G + _spread(F[part], graph.factors[k], order, graph.cardinalities, 1)
        for b in below[c]:
            separator = cliques[b].separator
            log_w = log_w + _spread(sums[b][0], separator, order, graph.cardinalities, 0)
            G = G + _spread(sums[b][1], separator, order, graph.cardinalities, 1)
        rows = int(np.prod(graph.cardinalities[list(clique.separator)], dtype=np.int64))
        yield log_w.reshape(rows, -1), G.reshape(rows, -1, d), clique.parent


def _children(cliques: Sequence[Clique]) -> list[list[int]]:
    below: list[list[int]] = [[] for _ in cliques]
    for c, clique in enumerate(cliques):
        if clique.parent >= 0:
            below[clique.parent].append(c)
    return below


def _spread(
    table: FloatArray, scope: tuple[int, ...], order: tuple[int, ...], cardinalities: IntArray, extra: int
) -> FloatArray:
    """A flat table over `scope`, with `extra` axes of features, as an array with an axis for each variable in `order`."""
    shape = tuple(cardinalities[list(scope)].tolist())
    full = table.reshape(*shape, *table.shape[table.ndim - extra :])
    position = {v: i for i, v in enumerate(order)}
    kept = [v for v in scope if v in position]  # the others have one state
    full = full.reshape(*(cardinalities[v] for v in kept), *full.shape[len(shape) :])
    axes = np.argsort([position[v] for v in kept])
    full = full.transpose(*axes, *range(len(kept), full.ndim))
    wanted = [1] * len(order)
    for v in kept:
        wanted[position[v]] = int(cardinalities[v])
    return np.broadcast_to(
        full.reshape(*wanted, *full.shape[len(kept) :]),
        (*cardinalities[list(order)].tolist(), *full.shape[len(kept) :]),
    )

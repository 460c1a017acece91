"""Kernels over many examples, split over threads: what one graph and many sentences share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import NumericalError
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels import arborescence, draws, sums as kernels
from ..kernels.graphs import Graphs

#: Bytes that sums take for each pair of vertices of one graph, at most, on each thread.
BYTES_PER_PAIR = 240
#: Steps of random walks for one tree, in which sums would have drawn it, less the cube of the number of vertices.
FEW_STEPS = 10_000


class TreeSums(NamedTuple):
    """log Z of each example (-inf if it has no tree), and of all edges the probabilities and their derivatives."""

    log_z: FloatArray
    marginals: FloatArray
    products: FloatArray


def _ranges(graphs: Graphs, workers: Workers, operations: float) -> list[tuple[int, int]]:
    """Ranges of examples with about equal sums of cubes of their sizes, and memory for the largest on every thread."""
    n = int(graphs.sizes.max(initial=0)) + 1
    threads = min(workers.threads, len(graphs.sizes))
    check_memory(f"sums over trees of {n} vertices", BYTES_PER_PAIR * n**2 * threads, "Use fewer vertices, or n_jobs=1")
    work = np.concatenate(([0.0], np.cumsum((graphs.sizes + 1.0) ** 3)))
    return Workers.balanced(work, operations * float(work[-1]))


def log_partitions(graphs: Graphs, values: FloatArray, workers: Workers) -> FloatArray:
    """log Z of each example; -inf if it has no tree."""
    log_z = np.empty(len(graphs.sizes))
    workers.run(kernels.log_partitions, [(graphs, values, lo, hi, log_z) for lo, hi in _ranges(graphs, workers, 2.0)])
    return log_z


def infer(graphs: Graphs, values: FloatArray, workers: Workers, direction: FloatArray | None = None) -> TreeSums:
    """log Z and marginals, and if a direction is given, derivatives of the marginals along it."""
    log_z, marginals = np.empty(len(graphs.sizes)), np.empty_like(values)
    along = np.empty(0) if direction is None else direction
    products = np.empty_like(along)
    given, ranges = (graphs, values, along), _ranges(graphs, workers, 5.0)
    workers.run(kernels.infer, [(*given, lo, hi, log_z, marginals, products) for lo, hi in ranges])
    return TreeSums(log_z, marginals, products)


def best_heads(graphs: Graphs, values: FloatArray, workers: Workers) -> tuple[IntArray, NDArray[np.bool_]]:
    """The heads of all vertices beside the root in the best tree, and whether there is one, of each example."""
    heads, found = np.empty(graphs.vertices[-1], np.int64), np.empty(len(graphs.sizes), np.bool_)
    ranges = _ranges(graphs, workers, 1.0)
    workers.run(arborescence.best, [(graphs, values, lo, hi, heads, found) for lo, hi in ranges])
    return heads, found


def draw_heads(graphs: Graphs, values: FloatArray, workers: Workers, size: int, rng: np.random.Generator) -> IntArray:
    """The heads of all vertices beside the root in `size` trees of each example, of which none is without a tree."""
    heads = np.empty((size, int(graphs.vertices[-1])), np.int64)
    seed = int(rng.integers(0, 2**63 - 1))
    n, count = int(graphs.sizes.max(initial=0)) + 1, size * len(graphs.sizes)
    if not count:
        return heads
    ranges = Workers.ranges(count, 100.0 * n * count)
    given = (graphs, values, seed, FEW_STEPS + n**3)
    if any(workers.run(draws.sample, [(*given, lo, hi, heads) for lo, hi in ranges])):
        raise NumericalError("a tree could not be drawn, although there are some: scale the potentials down")
    return heads

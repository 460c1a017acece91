"""Covariances of the entries of a factor graph's tables, as products with vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray
from ..kernels import junction_tree_tangent as kernels
from ..kernels.clique_layout import Tables
from .factor_graph import FactorGraph
from .junction_tree import JunctionTree


class EntryCovariance:
    """The Hessian of log Z in the potentials of a factor graph: the covariance of which entries occur.

    A product is the derivative of all marginals along a direction, computed by differentiating the junction tree. It is
    exact and costs about twice as much as the marginals.

    Parameters
    ----------
    graph : FactorGraph
    potentials : array of shape (graph.size,)
        -inf forbids.
    options
        `memory_limit`, see `FactorGraph.tree`.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.structures import FactorGraph
    >>> from partita.graph.structure.covariance import EntryCovariance
    >>> EntryCovariance(FactorGraph([2], [(0,)]), np.zeros(2)).product(np.array([1.0, 0.0]))
    array([ 0.25, -0.25])
    """

    graph: FactorGraph
    tree: JunctionTree
    messages: NDArray[Any]
    beliefs: NDArray[Any]

    def __init__(self, graph: FactorGraph, potentials: FloatArray, **options: float) -> None:
        self.graph, self.tree = graph, graph.tree(**options)
        self.potentials: FloatArray = graph.potentials(potentials)[0]
        tree = self.tree
        self.messages, self.beliefs, marginals = np.empty(tree.n_messages), np.zeros(tree.n_messages), np.zeros(graph.size)
        self.ranges: list[tuple[int, int]] = tree.ranges()
        tree.collect(self.potentials, self.messages, workers=graph.workers)
        tree.distribute_all(self.potentials, self.messages, self.beliefs, marginals, graph.workers)

    def product(self, direction: FloatArray) -> FloatArray:
        """Covariances with the sum of the entries of `direction`, one for each entry; of all examples at once."""
        tree, out = self.tree, np.zeros(self.graph.size)
        direction = np.ascontiguousarray(direction, dtype=np.float64)
        tables = Tables(self.potentials, self.messages)
        tangent = Tables(direction, np.empty(tree.n_messages))
        product = Tables(out, np.zeros(tree.n_messages))

        def run(lo: int, hi: int) -> None:
            kernels.collect_tangent(tree.layout, tables, lo, hi, tangent)
            kernels.distribute_tangent(tree.layout, tables, tangent, self.beliefs, lo, hi, product)

        self.graph.workers.run(run, self.ranges)
        return out

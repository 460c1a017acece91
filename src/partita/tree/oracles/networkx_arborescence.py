"""Best directed trees by networkx: slow, and independent of our own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...inference.oracle import Answer, checked
from ..structure.spanning_tree import SpanningTree
from .answer import checked_answer


class NetworkxArborescenceOracle:
    """The best tree from the root of a directed graph, by ``networkx.maximum_spanning_arborescence``.

    With ``single_root`` it is run once for each vertex that can be the root's only dependent.

    Parameters
    ----------
    structure : SpanningTree
        Directed.
    """

    structure: SpanningTree

    polytope, delta = "exact", 0.0

    def __init__(self, structure: SpanningTree) -> None:
        if not structure.directed:
            raise ValueError("an arborescence is directed: build the structure with directed=True, or use ScipyTreeOracle")
        self.structure, self._networkx = structure, _networkx()

    def __call__(self, potentials: FloatArray) -> Answer:
        w = checked(potentials, self.structure.n_edges, "weights, one for each edge")
        heads, dependents = self.structure.edges.T
        usable = (w > -np.inf) & (dependents != self.structure.root)
        at_root = usable & (heads == self.structure.root)
        if self.structure.single_root:
            choices = [usable & (~at_root | (dependents == d)) for d in dependents[at_root]]
        else:
            choices = [usable]
        found = [y for y in (self._best(w, choice) for choice in choices) if y is not None]
        if not found:
            raise ValueError("there is no tree from the root: potentials forbid every one, or the graph has none")
        best = max(found, key=lambda y: float(w[y == 1].sum()))
        return checked_answer(self.structure, best, w, "networkx")

    def _best(self, w: FloatArray, usable: Any) -> Any:
        """Zeros and ones for edges, of which only some are usable; None if there is no tree."""
        nx, edges = self._networkx, self.structure.edges
        graph = nx.DiGraph()
        graph.add_nodes_from(range(self.structure.n_vertices))
        numbers = np.flatnonzero(usable).tolist()
        graph.add_edges_from((*edges[e].tolist(), {"weight": float(w[e]), "number": e}) for e in numbers)
        try:
            tree = nx.maximum_spanning_arborescence(graph, preserve_attrs=True)
        except nx.NetworkXException:
            return None
        y = np.zeros(len(w), np.int8)
        y[[number for _, _, number in tree.edges(data="number")]] = 1
        return y


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise ImportError("NetworkxArborescenceOracle needs networkx: pip install 'partita[planar]'") from None
    return networkx

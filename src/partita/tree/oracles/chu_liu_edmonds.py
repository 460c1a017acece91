"""Best directed trees by our own kernel: SciPy and rustworkx have none, that of networkx is for small graphs."""

from __future__ import annotations

from ...core.results import FloatArray
from ...inference.oracle import Answer, checked
from ..structure.spanning_tree import SpanningTree
from .answer import checked_answer


class ChuLiuEdmondsOracle:
    """The best tree from the root of a directed graph, by the algorithm of Chu, Liu and Edmonds.

    With ``single_root`` edges at the root are compared by a rank below all others first: a tree with the fewest of them is
    best, and by its weight among those. That is the reweighting of Stanojević and Cohen (2021) with an infinite penalty.

    Parameters
    ----------
    structure : SpanningTree
        Directed.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.tree import SpanningTree
    >>> from partita.tree.oracles import ChuLiuEdmondsOracle
    >>> graph = SpanningTree(3, directed=True)
    >>> graph.edges.tolist()
    [[0, 1], [2, 1], [0, 2], [1, 2]]
    >>> ChuLiuEdmondsOracle(graph)(np.array([1.0, 3.0, 0.0, 3.0])).point
    array([1., 0., 0., 1.])
    """

    polytope, delta = "exact", 0.0

    def __init__(self, structure: SpanningTree) -> None:
        if not structure.directed:
            raise ValueError("the algorithm is for directed graphs; for undirected ones use ScipyTreeOracle")
        self.structure = structure

    def __call__(self, potentials: FloatArray) -> Answer:
        w = checked(potentials, self.structure.n_edges, "weights, one for each edge")
        return checked_answer(self.structure, self.structure.best(w[None])[0], w, "Chu-Liu-Edmonds")

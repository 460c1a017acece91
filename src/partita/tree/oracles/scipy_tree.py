"""Best spanning trees of undirected graphs by SciPy."""

from __future__ import annotations

from ...core.results import FloatArray
from ...inference.oracle import Answer, checked
from ..structure.spanning_tree import SpanningTree
from .answer import checked_answer


class ScipyTreeOracle:
    """The best tree of an undirected graph, by ``scipy.sparse.csgraph.minimum_spanning_tree``.

    Parameters
    ----------
    structure : SpanningTree
        Not directed.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.tree import SpanningTree
    >>> from partita.tree.oracles import ScipyTreeOracle
    >>> ScipyTreeOracle(SpanningTree(3))(np.array([0.0, -1.0, 2.0])).point
    array([1., 0., 1.])
    """

    polytope, delta = "exact", 0.0

    def __init__(self, structure: SpanningTree) -> None:
        if structure.directed:
            raise ValueError("SciPy finds best trees of undirected graphs; for directed ones use ChuLiuEdmondsOracle")
        self.structure = structure

    def __call__(self, potentials: FloatArray) -> Answer:
        w = checked(potentials, self.structure.n_edges, "weights, one for each edge")
        return checked_answer(self.structure, self.structure.best(w[None])[0], w, "scipy")

"""Graphs drawn in the plane: their faces, and the angles at which edges follow each other."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from ...core.results import FloatArray, IntArray
from ..structure.factor_graph import FactorGraph


class PlanarLayout:
    """The pairs of a graph of variables with two states as edges of a drawing.

    Half-edge h of m edges goes along edge h, half-edge m + h against it.

    Parameters
    ----------
    graph : FactorGraph
        Two states, and factors of at most two variables.
    positions : array of shape (variables, 2), optional
        Places of the variables in the plane, such that no two edges cross when drawn as straight lines. Default: those of a
        grid numbered row by row, if the graph is part of one; else networkx finds them.
    """

    ends: IntArray
    edge_of: IntArray

    def __init__(self, graph: FactorGraph, positions: ArrayLike | None = None) -> None:
        if (graph.cardinalities != 2).any() or np.diff(graph.scope_offsets).max(initial=0) > 2:
            raise ValueError("planar Ising models have variables with two states and factors of at most two variables")
        if graph.n_examples > 1:
            raise ValueError("planar Ising models are taken one at a time, not as a union")
        self.n_variables: int = graph.n_variables
        self.size: int = graph.size
        self._tables = _tables(graph)
        scopes = [sorted(scope) for scope in graph.factors if len(scope) == 2]
        pairs = np.array(scopes, dtype=np.int64).reshape(-1, 2)
        self.ends, self.edge_of = np.unique(pairs, axis=0, return_inverse=True)
        self.edge_of = self.edge_of.ravel()
        self.n_edges: int = len(self.ends)
        self.tails: IntArray = np.concatenate([self.ends[:, 0], self.ends[:, 1]])
        self.heads: IntArray = np.concatenate([self.ends[:, 1], self.ends[:, 0]])
        self.reverse: IntArray = np.roll(np.arange(2 * self.n_edges), self.n_edges)
        self.places: FloatArray = self._places(positions)
        self.angles: FloatArray = self._angles(self.places)
        self.faces: IntArray = self._faces()

    def _places(self, positions: ArrayLike | None) -> FloatArray:
        n = self.n_variables
        if positions is None:
            found = _grid(self.ends, n)
            return _drawn(self.ends, n) if found is None else found
        return check_positions(positions, n)

    def _angles(self, places: FloatArray) -> FloatArray:
        way = places[self.heads] - places[self.tails]
        if self.n_edges and not (np.abs(way).max(axis=1) > 0.0).all():
            raise ValueError("positions put two neighbours in one place")
        return np.asarray(np.arctan2(way[:, 1], way[:, 0]))

    @cached_property
    def around(self) -> tuple[IntArray, IntArray]:
        """Half-edges sorted by the vertex that they leave, counter-clockwise, and where those of each vertex begin."""
        order = np.lexsort((self.angles, self.tails))
        counts = np.bincount(self.tails, minlength=self.n_variables)
        return order, np.concatenate(([0], np.cumsum(counts)))

    def turn(self, first: IntArray, then: IntArray) -> FloatArray:
        """The angle by which a way turns to the left from one half-edge to the next; turning back is to the right."""
        turned = self.angles[then] - self.angles[first]
        turned = turned - 2.0 * np.pi * np.rint(turned / (2.0 * np.pi))
        return np.where(then == self.reverse[first], -np.pi, turned)

    def _faces(self) -> IntArray:
        """The face to the left of every half-edge. Components of the graph have an outer face each."""
        size = 2 * self.n_edges
        if not size:
            return np.zeros(0, np.int64)
        order, starts = self.around
        place = np.empty(size, np.int64)
        place[order] = np.arange(size)
        lo, hi = starts[self.heads], starts[self.heads + 1]
        follow = order[lo + (place[self.reverse] - 1 - lo) % (hi - lo)]  # from the way back, the next one clockwise
        count, faces = connected_components(sp.csr_array((np.ones(size), (np.arange(size), follow)), shape=(size, size)))
        parts, _ = connected_components(self.adjacency())
        vertices = self.n_variables
        turned = np.bincount(faces, weights=self.turn(np.arange(size), follow)) / (2.0 * np.pi)
        # Euler's formula, in which a vertex without edges counts as a face less; and every face is walked around once.
        alone = int((np.diff(starts) == 0).sum())
        if vertices - self.n_edges + count + alone != 2 * parts or (np.abs(np.abs(turned) - 1.0) > 1e-6).any():
            raise ValueError("edges cross, or lie on each other, when drawn as straight lines between the positions")
        return np.asarray(faces, dtype=np.int64)

    def adjacency(self) -> Any:
        """Which variables are neighbours, as a sparse matrix of ones."""
        n = self.n_variables
        return sp.csr_array((np.ones(2 * self.n_edges), (self.tails, self.heads)), shape=(n, n))

    @cached_property
    def field_matrix(self) -> Any:
        """From potentials to half of how much each variable prefers its second state: (variables, entries)."""
        _, single, singles, double, doubles = self._tables
        rows, columns, values = [single, single], [singles, singles + 1], [-0.5, 0.5]
        for axis, signs in ((0, (-1, -1, 1, 1)), (1, (-1, 1, -1, 1))):
            for k, sign in enumerate(signs):
                rows, columns, values = [*rows, double[:, axis]], [*columns, doubles + k], [*values, 0.25 * sign]
        data = np.concatenate([np.full(len(part), value) for part, value in zip(rows, values, strict=True)])
        where = np.concatenate(rows), np.concatenate(columns)
        return sp.csr_array((data, where), shape=(self.n_variables, self.size))

    def couplings(self, potentials: FloatArray) -> tuple[FloatArray, float]:
        """The number J of every edge, and c, such that the score is c plus the sum of J s_i s_j, with s = -1 or 1."""
        u = np.asarray(potentials, dtype=np.float64)
        if u.shape != (self.size,) or not np.isfinite(u).all():
            raise ValueError(f"a planar Ising model takes finite potentials, {self.size} of them")
        constants, _, singles, _, doubles = self._tables
        fields = self.field_matrix @ u
        worst = int(np.argmax(np.abs(fields)))
        if abs(fields[worst]) > 1e-9 * (1.0 + float(np.abs(u).max(initial=0.0))):
            raise ValueError(
                f"planar Ising models have no fields: potentials must not change when all states do, but variable {worst} "
                f"prefers a state by {2.0 * abs(fields[worst]):.3g}"
            )
        u00, u01, u10, u11 = (u[doubles + k] for k in range(4))
        J = np.bincount(self.edge_of, weights=0.25 * (u00 + u11 - u01 - u10), minlength=self.n_edges)
        total = u[constants].sum() + 0.5 * (u[singles] + u[singles + 1]).sum() + 0.25 * (u00 + u01 + u10 + u11).sum()
        return np.asarray(J, dtype=np.float64), float(total)

    def point(self, agreement: FloatArray) -> FloatArray:
        """Tables in which states are equally likely, and those of an edge are equal on average by `agreement`, -1 to 1."""
        constants, _, singles, _, doubles = self._tables
        out = np.zeros(self.size)
        out[constants] = 1.0
        for k in range(2):
            out[singles + k] = 0.5
        for k, sign in enumerate((1.0, -1.0, -1.0, 1.0)):
            out[doubles + k] = 0.25 * (1.0 + sign * agreement[self.edge_of])
        return out


def _tables(graph: FactorGraph) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Places of tables without variables; variables and places of those of one; variables and places of those of two."""
    scopes, offsets = graph.factors, graph.offsets
    none, one, two = ([k for k, scope in enumerate(scopes) if len(scope) == size] for size in range(3))
    single = np.array([scopes[k][0] for k in one], dtype=np.int64)
    double = np.array([scopes[k] for k in two], dtype=np.int64).reshape(-1, 2)
    return offsets[none], single, offsets[one], double, offsets[two]


def check_positions(positions: ArrayLike, n: int) -> FloatArray:
    """Places of n variables."""
    places = np.asarray(positions, dtype=np.float64)
    if places.shape != (n, 2) or not np.isfinite(places).all():
        raise ValueError(f"positions must be finite numbers of shape ({n}, 2), one place for each variable")
    return places


def _grid(ends: IntArray, n: int) -> FloatArray | None:
    """Rows and columns, if all edges join neighbours of a grid that is numbered row by row."""
    steps = ends[:, 1] - ends[:, 0]
    width = int(steps.max(initial=1))
    width = n if width == 1 else width
    if not (((steps == 1) & (ends[:, 0] // width == ends[:, 1] // width)) | (steps == width)).all():
        return None
    number = np.arange(n)
    return np.column_stack([number % width, -(number // width)]).astype(np.float64)


def _drawn(ends: IntArray, n: int) -> FloatArray:
    """A drawing by networkx."""
    try:
        import networkx as nx
    except ImportError:
        raise ImportError(
            "to draw a planar graph that is no grid, networkx is needed: pip install 'partita[planar]', or give positions"
        ) from None
    graph: Any = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(ends.tolist())
    planar, embedding = nx.check_planarity(graph)
    if not planar:
        raise ValueError("the graph is not planar: it cannot be drawn without edges that cross")
    places = nx.combinatorial_embedding_to_pos(embedding)
    return np.array([places[v] for v in range(n)], dtype=np.float64)

"""Examples on the same graph, and the layout of the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray, IntArray
from ..features import Attribute, EdgeMap
from ..structure.b_matching import BMatching
from ..structure.bipartite import BipartiteMatching
from ..structure.general import Matching, symmetric

BoolArray = NDArray[np.bool_]
#: What to do with vertices that stay alone.
UNMATCHED = ". Where rows or columns may stay alone, set allow_unmatched=True"


@dataclass(frozen=True)
class Reading:
    """How examples are read: the parameters of the estimator that say so."""

    bipartite: bool
    allow_unmatched: bool
    n_jobs: int | None
    b: int | tuple[int, int] = 1  # edges of each vertex, perhaps of rows and of columns
    attributes: tuple[Attribute, ...] | None = None  # those of a fit; else they are learned
    forbidden: Any = None  # a mask for all examples, or a function of an example that gives one or None


@dataclass(frozen=True)
class Layout:
    """The parameters: the shape of those of edges, and how many those of staying alone are, of rows (or of vertices of one
    kind) and of columns. `kind` is ``"edges"``, ``"nodes"`` or ``"attributes"``, which the former belong to."""

    kind: str
    shape: tuple[int, ...]
    alone: tuple[int, int]
    attributes: tuple[Attribute, ...] = ()

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Parameters of edges, of staying alone of rows, and of columns."""
        first = int(np.prod(self.shape))
        edges, rows, columns = np.split(np.array(theta), [first, first + self.alone[0]])
        return edges.reshape(self.shape), rows, columns

    def describe(self) -> str:
        """For messages."""
        more = f", and {self.alone[0]} and {self.alone[1]} of staying alone" if any(self.alone) else ""
        return f"{self.kind} with {self.shape} features{more}"


@dataclass(frozen=True)
class Batch:
    """Examples on the same graph: their places in the data, the structure, the map from parameters to weights of edges, and
    which edges are forbidden, (examples, edges), if any are. Sides without a vertex have one here, to which all is
    forbidden: `sides` are the numbers of rows and columns as they came."""

    places: list[int]
    structure: BipartiteMatching | Matching | BMatching
    features: EdgeMap
    forbidden: BoolArray | None
    sides: tuple[int, int] | None = None

    def outputs(self, found: IntArray) -> IntArray:
        """Matchings as they are given to users, without vertices that were not there: partners in the last axis, or tables
        of zeros and ones."""
        if isinstance(self.structure, BMatching):
            return self.matrices(found.reshape(-1, self.structure.n_edges)).astype(np.int64)
        return found if self.sides is None else found[..., : self.sides[0]]

    def matrices(self, values: Any) -> FloatArray:
        """Numbers of edges as they are given to users."""
        s = self.structure
        if isinstance(s, BMatching) and s.complete:
            return symmetric(values, s.ends, s.n_vertices)
        given = s.as_given(values)
        return given if self.sides is None else given[:, : self.sides[0], : self.sides[1]]

    def right(self, W: FloatArray, observed: IntArray) -> BoolArray:
        """What the best matchings have right: partners, or edges that can be in the set or not."""
        same: Any = self.structure.best(W) == observed
        if isinstance(self.structure, BMatching):
            return np.asarray(same[W.reshape(same.shape) > -np.inf])
        return np.asarray(self.outputs(same), dtype=bool)

    def weights(self, theta: FloatArray) -> FloatArray:
        """Weights of edges, -inf where they are forbidden."""
        W = self.features.forward(theta)
        return W if self.forbidden is None else np.where(self.forbidden, -np.inf, W)

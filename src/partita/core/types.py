"""What users pass, and what comes back: names for the types in public signatures.

Arrays that are returned have the types of `results` (`FloatArray`, `IntArray`); labels that are returned are `LabelArray`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .contracts import AnySolver

__all__ = [
    "ArrayLike",
    "Frame",
    "GraphLike",
    "LabelArray",
    "Labels",
    "MatchingLike",
    "MatrixLike",
    "NetworkX",
    "Pairs",
    "RandomState",
    "SampleWeight",
    "SolverLike",
    "SparseLike",
    "TableLike",
]


class SparseLike(Protocol):
    """A sparse matrix or array of SciPy."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nnz(self) -> int: ...
    def tocsr(self) -> Any: ...


class Frame(Protocol):
    """A data frame: of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, int]: ...


class NetworkX(Protocol):
    """A graph of networkx."""

    @property
    def nodes(self) -> Any: ...
    @property
    def edges(self) -> Any: ...


#: A matrix of features, (n_samples, n_features): dense, sparse, or a data frame.
MatrixLike: TypeAlias = ArrayLike | SparseLike | Frame
#: Rows of named values: a data frame, a dict of columns, a list of dicts, or an array.
TableLike: TypeAlias = ArrayLike | Frame | Mapping[Any, ArrayLike] | Sequence[Mapping[Any, object]]
#: One label for each example; where an estimator says so, a set of labels, or None for any.
Labels: TypeAlias = ArrayLike | Sequence[object]
#: Labels that come back: strings, integers or booleans, as they were given.
LabelArray: TypeAlias = NDArray[Any]
#: A weight for each example; None is one for all.
SampleWeight: TypeAlias = ArrayLike | None
#: Pairs of nodes: a list, an array of two columns, or a graph of networkx.
Pairs: TypeAlias = Sequence[tuple[Hashable, Hashable]] | ArrayLike | NetworkX
#: A graph with features: ``(node_features, edges)``, ``(node_features, edges, edge_features)``, or a dict of such parts.
GraphLike: TypeAlias = tuple[MatrixLike, ArrayLike] | tuple[MatrixLike, ArrayLike, MatrixLike] | Mapping[str, Any]
#: An example to match: features of edges, (features, n, m), or a dict of arrays.
MatchingLike: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
#: Where random numbers come from: a seed, or what gives them; None for ones that differ from run to run.
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None
#: A solver by its name, or as an object.
SolverLike: TypeAlias = str | AnySolver

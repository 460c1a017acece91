"""Tables of factors whose weights are shared by all factors of a type."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.arrays.pieces import take_pieces
from ...core.arrays.sparse import sound_csr
from ...core.results import FloatArray, IntArray
from ..structure.factor_graph import FactorGraph
from ..structure.mixture import Part


@dataclass(frozen=True)
class TableType:
    """Factors that share weights: the table of factor k is ``F_k W B'``.

    Parameters
    ----------
    factors : array of int
        Numbers of the factors. Their tables have the same number of entries.
    features : array or sparse matrix of shape (n_factors, n_features), optional
        F, a row for each of these factors. Default: one constant feature, so that all tables are equal. The identity gives
        each factor weights of its own.
    basis : array of shape (n_entries, n_statistics), optional
        B, what the weights of a feature mean for the entries of a table. Default: a weight for every entry.
    parameters : int array of shape (n_features, n_statistics), optional
        Where W is in theta. Default: after the types before. Types, and places of one type, may have weights in common.
    """

    factors: IntArray
    features: Any = None
    basis: FloatArray | None = None
    parameters: IntArray | None = None


class TiedTables:
    """The linear map from weights to the potentials of a factor graph: a few matrix products for each type of factor.

    Parameters
    ----------
    graph : FactorGraph
        One graph, or a union of many.
    types : sequence of TableType
        Every factor belongs to at most one; the tables of others stay zero.
    size : int
        Least number of parameters; types may not need them all.

    Attributes
    ----------
    size : int
        Number of parameters.
    places : list of int arrays
        Where the weights W of each type are in theta.

    Examples
    --------
    Two edges with one weight for agreement, and a variable with a feature of its own:

    >>> import numpy as np
    >>> from partita.features import TableType, TiedTables
    >>> from partita.structures import FactorGraph
    >>> graph = FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0,)])
    >>> agree = TableType(np.array([0, 1]), basis=np.array([[1.0], [0.0], [0.0], [1.0]]))
    >>> tables = TiedTables(graph, [agree, TableType(np.array([2]), features=np.array([[2.0]]))])
    >>> graph.tables(tables.forward(np.array([0.5, 0.0, 3.0])))
    [array([[0.5, 0. ],
           [0. , 0.5]]), array([[0.5, 0. ],
           [0. , 0.5]]), array([0., 6.])]
    >>> tables.adjoint(np.ones(graph.size))
    array([4., 2., 2.])
    """

    def __init__(self, graph: FactorGraph, types: Sequence[TableType], size: int = 0) -> None:
        self.graph = graph
        self.parts: list[_Part] = []
        sizes = np.diff(graph.offsets)
        seen = np.zeros(graph.n_factors, bool)
        least, size = size, 0
        for t, kind in enumerate(types):
            factors = np.asarray(kind.factors, np.int64)
            if factors.ndim != 1 or not len(factors) or factors.min() < 0 or factors.max() >= graph.n_factors:
                raise ValueError(f"factors of type {t} must be numbers below {graph.n_factors}, at least one")
            entries = int(sizes[factors[0]])
            if (sizes[factors] != entries).any():
                raise ValueError(f"factors of type {t} must have tables of one size, got {np.unique(sizes[factors])}")
            if seen[factors].any() or len(np.unique(factors)) < len(factors):
                raise ValueError(f"factors of type {t} must not belong to two types, nor occur twice")
            seen[factors] = True
            features = _features(t, kind.features, len(factors))
            basis = None if kind.basis is None else np.ascontiguousarray(kind.basis, dtype=np.float64)
            if basis is not None and (basis.ndim != 2 or len(basis) != entries or not np.isfinite(basis).all()):
                raise ValueError(f"basis of type {t} must be finite with {entries} rows, one per entry; got {basis.shape}")
            shape = (1 if features is None else features.shape[1], entries if basis is None else basis.shape[1])
            if kind.parameters is None:
                parameters = size + np.arange(shape[0] * shape[1]).reshape(shape)
            else:
                parameters = np.asarray(kind.parameters, np.int64)
                if parameters.shape != shape or (parameters.size and parameters.min() < 0):
                    raise ValueError(f"parameters of type {t} must be numbers of shape {shape}, got {parameters.shape}")
            size = max(size, int(parameters.max(initial=-1)) + 1)
            places = graph.offsets[factors][:, None] + np.arange(entries)
            self.parts.append(_Part(places, features, basis, parameters))
        size = max(size, least)
        self.size: int = size
        if not size:
            raise ValueError("types must have at least one weight")

    def forward(self, theta: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """The potentials of `theta`."""
        flat = np.zeros(self.graph.size) if out is None else out
        for part in self.parts:
            flat[part.places] = part.tables(theta[part.parameters])
        return flat

    def adjoint(self, residual: FloatArray) -> FloatArray:
        """The transpose: from a number for each entry of each table to one for each parameter."""
        out = np.zeros(self.size)
        for part in self.parts:
            R = residual[part.places]
            out += part.add(R if part.basis is None else R @ part.basis, self.size, squared=False)
        return out

    def squared(self, residual: FloatArray) -> FloatArray:
        """The transpose of the map with every number of it squared: which parameters have a part in which entries."""
        out = np.zeros(self.size)
        for part in self.parts:
            R = residual[part.places]
            out += part.add(R if part.basis is None else R @ part.basis**2, self.size, squared=True)
        return out

    def variances(self, marginals: FloatArray, weights: FloatArray) -> FloatArray:
        """Sums over factors of `weights` times the variance of each statistic, as if factors were independent.

        `marginals` are probabilities of entries, `weights` has a number for each factor entry too.
        """
        out = np.zeros(self.size)
        for part in self.parts:
            P, w = marginals[part.places], weights[part.places[:, :1]]
            mean, square = (P, P) if part.basis is None else (P @ part.basis, P @ part.basis**2)
            out += part.add(w * np.maximum(square - mean**2, 0.0), self.size, squared=True)
        return out

    @cached_property
    def _rows(self) -> list[tuple[IntArray, IntArray]]:
        """Of each type, its factors' places in the order of their examples, and where those of each example begin."""
        found, numbers = [], np.arange(self.graph.n_examples + 1)
        for kind in self.parts:
            examples = self.graph.factor_examples[np.searchsorted(self.graph.offsets, kind.places[:, 0])]
            order = np.argsort(examples, kind="stable")
            found.append((order, np.searchsorted(examples[order], numbers)))
        return found

    def take(self, part: Part[FactorGraph]) -> TiedTables:
        """The map to the factors of some examples."""
        own = copy(self)
        own.graph, own.parts = part.graph, []
        own.__dict__.pop("matrix", None)
        own.__dict__.pop("_rows", None)
        for kind, (order, ends) in zip(self.parts, self._rows, strict=True):
            rows = np.sort(order[take_pieces(ends, part.examples)[1]])
            if not len(rows):
                continue
            within = np.searchsorted(part.factors, np.searchsorted(self.graph.offsets, kind.places[rows, 0]))
            places = part.graph.offsets[within][:, None] + np.arange(kind.places.shape[1])
            own.parts.append(replace(kind, places=places, features=None if kind.features is None else kind.features[rows]))
        return own

    def split(self, parts: Sequence[Part[FactorGraph]]) -> list[TiedTables]:
        """The map to the factors of each example; features are not copied."""
        within = np.empty(self.graph.n_factors, np.int64)
        for part in parts:
            within[part.factors] = np.arange(len(part.factors))
        out = [copy(self) for _ in parts]
        for own, part in zip(out, parts, strict=True):
            own.graph, own.parts = part.graph, []
        for kind in self.parts:
            numbers = np.searchsorted(self.graph.offsets, kind.places[:, 0])
            examples = self.graph.factor_examples[numbers]
            order = np.argsort(examples, kind="stable")
            ends = np.searchsorted(examples[order], np.arange(len(parts) + 1)).tolist()
            for own, (lo, hi) in zip(out, itertools.pairwise(ends), strict=True):
                if lo == hi:
                    continue
                rows = order[lo:hi]
                places = own.graph.offsets[within[numbers[rows]]][:, None] + np.arange(kind.places.shape[1])
                together = slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] == hi - lo - 1 else rows
                own.parts.append(
                    replace(kind, places=places, features=None if kind.features is None else kind.features[together])
                )
        return out

    def shares(self, theta: FloatArray, factor: int, entries: IntArray) -> FloatArray:
        """What each feature of a factor adds to some of its potentials: (features, entries)."""
        for part in self.parts:
            row = np.flatnonzero(part.places[:, 0] == self.graph.offsets[factor])
            if len(row):
                W = theta[part.parameters]
                tables = W if part.basis is None else W @ part.basis.T
                chosen = tables[:, entries - self.graph.offsets[factor]]
                if part.features is None:
                    return np.asarray(chosen)
                F = part.features[row[:1]]
                return np.asarray(np.ravel(F.toarray() if sp.issparse(F) else F)[:, None] * chosen)
        return np.zeros((0, len(entries)))

    @cached_property
    def matrix(self) -> sp.csr_matrix:
        """The map as a sparse matrix, (entries, parameters); for products with many vectors at once."""
        rows, columns, values = [], [], []
        for part in self.parts:
            n, entries = part.places.shape
            F = sp.csr_matrix(np.ones((n, 1)) if part.features is None else part.features)
            B = sp.csr_matrix(np.eye(entries) if part.basis is None else part.basis)
            K = sp.kron(F, B, format="coo")  # rows: factor by entry, columns: feature by statistic
            rows.append(part.places.ravel()[K.row])
            columns.append(part.parameters.ravel()[K.col])
            values.append(K.data)
        cells = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return sp.csr_matrix(cells, shape=(self.graph.size, self.size))


@dataclass(frozen=True)
class _Part:
    places: IntArray  # (factors, entries)
    features: Any
    basis: FloatArray | None
    parameters: IntArray  # (features, statistics)

    def tables(self, W: FloatArray) -> FloatArray:
        if self.basis is None:
            return np.asarray(W if self.features is None else self.features @ W)
        if self.features is None:
            return np.asarray(W @ self.basis.T)
        return np.asarray((self.features @ W) @ self.basis.T)

    def add(self, R: FloatArray, size: int, squared: bool) -> FloatArray:
        """Sum over factors with their features, or with the squares of those, into parameters."""
        if self.features is None:
            sums = R.sum(0, keepdims=True)
        elif squared:
            F = self.features
            sums = (F.multiply(F) if sp.issparse(F) else F * F).T @ R
        else:
            sums = self.features.T @ R
        out = np.bincount(self.parameters.ravel(), weights=np.asarray(sums).ravel(), minlength=size)
        return np.asarray(out, dtype=np.float64)


def _features(t: int, features: Any, count: int) -> Any:
    if features is None:
        return None
    matrix = (
        sp.csr_matrix(sound_csr(f"features of type {t}", features), dtype=np.float64)
        if sp.issparse(features)
        else np.ascontiguousarray(features, dtype=np.float64)
    )
    if matrix.ndim != 2 or matrix.shape[0] != count:
        raise ValueError(f"features of type {t} must have a row for each of its {count} factors, got {matrix.shape}")
    if not np.isfinite(matrix.data if sp.issparse(matrix) else matrix).all():
        raise ValueError(f"features of type {t} must be finite")
    return matrix

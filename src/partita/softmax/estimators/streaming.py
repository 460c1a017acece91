"""Training on data that arrive in pieces, or are too large to hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ...core import Solver
from ...core.parallel import blas_limit
from ...core.results import FloatArray, IntArray
from ...core.types import LabelArray, Labels, MatrixLike, RandomState, SampleWeight
from ...core.validation import check_weights
from ...estimators.data import plain_labels, sound_input, text_is_named
from ...estimators.seeded_solver import solver_seed
from ...solvers.stochastic.bound import StochasticBound, Stream
from .class_order import ClassOrder
from .problem import Model, linear

#: Numbers of X taken into memory at once.
CHUNK_NUMBERS = 4_000_000


@dataclass(frozen=True)
class Memory:
    """What a stream remembers from piece to piece, beside its weights. Never changed: the solver works on a copy."""

    stream: Stream
    layout: str  # of the flat parameters
    order: ClassOrder


@dataclass(frozen=True)
class Learned:
    """Where a stream of examples has led: coefficients and intercepts, from so many examples.

    `memory` is None before the first piece, and where the weights come from a fit or a file: the curvature then starts
    afresh.
    """

    coefficients: FloatArray
    intercepts: FloatArray
    seen: int
    memory: Memory | None


@dataclass(frozen=True)
class Learner:
    """Takes the pieces of a stream one after another, each in one pass of a solver's `stream`."""

    model: Model
    classes: LabelArray
    class_weight: Mapping[Any, float] | None
    solver: StochasticBound

    def absorb(self, before: Learned | None, X: Any, y: LabelArray, sample_weight: FloatArray | None) -> Learned:
        """What is known after one more piece, already checked; None is what is known before the first."""
        codes = positions(self.classes, y)
        self.model.check_prior(self.classes, codes)
        weights = self._weights(codes, sample_weight)
        memory = None if before is None else before.memory
        if before is not None and memory is not None and not weights.any():
            return before
        order = ClassOrder.after(memory.order if memory else None, codes[weights > 0.0], self.classes)
        objective: Any = self.model.likelihood(X, codes, len(self.classes), weights)
        features = linear(objective)
        layout = f"{type(features).__name__}, {objective.size}"
        stream = memory.stream if memory else None
        if before is None:
            theta = np.zeros(objective.size)
        else:
            theta = features.pack(before.coefficients, before.intercepts)
            if memory is None or memory.layout != layout:
                stream = Stream.after(self.solver, objective, theta, before.seen)
        with blas_limit(1):
            theta, stream = self.solver.stream(stream, objective, theta)
        coefficients, intercepts = features.unpack(theta)
        kept = np.ascontiguousarray(coefficients), intercepts.copy()
        return Learned(*kept, stream.seen, Memory(stream, layout, order))

    def _weights(self, codes: IntArray, sample_weight: FloatArray | None) -> FloatArray:
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        if self.class_weight is None:
            return weights
        factors = np.array([self.class_weight.get(label, 1.0) for label in self.classes.tolist()])
        return np.asarray(weights * factors[codes])


def stream_solver(solver: Solver, random_state: RandomState) -> StochasticBound:
    """The estimator's solver if it can learn from a stream, else one that can."""
    return solver if isinstance(solver, StochasticBound) else StochasticBound(random_state=solver_seed(random_state))


def stream_classes(classes: Labels | None, known: LabelArray | None) -> LabelArray:
    """The sorted classes of a stream: those `known` since its first piece, or for the first piece those that are given."""
    if known is not None:
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
            raise ValueError(f"classes {np.asarray(classes).tolist()} differ from those of the first call, {known.tolist()}")
        return known
    if classes is None:
        raise ValueError("classes must be given in the first call to partial_fit: all labels that will ever come")
    try:
        found: LabelArray = np.unique(np.asarray(classes))
    except TypeError:
        raise ValueError(f"classes must be labels of one type, strings or numbers, got {classes!r}") from None
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError(f"classes must be finite, got {found.tolist()}: NaN is no label")
    if len(found) < 2:
        raise ValueError(f"classes must hold at least two labels, got {found.tolist()}")
    return found


def positions(classes: LabelArray, y: LabelArray) -> IntArray:
    """The position of each label among sorted classes; a ValueError for a label that is none of them."""
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        unknown = classes[codes] != y
    except TypeError:  # what cannot be compared with a class is none
        known = classes.tolist()
        unknown = np.array([label not in known for label in y.tolist()])
        codes = np.array([known.index(label) for label in y[~unknown].tolist()], dtype=np.int64)
    if unknown.any():
        raise ValueError(f"y holds {y[unknown].tolist()[0]!r}, which is not among the classes {classes.tolist()}")
    return codes


def read_pieces(
    model: BaseEstimator, X: MatrixLike, y: Labels, sample_weight: SampleWeight, first: bool
) -> Iterator[tuple[Any, LabelArray, FloatArray | None]]:
    """X, y and weights in pieces small enough to copy, each checked; with the `first` the estimator learns its columns."""
    table, labels = sound_input(X), plain_labels(y)
    rows = _rows(table)
    if not hasattr(labels, "__len__") or len(labels) != rows:
        found = len(labels) if hasattr(labels, "__len__") else repr(labels)
        raise ValueError(f"X and y must have as many rows; got {rows} and {found}")
    weights = None if sample_weight is None else check_weights("sample_weight", sample_weight, rows)
    pieces = list(_pieces(table))
    whole = len(pieces) == 1
    for lo, hi in pieces:
        with text_is_named(X):
            part = validate_data(
                model,
                table if whole else table[lo:hi],
                labels if whole else labels[lo:hi],
                reset=first and lo == 0,
                accept_sparse="csr",
                dtype=np.float64,
                order="C",
                accept_large_sparse=True,
            )
        yield *part, None if weights is None else weights[lo:hi]


def _rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _pieces(X: Any) -> Iterator[tuple[int, int]]:
    """Ranges of rows of X small enough to copy; one range for anything that is not a large array."""
    rows = _rows(X)
    numbers = X.nnz if sp.issparse(X) else X.size if isinstance(X, np.ndarray) and X.ndim == 2 else 0
    count = min(max(1, -(-numbers // CHUNK_NUMBERS)), max(1, rows))
    edges = [rows * c // count for c in range(count + 1)]
    yield from itertools.pairwise(edges)

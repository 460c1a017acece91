"""Sequences, as users give them, stacked into flat arrays."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import __version__
from ..core.columns import Columns
from ..core.errors import ModelFileError
from ..core.results import FloatArray, IntArray
from ..core.sparse import sound_csr
from ..core.strings import pack_strings, unpack_strings
from ..features.attributes import AttributeIndex, AttributeVectorizer, assemble
from ..features.pairs import label_indicator, label_pairs, state_pairs
from ..features.templates import Templates
from ..io import read_model, write_model
from .labels import Labels, column_labels, encode_labels, position_of


def places(name: str, offsets: IntArray, numbers: Any = None) -> Callable[[int], str]:
    """What tells where in `name` a position is; `numbers` are those of the sequences, if they are not all."""
    return lambda t: f"{position_of(t, offsets, numbers)} of {name}"


class SequenceData:
    """Sequences as one sparse matrix, a row per position, with their labels and the names of the columns.

    What `ChainCRF` makes of its input: made once and saved, it spares the reading and counting of attributes. `len` and
    indexing are by sequence, so that scikit-learn can split it.

    Parameters
    ----------
    X : sparse or dense matrix of shape (n_positions, n_attributes)
        Attributes of the positions of all sequences, one after the other.
    lengths : list of int
        Number of positions of each sequence.
    y : optional
        Labels, flat or a list per sequence: strings or integers, None for unknown, or sets of labels.
    attributes : list of str, optional
        Names of the columns.

    Attributes
    ----------
    X : CSR matrix
    offsets : array of int64
        Sequence i is rows ``offsets[i]:offsets[i + 1]``.
    attributes : list of str or None
    y : list of lists, or None

    Examples
    --------
    >>> from partita import SequenceData
    >>> data = SequenceData.from_tokens([[{"w": "a"}, {"w": "b"}], [["w:b"]]], [["X", "Y"], ["Y"]])
    >>> data
    SequenceData(2 sequences, 3 positions, 2 attributes, 2 labels)
    >>> data[1:].y
    [['Y']]
    """

    def __init__(self, X: Any, lengths: Any, y: Any = None, attributes: Sequence[str] | None = None) -> None:
        self.X = _matrix(X)
        self.offsets = _offsets(lengths, self.X.shape[0])
        self.attributes = None if attributes is None else list(attributes)
        if self.attributes is not None and len(self.attributes) != self.X.shape[1]:
            raise ValueError(
                f"attributes must name each of the {self.X.shape[1]} columns of X, got {len(self.attributes)} names"
            )
        self.labels = None if y is None else encode_labels(y, self.offsets)

    @classmethod
    def _make(cls, X: Any, offsets: IntArray, labels: Labels | None, attributes: list[str] | None) -> SequenceData:
        made = cls.__new__(cls)
        made.X, made.offsets, made.labels, made.attributes = X, offsets, labels, attributes
        return made

    @classmethod
    def from_tokens(cls, X: Any, y: Any = None, min_frequency: int = 0, hashing: int | None = None) -> SequenceData:
        """From lists of dicts or of lists of strings, by the rules of python-crfsuite (see `AttributeVectorizer`)."""
        vectorizer = AttributeVectorizer(min_frequency, hashing)
        matrix, offsets = vectorizer.fit_transform(X)
        labels = None if y is None else encode_labels(y, offsets)
        return cls._make(matrix, offsets, labels, None if hashing else vectorizer.attributes_)

    @classmethod
    def from_columns(cls, columns: Columns, templates: Templates, label: int | None = -1, fit: bool = True) -> SequenceData:
        """From a column file (`partita.io.read_columns`) by templates, which learn their attributes here if `fit`.

        `label` is the column of the labels, None if there are none.
        """
        matrix = templates.fit(columns)[0] if fit else templates.transform(columns)
        labels = None
        if label is not None:
            labels = column_labels(columns, label)
        return cls._make(matrix, columns.offsets, labels, None if templates.hashing else templates.attributes_)

    @property
    def y(self) -> list[list[Any]] | None:
        return None if self.labels is None else self.labels.lists(self.offsets)

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    @property
    def shape(self) -> tuple[int]:
        """The number of sequences: what scikit-learn calls samples."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, key: Any) -> Any:
        """The matrix of one sequence, or the data of some, by a slice, a list or an array of numbers or flags."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, numbers.Integral) and not isinstance(key, bool):
            i = range(len(self))[int(key)]
            return sound_csr("SequenceData.X", self.X)[self.offsets[i] : self.offsets[i + 1]]
        return self.take(np.arange(len(self))[key])

    def take(self, sequences: IntArray) -> SequenceData:
        """The data of some sequences, by number."""
        lengths = self.lengths[sequences]
        ends = np.cumsum(lengths)
        rows = np.repeat(self.offsets[sequences] - ends + lengths, lengths) + np.arange(lengths.sum())
        labels = None if self.labels is None else self.labels.take(rows)
        return self._make(sound_csr("SequenceData.X", self.X)[rows], np.concatenate(([0], ends)), labels, self.attributes)

    def __repr__(self) -> str:
        labels = "" if self.labels is None else f", {len(self.labels.classes)} labels"
        return f"SequenceData({len(self)} sequences, {self.X.shape[0]} positions, {self.X.shape[1]} attributes{labels})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file of the same kind as model files, atomically."""
        X = self.X
        values = {"shape": list(X.shape), "named": self.attributes is not None}
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "offsets": self.offsets}
        if self.attributes is not None:
            arrays["names"], arrays["name_offsets"] = pack_strings(self.attributes)
        if self.labels is not None:
            arrays |= {"classes": self.labels.classes, "codes": self.labels.codes}
            if self.labels.sets is not None:
                arrays["sets"] = self.labels.sets
        write_model(path, "SequenceData", values, arrays, __version__)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SequenceData:
        """Read what `save` wrote. Nothing in the file is executed."""
        kind, values, arrays = read_model(path)
        if kind != "SequenceData":
            raise ModelFileError(f"{os.fspath(path)} holds a {kind}, not SequenceData")
        try:
            X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=values["shape"])
            X.check_format(full_check=True)
            names = unpack_strings(arrays["names"], arrays["name_offsets"]) if values["named"] else None
            data = cls(X, np.diff(arrays["offsets"]), attributes=names)
            if "codes" in arrays:
                data.labels = Labels(arrays["classes"], arrays["codes"], arrays.get("sets"))
                lowest = 0 if data.labels.sets is None else -len(data.labels.sets)
                low, high = data.labels.codes.min(initial=0), data.labels.codes.max(initial=0)
                if low < lowest or high >= len(data.labels.classes) or len(data.labels.codes) != X.shape[0]:
                    raise ValueError("labels out of range")
        except Exception as error:  # whatever the damage made of the values
            raise ModelFileError(f"{os.fspath(path)} is damaged: {error}") from error
        return data


def read_sequences(X: Any, lengths: Any, vectorizer: AttributeVectorizer | None, fit: bool) -> SequenceData:
    """X as users give it: `SequenceData`, a matrix with `lengths`, a list of matrices, or of lists of tokens.

    Tokens go through the vectorizer, which learns them if `fit`; None refuses tokens.
    """
    if isinstance(X, SequenceData):
        if lengths is not None:
            raise ValueError("lengths must be None for SequenceData, which knows its own")
        # its arrays may be the caller's, and have changed since
        matrix = _matrix(X.X, "SequenceData.X")
        X = SequenceData._make(matrix, _offsets(np.diff(X.offsets), matrix.shape[0]), X.labels, X.attributes)
        return X if vectorizer is None or vectorizer.hashing is None else _hashed(X, vectorizer.hashing)
    if lengths is not None:
        return SequenceData(X, lengths)
    if sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"):
        raise ValueError(f"X is one matrix of shape {X.shape}: pass lengths=, the number of rows of each sequence")
    if isinstance(X, str | bytes | dict) or not hasattr(X, "__iter__"):
        raise ValueError(f"X must be a list of sequences, a matrix with lengths=, or SequenceData; got {type(X).__name__}")
    sequences = list(X)
    if not sequences and fit:
        raise ValueError("X has no sequences")
    first = next((sequence for sequence in sequences if _size(sequence)), None)
    if first is not None and _is_matrix(first):
        return _stack(sequences)
    if vectorizer is None:
        if first is None:
            return SequenceData._make(sp.csr_matrix((0, 0)), np.zeros(len(sequences) + 1, np.int64), None, None)
        raise ValueError(
            "X must be matrices, because the model was fitted to matrices without names; "
            f"got a sequence of type {type(first).__name__}"
        )
    matrix, offsets = vectorizer.fit_transform(sequences) if fit else vectorizer.transform(sequences)
    names = vectorizer.attributes_ if fit and not vectorizer.hashing else None
    return SequenceData._make(matrix, offsets, None, names)


def _hashed(data: SequenceData, hashing: int) -> SequenceData:
    """The data with names hashed into columns; without names, they must be hashed already."""
    if data.attributes is not None:
        columns, X = AttributeIndex(hashing=hashing).find(data.attributes), data.X
        X = assemble(columns[X.indices], X.data, np.diff(X.indptr), hashing)
        return SequenceData._make(X, data.offsets, data.labels, None)
    if data.X.shape[1] != hashing:
        raise ValueError(f"hashing={hashing}, but X is SequenceData of {data.X.shape[1]} columns without names")
    return data


def labels_of(data: SequenceData, y: Any, classes: Any = None, more: bool = False) -> Labels:
    """The labels y of sequences, or those that came with them; among `classes`, if given, and `more` if there may be."""
    if y is None:
        if data.labels is None:
            raise ValueError("y is missing: labels are needed, one for every position")
        if classes is None:
            return data.labels
        y = data.y
    return encode_labels(y, data.offsets, classes, more)


def counting(data: SequenceData, labels: Labels, weights: FloatArray) -> tuple[SequenceData, FloatArray, IntArray]:
    """The sequences that count, with their labels, weights and numbers: not empty, of positive weight."""
    data = SequenceData._make(data.X, data.offsets, labels, data.attributes)
    full = (data.lengths > 0) & (weights > 0.0)
    if not full.any():
        raise ValueError("X has no sequence with a position and a positive weight")
    numbers = np.flatnonzero(full)
    return (data, weights, numbers) if full.all() else (data.take(numbers), weights[full], numbers)


def _size(sequence: Any) -> int:
    return int(sequence.shape[0]) if hasattr(sequence, "shape") and sequence.shape else len(sequence)


def _is_matrix(sequence: Any) -> bool:
    return sp.issparse(sequence) or (isinstance(sequence, np.ndarray) and sequence.ndim == 2 and sequence.dtype != object)


def _stack(sequences: list[Any]) -> SequenceData:
    """Matrices, one per sequence, on top of each other."""
    full: list[Any] = []
    for i, sequence in enumerate(sequences):
        if _size(sequence) == 0:
            continue
        if not _is_matrix(sequence):
            raise ValueError(f"X begins with matrices, but sequence {i} is of type {type(sequence).__name__}")
        if full and sequence.shape[1] != full[0].shape[1]:
            raise ValueError(f"sequence {i} of X has {sequence.shape[1]} columns, but {full[0].shape[1]} came before")
        full.append(sound_csr(f"sequence {i} of X", sequence) if sp.issparse(sequence) else sequence)
    dense = all(isinstance(sequence, np.ndarray) for sequence in full)
    stacked = np.vstack(full) if dense else sp.vstack([sp.csr_matrix(sequence) for sequence in full], format="csr")
    return SequenceData(stacked, [_size(sequence) for sequence in sequences])


def _matrix(X: Any, name: str = "X") -> Any:
    """A CSR matrix of finite float64, entries sorted and unique; the given matrix is not changed."""
    if not sp.issparse(X):
        X = np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(f"X with lengths must be a matrix of numbers, got shape {X.shape} of {X.dtype}")
    matrix = sp.csr_matrix(sound_csr(name, X) if sp.issparse(X) else X, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        at = int(np.argmin(np.isfinite(matrix.data)))
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        raise ValueError(f"X must be finite; row {row} of the stacked matrix holds {matrix.data[at]}")
    return matrix


def _offsets(lengths: Any, rows: int) -> IntArray:
    counts = np.asarray(lengths)
    if counts.ndim != 1 or (counts.size and (counts.dtype.kind not in "iu" or counts.min() < 0)):
        raise ValueError("lengths must be a vector of integers >= 0, one per sequence")
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    if offsets[-1] != rows:
        raise ValueError(f"lengths must add up to the {rows} rows of X, got {offsets[-1]}")
    return offsets


def weighted_pairs(model: Any, data: SequenceData, labels: Labels) -> tuple[IntArray, IntArray]:
    """Pairs of an attribute and a label, and of labels that follow each other, that have a weight by `features`,
    `transitions` and `min_frequency` of a model."""
    indicator = label_indicator(labels.codes, len(labels.classes), labels.sets)
    minimum = -np.inf if model.min_frequency is None else float(model.min_frequency)
    state = np.column_stack(state_pairs(data.X, indicator, model.features == "all", minimum))
    return state, label_pairs(indicator, data.offsets, model.transitions == "all", minimum)


def check_weighted(model: Any, state: IntArray, moves: IntArray) -> None:
    """Something must have a weight."""
    if not (len(state) or len(moves) or model.start_end):
        raise ValueError(f"nothing has a weight: no pair is in X and y often enough, min_frequency={model.min_frequency}")

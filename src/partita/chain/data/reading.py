"""Sequences and labels as users give them, read into flat arrays."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from ...core.arrays.sparse import sound_csr
from ...core.memory import check_memory
from ...core.types import LabelArray, MatrixLike, SampleWeight
from ...core.validation import check_count, check_weights
from ...estimators.labels import Labels, check_label_numbers, encode_labels, split
from ..features.attribute_index import AttributeIndex, assemble
from ..features.attributes import AttributeVectorizer
from ..features.records import Frame, check_names
from .examples import Examples
from .sequences import DENSE, SPARSE, SequenceData, numbers_of, offsets_of
from .types import LabelSequences, Lengths, SequenceLike

#: Sequences: a list of them, one stacked matrix with the lengths of the sequences, or `SequenceData`.
Sequences: TypeAlias = SequenceData | Iterable[SequenceLike] | MatrixLike
#: Memory that training takes for each column, whether it occurs or not.
BYTES_PER_COLUMN = 72.0


def read_sequences(
    X: Any, lengths: Any, vectorizer: AttributeVectorizer | None, fit: bool, numeric: bool | None = None
) -> SequenceData:
    """X as users give it: `SequenceData`, a matrix with `lengths`, a list of matrices, or of lists of tokens.

    Tokens go through the vectorizer, which learns them if `fit`; None refuses tokens. A data frame is a matrix if all of its
    columns are numbers, else a list of tokens; `numeric` tells what it was in training.
    """
    if isinstance(X, SequenceData):
        if lengths is not None:
            raise ValueError("lengths must be None for SequenceData, which knows its own")
        X = X.checked()  # its arrays may be the caller's
        return X if vectorizer is None or vectorizer.hashing is None else _hashed(X, vectorizer.hashing)
    if lengths is not None:
        frame = Frame.of(X)
        if frame is None or (frame.numeric and numeric is not False):
            return SequenceData(X, lengths)
        records = frame.records()
        X = split(records, offsets_of(lengths, len(records)))
    elif Frame.of(X) is not None:
        raise ValueError("X is one data frame: pass lengths=, the number of rows of each sequence, or a list of frames")
    if sp.issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"):
        raise ValueError(f"X is one matrix of shape {X.shape}: pass lengths=, the number of rows of each sequence")
    if isinstance(X, str | bytes | dict) or not hasattr(X, "__iter__"):
        raise ValueError(f"X must be a list of sequences, a matrix with lengths=, or SequenceData; got {type(X).__name__}")
    sequences = [sequence if hasattr(sequence, "__len__") or sp.issparse(sequence) else _listed(sequence) for sequence in X]
    if not sequences and fit:
        raise ValueError("X has no sequences")
    found = _as_matrices(sequences, numeric)
    if found is not None:
        return found
    first = next((sequence for sequence in sequences if _size(sequence)), None)
    if vectorizer is None:
        if first is None:
            return SequenceData.unchecked(sp.csr_matrix((0, 0)), np.zeros(len(sequences) + 1, np.int64), None, None, SPARSE)
        raise ValueError(
            "X must be matrices, because the model was fitted to matrices without names; "
            f"got a sequence of type {type(first).__name__}"
        )
    matrix, offsets = vectorizer.fit_transform(sequences) if fit else vectorizer.transform(sequences)
    names = vectorizer.attributes_ if fit and not vectorizer.hashing else None
    return SequenceData.unchecked(matrix, offsets, None, names)


def read_training(X: Sequences, lengths: Lengths, hashing: int | None, numeric: bool | None = None) -> SequenceData:
    """Sequences to learn from, whose attributes are numbered, or hashed, here."""
    return read_sequences(X, lengths, AttributeVectorizer(hashing=hashing), fit=True, numeric=numeric)


def read_examples(
    X: Sequences, y: LabelSequences, lengths: Lengths, sample_weight: SampleWeight, hashing: int | None
) -> Examples:
    """Sequences to learn from, with the labels that occur and their weights."""
    data = read_training(X, lengths, hashing)
    labels = labels_of(data, y)
    weights = check_weights("sample_weight", sample_weight, len(data))
    return Examples.of(data, labels, weights, X).compact()


def _hashed(data: SequenceData, hashing: int) -> SequenceData:
    """The data with names hashed into columns; without names, they must be hashed already, or be numbers."""
    if data.attributes is not None and data.kind != DENSE:
        columns, X = AttributeIndex(hashing=hashing).find(data.attributes), data.X
        X = assemble(columns[X.indices], X.data, np.diff(X.indptr), hashing)
        return SequenceData.unchecked(X, data.offsets, data.labels, None, data.kind)
    if data.X.shape[1] != hashing and data.kind != DENSE:
        raise ValueError(f"hashing={hashing}, but X is SequenceData of {data.X.shape[1]} columns without names")
    return data


def check_hashing(hashing: Any) -> None:
    """Raise a ValueError unless `hashing` is None or a number of columns for which there is memory."""
    if hashing is not None:
        count = check_count("hashing", hashing, minimum=1)
        check_memory(f"hashing={count} columns", BYTES_PER_COLUMN * count, "Hash into fewer columns, such as 2**20")


def labels_of(data: SequenceData, y: LabelSequences, classes: LabelArray | None = None, more: bool = False) -> Labels:
    """The labels y of sequences, or those that came with them; among `classes`, if given, and `more` if there may be."""
    if y is None:
        if data.labels is None:
            raise ValueError("y is missing: labels are needed, one for every position")
        if classes is None:
            check_label_numbers(data.labels.classes.tolist())
            return data.labels
        y = data.y
    return encode_labels(y, data.offsets, classes, more)


def _size(sequence: Any) -> int:
    return int(sequence.shape[0]) if hasattr(sequence, "shape") and sequence.shape else len(sequence)


def _listed(sequence: Any) -> list[Any]:
    """A sequence that can be read only once as a list."""
    if not hasattr(sequence, "__iter__"):
        raise ValueError(f"X must be a list of sequences; among them is {sequence!r} ({type(sequence).__name__})")
    return list(sequence)


def _as_matrices(sequences: list[Any], numeric: bool | None) -> SequenceData | None:
    """The stacked matrix of sequences that are matrices, frames of numbers, or lists of lists of numbers; else None."""
    first = next((sequence for sequence in sequences if _size(sequence)), None)
    frames = [Frame.of(sequence) for sequence in sequences] if Frame.of(first) is not None else []
    if frames and not any(frame is None for frame in frames):
        full = [frame for frame in frames if frame is not None and len(frame.columns) and len(frame.columns[0])]
        if numeric is False or not (numeric or all(frame.numeric for frame in full)):
            return None
        names = full[0].names if full[0].named else None
        for frame in full:
            if names is not None:
                check_names(frame.names, names, "the first frame has")
        matrices = {id(frame): numbers_of(frame, names) for frame in full}
        return _stack([matrices.get(id(frame), np.zeros((0, 0))) for frame in frames], names)
    if first is not None and _is_matrix(first):
        return _stack(sequences)
    if isinstance(first, list | tuple) and _is_numbers(first[0]):
        return _stack([_array(sequence, i) for i, sequence in enumerate(sequences)])
    return None


def _is_matrix(sequence: Any) -> bool:
    return sp.issparse(sequence) or (
        isinstance(sequence, np.ndarray) and sequence.ndim == 2 and sequence.dtype.kind in "biufc"
    )


def _is_numbers(token: Any) -> bool:
    """Whether a token is a list of numbers, which cannot be names of attributes."""
    if isinstance(token, np.ndarray):
        return token.ndim == 1 and token.dtype.kind in "iuf"
    return (
        isinstance(token, list | tuple)
        and len(token) > 0
        and all(isinstance(x, numbers.Real) and not isinstance(x, bool) for x in token)
    )


def _array(sequence: Any, i: int) -> Any:
    """A list of lists of numbers as an array."""
    if not len(sequence):
        return np.zeros((0, 0))
    bad = next((token for token in sequence if not _is_numbers(token) or len(token) != len(sequence[0])), None)
    if bad is not None:
        raise ValueError(f"X begins with rows of numbers, {len(sequence[0])} of them; sequence {i} has the row {bad!r}")
    return np.array(sequence, dtype=np.float64)


def _stack(sequences: list[Any], names: list[str] | None = None) -> SequenceData:
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
    return SequenceData(stacked, [_size(sequence) for sequence in sequences], attributes=names)

"""Sequences, as users give them, stacked into flat arrays."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import __version__
from ...core.arrays.columns import Columns
from ...core.arrays.names import repeated
from ...core.arrays.sparse import sound_csr
from ...core.arrays.strings import pack_strings, unpack_strings
from ...core.errors import ModelFileError
from ...core.memory import check_memory
from ...core.results import FloatArray, IntArray
from ...core.validation import check_count, check_flag, is_whole
from ...estimators.labels import Labels, check_label_numbers, column_labels, encode_labels, position_of, split
from ...io.model_file import read_model, write_model
from ..features.attributes import AttributeIndex, AttributeVectorizer, assemble
from ..features.records import Frame, check_names
from ..features.templates import Templates

#: What columns of `SequenceData` are.
ATTRIBUTES, SPARSE, DENSE = KINDS = ("attributes", "sparse", "dense")
#: Memory that training takes for each column, whether it occurs or not.
BYTES_PER_COLUMN = 72.0

#: The arrays of a file of sequences.
MEMBERS = ("data", "indices", "indptr", "offsets", "names", "name_offsets", "classes", "codes", "sets")


def places(name: str, offsets: IntArray, numbers: Any = None) -> Callable[[int], str]:
    """What tells where in `name` a position is; `numbers` are those of the sequences, if they are not all."""
    return lambda t: f"{position_of(t, offsets, numbers)} of {name}"


class SequenceData:
    """Sequences as one sparse matrix, a row per position, with their labels and the names of the columns.

    What `ChainCRF` makes of its input: made once and saved, it spares the reading and counting of attributes. `len` and
    indexing are by sequence, so that scikit-learn can split it.

    Parameters
    ----------
    X : sparse or dense matrix, or data frame of numbers, of shape (n_positions, n_attributes)
        Attributes of the positions of all sequences, one after the other.
    lengths : list of int
        Number of positions of each sequence.
    y : optional
        Labels, flat or a list per sequence: strings or integers, None for unknown, or sets of labels.
    attributes : list of str, optional
        Names of the columns. Default: those of a data frame.

    Attributes
    ----------
    X : CSR matrix
    offsets : array of int64
        Sequence i is rows ``offsets[i]:offsets[i + 1]``.
    attributes : list of str or None
    y : list of lists, or None
    kind : {"attributes", "sparse", "dense"}
        What the columns are: attributes of tokens (also of a sparse matrix whose columns have names), or numbers that came
        as a sparse or dense matrix. Models have intercepts for numbers.

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
        frame = Frame.of(X)
        if frame is not None:
            X = _numbers_of(frame)
            attributes = frame.names if attributes is None and frame.named else attributes
        self.X = _matrix(X, names=attributes)
        self.offsets = _offsets(lengths, self.X.shape[0])
        self.attributes = None if attributes is None else list(attributes)
        self.kind = DENSE if not sp.issparse(X) else SPARSE if attributes is None else ATTRIBUTES
        self._check_attributes()
        self.labels = None if y is None else encode_labels(y, self.offsets)

    @classmethod
    def _make(
        cls, X: Any, offsets: IntArray, labels: Labels | None, attributes: list[str] | None, kind: str = ATTRIBUTES
    ) -> SequenceData:
        made = cls.__new__(cls)
        made.X, made.offsets, made.labels, made.attributes, made.kind = X, offsets, labels, attributes, kind
        return made

    def _check_attributes(self, each: bool = True) -> None:
        names, count = self.attributes, self.X.shape[1]
        if names is None:
            return
        if len(names) != count:
            raise ValueError(f"attributes must name each of the {count} columns of X, got {len(names)} names")
        if not each:
            return
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"attributes must be strings, got {next(n for n in names if not isinstance(n, str))!r}")
        twice = repeated(names)
        if twice:
            raise ValueError(f"attributes must be different, got {twice[0]!r} twice")

    def checked(self) -> SequenceData:
        """The same data if all parts fit together, else a ValueError: they may have been changed since they were made."""
        if not sp.issparse(self.X) or self.X.format != "csr":
            raise ValueError("X of SequenceData must be a CSR matrix; make new SequenceData from what there is")
        X = _matrix(self.X, "X of SequenceData")
        offsets = np.asarray(self.offsets)
        if offsets.ndim != 1 or offsets.dtype != np.int64 or not len(offsets) or int(offsets[0]) != 0:
            raise ValueError("offsets of SequenceData must be a vector of int64 that begins with 0")
        _offsets(np.diff(offsets), self.X.shape[0])
        self._check_attributes(each=False)
        if self.kind not in KINDS:
            raise ValueError(f"kind of SequenceData must be one of {', '.join(map(repr, KINDS))}; got {self.kind!r}")
        if self.labels is not None:
            self.labels.check(self.X.shape[0])
        return self._make(X, self.offsets, self.labels, self.attributes, self.kind)

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
        if is_whole(key):
            i = range(len(self))[int(key)]
            return sound_csr("X of SequenceData", self.X)[self.offsets[i] : self.offsets[i + 1]]
        return self.take(np.arange(len(self))[key])

    def take(self, sequences: IntArray) -> SequenceData:
        """The data of some sequences, by number."""
        lengths = self.lengths[sequences]
        ends = np.cumsum(lengths)
        rows = np.repeat(self.offsets[sequences] - ends + lengths, lengths) + np.arange(lengths.sum())
        labels = None if self.labels is None else self.labels.take(rows)
        X = sound_csr("X of SequenceData", self.X)[rows]
        return self._make(X, np.concatenate(([0], ends)), labels, self.attributes, self.kind)

    def __repr__(self) -> str:
        labels = "" if self.labels is None else f", {len(self.labels.classes)} labels"
        return f"SequenceData({len(self)} sequences, {self.X.shape[0]} positions, {self.X.shape[1]} attributes{labels})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file of the same kind as model files, atomically."""
        X = self.X
        values = {"shape": list(X.shape), "named": self.attributes is not None, "kind": self.kind}
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "offsets": self.offsets}
        if self.attributes is not None:
            arrays["names"], arrays["name_offsets"] = pack_strings(self.attributes)
        if self.labels is not None:
            arrays |= {"classes": self.labels.classes, "codes": self.labels.codes}
            if self.labels.sets is not None:
                arrays["sets"] = self.labels.sets
        write_model(path, "SequenceData", values, arrays, __version__)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = False) -> SequenceData:
        """Read what `save` wrote. Nothing in the file is executed. `mmap` is as in `partita.load`."""
        kind, values, arrays = read_model(path, mmap=check_flag("mmap", mmap), only=MEMBERS)
        if kind != "SequenceData":
            raise ModelFileError(f"{os.fspath(path)} holds a {kind}, not SequenceData")
        try:
            X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=values["shape"])
            names = unpack_strings(arrays["names"], arrays["name_offsets"]) if values["named"] else None
            kind = values.get("kind", SPARSE if names is None else ATTRIBUTES)  # older files do not tell
            labels = Labels(arrays["classes"], arrays["codes"], arrays.get("sets")) if "codes" in arrays else None
            data = cls._make(X, arrays["offsets"], labels, names, kind).checked()
            data._check_attributes()
        except Exception as error:  # whatever the damage made of the values
            raise ModelFileError(f"{os.fspath(path)} is damaged: {error}") from error
        return data


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
        X = split(records, _offsets(lengths, len(records)))
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
            return SequenceData._make(sp.csr_matrix((0, 0)), np.zeros(len(sequences) + 1, np.int64), None, None, SPARSE)
        raise ValueError(
            "X must be matrices, because the model was fitted to matrices without names; "
            f"got a sequence of type {type(first).__name__}"
        )
    matrix, offsets = vectorizer.fit_transform(sequences) if fit else vectorizer.transform(sequences)
    names = vectorizer.attributes_ if fit and not vectorizer.hashing else None
    return SequenceData._make(matrix, offsets, None, names)


def _hashed(data: SequenceData, hashing: int) -> SequenceData:
    """The data with names hashed into columns; without names, they must be hashed already, or be numbers."""
    if data.attributes is not None and data.kind != DENSE:
        columns, X = AttributeIndex(hashing=hashing).find(data.attributes), data.X
        X = assemble(columns[X.indices], X.data, np.diff(X.indptr), hashing)
        return SequenceData._make(X, data.offsets, data.labels, None, data.kind)
    if data.X.shape[1] != hashing and data.kind != DENSE:
        raise ValueError(f"hashing={hashing}, but X is SequenceData of {data.X.shape[1]} columns without names")
    return data


def check_hashing(hashing: Any) -> None:
    """Raise a ValueError unless `hashing` is None or a number of columns for which there is memory."""
    if hashing is not None:
        count = check_count("hashing", hashing, minimum=1)
        check_memory(f"hashing={count} columns", BYTES_PER_COLUMN * count, "Hash into fewer columns, such as 2**20")


def labels_of(data: SequenceData, y: Any, classes: Any = None, more: bool = False) -> Labels:
    """The labels y of sequences, or those that came with them; among `classes`, if given, and `more` if there may be."""
    if y is None:
        if data.labels is None:
            raise ValueError("y is missing: labels are needed, one for every position")
        if classes is None:
            check_label_numbers(data.labels.classes.tolist())
            return data.labels
        y = data.y
    return encode_labels(y, data.offsets, classes, more)


def counting(data: SequenceData, labels: Labels, weights: FloatArray) -> tuple[SequenceData, FloatArray, IntArray]:
    """The sequences that count, with their labels, weights and numbers: not empty, of positive weight."""
    data = SequenceData._make(data.X, data.offsets, labels, data.attributes, data.kind)
    full = (data.lengths > 0) & (weights > 0.0)
    if not full.any():
        raise ValueError("X has no sequence with a position and a positive weight")
    numbers = np.flatnonzero(full)
    return (data, weights, numbers) if full.all() else (data.take(numbers), weights[full], numbers)


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
        matrices = {id(frame): _numbers_of(frame, names) for frame in full}
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


def _numbers_of(frame: Frame, names: list[str] | None = None) -> Any:
    if not frame.numeric:
        name = next(n for n, column in zip(frame.names, frame.columns, strict=True) if column.dtype.kind not in "biuf")
        raise ValueError(
            f"column {name!r} of a data frame in X is not numeric; rows that are tokens go through SequenceData.from_tokens"
        )
    return frame.matrix(names)


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


def _matrix(X: Any, name: str = "X", names: Any = None) -> Any:
    """A CSR matrix of finite float64, entries sorted and unique; the given matrix is not changed."""
    if not sp.issparse(X):
        X = np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(f"X with lengths must be a matrix of numbers, got shape {X.shape} of {X.dtype}")
    elif X.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be a matrix of real numbers, got one of {X.dtype}")
    matrix = sp.csr_matrix(sound_csr(name, X) if sp.issparse(X) else X, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        at = int(np.argmin(np.isfinite(matrix.data)))
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        column, value = int(matrix.indices[at]), matrix.data[at]
        which = repr(names[column]) if names is not None and len(names) == matrix.shape[1] else column
        raise ValueError(f"X must be finite; row {row} of the stacked matrix holds {value} in column {which}")
    return matrix


def _offsets(lengths: Any, rows: int) -> IntArray:
    counts = np.asarray(lengths)
    if counts.ndim != 1 or (counts.size and (counts.dtype.kind not in "iu" or counts.min() < 0)):
        raise ValueError("lengths must be a vector of integers >= 0, one per sequence")
    if counts.size and counts.max() > rows:  # so that sums cannot overflow
        raise ValueError(f"lengths must add up to the {rows} rows of X, but one is {counts.max()}")
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    if offsets[-1] != rows:
        raise ValueError(f"lengths must add up to the {rows} rows of X, got {offsets[-1]}")
    return offsets

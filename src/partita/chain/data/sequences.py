"""Sequences stacked into flat arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ... import __version__
from ...core.arrays.columns import Columns
from ...core.arrays.names import repeated
from ...core.arrays.sparse import sound_csr
from ...core.arrays.strings import pack_strings, unpack_strings
from ...core.errors import ModelFileError
from ...core.results import IntArray
from ...core.types import MatrixLike
from ...core.validation import check_flag, is_whole
from ...estimators.labels import Labels, column_labels, encode_labels
from ...io.model_file import read_model, write_model
from ..features.attributes import AttributeVectorizer
from ..features.records import Frame
from ..features.templates import Templates
from .types import Label, LabelSequences, Token

#: What columns of `SequenceData` are.
ATTRIBUTES, SPARSE, DENSE = KINDS = ("attributes", "sparse", "dense")
#: The arrays of a file of sequences.
MEMBERS = ("data", "indices", "indptr", "offsets", "names", "name_offsets", "classes", "codes", "sets")


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

    X: sp.csr_matrix
    offsets: IntArray
    attributes: list[str] | None
    kind: str
    labels: Labels | None

    def __init__(
        self, X: MatrixLike, lengths: ArrayLike, y: LabelSequences = None, attributes: Sequence[str] | None = None
    ) -> None:
        frame = Frame.of(X)
        if frame is not None:
            X = numbers_of(frame)
            attributes = frame.names if attributes is None and frame.named else attributes
        self.X = _matrix(X, names=attributes)
        self.offsets = offsets_of(lengths, self.X.shape[0])
        self.attributes = None if attributes is None else list(attributes)
        self.kind = DENSE if not sp.issparse(X) else SPARSE if attributes is None else ATTRIBUTES
        self._check_attributes()
        self.labels = None if y is None else encode_labels(y, self.offsets)

    @classmethod
    def unchecked(
        cls, X: Any, offsets: IntArray, labels: Labels | None, attributes: list[str] | None, kind: str = ATTRIBUTES
    ) -> SequenceData:
        """From arrays that fit together. Nothing is checked or copied."""
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
        offsets_of(np.diff(offsets), self.X.shape[0])
        self._check_attributes(each=False)
        if self.kind not in KINDS:
            raise ValueError(f"kind of SequenceData must be one of {', '.join(map(repr, KINDS))}; got {self.kind!r}")
        if self.labels is not None:
            self.labels.check(self.X.shape[0])
        return self.unchecked(X, self.offsets, self.labels, self.attributes, self.kind)

    @classmethod
    def from_tokens(
        cls, X: Iterable[Iterable[Token]], y: LabelSequences = None, min_frequency: int = 0, hashing: int | None = None
    ) -> SequenceData:
        """From lists of dicts or of lists of strings, by the rules of python-crfsuite (see `AttributeVectorizer`)."""
        vectorizer = AttributeVectorizer(min_frequency, hashing)
        matrix, offsets = vectorizer.fit_transform(X)
        labels = None if y is None else encode_labels(y, offsets)
        return cls.unchecked(matrix, offsets, labels, None if hashing else vectorizer.attributes_)

    @classmethod
    def from_columns(cls, columns: Columns, templates: Templates, label: int | None = -1, fit: bool = True) -> SequenceData:
        """From a column file (`partita.io.read_columns`) by templates, which learn their attributes here if `fit`.

        `label` is the column of the labels, None if there are none.
        """
        matrix = templates.fit(columns)[0] if fit else templates.transform(columns)
        labels = None
        if label is not None:
            labels = column_labels(columns, label)
        return cls.unchecked(matrix, columns.offsets, labels, None if templates.hashing else templates.attributes_)

    @property
    def y(self) -> list[list[Label]] | None:
        """The labels, a list per sequence."""
        return None if self.labels is None else self.labels.lists(self.offsets)

    @property
    def lengths(self) -> IntArray:
        """Number of positions of each sequence."""
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
        return self.unchecked(X, np.concatenate(([0], ends)), labels, self.attributes, self.kind)

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
            data = cls.unchecked(X, arrays["offsets"], labels, names, kind).checked()
            data._check_attributes()
        except Exception as error:  # whatever the damage made of the values
            raise ModelFileError(f"{os.fspath(path)} is damaged: {error}") from error
        return data


def numbers_of(frame: Frame, names: list[str] | None = None) -> Any:
    """The columns of a data frame as a matrix, in the order of `names` if given."""
    if not frame.numeric:
        name = next(n for n, column in zip(frame.names, frame.columns, strict=True) if column.dtype.kind not in "biuf")
        raise ValueError(
            f"column {name!r} of a data frame in X is not numeric; rows that are tokens go through SequenceData.from_tokens"
        )
    return frame.matrix(names)


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


def offsets_of(lengths: ArrayLike, rows: int) -> IntArray:
    """Where sequences of these lengths begin and end; together they have so many `rows`."""
    counts = np.asarray(lengths)
    if counts.ndim != 1 or (counts.size and (counts.dtype.kind not in "iu" or counts.min() < 0)):
        raise ValueError("lengths must be a vector of integers >= 0, one per sequence")
    if counts.size and counts.max() > rows:  # so that sums cannot overflow
        raise ValueError(f"lengths must add up to the {rows} rows of X, but one is {counts.max()}")
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    if offsets[-1] != rows:
        raise ValueError(f"lengths must add up to the {rows} rows of X, got {offsets[-1]}")
    return offsets

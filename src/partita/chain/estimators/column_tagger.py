"""Column files labelled by a chain: templates, the model, and which column is what, in one object and one file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ... import __version__
from ...core.arrays.columns import Columns
from ...core.errors import ModelFileError
from ...estimators.data import unchanged_on_failure
from ...estimators.labels import column_labels
from ...estimators.loaded import check_whole, is_fitted
from ...estimators.persistence import SavedModel
from ...io.columns import READING, check_reading
from ..data.forbidden import check_possible, forbidden_tables
from ..data.sequences import SequenceData
from ..data.token_columns import TokenColumns
from ..features.attributes import AttributeIndex
from ..features.templates import Field, Template, Templates
from .chain_crf import ChainCRF

#: What a file may say of columns of data.
LARGEST_WIDTH = 1 << 20
#: What the summary must say, for whoever prints it.
SUMMARY: dict[str, Any] = {
    **{"version": str, "solver": str, "objective": int | float},
    **dict.fromkeys(("tokens", "sequences", "attributes", "features", "labels", "iterations"), int),
}


def join_columns(tables: Sequence[Columns]) -> Columns:
    """The sequences of several files with the same number of columns, as of one."""
    first = tables[0]
    for other in tables[1:]:
        if other.n_columns != first.n_columns:
            raise ValueError(f"{other.where(0)}: {other.n_columns} columns, but {first.source} has {first.n_columns}")
    if len(tables) == 1:
        return first
    codes, vocabularies = [], []
    for c in range(first.n_columns):
        index = AttributeIndex()
        codes.append(np.concatenate([index.number(t.vocabularies[c].tolist())[t.codes[:, c]] for t in tables]))
        vocabularies.append(np.array(index.names, object))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(t.offsets) for t in tables]))])
    lines = np.concatenate([t.line_numbers for t in tables])
    names = [t.source for t in tables]
    parts = tuple(zip(np.cumsum([0, *(t.n_tokens for t in tables[:-1])]).tolist(), names, strict=True))
    return Columns(np.column_stack(codes), tuple(vocabularies), offsets, lines, ", ".join(names), parts)


def check_labels(columns: Columns, label: int, classes: Any) -> None:
    """Raise a ValueError that names file and line if a label is not among the classes."""
    c = columns.index(label)
    known = set(np.asarray(classes).tolist())
    unknown = np.array([word not in known for word in columns.vocabularies[c]])
    if unknown.any():
        token = int(np.argmax(unknown[columns.codes[:, c]]))
        raise ValueError(f"{columns.where(token)}: label {columns.values(c)[token]!r} is unknown to the model")


def check_allowed(columns: Columns, label: int, forbidden: Any) -> None:
    """Raise a ValueError that names file and line if labels break a rule (see `ChainCRF`)."""
    labels = column_labels(columns, label)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pairs of labels that are not here: the model warns of those in no training data
        tables = forbidden_tables(forbidden, labels.classes)
    check_possible(labels, columns.offsets, tables, columns.where)


class ColumnTagger(SavedModel):
    """A chain CRF for words in columns, such as ``word tag label``: of column files, or of lists of tokens.

    Parameters
    ----------
    templates : Templates
        What to make of the columns.
    model : ChainCRF
        The model to train.
    label : int
        The column of the labels; -1 is the last.
    columns : sequence of int, optional
        The columns that the templates see, as their columns 0, 1, …. Default: all but the label.
    reading : dict, optional
        Options of `partita.io.read_columns` with which the training data were read; kept with the model.

    Notes
    -----
    Data are `Columns`, as of `partita.io.read_columns`, or a list of sentences. A sentence is a list of tokens: strings, or
    tuples or lists of strings, one for each column, or rows with names; or a data frame with a row per token. Columns with
    names are found by name. With y, a list of lists of labels, these are one more column, the last.

    Attributes
    ----------
    label_, columns_, width_ : int, list of int, int
        The column of the labels, those that the templates see, and the number of all columns of the training data.
    summary_ : dict
        About training: "version", "tokens", "sequences", "attributes", "features" (weights), "labels", "solver",
        "iterations", "objective", and the seconds "feature_seconds" and "training_seconds".

    Examples
    --------
    >>> import io
    >>> from partita import ChainCRF, ColumnTagger
    >>> from partita.chain.features.templates import Templates
    >>> from partita.io import read_columns
    >>> train = read_columns(io.BytesIO(b"the D\\ncat N\\n\\na D\\ncat N\\nsat V\\n"))
    >>> tagger = ColumnTagger(Templates.builtin("word"), ChainCRF(l2=0.1)).fit(train)
    >>> tagger.predict(read_columns(io.BytesIO(b"the\\ncat\\nsat\\n")))
    [['D', 'N', 'V']]

    The same from lists of tokens:

    >>> tagger = ColumnTagger(Templates.builtin("word"), ChainCRF(l2=0.1))
    >>> tagger = tagger.fit([["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]])
    >>> tagger.predict([["the", "cat", "sat"]])
    [['D', 'N', 'V']]
    """

    def __init__(
        self,
        templates: Templates,
        model: ChainCRF,
        label: int = -1,
        columns: Sequence[int] | None = None,
        reading: dict[str, Any] | None = None,
    ) -> None:
        self.templates, self.model = templates, model
        self.label, self.columns, self.reading = label, columns, dict(reading or {})

    def fit(self, X: Any, y: Any = None, X_dev: Any = None, y_dev: Any = None) -> ColumnTagger:
        """Train on columns, or on sentences with labels y.

        `X_dev` are held-out ones for early stopping (see `ChainCRF.fit`). Without y, labels are a column of X. Of `Columns`,
        the second argument may be the held-out ones. A failed fit changes nothing.
        """
        if isinstance(y, Columns):
            y, X_dev = None, y
        names: list[str] | None = None
        if not isinstance(X, Columns):
            if y is not None and self.label not in (-1, None):
                raise ValueError(f"label={self.label} is a column of X, but labels are in y; leave label at -1")
            read = TokenColumns(X, y)
            X, names = read.columns, read.names
        elif y is not None:
            raise ValueError("y must be None for Columns, which have a column of labels")
        if X_dev is not None and not isinstance(X_dev, Columns):
            X_dev = TokenColumns(X_dev, y_dev, names).columns
        with unchanged_on_failure(self), unchanged_on_failure(self.model), unchanged_on_failure(self.templates):
            return self._fit(X, X_dev, names)

    def _fit(self, train: Columns, dev: Columns | None, names: list[str] | None) -> ColumnTagger:
        began = time.perf_counter()
        self.model._check_parameters()
        if self.templates.hashing != self.model.hashing:
            both = f"{self.templates.hashing} and {self.model.hashing}"
            raise ValueError(f"templates and model must have the same hashing, got {both}")
        label = train.index(self.label)
        if self.columns is None:
            chosen = [c for c in range(train.n_columns) if c != label]
        else:
            chosen = [train.index(c) for c in self.columns]
        if label in chosen:
            raise ValueError(f"columns must not hold the column of the labels, {label}; got {chosen}")
        self._check_fields(train, chosen)
        check_allowed(train, label, self.model.forbidden)
        data = SequenceData.from_columns(_select(train, [*chosen, label]), self.templates)
        held_out = None
        if dev is not None:
            _check_width(dev, [train.n_columns], f"{train.source} has {train.n_columns}")
            check_labels(dev, label, train.vocabularies[label])
            check_allowed(dev, label, self.model.forbidden)
            held_out = SequenceData.from_columns(_select(dev, [*chosen, label]), self.templates, fit=False)
        ready = time.perf_counter()
        self.model.fit(data, X_dev=held_out)
        layout = self.model._layout.trim()
        if layout is not self.model._layout:
            self.model._store_layout(layout, self.model.parameters_, self.model.precision_)  # type: ignore[arg-type]
        self._number_attributes()
        self.label_, self.columns_, self.width_ = label, chosen, train.n_columns
        self.column_names_ = None if names is None else [name for c, name in enumerate(names) if c != label]
        self.summary_: dict[str, Any] = {
            "version": __version__,
            "tokens": train.n_tokens,
            "sequences": train.n_sequences,
            "attributes": self.model.n_features_in_,
            "features": len(self.model.parameters_),
            "labels": len(self.model.classes_),
            "solver": str(self.model.solver),
            "iterations": self.model.n_iter_,
            "objective": float(self.model.trace_.objective[-1]),
            "feature_seconds": ready - began,
            "training_seconds": time.perf_counter() - ready,
        }
        return self

    def sequences(self, columns: Columns, labelled: bool = False, chosen: Sequence[int] | None = None) -> SequenceData:
        """What the model sees of other columns: as many as in training or, if not `labelled`, one fewer (the label).

        `chosen` are the columns that the templates see, if the layout is another than in training.
        """
        if chosen is None:
            widths = [self.width_] if labelled else [self.width_, self.width_ - 1]
            _check_width(columns, widths, f"the model was trained on {self.width_}, with the label in column {self.label_}")
            missing = columns.n_columns < self.width_
            chosen = [c - (missing and c > self.label_) for c in self.columns_]
        else:
            chosen = [columns.index(c) for c in chosen]
        self._check_fields(columns, chosen)
        return SequenceData.from_columns(_select(columns, chosen), self.templates, label=None, fit=False)

    def predict(self, X: Any) -> list[list[str]]:
        """The most probable labelling of each sequence of `Columns` or of a list of sentences, with labels or without."""
        if not hasattr(self, "columns_"):
            raise NotFittedError("this ColumnTagger is not fitted yet: call fit first")
        if isinstance(X, Columns):
            return self.model.predict(self.sequences(X))
        sentences = [sentence if hasattr(sentence, "__len__") else list(sentence) for sentence in X]
        if not any(map(len, sentences)):
            return [[] for _ in sentences]
        read = TokenColumns(sentences, names=self.column_names_)
        found = iter(self.model.predict(self.sequences(read.columns)))
        return [next(found) if full else [] for full in read.full.tolist()]

    def score(self, X: Any, y: Any) -> float:
        """The share of right labels. For other scores see `partita.metrics`."""
        pairs = [
            (best, label)
            for found, true in zip(self.predict(X), y, strict=True)
            for best, label in zip(found, true, strict=True)
        ]
        return float(np.mean([best == label for best, label in pairs]))

    def _check_fields(self, columns: Columns, chosen: Sequence[int]) -> None:
        for template in self.templates.templates:
            for field in template.fields:
                if field.column >= len(chosen):
                    raise ValueError(
                        f"{columns.where(0) if columns.n_tokens else columns.source}: template {_text(template)!r} asks for "
                        f"column {field.column}, but the highest is {len(chosen) - 1} (columns count from 0, without labels)"
                    )

    def _number_attributes(self) -> None:
        """Let the templates number attributes as the model does."""
        names = [] if self.model.hashing_ is not None else self.model.attributes_
        self.templates._index = AttributeIndex(names, self.model.hashing_)

    def _validate_loaded(self) -> None:
        self.model._validate_loaded()
        if not is_fitted(self.model):
            raise ModelFileError("the model of a tagger must be fitted")
        if self.model.classes_.dtype.kind not in "UO":
            raise ModelFileError(f"labels must be strings, got {self.model.classes_.dtype}")
        if self.templates.hashing != self.model.hashing_:
            raise ModelFileError(f"hashing of templates and model differ: {self.templates.hashing}, {self.model.hashing_}")
        width = check_whole(self, "width_", 1, LARGEST_WIDTH)
        check_whole(self, "label_", 0, width - 1)
        chosen = self.columns_
        if not isinstance(chosen, list) or not all(type(c) is int and 0 <= c < width and c != self.label_ for c in chosen):
            raise ModelFileError(f"columns must be a list of numbers below {width} without the label's, got {chosen!r}")
        if self.templates.n_columns > len(chosen):
            raise ModelFileError(f"templates ask for {self.templates.n_columns} columns, but there are {len(chosen)}")
        reading = self.reading
        if not isinstance(reading, dict) or not reading.keys() <= set(READING):
            raise ModelFileError(f"reading must be options out of {', '.join(READING)}, got {reading!r}")
        check_reading(**reading)
        if not isinstance(self.summary_, dict):
            raise ModelFileError(f"summary must be an object, got {self.summary_!r}")
        for name, kind in SUMMARY.items():
            value = self.summary_.get(name)
            if isinstance(value, bool) or not isinstance(value, kind):
                raise ModelFileError(f"summary must say {name!r}, got {value!r}")
        self._number_attributes()

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        values, arrays = self.model._pack()
        templates, _ = self.templates.to_state()
        own: dict[str, Any] = {"label": self.label_, "columns": self.columns_, "width": self.width_, "reading": self.reading}
        own["names"] = self.column_names_
        return {"templates": templates, "model": values, "summary": self.summary_, **own}, arrays

    @classmethod
    def _unpack(cls, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> ColumnTagger:
        nothing: dict[str, np.ndarray] = {"names": np.zeros(0, np.uint8), "offsets": np.zeros(1, np.int64)}
        made = cls(
            Templates.from_state(values["templates"], nothing),
            ChainCRF._unpack(values["model"], arrays),
            *(values["label"], values["columns"], values["reading"]),
        )
        made.label_, made.columns_, made.width_ = values["label"], values["columns"], values["width"]
        made.summary_, made.column_names_ = values["summary"], values.get("names")
        return made


def _select(columns: Columns, chosen: Sequence[int]) -> Columns:
    return replace(columns, codes=columns.codes[:, chosen], vocabularies=tuple(columns.vocabularies[c] for c in chosen))


def _check_width(columns: Columns, widths: Sequence[int], reason: str) -> None:
    if columns.n_tokens and columns.n_columns not in widths:
        expected = " or ".join(map(str, widths))
        raise ValueError(f"{columns.where(0)}: {columns.n_columns} columns, but {expected} expected: {reason}")


def _text(template: Template) -> str:
    def write(field: Field) -> str:
        return f"%{field.function}[{field.offset},{field.column}]"

    return (
        "".join(text + write(field) for text, field in zip(template.texts, template.fields, strict=False))
        + template.texts[-1]
    )

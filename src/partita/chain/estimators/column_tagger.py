"""Column files labelled by a chain: templates, the model, and which column is what, in one object and one file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ... import __version__
from ...core.arrays.columns import Columns
from ...core.errors import ModelFileError
from ...core.types import Frame
from ...estimators.data import unchanged_on_failure
from ...estimators.loaded import check_whole, is_fitted
from ...estimators.persistence import SavedModel
from ...io.columns import READING, check_reading
from ..data.column_tables import check_allowed, check_labels, check_width, select_columns
from ..data.sequences import SequenceData
from ..data.token_columns import TokenColumns
from ..features.templates import Templates
from .chain_crf import ChainCRF

#: A token: its word, or a word for each column, or words by the names of columns.
Words: TypeAlias = str | Sequence[str] | Mapping[str, str]
#: Sentences: a table of words, or lists of tokens, or data frames with a row per token.
Sentences: TypeAlias = Columns | Iterable[Iterable[Words] | Frame]
#: What a file may say of columns of data.
LARGEST_WIDTH = 1 << 20
#: What the summary must say, for whoever prints it.
SUMMARY: dict[str, Any] = {
    **{"version": str, "solver": str, "objective": int | float},
    **dict.fromkeys(("tokens", "sequences", "attributes", "features", "labels", "iterations"), int),
}
NOT_FITTED = "this %(name)s is not fitted yet: call fit first"


class Tables(NamedTuple):
    """Words to learn from, held-out ones, and the names of the columns without that of the labels, if they have names."""

    train: Columns
    dev: Columns | None
    names: list[str] | None


class ColumnTagger(SavedModel, BaseEstimator):
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
    reading : mapping, optional
        Options of `partita.io.read_columns` with which the training data were read; kept with the model.

    Notes
    -----
    Templates and model are fitted themselves, as the steps of a pipeline are. Parameters of the model are those of the
    tagger with ``model__`` before their names, for searches: ``model__l2``.

    Data are `Columns`, as of `partita.io.read_columns`, or a list of sentences. A sentence is a list of tokens: strings, or
    tuples or lists of strings, one for each column, or rows with names; or a data frame with a row per token. Columns with
    names are found by name. With y, a list of lists of labels, these are one more column, the last.

    Attributes
    ----------
    label_, columns_, width_ : int, list of int, int
        The column of the labels, those that the templates see, and the number of all columns of the training data.
    column_names_ : list of str or None
        Names of the columns, without the label's, if they have any.
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

    templates: Templates
    model: ChainCRF
    label: int
    columns: Sequence[int] | None
    reading: Mapping[str, Any] | None

    label_: int
    columns_: list[int]
    width_: int
    column_names_: list[str] | None
    summary_: dict[str, Any]

    def __init__(
        self,
        templates: Templates,
        model: ChainCRF,
        label: int = -1,
        columns: Sequence[int] | None = None,
        reading: Mapping[str, Any] | None = None,
    ) -> None:
        self.templates = templates
        self.model = model
        self.label = label
        self.columns = columns
        self.reading = reading

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def fit(
        self,
        X: Sentences,
        y: Sequence[Sequence[str]] | Columns | None = None,
        X_dev: Sentences | None = None,
        y_dev: Sequence[Sequence[str]] | None = None,
    ) -> ColumnTagger:
        """Train on columns, or on sentences with labels y.

        `X_dev` are held-out ones for early stopping (see `ChainCRF.fit`). Without y, labels are a column of X. Of `Columns`,
        the second argument may be the held-out ones. A failed fit changes nothing.
        """
        self._check_parameters()
        tables = self._read(X, y, X_dev, y_dev)
        with unchanged_on_failure(self), unchanged_on_failure(self.model), unchanged_on_failure(self.templates):
            self._fit(tables)
        return self

    def _read(self, X: Sentences, y: Any, X_dev: Sentences | None, y_dev: Any) -> Tables:
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
        return Tables(X, X_dev, names)

    def _fit(self, tables: Tables) -> None:
        began, train = time.perf_counter(), tables.train
        label, chosen = self._layout_of(train)
        data, held_out = self._training_data(train, None, label, chosen), None
        if tables.dev is not None:
            held_out = self._training_data(tables.dev, train, label, chosen)
        ready = time.perf_counter()
        self.model.fit(data, X_dev=held_out)
        self.model._trim()
        self._number_attributes()
        names = tables.names
        self.label_, self.columns_, self.width_ = label, chosen, train.n_columns
        self.column_names_ = None if names is None else [name for c, name in enumerate(names) if c != label]
        self.summary_ = {
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

    def _check_parameters(self) -> None:
        for name, kind in (("templates", Templates), ("model", ChainCRF)):
            value = vars(self)[name]
            if not isinstance(value, kind):
                raise ValueError(f"{name} must be a {kind.__name__}, got {value!r} ({type(value).__name__})")
        self.model._check_parameters()
        if self.templates.hashing != self.model.hashing:
            both = f"{self.templates.hashing} and {self.model.hashing}"
            raise ValueError(f"templates and model must have the same hashing, got {both}")

    def _layout_of(self, columns: Columns) -> tuple[int, list[int]]:
        """The column of the labels, and those that the templates see."""
        label = columns.index(self.label)
        if self.columns is None:
            chosen = [c for c in range(columns.n_columns) if c != label]
        else:
            chosen = [columns.index(c) for c in self.columns]
        if label in chosen:
            raise ValueError(f"columns must not hold the column of the labels, {label}; got {chosen}")
        return label, chosen

    def _training_data(self, columns: Columns, like: Columns | None, label: int, chosen: list[int]) -> SequenceData:
        """What the model sees of labelled columns; held-out ones must be `like` those of training."""
        if like is None:
            self._check_fields(columns, chosen)
        else:
            check_width(columns, [like.n_columns], f"{like.source} has {like.n_columns}")
            check_labels(columns, label, like.vocabularies[label])
        check_allowed(columns, label, self.model.forbidden)
        return SequenceData.from_columns(select_columns(columns, [*chosen, label]), self.templates, fit=like is None)

    def sequences(self, columns: Columns, labelled: bool = False, chosen: Sequence[int] | None = None) -> SequenceData:
        """What the model sees of other columns: as many as in training or, if not `labelled`, one fewer (the label).

        `chosen` are the columns that the templates see, if the layout is another than in training.
        """
        if chosen is None:
            widths = [self.width_] if labelled else [self.width_, self.width_ - 1]
            check_width(columns, widths, f"the model was trained on {self.width_}, with the label in column {self.label_}")
            missing = columns.n_columns < self.width_
            chosen = [c - (missing and c > self.label_) for c in self.columns_]
        else:
            chosen = [columns.index(c) for c in chosen]
        self._check_fields(columns, chosen)
        return SequenceData.from_columns(select_columns(columns, chosen), self.templates, label=None, fit=False)

    def predict(self, X: Sentences) -> list[list[str]]:
        """The most probable labelling (Viterbi) of each sequence of `Columns` or of a list of sentences.

        Columns may have a column of labels or not.
        """
        check_is_fitted(self, "columns_", msg=NOT_FITTED)
        if isinstance(X, Columns):
            return self.model.predict(self.sequences(X))
        given: Iterable[Any] = X
        sentences = [sentence if isinstance(sentence, Sized) else list(sentence) for sentence in given]
        if not any(map(len, sentences)):
            return [[] for _ in sentences]
        read = TokenColumns(sentences, names=self.column_names_)
        found = iter(self.model.predict(self.sequences(read.columns)))
        return [next(found) if full else [] for full in read.full.tolist()]

    def score(self, X: Sentences, y: Sequence[Sequence[str]]) -> float:
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
                        f"{columns.where(0) if columns.n_tokens else columns.source}: template {str(template)!r} asks for "
                        f"column {field.column}, but the highest is {len(chosen) - 1} (columns count from 0, without labels)"
                    )

    def _number_attributes(self) -> None:
        """Let the templates number attributes as the model does."""
        if self.model.hashing_ is None:
            self.templates.number_as(self.model.attributes_)

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
        if not _all_whole(chosen) or not all(0 <= c < width and c != self.label_ for c in chosen):
            raise ModelFileError(f"columns must be a list of numbers below {width} without the label's, got {chosen!r}")
        if self.templates.n_columns > len(chosen):
            raise ModelFileError(f"templates ask for {self.templates.n_columns} columns, but there are {len(chosen)}")
        if type(self.label) is not int or not (self.columns is None or _all_whole(self.columns)):
            raise ModelFileError(f"columns must be given by numbers, got {self.label!r} and {self.columns!r}")
        reading = {} if self.reading is None else self.reading
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
        check_is_fitted(self, "columns_", msg=NOT_FITTED)
        values, arrays = self.model._pack()
        templates, _ = self.templates.to_state()
        own: dict[str, Any] = {"label": self.label_, "columns": self.columns_, "width": self.width_}
        own |= {"reading": dict(self.reading or {}), "names": self.column_names_}
        given = None if self.columns is None else [int(c) for c in self.columns]
        own["given"] = {"label": int(self.label), "columns": given}  # of which the columns above were made
        return {"templates": templates, "model": values, "summary": self.summary_, **own}, arrays

    @classmethod
    def _unpack(cls, values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> ColumnTagger:
        nothing: dict[str, np.ndarray] = {"names": np.zeros(0, np.uint8), "offsets": np.zeros(1, np.int64)}
        given = values.get("given", values)  # earlier files only tell which columns were taken
        made = cls(
            Templates.from_state(values["templates"], nothing),
            ChainCRF._unpack(values["model"], arrays),
            *(given["label"], given["columns"], values["reading"] or None),
        )
        made.label_, made.columns_, made.width_ = values["label"], values["columns"], values["width"]
        made.summary_, made.column_names_ = values["summary"], values.get("names")
        return made


def _all_whole(numbers: object) -> bool:
    return isinstance(numbers, list) and all(type(number) is int for number in numbers)

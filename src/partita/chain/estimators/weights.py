"""The weights of a fitted chain: by name, and as scores of new sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.strings import pack_strings, unpack_strings
from ...core.errors import DataWarning, ModelFileError
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.results import FloatArray
from ...core.warn import warn
from ...estimators.labels import split
from ...estimators.loaded import RUN, check_array, check_bool, check_integers, check_run, check_whole
from ..data.forbidden import Forbidden, forbid
from ..data.inputs import ChainInputs
from ..data.sequences import ATTRIBUTES, DENSE, SequenceData, read_sequences
from ..features.attributes import AttributeIndex, AttributeVectorizer, assemble
from ..features.layout import ChainLayout
from ..features.records import check_names
from ..features.state_weights import StateWeights
from ..structure.chain import Chain


def align_columns(data: SequenceData, layout: ChainLayout) -> SequenceData:
    """The data in the columns of a layout; attributes that it does not know are dropped, a constant is added."""
    X, named = data.X, data.attributes is not None and layout.names is not None
    if data.kind == DENSE and layout.names is not None and X.shape[0]:
        if data.attributes is None:
            warn(
                f"X has no names, but the model was fitted to columns with names: its {X.shape[1]} columns are read in the "
                "order of training. Give data frames, as in training, to have them found by name",
                DataWarning,
            )
        else:
            check_names(data.attributes, layout.names)
    if named and data.attributes != layout.names:
        columns = AttributeIndex(layout.names or ()).find(data.attributes or ())
        X = assemble(columns[X.indices], X.data, np.diff(X.indptr), layout.n_columns)
    elif X.shape[0] and X.shape[1] != layout.n_columns:
        raise ValueError(f"X has {X.shape[1]} attributes, but the model was fitted to {layout.n_columns}")
    if X is data.X and not layout.intercept:
        return data
    return SequenceData._make(X, data.offsets, data.labels, layout.names, data.kind)


def with_constant(data: SequenceData, layout: ChainLayout) -> SequenceData:
    """The data with a last column of ones, if a layout has a constant."""
    if not layout.intercept:
        return data
    X = data.X if data.X.shape[0] else sp.csr_matrix((0, layout.n_columns))
    X = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    return SequenceData._make(X, data.offsets, data.labels, None, data.kind)


def packed(names: list[str] | None) -> tuple[Any, Any]:
    """Names as two arrays, for files."""
    return (None, None) if names is None else pack_strings(names)


def vectorizer_of(names: Any, offsets: Any, hashing: int | None) -> AttributeVectorizer | None:
    """What turns tokens into the columns of a model: by hashing, or by packed names; None if there are no names."""
    if hashing is not None:
        return AttributeVectorizer(hashing=hashing)
    if names is None:
        return None
    return AttributeVectorizer.from_state({"min_frequency": 0, "hashing": None}, {"names": names, "offsets": offsets})


def state_weights(layout: ChainLayout, values: FloatArray) -> StateWeights:
    """The weights of attributes as a table."""
    attribute, label = layout.state.T
    return StateWeights(attribute, label, layout.parts(values)[0], layout.n_attributes, layout.n_labels)


def potentials(
    layout: ChainLayout, values: FloatArray, data: SequenceData, tables: Forbidden, workers: Workers, state: Any = None
) -> tuple[FloatArray, FloatArray]:
    """Scores of labels and of transitions; `state` are the weights of attributes as a table, if at hand."""
    _, transition, start, end = layout.parts(values)
    state = state or state_weights(layout, values)
    unary = state.scores(data.X, workers)
    pairwise = np.zeros((layout.n_labels, layout.n_labels))
    pairwise[tuple(layout.transitions.T)] = transition
    offsets = np.unique(data.offsets)  # without empty sequences
    if layout.start_end:
        unary[offsets[:-1]] += start
        unary[offsets[1:] - 1] += end
    forbid(unary, pairwise, offsets, tables)
    return unary, pairwise


class Tagging:
    """Sequences to be labelled: their scores, and the structure that knows what to do with them."""

    def __init__(self, model: Any, X: Any, lengths: Any) -> None:
        check_is_fitted(model, "parameters_")
        layout = model._layout
        data = align_columns(read_sequences(X, lengths, model._vectorizer, fit=False, numeric=model._numeric), layout)
        data = with_constant(data, layout)
        self.data, self.labels = data, model.classes_.tolist()
        self.full = data.lengths > 0
        self.potentials: Any = None
        self.chain: Any = None
        if self.full.any():
            tables = Forbidden(model.forbidden_transitions_, model.forbidden_starts_, model.forbidden_ends_)
            self.chain = Chain(layout.n_labels, data.lengths[self.full], model.n_jobs)
            self.potentials = potentials(
                layout, model.parameters_, data, tables, Workers(model.n_jobs), model._state_weights
            )

    def decode(self, codes: Any) -> list[list[Any]]:
        """A list of labels per sequence."""
        table = np.empty(len(self.labels), object)
        table[:] = self.labels
        return split(table[codes].tolist(), self.data.offsets)

    def spread(self, values: FloatArray) -> FloatArray:
        """A value for each sequence, 0 for the empty ones."""
        out = np.zeros(len(self.full))
        out[self.full] = values
        return out


#: Columns are numbered by 32 bits in kernels.
LARGEST_INDEX = (1 << 31) - 1
#: The fitted attributes that a chain of either kind has.
WEIGHTS = (
    *("classes_", "n_features_in_", "vocabulary_bytes_", "vocabulary_offsets_", "state_index_", "transition_index_"),
    *("start_end_", "hashing_", "parameters_", "forbidden_transitions_", "forbidden_starts_", "forbidden_ends_"),
    *RUN,
)


def check_weights_fit(model: Any, states: Any) -> None:
    """Raise a `ModelFileError` unless the weights of a loaded chain fit each other and its states."""
    n = len(states)
    count = check_whole(model, "n_features_in_", 0, LARGEST_INDEX)
    check_bool(model, "start_end_")
    intercept = int(getattr(model, "has_intercept_", False))  # the column behind the last
    check_integers(model, "state_index_", (None, 2), 0, max(count + intercept, n))
    check_integers(model, "transition_index_", (None, 2), 0, n)
    check_array(model, "parameters_", (None,))
    if model.hashing_ is not None and check_whole(model, "hashing_", 1) != count:
        raise ModelFileError(f"hashing_ is {model.hashing_}, but there are {count} attributes")
    if (model.vocabulary_bytes_ is None) != (model.vocabulary_offsets_ is None):
        raise ModelFileError("vocabulary_bytes_ and vocabulary_offsets_ belong together")
    if model.vocabulary_bytes_ is None:
        check_memory(f"a table of {count} attributes", 16.0 * count)
    else:
        check_array(model, "vocabulary_bytes_", (None,), np.uint8)
        check_array(model, "vocabulary_offsets_", (count + 1,), np.int64)
    check_memory(f"a table of {n} labels", 32.0 * n * n)
    for name, shape in (("forbidden_transitions_", (n, n)), ("forbidden_starts_", (n,)), ("forbidden_ends_", (n,))):
        if getattr(model, name) is not None and check_array(model, name, shape, bool).all():
            raise ModelFileError(f"{name} forbids everything")
    layout = model._layout
    if layout.names is not None and len(set(layout.names)) < count:
        raise ModelFileError("vocabulary_bytes_ holds a name twice")
    for name, pairs in (("state_index_", layout.state), ("transition_index_", layout.transitions)):
        keys = pairs @ np.array([n, 1])
        if not (keys[1:] > keys[:-1]).all() and len(np.unique(keys)) < len(keys):
            raise ModelFileError(f"{name} holds a pair twice")
    if hasattr(model, "input_kind_") and not (hasattr(model, "column_mean_") and hasattr(model, "column_spread_")):
        raise ModelFileError("column_mean_ and column_spread_ are missing")
    model._inputs  # noqa: B018 (raises if they do not fit)
    check_run(model)


class ChainWeightsMixin:
    """Weights by name, and what follows from them, of a model whose fitted state `_store_weights` wrote."""

    @property
    def _states(self: Any) -> Any:
        """What stands at a position of the chain: the labels."""
        return self.classes_

    def _store_weights(self: Any, layout: ChainLayout, values: FloatArray, inputs: ChainInputs | None = None) -> None:
        self.n_features_in_ = layout.n_columns
        self.has_intercept_ = layout.intercept
        self.vocabulary_bytes_, self.vocabulary_offsets_ = packed(layout.names)
        self.state_index_ = layout.state.astype(np.int32)
        self.transition_index_ = layout.transitions.astype(np.int32)
        self.start_end_ = layout.start_end
        self.hashing_ = self.hashing
        self.parameters_ = values
        if inputs is not None:
            self.input_kind_ = inputs.kind
            self.column_mean_, self.column_spread_ = inputs.mean, inputs.spread
            if not inputs.intercept:
                self.column_mean_ = self.column_spread_ = None
        self._cache: dict[str, Any] = {"layout": layout}

    @property
    def attributes_(self: Any) -> list[Any]:
        """Names of the attributes; their numbers if there are no names."""
        check_is_fitted(self, "parameters_")
        return list(self._layout.features[: self.n_features_in_])

    @property
    def state_features_(self: Any) -> dict[Any, float]:
        """``{(attribute, label): weight}``"""
        return self._named_weights[0]  # type: ignore[no-any-return]

    @property
    def transition_features_(self: Any) -> dict[Any, float]:
        """``{(label from, label to): weight}``"""
        return self._named_weights[1]  # type: ignore[no-any-return]

    @property
    def start_features_(self: Any) -> dict[Any, float]:
        """``{label: weight}`` for standing first."""
        return self._named_weights[2]  # type: ignore[no-any-return]

    @property
    def end_features_(self: Any) -> dict[Any, float]:
        """``{label: weight}`` for standing last."""
        return self._named_weights[3]  # type: ignore[no-any-return]

    def _cached(self: Any, name: str, make: Any) -> Any:
        """What follows from the fitted arrays is made when first asked for, and forgotten in files and copies."""
        if name not in self.__dict__.get("_cache", ()):
            check_is_fitted(self, "parameters_")  # takes as long as a short sentence
            self.__dict__.setdefault("_cache", {})[name] = make()
        return self._cache[name]

    @property
    def _layout(self: Any) -> ChainLayout:
        def make() -> ChainLayout:
            vocabulary = (self.vocabulary_bytes_, self.vocabulary_offsets_)
            names = None if vocabulary[0] is None else unpack_strings(*vocabulary)
            index = (self.state_index_.astype(np.int64), self.transition_index_.astype(np.int64))
            constant = bool(getattr(self, "has_intercept_", False))  # files of earlier versions have none
            columns = self.n_features_in_ + constant
            layout = ChainLayout(self._states, names, columns, *index, self.start_end_, constant)
            if not layout.fits(self.parameters_):
                raise ModelFileError("the arrays of this model do not fit together: its file was changed or damaged")
            return layout

        return self._cached("layout", make)  # type: ignore[no-any-return]

    @property
    def _numeric(self: Any) -> bool | None:
        """Whether the model was fitted to numbers, not to tokens; None if that is not known."""
        kind = getattr(self, "input_kind_", None)
        return None if kind is None else kind != ATTRIBUTES

    @property
    def _inputs(self: Any) -> ChainInputs:
        """What the columns were to the solver."""
        count, kind = self.n_features_in_, getattr(self, "input_kind_", ATTRIBUTES)
        if not getattr(self, "has_intercept_", False):
            return ChainInputs(np.zeros(count), np.ones(count), False, kind)
        mean, spread = (
            np.asarray(getattr(self, name, None), dtype=np.float64) for name in ("column_mean_", "column_spread_")
        )
        if mean.shape != (count,) or spread.shape != (count,) or not (np.isfinite(mean).all() and (spread > 0.0).all()):
            raise ModelFileError("the arrays of this model do not fit together: its file was changed or damaged")
        return ChainInputs(mean, spread, True, kind)

    @property
    def _named_weights(self: Any) -> tuple[dict[Any, float], ...]:
        return self._cached("weights", lambda: self._layout.dicts(self.parameters_))  # type: ignore[no-any-return]

    @property
    def _state_weights(self: Any) -> StateWeights:
        return self._cached("state", lambda: state_weights(self._layout, self.parameters_))  # type: ignore[no-any-return]

    @property
    def _vectorizer(self: Any) -> AttributeVectorizer | None:
        def make() -> AttributeVectorizer | None:
            return vectorizer_of(self.vocabulary_bytes_, self.vocabulary_offsets_, self.hashing_)

        return self._cached("vectorizer", make)  # type: ignore[no-any-return]

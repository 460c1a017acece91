"""What estimators whose weights are those of a chain share: fitted arrays, weights by name, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.strings import pack_strings, unpack_strings
from ...core.errors import ModelFileError
from ...core.memory import check_memory
from ...core.results import FloatArray
from ...core.types import LabelArray, RandomState
from ...estimators.loaded import RUN, check_array, check_bool, check_integers, check_run, check_whole
from ...estimators.trained import Trained
from ..data.inputs import ChainInputs
from ..data.reading import Sequences
from ..data.sequences import ATTRIBUTES, KINDS
from ..data.types import Label, Lengths
from ..features.layout import ChainLayout
from ..structure.forbidden import BoolArray, Forbidden
from .fitted_chain import FittedChain
from .scores import ScoredSequences

T = TypeVar("T", bound="ChainModel")

#: What has a weight: pairs that occur in training, or all.
FEATURES: tuple[str, ...] = ("observed", "all")
#: Columns are numbered by 32 bits in kernels.
LARGEST_INDEX = (1 << 31) - 1
#: The fitted attributes of every chain.
FITTED = (
    *("classes_", "n_features_in_", "has_intercept_", "vocabulary_bytes_", "vocabulary_offsets_", "state_index_"),
    *("transition_index_", "start_end_", "hashing_", "parameters_", "forbidden_transitions_", "forbidden_starts_"),
    *("forbidden_ends_", "input_kind_", "column_mean_", "column_spread_", *RUN),
)
#: What models have had since there are intercepts, and what it was before.
BEFORE_INTERCEPTS: dict[str, Any] = {
    "has_intercept_": False,
    "input_kind_": None,
    "column_mean_": None,
    "column_spread_": None,
}
DAMAGED = "the arrays of this model do not fit together: its file was changed or damaged"


class ChainModel(Trained):
    """An estimator whose fitted state is a chain. The arrays of the chain are its fitted attributes, and `chain_` is made
    of them when it is first asked for."""

    TRANSIENT: ClassVar[tuple[str, ...]] = ("_chain",)

    hashing: int | None
    n_jobs: int | None
    random_state: RandomState

    classes_: LabelArray
    n_features_in_: int
    has_intercept_: bool
    vocabulary_bytes_: NDArray[np.uint8] | None
    vocabulary_offsets_: NDArray[np.int64] | None
    state_index_: NDArray[np.int32]
    transition_index_: NDArray[np.int32]
    start_end_: bool
    hashing_: int | None
    parameters_: FloatArray
    forbidden_transitions_: BoolArray | None
    forbidden_starts_: BoolArray | None
    forbidden_ends_: BoolArray | None
    input_kind_: str | None
    column_mean_: FloatArray | None
    column_spread_: FloatArray | None

    _chain: FittedChain | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        tags.input_tags.dict = True
        tags.target_tags.required = True
        return tags

    @property
    def chain_(self) -> FittedChain:
        """The fitted chain: what its weights mean, and what they say about new sequences."""
        chain = self._chain
        if chain is None or chain.values is not self.parameters_:
            check_is_fitted(self, "parameters_")  # takes as long as a short sentence
            chain = self._chain = self._made_chain()
        return chain

    @property
    def attributes_(self) -> list[Any]:
        """Names of the attributes; their numbers if there are no names."""
        layout = self.chain_.layout
        return list(layout.features[: layout.n_columns])

    @property
    def state_features_(self) -> dict[tuple[Any, Label], float]:
        """``{(attribute, label): weight}``"""
        return self.chain_.named_weights[0]

    @property
    def transition_features_(self) -> dict[tuple[Label, Label], float]:
        """``{(label from, label to): weight}``"""
        return self.chain_.named_weights[1]

    @property
    def start_features_(self) -> dict[Label, float]:
        """``{label: weight}`` for standing first."""
        return self.chain_.named_weights[2]

    @property
    def end_features_(self) -> dict[Label, float]:
        """``{label: weight}`` for standing last."""
        return self.chain_.named_weights[3]

    def _scored(self, X: Sequences, lengths: Lengths = None) -> ScoredSequences:
        """New sequences with their scores."""
        return self.chain_.scored(X, lengths, self.n_jobs)

    def _store_chain(self, chain: FittedChain) -> None:
        """Keep a chain as fitted arrays."""
        layout, inputs = chain.layout, chain.inputs
        self.classes_ = chain.classes
        self.n_features_in_ = layout.n_columns
        self.has_intercept_ = layout.intercept
        self.vocabulary_bytes_, self.vocabulary_offsets_ = None, None
        if layout.names is not None:
            self.vocabulary_bytes_, self.vocabulary_offsets_ = pack_strings(layout.names)
        self.state_index_ = layout.state.astype(np.int32)
        self.transition_index_ = layout.transitions.astype(np.int32)
        self.start_end_ = layout.start_end
        self.hashing_ = chain.hashing
        self.parameters_ = chain.values
        self.forbidden_transitions_, self.forbidden_starts_, self.forbidden_ends_ = chain.forbidden
        self.input_kind_ = inputs.kind
        self.column_mean_, self.column_spread_ = (inputs.mean, inputs.spread) if inputs.intercept else (None, None)
        self._chain = chain

    def _estimates_like(self, other: Self) -> FloatArray:
        return other.chain_.layout.align(other.parameters_, self.chain_.layout)

    def _states(self) -> LabelArray:
        """What stands at a position of the chain: the labels."""
        return self.classes_

    def _made_chain(self) -> FittedChain:
        """The chain of the fitted arrays."""
        names = None
        if self.vocabulary_bytes_ is not None and self.vocabulary_offsets_ is not None:
            names = unpack_strings(self.vocabulary_bytes_, self.vocabulary_offsets_)
        index = (self.state_index_.astype(np.int64), self.transition_index_.astype(np.int64))
        columns = self.n_features_in_ + self.has_intercept_
        layout = ChainLayout(self._states(), names, columns, *index, self.start_end_, self.has_intercept_)
        if not layout.fits(self.parameters_):
            raise ModelFileError(DAMAGED)
        return FittedChain(
            classes=self.classes_,
            layout=layout,
            values=self.parameters_,
            forbidden=Forbidden(self.forbidden_transitions_, self.forbidden_starts_, self.forbidden_ends_),
            inputs=self._made_inputs(),
            numeric=None if self.input_kind_ is None else self.input_kind_ != ATTRIBUTES,
            hashing=self.hashing_,
        )

    def _made_inputs(self) -> ChainInputs:
        count, kind = self.n_features_in_, self.input_kind_ or ATTRIBUTES
        if not self.has_intercept_:
            return ChainInputs.plain(count, kind)
        mean, spread = (np.asarray(part, dtype=np.float64) for part in (self.column_mean_, self.column_spread_))
        if mean.shape != (count,) or spread.shape != (count,) or not (np.isfinite(mean).all() and (spread > 0.0).all()):
            raise ModelFileError(DAMAGED)
        return ChainInputs(mean, spread, True, kind)

    @classmethod
    def _unpack(cls: type[T], values: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> T:
        made = super()._unpack(values, arrays)
        made._complete()
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._complete()

    def _complete(self) -> None:
        """Files and pickles of earlier versions tell nothing of intercepts: there were none."""
        known = vars(self).keys()
        if "parameters_" in known and not known & BEFORE_INTERCEPTS.keys():
            self.__dict__.update(BEFORE_INTERCEPTS)


def check_chain(model: ChainModel, n_states: int) -> None:
    """Raise a `ModelFileError` unless the arrays of a loaded chain fit each other and its states."""
    count = check_whole(model, "n_features_in_", 0, LARGEST_INDEX)
    check_bool(model, "start_end_")
    constant = int(check_bool(model, "has_intercept_"))  # the column behind the last
    check_integers(model, "state_index_", (None, 2), 0, max(count + constant, n_states))
    check_integers(model, "transition_index_", (None, 2), 0, n_states)
    check_array(model, "parameters_", (None,))
    if model.hashing_ is not None and check_whole(model, "hashing_", 1) != count:
        raise ModelFileError(f"hashing_ is {model.hashing_}, but there are {count} attributes")
    if model.input_kind_ not in (None, *KINDS):
        raise ModelFileError(f"input_kind_ must be one of {', '.join(map(repr, KINDS))}, got {model.input_kind_!r}")
    _check_vocabulary(model, count)
    check_memory(f"a table of {n_states} labels", 32.0 * n_states * n_states)
    each = (n_states,)
    shapes = {"forbidden_transitions_": (n_states, n_states), "forbidden_starts_": each, "forbidden_ends_": each}
    for name, shape in shapes.items():
        if vars(model)[name] is not None and check_array(model, name, shape, bool).all():
            raise ModelFileError(f"{name} forbids everything")
    layout = model.chain_.layout
    if layout.names is not None and len(set(layout.names)) < count:
        raise ModelFileError("vocabulary_bytes_ holds a name twice")
    for name, pairs in (("state_index_", layout.state), ("transition_index_", layout.transitions)):
        keys = pairs @ np.array([n_states, 1])
        if not (keys[1:] > keys[:-1]).all() and len(np.unique(keys)) < len(keys):
            raise ModelFileError(f"{name} holds a pair twice")
    check_run(model)


def _check_vocabulary(model: ChainModel, count: int) -> None:
    if (model.vocabulary_bytes_ is None) != (model.vocabulary_offsets_ is None):
        raise ModelFileError("vocabulary_bytes_ and vocabulary_offsets_ belong together")
    if model.vocabulary_bytes_ is None:
        check_memory(f"a table of {count} attributes", 16.0 * count)
    else:
        check_array(model, "vocabulary_bytes_", (None,), np.uint8)
        check_array(model, "vocabulary_offsets_", (count + 1,), np.int64)

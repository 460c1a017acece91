"""A fitted chain: its weights, what they mean, and what they say about new sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray
from ...core.types import LabelArray
from ...estimators.labels import Labels
from ..data.hidden_states import hidden_labels
from ..data.inputs import ChainInputs
from ..data.reading import Sequences, read_sequences
from ..data.sequences import SequenceData
from ..data.types import Label, Lengths
from ..features.attributes import AttributeVectorizer
from ..features.layout import ChainLayout
from ..features.state_weights import StateWeights
from ..structure.chain import Chain
from ..structure.forbidden import Forbidden
from .scores import ScoredSequences, align_columns, potentials, state_weights, with_constant


def vectorizer_of(names: list[str] | None, hashing: int | None) -> AttributeVectorizer | None:
    """What turns tokens into the columns of a model: by hashing, or by their names; None if there are no names."""
    if hashing is None and names is None:
        return None
    made = AttributeVectorizer(hashing=hashing)
    made.number_as(names or ())
    return made


@dataclass(frozen=True, eq=False)
class FittedChain:
    """Weights of a chain with what they mean. What follows from them is made when first asked for.

    Attributes
    ----------
    classes : array
        The labels, sorted.
    layout : ChainLayout
        What each weight belongs to. Its classes are the states of the chain: the labels, or `n_hidden` for each of them.
    values : array
        The weights, on the columns of the user.
    forbidden : Forbidden
        States that may not follow each other, not stand first, or not last.
    inputs : ChainInputs
        What the columns were to the solver.
    numeric : bool or None
        Whether the columns are numbers, not attributes of tokens; None if that is not known.
    hashing : int or None
        Number of columns that attributes are hashed into.
    """

    classes: LabelArray
    layout: ChainLayout
    values: FloatArray
    forbidden: Forbidden
    inputs: ChainInputs
    numeric: bool | None
    hashing: int | None

    @property
    def n_hidden(self) -> int:
        """Hidden states of each label."""
        return self.layout.n_labels // len(self.classes)

    @cached_property
    def labels(self) -> list[Label]:
        """The labels as a list."""
        return list(self.classes.tolist())

    @cached_property
    def states(self) -> list[Label]:
        """The states as a list."""
        return list(self.layout.classes.tolist())

    @cached_property
    def named_weights(self) -> tuple[dict[Label, float], ...]:
        """Weights of (attribute, state), (state, state), states that stand first, and states that stand last."""
        return self.layout.dicts(self.values)

    @cached_property
    def state_weights(self) -> StateWeights:
        """The weights of attributes as a table."""
        return state_weights(self.layout, self.values)

    @cached_property
    def vectorizer(self) -> AttributeVectorizer | None:
        """What turns tokens into columns; None if the model takes matrices only."""
        return vectorizer_of(self.layout.names, self.hashing)

    def trimmed(self) -> FittedChain:
        """The chain without attributes that have no weight; itself if there are none such. They must be those of tokens."""
        layout = self.layout.trim()
        if layout is self.layout:
            return self
        return replace(self, layout=layout, inputs=ChainInputs.plain(layout.n_columns, self.inputs.kind))

    def read(self, X: Sequences, lengths: Lengths = None) -> SequenceData:
        """Sequences as users give them, in columns of their own."""
        return read_sequences(X, lengths, self.vectorizer, fit=False, numeric=self.numeric)

    def scored(self, X: Sequences, lengths: Lengths, n_jobs: int | None) -> ScoredSequences:
        """Sequences as users give them with their scores, computed by `n_jobs` threads."""
        data = with_constant(align_columns(self.read(X, lengths), self.layout), self.layout)
        counts, states = data.lengths, self.states
        if not counts.any():
            return ScoredSequences(data, states, None, (np.zeros((0, len(states))), np.zeros((len(states), len(states)))))
        chain = Chain(len(states), counts[counts > 0], n_jobs)
        found = potentials(self.layout, self.values, data, self.forbidden, Workers(n_jobs), self.state_weights)
        return ScoredSequences(data, states, chain, found)

    def states_of(self, labels: Labels) -> Labels:
        """What labels say of the states."""
        return labels if self.n_hidden == 1 else hidden_labels(labels, self.n_hidden)

    def hidden_marginals(self, scored: ScoredSequences) -> FloatArray:
        """The probability of every label and hidden state at every position, by forward-backward."""
        return scored.marginals().reshape(-1, len(self.classes), self.n_hidden)

    def label_marginals(self, scored: ScoredSequences) -> FloatArray:
        """The probability of every label at every position."""
        return scored.marginals() if self.n_hidden == 1 else np.asarray(self.hidden_marginals(scored).sum(axis=2))

"""Sequences with their scores: Viterbi, forward-backward, n-best and samples, as labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ...core.errors import DataWarning
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.types import RandomState
from ...core.warn import warn
from ...estimators.labels import Labels, split
from ..data.forbidden import mask_scores
from ..data.sequences import DENSE, SequenceData
from ..data.types import Label
from ..features.attribute_index import AttributeIndex, assemble
from ..features.chain import Scores
from ..features.layout import ChainLayout
from ..features.records import check_names
from ..features.state_weights import StateWeights
from ..structure.chain import Chain
from ..structure.forbidden import Forbidden


def align_columns(data: SequenceData, layout: ChainLayout) -> SequenceData:
    """The data in the columns of a layout, without the constant; attributes that it does not know are dropped."""
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
    return SequenceData.unchecked(X, data.offsets, data.labels, layout.names, data.kind)


def with_constant(data: SequenceData, layout: ChainLayout) -> SequenceData:
    """The data with a last column of ones, if a layout has a constant."""
    if not layout.intercept:
        return data
    X = data.X if data.X.shape[0] else sp.csr_matrix((0, layout.n_columns))
    X = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    return SequenceData.unchecked(X, data.offsets, data.labels, None, data.kind)


def state_weights(layout: ChainLayout, values: FloatArray) -> StateWeights:
    """The weights of attributes as a table."""
    attribute, label = layout.state.T
    return StateWeights(attribute, label, layout.parts(values)[0], layout.n_attributes, layout.n_labels)


def potentials(
    layout: ChainLayout,
    values: FloatArray,
    data: SequenceData,
    forbidden: Forbidden,
    workers: Workers,
    state: StateWeights | None = None,
) -> Scores:
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
    forbidden.mask(unary, pairwise, offsets)
    return unary, pairwise


def log_probabilities(chain: Chain, scores: Scores, labels: Labels) -> FloatArray:
    """Log-probability of each sequence's labelling, or of all those that its sets allow."""
    if labels.sets is None:
        inside = chain.score(scores, labels.codes)
    else:
        inside = chain.log_partition((mask_scores(scores[0], labels), scores[1]))
    return inside - chain.log_partition(scores)


@dataclass(frozen=True)
class ScoredSequences:
    """Sequences to be labelled, some of them perhaps empty.

    Attributes
    ----------
    data : SequenceData
    states : list
        What may stand at a position: labels, or pairs of a label and a hidden state.
    chain : Chain or None
        The sequences that are not empty; None if all are.
    scores : pair of arrays
        Of the states at all positions, and of transitions.
    """

    data: SequenceData
    states: list[Label]
    chain: Chain | None
    scores: Scores

    def __len__(self) -> int:
        return len(self.data)

    @property
    def offsets(self) -> IntArray:
        """Where sequences begin and end."""
        return self.data.offsets

    @property
    def full(self) -> IntArray:
        """Numbers of the sequences that are not empty."""
        return np.flatnonzero(self.data.lengths)

    def viterbi(self) -> IntArray:
        """The state of every position in the most probable labellings."""
        return np.zeros(0, np.int64) if self.chain is None else self.chain.argmax(self.scores)[0]

    def marginals(self) -> FloatArray:
        """The probability of every state at every position, by forward-backward."""
        if self.chain is None:
            return np.zeros((0, len(self.states)))
        return np.asarray(self.chain.infer(self.scores).marginals[0])

    def log_probabilities(self, labels: Labels) -> FloatArray:
        """Log-probability of a labelling of each sequence, or of all those that its sets allow; 0 if it is empty."""
        out = np.zeros(len(self))
        if self.chain is not None:
            out[self.full] = log_probabilities(self.chain, self.scores, labels)
        return out

    def kbest(self, k: int) -> list[list[tuple[list[Label], float]]]:
        """The n-best labellings of each sequence, at most k, best first, with their log-probabilities."""
        # No sequence has more labellings than that.
        k = min(k, len(self.states) ** min(int(self.data.lengths.max(initial=1)), 64))
        self._check_answer(f"k={k} best labellings", k, "Lower k, or give fewer sequences at a time")
        out: list[list[tuple[list[Label], float]]] = [[] if length else [([], 0.0)] for length in self.data.lengths]
        if self.chain is None:
            return out
        Y, values = self.chain.kbest(self.scores, k)
        values = values - self.chain.log_partition(self.scores)
        numbers = self.full.tolist()
        for codes, row in zip(Y, values, strict=True):
            labellings = self.decode(codes)
            for i, value in zip(numbers, row.tolist(), strict=True):
                if value > -np.inf:
                    out[i].append((labellings[i], value))
        return out

    def sample(self, size: int, random_state: RandomState) -> list[list[list[Label]]]:
        """Labellings drawn by their probability, `size` of each sequence."""
        self._check_answer(f"size={size} samples", size, "Draw fewer at a time")
        if self.chain is None:
            return [[[] for _ in range(size)] for _ in range(len(self))]
        drawn = [self.decode(codes) for codes in self.chain.sample(self.scores, size, random_state)]
        return [[labellings[i] for labellings in drawn] for i in range(len(self))]

    def decode(self, codes: IntArray) -> list[list[Label]]:
        """A list of states per sequence."""
        return decode(self.states, codes, self.offsets)

    def _check_answer(self, what: str, count: int, cure: str) -> None:
        """There must be memory for lists of so many labellings of every sequence, before they are made."""
        positions, sequences = self.data.X.shape[0], len(self)
        n_bytes = float(count) * (24.0 * positions + 100.0 * sequences)
        check_memory(f"{what} of {sequences} sequences with {positions} positions", n_bytes, cure)


def decode(labels: list[Label], codes: IntArray, offsets: IntArray) -> list[list[Label]]:
    """The labels of codes, a list per sequence."""
    table = np.empty(len(labels), object)
    table[:] = labels
    return split(table[codes].tolist(), offsets)

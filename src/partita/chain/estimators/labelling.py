"""Labels of the positions of sequences, and their probabilities."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import Literal, overload

import numpy as np

from ...core.arrays.simplex import normalized
from ...core.results import FloatArray
from ...core.types import RandomState, SampleWeight
from ...core.validation import check_count, check_weights
from ...core.warn import warn
from ...estimators.labels import split
from ...report.explanation import Explanation
from ..data.reading import Sequences, labels_of
from ..data.types import Label, LabelSequences, Lengths, SequenceLike
from .chain_model import ChainModel
from .explanation import explain
from .scores import ScoredSequences


class SequenceLabeller(ChainModel):
    """A chain that labels every position of a sequence."""

    @abstractmethod
    def predict(self, X: Sequences, lengths: Lengths = None) -> list[list[Label]]:
        """The labels of each sequence."""

    def predict_single(self, sequence: SequenceLike) -> list[Label]:
        """The most probable labelling of one sequence."""
        return self.predict([sequence])[0]

    @overload
    def predict_marginals(
        self, X: Sequences, lengths: Lengths = None, as_array: Literal[False] = False
    ) -> list[list[dict[Label, float]]]: ...

    @overload
    def predict_marginals(self, X: Sequences, lengths: Lengths = None, *, as_array: Literal[True]) -> list[FloatArray]: ...

    @overload
    def predict_marginals(
        self, X: Sequences, lengths: Lengths = None, as_array: bool = False
    ) -> list[list[dict[Label, float]]] | list[FloatArray]: ...

    def predict_marginals(
        self, X: Sequences, lengths: Lengths = None, as_array: bool = False
    ) -> list[list[dict[Label, float]]] | list[FloatArray]:
        """The probability of every label at every position, by forward-backward.

        For each sequence a list of dicts ``{label: probability}``; with `as_array`, an array of shape (positions, labels) in
        the order of `classes_`.
        """
        chain, scored = self.chain_, self._scored(X, lengths)
        P = normalized(chain.label_marginals(scored))
        if as_array:
            return split(P, scored.offsets)
        return split([dict(zip(chain.labels, row, strict=True)) for row in P.tolist()], scored.offsets)

    def predict_marginals_single(self, sequence: SequenceLike) -> list[dict[Label, float]]:
        """The probability of every label at every position of one sequence."""
        return self.predict_marginals([sequence])[0]

    def predict_proba(
        self, X: Sequences, y: LabelSequences = None, lengths: Lengths = None
    ) -> list[FloatArray] | FloatArray:
        """The probability of every label at every position: arrays of shape (positions, labels), by `classes_`.

        The same as ``predict_marginals(X, as_array=True)``, under scikit-learn's name. With `y` it is the probability of
        these labels, as it was before; that goes with the next release: use ``np.exp(log_likelihood(X, y))``.
        """
        if y is not None:
            _warn_of_labels("predict_proba", "np.exp(log_likelihood(X, y))")
            return np.asarray(np.exp(self.log_likelihood(X, y, lengths)))
        return self.predict_marginals(X, lengths, as_array=True)

    def predict_log_proba(
        self, X: Sequences, y: LabelSequences = None, lengths: Lengths = None
    ) -> list[FloatArray] | FloatArray:
        """The logarithms of `predict_proba`."""
        if y is not None:
            _warn_of_labels("predict_log_proba", "log_likelihood(X, y)")
            return self.log_likelihood(X, y, lengths)
        with np.errstate(divide="ignore"):
            return [np.log(P) for P in self.predict_marginals(X, lengths, as_array=True)]

    def log_likelihood(self, X: Sequences, y: LabelSequences = None, lengths: Lengths = None) -> FloatArray:
        """Log-probability of the given labelling of each sequence (of all that fit, where labels are None or sets)."""
        chain, scored = self.chain_, self._scored(X, lengths)
        return scored.log_probabilities(chain.states_of(labels_of(scored.data, y, self.classes_)))

    def score(
        self,
        X: Sequences,
        y: LabelSequences = None,
        lengths: Lengths = None,
        sample_weight: SampleWeight = None,
    ) -> float:
        """The share of right labels, one of the set where y has a set; positions where y is None do not count.

        `sample_weight` is by sequence. For other scores see `partita.metrics`.
        """
        data = self.chain_.read(X, lengths)
        labels, weights = labels_of(data, y), check_weights("sample_weight", sample_weight, len(data))
        found = list(itertools.chain.from_iterable(self.predict(data)))
        return labels.share_right(found, np.repeat(weights, data.lengths))


class ChainLabeller(SequenceLabeller):
    """A chain whose states are the labels, so that whole labellings can be ranked and drawn."""

    def predict(self, X: Sequences, lengths: Lengths = None) -> list[list[Label]]:
        """The most probable labelling of each sequence, by the Viterbi algorithm."""
        scored = self._scored(X, lengths)
        return scored.decode(scored.viterbi())

    def predict_kbest(self, X: Sequences, k: int, lengths: Lengths = None) -> list[list[tuple[list[Label], float]]]:
        """The k most probable labellings of each sequence (n-best), best first, each with its log-probability.

        Fewer than k where a sequence has fewer.
        """
        check_count("k", k, minimum=1)
        return self._scored(X, lengths).kbest(k)

    def sample(
        self, X: Sequences, size: int = 1, random_state: RandomState = None, lengths: Lengths = None
    ) -> list[list[list[Label]]]:
        """Labellings drawn at random by their probability: for each sequence, a list of `size` of them."""
        check_count("size", size)
        return self._scored(X, lengths).sample(size, self.random_state if random_state is None else random_state)

    def explain(self, sequence: SequenceLike, position: int | None = None) -> Explanation:
        """Which features pushed which label: for each position, or one.

        A feature's push is what it adds to the score of the predicted label, less what it adds to that of the runner-up (the
        most probable other label there), the neighbours' labels being as predicted. ``print`` the answer to read it.
        """
        scored = self._scored([sequence])
        return explain(self.chain_, scored, chosen_positions(scored, position))


def chosen_positions(scored: ScoredSequences, position: int | None) -> list[int]:
    """The positions of one sequence, or the one that was asked for, which may be counted from the end."""
    length = int(scored.offsets[-1])
    if position is None:
        return list(range(length))
    if not -length <= check_count("position", position, minimum=-length) < length:
        raise ValueError(f"position must be below the length of the sequence, {length}; got {position}")
    return [position % length]


def _warn_of_labels(name: str, instead: str) -> None:
    warn(
        f"{name}(X, y) is {instead} now: {name} takes no labels from the next release on, as in scikit-learn", FutureWarning
    )

"""Chains of labels, each of which has hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import check_choice, check_real, check_weights
from ...estimators.data import unchanged_on_failure
from ...estimators.labels import Labels, split
from ..data.inputs import ChainInputs, check_weighted
from ..data.sequences import ATTRIBUTES, SequenceData, counting, labels_of, read_sequences
from ..features.attributes import AttributeVectorizer
from ..features.chain import ChainFeatures
from ..objective.likelihood import ChainLikelihood
from .chain_crf import FEATURES
from .hidden_states import HiddenStates, clusters, hidden_labels, hidden_pairs, parts
from .prediction import LabellingMixin
from .weights import Tagging


class LatentDynamicCRF(LabellingMixin, HiddenStates):
    """A chain that labels every position, with hidden states for every label (Morency, Quattoni and Darrell, 2007).

    The chain runs over states (label, hidden state); the probability of a labelling is the sum over the states that belong
    to its labels. Fitting minimises ``sum_i w_i (-log p(y_i | x_i)) + (l2 / 2) ||theta||^2``, which has local minima. With
    one hidden state it is `ChainCRF`, but for the intercepts of numbers, which are penalised here.

    Parameters
    ----------
    n_hidden : int
        Hidden states of each label.
    l2 : float
        Strength of the quadratic penalty, on all weights.
    solver : str or solver object
        ``"auto"`` (scaled L-BFGS), ``"majorize"`` (never rises), ``"lbfgs"``, ``"cg"``, ``"newton"``, …
    features, transitions : {"observed", "all"}
        As in `ChainCRF`, for labels: what has a weight there has one for each hidden state, or each pair of them, here.
    start_end : bool
        Weights of states for standing first and last.
    min_frequency, hashing
        As in `ChainCRF`.
    fit_intercept : bool
        As in `HiddenChainCRF`.
    init : {"kmeans", "left_right", "random"}
        Starts: ten iterations towards a guess of the hidden states, by clusters of the attributes of a label's positions
        or by the part of a run of equal labels; or random weights.
    init_scale : float
        Standard deviation of random weights, from which every start begins. At zero with ``init="random"`` nothing tells the
        hidden states apart, and they stay alike.
    n_init : int
        Number of starts; the fit with the lowest objective is kept.
    max_iter : int
        Most iterations of the solver, from each start.
    tol : float
        Stop when the largest absolute entry of the gradient, divided by the number of positions, is at most `tol`.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    random_state : None, int or generator
        Of the starts.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    state_features_, transition_features_ : dict
        ``{(attribute, (label, h)): weight}`` and ``{((label, h), (label, h)): weight}``.
    start_features_, end_features_ : dict
        ``{(label, h): weight}``, empty without `start_end`.
    objectives_ : array
        The objective that each start led to; NaN where an interrupt came first.
    n_hidden_, n_features_in_, n_iter_ : int
    trace_ : Trace
    status_ : Status
        Of the fit that was kept.

    Notes
    -----
    X and y are as in `ChainCRF`; a label may be None (unknown) or a set of labels.

    Examples
    --------
    The letter a has the label "mark" at every third place, where one label per position has no memory to count:

    >>> from partita import LatentDynamicCRF
    >>> X = [[["a"] for _ in range(length)] for length in (6, 7, 8, 9)]
    >>> y = [["mark" if t % 3 == 2 else "no" for t in range(len(row))] for row in X]
    >>> model = LatentDynamicCRF(n_hidden=2, l2=0.01, start_end=True, init="left_right", random_state=0).fit(X, y)
    >>> model.predict([[["a"]] * 6])
    [['no', 'no', 'mark', 'no', 'no', 'mark']]
    """

    def __init__(
        self,
        n_hidden: int = 2,
        l2: float = 1.0,
        solver: Any = "auto",
        features: str = "observed",
        transitions: str = "observed",
        start_end: bool = False,
        min_frequency: float | None = None,
        hashing: int | None = None,
        fit_intercept: bool = True,
        init: str = "kmeans",
        init_scale: float = 0.1,
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 2e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.l2 = l2
        self.solver = solver
        self.features = features
        self.transitions = transitions
        self.start_end = start_end
        self.min_frequency = min_frequency
        self.hashing = hashing
        self.fit_intercept = fit_intercept
        self.init = init
        self.init_scale = init_scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, lengths: Any = None, sample_weight: Any = None) -> LatentDynamicCRF:
        """Fit to sequences X and the labels y of their positions. A failed fit changes nothing.

        Parameters
        ----------
        X, y, lengths
            As in `ChainCRF`. y may be None if X is `SequenceData` with labels.
        sample_weight : array of shape (n_sequences,), optional
        """
        with unchanged_on_failure(self):
            return self._fit(X, y, lengths, sample_weight)

    def _fit(self, X: Any, y: Any, lengths: Any, sample_weight: Any) -> LatentDynamicCRF:
        self._check_parameters()
        data = read_sequences(X, lengths, AttributeVectorizer(hashing=self.hashing), fit=True)
        labels = labels_of(data, y)
        weights = check_weights("sample_weight", sample_weight, len(data))
        data, weights, _ = counting(data, labels, weights)
        labels = data.labels.compact()  # type: ignore[union-attr]
        self._check_size(len(labels.classes), int(data.offsets[-1]))
        states = hidden_labels(labels, self.n_hidden)
        inputs = ChainInputs.of(data, weights, float(self.l2), bool(self.fit_intercept))
        rows = inputs.rows(data).X
        features = self._features(inputs, data, rows, labels)
        layout = inputs.layout(features, states.classes, data.attributes)
        # A hidden state that nobody needs would run away if its intercept were free; at the means of the columns it has a
        # penalty, and a shift of X changes nothing all the same.
        penalty = inputs.strengths(layout, self.l2, 2, free=False)

        def make(codes: IntArray) -> ChainLikelihood:
            return ChainLikelihood(features, codes, sets=states.sets, weights=weights, penalty=penalty)

        def guessed(random: np.random.Generator) -> ChainLikelihood:
            if self.init == "kmeans":
                h = clusters(rows, labels.codes, self.n_hidden, random)
            else:
                changes = 1 + np.flatnonzero(np.diff(labels.codes))
                h = parts(np.union1d(data.offsets[:-1], changes), len(labels.codes), self.n_hidden)
            return make(np.where(labels.codes >= 0, labels.codes * self.n_hidden + h, states.codes))

        values = self._best(make(states.codes), guessed).parameters
        trim = data.kind == ATTRIBUTES and not isinstance(X, SequenceData)
        self._store_states(labels.classes, inputs, layout, values, None, trim)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("features", self.features, FEATURES)
        check_choice("transitions", self.transitions, FEATURES)
        check_real("min_frequency", 0.0 if self.min_frequency is None else self.min_frequency, minimum=0.0)

    def _features(self, inputs: ChainInputs, data: SequenceData, rows: Any, labels: Labels) -> ChainFeatures:
        pairs, moves = inputs.pairs(self, data, labels)
        check_weighted(self, pairs, moves)
        state, moves = hidden_pairs(pairs, self.n_hidden, both=False), hidden_pairs(moves, self.n_hidden, both=True)
        n, ends = len(labels.classes) * self.n_hidden, bool(self.start_end)
        state = np.concatenate([state, inputs.intercept_pairs(np.arange(n))])
        workers = Workers(self.n_jobs)
        return ChainFeatures(rows, data.offsets, n, state[:, 0], state[:, 1], moves, ends, ends, workers=workers)

    def _labels_as_states(self, labels: Labels) -> Labels:
        return hidden_labels(labels, self.n_hidden_)

    def _label_marginals(self, tagging: Tagging) -> FloatArray:
        return np.asarray(self._hidden(tagging).sum(axis=2))

    def predict(self, X: Any, lengths: Any = None) -> list[list[Any]]:
        """The most probable label of every position: the one whose hidden states together have the highest probability."""
        tagging = Tagging(self, X, lengths)
        return tagging.decode(self._hidden(tagging).sum(axis=2).argmax(axis=1))

    def hidden_proba(self, X: Any, lengths: Any = None) -> list[FloatArray]:
        """For each sequence the probability of every label and hidden state, shape (positions, labels, n_hidden)."""
        tagging = Tagging(self, X, lengths)
        return split(self._hidden(tagging), tagging.data.offsets)

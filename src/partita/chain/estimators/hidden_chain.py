"""Sequences with one label each, and hidden states at their positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin

from ...core.arrays.simplex import normalized
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import check_flag, check_weights
from ...estimators.class_sets import encode_examples
from ...estimators.data import unchanged_on_failure
from ...estimators.labels import split
from ..data.inputs import ChainInputs
from ..data.sequences import ATTRIBUTES, SequenceData, counting, read_sequences
from ..features.attributes import AttributeVectorizer
from ..features.chain import ChainFeatures
from ..features.tied import TiedFeatures
from ..objective.likelihood import ChainLikelihood
from ..structure.chain import Chain
from .hidden_states import HiddenStates, clusters, hidden_labels, hidden_pairs, parts
from .weights import Tagging


class HiddenChainCRF(ClassifierMixin, HiddenStates):
    """A classifier of sequences, with a hidden state at every position (Quattoni et al., 2007).

    ``p(label | x)`` is proportional to the sum over hidden states h_1, h_2, … of
    ``exp(sum_t theta[label, h_t] . x_t + sum_t A[label, h_{t-1}, h_t] + a[label, h_first] + b[label, h_last])``.
    Fitting minimises ``sum_i w_i (-log p(label_i | x_i))`` plus ``l2 / 2`` times the sum of squares of all weights, which
    has local minima. With one hidden state it is a softmax regression on summed attributes and the length.

    Parameters
    ----------
    n_hidden : int
        Hidden states of each label.
    shared : bool
        Whether attributes have the same weights for all labels: labels then differ in how states follow each other, as in
        the paper (whose weights of a label with a state are in A and a here).
    l2 : float
        Strength of the quadratic penalty, on all weights.
    solver : str or solver object
        ``"auto"`` (scaled L-BFGS), ``"majorize"`` (never rises), ``"lbfgs"``, ``"cg"``, ``"newton"``, …
    start_end : bool
        Whether there are a and b, weights of states for standing first and last.
    hashing : int or None
        Number of columns to hash attributes into. The model then keeps no names.
    fit_intercept : bool
        Whether states have intercepts where X is numbers: then a shift of a column, or other units, change nothing beyond
        what `l2` means in them. Scores at the means of dense columns are penalised, so that hidden states stay within reach.
    init : {"left_right", "kmeans", "random"}
        Starts: ten iterations towards a guess of the hidden states, by the part of the sequence (the first state in the
        first part, and so on) or by clusters of attributes; or random weights.
    init_scale, n_init, max_iter, tol, n_jobs, random_state, verbose
        As in `LatentDynamicCRF`.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    state_features_, transition_features_, start_features_, end_features_, objectives_, n_hidden_, n_iter_, trace_, status_
        As in `LatentDynamicCRF`.

    Notes
    -----
    X is as in `ChainCRF`: a list of sequences of tokens or of matrices with a row per position, one stacked matrix with
    ``lengths=``, or `SequenceData`. y has one label, a string or an integer, for each sequence; None stands for an unknown
    one, and a set of labels for one of these.

    Examples
    --------
    Sequences of the same letters, told apart by their order:

    >>> from partita import HiddenChainCRF
    >>> X = [[[letter] for letter in word] for word in ("aabb", "ab", "aab", "bbaa", "ba", "baa")]
    >>> y = ["rises", "rises", "rises", "falls", "falls", "falls"]
    >>> model = HiddenChainCRF(n_hidden=2, l2=0.1, random_state=0).fit(X, y)
    >>> model.predict([[["a"], ["b"], ["b"]], [["b"], ["b"], ["a"]]])
    array(['rises', 'falls'], dtype='<U5')
    """

    def __init__(
        self,
        n_hidden: int = 3,
        shared: bool = False,
        l2: float = 1.0,
        solver: Any = "auto",
        start_end: bool = True,
        hashing: int | None = None,
        fit_intercept: bool = True,
        init: str = "left_right",
        init_scale: float = 0.1,
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 2e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.shared = shared
        self.l2 = l2
        self.solver = solver
        self.start_end = start_end
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

    def fit(self, X: Any, y: Any, lengths: Any = None, sample_weight: Any = None) -> HiddenChainCRF:
        """Fit to sequences X and their labels y. A failed fit changes nothing.

        Parameters
        ----------
        X, lengths
            As in `ChainCRF`.
        y : list of labels
            One for each sequence: a string or an integer, a set of these (one is right), or None (unknown).
        sample_weight : array of shape (n_sequences,), optional
        """
        with unchanged_on_failure(self):
            return self._fit(X, y, lengths, sample_weight)

    def _fit(self, X: Any, y: Any, lengths: Any, sample_weight: Any) -> HiddenChainCRF:
        self._check_parameters()
        data = read_sequences(X, lengths, AttributeVectorizer(hashing=self.hashing), fit=True)
        labels = encode_examples(y, len(data), "sequence")
        weights = check_weights("sample_weight", sample_weight, len(data))
        _check_not_empty(data, weights > 0.0)
        data, weights, _ = counting(data, labels.take(np.repeat(np.arange(len(data)), data.lengths)), weights)
        labels = data.labels.compact()  # type: ignore[union-attr]
        n, H = len(labels.classes), self.n_hidden
        if n < 2:
            raise ValueError(f"y must hold at least two different labels, got only {labels.classes.tolist()[0]!r}")
        self._check_size(n, int(data.offsets[-1]))
        inputs = ChainInputs.of(data, weights, float(self.l2), bool(self.fit_intercept))
        rows = inputs.rows(data).X
        states, features = hidden_labels(labels, H), self._features(inputs, data, rows, n)
        layout = inputs.layout(features, states.classes, data.attributes)
        group = _same_over_labels(features, H) if self.shared else np.arange(features.size)
        tied: Any = TiedFeatures(features, group) if self.shared else features
        # A hidden state that nobody needs would run away if its intercept were free; at the means of the columns it has a
        # penalty, and a shift of X changes nothing all the same.
        penalty = inputs.strengths(layout, self.l2, 2, free=False)
        first = np.unique(group, return_index=True)[1]  # a weight that is shared is penalised once
        options: dict[str, Any] = {"sets": states.sets, "weights": weights, "penalty": penalty[first]}
        options["forbidden"] = np.repeat(np.repeat(~np.eye(n, dtype=bool), H, axis=0), H, axis=1)

        def guessed(random: np.random.Generator) -> ChainLikelihood:
            if self.init == "kmeans":
                h = clusters(rows, np.zeros_like(labels.codes) if self.shared else labels.codes, H, random)
            else:
                h = parts(data.offsets[:-1], len(labels.codes), H)
            return ChainLikelihood(tied, np.where(labels.codes >= 0, labels.codes * H + h, states.codes), **options)

        # The label of a sequence never changes within it, and any hidden state goes with it.
        values = self._best(ChainLikelihood(tied, states.codes, **options), guessed).parameters[group]
        trim = data.kind == ATTRIBUTES and not isinstance(X, SequenceData)
        self._store_states(labels.classes, inputs, layout, values, options["forbidden"], trim)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("shared", self.shared)

    def _features(self, inputs: ChainInputs, data: SequenceData, rows: Any, n_labels: int) -> ChainFeatures:
        """Weights of all attributes that occur with all states, and of transitions within a label."""
        n, ends = n_labels * self.n_hidden, bool(self.start_end)
        present = inputs.varies if inputs.dense else np.bincount(data.X.indices, minlength=data.X.shape[1])
        used = np.flatnonzero(present)
        moves = hidden_pairs(np.repeat(np.arange(n_labels), 2).reshape(-1, 2), self.n_hidden, both=True)
        ones = inputs.intercept_pairs(np.arange(n))
        attribute = np.concatenate([np.repeat(used, n), ones[:, 0]])
        state = np.concatenate([np.tile(np.arange(n), len(used)), ones[:, 1]])
        workers = Workers(self.n_jobs)
        return ChainFeatures(rows, data.offsets, n, attribute, state, moves, ends, ends, workers=workers)

    def _tagging(self, X: Any, lengths: Any) -> Tagging:
        tagging = Tagging(self, X, lengths)
        _check_not_empty(tagging.data, True)
        return tagging

    def predict_log_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """Log-probability of every label for every sequence, shape (n_sequences, n_classes)."""
        tagging, H = self._tagging(X, lengths), self.n_hidden_
        if tagging.chain is None:
            return np.zeros((0, len(self.classes_)))
        # Each label is a chain of its own, with its hidden states.
        (U, A), chain = tagging.potentials, Chain(H, tagging.data.lengths, self.n_jobs)
        blocks = [slice(c * H, c * H + H) for c in range(len(self.classes_))]
        log_z = np.column_stack([chain.log_partition((U[:, block], A[block, block])) for block in blocks])
        return np.asarray(log_z - logsumexp(log_z, axis=1, keepdims=True))

    def predict_proba(self, X: Any, lengths: Any = None) -> FloatArray:
        """Probability of every label for every sequence, shape (n_sequences, n_classes)."""
        return normalized(np.exp(self.predict_log_proba(X, lengths)))

    def predict_marginals(self, X: Any, lengths: Any = None) -> FloatArray:
        """The same as `predict_proba`: the name that all Partita estimators share."""
        return self.predict_proba(X, lengths)

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The most probable label of every sequence."""
        return self.classes_[self.predict_log_proba(X, lengths).argmax(axis=1)]

    def hidden_proba(self, X: Any, lengths: Any = None) -> list[FloatArray]:
        """For each sequence the probability of every label and hidden state, shape (positions, classes, n_hidden).

        Sums over hidden states are the probabilities of the labels, the same at all positions.
        """
        tagging = self._tagging(X, lengths)
        return split(self._hidden(tagging), tagging.data.offsets)

    def log_likelihood(self, X: Any, y: Any, lengths: Any = None) -> float:
        """Sum of the log-probabilities of the labels y, or of what is known of them."""
        log_p = self.predict_log_proba(X, lengths)
        allowed = encode_examples(y, len(log_p), "sequence", self.classes_).allowed()
        return float(logsumexp(np.where(allowed, log_p, -np.inf), axis=1).sum())

    def score(self, X: Any, y: Any, lengths: Any = None, sample_weight: Any = None) -> float:
        """The share of right labels, one of the set where y has a set; sequences where y is None do not count."""
        found = self.predict(X, lengths)
        weights = check_weights("sample_weight", sample_weight, len(found))
        return encode_examples(y, len(found), "sequence").share_right(found.tolist(), weights)


def _check_not_empty(data: SequenceData, used: Any) -> None:
    empty = (data.lengths == 0) & used
    if empty.any():
        raise ValueError(f"sequence {int(empty.argmax())} of X is empty: it has no position that could tell its label")


def _same_over_labels(features: ChainFeatures, n_hidden: int) -> IntArray:
    """Groups of weights: those of an attribute with the same hidden state are one, all others stand alone."""
    keys = features.attribute.astype(np.int64) * n_hidden + features.label % n_hidden
    first, group = np.unique(keys, return_inverse=True)
    return np.concatenate([group, len(first) + np.arange(features.size - features.n_state)])

"""Sequences with one label each, and hidden states at their positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin

from ....core.arrays.simplex import normalized
from ....core.parallel import Workers
from ....core.parameters import Check, class_weights, flag
from ....core.random import generator
from ....core.results import FloatArray, IntArray
from ....core.types import LabelArray, Labels, RandomState, SampleWeight, SolverLike
from ....core.validation import check_weights
from ....estimators.class_sets import encode_examples, set_weights
from ....estimators.classifier import drawn_classes, ranked_classes
from ....estimators.trained import training
from ....objectives.constraints.constraint import Constraint
from ....report.explanation import Explanation
from ...data.examples import Examples
from ...data.hidden_states import clusters, hidden_pairs, parts
from ...data.inputs import ChainInputs
from ...data.reading import Sequences
from ...data.sequences import SequenceData
from ...data.types import Label, Lengths, SequenceLike
from ...features.chain import ChainFeatures
from ...structure.chain import Chain
from ...structure.forbidden import BoolArray, Forbidden
from ..scores import ScoredSequences
from ..streaming import Posterior, read_more
from .explanation import explain_sequence
from .hidden_states import HiddenStates


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
    class_weight : dict, "balanced" or None
        Weights of the labels, multiplied into the sample weights. A set of labels has the mean of theirs.
    init : {"left_right", "kmeans", "random"}
        Starts: ten iterations towards a guess of the hidden states, by the part of the sequence (the first state in the
        first part, and so on) or by clusters of attributes; or random weights.
    init_scale, n_init, max_iter, tol, n_jobs, random_state, verbose, l1, constraints
        As in `LatentDynamicCRF`.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    precision_, n_seen_
        What `partial_fit` goes on from: the curvature of the objective along each weight, and sequences learned from so far.
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

    PARAMETERS: ClassVar[Mapping[str, Check]] = {**HiddenStates.PARAMETERS, "shared": flag, "class_weight": class_weights}

    def __init__(
        self,
        n_hidden: int = 3,
        shared: bool = False,
        l2: float = 1.0,
        solver: SolverLike = "auto",
        start_end: bool = True,
        hashing: int | None = None,
        fit_intercept: bool = True,
        class_weight: str | Mapping[Any, float] | None = None,
        init: str = "left_right",
        init_scale: float = 0.1,
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 2e-6,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.shared = shared
        self.l2 = l2
        self.solver = solver
        self.start_end = start_end
        self.hashing = hashing
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.init = init
        self.init_scale = init_scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.l1 = l1
        self.constraints = constraints

    @training
    def fit(self, X: Sequences, y: Labels, lengths: Lengths = None, sample_weight: SampleWeight = None) -> HiddenChainCRF:
        """Fit to sequences X and their labels y. A failed fit changes nothing.

        Parameters
        ----------
        X, lengths
            As in `ChainCRF`.
        y : list of labels
            One for each sequence: a string or an integer, a set of these (one is right), or None (unknown).
        sample_weight : array of shape (n_sequences,), optional
        """
        return self._learn(None, X, y, lengths, sample_weight)

    def _read(
        self, X: Sequences, y: Labels, lengths: Lengths, sample_weight: SampleWeight, before: Posterior | None
    ) -> Examples:
        """The sequences, each position with the label of its sequence."""
        data = read_more(X, lengths, self.hashing, before)
        labels = encode_examples(y, len(data), "sequence", None if before is None else self.classes_)
        weights = check_weights("sample_weight", sample_weight, len(data))
        if self.class_weight is not None:
            weights = weights * set_weights(self.class_weight, labels.classes, labels.allowed())
            weights = check_weights("class_weight times sample_weight", weights, len(data))
        _check_not_empty(data, weights > 0.0)
        by_position = labels.take(np.repeat(np.arange(len(data)), data.lengths))
        examples = Examples.of(data, by_position, weights, X)
        if before is not None:
            return examples
        examples = examples.compact()
        classes = examples.labels.classes
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two different labels, got only {classes.tolist()[0]!r}")
        return examples

    def _features(self, inputs: ChainInputs, examples: Examples, rows: sp.csr_matrix) -> ChainFeatures:
        """Weights of all attributes that occur with all states, and of transitions within a label."""
        X, n_labels = examples.data.X, len(examples.labels.classes)
        n, ends = n_labels * self.n_hidden, bool(self.start_end)
        used = np.flatnonzero(inputs.varies if inputs.dense else np.bincount(X.indices, minlength=X.shape[1]))
        moves = hidden_pairs(np.repeat(np.arange(n_labels), 2).reshape(-1, 2), self.n_hidden, both=True)
        ones = inputs.intercept_pairs(np.arange(n))
        attribute = np.concatenate([np.repeat(used, n), ones[:, 0]])
        state = np.concatenate([np.tile(np.arange(n), len(used)), ones[:, 1]])
        workers = Workers(self.n_jobs)
        return ChainFeatures(rows, examples.data.offsets, n, attribute, state, moves, ends, ends, workers=workers)

    def _ties(self, features: ChainFeatures) -> IntArray | None:
        """Shared: weights of an attribute with the same hidden state are one, all others stand alone."""
        if not self.shared:
            return None
        keys = features.attribute.astype(np.int64) * self.n_hidden + features.label % self.n_hidden
        first, group = np.unique(keys, return_inverse=True)
        return np.concatenate([group, len(first) + np.arange(features.size - features.n_state)])

    def _forbidden(self, n_labels: int) -> Forbidden:
        """The label of a sequence never changes within it, and any hidden state goes with it."""
        H = self.n_hidden
        return Forbidden(np.repeat(np.repeat(~np.eye(n_labels, dtype=bool), H, axis=0), H, axis=1))

    def _guess(self, examples: Examples, rows: sp.csr_matrix, random: np.random.Generator) -> IntArray:
        codes = examples.labels.codes
        if self.init == "kmeans":
            return clusters(rows, np.zeros_like(codes) if self.shared else codes, self.n_hidden, random)
        return parts(examples.data.offsets[:-1], len(codes), self.n_hidden)

    def _scored(self, X: Sequences, lengths: Lengths = None) -> ScoredSequences:
        scored = super()._scored(X, lengths)
        _check_not_empty(scored.data, np.ones(len(scored), bool))
        return scored

    def predict_log_proba(self, X: Sequences, lengths: Lengths = None) -> FloatArray:
        """Log-probability of every label for every sequence, shape (n_sequences, n_classes)."""
        scored, (n, H) = self._scored(X, lengths), (len(self.classes_), self.n_hidden_)
        if scored.chain is None:
            return np.zeros((0, n))
        # Each label is a chain of its own, with its hidden states.
        (U, A), chain = scored.scores, Chain(H, scored.data.lengths, self.n_jobs)
        blocks = [slice(c * H, c * H + H) for c in range(n)]
        log_z = np.column_stack([chain.log_partition((U[:, block], A[block, block])) for block in blocks])
        return np.asarray(log_z - logsumexp(log_z, axis=1, keepdims=True))

    def predict_proba(self, X: Sequences, lengths: Lengths = None) -> FloatArray:
        """Probability of every label for every sequence, shape (n_sequences, n_classes)."""
        return normalized(np.exp(self.predict_log_proba(X, lengths)))

    def predict_marginals(self, X: Sequences, lengths: Lengths = None) -> FloatArray:
        """The same as `predict_proba`: the name that all Partita estimators share."""
        return self.predict_proba(X, lengths)

    def predict_kbest(self, X: Sequences, k: int, lengths: Lengths = None) -> list[list[tuple[Label, float]]]:
        """The k most probable labels of each sequence, best first, each with its log-probability."""
        return ranked_classes(self.predict_log_proba(X, lengths), self.classes_, k)

    def sample(self, X: Sequences, size: int = 1, random_state: RandomState = None, lengths: Lengths = None) -> NDArray[Any]:
        """Labels drawn at random by their probability, (n_sequences, size)."""
        random = generator(self.random_state if random_state is None else random_state)
        return drawn_classes(self.predict_proba(X, lengths), self.classes_, size, random)

    def explain(self, sequence: SequenceLike) -> Explanation:
        """Which attributes pushed the label of a sequence, summed over its positions: ``print`` the answer.

        A push is what an attribute adds to the score of the predicted label, as expected over its hidden states, less the
        same of the runner-up; what hidden states add by their order and their number are pushes too. Their sum is the
        difference of the log-probabilities.
        """
        return explain_sequence(self.chain_, self._scored([sequence]), self.predict_log_proba([sequence])[0])

    def predict(self, X: Sequences, lengths: Lengths = None) -> LabelArray:
        """The most probable label of every sequence."""
        best = self.predict_log_proba(X, lengths).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def log_likelihood(self, X: Sequences, y: Labels, lengths: Lengths = None) -> FloatArray:
        """Log-probability of the label of each sequence, or of what is known of it."""
        log_p = self.predict_log_proba(X, lengths)
        allowed = encode_examples(y, len(log_p), "sequence", self.classes_).allowed()
        return np.asarray(logsumexp(np.where(allowed, log_p, -np.inf), axis=1))

    def score(self, X: Sequences, y: Labels, lengths: Lengths = None, sample_weight: SampleWeight = None) -> float:
        """The share of right labels, one of the set where y has a set; sequences where y is None do not count."""
        found = self.predict(X, lengths)
        weights = check_weights("sample_weight", sample_weight, len(found))
        return encode_examples(y, len(found), "sequence").share_right(found.tolist(), weights)


def _check_not_empty(data: SequenceData, used: BoolArray) -> None:
    empty = (data.lengths == 0) & used
    if empty.any():
        raise ValueError(f"sequence {int(empty.argmax())} of X is empty: it has no position that could tell its label")

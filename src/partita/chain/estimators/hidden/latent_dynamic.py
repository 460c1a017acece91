"""Chains of labels, each of which has hidden states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from ....core.errors import ConvergenceWarning
from ....core.parallel import Workers
from ....core.parameters import Check, choice, real
from ....core.random import generator
from ....core.results import IntArray
from ....core.types import RandomState, SampleWeight, SolverLike
from ....core.validation import check_count, check_weights
from ....core.warn import warn
from ....estimators.trained import training
from ....objectives.constraints.constraint import Constraint
from ....report.explanation import Explanation
from ...data.examples import Examples
from ...data.hidden_states import clusters, hidden_pairs, parts
from ...data.inputs import ChainInputs, WeightChoice
from ...data.reading import Sequences, labels_of
from ...data.types import Label, LabelSequences, Lengths, SequenceLike
from ...features.chain import ChainFeatures
from ..chain_model import FEATURES
from ..labelling import SequenceLabeller, chosen_positions
from ..scores import decode
from ..streaming import Posterior, read_more
from .explanation import explain_positions
from .hidden_states import HiddenStates
from .labellings import MOST_PATHS, best_labellings


class LatentDynamicCRF(HiddenStates, SequenceLabeller):
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
    l1 : float
        Strength of a penalty on absolute values, on all weights.
    constraints : list of constraints, optional
        Convex sets of weights by names of attributes, labels (or states, ``(label, h)``) and transitions; see
        `partita.constraints`. Every iterate satisfies them. As without them, the optimum is a local one.

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

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        **HiddenStates.PARAMETERS,
        "features": choice(*FEATURES),
        "transitions": choice(*FEATURES),
        "min_frequency": real(0.0, optional=True),
    }

    def __init__(
        self,
        n_hidden: int = 2,
        l2: float = 1.0,
        solver: SolverLike = "auto",
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
        random_state: RandomState = None,
        verbose: int = 0,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
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
        self.l1 = l1
        self.constraints = constraints

    @training
    def fit(
        self, X: Sequences, y: LabelSequences = None, lengths: Lengths = None, sample_weight: SampleWeight = None
    ) -> LatentDynamicCRF:
        """Fit to sequences X and the labels y of their positions. A failed fit changes nothing.

        Parameters
        ----------
        X, y, lengths
            As in `ChainCRF`. y may be None if X is `SequenceData` with labels.
        sample_weight : array of shape (n_sequences,), optional
        """
        return self._learn(None, X, y, lengths, sample_weight)

    def _read(
        self, X: Sequences, y: LabelSequences, lengths: Lengths, sample_weight: SampleWeight, before: Posterior | None
    ) -> Examples:
        data = read_more(X, lengths, self.hashing, before)
        labels = labels_of(data, y, None if before is None else self.classes_)
        weights = check_weights("sample_weight", sample_weight, len(data))
        examples = Examples.of(data, labels, weights, X)
        return examples.compact() if before is None else examples

    def _features(self, inputs: ChainInputs, examples: Examples, rows: sp.csr_matrix) -> ChainFeatures:
        """What has a weight with a label has one with each of its hidden states."""
        weighted = WeightChoice(self.features, self.transitions, self.start_end, self.min_frequency)
        pairs, moves = inputs.pairs(weighted, examples.data, examples.labels)
        weighted.check(pairs, moves)
        state, moves = hidden_pairs(pairs, self.n_hidden, both=False), hidden_pairs(moves, self.n_hidden, both=True)
        n, ends = len(examples.labels.classes) * self.n_hidden, bool(self.start_end)
        state, workers = np.concatenate([state, inputs.intercept_pairs(np.arange(n))]), Workers(self.n_jobs)
        return ChainFeatures(*(rows, examples.data.offsets, n, state[:, 0], state[:, 1], moves, ends, ends), workers=workers)

    def _guess(self, examples: Examples, rows: sp.csr_matrix, random: np.random.Generator) -> IntArray:
        codes = examples.labels.codes
        if self.init == "kmeans":
            return clusters(rows, codes, self.n_hidden, random)
        changes = 1 + np.flatnonzero(np.diff(codes))
        return parts(np.union1d(examples.data.offsets[:-1], changes), len(codes), self.n_hidden)

    def predict(self, X: Sequences, lengths: Lengths = None) -> list[list[Label]]:
        """The most probable label of every position: the one whose hidden states together have the highest probability.

        By forward-backward, position by position: the most probable labelling as a whole cannot be found in reasonable time.
        """
        scored = self._scored(X, lengths)
        best = self.chain_.label_marginals(scored).argmax(axis=1)
        return decode(self.chain_.labels, best, scored.offsets)

    def predict_kbest(self, X: Sequences, k: int, lengths: Lengths = None) -> list[list[tuple[list[Label], float]]]:
        """The k most probable labellings of each sequence, best first, each with its log-probability.

        By latent-dynamic inference (Sun and Tsujii, 2009): labellings of the most probable paths of hidden states are summed
        up exactly, until what is left of the probability is less than any of the k best has. The most probable labelling is
        hard to find in general, and where that takes more than 20,000 paths a warning says that others may be better.
        """
        check_count("k", k, minimum=1)
        data = self.chain_.read(X, lengths)
        found = [best_labellings(self.chain_, self._scored(data.take(np.array([i]))), k) for i in range(len(data))]
        short = [i for i, (_, certain) in enumerate(found) if not certain]
        if short:
            warn(
                f"the {k} labellings of {len(short)} sequences, the first is number {short[0]}, are the best of those of "
                f"the {MOST_PATHS} most probable paths of hidden states; others may be more probable",
                ConvergenceWarning,
            )
        return [labellings for labellings, _ in found]

    def explain(self, sequence: SequenceLike, position: int | None = None) -> Explanation:
        """Which attributes pushed which label: for each position, or one. ``print`` the answer.

        An attribute's push is what it adds to the score of the predicted label, as expected over its hidden states, less the
        same of the runner-up; the labels of other positions are as predicted, and what their states add is one push.
        """
        scored = self._scored([sequence])
        return explain_positions(self.chain_, scored, chosen_positions(scored, position))

    def sample(
        self, X: Sequences, size: int = 1, random_state: RandomState = None, lengths: Lengths = None
    ) -> list[list[list[Label]]]:
        """Labellings drawn at random by their probability: for each sequence, a list of `size` of them."""
        check_count("size", size)
        random = generator(self.random_state if random_state is None else random_state)
        drawn = self._scored(X, lengths).sample(size, random)
        return [[[label for label, _ in states] for states in labellings] for labellings in drawn]

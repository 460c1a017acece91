"""Conditional random fields on chains: the labels of sequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.contracts.capabilities import Capability
from ...core.errors import ModelFileError
from ...core.parameters import Check, checked, choice, count, flag, real, seed, threads, verbosity
from ...core.random import generator
from ...core.results import FloatArray, Solution, Status
from ...core.types import RandomState, SampleWeight, SolverLike
from ...core.validation import check_choice, check_count, check_level
from ...estimators.composite_fit import check_budget
from ...estimators.labels import UNKNOWN, encode_labels
from ...estimators.loaded import check_array, check_bool, check_labels, check_whole, is_fitted
from ...estimators.streaming import FromStream, check_streamed
from ...estimators.trained import solver_like, training
from ...objectives.composite.likelihood import FULL, CompositeLikelihood
from ...objectives.uncertainty import METHODS
from ...report.progress import CountPrinter
from ...report.tables import CoefficientTable
from ...solvers.named import make_solver
from ..data.forbidden import Rules, check_forbidden
from ..data.inputs import WeightChoice
from ..data.memory import remembered
from ..data.reading import Sequences, check_hashing, read_examples
from ..data.sequences import SequenceData
from ..data.types import LabelSequences, Lengths
from ..data.weight_constraints import AnyConstraint, check_weight_constraints
from ..objective.composite import composite_of
from ..objective.operations import chain_operations
from .chain_model import FEATURES, FITTED, check_chain
from .crfsuite import check_crfsuite
from .fitted_chain import FittedChain
from .fitting import Found, find_minimum
from .holdout import Holdout, check_held_out
from .labelling import ChainLabeller
from .problem import ChainProblem, ChainSettings, Likelihood
from .scores import align_columns, with_constant
from .standard_errors import chain_influence, checked_objective, coefficient_table, how_computed, standard_errors
from .streaming import Posterior, Update, read_piece


class ChainCRF(ChainLabeller, FromStream):
    """A conditional random field on chains: p(y | x) is log-linear in attributes of positions and pairs of labels.

    Minimises ``sum_i w_i (-log p(y_i | x_i)) + (l2 / 2) ||theta||^2 + l1 ||theta||_1``. CRFsuite's ``c2`` is ``l2 / 2``, its
    ``c1`` is ``l1``; see `from_crfsuite`.

    Parameters
    ----------
    l2, l1 : float
        Strengths of the quadratic penalty and of the penalty on absolute values, on all weights.
    solver : str or solver object
        ``"auto"``, ``"lbfgs"``, ``"newton"``, …; see `SoftmaxRegression`.
    features : {"observed", "all"}
        Weights for the pairs of attribute and label that occur in training, or for all pairs.
    transitions : {"observed", "all"}
        Weights for the pairs of labels that follow each other in training, or for all pairs. A pair without a weight has the
        score 0; it is not forbidden.
    start_end : bool
        Weights of labels for standing first and last.
    min_frequency : float or None
        Pairs over which the values of the attribute add up to less have no weight, as in CRFsuite (whose default is 0), and
        neither have labels that follow each other less often. None: no such limit.
    hashing : int or None
        Number of columns to hash attributes into. The model then keeps no names.
    fit_intercept : bool
        Whether labels have intercepts, without penalty, where X is numbers: then a shift of a column, or other units, change
        nothing beyond what `l2` means in them. Tokens have none, as in CRFsuite.
    constraints : list of constraints, optional
        Convex sets of weights by names of attributes, labels and transitions, such as ``Box(lower=0.0, labels=["N"])``; see
        `partita.constraints`. Every iterate satisfies them. Intercepts are in none.
    forbidden : list of pairs of labels, "iob2", "iobes" or None
        Pairs (first, second) that may never follow each other, in training and prediction. The rules forbid what is no
        chunk: O before I-X, B-X before I-Y, I-X at the start (and for "iobes" also an open chunk before another). Pairs with
        labels that training does not have are left out, with a warning.
    likelihood : {"full", "pseudo"} or CompositeLikelihood
        What is maximised: the likelihood of the labels of a sequence; the probability of every label given its neighbours;
        or a weighted sum over windows of labels, given those before and after (see `CompositeLikelihood`), for which every
        label must be known. On chains none is much cheaper than the likelihood. With ``weights="auto"`` weights of orders
        and of features are fitted in turn, at most six times; iterations and trace are those of the last fit. `l2` and `l1`
        count against the weighted sum: twice the weights are half the penalty.
    budget : float, optional
        What one pass over the data may cost, in pseudo-likelihoods; see `MarkovNetwork`.
    max_iter : int
        Most iterations of the solver.
    tol : float
        Stop when the largest absolute entry of the gradient, divided by the number of positions, is at most `tol`. For
        composite likelihoods, positions are counted as often as they are in windows, by their weights.
    patience : int
        With `X_dev`: stop after so many iterations without improvement.
    warm_start : bool
        Start from the last fit; weights are matched by the names of attributes and labels.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    random_state : None, int or generator
        Order of the sequences in stochastic solvers.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    attributes_ : list
        Names of the attributes; their numbers if there are no names.
    state_features_, transition_features_ : dict
        Weights: ``{(attribute, label): weight}`` and ``{(label from, label to): weight}``. Intercepts are those of the
        attribute "intercept", as differences to the label that has none.
    start_features_, end_features_ : dict
        ``{label: weight}``, empty without `start_end`.
    n_features_in_ : int
        Number of attributes.
    input_kind_ : {"attributes", "sparse", "dense"}
        What X was: attributes of tokens, or numbers in sparse or dense matrices.
    column_mean_, column_spread_ : arrays or None
        Of numbers: the units in which they were learned, and in which `precision_` is.
    parameters_ : array
        All weights: of ``state_index_``, ``transition_index_``, starts and ends.
    chain_ : FittedChain
        All of these in one object.
    precision_ : array or None
        Curvature of the objective along each of them: the precision of the Laplace approximation, from which `partial_fit`
        goes on. None with l1.
    beta_ : dict
        The weight of every order of the likelihood, 0 for those that ``weights="auto"`` dropped.
    dev_scores_ : array
        Mean log-likelihood of a position of `X_dev` at each iteration; empty without `X_dev`.
    n_iter_ : int
    n_seen_ : int
        Sequences learned from, over all calls of `partial_fit`.
    trace_ : Trace
    status_ : Status

    Notes
    -----
    X is a list of sequences. A sequence is a list of tokens (dicts or lists of strings, with the meaning they have to
    python-crfsuite; rows with names, as of data frames, are dicts), or a sparse or dense matrix of numbers with a row per
    position. A data frame is a matrix if all its columns are numbers, which are then found by name, else its rows are
    tokens. One stacked matrix with ``lengths=`` and `SequenceData` do as well.

    y is a list of lists of labels, strings or integers. A label may also be None, NaN or ``pd.NA`` (unknown), or a set of
    labels, one of which is right: training then sums over the possibilities. The integers -1 and -100 are refused: they are
    labels to some and unknown to others.

    Dense numbers have weights with every label that occurs; what is zero in a sparse matrix is absent. Solvers see dense
    columns centred and scaled, while `l2` and `l1` keep their meaning in the units of X.

    Examples
    --------
    >>> from partita import ChainCRF
    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "cat"}, {"w": "sat"}]]
    >>> y = [["D", "N"], ["D", "N", "V"]]
    >>> model = ChainCRF(l2=0.1).fit(X, y)
    >>> model.predict([[{"w": "the"}, {"w": "dog"}]])
    [['D', 'N']]

    Single labels of every sequence, and the likelihood of one in four:

    >>> from partita import CompositeLikelihood
    >>> mixed = CompositeLikelihood({1: 1.0, "full": 0.25}, refresh=False, random_state=0)
    >>> model = ChainCRF(l2=0.1, likelihood=mixed).fit(X, y)
    >>> model.predict([[{"w": "the"}, {"w": "dog"}]])
    [['D', 'N']]
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "l2": real(0.0),
        "l1": real(0.0),
        "solver": solver_like,
        "features": choice(*FEATURES),
        "transitions": choice(*FEATURES),
        "start_end": flag,
        "fit_intercept": flag,
        "warm_start": flag,
        "min_frequency": real(0.0, optional=True),
        "hashing": checked(check_hashing),
        "constraints": checked(check_weight_constraints),
        "forbidden": checked(check_forbidden),
        "likelihood": checked(composite_of),
        "budget": real(0.0, strict=True, optional=True),
        "tol": real(0.0),
        "max_iter": count(),
        "patience": count(1),
        "verbose": verbosity,
        "n_jobs": threads,
        "random_state": seed,
    }
    TRANSIENT: ClassVar[tuple[str, ...]] = (*ChainLabeller.TRANSIENT, "_objective", "_kept_sequences")

    precision_: NDArray[np.float32] | None
    beta_: dict[Any, float]
    likelihood_: str | CompositeLikelihood
    choice_: dict[str, Any]
    dev_scores_: FloatArray
    n_seen_: int
    fixed_classes_: bool

    #: What was minimised, without bounds and penalties on absolute values, if that has standard errors.
    _objective: Likelihood | None = None
    #: A sample of the sequences so far, for labels that come later.
    _kept_sequences: SequenceData | None = None

    def __init__(
        self,
        l2: float = 1.0,
        l1: float = 0.0,
        solver: SolverLike = "auto",
        features: str = "observed",
        transitions: str = "observed",
        start_end: bool = False,
        min_frequency: float | None = None,
        hashing: int | None = None,
        fit_intercept: bool = True,
        constraints: Iterable[AnyConstraint] | None = None,
        forbidden: Rules = None,
        likelihood: str | CompositeLikelihood = "full",
        budget: float | None = None,
        max_iter: int = 500,
        tol: float = 2e-6,
        patience: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.solver = solver
        self.features = features
        self.transitions = transitions
        self.start_end = start_end
        self.min_frequency = min_frequency
        self.hashing = hashing
        self.fit_intercept = fit_intercept
        self.constraints = constraints
        self.forbidden = forbidden
        self.likelihood = likelihood
        self.budget = budget
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_crfsuite(
        cls,
        algorithm: str | None = "lbfgs",
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        **options: object,
    ) -> ChainCRF:
        """The model that ``sklearn_crfsuite.CRF`` would train with these options.

        ``l2 = 2 c2`` (CRFsuite's default is ``c2 = 1``) and ``l1 = c1``. Options that only steer CRFsuite's optimisers
        (``epsilon``, ``num_memories``, …) are accepted and do nothing: `tol` and `solver` are ours.
        """
        check_crfsuite(algorithm, model_filename, options)
        made = cls(
            l2=2.0 * (1.0 if c2 is None else c2),
            l1=0.0 if c1 is None or algorithm == "l2sgd" else c1,
            features="all" if all_possible_states else "observed",
            transitions="all" if all_possible_transitions else "observed",
            min_frequency=0 if min_freq is None else min_freq,
            verbose=int(verbose),
        )
        if max_iterations is not None:
            made.max_iter = max_iterations
        return made

    @training
    def fit(
        self,
        X: Sequences,
        y: LabelSequences = None,
        lengths: Lengths = None,
        sample_weight: SampleWeight = None,
        X_dev: Sequences | None = None,
        y_dev: LabelSequences = None,
        lengths_dev: Lengths = None,
    ) -> ChainCRF:
        """Fit to sequences X and their labels y. A failed fit changes nothing.

        Parameters
        ----------
        X, y, lengths
            See the notes of the class. y may be None if X is `SequenceData` with labels.
        sample_weight : array of shape (n_sequences,), optional
        X_dev, y_dev, lengths_dev : optional
            Held-out sequences. Training stops when their log-likelihood has not risen for `patience` iterations, and the
            parameters at which it was highest are kept.
        """
        composite = composite_of(self.likelihood, self.random_state)
        check_held_out(X_dev, y_dev, composite, self.budget)
        examples = read_examples(X, y, lengths, sample_weight, self.hashing)
        problem = ChainProblem.of(self._settings(), examples)
        start = self._warm_start(problem)
        holdout = None
        if X_dev is not None:
            held_out = (problem, X_dev, y_dev, lengths_dev)
            holdout = Holdout(*held_out, hashing=self.hashing, patience=self.patience, n_jobs=self.n_jobs)
        found = find_minimum(problem, composite, self.budget, start, holdout, self._minimize)
        self._warn_if_short(replace(found.run, status=found.status), held_out=None if holdout is None else True)
        self._store_fit(problem, found)
        self.dev_scores_ = np.array([] if holdout is None else holdout.scores)
        return self

    @training
    def partial_fit(
        self,
        X: Sequences,
        y: LabelSequences = None,
        classes: ArrayLike | None = None,
        lengths: Lengths = None,
        sample_weight: SampleWeight = None,
    ) -> ChainCRF:
        """Learn from more sequences, starting from what was learned before. Every call counts as new data.

        What the earlier sequences said is kept as a normal distribution of the weights: its mean is the current weights, its
        precision the curvature (`precision_`), one number per weight. The new weights minimise the loss of the new sequences
        plus half the precisions times the squared distances to the old weights: the Laplace approximation, again and again.
        The first call is the same as `fit`. A few large batches are better than many small ones. New attributes and labels
        get weights, unless attributes are hashed or `classes` was given. `min_frequency` counts within a call.

        That a new label was in none of the earlier sequences counts too: up to 500 of them, chosen at random, are kept for
        that. Copies and files have none; there each known attribute stands for itself.

        Parameters
        ----------
        X, y, lengths, sample_weight
            As in `fit`.
        classes : list of labels, optional
            All labels that will ever come, in the first call. Without it, every call may bring new ones.

        Examples
        --------
        >>> from partita import ChainCRF
        >>> model = ChainCRF(l2=0.1)
        >>> model = model.partial_fit([[["w:the"], ["w:cat"]]], [["D", "N"]])
        >>> model = model.partial_fit([[["w:a"], ["w:cat"], ["w:sat"]]], [["D", "N", "V"]])
        >>> model.predict([[["w:the"], ["w:cat"], ["w:sat"]]])
        [['D', 'N', 'V']]
        """
        posterior = self._posterior()
        piece = read_piece(X, y, classes, lengths, sample_weight, posterior, self.hashing)
        if posterior is not None and (piece.labels.codes == UNKNOWN).all():
            return self  # nothing is said about any label
        update = Update.of(self._settings(), piece, posterior)
        problem = update.problem
        solution = self._minimize(problem.restricted(problem.objective()), update.start)
        self._warn_if_short(solution)
        self._store_update(update, solution, classes is not None)
        return self

    def standard_errors(
        self, method: str = "sandwich", draws: int = 100, random_state: RandomState = None
    ) -> dict[str, dict[Any, float]]:
        """Standard errors of the weights, from the training data (which are kept by reference, not copied).

        Models of up to 2000 weights have exact ones. Those of larger models, with l2 > 0, come from random draws, on labels
        that are not too unlikely: their relative error is about ``1 / sqrt(2 draws)``, and a few percent.

        Parameters
        ----------
        method : {"sandwich", "information", "bootstrap"}
            The sandwich, which stays right when the model is wrong, and for composite likelihoods; or the inverse of the
            observed information (penalty included); or refits to resampled sequences, with any labels, penalty and
            constraints. Where a penalised fit has many effective parameters for its sequences, the latter are too small,
            and a warning says so.
        draws : int
            Random draws, or refits of the bootstrap. An interrupt keeps those done so far.
        random_state : None, int or generator
            Of the draws; None means that of the model.

        Returns
        -------
        dict
            "state", "transition", "start" and "end", each a dict with the keys of `state_features_` and so on.
        """
        errors = self._standard_errors(method, draws, random_state)
        return dict(zip(("state", "transition", "start", "end"), self.chain_.layout.dicts(errors), strict=True))

    def summary(
        self,
        level: float = 0.95,
        method: str = "sandwich",
        draws: int = 100,
        random_state: RandomState = None,
        top: int | None = None,
    ) -> CoefficientTable:
        """Estimate, standard error, z, p and confidence interval of every weight, as a table to print.

        Parameters are as in `standard_errors`; `top` keeps only so many rows, those with the largest absolute z.
        """
        check_level(level)
        errors = self._standard_errors(method, draws, random_state)
        how = how_computed(method, len(errors), draws)
        title = f"Chain CRF, l2 = {self.l2:g}, {how} standard errors, {self.status_.name.lower()}"
        return coefficient_table(self.chain_, errors, level, title, top)

    def influence(self, X: Sequences | None = None, y: LabelSequences = None, lengths: Lengths = None) -> FloatArray:
        """How much `parameters_` would change if a sequence were in the training data once more, to first order.

        Parameters
        ----------
        X, y, lengths : optional
            New sequences, none of them empty; without them, those of training.

        Returns
        -------
        array of shape (sequences, weights)
        """
        chain = self.chain_
        objective, new = checked_objective(self._objective, self.precision_, bool(self.constraints)), None
        if X is not None:
            data = with_constant(align_columns(chain.read(X, lengths), chain.layout), chain.layout)
            new = data, encode_labels(y, data.offsets, self.classes_)
        return chain_influence(chain, objective, new)

    def _check_combinations(self) -> None:
        constrained = bool(check_weight_constraints(self.constraints))
        check_budget(self.budget, self.likelihood)
        composite = composite_of(self.likelihood)
        if composite is not None and composite.refine is not None and (self.l1 > 0.0 or constrained):
            raise ValueError("refine cannot be combined with l1 or constraints: a Newton step knows nothing of them")

    def _settings(self) -> ChainSettings:
        weights = WeightChoice(self.features, self.transitions, self.start_end, self.min_frequency)
        constraints = check_weight_constraints(self.constraints)
        return ChainSettings(self.l2, self.l1, weights, self.fit_intercept, constraints, self.forbidden, self.n_jobs)

    def _warm_start(self, problem: ChainProblem) -> FloatArray | None:
        if not self.warm_start or "parameters_" not in vars(self):
            return None
        return problem.start(self.chain_.layout, self.parameters_)

    def _store_fit(self, problem: ChainProblem, found: Found) -> None:
        point, layout = found.point, problem.layout
        values, precision = problem.user_weights(point.parameters), None
        if problem.l1 is None:
            precision = problem.weights(point.diagonal)
        else:
            keep = layout.needed(problem.weights(point.parameters) != 0.0)
            layout, values = layout.restrict(keep), values[keep]
        chain = problem.chain(layout, values, self.hashing)
        self._store_learned(chain.trimmed() if problem.examples.owns_names else chain, precision)
        self._store_run(found.solution, found.status)
        self.n_seen_, self.fixed_classes_ = len(problem.examples.data), False
        self.beta_, self.likelihood_ = found.beta, found.composite or FULL
        self._forget("choice_")  # of an earlier fit
        if found.choice is not None:
            self.choice_ = found.choice
        self._kept_sequences = remembered(None, 0, problem.examples.data)
        if self.l1 == 0.0 and not self.constraints:
            self._objective = point.objective.without_buffers()

    def _store_learned(self, chain: FittedChain, precision: FloatArray | None) -> None:
        self._store_chain(chain)
        self.precision_ = None if precision is None else precision.astype(np.float32)
        self._objective = None

    def _posterior(self) -> Posterior | None:
        """What was learned so far; None if nothing was. Refuses what pieces cannot be learned with."""
        learned = "parameters_" in vars(self)
        check_streamed(
            l1=self.l1 > 0.0 or (learned and self.precision_ is None),
            constrained=bool(check_weight_constraints(self.constraints)),
            composite=self.likelihood != FULL or self.budget is not None,
        )
        if not learned or self.precision_ is None:
            return None
        return Posterior.of(self.chain_, self.precision_, self.n_seen_, self._kept_sequences, self.fixed_classes_)

    def _store_update(self, update: Update, solution: Solution, classes_given: bool) -> None:
        layout, mean, precision = update.posterior_at(solution)
        posterior, problem, data = update.posterior, update.problem, update.piece.data
        count, sample = (0, None) if posterior is None else (posterior.n_seen, posterior.sample)
        fixed = classes_given or (posterior is not None and posterior.fixed_classes)
        values = np.asarray(problem.inputs.to_user(layout) @ mean)
        self._store_learned(problem.chain(layout, values, self.hashing), precision)
        interrupted = solution.status is Status.INTERRUPTED
        self._store_run(solution, solution.status if interrupted else Status.STREAM)
        self.n_seen_, self.fixed_classes_, self.beta_ = count + len(data), fixed, {FULL: 1.0}
        self._kept_sequences = remembered(sample, count, data)
        self.dev_scores_ = np.zeros(0)

    def _standard_errors(self, method: str, draws: int, random_state: RandomState) -> FloatArray:
        """Of `parameters_`, in their order."""
        chain = self.chain_
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            return self._bootstrap(draws, self.random_state if random_state is None else random_state)
        check_count("draws", draws, minimum=1)
        objective = checked_objective(self._objective, self.precision_, bool(self.constraints))
        random = generator(self.random_state if random_state is None else random_state)
        progress = CountPrinter("standard errors", draws) if self.verbose else None
        return standard_errors(chain, objective, self.l2, method, draws, random, progress)

    def _operations(self, composite: CompositeLikelihood) -> FloatArray:
        """Operations for a sequence, of each order."""
        assert self._objective is not None
        draws = Capability.BATCHES in make_solver(self.solver).requires
        return chain_operations(self._objective.lengths, len(self.classes_), composite, draws)

    def _trim(self) -> None:
        """Forget attributes that have no weight."""
        chain = self.chain_.trimmed()
        if chain is not self.chain_:
            self._store_chain(chain)
            self._objective = None

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(self, "precision_", "n_seen_", "fixed_classes_", "dev_scores_", "beta_", *FITTED):
            check_chain(self, len(check_labels("classes_", self.classes_)))
            if self.precision_ is not None:
                check_array(self, "precision_", self.parameters_.shape, np.float32, finite=False)
                if np.isnan(self.precision_).any():
                    raise ModelFileError("precision_ must not hold NaN")
            check_whole(self, "n_seen_")
            check_bool(self, "fixed_classes_")
            check_array(self, "dev_scores_", (None,), finite=False)

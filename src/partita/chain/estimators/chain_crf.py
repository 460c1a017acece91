"""Conditional random fields on chains: the labels of sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ... import objectives
from ...core.errors import ModelFileError
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray, Solution, Status
from ...core.validation import check_choice, check_count, check_flag, check_real, check_verbose, check_weights
from ...estimators.composite_fit import BUDGET_ORDERS, check_budget, fit_weights, within_budget
from ...estimators.convergence import warn_if_short
from ...estimators.data import unchanged_on_failure
from ...estimators.labels import Labels
from ...estimators.loaded import check_array, check_bool, check_labels, check_whole, is_fitted
from ...estimators.persistence import SavedModel
from ...estimators.seeded_solver import seeded_solver
from ...objectives.composite.likelihood import AUTO, FULL, CompositeLikelihood
from ...objectives.refinement import newton_step
from ...report.progress import ProgressPrinter
from ...solvers.auto import make_solver
from ...solvers.loop import minimize
from ..data.forbidden import Forbidden, check_forbidden, check_possible, forbidden_tables
from ..data.inputs import ChainInputs, check_weighted
from ..data.memory import remembered
from ..data.sequences import ATTRIBUTES, SequenceData, check_hashing, counting, labels_of, places, read_sequences
from ..data.weight_constraints import check_weight_constraints, weight_bounds, weight_groups
from ..features.attributes import AttributeVectorizer
from ..features.chain import ChainFeatures
from ..features.layout import ChainLayout
from ..features.tied import TiedFeatures
from ..objective.composite import ChainComposite, composite_of
from ..objective.likelihood import ChainLikelihood
from ..objective.operations import chain_operations
from .holdout import Holdout
from .prediction import ChainPredictionMixin
from .streaming import ChainStreamingMixin
from .weights import WEIGHTS, check_weights_fit

FEATURES = ("observed", "all")
#: Options of sklearn-crfsuite that steer its optimisers or its files, and have nothing to do here.
UNUSED_OPTIONS = frozenset(
    {
        *("num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch", "calibration_eta"),
        *("calibration_rate", "calibration_samples", "calibration_candidates", "calibration_max_trials", "pa_type", "c"),
        *("error_sensitive", "averaging", "variance", "gamma", "keep_tempfiles", "trainer_cls"),
    }
)


def chain_objective(
    features: ChainFeatures,
    y: IntArray,
    *,
    l2: float | FloatArray = 1.0,
    l1: float = 0.0,
    weights: Any = None,
    forbidden: Forbidden | None = None,
    linear: FloatArray | None = None,
    sets: Any = None,
    likelihood: Any = "full",
) -> Any:
    """The objective that `ChainCRF` minimises, for use with `partita.minimize`.

    Parameters
    ----------
    features : ChainFeatures
    y : array of int64
        Codes of the labels of all positions; a code below zero stands for row ``-1 - code`` of `sets`.
    l2, l1 : float
        Penalties, on every parameter. `l2` may be an array.
    weights : array, optional
        One weight per sequence.
    forbidden : Forbidden, optional
        Labels that may not follow each other, or not stand first or last.
    linear : array of shape (features.size,), optional
        Coefficients of a linear term.
    sets : array of bool of shape (k, n_labels), optional
        Sets of labels, one of which is right.
    likelihood : {"full", "pseudo"} or CompositeLikelihood
        See `ChainCRF`. Weights that are still to be chosen are one.
    """
    moves, starts, ends = Forbidden() if forbidden is None else forbidden
    options: dict[str, Any] = {"sets": sets, "weights": weights, "penalty": l2, "linear": linear, "forbidden": moves}
    options |= {"forbidden_starts": starts, "forbidden_ends": ends}
    composite = composite_of(likelihood)
    smooth = (
        ChainLikelihood(features, y, **options) if composite is None else ChainComposite(features, y, composite, **options)
    )
    return smooth if l1 == 0.0 else objectives.L1(smooth, np.full(features.size, l1))


def _bounded(objective: Any, lower: FloatArray, upper: FloatArray, group: Any) -> Any:
    """The objective within bounds on its weights; itself if there are none."""
    if not np.isfinite(lower).any() and not np.isfinite(upper).any():
        return objective
    low, high = np.full(objective.size, -np.inf), np.full(objective.size, np.inf)
    places = np.arange(len(lower))[group] if isinstance(group, slice) else group
    np.maximum.at(low, places, lower)
    np.minimum.at(high, places, upper)
    if (low > high).any():
        raise ValueError("constraints: the bounds of weights that are tied leave no room")
    return objectives.Constrained(objective, objectives.FeasibleSet(low, high))


class ChainCRF(ChainStreamingMixin, ChainPredictionMixin, SavedModel, BaseEstimator):
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
    constraints : list of WeightBounds and WeightTies, optional
        Bounds on weights, and weights that are equal; see `partita.constraints`. Every iterate satisfies them.
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
    precision_ : array or None
        Curvature of the objective along each of them: how firmly `partial_fit` holds on to it. None with l1.
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

    def __init__(
        self,
        l2: float = 1.0,
        l1: float = 0.0,
        solver: Any = "auto",
        features: str = "observed",
        transitions: str = "observed",
        start_end: bool = False,
        min_frequency: float | None = None,
        hashing: int | None = None,
        fit_intercept: bool = True,
        constraints: Any = None,
        forbidden: Any = None,
        likelihood: Any = "full",
        budget: float | None = None,
        max_iter: int = 500,
        tol: float = 2e-6,
        patience: int = 10,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
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
        **options: Any,
    ) -> ChainCRF:
        """The model that ``sklearn_crfsuite.CRF`` would train with these options.

        ``l2 = 2 c2`` (CRFsuite's default is ``c2 = 1``) and ``l1 = c1``. Options that only steer CRFsuite's optimisers
        (``epsilon``, ``num_memories``, …) are accepted and do nothing: `tol` and `solver` are ours.
        """
        if algorithm in ("ap", "pa", "arow"):
            raise ValueError(
                f"algorithm={algorithm!r} maximises no likelihood (it is a perceptron or margin method); "
                "ChainCRF stands in for 'lbfgs' and 'l2sgd'"
            )
        if algorithm not in (None, "lbfgs", "l2sgd"):
            raise ValueError(f"algorithm must be one of 'lbfgs', 'l2sgd'; got {algorithm!r}")
        if model_filename is not None:
            raise ValueError(f"model_filename={model_filename!r}: models are kept in memory; use save and ChainCRF.load")
        unknown = options.keys() - UNUSED_OPTIONS
        if unknown:
            raise TypeError(f"sklearn_crfsuite.CRF has no option {min(unknown)!r}")
        made = cls(
            l2=2.0 * (1.0 if c2 is None else c2),
            l1=0.0 if c1 is None or algorithm == "l2sgd" else c1,
            features="all" if all_possible_states else "observed",
            transitions="all" if all_possible_transitions else "observed",
            min_frequency=0 if min_freq is None else min_freq,
            verbose=int(verbose),
        )
        return made if max_iterations is None else made.set_params(max_iter=max_iterations)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        tags.input_tags.dict = True
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        for name in ("_cache", "_objective", "_kept"):
            state.pop(name, None)
        return state

    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: Any = None,
        sample_weight: Any = None,
        X_dev: Any = None,
        y_dev: Any = None,
        lengths_dev: Any = None,
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
        with unchanged_on_failure(self):
            return self._fit(X, y, lengths, sample_weight, X_dev, y_dev, lengths_dev)

    def _fit(self, X: Any, y: Any, lengths: Any, sample_weight: Any, X_dev: Any, y_dev: Any, lengths_dev: Any) -> ChainCRF:
        self._check_parameters()
        if (X_dev is None) != (y_dev is None) and not isinstance(X_dev, SequenceData):
            raise ValueError("X_dev and y_dev must be given together")
        composite = composite_of(self.likelihood, self.random_state)
        if X_dev is not None and self.budget is not None:
            raise ValueError("X_dev cannot be combined with a budget, which fits several times")
        if X_dev is not None and composite is not None and composite.weights == AUTO:
            raise ValueError("X_dev cannot be combined with weights='auto', which fits several times; give the weights")
        data = read_sequences(X, lengths, AttributeVectorizer(hashing=self.hashing), fit=True)
        labels = labels_of(data, y)
        weights = check_weights("sample_weight", sample_weight, len(data))
        data, weights, kept = counting(data, labels, weights)
        labels = data.labels.compact()  # type: ignore[union-attr]
        tables = forbidden_tables(self.forbidden, labels.classes)
        check_possible(labels, data.offsets, tables, places("y", data.offsets, kept))
        constraints = check_weight_constraints(self.constraints)
        # Constraints are on the user's weights, which must then be the solver's.
        inputs = ChainInputs.of(data, weights, float(self.l2), bool(self.fit_intercept), standard=not constraints)
        features = self._features(inputs, data, labels)
        layout = inputs.layout(features, labels.classes, data.attributes)
        group: Any = weight_groups(constraints, layout)
        l2: Any = inputs.strengths(layout, self.l2, 2) if inputs.intercept else float(self.l2)
        tied: Any = features
        if group is None:
            group = slice(None)
        else:
            tied = TiedFeatures(features, group)
            l2 = np.bincount(group, weights=l2) if inputs.intercept else l2 * np.bincount(group)

        def make(chosen: CompositeLikelihood | None) -> Any:
            return self._objective_of(tied, labels, weights, tables, l2, likelihood=chosen or FULL)

        start = None
        if self.warm_start and hasattr(self, "parameters_"):
            start = np.zeros(tied.size)
            start[group] = inputs.to_solver(layout) @ self._layout.align(self.parameters_, layout)
        holdout = None if X_dev is None else Holdout.of(self, X_dev, y_dev, lengths_dev, inputs, layout, group, tables)
        limits = weight_bounds(constraints, layout)

        def whole(target: Any) -> Any:
            penalised = objectives.L1(target, inputs.strengths(layout, self.l1, 1)) if self.l1 > 0.0 else target
            return _bounded(penalised, *limits, group)

        def solve(target: Any, begin: FloatArray | None) -> Solution:
            return self._minimize(whole(target), begin, [] if holdout is None else [holdout])

        self.__dict__.pop("choice_", None)  # of an earlier fit
        if self.budget is not None:
            every = CompositeLikelihood(dict.fromkeys(BUDGET_ORDERS, 1.0))
            costs = chain_operations(data.lengths, len(labels.classes), every)
            composite, self.choice_ = within_budget(make, solve, dict(zip(BUDGET_ORDERS, costs, strict=True)), self.budget)
        objective = make(composite)
        solution, beta = fit_weights(objective, composite, solve, start)
        bounded = bool(np.isfinite(limits).any())
        stalled = holdout is not None and holdout.stopped and solution.status is not Status.INTERRUPTED
        status = Status.STALLED if stalled else solution.status
        warn_if_short(self, replace(solution, status=status), held_out=holdout is not None)
        if holdout is not None and holdout.best is not None:
            solution = solution.at(whole(objective).at(holdout.best), objective.scale)
        point = solution.point.inner if bounded else solution.point
        if composite is not None and composite.refine is not None:
            point = newton_step(make(None if composite.refine == FULL else composite.refinement), point.parameters)
            solution = solution.at(point, point.objective.scale)
        self._store_point(inputs, layout, point, group, trim=data.kind == ATTRIBUTES and not isinstance(X, SequenceData))
        self._store_run(solution, status, tables, len(data))
        self._kept = remembered(None, 0, data)
        self.dev_scores_ = np.array(holdout.scores if holdout else [])
        self.beta_, self.likelihood_ = beta, composite or FULL
        if self.l1 == 0.0 and not constraints:
            self._objective = point.objective.idle()
        return self

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(self, "precision_", "n_seen_", "fixed_classes_", "dev_scores_", "beta_", *WEIGHTS):
            check_weights_fit(self, check_labels("classes_", self.classes_))
            if self.precision_ is not None:
                check_array(self, "precision_", self.parameters_.shape, np.float32, finite=False)
                if np.isnan(self.precision_).any():
                    raise ModelFileError("precision_ must not hold NaN")
            check_whole(self, "n_seen_")
            check_bool(self, "fixed_classes_")
            check_array(self, "dev_scores_", (None,), finite=False)

    def _check_parameters(self) -> None:
        check_real("l2", self.l2, minimum=0.0)
        check_real("l1", self.l1, minimum=0.0)
        make_solver(self.solver)
        check_choice("features", self.features, FEATURES)
        check_choice("transitions", self.transitions, FEATURES)
        for name in ("start_end", "fit_intercept", "warm_start"):
            check_flag(name, getattr(self, name))
        check_real("min_frequency", 0.0 if self.min_frequency is None else self.min_frequency, minimum=0.0)
        check_hashing(self.hashing)
        if check_weight_constraints(self.constraints) and self.l1 > 0.0:
            raise ValueError("l1 and constraints cannot be combined yet")
        check_forbidden(self.forbidden)
        composite = composite_of(self.likelihood)
        check_budget(self.budget, self.likelihood)
        if composite is not None and composite.refine is not None and (self.l1 > 0.0 or self.constraints):
            raise ValueError("refine cannot be combined with l1 or constraints: a Newton step knows nothing of them")
        check_real("tol", self.tol, minimum=0.0)
        check_count("max_iter", self.max_iter)
        check_count("patience", self.patience, minimum=1)
        check_verbose(self.verbose)
        Workers(self.n_jobs)

    def _features(
        self, inputs: ChainInputs, data: SequenceData, labels: Labels, also: ChainLayout | None = None, beside: Any = None
    ) -> ChainFeatures:
        """The feature map of training data, and of further ones `beside` them, with weights also for the pairs of another
        layout."""
        n = len(labels.classes)
        state, transitions = inputs.pairs(self, data, labels)
        rows = inputs.rows(data if beside is None else beside)
        seen = np.zeros(n, bool)
        seen[labels.codes[labels.codes >= 0]] = True
        reference = int(seen.argmax())
        if also is not None:
            found = ChainLayout(
                labels.classes, data.attributes, rows.X.shape[1], state, transitions, False, inputs.intercept
            )
            both = also.union(found)
            present = np.bincount(rows.X.indices, minlength=rows.X.shape[1]) > 0
            state, transitions = both.state[present[both.state[:, 0]]], both.transitions
            reference = self._reference(also, labels.classes)
        if inputs.intercept:
            state = state[state[:, 0] < data.X.shape[1]]
            state = np.concatenate([state, inputs.intercept_pairs(np.delete(np.arange(n), reference))])
        check_weighted(self, state, transitions)
        ends = bool(self.start_end)
        return ChainFeatures(
            *(rows.X, rows.offsets, n, state[:, 0], state[:, 1], transitions, ends, ends), workers=Workers(self.n_jobs)
        )

    def _reference(self, old: ChainLayout, classes: Any) -> int:
        """The number, among new classes, of the label that has no intercept in an earlier layout."""
        with_one = old.state[old.state[:, 0] == old.n_columns, 1]
        first = np.setdiff1d(np.arange(old.n_labels), with_one)[0]
        return int(np.flatnonzero(classes == old.classes[first])[0])

    def _objective_of(
        self,
        features: ChainFeatures,
        labels: Labels,
        weights: FloatArray,
        tables: Forbidden,
        l2: Any,
        linear: FloatArray | None = None,
        likelihood: Any = FULL,
    ) -> Any:
        return chain_objective(
            features,
            labels.codes,
            l2=l2,
            weights=weights,
            forbidden=tables,
            sets=labels.sets,
            linear=linear,
            likelihood=likelihood,
        )

    def _operations(self, composite: CompositeLikelihood) -> FloatArray:
        """Operations for a sequence, of each order."""
        return chain_operations(self._objective.lengths, len(self.classes_), composite)

    def _minimize(self, objective: Any, start: FloatArray | None, callbacks: list[Any]) -> Solution:
        if self.verbose:
            callbacks = [ProgressPrinter(0.5 if self.verbose == 1 else 0.0), *callbacks]
        return minimize(objective, start, seeded_solver(self), max_iter=self.max_iter, tol=self.tol, callbacks=callbacks)

    def _store_point(self, inputs: ChainInputs, layout: ChainLayout, point: Any, group: Any, trim: bool) -> None:
        found = point.parameters[group]
        values = inputs.to_user(layout) @ found if inputs.intercept else np.array(found)
        precision = None
        if self.l1 > 0.0:
            keep = found != 0.0
            keep[sum(layout.sizes[:2]) :] = True
            keep[: len(layout.state)] |= layout.state[:, 0] >= layout.n_columns
            layout, values = layout.restrict(keep), values[keep]
        else:
            precision = point.diagonal[group]
        self._store_layout(layout.trim() if trim else layout, values, precision, inputs)

    def _store_layout(
        self, layout: ChainLayout, values: FloatArray, precision: FloatArray | None, inputs: ChainInputs | None = None
    ) -> None:
        self.classes_ = layout.classes
        self._store_weights(layout, values, inputs)
        self.precision_ = None if precision is None else precision.astype(np.float32)
        self.__dict__.pop("_objective", None)

    def _store_run(self, solution: Solution, status: Status, tables: Forbidden, seen: int) -> None:
        self.forbidden_transitions_, self.forbidden_starts_, self.forbidden_ends_ = tables
        self.n_iter_, self.trace_, self.status_ = solution.n_iter, solution.trace, status
        self.n_seen_ = seen
        self.beta_ = {FULL: 1.0}
        self.fixed_classes_ = False

"""Softmax (multinomial logistic) regression."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ...core.errors import ConvergenceWarning
from ...core.parameters import Check, array, checked, class_weights, count, flag, real, seed, threads, verbosity
from ...core.results import FloatArray, Solution, Status, Trace
from ...core.types import LabelArray, Labels, MatrixLike, RandomState, SampleWeight, SolverLike
from ...core.validation import check_choice, check_level
from ...core.warn import warn
from ...estimators.available import available
from ...estimators.classifier import ClassProbabilities
from ...estimators.data import prediction_data
from ...estimators.loaded import (
    RUN,
    check_array,
    check_columns,
    check_labels,
    check_log_weights,
    check_run,
    check_whole,
    is_fitted,
)
from ...estimators.offsets import read_offset
from ...estimators.streaming import learn_pieces
from ...estimators.trained import Trained, solver_like, training
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.sets import check_constraints
from ...objectives.uncertainty import METHODS
from ...report.explanation import Explanation
from ...report.tables import CoefficientTable
from ..structure import Categorical
from .explanation import explain_rows, one_row
from .problem import Ended, Model, Problem, l1_max, read_examples, softmax_objective
from .separated import Restraint, find_separation, separated_text
from .streaming import Learned, Learner, Memory, read_pieces, stream_classes, stream_solver
from .uncertainty import NOT_WITH_L1, differences, variances, weight_names

__all__ = ["SoftmaxRegression", "l1_max", "softmax_objective"]

#: A piece of a stream: X and y, and perhaps weights.
Batch: TypeAlias = tuple[MatrixLike, Labels] | tuple[MatrixLike, Labels, SampleWeight]


def _can_stream(model: SoftmaxRegression) -> bool:
    """Streams know neither l1 nor constraints."""
    if model.l1 == 0.0 and not model.constraints:
        return True
    raise AttributeError("partial_fit and fit_stream support neither l1 nor constraints: use fit")


class SoftmaxRegression(ClassProbabilities, Trained):
    """Softmax regression: p(y | x) proportional to h(y) exp(coef_y . x + intercept_y), by penalised maximum likelihood.

    Minimises ``sum_i w_i (-log p(y_i | x_i)) + (l2 / 2) ||coef||^2 + l1 ||coef||_1``. Without l1, ``l2`` is ``1 / C`` of
    scikit-learn's LogisticRegression; with ``l2=0``, ``l1`` is. The optimum is the same.

    Parameters
    ----------
    l2 : float, default 1.0
        Strength of the quadratic penalty; 0 for none.
    l1 : float, default 0.0
        Strength of the penalty on absolute values, which sets coefficients to exactly zero. The smallest value at which
        all are zero is `partita.l1_max`. For the lasso set ``l2=0`` as well.
    fit_intercept, penalize_intercept : bool
        Whether there is an intercept, and whether `l2` and `l1` apply to it.
    solver : str or solver object, default "auto"
        ``"auto"``, ``"newton"``, ``"lbfgs"``, ``"majorize"``, ``"cg"``, ``"steepest"``, ``"stochastic"``, ``"sgd"``, or an
        object such as ``Majorize(bound="descending", acceleration=None)`` or ``StochasticBound(validation=0.1)``. With
        l1 > 0 ``"auto"`` or ``"proximal"``; with constraints ``"auto"`` or ``"majorize"``.
    prior : array of shape (n_classes,), optional
        The base measure h(y) > 0, in the order of the sorted classes.
    constraints : list of constraints, optional
        What ``coef_`` must satisfy, such as ``[Box(lower=0.0)]`` (see `partita.constraints`). Every iterate does. Solvers
        that can: ``"auto"``, ``"majorize"`` (monotone), ``"constrained_newton"``.
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied into the sample weights. A set of classes has the mean of theirs.
    max_iter : int
        Most iterations of the solver (epochs of a stochastic one).
    tol : float
        Stop when the largest absolute entry of the gradient of the mean loss (with l1 > 0: of the shortest subgradient)
        is at most `tol`.
    warm_start : bool
        Start from the last fit.
    n_jobs : int or None
        Threads; None means all cores (or what NUMBA_NUM_THREADS allows). The result does not depend on it.
    random_state : None, int or generator
        Order of the examples in stochastic solvers.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.

    Attributes
    ----------
    log_prior_ : array of shape (n_classes,)
        log h(y), zeros without a prior.
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
    intercept_ : array of shape (n_classes,) or (1,)
    classes_ : array of shape (n_classes,)
    n_iter_ : int
    n_seen_ : int
        Examples learned from, over all calls of `partial_fit`.
    trace_ : Trace
        Objective, gradient norm, certified gap and seconds at every iteration.
    status_ : Status
        Why the solver stopped.
    kkt_residual_ : float
        With constraints: the largest entry of what the multipliers leave of the gradient, and of the products of multipliers
        and slacks, divided by the total weight; 0 at the optimum.

    Notes
    -----
    Labels may be known in part: an entry of y is a class, a set of classes (``{"a", "b"}``: one of these), or None (any),
    which says nothing. With sets of more than one class, but not all, the objective is no longer convex: it may have local
    minima, and there is no certified `gap`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from partita import SoftmaxRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SoftmaxRegression(l2=0.1).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.98
    >>> model.status_.name
    'CONVERGED'
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "l2": real(0.0),
        "l1": real(0.0),
        "fit_intercept": flag,
        "penalize_intercept": flag,
        "solver": solver_like,
        "prior": array(),
        "constraints": checked(check_constraints),
        "class_weight": class_weights,
        "max_iter": count(),
        "tol": real(0.0),
        "warm_start": flag,
        "n_jobs": threads,
        "random_state": seed,
        "verbose": verbosity,
    }
    TRANSIENT: ClassVar[tuple[str, ...]] = ("_ended", "_memory")

    coef_: FloatArray
    intercept_: FloatArray
    classes_: LabelArray
    log_prior_: FloatArray
    n_features_in_: int
    feature_names_in_: LabelArray
    n_seen_: int
    kkt_residual_: float
    _ended: Ended | None = None
    _memory: Memory | None = None

    def __init__(
        self,
        l2: float = 1.0,
        l1: float = 0.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        solver: SolverLike = "auto",
        prior: ArrayLike | None = None,
        constraints: Constraint | Sequence[Constraint] | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.l2 = l2
        self.l1 = l1
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.solver = solver
        self.prior = prior
        self.constraints = constraints
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(self, "classes_", "coef_", "intercept_", "log_prior_", "n_features_in_", *RUN):
            n = len(check_labels("classes_", self.classes_, 2, floats=True))
            rows = 1 if n == 2 else n
            check_array(self, "coef_", (rows, check_columns(self)))
            check_array(self, "intercept_", (rows,))
            check_log_weights(self, "log_prior_", n)
            check_whole(self, "n_seen_")
            check_run(self)

    def _model(self) -> Model:
        return Model(self.l2, self.l1, self.fit_intercept, self.penalize_intercept, self.prior, self.n_jobs)

    @training
    def fit(self, X: MatrixLike, y: Labels, sample_weight: SampleWeight = None, offset: ArrayLike | None = None) -> Self:
        """Fit to X (dense or sparse, n_samples x n_features) and labels y. A failed fit changes nothing.

        Parameters
        ----------
        X, sample_weight
        y : array
            An entry is a class, a set of classes (one of these), or None (any).
        offset : array of shape (n_samples, n_classes), or (n_samples,) for two classes, optional
            Added to the scores of the classes (to the log-odds of the second): a feature of weight 1, or the logarithm of a
            base measure h(y) of each example. -inf forbids. Predictions take it too, by the same name.
        """
        model = self._model()
        data = read_examples(self, X, y, sample_weight, self.class_weight).with_offset(offset)
        if data.allowed is None:  # else the objective sees to it
            model.check_prior(data.classes, data.codes)
        problem = Problem.of(model, data, check_constraints(self.constraints), self._column_names())
        solution = self._minimize(problem.target, self._warm_start(problem))
        restraint = Restraint(self.l2, self.l1, self.tol)
        separated = None
        if data.allowed is not None:
            solution = problem.judged(solution)
        elif not problem.constrained:
            separated = find_separation(solution.point, solution.status, restraint)
        self._store(problem, solution if separated is None else replace(solution, status=Status.UNBOUNDED))
        if separated is None:
            self._warn_if_short(solution)
        else:
            names = None if problem.columns is not None and problem.columns.mixed else self._column_names()
            text = separated_text(separated, problem.features, self.coef_, restraint, names)
            warn(f"SoftmaxRegression: {text}", ConvergenceWarning)
        return self

    def _warm_start(self, problem: Problem) -> FloatArray | None:
        """Where the last fit ended, if it had the same classes and columns."""
        if not self.warm_start or not hasattr(self, "coef_") or not np.array_equal(self.classes_, problem.data.classes):
            return None
        if self.coef_.shape[1] != self.n_features_in_:
            return None
        return problem.start(self.coef_, self.intercept_)

    def _store(self, problem: Problem, solution: Solution) -> None:
        ended = problem.ended(solution.point, solution.status is Status.UNBOUNDED)
        coefficients, intercepts = ended.features.unpack(ended.point.parameters)
        self.classes_ = problem.data.classes
        self.log_prior_ = problem.model.log_prior(len(self.classes_))
        self.coef_ = np.ascontiguousarray(coefficients)
        self.intercept_ = intercepts.copy()
        self.n_seen_ = ended.features.n_examples
        self._store_run(solution)
        self._forget("_memory", "kkt_residual_")
        if ended.constrained is not None:
            self.kkt_residual_ = float(np.abs(ended.constrained.gradient).max()) / ended.constrained.objective.scale
        self._ended = ended

    @available(_can_stream)
    @training
    def partial_fit(
        self, X: MatrixLike, y: Labels, classes: Labels | None = None, sample_weight: SampleWeight = None
    ) -> Self:
        """Learn from more examples: one pass, no learning rate. Every call counts as new data.

        X may be far larger than memory: a memory-mapped array, or a CSR matrix of memory-mapped arrays, is read a piece at
        a time. Continues from an earlier `fit` or `partial_fit`; after loading or unpickling, the parameters go on but the
        curvature starts afresh. The method is `StochasticBound.stream`, with the batch size, rank, bound and damping of the
        estimator's solver, if that is a `StochasticBound`. Examples should come in random order:
        a `DataWarning` says when they come sorted by class.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, optional
            All labels that will ever come; needed in the first call.
        sample_weight : array, optional

        Examples
        --------
        >>> import numpy as np
        >>> from partita import SoftmaxRegression
        >>> rng = np.random.default_rng(0)
        >>> model = SoftmaxRegression()
        >>> for _ in range(20):
        ...     X = rng.standard_normal((500, 3))
        ...     model = model.partial_fit(X, X[:, 0] > 0, classes=[False, True])
        >>> model.score(X, X[:, 0] > 0) > 0.98
        True
        """
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} needs all labels at once; give partial_fit a dict")
        before = None
        if hasattr(self, "coef_"):
            before = Learned(self.coef_, self.intercept_, self.n_seen_, self._memory)
        self.classes_ = stream_classes(classes, None if before is None else self.classes_)
        solver = stream_solver(self._solver(), self.random_state)
        learner = Learner(self._model(), self.classes_, self.class_weight, solver)
        learned = before
        for piece in read_pieces(self, X, y, sample_weight, first=before is None):
            learned = learner.absorb(learned, *piece)
        assert learned is not None  # there is always a piece
        self._store_stream(learned)
        return self

    def _store_stream(self, learned: Learned) -> None:
        self.coef_, self.intercept_, self.n_seen_ = learned.coefficients, learned.intercepts, learned.seen
        self.log_prior_ = self._model().log_prior(len(self.classes_))
        self._memory = learned.memory
        steps = 0 if learned.memory is None else learned.memory.stream.steps
        self._store_end(steps, Trace(*np.zeros((4, 0))), Status.STREAM)
        self._forget("_ended", "kkt_residual_")

    @available(_can_stream)
    @training
    def fit_stream(self, batches: Iterable[Batch], classes: Labels) -> Self:
        """Forget what was learned, then learn from an iterable of ``(X, y)`` or ``(X, y, sample_weight)`` in one pass."""
        self._forget("coef_", "_memory", "n_seen_")
        learn_pieces(self, batches, lambda batch: self.partial_fit(batch[0], batch[1], classes, *batch[2:]), "batches")
        return self

    def decision_function(self, X: MatrixLike, offset: ArrayLike | None = None) -> FloatArray:
        """Scores log h(y) + coef . x + intercept, (n_samples, n_classes), or the log-odds (n_samples,) for two classes."""
        check_is_fitted(self)
        rows = prediction_data(self, X)
        scores = np.asarray(safe_sparse_dot(rows, self.coef_.T, dense_output=True)) + self.intercept_
        added = read_offset(offset, len(scores), len(self.classes_))
        if len(self.classes_) == 2:
            more = 0.0 if added is None else added[:, 1] - added[:, 0]
            return np.asarray(scores[:, 0] + (self.log_prior_[1] - self.log_prior_[0]) + more)
        return np.asarray(scores + self.log_prior_ + (0.0 if added is None else added))

    def predict(self, X: MatrixLike, **more: Any) -> LabelArray:
        """The most probable class."""
        scores = self.decision_function(X, **more)
        return np.asarray(self.classes_[(scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(1)])

    def predict_log_proba(self, X: MatrixLike, offset: ArrayLike | None = None) -> FloatArray:
        """Log-probabilities, (n_samples, n_classes), in the order of `classes_`."""
        scores = self.decision_function(X, offset)
        if scores.ndim == 1:
            return -np.logaddexp(0.0, np.column_stack([scores, -scores]))
        return scores - Categorical(scores.shape[1]).log_partition(scores)[:, None]

    def explain(self, X: MatrixLike) -> Explanation:
        """Which columns pushed which class, for each row of X (or one row as a vector). ``print`` the answer.

        A push is what a column, times its value, adds to the score of the predicted class, less what it adds to that of the
        runner-up. Pushes sum to the difference of the two log-probabilities.
        """
        rows = one_row(X)
        P, rows = self.predict_proba(rows), prediction_data(self, rows)
        first = np.zeros((int(len(self.classes_) == 2), 1 + rows.shape[1]))  # of two classes, the first has no weights
        weights = np.vstack([first, np.column_stack([self.coef_, self.intercept_])])
        others = {"intercept": weights[:, -1], "prior": self.log_prior_}
        return explain_rows(rows, self.classes_.tolist(), self._column_names(), P, weights[:, :-1], others)

    def standard_errors(
        self,
        method: str = "information",
        reference: Hashable = None,
        draws: int = 100,
        random_state: RandomState = None,
    ) -> FloatArray:
        """Standard errors of the estimates, from the training data (which are kept by reference, not copied).

        Parameters
        ----------
        method : {"information", "sandwich", "bootstrap"}
            Inverse of the observed information (penalty included), or the sandwich that stays right when the model is
            wrong, or refits to resampled examples, which l1 and constraints allow too. Where a penalised fit has many
            effective parameters for its examples, these are too small, and a warning says so.
        reference : class label, optional
            With more than two classes, the standard errors of the differences to this class, as statsmodels and R report
            them. Without it, those of the weights themselves (without a penalty: normalised to sum to zero over classes).
        draws, random_state
            Number of refits of the bootstrap, and seed.

        Returns
        -------
        array of shape (rows of coef_, n_features + 1), the intercept last, (without it if there is none).
        """
        check_is_fitted(self)
        check_choice("method", method, METHODS)
        row = None if reference is None else self._reference_row(reference)
        if method == "bootstrap":
            return self._bootstrap(draws, random_state, lambda table: table if row is None else table - table[row])
        if self.l1 > 0.0:
            raise ValueError(NOT_WITH_L1)
        return np.asarray(np.sqrt(variances(self._ended, self.l2, method == "sandwich", row)))

    def _estimates(self) -> FloatArray:
        """The weights and intercepts, as errors are arranged."""
        return np.column_stack([self.coef_, self.intercept_]) if self.fit_intercept else self.coef_

    def _reference_row(self, reference: Hashable) -> int:
        if len(self.classes_) == 2:
            raise ValueError("reference applies to more than two classes; with two, coef_ is already a difference")
        if reference not in self.classes_:
            raise ValueError(f"reference must be one of the classes {list(self.classes_)}, got {reference!r}")
        return int(np.flatnonzero(self.classes_ == reference)[0])

    def _column_names(self) -> list[str]:
        return [*getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])]

    def summary(
        self,
        level: float = 0.95,
        method: str = "information",
        reference: Hashable = None,
        draws: int = 100,
        random_state: RandomState = None,
    ) -> CoefficientTable:
        """Estimate, standard error, z, p and confidence interval of every parameter, as a table to print.

        Parameters are as in `standard_errors`; with a `reference`, rows are differences to that class.
        """
        check_level(level)
        errors = self.standard_errors(method, reference, draws, random_state)
        intercept = errors.shape[1] > self.coef_.shape[1]
        estimates = np.column_stack([self.coef_, self.intercept_]) if intercept else self.coef_
        labels = list(self.classes_[1:]) if len(self.classes_) == 2 else list(self.classes_)
        if reference is not None:
            r = self._reference_row(reference)
            estimates, errors = differences(estimates, r), np.delete(errors, r, axis=0)
            labels.pop(r)
        names = weight_names(labels, [*self._column_names(), *(["intercept"] if intercept else [])])
        title = f"Softmax regression, l2 = {self.l2:g}, {method} standard errors, {self.status_.name.lower()}"
        return CoefficientTable.of(names, estimates, errors, level, title)

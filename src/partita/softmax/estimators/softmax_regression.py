"""Softmax (multinomial logistic) regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.simplex import normalized
from ...core.errors import ConvergenceWarning
from ...core.parallel import Workers
from ...core.results import FloatArray, Solution, Status
from ...core.validation import check_choice, check_count, check_flag, check_level, check_real, check_verbose, check_weights
from ...core.warn import warn
from ...estimators.convergence import warn_if_short
from ...estimators.data import class_codes, prediction_data, training_data, unchanged_on_failure, warn_weightless
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
from ...estimators.persistence import SavedModel
from ...estimators.seeded_solver import seeded_solver
from ...objectives.constraints.constrained import Constrained, compile_constraints
from ...objectives.constraints.sets import check_constraints
from ...objectives.information import warn_of_many_weights
from ...report.progress import ProgressPrinter
from ...report.tables import CoefficientTable
from ...solvers.auto import make_solver
from ...solvers.loop import minimize
from ..features.linear import linear_map
from ..features.standard_columns import WIDE, Centred, RowSpace, StandardColumns, far_from_zero
from ..objective.covariance import SEPARATED_CLASSES, covariance
from ..objective.elastic_net import ElasticNet
from ..objective.likelihood import Likelihood
from ..structure import Binary, Categorical
from .separated import find_separation, separated_text
from .streaming import StreamingMixin


def softmax_objective(
    X: Any,
    y: Any,
    *,
    l2: float = 1.0,
    l1: float = 0.0,
    fit_intercept: bool = True,
    penalize_intercept: bool = False,
    prior: ArrayLike | None = None,
    weights: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """The objective that `SoftmaxRegression` minimises, for use with `partita.minimize`.

    Two classes get one coefficient vector (the log-odds of the second), more get one each. A `Likelihood`, or with l1 > 0
    an `ElasticNet`.
    """
    classes, codes = np.unique(y, return_inverse=True)
    return _objective(X, codes, len(classes), l2, l1, fit_intercept, penalize_intercept, prior, weights, n_jobs)


def l1_max(
    X: Any,
    y: Any,
    *,
    fit_intercept: bool = True,
    penalize_intercept: bool = False,
    prior: ArrayLike | None = None,
    weights: Any = None,
) -> float:
    """The smallest l1 at which every coefficient of `SoftmaxRegression` is zero: where a regularisation path begins.

    It does not depend on l2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from partita import l1_max
    >>> round(l1_max(*load_breast_cancer(return_X_y=True)), 1)
    114841.1
    """
    options = {"fit_intercept": fit_intercept, "penalize_intercept": penalize_intercept, "prior": prior, "weights": weights}
    objective = softmax_objective(X, y, l2=0.0, l1=1.0, **options)  # any l1: at zero it does not enter the smooth part
    return float(objective.at(np.zeros(objective.size)).l1_max)


def _objective(
    X: Any,
    codes: Any,
    n_classes: int,
    l2: float,
    l1: float,
    fit_intercept: bool,
    penalize_intercept: bool,
    prior: ArrayLike | None,
    weights: Any,
    n_jobs: int | None,
) -> Likelihood | ElasticNet:
    workers = Workers(n_jobs)
    features = linear_map(X, 1 if n_classes == 2 else n_classes, fit_intercept, workers)
    penalised = np.ones(features.size)
    if not penalize_intercept:
        penalised[features.n_coefficients :] = 0.0
    structure = Binary(prior) if n_classes == 2 else Categorical(n_classes, prior)
    likelihood = Likelihood(features, structure, codes, weights=weights, penalty=l2 * penalised, workers=workers)
    return ElasticNet(likelihood, l1 * penalised) if l1 > 0.0 else likelihood


class SoftmaxRegression(StreamingMixin, SavedModel, ClassifierMixin, BaseEstimator):
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
        Weights of the classes, multiplied into the sample weights.
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

    def __init__(
        self,
        l2: float = 1.0,
        l1: float = 0.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        solver: Any = "auto",
        prior: ArrayLike | None = None,
        constraints: Any = None,
        class_weight: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
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

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_point", None)
        state.pop("_digest", None)
        state.pop("_stream", None)
        state.pop("_constrained_point", None)
        return state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SoftmaxRegression:
        """Fit to X (dense or sparse, n_samples x n_features) and labels y. A failed fit changes nothing."""
        with unchanged_on_failure(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> SoftmaxRegression:
        self._check_parameters()
        X, y = training_data(self, X, y)
        classes, codes = class_codes(y)
        if len(classes) < 2:
            raise ValueError(f"y has one class only, {classes.tolist()[0]!r}; a classifier needs at least two classes")
        weights = check_weights("sample_weight", sample_weight, len(codes))
        if self.class_weight is not None:
            factors = compute_class_weight(self.class_weight, classes=classes, y=y)
            weights = check_weights("class_weight times sample_weight", weights * factors[codes], len(codes))
        if sample_weight is not None or self.class_weight is not None:
            warn_weightless(classes, codes, weights)
        self._check_prior(classes, codes)
        full = X
        constraints = check_constraints(self.constraints)
        plain = self.l1 == 0.0 and not constraints  # rotations change l1 norms and constraints
        columns: StandardColumns | RowSpace | Centred | None = None
        if plain and self.l2 == 0.0:
            columns = StandardColumns(X, weights, 0.0, bool(self.fit_intercept))  # so that tol does not depend on units
        elif plain and not sp.issparse(X) and WIDE * len(X) <= X.shape[1]:
            columns = RowSpace(X)
        elif plain and not sp.issparse(X) and self.fit_intercept and not self.penalize_intercept and far_from_zero(X):
            columns = Centred(X, weights)  # scores would be differences of large numbers
        objective = self._objective(X if columns is None else columns.rows, codes, len(classes), weights)
        start = self._warm_start(objective, classes, columns)
        problem: Any = objective
        if constraints:
            problem = Constrained(objective, compile_constraints(constraints, objective.features))
        callbacks = [ProgressPrinter(0.5 if self.verbose == 1 else 0.0)] if self.verbose else []
        solution = minimize(
            problem,
            start,
            seeded_solver(self),
            max_iter=self.max_iter,
            tol=self.tol,
            callbacks=callbacks,
        )
        point = solution.point
        separated = None if constraints else find_separation(self, point, solution.status)
        if separated is not None:
            solution = replace(solution, status=Status.UNBOUNDED)
        fitted = objective.features
        if columns is not None:
            coefficients, intercepts = columns.to_columns(*fitted.unpack(solution.parameters))
            objective = self._objective(full, codes, len(classes), weights)
            point = objective.at(objective.features.pack(coefficients, intercepts))
        self.__dict__.pop("kkt_residual_", None)
        self._constrained_point = point if constraints else None
        if constraints:
            self.kkt_residual_ = float(np.abs(point.gradient).max()) / problem.scale
            point = point.likelihood
        self._store(classes, point, solution)
        if separated is not None:
            named = columns is None or not columns.mixed
            text = separated_text(self, separated, fitted, self.coef_, named)
            warn(f"SoftmaxRegression: {text}", ConvergenceWarning)
        return self

    def _objective(self, X: Any, codes: Any, n_classes: int, weights: FloatArray) -> Any:
        return _objective(
            *(X, codes, n_classes, self.l2, self.l1, self.fit_intercept, self.penalize_intercept),
            *(self.prior, weights, self.n_jobs),
        )

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

    def _check_parameters(self) -> None:
        check_real("l2", self.l2, minimum=0.0)
        check_real("l1", self.l1, minimum=0.0)
        for name in ("fit_intercept", "penalize_intercept", "warm_start"):
            check_flag(name, getattr(self, name))
        check_real("tol", self.tol, minimum=0.0)
        check_count("max_iter", self.max_iter)
        check_verbose(self.verbose)
        if not (self.class_weight is None or isinstance(self.class_weight, str | Mapping)):
            raise ValueError(f"class_weight must be None, 'balanced' or a dict by class, got {self.class_weight!r}")
        make_solver(self.solver)
        if check_constraints(self.constraints) and self.l1 > 0.0:
            raise ValueError(
                "l1 and constraints cannot be combined yet; use Ball(radius, norm=1) as a constraint instead of l1"
            )
        Workers(self.n_jobs)

    def _check_prior(self, classes: Any, codes: Any) -> None:
        if self.prior is None:
            return
        structure = Categorical(len(classes), self.prior)
        impossible = structure.log_prior[codes] == -np.inf
        if impossible.any():
            label = classes.tolist()[codes[np.argmax(impossible)]]
            raise ValueError(f"prior is zero for class {label!r}, which occurs in y; its likelihood is zero for every model")

    def _warm_start(
        self, objective: Any, classes: Any, columns: StandardColumns | RowSpace | Centred | None
    ) -> FloatArray | None:
        if not self.warm_start or not hasattr(self, "coef_") or not np.array_equal(self.classes_, classes):
            return None
        if self.coef_.shape[1] != self.n_features_in_:
            return None
        weights = self.coef_, self.intercept_
        return np.asarray(objective.features.pack(*(weights if columns is None else columns.to_rows(*weights))))

    def _store(self, classes: Any, point: Any, solution: Solution) -> None:
        coefficients, intercepts = point.objective.features.unpack(point.parameters)
        self.classes_ = classes
        self.log_prior_ = np.zeros(len(classes)) if self.prior is None else Categorical(len(classes), self.prior).log_prior
        self.coef_ = np.ascontiguousarray(coefficients)
        self.intercept_ = intercepts.copy()
        self.n_iter_ = solution.n_iter
        self.trace_ = solution.trace
        self.status_ = solution.status
        self._point = point
        self._digest = point.objective.features.digest()
        self.n_seen_ = point.objective.features.n_examples
        self.__dict__.pop("_stream", None)
        if solution.status is not Status.UNBOUNDED:  # which has a text of its own
            stalled = solution.status is Status.STALLED
            warn_if_short(self, solution, held_out=not stalled or seeded_solver(self).holds_out)

    def decision_function(self, X: Any) -> FloatArray:
        """Scores log h(y) + coef . x + intercept, (n_samples, n_classes), or the log-odds (n_samples,) for two classes."""
        check_is_fitted(self)
        X = prediction_data(self, X)
        scores = np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True)) + self.intercept_
        if len(self.classes_) == 2:
            return np.asarray(scores[:, 0] + (self.log_prior_[1] - self.log_prior_[0]))
        return np.asarray(scores + self.log_prior_)

    def predict(self, X: Any) -> Any:
        """The most probable class."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(1)]

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities, (n_samples, n_classes), in the order of `classes_`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return -np.logaddexp(0.0, np.column_stack([scores, -scores]))
        return scores - Categorical(scores.shape[1]).log_partition(scores)[:, None]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities, (n_samples, n_classes), in the order of `classes_`."""
        return normalized(np.exp(self.predict_log_proba(X)))

    def predict_marginals(self, X: Any) -> FloatArray:
        """The same as `predict_proba`: the name that all Partita estimators share."""
        return self.predict_proba(X)

    def standard_errors(self, method: str = "information", reference: Any = None) -> FloatArray:
        """Standard errors of the estimates, from the training data (which are kept by reference, not copied).

        Parameters
        ----------
        method : {"information", "sandwich"}
            Inverse of the observed information (penalty included), or the sandwich that stays right when the model is
            wrong.
        reference : class label, optional
            With more than two classes, the standard errors of the differences to this class, as statsmodels and R report
            them. Without it, those of the weights themselves (without a penalty: normalised to sum to zero over classes).

        Returns
        -------
        array of shape (rows of coef_, n_features + 1), the intercept last, (without it if there is none).
        """
        return np.asarray(np.sqrt(self._variances(method, reference)))

    def _variances(self, method: str, reference: Any) -> FloatArray:
        check_is_fitted(self)
        check_choice("method", method, ("information", "sandwich"))
        fitted = "_point" in vars(self)
        if self.l1 > 0.0 or (fitted and self._point.likelihood is not self._point):
            raise ValueError(
                "standard errors are not defined with l1 > 0: the estimates are biased towards zero, and exact zeros have "
                "no normal distribution; refit the chosen columns with l1=0, or resample"
            )
        if not fitted:
            raise ValueError(
                "standard errors need the training data, which copies, files and streams do not keep: fit again"
            )
        if self._constrained_point is not None and self._constrained_point.active:
            raise ValueError(
                "a constraint is active at the estimates: on the edge of the feasible set they are not asymptotically "
                "normal and have no standard error; drop the constraint, or bootstrap"
            )
        if self.status_ is Status.UNBOUNDED:
            raise ValueError(SEPARATED_CLASSES)
        if self._point.objective.features.digest() != self._digest:
            raise ValueError("X was changed in place after fit, and standard errors need the training data: fit again")
        examples = self._point.objective.features.n_examples
        warn_of_many_weights(self._point.objective.size, examples, "rows", self.l2, "fewer columns")
        columns = self._point.objective.features.columns()
        matrix = covariance(self._point, robust=method == "sandwich")
        variances = matrix[columns, columns]
        if reference is None:
            return np.asarray(variances)
        r = self._reference_row(reference)
        return np.asarray(variances + variances[r] - 2.0 * matrix[columns, np.broadcast_to(columns[r], columns.shape)])

    def _reference_row(self, reference: Any) -> int:
        if len(self.classes_) == 2:
            raise ValueError("reference applies to more than two classes; with two, coef_ is already a difference")
        if reference not in self.classes_:
            raise ValueError(f"reference must be one of the classes {list(self.classes_)}, got {reference!r}")
        return int(np.flatnonzero(self.classes_ == reference)[0])

    def summary(self, level: float = 0.95, method: str = "information", reference: Any = None) -> CoefficientTable:
        """Estimate, standard error, z, p and confidence interval of every parameter, as a table to print.

        Parameters are as in `standard_errors`; with a `reference`, rows are differences to that class.
        """
        check_level(level)
        errors = self.standard_errors(method, reference)
        intercept = errors.shape[1] > self.coef_.shape[1]
        estimates = np.column_stack([self.coef_, self.intercept_]) if intercept else self.coef_
        labels = list(self.classes_[1:]) if len(self.classes_) == 2 else list(self.classes_)
        if reference is not None:
            r = self._reference_row(reference)
            estimates = np.delete(estimates - estimates[r], r, axis=0)
            errors = np.delete(errors, r, axis=0)
            labels.pop(r)
        columns = [*getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])]
        columns += ["intercept"] if intercept else []
        names = [f"{label}: {column}" for label in labels for column in columns]
        title = f"Softmax regression, l2 = {self.l2:g}, {method} standard errors, {self.status_.name.lower()}"
        return CoefficientTable.of(names, estimates, errors, level, title)

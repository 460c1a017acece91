"""Softmax regression with hidden states: a mixture in each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ...core import Solver
from ...core.arrays.potentials import real_array
from ...core.arrays.simplex import normalized
from ...core.errors import ModelFileError
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.parameters import Check, count, flag, real, seed, threads, verbosity
from ...core.random import generator
from ...core.results import FloatArray, Solution, Status
from ...core.types import LabelArray, Labels, MatrixLike, RandomState, SampleWeight, SolverLike
from ...core.validation import check_choice, check_weights
from ...estimators.class_sets import encode_examples, has_sets, read_class_sets
from ...estimators.data import prediction_data
from ...estimators.loaded import RUN, check_array, check_columns, check_labels, check_run, is_fitted
from ...estimators.restarts import end_values
from ...estimators.streaming import Posterior, Streamed, precision_at
from ...estimators.trained import solver_like, training
from ...solvers.lbfgs import LBFGS
from ...solvers.named import make_solver
from ...solvers.newton import Newton
from ..features.linear_layouts import linear_map
from ..features.standard_columns import StandardColumns
from ..objective.latent import LatentLikelihood
from ..structure import Categorical
from .latent_starts import Starts, given_start
from .problem import linear
from .separated import hidden_separation
from .streaming import stream_classes

#: Arrays of the size of the scores of all hidden states, and of their weights, that a fit needs at once.
COPIES_OF_SCORES, COPIES_OF_WEIGHTS = 6, 10
INITS = ("random", "kmeans")


def latent_objective(
    X: MatrixLike,
    allowed: ArrayLike,
    *,
    n_hidden: int = 2,
    l2: float | FloatArray = 1.0,
    fit_intercept: bool = True,
    weights: SampleWeight = None,
    workers: Workers | None = None,
) -> LatentLikelihood:
    """The objective that `LatentSoftmax` minimises, for use with `partita.minimize`.

    ``allowed`` is an array of bool, (examples, classes): which classes an example may have. The states are the pairs of a
    class and a hidden state, the hidden state last. `l2` is one number or one for each column.
    """
    classes = np.asarray(allowed)
    features = linear_map(X, classes.shape[1] * int(n_hidden), fit_intercept, workers or Workers(1))
    possible = np.repeat(classes, n_hidden, axis=1)
    columns = np.broadcast_to(l2, (features.n_outputs, features.n_columns))
    penalty = features.pack(columns, np.zeros(features.n_outputs))
    return LatentLikelihood(features, Categorical(possible.shape[1]), possible, weights=weights, penalty=penalty)


def _init(name: str, value: Any) -> None:
    """The name of a way to start, or an array of weights."""
    if isinstance(value, str):
        check_choice(name, value, INITS)
    else:
        real_array(name, value)


class Problem(NamedTuple):
    """A mixture in each class on the rows of data in standard units."""

    classes: LabelArray
    columns: StandardColumns
    objective: LatentLikelihood


class LatentSoftmax(ClassifierMixin, Streamed):
    """A mixture in each class: p(y | x) proportional to sum_h exp(coef_yh . x + intercept_yh), by maximum likelihood.

    Conditioning a mixture of Gaussians of one covariance per class on x has this form. Boundaries between classes are
    piecewise linear. Minimises ``sum_i w_i (-log p(y_i | x_i)) + (l2 / 2) ||coef||^2``, which has local minima.

    Parameters
    ----------
    n_hidden : int, default 2
        Hidden states in each class. With one, this is softmax regression (of two classes with a weight vector for each:
        `l2` is then twice that of `SoftmaxRegression`, which has one for their difference).
    l2 : float, default 1.0
        Strength of the quadratic penalty; intercepts have none. Without it weights of separable data grow without bound:
        with 0 the cross-validated log-loss of iris is 0.76, with 1 it is 0.14.
    solver : str or solver object, default "auto"
        ``"auto"``, ``"lbfgs"``, ``"newton"``, ``"majorize"`` (monotone, without line search), ``"em"`` (conditional EM),
        ``"cg"``, ``"steepest"``, or an object such as ``Majorize(bound="descending", acceleration=None)``. ``"auto"`` is
        Newton, which a penalty makes several times faster than L-BFGS (wine 13 iterations for 259), and L-BFGS with
        ``l2=0``; which of them ends lower depends on data and start. All see dense columns in standard units; those of
        sparse data, and of data with many more columns than rows, have one common factor.
    n_init : int, default 1
        Number of starts; the fit with the lowest objective is kept. They run in parallel.
    init : {"random", "kmeans"} or array, default "random"
        Random weights, the clusters of each class, or an array of shape (n_classes, n_hidden, n_features + 1) with the
        intercept last (without it if there is none). Hidden states of a class that start with the same weights would stay
        the same, so that such an array, all zeros for instance, is refused.
    fit_intercept : bool
    max_iter : int
        Most iterations of the solver from each start.
    tol : float
        Stop when the largest absolute entry of the gradient of the mean loss, in standard units, is at most `tol`.
    random_state : None, int or generator
        Of the starts.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.

    Attributes
    ----------
    coef_ : array of shape (n_classes, n_hidden, n_features)
    intercept_ : array of shape (n_classes, n_hidden)
    classes_ : array of shape (n_classes,)
    objectives_ : array of shape (n_init,)
        The objective reached from each start; NaN where an interrupt came first.
    precision_, n_seen_
        What `partial_fit` goes on from: the curvature of the objective along each weight, and examples learned from so far.
    n_iter_, trace_, status_
        Of the best start.

    Notes
    -----
    Labels may be known in part: an entry of y is a class, a set of classes (``{"a", "b"}``: one of these), or None (any).
    Such a y is a list or an array of objects, of strings or integers. Cross-validation of it needs splits that do not look
    at classes, such as ``cv=KFold(5)``.

    Examples
    --------
    Opposite quadrants, which no straight line separates:

    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from partita import LatentSoftmax
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = LatentSoftmax(n_hidden=2, l2=0.01, n_init=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    >>> model.hidden_proba(X[:1]).shape
    (1, 2, 2)

    The number of hidden states by cross-validation:

    >>> GridSearchCV(model, {"n_hidden": [1, 2, 3]}, scoring="neg_log_loss").fit(X, y).best_params_
    {'n_hidden': 2}
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "n_hidden": count(1),
        "l2": real(0.0),
        "solver": solver_like,
        "n_init": count(1),
        "init": _init,
        "fit_intercept": flag,
        "max_iter": count(),
        "tol": real(0.0),
        "random_state": seed,
        "n_jobs": threads,
        "verbose": verbosity,
    }

    column_mean_: FloatArray
    column_spread_: FloatArray
    coef_: FloatArray
    intercept_: FloatArray
    classes_: LabelArray
    objectives_: FloatArray
    n_features_in_: int
    feature_names_in_: LabelArray

    def __init__(
        self,
        n_hidden: int = 2,
        l2: float = 1.0,
        solver: SolverLike = "auto",
        n_init: int = 1,
        init: str | ArrayLike = "random",
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-8,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_hidden = n_hidden
        self.l2 = l2
        self.solver = solver
        self.n_init = n_init
        self.init = init
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @training
    def fit(self, X: MatrixLike, y: Labels, sample_weight: SampleWeight = None) -> Self:
        """Fit to X (dense or sparse, n_samples x n_features) and labels y. A failed fit changes nothing."""
        return self._learn(None, X, y, sample_weight, None, True)

    @training
    def partial_fit(
        self, X: MatrixLike, y: Labels, classes: Labels | None = None, sample_weight: SampleWeight = None
    ) -> Self:
        """Learn from more examples, by the Laplace approximation; see `ChainCRF.partial_fit`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array, optional
            All labels that will ever come. Default: those of the first piece.
        """
        known = None if classes is None else stream_classes(classes, vars(self).get("classes_"))
        return self._take_piece(X, y, sample_weight, known, False)

    def _posterior(self) -> Posterior | None:
        """What is known so far: weights on columns in standard units, then intercepts, and a precision for each."""
        if "coef_" not in vars(self):
            return None
        precision, flat = self._known_precision(), self.coef_.reshape(-1, self.coef_.shape[2])
        return Posterior(np.column_stack(self._units().to_rows(flat, self.intercept_.ravel())), precision)

    def _units(self) -> StandardColumns:
        return StandardColumns.known(self.column_mean_, self.column_spread_, float(self.l2))

    def _learn(self, before: Posterior | None, *data: Any) -> Self:
        X, y, sample_weight, stated, rotate = data
        if before is not None:
            return self._learn_more(before, X, y, sample_weight)
        rows, classes, allowed = read_class_sets(self, X, y)
        if stated is not None:
            classes, allowed = stated, encode_examples(y, rows.shape[0], "example", stated).allowed()
        if len(classes) < 2:
            raise ValueError(f"y has one class only, {classes.tolist()}; a classifier needs at least two classes")
        weights = check_weights("sample_weight", sample_weight, len(allowed))
        self._check_size(rows.shape[0], rows.shape[1], len(classes))
        given = None
        if not isinstance(self.init, str):
            given = given_start(self.init, classes, self.n_hidden, rows.shape[1], bool(self.fit_intercept))
        problem = self._problem(rows, classes, allowed, weights, rotate)
        objective: Any = problem.objective
        best, solutions = self._minimize_from(
            objective, self._starts(problem, given), self._chosen_solver(problem.objective), self.n_jobs
        )
        self._store(problem, best, solutions)
        return self

    def _learn_more(self, before: Posterior, X: MatrixLike, y: Labels, sample_weight: SampleWeight) -> Self:
        """Fit to a piece after others, in their units."""
        columns, rows = self._units(), prediction_data(self, X)
        allowed = encode_examples(y, rows.shape[0], "example", self.classes_).allowed()
        weights = check_weights("sample_weight", sample_weight, len(allowed))
        likelihood = self._objective(columns, columns.of(rows), allowed, weights)
        features = linear(likelihood)
        mean, precision = (features.pack(part[:, :-1], part[:, -1]) for part in before)
        objective = likelihood.around(mean, precision)
        best, solutions = self._minimize_from(objective, [mean], self._chosen_solver(objective), self.n_jobs)
        self._store(Problem(self.classes_, columns, objective), best, solutions)
        return self

    def _problem(
        self, rows: Any, classes: LabelArray, allowed: NDArray[np.bool_], weights: FloatArray, rotate: bool
    ) -> Problem:
        columns = StandardColumns(rows, weights, float(self.l2), bool(self.fit_intercept), rotate)
        return Problem(classes, columns, self._objective(columns, columns.rows, allowed, weights))

    def _objective(
        self, columns: StandardColumns, rows: Any, allowed: NDArray[np.bool_], weights: FloatArray
    ) -> LatentLikelihood:
        return latent_objective(
            *(rows, allowed),
            n_hidden=self.n_hidden,
            l2=columns.penalty,
            fit_intercept=bool(self.fit_intercept),
            weights=weights,
            workers=Workers(self.n_jobs if self.n_init == 1 else 1),  # starts or examples in parallel, not both
        )

    def _starts(self, problem: Problem, given: tuple[FloatArray, FloatArray] | None) -> list[FloatArray]:
        """As many as `n_init` asks for, or the one that was given."""
        source = Starts(problem.columns, problem.objective, self.n_hidden)
        if given is not None:
            return [source.features.pack(*problem.columns.to_rows(*given))]
        draw = source.kmeans if self.init == "kmeans" else source.random
        rng = generator(self.random_state)
        return [draw(rng) for _ in range(self.n_init)]

    def _chosen_solver(self, objective: LatentLikelihood) -> Solver:
        if not isinstance(self.solver, str) or self.solver != "auto":
            return make_solver(self.solver)
        convex = bool((objective.allowed.sum(axis=1) == 1).all())
        return Newton() if convex or self.l2 > 0.0 else LBFGS(memory=20)

    def _store(self, problem: Problem, best: Solution, solutions: list[Solution | None]) -> None:
        classes, columns, objective = problem
        coefficients, intercepts = columns.to_columns(*linear(objective).unpack(best.parameters))
        self.classes_ = classes
        self.coef_ = np.array(coefficients).reshape(len(classes), self.n_hidden, -1)
        self.intercept_ = np.array(intercepts).reshape(len(classes), self.n_hidden)
        self.objectives_ = end_values(solutions)
        if self.l2 == 0.0 and best.status is not Status.INTERRUPTED and hidden_separation(best.point) > 0.0:
            best = replace(best, status=Status.UNBOUNDED)
        self.column_mean_, self.column_spread_ = columns.mean, columns.spread
        found = precision_at(objective, best.point)
        # Rotated columns are those of one data set: pieces are not rotated.
        known = None if found is None or columns.mixed else linear(objective).unpack(found)
        self.precision_ = None if known is None else np.column_stack(known)
        self.n_seen_ = objective.n_examples
        self._store_run(best)
        self._warn_if_short(best)

    def _check_size(self, n_examples: int, n_columns: int, n_classes: int) -> None:
        states, starts = n_classes * int(self.n_hidden), int(self.n_init)
        check_memory(
            f"n_hidden={self.n_hidden} with {n_columns} features, {n_classes} classes and {n_examples} examples",
            8.0 * states * (COPIES_OF_SCORES * n_examples + (COPIES_OF_WEIGHTS + starts) * (n_columns + 1)),
            "Lower n_hidden" if self.n_hidden > 1 else "Use fewer features or classes",
        )

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(self, "classes_", "coef_", "intercept_", "objectives_", "n_features_in_", *RUN):
            n = len(check_labels("classes_", self.classes_, 2, floats=True))
            shape = check_array(self, "coef_", (n, None, check_columns(self))).shape
            check_array(self, "intercept_", shape[:2])
            if not shape[1]:
                raise ModelFileError("coef_ must have a hidden state")
            if vars(self).get("precision_") is not None:
                check_array(self, "precision_", (shape[0] * shape[1], shape[2] + 1))
                check_array(self, "column_mean_", (shape[2],))
                if not (check_array(self, "column_spread_", (shape[2],)) > 0.0).all():
                    raise ModelFileError("column_spread_ must be above zero")
            check_run(self)

    def _check_combinations(self) -> None:
        if not isinstance(self.init, str) and self.n_init != 1:
            raise ValueError(f"n_init must be 1 when init is an array, got {self.n_init}: all starts would be the same")

    def _log_hidden(self, X: MatrixLike) -> FloatArray:
        """log p(y, h | x)."""
        check_is_fitted(self)
        rows = prediction_data(self, X)
        coefficients = self.coef_.reshape(-1, self.coef_.shape[2])
        scores = np.asarray(safe_sparse_dot(rows, coefficients.T, dense_output=True)) + self.intercept_.ravel()
        scores -= Categorical(len(coefficients)).log_partition(scores)[:, None]
        return np.asarray(scores.reshape(-1, *self.intercept_.shape))

    def hidden_proba(self, X: MatrixLike) -> FloatArray:
        """Probabilities of class and hidden state together, (n_samples, n_classes, n_hidden).

        Their sum over the hidden states is `predict_proba`.
        """
        joint = self._log_hidden(X)
        return normalized(np.exp(joint.reshape(len(joint), -1))).reshape(joint.shape)

    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Log-probabilities, (n_samples, n_classes), in the order of `classes_`."""
        return np.asarray(np.minimum(np.logaddexp.reduce(self._log_hidden(X), axis=2), 0.0))

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Probabilities, (n_samples, n_classes), in the order of `classes_`."""
        return normalized(np.exp(self.predict_log_proba(X)))

    def predict_marginals(self, X: MatrixLike) -> FloatArray:
        """The same as `predict_proba`: the name that all Partita estimators share."""
        return self.predict_proba(X)

    def log_likelihood(self, X: MatrixLike, y: Labels) -> FloatArray:
        """log p(y | x) of each example: of all that its set allows, where y has a set; 0 where y is None."""
        scores = self.predict_log_proba(X)
        allowed = encode_examples(y, len(scores), "example", self.classes_).allowed()
        return np.asarray(np.minimum(np.logaddexp.reduce(np.where(allowed, scores, -np.inf), axis=1), 0.0))

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Log-probabilities, (n_samples, n_classes), or the log-odds of the second class (n_samples,) if there are two."""
        scores = self.predict_log_proba(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

    def predict(self, X: MatrixLike) -> LabelArray:
        """The most probable class."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: MatrixLike, y: Labels, sample_weight: SampleWeight = None) -> float:
        """The share of right classes, one of the set where y has a set; examples where y is None do not count."""
        if not has_sets(y):
            return float(super().score(X, y, sample_weight))
        found = self.predict(X)
        weights = check_weights("sample_weight", sample_weight, len(found))
        return encode_examples(y, len(found), "example").share_right(found.tolist(), weights)

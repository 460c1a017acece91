"""Softmax regression with hidden states: a mixture in each class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ...core import Objective, Solver
from ...core.arrays.potentials import real_array
from ...core.arrays.simplex import normalized
from ...core.errors import ModelFileError
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.parameters import Check, class_weights, count, flag, real, seed, threads, verbosity
from ...core.random import generator
from ...core.results import FloatArray, Solution, Status
from ...core.types import LabelArray, Labels, MatrixLike, RandomState, SampleWeight, SolverLike
from ...core.validation import check_choice, check_weights
from ...estimators.bootstrap import copied
from ...estimators.class_sets import encode_examples, read_class_sets, set_weights
from ...estimators.classifier import ClassProbabilities
from ...estimators.data import prediction_data
from ...estimators.loaded import RUN, check_array, check_columns, check_labels, check_run, is_fitted
from ...estimators.offsets import read_offset
from ...estimators.restarts import end_values
from ...estimators.restrictions import RESTRICTIONS, check_errors, feasible_weights, is_restricted
from ...estimators.streaming import Posterior, Streamed, precision_at
from ...estimators.trained import solver_like, training
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.feasible_set import FeasibleSet
from ...objectives.constraints.named import NamedWeights
from ...objectives.constraints.units import in_units
from ...objectives.information import warn_of_many_weights
from ...objectives.restricted import restricted, smooth_point
from ...objectives.uncertainty import FIT_AGAIN, METHODS, errors
from ...report.explanation import Explanation
from ...solvers.lbfgs import LBFGS
from ...solvers.named import make_solver
from ...solvers.newton import Newton
from ..features.linear_layouts import linear_map
from ..features.standard_columns import StandardColumns
from ..objective.covariance import SEPARATED_CLASSES
from ..objective.latent import LatentLikelihood
from ..structure import Categorical
from .explanation import explain_rows, one_row
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
    offset: FloatArray | None = None,
    workers: Workers | None = None,
) -> LatentLikelihood:
    """The objective that `LatentSoftmax` minimises, for use with `partita.minimize`.

    ``allowed`` is an array of bool, (examples, classes): which classes an example may have. The states are the pairs of a
    class and a hidden state, the hidden state last. `l2` is one number or one for each column. `offset` is added to the
    scores of classes, (examples, classes).
    """
    classes = np.asarray(allowed)
    features = linear_map(X, classes.shape[1] * int(n_hidden), fit_intercept, workers or Workers(1))
    possible = np.repeat(classes, n_hidden, axis=1)
    columns = np.broadcast_to(l2, (features.n_outputs, features.n_columns))
    penalty = features.pack(columns, np.zeros(features.n_outputs))
    structure = Categorical(possible.shape[1])
    if offset is not None:
        structure = structure.with_offset(np.repeat(offset, n_hidden, axis=1))
    return LatentLikelihood(features, structure, possible, weights=weights, penalty=penalty)


def _init(name: str, value: Any) -> None:
    """The name of a way to start, or an array of weights."""
    if isinstance(value, str):
        check_choice(name, value, INITS)
    else:
        real_array(name, value)


class Problem(NamedTuple):
    """A mixture in each class on the rows of data in standard units: what is minimised, and the set of users' weights."""

    classes: LabelArray
    columns: StandardColumns
    objective: LatentLikelihood
    target: Objective
    feasible: FeasibleSet | None


class LatentSoftmax(ClassProbabilities, Streamed):
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
    class_weight : dict, "balanced" or None
        Weights of the classes, multiplied into the sample weights. A set of classes has the mean of theirs.
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
    l1 : float, default 0.0
        Strength of a penalty on the absolute values of `coef_`. The optimum is a local one, as without it.
    constraints : list of constraints, optional
        Convex sets of the entries of `coef_`, which is ``(n_classes * n_hidden, n_features)`` to them; see
        `partita.constraints`. A class by name (``labels=``) is all of its hidden states. Every iterate satisfies them; the
        optimum is a local one, as without them.

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
        "class_weight": class_weights,
        "max_iter": count(),
        "tol": real(0.0),
        "random_state": seed,
        "n_jobs": threads,
        "verbose": verbosity,
        **RESTRICTIONS,
    }

    TRANSIENT: ClassVar[tuple[str, ...]] = ("_problem_ended",)

    _problem_ended: tuple[Problem, Any] | None = None
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
        class_weight: str | Mapping[Any, float] | None = None,
        max_iter: int = 1000,
        tol: float = 1e-8,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.l2 = l2
        self.solver = solver
        self.n_init = n_init
        self.init = init
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.l1 = l1
        self.constraints = constraints

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @training
    def fit(self, X: MatrixLike, y: Labels, sample_weight: SampleWeight = None, offset: ArrayLike | None = None) -> Self:
        """Fit to X (dense or sparse, n_samples x n_features) and labels y. A failed fit changes nothing.

        `offset` is added to the scores of classes, as in `SoftmaxRegression`.
        """
        return self._learn(None, X, y, sample_weight, None, True, offset)

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
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} needs all labels at once; give partial_fit a dict")
        known = None if classes is None else stream_classes(classes, vars(self).get("classes_"))
        return self._take_piece(X, y, sample_weight, known, False, None)

    def _posterior(self) -> Posterior | None:
        """What is known so far: weights on columns in standard units, then intercepts, and a precision for each."""
        if "coef_" not in vars(self):
            return None
        precision, flat = self._known_precision(), self.coef_.reshape(-1, self.coef_.shape[2])
        return Posterior(np.column_stack(self._units().to_rows(flat, self.intercept_.ravel())), precision)

    def _units(self) -> StandardColumns:
        return StandardColumns.known(self.column_mean_, self.column_spread_, float(self.l2))

    def _learn(self, before: Posterior | None, *data: Any) -> Self:
        X, y, sample_weight, stated, rotate, offset = data
        if before is not None:
            return self._learn_more(before, X, y, sample_weight)
        rows, classes, allowed = read_class_sets(self, X, y)
        if stated is not None:
            classes, allowed = stated, encode_examples(y, rows.shape[0], "example", stated).allowed()
        if len(classes) < 2:
            raise ValueError(f"y has one class only, {classes.tolist()}; a classifier needs at least two classes")
        weights = self._weights(classes, allowed, sample_weight)
        self._check_size(rows.shape[0], rows.shape[1], len(classes))
        given = None
        if not isinstance(self.init, str):
            given = given_start(self.init, classes, self.n_hidden, rows.shape[1], bool(self.fit_intercept))
        rotate = rotate and not is_restricted(self.l1, self.constraints)  # which are about single columns
        added = read_offset(offset, len(allowed), len(classes))
        problem = self._problem(rows, classes, allowed, weights, rotate, added)
        best, solutions = self._minimize_from(
            problem.target, self._starts(problem, given), self._chosen_solver(problem.objective), self.n_jobs
        )
        self._store(problem, best, solutions)
        return self

    def _learn_more(self, before: Posterior, X: MatrixLike, y: Labels, sample_weight: SampleWeight) -> Self:
        """Fit to a piece after others, in their units."""
        columns, rows = self._units(), prediction_data(self, X)
        allowed = encode_examples(y, rows.shape[0], "example", self.classes_).allowed()
        weights = self._weights(self.classes_, allowed, sample_weight)
        likelihood = self._objective(columns, columns.of(rows), allowed, weights)
        features = linear(likelihood)
        mean, precision = (features.pack(part[:, :-1], part[:, -1]) for part in before)
        objective = likelihood.around(mean, precision)
        best, solutions = self._minimize_from(objective, [mean], self._chosen_solver(objective), self.n_jobs)
        self._store(Problem(self.classes_, columns, objective, objective, None), best, solutions)
        return self

    def _weights(self, classes: LabelArray, allowed: NDArray[np.bool_], sample_weight: SampleWeight) -> FloatArray:
        """Weights of examples, with those of their classes."""
        weights = check_weights("sample_weight", sample_weight, len(allowed))
        if self.class_weight is None:
            return weights
        weights = weights * set_weights(self.class_weight, classes, allowed)
        return check_weights("class_weight times sample_weight", weights, len(allowed))

    def _problem(
        self,
        rows: Any,
        classes: LabelArray,
        allowed: NDArray[np.bool_],
        weights: FloatArray,
        rotate: bool,
        offset: FloatArray | None,
    ) -> Problem:
        columns = StandardColumns(rows, weights, float(self.l2), bool(self.fit_intercept), rotate)
        objective = self._objective(columns, columns.rows, allowed, weights, offset)
        features = linear(objective)
        units = features.pack(np.tile(1.0 / columns.spread, (features.n_outputs, 1)), np.ones(features.n_outputs))
        l1 = self.l1 * units
        l1[features.n_coefficients :] = 0.0
        states = [(label, h) for label in classes.tolist() for h in range(int(self.n_hidden))]
        names = getattr(self, "feature_names_in_", None)
        named = NamedWeights.of_columns(features, labels=states, features=names)
        feasible = feasible_weights(self.constraints, named)
        inside = None if feasible is None else in_units(feasible, sp.diags(units))
        return Problem(classes, columns, objective, restricted(objective, l1, inside), feasible)

    def _objective(
        self,
        columns: StandardColumns,
        rows: Any,
        allowed: NDArray[np.bool_],
        weights: FloatArray,
        offset: FloatArray | None = None,
    ) -> LatentLikelihood:
        return latent_objective(
            *(rows, allowed),
            n_hidden=self.n_hidden,
            l2=columns.penalty,
            fit_intercept=bool(self.fit_intercept),
            weights=weights,
            offset=offset,
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
        if is_restricted(self.l1, self.constraints):
            return make_solver("auto")
        convex = bool((objective.allowed.sum(axis=1) == 1).all())
        return Newton() if convex or self.l2 > 0.0 else LBFGS(memory=20)

    def _store(self, problem: Problem, best: Solution, solutions: list[Solution | None]) -> None:
        classes, columns, features = problem.classes, problem.columns, linear(problem.objective)
        weights = columns.to_columns(*features.unpack(best.parameters))
        if problem.feasible is not None:
            weights = features.unpack(problem.feasible.snap(features.pack(*weights)))
        coefficients, intercepts = weights
        self.classes_ = classes
        self.coef_ = np.array(coefficients).reshape(len(classes), self.n_hidden, -1)
        self.intercept_ = np.array(intercepts).reshape(len(classes), self.n_hidden)
        self.objectives_ = end_values(solutions)
        free = self.l2 == 0.0 and not is_restricted(self.l1, self.constraints)
        if free and best.status is not Status.INTERRUPTED and hidden_separation(best.point) > 0.0:
            best = replace(best, status=Status.UNBOUNDED)
        self.column_mean_, self.column_spread_ = columns.mean, columns.spread
        found = precision_at(problem.objective, smooth_point(best.point))
        # Rotated columns are those of one data set: pieces are not rotated.
        known = None if found is None or columns.mixed else features.unpack(found)
        self.precision_ = None if known is None else np.column_stack(known)
        self.n_seen_ = problem.objective.n_examples
        self._store_run(best)
        self._problem_ended = problem, best.point
        self._warn_if_short(best)

    def standard_errors(self, method: str = "sandwich", draws: int = 100, random_state: RandomState = None) -> FloatArray:
        """Standard errors of the weights at the local optimum that was found, from the training data.

        Parameters
        ----------
        method : {"sandwich", "information", "bootstrap"}
            The sandwich stays right when the model is wrong; the inverse of the observed information (penalty included; what
            is not known of hidden states is taken off) when it is true; or refits to resampled examples, which start from
            the estimates, so that states keep their numbers. Where a penalised fit has many effective parameters for its
            examples, these are too small, and a warning says so.
        draws, random_state
            Number of refits of the bootstrap, and seed. Above 3000 weights, of random vectors that the sandwich is estimated
            from.

        Returns
        -------
        array of shape (n_classes, n_hidden, n_features + 1), the intercept last (without it if there is none).
        """
        check_is_fitted(self)
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            return self._bootstrap(draws, random_state)
        check_errors(self.l1, self.constraints)
        if self._problem_ended is None:
            raise ValueError(FIT_AGAIN)
        if self.status_ is Status.UNBOUNDED:
            raise ValueError(SEPARATED_CLASSES)
        (_, columns, objective, _, _), point = self._problem_ended
        features = linear(objective)
        found = []
        for unit in np.eye(features.size):
            coefficients, intercepts = columns.to_columns(*features.unpack(unit))
            found.append(self._arranged(coefficients, intercepts).ravel())
        change = np.array(found).T
        warn_of_many_weights(features.size, features.n_examples, "rows", self.l2, "fewer columns or hidden states")
        return errors(point, method, draws, random_state, change).reshape(self._estimates().shape)

    def _estimates(self) -> FloatArray:
        return self._arranged(self.coef_, self.intercept_)

    def _arranged(self, coefficients: Any, intercepts: Any) -> FloatArray:
        """Weights by class and hidden state, the intercept last."""
        table = np.array(coefficients).reshape(len(self.classes_), self.n_hidden, -1)
        return np.dstack([table, np.reshape(intercepts, table.shape[:2])]) if self.fit_intercept else table

    def _warm_copy(self) -> Self:
        other: Self = copied(self, init=self._estimates(), n_init=1)
        return other

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

    def _log_hidden(self, X: MatrixLike, offset: ArrayLike | None = None) -> FloatArray:
        """log p(y, h | x)."""
        check_is_fitted(self)
        rows = prediction_data(self, X)
        coefficients = self.coef_.reshape(-1, self.coef_.shape[2])
        scores = np.asarray(safe_sparse_dot(rows, coefficients.T, dense_output=True)) + self.intercept_.ravel()
        added = read_offset(offset, len(scores), len(self.classes_))
        if added is not None:
            scores += np.repeat(added, self.intercept_.shape[1], axis=1)
        scores -= Categorical(len(coefficients)).log_partition(scores)[:, None]
        return np.asarray(scores.reshape(-1, *self.intercept_.shape))

    def hidden_proba(self, X: MatrixLike) -> FloatArray:
        """Probabilities of class and hidden state together, (n_samples, n_classes, n_hidden).

        Their sum over the hidden states is `predict_proba`.
        """
        joint = self._log_hidden(X)
        return normalized(np.exp(joint.reshape(len(joint), -1))).reshape(joint.shape)

    def predict_log_proba(self, X: MatrixLike, offset: ArrayLike | None = None) -> FloatArray:
        """Log-probabilities, (n_samples, n_classes), in the order of `classes_`."""
        return np.asarray(np.minimum(np.logaddexp.reduce(self._log_hidden(X, offset), axis=2), 0.0))

    def explain(self, X: MatrixLike) -> Explanation:
        """Which columns pushed which class, for each row of X (or one row as a vector). ``print`` the answer.

        A push is what a column, times its value, adds to the score of the predicted class, as expected over its hidden
        states, less the same of the runner-up; what the hidden states add by their number is one push. Pushes sum to the
        difference of the two log-probabilities.
        """
        rows = one_row(X)
        joint = self._log_hidden(rows)
        log_q = joint - np.logaddexp.reduce(joint, axis=2)[:, :, None]
        q, names = np.exp(log_q), getattr(self, "feature_names_in_", None)
        others = {
            "intercept": np.einsum("ikh,kh->ik", q, self.intercept_),
            "freedom of hidden states": -np.where(q > 0.0, q * log_q, 0.0).sum(axis=2),
        }
        weights = np.einsum("ikh,khj->ikj", q, self.coef_)
        called = [f"x{j}" for j in range(self.n_features_in_)] if names is None else names.tolist()
        P, data = self.predict_proba(rows), prediction_data(self, rows)
        return explain_rows(data, self.classes_.tolist(), called, P, weights, others)

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Log-probabilities, (n_samples, n_classes), or the log-odds of the second class (n_samples,) if there are two."""
        scores = self.predict_log_proba(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

"""The problem that a softmax regression solves: its model, its data, the units it is solved in, and the way back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_class_weight

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray, Solution, Status
from ...core.types import LabelArray, Labels, MatrixLike, SampleWeight
from ...core.validation import check_weights
from ...estimators.class_sets import has_sets, read_class_sets, set_weights
from ...estimators.data import class_codes, training_data, warn_weightless
from ...estimators.offsets import check_observed, read_offset
from ...objectives.constraints.constrained import Constrained, ConstrainedPoint
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.named import NamedWeights
from ...objectives.constraints.sets import compile_constraints
from ...objectives.l1 import L1, L1Point
from ..features.linear import LinearMap
from ..features.linear_layouts import linear_map
from ..features.standard_columns import WIDE, Centred, RowSpace, StandardColumns, far_from_zero
from ..objective.base import SoftmaxObjective
from ..objective.elastic_net import ElasticNet, ElasticNetPoint
from ..objective.latent import LatentLikelihood, LatentPoint
from ..objective.likelihood import Likelihood, LikelihoodPoint
from ..structure import Binary, Categorical
from .separated import hidden_separation

#: What is minimised, with or without l1, where all classes are known and where only sets of them are.
AnyObjective: TypeAlias = "SoftmaxObjective[Any] | ElasticNet | L1"
AnyPoint: TypeAlias = "LikelihoodPoint | ElasticNetPoint | LatentPoint | L1Point"
#: Columns in the units of a solver.
Columns = StandardColumns | RowSpace | Centred


class Model(NamedTuple):
    """A softmax regression without data: penalties, intercepts, base measure. Fields are parameters of the estimator."""

    l2: float = 1.0
    l1: float = 0.0
    fit_intercept: bool = True
    penalize_intercept: bool = False
    prior: ArrayLike | None = None
    n_jobs: int | None = None

    def likelihood(
        self, X: Any, codes: IntArray, n_classes: int, weights: Any, offset: FloatArray | None = None
    ) -> Likelihood:
        """The likelihood of these data with the quadratic penalty. Two classes have one coefficient vector."""
        workers = Workers(self.n_jobs)
        features = linear_map(X, 1 if n_classes == 2 else n_classes, self.fit_intercept, workers)
        structure = Binary(self.prior) if n_classes == 2 else Categorical(n_classes, self.prior)
        if offset is not None:
            structure = structure.with_offset(offset if n_classes > 2 else offset[:, 1:] - offset[:, :1])
        penalty = self.l2 * self.penalised(features)
        return Likelihood(features, structure, codes, weights=weights, penalty=penalty, workers=workers)

    def objective(
        self, X: Any, codes: IntArray, n_classes: int, weights: Any, offset: FloatArray | None = None
    ) -> Likelihood | ElasticNet:
        """What is minimised: the likelihood, and with l1 > 0 that penalty too."""
        likelihood = self.likelihood(X, codes, n_classes, weights, offset)
        return ElasticNet(likelihood, self.l1 * self.penalised(linear(likelihood))) if self.l1 > 0.0 else likelihood

    def of_sets(
        self, X: Any, allowed: NDArray[np.bool_], weights: Any, offset: FloatArray | None = None
    ) -> LatentLikelihood:
        """The likelihood where of each example only a set of classes is known: not convex."""
        workers, n_classes = Workers(self.n_jobs), allowed.shape[1]
        features = linear_map(X, n_classes, self.fit_intercept, workers)
        penalty, structure = self.l2 * self.penalised(features), Categorical(n_classes, self.prior)
        structure = structure if offset is None else structure.with_offset(offset)
        return LatentLikelihood(features, structure, allowed, weights=weights, penalty=penalty, workers=workers)

    def penalised(self, features: LinearMap) -> FloatArray:
        """1 for parameters that penalties apply to, else 0."""
        penalised = np.ones(features.size)
        if not self.penalize_intercept:
            penalised[features.n_coefficients :] = 0.0
        return penalised

    def log_prior(self, n_classes: int) -> FloatArray:
        """log h(y)."""
        return np.zeros(n_classes) if self.prior is None else Categorical(n_classes, self.prior).log_prior

    def check_prior(self, classes: LabelArray, codes: IntArray) -> None:
        """Raise a ValueError if a class that occurs has a prior of zero."""
        if self.prior is None:
            return
        impossible = self.log_prior(len(classes))[codes] == -np.inf
        if impossible.any():
            label = classes.tolist()[codes[np.argmax(impossible)]]
            raise ValueError(f"prior is zero for class {label!r}, which occurs in y; its likelihood is zero for every model")


class Examples(NamedTuple):
    """Training data past the door: a float64 array or CSR matrix, the sorted classes, and for each example its class.

    Where only sets of classes are known, `allowed` has them, a row for each example, and `codes` one of each set.
    """

    X: Any
    classes: LabelArray
    codes: IntArray
    weights: FloatArray
    allowed: NDArray[np.bool_] | None = None
    offset: FloatArray | None = None  # what is added to the scores of classes

    def with_offset(self, offset: Any) -> Examples:
        """The same with offsets as users give them."""
        found = read_offset(offset, len(self.codes), len(self.classes))
        if self.allowed is None:  # else the objective sees to it
            check_observed(found, self.codes, self.weights)
        return self._replace(offset=found)

    def objective(self, model: Model, X: Any) -> AnyObjective:
        """What a model minimises on these examples, whose rows are those of X."""
        if self.allowed is None:
            return model.objective(X, self.codes, len(self.classes), self.weights, self.offset)
        likelihood = self.likelihood(model, X)
        return L1(likelihood, model.l1 * model.penalised(linear(likelihood))) if model.l1 > 0.0 else likelihood

    def likelihood(self, model: Model, X: Any) -> SoftmaxObjective[Any]:
        """The same without l1."""
        if self.allowed is None:
            return model.likelihood(X, self.codes, len(self.classes), self.weights, self.offset)
        return model.of_sets(X, self.allowed, self.weights, self.offset)

    @property
    def labels(self) -> list[Any]:
        """What rows of ``coef_`` are for: of two classes, the second."""
        classes: list[Any] = self.classes.tolist()
        return classes[1:] if len(classes) == 2 else classes


def read_examples(
    model: BaseEstimator,
    X: MatrixLike,
    y: Labels,
    sample_weight: SampleWeight,
    class_weight: str | Mapping[Any, float] | None,
) -> Examples:
    """What `fit` was given; the estimator learns the names of the columns."""
    if has_sets(y):
        return _known_in_part(model, X, y, sample_weight, class_weight)
    X, y = training_data(model, X, y)
    classes, codes = class_codes(y)
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()[0]!r}; a classifier needs at least two classes")
    weights = check_weights("sample_weight", sample_weight, len(codes))
    if class_weight is not None:
        factors = compute_class_weight(class_weight, classes=classes, y=y)
        weights = check_weights("class_weight times sample_weight", weights * factors[codes], len(codes))
    if sample_weight is not None or class_weight is not None:
        warn_weightless(classes, codes, weights)
    return Examples(X, classes, codes, weights)


def _known_in_part(
    model: BaseEstimator, X: MatrixLike, y: Labels, sample_weight: SampleWeight, class_weight: Any
) -> Examples:
    """The same where labels are sets of classes or None: examples that may have any class say nothing, and weigh nothing."""
    X, classes, allowed = read_class_sets(model, X, y)
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()[0]!r}; a classifier needs at least two classes")
    weights = check_weights("sample_weight", sample_weight, len(allowed))
    sizes, codes = allowed.sum(axis=1), allowed.argmax(axis=1)
    if class_weight is not None:
        weights = weights * set_weights(class_weight, classes, allowed)
    vague = sizes == len(classes)
    weights = check_weights("weights of examples whose class is known", np.where(vague, 0.0, weights), len(codes))
    codes[vague] = codes[np.argmin(vague)]  # one that is possible
    examples, found = np.nonzero(allowed)
    warn_weightless(classes, found, weights[examples])
    return Examples(X, classes, codes, weights, None if (vague | (sizes == 1)).all() else allowed)


class Ended(NamedTuple):
    """Where a fit ended, in the units of X: with the training data, which standard errors need."""

    point: AnyPoint
    constrained: ConstrainedPoint | None
    separated: bool
    digest: int  # of X, which the user may change

    @property
    def features(self) -> LinearMap:
        """The map from parameters to scores."""
        return linear(self.point.objective)


class Problem(NamedTuple):
    """An objective in the units of a solver, on the set that constraints leave if there are any."""

    model: Model
    data: Examples
    columns: Columns | None
    objective: AnyObjective
    constrained: Constrained | None

    @classmethod
    def of(
        cls, model: Model, data: Examples, constraints: Sequence[Constraint], names: Sequence[Hashable] | None = None
    ) -> Problem:
        """The problem of a fit; `names` are those of columns."""
        columns = None if constraints else solver_units(model, data)
        rows = data.X if columns is None else columns.rows
        if not constraints:
            return cls(model, data, columns, data.objective(model, rows), None)
        likelihood = data.likelihood(model, rows)
        features = linear(likelihood)
        named = NamedWeights.of_columns(features, labels=data.labels, features=names)
        l1 = model.l1 * model.penalised(features) if model.l1 > 0.0 else None
        return cls(model, data, columns, likelihood, Constrained(likelihood, compile_constraints(constraints, named), l1))

    @property
    def target(self) -> Any:
        """What the solver minimises."""
        return self.objective if self.constrained is None else self.constrained

    @property
    def features(self) -> LinearMap:
        """The map from parameters to scores, in the units of the solver."""
        return linear(self.objective)

    def start(self, coefficients: FloatArray, intercepts: FloatArray) -> FloatArray:
        """Parameters for the solver from weights on the columns of X."""
        weights = coefficients, intercepts
        return self.features.pack(*(weights if self.columns is None else self.columns.to_rows(*weights)))

    def judged(self, solution: Solution) -> Solution:
        """Of sets of classes: the solution, or, where nothing keeps weights from growing for ever, one that says so."""
        free = self.model.l2 == 0.0 and self.model.l1 == 0.0 and self.constrained is None
        if free and solution.status is not Status.INTERRUPTED and hidden_separation(solution.point) > 0.0:
            return replace(solution, status=Status.UNBOUNDED)
        return solution

    def ended(self, point: Any, separated: bool) -> Ended:
        """The point where the solver ended, in the units of X; `separated` says that the classes are."""
        constrained = point if isinstance(point, ConstrainedPoint) else None
        inner = cast(LikelihoodPoint, point.inner) if isinstance(point, ConstrainedPoint) else point  # of our objective
        if self.columns is not None:
            weights = self.columns.to_columns(*self.features.unpack(inner.parameters))
            objective = self.data.objective(self.model, self.data.X)
            inner = objective.at(linear(objective).pack(*weights))
        return Ended(inner, constrained, separated, linear(inner.objective).digest())


def solver_units(model: Model, data: Examples) -> Columns | None:
    """Units in which columns are easier to learn from, without a change of the optimum; None for those they have."""
    X = data.X
    if model.l1 > 0.0:  # whose norm a rotation changes
        return None
    if model.l2 == 0.0:  # so that tol does not depend on units
        return StandardColumns(X, data.weights, 0.0, bool(model.fit_intercept))
    if sp.issparse(X):
        return None
    if WIDE * len(X) <= X.shape[1]:
        return RowSpace(X)
    if model.fit_intercept and not model.penalize_intercept and far_from_zero(X):
        return Centred(X, data.weights)  # scores would be differences of large numbers
    return None


def smooth_part(objective: AnyObjective) -> SoftmaxObjective[Any]:
    """The likelihood with the quadratic penalty, whatever is added to it."""
    smooth = objective.likelihood if isinstance(objective, ElasticNet | L1) else objective
    assert isinstance(smooth, SoftmaxObjective)
    return smooth


def linear(objective: AnyObjective) -> LinearMap:
    """The feature map of a softmax regression, which is always linear in columns."""
    features = smooth_part(objective).features
    assert isinstance(features, LinearMap)
    return features


def softmax_objective(
    X: MatrixLike,
    y: Labels,
    *,
    l2: float = 1.0,
    l1: float = 0.0,
    fit_intercept: bool = True,
    penalize_intercept: bool = False,
    prior: ArrayLike | None = None,
    weights: SampleWeight = None,
    n_jobs: int | None = None,
) -> Likelihood | ElasticNet:
    """The objective that `SoftmaxRegression` minimises, for use with `partita.minimize`.

    Two classes get one coefficient vector (the log-odds of the second), more get one each. A `Likelihood`, or with l1 > 0
    an `ElasticNet`.
    """
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    model = Model(l2, l1, fit_intercept, penalize_intercept, prior, n_jobs)
    return model.objective(X, codes, len(classes), weights)


def l1_max(
    X: MatrixLike,
    y: Labels,
    *,
    fit_intercept: bool = True,
    penalize_intercept: bool = False,
    prior: ArrayLike | None = None,
    weights: SampleWeight = None,
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
    options = {"fit_intercept": fit_intercept, "penalize_intercept": penalize_intercept}
    # Any l1 will do: at zero it does not enter the smooth part.
    objective = softmax_objective(X, y, l2=0.0, l1=1.0, prior=prior, weights=weights, **options)
    assert isinstance(objective, ElasticNet)
    return float(objective.at(np.zeros(objective.size)).l1_max)

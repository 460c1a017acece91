"""What estimators on factor graphs share: parameters, training, decoding, standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.contracts.capabilities import Capability
from ...core.contracts.progress import DualPoint
from ...core.errors import ModelFileError
from ...core.parameters import Check, checked, choice, count, flag, instance, real, threads, verbosity
from ...core.results import FloatArray, IntArray, Solution, Status
from ...core.types import RandomState, SolverLike
from ...core.validation import check_choice, check_level
from ...estimators.composite_fit import BUDGET_ORDERS, check_budget, fit_weights, within_budget
from ...estimators.convergence import certified_gap, joined, unsettled
from ...estimators.loaded import RUN, check_array, check_number, check_run, check_text, is_fitted
from ...estimators.restrictions import RESTRICTIONS, check_errors, check_refinement
from ...estimators.streaming import StreamedExamples
from ...estimators.trained import solver_like
from ...objectives.composite.efficiency import relative_size
from ...objectives.composite.likelihood import FULL, CompositeLikelihood, as_composite
from ...objectives.constraints.constraint import Constraint
from ...objectives.information import warn_of_many_weights
from ...objectives.refinement import newton_step
from ...objectives.restricted import smooth_point
from ...objectives.uncertainty import FIT_AGAIN, METHODS
from ...report.tables import CoefficientTable
from ...solvers.named import make_solver
from ..data.units import Units
from ..features.tied_tables import TiedTables
from ..objective.composite import GraphComposite
from ..objective.information import determined, graph_covariance, graph_errors, graph_influence
from ..objective.likelihood import LIKELIHOOD_ENGINES, GraphLikelihood, GraphPoint
from ..objective.operations import graph_operations
from ..structure.factor_graph import FactorGraph
from .problem import GraphProblem

#: The fitted attributes that all graph models have.
FITTED = ("parameters_", "engine_", "gap_", *RUN)
LIKELIHOODS = ("full", "bethe")

#: The parameters that all graph models have.
SHARED: Mapping[str, Check] = {
    "l2": real(0.0),
    "likelihood": checked(lambda value: as_composite(value, LIKELIHOODS)),
    "budget": real(0.0, strict=True, optional=True),
    "engine": choice(*LIKELIHOOD_ENGINES),
    "engine_options": instance(Mapping, what="a dict by name"),
    "solver": solver_like,
    "max_iter": count(),
    "tol": real(0.0),
    "warm_start": flag,
    "n_jobs": threads,
    "verbose": verbosity,
    **RESTRICTIONS,
}


class GraphModel(StreamedExamples):
    """An estimator that minimises a `GraphLikelihood`. Classes that build on it have the parameters `SHARED`."""

    TRANSIENT: ClassVar[tuple[str, ...]] = ("_cache", "_objective", "_point", "_units")

    l2: float
    likelihood: str | CompositeLikelihood
    budget: float | None
    engine: str
    engine_options: Mapping[str, Any] | None
    solver: SolverLike
    warm_start: bool
    n_jobs: int | None
    l1: float
    constraints: Constraint | Iterable[Constraint] | None
    parameters_: FloatArray
    engine_: str
    gap_: float
    likelihood_: CompositeLikelihood
    beta_: dict[Any, float]
    choice_: dict[str, Any]
    _units: Units | None = None

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if not all(isinstance(key, str) for key in self.engine_options or ()):
            raise ModelFileError(f"engine_options must be a dict by name, got {self.engine_options!r}")
        if is_fitted(self, *FITTED):
            check_array(self, "parameters_", (None,))
            check_text(self, "engine_")
            check_number(self, "gap_")
            check_run(self)

    def _check_combinations(self) -> None:
        check_budget(self.budget, self.likelihood)
        check_refinement(as_composite(self.likelihood, LIKELIHOODS), self.l1, self.constraints)
        if self._is_bethe:
            if self.engine not in ("auto", "trw"):
                raise ValueError(f"likelihood='bethe' takes engine 'auto' or 'trw', got {self.engine!r}")
            if not self.l2 > 0.0:
                raise ValueError("l2 must be above zero: the dual of Bethe learning, which certifies the fit, divides by it")

    @property
    def _is_bethe(self) -> bool:
        return isinstance(self.likelihood, str) and self.likelihood == "bethe"

    def _solve(self, problem: GraphProblem, last: FloatArray | None) -> None:
        """Fit to a problem, from the weights of the `last` fit if they are as many."""
        self._units = problem.units
        self._forget("beta_", "likelihood_", "choice_", "n_oracle_calls_", "_objective")
        start = problem.start(last)
        composite = as_composite("pseudo" if self.budget is not None else self.likelihood, LIKELIHOODS)
        if composite is not None:
            self._learn_composite(problem, composite, start)
        elif self._is_bethe:
            self._learn_bethe(problem, start)
        else:
            likelihood = problem.likelihood(self.engine)
            solution = self._minimize(problem.restricted(likelihood), start)
            self._store(problem, solution, solution.point, likelihood.engine)
            smooth = smooth_point(solution.point)
            self._warn_if_short(solution, unsettled(smooth.result, smooth.rest))

    def _learn_bethe(self, problem: GraphProblem, start: FloatArray | None) -> None:
        """Fit by the largest tree-reweighted free energy, until its certificate is small."""
        if (problem.states < 0).any():
            raise ValueError("likelihood='bethe' takes labels that are all known")
        likelihood = problem.likelihood(self._engine, inexact=True)
        objective: Any = problem.restricted(likelihood)
        target = self.tol * objective.scale
        solution = self._minimize(objective, start, tol=0.0, gap_tol=target)
        also = ""
        if solution.status is Status.PRECISION and solution.point.gap > target:
            likelihood.settle()  # what stopped it may have been noise
            left = self.max_iter - solution.n_iter
            again = self._minimize(objective, solution.parameters, max_iter=left, tol=0.0, gap_tol=target)
            solution = joined(solution, again)
            if solution.status is Status.PRECISION and solution.point.gap > target:
                also = f"ended with a certificate of {solution.point.gap:.1e}, above tol for each variable"
        self._store(problem, solution, solution.point, likelihood.engine)
        if isinstance(solution.point, DualPoint):  # best configurations only: no messages were passed
            self.n_oracle_calls_, self._objective = solution.point.n_calls, objective
        else:
            smooth = smooth_point(solution.point)
            also = unsettled(smooth.result, smooth.rest) or also
        self._warn_if_short(solution, also)

    def _learn_composite(self, problem: GraphProblem, composite: CompositeLikelihood, start: FloatArray | None) -> None:
        """Fit by a composite likelihood."""

        def solve(objective: Any, begin: FloatArray | None) -> Solution:
            return self._minimize(problem.restricted(objective), begin)

        if self.budget is not None:
            costs = graph_operations(problem.features.graph, CompositeLikelihood(dict.fromkeys(BUDGET_ORDERS, 1.0)))
            by_order = dict(zip(BUDGET_ORDERS, costs, strict=True))
            composite, self.choice_ = within_budget(problem.composite, solve, by_order, self.budget)
        objective = problem.composite(composite)
        objective.check_covered()
        solution, self.beta_ = fit_weights(objective, composite, solve, start)
        point: Any = solution.point
        engine = smooth_point(point).objective.engine
        if composite.refine == FULL:
            engine = "planar" if self.engine == "planar" else "exact"
            point = newton_step(problem.likelihood(engine), solution.parameters)
        elif composite.refine is not None:
            point = newton_step(problem.composite(composite.refinement), solution.parameters)
            engine = point.objective.engine
        self._store(problem, solution.at(point, point.objective.scale), point, engine)
        self.likelihood_ = composite
        self._warn_if_short(solution)

    def _operations(self, composite: CompositeLikelihood) -> FloatArray:
        """Operations of a pass for an example, of each order."""
        draws = Capability.BATCHES in make_solver(self.solver).requires
        return graph_operations(self._ended_point().objective.graph, composite, draws)

    def _store(self, problem: GraphProblem, solution: Solution, point: Any, engine: str) -> None:
        self.parameters_ = problem.user_weights(point.parameters)
        self.engine_ = engine
        self._store_run(solution)
        smooth = smooth_point(point)
        self._point, self.gap_ = smooth, certified_gap(point)
        if isinstance(smooth, GraphPoint):
            self._store_precision(smooth.objective, smooth, smooth.objective.n_examples)
        else:
            self.precision_, self.n_seen_ = None, 0

    @property
    def _engine(self) -> str:
        return "trw" if self._is_bethe else self.engine

    def _options(self) -> dict[str, Any]:
        return dict(self.engine_options or {})

    @property
    def _given_engine(self) -> str:
        """The engine for what is unknown, given what is known: known neighbours of a variable are a field."""
        return "auto" if self._engine == "planar" else self._engine

    def _given_options(self) -> dict[str, Any]:
        return self._memory() if self._engine == "planar" else self._options()

    def _memory(self) -> dict[str, Any]:
        """Of the options of the engine, the one that exact answers take."""
        return {key: value for key, value in self._options().items() if key == "memory_limit"}

    def _argmax(self, graph: FactorGraph, u: FloatArray) -> IntArray:
        """The best configuration, or a good one where sums are not exact either."""
        if self._engine in ("auto", "exact", "planar"):
            return graph.argmax(u, self._given_engine, **self._memory())[0]
        return graph.argmax(u, graph.decoder(u))[0]

    def _fitted_point(self) -> Any:
        """Where the fit ended, for standard errors."""
        check_errors(self.l1, self.constraints)
        return self._ended_point()

    def _ended_point(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "_point"):
            raise ValueError(FIT_AGAIN)
        if isinstance(self._point, DualPoint):
            self._point = self._objective.at(self._point.parameters)
        return self._point

    def _standard_errors(self, method: str, draws: int, random_state: RandomState) -> FloatArray:
        """Standard errors of `parameters_`."""
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            return self._bootstrap(draws, random_state)
        point, units = self._fitted_point(), self._units
        given = () if units is None else (units.back, units.free)
        errors = graph_errors(point, method, draws, random_state, *given)
        if method == "sandwich":  # the information of one large graph may do, but the scores of examples are what varies
            examples = len(point.objective.weights)
            warn_of_many_weights(len(point.parameters), examples, "examples", self.l2, "fewer features")
        return errors

    def asymptotic_covariance(self, method: str = "sandwich") -> FloatArray:
        """The covariance of `parameters_`, estimated from the training data, times the number of examples."""
        point, units = self._fitted_point(), self._units
        matrix = graph_covariance(point, method) * float(point.objective.weights.sum())
        return matrix if units is None else np.asarray(units.back @ (units.back @ matrix).T)

    def efficiency(self, reference: str | CompositeLikelihood = FULL, measure: str = "rdet") -> float:
        """How many times the variance that another likelihood would have, both estimated from the training data.

        Parameters
        ----------
        reference : "full" or CompositeLikelihood
        measure : {"rdet", "det", "trace"}
            Of the covariance matrices: determinant, its root by the number of weights, or trace (with features in units of
            their spread). Directions that nothing determines are left out.
        """
        point, o = self._fitted_point(), self._fitted_point().objective
        composite = as_composite(reference, (FULL,))
        given: dict[str, Any] = {"weights": o.weights, "penalty": o.penalty, "base": o.base}
        if composite is None:
            other: Any = GraphLikelihood(o.features, o.states, engine="exact", **given)
        else:
            other = GraphComposite(o.features, o.states, composite, **given)
        there = other.at(point.parameters)
        compared = graph_covariance(there, "information" if composite is None else "sandwich")
        Q = determined(there)
        return relative_size(Q.T @ graph_covariance(point) @ Q, Q.T @ compared @ Q, measure)

    def influence(self, X: Any = None, y: Any = None) -> FloatArray:
        """How much `parameters_` would change if an example were there once more, to first order: (examples, weights).

        Parameters
        ----------
        X, y : optional
            New examples, as in ``fit``; without them, those of training. Objects that are drawn are drawn for them as for
            training.
        """
        point, units, scores = self._fitted_point(), self._units, None
        if X is not None:
            new = point.objective.of(*self._examples(X, y)).at(self.parameters_)
            scores = np.concatenate(list(new.score_chunks()))
            scores = scores if units is None else np.asarray(scores @ units.back)
        found = graph_influence(point, scores)
        return found if units is None else np.asarray((units.back @ found.T).T)

    def _examples(self, X: Any, y: Any) -> tuple[TiedTables, IntArray, FloatArray | None, NDArray[np.bool_] | None]:
        """New examples: the map to their potentials, their states, what is added to potentials, and sets of states."""
        raise NotImplementedError

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
        names, estimate, error = self._listed(self._standard_errors(method, draws, random_state))
        title = f"{type(self).__name__}, l2 = {self.l2:g}, {method} standard errors, {self.status_.name.lower()}"
        table = CoefficientTable.of(names, estimate, error, level, title)
        return table if top is None else table.top(top)

    def _listed(self, errors: FloatArray) -> tuple[list[str], FloatArray, FloatArray]:
        """Names of weights, weights and errors, one after another, of the errors of `parameters_`."""
        raise NotImplementedError

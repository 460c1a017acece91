"""What estimators on factor graphs share: parameters, training, decoding, standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ...core.errors import ModelFileError
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray, Solution, Status
from ...core.validation import check_choice, check_count, check_flag, check_level, check_real, check_verbose
from ...estimators.composite_fit import BUDGET_ORDERS, check_budget, fit_weights, within_budget
from ...estimators.convergence import joined, unsettled, warn_if_short
from ...estimators.loaded import RUN, check_array, check_number, check_run, check_text, is_fitted
from ...estimators.persistence import SavedModel
from ...objectives.composite.efficiency import relative_size
from ...objectives.composite.likelihood import FULL, CompositeLikelihood, as_composite
from ...objectives.information import warn_of_many_weights
from ...objectives.refinement import newton_step
from ...report.progress import ProgressPrinter
from ...report.tables import CoefficientTable
from ...solvers.auto import make_solver
from ...solvers.loop import minimize
from ..data.units import Units
from ..features.tied_tables import TiedTables
from ..objective.composite import GraphComposite
from ..objective.information import determined, graph_covariance, graph_errors, graph_influence
from ..objective.likelihood import LIKELIHOOD_ENGINES, GraphLikelihood
from ..objective.operations import graph_operations
from ..structure.factor_graph import FactorGraph

#: The fitted attributes that all graph models have.
FITTED = ("parameters_", "engine_", "gap_", *RUN)
LIKELIHOODS = ("full", "bethe")


class GraphModel(SavedModel, BaseEstimator):
    """An estimator that minimises a `GraphLikelihood`. Classes that build on it have the parameters below."""

    l2: float
    likelihood: Any
    budget: float | None
    engine: str
    engine_options: Any
    solver: Any
    max_iter: int
    tol: float
    warm_start: bool
    n_jobs: int | None
    verbose: int
    _units: Units | None = None

    def __getstate__(self) -> Any:
        return {key: value for key, value in super().__getstate__().items() if key not in ("_cache", "_point", "_units")}

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if self.engine_options is not None and not (
            isinstance(self.engine_options, dict) and all(isinstance(key, str) for key in self.engine_options)
        ):
            raise ModelFileError(f"engine_options must be a dict by name, got {self.engine_options!r}")
        if is_fitted(self, *FITTED):
            check_array(self, "parameters_", (None,))
            check_text(self, "engine_")
            check_number(self, "gap_")
            check_run(self)

    def _check_parameters(self) -> None:
        check_real("l2", self.l2, minimum=0.0)
        check_real("tol", self.tol, minimum=0.0)
        check_count("max_iter", self.max_iter)
        check_flag("warm_start", self.warm_start)
        as_composite(self.likelihood, LIKELIHOODS)
        check_budget(self.budget, self.likelihood)
        check_choice("engine", self.engine, LIKELIHOOD_ENGINES)
        if self.likelihood == "bethe":
            if self.engine not in ("auto", "trw"):
                raise ValueError(f"likelihood='bethe' takes engine 'auto' or 'trw', got {self.engine!r}")
            if not self.l2 > 0.0:
                raise ValueError("l2 must be above zero: the dual of Bethe learning, which certifies the fit, divides by it")
        check_verbose(self.verbose)
        make_solver(self.solver)
        Workers(self.n_jobs)

    def _learn(
        self,
        features: TiedTables,
        states: IntArray,
        weights: FloatArray,
        start: Any,
        base: FloatArray | None = None,
        units: Units | None = None,
    ) -> None:
        """Fit to states, from `start` if it has as many weights; `units` say what weights on the features mean."""
        first = start if start is not None and start.shape == (features.size,) else None
        if first is not None and units is not None:
            first = units.there @ first
        self._units = units
        for name in ("beta_", "likelihood_", "choice_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        composite = as_composite("pseudo" if self.budget is not None else self.likelihood, LIKELIHOODS)
        if composite is not None:
            self._learn_composite(composite, features, states, weights, first, base)
            return
        bethe = self.likelihood == "bethe"
        if bethe and (states < 0).any():
            raise ValueError("likelihood='bethe' takes labels that are all known")
        objective: Any = GraphLikelihood(
            *(features, states),
            weights=weights,
            penalty=self._penalty,
            base=base,
            engine=self._engine,
            options=self.engine_options,
            inexact=bethe,
        )
        options: dict[str, Any] = {"tol": self.tol, "callbacks": self._callbacks()}
        if bethe:
            options |= {"tol": 0.0, "gap_tol": self.tol * objective.scale}
        solution = minimize(objective, first, self.solver, max_iter=self.max_iter, **options)
        also = ""
        if bethe and solution.status is Status.PRECISION and solution.point.gap > options["gap_tol"]:
            objective.settle()  # what stopped it may have been noise
            left = self.max_iter - solution.n_iter
            solution = joined(solution, minimize(objective, solution.parameters, self.solver, max_iter=left, **options))
            if solution.status is Status.PRECISION and solution.point.gap > options["gap_tol"]:
                also = f"ended with a certificate of {solution.point.gap:.1e}, above tol for each variable"
        self._store(solution, solution.point, objective.engine)
        warn_if_short(self, solution, unsettled(solution.point.result, solution.point.rest) or also)

    def _learn_composite(
        self,
        composite: CompositeLikelihood,
        features: TiedTables,
        states: IntArray,
        weights: FloatArray,
        first: FloatArray | None,
        base: FloatArray | None,
    ) -> None:
        """Fit by a composite likelihood."""
        given: dict[str, Any] = {"weights": weights, "penalty": self._penalty, "base": base, "options": self.engine_options}

        def solve(target: Any, begin: FloatArray | None) -> Solution:
            return minimize(target, begin, self.solver, max_iter=self.max_iter, tol=self.tol, callbacks=self._callbacks())

        def make(made: CompositeLikelihood) -> GraphComposite:
            return GraphComposite(features, states, made, **given)

        if self.budget is not None:
            costs = graph_operations(features.graph, CompositeLikelihood(dict.fromkeys(BUDGET_ORDERS, 1.0)))
            composite, self.choice_ = within_budget(make, solve, dict(zip(BUDGET_ORDERS, costs, strict=True)), self.budget)
        objective = make(composite)
        objective.check_covered()
        solution, self.beta_ = fit_weights(objective, composite, solve, first)
        point = solution.point
        if composite.refine == FULL:
            point = newton_step(GraphLikelihood(features, states, engine="exact", **given), solution.parameters)
        elif composite.refine is not None:
            point = newton_step(make(composite.refinement), solution.parameters)
        self._store(solution.at(point, point.objective.scale), point, point.objective.engine)
        self.likelihood_ = composite
        warn_if_short(self, solution)

    def _operations(self, composite: CompositeLikelihood) -> FloatArray:
        """Operations for an example, of each order."""
        return graph_operations(self._fitted_point().objective.graph, composite)

    def _callbacks(self) -> list[Any]:
        return [ProgressPrinter(0.5 if self.verbose == 1 else 0.0)] if self.verbose else []

    @property
    def _penalty(self) -> float | FloatArray:
        return float(self.l2) if self._units is None else self._units.penalty

    def _store(self, solution: Solution, point: Any, engine: str) -> None:
        self.parameters_ = np.array(point.parameters if self._units is None else self._units.back @ point.parameters)
        self.engine_ = engine
        self.n_iter_, self.trace_, self.status_ = solution.n_iter, solution.trace, solution.status
        self._point, self.gap_ = point, float(point.gap)

    @property
    def _engine(self) -> str:
        return "trw" if self.likelihood == "bethe" else self.engine

    def _options(self) -> dict[str, Any]:
        return dict(self.engine_options or {})

    def _memory(self) -> dict[str, Any]:
        """Of the options of the engine, the one that exact answers take."""
        return {key: value for key, value in self._options().items() if key == "memory_limit"}

    def _argmax(self, graph: FactorGraph, u: FloatArray) -> IntArray:
        """The best configuration, or a good one where sums are not exact either."""
        if self._engine in ("auto", "exact"):
            return graph.argmax(u, self._engine, **self._memory())[0]
        return graph.argmax(u, graph.decoder(u))[0]

    def _fitted_point(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "_point"):
            raise ValueError("standard errors need the training data, which copies and files do not keep: fit again")
        return self._point

    def _standard_errors(self, method: str, draws: int, random_state: Any) -> FloatArray:
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

    def efficiency(self, reference: Any = FULL, measure: str = "rdet") -> float:
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

    def influence(self) -> FloatArray:
        """How much `parameters_` would change if an example of the training data were there once more, to first order:
        (examples, weights)."""
        found, units = graph_influence(self._fitted_point()), self._units
        return found if units is None else np.asarray((units.back @ found.T).T)

    def summary(
        self,
        level: float = 0.95,
        method: str = "sandwich",
        draws: int = 100,
        random_state: Any = None,
        top: int | None = None,
    ) -> CoefficientTable:
        """Estimate, standard error, z, p and confidence interval of every weight, as a table to print.

        Parameters are as in `standard_errors`; `top` keeps only so many rows, those with the largest absolute z.
        """
        check_level(level)
        errors = self.standard_errors(method, draws, random_state)  # type: ignore[attr-defined]
        names, estimate, error = self._listed(errors)
        title = f"{type(self).__name__}, l2 = {self.l2:g}, {method} standard errors, {self.status_.name.lower()}"
        table = CoefficientTable.of(names, estimate, error, level, title)
        return table if top is None else table.top(top)

    def _listed(self, errors: Any) -> tuple[list[str], FloatArray, FloatArray]:
        """Names of weights, weights and errors, one after another."""
        raise NotImplementedError

"""What estimators on factor graphs share: parameters, training, decoding, standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..core.parallel import Workers
from ..core.results import FloatArray, IntArray, Status
from ..core.validation import check_choice, check_count, check_flag, check_level, check_real
from ..features.tied_tables import TiedTables
from ..objectives.graph import LIKELIHOOD_ENGINES, GraphLikelihood
from ..objectives.graph_information import graph_covariance
from ..report import CoefficientTable, ProgressPrinter
from ..solvers import make_solver, minimize
from ..structures import FactorGraph
from .convergence import joined, unsettled, warn_if_short
from .persistence import SavedModel

LIKELIHOODS = ("full", "bethe")


class GraphModel(SavedModel, BaseEstimator):
    """An estimator that minimises a `GraphLikelihood`. Classes that build on it have the parameters below."""

    l2: float
    likelihood: str
    engine: str
    engine_options: Any
    solver: Any
    max_iter: int
    tol: float
    warm_start: bool
    n_jobs: int | None
    verbose: int

    def __getstate__(self) -> Any:
        return {key: value for key, value in super().__getstate__().items() if key not in ("_cache", "_point")}

    def _check_parameters(self) -> None:
        check_real("l2", self.l2, minimum=0.0)
        check_real("tol", self.tol, minimum=0.0)
        check_count("max_iter", self.max_iter)
        check_flag("warm_start", self.warm_start)
        check_choice("likelihood", self.likelihood, LIKELIHOODS)
        check_choice("engine", self.engine, LIKELIHOOD_ENGINES)
        if self.likelihood == "bethe":
            if self.engine not in ("auto", "trw"):
                raise ValueError(f"likelihood='bethe' takes engine 'auto' or 'trw', got {self.engine!r}")
            if not self.l2 > 0.0:
                raise ValueError("l2 must be above zero: the dual of Bethe learning, which certifies the fit, divides by it")
        check_count("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose)
        make_solver(self.solver)
        Workers(self.n_jobs)

    def _learn(
        self, features: TiedTables, states: IntArray, weights: FloatArray, start: Any, base: FloatArray | None = None
    ) -> None:
        """Fit to states, from `start` if it has as many weights."""
        bethe = self.likelihood == "bethe"
        if bethe and (states < 0).any():
            raise ValueError("likelihood='bethe' takes labels that are all known")
        objective: Any = GraphLikelihood(
            *(features, states),
            weights=weights,
            penalty=float(self.l2),
            base=base,
            engine=self._engine,
            options=self.engine_options,
            inexact=bethe,
        )
        first = start if start is not None and start.shape == (features.size,) else None
        callbacks = [ProgressPrinter(0.5 if self.verbose == 1 else 0.0)] if self.verbose else []
        options: dict[str, Any] = {"tol": self.tol, "callbacks": callbacks}
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
        self.parameters_ = np.array(solution.parameters)
        self.engine_ = objective.engine
        self.n_iter_, self.trace_, self.status_ = solution.n_iter, solution.trace, solution.status
        self._point, self.gap_ = solution.point, float(solution.point.gap)
        warn_if_short(self, solution, unsettled(solution.point.result, solution.point.rest) or also, stacklevel=5)

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

    def _standard_errors(self, method: str) -> FloatArray:
        check_is_fitted(self)
        if not hasattr(self, "_point"):
            raise ValueError("standard errors need the training data, which copies and files do not keep: fit again")
        return np.asarray(np.sqrt(np.maximum(np.diag(graph_covariance(self._point, method)), 0.0)))

    def summary(self, level: float = 0.95, method: str = "information", top: int | None = None) -> CoefficientTable:
        """Estimate, standard error, z, p and confidence interval of every entry of `standard_errors`, as a table to print.

        `top` keeps only so many rows, those with the largest absolute z.
        """
        check_level(level)
        errors: Any = self.standard_errors(method)  # type: ignore[attr-defined]
        estimates: Any = self.weights_ if isinstance(errors, dict) else {"": self.parameters_}  # type: ignore[attr-defined]
        errors = errors if isinstance(errors, dict) else {"": errors}
        names = [f"{_kind(kind)}{list(place)}" for kind, part in errors.items() for place in np.ndindex(part.shape)]
        estimate, error = (np.concatenate([np.ravel(parts[kind]) for kind in errors]) for parts in (estimates, errors))
        title = f"{type(self).__name__}, l2 = {self.l2:g}, {method} standard errors, {self.status_.name.lower()}"
        table = CoefficientTable.of(names, estimate, error, level, title)
        return table if top is None else table.top(top)


def _kind(kind: Any) -> str:
    """A kind of factor in words."""
    return " ".join(str(part) for part in kind)

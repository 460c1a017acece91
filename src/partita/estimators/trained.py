"""The base of everything that is trained: parameters, seeds, progress, interrupts, warnings, and what a run leaves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from sklearn.base import BaseEstimator

from ..core import Callback, Objective, Solver
from ..core.parameters import Check
from ..core.results import FloatArray, Solution, Status, Trace
from ..report.progress import ProgressPrinter
from ..solvers.auto import make_solver
from ..solvers.loop import minimize
from .convergence import warn_if_short
from .data import unchanged_on_failure
from .persistence import SavedModel
from .seeded_solver import seeded_solver

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="Trained")


def training(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """Decorator of `fit` and its like: parameters are checked first, and a call that fails changes nothing."""

    @functools.wraps(method)
    def trained(self: T, /, *args: P.args, **options: P.kwargs) -> R:
        with unchanged_on_failure(self):
            self._check_parameters()
            return method(self, *args, **options)

    return trained


class Trained(SavedModel, BaseEstimator):
    """An estimator with a solver. A new one declares `PARAMETERS`, and in `fit`, under `training`, calls `_minimize` and
    `_store_run`; the rest is inherited: checks, seeding, progress, interrupts, pickling, files.

    Attributes
    ----------
    n_iter_ : int
    trace_ : Trace
        Objective, gradient norm, certified gap and seconds at every iteration; the last row is the model.
    status_ : Status
        Why the solver stopped.
    """

    #: Every parameter of the constructor, and what it must be.
    PARAMETERS: ClassVar[Mapping[str, Check]] = {}
    #: Attributes that hold training data, or what follows from fitted arrays: copies, pickles and files do not keep them.
    TRANSIENT: ClassVar[tuple[str, ...]] = ()

    max_iter: int
    tol: float
    verbose: int
    n_iter_: int
    trace_: Trace
    status_: Status

    def _check_parameters(self) -> None:
        """Raise a `ValueError` that names a parameter that will not do."""
        values = self.__dict__
        for name, check in self.PARAMETERS.items():
            check(name, values[name])
        self._check_combinations()

    def _check_combinations(self) -> None:
        """Raise a `ValueError` for parameters that do not go together."""

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        for name in self.TRANSIENT:
            state.pop(name, None)
        return state

    def _progress(self, prefix: str = "") -> list[Callback]:
        """The printer of progress, if the user asked for one: 1 is twice a second, 2 every iteration."""
        return [ProgressPrinter(0.5 if self.verbose == 1 else 0.0, prefix)] if self.verbose else []

    def _minimize(
        self,
        objective: Objective,
        start: FloatArray | None = None,
        callbacks: Iterable[Callback] = (),
        solver: str | Solver | None = None,
    ) -> Solution:
        """Run the estimator's solver, with its seed, its limits and its progress."""
        chosen = seeded_solver(self) if solver is None else make_solver(solver)
        return minimize(
            *(objective, start, chosen), max_iter=self.max_iter, tol=self.tol, callbacks=[*self._progress(), *callbacks]
        )

    def _store_run(self, solution: Solution, status: Status | None = None) -> None:
        """Keep how the run went; `status` where the estimator knows better than the solver why it ended."""
        self.n_iter_, self.trace_ = solution.n_iter, solution.trace
        self.status_ = solution.status if status is None else status

    def _warn_if_short(self, solution: Solution, also: str = "", held_out: bool = True) -> None:
        """One `ConvergenceWarning` for a run that ended before its tolerance, or for the reason in `also`."""
        warn_if_short(self, solution, also, held_out)

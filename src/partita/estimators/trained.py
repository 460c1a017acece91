"""The base of everything that is trained: parameters, seeds, progress, interrupts, warnings, and what a run leaves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..core.contracts import AnySolver, Callback, Objective
from ..core.parameters import Check, checked
from ..core.results import FloatArray, Solution, Status, Trace
from ..core.types import RandomState, SolverLike
from ..report.progress import progress_printers
from ..solvers.loop import minimize
from ..solvers.named import make_solver
from .bootstrap import bootstrap_errors, copied
from .convergence import warn_if_short
from .data import unchanged_on_failure
from .persistence import SavedModel
from .restarts import run_starts
from .seeded_solver import seeded_solver

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="Trained")

#: The check of a parameter `solver`.
solver_like: Check = checked(make_solver)


def training(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """Decorator of `fit` and its like: parameters are checked first, and a call that fails changes nothing."""

    @functools.wraps(method)
    def trained(self: T, /, *args: P.args, **options: P.kwargs) -> R:
        with unchanged_on_failure(self):
            self._check_parameters()
            found = method(self, *args, **options)
        self._given_data = (args, options) if method.__name__ == "fit" else None
        return found

    return trained


class Trained(SavedModel, BaseEstimator):
    """An estimator that a solver trains. A new one declares `PARAMETERS`, and in `fit`, under `training`, calls `_minimize`
    (or `_minimize_from`), `_store_run` and `_warn_if_short`; the rest is inherited: checks, seeding, progress, interrupts,
    pickling, files.

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

    #: The arguments of `fit`, by reference: a bootstrap fits to them again.
    _given_data: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None

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

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in (*self.TRANSIENT, "_given_data"):
            state.pop(name, None)
        return state

    def _forget(self, *names: str) -> None:
        """Drop attributes of an earlier fit that this one does not have, if they are there."""
        for name in names:
            self.__dict__.pop(name, None)

    def _solver(self) -> AnySolver:
        """The solver of the constructor, seeded by `random_state` if there is one."""
        return seeded_solver(self)

    def _progress(self, prefix: str = "") -> list[Callback]:
        """The printer of progress, if the user asked for one; `prefix` tells runs apart."""
        return progress_printers(self.verbose, prefix)

    def _minimize(
        self,
        objective: Objective,
        start: FloatArray | None = None,
        callbacks: Iterable[Callback] = (),
        solver: SolverLike | None = None,
        *,
        max_iter: int | None = None,
        tol: float | None = None,
        gap_tol: float | None = None,
        time_limit: float | None = None,
    ) -> Solution:
        """Run a solver, the constructor's by default, with the constructor's limits and progress."""
        return minimize(
            *(objective, start, self._solver() if solver is None else solver),
            max_iter=self.max_iter if max_iter is None else max_iter,
            tol=self.tol if tol is None else tol,
            gap_tol=gap_tol,
            time_limit=time_limit,
            callbacks=[*self._progress(), *callbacks],
        )

    def _minimize_from(
        self,
        objective: Objective,
        starts: Sequence[FloatArray | Callable[[], FloatArray]],
        solver: SolverLike,
        n_jobs: int | None,
    ) -> tuple[Solution, list[Solution | None]]:
        """Run a solver from several starts, in threads: the lowest end, and all of them. See `run_starts`."""
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        return run_starts(objective, starts, solver, verbose=self.verbose, n_jobs=n_jobs, **limits)

    def _training_data(self) -> Mapping[str, Any] | None:
        """The arguments of the last `fit` by name; None where they are not kept."""
        if self._given_data is None:
            return None
        args, options = self._given_data
        given = inspect.signature(type(self).fit).bind(self, *args, **options).arguments
        return {name: value for name, value in given.items() if name != "self" and value is not None}

    def _estimates(self) -> FloatArray:
        """What standard errors are of."""
        return np.asarray(vars(self)["parameters_"])

    def _estimates_like(self, other: Self) -> FloatArray:
        """Those of a refit, in the order of this model's own."""
        return other._estimates()

    def _warm_copy(self) -> Self:
        """A copy whose `fit` starts where this model is, as far as it can."""
        other: Self = copied(self, **({"warm_start": True} if "warm_start" in self.PARAMETERS else {}))
        return other

    def _bootstrap(
        self, draws: int, random_state: RandomState, function: Callable[[FloatArray], FloatArray] = np.asarray
    ) -> FloatArray:
        """Standard errors of a function of `_estimates` from refits to resampled examples, see `bootstrap_errors`."""
        check_is_fitted(self)
        return bootstrap_errors(self, function, draws, random_state)

    def _store_run(self, solution: Solution, status: Status | None = None) -> None:
        """Keep how the run went; `status` where the estimator knows better than the solver why it ended."""
        self._store_end(solution.n_iter, solution.trace, solution.status if status is None else status)

    def _store_end(self, n_iter: int, trace: Trace, status: Status) -> None:
        """Keep how training ended, where that was no run of a solver."""
        self.n_iter_, self.trace_, self.status_ = n_iter, trace, status

    def _warn_if_short(self, solution: Solution, also: str = "", held_out: bool | None = None) -> None:
        """One `ConvergenceWarning` for a run that ended before its tolerance, or for the reason in `also`.

        `held_out` says whether the loss that no longer improved was one of held-out examples. Default: as the solver does.
        """
        if held_out is None:
            held_out = solution.status is not Status.STALLED or self._solver().holds_out
        warn_if_short(self, solution, also, held_out)

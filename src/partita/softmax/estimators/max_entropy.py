"""Maximum entropy and minimum relative entropy on a finite space."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ...core.contracts.progress import Progress
from ...core.errors import ModelFileError
from ...core.results import FloatArray, Solution, Status
from ...core.validation import check_count, check_real, check_verbose
from ...estimators.convergence import warn_if_short
from ...estimators.data import unchanged_on_failure
from ...estimators.loaded import RUN, check_array, check_log_weights, check_number, check_run, is_fitted
from ...estimators.persistence import SavedModel
from ...report.progress import ProgressPrinter
from ...solvers.auto import make_solver
from ...solvers.loop import minimize
from ..objective.moments import MomentProblem
from ..structure import Categorical
from .moment_names import align_states, read_moments, read_targets

#: Log of the ratio p / prior below which a state may be one that must vanish, and of what the search for those may drop.
SUSPICIOUS, NEGLIGIBLE = -16.0, -12.0

#: How far the probabilities in a file may be from a sum of one, for each.
ROUNDING = 1e-9


class MaxEnt(SavedModel, BaseEstimator):
    """The distribution closest to a prior that has given moments.

    Minimises ``KL(p || prior)`` over distributions p on finitely many states with ``sum_i p_i features[i] = equality`` and
    ``sum_i p_i g[i] >= bound``. The answer is ``p_i`` proportional to
    ``prior_i exp(coef_ . features[i] + inequality_coef_ . g[i])``, ``inequality_coef_ >= 0``, found by minimising the dual.

    Parameters
    ----------
    features : array of shape (states, k), or (states,) for one, frame, dict of columns, or None
        The functions whose means are fixed.
    equality : array of shape (k,), series, dict or frame of one row
        Their means. Names win over positions: those of a series or dict must be the columns of `features`, in any order.
    inequality : pair (g, bound), optional
        g of shape (states, m), or (states,) for one, and bound of shape (m,): the means of g must be at least bound. For an
        upper bound, change both signs. Frames, series and dicts as above.
    prior : array of shape (states,), or series or dict by the index of `features`, optional
        Non-negative weights (zero forbids a state); default uniform, which makes p the distribution of largest entropy.
    solver : str or solver object
        ``"auto"``, ``"majorize"``, and without inequalities ``"newton"``, ``"lbfgs"``, ``"cg"``, ``"steepest"``.
    max_iter : int
        Most iterations.
    tol : float
        Stop when every moment, in units of its feature's largest distance from the target, is satisfied to `tol`.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.

    Attributes
    ----------
    probabilities_ : array of shape (states,)
    coef_ : array of shape (k,)
        Multipliers of the equalities.
    inequality_coef_ : array of shape (m,)
        Multipliers of the inequalities, >= 0, and 0 where the inequality is strict.
    log_partition_ : float
        log of ``sum_i prior_i exp(coef_ . features[i] + inequality_coef_ . g[i])``, over the states that are not excluded.
    relative_entropy_ : float
        KL(probabilities_ || normalised prior).
    gap_ : float
        Difference between `relative_entropy_` and the dual value, which is a lower bound on the minimum.
    violation_ : float
        Largest violation of a moment, in the units of the features.
    excluded_ : array of bool of shape (states,)
        States that have probability zero: forbidden by the prior, or by the moments (see Notes).
    n_iter_, trace_, status_
        As for other estimators.

    Notes
    -----
    Moments on the edge of what is possible (a die whose mean is 6) force probabilities to zero. Such states are found by one
    linear program and excluded: their log-probability is -inf, and the multipliers are those of the problem on the others.
    Impossible moments are a ValueError that names a smallest group that cannot hold.

    There are no standard errors: moments are given, not estimated from a sample of known size.

    Examples
    --------
    A die whose mean is 4.5:

    >>> import numpy as np
    >>> from partita import MaxEnt
    >>> model = MaxEnt(features=np.arange(1, 7)[:, None], equality=[4.5]).fit()
    >>> model.probabilities_.round(4)
    array([0.0544, 0.0788, 0.1142, 0.1654, 0.2398, 0.3475])
    """

    def __init__(
        self,
        features: Any = None,
        equality: Any = None,
        inequality: Any = None,
        prior: Any = None,
        solver: Any = "auto",
        max_iter: int = 500,
        tol: float = 1e-10,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.equality = equality
        self.inequality = inequality
        self.prior = prior
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def fit(self, X: Any = None, y: Any = None) -> MaxEnt:
        """Solve the problem that the constructor states; X and y are ignored.

        A failed fit changes nothing. An interrupt keeps the iterate it finds, with status INTERRUPTED; one that comes before
        the first iteration, or between two solves, is raised.
        """
        with unchanged_on_failure(self):
            return self._fit()

    def _fit(self) -> MaxEnt:
        self._check_parameters()
        problem, live = self._problem()
        problem.check_ranges()
        found = None
        if not problem.on_edge:
            found = self._solve(problem)
            log_ratio = problem.log_probabilities(found.parameters)[0] - np.log(problem.prior / problem.prior.sum())
            if found.status is Status.INTERRUPTED or (found.status.ok and log_ratio.min() >= SUSPICIOUS):
                return self._store(problem, live, found)
        support = problem.support()
        if found is not None and found.status.ok:
            certain = log_ratio >= NEGLIGIBLE
            support = certain if support is None else support | certain
        if support is None:
            problem.raise_conflict()
        if not support.all():
            live = live.copy()
            live[live] = support
            smaller = problem.restricted(support)
            again = self._solve(smaller)
            if again.status is not Status.CALLBACK:  # else the program took a state that is merely rare for impossible
                return self._store(smaller, live, again, problem.prior.sum())
            live = self._problem()[1]
        found = self._solve(problem) if found is None else found
        if found.status is Status.CALLBACK:
            raise ValueError("the moments lie on the edge of what is possible, up to rounding: move the targets inwards")
        return self._store(problem, live, found)

    def _check_parameters(self) -> None:
        check_real("tol", self.tol, minimum=0.0)
        check_count("max_iter", self.max_iter)
        check_verbose(self.verbose)
        make_solver(self.solver)

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Frames and series go into a model file as what they were read as: columns by name, numbers in one order."""
        try:
            return super()._pack()
        except TypeError:
            plain = copy(self)
        states: Any = None
        if self.features is not None and self.equality is not None:
            F, columns, states = read_moments("features", self.features)
            plain.features = F if columns is None else dict(zip(columns, F.T, strict=True))
            plain.equality = read_targets("equality", self.equality, "features", columns, F.shape[1])
        if self.inequality is not None:
            F, bound, columns, own = self._read_inequality(states)
            plain.inequality = (F if columns is None else dict(zip(columns, F.T, strict=True)), bound)
            states = own if states is None else states
        plain.prior = None if self.prior is None else self._read_prior(states)
        return super(MaxEnt, plain)._pack()

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if not is_fitted(
            *(self, "log_probabilities_", "probabilities_", "coef_", "inequality_coef_", "excluded_", "log_partition_"),
            *("relative_entropy_", "gap_", "violation_", *RUN),
        ):
            return
        p = check_array(self, "probabilities_", (None,))
        log_p = check_log_weights(self, "log_probabilities_", len(p))
        if not abs(p.sum() - 1.0) <= ROUNDING * len(p) or not np.allclose(np.exp(log_p), p, 0.0, ROUNDING):
            raise ModelFileError("probabilities_ must sum to one, and be those of log_probabilities_")
        check_array(self, "excluded_", (len(p),), bool)
        for name in ("coef_", "inequality_coef_"):
            check_array(self, name, (None,))
        for name in ("log_partition_", "relative_entropy_", "gap_", "violation_"):
            check_number(self, name)
        check_run(self)

    def _problem(self) -> tuple[MomentProblem, NDArray[np.bool_]]:
        """The checked problem on the states that the prior allows, and which those are."""
        blocks, targets, names = [], [], []
        states: Any = None
        if self.features is not None or self.equality is not None:
            if self.features is None or self.equality is None:
                raise ValueError("features and equality belong together: give both or neither")
            F, columns, states = read_moments("features", self.features)
            blocks.append(F)
            targets.append(read_targets("equality", self.equality, "features", columns, F.shape[1]))
            names += _labels("equality", columns, F.shape[1])
        n_equal = blocks[0].shape[1] if blocks else 0
        if self.inequality is not None:
            F, bound, columns, own = self._read_inequality(states)
            states = own if states is None else states
            blocks.append(F)
            targets.append(bound)
            names += _labels("inequality", columns, F.shape[1])
        if not blocks:
            raise ValueError("MaxEnt needs moments: give features and equality, or inequality, or both")
        count = len(blocks[0])
        if len(blocks[-1]) != count:
            raise ValueError(f"features has {count} states, inequality[0] has {len(blocks[-1])}; they must agree")
        prior = np.ones(count) if self.prior is None else self._read_prior(states)
        live = np.exp(Categorical(count, prior).log_prior) > 0.0
        return MomentProblem(np.hstack(blocks)[live], np.concatenate(targets), n_equal, prior[live], tuple(names)), live

    def _read_inequality(self, states: Any) -> tuple[FloatArray, FloatArray, Any, Any]:
        """The functions in the order of the states of `features`, their bounds, and the names of columns and of states."""
        if not isinstance(self.inequality, list | tuple) or len(self.inequality) != 2:
            raise ValueError("inequality must be a pair (g, bound): g of shape (states, m) and bound of shape (m,)")
        F, columns, own = read_moments("inequality[0]", self.inequality[0])
        if self.features is not None and own:
            order = align_states("inequality[0]", self.inequality[0], "features", states)
            F = F if order is None else F[order]
        bound = read_targets("inequality[1]", self.inequality[1], "inequality[0]", columns, F.shape[1])
        return F, bound, columns, own

    def _read_prior(self, states: Any) -> FloatArray:
        """The prior in the order of the states, by name if both have names."""
        order = align_states("prior", self.prior, "features", states)
        try:
            prior = np.asarray(
                list(self.prior.values()) if isinstance(self.prior, Mapping) else self.prior, dtype=np.float64
            )
        except (TypeError, ValueError):
            raise ValueError("prior must be numbers, one for each state") from None
        return prior if order is None else prior[order]

    def _solve(self, problem: MomentProblem) -> Solution:
        # The dual value is a lower bound on the relative entropy, which no distribution can make larger than this.
        ceiling = -np.log(problem.prior.min() / problem.prior.sum()) + 1e-6
        offset = np.log(problem.prior.max()) - np.log(problem.prior.sum())

        def impossible(progress: Progress) -> bool:
            return bool(-(progress.objective + offset) > ceiling)

        callbacks: list[Any] = [impossible]
        if self.verbose:
            callbacks.append(ProgressPrinter(0.5 if self.verbose == 1 else 0.0))
        objective: Any = problem.objective()
        return minimize(objective, solver=self.solver, max_iter=self.max_iter, tol=self.tol, callbacks=callbacks)

    def _store(
        self, problem: MomentProblem, live: NDArray[np.bool_], solution: Solution, prior_sum: float | None = None
    ) -> MaxEnt:
        log_p, log_z = problem.log_probabilities(solution.parameters)
        p = np.exp(log_p)
        multipliers = solution.parameters / problem.scale
        excess = p @ problem.F - problem.target
        excess[problem.n_equal :] = np.minimum(excess[problem.n_equal :], 0.0)
        self.log_probabilities_ = np.full(len(live), -np.inf)
        self.log_probabilities_[live] = log_p
        self.probabilities_ = np.exp(self.log_probabilities_)
        self.coef_ = multipliers[: problem.n_equal]
        self.inequality_coef_ = multipliers[problem.n_equal :]
        self.log_partition_ = log_z + float(multipliers @ problem.target)
        total = float(np.log(problem.prior.sum() if prior_sum is None else prior_sum))
        self.relative_entropy_ = float(p @ (log_p - np.log(problem.prior))) + total
        self.gap_ = abs(float(solution.parameters @ (p @ problem.scaled)))
        self.violation_ = float(np.abs(excess).max())
        self.excluded_ = ~live
        self.n_iter_, self.trace_, self.status_ = solution.n_iter, solution.trace, solution.status
        warn_if_short(self, solution)
        return self

    def log_prob(self, states: Any = None) -> FloatArray:
        """Log-probabilities of states (positions); of all of them by default."""
        check_is_fitted(self)
        if states is None:
            return self.log_probabilities_.copy()
        chosen = np.asarray(states)
        count = len(self.log_probabilities_)
        if chosen.dtype.kind not in "iu" or np.any(chosen < 0) or np.any(chosen >= count):
            raise ValueError(f"states must be integers from 0 to {count - 1}")
        return np.asarray(self.log_probabilities_[chosen])

    def sample(self, size: int, random_state: Any = None) -> NDArray[np.int64]:
        """`size` independent states, as positions."""
        check_is_fitted(self)
        return Categorical(len(self.log_probabilities_)).sample(self.log_probabilities_[None], size, random_state)[:, 0]


def _labels(kind: str, columns: Any, count: int) -> list[str]:
    """What users call the moments."""
    return [f"{kind} {key!r}" for key in (range(count) if columns is None else columns)]

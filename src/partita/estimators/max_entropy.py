"""Maximum entropy and minimum relative entropy on a finite space."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..core.errors import ConvergenceWarning
from ..core.protocols import Progress
from ..core.results import FloatArray, Solution, Status
from ..core.validation import check_count, check_real
from ..objectives.moments import MomentProblem
from ..report import ProgressPrinter
from ..solvers import make_solver, minimize
from ..structures import Categorical
from .data import unchanged_on_failure
from .persistence import SavedModel

#: Log of the ratio p / prior below which a state may be one that must vanish, and of what the search for those may drop.
SUSPICIOUS, NEGLIGIBLE = -16.0, -12.0


class MaxEnt(SavedModel, BaseEstimator):
    """The distribution closest to a prior that has given moments.

    Minimises ``KL(p || prior)`` over distributions p on finitely many states with ``sum_i p_i features[i] = equality`` and
    ``sum_i p_i g[i] >= bound``. The answer is ``p_i`` proportional to
    ``prior_i exp(coef_ . features[i] + inequality_coef_ . g[i])``, ``inequality_coef_ >= 0``, found by minimising the dual.

    Parameters
    ----------
    features : array of shape (states, k), or (states,) for one, or None
        The functions whose means are fixed.
    equality : array of shape (k,)
        Their means.
    inequality : pair (g, bound), optional
        g of shape (states, m), or (states,) for one, and bound of shape (m,): the means of g must be at least bound. For an
        upper bound, change both signs.
    prior : array of shape (states,), optional
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
        """Solve the problem that the constructor states; X and y are ignored. A failed fit changes nothing."""
        with unchanged_on_failure(self):
            return self._fit()

    def _fit(self) -> MaxEnt:
        check_real("tol", self.tol, minimum=0.0)
        check_count("max_iter", self.max_iter)
        make_solver(self.solver)
        problem, live = self._problem()
        problem.check_ranges()
        found = None
        if not problem.on_edge:
            found = self._solve(problem)
            if found.status is Status.INTERRUPTED:
                return self._store(problem, live, found)
            log_ratio = problem.log_probabilities(found.parameters)[0] - np.log(problem.prior / problem.prior.sum())
            if found.status.ok and log_ratio.min() >= SUSPICIOUS:
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

    def _problem(self) -> tuple[MomentProblem, NDArray[np.bool_]]:
        """The checked problem on the states that the prior allows, and which those are."""
        blocks, targets = [], []
        if self.features is not None or self.equality is not None:
            if self.features is None or self.equality is None:
                raise ValueError("features and equality belong together: give both or neither")
            blocks.append(_matrix("features", self.features))
            targets.append(_vector("equality", self.equality, blocks[0].shape[1]))
        n_equal = blocks[0].shape[1] if blocks else 0
        if self.inequality is not None:
            if not isinstance(self.inequality, list | tuple) or len(self.inequality) != 2:
                raise ValueError("inequality must be a pair (g, bound): g of shape (states, m) and bound of shape (m,)")
            blocks.append(_matrix("inequality[0]", self.inequality[0]))
            targets.append(_vector("inequality[1]", self.inequality[1], blocks[-1].shape[1]))
        if not blocks:
            raise ValueError("MaxEnt needs moments: give features and equality, or inequality, or both")
        states = len(blocks[0])
        if len(blocks[-1]) != states:
            raise ValueError(f"features has {states} states, inequality[0] has {len(blocks[-1])}; they must agree")
        live = np.exp(Categorical(states, self.prior).log_prior) > 0.0
        prior = np.ones(states) if self.prior is None else np.asarray(self.prior, dtype=np.float64)
        return MomentProblem(np.hstack(blocks)[live], np.concatenate(targets), n_equal, prior[live]), live

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
        far = solution.trace.gradient_norm[-1] > 100.0 * self.tol
        if far if solution.status is Status.PRECISION else not solution.status.ok:
            warnings.warn(f"MaxEnt {solution.status}", ConvergenceWarning, stacklevel=4)
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


def _matrix(name: str, value: Any) -> FloatArray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers of shape (states, moments)") from None
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite with shape (states, moments), got {np.shape(value)}")
    return array


def _vector(name: str, value: Any, count: int) -> FloatArray:
    try:
        array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one per moment ({count})") from None
    if array.shape != (count,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {count} finite numbers, one per moment; got shape {array.shape}")
    return array

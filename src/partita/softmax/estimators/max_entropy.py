"""Maximum entropy and minimum relative entropy on a finite space."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core import Progress
from ...core.errors import ModelFileError
from ...core.parameters import Check, anything, count, real, verbosity
from ...core.results import FloatArray, IntArray, Solution, Status
from ...core.types import RandomState, SolverLike
from ...estimators.loaded import RUN, check_array, check_log_weights, check_number, check_run, is_fitted
from ...estimators.trained import Trained, solver_like, training
from ..objective.moments import MomentProblem
from ..structure import Categorical
from .stated_moments import MomentsLike, PriorLike, StatedMoments, TargetsLike

#: Log of the ratio p / prior below which a state may be one that must vanish, and of what the search for those may drop.
SUSPICIOUS, NEGLIGIBLE = -16.0, -12.0

#: How far the probabilities in a file may be from a sum of one, for each.
ROUNDING = 1e-9


class Answer(NamedTuple):
    """A solution of a moment problem, and the states that it is about: all others have probability zero."""

    problem: MomentProblem
    states: NDArray[np.bool_]
    solution: Solution


class MaxEnt(Trained):
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

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "features": anything,
        "equality": anything,
        "inequality": anything,
        "prior": anything,
        "solver": solver_like,
        "max_iter": count(),
        "tol": real(0.0),
        "verbose": verbosity,
    }

    probabilities_: FloatArray
    log_probabilities_: FloatArray
    coef_: FloatArray
    inequality_coef_: FloatArray
    log_partition_: float
    relative_entropy_: float
    gap_: float
    violation_: float
    excluded_: NDArray[np.bool_]

    def __init__(
        self,
        features: MomentsLike | None = None,
        equality: TargetsLike | None = None,
        inequality: tuple[MomentsLike, TargetsLike] | None = None,
        prior: PriorLike | None = None,
        solver: SolverLike = "auto",
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

    @training
    def fit(self, X: object = None, y: object = None) -> Self:
        """Solve the problem that the constructor states; X and y are ignored.

        A failed fit changes nothing. An interrupt keeps the iterate it finds, with status INTERRUPTED; one that comes before
        the first iteration, or between two solves, is raised.
        """
        problem, live = self._stated().problem()
        problem.check_ranges()
        answer = self._answer(problem)
        live[live] = answer.states
        self._store(answer, live, float(problem.prior.sum()))
        self._warn_if_short(answer.solution)
        return self

    def _stated(self) -> StatedMoments:
        return StatedMoments(self.features, self.equality, self.inequality, self.prior)

    def _answer(self, problem: MomentProblem) -> Answer:
        """The solution, after states that must vanish were looked for if there may be any."""
        everywhere = np.ones(len(problem.prior), bool)
        found = log_ratio = None
        if not problem.on_edge:
            found = self._solve(problem)
            log_ratio = problem.log_probabilities(found.parameters)[0] - np.log(problem.prior / problem.prior.sum())
            if found.status is Status.INTERRUPTED or (found.status.ok and log_ratio.min() >= SUSPICIOUS):
                return Answer(problem, everywhere, found)
        support = problem.support()
        if found is not None and log_ratio is not None and found.status.ok:
            certain = log_ratio >= NEGLIGIBLE
            support = certain if support is None else support | certain
        if support is None:
            problem.raise_conflict()
        if not support.all():
            smaller = problem.restricted(support)
            again = self._solve(smaller)
            if again.status is not Status.CALLBACK:  # else the program took a state that is merely rare for impossible
                return Answer(smaller, support, again)
        found = self._solve(problem) if found is None else found
        if found.status is Status.CALLBACK:
            raise ValueError("the moments lie on the edge of what is possible, up to rounding: move the targets inwards")
        return Answer(problem, everywhere, found)

    def _solve(self, problem: MomentProblem) -> Solution:
        # The dual value is a lower bound on the relative entropy, which no distribution can make larger than this.
        ceiling = -np.log(problem.prior.min() / problem.prior.sum()) + 1e-6
        offset = np.log(problem.prior.max()) - np.log(problem.prior.sum())

        def impossible(progress: Progress) -> bool:
            return bool(-(progress.objective + offset) > ceiling)

        objective: Any = problem.objective()
        return self._minimize(objective, callbacks=[impossible])

    def _store(self, answer: Answer, live: NDArray[np.bool_], prior_sum: float) -> None:
        """Keep a solution on the states that are `live`, of a prior with this sum over those that it allows."""
        problem, _, solution = answer
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
        self.relative_entropy_ = float(p @ (log_p - np.log(problem.prior))) + float(np.log(prior_sum))
        self.gap_ = abs(float(solution.parameters @ (p @ problem.scaled)))
        self.violation_ = float(np.abs(excess).max())
        self.excluded_ = ~live
        self._store_run(solution)

    def _pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Frames and series go into a model file as what they were read as: columns by name, numbers in one order."""
        try:
            return super()._pack()
        except TypeError:
            plain = copy(self)
        plain.features, plain.equality, plain.inequality, plain.prior = self._stated().plain()
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

    def log_prob(self, states: ArrayLike | None = None) -> FloatArray:
        """Log-probabilities of states (positions); of all of them by default."""
        check_is_fitted(self)
        if states is None:
            return self.log_probabilities_.copy()
        chosen = np.asarray(states)
        size = len(self.log_probabilities_)
        if chosen.dtype.kind not in "iu" or np.any(chosen < 0) or np.any(chosen >= size):
            raise ValueError(f"states must be integers from 0 to {size - 1}")
        return np.asarray(self.log_probabilities_[chosen])

    def sample(self, size: int, random_state: RandomState = None) -> IntArray:
        """`size` independent states, as positions."""
        check_is_fitted(self)
        return Categorical(len(self.log_probabilities_)).sample(self.log_probabilities_[None], size, random_state)[:, 0]

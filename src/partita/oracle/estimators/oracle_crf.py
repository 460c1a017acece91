"""Conditional distributions over whatever a solver can find the best of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.contracts.capabilities import Capability
from ...core.contracts.progress import DualPoint
from ...core.parallel import Workers
from ...core.parameters import Check, array, count, flag, real, seed, threads, verbosity
from ...core.results import FloatArray, IntArray, Result
from ...core.types import RandomState, SampleWeight, SolverLike
from ...core.validation import check_choice, check_weights
from ...core.warn import one_warning, report
from ...estimators.convergence import certified_gap
from ...estimators.data import ListInput
from ...estimators.loaded import RUN, check_array, check_bool, check_number, check_run, is_fitted
from ...estimators.restrictions import RESTRICTIONS, feasible_weights
from ...estimators.trained import Trained, solver_like, training
from ...inference.entropies import Entropy
from ...inference.kbest import k_best_parts
from ...inference.parts import Parts, infer_parts
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.named import NamedWeights
from ...objectives.uncertainty import METHODS
from ...report.explanation import Explanation, explained
from ...solvers.named import make_solver
from ..data import BETHE, INDEPENDENT, Family, Groups, read_configurations, read_features
from ..features import PartFeatures
from ..objective import Example, OracleLikelihood

#: Each example: features of its parts, (features, parts), or a dict with these as "features" and what its solver needs.
Examples = Sequence[Any] | NDArray[Any]


def _oracle(name: str, value: Any) -> None:
    if not isinstance(value, str) and not callable(value) and not callable(getattr(value, "argmax", None)):
        raise ValueError(
            f"{name} must be an object with argmax(scores), a function of scores, or a registered name; got "
            f"{type(value).__name__}"
        )


def _groups(name: str, value: Any) -> None:
    if value is not None and not callable(value) and not isinstance(value, Sequence | np.ndarray):
        raise ValueError(f"{name} must be a list of groups of parts, or a function of an example; got {value!r}")


def _entropy(name: str, value: Any) -> None:
    if isinstance(value, str):
        if value not in (INDEPENDENT, BETHE):
            raise ValueError(f"{name} must be {INDEPENDENT!r}, {BETHE!r} or a SeparableEntropy or the like, got {value!r}")
        return
    has = all(callable(getattr(value, part, None)) for part in ("value", "gradient", "along"))
    if isinstance(value, type) or not has or not isinstance(getattr(value, "upper", None), bool):
        raise ValueError(
            f"{name} must have upper (True or False), value(tau), gradient(tau) and along(tau, direction), as "
            "SeparableEntropy has"
        )


class OracleCRF(ListInput, Trained):
    """p(y | x) over the configurations y that a solver knows, proportional to exp of the scores of their parts.

    A configuration is a set of parts: edges of a tree, arcs of a path, cells of a table. Scores of parts are linear in their
    features. Nothing is asked of the solver but the best configuration for given scores, and nothing else is called: log Z
    is replaced by ``log Z_H``, the largest of ``<scores, tau> + H(tau)`` over all means tau of configurations (MLE-Struct).
    Minimises ``sum_i w_i (log Z_H(x_i) - score(x_i, y_i)) + (l2 / 2) ||theta||^2`` by Frank-Wolfe steps in the dual.

    Parameters
    ----------
    oracle : object with ``argmax(scores)``, callable, or str
        From an array of scores, one for each part, to the best configuration: zeros and ones. A string is a name given with
        `partita.oracle.register_oracle`: models with a name can be saved.
    entropy : {"independent", "bethe"} or Entropy
        H. ``"independent"`` is the sum of the binary entropies of parts, which is above the true entropy: log Z_H is then an
        upper bound on log Z, and `log_likelihood` a lower one. ``"bethe"`` knows groups of parts of which at most, or
        exactly, b are chosen (`partita.inference.GroupEntropy`). Or any concave one, such as
        `partita.inference.SeparableEntropy`.
    groups : list of groups, or callable
        For ``"bethe"``: arrays of parts of which at most one is chosen, or `partita.inference.PartGroup`; or a function from
        an example to such a list. Default: ``x["groups"]``.
    rho : float, array or None
        Weights of the entropies of groups: 1 is Bethe's. None: the largest with which log Z_H is an upper bound.
    per_example : bool
        `oracle` makes a solver from an example: ``oracle(x)``, where x is the entry of X.
    delta : float
        By how much answers may be below the best score, for solvers that stop early: part of `gap_`.
    l2 : float, default 1.0
        Strength of the quadratic penalty, above zero: the dual divides by it.
    solver : str or solver object
        ``"block_frank_wolfe"``, or a `BlockFrankWolfe` with options.
    max_iter : int
        Most passes over the examples.
    tol : float
        Stop when the objective is certainly at most so much above its minimum, for each example.
    time_limit : float or None
        Seconds.
    inference_tol : float
        `predict_marginals` and `log_likelihood` stop when log Z_H is certain to so much.
    warm_start : bool
        Start from the last fit, if it has as many features.
    n_jobs : int or None
        Threads in which solvers of different examples may be called at once: where training begins, where it certifies, and
        with ``BlockFrankWolfe(batch=True)``. The result does not depend on it.
    random_state : int, Generator or None
        Of the order of the examples.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.
    l1 : float
        Strength of a penalty on absolute values, beside `l2`, which the dual needs.
    constraints : list of constraints, optional
        Convex sets of weights by position; see `partita.constraints`. The gap is exact within them too. Bounds and ties are
        for nothing; others take a quadratic program in each step.

    Attributes
    ----------
    parameters_ : array
        A weight for each feature.
    gap_ : float
        The objective is at most so much above its minimum, by the answers of the solver at the end.
    n_oracle_calls_ : int
        How often the solver was called.
    upper_bound_ : bool
        Whether log Z_H is an upper bound on log Z for all examples.
    n_iter_, trace_, status_

    Notes
    -----
    X is a list of examples, of any numbers of parts: arrays or sparse matrices of shape (features, parts), or dicts with
    these as ``"features"`` and whatever else `oracle` needs with ``per_example=True``. y is a list of zeros and ones.

    An answer that is worse than a configuration that is known proves that the solver does not find the best one: fit raises
    `NumericalError`, and says in which example and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import OracleCRF
    >>> rng = np.random.default_rng(0)
    >>> def best_two(scores):  # stands for any solver
    ...     return np.isin(np.arange(len(scores)), np.argsort(-scores)[:2])
    >>> X = rng.normal(size=(40, 3, 6))  # three features of six parts
    >>> y = [best_two(x[0] - x[1] + rng.gumbel(size=6)) for x in X]
    >>> model = OracleCRF(best_two).fit(X, y)
    >>> model.parameters_.round(1)
    array([ 1.5, -1.4,  0.1])
    >>> model.predict(X[:1])
    [array([0, 0, 1, 1, 0, 0])]
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "oracle": _oracle,
        "entropy": _entropy,
        "groups": _groups,
        "rho": array(),
        "per_example": flag,
        "delta": real(0.0),
        "l2": real(0.0, strict=True),
        "solver": solver_like,
        "max_iter": count(),
        "tol": real(0.0),
        "time_limit": real(0.0, strict=True, optional=True),
        "inference_tol": real(0.0, strict=True),
        "warm_start": flag,
        "n_jobs": threads,
        "random_state": seed,
        "verbose": verbosity,
        **RESTRICTIONS,
    }

    parameters_: FloatArray
    gap_: float
    n_oracle_calls_: int
    upper_bound_: bool

    def __init__(
        self,
        oracle: Any,
        entropy: str | Entropy = INDEPENDENT,
        groups: Groups = None,
        rho: ArrayLike | None = None,
        per_example: bool = False,
        delta: float = 0.0,
        l2: float = 1.0,
        solver: SolverLike = "block_frank_wolfe",
        max_iter: int = 1000,
        tol: float = 1e-4,
        time_limit: float | None = None,
        inference_tol: float = 1e-5,
        warm_start: bool = False,
        n_jobs: int | None = 1,
        random_state: RandomState = None,
        verbose: int = 0,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
    ) -> None:
        self.oracle = oracle
        self.entropy = entropy
        self.groups = groups
        self.rho = rho
        self.per_example = per_example
        self.delta = delta
        self.l2 = l2
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.inference_tol = inference_tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.l1 = l1
        self.constraints = constraints

    def _check_combinations(self) -> None:
        if self.entropy != BETHE and (self.groups is not None or self.rho is not None):
            raise ValueError("groups and rho go with entropy='bethe': other entropies do not know them")
        if Capability.BLOCKS not in make_solver(self.solver).requires:
            raise ValueError(
                "solver must be 'block_frank_wolfe' or a BlockFrankWolfe: others need log Z or its gradient, and all that "
                f"is known here are best configurations; got {self.solver!r}"
            )

    @training
    def fit(self, X: Examples, y: Sequence[ArrayLike], sample_weight: SampleWeight = None) -> Self:
        """Fit to examples X and the configurations y that were observed. A failed fit changes nothing.

        Parameters
        ----------
        X, y
            See the notes of the class.
        sample_weight : array of shape (n_examples,), optional
        """
        family, features = self._family(), read_features(X)
        parts = [family.solver(x, i, f.n_parts) for i, (x, f) in enumerate(zip(X, features, strict=True))]
        observed = read_configurations(y, parts)
        weights = check_weights("sample_weight", sample_weight, len(features)).tolist()
        entropies = [family.measure(x, i, f.n_parts) for i, (x, f) in enumerate(zip(X, features, strict=True))]
        examples = [Example(*row) for row in zip(parts, features, observed, entropies, weights, strict=True)]
        feasible = feasible_weights(self.constraints, NamedWeights.of_features(features[0].size))
        objective = OracleLikelihood(examples, float(self.l2), Workers(self.n_jobs), float(self.l1), feasible)
        target = (self.tol + self.delta) * objective.scale
        start = self._start(objective.size)
        solution = self._minimize(objective, start, tol=0.0, gap_tol=target, time_limit=self.time_limit)
        assert isinstance(solution.point, DualPoint)
        self.parameters_, self.gap_ = np.array(solution.parameters), certified_gap(solution.point)
        self.n_oracle_calls_, self.upper_bound_ = solution.point.n_calls, all(entropy.upper for entropy in entropies)
        self._store_run(solution)
        short = self.gap_ > target and solution.status.ok
        also = f"ended with a certificate of {self.gap_:.1e}, above tol for each example ({target:.1e})" if short else ""
        self._warn_if_short(solution, also)
        return self

    def _family(self) -> Family:
        return Family(self.oracle, bool(self.per_example), float(self.delta), self.entropy, self.groups, self.rho)

    def _start(self, size: int) -> FloatArray | None:
        """The weights of the last fit, if they are as many."""
        if not self.warm_start or "parameters_" not in vars(self) or len(self.parameters_) != size:
            return None
        return self.parameters_

    def _read(self, X: Examples) -> list[tuple[Any, Parts, PartFeatures]]:
        """New examples."""
        check_is_fitted(self, "parameters_")
        family, found = self._family(), read_features(X)
        if found[0].size != len(self.parameters_):
            raise ValueError(f"X has {found[0].size} features, but the model was fitted to {len(self.parameters_)}")
        return [(x, family.solver(x, i, f.n_parts), f) for i, (x, f) in enumerate(zip(X, found, strict=True))]

    def predict(self, X: Examples) -> list[IntArray]:
        """The most probable configuration of each example: zeros and ones."""
        return [parts.best(f.forward(self.parameters_)).astype(np.int64) for _, parts, f in self._read(X)]

    def predict_kbest(self, X: Examples, k: int) -> list[list[tuple[IntArray, float]]]:
        """The k most probable configurations of each example, best first, with their log-probabilities (log Z_H for log Z).

        By Lawler's algorithm: parts are forced in and out by scores that no others can make up for, and each question is
        one call of the solver. They are the k best as far as its answers are the best.
        """
        out = []
        for parts, scores, result in self._infer(X):
            found, values = k_best_parts(parts.best, scores, k)
            log_z = float(result.log_z[0])
            out.append([(y, value - log_z) for y, value in zip(found, values.tolist(), strict=True)])
        return out

    def explain(self, x: Any) -> Explanation:
        """Which features pushed which part of an example into its most probable configuration, or out. ``print`` the answer.

        A push is what a feature adds to the score of a part if it is chosen, and takes from it if it is not.
        """
        ((_, _, result),) = self._infer([x])
        ((_, parts, features),) = self._read([x])
        chosen, p = parts.best(features.forward(self.parameters_)), result.marginals[0]
        shares = [features.forward(part) for part in np.diag(self.parameters_)]
        entries = []
        for k in range(parts.size):
            rows = [(f"feature {j}", np.array([0.0, share[k]])) for j, share in enumerate(shares)]
            entries.append(explained(k, ["out", "in"], np.array([1.0 - p[k], p[k]]), rows, int(chosen[k]), what="part"))
        return Explanation(tuple(entries))

    @one_warning()
    def _infer(self, X: Examples) -> list[tuple[Parts, FloatArray, Result]]:
        """Scores of parts and what follows from them, of each example."""
        family, out = self._family(), []
        for i, (x, parts, features) in enumerate(self._read(X)):
            scores = features.forward(self.parameters_)
            result = infer_parts(parts, scores, family.measure(x, i, parts.size), float(self.inference_tol))
            report("engine frank_wolfe", result.status)
            out.append((parts, scores, result))
        return out

    def predict_marginals(self, X: Examples) -> list[FloatArray]:
        """The probability of each part of each example, with H for the entropy."""
        return [result.marginals[0] for _, _, result in self._infer(X)]

    @overload
    def log_likelihood(self, X: Examples, y: Sequence[ArrayLike], bounds: Literal[False] = False) -> FloatArray: ...
    @overload
    def log_likelihood(
        self, X: Examples, y: Sequence[ArrayLike], bounds: Literal[True]
    ) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def log_likelihood(
        self, X: Examples, y: Sequence[ArrayLike], bounds: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray, FloatArray]:
        """log p of each configuration with log Z_H for log Z; with `bounds` also numbers below and above the true one, -inf
        where none is known: ``(value, lower, upper)``. The upper one comes from the configurations that were met."""
        found = self._infer(X)
        chosen = read_configurations(y, [parts for parts, _, _ in found])
        rows = []
        for (_, scores, result), row in zip(found, chosen, strict=True):
            score = float(scores @ row)
            low = max(float(np.asarray(result.lower)[0]), score)  # it is one of them
            rows.append((score - float(result.log_z[0]), score - float(np.asarray(result.upper)[0]), score - low))
        values = np.array(rows).T
        return (values[0], values[1], values[2]) if bounds else values[0]

    def score(self, X: Examples, y: Sequence[ArrayLike]) -> float:
        """The F1 score of the parts that `predict` chooses: with as many parts in all configurations, the share it has
        right."""
        read = self._read(X)
        truth = np.concatenate(read_configurations(y, [parts for _, parts, _ in read]))
        found = np.concatenate([parts.best(f.forward(self.parameters_)) for _, parts, f in read])
        total = float(truth.sum() + found.sum())
        return 2.0 * float(truth @ found) / total if total else 1.0

    def standard_errors(self, method: str = "bootstrap", draws: int = 100, random_state: RandomState = None) -> FloatArray:
        """Standard errors of `parameters_`.

        Parameters
        ----------
        method : {"bootstrap"}
            Refits to resampled examples. Where a penalised fit has many effective parameters for its examples, its errors
            are too small, and a warning says so.
        draws, random_state
            Number of refits, and seed.
        """
        check_choice("method", method, METHODS)
        if method != "bootstrap":
            raise ValueError(
                f"method={method!r} needs the curvature of log Z, the covariance of configurations, and all that is known "
                "here are best configurations: use method='bootstrap'"
            )
        return self._bootstrap(draws, random_state)

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(self, "parameters_", "gap_", "n_oracle_calls_", "upper_bound_", *RUN):
            check_array(self, "parameters_", (None,))
            check_number(self, "gap_")
            check_bool(self, "upper_bound_")
            check_run(self)

"""Conditional distributions over matchings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.contracts.progress import DualPoint
from ...core.errors import ModelFileError
from ...core.parameters import Check, count, flag, real, threads, verbosity
from ...core.results import FloatArray, IntArray
from ...core.types import MatchingLike, SampleWeight, SolverLike
from ...core.validation import check_real, check_weights
from ...estimators.convergence import certified_gap, unsettled
from ...estimators.data import ListInput
from ...estimators.loaded import RUN, check_array, check_number, check_run, check_text, is_fitted
from ...estimators.trained import Trained, solver_like, training
from ..data import Batch, read_examples, read_matchings
from ..objective.likelihood import Group, MatchingLikelihood

#: What users bring: examples, and who is matched with whom in each.
Examples = Sequence[MatchingLike] | NDArray[Any]
Matchings = Sequence[ArrayLike] | NDArray[Any]


def _above_zero(name: str, value: Any) -> None:
    """A penalty without which there is no certificate."""
    if not check_real(name, value, minimum=0.0) > 0.0:
        raise ValueError(f"{name} must be above zero: the dual of Bethe learning, which certifies the fit, divides by it")


class MatchingCRF(ListInput, Trained):
    """p(y | x) over matchings y, proportional to exp of the sum of the weights of its edges, which are linear in features.

    Minimises ``sum_i w_i (log Z_rho(x_i) - score(x_i, y_i)) + (l2 / 2) ||theta||^2``. log Z itself is out of reach; that of
    rho is the largest of a concave free energy, so that training is convex and says how far from its optimum it can be.

    Parameters
    ----------
    perfect : bool
        Every vertex is matched. Else vertices may stay alone (only with ``bipartite=False``).
    rho : float from 1/2 to 1
        Weights of the entropies: 1 is Bethe's free energy, 1/2 the plain entropy, which is above log Z.
    l2 : float, default 1.0
        Strength of the quadratic penalty, above zero: without it there is no certificate.
    bipartite : bool
        Rows are matched with columns. Else all vertices are of one kind.
    solver : str or solver object, default "auto"
        ``"auto"``, ``"lbfgs"``, ``"cg"``, ``"steepest"``, or ``"block_frank_wolfe"`` (see `BlockFrankWolfe`), which needs
        best matchings only to learn. With ``bipartite=False`` it maximises over means of matchings, and certifies that;
        others do over all numbers of edges with degrees of one, a larger set.
    max_iter : int
        Most iterations of the solver.
    tol : float
        Stop when the objective is certainly at most so much above its minimum, for each vertex of the data.
    warm_start : bool
        Start from the last fit, if it has as many parameters.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.

    Attributes
    ----------
    parameters_ : array
        A weight for each feature; for features of vertices a matrix, see Notes.
    gap_ : float
        The objective is at most so much above its minimum.
    n_oracle_calls_ : int
        With ``solver="block_frank_wolfe"``, how often best matchings were asked for.
    n_iter_, trace_, status_

    Notes
    -----
    X is a list of examples, of any sizes:

    - an array of shape (features, n, n): edge (i, j) has the features ``x[:, i, j]``. With ``bipartite=False`` the matrices
      must be symmetric;
    - ``{"edges": pairs, "features": matrix}`` with a row of features for each pair (not bipartite), and ``"n_vertices"`` if
      the last vertices have no edge;
    - ``{"rows": matrix, "columns": matrix}``, or ``{"nodes": matrix}`` if not bipartite: features of vertices. The weight of
      edge (i, j) is then ``x_i' T z_j``, and the parameters are the matrix T.

    y is a list of matchings: for each row its column, or for each vertex its partner (-1 for none), or pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import MatchingCRF
    >>> X = np.random.default_rng(0).normal(size=(20, 2, 5, 5))
    >>> X[:, 0] += 2 * np.eye(5)  # who belongs together has a high first feature
    >>> y = [np.arange(5)] * 20
    >>> model = MatchingCRF().fit(X, y)
    >>> model.predict(X[:1])
    [array([0, 1, 2, 3, 4])]
    >>> bool(model.parameters_[0] > 1.0 > abs(model.parameters_[1]))
    True
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "perfect": flag,
        "rho": real(0.5, 1.0),
        "l2": _above_zero,
        "bipartite": flag,
        "solver": solver_like,
        "max_iter": count(),
        "tol": real(0.0, strict=True),
        "warm_start": flag,
        "n_jobs": threads,
        "verbose": verbosity,
    }

    parameters_: FloatArray
    kind_: str
    gap_: float

    def __init__(
        self,
        perfect: bool = True,
        rho: float = 1.0,
        l2: float = 1.0,
        bipartite: bool = True,
        solver: SolverLike = "auto",
        max_iter: int = 1000,
        tol: float = 1e-8,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.perfect = perfect
        self.rho = rho
        self.l2 = l2
        self.bipartite = bipartite
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_combinations(self) -> None:
        if self.bipartite and not self.perfect:
            raise ValueError(
                "matchings that need not be perfect take bipartite=False, with edges between the two sides only"
            )

    @training
    def fit(self, X: Examples, y: Matchings, sample_weight: SampleWeight = None) -> Self:
        """Fit to examples X and their matchings y. A failed fit changes nothing."""
        batches, shape, kind = self._read(X)
        objective: Any = self._objective(batches, y, sample_weight)
        target = self.tol * objective.scale  # for each vertex
        solution = self._minimize(objective, self._start(objective.size), tol=0.0, gap_tol=target)
        self.parameters_ = np.array(solution.parameters).reshape(shape)
        self.kind_, self.gap_ = kind, certified_gap(solution.point)
        self._store_run(solution)
        self._forget("n_oracle_calls_")
        also = ""
        if isinstance(solution.point, DualPoint):  # best matchings only: no messages were passed
            self.n_oracle_calls_ = solution.point.n_calls
        else:
            also = unsettled(*(result for _, result in solution.point.found))
        if not also and self.gap_ > target:
            also = f"ended with a certificate of {self.gap_:.1e}, above tol for each vertex ({target:.1e})"
        self._warn_if_short(solution, also)
        return self

    def _objective(self, batches: list[Batch], y: Matchings, sample_weight: SampleWeight) -> MatchingLikelihood:
        matchings = read_matchings(y, batches)
        weights = check_weights("sample_weight", sample_weight, sum(len(batch.places) for batch in batches))
        groups = [
            Group(batch.structure, batch.features, batch.structure.indicators(rows), weights[batch.places])
            for batch, rows in zip(batches, matchings, strict=True)
        ]
        # Probabilities are right to the root of the certificate only, and the gap has the square of the gradient.
        return MatchingLikelihood(groups, float(self.l2), float(self.rho), tol=max(1e-3 * self.tol, 1e-13))

    def _start(self, size: int) -> FloatArray | None:
        """Where the last fit ended, if it had as many parameters."""
        if not self.warm_start or not hasattr(self, "parameters_") or self.parameters_.size != size:
            return None
        return np.ravel(self.parameters_)

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(self, "parameters_", "kind_", "gap_", *RUN):
            kinds = {"edges": 1, "nodes": 2}
            if check_text(self, "kind_") not in kinds:
                raise ModelFileError(f"kind_ must be one of {', '.join(kinds)}, got {self.kind_!r}")
            check_array(self, "parameters_", (None,) * kinds[self.kind_])
            check_number(self, "gap_")
            check_run(self)

    def _read(self, X: Examples) -> tuple[list[Batch], tuple[int, ...], str]:
        return read_examples(X, self.bipartite, self.perfect, self.n_jobs)

    def _weights(self, X: Examples) -> list[tuple[Batch, FloatArray]]:
        """New examples by graph, and the weights of their edges."""
        check_is_fitted(self)
        batches, shape, kind = self._read(X)
        if (shape, kind) != (self.parameters_.shape, self.kind_):
            raise ValueError(f"X must have {self.kind_} with {self.parameters_.shape} features, got {kind} with {shape}")
        theta = self.parameters_.ravel()
        return [(batch, batch.features.forward(theta)) for batch in batches]

    def _in_order(self, parts: Sequence[tuple[Batch, Any]]) -> list[NDArray[Any]]:
        """A row for each example, in the order of the examples."""
        out = {place: row for batch, rows in parts for place, row in zip(batch.places, rows, strict=True)}
        return [out[place] for place in range(len(out))]

    def predict(self, X: Examples) -> list[IntArray]:
        """The most probable matching of each example: for each row its column, or for each vertex its partner."""
        return self._in_order([(batch, batch.structure.best(W)) for batch, W in self._weights(X)])

    def predict_marginals(self, X: Examples) -> list[FloatArray]:
        """The probability of each edge: a matrix, symmetric if not bipartite, or a vector where edges were given."""
        found = []
        for batch, W in self._weights(X):
            tau = batch.structure.free_energy(W, rho=float(self.rho)).marginals
            found.append((batch, batch.structure.as_given(tau)))
        return self._in_order(found)

    def score(self, X: Examples, y: Matchings) -> float:
        """The share of rows (or vertices) that `predict` gives the right partner."""
        parts = self._weights(X)
        right = total = 0
        for (batch, W), rows in zip(parts, read_matchings(y, [batch for batch, _ in parts]), strict=True):
            right += int((batch.structure.best(W) == rows).sum())
            total += rows.size
        return right / total

    @overload
    def log_likelihood(self, X: Examples, y: Matchings, bounds: Literal[False] = False) -> FloatArray: ...
    @overload
    def log_likelihood(
        self, X: Examples, y: Matchings, bounds: Literal[True]
    ) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def log_likelihood(
        self, X: Examples, y: Matchings, bounds: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray, FloatArray]:
        """log p of each matching with log Z_rho for log Z; with `bounds` also numbers below and above the true one, which
        are infinite where none are known: ``(value, lower, upper)``."""
        parts = self._weights(X)
        found = []
        for (batch, W), rows in zip(parts, read_matchings(y, [batch for batch, _ in parts]), strict=True):
            result = batch.structure.free_energy(W, rho=float(self.rho))
            score = (batch.structure.indicators(rows) * W).sum(1)
            lower, upper = np.asarray(result.lower), np.asarray(result.upper)
            if bounds and self.rho != 0.5:
                upper = np.minimum(upper, np.asarray(batch.structure.free_energy(W, rho=0.5).upper))
            found.append((batch, np.column_stack([score - result.log_z, score - upper, score - lower])))
        values = np.array(self._in_order(found)).T
        return (values[0], values[1], values[2]) if bounds else values[0]

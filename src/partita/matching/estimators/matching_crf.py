"""Conditional distributions over matchings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.contracts.progress import DualPoint
from ...core.errors import ModelFileError
from ...core.parameters import Check, choice, count, flag, instance, real, threads, verbosity
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Solution, Status
from ...core.types import MatchingLike, RandomState, SampleWeight, SolverLike
from ...core.validation import check_count, check_level, check_weights
from ...core.warn import one_warning, warn
from ...estimators.convergence import certified_gap, unsettled
from ...estimators.data import ListInput
from ...estimators.loaded import RUN, check_array, check_number, check_run, check_text, is_fitted
from ...estimators.trained import Trained, solver_like, training
from ...objectives.information import warn_of_many_weights
from ...report.tables import CoefficientTable
from ...solvers.frank_wolfe import BlockFrankWolfe
from ..data import Batch, Layout, Reading, read_examples, read_matchings
from ..objective.exact import ExactMatchingLikelihood, is_cheap, matching_errors, separated
from ..objective.likelihood import Group, MatchingLikelihood

#: What users bring: examples, and who is matched with whom in each.
Examples = Sequence[MatchingLike] | NDArray[Any]
Matchings = Sequence[ArrayLike] | NDArray[Any]
#: What log Z is.
LIKELIHOODS = ("auto", "full", "bethe")


class MatchingCRF(ListInput, Trained):
    """p(y | x) over matchings y, proportional to exp of the sum of the weights of its edges, which are linear in features.

    Minimises ``sum_i w_i (log Z(x_i) - score(x_i, y_i)) + (l2 / 2) ||theta||^2``. log Z is exact where that is cheap. Else
    it is that of rho, the largest of a concave free energy, so that training is convex and says how far from its optimum it
    can be; on few vertices that is far off (of two rows and two columns it knows no more than the best matching).

    Parameters
    ----------
    likelihood : {"auto", "full", "bethe"}
        ``"full"``: exact sums over the sets of vertices of the smaller side (of all vertices, if not bipartite), up to 24.
        ``"bethe"``: free energies. ``"auto"``: exact if all examples together take less than about .3 s for an evaluation on
        one core (10,000 examples of 12 x 12, 470 of 16 x 16, 24 of 20 x 20), and neither `rho` nor the solver asks for free
        energies. One choice for all examples of a fit, small and large: `likelihood_`.
    allow_unmatched : bool
        Rows and columns (or vertices) may stay alone, with weights of their own: see Notes. Else all vertices of the smaller
        side are matched, or all vertices if not bipartite.
    rho : float from 1/2 to 1
        Weights of the entropies, for ``"bethe"``: 1 is Bethe's free energy, 1/2 the plain entropy, which is above log Z.
        (Where all vertices are matched, different ones for rows and columns would be the same as their mean for both.)
    l2 : float, default 1.0
        Strength of the quadratic penalty. Above zero for ``"bethe"``, whose certificate divides by it; at zero ``"full"``
        has no certificate, `gap_` is inf, and `tol` is for the gradient.
    bipartite : bool
        Rows are matched with columns. Else all vertices are of one kind.
    solver : str or solver object, default "auto"
        ``"auto"``, ``"lbfgs"``, ``"cg"``, ``"steepest"``; ``"newton"`` for ``"full"``; or ``"block_frank_wolfe"`` (see
        `BlockFrankWolfe`), which needs best matchings only to learn by ``"bethe"``. With ``bipartite=False`` it maximises
        over means of matchings, and certifies that; others do over all numbers of edges with degrees of one, a larger set.
    max_iter : int
        Most iterations of the solver.
    tol : float
        Stop when the objective is certainly at most so much above its minimum, for each vertex of the data.
    inference_tol : float, optional
        For ``"bethe"``: certificate of inference, for each vertex. Default: a thousandth of `tol`.
    inference_max_iter : int
        For ``"bethe"``: most sweeps of messages.
    warm_start : bool
        Start from the last fit, if it has as many parameters.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.
    perfect : bool, optional
        The old name of ``not allow_unmatched``, for one release.

    Attributes
    ----------
    parameters_ : array
        A weight for each feature of edges; for features of vertices a matrix, see Notes.
    row_parameters_, column_parameters_ : arrays
        Weights of staying alone: of rows (or of vertices, if not bipartite) and of columns. Empty where none may.
    parameter_names_ : list of str
        Of all parameters, in the order of `standard_errors`: those of edges, of rows, of columns.
    likelihood_ : str
        ``"full"`` or ``"bethe"``.
    gap_ : float
        The objective is at most so much above its minimum.
    n_oracle_calls_ : int
        With ``solver="block_frank_wolfe"``, how often best matchings were asked for.
    n_iter_, trace_, status_

    Notes
    -----
    X is a list of examples, of any sizes:

    - an array of shape (features, n, m), or ``{"features": array}``: edge (i, j) has the features ``x[:, i, j]``. With
      ``bipartite=False`` the matrices must be symmetric;
    - ``{"edges": pairs, "features": matrix}`` with a row of features for each pair (not bipartite), and ``"n_vertices"`` if
      the last vertices have no edge;
    - ``{"rows": matrix, "columns": matrix}``, or ``{"nodes": matrix}`` if not bipartite: features of vertices. The weight of
      edge (i, j) is then ``x_i' T z_j``, and the parameters are the matrix T.

    A dict may also have ``"forbidden"``, True for pairs that cannot be, whose features do not matter: of shape (n, m), or
    (edges,) if edges are given. And with ``allow_unmatched=True``, features of staying alone: ``"row_features"``, (features,
    n), and ``"column_features"``, (features, m), or ``"vertex_features"`` if not bipartite. With two sides and none given
    there is one weight, for each row that stays alone (where one more is alone, so is one more column: a weight of columns
    would add nothing). Give a row of ones among your own to have it too. The penalty is on all parameters, this one too.
    A side may then also have no vertex at all.

    y is a list of matchings: for each row its column, or for each vertex its partner (-1 for none), or pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import MatchingCRF
    >>> X = np.random.default_rng(0).normal(size=(20, 2, 5, 5))
    >>> X[:, 0] += 2 * np.eye(5)  # who belongs together has a high first feature
    >>> y = [np.arange(5)] * 20
    >>> model = MatchingCRF().fit(X, y)
    >>> model.likelihood_, model.predict(X[:1])
    ('full', [array([0, 1, 2, 3, 4])])
    >>> bool(model.parameters_[0] > 1.0 > abs(model.parameters_[1]))
    True

    Four rows, three of which have one of five columns:

    >>> y = [np.array([0, 1, 2, -1])] * 20
    >>> model = MatchingCRF(allow_unmatched=True).fit(X[:, :, :4], y)
    >>> model.parameter_names_
    ['edges[0]', 'edges[1]', 'row alone[0]']
    >>> model.predict_marginals(X[:1, :, :4])[0].shape
    (4, 5)
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "likelihood": choice(*LIKELIHOODS),
        "allow_unmatched": flag,
        "rho": real(0.5, 1.0),
        "l2": real(0.0),
        "bipartite": flag,
        "solver": solver_like,
        "max_iter": count(),
        "tol": real(0.0, strict=True),
        "inference_tol": real(0.0, strict=True, optional=True),
        "inference_max_iter": count(1),
        "warm_start": flag,
        "n_jobs": threads,
        "verbose": verbosity,
        "perfect": instance(bool, what="True, False or None"),
    }
    TRANSIENT: ClassVar[tuple[str, ...]] = ("_point",)

    parameters_: FloatArray
    row_parameters_: FloatArray
    column_parameters_: FloatArray
    likelihood_: str
    kind_: str
    gap_: float

    def __init__(
        self,
        likelihood: str = "auto",
        allow_unmatched: bool = False,
        rho: float = 1.0,
        l2: float = 1.0,
        bipartite: bool = True,
        solver: SolverLike = "auto",
        max_iter: int = 1000,
        tol: float = 1e-8,
        inference_tol: float | None = None,
        inference_max_iter: int = 5000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        perfect: bool | None = None,
    ) -> None:
        self.likelihood = likelihood
        self.allow_unmatched = allow_unmatched
        self.rho = rho
        self.l2 = l2
        self.bipartite = bipartite
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.inference_tol = inference_tol
        self.inference_max_iter = inference_max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.perfect = perfect

    def _check_combinations(self) -> None:
        if self.likelihood == "bethe" and not self.l2 > 0.0:
            raise ValueError("l2 must be above zero: the dual of Bethe learning, which certifies the fit, divides by it")
        if self.likelihood == "full" and self.rho != 1.0:
            raise ValueError(f"rho={self.rho:g} is for likelihood='bethe': the exact likelihood has no entropies to weigh")
        if self.likelihood == "full" and self._asks_for_blocks:
            raise ValueError("solver 'block_frank_wolfe' learns by best matchings, which is for likelihood='bethe' only")

    @property
    def _asks_for_blocks(self) -> bool:
        return self.solver == BlockFrankWolfe.key or isinstance(self.solver, BlockFrankWolfe)

    @training
    def fit(self, X: Examples, y: Matchings, sample_weight: SampleWeight = None) -> Self:
        """Fit to examples X and their matchings y. A failed fit changes nothing."""
        if self.perfect is not None:
            old, new = f"perfect={self.perfect}", f"allow_unmatched={not self.perfect}"
            warn(f"{old} is {new} now; the old name goes with the next release", FutureWarning)
        batches, layout = self._read(X)
        objective = self._objective(batches, y, sample_weight)
        target = self.tol * objective.scale  # for each vertex
        certified = self.l2 > 0.0
        start, tol = self._start(objective.size), 0.0 if certified else self.tol
        solution = self._minimize(objective, start, tol=tol, gap_tol=target if certified else None)
        point: Any = solution.point
        self.parameters_, self.row_parameters_, self.column_parameters_ = layout.split(solution.parameters)
        self.kind_, self.gap_ = layout.kind, certified_gap(point)
        self.likelihood_ = "full" if isinstance(objective, ExactMatchingLikelihood) else "bethe"
        self._forget("_point", "n_oracle_calls_")
        if self.likelihood_ == "full":
            self._point = point  # for standard errors
        self._finish(solution, target)
        return self

    def _finish(self, solution: Solution, target: float) -> None:
        """Keep how the run went, and warn if it did not go well."""
        point: Any = solution.point
        also = ""
        if isinstance(point, DualPoint):  # best matchings only: no messages were passed
            self.n_oracle_calls_ = point.n_calls
        else:
            also = unsettled(*(result for _, result in point.found))
        if self.likelihood_ == "full" and separated(point):
            solution = replace(solution, status=Status.UNBOUNDED)
        elif not also and self.l2 > 0.0 and self.gap_ > target:
            also = f"ended with a certificate of {self.gap_:.1e}, above tol for each vertex ({target:.1e})"
        self._store_run(solution)
        self._warn_if_short(solution, also)

    def _objective(
        self, batches: list[Batch], y: Matchings, sample_weight: SampleWeight
    ) -> ExactMatchingLikelihood | MatchingLikelihood:
        matchings = read_matchings(y, batches)
        weights = check_weights("sample_weight", sample_weight, sum(len(batch.places) for batch in batches))
        groups = [
            Group(batch.structure, batch.features, batch.structure.indicators(rows), weights[batch.places], batch.forbidden)
            for batch, rows in zip(batches, matchings, strict=True)
        ]
        asked = self.rho != 1.0 or self._asks_for_blocks
        if self.likelihood == "full" or (self.likelihood == "auto" and not asked and is_cheap(groups)):
            for batch in batches:
                batch.structure.check_small("Choose likelihood='bethe'")
            return ExactMatchingLikelihood(groups, float(self.l2))
        if not self.l2 > 0.0:
            why = "rho and solver ask for it" if asked else "exact sums are not cheap here"
            raise ValueError(f"l2 must be above zero for likelihood='bethe' ({why}), or set likelihood='full'")
        if self._asks_for_blocks and any(group.forbidden is not None for group in groups):
            raise ValueError(
                "solver 'block_frank_wolfe' takes no forbidden edges: it begins at a mean of matchings that have every edge."
                " Choose solver='auto', or give the edges there are with bipartite=False"
            )
        # Probabilities are right to the root of the certificate only, and the gap has the square of the gradient.
        tol = max(1e-3 * self.tol, 1e-13) if self.inference_tol is None else self.inference_tol
        return MatchingLikelihood(groups, float(self.l2), float(self.rho), tol=tol, max_iter=self.inference_max_iter)

    @property
    def _theta(self) -> FloatArray:
        return np.concatenate([self.parameters_.ravel(), self.row_parameters_, self.column_parameters_])

    @property
    def _layout(self) -> Layout:
        return Layout(self.kind_, self.parameters_.shape, (len(self.row_parameters_), len(self.column_parameters_)))

    @property
    def parameter_names_(self) -> list[str]:
        check_is_fitted(self)
        alone = ("row alone", "column alone") if self.bipartite else ("vertex alone", "")
        named = ((self.kind_, self.parameters_), (alone[0], self.row_parameters_), (alone[1], self.column_parameters_))
        return [f"{name}{list(place)}" for name, part in named for place in np.ndindex(part.shape)]

    def _start(self, size: int) -> FloatArray | None:
        """Where the last fit ended, if it had as many parameters."""
        if not self.warm_start or not hasattr(self, "parameters_") or self._theta.size != size:
            return None
        return self._theta

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        fitted = ("parameters_", "row_parameters_", "column_parameters_", "likelihood_", "kind_", "gap_")
        if is_fitted(self, *fitted, *RUN):
            kinds = {"edges": 1, "nodes": 2}
            if check_text(self, "kind_") not in kinds:
                raise ModelFileError(f"kind_ must be one of {', '.join(kinds)}, got {self.kind_!r}")
            if check_text(self, "likelihood_") not in LIKELIHOODS[1:]:
                raise ModelFileError(f"likelihood_ must be one of {', '.join(LIKELIHOODS[1:])}, got {self.likelihood_!r}")
            check_array(self, "parameters_", (None,) * kinds[self.kind_])
            check_array(self, "row_parameters_", (None,))
            check_array(self, "column_parameters_", (None,))
            check_number(self, "gap_")
            check_run(self)

    def _read(self, X: Examples) -> tuple[list[Batch], Layout]:
        unmatched = self.allow_unmatched if self.perfect is None else not self.perfect
        return read_examples(X, Reading(self.bipartite, unmatched, self.n_jobs))

    def _weights(self, X: Examples) -> list[tuple[Batch, FloatArray]]:
        """New examples by graph, and the weights of their edges."""
        check_is_fitted(self)
        batches, layout = self._read(X)
        if layout != self._layout:
            raise ValueError(f"X must have {self._layout.describe()}, got {layout.describe()}")
        theta = self._theta
        return [(batch, batch.weights(theta)) for batch in batches]

    def _infer(self, batch: Batch, W: FloatArray, rho: float | None = None) -> Any:
        """log Z and marginals by the likelihood of the fit."""
        if self.likelihood_ == "full":
            batch.structure.check_small(
                "The model was fitted by exact sums, as is asked for here: fit it by likelihood='bethe'"
            )
            return batch.structure.free_energy(W)
        options: dict[str, Any] = {"rho": float(self.rho) if rho is None else rho, "max_iter": self.inference_max_iter}
        if self.inference_tol is not None:
            options["tol"] = self.inference_tol * batch.structure.n_vertices
        return batch.structure.free_energy(W, **options)

    def _in_order(self, parts: Sequence[tuple[Batch, Any]]) -> list[Any]:
        """An entry for each example, in the order of the examples."""
        out = {place: row for batch, rows in parts for place, row in zip(batch.places, rows, strict=True)}
        return [out[place] for place in range(len(out))]

    def predict(self, X: Examples) -> list[IntArray]:
        """The most probable matching of each example: for each row its column, for each vertex its partner; -1 for none."""
        return self._in_order([(batch, batch.rows(batch.structure.best(W))) for batch, W in self._weights(X)])

    @one_warning()
    def predict_marginals(self, X: Examples) -> list[FloatArray]:
        """The probability of each edge: a matrix, symmetric if not bipartite, or a vector where edges were given.

        What a row or column lacks to one is the probability that it stays alone.
        """
        found = []
        for batch, W in self._weights(X):
            found.append((batch, batch.matrices(self._infer(batch, W).marginals)))
        return self._in_order(found)

    def kbest(self, X: Examples, k: int) -> list[list[tuple[IntArray, float]]]:
        """Of each example, at most k matchings, most probable first, with their log-probabilities (Murty's algorithm)."""
        check_count("k", k, minimum=1)
        found = []
        for batch, W in self._weights(X):
            lists = []
            for row, log_z in zip(W, self._infer(batch, W).log_z.tolist(), strict=True):
                ((matchings, scores),) = batch.structure.kbest(self._given(batch, row), k)
                pairs = zip(batch.rows(matchings), scores.tolist(), strict=True)
                lists.append([(y, score - log_z) for y, score in pairs])
            found.append((batch, lists))
        return self._in_order(found)

    def sample(self, X: Examples, size: int = 1, random_state: RandomState = None) -> list[IntArray]:
        """`size` matchings of each example, arrays (size, rows): independent draws where exact sums are within reach (about
        20 vertices on the smaller side), else by a Markov chain."""
        parts, random = self._weights(X), generator(random_state)
        rows = {place: (batch, W[k]) for batch, W in parts for k, place in enumerate(batch.places)}
        ordered = (rows[place] for place in range(len(rows)))
        return [batch.rows(batch.structure.sample(self._given(batch, row), size, random)) for batch, row in ordered]

    def _given(self, batch: Batch, row: FloatArray) -> FloatArray:
        """The weights of one example as potentials of its structure."""
        structure = batch.structure
        return structure.as_given(row[None])[0] if structure.left else row

    def score(self, X: Examples, y: Matchings) -> float:
        """The share of rows (or vertices) that `predict` gives the right partner, or rightly none."""
        parts = self._weights(X)
        right = total = 0
        for (batch, W), rows in zip(parts, read_matchings(y, [batch for batch, _ in parts]), strict=True):
            same = batch.rows(batch.structure.best(W) == rows)
            right, total = right + int(same.sum()), total + same.size
        if not total:
            raise ValueError("X has no rows at all, and a score needs one")
        return right / total

    @overload
    def log_likelihood(self, X: Examples, y: Matchings, bounds: Literal[False] = False) -> FloatArray: ...
    @overload
    def log_likelihood(
        self, X: Examples, y: Matchings, bounds: Literal[True]
    ) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    @one_warning()
    def log_likelihood(
        self, X: Examples, y: Matchings, bounds: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray, FloatArray]:
        """log p of each matching, with log Z_rho for log Z if `likelihood_` is ``"bethe"``; with `bounds` also numbers below
        and above the true one, which are infinite where none are known: ``(value, lower, upper)``."""
        parts = self._weights(X)
        found = []
        for (batch, W), rows in zip(parts, read_matchings(y, [batch for batch, _ in parts]), strict=True):
            result = self._infer(batch, W)
            score = batch.structure.score_of(W, rows)
            lower, upper = np.asarray(result.lower), np.asarray(result.upper)
            if bounds and not result.exact and self.rho != 0.5:
                upper = np.minimum(upper, np.asarray(self._infer(batch, W, rho=0.5).upper))
            found.append((batch, np.column_stack([score - result.log_z, score - upper, score - lower])))
        values = np.array(self._in_order(found)).T
        return (values[0], values[1], values[2]) if bounds else values[0]

    def standard_errors(self, method: str = "sandwich") -> FloatArray:
        """Standard errors of all parameters, in the order of `parameter_names_`, for `likelihood_` ``"full"``.

        Parameters
        ----------
        method : {"sandwich", "information"}
            ``"sandwich"`` stays right when the model is wrong. ``"information"`` inverts the observed Fisher information
            (penalty included). Sample weights count as weights, squared in the sandwich, not as numbers of equal examples.
        """
        check_is_fitted(self)
        if self.likelihood_ != "full":
            raise ValueError(
                "standard errors need exact inference; likelihood 'bethe' maximises a surrogate, whose curvature says "
                "nothing about the spread of the estimates. Fit with likelihood='full', or bootstrap"
            )
        if not hasattr(self, "_point"):
            raise ValueError("standard errors need the training data, which copies and files do not keep: fit again")
        point: Any = self._point
        errors = matching_errors(point, method)
        warn_of_many_weights(len(errors), point.objective.n_examples, "examples", self.l2, "fewer features")
        return errors

    def summary(self, level: float = 0.95, method: str = "sandwich", top: int | None = None) -> CoefficientTable:
        """Estimate, standard error, z, p and confidence interval of every parameter, as a table to print.

        `method` is that of `standard_errors`; `top` keeps only so many rows, those with the largest absolute z.
        """
        check_level(level)
        errors = self.standard_errors(method)
        title = f"{type(self).__name__}, l2 = {self.l2:g}, {method} standard errors, {self.status_.name.lower()}"
        table = CoefficientTable.of(self.parameter_names_, self._theta, errors, level, title)
        return table if top is None else table.top(top)

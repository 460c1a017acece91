"""Penalised negative log-likelihood of factor graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.weights import held_down
from ...core.contracts.capabilities import Capability, Product
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_choice
from ...core.warn import holding
from ...objectives.bounds.quadratic import BOUNDED
from ...objectives.dual_blocks import DualBlocks
from ...objectives.expectation import em_step
from ...objectives.penalized import diagonal_scaling
from ...objectives.products import ProductModel
from ..engines.layout import layout
from ..engines.planar_ising import PlanarCovariance, check_no_fields
from ..features.tied_tables import TiedTables
from ..structure.covariance import EntryCovariance
from ..structure.evidence import Evidence
from ..structure.factor_graph import MIXED, FactorGraph
from .base import GraphObjective, GraphObjectivePoint
from .dual import graph_blocks
from .majorization import (
    DenseGraph,
    counting_numbers,
    factor_blocks,
    fits_tree,
    has_bound,
    reweighted_blocks,
    tree_bound,
)

#: Engines whose marginals are the gradient of their log Z: a likelihood, or a surrogate of one, can be built on them.
LIKELIHOOD_ENGINES = ("auto", "exact", "bp", "trw", "mean_field", "planar")
#: Engines whose log Z is convex, and those that can begin where they ended.
CONVEX, WARM = ("exact", "trw", "planar", MIXED), ("bp", "trw", MIXED)
#: Smallest part of the diagonal at uniform probabilities that counts: without l2, what vanishes would be scaled without end.
LEAST_CURVATURE = 0.01
#: Of messages that need not settle: the part of the last decrease of F, for each variable, by which they may still change,
#: and the most; and sweeps of one evaluation, after which it goes on in the next.
FORCING, LOOSEST, SWEEPS = 0.1, 0.02, 150
#: The power of the diagonal of the Hessian that scales steps.
POWER = 0.5


class GraphLikelihood(GraphObjective["GraphPoint"]):
    """``F(theta) = sum_i w_i (log Z_i - log Z_i(y_i)) + 1/2 sum_j penalty_j theta_j^2``, a sum over examples.

    ``Z_i(y_i)`` sums over the configurations that agree with the known states: when all are known its logarithm is their
    score, which is linear. The potentials are ``A theta + base``. Signs and scales are those of `Likelihood`.

    Examples come in one of two forms: a graph that is a union of an example each, with one row of states; or one graph with
    many rows of states, all with the same potentials. The latter costs one inference however many rows there are (and one
    on the unknown states of each row that has any).

    With an approximate engine, log Z and its gradient are the engine's: a surrogate likelihood. Unknown states are summed
    out exactly where that fits. Messages begin where those of the last evaluation ended.

    Parameters
    ----------
    features : TiedTables
        The map A and its graph.
    y : int array of shape (n_variables,) or (n_rows, n_variables)
        States; -1 where unknown, ``-2 - k`` where in row k of `sets`. With several rows the graph must be a single example.
    weights : array, optional
        Of the examples, or of the rows.
    penalty : float or array of shape (size,)
        The l2 of each parameter.
    base : array of shape (graph.size,), optional
        Added to all potentials; -inf forbids.
    engine : {"auto", "exact", "bp", "trw", "mean_field", "planar"}
        See `FactorGraph.infer`. ``"planar"`` takes weights that give no fields. Known states are fields for unknown ones, so
        that these must fit exact sums.
    options : dict, optional
        Of the engine.
    sets : bool array of shape (n_sets, most states), optional
        Sets of states, one of which is right.
    inexact : bool
        Messages need only settle as far as the last decrease of F tells a next one from noise. What they lack is part of the
        gap.
    """

    options: dict[str, Any]
    engine: str
    capabilities: frozenset[Capability]

    costly_rays = True

    def __init__(
        self,
        features: TiedTables,
        y: ArrayLike,
        *,
        weights: Any = None,
        penalty: float | FloatArray = 0.0,
        base: FloatArray | None = None,
        engine: str = "auto",
        options: Mapping[str, Any] | None = None,
        sets: NDArray[np.bool_] | None = None,
        inexact: bool = False,
    ) -> None:
        super().__init__(features, y, weights, penalty, base, sets)
        graph, states = self.graph, self.states
        check_choice("engine", engine, LIKELIHOOD_ENGINES)
        self.options = dict(options or {})
        self._given = engine, dict(self.options)
        self.engine, self._auto = graph.choose(engine, **self.options), engine == "auto"
        self._limit = {key: value for key, value in self.options.items() if key == "memory_limit"}
        if self._auto:
            self.options = self._options(self.engine)
        if self.options.get("tree_steps"):
            raise ValueError("tree_steps must be 0 in learning: with more, marginals are not the gradient of log Z")
        if self.engine in ("trw", MIXED):
            self.options |= {"lower": False, "certify": True}  # a lower bound takes most of the time, and nobody asks
        self._messages: dict[str, Any] = {}
        self._inexact, self._lowest, self._decrease = inexact and self.engine == "trw", np.inf, np.inf
        if self.engine == "exact":
            graph.tree(**self.options)  # refuses here, before any work, what does not fit
        if self.engine == "planar":
            check_no_fields(graph, features.matrix, self.base, **self.options)
        self.evidence: Evidence = Evidence(graph, states, sets)
        by_cell = self.weights.reshape(len(states), graph.n_examples)
        self.mass: FloatArray = by_cell.sum(0)  # of each example of the graph
        self.entry_mass: NDArray[Any] = np.repeat(self.mass[graph.factor_examples], np.diff(graph.offsets))
        self.rest_weights: FloatArray = by_cell[self.evidence.rest_rows, self.evidence.rest_examples]
        self.scale: float = float(held_down(self.weights).reshape(by_cell.shape).sum(0) @ np.bincount(graph.examples))
        counts = self.counts = self.evidence.counts(by_cell)
        self.observed: FloatArray = features.adjoint(counts)
        self.constant: float = 0.0
        if self.base is not None:
            self._check_possible(self.base)
            used = counts > 0.0
            self.constant = float(counts[used] @ self.base[used])
        self.hidden: FactorGraph | None = self.evidence.rest
        self.convex: bool = self.hidden is None and self.engine in CONVEX
        self.capabilities = frozenset({Capability.SMOOTH, Capability.PRECONDITIONER, Capability.BATCHES})
        if self.engine in ("exact", "planar"):
            self.capabilities |= {Capability.HESSIAN_PRODUCT, Capability.MODEL}
        if has_bound(self.engine, self.options) and (self.hidden is None or self._rest_engine in CONVEX):
            self.capabilities |= BOUNDED
        if self.hidden is not None:
            self.capabilities |= {Capability.EM_STEP}
        if self.engine == "trw" and self.has_gap:
            self.capabilities |= {Capability.BLOCKS}

    def _check_possible(self, base: FloatArray) -> None:
        """Known states must not be forbidden."""
        sums = self.evidence.settled(np.where(base == -np.inf, -1.0, 0.0))
        if (sums < 0.0).any():
            i = int(np.argmax(sums.ravel() < 0.0))
            raise ValueError(f"y has a forbidden configuration in example {i}: the tables give it probability zero")

    @cached_property
    def dense(self) -> DenseGraph | None:
        """The features written out, if bounds are those of the junction tree, as matrices."""
        if self.engine != "exact" or not fits_tree(self.features, self.mass, self.options):
            return None
        return DenseGraph(self.features, float(self.mass[0]))

    @property
    def masses(self) -> FloatArray:
        """The weighted number of variables of each example."""
        sizes = np.bincount(self.graph.examples)
        return np.asarray(self.weights * (sizes if len(sizes) > 1 else float(sizes[0])))

    def part(self, rows: IntArray) -> GraphLikelihood:
        rows = np.sort(rows)
        features, states, base = self.some(rows)
        engine, options = self._given if self.engine == MIXED else (self.engine, self.options)
        return GraphLikelihood(features, states, weights=self.weights[rows], base=base, engine=engine, options=options)

    def evaluate(self, theta: FloatArray) -> tuple[float, tuple[FloatArray]]:
        point = self.at(theta)
        return point.value, (point.residual - self.counts,)

    @cached_property
    def counting_numbers(self) -> FloatArray:
        """Those of the table of each factor, with a tree-reweighted engine."""
        return counting_numbers(self.graph, self.engine, self.options)

    def infer(self, u: FloatArray) -> Result:
        """log Z and marginals of the whole graph."""
        return self._run("all", self.graph, u, self.engine)

    def _options(self, engine: str) -> dict[str, Any]:
        """Of the options, those that an engine takes."""
        others = {key: value for key, value in self.options.items() if key != "memory_limit"}
        return self._limit if engine == "exact" else others | self._limit if engine == MIXED else others

    def _run(self, name: str, graph: FactorGraph, u: FloatArray, engine: str) -> Result:
        options = self.options if engine == self.engine else self._options(engine)
        if engine in WARM:
            options = options | {"messages": self._messages.get(name)}
        if self._inexact:
            options["tol"] = max(options.get("tol", 0.0), min(FORCING * self._decrease / self.scale, LOOSEST))
            options["max_iter"] = min(options.get("max_iter", SWEEPS), SWEEPS)
        with holding():  # not at every evaluation: the result says it, and estimators do at the end
            result = graph.infer(u, engine, **options)
        self._messages[name] = result.messages
        return result

    def infer_rest(self, u: FloatArray) -> Result | None:
        """The same of the unknown states, given the known ones."""
        rest = self.hidden
        if rest is None:
            return None
        return self._run("rest", rest, u[self.evidence.index], self._rest_engine)

    @cached_property
    def _rest_engine(self) -> str:
        rest = self.evidence.rest
        if rest is None or self.engine == "exact":
            return self.engine
        if self.engine == "planar":
            rest.tree(**self._limit)
            return "exact"
        chosen = rest.choose("auto", **self._limit)
        return chosen if self._auto or chosen == "exact" else self.engine

    @cached_property
    def least_diagonal(self) -> FloatArray:
        """A floor under the diagonal of the Hessian where that scales steps."""
        return np.maximum(LEAST_CURVATURE * self.uniform_diagonal, 1e-12)

    @cached_property
    def uniform_diagonal(self) -> FloatArray:
        """The diagonal of the Hessian of the loss, as if factors were independent and uniform."""
        sizes = np.repeat(np.diff(self.graph.offsets), np.diff(self.graph.offsets))
        return self.features.variances(1.0 / sizes, self.entry_mass)

    def blocks(self, oracle: Callable[..., Any] | None = None) -> DualBlocks:
        """The dual of the tree-reweighted likelihood, at its start; `oracle` makes MAP solvers from graphs."""
        blocks = graph_blocks(self.features, self.states, self.mass, self.base, self.options, oracle)
        settled, constant = np.zeros(self.graph.size), self.constant  # tables of variables with one state are in no block
        places = layout(self.graph).constants
        settled[places] = self.entry_mass[places]
        if self.base is not None:
            constant -= float(settled[places] @ self.base[places])
        return DualBlocks(blocks, self.observed - self.features.adjoint(settled), self.penalty, constant, self.graph.workers)

    def expecting(self, statistics: FloatArray) -> GraphLikelihood:
        """The likelihood of the same examples whose observed features, summed with weights, are these."""
        twin = copy.copy(self)
        twin.hidden, twin.convex, twin.observed = None, self.engine in CONVEX, statistics
        twin._messages = {"all": self._messages.get("all")}
        return twin

    def of(
        self, features: TiedTables, y: ArrayLike, base: FloatArray | None, sets: NDArray[np.bool_] | None = None
    ) -> GraphLikelihood:
        """The likelihood of other examples, with weight one and no penalty."""
        return GraphLikelihood(features, y, base=base, engine=self.engine, sets=sets, options=self._limit)

    def with_potentials(self, theta: FloatArray, u: FloatArray) -> GraphPoint:
        return GraphPoint(self, theta, u)

    def settle(self) -> None:
        """From now on messages settle as far as `options` say."""
        self._inexact = False

    def seen(self, value: float) -> None:
        """Set how far messages have to settle next: half as far as before if F has not decreased."""
        if value < self._lowest:
            self._decrease = self._lowest - value if np.isfinite(self._lowest) else np.inf
            self._lowest = value
        else:
            self._decrease *= 0.5


class GraphPoint(GraphObjectivePoint):
    """The likelihood at one parameter vector."""

    parameters: FloatArray
    u: FloatArray
    result: Result
    rest: Result | None

    objective: GraphLikelihood

    def __init__(self, objective: GraphLikelihood, theta: FloatArray, u: FloatArray) -> None:
        self.objective, self.parameters, self.u = objective, theta, u
        o = objective
        self.result, self.rest = o.infer(u), o.infer_rest(u)
        value = float((o.mass * self.result.free_energy).sum()) - float((o.observed * theta).sum()) - o.constant
        if self.rest is not None:
            value -= float((o.rest_weights * self.rest.free_energy).sum())
        self.value: float = value + o.penalty_value(theta)
        o.seen(self.value)

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        return o.features.adjoint(self.residual) - o.observed + o.penalty_gradient(self.parameters)

    @property
    def residual(self) -> FloatArray:
        """How often entries are expected, less what is expected of them given what is known, where some of it is not."""
        expected = self.objective.entry_mass * self.result.marginals
        return np.asarray(expected if self.rest is None else expected - self._spread(self.rest.marginals))

    def _spread(self, values: FloatArray) -> FloatArray:
        """Numbers for the entries of what is unknown, weighted, at their places in the whole."""
        o = self.objective
        rest = o.evidence.rest
        assert rest is not None
        weights = np.repeat(o.rest_weights[rest.factor_examples], np.diff(rest.offsets))
        sums = np.bincount(o.evidence.index, weights=weights * values, minlength=o.graph.size)
        return np.asarray(sums, dtype=np.float64)

    def em_step(self) -> FloatArray:
        """The parameters that fit the states that are expected here, where they are not known."""
        return em_step(self.objective, self)

    @property
    def slack(self) -> float:
        """The certificates of inference."""
        found = self.result.certificate
        return 0.0 if found is None else float(self.objective.mass @ found)

    @cached_property
    def _covariance(self) -> EntryCovariance | PlanarCovariance:
        o = self.objective
        return (PlanarCovariance if o.engine == "planar" else EntryCovariance)(o.graph, self.u, **o.options)

    @cached_property
    def _rest_covariance(self) -> EntryCovariance | None:
        rest = self.objective.evidence.rest
        return None if rest is None else EntryCovariance(rest, self.u[self.objective.evidence.index])

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v, where H is the curvature of log Z and the penalty: above the Hessian where states are unknown."""
        return lambda v: self._product(v, observed=False)

    def information_product(self) -> Product:
        """v -> H v with the Hessian itself, what unknown states take from it included."""
        return lambda v: self._product(v, observed=True)

    def _product(self, v: FloatArray, observed: bool) -> FloatArray:
        o = self.objective
        image = o.features.forward(v)
        moved = o.entry_mass * self._covariance.product(image)
        if observed and self._rest_covariance is not None:
            moved -= self._spread(self._rest_covariance.product(image[o.evidence.index]))
        return o.features.adjoint(moved) + o.penalty * v

    def model(self, kind: str) -> Any:
        """The Hessian as a quadratic that is known by its products, or a quadratic above F.

        That is the one of the junction tree (`graph_bound`) where it is formed as a matrix, else by Hölder's inequality.
        """
        dense = self.objective.dense
        if kind == "hessian":
            return ProductModel(self.parameters, self.value, self.gradient, self.hessian_product(), self.preconditioner())
        return super().model(kind) if dense is None else tree_bound(self, dense, kind)

    def curvature_above(self, kind: str) -> tuple[Product, FloatArray]:
        """By Hölder's inequality over the factors of each example, or those of each tree that is a part of log Z."""
        o = self.objective
        given = (o.graph, self.u, self.result.marginals, o.mass, kind)
        approximate = o.engine in ("trw", MIXED)
        blocks = reweighted_blocks(*given, o.counting_numbers) if approximate else factor_blocks(*given)
        diagonal = o.features.squared(blocks.diagonal())
        return lambda v: o.features.adjoint(blocks.product(o.features.forward(v))), diagonal

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of the Hessian, as if factors were independent."""
        o = self.objective
        return np.maximum(o.features.variances(self.result.marginals, o.entry_mass) + o.penalty, 1e-12)

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> v over the square root of the diagonal of the Hessian."""
        return diagonal_scaling(self.diagonal, self.objective.least_diagonal, POWER)

    def score_chunks(self) -> Iterator[FloatArray]:
        """Gradients of the weighted log-likelihood of each example, (examples, parameters): in one piece."""
        o, e = self.objective, self.objective.evidence
        g, A = o.graph, o.features.matrix
        owner = g.factor_examples
        row, factor, entry = e.settled_cells
        cells, entries, values = [row * g.n_examples + owner[factor]], [entry], [np.ones(len(entry))]
        if e.rest is not None and self.rest is not None:
            example = np.repeat(e.rest.factor_examples, np.diff(e.rest.offsets))
            cells.append(e.rest_rows[example] * g.n_examples + e.rest_examples[example])
            entries.append(e.index)
            values.append(self.rest.marginals)
        expected: FloatArray | float = 0.0
        if g.n_examples > 1:
            cells.append(np.repeat(owner, np.diff(g.offsets)))
            entries.append(np.arange(g.size))
            values.append(-self.result.marginals)
        else:
            expected = o.features.adjoint(self.result.marginals)
        where = (np.concatenate(cells), np.concatenate(entries))
        M = sp.csr_matrix((np.concatenate(values), where), shape=(o.n_examples, g.size))
        yield np.asarray(o.weights[:, None] * ((M @ A).toarray() - expected))

"""What majorization asks of likelihoods of factor graphs: a quadratic above log Z, as a matrix or by its products."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ...objectives.bounds.blocks import BlockCurvature, joined, softmax_blocks
from ...softmax import PartitionBound
from ..bounds import graph_bound
from ..engines.counting_numbers import N_TREES, tree_numbers
from ..engines.layout import layout
from ..features.tied_tables import TiedTables
from ..structure.factor_graph import MIXED, FactorGraph
from .base import GraphObjectivePoint

#: Parameters and operations up to which the bound is that of the junction tree, formed as a matrix.
DENSE_PARAMETERS, DENSE_OPERATIONS = 300, 3e9
#: Engines whose log Z has a quadratic above it.
BOUNDED_ENGINES = ("exact", "planar", "trw", MIXED)


def has_bound(engine: str, options: Mapping[str, Any]) -> bool:
    """Whether there is a quadratic above log Z: not above that of loopy belief propagation, which need not be convex nor
    unique, nor of mean field, which has kinks. With joint states tables are split, and have no marginals of their own."""
    return engine in BOUNDED_ENGINES and not options.get("joint")


class DenseGraph:
    """A graph whose examples are one, with its features written out."""

    def __init__(self, features: TiedTables, weight: float) -> None:
        graph = features.graph
        self.graph: FactorGraph = FactorGraph(graph.cardinalities, graph.factors, n_jobs=graph.n_jobs)
        self.weight: float = weight
        self._matrix = features.matrix

    @cached_property
    def features(self) -> FloatArray:
        return np.asarray(self._matrix.toarray())


def fits_tree(features: TiedTables, mass: FloatArray, options: Mapping[str, Any]) -> bool:
    """Whether the bound of the junction tree is the better one, and cheap: few parameters, examples of equal weight, and
    separators with fewer states, over which it sums curvatures, than there are factors, over which the other does."""
    graph = features.graph
    if np.ptp(mass) > 0.0 or features.size > DENSE_PARAMETERS:
        return False
    tree = graph.tree(**options)
    if float(tree.work[-1]) * features.size**2 > DENSE_OPERATIONS:
        return False
    counts = [graph.cardinalities[list(clique.separator)] for clique in tree.elimination.cliques]
    widest = max((float(np.prod(count, dtype=np.float64)) for count in counts), default=1.0)
    return widest * graph.n_examples <= graph.n_factors


def tree_bound(point: GraphObjectivePoint, dense: DenseGraph, kind: str) -> PartitionBound:
    """A quadratic above the objective that touches it at `point`: what unknown states add is concave, and linear there."""
    o = point.objective
    loss = graph_bound(dense.graph, dense.features, point.parameters, base=o.base, bound=kind)
    assert isinstance(loss, PartitionBound)
    curvature = dense.weight * loss.curvature
    curvature.flat[:: o.size + 1] += o.penalty
    return PartitionBound(point.parameters, point.value, point.gradient, curvature)


def factor_blocks(graph: FactorGraph, u: FloatArray, marginals: FloatArray, mass: FloatArray, kind: str) -> BlockCurvature:
    """Hölder's bound over the factors of each example (see `objectives.bounds.blocks`), weighted."""
    blocks = softmax_blocks(marginals, graph.offsets, kind, graph.workers, u > -np.inf)
    return joined(blocks, graph.factor_examples, mass)


def reweighted_blocks(
    graph: FactorGraph, u: FloatArray, marginals: FloatArray, mass: FloatArray, kind: str, rho: FloatArray
) -> BlockCurvature:
    """The same for tree-reweighted free energies.

    log Z_rho is the least mean over acyclic sets T of ``log Z_T(u_T)`` with potentials whose mean is u, and where it is
    attained all T have the marginals of the answer. A direction d may be split so that a table a of T gets ``d_a / rho_a``.
    Then Hölder's bound of each T gives ``S_a / (c_a rho_a)``, if c sums to at most one over every T. Those have at most as
    many tables as variables, less one.
    """
    inner, table = layout(graph), _tables(graph)
    blocks = softmax_blocks(marginals, graph.offsets, kind, graph.workers, u > -np.inf)
    roots = np.sqrt(blocks.others)
    owner, among = graph.factor_examples, table >= 0
    total = np.bincount(owner[~among], weights=roots[~among], minlength=graph.n_examples)
    if inner.n_tables:
        sums = np.bincount(table[among], weights=roots[among], minlength=inner.n_tables)
        example = inner.arrays.fac_examples
        order = np.lexsort((-sums, example))
        rank = np.arange(len(order)) - np.searchsorted(example[order], example[order])
        counted = order[rank < np.bincount(graph.examples, minlength=graph.n_examples)[example[order]] - 1]
        total += np.bincount(example[counted], weights=sums[counted], minlength=graph.n_examples)
    shares = roots / np.maximum(total[owner], 1e-300)
    shares *= rho
    return blocks.scaled(np.divide(mass[owner], shares, out=np.zeros_like(shares), where=shares > 0.0))


def counting_numbers(graph: FactorGraph, engine: str, options: Mapping[str, Any]) -> FloatArray:
    """rho of the table of each factor: one for factors of one variable, and for examples whose sums are exact."""
    given = options.get("n_trees", N_TREES), options.get("random_state", 0)
    out = np.ones(graph.n_factors)
    if engine != MIXED:
        table = _tables(graph)
        among = table >= 0
        out[among] = tree_numbers(layout(graph), *given)[table[among]]
        return out
    limit = {key: value for key, value in options.items() if key == "memory_limit"}
    rest = graph.divided(**limit).rest
    if rest is not None:
        assert isinstance(rest.graph, FactorGraph)
        out[rest.factors] = counting_numbers(rest.graph, "trw", options)
    return out


def _tables(graph: FactorGraph) -> IntArray:
    """The table of the layout that each factor is added to; -1 for factors of one variable or none."""
    inner = layout(graph)
    first = inner.gather.tocsc()[:, graph.offsets[:-1]]
    out = np.full(graph.n_factors, -1)
    found = np.flatnonzero(np.diff(first.indptr))
    rows = first.indices[first.indptr[found]]
    inside = rows >= inner.n_states
    out[found[inside]] = np.searchsorted(inner.arrays.fac_offsets, rows[inside] - inner.n_states, side="right") - 1
    return out

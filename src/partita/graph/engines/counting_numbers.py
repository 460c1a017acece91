"""Counting numbers: how much of each table's entropy an approximation of log Z counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from ...core.arrays.potentials import real_array
from ...core.random import generator
from ...core.results import FloatArray
from ...core.validation import check_count
from ..kernels import spanning_trees
from ..structure.factor_graph import FactorGraph
from .layout import Layout, layout

#: Variables of a component up to which probabilities of edges are computed, not counted.
LARGEST_DENSE = 600
N_TREES = 128
#: The same of pairs: taken in turns, so many give shares within a few hundredths of each other.
LARGE_TREES = 16


def tree_numbers(inner: Layout, n_trees: int = N_TREES, random_state: Any = 0) -> FloatArray:
    """`tree_probabilities`, counted once for each graph and seed."""
    key = f"trees {n_trees} {random_state}"
    rho = inner.cache.get(key)
    if rho is None:
        rho = tree_probabilities(inner, check_count("n_trees", n_trees, minimum=1), random_state)
        if isinstance(random_state, int):  # other seeds mean new trees at every call
            inner.cache[key] = rho
    return np.asarray(rho)


def tree_probabilities(inner: Layout, n_trees: int = N_TREES, random_state: Any = 0) -> FloatArray:
    """For each table the share of acyclic sets of tables that it is in: an average of trees, which makes bounds valid.

    On pairs the sets are the spanning trees, all equally likely, and the share of an edge is its effective resistance
    (matrix-tree theorem). With components of more than `LARGEST_DENSE` variables, or tables of more than two, they are
    random maximal sets in which no two paths join the same variables, `n_trees` of them (`LARGE_TREES` of pairs), each with
    those tables first that were taken least often. Every table is in some set.
    """
    n_tables = inner.n_tables
    if n_tables == 0 or inner.acyclic:
        return np.ones(n_tables)
    rng = generator(random_state)
    if not inner.pairwise:
        return _acyclic_sets(inner, n_trees, rng)
    ends = inner.arrays.edge_var.reshape(-1, 2)
    links = sp.csr_matrix((np.ones(n_tables), (ends[:, 0], ends[:, 1])), shape=(inner.n_variables,) * 2)
    n_parts, part = connected_components(links, directed=False)
    if np.bincount(part).max() > LARGEST_DENSE:
        return _acyclic_sets(inner, min(n_trees, LARGE_TREES), rng)
    rho = np.ones(n_tables)
    number = np.empty(inner.n_variables, np.int64)
    by_part = np.argsort(part, kind="stable")
    edges_by_part = np.argsort(part[ends[:, 0]], kind="stable")
    sizes = np.bincount(part, minlength=n_parts)
    edge_sizes = np.bincount(part[ends[:, 0]], minlength=n_parts)
    at, edge_at = 0, 0
    for p in range(n_parts):
        nodes, mine = by_part[at : at + sizes[p]], edges_by_part[edge_at : edge_at + edge_sizes[p]]
        at, edge_at = at + sizes[p], edge_at + edge_sizes[p]
        if len(mine) < sizes[p]:  # a tree
            continue
        number[nodes] = np.arange(sizes[p])
        i, j = number[ends[mine, 0]], number[ends[mine, 1]]
        L = np.zeros((sizes[p], sizes[p]))
        np.add.at(L, (i, j), -1.0)
        L += L.T
        L[np.diag_indices(sizes[p])] = -L.sum(1)
        G = np.zeros_like(L)
        G[1:, 1:] = np.linalg.inv(L[1:, 1:])
        rho[mine] = np.clip(G[i, i] + G[j, j] - 2.0 * G[i, j], 1e-300, 1.0)
    return rho


def _acyclic_sets(inner: Layout, n_sets: int, rng: np.random.Generator) -> FloatArray:
    counts = np.zeros(inner.n_tables, np.int64)
    parent = np.empty(inner.n_variables, np.int64)
    for _ in range(n_sets):
        # those taken least often so far go first: small shares make loose bounds and slow messages
        order = rng.permutation(len(counts))
        order = order[np.argsort(counts[order].astype(np.int16), kind="stable")]
        spanning_trees.acyclic_set(inner.arrays, order, parent, counts)
    return _cover(inner, counts, n_sets, rng)


def _cover(inner: Layout, counts: Any, n_sets: int, rng: np.random.Generator) -> FloatArray:
    """Add sets until every table is in one; a set that begins with the missing ones has at least one of them."""
    parent = np.empty(inner.n_variables, np.int64)
    while counts.min() == 0:
        order = np.lexsort((rng.random(len(counts)), counts > 0))
        spanning_trees.acyclic_set(inner.arrays, order, parent, counts)
        n_sets += 1
    return np.asarray(counts / n_sets, dtype=np.float64)


def heaviest_set(inner: Layout, weights: FloatArray) -> FloatArray:
    """One for tables of an acyclic set of large total weight (the largest for pairs), zero for the others."""
    chosen = np.zeros(len(weights), np.int64)
    parent = np.empty(inner.n_variables, np.int64)
    order = np.argsort(-weights, kind="stable")
    spanning_trees.acyclic_set(inner.arrays, order, parent, chosen)
    return chosen.astype(np.float64)


def is_concave(graph: FactorGraph, rho: ArrayLike) -> bool:
    """Whether the entropy with these counting numbers is provably concave where marginals agree.

    `rho` has an entry for each factor (those of fewer than two variables with several states do not count), or is one number
    for all. Concave is what can be written with non-negative weights of H_a, of H_a - H_i for i in a, and of H_i, which are
    all concave (Heskes; Weiss, Yanover and Meltzer); a linear program finds them. Then there is one answer, not several.
    """
    inner = layout(graph, merge=False)
    return has_concave_entropy(inner, factor_numbers(graph, inner, rho))


def factor_numbers(graph: FactorGraph, inner: Layout, rho: ArrayLike) -> FloatArray:
    """Checked counting numbers, one for each table of a layout without merging."""
    numbers = real_array("rho", rho)
    if numbers.ndim == 0:
        numbers = np.full(graph.n_factors, float(numbers))
    if numbers.shape != (graph.n_factors,):
        raise ValueError(f"rho must be a number or have {graph.n_factors} entries, one per factor; got {numbers.shape}")
    chosen = numbers[inner.host_factors]
    if not (np.isfinite(chosen).all() and (chosen > 0.0).all()):
        raise ValueError("rho must be positive and finite for every factor of at least two variables")
    return np.ascontiguousarray(chosen)


def has_concave_entropy(inner: Layout, rho: FloatArray) -> bool:
    """`is_concave`, with a counting number for each table of the layout."""
    n_tables, n = len(rho), inner.n_variables
    if n_tables == 0:
        return True
    edge_var, edge_factor = inner.arrays.edge_var, inner.arrays.edge_factor
    n_edges = len(edge_var)
    # unknowns: a weight for each member; what is left of each table and of each variable must not be negative
    ones = np.ones(n_edges)
    table_rows = sp.csr_matrix((ones, (edge_factor, np.arange(n_edges))), shape=(n_tables, n_edges))
    variable_rows = sp.csr_matrix((-ones, (edge_var, np.arange(n_edges))), shape=(n, n_edges))
    used = np.bincount(edge_var, rho[edge_factor], minlength=n)
    slack = 1e-9 * (1.0 + np.concatenate([rho, used]))
    found = linprog(
        np.zeros(n_edges),
        A_ub=sp.vstack([table_rows, variable_rows]),
        b_ub=np.concatenate([rho, 1.0 - used]) + slack,
        bounds=(0.0, None),
        method="highs",
    )
    return bool(found.status == 0)

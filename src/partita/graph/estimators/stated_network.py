"""A Markov network as users state it: variables of factors, numbers of states, and which factors share weights."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.arrays.names import listed
from ...core.memory import check_memory, product
from ...core.results import IntArray
from ...core.types import Pairs, TableLike
from ...core.validation import check_flag
from ...estimators.named_columns import column_names, is_numbering, match_columns
from ...estimators.states import GAP, doubtful_states, warn_states
from ...objectives.constraints.named import FACTORS, NamedWeights
from ..data.edges import each_once, read_edges
from ..features.statistics import table_types
from ..features.tied_tables import TiedTables
from ..structure.factor_graph import FactorGraph


class Scopes(NamedTuple):
    """The variables of each factor by number, and which factors share weights."""

    factors: list[tuple[int, ...]]
    tie: bool | Sequence[Hashable] | None


class StatedNetwork(NamedTuple):
    """The parameters of `MarkovNetwork` that state its factors."""

    factors: Iterable[Sequence[Hashable]] | None
    cardinalities: int | ArrayLike | None
    tie: bool | Sequence[Hashable] | None
    statistics: str
    n_jobs: int | None

    def variables(self) -> list[Hashable]:
        """The variables of `factors`, in the order in which they are named."""
        return list(dict.fromkeys(v for scope in self.factors or () for v in scope))

    def columns(self, X: TableLike) -> tuple[IntArray | None, list[Hashable] | None]:
        """Which columns of X are the variables (None: all, as they are), and what they are called."""
        names, variables = column_names(X), self.variables()
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

    def scopes(self, m: int, names: list[Hashable] | None) -> Scopes:
        """The factors of m variables, each once."""
        if self.factors is None:
            return Scopes(all_pairs(m), self.tie)
        place: dict[Any, Any] = {} if names is None else {name: j for j, name in enumerate(names)}
        factors = [tuple(place.get(v, v) for v in scope) for scope in self.factors]
        if not factors or any(not scope for scope in factors):
            raise ValueError("factors must not be empty, and each needs at least one variable")
        for k, scope in enumerate(factors):
            if not all(isinstance(v, int | np.integer) and 0 <= v < m for v in scope) or len(set(scope)) < len(scope):
                raise ValueError(
                    f"factor {k} must have different variables below {m}, the number of columns of X, counted from 0 (or "
                    f"names of columns, if X is a data frame); got {scope}"
                )
        return Scopes(*each_once([tuple(map(int, scope)) for scope in factors], self.tie))

    def counts(self, states: IntArray, names: list[Hashable] | None) -> IntArray:
        """The number of states of each variable: as stated, or as X shows."""
        m = states.shape[1]
        if self.cardinalities is None:
            counts = np.array(np.maximum(states.max(0, initial=-1) + 1, 2), dtype=np.int64)
            if counts.max(initial=0) > GAP:
                _warn_states(states, counts, names)
            return counts
        given = np.asarray(self.cardinalities)
        if given.dtype.kind not in "iu" or given.shape not in ((), (m,)) or given.min(initial=1) < 1:
            shown = self.cardinalities if given.size < 20 else f"{given.shape} of {given.dtype}"
            raise ValueError(
                f"cardinalities must be an integer >= 1, or one for each of the {m} columns of X; got {shown}. "
                "Columns of X that are no variables have to go first"
            )
        return np.array(np.broadcast_to(given, (m,)), dtype=np.int64)

    def unfitted(self) -> TiedTables:
        """The map from weights to tables, if numbers of states are stated for every variable."""
        if self.cardinalities is None or np.ndim(self.cardinalities) != 1:
            raise ValueError("the network must be fitted, or have a list of cardinalities")
        counts = self.counts(np.zeros((1, np.size(self.cardinalities)), np.int64), None)
        names = self.variables()
        numbered = all(isinstance(v, numbers.Integral) for v in names)
        return tied_tables(counts, self.scopes(len(counts), None if numbered else names), self.statistics, self.n_jobs)


def tied_tables(counts: IntArray, scopes: Scopes, statistics: str, n_jobs: int | None) -> TiedTables:
    """The map from weights to tables of factors over variables with these numbers of states."""
    sizes = counts.tolist()
    entries = sum(product(sizes[v] for v in scope) for scope in scopes.factors)
    check_memory(
        f"a model of {entries:.3g} table entries (variables have up to {max(sizes)} states)",
        32.0 * entries,
        "Group states, or give factors of fewer variables",
    )
    graph = FactorGraph(counts, scopes.factors, n_jobs=n_jobs)
    return TiedTables(graph, table_types(graph, scopes.tie, statistics))


def named_weights(features: TiedTables, names: list[Hashable] | None) -> NamedWeights:
    """The weights of each factor by its variables, in the order in which they were given."""
    graph, found = features.graph, {}
    for part in features.parts:
        numbers = np.searchsorted(graph.offsets, part.places[:, 0])
        rows = np.broadcast_to(part.parameters, (len(numbers), part.parameters.shape[1]))
        for scope, row in zip((graph.factors[f] for f in numbers.tolist()), rows, strict=True):
            found[scope if names is None else tuple(names[v] for v in scope)] = row
    whole = np.arange(features.size)
    return NamedWeights(features.size, (0, 0), np.zeros((3, 0), np.int64), groups={FACTORS: found}, whole=whole)


def all_pairs(m: int) -> list[tuple[int, ...]]:
    """A factor for each of m variables, then one for each pair."""
    check_memory(f"a factor for each pair of {m} variables", 200.0 * m * m / 2, "Give the factors, or use fewer variables")
    return [*((v,) for v in range(m)), *itertools.combinations(range(m), 2)]


def pairwise(graph: Pairs, k: int, tied: bool, fields: bool = True) -> dict[str, Any]:
    """Parameters of a network with a factor for each edge and, with fields, each variable."""
    variables, edges = read_edges(graph)
    own = variables if check_flag("fields", fields) else []
    if not own:
        alone = set(variables).difference(v for edge in edges for v in edge)
        if not edges or any(isinstance(v, str) for v in alone):
            first = next(v for v in variables if v in alone)
            raise ValueError(
                f"node {first!r} of the graph has no edge: without fields nothing is said of it. Leave it out, or take "
                "fields=True"
            )
    labels = ["variable"] * len(own) + ["edge"] * len(edges)
    return {
        "factors": [*((v,) for v in own), *edges],
        "cardinalities": [k] * len(variables),
        "tie": labels if check_flag("tied", tied) else None,
    }


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

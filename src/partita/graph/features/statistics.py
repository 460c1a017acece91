"""Functions of the states of a factor, one weight each: the columns of the basis of its table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray
from ...core.validation import check_choice
from ..structure.factor_graph import FactorGraph
from .tied_tables import TableType

STATISTICS = ("entries", "contrasts", "spins", "agreement")


def statistic_basis(kind: str, shape: tuple[int, ...]) -> FloatArray | None:
    """The basis of a table of this shape; None stands for the identity.

    ``"entries"`` has a weight for every entry; ``"contrasts"`` one for every entry in which no variable has state 0 (the
    others are zero); ``"spins"`` one, times the product of the states of two-state variables read as -1 and 1;
    ``"agreement"`` one, where all variables have the same state, and contrasts for a single variable.

    Examples
    --------
    >>> from partita.graph.features.statistics import statistic_basis
    >>> statistic_basis("spins", (2, 2)).ravel()
    array([ 1., -1., -1.,  1.])
    """
    check_choice("statistics", kind, STATISTICS)
    if kind == "entries":
        return None
    states = np.indices(shape).reshape(len(shape), -1)
    if kind == "spins":
        if any(count != 2 for count in shape):
            raise ValueError(f"statistics='spins' need variables with two states, got a factor with {shape}")
        return np.asarray(np.prod(2.0 * states - 1.0, axis=0)[:, None])
    if kind == "agreement" and len(shape) > 1:
        return np.asarray((states == states[0]).all(0)[:, None], dtype=np.float64)
    return np.eye(states.shape[1])[:, (states > 0).all(0)]


def symmetric_basis(count: int) -> FloatArray:
    """The basis of symmetric tables: a weight for each unordered pair of states.

    >>> from partita.graph.features.statistics import symmetric_basis
    >>> symmetric_basis(2).T
    array([[1., 0., 0., 0.],
           [0., 1., 1., 0.],
           [0., 0., 0., 1.]])
    """
    low, high = np.triu_indices(count)
    basis = np.zeros((count, count, len(low)))
    basis[low, high, np.arange(len(low))] = 1.0
    basis[high, low, np.arange(len(low))] = 1.0
    return basis.reshape(count * count, -1)


def table_types(graph: FactorGraph, tie: Sequence[Hashable] | bool | None, statistics: str) -> list[TableType]:
    """Types of the factors of one graph: none tied, all of one shape (True), or those with the same label in `tie`.

    Parameters are in the order of the factors; those of tied factors where the first of them is.
    """
    shapes = [tuple(graph.cardinalities[list(scope)].tolist()) for scope in graph.factors]
    bases = {shape: statistic_basis(statistics, shape) for shape in dict.fromkeys(shapes)}
    counts = {shape: int(np.prod(shape)) if basis is None else basis.shape[1] for shape, basis in bases.items()}
    if tie is None or tie is False:
        groups: dict[tuple[int, ...], list[int]] = {}
        for k, shape in enumerate(shapes):
            groups.setdefault(shape, []).append(k)
        starts = np.cumsum([0, *(counts[shape] for shape in shapes)])
        return [
            TableType(
                np.array(ks),
                sp.identity(len(ks), format="csr"),
                bases[shape],
                starts[ks][:, None] + np.arange(counts[shape]),
            )
            for shape, ks in groups.items()
        ]
    labels: list[Hashable] = list(shapes) if tie is True else list(tie)
    if len(labels) != graph.n_factors:
        raise ValueError(f"tie must have a label for each of {graph.n_factors} factors, got {len(labels)}")
    members: dict[Hashable, list[int]] = {}
    for k, label in enumerate(labels):
        members.setdefault(label, []).append(k)
    for label, ks in members.items():
        wrong = [k for k in ks if shapes[k] != shapes[ks[0]]]
        if wrong:
            raise ValueError(
                f"tie={label!r}: factors {ks[0]} and {wrong[0]} have tables {shapes[ks[0]]}, {shapes[wrong[0]]}"
            )
    return [TableType(np.array(ks), basis=bases[shapes[ks[0]]]) for ks in members.values()]

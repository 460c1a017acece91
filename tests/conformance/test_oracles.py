"""Every solver for best configurations: feasible answers, honestly scored, as good as the best of a list of all."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from discovery import classes
from enumeration import choices, edge_sets, matchings, permutations, spanning_trees
from hypothesis import given, settings, strategies as st
from structures import STRUCTURES

from partita import ConvergenceWarning
from partita.graph.oracles.find import find_oracle
from partita.graph.structure.factor_graph import DECODERS
from partita.inference import (
    AssignmentOracle,
    BMatchingOracle,
    ChainOracle,
    JunctionTreeOracle,
    LinearProgramOracle,
    MaxFlowOracle,
    PlanarCutOracle,
    PlanarIsingOracle,
    UserOracle,
)
from partita.inference.oracle import POLYTOPES
from partita.structures import BipartiteMatching, Chain, FactorGraph, Matching, SpanningTree
from partita.tree.oracles import ChuLiuEdmondsOracle, NetworkxArborescenceOracle, ScipyTreeOracle

few = settings(max_examples=15)


@dataclass(frozen=True)
class Row:
    """A solver.

    Attributes
    ----------
    make : callable
        The oracle.
    points : callable
        All configurations as points, one per row, listed without the library.
    potentials : callable
        From random numbers, one for each potential, to such as the solver takes.
    feasible : callable or None
        A check of answers that need not be configurations.
    forbids : str
        What the solver says to -inf, nothing if it takes it.
    library : str
        The module that it needs, and the extra that brings it.
    """

    make: Callable[[], Any]
    points: Callable[[], Any]
    potentials: Callable[[Any], Any] = lambda numbers: numbers
    feasible: Callable[[Any], None] | None = None
    forbids: str = ""
    library: tuple[str, str] | None = None


LOOP = FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), (1,), (1, 0)])
SPINS = FactorGraph([2] * 4, [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
PLANE = FactorGraph([2] * 5, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (0,), (3, 4)])
CHAIN = Chain(2, [3, 1])
ROOTED = SpanningTree(4, directed=True, single_root=True)
EDGES = np.array([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3), (3, 4), (0, 4), (2, 5), (4, 5), (3, 5)])
PLANAR = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4), (1, 0)])
SIDES = np.array([(i, j) for i in range(3) for j in range(3, 6) if (i, j) != (1, 4)])


def entries(graph: Any) -> Any:
    """Configurations of a graph as points."""
    out = []
    for y in choices(graph.cardinalities):
        tables = [np.zeros(tuple(graph.cardinalities[list(scope)])) for scope in graph.factors]
        for scope, table in zip(graph.factors, tables, strict=True):
            table[tuple(y[v] for v in scope)] = 1.0
        out.append(np.concatenate([table.ravel() for table in tables]))
    return np.array(out)


def cuts(edges: Any) -> Any:
    """Edges between two parts of the vertices."""
    sides = choices([2] * (int(edges.max()) + 1))
    return np.unique((sides[:, edges[:, 0]] != sides[:, edges[:, 1]]).astype(float), axis=0)


def partners(edges: Any, n: int, perfect: bool) -> Any:
    return np.array([[float(y[i] == j) for i, j in edges] for y in matchings(n, edges, perfect)])


def without_fields(numbers: Any) -> Any:
    """Tables of pairs that stay the same when both states change, and none of single variables."""
    tables = []
    for table in PLANE.tables(numbers):
        same, other = (table[0, 0], table[0, 1]) if table.ndim == 2 else (0.0, 0.0)
        tables.append([same, other, other, same] if table.ndim == 2 else [same, other])
    return np.concatenate(tables)


def is_local(graph: Any) -> Callable[[Any], None]:
    """Tables that sum to one and say the same of every variable."""

    def check(point: Any) -> None:
        found: dict[int, Any] = {}
        for scope, table in zip(graph.factors, graph.tables(point), strict=True):
            np.testing.assert_allclose(table.sum(), 1.0, atol=1e-7)
            for axis, v in enumerate(scope):
                p = table.sum(axis=tuple(a for a in range(len(scope)) if a != axis))
                np.testing.assert_allclose(found.setdefault(v, p), p, atol=1e-7)

    return check


def best_of(structure: Any) -> Any:
    """What a structure of matchings decodes, as an oracle."""
    return UserOracle(lambda w: structure.best(w[None])[0], lambda y: structure.indicators(y)[0])


FLOW = {"feasible": is_local(SPINS), "forbids": "takes finite potentials"}
FIELDS = {"potentials": without_fields, "forbids": "finite"}
SHARES, ONCE, DEGREES = np.array([[2, 1, 2, 2, 1, 2], [1] * 6, [1, 1, 1, 2, 1, 1]])
#: Edges of two triangles, which linear programs share out by halves.
TRIANGLES = np.array([1.0, 1.1, 0, 0, 1.2, 0, 1.3, 0, 0, 1.2, 1.1])
ORACLES = {
    "flow, scipy": Row(lambda: MaxFlowOracle(SPINS, "scipy"), lambda: entries(SPINS), **FLOW),
    "flow, ortools": Row(
        lambda: MaxFlowOracle(SPINS, "ortools"), lambda: entries(SPINS), **FLOW, library=("ortools", "maxflow")
    ),
    "junction tree": Row(lambda: JunctionTreeOracle(LOOP), lambda: entries(LOOP)),
    "linear program": Row(lambda: LinearProgramOracle(LOOP), lambda: entries(LOOP), feasible=is_local(LOOP)),
    "planar, pymatching": Row(
        lambda: PlanarIsingOracle(PLANE, solver="pymatching"),
        lambda: entries(PLANE),
        **FIELDS,
        library=("pymatching", "planar"),
    ),
    "planar, rustworkx": Row(
        lambda: PlanarIsingOracle(PLANE, solver="rustworkx"),
        lambda: entries(PLANE),
        **FIELDS,
        library=("rustworkx", "planar"),
    ),
    "planar cut": Row(
        lambda: PlanarCutOracle(PLANAR, solver="rustworkx"),
        lambda: cuts(PLANAR),
        forbids="finite",
        library=("rustworkx", "planar"),
    ),
    "chain": Row(lambda: ChainOracle(CHAIN), lambda: entries(ChainOracle(CHAIN).graph)),
    "found for spins": Row(lambda: find_oracle(SPINS), lambda: entries(SPINS), **FLOW),
    "found for others": Row(lambda: find_oracle(LOOP), lambda: entries(LOOP)),
    "assignment, scipy": Row(lambda: AssignmentOracle(4), lambda: np.eye(4)[permutations(4)].reshape(-1, 16)),
    "assignment, lapx": Row(
        lambda: AssignmentOracle(4, "lapx"),
        lambda: np.eye(4)[permutations(4)].reshape(-1, 16),
        library=("lap", "lapx"),
    ),
    "permutations": Row(lambda: best_of(BipartiteMatching(4)), lambda: np.eye(4)[permutations(4)].reshape(-1, 16)),
    "perfect matchings": Row(
        lambda: best_of(Matching(EDGES)), lambda: partners(EDGES, 6, True), library=("rustworkx", "matching")
    ),
    "matchings": Row(
        lambda: best_of(Matching(EDGES, perfect=False)),
        lambda: partners(EDGES, 6, False),
        library=("rustworkx", "matching"),
    ),
    "b-matchings of two sides": Row(lambda: BMatchingOracle(SIDES, SHARES), lambda: edge_sets(SIDES, SHARES, True)),
    "perfect b-matchings": Row(
        lambda: BMatchingOracle(EDGES, ONCE), lambda: edge_sets(EDGES, ONCE, True), library=("rustworkx", "matching")
    ),
    "b-matchings": Row(
        lambda: BMatchingOracle(EDGES, DEGREES, perfect=False),
        lambda: edge_sets(EDGES, DEGREES, False),
        library=("rustworkx", "matching"),
    ),
    "trees, scipy": Row(lambda: ScipyTreeOracle(SpanningTree(4)), lambda: SpanningTree(4).enumerate().astype(float)),
    "trees, Chu-Liu/Edmonds": Row(
        lambda: ChuLiuEdmondsOracle(ROOTED), lambda: spanning_trees(4, ROOTED.edges, 0, True).astype(float)
    ),
    "trees, networkx": Row(
        lambda: NetworkxArborescenceOracle(ROOTED),
        lambda: spanning_trees(4, ROOTED.edges, 0, True).astype(float),
        library=("networkx", "planar"),
    ),
    "a function": Row(lambda: UserOracle(lambda w: int(np.argmax(w)), lambda y: np.eye(3)[y]), lambda: np.eye(3)),
}
oracles = pytest.mark.parametrize("name", ORACLES)
LISTED: dict[str, Any] = {}


def listed(name: str) -> Any:
    if name not in LISTED:
        LISTED[name] = ORACLES[name].points()
    return LISTED[name]


def score(points: Any, potentials: Any) -> Any:
    """What is used, summed; -inf where that is forbidden."""
    used = points > 0.0
    return np.where(used, np.where(used, potentials, 0.0) * points, 0.0).sum(-1)


def test_every_oracle_is_in_the_table():
    made = {type(row.make()) for row in ORACLES.values()}
    assert made == classes("oracles", lambda kind: hasattr(kind, "polytope")) | {UserOracle}


def check(name: str, potentials: Any) -> None:
    """The answer against the best of all."""
    row, points = ORACLES[name], listed(name)
    oracle = row.make()
    answer, best = oracle(potentials), score(points, potentials).max()
    room = 1e-7 * (1.0 + np.abs(potentials[potentials > -np.inf]).sum())
    assert answer.polytope == oracle.polytope
    assert answer.polytope in POLYTOPES
    assert answer.delta >= 0.0
    assert answer.point.shape == potentials.shape
    assert answer.value == pytest.approx(float(score(answer.point, potentials)), abs=1e-9)
    whole = (points == answer.point).all(1).any()
    assert answer.value >= best - answer.delta - room
    if whole:
        assert answer.value <= best + room
    else:
        assert answer.polytope != "exact"
        row.feasible(answer.point)


@oracles
@few
@given(st.data())
def test_answers_are_feasible_rightly_scored_and_best(name, data):
    size = listed(name).shape[1]
    numbers = data.draw(st.lists(st.floats(-9.0, 9.0), min_size=size, max_size=size))
    check(name, ORACLES[name].potentials(np.array(numbers)))


@oracles
@pytest.mark.parametrize("scale", [5e-324, 2e-313, 1e-290, 1e90])
def test_the_least_and_largest_of_numbers(name, scale):
    """Weights that become integers must not overflow on the way."""
    numbers = np.random.default_rng(1).integers(-3, 4, listed(name).shape[1]).astype(float)
    check(name, scale * ORACLES[name].potentials(numbers))


@oracles
@pytest.mark.parametrize("seed", range(4))
def test_what_is_forbidden_is_not_used_or_refused(name, seed):
    rng, row, points = np.random.default_rng(seed), ORACLES[name], listed(name)
    potentials = row.potentials(rng.standard_normal(points.shape[1]))
    allowed = points[rng.integers(len(points))]
    out = (rng.random(len(potentials)) < 0.4) & (allowed == 0.0)
    out[np.flatnonzero(allowed == 0.0)[0]] = True
    potentials[out] = -np.inf
    if row.forbids:
        with pytest.raises(ValueError, match=row.forbids):
            row.make()(potentials)
    else:
        check(name, potentials)
        assert not row.make()(potentials).point[out].any()


@oracles
def test_where_all_is_forbidden_there_is_no_answer(name):
    row, points = ORACLES[name], listed(name)
    if not points.any(1).all() or name == "a function":  # without an edge, nothing is forbidden
        assert row.make()(np.full(points.shape[1], -1.0)).value <= 0.0
        return
    with pytest.raises(ValueError, match=r"forbid|finite|no perfect|infeasible"):
        row.make()(np.full(points.shape[1], -np.inf))


@oracles
@pytest.mark.parametrize("bad", ["too few", "NaN", "+inf"])
def test_what_is_not_potentials_is_refused(name, bad):
    size = listed(name).shape[1]
    if name == "a function":
        return
    potentials = np.zeros(size - 1) if bad == "too few" else np.full(size, float(bad))
    with pytest.raises(ValueError, match=r"potentials must|weights must|potentials forbid"):
        ORACLES[name].make()(potentials)


@pytest.mark.parametrize("name", [name for name, row in ORACLES.items() if row.library])
def test_a_missing_library_is_named_with_its_extra(name, monkeypatch):
    library, extra = ORACLES[name].library
    potentials = TRIANGLES if "matchings" in name else ORACLES[name].potentials(np.ones(listed(name).shape[1]))
    check(name, potentials)
    hide(library, monkeypatch)
    with pytest.raises(ImportError, match=rf"pip install 'partita\[{extra}\]'"):
        ORACLES[name].make()(potentials)


def hide(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [library, *(module for module in sys.modules if module.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, module, None)


def test_flows_and_planes_choose_among_the_libraries_there_are(monkeypatch):
    assert MaxFlowOracle(SPINS).solver == "ortools"
    assert PlanarIsingOracle(PLANE).solver == "pymatching"
    for library in ("ortools", "pymatching"):
        hide(library, monkeypatch)
    assert MaxFlowOracle(SPINS).solver == "scipy"
    assert PlanarIsingOracle(PLANE).solver == "rustworkx"


GRAPHS = [name for name in STRUCTURES if name.startswith("FactorGraph")]


@pytest.mark.parametrize("engine", DECODERS)
@pytest.mark.parametrize("name", GRAPHS)
@few
@given(data=st.data())
def test_decoders_score_what_they_answer(engine, name, data):
    """Max-product need not find the best one, except without cycles; the others do."""
    row = STRUCTURES[name]
    graph, potentials = row.structure, data.draw(row.strategy())
    if engine == "planar":  # which takes no fields
        with pytest.raises(ValueError, match=r"two states|finite potentials|no fields"):
            graph.argmax(potentials, engine)
        return
    if engine == "max_flow" and not (graph.binary_pairs and np.isfinite(potentials).all()):
        with pytest.raises(ValueError, match=r"two states|finite potentials"):
            graph.argmax(potentials, engine)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of max-product with cycles
        y, value = graph.argmax(potentials, engine)
    np.testing.assert_allclose(value, graph.score(potentials, y), rtol=1e-12, atol=1e-9)
    _, best = graph.argmax(potentials, "exact")
    if engine == "bp" and name in ("FactorGraph", "FactorGraph by union"):
        assert (value <= best + 1e-9).all()
    else:
        np.testing.assert_allclose(value, best, rtol=1e-9, atol=1e-6)

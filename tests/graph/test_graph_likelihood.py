"""The likelihood of factor graphs against enumeration and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from enumeration import choices

from partita import CapabilityError, Status, TooLargeError, minimize
from partita.core import Result
from partita.features import TableType, TiedTables
from partita.graph.features.statistics import table_types
from partita.graph.structure import evidence as evidence_module, factor_graph
from partita.graph.structure.evidence import Evidence
from partita.objectives import GraphLikelihood
from partita.structures import FactorGraph


def make(rng, seed=0, n_jobs=None):
    """Three graphs as one, with two types of factors, a base with a forbidden pair, and states."""
    graphs = [
        FactorGraph([2, 3, 2], [(0,), (1,), (2,), (0, 1), (2, 1)]),
        FactorGraph([3, 2], [(1,), (0,), (1, 0)]),
        FactorGraph([2, 3, 2, 3], [(0,), (2,), (0, 1), (2, 1), (0, 3), (2, 3), (0, 2, 1)]),
    ]
    graph = FactorGraph.union(graphs, n_jobs=n_jobs)
    shapes = [tuple(graph.cardinalities[list(scope)].tolist()) for scope in graph.factors]
    types, base = [], np.zeros(graph.size)
    for shape in sorted(set(shapes)):
        factors = np.array([k for k, s in enumerate(shapes) if s == shape])
        F = rng.standard_normal((len(factors), 2))
        types.append(TableType(factors, features=sp.csr_matrix(F) if len(shape) == 1 else F))
        if shape == (2, 3):
            base[graph.offsets[factors]] = -np.inf  # states 0 and 0
            base[graph.offsets[factors] + 5] = 0.3
    y = np.array([1, 2, 0, 1, 1, 1, 0, 1, 2])
    return TiedTables(graph, types), base, y


def brute(features, base, y, weights, penalty, theta):
    graph, u = features.graph, features.forward(theta) + base
    value = 0.5 * penalty * theta @ theta
    for e in range(graph.n_examples):
        variables = np.flatnonzero(graph.examples == e)
        scopes = [(k, scope) for k, scope in enumerate(graph.factors) if scope[0] in variables]
        tables = graph.tables(u)
        totals = [[], []]
        for states in choices(graph.cardinalities[variables]).tolist():
            full = dict(zip(variables.tolist(), states, strict=True))
            score = sum(tables[k][tuple(full[v] for v in scope)] for k, scope in scopes)
            totals[0].append(score)
            if all(y[v] in (-1, full[v]) for v in full):
                totals[1].append(score)
        value += weights[e] * (np.logaddexp.reduce(totals[0]) - np.logaddexp.reduce(totals[1]))
    return value


@pytest.mark.parametrize("unknown", [(), (1,), (0, 1, 2), (4, 5, 7, 8), range(9)])
def test_value_gradient_and_products(rng, unknown):
    features, base, y = make(rng)
    y[list(unknown)] = -1
    weights = np.array([1.0, 0.5, 2.0])
    objective = GraphLikelihood(features, y, weights=weights, penalty=0.1, base=base)
    theta, v = rng.standard_normal((2, features.size))
    point = objective.at(theta)
    assert point.value == pytest.approx(brute(features, base, y, weights, 0.1, theta), rel=1e-11)
    h = 1e-5
    slope = (objective.at(theta + h * v).value - objective.at(theta - h * v).value) / (2 * h)
    assert point.gradient @ v == pytest.approx(slope, rel=1e-7, abs=1e-7)
    change = (objective.at(theta + h * v).gradient - objective.at(theta - h * v).gradient) / (2 * h)
    np.testing.assert_allclose(point.information_product()(v), change, atol=1e-6)
    if not len(unknown):
        np.testing.assert_allclose(point.hessian_product()(v), change, atol=1e-6)
        assert 0.0 < point.gap < np.inf
    else:
        assert v @ point.hessian_product()(v) >= v @ change - 1e-9
        assert point.gap == np.inf
    ray = point.along(v)
    moved, slope = ray.at(0.3)
    assert moved.value == pytest.approx(objective.at(theta + 0.3 * v).value, rel=1e-12)
    assert slope == pytest.approx(moved.gradient @ v)


def test_many_rows_on_one_graph_are_the_same_as_many_graphs(rng, monkeypatch):
    monkeypatch.setattr(evidence_module, "CELLS", 50)
    graph = FactorGraph.grid(2, 3)
    basis = np.array([[1.0], [-1.0], [-1.0], [1.0]])
    rows = rng.integers(0, 2, (20, 6))
    rows[3, 2], rows[5], rows[7, :3] = -1, -1, -1
    weights = rng.random(20)

    def types(copies):
        k = np.arange(graph.n_factors * copies)
        single = k % graph.n_factors < 6
        return [TableType(k[single], basis=np.array([[-1.0], [1.0]])), TableType(k[~single], basis=basis)]

    together = GraphLikelihood(TiedTables(graph, types(1)), rows, weights=weights)
    many = FactorGraph.union([graph] * 20)
    apart = GraphLikelihood(TiedTables(many, types(20)), rows.ravel(), weights=weights)
    theta = np.array([0.3, -0.7])
    one, other = together.at(theta), apart.at(theta)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-11)
    np.testing.assert_allclose(one.diagonal, other.diagonal, rtol=1e-11)
    assert together.scale == pytest.approx(apart.scale)


def test_one_inference_however_many_rows(rng, monkeypatch):
    graph = FactorGraph.grid(2, 2)
    calls = []
    infer = FactorGraph.infer
    monkeypatch.setattr(FactorGraph, "infer", lambda self, *a, **k: calls.append(1) or infer(self, *a, **k))
    features = TiedTables(graph, [TableType(np.arange(4)), TableType(np.arange(4, 8))])
    objective = GraphLikelihood(features, rng.integers(0, 2, (500, 4)), penalty=1.0)
    _ = objective.at(np.zeros(objective.size)).gradient
    assert len(calls) == 1


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton", "cg", "majorize"])
def test_solvers_reach_one_optimum(rng, solver):
    features, base, y = make(rng)
    objective = GraphLikelihood(features, y, penalty=0.1, base=base)
    solution = minimize(objective, solver=solver, tol=1e-10)
    assert solution.status in (Status.CONVERGED, Status.PRECISION)
    assert solution.point.gap < 1e-9
    weighted = GraphLikelihood(features, y, weights=[1.0, 2.0, 3.0], penalty=0.1, base=base)
    assert minimize(weighted, solver=solver, tol=1e-9).value == pytest.approx(minimize(weighted, tol=1e-9).value, rel=1e-9)


@pytest.mark.parametrize("bound", ["symmetric", "descending", "bohning"])
@pytest.mark.parametrize("unknown", [False, True])
def test_bounds_touch_and_lie_above(rng, bound, unknown):
    features, base, y = make(rng)
    if unknown:
        y[[1, 4, 5]] = -1
    objective = GraphLikelihood(features, y, weights=[2.0, 2.0, 2.0], penalty=0.1, base=base)
    theta = rng.standard_normal(features.size)
    point = objective.at(theta)
    model = point.model(bound)
    assert model.value(theta) == pytest.approx(point.value)
    for length in (0.1, 1.0, 4.0):
        for v in rng.standard_normal((10, features.size)):
            assert model.value(theta + length * v) >= objective.at(theta + length * v).value - 1e-9


def test_threads_do_not_matter():
    found = []
    for jobs in (1, 2):
        features, base, y = make(np.random.default_rng(0), n_jobs=jobs)
        found.append(GraphLikelihood(features, y, base=base).at(np.linspace(-1, 1, features.size)))
    assert found[0].value == found[1].value
    np.testing.assert_array_equal(found[0].gradient, found[1].gradient)


def test_a_surrogate_takes_log_z_and_marginals_from_its_engine(rng, monkeypatch):
    calls = []

    def halved(graph, flat, **options):
        assert options.pop("messages", None) == (calls or None)
        assert options == {"n_sweeps": 3, "lower": False, "certify": True}
        calls.append(1)
        exact = graph.infer(flat[0], "exact")
        return Result(0.5 * exact.log_z, 0.5 * exact.marginals[None], exact=False, messages=calls)

    monkeypatch.setattr(factor_graph, "find_engine", lambda name: halved)
    features, base, y = make(rng)
    objective = GraphLikelihood(features, y, engine="trw", options={"n_sweeps": 3}, base=base)
    theta, v = rng.standard_normal((2, features.size))
    slope = (objective.at(theta + 1e-5 * v).value - objective.at(theta - 1e-5 * v).value) / 2e-5
    assert objective.at(theta).gradient @ v == pytest.approx(slope, rel=1e-6)
    with pytest.raises(CapabilityError, match="Hessian"):
        minimize(objective, solver="newton")


@pytest.mark.parametrize("engine", ["bp", "trw", "mean_field"])
@pytest.mark.parametrize("unknown", [False, True])
def test_gradients_of_surrogates(rng, engine, unknown):
    graph = FactorGraph.grid(3, 4)
    features = TiedTables(graph, table_types(graph, None, "spins"))
    X = rng.integers(-1 if unknown else 0, 2, (30, 12))
    options = {"tol": 1e-12}
    objective = GraphLikelihood(features, X, engine=engine, options=options, penalty=0.1)
    theta, v = 0.3 * rng.standard_normal((2, features.size))
    slope = (objective.at(theta + 1e-4 * v).value - objective.at(theta - 1e-4 * v).value) / 2e-4
    assert objective.at(theta).gradient @ v == pytest.approx(slope, rel=1e-5)
    exact = GraphLikelihood(features, X, penalty=0.1).at(theta).value
    if engine != "bp":
        assert (objective.at(theta).value > exact) == (engine == "trw")


@pytest.mark.parametrize("unknown", [False, True])
def test_exact_for_some_examples_only(rng, unknown):
    """The parts of the wide example are the surrogate's, and warm messages make no difference."""
    graphs = [FactorGraph.grid(2, 3), FactorGraph.grid(5, 5), FactorGraph.grid(2, 2)]
    graph = FactorGraph.union(graphs)
    features = TiedTables(graph, table_types(graph, True, "spins"))
    y = rng.integers(-1 if unknown else 0, 2, graph.n_variables)
    limit = 8.0 * graphs[0].cost().largest + 16.0 * sum(graphs[i].cost().messages for i in (0, 2))
    objective = GraphLikelihood(features, y, options={"memory_limit": limit, "tol": 1e-12})
    assert objective.engine == "mixed"
    assert objective.convex == (not unknown)
    theta, v = 0.3 * rng.standard_normal((2, features.size))
    slope = (objective.at(theta + 1e-4 * v).value - objective.at(theta - 1e-4 * v).value) / 2e-4
    assert objective.at(theta).gradient @ v == pytest.approx(slope, rel=1e-5)
    exact = GraphLikelihood(features, y).at(theta).result
    mixed = objective.at(theta).result
    np.testing.assert_allclose(mixed.log_z[[0, 2]], exact.log_z[[0, 2]], rtol=1e-12)
    assert mixed.log_z[1] > exact.log_z[1] + 1e-3


def test_bad_data_are_refused(rng):
    features, base, y = make(rng)
    for change, message in (
        ({"y": y[:-1]}, "one for each of 9"),
        ({"y": np.where(y == 2, 3, y)}, "y has 3 for variable 1 in row 0; its states are 0 to 2"),
        ({"y": np.stack([y, y])}, "must be one row for a union"),
        ({"y": np.where(np.arange(9) < 2, 0, y)}, "forbidden configuration in example 0"),
        ({"penalty": -1.0}, "penalty must be"),
        ({"engine": "gibbs"}, "engine must be one of"),
        ({"engine": "trw", "options": {"tree_steps": 3}}, "tree_steps must be 0"),
        ({"base": np.zeros(3)}, "base must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            GraphLikelihood(features, **{"y": y, "base": base} | change)
    with pytest.raises(TooLargeError, match="limit"):
        GraphLikelihood(features, y, engine="exact", options={"memory_limit": 8.0})


def test_evidence_with_everything_known_and_nothing_known(monkeypatch):
    monkeypatch.setattr(evidence_module, "CELLS", 3)
    graph = FactorGraph([2, 2], [(0, 1), ()])
    assert Evidence(graph, [0, 1]).rest is None
    evidence = Evidence(graph, [[0, 1], [-1, -1]])
    np.testing.assert_array_equal(evidence.settled(np.arange(5.0)), [[5.0], [4.0]])
    np.testing.assert_array_equal(evidence.index, [0, 1, 2, 3])
    assert evidence.rest.factors == ((0, 1),)

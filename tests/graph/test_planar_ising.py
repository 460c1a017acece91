"""Ising models in the plane: best configurations and exact sums, against junction trees and each other."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from partita import MarkovNetwork, TooLargeError
from partita.core.errors import NumericalError
from partita.features import TableType, TiedTables
from partita.graph.engines.planar_layout import PlanarLayout
from partita.graph.objective.likelihood import GraphLikelihood
from partita.graph.oracles.planar_ising import PlanarCutOracle, PlanarIsingOracle
from partita.graph.oracles.polytopes import JunctionTreeOracle
from partita.structures import FactorGraph

SPINS = np.array([1.0, -1.0, -1.0, 1.0])


def potentials(graph, J):
    """Couplings of the pairs, and zero for all else."""
    u = np.zeros(graph.size)
    pairs = [k for k, scope in enumerate(graph.factors) if len(scope) == 2]
    for k, j in zip(pairs, J, strict=True):
        u[graph.offsets[k] : graph.offsets[k + 1]] = j * SPINS
    return u


def grid(height, width, rng, kind="normal"):
    graph = FactorGraph.grid(height, width)
    m = graph.n_factors - height * width
    return graph, potentials(
        graph, {"normal": rng.standard_normal, "signs": lambda m: rng.choice([-1.0, 0.0, 1.0], m)}[kind](m)
    )


def planar(seed, n=12):
    """A random planar graph, as triangles of random points with some edges left out."""
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    corners = Delaunay(places).simplices
    pairs = {tuple(sorted((int(t[i]), int(t[i - 1])))) for t in corners for i in range(3)}
    kept = [pair for pair in sorted(pairs) if rng.random() < 0.8]
    graph = FactorGraph([2] * n, [(v,) for v in range(n)] + kept)
    return graph, potentials(graph, rng.standard_normal(len(kept))), places


@pytest.fixture(params=["rustworkx", "pymatching"])
def solver(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.mark.parametrize("kind", ["normal", "signs"])
def test_best_configurations_of_grids(solver, kind, rng):
    for shape in ((1, 5), (2, 2), (5, 4), (12, 12)):
        graph, u = grid(*shape, rng, kind)
        answer, best = PlanarIsingOracle(graph, solver=solver)(u), JunctionTreeOracle(graph)(u)
        assert answer.value == pytest.approx(best.value, abs=max(1e-9, answer.delta))
        assert set(np.unique(answer.point)) <= {0.0, 1.0}
        assert answer.delta <= 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_other_planar_graphs(seed, solver):
    """With a drawing, and with the one that networkx finds."""
    pytest.importorskip("networkx")
    graph, u, places = planar(seed)
    best, exact = JunctionTreeOracle(graph)(u).value, graph.infer(u)
    for positions in (places, None):
        assert PlanarIsingOracle(graph, positions, solver)(u).value == pytest.approx(best, abs=1e-5)
        found = graph.infer(u, "planar", positions=positions)
        np.testing.assert_allclose(found.log_z, exact.log_z, rtol=1e-12)
        np.testing.assert_allclose(found.marginals, exact.marginals, atol=1e-11)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (3, 4), (12, 12)])
def test_sums_over_grids_are_those_of_junction_trees(shape, rng):
    graph, u = grid(*shape, rng)
    exact = graph.infer(np.array([u, 0.3 * u]))
    found = graph.infer(np.array([u, 0.3 * u]), "planar")
    np.testing.assert_allclose(found.log_z, exact.log_z, rtol=1e-12)
    np.testing.assert_allclose(found.marginals, exact.marginals, atol=1e-11)
    np.testing.assert_allclose(graph.log_partition(u, "planar"), exact.log_z[0], rtol=1e-12)


def test_parts_isolated_variables_double_factors_and_fields_that_cancel(rng):
    pytest.importorskip("networkx")
    pairs = [(0, 1), (1, 2), (2, 0), (1, 0), (4, 5), (5, 6), (6, 7), (7, 4), (4, 6)]
    graph = FactorGraph([2] * 9, [(), (0,), (1,), *pairs])
    u = potentials(graph, rng.standard_normal(len(pairs)))
    u[0] = 1.5
    field = rng.standard_normal()
    u[1:3] += (0.0, field)  # of variable 0, which its pair with 1 takes back
    u[5:9] += (field, field, 0.0, 0.0)
    exact, found = graph.infer(u), graph.infer(u, "planar")
    np.testing.assert_allclose(found.log_z, exact.log_z, rtol=1e-12)
    np.testing.assert_allclose(found.marginals, exact.marginals, atol=1e-12)
    pytest.importorskip("rustworkx")
    assert PlanarIsingOracle(graph, solver="rustworkx")(u).value == pytest.approx(JunctionTreeOracle(graph)(u).value)


def test_large_grids_are_near_onsager():
    """Equal couplings at the critical point: what a variable adds to log Z, once boundaries are taken off."""
    J, catalan = 0.5 * np.log1p(np.sqrt(2.0)), 0.915965594177219
    log_z = {}
    for side in (20, 40):
        graph = FactorGraph.grid(side, side)
        log_z[side] = graph.log_partition(potentials(graph, np.full(2 * side * (side - 1), J)), "planar")[0]
    assert (log_z[40] - 2.0 * log_z[20]) / 800 == pytest.approx(0.5 * np.log(2.0) + 2.0 * catalan / np.pi, abs=2e-3)


def test_frank_wolfe_over_cuts_is_tighter_than_over_the_local_polytope(rng):
    pytest.importorskip("rustworkx")
    graph, u = grid(4, 4, rng)
    u *= 2.0
    oracle = PlanarIsingOracle(graph, solver="rustworkx", symmetric=True)
    inside = graph.infer(u, "frank_wolfe", oracle=oracle, tol=1e-3)
    local = graph.infer(u, "frank_wolfe", tol=1e-3)
    exact = graph.log_partition(u)[0]
    assert exact <= inside.upper[0]
    assert inside.upper[0] < local.log_z[0] - 0.1


def test_bad_graphs_are_refused(monkeypatch, rng):
    graph, u = grid(3, 3, rng)
    u[0] += 1.0
    with pytest.raises(ValueError, match="variable 0 prefers a state by 1"):
        graph.log_partition(u, "planar")
    with pytest.raises(ValueError, match="finite"):
        graph.log_partition(np.where(np.arange(graph.size) == 20, -np.inf, 0.0), "planar")
    with pytest.raises(ValueError, match="two states"):
        PlanarLayout(FactorGraph([3], [(0,)]))
    square = FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)])
    with pytest.raises(ValueError, match="cross"):
        PlanarLayout(square, [(0, 0), (1, 0), (1, 1), (0, 1)])
    star = [(np.cos(0.8 * np.pi * k), np.sin(0.8 * np.pi * k)) for k in range(5)]
    with pytest.raises(ValueError, match="cross"):  # a cycle that goes round twice
        PlanarLayout(FactorGraph([2] * 5, [(k, (k + 1) % 5) for k in range(5)]), star)
    with pytest.raises(ValueError, match="one place"):
        PlanarLayout(square, np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"shape \(4, 2\)"):
        PlanarLayout(square, np.zeros((3, 2)))
    pytest.importorskip("networkx")
    PlanarLayout(square)
    with pytest.raises(ValueError, match="not planar"):
        PlanarLayout(FactorGraph.complete(5))
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"partita\[planar\]"):
        PlanarLayout(square)
    monkeypatch.setitem(sys.modules, "pymatching", None)
    with pytest.raises(ImportError, match=r"partita\[planar\]"):
        PlanarIsingOracle(graph, solver="pymatching")


def test_lost_digits_are_refused():
    rng = np.random.default_rng(0)
    graph, u = grid(12, 12, rng)
    for scale in (6.0, 30.0):
        with pytest.raises(NumericalError, match="too strong"):
            graph.infer(scale * u, "planar")


def test_what_the_engine_says_of_its_answer(rng):
    graph, u = grid(4, 5, rng)
    result = graph.infer(u, "planar")
    assert result.engine == "planar"
    assert result.exact
    assert result.gap[0] == 0.0
    assert result.marginals.shape == u.shape
    union = FactorGraph.union([graph, FactorGraph.grid(2, 2)])
    both = np.concatenate([u, np.zeros(union.size - graph.size)])
    found = union.infer(both, "planar")
    np.testing.assert_allclose(found.log_z, union.log_partition(both), rtol=1e-12)
    positions = np.concatenate([PlanarLayout(graph).places, PlanarLayout(FactorGraph.grid(2, 2)).places])
    np.testing.assert_array_equal(union.infer(both, "planar", positions=positions).log_z, found.log_z)


def test_memory_is_counted_before_any_work(rng):
    graph, u = grid(12, 12, rng)
    for ask in (graph.infer, graph.log_partition):
        with pytest.raises(TooLargeError, match=r"of 144 variables needs .* memory_limit is 1 kB"):
            ask(u, "planar", memory_limit=1e3)
    X, edges = drawn(4, 4, rng), pairs_of(4, 4)
    with pytest.raises(TooLargeError, match="memory_limit"):
        MarkovNetwork.ising(edges, fields=False, engine="planar", engine_options={"memory_limit": 1e3}).fit(X)
    model = MarkovNetwork.ising(edges, fields=False, engine="planar", engine_options={"memory_limit": 1e8}, l2=1.0).fit(X)
    assert np.isfinite(model.log_partition())
    assert np.isfinite(model.standard_errors()).all()


def test_best_configurations_by_name(rng):
    pytest.importorskip("rustworkx")
    graph, u = grid(4, 5, rng)
    y, value = graph.argmax(u, "planar")
    np.testing.assert_allclose(value, graph.argmax(u)[1], atol=1e-5)
    assert y.shape == (20,)
    union = FactorGraph.union([graph, graph])
    y, value = union.argmax(np.concatenate([u, -u])[None], "planar", solver="rustworkx")
    np.testing.assert_allclose(value, np.concatenate([graph.argmax(u)[1], graph.argmax(-u)[1]]), atol=1e-5)
    assert y.shape == (1, 40)


def pairs_of(height, width):
    graph = FactorGraph.grid(height, width)
    return [scope for scope in graph.factors if len(scope) == 2]


def drawn(height, width, rng, size=80):
    """Configurations of a grid with random couplings."""
    graph, u = grid(height, width, rng)
    return graph.sample(0.4 * u, size, rng)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_learning_is_that_by_junction_trees(tied, l2, rng):
    X, edges = drawn(4, 5, rng), pairs_of(4, 5)
    weights = rng.random(len(X))
    planar, exact = (
        MarkovNetwork.ising(edges, tied, fields=False, l2=l2, engine=engine, tol=1e-10).fit(X, sample_weight=weights)
        for engine in ("planar", "exact")
    )
    assert planar.engine_ == "planar"
    assert planar.parameters_.shape == ((1,) if tied else (len(edges),))
    np.testing.assert_allclose(planar.parameters_, exact.parameters_, atol=1e-9)
    np.testing.assert_allclose(planar.log_likelihood(X), exact.log_likelihood(X), rtol=1e-10)
    np.testing.assert_allclose(planar.standard_errors(), exact.standard_errors(), rtol=1e-7)
    np.testing.assert_allclose(planar.log_partition(), exact.log_partition(), rtol=1e-12)
    assert planar.log_partition(bounds=True)[1] == planar.log_partition(bounds=True)[2]
    for one, other in zip(planar.predict_marginals(), exact.predict_marginals(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert (planar.gap_ < 1e-8) == (l2 > 0.0)


def likelihood(height, width, rng, **options):
    edges = pairs_of(height, width)
    graph = FactorGraph([2] * (height * width), edges)
    features = TiedTables(graph, [TableType(np.arange(len(edges)), np.eye(len(edges)), SPINS[:, None])])
    y = rng.integers(0, 2, (5, height * width))
    return GraphLikelihood(features, y, engine="planar", **options)


def test_gradient_and_hessian_are_derivatives(rng):
    objective = likelihood(4, 4, rng, penalty=0.3)
    theta, v = 0.7 * rng.standard_normal(objective.size), rng.standard_normal(objective.size)
    point, step = objective.at(theta), 1e-5
    ahead, back = objective.at(theta + step * v), objective.at(theta - step * v)
    assert point.gradient @ v == pytest.approx((ahead.value - back.value) / (2.0 * step), rel=1e-7)
    np.testing.assert_allclose(
        point.hessian_product()(v), (ahead.gradient - back.gradient) / (2.0 * step), rtol=1e-6, atol=1e-6
    )
    assert objective.convex


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "cg"])
def test_large_grids_are_learned(solver, rng):
    """30 x 30: the junction tree would have tables of 2^30 entries."""
    edges = pairs_of(30, 30)
    X = rng.integers(0, 2, (4, 900))
    model = MarkovNetwork.ising(edges, fields=False, l2=2.0, engine="planar", solver=solver).fit(X)
    assert model.parameters_.shape == (1740,)
    assert model.status_.ok
    assert model.gap_ < 1e-2
    tied = MarkovNetwork.ising(edges, True, fields=False, engine="planar", solver=solver, tol=1e-9).fit(X)
    agree = np.mean([(X[:, i] == X[:, j]).mean() for i, j in edges])
    graph = FactorGraph([2] * 900, edges)
    u = np.tile(tied.parameters_[0] * SPINS, len(edges))
    tables = graph.infer(u, "planar").marginals.reshape(-1, 4)
    assert (tables[:, 0] + tables[:, 3]).mean() == pytest.approx(agree, abs=1e-7)


def test_potts_without_fields_is_ising(rng):
    X, edges = drawn(3, 4, rng), pairs_of(3, 4)
    ising = MarkovNetwork.ising(edges, True, fields=False, engine="planar", tol=1e-10).fit(X)
    potts = MarkovNetwork.potts(edges, 2, fields=False, engine="planar", tol=1e-10).fit(X)
    np.testing.assert_allclose(potts.parameters_, 2.0 * ising.parameters_, atol=1e-8)
    three = MarkovNetwork.potts(edges, 3, fields=False).fit(X)
    assert three.parameters_.shape == (1,)
    with pytest.raises(ValueError, match="two states"):
        MarkovNetwork.potts(edges, 3, fields=False, engine="planar").fit(X)


def test_models_with_fields_are_refused_before_any_work(rng):
    X, edges = drawn(3, 3, rng), pairs_of(3, 3)
    for model in (
        MarkovNetwork.ising(edges, engine="planar"),
        MarkovNetwork(edges, engine="planar"),
        MarkovNetwork(edges, statistics="contrasts", engine="planar"),
    ):
        with pytest.raises(ValueError, match="without fields, but weight 0 gives variable 0 one"):
            model.fit(X)
    nx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="not planar"):
        MarkovNetwork.ising([(i, j) for i in range(5) for j in range(i)], fields=False, engine="planar").fit(X[:, :5])
    with pytest.raises(ValueError, match="prefers a state by 2"):
        likelihood(2, 2, rng, base=np.repeat([2.0, 0.0], [2, 14]))
    graph = nx.Graph([("a", "b")])
    graph.add_node("c")
    with pytest.raises(ValueError, match="node 'c' of the graph has no edge"):
        MarkovNetwork.ising(graph, fields=False)


def test_unknown_states_are_summed_out_where_they_fit(rng):
    X, edges = drawn(4, 4, rng), pairs_of(4, 4)
    X[rng.random(X.shape) < 0.1] = -1
    planar, exact = (
        MarkovNetwork.ising(edges, True, fields=False, l2=1.0, engine=engine, tol=1e-9).fit(X)
        for engine in ("planar", "exact")
    )
    np.testing.assert_allclose(planar.parameters_, exact.parameters_, atol=1e-8)
    np.testing.assert_allclose(planar.log_likelihood(X), exact.log_likelihood(X), rtol=1e-9)
    np.testing.assert_array_equal(planar.predict(X), exact.predict(X))
    for one, other in zip(planar.predict_marginals(X), exact.predict_marginals(X), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


def test_positions_by_name_and_isolated_variables(rng):
    pytest.importorskip("networkx")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.integers(0, 2, (40, 4)), columns=list("dacb"))
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    places = {"positions": [(0, 0), (1, 0), (0, 1), (5, 5)]}
    planar = MarkovNetwork.ising(edges, fields=False, engine="planar", engine_options=places, tol=1e-10).fit(frame)
    exact = MarkovNetwork.ising(edges, fields=False, engine="exact", tol=1e-10).fit(frame)
    np.testing.assert_allclose(planar.parameters_, exact.parameters_, atol=1e-9)
    alone = MarkovNetwork.ising([(0, 1), (1, 3)], fields=False, engine="planar").fit(frame.to_numpy())
    np.testing.assert_allclose(alone.predict_marginals()[2], [[0.5, 0.5]])


def cuts(edges, n):
    """Every cut, as zeros and ones of edges."""
    sides = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    return np.unique((sides[:, edges[:, 0]] != sides[:, edges[:, 1]]).astype(float), axis=0)


@pytest.mark.parametrize("seed", range(4))
def test_best_cuts(seed, solver):
    rng = np.random.default_rng(seed)
    graph, _, places = planar(seed, n=9)
    edges = np.array([scope for scope in graph.factors if len(scope) == 2])
    edges = np.concatenate([edges, edges[:2, ::-1]])  # two of them twice
    every, oracle = cuts(edges, 9), PlanarCutOracle(edges, places, solver, n_vertices=9)
    for scores in (rng.standard_normal(len(edges)), np.abs(rng.standard_normal(len(edges))), np.zeros(len(edges))):
        answer = oracle(scores)
        assert (every == answer.point).all(1).any()
        np.testing.assert_array_equal(oracle.best(scores), answer.point)
        assert answer.value == pytest.approx((every @ scores).max(), abs=1e-9 + answer.delta)
    for bad, message in ((np.full(len(edges), -np.inf), "finite"), (np.zeros(3), "one for each edge")):
        with pytest.raises(ValueError, match=message):
            oracle(bad)
    with pytest.raises(ValueError, match="to itself"):
        PlanarCutOracle([(0, 1), (2, 2)])

"""Ising models in the plane: best configurations and exact sums, against junction trees and each other."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from partita.graph.engines.planar_ising import planar_infer, planar_log_partition
from partita.graph.engines.planar_layout import PlanarLayout
from partita.graph.oracles.planar_ising import PlanarIsingOracle
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
        found = planar_infer(graph, u, positions)
        np.testing.assert_allclose(found.log_z, exact.log_z, rtol=1e-12)
        np.testing.assert_allclose(found.marginals, exact.marginals, atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (3, 4), (12, 12)])
def test_sums_over_grids_are_those_of_junction_trees(shape, rng):
    graph, u = grid(*shape, rng)
    exact = graph.infer(np.array([u, 0.3 * u]))
    found = planar_infer(graph, np.array([u, 0.3 * u]))
    np.testing.assert_allclose(found.log_z, exact.log_z, rtol=1e-12)
    np.testing.assert_allclose(found.marginals, exact.marginals, atol=1e-9)
    np.testing.assert_allclose(planar_log_partition(graph, u), exact.log_z[0], rtol=1e-12)


def test_parts_isolated_variables_double_factors_and_fields_that_cancel(rng):
    pytest.importorskip("networkx")
    pairs = [(0, 1), (1, 2), (2, 0), (1, 0), (4, 5), (5, 6), (6, 7), (7, 4), (4, 6)]
    graph = FactorGraph([2] * 9, [(), (0,), (1,), *pairs])
    u = potentials(graph, rng.standard_normal(len(pairs)))
    u[0] = 1.5
    field = rng.standard_normal()
    u[1:3] += (0.0, field)  # of variable 0, which its pair with 1 takes back
    u[5:9] += (field, field, 0.0, 0.0)
    exact, found = graph.infer(u), planar_infer(graph, u)
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
        log_z[side] = planar_log_partition(graph, potentials(graph, np.full(2 * side * (side - 1), J)))[0]
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
        planar_log_partition(graph, u)
    with pytest.raises(ValueError, match="finite"):
        planar_log_partition(graph, np.where(np.arange(graph.size) == 20, -np.inf, 0.0))
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
    with pytest.raises(ValueError, match="too strong"):
        planar_log_partition(graph, 30.0 * u)

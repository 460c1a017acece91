"""Messages against enumeration: exact without cycles, bounds with them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from enumeration import configurations, log_sum
from scipy.optimize import minimize

from partita import Status
from partita.graph.engines import message_passing as message_run
from partita.graph.engines.counting_numbers import LARGEST_DENSE, tree_probabilities
from partita.graph.engines.layout import layout
from partita.graph.engines.message_damping import AdaptiveDamping
from partita.graph.engines.message_passing import SCHEDULES
from partita.inference import bethe, is_concave, max_product, mean_field, tree_reweighted
from partita.structures import FactorGraph


def random_tree(rng, n, states=3, forbid=0.0, constant=True):
    """Tables of two to four variables that hang together without cycles, and some of one or none."""
    cardinalities = rng.integers(1, states + 1, n)
    factors, used = [], 1
    while used < n:
        arity = int(min(n - used, rng.integers(1, 4)))
        scope = [int(rng.integers(used)), *range(used, used + arity)]
        if rng.random() < 0.9:  # else: another component
            factors.append(tuple(rng.permutation(scope).tolist()))
        used += arity
    factors += [(int(v),) for v in rng.integers(0, n, 3)] + [()] * constant
    graph = FactorGraph(cardinalities, [factors[k] for k in rng.permutation(len(factors))])
    potentials = 2.0 * rng.standard_normal(graph.size)
    potentials[rng.random(graph.size) < forbid] = -np.inf
    return graph, potentials


def random_loopy(rng, forbid=0.0):
    n = int(rng.integers(3, 8))
    most = int(rng.integers(2, 4))
    scopes = [tuple(rng.choice(n, rng.integers(1, most + 1), replace=False).tolist()) for _ in range(2 * n)]
    graph = FactorGraph(rng.integers(1 if forbid else 2, 4, n), scopes)
    potentials = rng.choice([0.5, 2.0, 6.0]) * rng.standard_normal(graph.size)
    potentials[rng.random(graph.size) < forbid] = -np.inf
    return graph, potentials


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", range(40))
def test_exact_without_cycles(seed, schedule):
    rng = np.random.default_rng(seed)
    graph, potentials = random_tree(rng, int(rng.integers(1, 9)), forbid=0.15 if seed % 2 else 0.0)
    _, scores = configurations(graph, potentials)
    engines = (bethe, tree_reweighted)
    if not scores.max() > -np.inf:
        for engine in engines:
            with pytest.raises(ValueError, match="forbid every configuration"):
                engine(graph, potentials[None])
        return
    exact = graph.infer(potentials)
    for engine in engines:
        result = engine(graph, potentials[None], schedule=schedule)
        assert result.exact
        assert result.status is Status.CONVERGED
        np.testing.assert_allclose(result.log_z, log_sum(scores), atol=1e-10, rtol=1e-12)
        np.testing.assert_allclose(result.marginals[0], exact.marginals, atol=1e-10)
        assert result.gap[0] == 0.0
    y, value = max_product(graph, potentials, schedule=schedule)
    np.testing.assert_allclose(value, scores.max(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(graph.score(potentials, y), value)


def test_trees_take_two_sweeps(rng):
    graph, potentials = random_tree(rng, 60)
    assert bethe(graph, potentials[None], tol=1e-9).n_iter <= 3
    far = FactorGraph([2] * 300, [(t, t + 1) for t in range(299)])
    assert bethe(far, rng.standard_normal((1, far.size))).n_iter <= 3


def test_unions_rows_and_threads(rng):
    trees = [random_tree(rng, 6, constant=False) for _ in range(3)]
    union = FactorGraph.union([graph for graph, _ in trees])
    rows = rng.standard_normal((5, union.size))
    exact = union.infer(rows)
    for engine in ("bp", "trw"):
        result = union.infer(rows, engine)
        np.testing.assert_allclose(result.log_z, exact.log_z, atol=1e-10)
        np.testing.assert_allclose(result.marginals, exact.marginals, atol=1e-10)
        assert result.engine == engine
    grids = [FactorGraph.grid(40, 40, n_jobs=jobs) for jobs in (1, 2)]
    potentials = rng.standard_normal((3, grids[0].size))
    for rows in (potentials, potentials[:1]):
        for schedule in SCHEDULES:
            a, b = (tree_reweighted(grid, rows, schedule=schedule, max_iter=20) for grid in grids)
            np.testing.assert_array_equal(a.log_z, b.log_z)
            np.testing.assert_array_equal(a.marginals, b.marginals)
            np.testing.assert_array_equal(a.lower, b.lower)
    loopy = FactorGraph.union([FactorGraph.complete(4), FactorGraph.grid(2, 3)])
    potentials = rng.standard_normal((2, loopy.size))
    result, truth = tree_reweighted(loopy, potentials), loopy.log_partition(potentials)
    assert np.all(result.lower <= truth)
    assert np.all(truth <= result.upper)


@pytest.mark.parametrize("seed", range(120))
def test_bounds_hold_wherever_messages_stop(seed):
    rng = np.random.default_rng(1000 + seed)
    graph, potentials = random_loopy(rng, forbid=0.1 if seed % 3 == 0 else 0.0)
    _, scores = configurations(graph, potentials)
    if not scores.max() > -np.inf:
        return
    log_z = log_sum(scores)
    slack = 1e-10 * (1.0 + abs(log_z))
    for max_iter in (0, 1, 3, 100):
        for damping in (0.0, 0.5):
            result = tree_reweighted(graph, potentials[None], max_iter=max_iter, damping=damping)
            assert result.lower[0] <= log_z + slack
            assert log_z <= result.upper[0] + slack
            assert np.isfinite(result.upper[0]) or max_iter == 100
    for options in ({"tree_steps": 3}, {"joint": True}, {"joint": True, "tree_steps": 3}):
        tighter = tree_reweighted(graph, potentials[None], max_iter=20, **options)
        assert tighter.lower[0] <= log_z + slack
        assert log_z <= tighter.upper[0] + slack
    for size in (1.0, 1e3, 1e15, 1e30):  # also where nothing but rounding is left
        start = size * rng.standard_normal(result.messages.shape)
        assert log_z <= tree_reweighted(graph, potentials[None], max_iter=0, messages=start).upper[0] + slack
    assert mean_field(graph, potentials[None], n_starts=2).lower[0] <= log_z + slack


@pytest.mark.parametrize("seed", range(4))
def test_value_is_the_maximum_of_the_reweighted_free_energy(seed):
    """Against a general optimiser over consistent marginals of a binary triangle with a tail."""
    rng = np.random.default_rng(seed)
    edges = [(0, 1), (1, 2), (2, 0), (2, 3)]
    graph = FactorGraph([2] * 4, [(0,), (1,), (2,), (3,), *edges])
    potentials = rng.standard_normal(graph.size)
    rho = tree_probabilities(layout(graph))
    np.testing.assert_allclose(rho, [2 / 3, 2 / 3, 2 / 3, 1.0])
    unary, pair = potentials[:8].reshape(4, 2), potentials[8:].reshape(4, 2, 2)

    def entropy(p):
        p = np.maximum(p, 1e-12)
        return -(p * np.log(p)).sum()

    def tables(z):
        p, q = z[:4], z[4:]
        both = np.array([[[1 - p[i] - p[j] + t, p[j] - t], [p[i] - t, t]] for (i, j), t in zip(edges, q, strict=True)])
        return np.column_stack([1 - p, p]), both

    def energy(z):
        single, both = tables(z)
        value = (unary * single).sum() + (pair * both).sum()
        for i in range(4):
            value += (1 - sum(r for e, r in zip(edges, rho, strict=True) if i in e)) * entropy(single[i])
        return -value - sum(r * entropy(b) for b, r in zip(both, rho, strict=True))

    start = np.concatenate([np.full(4, 0.5), np.full(4, 0.25)])
    inside = {"type": "ineq", "fun": lambda z: tables(z)[1].ravel() - 1e-9}
    options = {"maxiter": 500, "ftol": 1e-13}
    best = minimize(energy, start, method="SLSQP", constraints=[inside], options=options)
    for _ in range(5):  # with some BLAS kernels it stops early: go on from the middle between its end and the start
        more = minimize(energy, 0.5 * (best.x + start), method="SLSQP", constraints=[inside], options=options)
        best = min(best, more, key=lambda found: found.fun)
    result = tree_reweighted(graph, potentials[None])
    assert result.log_z[0] == pytest.approx(-best.fun, abs=1e-6)
    assert result.upper[0] == pytest.approx(result.log_z[0], abs=1e-7)
    assert is_concave(graph, np.concatenate([np.ones(4), rho]))


def test_better_trees_make_tighter_bounds(rng):
    graph = FactorGraph.union([FactorGraph.complete(6), FactorGraph([2, 2, 3, 2], [(0, 1, 2), (1, 2, 3), (0, 3), (2,)])])
    potentials = rng.standard_normal((2, graph.size))
    truth = graph.log_partition(potentials)
    uppers = [tree_reweighted(graph, potentials, tree_steps=k).upper.sum() for k in (0, 5, 20)]
    assert uppers[0] > uppers[1] >= uppers[2] > truth.sum()
    result = tree_reweighted(graph, potentials, joint=True)
    assert np.all(result.lower <= truth)
    assert np.all(truth <= result.upper)
    for table in graph.tables(result.marginals):
        np.testing.assert_allclose(table.reshape(2, -1).sum(1), 1.0)


def test_marginals_are_the_gradient(rng):
    graph = FactorGraph([2, 3, 2, 2], [(0, 1, 2), (2, 3), (3, 0), (1,), (1, 3)])
    potentials = rng.standard_normal(graph.size)
    for engine in (bethe, tree_reweighted):
        result = engine(graph, potentials[None], tol=1e-13)
        for k in range(0, graph.size, 3):
            step = np.zeros(graph.size)
            step[k] = 1e-5
            rise = engine(graph, (potentials + step)[None], tol=1e-13).log_z - engine(graph, (potentials - step)[None]).log_z
            assert rise[0] / 2e-5 == pytest.approx(result.marginals[0, k], abs=1e-6)


def test_spanning_tree_probabilities():
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2), (4, 1), (5, 6)]
    graph = FactorGraph([2] * 8, [*edges, (1, 0)])
    inner = layout(graph)
    assert inner.n_tables == len(inner.scopes) == len(edges)  # parallel edges are one
    trees = []
    for chosen in itertools.combinations(range(len(edges)), 5):
        parent = list(range(8))

        def find(i, parent=parent):
            while parent[i] != i:
                i = parent[i]
            return i

        good = True
        for e in chosen:
            a, b = find(edges[e][0]), find(edges[e][1])
            good &= a != b
            parent[a] = b
        if good:
            trees.append(chosen)
    share = np.array([sum(e in tree for tree in trees) for e in range(len(edges))]) / len(trees)
    np.testing.assert_allclose(tree_probabilities(inner), share, atol=1e-12)


def test_counted_trees_are_close_to_the_grid_formula():
    a = int(np.sqrt(LARGEST_DENSE)) + 5
    rho = tree_probabilities(layout(FactorGraph.grid(a, a)))
    assert rho.min() > 0.0
    assert rho.sum() == pytest.approx(a * a - 1)
    assert rho.max() <= 1.0
    inner = layout(FactorGraph.grid(10, 10))
    assert tree_probabilities(inner).mean() == pytest.approx((100 - 1) / 180)
    assert rho.std() < 0.03


def test_concavity_of_counting_numbers():
    triangle = FactorGraph([2] * 3, [(0, 1), (1, 2), (2, 0)])
    assert is_concave(triangle, 1.0)  # one cycle is still provable
    assert is_concave(triangle, 2 / 3)
    complete = FactorGraph.complete(5)
    assert not is_concave(complete, 1.0)
    assert is_concave(complete, 0.4)
    with pytest.warns(UserWarning, match="not provably concave"):
        bethe(complete, np.zeros((1, complete.size)), rho=0.9)
    result = bethe(complete, np.zeros((1, complete.size)), rho=0.4)
    assert result.log_z[0] == pytest.approx(5 * np.log(2.0))


def test_fast_path_agrees_with_the_general_one(rng):
    """The same model with a third state that is forbidden takes the general road."""
    graph = FactorGraph.grid(5, 4)
    potentials = rng.standard_normal(graph.size)
    wide = FactorGraph([3] * 20, graph.factors)
    tables = []
    for scope, table in zip(graph.factors, graph.tables(potentials), strict=True):
        full = np.full((3,) * len(scope), -np.inf)
        full[tuple(slice(2) for _ in scope)] = table
        tables.append(full)
    for schedule in ("sequential", "parallel"):
        for engine in (bethe, tree_reweighted):
            a = engine(graph, potentials[None], schedule=schedule)
            b = engine(wide, wide.potentials(tables), schedule=schedule)
            np.testing.assert_allclose(a.log_z, b.log_z, rtol=1e-8)
            kept = np.concatenate([np.isfinite(t).ravel() for t in tables])
            np.testing.assert_allclose(a.marginals[0], b.marginals[0][kept], atol=1e-7)


def test_warm_starts_and_schedules_reach_the_same_point(rng):
    graph = FactorGraph.grid(6, 6, 3)
    potentials = 0.5 * rng.standard_normal((1, graph.size))
    cold = tree_reweighted(graph, potentials)
    assert tree_reweighted(graph, potentials, messages=cold.messages).n_iter == 1
    for schedule in SCHEDULES[1:]:
        np.testing.assert_allclose(tree_reweighted(graph, potentials, schedule=schedule).log_z, cold.log_z, rtol=1e-9)


def test_max_product_on_an_attractive_grid(rng):
    graph = FactorGraph.grid(5, 5)
    tables = [rng.standard_normal(2) if len(s) == 1 else np.array([[0.4, 0.0], [0.0, 0.4]]) for s in graph.factors]
    y, value = max_product(graph, tables)
    assert value[0] == pytest.approx(graph.score(tables, y)[0])
    assert value[0] >= graph.argmax(tables)[1][0] - 0.5


@pytest.mark.parametrize("seed", range(20))
def test_argmax_by_max_product_gives_its_own_score(seed):
    """The best configuration on trees, else one that is allowed; the value is that of what is returned."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, 7)
    scopes = [(int(rng.integers(v)), v) for v in range(1, 7)]
    tree = FactorGraph(counts, [*scopes, (), (2,)])
    loopy = FactorGraph(counts, [*scopes, (), (0, 6, 3), (1, 5)])
    for graph in (tree, loopy):
        potentials = 2.0 * rng.standard_normal((3, graph.size))
        best, value = graph.argmax(potentials)
        y, found = graph.argmax(potentials, "bp")
        assert y.shape == best.shape
        np.testing.assert_allclose(graph.score(potentials, y), found, rtol=1e-12)
        if graph is tree:
            np.testing.assert_allclose(found, value, rtol=1e-12)
        assert np.all(found <= value + 1e-12)
        auto = graph.argmax(potentials[0], memory_limit=8.0)
        np.testing.assert_array_equal(auto[0], y[0])
        assert auto[1] == found[:1]
    with pytest.raises(ValueError, match="engine must be one of"):
        tree.argmax(potentials, "trw")


@pytest.mark.filterwarnings("ignore:max-product has not converged")
def test_max_product_keeps_the_best_that_it_meets(rng):
    """More sweeps never give less, and on frustrated grids, where messages go round in circles, they give more."""
    graph = FactorGraph.union([FactorGraph.grid(6, 6)] * 10)
    potentials = 2.0 * rng.standard_normal((2, graph.size))
    potentials[:, np.repeat([len(scope) == 1 for scope in graph.factors], np.diff(graph.offsets))] *= 0.1
    few, many = (graph.argmax(potentials, "bp", max_iter=sweeps, damping=0.5)[1] for sweeps in (2, 200))
    assert np.all(many >= few - 1e-12)
    assert np.any(many > few + 0.1)
    best = graph.argmax(potentials)[1]
    assert np.all(many <= best + 1e-9)
    assert np.mean(many / best) > 0.98


@pytest.mark.filterwarnings("ignore:max-product has not converged")
def test_max_product_mends_what_is_forbidden(monkeypatch):
    """Sums that must be even or odd: some decoded configurations are forbidden, and allowed ones are found instead."""
    rng = np.random.default_rng(0)
    graphs, tables = [], []
    for _ in range(30):
        scopes = [tuple(rng.choice(16, 3, replace=False).tolist()) for _ in range(14)]
        graphs.append(FactorGraph([2] * 16, [*((v,) for v in range(16)), *scopes]))
        truth, parity = rng.integers(0, 2, 16), np.indices((2, 2, 2)).sum(0) % 2
        tables += [rng.standard_normal(2) for _ in range(16)]
        tables += [np.where(parity == truth[list(scope)].sum() % 2, 0.0, -np.inf) for scope in scopes]
    graph = FactorGraph.union(graphs)
    y, value = graph.argmax(tables, "bp")
    assert np.isfinite(value).all()
    np.testing.assert_allclose(graph.score(tables, y), value, rtol=1e-12)
    best = graph.argmax(tables)[1]
    assert np.all(value <= best + 1e-9)
    assert np.mean(value > best - 1e-9) > 0.3
    monkeypatch.setattr(message_run.MessageRun, "mend", lambda *arguments: None)
    assert np.isneginf(graph.argmax(tables, "bp")[1]).any()


def test_graphs_of_almost_nothing():
    for graph in (
        FactorGraph([3], []),
        FactorGraph([1, 1], [(0, 1), ()]),
        FactorGraph([2, 1, 4], [(0,)]),
        FactorGraph([2, 1, 2], [(0, 1, 2), (2, 0), (2,)]),
    ):
        potentials = np.linspace(-1.0, 1.0, 2 * graph.size).reshape(2, -1)
        exact = graph.infer(potentials)
        np.testing.assert_allclose(graph.argmax(potentials, "bp")[1], graph.argmax(potentials)[1], atol=1e-12)
        for engine in ("bp", "trw"):
            result = graph.infer(potentials, engine)
            assert result.exact
            np.testing.assert_allclose(result.log_z, exact.log_z, atol=1e-12)
            np.testing.assert_allclose(result.marginals, exact.marginals, atol=1e-12)
        assert graph.infer(potentials, "gibbs", n_samples=10).marginals.shape == potentials.shape
        assert np.all(graph.infer(potentials, "mean_field").lower <= exact.log_z + 1e-12)


def test_auto_turns_to_trees_on_large_grids(rng):
    graph = FactorGraph.grid(40, 40)
    result = graph.infer(rng.standard_normal(graph.size), memory_limit=1e6)
    assert result.engine == "trw"
    assert result.marginals.shape == (graph.size,)
    assert 0.0 < result.gap[0] < np.inf


def test_bad_options_are_refused():
    graph = FactorGraph.complete(3)
    potentials = np.zeros((1, graph.size))
    for options, message in (
        ({"damping": 1.0}, "damping must be None or below 1"),
        ({"schedule": "random"}, "schedule must be one of"),
        ({"messages": np.zeros((1, 2))}, "messages must be finite and of shape"),
        ({"max_iter": -1}, "max_iter"),
        ({"rho": np.ones(3)}, "rho must be a number or have 6 entries"),
        ({"rho": 0.0}, "rho must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            bethe(graph, potentials, **options)


@pytest.mark.data
def test_published_partition_functions_are_bracketed(data_dir):
    import csv

    from partita.io import read_uai

    folder = data_dir / "uai2014_pr"
    if not folder.is_dir():
        pytest.skip("no UAI problems here")
    with open(folder / "logz.csv") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        name = str(folder / line["instance"]) + ".uai"
        graph, potentials = read_uai(name, name + ".evid")
        result = tree_reweighted(graph, potentials[None], max_iter=100)
        assert result.lower[0] <= float(line["lnZ_exact"]) <= result.upper[0], line["instance"]
        assert np.isfinite(result.gap[0])


def test_damping_rises_where_changes_stay_and_not_where_they_shrink_slowly():
    slow, stuck, given, little = (
        AdaptiveDamping(*options) for options in ((None, False), (None, True), (0.2, True), (None, True))
    )
    for t in range(1, 1000):
        slow.see(1.0 / t)
        stuck.see(1.0 + 0.5 * np.sin(t))
        given.see(1.0)
    assert (slow.value, stuck.value, given.value, little.value) == (0.0, 0.75, 0.2, 0.1)


def test_default_damping_stops_messages_that_run_away():
    """Messages of triples of share rho can return amplified by 2 (1 - rho), which is above one for some here."""
    rng = np.random.default_rng(12)
    graph = FactorGraph([2] * 12, [tuple(rng.choice(12, 3, replace=False).tolist()) for _ in range(16)])
    potentials = 4.0 * rng.standard_normal(graph.size)
    potentials[rng.random(graph.size) < 0.15] = -np.inf
    log_z = graph.log_partition(potentials)[0]
    undamped, damped, default = (
        tree_reweighted(graph, potentials[None], lower=False, **options)
        for options in ({"damping": 0.0}, {"damping": 0.5}, {})
    )
    assert undamped.upper[0] > damped.upper[0] + 30.0
    assert log_z <= default.upper[0] <= damped.upper[0] + 0.05


def test_slow_messages_are_mixed():
    """Strong pairs that all like to agree: more than twice the sweeps without mixing, and the same answer."""
    graph = FactorGraph.grid(16, 16)
    rng = np.random.default_rng(0)
    u = np.concatenate([0.2 * rng.standard_normal(512), np.tile([1.3, 0.0, 0.0, 1.3], graph.n_factors - 256)])
    mixed = tree_reweighted(graph, u[None], tol=1e-8, max_iter=5000, lower=False)
    plain = tree_reweighted(graph, u[None], tol=1e-8, max_iter=5000, lower=False, schedule="parallel")
    assert mixed.status.ok
    assert plain.status.ok
    assert 2 * mixed.n_iter < plain.n_iter
    assert mixed.log_z[0] == pytest.approx(plain.log_z[0], abs=1e-5)
    np.testing.assert_allclose(mixed.marginals, plain.marginals, atol=1e-5)

"""Exact sums on factor graphs against enumeration, chains, and published partition functions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from enumeration import configurations, log_sum

from partita import TooLargeError
from partita.graph.structure import junction_layout, junction_tree
from partita.graph.structure.mixture import each_example
from partita.structures import Chain, FactorGraph


def random_graph(rng, n=6, factors=7, most=3, states=3, forbid=0.0):
    cardinalities = rng.integers(1, states + 1, n)
    scopes = [tuple(rng.choice(n, min(n, rng.integers(0, most + 1)), replace=False).tolist()) for _ in range(factors)]
    graph = FactorGraph(cardinalities, scopes)
    potentials = 2.0 * rng.standard_normal(graph.size)
    potentials[rng.random(graph.size) < forbid] = -np.inf
    return graph, potentials


@pytest.mark.parametrize("seed", range(60))
def test_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    graph, potentials = random_graph(
        rng, n=int(rng.integers(1, 8)), most=1 if seed < 5 else 3, forbid=0.15 if seed % 3 == 0 else 0.0
    )
    check(graph, potentials)


def check(graph, potentials):
    """All that is exact, against enumeration."""
    states, scores = configurations(graph, potentials)
    np.testing.assert_allclose(graph.score(potentials, states), scores, rtol=1e-12)
    if not scores.max() > -np.inf:
        for call in (graph.log_partition, graph.infer, graph.argmax, lambda p: graph.sample(p, 1)):
            with pytest.raises(ValueError, match="forbid every configuration"):
                call(potentials)
        return
    log_z = log_sum(scores)
    p = np.exp(scores - log_z)
    result = graph.infer(potentials)
    assert graph.log_partition(potentials)[0] == pytest.approx(log_z, rel=1e-12, abs=1e-12)
    assert result.log_z[0] == pytest.approx(log_z, rel=1e-12, abs=1e-12)
    assert result.exact
    for scope, table in zip(graph.factors, graph.tables(result.marginals), strict=True):
        expected = np.zeros(table.shape)
        if scope:
            np.add.at(expected, tuple(states[:, v] for v in scope), p)
        else:
            expected += 1.0
        np.testing.assert_allclose(table, expected, atol=1e-12)
    covered = {v for scope in graph.factors for v in scope}
    for v, q in enumerate(graph.variable_marginals(result.marginals)):
        expected = np.bincount(states[:, v], weights=p, minlength=graph.cardinalities[v])
        np.testing.assert_allclose(q, expected, atol=1e-12, err_msg=f"{v} {covered}")
    best, value = graph.argmax(potentials)
    assert value[0] == pytest.approx(scores.max(), rel=1e-12, abs=1e-12)
    assert graph.score(potentials, best)[0] == pytest.approx(scores.max(), rel=1e-12, abs=1e-12)


@pytest.fixture
def cut(monkeypatch, request):
    """Everything is large: blocks, slices, and places that are shared begin at a few entries."""
    monkeypatch.setattr(junction_layout, "BLOCK", request.param)
    monkeypatch.setattr(junction_layout, "PERIOD", 2)
    for name, value in (("LARGE", 8), ("SLICES", 4), ("SPARE", 100.0), ("CROWDED", 4), ("SHARE", 0.5)):
        monkeypatch.setattr(junction_tree, name, value)


@pytest.mark.parametrize("cut", [2, 4, 16], indirect=True)
@pytest.mark.parametrize("seed", range(40))
def test_large_cliques_against_enumeration(cut, seed):
    rng = np.random.default_rng(seed)
    graph, potentials = random_graph(rng, n=int(rng.integers(4, 9)), factors=12, forbid=0.1 if seed % 3 == 0 else 0.0)
    check(graph, potentials)


@pytest.mark.parametrize("cut", [4], indirect=True)
def test_large_cliques_are_cut_alike_for_any_number_of_threads(cut, rng):
    found = []
    for n_jobs in (1, 3):
        graph = FactorGraph.union([FactorGraph.grid(4, 4, 3), FactorGraph.complete(7)], n_jobs=n_jobs)
        tree = graph.tree()
        assert sum(step.sliced for step in tree._steps) > 5
        assert any(step.sums for step in tree._steps)
        assert tree.n_beliefs < tree.n_messages
        potentials = np.random.default_rng(5).standard_normal((2, graph.size))
        one, both = graph.infer(potentials[0]), graph.infer(potentials)
        np.testing.assert_array_equal(both.marginals[0], one.marginals)
        np.testing.assert_array_equal(both.log_z[:2], one.log_z)
        found.append(both.marginals)
    np.testing.assert_array_equal(*found)


def test_cliques_with_one_separator_share_their_message(rng):
    # 0..5 hang on the clique (6, 7, 8): each message is over these three.
    scopes = [(v, 6, 7, 8) for v in range(6)]
    graph = FactorGraph([3] * 9, scopes)
    assert graph.tree().n_messages < 2 * 27
    check(graph, rng.standard_normal(graph.size))
    states = graph.sample(np.zeros(graph.size), 20000, random_state=1)
    np.testing.assert_allclose(states.mean(0), 1.0, atol=0.03)


def test_the_gradient_of_log_z_is_the_marginals(rng):
    graph, potentials = random_graph(rng)
    marginals = graph.infer(potentials).marginals
    for i in rng.choice(graph.size, 10):
        step = np.zeros(graph.size)
        step[i] = 1e-5
        slope = (graph.log_partition(potentials + step) - graph.log_partition(potentials - step))[0] / 2e-5
        assert marginals[i] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_chains_are_factor_graphs(n_jobs, rng):
    lengths, n = rng.integers(1, 30, 40), 5
    chain = Chain(n, lengths)
    unary, pairwise = rng.standard_normal((chain.n_positions, n)), rng.standard_normal((n, n))
    graphs = [FactorGraph([n] * T, [(t,) for t in range(T)] + [(t, t + 1) for t in range(T - 1)]) for T in lengths]
    graph = FactorGraph.union(graphs, n_jobs=n_jobs)
    assert graph.n_examples == len(lengths)
    pieces = [
        part
        for lo, hi in itertools.pairwise(chain.offsets)
        for part in (unary[lo:hi].ravel(), np.tile(pairwise.ravel(), hi - lo - 1))
    ]
    potentials = np.concatenate(pieces)
    result, expected = graph.infer(potentials), chain.infer((unary, pairwise))
    np.testing.assert_allclose(result.log_z, expected.log_z, rtol=1e-10)
    np.testing.assert_allclose(np.array(graph.variable_marginals(result.marginals)), expected.marginals[0], atol=1e-10)
    y, value = graph.argmax(potentials)
    best, score = chain.argmax((unary, pairwise))
    np.testing.assert_array_equal(y, best)
    np.testing.assert_allclose(value, score, rtol=1e-12)
    np.testing.assert_allclose(graph.score(potentials, best), score, rtol=1e-12)


def test_many_potentials_on_one_graph(rng):
    graph, _ = random_graph(rng, n=8, factors=10)
    potentials = rng.standard_normal((50, graph.size))
    results = [FactorGraph(graph.cardinalities, graph.factors, n_jobs=jobs).infer(potentials) for jobs in (1, 2)]
    np.testing.assert_array_equal(results[0].log_z, results[1].log_z)
    np.testing.assert_array_equal(results[0].marginals, results[1].marginals)
    for row in (0, 17, 49):
        alone = graph.infer(potentials[row])
        assert alone.log_z[0] == results[0].log_z[row]
        np.testing.assert_array_equal(alone.marginals, results[0].marginals[row])
    y, value = graph.argmax(potentials)
    np.testing.assert_allclose(graph.score(potentials, y), value, rtol=1e-12)


def test_blocks_larger_and_smaller_than_a_table(rng):
    """A clique of many entries takes several blocks; a residual of many entries takes several too."""
    graph = FactorGraph([3] * 9, [tuple(range(9)), *((v,) for v in range(9))])
    potentials = rng.standard_normal(graph.size)
    _, scores = configurations(graph, potentials)
    result = graph.infer(potentials)
    assert result.log_z[0] == pytest.approx(log_sum(scores), rel=1e-12)
    np.testing.assert_allclose(result.marginals[: 3**9], np.exp(scores - log_sum(scores)), rtol=1e-9)
    assert graph.argmax(potentials)[1][0] == pytest.approx(scores.max(), rel=1e-12)
    grid = FactorGraph.grid(4, 12, 2)
    potentials = rng.standard_normal(grid.size)
    columns = FactorGraph.grid(12, 4, 2)  # the same model, read the other way
    order = np.arange(48).reshape(4, 12).T.ravel()
    place = np.empty(48, np.int64)
    place[order] = np.arange(48)
    lookup = dict(zip(grid.factors, grid.tables(potentials), strict=True))
    tables = []
    for scope in columns.factors:
        key = tuple(int(order[v]) for v in scope)
        tables.append(lookup[key])
    assert columns.log_partition(tables)[0] == pytest.approx(grid.log_partition(potentials)[0], rel=1e-12)


def test_near_deterministic_tables_keep_their_digits(rng):
    graph = FactorGraph([2] * 200, [(0,), *((t, t + 1) for t in range(199)), (199,)])
    flip = np.array([[0.0, -800.0], [-800.0, 0.0]])
    tables = [np.array([0.0, -3000.0]), *([flip] * 199), np.array([-4000.0, 0.0])]
    # all 0: -4000, all 1: -3000, one change on the way: -800 (199 ways)
    result = graph.infer(tables)
    assert result.log_z[0] == pytest.approx(-800.0 + np.log(199.0), rel=1e-12)
    p = np.array(graph.variable_marginals(result.marginals))[:, 1]
    np.testing.assert_allclose(p, np.arange(200) / 199.0, atol=1e-12)


def test_samples_have_the_right_frequencies(rng):
    graph = FactorGraph([2, 3, 2, 3, 2], [(0, 1), (1, 2, 3), (3, 4), (4, 0), ()])
    potentials = rng.standard_normal(graph.size)
    potentials[[1, 9, 20]] = -np.inf
    states, scores = configurations(graph, potentials)
    draws = graph.sample(potentials, 20_000, random_state=0)
    np.testing.assert_array_equal(draws, graph.sample(potentials, 20_000, random_state=0))
    code = np.ravel_multi_index(tuple(draws.T), tuple(graph.cardinalities))
    seen = np.bincount(code, minlength=len(states)) / len(draws)
    p = np.exp(scores - log_sum(scores))
    assert np.all(seen[p == 0.0] == 0.0)
    assert np.abs(seen - p).max() < 4.0 * np.sqrt(0.25 / len(draws))


def test_conditioning_is_slicing(rng):
    graph, potentials = random_graph(rng, n=6, factors=8)
    free = [v for v in range(6) if graph.cardinalities[v] > 1][:2]
    evidence = dict.fromkeys(free, 1)
    given, index = graph.condition(evidence)
    states, scores = configurations(graph, potentials)
    keep = np.all(states[:, free] == 1, axis=1)
    assert given.log_partition(potentials[index])[0] == pytest.approx(log_sum(scores[keep]), rel=1e-12)
    with pytest.raises(ValueError, match="evidence gives state 9 to variable 0"):
        graph.condition({0: 9})
    with pytest.raises(ValueError, match="evidence names variable 77"):
        graph.condition({77: 0})


def test_graphs_of_networkx(rng):
    networkx = pytest.importorskip("networkx")
    source = networkx.Graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "c")])
    source.add_node("d")
    networkx.set_node_attributes(source, {"a": 2, "b": 3, "c": 4, "d": 5}, "states")
    graph = FactorGraph.from_networkx(source, "states")
    assert graph.cardinalities.tolist() == [2, 3, 4, 5]
    assert graph.factors == ((0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 2))  # no edge from c to itself
    by_node = FactorGraph.from_networkx(source, {"d": 5, "c": 4, "b": 3, "a": 2})
    assert by_node.cardinalities.tolist() == [2, 3, 4, 5]
    assert FactorGraph.from_networkx(source).cardinalities.tolist() == [2, 2, 2, 2]
    grid = FactorGraph.from_networkx(networkx.grid_2d_graph(3, 4))
    ours = FactorGraph.grid(3, 4)
    assert sorted(map(sorted, grid.factors)) == sorted(map(sorted, ours.factors))
    doubled = networkx.MultiGraph([(0, 1), (0, 1)])
    assert FactorGraph.from_networkx(doubled).factors == ((0,), (1,), (0, 1), (0, 1))


def test_the_width_is_known_before_any_work():
    grid = FactorGraph.grid(10, 10)
    cost = grid.cost()
    assert 10 <= cost.width <= 13
    assert FactorGraph.complete(6, 3).cost().largest == 3**6
    tree = FactorGraph([4] * 50, [((t - 1) // 2, t) for t in range(1, 50)])
    assert tree.cost().width == 1
    large = FactorGraph.grid(60, 60)
    with pytest.raises(TooLargeError, match=r"exact sums need a table of .* Raise memory_limit, or choose an approx"):
        large.log_partition(np.zeros(large.size), "exact", memory_limit=1e7)
    with pytest.raises(TooLargeError, match=r"\(width 1\d, "):
        grid.log_partition(np.zeros(grid.size), "exact", memory_limit=1e5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2, 0], []), "integers >= 1"),
        (([2, 2], [(0, 2)]), "factor 0 must have different variables below 2"),
        (([2, 2], [(0,), (1, 1)]), "factor 1 must have different variables"),
        (([2, 2], [(0,), (0, 1)], [0, 1]), "factor 1 must have variables, and all of one example"),
        (([2, 2], [(0,), ()], [0, 1]), "factor 1 must have variables"),
        (([2, 2], [], [0, 2]), "from 0 up in order"),
    ],
)
def test_bad_graphs_are_refused(arguments, message):
    cardinalities, factors, *examples = arguments
    with pytest.raises(ValueError, match=message):
        FactorGraph(cardinalities, factors, examples=examples[0] if examples else None)


def test_constants_have_no_place_in_a_union():
    plain, constant = FactorGraph([2], [(0,)]), FactorGraph([2], [(0,), ()])
    with pytest.raises(ValueError, match=r"graphs\[1\] has a factor without variables \(1\).* Add its entry to a factor"):
        FactorGraph.union([plain, constant])
    alone = FactorGraph.union([constant])
    assert alone.log_partition([np.zeros(2), np.array(0.5)])[0] == pytest.approx(np.log(2.0) + 0.5)


def test_bad_potentials_are_refused():
    graph = FactorGraph([2, 3], [(0, 1), (1,)])
    for potentials, message in (
        (np.zeros(5), "end in 9 entries"),
        ([np.zeros((3, 2)), np.zeros(3)], r"factor 0 must have shape \(2, 3\)"),
        (np.array([0.0] * 7 + [np.nan, 0.0]), "NaN or .inf .-inf forbids.: factor 1"),
    ):
        with pytest.raises(ValueError, match=message):
            graph.infer(potentials)
    with pytest.raises(ValueError, match="state 3 for variable 1"):
        graph.score(np.zeros(9), [0, 3])


def test_auto_leaves_out_options_of_the_other_engines():
    graph = FactorGraph.grid(3, 3)
    exact = graph.infer(np.zeros(graph.size), tol=1e-3, memory_limit=1e6)
    assert (exact.engine, exact.exact) == ("exact", True)
    other = graph.infer(np.zeros(graph.size), tol=1e-6, memory_limit=100.0)
    assert other.engine == "trw"
    assert other.lower[0] - 1e-12 <= exact.log_z[0] <= other.upper[0]
    np.testing.assert_allclose(graph.log_partition(np.zeros(graph.size), memory_limit=100.0), other.log_z, rtol=1e-6)


def wide_and_narrow(rng):
    """A union of small graphs and wide grids, factors in no order, with potentials and a limit that only the grids pass."""
    small = random_graph(rng)[0]
    small = FactorGraph(small.cardinalities, [scope for scope in small.factors if scope])
    graphs = [FactorGraph.grid(5, 5), small, FactorGraph.grid(2, 3), FactorGraph.grid(5, 5), FactorGraph([3], [])]
    sorted_union = FactorGraph.union(graphs)
    order = rng.permutation(sorted_union.n_factors)
    factors = [sorted_union.factors[k] for k in order]
    union = FactorGraph(sorted_union.cardinalities, factors, examples=sorted_union.examples)
    limit = 1.0 + max(16.0 * sum(graphs[i].cost().messages for i in (1, 2, 4)), 8.0 * small.cost().largest)
    assert limit < 16.0 * graphs[0].cost().messages
    return union, rng.standard_normal((2, union.size)), limit, np.array([False, True, True, False, True])


def test_auto_chooses_for_each_example(rng):
    graph, potentials, limit, narrow = wide_and_narrow(rng)
    exact = graph.infer(potentials, "exact")
    mixed = graph.infer(potentials, memory_limit=limit)
    assert (mixed.engine, mixed.exact) == ("mixed", False)
    assert graph.choose(memory_limit=limit) == "mixed"
    fits = np.tile(narrow, 2)
    np.testing.assert_allclose(mixed.log_z[fits], exact.log_z[fits], rtol=1e-12)
    np.testing.assert_array_equal(mixed.gap[fits], 0.0)
    assert np.all(mixed.lower <= exact.log_z + 1e-12)
    assert np.all(exact.log_z <= mixed.upper + 1e-12)
    assert np.all(mixed.gap[~fits] > 1e-3)
    entries = np.repeat(narrow[graph.factor_examples], np.diff(graph.offsets))
    np.testing.assert_allclose(mixed.marginals[:, entries], exact.marginals[:, entries], atol=1e-12)
    trw = graph.infer(potentials, "trw")
    np.testing.assert_allclose(mixed.marginals[:, ~entries], trw.marginals[:, ~entries], atol=1e-6)
    np.testing.assert_allclose(mixed.log_z[~fits], trw.log_z[~fits], rtol=1e-8)
    np.testing.assert_allclose(graph.log_partition(potentials, memory_limit=limit), mixed.log_z, rtol=1e-12)
    single = graph.infer(potentials[1], memory_limit=limit, lower=False, messages=mixed.messages[1:])
    assert single.n_iter == 1
    assert single.marginals.shape == (graph.size,)
    assert np.all(single.lower[~narrow] < mixed.lower[len(narrow) :][~narrow])  # what tables alone say
    y, value = graph.argmax(potentials, memory_limit=limit)
    best = graph.argmax(potentials, "exact")[1]
    np.testing.assert_allclose(graph.score(potentials, y), value, rtol=1e-12)
    np.testing.assert_allclose(value[fits], best[fits], rtol=1e-12)
    assert np.all(value <= best + 1e-12)
    np.testing.assert_array_equal(graph.argmax(potentials[1], memory_limit=limit)[0], y[1])
    potentials[:, np.repeat(graph.factor_examples == 2, np.diff(graph.offsets))] = -np.inf
    with pytest.raises(ValueError, match="forbid every configuration of example 2"):
        graph.infer(potentials[0], memory_limit=limit)


def test_auto_is_exact_for_the_cheapest_as_long_as_they_fit_together(rng, monkeypatch):
    graph = FactorGraph.union([FactorGraph.grid(3, 3)] * 4)
    alone = FactorGraph.grid(3, 3).cost()
    potentials = rng.standard_normal(graph.size)
    for share, exact in ((4.0, 4), (3.0, 3), (2.5, 2), (0.5, 0)):
        result = graph.infer(potentials, memory_limit=share * alone.memory + 1.0)
        assert result.engine == ("exact" if exact == 4 else "mixed" if exact else "trw")
        assert np.sum(result.gap == 0.0) == exact
    monkeypatch.setattr("partita.graph.structure.factor_graph.AUTO_ENTRIES", 3.0 * alone.total)
    assert np.sum(graph.infer(potentials).gap == 0.0) == 3


def test_factors_as_matrices(rng):
    """A factor in every row, between tuples if need be."""
    pairs = np.array([[0, 1], [1, 2], [2, 3]])
    listed = FactorGraph([2, 3, 2, 2], [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (0, 3)])
    mixed = FactorGraph([2, 3, 2, 2], [np.arange(4)[:, None], pairs, (0, 3)])
    assert listed.factors == mixed.factors
    np.testing.assert_array_equal(listed.offsets, mixed.offsets)
    u = rng.standard_normal(listed.size)
    assert listed.log_partition(u)[0] == mixed.log_partition(u)[0]
    with pytest.raises(ValueError, match=r"factor 2 must have different variables below 4, got \(3, 4\)"):
        FactorGraph([2] * 4, [np.array([[0, 1], [1, 2], [3, 4], [2, 2]])])
    with pytest.raises(ValueError, match="of integers"):
        FactorGraph([2] * 4, [np.array([[0.0, 1.0]])])
    with pytest.raises(ValueError, match=r"factor 1 must have variables, and all of one example, got \(1, 2\)"):
        FactorGraph([2] * 4, [pairs], examples=[0, 0, 1, 1])


def test_examples_apart(rng):
    """What `each_example` cuts out is what was put together."""
    graphs = [
        FactorGraph([2, 3], [(0,), (0, 1)]),
        FactorGraph([3], [(0,)]),
        FactorGraph([2, 2, 2], [(2, 0), (1,), (0, 1, 2)]),
    ]
    union = FactorGraph.union(graphs)
    u = rng.standard_normal(union.size)
    parts = each_example(union)
    for graph, part in zip(graphs, parts, strict=True):
        assert part.graph.factors == graph.factors
        np.testing.assert_array_equal(part.graph.cardinalities, graph.cardinalities)
    apart = [part.graph.log_partition(u[part.index])[0] for part in parts]
    np.testing.assert_allclose(union.log_partition(u), apart, rtol=1e-14)


@pytest.mark.parametrize("factors", [[(0.7, 1.2)], [0, 1], [("a", 1)]])
def test_factors_that_are_none(factors):
    with pytest.raises(ValueError, match="tuples of integers"):
        FactorGraph([2, 2], factors)


def test_graphs_of_many_factors_are_made_without_a_list_of_them():
    assert "factors" not in vars(FactorGraph.grid(30, 30))

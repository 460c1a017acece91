"""Composite likelihoods on factor graphs against enumeration."""

import itertools

import numpy as np
import pytest
from enumeration import configurations

import partita.graph.structure.free_sets as free_sets
from partita import CompositeLikelihood
from partita.features import TableType, TiedTables
from partita.graph.features.statistics import table_types
from partita.graph.objective.asymptotics import blocks_given_rest
from partita.graph.objective.composite import GraphComposite
from partita.objectives import GraphLikelihood
from partita.objectives.refinement import newton_step
from partita.solvers import minimize
from partita.structures import FactorGraph

PAIRS = [((0,), (1,)), ((2, 3), (0,)), ((4,), ()), ((1, 4), (0, 2, 3))]


def random_graph(rng):
    counts = rng.integers(1, 4, 5)
    scopes = [(v,) for v in range(5) if rng.random() < 0.7]
    scopes += [pair for pair in itertools.combinations(range(5), 2) if rng.random() < 0.5]
    graph = FactorGraph(counts, [*scopes, (0, 2, 3)])
    return TiedTables(graph, table_types(graph, None, "entries"))


def log_conditional(features, theta, row, A, B):
    graph = features.graph
    states, scores = configurations(graph, features.forward(theta))
    given = (states[:, list(B)] == row[list(B)]).all(1)
    both = given & (states[:, list(A)] == row[list(A)]).all(1)
    return np.log(np.exp(scores[both]).sum()) - np.log(np.exp(scores[given]).sum())


@pytest.mark.parametrize("largest", [1024, 3])
@pytest.mark.parametrize("refresh", [True, False])
def test_value_gradient_and_products(refresh, largest, monkeypatch):
    """Sets written out and sets with junction trees; all sets, listed pairs, hidden variables."""
    monkeypatch.setattr(free_sets, "LARGEST", largest)
    objects = [*blocks_given_rest(5, 1), *blocks_given_rest(5, 2), *blocks_given_rest(5, 5), *PAIRS]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        features = random_graph(rng)
        X = np.column_stack([rng.integers(0, count, 7) for count in features.graph.cardinalities])
        theta, w = rng.normal(size=features.size), rng.random(7)
        composite = CompositeLikelihood(
            orders={1: 0.7, 2: 0.3, "full": 0.2, "pairs": 0.5},
            pairs=PAIRS,
            weights={1: 1.0, 2: 2.0, "full": 0.5, "pairs": 0.3},
            blocks="all",
            refresh=refresh,
            random_state=seed,
        )
        objective = GraphComposite(features, X, composite, weights=w, penalty=0.1)
        point = objective.at(theta)
        shares, beta = np.broadcast_to(objective.shares, (7, len(objects))), objective.beta[objective.objects.groups]
        want = 0.05 * theta @ theta
        for r, j in zip(*np.nonzero(shares), strict=True):
            want -= w[r] * shares[r, j] * beta[j] * log_conditional(features, theta, X[r], *objects[j])
        assert point.value == pytest.approx(want, abs=1e-9)
        d, e = rng.normal(size=features.size), 1e-5
        ahead, behind = objective.at(theta + e * d), objective.at(theta - e * d)
        assert point.gradient @ d == pytest.approx((ahead.value - behind.value) / (2 * e), rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(point.hessian_product()(d), (ahead.gradient - behind.gradient) / (2 * e), atol=1e-6)
        scores = np.concatenate(list(point.score_chunks()))
        np.testing.assert_allclose(0.1 * theta - scores.sum(0), point.gradient, atol=1e-9)
        one = GraphComposite(features, X[2:3], composite, weights=w[2:3], penalty=0.1)
        if refresh:
            np.testing.assert_allclose(scores[2], 0.1 * theta - one.at(theta).gradient, atol=1e-9)


def test_a_union_of_graphs_is_the_sum_of_its_graphs():
    rng = np.random.default_rng(0)
    single = FactorGraph([2, 3, 2], [(0,), (1,), (2,), (0, 1), (1, 2)])
    union = FactorGraph.union([single, single])
    F = rng.normal(size=(2, 2))
    composite = CompositeLikelihood(orders={1: 1.0, 2: 0.5, "full": 0.25})

    def tied(graph, rows):
        first = [TableType(np.arange(4, 5 * len(rows), 5), features=rows)]
        return TiedTables(graph, [*first, TableType(np.arange(3, 5 * len(rows), 5))])

    theta, y, w = rng.normal(size=tied(single, F[:1]).size), rng.integers(0, 2, 6), np.array([0.5, 2.0])
    whole = GraphComposite(tied(union, F), y, composite, weights=w, penalty=0.3)
    parts = [
        GraphComposite(tied(single, F[i : i + 1]), y[3 * i : 3 * i + 3], composite, weights=w[i : i + 1]) for i in range(2)
    ]
    assert whole.at(theta).value == pytest.approx(sum(p.at(theta).value for p in parts) + 0.15 * theta @ theta)
    scores = np.concatenate(list(whole.at(theta).score_chunks()))
    np.testing.assert_allclose(scores, [-p.at(theta).gradient for p in parts], atol=1e-12)


def test_full_order_is_the_likelihood():
    rng = np.random.default_rng(1)
    features = random_graph(rng)
    X = np.column_stack([rng.integers(0, count, 9) for count in features.graph.cardinalities])
    theta = rng.normal(size=features.size)
    ours = GraphComposite(features, X, CompositeLikelihood(orders={"full": 1.0})).at(theta)
    theirs = GraphLikelihood(features, X).at(theta)
    assert ours.value == pytest.approx(theirs.value)
    np.testing.assert_allclose(ours.gradient, theirs.gradient, atol=1e-9)


def test_connected_blocks_say_the_same_as_all_up_to_weights():
    """Sets that fall apart add objects of lower order."""
    graph = FactorGraph([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3)])
    features = TiedTables(graph, table_types(graph, None, "spins"))
    X = np.random.default_rng(0).integers(0, 2, (6, 4))
    theta = np.array([0.3, -0.7, 1.1])

    def value(**options):
        return GraphComposite(features, X, CompositeLikelihood(**options)).at(theta).value

    single = [value(pairs=[((v,), tuple(u for u in range(4) if u != v))]) for v in range(4)]
    apart = single[0] * 2 + single[1] + single[2] + single[3] * 2  # (0, 2), (0, 3), (1, 3)
    assert value(orders={2: 1.0}, blocks="all") == pytest.approx(value(orders={2: 1.0}) + apart)


def test_equal_rows_are_one_item_whatever_the_threads():
    X = np.random.default_rng(0).integers(0, 2, (3000, 36))
    values = []
    for jobs in (1, 3):
        grid = FactorGraph.grid(6, 6, n_jobs=jobs)
        features = TiedTables(grid, table_types(grid, None, "spins"))
        objective = GraphComposite(features, X, CompositeLikelihood(orders={1: 1.0, 2: 0.4}, refresh=False, random_state=3))
        point = objective.at(np.linspace(-1, 1, features.size))
        values.append((point.value, *point.gradient))
        assert objective.sets.n_items <= 36 * 16 + 60 * 64 < X.size
    assert values[0] == values[1]


def test_uncovered_weights_and_hidden_variables_are_said():
    graph = FactorGraph([2, 2, 2], [(0, 1), (1, 2)])
    features = TiedTables(graph, table_types(graph, None, "spins"))
    X = np.random.default_rng(0).integers(0, 2, (6, 3))
    with pytest.warns(UserWarning, match="do not cover the model: 1 of 2 weights"):
        GraphComposite(features, X, CompositeLikelihood(pairs=[((0,), (1, 2))])).check_covered()
    with pytest.warns(UserWarning, match="need not be concave"):
        GraphComposite(features, X, CompositeLikelihood(pairs=[((0,), (2,)), ((1,), ())])).check_covered()


def test_one_newton_step_reaches_the_accuracy_of_the_costlier_likelihood():
    rng = np.random.default_rng(5)
    graph = FactorGraph.complete(5)
    features = TiedTables(graph, table_types(graph, None, "contrasts"))
    X = graph.sample(features.forward(rng.normal(size=features.size)), 20_000, rng)
    cheap = minimize(GraphComposite(features, X, CompositeLikelihood()), tol=1e-10).parameters
    whole = GraphLikelihood(features, X)
    best = minimize(whole, tol=1e-10).parameters
    refined = newton_step(whole, cheap).parameters
    assert np.abs(refined - best).max() < 0.05 * np.abs(cheap - best).max()


@pytest.mark.parametrize(
    ("composite", "message"),
    [
        (CompositeLikelihood(orders={0: 1.0}), "numbers of variables from 1"),
        (CompositeLikelihood(orders={1: 1.5}), "probability above 0"),
        (CompositeLikelihood(orders={1: 0.5}, policy="multinomial"), "sum to one"),
        (CompositeLikelihood(orders={"pairs": 1.0}), "'pairs' if pairs are given"),
        (CompositeLikelihood(weights="best"), "weights"),
        (CompositeLikelihood(weights={2: 1.0}), "keys of orders"),
        (CompositeLikelihood(weights={1: 0.0}), "not all be zero"),
        (CompositeLikelihood(policy="sometimes"), "policy"),
        (CompositeLikelihood(policy=3), "mean, second and draw"),
        (CompositeLikelihood(refine=2), "refine must be"),
        (CompositeLikelihood(refine={0: 1.0}), "numbers of variables from 1"),
    ],
)
def test_refusals(composite, message):
    with pytest.raises(ValueError, match=message):
        composite.check()


def test_refusals_that_need_a_graph():
    graph = FactorGraph([2, 2, 2], [(0, 1), (1, 2)])
    features = TiedTables(graph, table_types(graph, None, "spins"))
    X = np.zeros((2, 3), int)
    for composite, message in [
        (CompositeLikelihood(orders={4: 1.0}), "no example has more than 3"),
        (CompositeLikelihood(pairs=[]), "must not be empty"),
        (CompositeLikelihood(pairs=[((0,), (0,))]), "different variables below 3"),
        (CompositeLikelihood(pairs=[((3,), ())]), "different variables below 3"),
        (CompositeLikelihood(policy=lambda orders: CompositeLikelihood().law(np.zeros(2, int))), "an example has 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            GraphComposite(features, X, composite)
    with pytest.raises(ValueError, match="all values known"):
        GraphComposite(features, [[0, -1, 0]], CompositeLikelihood())

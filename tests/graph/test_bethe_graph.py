"""GraphCRF with tree-reweighted likelihoods, certified, by messages and by best configurations only."""

import numpy as np
import pytest
from sklearn.base import clone

from partita import CapabilityError, GraphCRF, MarkovNetwork, minimize
from partita.features import TableType, TiedTables
from partita.graph.data.graphs import read_graphs
from partita.graph.data.labels import read_labels
from partita.inference import LinearProgramOracle, MaxFlowOracle, tree_reweighted
from partita.objectives import GraphLikelihood
from partita.solvers import BlockFrankWolfe
from partita.structures import FactorGraph


def pictures(rng, count=6, height=5, width=4, labels=2):
    """Grids of noisy labels that agree with their neighbours, with a feature of edges."""
    number = np.arange(height * width).reshape(height, width)
    across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    edges = np.vstack([np.column_stack([one.ravel(), two.ravel()]) for one, two in (across, down)])
    X, y = [], []
    for _ in range(count):
        truth = np.zeros((height, width), int)
        truth[:, rng.integers(1, width) :] = rng.integers(1, labels)
        x = (truth.ravel() == np.arange(labels)[:, None]).T + rng.standard_normal((truth.size, labels))
        X.append((x, edges, np.abs(x[edges[:, 0]] - x[edges[:, 1]]).sum(1, keepdims=True)))
        y.append(truth.ravel())
    return X, y


def objective(X, y, l2=1.0):
    data = read_graphs(X, True)
    codes, classes, _ = read_labels(y, data, None)
    model = GraphCRF()
    model.kinds_, model.widths_ = list(data.factors), [1 if F is None else F.shape[1] for _, F in data.factors.values()]
    model.classes_, model.symmetric_ = classes["node"], False
    return GraphLikelihood(model._compile(data)[1], codes, penalty=l2, engine="trw", options={"tol": 1e-12})


@pytest.mark.parametrize("labels", [2, 3])
def test_the_certificate_holds_at_any_parameters(rng, labels):
    X, y = pictures(rng, labels=labels)
    F = objective(X, y)
    best = F.at(np.zeros(F.size))
    for scale in (0.0, 0.1, 1.0):
        point = F.at(scale * rng.standard_normal(F.size))
        blocks = F.blocks()
        assert -blocks.value() <= point.value + 1e-9  # weak duality
        best = min(best, point, key=lambda p: p.value)
        assert np.isfinite(point.gap)
    fitted = GraphCRF(likelihood="bethe", penalize_intercept=True, tol=1e-10).fit(X, y)
    minimum = F.at(fitted.parameters_).value
    assert fitted.gap_ <= 1e-10 * F.scale
    for scale in (0.0, 0.1, 1.0):
        point = F.at(fitted.parameters_ + scale * rng.standard_normal(F.size))
        assert point.value - minimum <= point.gap


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("batch", [False, True])
def test_best_configurations_alone_lead_to_the_same_parameters(rng, labels, batch):
    X, y = pictures(rng, count=3, height=3, width=3, labels=labels)
    messages = GraphCRF(likelihood="bethe", penalize_intercept=True, l2=5.0, tol=1e-10).fit(X, y)
    F = objective(X, y, 5.0)
    blocks = F.blocks()
    minimum = F.at(messages.parameters_).value
    gaps = []
    for _ in range(60):
        before = blocks.value()
        if batch:
            blocks.step_all(None)
        else:
            for m in range(3):
                blocks.step(m, None)
        assert blocks.value() <= before + 1e-12
        gaps.append(blocks.gap())
        assert -1e-9 <= blocks.value() + minimum <= gaps[-1] + 1e-9
        away = blocks.parameters - messages.parameters_
        assert 2.5 * float(away @ away) <= gaps[-1] + 1e-9
    assert min(gaps) < 0.02 * gaps[0]


@pytest.mark.filterwarnings("ignore:GraphCRF stopped at the iteration limit")
def test_frank_wolfe_as_a_solver(rng):
    X, y = pictures(rng, count=4)
    fast = GraphCRF(likelihood="bethe", penalize_intercept=True, l2=2.0).fit(X, y)
    slow = clone(fast).set_params(solver=BlockFrankWolfe(), max_iter=150, tol=1e-2).fit(X, y)
    assert slow.gap_ < 1e-3 * slow.trace_.gap[0]
    away = slow.parameters_ - fast.parameters_
    assert float(away @ away) <= 2.0 * (slow.gap_ + fast.gap_)  # both are as far from the minimum as they say
    assert fast.score(X, y) > 0.9


def test_what_bethe_refuses(rng):
    X, y = pictures(rng, count=2)
    with pytest.raises(ValueError, match="l2 must be above zero"):
        GraphCRF(likelihood="bethe", l2=0.0).fit(X, y)
    with pytest.raises(ValueError, match="engine 'auto' or 'trw'"):
        GraphCRF(likelihood="bethe", engine="exact").fit(X, y)
    with pytest.raises(ValueError, match="all known"):
        GraphCRF(likelihood="bethe").fit(X, [np.where(np.arange(len(t)) == 0, -1, t) for t in y])
    with pytest.raises(CapabilityError, match="block_frank_wolfe cannot minimise"):
        GraphCRF(solver="block_frank_wolfe", engine="exact").fit(X, y)


@pytest.mark.parametrize("cards", [[2] * 6, [3, 2, 4, 2, 3, 2]])
def test_the_certificate_of_tree_reweighted_messages(rng, cards):
    """It is above the distance from the largest free energy, after any number of sweeps, and goes to zero."""
    scopes = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (5, 0), (1, 3, 5)]
    graph = FactorGraph(cards, scopes if cards[0] == 3 else scopes[:-1])
    u = 2.0 * rng.standard_normal((1, graph.size))
    best = tree_reweighted(graph, u, tol=1e-13, max_iter=10_000, lower=False, certify=True)
    assert best.gap[0] < 1e-9
    for sweeps in (1, 2, 3, 5, 10, 20):
        found = tree_reweighted(graph, u, max_iter=sweeps, lower=False, certify=True)
        attained = found.upper - found.gap
        assert attained[0] <= best.log_z[0] + 1e-9 <= found.upper[0] + 2e-9


def test_best_points_respect_what_tables_forbid(rng):
    X, _ = pictures(rng, count=2, height=2, width=2)
    y = [np.array([0, 0, 0, 1]), np.array([0, 1, 0, 1])]
    options = {"likelihood": "bethe", "penalize_intercept": True, "tables": {"edge": [[0.0, 0.0], [-np.inf, 0.0]]}}
    messages = GraphCRF(tol=1e-9, **options).fit(X, y)
    solver = BlockFrankWolfe(oracle=LinearProgramOracle)
    found = GraphCRF(solver=solver, tol=1e-6, max_iter=2000, **options).fit(X, y)
    assert found.gap_ <= 1e-6 * 8
    assert found.n_oracle_calls_ > 0
    np.testing.assert_allclose(found.parameters_, messages.parameters_, atol=3e-3)


@pytest.mark.parametrize("kind", ["double", "nested"])
def test_double_edges_and_nested_factors_by_best_points(rng, kind):
    """What messages merge is merged here too."""
    scopes = [(0, 1), (1, 2), (2, 0), (0, 1)] if kind == "double" else [(0, 1, 2), (1, 2), (2, 3), (0,)]
    graph = FactorGraph([2] * 4, scopes)
    features = TiedTables(graph, [TableType([k]) for k in range(len(scopes))])
    F = GraphLikelihood(features, rng.integers(0, 2, (1, 4)), penalty=1.0, engine="trw", options={"tol": 1e-12})
    best = minimize(F, tol=0.0, gap_tol=1e-9)
    found = minimize(F, solver=BlockFrankWolfe(oracle=LinearProgramOracle), max_iter=3000, tol=0.0, gap_tol=1e-6)
    assert found.value - 1e-6 <= best.value + 1e-9 <= found.value + 2e-9
    np.testing.assert_allclose(found.parameters, best.parameters, atol=2e-3)


def test_no_messages_are_passed_in_training_by_best_configurations(rng, monkeypatch):
    X, y = pictures(rng, count=3, height=3, width=3)
    messages = GraphCRF(likelihood="bethe", penalize_intercept=True, l2=5.0, tol=1e-9).fit(X, y)

    def refuse(*args, **options):
        raise AssertionError("messages were passed")

    monkeypatch.setattr("partita.graph.objective.likelihood.GraphPoint.__init__", refuse)
    calls = []

    def oracle(graph):
        solver = MaxFlowOracle(graph)

        def ask(potentials):
            calls.append(len(potentials))
            return solver(potentials)

        return ask

    model = GraphCRF(
        likelihood="bethe", penalize_intercept=True, l2=5.0, solver=BlockFrankWolfe(oracle=oracle), tol=1e-5, max_iter=3000
    ).fit(X, y)
    assert model.n_oracle_calls_ == len(calls)
    assert model.gap_ <= 1e-5 * 27
    np.testing.assert_allclose(model.parameters_, messages.parameters_, atol=1e-2)


def test_bethe_models_are_saved_and_cloned(rng, tmp_path):
    X, y = pictures(rng, count=2)
    model = clone(GraphCRF(likelihood="bethe", l2=3.0, solver=BlockFrankWolfe(batch=True), max_iter=3, tol=1e3)).fit(X, y)
    model.save(tmp_path / "model")
    again = GraphCRF.load(tmp_path / "model")
    assert again.solver == BlockFrankWolfe(batch=True)
    assert again.gap_ == model.gap_
    np.testing.assert_array_equal(again.predict(X)[0], model.predict(X)[0])


def test_rows_on_one_graph_share_one_block(rng):
    """Markov networks: as many rows as you like, one example in the dual."""
    truth = MarkovNetwork.ising([(0, 1), (1, 2), (2, 3), (3, 0)])
    X = rng.integers(0, 2, (50, 4))
    X[:, 1] = np.where(rng.random(50) < 0.8, X[:, 0], X[:, 1])
    fast = clone(truth).set_params(likelihood="bethe", l2=1.0, tol=1e-9).fit(X)
    slow = clone(truth).set_params(
        likelihood="bethe", l2=1.0, solver=BlockFrankWolfe(averaging=False), tol=1e-4, max_iter=500
    )
    slow.fit(X)
    away = slow.parameters_ - fast.parameters_
    assert 0.5 * float(away @ away) <= slow.gap_ + fast.gap_ <= 1e-4 * 200 + 1e-6
    assert slow.gap_ >= slow._point.value - fast._point.value


@pytest.mark.parametrize("labels", [["a", "b"], [False, True], [0, 1], [2.5, -3.0]])
def test_labels_as_arrays_and_as_lists(rng, labels):
    X, y = pictures(rng, count=3)
    named = [np.array(labels)[t] for t in y]
    arrays = GraphCRF(l2=1.0).fit(X, named)
    lists = GraphCRF(l2=1.0).fit(X, [t.tolist() for t in named])
    mixed = GraphCRF(l2=1.0).fit(X, [named[0], *(t.tolist() for t in named[1:])])
    for other in (lists, mixed):
        np.testing.assert_array_equal(arrays.classes_, other.classes_)
        np.testing.assert_array_equal(arrays.parameters_, other.parameters_)
    with pytest.raises(ValueError, match="known are"):
        arrays.log_likelihood(X, [np.full(20, "c" if labels == ["a", "b"] else 7) for _ in X])


def test_certificates_of_tables_that_forbid(rng):
    """Both as engine and in learning: finite, valid, and small in the end."""
    triangle = FactorGraph([2] * 3, [(0, 1), (1, 2), (2, 0)])
    u = rng.standard_normal((1, 12))
    u[0, 1] = -np.inf
    best = tree_reweighted(triangle, u, certify=True, lower=False, tol=1e-12)
    assert 0.0 <= best.gap[0] < 1e-6
    X, y = pictures(rng, count=4, height=3, width=3, labels=3)
    tables = np.zeros((3, 3))
    tables[0, 2] = -np.inf
    y = [np.zeros(9, int), np.ones(9, int), np.full(9, 2), np.repeat([0, 1, 1], 3)]
    fitted = GraphCRF(likelihood="bethe", l2=0.5, tables={"edge": tables}, classes=[0, 1, 2]).fit(X, y)
    assert fitted.status_.ok
    assert fitted.gap_ <= 1e-6 * 36


def test_fitting_again_from_where_it_ended(rng):
    for seed in range(6):
        X, y = pictures(np.random.default_rng(seed), count=4, height=5, width=5)
        model = GraphCRF(likelihood="bethe", l2=0.5, warm_start=True).fit(X, y)
        first = model.gap_
        model.fit(X, y)
        assert model.gap_ <= max(first, 1e-6 * 100)
        assert len(model.trace_) == model.n_iter_ + 1


def test_three_labels_by_best_points(rng):
    """On cycles, with more than two labels, hulls of configurations are too small: linear programs are not."""
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    X = [(rng.standard_normal((3, 2)), edges) for _ in range(3)]
    y = [rng.integers(0, 3, 3) for _ in range(3)]
    y[0] = np.arange(3)
    F = objective(X, y, 1.0)
    model = GraphCRF(likelihood="bethe", penalize_intercept=True, l2=1.0, tol=1e-9).fit(X, y)
    best = F.at(model.parameters_).value
    blocks = F.blocks()
    for _ in range(120):
        for m in range(3):
            blocks.step(m, None)
    assert -1e-8 <= blocks.value() + best <= 0.02


def test_labels_of_two_kinds_are_refused(rng):
    X, _ = pictures(rng, count=2)
    with pytest.raises(ValueError, match="labels of one kind"):
        GraphCRF().fit(X, [["a", "b"] * 10, [0, 1] * 10])
    typed = [{"nodes": {"p": np.ones((2, 1)), "q": np.ones((2, 1))}, "edges": np.array([[0, 2], [1, 3]])} for _ in range(2)]
    labels = [{"p": [0, 0], "q": [0, 1]}, {"p": [0, 0], "q": [1, 1]}]
    model = GraphCRF(likelihood="bethe", solver=BlockFrankWolfe(), max_iter=200, tol=1e-3).fit(typed, labels)
    assert model.gap_ <= 1e-3 * 8

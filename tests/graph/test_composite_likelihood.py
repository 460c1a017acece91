"""Composite likelihoods as users see them: on networks and graphs, with errors, budgets and comparisons."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from partita import BoltzmannChain, ChainCRF, CompositeLikelihood, GraphCRF, MarkovNetwork, load, tradeoff
from partita.graph.objective.operations import published_operations
from partita.structures import FactorGraph

THETA = np.repeat([-1.0, 1.0], 5)


def draw(net, theta, size, seed=0):
    features = net.feature_map()
    return features.graph.sample(features.forward(theta), size, seed)


def grid_edges(n):
    number = np.arange(n * n).reshape(n, n)
    across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    return np.vstack([np.column_stack([a.ravel(), b.ravel()]) for a, b in (across, down)])


def small_grid(n=4, **options):
    return MarkovNetwork.ising(grid_edges(n), **options)


def graphs(count, seed=0):
    """Noisy copies of smooth labels on random trees with one more edge."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(count):
        edges = np.array([*((rng.integers(v), v) for v in range(1, 6)), (0, 5)])
        labels = (np.cumsum(rng.random(6) < 0.4) % 2).astype(int)
        X.append((labels[:, None] + rng.normal(size=(6, 2)), np.unique(np.sort(edges, 1), axis=0)))
        y.append(labels)
    return X, y


@pytest.mark.parametrize(
    ("composite", "measure", "published"),
    [
        (CompositeLikelihood(), "det", 1.624489),
        (CompositeLikelihood({2: 1.0}), "det", 1.340994),
        (CompositeLikelihood({3: 1.0}), "det", 1.154390),
        (CompositeLikelihood({4: 1.0}), "det", 1.040530),
        (CompositeLikelihood({"full": 1.0}), "det", 1.0),
        (CompositeLikelihood({1: 0.7, 2: 0.3}), "det", 1.431941),
        (CompositeLikelihood({1: 0.7, 2: 0.3}, refresh=False), "det", 9.099417),
        (CompositeLikelihood({1: 1.0, 2: 0.3}), "det", 1.455400),
        (CompositeLikelihood({1: 1.0, 2: 0.3}, refresh=False), "det", 4.486886),
        (CompositeLikelihood({1: 0.7, 2: 0.3}, policy="multinomial"), "rdet", 1.039918),
        (CompositeLikelihood({1: 0.7, 2: 0.3}, policy="multinomial", refresh=False), "rdet", 2.663105),
        (CompositeLikelihood(refine="full"), "det", 1.0),
        (CompositeLikelihood(refine={2: 1.0}), "det", 1.340994),
    ],
)
def test_published_efficiencies(composite, measure, published):
    net = MarkovNetwork.boltzmann(5)
    assert composite.efficiency(net, THETA, measure=measure) == pytest.approx(published, abs=6e-7)


def test_weights_chosen_in_the_limit():
    net = MarkovNetwork.boltzmann(5)
    auto = CompositeLikelihood({1: 1.0, 2: 0.3}, weights="auto", refresh=False)
    assert auto.efficiency(net, THETA, "rdet") == pytest.approx(1.0494, abs=5e-5)


def test_selection_does_not_depend_on_data_drawn_with_the_same_seed():
    net = MarkovNetwork.boltzmann(5)
    one = CompositeLikelihood({1: 0.7, 2: 0.3}, policy="multinomial", refresh=False, random_state=5)
    model = MarkovNetwork.boltzmann(5, likelihood=one).fit(draw(net, THETA, 4000, seed=5))
    z = (model.parameters_ - THETA) / model.standard_errors()
    assert np.abs(z).max() < 4.5


def test_product_policy_has_one_object_of_each_order():
    groups = np.repeat([0, 1], [5, 10])
    law = CompositeLikelihood({1: 1.0, 2: 0.5}, policy="product", refresh=False).law(groups)
    Z = law.draw(4000, np.random.default_rng(0))
    assert (Z[:, :5].sum(1) == 1).all()
    assert Z[:, 5:].sum(1).max() == 1
    assert Z[:, 5:].sum(1).mean() == pytest.approx(0.5, abs=0.04)
    np.testing.assert_allclose(law.mean, np.repeat([0.2, 0.05], [5, 10]))


def test_limits_from_draws_agree_with_enumeration(monkeypatch):
    net = MarkovNetwork.boltzmann(5)
    mixed = CompositeLikelihood({1: 0.7, 2: 0.3}, refresh=False, random_state=0)
    exact = mixed.asymptotic_covariance(net, THETA)
    monkeypatch.setattr("partita.graph.objective.asymptotics.LARGEST", 10)
    drawn = mixed.asymptotic_covariance(net, THETA, samples=100_000, random_state=0)
    assert np.trace(drawn) / np.trace(exact) == pytest.approx(1.0, abs=0.03)
    assert mixed.efficiency(net, THETA, "rdet", samples=100_000, random_state=0) == pytest.approx(9.099417**0.1, rel=0.02)
    other = CompositeLikelihood()
    assert mixed.efficiency(net, THETA, "rdet", other, 100_000, 0) == pytest.approx((9.099417 / 1.624489) ** 0.1, rel=0.02)


def test_reported_covariance_is_that_of_the_limit():
    X = draw(MarkovNetwork.boltzmann(5), THETA, 20_000)
    for composite in (
        "pseudo",
        CompositeLikelihood({1: 0.7, 2: 0.3}, refresh=False, random_state=1),
        CompositeLikelihood(refine="full"),
    ):
        model = MarkovNetwork.boltzmann(5, likelihood=composite).fit(X)
        limit = (CompositeLikelihood() if composite == "pseudo" else composite).asymptotic_covariance(model, THETA)
        assert np.trace(model.asymptotic_covariance()) / np.trace(limit) == pytest.approx(1.0, abs=0.05)
        np.testing.assert_allclose(model.standard_errors(), np.sqrt(np.diag(limit) / 20_000), rtol=0.1)
        assert np.abs(model.parameters_ - THETA).max() < 4 * model.standard_errors().max()


def test_refinement_nears_the_likelihood():
    X = draw(small_grid(), np.full(40, 0.3), 3000)
    whole, cheap, better = (
        small_grid(likelihood=likelihood, tol=1e-9).fit(X).parameters_
        for likelihood in ("full", "pseudo", CompositeLikelihood(refine="full"))
    )
    assert np.abs(better - whole).max() < 0.1 * np.abs(cheap - whole).max()


def test_draws_estimate_the_exact_errors(monkeypatch):
    X = draw(small_grid(), np.full(40, 0.3), 1500)
    for likelihood in ("pseudo", "full"):
        model = small_grid(likelihood=likelihood, l2=1.0).fit(X)
        exact = model.standard_errors()
        with monkeypatch.context() as patch:
            patch.setattr("partita.graph.objective.information.SIZE_LIMIT", 10)
            drawn = model.standard_errors(draws=400, random_state=0)
            with pytest.raises(ValueError, match="need l2 > 0"):
                small_grid(likelihood=likelihood).fit(X).standard_errors()
        np.testing.assert_allclose(drawn, exact, rtol=5 / np.sqrt(800))


def test_influence_is_the_derivative_in_the_weight_of_an_example():
    X = draw(small_grid(3), np.full(21, 0.3), 300)
    w = np.ones(300)
    w[7] += 1e-4
    for likelihood in ("full", "pseudo"):
        model = small_grid(3, likelihood=likelihood, l2=1.0, tol=1e-12)
        influence = model.fit(X).influence()
        first = model.parameters_
        moved = (model.fit(X, sample_weight=w).parameters_ - first) / 1e-4
        np.testing.assert_allclose(influence[7], moved, atol=1e-5)
        assert influence.shape == (300, 21)


def test_information_is_refused_for_composite_likelihoods():
    model = MarkovNetwork.boltzmann(5, likelihood="pseudo").fit(draw(MarkovNetwork.boltzmann(5), THETA, 2000))
    with pytest.raises(ValueError, match="use method='sandwich'"):
        model.standard_errors("information")


def test_efficiency_from_data():
    X = draw(MarkovNetwork.boltzmann(5), THETA, 20_000)
    model = MarkovNetwork.boltzmann(5, likelihood="pseudo").fit(X)
    assert model.efficiency() == pytest.approx(1.624489**0.1, abs=0.02)
    assert model.efficiency(reference=CompositeLikelihood()) == pytest.approx(1.0, abs=1e-6)
    full = MarkovNetwork.boltzmann(5).fit(X)
    assert full.efficiency() == pytest.approx(1.0, abs=0.02)


def test_graphs_with_features():
    X, y = graphs(150)
    Xt, yt = graphs(150, seed=1)
    full = GraphCRF(l2=0.1).fit(X, y)
    score = full.log_likelihood(Xt, yt).mean()
    for likelihood in ("pseudo", CompositeLikelihood({1: 1.0, 2: 0.5}, weights="auto"), CompositeLikelihood({2: 1.0})):
        model = GraphCRF(l2=0.1, likelihood=likelihood).fit(X, y)
        assert model.log_likelihood(Xt, yt).mean() > score - 0.1
        assert model.score(Xt, yt) > full.score(Xt, yt) - 0.02
        errors = model.standard_errors()
        assert errors.keys() == model.weights_.keys()
        ratio = np.concatenate([e.ravel() for e in errors.values()]) / np.concatenate(
            [e.ravel() for e in full.standard_errors().values()]
        )
        assert 0.7 < np.median(ratio) < 1.5
    assert 0.9 < model.efficiency() < 2.0


def test_unknown_labels_are_refused():
    with pytest.raises(ValueError, match="all values known"):
        MarkovNetwork.boltzmann(3, likelihood="pseudo").fit([[0, 1, -1], [1, 1, 0]])
    X, y = graphs(3)
    with pytest.raises(ValueError, match="all values known"):
        GraphCRF(likelihood="pseudo").fit(X, [[None, *labels[1:]] for labels in y])


def test_clone_search_and_files(tmp_path):
    X = draw(small_grid(3), np.full(21, 0.3), 400)
    composite = CompositeLikelihood({1: 1.0, 2: 0.5}, weights={1: 1.0, 2: 0.3}, refresh=False, random_state=3)
    model = small_grid(3, likelihood=composite).fit(X)
    np.testing.assert_array_equal(clone(model).fit(X).parameters_, model.parameters_)
    model.save(tmp_path / "m.partita")
    again = load(tmp_path / "m.partita")
    assert again.likelihood == composite
    assert again.beta_ == {1: 1.0, 2: 0.3}
    np.testing.assert_array_equal(again.parameters_, model.parameters_)
    search = GridSearchCV(small_grid(3), {"likelihood": ["full", "pseudo", composite]}, cv=2).fit(X)
    assert len(search.cv_results_["mean_test_score"]) == 3
    jobs = [small_grid(3, likelihood=composite, n_jobs=n).fit(X).parameters_ for n in (1, 3)]
    np.testing.assert_array_equal(*jobs)


def test_budget_buys_accuracy():
    X = draw(MarkovNetwork.boltzmann(5), THETA, 20_000)
    found = [MarkovNetwork.boltzmann(5, budget=budget).fit(X) for budget in (0.5, 1.0, 20.0)]
    loss = [model.choice_["efficiency"] for model in found]
    assert loss[0] > 1.5 > loss[1] > 1.02 > loss[2]
    assert loss[1] == pytest.approx(1.624489**0.1, abs=0.01)
    assert [model.choice_["cost"] <= budget for model, budget in zip(found, (0.5, 1.0, 20.0), strict=True)] == [True] * 3
    assert found[0].likelihood_.rates == {1: 0.5}
    assert found[2].likelihood_.rates == {"full": 1.0}
    again = found[0].set_params(budget=None).fit(X)
    assert not hasattr(again, "choice_")
    assert not hasattr(again, "beta_")
    X, y = graphs(50)
    assert GraphCRF(budget=1.0).fit(X, y).likelihood_.rates == {1: 1.0}
    with pytest.raises(ValueError, match="leave likelihood='full'"):
        MarkovNetwork.boltzmann(5, budget=1.0, likelihood="pseudo").fit(X)
    with pytest.raises(ValueError, match="budget"):
        MarkovNetwork.boltzmann(5, budget=0.0).fit(X)


def test_comparison_of_likelihoods(tmp_path):
    found = tradeoff(MarkovNetwork.boltzmann(5), theta=THETA)
    assert found.names[0] == "PL1"
    assert found.loss[0] == pytest.approx(1.624489**0.1, abs=1e-6)
    assert found.loss[found.names.index("FL")] == pytest.approx(1.0)
    best = found.frontier()
    for i in np.flatnonzero(~best):
        assert any(
            found.operations[j] <= found.operations[i] and found.loss[j] <= found.loss[i] for j in np.flatnonzero(best)
        )
    assert "frontier" in str(found)
    found.plot(tmp_path / "a.png")
    found.plot(tmp_path / "b.png", cost="seconds")
    assert (tmp_path / "a.png").stat().st_size > 5000
    X, Xt = (draw(small_grid(3), np.full(21, 0.3), 400, seed) for seed in (0, 1))
    fitted = tradeoff(small_grid(3), X, likelihoods={"1": "pseudo", "all": "full"}, X_test=Xt)
    assert fitted.loss[1] == pytest.approx(-small_grid(3).fit(X).score(Xt))
    with pytest.raises(ValueError, match="theta or data"):
        tradeoff(small_grid(3), X, theta=np.zeros(21))
    with pytest.raises(ValueError, match="needs theta, or data"):
        tradeoff(small_grid(3), X)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "cg", "steepest"])
def test_solvers_agree(solver):
    X = draw(small_grid(3), np.full(21, 0.3), 400)
    composite = CompositeLikelihood({1: 1.0, 2: 0.5}, refresh=False, random_state=0)
    best = small_grid(3, likelihood=composite, l2=1.0, tol=1e-9).fit(X).parameters_
    found = small_grid(3, likelihood=composite, l2=1.0, tol=1e-6, solver=solver).fit(X)
    assert found.status_.ok
    np.testing.assert_allclose(found.parameters_, best, atol=1e-4)


def test_comparison_on_chains():
    rng = np.random.default_rng(0)
    X = [[str(rng.integers(5)) for _ in range(6)] for _ in range(60)]
    y = [[str(int(token) % 2) for token in row] for row in X]
    some = {"1": "pseudo", "1 and 2": CompositeLikelihood({1: 1.0, 2: 0.5}), "all": "full"}
    for model in (BoltzmannChain(l2=1.0), ChainCRF(l2=1.0)):
        rows = X if isinstance(model, BoltzmannChain) else [[{"w": token} for token in row] for row in X]
        found = tradeoff(model, rows[:40], y[:40], likelihoods=some, X_test=rows[40:], y_test=y[40:])
        assert found.operations[0] < found.operations[1]
        assert found.operations[0] < found.operations[2]
        fitted = clone(model).fit(rows[:40], y[:40])
        assert found.loss[2] == pytest.approx(-fitted.log_likelihood(rows[40:], y[40:]).sum() / 20, rel=1e-6)


def test_published_operations():
    """14 examples of 5 objects of order 1, and of the whole."""
    assert 14 * 5 * published_operations(5, 1) == 1540
    assert 14 * published_operations(5, 5) == 4620


def test_unfitted_networks_need_cardinalities():
    with pytest.raises(ValueError, match="list of cardinalities"):
        CompositeLikelihood().efficiency(MarkovNetwork(), THETA)
    with pytest.raises(ValueError, match="must be a MarkovNetwork"):
        CompositeLikelihood().efficiency(FactorGraph.complete(3), THETA)
    with pytest.raises(ValueError, match="theta must be 10 finite numbers"):
        CompositeLikelihood().efficiency(MarkovNetwork.boltzmann(5), np.zeros(3))
    with pytest.raises(ValueError, match="singular"):
        CompositeLikelihood().efficiency(MarkovNetwork(cardinalities=[2, 2]), np.zeros(8))


def test_operations_are_those_that_are_computed():
    """Sums weighted by probabilities need every object, however small its probability; what is drawn does not."""
    net = MarkovNetwork.boltzmann(5)
    rates = (1.0, 0.001)
    given = {str(rate): CompositeLikelihood({1: rate}) for rate in rates}
    drawn = {f"{rate}, once": CompositeLikelihood({1: rate}, refresh=False, random_state=0) for rate in rates}
    cost = tradeoff(net, likelihoods=given | drawn, theta=THETA).operations
    assert cost[0] == cost[1] == cost[2]
    assert cost[3] == pytest.approx(0.001 * cost[0])
    X = draw(net, THETA, 300)
    model = {"one": CompositeLikelihood({1: 0.001})}
    held = tradeoff(MarkovNetwork.boltzmann(5), X, likelihoods=model, X_test=X)
    assert held.operations[0] == cost[0]

"""Standard errors of every estimator against finite differences, and the bootstrap against the sandwich."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
import zoo

from partita import (
    BayesianNetwork,
    BoltzmannChain,
    ChainCRF,
    CompositeLikelihood,
    DependencyCRF,
    GraphCRF,
    HiddenChainCRF,
    LatentDynamicCRF,
    LatentSoftmax,
    MarkovNetwork,
    OracleCRF,
    SoftmaxRegression,
)
from partita.core.errors import DataWarning
from partita.objectives import uncertainty
from partita.objectives.information import dense_hessian


def quietly(call, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **options)


def heads():
    """Some heads unknown, some one of a set."""
    return [[None if i % 4 == 1 else {h, 0} if i % 4 == 2 else h for i, h in enumerate(row)] for row in zoo.HEADS]


HIDDEN = {"l2": 0.3, "n_hidden": 2, "random_state": 0, "tol": 1e-9}
SHARED = HiddenChainCRF(shared=True, **HIDDEN)
#: Estimators, what they are fitted to, the attributes that errors are of, and where their last point is.
MODELS = {
    "latent softmax": (LatentSoftmax(l2=0.3, random_state=0), (zoo.X, zoo.Y), ("coef_", "intercept_")),
    "hidden chain": (HiddenChainCRF(**HIDDEN), (zoo.ATTRIBUTES, zoo.WHOLE), ("parameters_",)),
    "hidden chain, shared": (SHARED, (zoo.ATTRIBUTES, zoo.WHOLE), ("parameters_",)),
    "latent dynamic": (LatentDynamicCRF(**HIDDEN), (zoo.ATTRIBUTES, zoo.TAGS), ("parameters_",)),
    "tree": (DependencyCRF(l2=0.5, tol=1e-9), (zoo.TOKENS[:8], zoo.HEADS[:8]), ("parameters_",)),
    "tree, partial": (DependencyCRF(l2=0.5, tol=1e-9), (zoo.TOKENS[:8], heads()[:8]), ("parameters_",)),
    "tokens": (BoltzmannChain(l2=0.5, tol=1e-9), (zoo.TOKENS, zoo.TAGS), ("token_weights_", "transition_weights_")),
}


def last_point(model):
    """Where training ended, and the matrix from its parameters to the user's weights."""
    if isinstance(model, LatentSoftmax):
        (_, columns, objective, _, _), point = model._problem_ended
        maps = [columns.to_columns(*objective.features.unpack(unit)) for unit in np.eye(objective.size)]
        return point, np.array([np.concatenate([a.ravel(), b.ravel()]) for a, b in maps]).T
    if isinstance(model, HiddenChainCRF | LatentDynamicCRF):
        problem, point = model._ended
        change = problem.change
        return point, np.eye(len(point.parameters)) if change is None else change.toarray()
    return model._point, np.eye(len(model._point.parameters))


def weighted_scores(model, data, names):
    """The gradient of the log-likelihood of each example in the weights, by central differences."""
    theta = np.concatenate([np.ravel(getattr(model, name)) for name in names])
    out = []
    for j in range(len(theta)):
        ends = []
        for step in (1e-5, -1e-5):
            other, moved, at = copy.copy(model), theta.copy(), 0
            moved[j] += step
            for name in names:
                old = getattr(model, name)
                setattr(other, name, moved[at : at + old.size].reshape(old.shape))
                at += old.size
            ends.append(quietly(other.log_likelihood, *data))
        out.append((ends[0] - ends[1]) / 2e-5)
    return np.array(out).T


@pytest.mark.parametrize("name", MODELS)
def test_scores_and_information_are_derivatives(name):
    made, data, names = MODELS[name]
    weights = 1.0 + np.arange(len(data[0])) % 3
    model = quietly(copy.copy(made).fit, *data, sample_weight=weights)
    point, change = last_point(model)
    scores = np.concatenate(list(point.score_chunks()))
    if name == "tree" or name == "tree, partial":  # many weights: some of them
        few = np.arange(0, len(point.parameters), 37)
    else:
        few = np.arange(len(point.parameters))
        expected = weights[:, None] * weighted_scores(model, data, names) @ change
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    gradient = point.gradient - point.objective.penalty * point.parameters
    np.testing.assert_allclose(scores.sum(0), -gradient, rtol=1e-7, atol=1e-7 * np.abs(scores).max() * len(scores))
    o, product = point.objective, point.hessian_product()
    for j in few[:: max(1, len(few) // 6)].tolist():
        unit = np.eye(len(point.parameters))[j]
        slopes = [o.at(point.parameters + step * unit).gradient for step in (1e-5, -1e-5)]
        column = (slopes[0] - slopes[1]) / 2e-5
        np.testing.assert_allclose(product(unit), column, rtol=1e-5, atol=1e-5 * np.abs(column).max())


@pytest.mark.parametrize("name", [name for name in MODELS if "tree" not in name])
def test_errors_are_those_of_the_sandwich(name):
    made, data, names = MODELS[name]
    model = quietly(copy.copy(made).fit, *data)
    point, change = last_point(model)
    scores = weighted_scores(model, data, names) @ change
    H = dense_hessian(point.hessian_product(), len(point.parameters))
    inverse = np.linalg.pinv(H, rcond=1e-11, hermitian=True)
    for method, middle in (("sandwich", scores.T @ scores), ("information", H)):
        matrix = change @ inverse @ middle @ inverse @ change.T
        found = quietly(model.standard_errors, method)
        if isinstance(model, LatentSoftmax):
            flat = np.concatenate([found[:, :, :-1].ravel(), found[:, :, -1].ravel()])
        elif isinstance(model, BoltzmannChain):
            flat = np.concatenate([part.ravel() for part in found.values()])
        else:
            flat = np.array([value for part in found.values() for value in part.values()])
        known = flat > 0.0  # tokens that there are none of have no error
        np.testing.assert_allclose(flat[known], np.sqrt(np.diag(matrix))[known], rtol=2e-3, atol=1e-6)
        assert known.mean() > 0.6


def test_drawn_errors_are_close_to_exact_ones(monkeypatch):
    model = quietly(BoltzmannChain(l2=0.5, tol=1e-9).fit, zoo.TOKENS, zoo.TAGS)
    exact = quietly(model.standard_errors)
    monkeypatch.setattr(uncertainty, "SIZE_LIMIT", 3)
    drawn = quietly(model.standard_errors, draws=400, random_state=0)
    for key, part in exact.items():
        np.testing.assert_allclose(drawn[key], part, rtol=0.2)  # 1 / sqrt(800) = 0.035 for one
    with pytest.raises(ValueError, match="the limit is 3: use method='sandwich'"):
        quietly(model.standard_errors, "information")


def test_a_saddle_has_no_errors():
    model = quietly(LatentSoftmax(l2=0.3, random_state=0).fit, zoo.X, zoo.Y)
    (_, _, objective, _, _), _ = model._problem_ended
    with pytest.raises(ValueError, match="did not end at a minimum"):
        uncertainty.covariance(objective.at(np.zeros(objective.size)))


def test_separated_labels_have_no_errors():
    X, y = np.array([["a"], ["b"]] * 10).tolist(), [["x"], ["y"]] * 10
    model = quietly(BoltzmannChain(l2=0.0).fit, X, y)
    with pytest.raises(ValueError, match="set l2 > 0"):
        model.standard_errors()


# bootstrap


def binary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 5.0
    return X, np.where(X @ [0.5, -0.5, 0.2] - 1.0 + rng.logistic(size=n) > 0.0, 1, -1)


def test_the_bootstrap_agrees_with_the_sandwich_where_examples_are_many():
    X, y = binary()
    model = SoftmaxRegression(l2=1e-3).fit(X, y)
    # 100 refits: 7 % for one
    np.testing.assert_allclose(
        model.standard_errors("bootstrap", draws=100, random_state=0), model.standard_errors("sandwich"), rtol=0.3
    )
    rng = np.random.default_rng(1)
    rows = MarkovNetwork.boltzmann(4).feature_map().graph.sample(np.zeros(24), 500, rng)
    net = MarkovNetwork.boltzmann(4, l2=1e-3, likelihood="pseudo").fit(rows)
    np.testing.assert_allclose(net.standard_errors("bootstrap", 100, 0), net.standard_errors(), rtol=0.3)


def test_the_bootstrap_is_reproducible_and_leaves_the_model_alone():
    X, y = binary(100)
    weights = np.r_[np.zeros(10), np.ones(90)]
    model = SoftmaxRegression().fit(X, y, sample_weight=weights)
    before = dict(vars(model))
    one, two = (model.standard_errors("bootstrap", draws=20, random_state=3) for _ in range(2))
    assert np.array_equal(one, two)
    assert all(vars(model)[key] is value for key, value in before.items())
    without = SoftmaxRegression().fit(X[10:], y[10:]).standard_errors("bootstrap", draws=20, random_state=3)
    np.testing.assert_allclose(one, without, rtol=1e-4)
    assert (model.standard_errors("bootstrap", draws=20, random_state=4) != one).all()


def test_the_bootstrap_goes_where_there_is_no_information():
    X, y = binary(100)
    assert np.isfinite(quietly(SoftmaxRegression(l1=1.0).fit(X, y).standard_errors, "bootstrap", draws=5)).all()
    with pytest.raises(ValueError, match="use method='bootstrap'"):
        SoftmaxRegression(l1=1.0).fit(X, y).standard_errors()
    partial = [[None if j == 0 else tag for j, tag in enumerate(row)] for row in zoo.TAGS]
    for l1 in (0.0, 0.5):
        chain = quietly(ChainCRF(l1=l1).fit, zoo.ATTRIBUTES, partial)
        found = quietly(chain.standard_errors, "bootstrap", draws=5, random_state=0)
        assert found["state"].keys() == chain.state_features_.keys()
        assert np.isfinite(list(found["state"].values())).all()
    oracle = OracleCRF(oracle="two best parts").fit(zoo.PARTS, zoo.CHOSEN)
    with pytest.raises(ValueError, match="all that is known here are best configurations"):
        oracle.standard_errors("sandwich")


def test_tables_of_a_network_without_a_penalty_have_binomial_errors():
    rng = np.random.default_rng(0)
    n = 400
    a = rng.random(n) < 0.3
    frame = {"a": a.astype(int), "b": (rng.random(n) < np.where(a, 0.8, 0.4)).astype(int)}
    model = BayesianNetwork([("a", "b")], alpha=0.0).fit(frame)
    found = model.standard_errors(draws=100, random_state=0)
    p = model.tables_["a"]
    np.testing.assert_allclose(found["a"], np.sqrt(p * (1.0 - p) / n), rtol=0.3)
    q, counts = model.tables_["b"], np.array([(~a).sum(), a.sum()])
    np.testing.assert_allclose(found["b"], np.sqrt(q * (1.0 - q) / counts[:, None]), rtol=0.3)


def test_tables_have_closed_forms():
    """Binomial without a penalty; with one, by derivatives of tables in the weights of rows."""
    rng = np.random.default_rng(1)
    n = 60
    a, c = rng.integers(0, 3, n), rng.integers(0, 2, n)
    frame = {"a": a, "c": c, "b": (a + c + rng.integers(0, 2, n)) % 3}
    edges, weights = [("a", "b"), ("c", "b")], 1.0 + np.arange(n) % 2
    plain = BayesianNetwork(edges, alpha=0.0).fit(frame)
    p = plain.tables_["a"]
    for method in ("information", "sandwich"):
        np.testing.assert_allclose(plain.standard_errors(method)["a"], np.sqrt(p * (1.0 - p) / n), rtol=1e-6)
    model = BayesianNetwork(edges, alpha=0.7, tol=1e-12).fit(frame, sample_weight=weights)
    found = model.standard_errors("sandwich")
    total = {name: np.zeros_like(table) for name, table in model.tables_.items()}
    for i in range(n):
        ends = []
        for step in (1e-4, -1e-4):
            moved = weights.copy()
            moved[i] += step
            ends.append(BayesianNetwork(edges, alpha=0.7, tol=1e-12).fit(frame, sample_weight=moved).tables_)
        for name, part in total.items():
            part += (weights[i] * (ends[0][name] - ends[1][name]) / 2e-4) ** 2
    for name, part in total.items():
        np.testing.assert_allclose(found[name], np.sqrt(part), rtol=1e-3, atol=1e-6)
    hidden = quietly(BayesianNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}, n_init=1, random_state=0).fit, frame)
    with pytest.raises(ValueError, match="closed form right after a fit where all values are known"):
        hidden.standard_errors("information")


def test_data_that_are_gone_or_were_changed():
    X, y = binary(60)
    model = SoftmaxRegression().fit(X, y)
    with pytest.raises(ValueError, match="which copies and files do not keep"):
        pickle.loads(pickle.dumps(model)).standard_errors("bootstrap")
    X[:30] = 0.0
    with pytest.raises(ValueError, match="were changed in place after fit"):
        model.standard_errors("bootstrap")


def test_many_effective_parameters_are_warned_of():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 80)), rng.integers(0, 2, 60)  # more columns than rows
    with pytest.warns(DataWarning, match="effective parameters for 60 examples: resampling repeats what was overfitted"):
        SoftmaxRegression(l2=1.0).fit(X, y).standard_errors("bootstrap", draws=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SoftmaxRegression(l2=1.0).fit(*binary(200)).standard_errors("bootstrap", draws=10, random_state=0)
    with pytest.raises(ValueError, match="draws must be"):
        SoftmaxRegression().fit(*binary(60)).standard_errors("bootstrap", draws=1)
    with pytest.raises(ValueError, match="at least two examples"):
        BoltzmannChain().fit([["a", "b"]], [[0, 1]]).standard_errors("bootstrap")


# chains of tokens


def sentences(n, seed=0):
    """Tokens and labels of chains of length 6 of a known model."""
    rng = np.random.default_rng(seed)
    model = BoltzmannChain(l2=0.5, n_tokens=3).fit([["a", "b", "c"]] * 2, [[0, 1, 0]] * 2)
    model.token_weights_ = np.array([[0.5, -0.5], [-0.3, 0.4], [0.0, 0.0], [0.0, 0.0]])
    model.transition_weights_ = np.array([[0.4, -0.4], [-0.6, 0.5]])
    return model.sample([6] * n, rng)


def test_refinement_of_a_chain_of_tokens():
    X, y = sentences(400)
    full = BoltzmannChain(l2=0.1, n_tokens=3, tol=1e-9).fit(X, y)
    cheap = BoltzmannChain(l2=0.1, n_tokens=3, tol=1e-9, likelihood="pseudo").fit(X, y)
    refined = BoltzmannChain(l2=0.1, n_tokens=3, tol=1e-9, likelihood=CompositeLikelihood(refine="full")).fit(X, y)
    away, left = (np.abs(m.token_weights_ - full.token_weights_).max() for m in (cheap, refined))
    assert left < 0.1 * away
    point = full._point.objective.at(cheap._estimates())
    step = np.linalg.solve(dense_hessian(point.hessian_product(), len(point.parameters)), point.gradient)
    np.testing.assert_allclose(refined._estimates(), cheap._estimates() - step, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(refined.standard_errors()["token"], full.standard_errors()["token"], rtol=0.05)
    assert refined.efficiency() == pytest.approx(full.efficiency(), rel=0.02)
    assert cheap.efficiency() > full.efficiency()
    with pytest.raises(ValueError, match="is not the variance of composite likelihood estimates"):
        cheap.standard_errors("information")


def test_a_budget_of_a_chain_of_tokens(tmp_path):
    X, y = sentences(300)
    model = BoltzmannChain(l2=0.1, budget=1.0).fit(X, y)
    assert model.choice_["cost"] <= 1.0 + 1e-9
    assert isinstance(model.likelihood_, CompositeLikelihood)
    rich = BoltzmannChain(l2=0.1, budget=100.0).fit(X, y)
    assert rich.choice_["efficiency"] == pytest.approx(1.0, abs=1e-6)
    model.save(tmp_path / "m")
    assert BoltzmannChain.load(tmp_path / "m").choice_ == model.choice_
    with pytest.raises(ValueError, match="leave likelihood='full'"):
        BoltzmannChain(budget=1.0, likelihood="pseudo").fit(X, y)


ORDERS = CompositeLikelihood({1: 1.0, 2: 0.5})
PATH = [(0, 1), (1, 2), (2, 3)]
#: Estimators with an influence, and data.
INFLUENCE = {
    "tokens": (lambda **o: BoltzmannChain(l2=0.5, n_tokens=3, tol=1e-11, **o), sentences(40)),
    "chain": (lambda **o: ChainCRF(l2=0.5, tol=1e-11, **o), (zoo.ATTRIBUTES, zoo.TAGS)),
    "network": (lambda **o: MarkovNetwork.ising(PATH, l2=0.5, tol=1e-11, **o), (zoo.STATES,)),
    "graph": (lambda **o: GraphCRF(l2=0.5, tol=1e-11, fit_intercept=False, **o), (zoo.GRAPHS, zoo.NODES)),
}


@pytest.mark.parametrize("likelihood", ["full", ORDERS])
@pytest.mark.parametrize("name", INFLUENCE)
def test_influence_is_what_a_refit_does(name, likelihood):
    made, data = INFLUENCE[name]
    n = len(data[0])
    weights = 1.0 + np.arange(n) % 2
    model = made(likelihood=likelihood).fit(*data, sample_weight=weights)
    changed = []
    for step in (1e-3, -1e-3):
        moved = weights.copy()
        moved[5] += step
        changed.append(made(likelihood=likelihood).fit(*data, sample_weight=moved)._estimates())
    expected = (changed[0] - changed[1]) / 2e-3
    found = model.influence()
    assert found.shape == (n, len(expected))
    np.testing.assert_allclose(found[5], expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    new = model.influence(*[part[5:7] for part in data])
    np.testing.assert_allclose(new, found[5:7], rtol=1e-7, atol=1e-9)


def test_influence_and_errors_with_intercepts_and_columns():
    """Numbers that are not centred, with an intercept: the solver's units are not the user's."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 2)) * [1.0, 10.0] + [5.0, -30.0] for _ in range(40)]
    y = [np.where(x[:, 0] > 5.0 + 0.5 * rng.normal(size=4), "p", "q") for x in X]
    model = ChainCRF(l2=0.5, tol=1e-11).fit(X, y)
    np.testing.assert_allclose(model.influence(X[3:5], y[3:5]), model.influence()[3:5], rtol=1e-6, atol=1e-9)
    pairs = [(x, [(0, 1), (1, 2), (2, 3)]) for x in X]
    graph = GraphCRF(l2=0.5, tol=1e-11).fit(pairs, y)
    found = graph.influence()
    np.testing.assert_allclose(graph.influence(pairs[3:5], y[3:5]), found[3:5], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose((found**2).sum(0), graph._standard_errors("sandwich", 1, None) ** 2, rtol=1e-6)


def test_chains_with_unknown_labels_have_errors():
    partial = [[None if (i + j) % 4 == 0 else tag for j, tag in enumerate(row)] for i, row in enumerate(zoo.TAGS)]
    model = quietly(ChainCRF(l2=0.5, tol=1e-9).fit, zoo.ATTRIBUTES, partial)
    scores = weighted_scores(model, (zoo.ATTRIBUTES, partial), ("parameters_",))
    objective = model._objective
    point = objective.at(model.chain_.inputs.to_solver(model.chain_.layout) @ model.parameters_)
    H = dense_hessian(point.hessian_product(), objective.size)
    for method, middle in (("sandwich", scores.T @ scores), ("information", H)):
        found = quietly(model.standard_errors, method)
        expected = np.sqrt(np.diag(np.linalg.inv(H) @ middle @ np.linalg.inv(H)))
        flat = [value for part in found.values() for value in part.values()]
        np.testing.assert_allclose(flat, expected, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["full", "pseudo", CompositeLikelihood({2: 0.5}, refresh=False, random_state=0)])
def test_errors_are_standard_deviations(likelihood):
    """Many data sets: sandwich errors over standard deviations of the estimates, 1000 sets of 300 chains."""
    found, errors = [], []
    for seed in range(1000):
        model = BoltzmannChain(l2=0.5, likelihood=likelihood, n_tokens=3).fit(*sentences(300, seed + 1))
        found.append(model._estimates())
        if seed < 50:
            parts = model.standard_errors().values()
            errors.append(np.concatenate([part.ravel() for part in parts]))
    deviation, said = np.std(found, axis=0, ddof=1), np.mean(errors, axis=0)
    known = said > 0.0
    np.testing.assert_allclose(said[known], deviation[known], rtol=0.1)  # 1000 sets: 2.2 % for one

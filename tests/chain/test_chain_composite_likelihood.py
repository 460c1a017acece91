"""ChainCRF by composite likelihoods."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from partita import ChainCRF, CompositeLikelihood
from partita.constraints import WeightBounds
from partita.structures import Chain


def simulated(count, seed=0, length=8, strength=1.0):
    """Sequences of a chain with three labels and five attributes, and its weights."""
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(99)
    W, A = strength * truth.standard_normal((5, 3)), truth.standard_normal((3, 3))
    X = rng.standard_normal((count, length, 5))
    chain = Chain(3, [length] * count)
    y = chain.sample(((X @ W).reshape(-1, 3), A), 1, rng)[0].reshape(count, length)
    return list(X), [[f"L{k}" for k in row] for row in y.tolist()], (W, A)


def test_long_windows_are_the_likelihood():
    X, y, _ = simulated(30)
    full = ChainCRF(start_end=True, tol=1e-9).fit(X, y)
    for likelihood in (CompositeLikelihood({8: 1.0}), CompositeLikelihood({"full": 1.0})):
        other = ChainCRF(start_end=True, tol=1e-9, likelihood=likelihood).fit(X, y)
        np.testing.assert_allclose(other.parameters_, full.parameters_, atol=1e-6)
        assert other.predict(X) == full.predict(X)
    assert full.beta_ == {"full": 1.0}


def test_pseudo_is_order_one_and_consistent():
    X, y, (W, A) = simulated(10_000)  # standard errors of at most 0.03
    options = {"l2": 1e-3, "features": "all", "transitions": "all", "fit_intercept": False}
    pseudo = ChainCRF(likelihood="pseudo", **options).fit(X, y)
    same = ChainCRF(likelihood=CompositeLikelihood(), **options).fit(X, y)
    np.testing.assert_array_equal(pseudo.parameters_, same.parameters_)
    assert pseudo.beta_ == {1: 1.0}
    found = np.zeros((5, 3))
    for (attribute, label), weight in pseudo.state_features_.items():
        found[attribute, int(label[1])] = weight
    moves = np.array([[pseudo.transition_features_[f"L{a}", f"L{b}"] for b in range(3)] for a in range(3)])
    np.testing.assert_allclose(found - found[:, :1], W - W[:, :1], atol=0.1)
    contrast = moves - moves[:, :1] - moves[:1] + moves[0, 0]  # what does not depend on scores of labels
    np.testing.assert_allclose(contrast, A - A[:, :1] - A[:1] + A[0, 0], atol=0.15)


def test_drawn_objects_are_repeatable():
    X, y, _ = simulated(40)
    likelihood = CompositeLikelihood({1: 0.5, "full": 0.2}, refresh=False)
    first, second, other = (ChainCRF(likelihood=likelihood, random_state=seed).fit(X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.parameters_, second.parameters_)
    assert np.abs(first.parameters_ - other.parameters_).max() > 1e-3


def test_weights_rules_constraints_and_l1():
    X, y, _ = simulated(40)
    likelihood = CompositeLikelihood({1: 1.0, 2: 0.5}, weights={1: 0.3, 2: 2.0})
    weighted = ChainCRF(likelihood=likelihood, tol=1e-9).fit(X, y, sample_weight=np.arange(40) % 3)
    repeated = [i for i in range(40) for _ in range(i % 3)]
    same = ChainCRF(likelihood=likelihood, tol=1e-9).fit([X[i] for i in repeated], [y[i] for i in repeated])
    np.testing.assert_allclose(weighted.parameters_, same.parameters_, atol=1e-6)
    assert weighted.beta_ == {1: 0.3, 2: 2.0}
    sparse = ChainCRF(likelihood=likelihood, l1=10.0).fit(X, y)
    assert len(sparse.parameters_) < len(weighted.parameters_)
    assert sparse.status_.ok
    bounded = ChainCRF(likelihood=likelihood, constraints=[WeightBounds(lower=0.0)]).fit(X, y)
    assert bounded.parameters_.min() == 0.0
    kept = [i for i in range(40) if ("L0", "L2") not in pairwise(y[i])]
    assert 0 < len(kept) < 40
    ruled = ChainCRF(likelihood="pseudo", forbidden=[("L0", "L2")]).fit([X[i] for i in kept], [y[i] for i in kept])
    for row in ruled.predict(X):
        assert ("L0", "L2") not in pairwise(row)
    with pytest.raises(ValueError, match="forbidden"):
        ChainCRF(likelihood="pseudo", forbidden=[("L0", "L2")]).fit(X, y)


def test_automatic_weights():
    X, y, _ = simulated(300)
    auto = CompositeLikelihood({1: 1.0, "full": 0.6}, weights="auto", refresh=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ChainCRF(l2=0.1, likelihood=auto, tol=1e-10).fit(X, y)
    assert model.beta_[1] == 1.0
    assert model.beta_["full"] > 0.0
    weights = CompositeLikelihood({1: 1.0, "full": 0.6}, weights=model.beta_, refresh=False, random_state=0)
    again = ChainCRF(l2=0.1, likelihood=weights, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.parameters_, again.parameters_, atol=1e-5)
    always = CompositeLikelihood({1: 1.0, "full": 1.0}, weights="auto", random_state=0)
    with pytest.warns(UserWarning, match="drops order 1"):  # nothing is better than the likelihood
        assert ChainCRF(l2=0.1, likelihood=always).fit(X, y).beta_ == {1: 0.0, "full": 1.0}
    X, y, _ = simulated(300, seed=1)
    with pytest.warns(UserWarning, match="drops order 1"):
        both = ChainCRF(l2=0.1, likelihood=always, tol=1e-9).fit(X, y)
    assert both.beta_ == {1: 0.0, "full": 1.0}
    np.testing.assert_allclose(both.parameters_, ChainCRF(l2=0.1, tol=1e-9).fit(X, y).parameters_, atol=1e-4)
    sparse = ChainCRF(l1=1.0, likelihood=auto).fit(X, y)
    assert sparse.beta_[1] == 1.0


def test_scikit_learn_and_files(tmp_path):
    X, y, _ = simulated(30)
    mixed = CompositeLikelihood({1: 1.0, 2: 0.5}, weights={1: 1.0, 2: 0.5})
    search = GridSearchCV(ChainCRF(), {"likelihood": ["full", "pseudo", mixed]}, cv=2).fit(X, y)
    assert search.cv_results_["mean_test_score"].shape == (3,)
    model = ChainCRF(likelihood=mixed).fit(X, y)
    copied = clone(model)
    assert copied.get_params()["likelihood"] == mixed
    np.testing.assert_array_equal(copied.fit(X, y).parameters_, model.parameters_)
    assert pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)
    pseudo = ChainCRF(likelihood="pseudo").fit(X, y)
    pseudo.save(tmp_path / "model")
    loaded = ChainCRF.load(tmp_path / "model")
    assert loaded.likelihood == "pseudo"
    assert loaded.beta_ == {1: 1.0}
    assert loaded.predict(X) == pseudo.predict(X)


def test_refusals():
    X, y, _ = simulated(5)
    hidden = [[None, *row[1:]] for row in y]
    with pytest.raises(ValueError, match="composite likelihoods need known labels"):
        ChainCRF(likelihood="pseudo").fit(X, hidden)
    with pytest.raises(ValueError, match="'pairs' are not available on chains"):
        ChainCRF(likelihood=CompositeLikelihood(pairs=[((0,), (1,))])).fit(X, y)
    with pytest.raises(ValueError, match="blocks='all' is not available on chains"):
        ChainCRF(likelihood=CompositeLikelihood(blocks="all")).fit(X, y)
    with pytest.raises(ValueError, match="likelihood must be"):
        ChainCRF(likelihood={1: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="likelihood must be"):
        ChainCRF(likelihood="half").fit(X, y)
    with pytest.raises(ValueError, match="partial_fit needs likelihood='full'"):
        ChainCRF(likelihood="pseudo").partial_fit(X, y)
    with pytest.raises(ValueError, match="X_dev cannot be combined with weights='auto'"):
        ChainCRF(likelihood=CompositeLikelihood({1: 1.0, 2: 1.0}, weights="auto")).fit(X, y, X_dev=X, y_dev=y)
    held = ChainCRF(likelihood="pseudo").fit(X, y, X_dev=X, y_dev=y)
    assert len(held.dev_scores_) > 1

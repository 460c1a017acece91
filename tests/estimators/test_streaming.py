"""Pieces of a stream: two of them are the Laplace approximation of the first and the likelihood of the second, by SciPy."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import partita as pt
from partita import StochasticBound

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))
import zoo

MAKE = {
    "BoltzmannChain": (pt.BoltzmannChain, (zoo.TOKENS, zoo.TAGS)),
    "GraphCRF": (lambda **o: pt.GraphCRF(fit_intercept=False, **o), (zoo.GRAPHS, zoo.NODES)),
    "MarkovNetwork": (lambda **o: pt.MarkovNetwork.ising(zoo.PATH, **o), (zoo.STATES,)),
    "MatchingCRF": (pt.MatchingCRF, (zoo.MATCHES, zoo.PAIRS)),
    "DependencyCRF": (pt.DependencyCRF, (zoo.TOKENS, zoo.HEADS)),
    "LatentSoftmax": (lambda **o: pt.LatentSoftmax(random_state=0, **o), (zoo.X, zoo.Y)),
    "HiddenChainCRF": (lambda **o: pt.HiddenChainCRF(n_hidden=2, random_state=0, **o), (zoo.ATTRIBUTES, zoo.WHOLE)),
    "LatentDynamicCRF": (lambda **o: pt.LatentDynamicCRF(n_hidden=2, random_state=0, **o), (zoo.ATTRIBUTES, zoo.TAGS)),
    "ChainCRF": (pt.ChainCRF, (zoo.ATTRIBUTES, zoo.TAGS)),
}
WEIGHTS = {"LatentSoftmax": ("coef_", "intercept_"), "BoltzmannChain": ("token_weights_", "transition_weights_")}


def quietly(run, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(*args, **options)


def halves(data):
    half = len(data[0]) // 2
    return tuple(part[:half] for part in data), tuple(part[half:] for part in data)


def weights(name, model):
    return np.concatenate([np.ravel(getattr(model, key)) for key in WEIGHTS.get(name, ("parameters_",))])


def moved(name, model, theta):
    other, at = copy.copy(model), 0
    for key in WEIGHTS.get(name, ("parameters_",)):
        old = getattr(model, key)
        setattr(other, key, theta[at : at + old.size].reshape(old.shape))
        at += old.size
    return other


@pytest.mark.parametrize("name", ["MarkovNetwork", "MatchingCRF", "BoltzmannChain"])
def test_a_piece_is_fitted_with_what_is_known_as_its_penalty(name):
    """Where solvers see the weights as users do: the minimum of the piece's loss and the quadratic, by SciPy."""
    make, data = MAKE[name]
    if name == "BoltzmannChain":  # both pieces have all tokens
        data = tuple(list(part) * 2 for part in data)
    first, second = halves(data)
    model = quietly(make(l2=0.7, tol=1e-9).partial_fit, *first)
    mean, precision = weights(name, model), np.array(model.precision_)
    assert precision.min() >= 0.7 * (1.0 - 1e-12)
    again = quietly(copy.deepcopy(model).partial_fit, *second)

    def loss(theta):
        there = moved(name, model, theta)
        return -float(np.sum(there.log_likelihood(*second))) + 0.5 * float(precision @ (theta - mean) ** 2)

    found = quietly(scipy_minimize, loss, mean, method="BFGS", options={"gtol": 1e-6})
    assert loss(weights(name, again)) <= found.fun + 1e-6 * abs(found.fun)
    assert again.n_seen_ == len(data[0])


@pytest.mark.parametrize("name", MAKE)
def test_pieces_come_close_to_the_whole(name):
    make, data = MAKE[name]
    whole = quietly(make(l2=0.5).fit, *data)
    model = quietly(make(l2=0.5).partial_fit, *halves(data)[0])
    before = float(np.mean(model.log_likelihood(*data))) if name != "BoltzmannChain" else -np.inf
    model = quietly(model.partial_fit, *halves(data)[1])
    after = float(np.mean(model.log_likelihood(*data)))
    assert after > before
    assert model.n_seen_ == len(data[0])
    if name not in ("LatentSoftmax", "HiddenChainCRF", "LatentDynamicCRF"):  # these end in one minimum or another
        assert after >= float(np.mean(whole.log_likelihood(*data))) - 0.3
    streamed = quietly(make(l2=0.5).fit_stream, list(halves(data)))
    np.testing.assert_allclose(weights(name, streamed), weights(name, model), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", MAKE)
def test_a_fit_goes_on_with_pieces_and_a_failed_piece_changes_nothing(name):
    make, data = MAKE[name]
    first, second = halves(data)
    model = quietly(make().fit, *first)
    before = pickle.dumps(weights(name, model)), model.n_seen_
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(second[0][:0], *second[1:])
    assert (pickle.dumps(weights(name, model)), model.n_seen_) == before
    quietly(model.partial_fit, *second)
    assert model.n_seen_ == len(data[0])
    with pytest.raises(ValueError, match="pieces is empty"):
        make().fit_stream([])


@pytest.mark.parametrize("name", MAKE)
def test_a_loaded_model_goes_on(name, tmp_path):
    make, data = MAKE[name]
    first, second = halves(data)
    model = quietly(make().partial_fit, *first)
    model.save(tmp_path / "model")
    loaded = pt.load(tmp_path / "model")
    quietly(model.partial_fit, *second)
    quietly(loaded.partial_fit, *second)
    np.testing.assert_allclose(weights(name, loaded), weights(name, model), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["MarkovNetwork", "GraphCRF", "MatchingCRF", "LatentSoftmax", "HiddenChainCRF"])
def test_pieces_can_be_learned_by_mini_batches(name):
    make, data = MAKE[name]
    first, second = halves(data)
    exact = quietly(make(l2=0.5).partial_fit, *first)
    model = copy.deepcopy(exact)
    quietly(exact.partial_fit, *second)
    model.set_params(solver=StochasticBound(batch_size=3, patience=50), max_iter=300)
    quietly(model.partial_fit, *second)
    a, b = (float(np.mean(m.log_likelihood(*second))) for m in (exact, model))
    assert a == pytest.approx(b, abs=0.02)


def test_new_tokens_get_weights_and_new_labels_are_named():
    model = pt.BoltzmannChain().partial_fit([["a", "b"], ["b", "a"]], [["x", "y"], ["y", "y"]])
    model.partial_fit([["c", "a"]], [["x", "y"]])
    assert model.tokens_.tolist() == ["a", "b", "c"]
    assert model.token_weights_.shape == (4, 2)
    with pytest.raises(ValueError, match="'z'"):
        model.partial_fit([["c"]], [["z"]])
    hidden = quietly(pt.HiddenChainCRF(n_hidden=2, random_state=0).partial_fit, [[["a"]], [["b"]]], ["one", "two"])
    quietly(hidden.partial_fit, [[["a"], ["c"]], [["b"]]], ["one", "two"])
    assert sorted(hidden.attributes_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="three"):
        hidden.partial_fit([[["a"]]], ["three"])


def test_classes_can_be_stated_before_they_come(rng):
    X = rng.standard_normal((60, 3))
    model = quietly(pt.LatentSoftmax(random_state=0).partial_fit, X[:20], ["a", "b"] * 10, classes=["a", "b", "c"])
    quietly(model.partial_fit, X[20:], ["c", "a"] * 20)
    assert model.classes_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="'d'"):
        model.partial_fit(X[:2], ["a", "d"])


def test_what_pieces_cannot_learn_is_refused():
    states = zoo.STATES
    with pytest.raises(ValueError, match="partial_fit needs likelihood='full'"):
        pt.MarkovNetwork.ising(zoo.PATH, likelihood="pseudo").partial_fit(states)
    with pytest.raises(ValueError, match="does not support solver 'block_frank_wolfe'"):
        pt.MarkovNetwork.ising(zoo.PATH, l2=0.1, likelihood="bethe", solver="block_frank_wolfe").partial_fit(states)
    model = pt.MarkovNetwork.ising(zoo.PATH, likelihood="pseudo").fit(states)
    with pytest.raises(ValueError, match="whose curvature along each weight is not known"):
        model.set_params(likelihood="full").partial_fit(states)


def test_features_that_are_not_centred_are_learned_from_pieces(rng):
    """The units of the first piece are those of all."""
    edges = np.array([[0, 1], [1, 2]])
    X = [(100.0 + 5.0 * rng.standard_normal((3, 2)), edges) for _ in range(60)]
    y = [(F[:, 0] > 100.0).astype(int) for F, _ in X]
    model = quietly(pt.GraphCRF(l2=0.1).fit_stream, [(X[i : i + 15], y[i : i + 15]) for i in range(0, 60, 15)])
    assert model.score(X, y) > 0.95


def test_the_attributes_of_trees_grow_with_the_pieces():
    """All attributes of both pieces have a weight, those of the first its own at first."""
    first, second = halves((zoo.TOKENS, zoo.HEADS))
    second = [[f"new{token}" if i % 2 else token for i, token in enumerate(row)] for row in second[0]], second[1]
    model = quietly(pt.DependencyCRF(l2=0.5).partial_fit, *first)
    before = dict(zip(model.attributes_, model.precision_, strict=True))
    quietly(model.partial_fit, *second)
    together = quietly(pt.DependencyCRF(l2=0.5).fit, first[0] + second[0], first[1] + second[1])
    assert sorted(model.attributes_) == sorted(together.attributes_)
    after = dict(zip(model.attributes_, model.precision_, strict=True))
    assert all(after[name] >= precision * (1.0 - 1e-12) for name, precision in before.items())
    assert model.score(*second) > 0.9 * together.score(*second)

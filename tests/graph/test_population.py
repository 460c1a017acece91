"""The optimum of a population, and its variance, against influence functions by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from partita import CompositeLikelihood, MarkovNetwork, TooLargeError
from partita.objectives import population_optimum

LIKELIHOODS = ["full", "pseudo", CompositeLikelihood({1: 1.0, 2: 0.4}, weights={1: [1.0, 2.0, 0.5, 1.0], 2: 0.7})]


def network():
    """Four variables, the pairs of a path only."""
    return MarkovNetwork.ising([(0, 1), (1, 2), (2, 3)])


def distribution(seed=0):
    """Of no such model."""
    p = np.random.default_rng(seed).dirichlet(np.ones(16)).reshape(2, 2, 2, 2)
    return 0.5 * p + 0.5 / 16


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_true_model_is_its_own_optimum(likelihood):
    net = MarkovNetwork.boltzmann(4)
    features, theta = net.feature_map(), np.random.default_rng(1).normal(size=6)
    p = np.zeros((2, 2, 2, 2))
    rows = np.indices(p.shape).reshape(4, -1).T
    u = features.forward(theta)
    p[tuple(rows.T)] = np.exp(features.graph.score(u, rows) - features.graph.log_partition(u))
    found = population_optimum(net, p, likelihood)
    np.testing.assert_allclose(found.parameters, theta, atol=1e-9)
    composite = CompositeLikelihood() if likelihood == "pseudo" else likelihood
    composite = CompositeLikelihood({"full": 1.0}) if likelihood == "full" else composite
    np.testing.assert_allclose(found.covariance, composite.asymptotic_covariance(net, theta), rtol=1e-7)


@pytest.mark.parametrize("likelihood", [LIKELIHOODS[0], LIKELIHOODS[2]])
def test_a_wrong_model_has_the_variance_of_its_influence_function(likelihood):
    net, p = network(), distribution()
    found, step = population_optimum(net, p, likelihood), 1e-5
    total = np.zeros_like(found.covariance)
    for x in np.ndindex(p.shape):
        point = np.zeros_like(p)
        point[x] = 1.0
        ends = [population_optimum(net, p + sign * step * (point - p), likelihood).parameters for sign in (1.0, -1.0)]
        influence = (ends[0] - ends[1]) / (2.0 * step)
        total += p[x] * np.outer(influence, influence)
    np.testing.assert_allclose(found.covariance, total, rtol=1e-5, atol=1e-6)
    assert not np.allclose(found.covariance, np.linalg.inv(population_information(net, found.parameters)), rtol=0.05)


def population_information(net, theta):
    """Of the likelihood at some weights, if the model were true."""
    return net.composite_limits(theta, 1, 0).information


def test_what_is_drawn_once_adds_to_the_variance():
    """The estimating function has the draws in it: expectations over them, written out for one object of two."""
    net, p = network(), distribution()
    often = CompositeLikelihood({1: 0.5}, refresh=False)
    always = population_optimum(net, p, CompositeLikelihood({1: 0.5}))
    once = population_optimum(net, p, often)
    np.testing.assert_allclose(once.parameters, always.parameters, atol=1e-9)
    rng = np.random.default_rng(0)
    rows = np.indices(p.shape).reshape(4, -1).T[rng.choice(16, 40_000, p=p.ravel())]
    model = MarkovNetwork.ising([(0, 1), (1, 2), (2, 3)], likelihood=often).fit(rows)
    np.testing.assert_allclose(np.diag(once.covariance), np.diag(model.asymptotic_covariance()), rtol=0.1)
    assert (np.diag(once.covariance) > 1.2 * np.diag(always.covariance)).all()


def test_distributions_that_do_not_fit():
    net = network()
    with pytest.raises(ValueError, match=r"probabilities of shape \(2, 2, 2, 2\)"):
        population_optimum(net, np.ones((2, 2, 2, 2)))
    with pytest.raises(ValueError, match="probabilities of shape"):
        population_optimum(net, np.ones(16) / 16)
    with pytest.raises(ValueError, match="depend on the examples"):
        population_optimum(net, distribution(), CompositeLikelihood(refine="full"))
    large = MarkovNetwork.ising([(i, i + 1) for i in range(18)])
    with pytest.raises(TooLargeError):
        population_optimum(large, np.broadcast_to(2.0**-19, (2,) * 19))

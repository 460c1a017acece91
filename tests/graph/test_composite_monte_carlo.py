"""Estimates of composite likelihoods over many data sets: their variance is the reported one, and intervals hold the truth.

`benchmarks/composite_monte_carlo.py` does the same at length.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partita import CompositeLikelihood, MarkovNetwork, minimize
from partita.graph.objective.asymptotics import Limits
from partita.graph.objective.composite import GraphComposite

NET, THETA = MarkovNetwork.boltzmann(5, n_jobs=1), np.repeat([-1.0, 1.0], 5)
REFRESHED = {
    "PL1": CompositeLikelihood(),
    "PL2": CompositeLikelihood({2: 1.0}),
    "mixture": CompositeLikelihood({1: 0.7, 2: 0.3}),
}
FROZEN = {
    "independent": CompositeLikelihood({1: 0.5, 2: 0.1}, refresh=False),
    "multinomial": CompositeLikelihood({1: 0.7, 2: 0.3}, policy="multinomial", refresh=False),
}


@pytest.fixture(scope="module")
def listed():
    """All configurations and their probabilities."""
    return Limits(NET.feature_map(), THETA).enumeration


def apart(values, expected):
    """How many of its standard errors the mean of `values` (one for each data set) is away from what is expected."""
    return abs(values.mean() - expected) / (values.std(ddof=1) / np.sqrt(len(values)))


def distances(estimates, n, covariance):
    """How far the spread of estimates is from covariance / n, in standard errors: by its trace, and by all directions."""
    off = np.sqrt(n) * (estimates - THETA)
    within = (off * np.linalg.solve(covariance, off.T).T).sum(1)
    return apart((off**2).sum(1), np.trace(covariance)), apart(within, len(THETA))


def with_intervals(listed, likelihood, n, count, seed):
    """Estimates and standard errors, as a user has them: from rows."""
    rng = np.random.default_rng(seed)
    estimates, errors = [], []
    for _ in range(count):
        rows = np.repeat(listed.states.T, rng.multinomial(n, listed.p), axis=0)
        model = MarkovNetwork.boltzmann(5, likelihood=replace(likelihood, random_state=rng), n_jobs=1).fit(rows)
        estimates.append(model.parameters_)
        errors.append(model.standard_errors())
    return np.array(estimates), np.array(errors)


def coverage(estimates, errors):
    """For each data set, the share of intervals that hold the truth."""
    return (np.abs(estimates - THETA) <= 1.959964 * errors).mean(1)


@pytest.mark.parametrize("name", REFRESHED)
def test_variance_of_many_estimates_is_the_limit(listed, name):
    n, likelihood, features = 20_000, REFRESHED[name], NET.feature_map()
    rng, estimates = np.random.default_rng(1), []
    for _ in range(400):
        counts = rng.multinomial(n, listed.p)  # of the 32 configurations: weights instead of rows
        objective = GraphComposite(features, listed.states.T, likelihood, weights=counts)
        estimates.append(minimize(objective, THETA, tol=1e-5).parameters)  # to 0.03 standard deviations
    estimates = np.array(estimates)
    covariance = likelihood.asymptotic_covariance(NET, THETA)
    assert max(distances(estimates, n, covariance)) < 4.0
    assert min(distances(estimates, n, 1.3 * covariance)) > 4.0  # so many data sets can tell


@pytest.mark.parametrize("name", FROZEN)
def test_objects_drawn_once_add_their_variance(listed, name):
    n, likelihood = 2000, FROZEN[name]
    estimates, errors = with_intervals(listed, likelihood, n, 100, 4)
    assert max(distances(estimates, n, likelihood.asymptotic_covariance(NET, THETA))) < 4.0
    assert apart(coverage(estimates, errors), 0.95) < 4.0
    published = replace(likelihood, refresh=True).asymptotic_covariance(NET, THETA)  # Proposition 2 leaves it out
    assert min(distances(estimates, n, published)) > 4.0


def test_intervals_of_pseudo_likelihood_hold_the_truth(listed):
    estimates, errors = with_intervals(listed, CompositeLikelihood(), 2000, 120, 3)
    assert apart(coverage(estimates, errors), 0.95) < 4.0
    assert apart(coverage(estimates, 0.8 * errors), 0.95) > 4.0

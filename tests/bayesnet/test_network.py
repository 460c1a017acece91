"""The likelihood of Bayesian networks, and EM."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.special import log_softmax

from partita.bayesnet.kernels.network import fit_distributions
from partita.bayesnet.objective import KINDS, NetworkLikelihood
from partita.bayesnet.structure import unknown_sets
from partita.bayesnet.structure.bayes_net import BayesNet
from partita.core.parallel import blas_limit
from partita.solvers import EM, LBFGS, minimize

NET = BayesNet([2, 3, 2, 2], [(), (0,), (0,), (1, 2)], [(0,), (0, 2)])


def data(rng, net=NET, n=150):
    p = np.concatenate([rng.dirichlet(np.ones(k)) for k in np.diff(net.starts)])
    states = net.sample(np.log(p), n, rng)
    leaves = [states[:, list(of)].sum(1) * 1.5 + rng.standard_normal(n) for of in net.leaves]
    values = np.column_stack(leaves) if leaves else np.zeros((n, 0))
    states[rng.random(states.shape) < 0.15] = -1
    states[:, 0] = -1
    values[rng.random(values.shape) < 0.1] = np.nan
    return states, values, rng.uniform(0.5, 2.0, n)


def objective(rng, kind="marginal", tied=True, alpha=0.7, net=NET):
    states, values, weights = data(rng, net)
    return NetworkLikelihood(net, states, values, weights=weights, alpha=alpha, kind=kind, tied_variance=tied)


def by_enumeration(o, theta):
    """The objective from the definition."""
    w, means, variances = o.split(theta)
    starts = o.net.starts
    p = np.concatenate([log_softmax(w[lo:hi]) for lo, hi in itertools.pairwise(starts)])
    tables = o.net.tables(p)
    rows = o.net.enumerate()
    joint = sum(tables[v][tuple(rows[:, [*of, v]].T)] for v, of in enumerate(o.net.parents))
    loss = 0.0
    for state, values, weight in zip(o.sets.states[:, : o.net.n], o.leaves, o.weights, strict=True):
        fits = ((state < 0) | (rows == state)).all(axis=1)
        scores = joint[fits].copy()
        for x, of, m, s in zip(values, o.net.leaves, means, variances, strict=True):
            if not np.isnan(x):
                code = o.net.codes(rows[fits], of)
                scores += -0.5 * (x - m[code]) ** 2 / s[code] - 0.5 * np.log(2.0 * np.pi * s[code])
        marginal, best = np.logaddexp.reduce(scores), scores.max()
        loss -= weight * {"marginal": marginal, "joint": best, "conditional": best - marginal}[o.kind]
    penalised = theta[: o.net.size + o.n_means]
    return loss + 0.5 * o.alpha * penalised @ penalised


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["marginal", "joint"])
def test_value_is_the_definition(kind, tied, rng):
    o = objective(rng, kind, tied)
    theta = rng.standard_normal(o.size)
    assert o.at(theta).value == pytest.approx(by_enumeration(o, theta), rel=1e-12)


def test_conditional_value_is_the_definition(rng):
    net = BayesNet([2, 3, 2, 2], [(), (0,), (0,), (0, 2)])  # the hidden variable is in all families
    o = objective(rng, "conditional", net=net)
    theta = rng.standard_normal(o.size)
    assert o.at(theta).value == pytest.approx(by_enumeration(o, theta), rel=1e-12)


@pytest.mark.parametrize("largest", [unknown_sets.LARGEST, 1], ids=["written out", "trees"])
def test_conditional_value_keeps_its_digits_where_choices_are_certain(rng, largest, monkeypatch):
    """Sums and scores of 1e4 that differ by 1e-4: their difference in all rows together would have seven digits left."""
    monkeypatch.setattr(unknown_sets, "LARGEST", largest)
    o = objective(rng, "conditional", alpha=0.0, net=BayesNet([2, 3, 2, 2], [(), (0,), (0,), (0, 2)]))
    assert (o.sets.tree is not None) == (largest == 1)
    point = o.at(30.0 * rng.standard_normal(o.size))
    exact = surplus_by_enumeration(o, point.parameters)
    assert 1e4 * exact < point.sums.value * -1.0
    assert point.value == pytest.approx(exact, rel=1e-12 if largest > 1 else 1e-8)
    assert o.at(point.em_step()).value <= point.value


def surplus_by_enumeration(o, theta):
    """The conditional objective of a network without leaves, in long doubles."""
    starts = o.net.starts
    p = np.concatenate([log_softmax(theta[lo:hi].astype(np.longdouble)) for lo, hi in itertools.pairwise(starts)])
    tables = o.net.tables(p)
    rows = o.net.enumerate()
    joint = sum(tables[v][tuple(rows[:, [*of, v]].T)] for v, of in enumerate(o.net.parents))
    loss = np.longdouble(0.0)
    for state, weight in zip(o.sets.states, o.weights, strict=True):
        scores = np.sort(joint[((state < 0) | (rows == state)).all(axis=1)])
        loss += weight * np.log1p(np.exp(scores[:-1] - scores[-1]).sum())
    return float(loss)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_against_differences(kind, tied, rng):
    o = objective(rng, kind, tied)
    theta = rng.standard_normal(o.size)
    point = o.at(theta)
    for i in range(o.size):
        step = 1e-6 * (np.arange(o.size) == i)
        difference = (o.at(theta + step).value - o.at(theta - step).value) / 2e-6
        assert point.gradient[i] == pytest.approx(difference, abs=2e-5 * (1.0 + abs(difference)))


@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0, 50.0])
def test_distributions_are_fitted_exactly(alpha, rng):
    starts = np.array([0, 2, 5, 7, 11])
    counts = rng.gamma(0.5, 20.0, 11)
    counts[[3, 7]] = 0.0
    counts[5:7] = 0.0  # nothing was seen here
    w = rng.standard_normal(11)
    fit_distributions(counts, starts, alpha, w)
    for lo, hi in itertools.pairwise(starts):
        n = counts[lo:hi].sum()
        p = np.exp(log_softmax(w[lo:hi]))
        if alpha:
            np.testing.assert_allclose(n * p - counts[lo:hi] + alpha * w[lo:hi], 0.0, atol=1e-8 * (1.0 + n))
        else:
            np.testing.assert_allclose(p, counts[lo:hi] / n if n else np.full(hi - lo, 1.0 / (hi - lo)), atol=1e-15)


@pytest.mark.parametrize("start", [0.0, 30.0, -30.0])
def test_distributions_are_fitted_from_far_away(start):
    counts, w = np.array([1000.0, 1e-3, 5.0]), np.array([start, 0.0, -start])
    fit_distributions(counts, np.array([0, 3]), 0.5, w)

    def loss(v):
        return counts.sum() * np.logaddexp.reduce(v) - counts @ v + 0.25 * v @ v

    best = scipy_minimize(loss, np.zeros(3), tol=1e-12)
    assert loss(w) <= best.fun + 1e-9


@pytest.mark.rounding
@pytest.mark.parametrize("acceleration", [None, "squarem"])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_em_never_rises(kind, alpha, acceleration, seed):
    rng = np.random.default_rng(seed)
    o = objective(rng, kind, alpha=alpha)
    found = minimize(o, rng.standard_normal(o.size), EM(acceleration), max_iter=60, tol=1e-9)
    assert len(found.trace) > 2
    assert (np.diff(found.trace.objective) <= 0.0).all()


@pytest.mark.rounding
@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_em_never_rise_by_themselves(kind, alpha):
    """The solver would not take a step that rises."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        o = objective(rng, kind, alpha=alpha)
        with blas_limit(o.blas_threads):
            point = o.at(rng.standard_normal(o.size))
            for _ in range(30):
                following = o.at(point.em_step())
                assert following.value <= point.value + 1e-10 * abs(point.value)
                point = following


def test_em_ends_at_a_stationary_point_that_other_solvers_agree_on(rng):
    o = objective(rng)
    start = rng.standard_normal(o.size)
    em = minimize(o, start, EM(), max_iter=2000, tol=1e-8)
    assert em.status.ok
    assert np.abs(em.point.gradient).max() <= 1e-8 * o.scale
    again = minimize(o, em.parameters + 1e-3 * rng.standard_normal(o.size), LBFGS(), max_iter=2000, tol=1e-8)
    assert again.value == pytest.approx(em.value, rel=1e-9)


def test_acceleration_saves_iterations():
    rng = np.random.default_rng(0)
    o = objective(rng)
    start = rng.standard_normal(o.size)
    plain, fast = (minimize(o, start, EM(acceleration), max_iter=5000, tol=1e-7) for acceleration in (None, "squarem"))
    assert plain.value == pytest.approx(fast.value, rel=1e-8)
    assert 4 * fast.n_iter < plain.n_iter


def test_bad_acceleration():
    with pytest.raises(ValueError, match="acceleration"):
        EM("warp")


@pytest.mark.parametrize(
    ("states", "leaves", "message"),
    [
        ([[0, 3]], [[0.0]], "states has 3 for variable 1 in row 0; its states are 0 to 2"),
        ([[0, 0], [-2, 0]], [[0.0], [0.0]], "states has -2 for variable 0 in row 1"),
        ([[0, 0, 0]], [[0.0]], "rows of 2 variables"),
        ([[0.0, 1.0]], [[0.0]], "must be integers"),
        ([[0, 0]], [[0.0], [1.0]], "leaves must be finite or NaN"),
        ([[0, 0]], [[np.inf]], "leaves must be finite or NaN"),
    ],
)
def test_rows_that_do_not_fit_the_network_are_refused(states, leaves, message):
    net = BayesNet([2, 3], [(), (0,)], [(1,)])
    with pytest.raises(ValueError, match=message):
        NetworkLikelihood(net, np.array(states), np.array(leaves))

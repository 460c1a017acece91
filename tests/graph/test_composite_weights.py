"""Weights of orders: the published optimum, and what is dropped."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from test_composite_asymptotics import boltzmann, mixture

from partita.core import Status
from partita.objectives.composite.efficiency import efficiency
from partita.objectives.composite.policies import Independent
from partita.objectives.composite.weights import alternate, best_weights


def moments(net, shares):
    """J and S by order, and the efficiency of weights, of a policy whose objects are drawn once for each example."""
    pairs, _, chances = mixture(net, shares)
    policy = Independent(chances)
    group = np.array([list(shares).index(len(A)) for A, _ in pairs])
    scores = np.array([net.score(pair) for pair in pairs])
    covariance = np.einsum("icp,jcp,c->ijp", scores, scores, net.p)
    J, S = np.zeros((2, scores.shape[2])), np.zeros((2, 2, scores.shape[2]))
    for i in range(len(pairs)):
        J[group[i]] += chances[i] * covariance[i, i]
        for j in range(len(pairs)):
            S[group[i], group[j]] += policy.second[i, j] * covariance[i, j]

    def rdet(beta):
        return efficiency(net.covariance(pairs, np.asarray(beta)[group], policy, False), net.information, "rdet")

    return J, S, rdet


def test_published_weights():
    """Order 1 always, order 2 with probability 0.3."""
    J, S, rdet = moments(boltzmann(5), {1: 1.0, 2: 0.3})
    beta = best_weights(J, S)
    assert beta[0] == 1.0
    assert beta[1] == pytest.approx(0.0628, abs=5e-5)
    assert rdet(beta) == pytest.approx(1.0502, abs=5e-5)
    exact = minimize_scalar(lambda b: rdet([1.0, np.exp(b)]), bounds=(-8.0, 2.0), method="bounded")
    assert np.exp(exact.x) == pytest.approx(0.0235, abs=5e-5)
    assert exact.fun == pytest.approx(1.0494, abs=5e-5)


def test_first_order_may_be_dropped():
    J, S, _ = moments(boltzmann(5), {1: 1.0, 2: 1.0})
    np.testing.assert_array_equal(best_weights(J, S), [0.0, 1.0])


def test_parameters_without_information_are_left_out():
    J, S, _ = moments(boltzmann(5), {1: 1.0, 2: 0.3})
    wider = np.pad(J, ((0, 0), (0, 2))), np.pad(S, ((0, 0), (0, 0), (0, 2)))
    np.testing.assert_allclose(best_weights(*wider), best_weights(J, S), rtol=1e-12)
    with pytest.raises(ValueError, match="no parameter has any information"):
        best_weights(np.zeros((2, 3)), np.zeros((2, 2, 3)))


def test_minimum_is_stationary_and_does_not_depend_on_scale():
    rng = np.random.default_rng(0)
    G = rng.standard_normal((3, 40, 7)) * np.array([1.0, 2.0, 0.5])[:, None, None]
    J, S = rng.random((3, 7)) + 0.5, np.einsum("kip,lip->klp", G, G)
    beta = best_weights(J, S)
    units = np.array([3.0, 0.01, 50.0])
    scaled = best_weights(units[:, None] * J, units[:, None, None] * units[:, None] * S)
    np.testing.assert_allclose(scaled * units / units[0], beta, rtol=1e-3)

    def value(b):
        return np.sum(np.log(np.einsum("k,l,klp->p", b, b, S)) - 2.0 * np.log(b @ J))

    for k in (1, 2):
        for factor in (0.97, 1.03):
            other = beta.copy()
            other[k] *= factor
            assert value(other) > value(beta)


def test_alternation_settles_and_names_what_it_drops():
    starts = []

    def solve(beta, start):
        starts.append(start)
        return SimpleNamespace(parameters=np.array(beta), status=status)

    status = Status.CONVERGED
    J = np.ones((2, 1))
    useless = np.array([[[1.0], [1.0]], [[1.0], [9.0]]])  # the second adds nothing but noise
    with pytest.warns(UserWarning, match="drops order 'full'"):
        solution, beta = alternate(solve, lambda theta: (J, useless), [1, "full"])
    np.testing.assert_array_equal(beta, [1.0, 0.0])
    np.testing.assert_array_equal(solution.parameters, beta)
    assert starts[0] is None
    assert len(starts) == 3  # ones, the best weights, and those again
    status = Status.INTERRUPTED
    assert alternate(solve, lambda theta: (J, useless), [1, "full"])[1].tolist() == [1.0, 1.0]
    assert len(starts) == 4

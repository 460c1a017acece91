"""Weights of orders: the published optimum, and what is dropped."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from test_composite_asymptotics import boltzmann, mixture

from partita import CompositeLikelihood, MarkovNetwork
from partita.core import Status
from partita.graph.objective.asymptotics import Limits
from partita.graph.objective.composite import GraphComposite
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
    beta = best_weights(J, S, least_gain=0.0)
    assert beta[0] == 1.0
    assert beta[1] == pytest.approx(0.0628, abs=5e-5)
    assert rdet(beta) == pytest.approx(1.0502, abs=5e-5)
    exact = minimize_scalar(lambda b: rdet([1.0, np.exp(b)]), bounds=(-8.0, 2.0), method="bounded")
    assert np.exp(exact.x) == pytest.approx(0.0235, abs=5e-5)
    assert exact.fun == pytest.approx(1.0494, abs=5e-5)
    assert rdet([1.0, 0.0]) < rdet(beta)  # so that diagonals must promise more than this
    np.testing.assert_array_equal(best_weights(J, S), [1.0, 0.0])


def test_whole_matrices_find_the_exact_optimum():
    net = boltzmann(5)
    pairs, _, chances = mixture(net, {1: 1.0, 2: 0.3})
    groups = np.array([len(A) - 1 for A, _ in pairs])
    rdet = moments(net, {1: 1.0, 2: 0.3})[2]
    beta = best_weights(*net.moments(pairs, groups, Independent(chances), False))
    assert beta[0] == 1.0
    assert beta[1] == pytest.approx(0.0235, abs=5e-5)
    assert rdet(beta) == pytest.approx(1.0494, abs=5e-5)
    for factor in (0.99, 1.01):
        assert rdet(beta * [1.0, factor]) > rdet(beta)


MIXTURES = ({1: 1.0, 2: 0.3}, {1: 1.0, 2: 0.1}, {1: 1.0, 2: 0.3, 3: 0.1}, {1: 1.0, "full": 0.1})


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("m", [4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_automatic_weights_never_lose_to_one_order(m, scale):
    """Random Boltzmann machines, objects drawn once: by diagonals, order 1 alone was better in 17 of these 48."""
    rng = np.random.default_rng([m, int(10 * scale)])
    limits = Limits(MarkovNetwork.boltzmann(m).feature_map(), scale * rng.normal(size=m * (m - 1) // 2))
    for orders in MIXTURES:
        composite = CompositeLikelihood(orders, weights="auto", refresh=False)

        def size(beta, composite=composite):
            return efficiency(limits.covariance(composite, beta), limits.information, "rdet")

        best = min(size(unit) for unit in np.eye(len(orders)))
        assert size(limits.beta(composite)) <= best * (1.0 + 1e-9)


def test_an_order_that_determines_nothing_alone():
    """Matrices: one order knows the first weight, the other the second."""
    J = np.array([np.diag([1.0, 0.0]), np.diag([0.0, 1.0])])
    S = np.zeros((2, 2, 2, 2))
    S[0, 0], S[1, 1] = J
    assert (best_weights(J, S) > 0.0).all()


def test_first_order_may_be_dropped():
    J, S, _ = moments(boltzmann(5), {1: 1.0, 2: 1.0})
    np.testing.assert_array_equal(best_weights(J, S), [0.0, 1.0])


def test_parameters_without_information_are_left_out():
    J, S, _ = moments(boltzmann(5), {1: 1.0, 2: 0.3})
    wider = np.pad(J, ((0, 0), (0, 2))), np.pad(S, ((0, 0), (0, 0), (0, 2)))
    np.testing.assert_allclose(best_weights(*wider, 0.0), best_weights(J, S, 0.0), rtol=1e-9)
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
        solution, beta = alternate(solve, lambda theta: (J, useless), [1, "full"], 100)
    np.testing.assert_array_equal(beta, [1.0, 0.0])
    np.testing.assert_array_equal(solution.parameters, beta)
    assert starts[0] is None
    assert len(starts) == 3  # ones, the best weights, and those again
    status = Status.INTERRUPTED
    assert alternate(solve, lambda theta: (J, useless), [1, "full"], 100)[1].tolist() == [1.0, 1.0]
    assert len(starts) == 4


def test_weights_of_single_objects():
    """A list of weights of the objects of an order is a sum with these weights, and so are pairs of one's own."""
    net, rng = MarkovNetwork.boltzmann(4), np.random.default_rng(0)
    features = net.feature_map()
    theta, rows = rng.normal(size=features.size), rng.integers(0, 2, (30, 4))
    given = {1: [1.0, 0.5, 0.0, 2.0], 2: 0.3, "pairs": [0.7, 0.0, 4.0]}
    pairs = [((0,), (1,)), ((2, 3), (0,)), ((1,), ())]
    orders = dict.fromkeys(given, 1.0)
    mixed = GraphComposite(features, rows, CompositeLikelihood(orders, pairs=pairs, weights=given)).at(theta)
    value, gradient = 0.0, np.zeros(features.size)
    rest = [((v,), tuple({0, 1, 2, 3} - {v})) for v in range(4)]
    for pair, weight in (*zip(rest, given[1], strict=True), *zip(pairs, given["pairs"], strict=True)):
        alone = GraphComposite(features, rows, CompositeLikelihood(pairs=[pair])).at(theta)
        value, gradient = value + weight * alone.value, gradient + weight * alone.gradient
    twos = GraphComposite(features, rows, CompositeLikelihood({2: 0.3})).at(theta)
    assert mixed.value == pytest.approx(value + twos.value, rel=1e-12)
    np.testing.assert_allclose(mixed.gradient, gradient + twos.gradient, rtol=1e-10, atol=1e-10)


def test_limits_know_the_weights_of_objects():
    net, theta = MarkovNetwork.boltzmann(4), np.random.default_rng(1).normal(size=6)
    listed = CompositeLikelihood({1: 0.6}, weights={1: [1.0, 0.5, 2.0, 1.0]}, refresh=False)
    pairs = [((v,), tuple({0, 1, 2, 3} - {v})) for v in range(4)]
    limits = Limits(net.feature_map(), theta)
    expected = limits.enumeration.covariance(pairs, np.array([1.0, 0.5, 2.0, 1.0]), Independent([0.6] * 4), False)
    np.testing.assert_allclose(listed.asymptotic_covariance(net, theta), expected, rtol=1e-12)
    drawn = Limits(net.feature_map(), theta)
    drawn.enumeration, drawn.rows = None, limits.features.graph.sample(limits.features.forward(theta), 20_000, 0)
    np.testing.assert_allclose(np.diag(drawn.covariance(listed)), np.diag(expected), rtol=0.1)  # 20,000 draws: 1 %


def test_weights_of_objects_that_do_not_fit():
    for weights, message in (
        ([1.0, 2.0], "number for each object of that order in every example: there are 4, got 2 numbers"),
        ([1.0, 2.0, -1.0, 1.0], r"weights\[1\] must be"),
        ([0.0] * 4, "must not all be zero"),
    ):
        model = MarkovNetwork.boltzmann(4, likelihood=CompositeLikelihood({1: 1.0}, weights={1: weights}))
        with pytest.raises(ValueError, match=message):
            model.fit(np.zeros((2, 4), int))


def test_files_keep_weights_of_objects(tmp_path):
    rows = np.random.default_rng(2).integers(0, 2, (40, 3))
    likelihood = CompositeLikelihood(pairs=[((0,), (1, 2)), ((1, 2), (0,))], weights={"pairs": [1.0, 2.0]})
    model = MarkovNetwork.boltzmann(3, likelihood=likelihood).fit(rows)
    model.save(tmp_path / "m")
    other = MarkovNetwork.load(tmp_path / "m")
    assert other.beta_ == model.beta_ == {"pairs": [1.0, 2.0]}
    np.testing.assert_array_equal(other.fit(rows).parameters_, model.parameters_)

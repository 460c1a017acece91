"""Variances of composite likelihood estimates against published numbers."""

import numpy as np
import pytest

from partita import TooLargeError
from partita.features import TiedTables
from partita.graph.features.statistics import table_types
from partita.graph.objective.asymptotics import Enumeration, blocks_given_rest
from partita.objectives.composite.efficiency import efficiency
from partita.objectives.composite.policies import Independent, Listed, Multinomial, Product
from partita.structures import FactorGraph


def boltzmann(m):
    pairs = np.array(np.triu_indices(m, 1)).T
    graph = FactorGraph([2] * m, [pairs])
    features = TiedTables(graph, table_types(graph, None, "contrasts"))
    half = len(pairs) // 2
    return Enumeration(features, np.concatenate([-np.ones(half), np.ones(len(pairs) - half)]))


def mixture(net, shares, beta=None):
    """Orders with probabilities: objects, weights, probabilities of objects."""
    m = len(net.states)
    parts = [(blocks_given_rest(m, k), share, 1.0 if beta is None else beta[k]) for k, share in shares.items()]
    pairs = [pair for objects, _, _ in parts for pair in objects]
    chances = np.concatenate([np.full(len(objects), share) for objects, share, _ in parts])
    return pairs, np.concatenate([np.full(len(objects), b) for objects, _, b in parts]), chances


def ratio(net, shares, refresh, measure):
    kept = {k: share for k, share in shares.items() if share > 0.0}
    pairs, beta, chances = mixture(net, kept)
    return efficiency(net.covariance(pairs, beta, Independent(chances), refresh), net.information, measure)


def test_five_units():
    net = boltzmann(5)
    assert net.log_z == pytest.approx(4.8425830347, abs=5e-11)
    assert np.linalg.slogdet(net.information)[1] == pytest.approx(-29.92127250, abs=5e-9)
    assert np.trace(np.linalg.inv(net.information)) == pytest.approx(434.42649015, abs=5e-9)
    for k, published in enumerate((1.624489, 1.340994, 1.154390, 1.040530), 1):
        assert ratio(net, {k: 1.0}, True, "det") == pytest.approx(published, abs=6e-7)
        assert ratio(net, {k: 1.0}, False, "det") == pytest.approx(published, abs=6e-7)  # nothing is left to chance
    assert ratio(net, {5: 1.0}, True, "det") == pytest.approx(1.0, abs=1e-12)
    assert ratio(net, {1: 0.7, 2: 0.3}, True, "det") == pytest.approx(1.431941, abs=6e-7)
    assert ratio(net, {1: 0.7, 2: 0.3}, False, "det") == pytest.approx(9.099417, abs=6e-7)
    assert ratio(net, {1: 1.0, 2: 0.3}, True, "det") == pytest.approx(1.455400, abs=6e-7)
    assert ratio(net, {1: 1.0, 2: 0.3}, False, "det") == pytest.approx(4.486886, abs=6e-7)
    s = net.score(((0,), (1,)))
    V = (s.T * net.p) @ s
    assert V[0, 0] == pytest.approx(0.02598123, abs=5e-9)
    assert np.trace(V) == pytest.approx(0.10441439, abs=5e-9)


def test_exactly_one_object():
    net = boltzmann(5)
    pairs, beta, _ = mixture(net, {1: 1.0, 2: 1.0})
    chances = np.concatenate([np.full(5, 0.7 / 5), np.full(10, 0.3 / 10)])
    for refresh, published in ((True, 1.039918), (False, 2.663105)):
        cov = net.covariance(pairs, beta, Multinomial(chances), refresh)
        assert efficiency(cov, net.information, "rdet") == pytest.approx(published, abs=6e-7)


@pytest.mark.parametrize(
    ("m", "orders", "refresh", "published"),
    [
        (5, (1, 2), True, (1.624489, 1.448236, 1.388490, 1.358738, 1.340994)),
        (5, (1, 2), False, (1.049716, 1.257834, 1.181192, 1.097861, 1.029776)),
        (5, (2, 3), True, (1.340994, 1.268077, 1.217681, 1.181372, 1.154390)),
        (5, (2, 3), False, (1.029776, 1.093792, 1.097997, 1.066876, 1.014461)),
        (5, (3, 4), True, (1.154390, 1.126772, 1.097948, 1.068636, 1.040530)),
        (5, (3, 4), False, (1.014461, 1.061842, 1.092824, 1.087968, 1.003981)),
        (9, (1, 2), True, (1.078213, 1.059756, 1.055964, 1.054334, 1.053428)),
        (9, (1, 2), False, (1.002094, 1.141991, 1.072585, 1.029325, 1.001447)),
        (9, (2, 3), True, (1.053428, 1.043067, 1.038783, 1.036457, 1.035000)),
        (9, (3, 4), True, (1.035000, 1.029245, 1.025669, 1.023253, 1.021523)),
    ],
)
def test_published_mixtures(m, orders, refresh, published):
    net = boltzmann(m)
    if m == 9:
        assert net.log_z == pytest.approx(15.7499109425, abs=5e-11)
        assert np.linalg.slogdet(net.information)[1] == pytest.approx(-268.41807574, abs=5e-9)
    for alpha, value in zip((0.0, 0.25, 0.5, 0.75, 1.0), published, strict=True):
        found = ratio(net, {orders[0]: 1.0 - alpha, orders[1]: alpha}, refresh, "det" if refresh else "rdet")
        assert found == pytest.approx(value, abs=6e-7)


def test_moments_of_policies_are_those_of_their_draws():
    rows = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    policies = [
        Independent([0.2, 0.9, 0.5]),
        Multinomial([0.2, 0.5, 0.3]),
        Product([Multinomial([0.4, 0.6]), Independent([0.3])]),
        Multinomial([0.4, 0.3]),
        Listed(rows, [0.2, 0.3, 0.5]),
    ]
    for policy in policies:
        Z = policy.draw(200_000, np.random.default_rng(0)).astype(float)
        np.testing.assert_allclose(policy.mean, Z.mean(0), atol=0.006)
        np.testing.assert_allclose(policy.second, Z.T @ Z / len(Z), atol=0.006)


def test_refusals():
    with pytest.raises(ValueError, match="above 0, at most 1"):
        Independent([0.0, 0.5])
    with pytest.raises(ValueError, match="at most one"):
        Multinomial([0.5, 0.6])
    with pytest.raises(ValueError, match="A must not be empty"):
        boltzmann(3).score(((), (0,)))
    with pytest.raises(ValueError, match="no variable of B"):
        boltzmann(3).score(((0, 1), (1,)))
    graph = FactorGraph([2] * 25, [np.arange(25)[:, None]])
    with pytest.raises(TooLargeError, match="too many configurations"):
        Enumeration(TiedTables(graph, table_types(graph, None, "contrasts")), np.zeros(25))

"""Bayesian networks, and rows of states of which some are unknown."""

from __future__ import annotations

import numpy as np
import pytest

from partita.bayesnet.structure.bayes_net import BayesNet, find_cycle
from partita.bayesnet.structure.unknown_sets import UnknownSets

NET = BayesNet([2, 3, 2, 2, 3], [(), (0,), (0,), (1, 2), (3,)])


def distributions(net, rng):
    return np.concatenate([rng.dirichlet(np.ones(k)) for k in np.diff(net.starts)])


def log_joint(net, p, rows):
    tables = net.tables(np.log(p))
    scopes = [[*of, v] for v, of in enumerate(net.parents)]
    return sum(table[tuple(rows[:, scope].T)] for table, scope in zip(tables, scopes, strict=True))


def masked(net, p, rng, n=60, share=0.3):
    states = net.sample(np.log(p), n, rng)
    states[rng.random(states.shape) < share] = -1
    states[:, 0] = -1
    return states


@pytest.fixture(params=[1024, 4], ids=["tables", "trees"])
def unknown(request, rng, monkeypatch):
    """Sets of unknown variables, written out or with junction trees."""
    monkeypatch.setattr("partita.graph.structure.free_sets.LARGEST", request.param)
    monkeypatch.setattr("partita.bayesnet.structure.unknown_sets.LARGEST", request.param)
    p = distributions(NET, rng)
    states, weights = masked(NET, p, rng), rng.uniform(0.5, 2.0, 60)
    sets = UnknownSets(NET.graph(1), states, weights)
    assert (sets.tree is not None) == (request.param == 4)
    return p, states, weights, sets


def by_row(states, p):
    """For each row: the configurations that agree with it, and their log-probabilities."""
    rows = NET.enumerate()
    scores = log_joint(NET, p, rows)
    for state in states:
        fits = ((state < 0) | (rows == state)).all(axis=1)
        yield rows[fits], scores[fits]


def test_sums_over_unknown_states(unknown):
    p, states, weights, sets = unknown
    expected = np.array([np.logaddexp.reduce(scores) for _, scores in by_row(states, p)])
    u = np.log(p)
    np.testing.assert_allclose(sets.row_values(u), expected, atol=1e-12)
    assert sets.at(u).value + sets.counts @ u == pytest.approx(weights @ expected, rel=1e-12)


def test_expected_counts(unknown):
    p, states, weights, sets = unknown
    expected = np.zeros(NET.size)
    for weight, (rows, scores) in zip(weights, by_row(states, p), strict=True):
        posterior = np.exp(scores - np.logaddexp.reduce(scores))
        for v, of in enumerate(NET.parents):
            places = NET.offsets[v] + NET.codes(rows, [*of, v])
            np.add.at(expected, places, weight * posterior)
    np.testing.assert_allclose(sets.counts + sets.at(np.log(p)).gradient, expected, atol=1e-11)


def test_kernels_see_one_type_of_weights_whether_or_not_something_is_unknown(rng):
    """np.bincount of nothing is integers, and a kernel compiled for two types has been called with the wrong one."""
    states = rng.integers(0, 2, (5, NET.n)) % np.array(NET.cardinalities)
    some = states.copy()
    some[0, 0] = -1
    for rows in (states, some):
        sets = UnknownSets(NET.graph(1), rows, np.ones(5))
        assert sets._item_arrays.weights.dtype == np.float64
        assert sets._trees[3].dtype == np.float64


def test_best_configurations(unknown):
    p, states, weights, sets = unknown
    best = np.array([rows[scores.argmax()] for rows, scores in by_row(states, p)])
    np.testing.assert_array_equal(sets.filled(np.log(p)), best)
    value, counts, chosen = sets.best(np.log(p))
    sums = sets.at(np.log(p))
    assert sets.surplus(sums, chosen) == pytest.approx(sums.value - value, rel=1e-9)
    assert value + sets.counts @ np.log(p) == pytest.approx(weights @ log_joint(NET, p, best), rel=1e-12)
    assert (sets.counts + counts).sum() == pytest.approx(weights.sum() * NET.n)
    assert (sets.counts + counts) @ np.log(p) == pytest.approx(weights @ log_joint(NET, p, best), rel=1e-12)


def test_marginals_of_unknown_states(unknown):
    p, states, _, sets = unknown
    tables = sets.variable_marginals(np.log(p), NET.n)
    for r, (rows, scores) in enumerate(by_row(states, p)):
        posterior = np.exp(scores - np.logaddexp.reduce(scores))
        for v in range(NET.n):
            expected = np.bincount(rows[:, v], weights=posterior, minlength=NET.cardinalities[v])
            np.testing.assert_allclose(tables[v][r], expected, atol=1e-12)


def test_rows_that_look_the_same_are_one_item(rng):
    states = rng.integers(NET.cardinalities, size=(1000, NET.n))
    states[:, 0] = -1
    sets = UnknownSets(NET.graph(1), states, np.ones(1000))
    assert sets.n_items == 6  # states of the children of variable 0
    assert len(sets.pair_rows) == 1000


def test_nothing_unknown(rng):
    p = distributions(NET, rng)
    states = NET.sample(np.log(p), 20, rng)
    sets = UnknownSets(NET.graph(1), states, np.ones(20))
    assert sets.n_items == 0
    np.testing.assert_allclose(sets.row_values(np.log(p)), log_joint(NET, p, states), atol=1e-12)
    assert sets.at(np.log(p)).value == 0.0
    np.testing.assert_array_equal(sets.filled(np.log(p)), states)


def test_draws_have_the_distribution(rng):
    p = distributions(NET, rng)
    rows = NET.enumerate()
    draws = NET.sample(np.log(p), 200_000, 3)
    code = np.ravel_multi_index(tuple(rows.T), tuple(NET.cardinalities))
    found = np.bincount(np.ravel_multi_index(tuple(draws.T), tuple(NET.cardinalities)), minlength=len(rows))[code]
    expected = 200_000 * np.exp(log_joint(NET, p, rows))
    z = (found - expected) / np.sqrt(expected + 1.0)
    assert np.abs(z).max() < 4.5
    assert 0.7 < np.mean(z**2) < 1.3


def test_cycles_are_named():
    assert find_cycle({"a": ("c",), "b": ("a",), "c": ("b",), "d": ()}) in (
        ["a", "b", "c", "a"],
        ["b", "c", "a", "b"],
        ["c", "a", "b", "c"],
    )
    with pytest.raises(ValueError, match="no cycle, got"):
        BayesNet([2, 2], [(1,), (0,)])


@pytest.mark.parametrize(
    ("cardinalities", "parents", "leaves", "message"),
    [
        ([2, 0], [(), ()], [], "cardinalities must be integers >= 1"),
        ([2, 1.5], [(), ()], [], "cardinalities must be integers"),
        ([[2, 2]], [(), ()], [], "cardinalities must be integers"),
        ([2, 2], [()], [], "parents must have an entry for each of 2 variables, got 1"),
        ([2, 2], [(), (2,)], [], r"parents\[1\] must be numbers of variables from 0 to 1, got"),
        ([2, 2], [(), (-1,)], [], r"parents\[1\] must be numbers of variables"),
        ([2, 2], [(), (0, 0)], [], r"parents\[1\] must have each variable at most once"),
        ([2, 2], [(), ("a",)], [], r"parents\[1\] must be numbers"),
        ([2, 2], [(), 0], [], r"parents\[1\] must be numbers"),
        ([2, 2], [(), (0,)], [(5,)], r"leaves\[0\] must be numbers of variables"),
        ([2, 2], [(1,), (0,)], [], "no cycle"),
        ([2] * 65, [()] * 64 + [tuple(range(64))], [], "the table of variable 64, which has 64 parents, needs 885 EB"),
        ([10**6, 10**6], [(), (0,)], [], "the table of variable 1, which has 1 parents, needs 24 TB"),
        ([2] * 64, [()] * 64, [tuple(range(64))], "the means of all leaves needs 443 EB"),
    ],
)
def test_networks_that_cannot_be_are_refused(cardinalities, parents, leaves, message):
    with pytest.raises(ValueError, match=message):
        BayesNet(cardinalities, parents, leaves)


def test_weights_must_fit():
    net = BayesNet([2, 3], [(), (0,)])
    with pytest.raises(ValueError, match=r"weights must be 8 numbers, .*got \(7,\)"):
        net.log_distributions(np.zeros(7))

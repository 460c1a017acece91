from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from regression_forms import dual, indicators, primal, relational_dual, weights

from partita.bayesnet.relaxation.relational import check_codes

PARENTS, CHILD = np.array([0, 0, 1, 1, 2, 2, 0, 1]), np.array([0, 1, 1, 1, 0, 0, 0, 1])


def relation(codes):
    return (codes[:, None] == codes).astype(float)


@pytest.mark.parametrize(
    ("alpha", "optimum", "weight"), [(0.1, 2.60341858, 0.322570), (1.0, 4.00025447, 0.201613), (10.0, 5.23679265, 0.043482)]
)
def test_forms_have_the_published_optimum(alpha, optimum, weight):
    found = relational_dual(relation(PARENTS), relation(CHILD), alpha)
    assert primal(PARENTS, CHILD, 2, alpha).optimum == pytest.approx(optimum, abs=1e-8)
    assert dual(PARENTS, CHILD, 2, alpha).optimum == pytest.approx(optimum, abs=1e-8)
    assert found.optimum == pytest.approx(optimum, abs=1e-8)
    assert weights(found.solution, PARENTS, CHILD, 2, alpha)[0, 0] == pytest.approx(weight, abs=1e-6)


def test_relational_form_does_not_know_of_values_that_never_occur():
    assert primal(PARENTS, CHILD, 3, 1.0).optimum == pytest.approx(6.064823, abs=1e-6)
    assert dual(PARENTS, CHILD, 3, 1.0).optimum == pytest.approx(6.064823, abs=1e-6)
    assert relational_dual(relation(PARENTS), relation(CHILD), 1.0).optimum == pytest.approx(4.000254, abs=1e-6)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4), st.sampled_from([0.05, 1.0, 20.0]))
def test_forms_agree_when_all_values_occur(seed, configurations, n_values, alpha):
    rng = np.random.default_rng(seed)
    parents = rng.integers(0, configurations, 12)
    child = np.concatenate([np.arange(n_values), rng.integers(0, n_values, 12 - n_values)])
    first, second = primal(parents, child, n_values, alpha), dual(parents, child, n_values, alpha)
    third = relational_dual(relation(parents), relation(child), alpha)
    assert second.optimum == pytest.approx(first.optimum, rel=1e-8)
    assert third.optimum == pytest.approx(first.optimum, rel=1e-8)
    np.testing.assert_allclose(weights(third.solution, parents, child, n_values, alpha), first.solution, atol=1e-4)
    # Lambda shares the probability of a value evenly among the rows that have it.
    shared = second.solution[:, child] / np.bincount(child)[child]
    np.testing.assert_allclose(third.solution, shared, atol=1e-5)


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e3]))
def test_primal_and_dual_agree_with_values_that_never_occur(seed, alpha):
    rng = np.random.default_rng(seed)
    parents, child = rng.integers(0, 3, 10), rng.integers(0, 2, 10)
    first, second = primal(parents, child, 4, alpha), dual(parents, child, 4, alpha)
    assert second.optimum == pytest.approx(first.optimum, rel=1e-7)
    Phi, Y = indicators(parents), indicators(child, 4)
    np.testing.assert_allclose(Phi.T @ (Y - second.solution) / alpha, first.solution, atol=1e-3)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([0, 2], "child must be at least 0 and below 2, got 0 to 2"),
        ([0, -1], "child must be at least 0"),
        ([0, 1, 1], r"child must be integers of shape \(2,\)"),
        ([0.5, 1], "child must be integers"),
    ],
)
def test_bad_codes_are_named(codes, message):
    with pytest.raises(ValueError, match=message):
        check_codes("child", codes, 2, 2)

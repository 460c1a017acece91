"""Chains through best labellings only."""

from __future__ import annotations

import numpy as np
import pytest

from partita.graph.oracles.polytopes import JunctionTreeOracle
from partita.graph.oracles.viterbi import ChainOracle
from partita.inference.frank_wolfe import VARIANTS
from partita.structures import Chain


def problem(rng, shared, lengths=(4, 1, 3), labels=3):
    chain = Chain(labels, lengths)
    T = chain.n_positions
    return chain, (
        rng.standard_normal((T, labels)),
        rng.standard_normal((labels, labels) if shared else (T, labels, labels)),
    )


@pytest.mark.parametrize("shared", [True, False])
def test_best_labellings_are_those_of_chains_and_junction_trees(shared, rng):
    chain, potentials = problem(rng, shared)
    oracle = ChainOracle(chain)
    u = oracle.flat(potentials)
    answer, tree = oracle(u), JunctionTreeOracle(oracle.graph)(u)
    y, value = chain.argmax(potentials)
    assert answer.value == pytest.approx(value.sum())
    np.testing.assert_array_equal(answer.point, tree.point)
    np.testing.assert_array_equal(oracle.split(answer.point)[0].argmax(1), y)


def test_potentials_come_back_and_agree_with_the_graph(rng):
    chain, (unary, pairwise) = problem(rng, shared=False)
    oracle = ChainOracle(chain)
    back = oracle.split(oracle.flat((unary, pairwise)))
    np.testing.assert_array_equal(back[0], unary)
    later = [1, 2, 3, 6, 7]
    np.testing.assert_array_equal(back[1][later], pairwise[later])
    np.testing.assert_array_equal(back[1][[0, 4, 5]], 0.0)
    total = oracle.graph.log_partition(oracle.flat((unary, pairwise)))
    assert total[0] == pytest.approx(chain.log_partition((unary, pairwise)).sum())


@pytest.mark.parametrize("variant", VARIANTS)
def test_frank_wolfe_is_exact_on_chains(variant, rng):
    """Without cycles the free energy with counting numbers of one is log Z."""
    chain, potentials = problem(rng, shared=True, lengths=(3, 2), labels=2)
    oracle = ChainOracle(chain)
    tol = 0.1 if variant == "plain" else 1e-6
    found = oracle.graph.infer(oracle.flat(potentials), "frank_wolfe", oracle=oracle, rho=1.0, variant=variant, tol=tol)
    exact = chain.log_partition(potentials).sum()
    assert found.log_z[0] <= exact + 1e-9
    assert exact - found.log_z[0] <= found.gap[0] + 1e-9
    assert found.gap[0] <= tol
    if variant != "plain":
        marginals, _ = oracle.split(found.marginals)
        np.testing.assert_allclose(marginals, chain.infer(potentials).marginals[0], atol=2e-3)


def test_forbidden_transitions_and_wrong_shapes(rng):
    chain, (unary, pairwise) = problem(rng, shared=True)
    oracle = ChainOracle(chain)
    pairwise[0, 1] = -np.inf
    assert oracle(oracle.flat((unary, pairwise))).value == pytest.approx(chain.argmax((unary, pairwise))[1].sum())
    with pytest.raises(ValueError, match="shape"):
        oracle(np.zeros(5))
    with pytest.raises(ValueError, match="shapes"):
        oracle.flat((unary[:-1], pairwise))
    with pytest.raises(ValueError, match="forbid every labelling"):
        oracle(oracle.flat((unary, np.full((3, 3), -np.inf))))

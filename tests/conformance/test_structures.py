"""Every structure of the table against a list of its outputs."""

from __future__ import annotations

import numpy as np
import pytest
from discovery import classes, offers
from hypothesis import given, settings, strategies as st
from scipy.stats import chi2
from structures import STRUCTURES, Truth, arrays, total

from partita import Status, TooLargeError
from partita.bayesnet.structure.bayes_net import BayesNet
from partita.core import parallel
from partita.graph.oracles.viterbi import ChainOracle
from partita.matching.structure.common import Matchings
from partita.structures import BipartiteMatching, BMatching, Categorical, Chain, FactorGraph, Matching

few = settings(max_examples=25)
table = pytest.mark.parametrize("name", STRUCTURES)
batches = pytest.mark.parametrize("name", [name for name, row in STRUCTURES.items() if row.join])


def same(found, expected, **tolerances):
    for a, b in zip(arrays(found), arrays(expected), strict=True):
        np.testing.assert_allclose(a, b, **tolerances)


def test_every_structure_is_in_the_table():
    face = ("score", "log_partition", "infer", "argmax", "sample", "enumerate")
    assert {type(row.structure) for row in STRUCTURES.values()} == classes("structure", offers(*face)) - {Matchings}


@table
def test_outputs_are_listed_once_each(name):
    row = STRUCTURES[name]
    found, expected = row.structure.enumerate(), row.listed[0]
    assert found.dtype == np.int64
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, expected.tolist()))


@pytest.mark.parametrize(
    "structure",
    [
        Categorical([3] * 20),
        Chain(2, [10**6]),
        FactorGraph.grid(5, 5),
        BipartiteMatching(12),
        BipartiteMatching(200),
        Matching(20),
        Matching(40, perfect=False),
        BMatching((7, 7), 3),
        BayesNet([2] * 30, [()] * 30),
    ],
    ids=lambda structure: type(structure).__name__,
)
def test_too_many_outputs_are_not_listed(structure):
    with pytest.raises(TooLargeError, match=r"to enumerate; the limit is 1048576\. Ask for"):
        structure.enumerate()


def test_a_graph_without_perfect_matching_has_no_outputs():
    assert Matching([(0, 1), (0, 2), (0, 3)]).enumerate().shape == (0, 4)


@table
@few
@given(st.data())
def test_answers_are_those_of_enumeration(name, data):
    row = STRUCTURES[name]
    structure, potentials = row.structure, data.draw(row.strategy())
    truth = Truth(row, potentials)
    found = [structure.score(potentials, y).sum() for y in truth.outputs]
    np.testing.assert_allclose(found, truth.scores, rtol=1e-13, atol=1e-13)
    result = structure.infer(potentials)
    size = 1e-12 * (1.0 + np.abs(truth.scores[truth.scores > -np.inf]).max())
    assert result.log_z.sum() == pytest.approx(truth.log_z, rel=1e-13, abs=size)
    for engine in ("auto", "exact"):  # trees without marginals are eliminated in another order: the last digit may differ
        np.testing.assert_allclose(structure.log_partition(potentials, engine), result.log_z, rtol=1e-14, atol=1e-15)
    same(row.gradient(result.marginals), row.packed(truth.marginals), rtol=1e-9, atol=1e-11)
    y, value = structure.argmax(potentials)
    assert value.sum() == pytest.approx(truth.scores.max(), rel=1e-13, abs=size)
    assert truth.scores[truth.number(y)] == pytest.approx(value.sum(), rel=1e-13, abs=size)
    np.testing.assert_allclose(structure.score(potentials, y), value, rtol=1e-13, atol=size)


@table
def test_exact_answers_say_so(name):
    row = STRUCTURES[name]
    result = row.structure.infer(row.potentials(1.0, 0.0, 0), "exact")
    assert result.exact
    assert result.status is Status.EXACT
    assert result.engine == "exact"
    assert not result.gap.any()
    np.testing.assert_array_equal(result.lower, result.log_z)
    np.testing.assert_array_equal(result.upper, result.log_z)


@table
@few
@given(st.data())
def test_marginals_are_the_gradient_of_log_z(name, data):
    row, step = STRUCTURES[name], 1e-5
    potentials = data.draw(row.strategy())
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    direction = [np.where(np.isfinite(part), rng.standard_normal(part.shape), 0.0) for part in arrays(potentials)]

    def log_z(by):
        moved = [part + by * along for part, along in zip(arrays(potentials), direction, strict=True)]
        return row.structure.log_partition(row.packed(tuple(moved))).sum()

    marginals = arrays(row.gradient(row.structure.infer(potentials).marginals))
    slope = sum(float((part * along).sum()) for part, along in zip(marginals, direction, strict=True))
    assert (log_z(step) - log_z(-step)) / (2.0 * step) == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("name", [name for name, row in STRUCTURES.items() if row.constant])
@few
@given(st.data())
def test_what_all_outputs_have_in_common_shifts_log_z(name, data):
    row = STRUCTURES[name]
    structure, potentials, by = row.structure, data.draw(row.strategy()), data.draw(st.floats(-20.0, 20.0))
    constant = row.constant(structure)
    scores = {sum(total(c, s) for c, s in zip(constant, S, strict=True)) for S in row.listed[1]}
    assert len(scores) == 1
    moved = row.packed(tuple(u + by * c for u, c in zip(arrays(potentials), constant, strict=True)))
    before, after = structure.infer(potentials), structure.infer(moved)
    assert after.log_z.sum() == pytest.approx(before.log_z.sum() + by * scores.pop(), rel=1e-10, abs=1e-9)
    same(after.marginals, before.marginals, rtol=1e-7, atol=1e-10)


@batches
@few
@given(st.data())
def test_a_batch_is_its_examples_one_by_one(name, data):
    row = STRUCTURES[name]
    alone = data.draw(st.lists(row.strategy(), min_size=2, max_size=3))
    whole, potentials = row.join(row.structure, alone)
    results, together = [row.structure.infer(u) for u in alone], whole.infer(potentials)
    np.testing.assert_allclose(together.log_z, np.concatenate([r.log_z for r in results]), rtol=1e-13, atol=1e-13)
    for k, part in enumerate(arrays(together.marginals)):
        parts = [arrays(r.marginals)[k].ravel() for r in results]
        np.testing.assert_allclose(part.ravel(), np.concatenate(parts), rtol=1e-9, atol=1e-12)
    best = [row.structure.argmax(u) for u in alone]
    y, value = whole.argmax(potentials)
    np.testing.assert_array_equal(y.ravel(), np.concatenate([y.ravel() for y, _ in best]))
    np.testing.assert_allclose(value, np.concatenate([value for _, value in best]), rtol=1e-13, atol=1e-13)
    scores = [row.structure.score(u, y) for u, (y, _) in zip(alone, best, strict=True)]
    np.testing.assert_allclose(whole.score(potentials, y), np.concatenate(scores), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", [name for name, row in STRUCTURES.items() if row.threads])
def test_threads_change_no_bit(name, monkeypatch):
    monkeypatch.setattr(parallel, "OPERATIONS_PER_CHUNK", 1)  # so that small work is cut up
    row, found = STRUCTURES[name], []
    alone = [row.potentials(1.0, 0.3, seed) for seed in range(6)]
    for n_jobs in (1, 2):
        structure = row.make(n_jobs)
        whole, potentials = row.join(structure, alone) if row.join else (structure, alone[0])
        result, (y, value) = whole.infer(potentials), whole.argmax(potentials)
        draws = whole.sample(potentials, 50, random_state=1)
        assert draws.shape == (50, *y.shape)
        found.append((result.log_z, *arrays(result.marginals), whole.log_partition(potentials), y, value, draws))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def surprise(draws, truth):
    """The probability of counts at least as far from what is expected."""
    counts = np.bincount([truth.number(y) for y in draws], minlength=len(truth.p))
    assert not counts[truth.scores == -np.inf].any()
    expected = len(draws) * truth.p.astype(np.float64)
    often = expected >= 5.0
    terms = (counts - expected)[often] ** 2 / expected[often]
    rest = expected[~often].sum()
    if rest >= 5.0:
        terms = np.append(terms, (counts[~often].sum() - rest) ** 2 / rest)
    assert len(terms) >= 2
    return chi2.sf(terms.sum(), len(terms) - 1)


@table
def test_draws_have_the_probabilities(name):
    row, size = STRUCTURES[name], 4000
    structure = row.structure
    potentials = row.normalised(structure, row.potentials(1.0, 0.2, 3))
    draws = structure.sample(potentials, size, random_state=0)
    np.testing.assert_array_equal(draws, structure.sample(potentials, size, np.random.default_rng(0)))
    assert draws.shape == (size, *structure.argmax(potentials)[0].shape)
    assert surprise(draws, Truth(row, potentials)) > 1e-3


@batches
def test_draws_of_a_batch_are_those_of_its_examples(name):
    row, size = STRUCTURES[name], 3000
    alone = [row.normalised(row.structure, row.potentials(1.0, 0.0, seed)) for seed in (1, 2)]
    whole, potentials = row.join(row.structure, alone)
    draws = whole.sample(potentials, size, random_state=0)
    assert draws.shape == (size, *whole.argmax(potentials)[0].shape)
    examples = draws.reshape(size, len(alone), -1)
    for i, u in enumerate(alone):
        assert surprise(examples[:, i], Truth(row, u)) > 1e-3


@table
def test_what_is_forbidden_altogether(name):
    row = STRUCTURES[name]
    structure = row.structure
    nothing = row.packed(tuple(np.full(part.shape, -np.inf) for part in arrays(row.potentials(1.0, 0.0, 0))))
    if Truth(row, nothing).scores.max() > -np.inf:
        assert structure.infer(nothing).log_z == pytest.approx(Truth(row, nothing).log_z)
        return
    calls = (structure.log_partition, structure.infer, structure.argmax, lambda u: structure.sample(u, 1, 0))
    for call in calls[: 3 if name == "BayesNet" else 4]:  # whose draws are from distributions
        with pytest.raises(ValueError, match=r"forbid every|no perfect (b-)?matching"):
            call(nothing)
    assert np.all([structure.score(nothing, y).sum() == -np.inf for y in row.listed[0]])


@table
def test_engines_and_options_that_are_none(name):
    structure, potentials = STRUCTURES[name].structure, STRUCTURES[name].potentials(1.0, 0.0, 0)
    for ask in (structure.infer, structure.log_partition):
        with pytest.raises(ValueError, match="engine must be one of 'auto', 'exact'"):
            ask(potentials, "nope")
        with pytest.raises((ValueError, TypeError), match="nothing"):
            ask(potentials, "exact", nothing=1)


@few
@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 1000))
def test_a_chain_is_a_factor_graph_and_one_position_a_categorical(n, length, seed):
    rng = np.random.default_rng(seed)
    unary, pairwise = rng.standard_normal((length, n)), rng.standard_normal((length, n, n))
    unary[rng.random(unary.shape) < 0.2] = -np.inf
    unary[:, 0] = 0.0
    chain = Chain(n, [length])
    oracle = ChainOracle(chain)
    chained, flat = chain.infer((unary, pairwise)), oracle.flat((unary, pairwise))
    scopes = [(t,) for t in range(length)] + [(t - 1, t) for t in range(1, length)]
    tree = FactorGraph([n] * length, scopes).infer(flat)
    np.testing.assert_allclose(tree.log_z, chained.log_z, rtol=1e-12, atol=1e-12)
    found = oracle.split(tree.marginals)
    same(found, chained.marginals, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(FactorGraph([n] * length, scopes).enumerate(), chain.enumerate())
    if length == 1:
        label = Categorical(n).infer(unary)
        np.testing.assert_allclose(label.log_z, chained.log_z, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(label.marginals, chained.marginals[0], rtol=1e-12)
        np.testing.assert_array_equal(Categorical(n).enumerate(), chain.enumerate())

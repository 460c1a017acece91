from __future__ import annotations

import itertools

import numpy as np
import pytest
from enumeration import choices, distribution, labellings
from hypothesis import given, strategies as st
from scipy.stats import chi2

from partita import Status
from partita.chain.kernels import forward_backward_log as chain_log
from partita.core.parallel import MAX_CHUNKS
from partita.structures import Chain


@st.composite
def cases(draw, possible=True, scales=(1.0, 30.0, 1000.0)):
    """A chain and potentials with forbidden labels and transitions, numbers of several sizes, and ties."""
    n, lengths = draw(st.integers(1, 4)), draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    T = sum(lengths)
    shape = (n, n) if draw(st.booleans()) else (T, n, n)
    scale, forbidden, ties = draw(st.sampled_from(scales)), draw(st.sampled_from([0.0, 0.3, 0.7])), draw(st.booleans())
    parts = []
    for size in ((T, n), shape):
        part = scale * rng.normal(size=size)
        if ties:
            part = np.round(part / scale)
        parts.append(np.where(rng.random(size) < forbidden, -np.inf, part))
    chain, (E, A) = Chain(n, lengths), parts
    if possible:  # one labelling is allowed
        y = rng.integers(n, size=T)
        E[np.arange(T), y] = 0.0
        for t in set(range(T)) - set(chain.offsets.tolist()):
            A[(y[t - 1], y[t]) if A.ndim == 2 else (t, y[t - 1], y[t])] = -1.0
    return chain, E, A


def listing(chain, E, A):
    """All labellings of each sequence (one per row) and their scores."""
    for a, b in itertools.pairwise(chain.offsets.tolist()):
        Y = labellings(chain.n_labels, b - a)
        scores = E[a, Y[:, 0]].copy()
        for t in range(a + 1, b):
            M = A if A.ndim == 2 else A[t]
            scores += M[Y[:, t - a - 1], Y[:, t - a]]
            scores += E[t, Y[:, t - a]]
        yield a, b, Y, scores


@given(cases())
def test_sums_by_enumeration(case):
    chain, E, A = case
    n, result, entropy = chain.n_labels, chain.infer((E, A)), chain.entropy((E, A))
    pairs = np.zeros((chain.n_positions, n, n))
    for i, (a, b, Y, scores) in enumerate(listing(chain, E, A)):
        log_z, p = distribution(scores)
        assert result.log_z[i] == pytest.approx(log_z, rel=1e-13, abs=1e-11)  # terms of some thousands cancel
        p_max, p_rest = np.split(np.sort(p[p > 0])[::-1], [1])
        expected = -(p_rest * np.log(p_rest)).sum() + p_max[0] * np.log1p(p_rest.sum() / p_max[0])
        assert entropy[i] == pytest.approx(float(expected), rel=1e-9, abs=1e-300)
        for t in range(a, b):
            expected = [p[Y[:, t - a] == v].sum() for v in range(n)]
            np.testing.assert_allclose(result.marginals[0][t], np.array(expected, float), rtol=1e-10, atol=1e-14)
            if t > a:
                for u, v in choices([n, n]).tolist():
                    pairs[t, u, v] = p[(Y[:, t - a - 1] == u) & (Y[:, t - a] == v)].sum()
    np.testing.assert_allclose(chain.pair_marginals((E, A)), pairs, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(result.marginals[1], pairs if A.ndim == 3 else pairs.sum(0), rtol=1e-10, atol=1e-14)
    assert result.marginals[1].shape == A.shape
    assert np.array_equal(chain.log_partition((E, A)), result.log_z)
    assert result.exact
    assert result.status is Status.EXACT
    assert not result.gap.any()


@given(cases(), st.integers(1, 30))
def test_labellings_by_enumeration(case, k):
    chain, E, A = case
    y, value = chain.argmax((E, A))
    Y, values = chain.kbest((E, A), k)
    assert np.array_equal(chain.score((E, A), y), value)
    assert np.array_equal(values[0], value)
    for i, (a, b, every, scores) in enumerate(listing(chain, E, A)):
        code = {tuple(labels): score for labels, score in zip(every.tolist(), scores, strict=True)}
        assert code[tuple(y[a:b])] == value[i] == scores.max()
        possible = np.sort(scores[scores > -np.inf])[::-1]
        found = min(k, len(possible))
        np.testing.assert_allclose(values[:found, i], possible[:found], rtol=1e-14)
        assert [code[tuple(labels)] for labels in Y[:found, a:b].tolist()] == values[:found, i].tolist()
        assert len({tuple(labels) for labels in Y[:found, a:b].tolist()}) == found
        assert np.all(values[found:, i] == -np.inf)
        assert np.all(Y[found:, a:b] == -1)


@given(cases(), st.integers(0, 1000))
def test_score_of_any_labelling(case, seed):
    chain, E, A = case
    y = np.random.default_rng(seed).integers(chain.n_labels, size=chain.n_positions)
    for i, (a, b, Y, scores) in enumerate(listing(chain, E, A)):
        assert chain.score((E, A), y)[i] == scores[(y[a:b] == Y).all(1)]


@given(cases(possible=False))
def test_impossible_sequences_are_named(case):
    chain, E, A = case
    impossible = [i for i, (*_, scores) in enumerate(listing(chain, E, A)) if scores.max() == -np.inf]
    calls = [chain.log_partition, chain.infer, chain.pair_marginals, chain.argmax, chain.entropy]
    calls += [lambda potentials: chain.kbest(potentials, 2), lambda potentials: chain.sample(potentials, 2)]
    for call in calls:
        if impossible:
            with pytest.raises(ValueError, match=f"forbid every labelling of sequence {impossible[0]}:"):
                call((E, A))
        else:
            call((E, A))
    assert np.all(chain.score((E, A), np.zeros(chain.n_positions, int))[impossible] == -np.inf)


@given(cases(scales=(1.0, 3.0)))
def test_marginals_are_the_gradient(case):
    chain, E, A = case
    for part, marginals in zip((E, A), chain.infer((E, A)).marginals, strict=True):
        for index in np.ndindex(part.shape):
            centre = part[index]
            if centre > -np.inf:
                part[index] = centre + 1e-5
                above = chain.log_partition((E, A)).sum()
                part[index] = centre - 1e-5
                slope = (above - chain.log_partition((E, A)).sum()) / 2e-5
                part[index] = centre
                assert marginals[index] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("shared", [True, False])
def test_samples_follow_the_distribution(shared, rng):
    E, A = rng.normal(size=(4, 3)), rng.normal(size=(3, 3) if shared else (4, 3, 3))
    E[1, 0] = A[..., 2, 1] = -np.inf
    chain, size = Chain(3, [3, 1]), 20_000
    draws = chain.sample((E, A), size, random_state=1)
    assert np.array_equal(draws, chain.sample((E, A), size, random_state=1))
    assert not np.array_equal(draws, chain.sample((E, A), size, random_state=2))
    for a, b, Y, scores in listing(chain, E, A):
        p = distribution(scores)[1].astype(float)
        counts = np.array([(draws[:, a:b] == labels).all(1).sum() for labels in Y])
        assert not counts[p == 0].any()
        statistic = ((counts - size * p)[p > 0] ** 2 / (size * p[p > 0])).sum()
        assert statistic < chi2.ppf(0.999, (p > 0).sum() - 1)


def test_a_level_at_the_end_never_draws_a_label_of_weight_zero():
    class Ones(np.random.Generator):
        def random(self, shape):
            return np.full(shape, 1.0)

    generator = Ones(np.random.PCG64(0))
    E = np.array([[0.3, 0.0, -np.inf], [0.0, 0.7, -np.inf]])
    assert Chain(3, [2]).sample((E, np.zeros((3, 3))), 3, generator).tolist() == [[1, 1]] * 3


@pytest.mark.parametrize("shared", [True, False])
def test_threads_give_the_same_bits(shared, rng):
    lengths = np.concatenate([rng.integers(1, 60, 300), [4000]])
    T, n = lengths.sum(), 6
    potentials = (rng.normal(size=(T, n)), rng.normal(size=(n, n) if shared else (T, n, n)))
    answers = []
    for n_jobs in (1, 2, 3):
        chain = Chain(n, lengths, n_jobs=n_jobs)
        assert len(chain.ranges(10 * n * n)) == MAX_CHUNKS
        result = chain.infer(potentials)
        arrays = [result.log_z, *result.marginals, chain.log_partition(potentials), chain.entropy(potentials)]
        arrays += [*chain.argmax(potentials), *chain.kbest(potentials, 3), chain.sample(potentials, 2, random_state=3)]
        answers.append(arrays)
    for other in answers[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(answers[0], other, strict=True))


def test_ranges_follow_the_work():
    chain = Chain(2, [1] * 1000 + [1000] * 2)
    positions = [chain.offsets[hi] - chain.offsets[lo] for lo, hi in chain.ranges(1e6)]
    assert sum(positions) == chain.n_positions
    assert len(positions) == MAX_CHUNKS
    assert max(positions) <= 1000 + chain.n_positions / MAX_CHUNKS
    assert chain.ranges(1.0) == [(0, 1002)]


def matrix_product(E, A, clamp=None):
    """log Z of one sequence by a tree of products of transfer matrices, rescaled, in extended precision."""
    E = E.astype(np.longdouble)
    if clamp is not None:
        position, label = clamp
        E[position, np.arange(E.shape[1]) != label] = -np.inf
    M = np.broadcast_to(A, (len(E), *A.shape[-2:])) + E[:, None, :]
    first, M = M[:1].copy(), M[1:]
    first[0] = np.where(np.arange(E.shape[1])[:, None] == 0, E[0], -np.inf)
    M = np.concatenate([first, M])
    scale = M.max(axis=(1, 2))
    M, total = np.exp(M - scale[:, None, None]), scale.sum()
    while len(M) > 1:
        if len(M) % 2:
            M = np.concatenate([M, np.eye(E.shape[1], dtype=np.longdouble)[None]])
        M = (M[::2, :, :, None] * M[1::2, None]).sum(2)
        scale = M.max(axis=(1, 2))
        M, total = M / scale[:, None, None], total + np.log(scale).sum()
    return total + np.log(M[0].sum())


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_hundred_thousand_positions(scale, rng):
    T, n = 100_000, 3
    E, A = scale * rng.normal(size=(T, n)), scale * rng.normal(size=(n, n))
    A[0, 2] = -np.inf
    chain = Chain(n, [T])
    result, entropy = chain.infer((E, A)), chain.entropy((E, A))[0]
    P, C = result.marginals
    log_z = matrix_product(E, A)
    assert result.log_z[0] == pytest.approx(float(log_z), rel=1e-14)
    for t, v in ((0, 1), (50_001, 0), (50_001, 2)):
        assert P[t, v] == pytest.approx(float(np.exp(matrix_product(E, A, (t, v)) - log_z)), rel=1e-10, abs=1e-15)
    np.testing.assert_allclose(C.sum(1), P[:-1].sum(0), rtol=1e-11)
    np.testing.assert_allclose(C.sum(0), P[1:].sum(0), rtol=1e-11)
    allowed = np.isfinite(A)
    mean = (P * E).sum(dtype=np.longdouble) + (C[allowed] * A[allowed]).sum(dtype=np.longdouble)
    assert entropy == pytest.approx(float(log_z - mean), rel=1e-7)
    y, value = chain.argmax((E, A))
    assert -1e-12 <= (log_z - value[0]) / log_z <= entropy / log_z + 1e-12  # the best weighs more than the mean
    draw = chain.sample((E, A), 1, random_state=0)[0]
    assert abs(np.bincount(draw, minlength=n) - P.sum(0)).max() < 5 * np.sqrt(T)
    Y, values = chain.kbest((E, A), 3)
    assert np.array_equal(Y[0], y)
    assert np.array_equal(values[:, 0], [chain.score((E, A), labels)[0] for labels in Y])
    assert np.all(np.diff(values[:, 0]) <= 0)


def test_the_only_way_leads_through_an_unlikely_label():
    likely, unlikely, exit_only = 0, 1, 2
    rounds = 500
    E = np.tile([[0.0, -1e5, -np.inf], [-np.inf, -np.inf, 0.0]], (rounds, 1))
    A = np.zeros((3, 3))
    A[likely, exit_only], A[unlikely, exit_only] = -np.inf, -3.0
    chain = Chain(3, [2 * rounds])
    result = chain.infer((E, A))
    assert result.log_z[0] == -100_003.0 * rounds
    assert np.array_equal(result.marginals[0], np.tile([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], (rounds, 1)))
    assert result.marginals[1].tolist() == [[0, 0, 0], [0, 0, rounds], [0, rounds - 1, 0]]
    assert chain.entropy((E, A))[0] == 0.0
    path = [unlikely, exit_only] * rounds
    assert chain.argmax((E, A))[0].tolist() == path
    assert chain.sample((E, A), 1, random_state=0)[0].tolist() == path
    assert chain.kbest((E, A), 2)[1].tolist() == [[-100_003.0 * rounds], [-np.inf]]


def test_equal_labellings_come_in_a_fixed_order():
    chain, potentials = Chain(2, [3]), (np.zeros((3, 2)), np.zeros((2, 2)))
    assert chain.argmax(potentials)[0].tolist() == [0, 0, 0]
    Y, values = chain.kbest(potentials, 9)
    assert Y[:8].tolist() == sorted(Y[:8].tolist(), key=lambda labels: labels[::-1])
    assert values[:, 0].tolist() == [0.0] * 8 + [-np.inf]


def test_first_rows_of_pairwise_are_ignored(rng):
    chain, E, A = Chain(2, [2, 1, 3]), rng.normal(size=(6, 2)), rng.normal(size=(6, 2, 2))
    expected = chain.infer((E, A))
    A[[0, 2, 3]] = [[[np.nan]], [[np.inf]], [[-np.inf]]]
    found = chain.infer((E, A))
    assert np.array_equal(expected.log_z, found.log_z)
    assert np.array_equal(expected.marginals[1], found.marginals[1])
    assert not found.marginals[1][[0, 2, 3]].any()


def test_potentials_of_other_types_are_left_alone(rng):
    E, A = np.asfortranarray(rng.normal(size=(5, 2)).astype(np.float32)), [[0, 1], [2, 0]]
    E.setflags(write=False)
    expected = Chain(2, [5]).log_partition((np.array(E, float), np.array(A, float)))
    assert np.array_equal(Chain(2, np.array([5], np.uint8)).log_partition([E, A]), expected)


@given(cases(), st.floats(-3, 3))
def test_kernels_add_pairs_with_a_factor(case, factor):
    chain, E, A = case
    shared = np.ones((1, chain.n_labels, chain.n_labels))
    each = np.ones((max(2, chain.n_positions), chain.n_labels, chain.n_labels))
    A3, pairs = A.reshape(-1, *shared.shape[1:]), chain.pair_marginals((E, A))
    for lo, hi in itertools.pairwise(chain.offsets.tolist()):
        alpha, beta = np.empty((hi - lo, chain.n_labels)), np.empty((hi - lo, chain.n_labels))
        log_z = chain_log.log_forward(E, A3, lo, hi, alpha)
        chain_log.log_backward(E, A3, lo, hi, beta)
        assert not beta[-1].any()
        for C in (shared, each):
            chain_log.log_pairs(E, A3, lo, hi, alpha, beta, log_z, factor, C)
            chain_log.log_pairs(E, A3, lo, hi, alpha, beta, -np.inf, factor, C)
    np.testing.assert_allclose(shared[0], 1 + factor * pairs.sum(0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(each[: chain.n_positions], 1 + factor * pairs, rtol=1e-12, atol=1e-12)


E, A = np.zeros((3, 2)), np.zeros((2, 2))


def changed(part, index, value):
    part = part.copy()
    part[index] = value
    return part


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Chain(0, [1]), "n_labels must be an integer >= 1"),
        (lambda: Chain(2, [1, 0]), "lengths must be a vector of integers >= 1"),
        (lambda: Chain(2, []), "lengths must be a vector"),
        (lambda: Chain(2, [1.5]), "lengths must be a vector"),
        (lambda: Chain(2, [1], n_jobs=0), "n_jobs must be"),
        (lambda: Chain(2, [2, 1]).log_partition(E), r"potentials must be a pair \(unary, pairwise\), got ndarray"),
        (lambda: Chain(2, [2]).log_partition((E, A)), r"unary potentials must have shape \(2, 2\).*got \(3, 2\)"),
        (
            lambda: Chain(2, [2, 1]).argmax((E, E)),
            r"pairwise potentials must have shape \(2, 2\) or \(3, 2, 2\); got \(3, 2\)",
        ),
        (lambda: Chain(2, [2, 1]).infer((changed(E, (2, 1), np.nan), A)), "unary.* NaN .*position 0 of sequence 1"),
        (lambda: Chain(2, [2, 1]).infer((changed(E, (1, 0), np.inf), A)), "unary.* NaN .*position 1 of sequence 0"),
        (lambda: Chain(2, [2, 1]).infer((E, changed(A, (1, 0), np.inf))), r"pairwise potentials must not be NaN or \+inf"),
        (
            lambda: Chain(2, [1, 2]).infer((E, changed(np.zeros((3, 2, 2)), (2, 0, 1), np.nan))),
            "pairwise.* NaN .*into position 1 of sequence 1",
        ),
        (lambda: Chain(2, [2, 1]).log_partition((E, A), engine="magic"), "engine must be one of"),
        (lambda: Chain(2, [2, 1]).infer((E, A), engine="magic"), "engine must be one of"),
        (lambda: Chain(2, [2, 1]).score((E, A), [0, 1]), r"y must be 3 integers.*got shape \(2,\)"),
        (lambda: Chain(2, [2, 1]).score((E, A), [0.0, 1.0, 1.0]), "y must be 3 integers.*float64"),
        (lambda: Chain(2, [2, 1]).score((E, A), [0, 0, 2]), "from 0 to 1; got 2 at position 0 of sequence 1"),
        (lambda: Chain(2, [2, 1]).kbest((E, A), 0), "k must be an integer >= 1"),
        (lambda: Chain(2, [2, 1]).sample((E, A), -1), "size must be an integer >= 0"),
        (lambda: Chain(2, [2, 1]).sample((E, A), 1, random_state="x"), "random_state must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

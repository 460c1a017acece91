"""Bounds on log Z of chains: above it everywhere tried, by enumeration, and touching it where they were made."""

from __future__ import annotations

import numpy as np
import pytest
from enumeration import labellings
from hypothesis import given, strategies as st

from partita.bounds import BOUNDS, DenseChains, LineBound, chain_bound, junction_tree_bound, range_certificate
from partita.chain.bounds import UPPERS, line_curvatures
from partita.chain.kernels.bound import one_sided
from partita.core import Workers


def listed(U, A):
    """The score of every labelling of one chain."""
    Y = labellings(U.shape[1], len(U))
    return U[np.arange(len(U)), Y].sum(1) + A[Y[:, :-1], Y[:, 1:]].sum(1)


def curvatures(U, A, dU, dA, offsets=None, radius=np.inf):
    offsets = np.array([0, len(U)]) if offsets is None else offsets
    return line_curvatures((U, A), (dU, dA), offsets, radius, [(0, len(offsets) - 1)], Workers(1))


@st.composite
def lines(draw):
    """Scores and a direction of one chain, with forbidden labels and transitions and numbers of all sizes."""
    n, length = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from([0.1, 1.0, 10.0, 300.0, 1e4]))
    U, A = size * rng.normal(size=(length, n)), size * rng.normal(size=(n, n))
    forbidden = draw(st.sampled_from([0.0, 0.0, 0.4]))
    U[rng.random(U.shape) < forbidden / 2] = -np.inf
    A[rng.random(A.shape) < forbidden] = -np.inf
    mask = rng.random((length, n)) < draw(st.sampled_from([0.2, 1.0]))
    return U, A, rng.normal(size=(length, n)) * mask, draw(st.sampled_from([0.0, 0.3, 3.0])) * rng.normal(size=(n, n)), rng


def excess(scores, direction, steps):
    """log Z(t) - log Z(0) - t slope, its size of rounding, the slope and the variance."""
    top = scores.max()
    p = np.exp((scores - top).astype(np.longdouble))
    p /= p.sum()
    mean = float(p @ direction)
    moved = scores[None] - top + steps[:, None] * (direction - mean)
    high = moved.max(1)
    value = high + np.log(np.exp(moved - high[:, None]).sum(1)) - float(np.log(np.exp(scores - top).sum()))
    noise = 1e-13 * (1.0 + np.abs(moved[:, scores > -np.inf]).max(1))
    return value, noise, mean, float(p @ (direction - mean) ** 2)


@given(lines())
def test_line_bound_by_enumeration(case):
    U, A, dU, dA, rng = case
    scores, direction = listed(U, A), listed(dU, dA)
    live = scores > -np.inf
    radius = 10.0 ** rng.uniform(-3.0, 3.0)
    K, nearby, H, above = curvatures(U, A, dU, dA, radius=radius)
    if not live.any():
        assert K[0] == nearby[0] == H[0] == above[0] == 0.0
        return
    steps = 10.0 ** rng.uniform(-3.0, 3.0, 100)
    scores, direction = scores[live], direction[live]
    value, noise, mean, variance = excess(scores, direction, steps)
    size = max(np.abs(dU).max(), np.abs(dA).max())  # of labels on no allowed labelling too: they leave rounding
    np.testing.assert_allclose(H[0], variance, rtol=1e-8, atol=1e-28 * size**2)
    np.testing.assert_allclose(above[0], direction.max() - mean, rtol=1e-9, atol=1e-12 * size)
    assert np.all(value <= 0.5 * K[0] * steps**2 * (1.0 + 1e-9) + noise)
    bound = LineBound(mean, 0.0, np.ones(1), radius, K, nearby, H, above)
    within = np.array([bound.curvature(step) for step in steps])
    assert np.all(value <= 0.5 * within * steps**2 * (1.0 + 1e-9) + noise)
    assert np.all(np.diff(within[np.argsort(steps)]) >= -1e-12 * K[0])
    assert within.max() <= K[0] == bound.curvature()


@given(lines())
def test_no_looser_than_the_range_of_every_position(case):
    """The specification's certificate: the sum over positions of the largest R^2 B(.), and one for the last label."""
    U, A, dU, dA, _ = case
    # Probabilities below 1e-32 have variances below what rounding leaves of (x - mean)^2, which makes the bound looser.
    U, A = np.clip(U, -10.0, 10.0), np.clip(A, -10.0, 10.0)
    a, F, total = U[0], dU[0], 0.0
    for t in range(1, len(U)):
        logits, values = (a[:, None] + A).T, (F[:, None] + dA).T
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        total += range_certificate(p, values).max()
        a, F = np.logaddexp.reduce(logits, axis=1) + U[t], (p * values).sum(1) + dU[t]
    total += range_certificate(np.exp(a - np.logaddexp.reduce(a)), F)[0]
    both = max(curvatures(U, A, sign * dU, sign * dA)[0][0] for sign in (1.0, -1.0))
    assert both <= total * (1.0 + 1e-9) + 1e-12


def test_one_sided_curvature_is_the_best_that_range_and_variance_allow(rng):
    for _ in range(200):
        b, s = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-4, 4)
        K = one_sided(b, s)
        t = 10.0 ** np.linspace(-6, 4, 20_001) / b
        q = s / (s + b * b)
        g = np.logaddexp(np.log1p(-q) - t * s / b, np.log(q) + t * b)
        ratio = g / (0.5 * t * t)
        reliable = ratio[t * b > 1e-3]
        assert reliable.max() <= K * (1.0 + 1e-6)
        best = s if s >= b * b else reliable.max()
        assert best * (1.0 + 1e-5) >= K
    assert one_sided(1.0, 0.0) < 2e-3  # not zero: what underflowed may be there
    assert one_sided(0.0, 0.0) == 0.0


def test_what_underflows_still_counts():
    """The unlikely label has probability e^-2000 and a score of 100 per step: at t = 30 it has taken over."""
    U, A = np.array([[0.0, -2000.0], [0.0, 0.0]]), np.zeros((2, 2))
    dU = np.array([[0.0, 100.0], [0.0, 0.0]])
    K, _, H, _ = curvatures(U, A, dU, np.zeros((2, 2)))
    assert H[0] < 1e-200
    t = np.linspace(1, 100, 1000)
    assert np.all(np.logaddexp(0.0, -2000.0 + 100.0 * t) <= 0.5 * K[0] * t**2)


def test_long_chains_and_threads(rng):
    lengths = np.array([100_000, 1, 7, 3000])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    arrays = [rng.normal(size=(offsets[-1], 3)), rng.normal(size=(3, 3))] * 2
    one = curvatures(*arrays, offsets)
    two = line_curvatures(tuple(arrays[:2]), tuple(arrays[2:]), offsets, np.inf, [(0, 1), (1, 4)], Workers(2))
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)
        assert np.isfinite(a).all()
    assert one[0][0] / one[2][0] < 6.0  # the specification's ratio, at any length


def random_chains(rng, n, lengths, d, size=1.0):
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return DenseChains(size * rng.normal(size=(offsets[-1], n, d)), size * rng.normal(size=(n, n, d)), offsets)


def listed_features(chains, i):
    a, b = chains.offsets[i : i + 2]
    Y = labellings(chains.unary.shape[1], b - a)
    return chains.unary[np.arange(a, b), Y].sum(1) + chains.pairs[Y[:, :-1], Y[:, 1:]].sum(1)


@pytest.mark.parametrize("upper", UPPERS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_shared_curvature_by_enumeration(bound, upper, rng):
    for _ in range(30):
        n, lengths, d = int(rng.integers(1, 4)), rng.integers(1, 5, 2), int(rng.integers(1, 5))
        chains, w = random_chains(rng, n, lengths, d), np.array([1.0, 0.5])
        theta = rng.normal(size=d) * 10.0 ** rng.uniform(-1, 1)
        quadratic = chain_bound(chains, theta, weights=w, bound=bound, upper=upper)
        features = [listed_features(chains, i) for i in range(2)]
        check_bound(quadratic, features, w, theta, rng)


def check_bound(quadratic, features, w, theta, rng, tries=20):
    def log_z(x):
        return sum(wi * np.logaddexp.reduce(F @ x) for wi, F in zip(w, features, strict=True))

    mean = sum(wi * np.exp(F @ theta - np.logaddexp.reduce(F @ theta)) @ F for wi, F in zip(w, features, strict=True))
    assert quadratic.log_z == pytest.approx(log_z(theta), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(quadratic.mean, mean, atol=1e-10)
    for _ in range(tries):
        x = theta + rng.normal(size=len(theta)) * 10.0 ** rng.uniform(-2, 2)
        assert log_z(x) <= quadratic.value(x) + 1e-10 * (1.0 + np.abs(x).max())


def test_shared_curvature_with_forbidden_transitions(rng):
    for _ in range(20):
        chains = random_chains(rng, 3, [4], 2)
        A_base = np.where(rng.random((3, 3)) < 0.3, -np.inf, 0.0)
        A_base[0, 0] = 0.0
        theta = rng.normal(size=2)
        U, A = chains.scores(theta)
        F = listed_features(chains, 0)
        allowed = listed(np.zeros((4, 3)), A_base) == 0.0
        for upper in UPPERS:
            quadratic = chain_bound(chains, theta, upper=upper, scores=(U, A + A_base))
            check_bound(quadratic, [F[allowed]], [1.0], theta, rng)


@pytest.mark.parametrize("ordering", ["descending", "given", "ascending"])
def test_algorithm_three_as_printed_is_a_bound(ordering, rng):
    for _ in range(50):
        chains = random_chains(rng, int(rng.integers(2, 4)), [int(rng.integers(1, 6))], 2)
        theta = rng.normal(size=2)
        quadratic = junction_tree_bound(chains, theta, ordering=ordering)
        check_bound(quadratic, [listed_features(chains, 0)], [1.0], theta, rng)


def test_tightness_is_that_of_the_specification(rng):
    """tr Sigma / tr H by length: exponential as printed, constant with a shared curvature."""

    def ratios(n, length, d=8):
        chains = random_chains(rng, n, [length], d)
        theta = 0.1 * rng.normal(size=d)
        mean = lambda x: chain_bound(chains, x).mean  # noqa: E731
        trace = sum((mean(theta + 1e-4 * e) - mean(theta - 1e-4 * e)) @ e for e in np.eye(d)) / 2e-4
        shared = [chain_bound(chains, theta, bound="symmetric", upper=upper).trace() for upper in UPPERS]
        return np.array([junction_tree_bound(chains, theta).trace(), *shared]) / trace

    two = {length: np.median([ratios(2, length) for _ in range(3)], axis=0) for length in (4, 16, 32, 64)}
    five = {length: np.median([ratios(5, length) for _ in range(3)], axis=0) for length in (4, 16, 32)}
    printed = [two[length][0] for length in (16, 32, 64)] + [five[length][0] for length in (16, 32)]
    assert np.all(np.array(printed) > [1e3, 1e7, 1e16, 1e8, 1e19])
    assert all(row[2] <= row[1] <= 2.6 for row in two.values())
    assert all(row[2] <= row[1] <= 10.0 and row[2] <= 5.0 for row in five.values())


def test_bad_arguments_are_named(rng):
    chains = random_chains(rng, 2, [2, 2], 2)
    with pytest.raises(ValueError, match="upper must be one of"):
        chain_bound(chains, np.zeros(2), upper="max")
    with pytest.raises(ValueError, match="bound must be one of"):
        chain_bound(chains, np.zeros(2), bound="hessian")
    with pytest.raises(ValueError, match="chains must hold one chain, got 2"):
        junction_tree_bound(chains, np.zeros(2))

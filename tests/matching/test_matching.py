"""Matchings against enumeration, closed forms, and the inequalities between free energies."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from enumeration import log_sum, matchings, permutations

from partita import TooLargeError
from partita.matching.engines import bethe as matching_bethe
from partita.matching.engines.support import fractional_support
from partita.structures import BipartiteMatching, Matching


@pytest.mark.parametrize("seed", range(12))
def test_permutations_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = 1 + seed % 6
    W = 3.0 * rng.standard_normal((2, n, n)) + 100.0 * (seed % 3)
    if seed % 2 and n > 2:
        W[:, 0, 1] = -np.inf
    s = BipartiteMatching(n)
    Y = permutations(n)
    result = s.infer(W, "exact")
    best, value = s.argmax(W)
    for b in range(2):
        scores = W[b, np.arange(n), Y].sum(1)
        np.testing.assert_allclose(s.score(W[b], Y), scores)
        p = np.exp(scores - log_sum(scores))
        expected = np.zeros((n, n))
        for y, q in zip(Y, p, strict=True):
            expected[np.arange(n), y] += q
        assert result.log_z[b] == pytest.approx(log_sum(scores), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(result.marginals[b], expected, atol=1e-12)
        assert value[b] == pytest.approx(scores.max())
        assert s.score(W[b], best[b])[0] == pytest.approx(scores.max())


@pytest.mark.parametrize("perfect", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_matchings_against_enumeration(seed, perfect):
    rng = np.random.default_rng(seed)
    n = 6
    edges = np.array([pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.8])
    Y = matchings(n, edges, perfect)
    s = Matching(edges, perfect=perfect, n_vertices=n)
    w = 2.0 * rng.standard_normal(len(edges))
    scores = np.array([sum(w[e] for e, (i, j) in enumerate(edges) if y[i] == j) for y in Y])
    np.testing.assert_allclose(s.score(w, Y), scores, atol=1e-12)
    result = s.infer(w, "exact")
    assert result.log_z[0] == pytest.approx(log_sum(scores), rel=1e-12, abs=1e-12)
    p = np.exp(scores - log_sum(scores))
    np.testing.assert_allclose(result.marginals, [p[Y[:, i] == j].sum() for i, j in edges], atol=1e-12)
    best, value = s.argmax(w)
    assert value[0] == pytest.approx(scores.max(), abs=1e-9)
    np.testing.assert_allclose(s.score(w, best), scores.max(), atol=1e-9)


def test_samples_have_the_right_frequencies(rng):
    W = rng.standard_normal((4, 4))
    s = BipartiteMatching(4)
    exact = s.infer(W, "exact").marginals
    for options in ({}, {"thinning": 3}):
        draws = s.sample(W, 6000, random_state=0, **options)
        found = (draws[:, :, None] == np.arange(4)).mean(0)
        np.testing.assert_allclose(found, exact, atol=0.03)
    for perfect in (True, False):
        g = Matching(6, perfect=perfect)
        V = rng.standard_normal((6, 6))
        V = V + V.T
        exact = g.infer(V, "exact").marginals
        for options in ({}, {"thinning": 3}):
            draws = g.sample(V, 6000, random_state=0, **options)
            found = (draws[:, :, None] == np.arange(6)).mean(0)
            np.testing.assert_allclose(found, exact, atol=0.03)


def test_published_free_energies():
    for off, expected in ((-2.0, (0.202, 1.431, 7.966)), (-0.5, (9.195, 10.753, 18.654))):
        W = np.full((10, 10), off)
        np.fill_diagonal(W, 0.0)
        s = BipartiteMatching(10)
        found = (s.infer(W, rho=1.0).log_z[0], s.log_partition(W, "exact")[0], s.infer(W, rho=0.5).log_z[0])
        np.testing.assert_allclose(found, expected, atol=6e-4)


def test_bethe_freezes_where_it_must():
    n = 6
    s = BipartiteMatching(n)
    for w in (np.log(n - 1) + 0.2, 3.0, 50.0, 2000.0):
        W = np.full((n, n), -w)
        np.fill_diagonal(W, 0.0)
        result = s.infer(W, rho=1.0)
        assert np.isfinite(result.marginals).all()
        np.testing.assert_allclose(result.marginals, np.eye(n), atol=1e-6)
        assert result.gap[0] <= 1e-8
        assert result.log_z[0] == pytest.approx(0.0, abs=1e-7)


def test_permutations_sandwich(rng):
    for _ in range(60):
        n = int(rng.integers(2, 8))
        s = BipartiteMatching(n)
        W = 10.0 ** rng.uniform(-1, 1) * rng.standard_normal((5, n, n))
        exact = s.log_partition(W, "exact")
        bethe, plain = s.infer(W, rho=1.0), s.infer(W, rho=0.5, max_iter=20000)
        assert (bethe.lower <= exact + 1e-9).all()
        assert (exact <= bethe.upper + 1e-9).all()
        assert (exact <= plain.upper + 1e-9).all()


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("perfect", [True, False])
def test_free_energies_of_general_graphs_are_stationary(rho, perfect, rng):
    """The value is the largest: no feasible direction improves it."""
    n = 6
    s = Matching(n, perfect=perfect)
    w = rng.standard_normal(s.n_edges)
    result = s.infer(w, rho=rho, tol=1e-10, max_iter=100000)
    assert result.gap[0] <= 1e-10

    def value(tau):
        degrees = 1.0 - np.bincount(s.ends.ravel(), weights=np.repeat(tau, 2), minlength=n)
        out = w @ tau - tau @ np.log(tau) + (2 * rho - 1) * ((1 - tau) @ np.log1p(-tau))
        return out if perfect else out - rho * (degrees @ np.log(degrees))

    tau = result.marginals
    assert value(tau) == pytest.approx(result.log_z[0], abs=1e-8)
    A = np.zeros((n, s.n_edges))
    A[s.ends.T, np.arange(s.n_edges)] = 1.0
    directions = np.linalg.svd(A)[2][n:] if perfect else np.eye(s.n_edges)
    room = 1e-3 if perfect else min(1e-3, 0.5 * float((1.0 - A @ tau).min()))  # a step must leave every vertex something
    for d in directions:
        for step in (room, -room):
            assert value(tau + step * d) <= result.log_z[0] + 1e-9


@pytest.mark.parametrize("rho", [0.6, 1.0])
def test_certificates_keep_digits_where_nobody_stays_alone(rho):
    """With weights of a hundred and more, 1 - degrees is rounding only; one edge has a closed form."""
    for w in (5.0, 40.0, 300.0):
        result = Matching(2, perfect=False).infer([w], "bethe", rho=rho)
        assert result.gap[0] <= 1e-8
        assert result.log_z[0] == pytest.approx(np.log1p(np.exp(-w)) + w if rho == 1.0 else w, abs=0.2)
    s = Matching(10, perfect=False)
    for seed in range(3):
        W = 20.0 * np.random.default_rng(seed).standard_normal((10, 10))
        result = s.infer(W + W.T, "bethe", rho=rho)
        assert result.gap[0] <= 1e-8
        assert result.log_z[0] >= s.argmax(W + W.T)[1][0] - 1e-7


@pytest.mark.parametrize("scale", [10.0, 50.0])
def test_frozen_messages_keep_their_certificates(scale):
    """Where messages have reached their largest, the certificate still shows that the solution is the best permutation."""
    s, rng = BipartiteMatching(6), np.random.default_rng(1)
    result = s.infer(scale * rng.standard_normal((60, 6, 6)), "bethe", tol=1e-8)
    assert (result.gap <= 1e-8).all()
    assert (result.marginals.max(2).min(1) > 1.0 - 1e-9).sum() >= 20  # frozen ones


@pytest.mark.parametrize("kind", ["bipartite", "general", "free"])
@pytest.mark.parametrize("rho", [0.5, 0.8, 0.95])
def test_nearly_certain_edges_do_not_slow_scalings_down(kind, rho):
    for seed in range(4):
        s, W = large(kind, 10, 20.0, np.random.default_rng(seed))
        result = s.infer(W, "bethe", rho=rho)
        assert result.gap[0] <= 1e-8
        assert result.n_iter <= 300


def test_weights_shift_free_energies(rng):
    W = rng.standard_normal((5, 5))
    s = BipartiteMatching(5)
    for rho in (0.5, 0.8, 1.0):
        a, b = s.infer(W, rho=rho), s.infer(W + np.arange(5.0), rho=rho)
        assert b.log_z[0] - a.log_z[0] == pytest.approx(10.0, abs=1e-7)
        np.testing.assert_allclose(a.marginals, b.marginals, atol=1e-5)


def test_warm_starts_are_shorter(rng):
    s = BipartiteMatching(20)
    W = rng.standard_normal((3, 20, 20))
    for rho in (0.5, 0.8, 1.0):
        cold = s.infer(W, rho=rho)
        warm = s.infer(W + 1e-6 * rng.standard_normal(W.shape), rho=rho, messages=cold.messages)
        assert warm.n_iter < cold.n_iter


def large(kind, n, scale, rng):
    """A structure and weights."""
    s = BipartiteMatching(n) if kind == "bipartite" else Matching(n, perfect=kind == "general")
    W = scale * rng.standard_normal((n, n))
    return s, W if kind == "bipartite" else W + W.T


@pytest.mark.parametrize("kind", ["bipartite", "general", "free"])
def test_sweeps_on_threads_are_the_same(kind, rng, monkeypatch):
    s, W = large(kind, 30, 3.0, rng)
    one = s.infer(W, "bethe")
    assert one.marginals.max() > 0.6  # scalings do not reach that
    monkeypatch.setattr(matching_bethe, "LARGE", 10)
    many = s.infer(W, "bethe")
    np.testing.assert_array_equal(one.marginals, many.marginals)
    assert one.n_iter == many.n_iter


@pytest.mark.parametrize("kind", ["bipartite", "general", "free"])
def test_numbers_of_vertices_agree_with_messages(kind, rng, monkeypatch):
    s, W = large(kind, 40, 0.5, rng)
    W += 100.0 if s.perfect else 0.0
    by_messages = s.infer(W, "bethe", tol=1e-10)
    monkeypatch.setattr(matching_bethe, "LARGE", 10)
    found = s.infer(W, "bethe", tol=1e-10)
    assert found.messages.shape == (1, s.n_vertices)
    assert found.gap[0] <= 1e-10
    np.testing.assert_allclose(found.marginals, by_messages.marginals, atol=1e-9)
    assert found.log_z[0] == pytest.approx(by_messages.log_z[0], abs=1e-9)
    again = s.infer(W, "bethe", tol=1e-10, messages=found.messages)
    assert again.n_iter == 1
    near = s.infer(1.001 * W, "bethe", tol=1e-10, messages=found.messages)
    assert near.n_iter < found.n_iter


def test_large_weights_keep_exact_sums(rng):
    g = Matching(4, perfect=False)
    assert g.infer(np.full(6, 360.0), "exact").log_z[0] == pytest.approx(720.0 + np.log(3.0))
    np.testing.assert_allclose(g.infer(np.full(6, 1e5), "exact").marginals, 1.0 / 3.0)
    draws = g.sample(np.full(6, 500.0), 300, random_state=0)
    assert (draws >= 0).all()
    assert set(draws[:, 0].tolist()) == {1, 2, 3}
    Y = permutations(4)
    for scale in (500.0, 1e4):
        for _ in range(30):
            W = scale * rng.standard_normal((4, 4))
            scores = W[np.arange(4), Y].sum(1)
            result = BipartiteMatching(4).infer(W, "exact")
            assert result.log_z[0] == pytest.approx(log_sum(scores), rel=1e-12)
            np.testing.assert_allclose(result.marginals.sum(0), 1.0, atol=1e-9)


def test_a_shift_of_all_weights_costs_no_digits(rng):
    s, W = BipartiteMatching(3), rng.standard_normal((3, 3))
    a, b = s.infer(W, "bethe"), s.infer(W + 1e6, "bethe")
    assert b.gap[0] <= 1e-8
    np.testing.assert_allclose(a.marginals, b.marginals, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_edges_of_matchings_have_positive_shares(seed):
    rng = np.random.default_rng(seed)
    n = 6
    edges = np.array([pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.5])
    Y = matchings(n, edges, True)
    if not len(Y):
        return
    used = np.array([(Y[:, i] == j).any() for i, j in edges])
    wider = fractional_support(edges, n, 0)
    assert (wider | ~used).all()


@pytest.mark.parametrize("seed", range(20))
def test_forbidden_and_forced_edges(seed):
    rng = np.random.default_rng(seed)
    n = 5
    W = rng.standard_normal((n, n))
    W[rng.random((n, n)) < 0.55] = -np.inf
    s, Y = BipartiteMatching(n), permutations(n)
    scores = W[np.arange(n), Y].sum(1)
    if not (scores > -np.inf).any():
        for engine in ("exact", "bethe"):
            with pytest.raises(ValueError, match=r"no perfect matching|forbid every matching"):
                s.infer(W, engine)
        with pytest.raises(ValueError, match="no perfect matching"):
            s.argmax(W)
        return
    exact, bethe = s.infer(W, "exact"), s.infer(W, "bethe")
    assert np.isfinite(bethe.log_z).all()
    assert bethe.gap[0] <= 1e-8
    assert bethe.lower[0] <= exact.log_z[0] + 1e-9
    np.testing.assert_allclose(bethe.marginals.sum(0), 1.0, atol=1e-6)
    certain = exact.marginals > 1 - 1e-12
    np.testing.assert_allclose(bethe.marginals[certain], 1.0, atol=1e-6)
    np.testing.assert_allclose(bethe.marginals[exact.marginals == 0.0], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Matching(5), "even number"),
        (lambda: Matching([(0, 0)]), "to itself"),
        (lambda: Matching([(0, 1), (1, 0)]), "twice"),
        (lambda: BipartiteMatching(0), "n must be"),
        (lambda: BipartiteMatching(3).infer(np.zeros((2, 2))), "shape"),
        (lambda: BipartiteMatching(2).infer([[np.nan, 0], [0, 0]]), "NaN"),
        (lambda: BipartiteMatching(2).infer(np.zeros((2, 2)), rho=1.2), "rho"),
        (lambda: BipartiteMatching(2).infer(np.zeros((2, 2)), "exact", rho=0.5), "no options"),
        (lambda: BipartiteMatching(2).infer(np.zeros((0, 2, 2))), "no example"),
        (lambda: BipartiteMatching(2).score(np.zeros((2, 2)), [0, 0]), "permutation"),
        (lambda: Matching(4).score(np.zeros((4, 4)), [1, 0, 2, 3]), "must be a matching"),
        (lambda: Matching(4).score(np.zeros((4, 4)), [1, 0, -1, -1]), "perfect"),
        (lambda: Matching([(0, 1), (2, 3)]).score(np.zeros(2), [2, 3, 0, 1]), "the graph has not"),
        (lambda: Matching(4).infer(np.arange(16.0).reshape(4, 4)), "symmetric"),
        (lambda: Matching([(0, 1), (0, 2), (0, 3)]).infer(np.zeros(3), "bethe"), "no perfect matching"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_large_exact_sums_are_refused():
    with pytest.raises(TooLargeError, match="bethe"):
        BipartiteMatching(40).log_partition(np.zeros((40, 40)), "exact")

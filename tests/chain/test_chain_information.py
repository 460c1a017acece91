from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partita import minimize
from partita.chain.features.chain import ChainFeatures
from partita.chain.kernels.blocks import WIDTH
from partita.chain.objective import information
from partita.chain.objective.information import ChainScores, CorrectedHessian, PrunedHessian, sampled_errors
from partita.core import Workers
from partita.objectives import ChainLikelihood
from partita.objectives.information import dense_errors
from partita.structures import Chain

N_LABELS, N_ATTRIBUTES = 4, 9


def likelihood(rng, chains=60, ones=False, ends=True, threads=1, penalty=0.3, weights=True):
    lengths = rng.integers(1, 9, chains)
    X = rng.random((lengths.sum(), N_ATTRIBUTES)) < 0.4
    X = sp.csr_matrix(X * (1.0 if ones else rng.standard_normal(X.shape)))
    pairs = np.array(
        [(j, k) for j in range(N_ATTRIBUTES) for k in range(N_LABELS) if rng.random() < (0.9 if j < 6 else 0.3)]
    )
    moves = np.array([(u, v) for u in range(N_LABELS) for v in range(N_LABELS) if (u, v) != (1, 2)])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    features = ChainFeatures(X, offsets, N_LABELS, *pairs.T, moves, ends, ends, workers=Workers(threads))
    y = rng.integers(0, N_LABELS, lengths.sum())
    w = rng.random(chains) + 0.2 if weights else None
    return ChainLikelihood(features, y, weights=w, penalty=penalty)


def scores_by_hand(point):
    """Gradients of the log-likelihood of each chain, from likelihoods of one chain."""
    o, f = point.objective, point.objective.features
    rows = []
    for s in range(f.n_examples):
        one = ChainLikelihood(f.block(s, s + 1), o.y[f.offsets[s] : f.offsets[s + 1]], weights=o.weights[s : s + 1])
        rows.append(-one.at(point.parameters).gradient)
    return np.array(rows)


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_with_nothing_left_out_products_are_those_of_the_hessian(rng, ones, scale):
    o = likelihood(rng, ones=ones)
    point = o.at(scale * rng.standard_normal(o.size))
    H, product = PrunedHessian(point, 0.0), point.hessian_product()
    V, image = rng.standard_normal((len(H.active), WIDTH)), np.empty((len(H.active), WIDTH))
    dots = H.product(V, image)
    whole = np.zeros((o.size, WIDTH))
    whole[H.active] = V
    expected = np.column_stack([product(np.ascontiguousarray(v)) for v in whole.T])[H.active]
    np.testing.assert_allclose(image, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(dots, (V * expected).sum(0), rtol=1e-10)


def test_what_is_left_is_the_distribution_given_likely_labels(rng):
    o = likelihood(rng, chains=30, weights=False)
    point = o.at(4.0 * rng.standard_normal(o.size))
    delta = 0.05
    H = PrunedHessian(point, delta)
    U, A = point.scores
    P = point.sums.P
    likely = delta < P
    likely[np.arange(len(U)), P.argmax(1)] = True
    masked = np.where(likely, U, -np.inf)
    chain = Chain(N_LABELS, o.lengths)
    P = chain.infer((masked, A)).marginals[0]
    c = H.chains
    assert 0 < len(c.open) < len(U)
    assert (c.before >= 0).any()
    assert (c.after >= 0).any()
    assert len(c.segments.e)
    np.testing.assert_allclose(c.segments.p, P[c.position, c.label], rtol=1e-9, atol=1e-12)
    pairs = chain.pair_marginals((masked, A))
    both = [t for t in c.open.tolist() if t - 1 in c.open and t not in o.features.offsets]
    expected = pairs[both].sum(0)
    np.testing.assert_allclose(c.counts.reshape(N_LABELS, N_LABELS), expected, rtol=1e-9, atol=1e-12)


def test_scores_are_the_gradients_of_the_chains(rng):
    o = likelihood(rng)
    point = o.at(rng.standard_normal(o.size))
    G, scores = scores_by_hand(point), ChainScores(point)
    signs = rng.choice([-1.0, 1.0], (o.n_examples, WIDTH))
    np.testing.assert_allclose(scores.signed_sums(signs), G.T @ signs, atol=1e-10)
    np.testing.assert_allclose(scores.squares(), G.T @ G, atol=1e-10)


def test_squares_do_not_depend_on_how_many_chains_are_written_out(rng, monkeypatch):
    o = likelihood(rng)
    scores = ChainScores(o.at(rng.standard_normal(o.size)))
    whole = scores.squares()
    monkeypatch.setattr(information, "PAIRS", 40)
    np.testing.assert_allclose(scores.squares(), whole, atol=1e-10)


def test_solves_invert_the_corrected_hessian(rng):
    o = likelihood(rng, penalty=0.05)
    H = CorrectedHessian(o.at(3.0 * rng.standard_normal(o.size)), 0.1, 0.02)
    assert H._root.shape[1] > 0
    right = rng.standard_normal((o.size, WIDTH))
    X, image = H.solve(right, 1e-11), np.empty((len(H.active), WIDTH))
    H.product(np.ascontiguousarray(X[H.active]), image)
    np.testing.assert_allclose(image, right[H.active], atol=1e-7)
    rest = np.setdiff1d(np.arange(o.size), H.active)
    np.testing.assert_allclose(X[rest], right[rest] / H.diagonal[rest, None])


@pytest.mark.parametrize(("method", "most"), [("sandwich", 1000), ("information", 1000), ("sandwich", 3)])
def test_draws_agree_with_the_matrices(rng, monkeypatch, method, most):
    monkeypatch.setattr(information, "MOST_TRANSITIONS", most)
    o = likelihood(rng)
    point = minimize(o, tol=1e-9).point
    squares = ChainScores(point).squares() if method == "sandwich" else None
    exact, draws = dense_errors(point, squares), 3000
    found = sampled_errors(point, method, draws, np.random.default_rng(0))
    assert np.abs(found / exact - 1.0).max() < 5.0 / np.sqrt(2.0 * draws)


def test_labels_that_are_left_out_change_little(rng):
    lengths = rng.integers(3, 9, 150)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    X = sp.csr_matrix(np.eye(12)[rng.integers(0, 12, lengths.sum())])
    pairs = np.array([(j, k) for j in range(12) for k in range(N_LABELS)])
    moves = np.array([(u, v) for u in range(N_LABELS) for v in range(N_LABELS)])
    features = ChainFeatures(X, offsets, N_LABELS, *pairs.T, moves)
    true = 3.0 * rng.standard_normal(features.size)
    y = Chain(N_LABELS, lengths).sample(features.forward(true), 1, 0)[0]
    point = minimize(ChainLikelihood(features, y, penalty=1.0), tol=1e-9).point
    assert len(PrunedHessian(point, information.LIKELY).chains.label) < 0.8 * y.size * N_LABELS
    exact = dense_errors(point, ChainScores(point).squares())
    found = sampled_errors(point, "sandwich", 2000, np.random.default_rng(0))
    assert np.sqrt(np.mean(np.log(found / exact) ** 2)) < 0.05


def test_errors_do_not_depend_on_the_threads():
    found = []
    for threads in (1, 2):
        o = likelihood(np.random.default_rng(3), chains=3000, ones=True, threads=threads)
        point = o.at(np.random.default_rng(4).standard_normal(o.size))
        assert len(PrunedHessian(point, information.LIKELY)._row_ranges) > 1
        found.append([sampled_errors(point, method, 9, np.random.default_rng(0)) for method in ("sandwich", "information")])
    np.testing.assert_array_equal(found[0], found[1])


def test_errors_are_the_spread_of_the_estimates():
    rng = np.random.default_rng(5)
    lengths = np.full(80, 6)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    X = sp.csr_matrix(rng.standard_normal((480, 2)))
    moves = np.array([(u, v) for u in range(2) for v in range(2)])
    features = ChainFeatures(X, offsets, 2, np.array([0, 1]), np.array([1, 1]), moves[:1])  # no freedom is left
    true = np.array([1.0, -0.5, 0.8])
    labels = Chain(2, lengths).sample(features.forward(true), 300, 0)
    estimates, errors = [], []
    for y in labels:
        point = minimize(ChainLikelihood(features, y), tol=1e-8).point
        estimates.append(point.parameters)
        errors.append([dense_errors(point, ChainScores(point).squares()), dense_errors(point)])
    ratio = np.mean(errors, 0) / np.std(estimates, 0)
    noise = 1.0 / np.sqrt(2.0 * len(labels))
    assert np.abs(ratio - 1.0).max() < 3.5 * noise
    assert np.abs(ratio.mean(1) - 1.0).max() < 2.5 * noise


def test_an_interrupt_keeps_what_is_done(rng):
    o = likelihood(rng)
    point = o.at(0.5 * rng.standard_normal(o.size))

    def stop(done):
        if done >= 2 * WIDTH:
            raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match=f"from {2 * WIDTH} draws of 100"):
        found = sampled_errors(point, "sandwich", 100, np.random.default_rng(0), stop)
    expected = sampled_errors(point, "sandwich", 2 * WIDTH, np.random.default_rng(0))
    np.testing.assert_allclose(found, expected, rtol=0.05)

"""Composite likelihoods of chains against enumeration, finite differences and the published numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from enumeration import labellings

from partita import CapabilityError, CompositeLikelihood, minimize
from partita.chain.features.chain import ChainFeatures
from partita.chain.structure.forbidden import Forbidden
from partita.core import Workers
from partita.objectives import L1, ChainComposite, ChainLikelihood
from partita.objectives.information import dense_hessian


def published(order):
    """Three labels, five positions, every score a parameter of its own."""
    pairs = np.repeat(np.arange(5), 3), np.tile(np.arange(3), 5)
    transitions = np.argwhere(np.ones((3, 3)))
    features = ChainFeatures(sp.eye(5, format="csr"), np.array([0, 5]), 3, *pairs, transitions)
    objective = ChainComposite(features, np.array([0, 2, 1, 1, 0]), CompositeLikelihood({order: 1.0}))
    a, b = transitions.T
    return objective, np.concatenate([np.sin(1 + 3 * features.attribute + features.label), np.cos(2 * a + b)])


@pytest.mark.parametrize(
    ("order", "value"),
    [(1, -8.4663455875), (2, -13.6031059527), (3, -15.4972023191), (4, -13.5519941372), (5, -7.7437059606)],
)
def test_published_windows(order, value):
    objective, theta = published(order)
    assert -objective.at(theta).value == pytest.approx(value, abs=6e-11)


def test_published_derivatives():
    objective, theta = published(1)
    f, gradient = objective.features, -objective.at(theta).gradient
    at = np.flatnonzero((f.attribute == 2) & (f.label == 1))[0]
    assert gradient[at] == pytest.approx(0.83986168, abs=6e-9)
    assert gradient[f.n_state + 3 * 1 + 2] == pytest.approx(-0.67632273, abs=6e-9)


def problem(composite, seed=0, n=3, lengths=(1, 4, 3, 5), columns=6, workers=1, kind=ChainComposite, **options):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    T = int(offsets[-1])
    X = sp.csr_matrix(sp.random_array((T, columns), density=0.5, random_state=rng, format="csr"))
    y = rng.integers(0, n, T)
    pairs = np.repeat(np.arange(columns), n), np.tile(np.arange(n), columns)
    transitions = np.argwhere(rng.random((n, n)) < 0.8)
    features = ChainFeatures(X, offsets, n, *pairs, transitions, True, True, workers=Workers(workers))
    arguments = (features, y, composite) if kind is ChainComposite else (features, y)
    return kind(*arguments, weights=rng.random(len(lengths)) + 0.5, penalty=0.3, **options)


def enumerated(objective, theta, windows):
    """F by summing over the labels of windows (chain, first place, length, weight)."""
    f, y = objective.features, objective.y
    U, A = objective.scores(theta, np.empty((f.n_positions, f.n_labels)))
    value = 0.5 * np.sum(objective.penalty * theta**2)
    for s, first, length, weight in windows:
        lo, hi = f.offsets[s], f.offsets[s + 1]

        def score(labels, lo=lo, hi=hi):
            return sum(U[t, k] for t, k in zip(range(lo, hi), labels, strict=True)) + sum(
                A[pair] for pair in itertools.pairwise(labels)
            )

        known = y[lo:hi].tolist()
        options = labellings(f.n_labels, length).tolist()
        scores = [score([*known[:first], *part, *known[first + length :]]) for part in options]
        value += weight * objective.weights[s] * (np.logaddexp.reduce(scores) - score(known))
    return value


def all_windows(lengths, orders):
    """Every window of some orders with their weights, chain by chain and order by order."""
    for s, T in enumerate(lengths):
        for order, weight in orders.items():
            k = T if order == "full" else min(order, T)
            for first in range(T - k + 1):
                yield s, first, k, weight


@pytest.mark.parametrize(
    ("rates", "weights"),
    [
        ({1: 1.0}, None),
        ({2: 1.0}, None),
        ({1: 1.0, "full": 0.25}, {1: 0.5, "full": 2.0}),
        ({1: 0.6, 2: 0.3, 3: 0.1}, {1: 1.0, 2: 0.0, 3: 0.7}),
    ],
)
@pytest.mark.parametrize("rules", [False, True])
def test_value_gradient_and_products(rates, weights, rules):
    options = {}
    lengths = (1, 4, 3, 5)
    if rules:
        plain = problem(CompositeLikelihood(), kind=ChainLikelihood)
        y, first = plain.y, plain.features.offsets
        seen = np.zeros((3, 3), bool)
        inner = np.setdiff1d(np.arange(1, len(y)), first)
        seen[y[inner - 1], y[inner]] = True
        assert not seen.all()
        starts, ends = ~np.isin(np.arange(3), y[first[:-1]]), ~np.isin(np.arange(3), y[first[1:] - 1])
        options = {"forbidden": Forbidden(~seen, starts, ends)}
    objective = problem(CompositeLikelihood(rates, weights=weights), lengths=lengths, **options)
    theta = np.random.default_rng(1).standard_normal(objective.size)
    point = objective.at(theta)
    used = {order: rate * (1.0 if weights is None else weights[order]) for order, rate in rates.items()}
    windows = list(all_windows(lengths, used))
    assert point.value == pytest.approx(enumerated(objective, theta, windows), rel=1e-11)
    assert objective.scale == pytest.approx(sum(w * k * objective.weights[s] for s, _, k, w in windows))
    direction = np.random.default_rng(2).standard_normal(objective.size)
    step = 1e-5
    up, down = objective.at(theta + step * direction), objective.at(theta - step * direction)
    assert point.gradient @ direction == pytest.approx((up.value - down.value) / (2 * step), rel=1e-7)
    moved, slope = point.along(direction).at(0.7)
    assert moved.value == pytest.approx(objective.at(theta + 0.7 * direction).value, rel=1e-12)
    assert slope == pytest.approx(moved.gradient @ direction, rel=1e-9)
    product = point.hessian_product()(direction)
    np.testing.assert_allclose(product, (up.gradient - down.gradient) / (2 * step), atol=1e-6)
    model = point.model("hessian").value(theta + 1e-3 * direction)
    assert model == pytest.approx(objective.at(theta + 1e-3 * direction).value, rel=1e-7)


@pytest.mark.parametrize("order", [5, 9, "full"])
def test_windows_as_long_as_chains_are_the_likelihood(order):
    composite = problem(CompositeLikelihood({order: 1.0}))
    full = problem(None, kind=ChainLikelihood)
    theta = np.random.default_rng(1).standard_normal(full.size)
    a, b = composite.at(theta), full.at(theta)
    assert composite.scale == pytest.approx(full.scale)
    assert a.value == pytest.approx(b.value, rel=1e-13)
    for name in ("gradient", "diagonal"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(composite.least_diagonal, full.least_diagonal, rtol=1e-12)
    np.testing.assert_allclose(a.hessian_product()(theta), b.hessian_product()(theta), rtol=1e-9, atol=1e-11)
    assert a.divergence(0.3) == pytest.approx(b.divergence(0.3), rel=1e-11)


def test_diagonal_of_single_labels_is_exact_for_attributes():
    objective = problem(CompositeLikelihood(), lengths=(4, 6, 3))
    theta = np.random.default_rng(1).standard_normal(objective.size)
    point, n = objective.at(theta), objective.features.n_state
    product = point.hessian_product()
    exact = np.array([product(unit)[j] for j, unit in enumerate(np.eye(objective.size))])
    np.testing.assert_allclose(point.diagonal[:n], exact[:n], rtol=1e-10)


def test_windows_that_were_not_drawn_are_not_computed():
    rates = {1: 0.5, 3: 0.2}
    composite = CompositeLikelihood(rates, refresh=False, random_state=3)
    objective = problem(composite, lengths=(6,) * 40)
    assert set(objective.objects.shares) == {0.0, 1.0}
    assert len(objective.windows) == objective.objects.shares.sum() < len(objective.objects.windows)
    all_ = list(all_windows((6,) * 40, dict.fromkeys(rates, 1.0)))
    drawn = [window for window, share in zip(all_, objective.objects.shares, strict=True) if share]
    theta = np.random.default_rng(1).standard_normal(objective.size)
    assert objective.at(theta).value == pytest.approx(enumerated(objective, theta, drawn), rel=1e-11)
    again = problem(composite, lengths=(6,) * 40)
    np.testing.assert_array_equal(again.objects.shares, objective.objects.shares)


def test_one_object_of_each_order():
    objective = problem(
        CompositeLikelihood({1: 1.0, 2: 1.0}, policy="product", refresh=False, random_state=0), lengths=(5,) * 9
    )
    counts = np.bincount(objective.windows.chain * 2 + objective.windows.group)
    np.testing.assert_array_equal(counts, 1)


def test_minimum_has_no_gap_and_l1_is_certified():
    objective = problem(CompositeLikelihood({1: 1.0, 2: 0.5}), lengths=(5,) * 20)
    for solver in ("auto", "newton", "lbfgs"):
        solution = minimize(objective, solver=solver, tol=1e-10)
        assert np.abs(solution.point.gradient).max() <= 1e-10 * objective.scale
        assert solution.point.gap < 1e-12
    sparse = minimize(L1(objective, 2.0), tol=1e-9)
    assert (sparse.parameters == 0.0).any()
    assert sparse.point.gap < 1e-8
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.1, 1.0):
        point = objective.at(solution.parameters + scale * rng.standard_normal(objective.size))
        assert point.value - solution.value <= point.gap
        point = L1(objective, 2.0).at(sparse.parameters + scale * rng.standard_normal(objective.size))
        assert point.value - sparse.value <= point.gap


def test_what_windows_do_not_offer_is_refused():
    with pytest.raises(CapabilityError):
        minimize(problem(CompositeLikelihood()), solver="stochastic_start")


def test_threads_give_the_same_bits():
    composite = CompositeLikelihood({1: 1.0, 3: 0.5})
    one = problem(composite, lengths=(20,) * 400, n=9, columns=40, workers=1)
    two = problem(composite, lengths=(20,) * 400, n=9, columns=40, workers=2)
    theta = np.random.default_rng(0).standard_normal(one.size)
    a, b = one.at(theta), two.at(theta)
    assert len(a.sums.ranges) > 1
    assert a.value == b.value
    np.testing.assert_array_equal(a.gradient, b.gradient)
    np.testing.assert_array_equal(a.diagonal, b.diagonal)
    np.testing.assert_array_equal(a.hessian_product()(theta), b.hessian_product()(theta))


def test_other_weights_are_another_objective():
    objective = problem(CompositeLikelihood({1: 1.0, 2: 0.5, "full": 0.1}))
    theta = np.random.default_rng(1).standard_normal(objective.size)
    objective.at(theta).preconditioner()
    other = objective.with_weights([1.0, 0.0, 3.0])
    made = problem(CompositeLikelihood({1: 1.0, 2: 0.5, "full": 0.1}, weights={1: 1.0, 2: 0.0, "full": 3.0}))
    assert len(other.windows) < len(objective.windows)
    assert other.scale == made.scale
    np.testing.assert_allclose(other.at(theta).gradient, made.at(theta).gradient, rtol=1e-12)
    np.testing.assert_allclose(other.least_diagonal, made.least_diagonal, rtol=1e-12)


@pytest.mark.parametrize("lengths", [(5,) * 4, (5,) * 900])
def test_moments_by_order(lengths):
    """Few chains: one by one. Many: random signs, whose error averages out over parameters."""
    objective = problem(CompositeLikelihood({1: 1.0, 2: 0.5, "full": 0.2}, random_state=0), lengths=lengths)
    theta = 0.3 * np.random.default_rng(1).standard_normal(objective.size)
    J, S = objective.moments(theta)
    if len(lengths) > 30:  # whole matrices: 740 draws for 27 parameters
        assert J.shape == (3, objective.size, objective.size)
        hessian = dense_hessian(objective.with_weights(np.eye(3)[1]).at(theta).hessian_product(), objective.size)
        np.testing.assert_allclose(J[1], hessian - np.diag(objective.penalty), rtol=1e-9, atol=1e-9)
        J, S = np.einsum("kpp->kp", J), np.einsum("klpp->klp", S)
    scores = []
    for k, unit in enumerate(np.eye(3)):
        point = objective.with_weights(unit).at(theta)
        product = point.hessian_product()
        diagonal = [product(e)[j] for j, e in enumerate(np.eye(objective.size))]
        np.testing.assert_allclose(J[k], diagonal - objective.penalty, rtol=1e-9, atol=1e-10)
        each = np.array([point.score(e) for e in np.eye(objective.n_examples)])
        np.testing.assert_allclose(each.sum(0), objective.penalty * theta - point.gradient, rtol=1e-9, atol=1e-9)
        scores.append(each)
    exact = np.einsum("kip,lip->klp", scores, scores)
    if len(lengths) < 30:
        np.testing.assert_allclose(S, exact, rtol=1e-9, atol=1e-12)
    else:
        ratio = S[[0, 1, 2], [0, 1, 2]] / exact[[0, 1, 2], [0, 1, 2]]
        assert 0.0 < np.abs(ratio - 1.0).max() < 0.25  # 740 draws: standard deviation 0.05
        assert abs(ratio.mean() - 1.0) < 0.05


def test_refusals():
    with pytest.raises(ValueError, match="'pairs' are not available on chains"):
        problem(CompositeLikelihood(pairs=[((0,), (1,))]))
    with pytest.raises(ValueError, match="blocks='all' is not available on chains"):
        problem(CompositeLikelihood(blocks="all"))
    with pytest.raises(ValueError, match="was drawn; raise the probabilities"):
        problem(CompositeLikelihood({1: 1e-9}, refresh=False, random_state=0))
    made = problem(CompositeLikelihood())
    y = made.y.copy()
    y[2] = -1
    with pytest.raises(ValueError, match="need known labels"):
        ChainComposite(made.features, y, CompositeLikelihood(), sets=np.ones((1, 3), bool))

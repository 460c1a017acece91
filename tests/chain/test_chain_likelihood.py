"""The likelihood of chains against enumeration and finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from enumeration import labellings

from partita import Status, minimize
from partita.chain.features.chain import ChainFeatures
from partita.chain.features.pairs import label_indicator, state_pairs
from partita.chain.structure.forbidden import Forbidden
from partita.core import Workers
from partita.objectives import ChainLikelihood


def problem(seed=0, n=3, lengths=(1, 4, 3, 5), columns=6, unknown=0.0, ones=False, workers=1, **options):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    T = int(offsets[-1])
    X = sp.random_array((T, columns), density=0.5, random_state=rng, format="csr")
    if ones:
        X.data[:] = 1.0
    X = sp.csr_matrix(X)
    y = rng.integers(0, n, T)
    attribute, label = state_pairs(X, label_indicator(y, n), False, 0.0)
    inner = np.setdiff1d(np.arange(T - 1), offsets[1:-1] - 1)
    transitions = np.unique(np.stack([y[:-1], y[1:]], 1)[inner], axis=0)
    features = ChainFeatures(X, offsets, n, attribute, label, transitions, workers=Workers(workers), starts=True, ends=True)
    sets = rng.random((2, n)) < 0.6
    sets[:, 0] = True
    hidden = rng.random(T) < unknown
    y = np.where(hidden, -1 - rng.integers(0, 2, T), y)
    return ChainLikelihood(features, y, sets=sets, weights=rng.random(len(lengths)) + 0.5, penalty=0.3, **options), X


def enumerated(objective, theta):
    """F by summing over all labellings, with scores from the dictionary of weights."""
    f = objective.features
    state, transition, start, end = f.parts(theta)
    W = np.zeros((f.n_attributes, f.n_labels))
    W[f.attribute, f.label] = state
    A = np.zeros((f.n_labels, f.n_labels))
    A[f.transitions[:, 0], f.transitions[:, 1]] = transition
    value = 0.5 * np.sum(objective.penalty * theta**2)
    for s in range(f.n_examples):
        lo, hi = f.offsets[s], f.offsets[s + 1]
        everything, known = [], []
        for labels in labellings(f.n_labels, hi - lo).tolist():
            transitions, starts, ends = objective.forbidden
            if transitions is not None and any(transitions[p] for p in itertools.pairwise(labels)):
                continue
            if (starts is not None and starts[labels[0]]) or (ends is not None and ends[labels[-1]]):
                continue
            score = start[labels[0]] + end[labels[-1]] + sum(A[p] for p in itertools.pairwise(labels))
            score += sum((X_ROWS[lo + t] @ W)[k] for t, k in enumerate(labels))
            everything.append(score)
            allowed = (
                k == y if y >= 0 else objective.sets[-1 - y, k] for k, y in zip(labels, objective.y[lo:hi], strict=True)
            )
            if all(allowed):
                known.append(score)
        value += objective.weights[s] * (np.logaddexp.reduce(everything) - np.logaddexp.reduce(known))
    return value


X_ROWS = None


@pytest.mark.parametrize("unknown", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("rules", [False, True])
@pytest.mark.parametrize("ones", [False, True])
def test_value_gradient_and_products(unknown, rules, ones):
    global X_ROWS
    options = {}
    if rules:  # nothing in y may be forbidden: take pairs that do not occur, or forbid little where all is unknown
        plain, _ = problem(unknown=0.0, ones=ones)
        y, first = plain.y, plain.features.offsets
        seen = np.zeros((3, 3), bool)
        inner = np.setdiff1d(np.arange(1, len(y)), first)
        seen[y[inner - 1], y[inner]] = True
        starts = np.ones(3, bool)
        starts[y[first[:-1]]] = False
        starts[0] = False
        ends = np.ones(3, bool)
        ends[y[first[1:] - 1]] = False
        ends[0] = False
        options = {"forbidden": Forbidden(~seen & (np.arange(3)[:, None] == 1), starts, ends)}
    objective, X = problem(unknown=unknown, ones=ones, **options)
    X_ROWS = X.toarray()
    theta = np.random.default_rng(1).standard_normal(objective.size)
    point = objective.at(theta)
    assert point.value == pytest.approx(enumerated(objective, theta), rel=1e-11)
    direction = np.random.default_rng(2).standard_normal(objective.size)
    step = 1e-5
    up, down = objective.at(theta + step * direction), objective.at(theta - step * direction)
    assert point.gradient @ direction == pytest.approx((up.value - down.value) / (2 * step), rel=1e-7)
    moved, slope = point.along(direction).at(0.7)
    assert moved.value == pytest.approx(objective.at(theta + 0.7 * direction).value, rel=1e-12)
    assert slope == pytest.approx(moved.gradient @ direction, rel=1e-9)
    change = (up.gradient - down.gradient) / (2 * step)
    np.testing.assert_allclose(point.hessian_product()(direction), change, atol=1e-6)
    model = point.model("hessian").matvec(direction)
    if unknown == 0.0:
        np.testing.assert_allclose(model, change, atol=1e-6)
    else:  # the curvature of log Z alone is at least that of the whole
        assert model @ direction >= change @ direction - 1e-6
        assert model @ direction > 0.0
    plane = point.subspace([direction, np.random.default_rng(3).standard_normal(objective.size)])
    hessian = plane.evaluate(np.zeros(2))[2]
    ahead, behind = (plane.evaluate(np.array([e, 0.0]))[1] for e in (step, -step))
    np.testing.assert_allclose(hessian[0], (ahead - behind) / (2 * step), atol=1e-6)


def test_newton_is_fast_where_labels_are_unknown():
    """With the curvature of log Z alone it would take 25 iterations."""
    objective, _ = problem(unknown=0.7, lengths=(5,) * 60, columns=12)
    start = 0.3 * np.random.default_rng(0).standard_normal(objective.size)
    solution = minimize(objective, start, "newton", tol=1e-8)
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= 12


def test_gap_is_a_bound():
    objective, _ = problem()
    best = minimize(objective, tol=1e-12)
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.1, 1.0):
        point = objective.at(best.parameters + scale * rng.standard_normal(objective.size))
        assert point.value - best.value <= point.gap
    assert best.point.gap < 1e-12


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "cg", "auto"])
@pytest.mark.parametrize("unknown", [0.0, 0.5])
def test_solvers_reach_a_stationary_point_and_never_rise(solver, unknown):
    objective, _ = problem(unknown=unknown, lengths=(3,) * 30)
    solution = minimize(objective, solver=solver, tol=1e-8)
    assert np.abs(solution.point.gradient).max() <= 1e-8 * objective.scale
    assert np.diff(solution.trace.objective).max() <= 1e-12 * abs(solution.value)


def test_threads_give_the_same_bits():
    one, _ = problem(lengths=(20,) * 400, n=9, columns=40, workers=1)
    two, _ = problem(lengths=(20,) * 400, n=9, columns=40, workers=2)
    theta = np.random.default_rng(0).standard_normal(one.size)
    a, b = one.at(theta), two.at(theta)
    assert len(a.sums.ranges) > 1
    assert a.value == b.value
    np.testing.assert_array_equal(a.gradient, b.gradient)
    np.testing.assert_array_equal(a.hessian_product()(theta), b.hessian_product()(theta))


def test_hard_chains_are_exact():
    """Labels that are all but certain, whose transitions are forbidden: sums of probabilities would vanish."""
    global X_ROWS
    forbidden = np.zeros((3, 3), bool)
    forbidden[0, 0] = True
    objective, X = _without_pair(Forbidden(forbidden))
    X_ROWS = X.toarray()
    theta = np.zeros(objective.size)
    theta[: objective.features.n_state] = np.where(objective.features.label == 0, 900.0, -900.0)
    point = objective.at(theta)
    assert point.value == pytest.approx(enumerated(objective, theta), rel=1e-12)
    assert np.isfinite(point.gradient).all()


def _without_pair(forbidden):
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.random((6, 4)))
    y = np.array([0, 1, 0, 2, 1, 0])
    pairs = state_pairs(X, label_indicator(y, 3), True, 0.0)
    features = ChainFeatures(X, np.array([0, 4, 6]), 3, *pairs, np.array([[0, 1], [1, 0]]), starts=True, ends=True)
    return ChainLikelihood(features, y, penalty=1.0, forbidden=forbidden), X


def test_errors_name_the_place():
    objective, _ = problem()
    with pytest.raises(ValueError, match=r"position \d+ of sequence"):
        ChainLikelihood(objective.features, objective.y, forbidden=Forbidden(np.ones((3, 3), bool)))
    with pytest.raises(ValueError, match="row k of sets"):
        ChainLikelihood(objective.features, objective.y - 10)
    features = objective.features
    unknown = np.full(features.n_positions, -1)
    with pytest.raises(ValueError, match="leaves only forbidden labellings"):
        ChainLikelihood(features, unknown, sets=np.array([[True, False, False]]), forbidden=Forbidden(np.eye(3, dtype=bool)))


@pytest.mark.parametrize("ones", [False, True])
def test_one_pass_is_the_same_as_its_parts(ones):
    objective, _ = problem(lengths=(1, 4, 3, 5, 2), ones=ones)
    objective.weights[1] = 0.0
    theta = np.random.default_rng(1).standard_normal(objective.size)
    at_once = objective.at(theta)
    assert objective.in_one_pass
    objective.in_one_pass = False
    in_parts = objective.at(theta)
    assert at_once.value == pytest.approx(in_parts.value, rel=1e-13)
    np.testing.assert_allclose(at_once.gradient, in_parts.gradient, atol=1e-12)
    diagonal = in_parts.diagonal
    objective.in_one_pass = True
    np.testing.assert_allclose(at_once.diagonal, diagonal, rtol=1e-12)
    assert np.isfinite(at_once.diagonal).all()

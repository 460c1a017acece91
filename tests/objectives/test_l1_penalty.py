"""An l1 penalty on any smooth objective, and the orthant-wise solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from partita import LBFGS, OWLQN, CapabilityError, Newton, Status, minimize
from partita.chain.features.chain import ChainFeatures
from partita.chain.features.pairs import label_indicator, state_pairs
from partita.core import Workers
from partita.objectives import L1, ChainLikelihood
from partita.objectives.l1 import mixture_divergence
from partita.softmax.estimators.softmax_regression import softmax_objective


def chains(seed, l2=0.0, n_chains=40, labels=4, attributes=25, starts=False, length=9):
    """Random chains with labels that follow their attributes and each other."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, length, n_chains)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.random(offsets[-1], attributes, 0.2, format="csr", random_state=seed, data_rvs=lambda k: rng.uniform(0.2, 2.0, k))
    weight, move = rng.standard_normal((attributes, labels)), 2.0 * np.eye(labels)
    y = np.empty(offsets[-1], np.int64)
    for t in range(len(y)):
        before = 0.0 if t in offsets else move[y[t - 1]]
        y[t] = np.argmax(X[t].toarray()[0] @ weight + before + rng.gumbel(size=labels))
    attribute, label = state_pairs(X, label_indicator(y, labels), False, 0.0)
    pairs = np.stack(np.meshgrid(np.arange(labels), np.arange(labels)), -1).reshape(-1, 2)
    features = ChainFeatures(X, offsets, labels, attribute, label, pairs, starts, starts, workers=Workers(1))
    weights = rng.uniform(0.5, 2.0, n_chains)
    return ChainLikelihood(features, y, weights=weights, penalty=l2), (X, y, offsets)


SOLVERS = [OWLQN(), OWLQN(memory=5), OWLQN(precondition=False)]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize(("l1", "l2"), [(2.0, 0.0), (0.3, 0.0), (0.5, 0.5)])
def test_reaches_subgradient_optimality_and_descends(solver, l1, l2):
    smooth, _ = chains(0, l2)
    objective = L1(smooth, l1)
    solution = minimize(objective, solver=solver, tol=1e-8, max_iter=3000)
    assert solution.status in (Status.CONVERGED, Status.PRECISION)
    theta, gradient = solution.parameters, smooth.at(solution.parameters).gradient
    zero = theta == 0.0
    accuracy = 1.01e-8 * objective.scale
    assert np.all(np.abs(gradient[zero]) <= l1 + accuracy)
    np.testing.assert_allclose(gradient[~zero], -l1 * np.sign(theta[~zero]), atol=accuracy)
    assert 0 < zero.sum() < len(theta)
    assert np.all(np.diff(solution.trace.objective) <= 1e-15 * solution.value)
    assert 0.0 <= solution.trace.gap[-1] <= 1e-4 * solution.value


def test_subgradient_agrees_with_finite_differences(rng):
    objective = L1(chains(1, 0.1, starts=True)[0], 0.7)
    theta = rng.standard_normal(objective.size)
    theta[::3] = 0.0
    point, h = objective.at(theta), 1e-6
    for j in rng.choice(objective.size, 30, replace=False):
        unit = np.zeros(objective.size)
        unit[j] = h
        ahead, behind = (objective.at(theta + side * unit).value for side in (1.0, -1.0))
        right, left = (ahead - point.value) / h, (point.value - behind) / h
        shortest = 0.0 if left <= 0.0 <= right else (left if abs(left) < abs(right) else right)
        assert point.gradient[j] == pytest.approx(shortest, abs=2e-4)


@given(
    seed=st.integers(0, 10_000), l1=st.floats(0.05, 3.0), l2=st.sampled_from([0.0, 0.01, 1.0]), spread=st.floats(0.0, 2.0)
)
@settings(max_examples=25, deadline=None)
def test_the_gap_is_never_below_the_distance_to_the_optimum(seed, l1, l2, spread):
    rng = np.random.default_rng(seed)
    objective = L1(chains(seed % 5, l2, n_chains=12, labels=3, attributes=8)[0], l1)
    optimum = minimize(objective, tol=1e-9, max_iter=2000)
    theta = optimum.parameters + spread * rng.standard_normal(objective.size) * (rng.random(objective.size) < 0.3)
    point = objective.at(theta)
    assert point.gap >= (point.value - optimum.value) * (1.0 - 1e-9) - 1e-9
    if l2 > 0.0:
        assert point.gap <= np.sum(point.gradient**2) / (2.0 * l2) * (1.0 + 1e-9) + 1e-12
    assert np.isfinite(point.gap)


def test_divergence_of_mixtures_by_enumeration(rng):
    p = rng.dirichlet(np.ones(5), 4)
    y, weights = np.array([0, 3, 2, 4]), rng.uniform(0.5, 2.0, 4)
    for c in (0.0, 1e-3, 0.5, 0.999, 1.0):
        q = (1.0 - c) * np.eye(5)[y] + c * p
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(q > 0.0, q * np.log(q / p), 0.0)
        expected = weights @ terms.sum(1)
        assert mixture_divergence(np.log(p[np.arange(4), y]), weights, c) == pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_agrees_with_proximal_newton_on_chains_of_length_one():
    X, y = load_wine(return_X_y=True)
    X = sp.csr_matrix(scale(X))
    for l1, l2 in ((3.0, 0.0), (1.0, 0.5)):
        other = softmax_objective(X, y, l1=l1, l2=l2, fit_intercept=False)
        reference = minimize(other, tol=1e-10)
        pairs = np.indices((X.shape[1], 3)).reshape(2, -1)
        features = ChainFeatures(X, np.arange(len(y) + 1), 3, *pairs, np.zeros((0, 2)))
        smooth = ChainLikelihood(features, y, penalty=l2)
        solution = minimize(L1(smooth, l1), tol=1e-9, max_iter=3000)
        assert solution.solver == "auto"
        assert solution.value == pytest.approx(reference.value, rel=1e-9)
        coef = np.zeros((3, X.shape[1]))
        coef[smooth.features.label, smooth.features.attribute] = solution.parameters
        expected = other.features.unpack(reference.parameters)[0]
        np.testing.assert_allclose(coef, expected, atol=1e-4)
        assert np.array_equal(coef == 0.0, expected == 0.0)


def test_some_parameters_may_go_without_a_penalty():
    smooth, _ = chains(2)
    l1 = np.full(smooth.size, 1.0)
    l1[smooth.features.n_state :] = 0.0
    solution = minimize(L1(smooth, l1), tol=1e-8, max_iter=3000)
    gradient = smooth.at(solution.parameters).gradient
    assert np.abs(gradient[smooth.features.n_state :]).max() <= 1.01e-8 * smooth.scale
    assert np.count_nonzero(solution.parameters[smooth.features.n_state :]) == 16


def test_a_large_penalty_gives_zeros_and_none_gives_the_smooth_optimum():
    smooth, _ = chains(3, 1.0)
    large = np.abs(smooth.at(np.zeros(smooth.size)).gradient).max()
    assert not minimize(L1(smooth, 1.001 * large), tol=0.0, max_iter=5).parameters.any()
    assert minimize(L1(smooth, 0.999 * large), tol=1e-9).parameters.any()
    assert minimize(L1(smooth, 0.0), tol=1e-9).value == pytest.approx(minimize(smooth, tol=1e-9).value, rel=1e-10)


def test_works_on_a_softmax_likelihood():
    X, y = load_wine(return_X_y=True)
    smooth = softmax_objective(scale(X), y, l2=0.5, penalize_intercept=True)
    reference = minimize(softmax_objective(scale(X), y, l1=1.0, l2=0.5, penalize_intercept=True), tol=1e-10)
    solution = minimize(L1(smooth, 1.0), tol=1e-9, max_iter=2000)
    assert solution.value == pytest.approx(reference.value, rel=1e-9)
    assert 0.0 <= solution.trace.gap[-1] <= 1e-6


def test_says_what_is_wrong():
    smooth, _ = chains(0)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="l1 must be finite and non-negative"):
            L1(smooth, bad)
    with pytest.raises(ValueError, match=r"l1 must be a number or have shape \(\d+,\).*got shape \(3,\)"):
        L1(smooth, np.ones(3))
    with pytest.raises(ValueError, match="smooth objective; L1 is not"):
        L1(L1(smooth, 1.0), 1.0)
    for solver in (LBFGS(), Newton()):
        with pytest.raises(CapabilityError, match="gradient without jumps"):
            minimize(L1(smooth, 1.0), solver=solver)
    with pytest.raises(CapabilityError, match="orthant_step"):
        minimize(smooth, solver="owlqn")
    with pytest.raises(NotImplementedError, match="orthant steps"):
        L1(smooth, 1.0).at(np.zeros(smooth.size)).along(np.zeros(smooth.size))


def test_not_above_crfsuite(tmp_path):
    crfsuite = pytest.importorskip("pycrfsuite")
    _, (X, y, offsets) = chains(4, n_chains=60)
    X.data[:] = 1.0
    for l1, c2 in ((1.0, 0.0), (0.3, 0.05)):
        trainer = crfsuite.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({"c1": l1, "c2": c2, "epsilon": 1e-9, "delta": 1e-12, "max_iterations": 2000})
        for lo, hi in itertools.pairwise(offsets):
            trainer.append([[f"a{j}" for j in X[t].indices] for t in range(lo, hi)], [f"l{v}" for v in y[lo:hi]])
        trainer.train(str(tmp_path / "model"))
        tagger = crfsuite.Tagger()
        tagger.open(str(tmp_path / "model"))
        info = tagger.info()
        inner = np.setdiff1d(np.arange(1, len(y)), offsets)
        seen = np.unique(np.stack([y[inner - 1], y[inner]], 1), axis=0)
        features = ChainFeatures(X, offsets, 4, *state_pairs(X, label_indicator(y, 4), False, 0.0), seen)
        objective = L1(ChainLikelihood(features, y, penalty=2.0 * c2), l1)
        theirs = np.zeros(objective.size)
        for i in range(features.n_state):
            theirs[i] = info.state_features.get((f"a{features.attribute[i]}", f"l{features.label[i]}"), 0.0)
        for i, (u, v) in enumerate(seen):
            theirs[features.n_state + i] = info.transitions.get((f"l{u}", f"l{v}"), 0.0)
        assert np.count_nonzero(theirs) > 20
        solution = minimize(objective, tol=1e-9, max_iter=3000)
        value = objective.at(theirs).value
        assert solution.value <= value * (1.0 + 1e-12)
        assert value - solution.value <= 1e-4 * value

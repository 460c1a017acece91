"""Constrained fits and maximum entropy against cvxpy, a few of each kind (`benchmarks/constraints.py` has fifty)."""

from __future__ import annotations

import numpy as np
import pytest

from partita import MaxEnt, ModelFileError, SoftmaxRegression, Status
from partita.constraints import Ball, Box, CvxpySet, Linear, Monotone, Simplex, Ties

cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed (pip install 'partita[cvxpy]')")
TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
A = np.random.default_rng(5).standard_normal((3, 12))


def nuclear(W):
    return [cp.norm(W, "nuc") <= 0.5]


def entropy(W):
    return [cp.sum(cp.entr(W[0] + 0.5)) >= 0.5, W[1] >= 0.0]


KINDS = {
    "box": ([Box(-0.1, 0.2)], lambda W: [W >= -0.1, W <= 0.2]),
    "inequalities": ([Linear(A, upper=-0.1)], lambda W: [A @ cp.vec(W, order="C") <= -0.1]),
    "equalities": ([Linear(A, equal=0.3)], lambda W: [A @ cp.vec(W, order="C") == 0.3]),
    "ties": ([Ties(features=[0, 1, 2])], lambda W: [W[:, 0] == W[:, 1], W[:, 1] == W[:, 2]]),
    "monotone": ([Monotone(increasing=False)], lambda W: [cp.diff(W, axis=1) <= 0]),
    "simplex": ([Simplex()], lambda W: [W >= 0, cp.sum(W, axis=1) == 1]),
    "inf ball": ([Ball(0.1, norm=np.inf)], lambda W: [cp.max(cp.abs(W)) <= 0.1]),
    "l2 ball": ([Ball(0.3, center=0.1)], lambda W: [cp.norm(W - 0.1, "fro") <= 0.3]),
    "l1 balls": ([Ball(0.5, norm=1, per_class=True)], lambda W: [cp.sum(cp.abs(W), axis=1) <= 0.5]),
    "nuclear norm": ([CvxpySet(nuclear)], nuclear),
    "exponential cone": ([CvxpySet(entropy), Box(upper=0.3)], lambda W: [*entropy(W), W <= 0.3]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_constrained_optimum_is_that_of_cvxpy(kind, rng):
    X = rng.standard_normal((60, 4))
    y = (X @ rng.standard_normal((4, 3)) + 2 * rng.gumbel(size=(60, 3))).argmax(1)
    ours, make = KINDS[kind]
    W, b = cp.Variable((3, 4)), cp.Variable(3)
    scores = X @ W.T + np.ones((60, 1)) @ cp.reshape(b, (1, 3), order="F")
    value = cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(np.eye(3)[y], scores)) + 0.05 * cp.sum_squares(W)
    problem = cp.Problem(cp.Minimize(value), make(W))
    problem.solve(solver=cp.CLARABEL, **TIGHT)
    model = SoftmaxRegression(l2=0.1, constraints=ours).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.trace_.objective[-1] == pytest.approx(problem.value, rel=1e-6)
    W.value = model.coef_
    assert max(np.max(c.violation()) for c in problem.constraints) <= 1e-6
    assert np.all(np.diff(model.trace_.objective) <= 1e-12 * model.trace_.objective[:-1])


def test_sets_of_cvxpy_are_checked_and_not_stored(rng, tmp_path):
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 3
    for function, message in (
        (lambda W: W >= 0, "must return a list"),
        (lambda W: [cp.norm(W, "fro") >= 1.0], "must return convex"),
    ):
        with pytest.raises(ValueError, match=message):
            SoftmaxRegression(constraints=[CvxpySet(function)]).fit(X, y)
    with pytest.raises(ValueError, match="cannot hold together"):
        SoftmaxRegression(constraints=[CvxpySet(nuclear), Simplex(5.0)]).fit(X, y)
    model = SoftmaxRegression(constraints=[CvxpySet(nuclear)]).fit(X, y)
    with pytest.raises((TypeError, ModelFileError), match=r"constraints=.*CvxpySet.* cannot be stored"):
        model.save(tmp_path / "m")


@pytest.mark.parametrize("seed", range(5))
def test_relative_entropy_is_that_of_cvxpy(seed):
    rng = np.random.default_rng(seed)
    F, G = rng.standard_normal((30, 3)), rng.standard_normal((30, 2))
    inside, prior = rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(30))
    target, bound = inside @ F, inside @ G - rng.random(2) * 0.2
    model = MaxEnt(F, target, (G, bound), prior).fit()
    p = cp.Variable(30)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(p, prior))), [cp.sum(p) == 1, p @ F == target, p @ G >= bound])
    problem.solve(solver=cp.CLARABEL, **TIGHT)
    assert model.relative_entropy_ == pytest.approx(problem.value, abs=1e-7)
    np.testing.assert_allclose(model.probabilities_, p.value, atol=1e-5)

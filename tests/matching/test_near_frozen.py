"""Bethe free energies that are nearly, partly or wholly frozen, where belief propagation alone takes thousands of sweeps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from partita import MatchingCRF
from partita.matching.kernels.messages import newton
from partita.structures import BipartiteMatching, Matching

KINDS = ("bipartite", "forbidden", "general", "free")


def draw(kind, n, scale, seed):
    """A structure and weights; about a third of the edges of ``"forbidden"`` are, and one perfect matching is not."""
    rng = np.random.default_rng(seed)
    W = scale * rng.standard_normal((n, n))
    if kind == "forbidden":
        chosen = np.eye(n, dtype=bool)[rng.permutation(n)]
        W[(rng.random((n, n)) < 0.35) & ~chosen] = -np.inf
    if kind in ("bipartite", "forbidden"):
        return BipartiteMatching(n), W
    return Matching(n, perfect=kind == "general"), W + W.T


def free_energy(W, tau):
    """Bethe's, negative, of doubly stochastic shares."""
    inside = (tau > 0.0) & (tau < 1.0)
    t = tau[inside]
    linear = np.where(tau > 0.0, W, 0.0) * tau
    return float(linear.sum() - t @ np.log(t) + (1.0 - t) @ np.log1p(-t))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 3.0, 6.0, 15.0])
def test_few_sweeps_are_enough(kind, scale):
    for n in (2, 4, 6, 10, 20, 30):
        for seed in range(4):
            s, W = draw(kind, n, scale, seed)
            result = s.infer(W, "bethe", tol=1e-9)
            assert result.gap[0] <= 1e-9
            assert result.n_iter <= 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[:3])
def test_few_sweeps_are_enough_for_many(kind):
    """Some general graphs with weights far above all entropies stay open: shares of odd cycles are halves, exactly tied."""
    count, still_open, long = 0, 0, 0
    for n in (2, 3, 4, 5, 6, 8, 12, 20, 40, 60):
        for scale in (1.0, 2.0, 4.0, 6.0, 10.0, 20.0, 60.0):
            for seed in range(20 if n < 20 else 5):
                if kind == "general" and n % 2:
                    continue
                s, W = draw(kind, n, scale, 100 + seed)
                result = s.infer(W, "bethe", tol=1e-8)
                count, still_open, long = count + 1, still_open + (result.gap[0] > 1e-8), long + (result.n_iter > 200)
    assert still_open <= (0.01 * count if kind == "general" else 0)
    assert long <= 0.01 * count


@pytest.mark.filterwarnings("ignore:engine bethe has not converged")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rho", [0.7, 1.0])
def test_certificates_hold_at_every_stage(kind, rho):
    """Whatever has been done so far, the largest is no farther away than the certificate says."""
    for n, scale, seed in ((4, 3.0, 0), (6, 8.0, 1), (10, 4.0, 2), (10, 30.0, 3), (2, 2.0, 4)):
        s, W = draw(kind, n, scale, seed)
        best = s.infer(W, "bethe", rho=rho, tol=1e-10, max_iter=20000)
        for max_iter in (1, 2, 4, 8, 12, 16, 25, 60):
            early = s.infer(W, "bethe", rho=rho, tol=1e-10, max_iter=max_iter)
            assert abs(early.free_energy[0] - best.free_energy[0]) <= early.gap[0] + best.gap[0] + 1e-11


def best_of_row(x):
    """The largest of ``<x, tau>`` and Bethe's entropy over shares of one row, by bisection, and the shares."""
    order = np.argsort(-x)
    a = np.exp(x[order[1:]] - x[order[0]])

    def others(t):
        z = t * (1.0 - t) * a
        return 2.0 * z / (1.0 + np.sqrt(1.0 - 4.0 * z))

    tau = np.zeros(len(x))
    if a.sum() <= 1.0:
        tau[order[0]] = 1.0
        return x[order[0]], tau
    lo, hi = (0.0, 0.5) if others(0.5).sum() >= 0.5 else (0.5, 1.0)
    for _ in range(100):
        t = 0.5 * (lo + hi)
        lo, hi = (lo, t) if others(t).sum() + t > 1.0 else (t, hi)
    tau[order[0]], tau[order[1:]] = lo, others(lo)
    inside = tau[(tau > 0.0) & (tau < 1.0)]
    return float(x @ tau - inside @ np.log(inside) + (1.0 - inside) @ np.log1p(-inside)), tau


@pytest.mark.parametrize("seed", range(10))
def test_against_a_dual_solved_by_other_means(seed):
    """Rows are solved by bisection, prices of columns by L-BFGS: any prices give an upper bound."""
    n, scale = 3 + seed % 4, (1.5, 3.0, 6.0)[seed % 3]
    s, W = draw("bipartite", n, scale, 50 + seed)

    def dual(v):
        rows = [best_of_row(row - v) for row in W]
        return v.sum() + sum(value for value, _ in rows), 1.0 - np.sum([tau for _, tau in rows], axis=0)

    upper = scipy_minimize(dual, np.zeros(n), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}).fun
    result = s.infer(W, "bethe", tol=1e-10)
    assert result.gap[0] <= 1e-10
    np.testing.assert_allclose(result.marginals.sum(0), 1.0, atol=1e-9)
    assert free_energy(W, np.clip(result.marginals, 0.0, 1.0)) == pytest.approx(result.log_z[0], abs=1e-7)
    assert upper >= result.log_z[0] - 1e-9
    assert upper == pytest.approx(result.log_z[0], abs=1e-4)


def test_two_by_two_is_the_best_matching():
    """The entropy of 2 x 2 is zero everywhere: the value is that of the better matching, tied or not."""
    s = BipartiteMatching(2)
    for W in ([[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0 + 1e-7]], [[1e4, 0.0], [0.0, 1.0]]):
        result = s.infer(np.array(W), "bethe")
        assert result.log_z[0] == pytest.approx(max(W[0][0] + W[1][1], W[0][1] + W[1][0]), abs=1e-7)
        assert result.gap[0] <= 1e-8
        np.testing.assert_allclose(result.marginals.sum(0), 1.0, atol=1e-9)
        np.testing.assert_allclose(result.marginals.sum(1), 1.0, atol=1e-9)


def test_close_to_the_threshold_of_freezing():
    """Diagonal 0, all else -w: frozen if and only if w >= log(n - 1). Close to it belief propagation is slowest."""
    for n in (3, 5, 12, 30):
        s = BipartiteMatching(n)
        for off in (1e-1, 1e-2, 1e-3, 1e-5, 0.0, -1e-5, -1e-3, -1e-1):
            W = np.where(np.eye(n) > 0.0, 0.0, -np.log(n - 1.0) + off)
            result = s.infer(W, "bethe", tol=1e-10)
            assert result.gap[0] <= 1e-10
            assert result.n_iter <= 200
            if off <= 0.0:
                assert result.log_z[0] == pytest.approx(0.0, abs=1e-9)
            else:
                assert result.log_z[0] > 0.0


def test_messages_after_newton_are_those_of_a_fixed_point():
    for kind in KINDS:
        s, W = draw(kind, 10, 5.0, 3)
        first = s.infer(W, "bethe", tol=1e-9)
        again = s.infer(W, "bethe", tol=1e-8, messages=first.messages)
        assert again.n_iter <= (2 if kind != "forbidden" else first.n_iter)  # parts of a graph begin anew


def counted_points(rng, frames, n, cells):
    """Features as those of shape contexts: minus the squared differences of small counts, and who is who."""
    a = rng.poisson(0.6, (frames, cells, n)).astype(float)
    moved = np.maximum(a + rng.integers(-1, 2, a.shape) * (rng.random(a.shape) < 0.35), 0.0)
    order = rng.permuted(np.tile(np.arange(n), (frames, 1)), axis=1)
    b = np.take_along_axis(moved, order[:, None, :], axis=2)
    return -((a[:, :, :, None] - b[:, :, None, :]) ** 2), np.argsort(order, axis=1)


@pytest.mark.parametrize("l2", [0.1, 1.0])
def test_learning_converges_where_examples_freeze(l2):
    X, y = counted_points(np.random.default_rng(2), 4, 20, 20)
    model = MatchingCRF(l2=l2).fit(X, y)
    assert model.gap_ <= 1e-8 * 4 * 40
    tau = np.array(model.predict_marginals(X))
    assert (tau.max(2) > 1.0 - 1e-6).any()  # some vertices are frozen
    assert ((tau > 0.01) & (tau < 0.99)).any()


@pytest.mark.parametrize("seed", range(5))
def test_linear_systems(seed, rng):
    """Against numpy; scales of rows and columns do not matter, and what nothing determines is zero."""
    n = 12
    A = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-9, 9, (n, 1)) * 10.0 ** rng.uniform(-9, 9, n)
    x = rng.standard_normal(n) / np.abs(A).max(0)
    right = A @ x
    newton.solve(A.copy(), right, 1e-13)
    np.testing.assert_allclose(right, x, rtol=1e-5, atol=1e-9 * np.abs(x).max())
    B = rng.standard_normal((n, n))
    B[:, 3], B[3] = 0.0, 0.0
    right = B @ np.arange(1.0, n + 1.0)
    newton.solve(B.copy(), right, 1e-11)
    np.testing.assert_allclose(right, np.where(np.arange(n) == 3, 0.0, np.arange(1.0, n + 1.0)), atol=1e-8)

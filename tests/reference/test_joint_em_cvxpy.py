"""The relaxation of joint EM written down in cvxpy, matrices and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita import Status
from partita.objectives import ChildTerm, HiddenTerm, critical_alpha, relax

cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed (pip install 'partita[cvxpy]')")


def agreement(codes: np.ndarray | None, t: int) -> np.ndarray:
    return np.ones((t, t)) if codes is None else (codes[:, None] == codes).astype(float)


def child_loss(term: ChildTerm, M: Any, t: int, alpha: float) -> Any:
    """The loss of a child and its share of the penalty."""
    K = cp.multiply(M, agreement(term.given, t))
    F = cp.Variable((t, max(1, term.n_values)))
    if term.n_values:
        picked = cp.sum(cp.multiply(np.eye(term.n_values)[term.child], F))
        loss = cp.sum(cp.log_sum_exp(F, axis=1)) - picked
    else:
        loss = cp.sum_squares(term.child - F[:, 0]) / (2.0 * term.variance)
    return loss + 0.5 * alpha * cp.matrix_frac(F, K)


def own_loss(term: HiddenTerm, M: Any, t: int, alpha: float) -> Any:
    codes = np.zeros(t, dtype=int) if term.given is None else term.given
    total = 0.0
    for b in np.unique(codes):
        U, mine = cp.Variable(t), (codes == b).astype(float)
        total += mine.sum() * cp.log_sum_exp(U - cp.log(cp.sum(M, axis=1))) - mine @ U
        total += 0.5 * alpha * cp.matrix_frac(U, M)
    return total


def cvxpy_optimum(terms: list, t: int, alpha: float, solver: str = "CLARABEL", **options: Any) -> tuple[float, list]:
    """The optimum, and the relation of every hidden variable."""
    matrices: dict[tuple[int, ...], Any] = {}

    def matrix(key: tuple[int, ...]) -> Any:
        return matrices.setdefault(key, cp.Variable((t, t), PSD=True))

    hidden = [term.hidden for term in terms if isinstance(term, HiddenTerm)]
    value = sum(
        own_loss(term, matrix((term.hidden,)), t, alpha)
        if isinstance(term, HiddenTerm)
        else child_loss(term, matrix(term.parents), t, alpha)
        for term in terms
    )
    limits = []
    for key, M in matrices.items():
        limits += [cp.diag(M) == 1, M >= 0]
        if len(key) > 1:
            parents = [matrices[(h,)] for h in key]
            limits += [parent >= M for parent in parents] + [sum(parents) - len(key) + 1 <= M]
    problem = cp.Problem(cp.Minimize(value), limits)
    problem.solve(solver=solver, **options)
    return float(problem.value), [matrices[(h,)].value for h in hidden]


def binary(rng: np.random.Generator, t: int) -> list:
    return [HiddenTerm(), *(ChildTerm(rng.integers(0, 2, t), n_values=2) for _ in range(4))]


def ternary(rng: np.random.Generator, t: int) -> list:
    return [HiddenTerm(), *(ChildTerm(rng.integers(0, 3, t), n_values=3) for _ in range(3))]


def mixed(rng: np.random.Generator, t: int) -> list:
    """Observed parents of the hidden variable and of a child, and a Gaussian child."""
    given = rng.integers(0, 2, (2, t))
    discrete = ChildTerm(rng.integers(0, 3, t), given=given[0], n_values=3)
    return [HiddenTerm(0, given[1]), discrete, ChildTerm(2.0 * rng.standard_normal(t), variance=0.5)]


def signed(rng: np.random.Generator, t: int) -> list:
    """Data whose relation would have negative entries."""
    x = rng.standard_normal((3, t)) + 2.0 * np.eye(3)[:, rng.integers(0, 3, t)]
    return [HiddenTerm(), *(ChildTerm(row, variance=0.3) for row in x)]


@pytest.mark.parametrize("t", [12, 16])
@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("make", [binary, ternary, mixed, signed])
def test_relaxation_agrees_with_cvxpy(make, share, t, rng):
    terms = make(rng, t)
    alpha = share * critical_alpha(terms, t)[0]
    ours = relax(terms, t, alpha)
    value, (M,) = cvxpy_optimum(terms, t, alpha)
    assert ours.status is Status.CONVERGED
    assert ours.objective == pytest.approx(value, rel=1e-6)
    assert ours.lower <= value * (1.0 + 1e-7)
    assert ours.gap <= 1e-6
    np.testing.assert_allclose(ours.M, M, atol=2e-3)
    assert ours.M.min() >= -1e-12


@pytest.mark.parametrize("t", [24, 40])
def test_larger_relaxations_agree_with_scs(t, rng):
    pytest.importorskip("scs")
    terms = [HiddenTerm(), *(ChildTerm(rng.integers(0, 2, t), n_values=2) for _ in range(3))]
    alpha = 0.2 * critical_alpha(terms, t)[0]
    value, _ = cvxpy_optimum(terms, t, alpha, "SCS", eps=1e-6, max_iters=20_000)
    ours = relax(terms, t, alpha)
    assert ours.gap <= 1e-6
    assert ours.objective == pytest.approx(value, rel=1e-4)


def test_signs_matter_in_the_test_above(rng):
    terms = signed(rng, 16)
    alpha = 0.1 * critical_alpha(terms, 16)[0]
    free = relax(terms, 16, alpha, nonnegative=False)
    assert free.M.min() < -0.1
    assert free.objective < relax(terms, 16, alpha).lower


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_two_hidden_parents_of_a_child_agree_with_cvxpy(alpha, rng):
    t = 10
    x = rng.integers(0, 2, (5, t))
    parents = [(0,), (0,), (1,), (1,), (0, 1)]
    terms = [HiddenTerm(0), HiddenTerm(1), *(ChildTerm(x[k], p, n_values=2) for k, p in enumerate(parents))]
    ours = relax(terms, t, alpha, tol=1e-5)
    value, _ = cvxpy_optimum(terms, t, alpha)
    assert ours.objective == pytest.approx(value, rel=1e-4)
    assert value * (1.0 - 1e-4) <= ours.lower <= value * (1.0 + 1e-6)
    assert ours.violation <= 1e-4

"""Quadratic programs: against every active set when small, by their optimality conditions when not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from partita.numerics import quadratic_program as qp


def random_program(rng, d, m, degenerate=False):
    B = rng.standard_normal((d + 2, d))
    C = B.T @ B + 0.01 * np.eye(d)
    inside = rng.standard_normal(d)
    lower = np.where(rng.random(d) < 0.5, inside - rng.random(d), -np.inf)
    upper = np.where(rng.random(d) < 0.5, inside + rng.random(d), np.inf)
    A = rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.5)
    if degenerate and m > 3:  # repeated, dependent and empty rows; bounds that touch
        A[1], A[2], A[3] = A[0], A[0] + A[3], 0.0
        lower[0] = upper[0] = inside[0]
    values = A @ inside
    room = 0.0 if degenerate else 1.0
    row_lower = np.where(rng.random(m) < 0.6, values - room * rng.random(m), -np.inf)
    row_upper = np.where(rng.random(m) < 0.4, values + room * rng.random(m), np.inf)
    equal = rng.random(m) < 0.2
    row_lower[equal] = row_upper[equal] = values[equal]
    rows = sp.csr_matrix(A) if m else None
    return qp.Program(C, 4.0 * rng.standard_normal(d), lower, upper, rows, row_lower, row_upper)


def worst_condition(p, result):
    """Stationarity, feasibility, signs and complementarity, from the definitions."""
    x, nu, mu = result.x, result.bound_multipliers, result.row_multipliers
    A = np.zeros((0, len(x))) if p.rows is None else p.rows.toarray()
    stationarity = np.abs(p.C @ x + p.g - nu - A.T @ mu).max()
    worst = [stationarity]
    for values, low, high, multipliers in ((x, p.lower, p.upper, nu), (A @ x, p.row_lower, p.row_upper, mu)):
        worst.append(np.maximum(low - values, values - high).max(initial=0.0))
        for value, lo, hi, multiplier in zip(values, low, high, multipliers, strict=True):
            slack = value - lo if multiplier > 0 else hi - value  # inf where the multiplier has the wrong sign
            worst.append(abs(multiplier) * slack if multiplier else 0.0)
    return max(worst)


def brute_force(p):
    """The best feasible point over all active sets."""
    d, m = len(p.g), len(p.row_lower)
    A = np.vstack([np.eye(d), np.zeros((0, d)) if p.rows is None else p.rows.toarray()])
    low, high = np.concatenate([p.lower, p.row_lower]), np.concatenate([p.upper, p.row_upper])
    best = np.inf
    for sides in itertools.product((-1, 0, 1), repeat=d + m):
        side = np.array(sides)
        target = np.where(side < 0, low, high)
        on = np.flatnonzero(side)
        if not np.isfinite(target[on]).all() or on.size > d:
            continue
        kkt = np.block([[p.C, A[on].T], [A[on], np.zeros((on.size, on.size))]])
        x = np.linalg.lstsq(kkt, np.concatenate([-p.g, target[on]]), rcond=None)[0][:d]
        if np.all(A @ x >= low - 1e-9) and np.all(A @ x <= high + 1e-9):
            best = min(best, 0.5 * x @ p.C @ x + p.g @ x)
    return best


def methods(p):
    """The dual active set, the exchange (if it succeeds), and the safeguarded combination."""
    _, factor = qp._definite(p.C)
    results = [qp._dual_active_set(p, factor), qp.solve_program(p)]
    exchanged = qp._exchange(p, None)
    return results if exchanged is None else [*results, exchanged]


@pytest.mark.parametrize("seed", range(15))
def test_small_programs_agree_with_every_active_set(seed):
    rng = np.random.default_rng(seed)
    p = random_program(rng, 3, 3)
    best = brute_force(p)
    for result in methods(p):
        assert result.status == qp.OPTIMAL
        assert 0.5 * result.x @ p.C @ result.x + p.g @ result.x == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("degenerate", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_optimality_conditions_hold(seed, degenerate):
    rng = np.random.default_rng(seed)
    p = random_program(rng, int(rng.integers(1, 40)), int(rng.integers(0, 40)), degenerate)
    for result in methods(p):
        assert result.status == qp.OPTIMAL
        assert worst_condition(p, result) <= 1e-8


def test_most_programs_do_not_need_the_safeguard():
    rng = np.random.default_rng(0)
    assert all(qp._exchange(random_program(rng, 60, 0), None) is not None for _ in range(30))


@pytest.mark.parametrize("dependent", [False, True])
def test_contradictions_are_found(dependent):
    rng = np.random.default_rng(0)
    A = np.vstack([np.ones(4), np.ones(4) if dependent else -np.ones(4)])
    sides = (np.array([1.0, -np.inf]), np.array([np.inf, 0.0])) if dependent else (np.array([1.0, 0.5]), np.full(2, np.inf))
    B = rng.standard_normal((6, 4))
    p = qp.Program(B.T @ B, np.ones(4), np.full(4, -np.inf), np.full(4, np.inf), sp.csr_matrix(A), *sides)
    assert qp.solve_program(p).status == qp.INFEASIBLE
    box = qp.Program(
        B.T @ B, np.ones(4), np.zeros(4), np.ones(4), sp.csr_matrix(np.ones((1, 4))), np.array([5.0]), np.array([9.0])
    )
    assert qp.solve_program(box).status == qp.INFEASIBLE


def test_bounds_hold_exactly_and_a_good_guess_takes_one_round():
    rng = np.random.default_rng(0)
    p = random_program(rng, 80, 0)
    result = qp.solve_program(p)
    at_lower, at_upper = result.active == -1, result.active == 1
    assert at_lower.any()
    assert np.array_equal(result.x[at_lower], p.lower[at_lower])
    assert np.array_equal(result.x[at_upper], p.upper[at_upper])
    again = qp.solve_program(p, result.active)
    assert again.iterations == 1
    np.testing.assert_allclose(again.x, result.x, atol=1e-12)


def test_singular_matrices_are_solved_along_what_they_determine():
    C = np.array([[1.0, 1.0], [1.0, 1.0]])
    p = qp.Program(C, np.array([-1.0, -1.0]), np.zeros(2), np.full(2, 0.75))
    x = qp.solve_program(p).x
    assert x.sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_products_alone_give_the_same_box_solution(seed):
    rng = np.random.default_rng(seed)
    p = random_program(rng, 120, 0)
    lower, upper = np.minimum(p.lower, 0.0), np.maximum(p.upper, 0.0)
    exact = qp.solve_program(qp.Program(p.C, p.g, lower, upper))
    scaling = 1.0 / np.diag(p.C)
    x, used = qp.box_by_products(lambda v: p.C @ v, p.g, lower, upper, lambda v: scaling * v, 1e-9, 20_000)
    assert used < 20_000
    np.testing.assert_allclose(x, exact.x, atol=1e-6)
    loose, few = qp.box_by_products(lambda v: p.C @ v, p.g, lower, upper, lambda v: scaling * v, 1e-9, 30)
    assert few <= 80
    assert 0.5 * loose @ p.C @ loose + p.g @ loose < 0.0

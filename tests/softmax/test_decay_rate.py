"""Theorem 2 of the stochastic paper, mended: what it promises holds in actual runs, and what was printed does not."""

from __future__ import annotations

import numpy as np
import pytest

from partita import StochasticBound, minimize
from partita.bounds import decay_rate
from partita.softmax.estimators.softmax_regression import softmax_objective

ROWS, COLUMNS, L2 = 40, 2, 0.5  # l2 for one example: the penalty of the mean objective


@pytest.fixture(scope="module")
def problem():
    """A ridge logistic regression on the unit disc, as the objective, its optimum and the constants of the theorem."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = (X @ [2.0, -1.0] + rng.logistic(size=ROWS) > 0).astype(int)
    objective = softmax_objective(X, y, l2=L2 * ROWS, fit_intercept=False)
    optimum = minimize(objective, tol=1e-12)
    hessian = (L2, L2 + 0.25 * np.linalg.eigvalsh(X.T @ X / ROWS)[-1])
    return X, y, objective, optimum, hessian, (1.0 / (0.25 + L2), 1.0 / L2)


def test_runs_with_the_curvature_of_earlier_batches_keep_the_promise(problem):
    """The mean over 40 seeds after 1, 2, 4 and 8 epochs of single examples; the bound on the squared gradients is taken at
    the places met, with the norms of rows at most one."""
    _, _, objective, optimum, hessian, scaling = problem
    start = np.array([1.5, 1.5])
    excess = (objective.at(start).value - optimum.value) / ROWS
    places: list[float] = []
    runs = []
    step = decay_rate(hessian, scaling, 1.0, excess).step
    for seed in range(40):
        values: list[float] = []
        solver = StochasticBound(
            curvature="ema", variance_reduction=False, batch_size=1, step=f"{step:.12g}/t", random_state=seed, patience=1000
        )

        def record(progress, values=values):
            places.append(float(np.linalg.norm(progress.parameters)))
            values.append((objective.at(progress.parameters).value - optimum.value) / ROWS)

        minimize(objective, start, solver, max_iter=8, tol=0.0, callbacks=[record])
        runs.append(values)
    rate = decay_rate(hessian, scaling, (1.0 + L2 * 1.5 * max(places)) ** 2, excess)
    mean = np.mean(runs, axis=0)
    for epoch in (1, 2, 4, 8):
        assert 0.0 < mean[epoch] <= rate.excess(epoch * ROWS + 1)
    assert mean[8] < 0.5 * mean[1]


def test_the_printed_constant_is_too_small_where_the_mended_one_is_tight():
    """L = x^2 / 2 from the optimum, gradients x + 1 or x - 1 with equal chance: the second excess is known exactly."""
    step = 2.0
    rate = decay_rate((1.0, 1.0), (1.0, 1.0), noise=1.0, start=0.0, step=step)
    second = 0.5 * step**2
    assert rate.published / 2 < second
    assert rate.excess(2) == pytest.approx(second)
    rng = np.random.default_rng(0)
    rate = decay_rate((1.0, 1.0), (1.0, 1.0), noise=1.0 + step**2, start=0.0, step=step)  # |x| is at most the step
    x = np.zeros(20_000)
    for t in range(1, 200):
        x = x - step / t * (x + rng.choice([-1.0, 1.0], len(x)))
        assert np.mean(0.5 * x * x) <= rate.excess(t + 1)


def test_the_published_method_breaks_the_promise_that_the_paper_makes_for_it(problem):
    """Curvature and gradient of the same example, in one dimension: an example that is rare and long moves the parameters
    too little for its share, and they end away from the optimum, where no constant over t can follow."""
    x, y = np.r_[np.full(9, 0.2), 3.0], np.r_[np.zeros(9), 1.0]
    penalty = 0.05

    def gradient(theta, i):
        return (1.0 / (1.0 + np.exp(-theta * x[i])) - y[i]) * x[i] + penalty * theta

    optimum = 0.0
    for _ in range(200):
        slope = np.mean([gradient(optimum, i) for i in range(10)])
        p = 1.0 / (1.0 + np.exp(-optimum * x))
        optimum -= slope / (np.mean(p * (1 - p) * x * x) + penalty)
    assert abs(slope) < 1e-12
    drift = np.mean(
        [
            gradient(optimum, i) / (x[i] ** 2 * np.tanh(0.5 * optimum * x[i]) / (2 * optimum * x[i]) + penalty)
            for i in range(10)
        ]
    )
    assert abs(drift) > 0.1  # the mean step at the optimum is not zero


def test_bad_constants_are_named():
    for arguments, message in [
        (((2.0, 1.0), (1.0, 1.0), 1.0, 0.0), "hessian must be the smallest and the largest"),
        (((1.0, 1.0), (0.0, 1.0), 1.0, 0.0), r"scaling\[0\] must be"),
        (((1.0, 1.0), (1.0, 1.0), 1.0, 0.0, 0.5), "too short for a rate of 1 / t"),
    ]:
        with pytest.raises(ValueError, match=message):
            decay_rate(*arguments)

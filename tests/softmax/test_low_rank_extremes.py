"""Low-rank forms where arithmetic is at its end: repeated rows, rank above that of the data, scales from 1e-8 to 1e8."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import scale

from partita import Status, StochasticBound, minimize
from partita.bounds import StreamingLowRank, low_rank_model
from partita.softmax.estimators.softmax_regression import softmax_objective

STREAMS = [("exact", None), ("exact", 1), ("corrected", None), ("original", None)]


def rows(kind, rng, columns=12):
    """Rows of extreme sets, 200 of each."""
    if kind == "repeated":
        return np.repeat(rng.standard_normal((3, columns)), 67, axis=0)[:200]
    if kind == "flat":
        return rng.standard_normal((200, 2)) @ rng.standard_normal((2, columns))
    if kind == "nearly flat":
        return rows("flat", rng, columns) + 1e-11 * rng.standard_normal((200, columns))
    if kind == "scales of rows":
        return rng.standard_normal((200, columns)) * 10.0 ** rng.uniform(-8, 8, (200, 1))
    if kind == "scales of columns":
        return rng.standard_normal((200, columns)) * 10.0 ** rng.uniform(-8, 8, columns)
    return np.vstack([np.zeros((100, columns)), np.eye(columns), np.ones((88, columns))])


@pytest.mark.parametrize("kind", ["repeated", "flat", "nearly flat", "scales of rows", "scales of columns", "zeros"])
@pytest.mark.parametrize("factor", [1e-150, 1e-8, 1.0, 1e8])
@pytest.mark.parametrize(("method", "block"), STREAMS)
@pytest.mark.parametrize("rank", [1, 5, 12])
def test_streams_stay_above_the_sum(kind, factor, method, block, rank, rng):
    """Up to rounding of the largest eigenvalue, which is what an eigendecomposition leaves. The first paper's update is no
    bound, and only has to be finite and have roots."""
    R = factor * rows(kind, rng)
    stream = StreamingLowRank(R.shape[1], rank, method, block)
    for lo in range(0, len(R), 70):
        stream.add(R[lo : lo + 70])
    assert np.all(np.isfinite(stream.V))
    assert stream.S.min() >= 0.0
    assert stream.D.min() >= 0.0
    assert np.linalg.norm(stream.V, 2) <= 1.0 + 1e-9  # rows without curvature may be zero, or mixed with such
    if method == "original":
        return
    unit = R / np.abs(R).max()
    difference = ((stream.V.T * stream.S) @ stream.V + np.diag(stream.D)) / np.abs(R).max() ** 2 - unit.T @ unit
    assert np.linalg.eigvalsh(difference).min() >= -1e-10 * np.linalg.norm(unit, 2) ** 2


@pytest.mark.parametrize("method", ["exact", "corrected", "lanczos", "original"])
@pytest.mark.parametrize("rank", [3, 40])
@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8])
def test_models_of_batches_that_are_too_small_for_their_rank_solve(method, rank, factor, rng):
    X = factor * np.repeat(rng.standard_normal((2, 9)), 3, axis=0)
    objective = softmax_objective(X, np.arange(6) % 3, l2=1e-3, penalize_intercept=True)
    quadratic = objective.at(np.zeros(objective.size)).model("descending")
    model = low_rank_model(quadratic, rank, method, allow_invalid=True)
    v = rng.standard_normal(objective.size)
    solved = model.solve(v)
    assert np.all(np.isfinite(solved))
    assert v @ solved > 0.0  # a step downhill
    assert (
        np.linalg.norm(model.matvec(solved) - v) <= 1e-5 * np.linalg.norm(v) * max(1.0, model.S.max() / model.D.min()) ** 0.5
    )


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("method", ["exact", "corrected", "lanczos", "original"])
def test_the_published_method_runs_with_every_update(load, method):
    """As published nothing is safe: steps are 4, 2, 4/3 times Newton's by the curvature of five examples at first. The value
    returned is finite and below the start, and no eigenvalue raises."""
    X, y = load(return_X_y=True)
    objective = softmax_objective(scale(X), y, l2=1.0)
    solver = StochasticBound(curvature="batch", step="4/t", rank=10, low_rank=method, batch_size=5, allow_invalid=True)
    solution = minimize(objective, solver=solver, max_iter=4, tol=0.0)
    assert solution.status is not Status.CONVERGED
    assert np.isfinite(solution.value)
    assert solution.value == solution.trace.objective[-1] < objective.at(np.zeros(objective.size)).value * 3.0


def test_steps_that_overflow_end_in_a_status_and_not_in_nan():
    X, y = load_wine(return_X_y=True)
    objective = softmax_objective(scale(X), y, l2=1.0)
    start = objective.at(np.zeros(objective.size)).value
    for rank in (None, 10):
        solver = StochasticBound(curvature="batch", step=1e200, rank=rank, low_rank="corrected", batch_size=5)
        solution = minimize(objective, solver=solver, max_iter=10, tol=0.0)
        assert solution.status in (Status.DIVERGED, Status.UNSTABLE)
        assert np.all(np.isfinite(solution.parameters))
        assert solution.value == pytest.approx(start)

"""The stochastic bound at its defaults: stable and convergent whatever the batch size, and no step to choose."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import scale

from partita import ConvergenceWarning, SoftmaxRegression, Status, StochasticBound, minimize
from partita.features import LabelFeatures
from partita.objectives import Likelihood
from partita.softmax.estimators.softmax_regression import softmax_objective
from partita.structures import Categorical


def rare_columns():
    """Sparse 0/1 columns that few rows have, standardised: single rows have most of a column's curvature."""
    rng = np.random.default_rng(3)
    X = (rng.random((600, 40)) < rng.choice([0.004, 0.02, 0.2], 40)).astype(float)
    X = X[:, X.any(0)]
    y = (X @ rng.standard_normal(X.shape[1]) + rng.logistic(size=600) > 0).astype(int)
    return scale(X), y


def standardised(load):
    X, y = load(return_X_y=True)
    return scale(X), y


SETS = {
    "wine": lambda: standardised(load_wine),
    "breast_cancer": lambda: standardised(load_breast_cancer),
    "rare": rare_columns,
    "digits": lambda: standardised(load_digits),
}
CASES = [
    pytest.param(name, batch_size, l2, marks=[pytest.mark.slow] if name == "digits" else [])
    for name in SETS
    for batch_size in (1, 5, 20, 100)
    for l2 in ((1.0, 0.1) if name != "digits" and batch_size > 1 else (1.0,))
]


@pytest.mark.parametrize(("name", "batch_size", "l2"), CASES)
def test_a_thousandth_of_the_optimum_after_twenty_epochs_at_any_batch_size(name, batch_size, l2):
    objective = softmax_objective(*SETS[name](), l2=l2)
    optimum = minimize(objective, tol=1e-10).value
    solver = StochasticBound(batch_size=batch_size, patience=100)
    solution = minimize(objective, solver=solver, max_iter=20, tol=0.0)
    assert solution.status is Status.MAX_ITER
    assert (solution.value - optimum) / optimum < 1e-3
    assert solution.value == solution.trace.objective[-1] == objective.at(solution.parameters).value


def excess(objective, **options):
    optimum = minimize(objective, tol=1e-10).value
    solution = minimize(objective, solver=StochasticBound(patience=100, **options), max_iter=20, tol=0.0)
    return (solution.value - optimum) / abs(optimum)


def test_sparse_weighted_and_label_features_are_as_stable():
    X, y = standardised(load_wine)
    rng = np.random.default_rng(0)
    w = rng.choice([0.0, 0.1, 1.0, 30.0], len(y))
    assert excess(softmax_objective(X, y, l2=1.0, weights=w), batch_size=3) < 1e-3
    assert excess(softmax_objective(sp.csr_matrix(X * (np.abs(X) > 1.0)), y, l2=1.0), batch_size=3) < 1e-3
    F = np.einsum("ij,kl->ikjl", X, np.eye(3)).reshape(len(y), 3, -1)
    counts = np.where((y == 2) | (np.arange(len(y)) % 2 == 0), 3, 2)
    ragged = np.vstack([F[i, : counts[i]] for i in range(len(y))])
    assert excess(Likelihood(LabelFeatures(ragged, counts), Categorical(counts), y, penalty=1.0), batch_size=3) < 1e-3


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (2, 3), (15, 60), (7, 1)])
def test_few_rows_and_more_columns_than_rows(rows, columns, classes):
    rng = np.random.default_rng(rows)
    X, y = 3.0 + rng.standard_normal((rows, columns)), np.arange(rows) % classes
    if rows == 1:
        objective = Likelihood(
            LabelFeatures(rng.standard_normal((1, classes, columns))), Categorical(classes), [0], penalty=1.0
        )
    else:
        objective = softmax_objective(X, np.r_[y], l2=0.5, penalize_intercept=True)
    for batch_size in (1, 4, 1000):
        assert excess(objective, batch_size=batch_size) < 1e-3


def test_an_estimator_takes_single_examples_signs_and_columns_that_are_not_centred():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:150] / X.std(0)
    model = SoftmaxRegression(solver=StochasticBound(batch_size=1), l2=1.0, max_iter=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, 2 * y[:150] - 1)
    best = SoftmaxRegression(l2=1.0, tol=1e-8).fit(X, 2 * y[:150] - 1)
    assert model.status_ is not Status.UNSTABLE
    assert model.trace_.objective[-1] < 1.001 * best.trace_.objective[-1]


@pytest.mark.parametrize("n_labels", [2, 4])
def test_leverages_are_the_parts_of_the_curvature_that_single_examples_are(n_labels):
    """Against the matrix: the mean square of a score along draws from the inverse is x' P^-1 x. 16 draws have an error of a
    third each; over 300 examples the mean is within a few hundredths."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((300, 4)), rng.integers(0, n_labels, 300)
    objective = softmax_objective(X, y, l2=2.0, penalize_intercept=True)
    source = objective.batches(0)
    total = source.whole_curvature()
    theta = 0.3 * rng.standard_normal(objective.size)
    source.add_lasting(total, theta)
    total.prepare(source.penalty)
    inverse = np.array([total.solve(v) for v in np.eye(objective.size)])
    fisher = np.zeros_like(inverse)
    exact = np.zeros((300, 1 if n_labels == 2 else n_labels))
    for i in range(300):
        _, residual = source.evaluate(theta, i, i + 1)
        gradient = source.pull_back(residual, i, i + 1)
        fisher += 0.25 * np.outer(gradient, gradient)
        A = np.array([source.pull_back(row[None], i, i + 1) for row in np.eye(exact.shape[1])])
        if n_labels > 2:  # what is the same for all labels has been taken off: differences are left
            A = A - A[np.argmin(residual[0])]
        exact[i] = np.einsum("kp,pq,kq->k", A, inverse, A)
    np.testing.assert_allclose(
        np.linalg.inv(inverse), fisher + objective.at(theta).model("hessian").matrix(), rtol=1e-6, atol=1e-6
    )
    leverages, highest = source.leverages(total)
    assert leverages.sum() == pytest.approx(exact.sum(), rel=0.15)
    assert highest == pytest.approx((0.25 if n_labels == 2 else 0.5) * leverages.max())
    draws = total.directions(20_000, rng)
    np.testing.assert_allclose(draws.T @ draws / len(draws), inverse, atol=0.05 * np.abs(np.diag(inverse)).max())


def test_a_sample_keeps_the_diagonal_of_all(monkeypatch):
    import partita.softmax.objective.leverages as leverages

    X, y = rare_columns()
    monkeypatch.setattr(leverages, "SAMPLE", 50)
    monkeypatch.setattr(leverages, "ROWS_PER_COLUMN", 1)
    objective = softmax_objective(X, y, l2=1.0)
    whole = objective.batches(0)
    complete = whole.whole_curvature()
    whole.add_lasting(complete, np.zeros(objective.size))
    monkeypatch.setattr(leverages, "MOST_OPERATIONS", 1.0)
    source = objective.batches(0)
    total = source.whole_curvature()
    source.add_lasting(total, np.zeros(objective.size))
    assert np.abs(total.sum - complete.sum).max() > 1.0  # it is a sample
    assert np.all(np.diag(total.sum) >= np.diag(complete.sum) * (1.0 - 1e-9))
    assert excess(objective, batch_size=5) < 1e-2

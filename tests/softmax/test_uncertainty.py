from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from partita import SoftmaxRegression


def binary():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:, :3]), y


def ternary():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    scores = X @ rng.standard_normal((3, 3))
    return X, np.array([rng.choice(3, p=np.exp(s) / np.exp(s).sum()) for s in scores])


def information(X, y, model, l2):
    """The observed information of the differences to class 0 (or of the log-odds), by a Hessian in plain numpy."""
    A = np.column_stack([X, np.ones(len(X))])
    p = model.predict_proba(X)[:, 1:]
    n = p.shape[1]
    blocks = [[A.T @ (A * (p[:, j] * ((j == k) - p[:, k]))[:, None]) for k in range(n)] for j in range(n)]
    H = np.block(blocks)
    return H + l2 * np.eye(len(H))


def test_binary_standard_errors_from_the_information():
    X, y = binary()
    model = SoftmaxRegression(l2=0.0, tol=1e-10).fit(X, y)
    expected = np.sqrt(np.diag(np.linalg.inv(information(X, y, model, 0.0))))
    np.testing.assert_allclose(model.standard_errors()[0], expected, rtol=1e-8)


def test_contrasts_from_the_information():
    X, y = ternary()
    model = SoftmaxRegression(l2=0.0, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_.sum(0), 0.0, atol=1e-9)
    expected = np.sqrt(np.diag(np.linalg.inv(information(X, y, model, 0.0)))).reshape(2, 4)
    errors = model.standard_errors(reference=0)
    np.testing.assert_allclose(errors[1:], expected, rtol=1e-8)
    np.testing.assert_allclose(errors[0], 0.0, atol=1e-9)


def test_penalty_adds_information():
    X, y = binary()
    penalised = SoftmaxRegression(l2=3.0, penalize_intercept=True, tol=1e-10).fit(X, y)
    expected = np.sqrt(np.diag(np.linalg.inv(information(X, y, penalised, 3.0))))
    np.testing.assert_allclose(penalised.standard_errors()[0], expected, rtol=1e-8)


def test_sandwich_covers_a_misspecified_model():
    """Weights that double every row halve the information's variance but not the sandwich's."""
    X, y = binary()
    once = SoftmaxRegression(l2=0.0, tol=1e-10).fit(X, y)
    twice = SoftmaxRegression(l2=0.0, tol=1e-10).fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(twice.standard_errors() * np.sqrt(2), once.standard_errors(), rtol=1e-6)
    np.testing.assert_allclose(twice.standard_errors("sandwich"), once.standard_errors("sandwich"), rtol=1e-6)


@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_monte_carlo_agrees(l2):
    """The spread of estimates over simulated data is what the standard errors say."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 2))
    p = 1 / (1 + np.exp(-(X @ [1.0, -0.5] + 0.3)))
    estimates, errors = [], []
    for _ in range(200):
        model = SoftmaxRegression(l2=l2).fit(X, (rng.random(600) < p).astype(int))
        estimates.append(model.coef_[0])
        errors.append(model.standard_errors("sandwich")[0, :2])
    np.testing.assert_allclose(np.std(estimates, axis=0), np.mean(errors, axis=0), rtol=0.15)


def test_summary_is_a_table_with_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SoftmaxRegression(l2=1.0).fit(X, y)
    table = model.summary(level=0.9, reference=0)
    assert len(table.names) == 2 * 5
    assert table.names[0] == "1: sepal length (cm)"
    np.testing.assert_allclose(table.z, table.estimate / table.standard_error)
    np.testing.assert_allclose(table.upper - table.estimate, 1.6448536 * table.standard_error, rtol=1e-6)
    text = str(table)
    assert "std. error" in text
    assert "upper 90%" in text
    assert len(text.splitlines()) == 3 + 10


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ("separated", {"l2": 0.0}, "separated|singular"),
        ("partly separated", {"l2": 0.0}, "separated"),
        ("collinear", {"l2": 0.0}, "collinear"),
        (None, {"method": "hessian"}, "method must be one of"),
        (None, {"reference": 7}, "reference must be one of the classes"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_refusals_say_why(change, options, message):
    X, y = ternary()
    if change == "separated":
        X = np.column_stack([X, 5.0 * y])
    if change == "partly separated":
        X = np.column_stack([X, (y == 2) & (X[:, 0] > 0)])
    if change == "collinear":
        X = np.column_stack([X, X[:, 0]])
    l2 = options.pop("l2", 1.0)
    model = SoftmaxRegression(l2=l2).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.standard_errors(**options)


def test_reference_is_refused_for_two_classes():
    model = SoftmaxRegression().fit(*binary())
    with pytest.raises(ValueError, match="more than two classes"):
        model.standard_errors(reference=1)


def test_wide_data_have_standard_errors_too():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 60)), np.arange(20) % 2
    model = SoftmaxRegression(l2=2.0, penalize_intercept=True, tol=1e-10).fit(X, y)
    expected = np.sqrt(np.diag(np.linalg.inv(information(X, y, model, 2.0))))
    np.testing.assert_allclose(model.standard_errors()[0], expected, rtol=1e-7)

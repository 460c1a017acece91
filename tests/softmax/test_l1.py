"""SoftmaxRegression with l1 > 0: against scikit-learn, and everything an estimator must do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale

from partita import CapabilityError, ProximalNewton, SoftmaxRegression, l1_max, load
from partita.estimators.data import class_codes

sklearn_version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def objective(X, y, coef, intercept, l1, l2=0.0, penalize_intercept=False):
    scores = X @ coef.T + intercept
    if len(coef) == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    loss = (logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]).sum()
    penalty = l1 * np.abs(coef).sum() + 0.5 * l2 * (coef**2).sum()
    return loss + penalty + (l1 * np.abs(intercept).sum() if penalize_intercept else 0.0)


def theirs_with(l1, l2=0.0, **options):
    """scikit-learn's. Before 1.8 l1_ratio alone changes nothing: the penalty has to be named, which later versions advise
    against."""
    if sklearn_version < (1, 8):
        options["penalty"] = "l1" if options["solver"] == "liblinear" else "elasticnet"
    if options["solver"] != "liblinear" or sklearn_version >= (1, 8):
        options["l1_ratio"] = l1 / (l1 + l2)
    return LogisticRegression(C=1.0 / (l1 + l2), random_state=0, max_iter=5000, **options)


@pytest.mark.parametrize("l1", [0.3, 3.0, 30.0])
def test_agrees_with_liblinear(l1):
    X, y = cancer()
    ours = SoftmaxRegression(l2=0.0, l1=l1, penalize_intercept=True, tol=1e-9).fit(X, y)
    theirs = theirs_with(l1, solver="liblinear", tol=1e-8).fit(X, y)
    best = objective(X, y, theirs.coef_, theirs.intercept_, l1, penalize_intercept=True)
    value = objective(X, y, ours.coef_, ours.intercept_, l1, penalize_intercept=True)
    assert ours.trace_.objective[-1] == pytest.approx(value, rel=1e-12)
    assert value == pytest.approx(best, rel=1e-6)
    assert value <= best * (1.0 + 1e-12)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)


@pytest.mark.parametrize(("make", "l1", "l2"), [(wine, 3.0, 0.0), (wine, 1.0, 0.5), (cancer, 10.0, 0.0), (cancer, 3.0, 3.0)])
def test_agrees_with_saga(make, l1, l2):
    X, y = make()
    ours = SoftmaxRegression(l2=l2, l1=l1, tol=1e-9).fit(X, y)
    theirs = theirs_with(l1, l2, solver="saga", tol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, y)
    best = objective(X, y, theirs.coef_, theirs.intercept_, l1, l2)
    value = objective(X, y, ours.coef_, ours.intercept_, l1, l2)
    assert value == pytest.approx(best, rel=1e-6)
    assert value <= best * (1.0 + 1e-12)
    assert (ours.coef_ == 0.0).any()


def test_certificate_is_in_the_trace():
    X, y = wine()
    trace = SoftmaxRegression(l2=0.0, l1=1.0, tol=1e-8).fit(X, y).trace_
    assert np.isfinite(trace.gap).all()
    assert trace.gap[-1] <= 1e-6 * trace.objective[-1]


@pytest.mark.parametrize("make", [cancer, wine])
def test_dense_and_sparse_agree(make):
    X, y = make()
    dense = SoftmaxRegression(l2=0.1, l1=1.0, tol=1e-10).fit(X, y)
    sparse = SoftmaxRegression(l2=0.1, l1=1.0, tol=1e-10).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-8)
    assert np.array_equal(dense.coef_ == 0.0, sparse.coef_ == 0.0)


def test_weights_are_repeated_rows(rng):
    X, y = wine()
    counts = rng.integers(0, 3, len(y))
    counts[:: len(y) // 5] = 1
    weighted = SoftmaxRegression(l2=0.1, l1=1.0, tol=1e-10).fit(X, y, sample_weight=counts)
    repeated = SoftmaxRegression(l2=0.1, l1=1.0, tol=1e-10).fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    factors = {0: 1.0, 1: 2.0, 2: 0.5}
    by_class = SoftmaxRegression(l2=0.1, l1=1.0, tol=1e-10, class_weight=factors).fit(X, y)
    by_row = SoftmaxRegression(l2=0.1, l1=1.0, tol=1e-10).fit(X, y, sample_weight=[factors[label] for label in y])
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-12)


def test_a_prior_only_shifts_free_intercepts():
    X, y = wine()
    prior = np.array([1.0, 5.0, 0.2])
    plain = SoftmaxRegression(l2=0.0, l1=2.0, tol=1e-11).fit(X, y)
    shifted = SoftmaxRegression(l2=0.0, l1=2.0, tol=1e-11, prior=prior).fit(X, y)
    np.testing.assert_allclose(plain.coef_, shifted.coef_, atol=1e-7)
    np.testing.assert_allclose(plain.predict_proba(X), shifted.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_thread_count_does_not_change_a_bit(sparse, classes):
    """Large enough for the full gradients to be split."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, 120)) * (rng.random((9000, 120)) < 0.4)
    y = (X[:, :classes] + rng.gumbel(size=(9000, classes))).argmax(1)
    X = sp.csr_matrix(X) if sparse else X
    fits = [SoftmaxRegression(l2=0.0, l1=60.0, n_jobs=jobs).fit(X, y) for jobs in (1, 2)]
    assert fits[0].coef_.tobytes() == fits[1].coef_.tobytes()
    assert fits[0].intercept_.tobytes() == fits[1].intercept_.tobytes()


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3000))
    y = (X[:, :3] + 0.1 * rng.gumbel(size=(60, 3))).argmax(1)
    model = SoftmaxRegression(l2=0.0, l1=0.2 * l1_max(X, y), tol=1e-9).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 200
    assert model.coef_.shape == (3, 3000)
    assert model.trace_.gap[-1] <= 1e-6 * model.trace_.objective[-1]
    chosen = np.flatnonzero(model.coef_.any(0))
    assert {0, 1, 2} <= set(chosen)


def test_warm_start_follows_the_path():
    X, y = cancer()
    top = l1_max(X, y)
    model = SoftmaxRegression(l2=0.0, warm_start=True, tol=1e-9)
    supports = []
    for share in np.geomspace(1.0, 0.01, 8):
        model.set_params(l1=share * top).fit(X, y)
        cold = SoftmaxRegression(l2=0.0, l1=share * top, tol=1e-9).fit(X, y)
        assert model.trace_.objective[-1] == pytest.approx(cold.trace_.objective[-1], rel=1e-9)
        assert model.trace_.objective[0] <= cold.trace_.objective[0] * (1.0 + 1e-12)
        supports.append(np.count_nonzero(model.coef_))
    assert supports[0] == 0
    assert supports[-1] > 10
    model.fit(X, y)
    assert model.n_iter_ == 0


def test_standard_errors_are_refused_with_the_reason():
    X, y = wine()
    model = SoftmaxRegression(l1=1.0).fit(X, y)
    for method in (model.standard_errors, model.summary):
        with pytest.raises(ValueError, match="not defined with l1 > 0"):
            method()
    with pytest.raises(ValueError, match="not defined with l1 > 0"):
        model.set_params(l1=0.0).standard_errors()


def test_save_load_and_clone(tmp_path):
    X, y = wine()
    model = SoftmaxRegression(l2=0.2, l1=1.5, solver=ProximalNewton(working_set=10)).fit(X, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again.get_params() == model.get_params()
    assert clone(model).l1 == 1.5


def test_grid_search_over_both_penalties():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(SoftmaxRegression(), {"l1": [0.0, 0.1, 10.0], "l2": [0.0, 0.1]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_wrong_l1_and_wrong_solver_are_named():
    X, y = wine()
    for wrong in (-1.0, np.nan, np.inf, "1", True):
        with pytest.raises(ValueError, match="l1 must be"):
            SoftmaxRegression(l1=wrong).fit(X, y)
    with pytest.raises(CapabilityError, match="without jumps"):
        SoftmaxRegression(l1=1.0, solver="lbfgs").fit(X, y)


def test_classes_of_integers_are_those_of_numpy(rng):
    for kind, values in (
        (np.int64, [-5, 3, 900]),
        (np.int8, [-100, 0, 100]),
        (np.uint8, [0, 255]),
        (np.uint64, [2**63, 2**64 - 1]),
    ):
        y = rng.choice(np.array(values, kind), 3000)
        for ours, theirs in zip(class_codes(y), np.unique(y, return_inverse=True), strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype


def test_without_l1_nothing_has_changed():
    X, y = wine()
    plain, zero = SoftmaxRegression().fit(X, y), SoftmaxRegression(l1=0.0).fit(X, y)
    assert plain.coef_.tobytes() == zero.coef_.tobytes()
    assert plain.coef_.all()

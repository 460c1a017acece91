"""Standard errors against statsmodels, where it is installed (the `bench` extra)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from partita import SoftmaxRegression

statsmodels = pytest.importorskip("statsmodels.api", reason="statsmodels is in the bench extra only")
pytestmark = pytest.mark.filterwarnings("ignore")


def test_binary():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X[:, :4])
    theirs = statsmodels.Logit(y, statsmodels.add_constant(X, prepend=False)).fit(disp=0, tol=1e-14)
    ours = SoftmaxRegression(l2=0.0, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.standard_errors()[0], theirs.bse, rtol=1e-6)
    table = ours.summary()
    np.testing.assert_allclose(table.p, theirs.pvalues, rtol=1e-5)
    np.testing.assert_allclose(np.column_stack([table.lower, table.upper]), theirs.conf_int(), rtol=1e-5)
    robust = statsmodels.Logit(y, statsmodels.add_constant(X, prepend=False)).fit(disp=0, tol=1e-14, cov_type="HC0")
    np.testing.assert_allclose(ours.standard_errors("sandwich")[0], robust.bse, rtol=1e-6)


def test_multinomial():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 3)), rng.integers(0, 4, 500)
    theirs = statsmodels.MNLogit(y, statsmodels.add_constant(X, prepend=False)).fit(disp=0, method="newton", tol=1e-14)
    ours = SoftmaxRegression(l2=0.0, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.standard_errors(reference=0)[1:].T, theirs.bse, rtol=1e-6)

"""The same optimum as scikit-learn on public data sets, where they are at hand."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from partita import SoftmaxRegression

pytestmark = pytest.mark.data


def srbct(folder):
    read = lambda name: np.genfromtxt(folder / "srbct" / f"Khan_{name}.csv.gz", delimiter=",", skip_header=1)  # noqa: E731
    X = np.vstack([read("xtrain"), read("xtest")])
    y = np.concatenate([read("ytrain"), read("ytest")]).astype(int)
    return scale(X), y


def text(folder):
    with np.load(folder / "ssl_text" / "text.npz") as parts:
        X = sp.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
        return X.astype(np.float64), parts["y"].ravel()


def a9a(folder):
    with gzip.open(folder / "libsvm" / "a9a.gz") as file:
        return load_svmlight_file(file)


def total_loss(model, X, y, l2):
    codes = np.searchsorted(model.classes_, y)
    return -model.predict_log_proba(X)[np.arange(len(y)), codes].sum() + 0.5 * l2 * np.sum(model.coef_**2)


@pytest.mark.parametrize("load", [srbct, text, a9a], ids=lambda load: load.__name__)
def test_same_optimum(load, data_dir):
    X, y = load(data_dir)
    ours = SoftmaxRegression(l2=1.0, tol=1e-9).fit(X, y)
    theirs = LogisticRegression(C=1.0, solver="newton-cg", tol=1e-9, max_iter=10_000).fit(X, y)
    a, b = (total_loss(model, X, y, 1.0) for model in (ours, theirs))
    assert abs(a - b) <= 1e-8 * b

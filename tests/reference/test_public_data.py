"""On public data sets, where they are at hand: the optimum of scikit-learn, and majorization that never rises."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from partita import LatentSoftmax, Majorize, SoftmaxRegression

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


def uci(name, label):
    """Columns in standard units, missing values at the mean, and labels, which are in column `label`."""

    def read(folder):
        table = np.genfromtxt(folder / "uci" / name, delimiter=",", dtype=str, skip_header=int(name == "bupa.csv"))
        X = np.delete(np.where(table == "?", "nan", table), label, axis=1).astype(float)
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        return scale(X[:, X.std(axis=0) > 0.0]), np.unique(table[:, label], return_inverse=True)[1]

    return read


LATENT = {
    "bupa": uci("bupa.csv", -1),
    "ionosphere": uci("ionosphere.csv", -1),
    "hepatitis": uci("hepatitis.data", 0),
    "wine": uci("wine.csv", -1),
    "srbct": srbct,
}


@pytest.mark.parametrize("n_hidden", [1, 2, 3, 4])
@pytest.mark.parametrize("name", LATENT)
def test_latent_likelihood_never_falls(name, n_hidden, data_dir):
    X, y = LATENT[name](data_dir)
    for solver in (Majorize("descending", None), Majorize()):
        model = LatentSoftmax(n_hidden, l2=0.0, solver=solver, max_iter=60, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            trace = model.fit(X, y).trace_
        assert len(trace) > 3
        assert (np.diff(trace.objective) <= 4e-16 * trace.objective[:-1]).all()

"""Offsets of scores: the same model with the offset as a feature of fixed weight 1."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp

from partita import SGD, LatentSoftmax, SoftmaxRegression
from partita.constraints import Box

rng = np.random.default_rng(8)
X = rng.standard_normal((50, 3))
Y = (X @ rng.standard_normal((3, 3)) + rng.gumbel(size=(50, 3))).argmax(axis=1)
OFFSET = 1.5 * rng.standard_normal((50, 3))


def by_hand(classes, l2=0.5, prior=1.0, allowed=None, weights=1.0):
    """SciPy's optimum of the penalised likelihood, written out."""
    y = np.minimum(Y, classes - 1)
    offset = OFFSET[:, :classes]
    allowed = np.eye(classes, dtype=bool)[y] if allowed is None else allowed

    def value(theta):
        W = np.vstack([np.zeros(4), theta]) if classes == 2 else theta.reshape(classes, 4)  # of two, the log-odds
        s = X @ W[:, :3].T + W[:, 3] + offset + np.log(prior)
        inside = logsumexp(np.where(allowed, s, -np.inf), axis=1)
        return float(np.sum(weights * (logsumexp(s, axis=1) - inside))) + 0.5 * l2 * float((W[:, :3] ** 2).sum())

    start = np.zeros(4 if classes == 2 else 4 * classes)
    return minimize(value, start, method="BFGS", options={"gtol": 1e-7}), value


def flat(model):
    return np.column_stack([model.coef_, model.intercept_]).ravel()


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("classes", [2, 3])
def test_optimum_is_that_of_scipy(classes, convert):
    weights = 1.0 + np.arange(50) % 2
    found, value = by_hand(classes, prior=np.arange(1.0, classes + 1.0), weights=weights)
    y, offset = np.minimum(Y, classes - 1), OFFSET[:, :classes]
    for solver in ("auto", "lbfgs", "majorize"):
        model = SoftmaxRegression(l2=0.5, prior=np.arange(1.0, classes + 1.0), solver=solver, tol=1e-9)
        model.fit(convert(X), y, weights, offset=offset)
        assert value(flat(model)) == pytest.approx(found.fun, rel=1e-8), solver
        assert model.trace_.objective[-1] == pytest.approx(found.fun, rel=1e-8)


@pytest.mark.parametrize("options", [{"l2": 0.0, "l1": 0.0}, {"l1": 1.0}, {"constraints": [Box(lower=-0.2, upper=0.4)]}])
def test_an_offset_is_a_feature_of_weight_one(options):
    """With a constraint on its weight, or no intercepts and the weight added by hand."""
    weights = np.array([[0.3, -0.2, 0.5], [0.0, 0.4, -0.6], [-0.3, -0.2, 0.1]])
    offset = X @ weights.T
    if "l1" in options and options["l1"] == 0.0:  # without a penalty it is a shift of the weights
        one = SoftmaxRegression(tol=1e-9, **options).fit(X, Y)
        other = SoftmaxRegression(tol=1e-9, **options).fit(X, Y, offset=offset)
        np.testing.assert_allclose(other.predict_proba(X, offset=offset), one.predict_proba(X), atol=1e-6)
        return
    model = SoftmaxRegression(tol=1e-8, **options).fit(X, Y, offset=offset)
    log_p = model.predict_log_proba(X, offset=offset)
    scores = X @ (model.coef_ + weights).T + model.intercept_
    np.testing.assert_allclose(log_p, scores - logsumexp(scores, axis=1)[:, None], atol=1e-12)
    residual = np.exp(log_p) - np.eye(3)[Y]
    slope = residual.T @ X + model.coef_ * model.l2
    if "l1" in options:
        assert np.abs(slope).max() <= 1.0 + 1e-5
        at = model.coef_ != 0.0
        np.testing.assert_allclose(slope[at], -np.sign(model.coef_[at]), atol=1e-5)
    else:
        free = (model.coef_ > -0.2 + 1e-9) & (model.coef_ < 0.4 - 1e-9)
        assert np.abs(slope[free]).max() < 1e-4


@pytest.mark.parametrize("form", ["two columns", "one number"])
def test_two_classes_take_log_odds(form):
    y = np.minimum(Y, 1)
    offset = OFFSET[:, :2] if form == "two columns" else OFFSET[:, 1] - OFFSET[:, 0]
    found, value = by_hand(2)
    model = SoftmaxRegression(l2=0.5, tol=1e-9).fit(X, y, offset=offset)
    assert value(flat(model)) == pytest.approx(found.fun, rel=1e-8)
    np.testing.assert_allclose(model.log_likelihood(X, y, offset=offset).sum(), -found.fun + 0.25 * (model.coef_**2).sum())
    best = [found[0][0] for found in model.predict_kbest(X, 1, offset=offset)]
    assert best == model.predict(X, offset=offset).tolist()


def test_sets_and_mini_batches_take_offsets_too():
    allowed = np.eye(3, dtype=bool)[Y]
    allowed[::4, 0] = True
    sets = [set(np.flatnonzero(row).tolist()) for row in allowed]
    found, value = by_hand(3, allowed=allowed)
    model = SoftmaxRegression(l2=0.5, tol=1e-9).fit(X, sets, offset=OFFSET)
    assert value(flat(model)) == pytest.approx(found.fun, rel=1e-6)
    found, value = by_hand(3)
    model = SoftmaxRegression(l2=0.5, solver=SGD(batch_size=5), max_iter=1000, random_state=0).fit(X, Y, offset=OFFSET)
    assert value(flat(model)) == pytest.approx(found.fun, rel=2e-3)


def test_latent_models_take_offsets():
    one = LatentSoftmax(n_hidden=1, l2=0.5, random_state=0).fit(X, Y, offset=OFFSET)
    other = SoftmaxRegression(l2=0.5, tol=1e-9).fit(X, Y, offset=OFFSET)
    np.testing.assert_allclose(one.predict_proba(X, offset=OFFSET), other.predict_proba(X, offset=OFFSET), atol=1e-4)
    model = LatentSoftmax(n_hidden=2, l2=0.5, random_state=0, solver="em").fit(X, Y, offset=OFFSET)
    value = 0.25 * float((model.coef_**2).sum()) - model.log_likelihood(X, Y, offset=OFFSET).sum()
    assert model.trace_.objective[-1] == pytest.approx(value, rel=1e-9)
    scores = np.logaddexp.reduce(np.einsum("ij,khj->ikh", X, model.coef_) + model.intercept_, axis=2) + OFFSET
    expected = scores - logsumexp(scores, axis=1)[:, None]
    np.testing.assert_allclose(model.predict_log_proba(X, offset=OFFSET), expected, atol=1e-10)


def test_classes_may_be_forbidden_row_by_row():
    offset = np.where(np.arange(3) == (Y[:, None] + 1) % 3, -np.inf, 0.0)
    model = SoftmaxRegression(l2=0.5, tol=1e-8).fit(X, Y, offset=offset)
    assert (model.predict_proba(X, offset=offset)[offset == -np.inf] == 0.0).all()
    with pytest.raises(ValueError, match="forbids the class of example 0"):
        SoftmaxRegression().fit(X, (Y + 1) % 3, offset=offset)


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (np.zeros(50), r"shape \(50, 3\)"),
        (np.zeros((50, 2)), r"shape \(50, 3\)"),
        (np.full((50, 3), np.nan), "NaN"),
        (np.full((50, 3), np.inf), r"\+inf"),
        (np.full((50, 3), -np.inf), "forbids every class of example 0"),
        ("abc", "offset"),
    ],
)
def test_bad_offsets_are_refused(offset, message):
    for model in (SoftmaxRegression(), LatentSoftmax(random_state=0)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y, offset=offset)

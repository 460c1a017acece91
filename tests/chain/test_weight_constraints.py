"""Bounds and ties of the weights of a chain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from partita import ChainCRF, Status
from partita.constraints import WeightBounds, WeightTies


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = [int(rng.integers(3))]
        while len(labels) < 5:
            labels.append(int((labels[-1] + rng.integers(2)) % 3))
        X.append([[f"a{(k + (rng.random() < 0.3)) % 3}", f"b{rng.integers(4)}"] for k in labels])
        y.append([f"L{k}" for k in labels])
    return X, y


def test_bounds_against_scipy():
    X, y = data()
    bounds = [WeightBounds(lower=0.0, labels=["L1"]), WeightBounds(upper=0.4, transitions=[("L0", "L0"), ("L1", "L2")])]
    model = ChainCRF(l2=0.5, tol=1e-9, constraints=bounds).fit(X, y)
    bounded = ChainCRF(l2=0.5, tol=1e-7, constraints=bounds, solver="majorize").fit(X, y)
    assert bounded.status_ is Status.CONVERGED
    np.testing.assert_allclose(bounded.parameters_, model.parameters_, atol=1e-4)
    assert (np.diff(bounded.trace_.objective) <= 1e-9).all()
    weights = model.state_features_ | {("->", *pair): w for pair, w in model.transition_features_.items()}
    assert all(w >= 0.0 for (_, label), w in model.state_features_.items() if label == "L1")
    assert all(w >= 0.0 for (_, label), w in model.transition_features_.items() if label == "L1")
    assert model.transition_features_["L0", "L0"] <= 0.4
    assert any(w == 0.0 for w in weights.values())
    free = ChainCRF(l2=0.5, tol=1e-9).fit(X, y)
    objective = free._objective
    layout = free.chain_.layout
    low, high = np.full(layout.size, -np.inf), np.full(layout.size, np.inf)
    for bound in bounds:
        low[bound.where(layout)] = bound.lower
        high[bound.where(layout)] = np.minimum(high[bound.where(layout)], bound.upper)
    reference = scipy_minimize(
        lambda t: (objective.at(t).value, objective.at(t).gradient),
        np.clip(np.zeros(layout.size), low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )
    assert model.trace_.objective[-1] == pytest.approx(reference.fun, rel=1e-9)
    assert model.trace_.objective[-1] > free.trace_.objective[-1] + 1e-3


def test_ties_are_equal_and_optimal():
    X, y = data()
    ties = [WeightTies(transitions=[[("L0", "L1"), ("L1", "L2")]], state=[[("a0", "L0"), ("a1", "L1"), ("a2", "L2")]])]
    model = ChainCRF(l2=0.5, tol=1e-10, constraints=ties).fit(X, y)
    moves, states = model.transition_features_, model.state_features_
    assert moves["L0", "L1"] == moves["L1", "L2"]
    assert states["a0", "L0"] == states["a1", "L1"] == states["a2", "L2"]
    free = ChainCRF(l2=0.5, tol=1e-10).fit(X, y)
    gradient = free._objective.at(model.chain_.layout.align(model.parameters_, free.chain_.layout)).gradient
    group = np.concatenate(ties[0].groups(free.chain_.layout))
    others = np.setdiff1d(np.arange(free.chain_.layout.size), group)
    assert np.abs(gradient[others]).max() < 1e-6
    for part in ties[0].groups(free.chain_.layout):
        assert abs(gradient[part].sum()) < 1e-6
        assert np.abs(gradient[part]).max() > 1e-3


def test_both_together_with_held_out_data_and_saving(tmp_path):
    X, y = data()
    constraints = [
        WeightTies(transitions=[[("L0", "L1"), ("L1", "L2")]]),
        WeightBounds(upper=0.1, transitions=[("L0", "L1")]),
    ]
    model = ChainCRF(constraints=constraints, tol=1e-8).fit(X[:30], y[:30], X_dev=X[30:], y_dev=y[30:])
    assert model.transition_features_["L1", "L2"] == model.transition_features_["L0", "L1"] <= 0.1
    model.save(tmp_path / "model")
    loaded = ChainCRF.load(tmp_path / "model")
    assert loaded.predict(X) == model.predict(X)
    assert loaded.constraints == constraints


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([3.0], "WeightBounds, WeightTies or sets"),
        ([WeightBounds(lower=1.0, attributes=["nothing"])], "'nothing', which is not an attribute"),
        ([WeightTies(transitions=[[("L2", "L1"), ("L0", "L1")]])], "has no weight in the model"),
        ([WeightBounds(lower=1.0), WeightBounds(upper=0.0)], "cannot hold together"),
    ],
)
def test_errors(constraints, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        ChainCRF(constraints=constraints).fit(X, y)

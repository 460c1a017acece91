"""Offsets of nodes: the same model with the offset as features whose weights are fixed."""

from __future__ import annotations

import numpy as np
import pytest

from partita import GraphCRF, SoftmaxRegression

EDGES = np.array([[0, 1], [1, 2]])


def graphs(rng, n=15):
    X = [(rng.standard_normal((3, 2)), EDGES) for _ in range(n)]
    y = [np.argmax(F @ [[1, 0, -1], [0, 1, -1]] + rng.gumbel(size=(3, 3)), axis=1) for F, _ in X]
    return X, y


def test_an_offset_is_a_feature_whose_weights_are_known(rng):
    """Without a penalty the weights of the features move by what the offset has, and nothing else changes."""
    X, y = graphs(rng)
    W = np.array([[0.3, -0.2, -0.1], [0.0, 0.4, -0.4]])
    offset = [F @ W for F, _ in X]
    one = GraphCRF(l2=1e-9, tol=1e-9, fit_intercept=False).fit(X, y)
    other = GraphCRF(l2=1e-9, tol=1e-9, fit_intercept=False).fit(X, y, offset=offset)
    np.testing.assert_allclose(other.log_likelihood(X, y, offset=offset), one.log_likelihood(X, y), atol=1e-4)
    for a, b in zip(other.predict_marginals(X, offset=offset), one.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_optimum_is_stationary_and_the_same_for_other_solvers(rng):
    X, y = graphs(rng)
    offset = [rng.standard_normal((3, 3)) for _ in X]
    model = GraphCRF(l2=0.5, tol=1e-8, fit_intercept=False).fit(X, y, offset=offset)

    def value(theta):
        other = GraphCRF(l2=0.5, fit_intercept=False)
        other.__dict__.update({**model.__dict__, "parameters_": theta})
        return -other.log_likelihood(X, y, offset=offset).sum() + 0.25 * float(theta @ theta)

    theta = model.parameters_
    assert model.trace_.objective[-1] == pytest.approx(value(theta), rel=1e-10)
    assert max(abs(value(theta + m) - value(theta - m)) / 2e-5 for m in 1e-5 * np.eye(len(theta))) < 1e-4
    for solver in ("lbfgs", "majorize"):
        again = GraphCRF(l2=0.5, tol=1e-8, fit_intercept=False, solver=solver).fit(X, y, offset=offset)
        assert value(again.parameters_) == pytest.approx(value(theta), rel=1e-7), solver


def test_without_edges_it_is_softmax_regression(rng):
    X = rng.standard_normal((30, 2))
    y = (X[:, 0] + rng.logistic(size=30) > 0).astype(int) + (X[:, 1] > 0.8)
    offset = rng.standard_normal((30, 3))
    softmax = SoftmaxRegression(l2=0.5, tol=1e-9).fit(X, y, offset=offset)
    none = np.zeros((0, 2), int)
    model = GraphCRF(l2=0.5, tol=1e-9).fit([(x[None], none) for x in X], [[c] for c in y], offset=offset[:, None])
    P = np.vstack(model.predict_marginals([(x[None], none) for x in X], offset=offset[:, None]))
    np.testing.assert_allclose(P, softmax.predict_proba(X, offset=offset), atol=1e-5)


def test_what_is_forbidden_is_never_predicted(rng):
    X, y = graphs(rng)
    offset = [np.where(np.arange(3) == (np.asarray(labels)[:, None] + 1) % 3, -np.inf, 0.0) for labels in y]
    model = GraphCRF(l2=0.5).fit(X, y, offset=offset)
    for P, table in zip(model.predict_marginals(X, offset=offset), offset, strict=True):
        assert (P[table == -np.inf] == 0.0).all()
    (found,) = model.predict_kbest(X[:1], 100, offset=offset[:1])
    assert len(found) == 8
    assert sum(np.exp(value) for _, value in found) == pytest.approx(1.0)


def test_nodes_of_types_have_dicts(rng):
    X = [{"nodes": {"a": rng.standard_normal((2, 1)), "b": rng.standard_normal((1, 1))}, "edges": EDGES} for _ in range(6)]
    y = [{"a": ["u", "v"], "b": ["x" if i % 2 else "z"]} for i in range(6)]
    offset = [{"a": rng.standard_normal((2, 2))} for _ in X]  # none for b
    model = GraphCRF(l2=0.5).fit(X, y, offset=offset)
    assert np.isfinite(model.log_likelihood(X, y, offset=offset)).all()
    assert not np.allclose(model.log_likelihood(X, y, offset=offset), model.log_likelihood(X, y))


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ([np.zeros((3, 3))], "for each of 15 graphs"),
        ([np.zeros((2, 3))] * 15, r"graph 0: offset must have shape \(3, 3\)"),
        ([{"node": np.zeros((3, 3))}] * 15, "dicts of arrays by type"),
        ([np.full((3, 3), np.nan)] * 15, "NaN"),
    ],
)
def test_bad_offsets_are_refused(offset, message, rng):
    X, y = graphs(rng)
    with pytest.raises(ValueError, match=message):
        GraphCRF().fit(X, y, offset=offset)

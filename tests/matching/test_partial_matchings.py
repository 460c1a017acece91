"""Matchings of which partners are unknown, or one of a set: against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partita import MatchingCRF
from partita.structures import BipartiteMatching


def agrees(matching, y):
    return all(v is None or j in (v if isinstance(v, set) else {v}) for j, v in zip(matching, y, strict=True))


def bipartite(n, m, unmatched):
    options = [*range(m), -1] if unmatched or n > m else range(m)
    found = []
    for y in itertools.product(options, repeat=n):
        used = [j for j in y if j >= 0]
        enough = unmatched or len(used) == min(n, m)
        if len(set(used)) == len(used) and enough:
            found.append(y)
    return found


def general(n, unmatched):
    return [
        y
        for y in itertools.product(range(-1 if unmatched else 0, n), repeat=n)
        if all(j < 0 or (j != i and y[j] == i) for i, j in enumerate(y))
    ]


CASES = {
    "square": ({}, (3, 3), [[0, None, None], [{0, 1}, {1, 2}, None], [2, 1, 0], [None, {0}, {1, 2}]]),
    "more columns": ({}, (2, 4), [[0, None], [{0, 1, 3}, {1, 2}], [2, 1], [None, None]]),
    "more rows": (
        {},
        (4, 2),
        [[0, None, None, {-1, 1}], [{0, -1}, -1, None, 1], [-1, -1, 0, 1], [None, {0, 1}, None, None]],
    ),
    "alone": (
        {"allow_unmatched": True},
        (3, 3),
        [[0, None, -1], [{0, 1}, {1, 2, -1}, None], [2, -1, 0], [None, {0}, {1, 2}], [{0, 1}, {1, 2}, {0, 2}]],
    ),
    "one kind": ({"bipartite": False}, (4, 4), [[1, 0, None, None], [{1, 2}, None, None, None], [1, 0, 3, 2], [None] * 4]),
    "one kind, alone": (
        {"bipartite": False, "allow_unmatched": True},
        (4, 4),
        [[1, None, None, None], [{1, 2}, None, {0, 3}, None], [-1, -1, 3, 2], [None, -1, {-1, 3}, None], [1, 0, {3}, None]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_over_what_agrees(name, rng):
    options, (n, m), y = CASES[name]
    X = 1.5 * rng.standard_normal((len(y), 2, n, m))
    if n == m:
        X = X + X.transpose(0, 1, 3, 2)
    unmatched = options.get("allow_unmatched", False)
    each = bipartite(n, m, unmatched) if options.get("bipartite", True) else general(n, unmatched)
    model = MatchingCRF(l2=0.3, tol=1e-10, **options).fit(X, y)
    assert model.likelihood_ == "full"

    def enumerated(theta):
        other = MatchingCRF(l2=0.3, **options)
        other.__dict__.update({**model.__dict__, "parameters_": theta[:2], "row_parameters_": theta[2:]})
        logs = [other.log_likelihood(X, [np.array(one)] * len(y)) for one in each]
        inside = [[row[i] for row, one in zip(logs, each, strict=True) if agrees(one, y[i])] for i in range(len(y))]
        return np.array([np.logaddexp.reduce(part) for part in inside])

    theta = np.concatenate([model.parameters_, model.row_parameters_])
    np.testing.assert_allclose(model.log_likelihood(X, y), enumerated(theta), atol=1e-10)
    value = lambda t: -enumerated(t).sum() + 0.15 * float(t @ t)  # noqa: E731
    assert model.trace_.objective[-1] == pytest.approx(value(theta), rel=1e-10)
    moves = 1e-5 * np.eye(len(theta))
    assert max(abs(value(theta + d) - value(theta - d)) / 2e-5 for d in moves) < 1e-5
    point = model._point
    v = rng.standard_normal(len(theta))
    ends = [point.objective.at(theta + s * 1e-5 * v).gradient for s in (1.0, -1.0)]
    np.testing.assert_allclose(point.hessian_product()(v), (ends[0] - ends[1]) / 2e-5, atol=1e-6)
    np.testing.assert_allclose(point.scores().sum(0), -(point.gradient - 0.3 * theta), atol=1e-9)
    assert model.gap_ == np.inf
    assert 0.0 <= model.score(X, y) <= 1.0
    assert np.isfinite(model.standard_errors()).all()


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "cg"])
def test_solvers_end_at_stationary_points(solver, rng):
    X = rng.standard_normal((10, 2, 3, 3))
    y = [[0, None, {0, 1, 2}] if i % 2 else [1, 0, 2] for i in range(10)]
    model = MatchingCRF(solver=solver).fit(X, y)
    assert np.abs(model._point.gradient).max() < 1e-5


def test_bethe_learns_from_what_is_known_too(rng):
    """Its gradient is that of the difference of two free energies, whose optimum is not the likelihood's."""
    X = rng.standard_normal((12, 2, 4, 4)) + 1.5 * np.eye(4)
    y = [[0, 1, 2, 3] if i % 3 else [0, None, None, {2, 3}] for i in range(12)]
    model = MatchingCRF(likelihood="bethe").fit(X, y)
    objective = model_objective(model, X, y)
    theta = model.parameters_
    for unit in 1e-4 * np.eye(2):
        slope = (objective.at(theta + unit).value - objective.at(theta - unit).value) / 2e-4
        assert abs(slope) < 1e-4
    # the same two free energies, with the edges that what is known rules out forbidden by hand
    structure, W = BipartiteMatching(4), np.tensordot(X, theta, (1, 0))
    log_z = structure.infer(W, engine="bethe", tol=1e-10).free_energy
    known = np.array([(i % 3 > 0) * np.trace(w) for i, w in enumerate(W)])
    masked = W[::3].copy()
    masked[:, 0, 1:] = masked[:, 1:, 0] = -np.inf
    masked[:, 3, :2] = -np.inf
    known[::3] = structure.infer(masked, engine="bethe", tol=1e-10).free_energy
    assert objective.at(theta).value == pytest.approx((log_z - known).sum() + 0.5 * float(theta @ theta), abs=1e-6)
    assert model.gap_ == np.inf


def model_objective(model, X, y):
    batches, _ = model._read(X)
    return model._objective(batches, y, None, None)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, None, 5], "partners are integers below 3"),
        ([set(), None, 1], "partners are integers below 3"),
        (["a", None, 1], "partners are integers below 3"),
        ([-1, None, 1], "lets 0 stay alone"),
        ([{0, 1}, {0, 1}, {0, 1}], "no matching agrees"),
        ([0, 0, None], "no matching agrees"),
        ([0, None], "must have 3 entries"),
    ],
)
def test_what_cannot_be_is_refused(y, message, rng):
    X = rng.standard_normal((2, 1, 3, 3))
    with pytest.raises(ValueError, match=message):
        MatchingCRF().fit(X, [[0, 1, 2], y])


def test_b_matchings_take_tables_that_are_all_known(rng):
    with pytest.raises(ValueError, match="tables are all known"):
        MatchingCRF(b=2).fit(rng.standard_normal((1, 1, 3, 3)), [[None, 1, 2]])


def test_forbidden_edges_are_no_partners(rng):
    forbidden = np.zeros((3, 3), bool)
    forbidden[0, 0] = True
    X = [{"features": rng.standard_normal((1, 3, 3)), "forbidden": forbidden}] * 2
    model = MatchingCRF().fit(X, [[None, 1, {0, 2}], [1, 0, 2]])
    assert np.isfinite(model.log_likelihood(X, [[None] * 3] * 2)).all()
    np.testing.assert_allclose(model.log_likelihood(X, [[None] * 3] * 2), 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="no matching agrees"):
        model.log_likelihood(X[:1], [[{0}, None, None]])

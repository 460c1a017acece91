"""`MatchingCRF` of b-matchings, against lists of all sets of edges and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from enumeration import edge_sets
from scipy.optimize import minimize as scipy_minimize
from scipy.special import logsumexp

import partita
from partita import BlockFrankWolfe, MatchingCRF, TooLargeError
from partita.core.errors import CapabilityError
from partita.structures import BMatching

EDGES = np.array([(2, 3), (0, 1), (1, 2), (0, 3), (0, 2), (1, 3)])


def drawn(rng, structure, count=15, scale=1.0):
    """Examples with two features, in the form in which the structure has potentials, and sets of edges."""
    X = scale * rng.standard_normal((count, 2, structure.n_edges))
    return X, [structure.sample(structure.as_given((x[0] - x[1])[None])[0], 1, rng)[0] for x in X]


def listed(structure, X, y, l2, alone=None):
    """The best parameters and the log-likelihoods there; `alone` are degrees that count with a weight of their own."""
    sets = edge_sets(structure.ends, structure.b, structure.perfect)
    F = np.einsum("bke,se->bsk", X, sets)
    own = np.einsum("bke,be->bk", X, np.array([row.ravel() for row in y]))
    if alone is not None:
        F = np.concatenate([F, np.broadcast_to(-(sets @ alone)[None, :, None], (*F.shape[:2], 1))], axis=2)
        own = np.column_stack([own, [-float(row.ravel() @ alone) for row in y]])

    def logs(theta):
        return own @ theta - logsumexp(F @ theta, axis=1)

    theta = scipy_minimize(
        lambda t: -logs(t).sum() + 0.5 * l2 * t @ t, np.zeros(F.shape[2]), method="BFGS", options={"gtol": 1e-8}
    ).x
    return theta, logs(theta)


@pytest.mark.parametrize(("b", "shape"), [(2, (4, 4)), ((2, 3), (3, 2)), ((1, 2), (4, 2))])
def test_tables_are_learned_as_by_listing_all(b, shape, rng, tmp_path):
    structure = BMatching(shape, b)
    X, y = drawn(rng, structure)
    tables = X.reshape(-1, 2, *shape)
    model = MatchingCRF(b=b, l2=0.5).fit(tables, y)
    theta, logs = listed(structure, X, y, 0.5)
    assert model.likelihood_ == "full"
    np.testing.assert_allclose(model.parameters_, theta, atol=1e-4)
    np.testing.assert_allclose(model.log_likelihood(tables, y), logs, atol=1e-3)
    best = model.predict(tables)
    W = np.tensordot(X, model.parameters_, (1, 0))
    sets = edge_sets(structure.ends, structure.b, True)
    for table, w, tau in zip(best, W, model.predict_marginals(tables), strict=True):
        assert table.shape == tau.shape == shape
        assert table.dtype == np.int64
        assert table.ravel() @ w == pytest.approx((sets @ w).max())
        np.testing.assert_allclose(tau.sum(1), structure.b[: shape[0]], atol=1e-9)
    assert model.score(tables, y) == np.mean([table == row for table, row in zip(best, y, strict=True)])
    draws = model.sample(tables[:2], 3, random_state=0)
    assert all(row.shape == (3, *shape) for row in draws)
    structure.indicators(draws[0])  # raises if one is none
    model.save(tmp_path / "model")
    again = partita.load(tmp_path / "model")
    assert again.b == b
    np.testing.assert_array_equal(again.predict(tables), best)


def test_pairs_are_tables(rng):
    structure = BMatching((3, 3), 2)
    X, y = drawn(rng, structure)
    tables = X.reshape(-1, 2, 3, 3)
    by_pairs = MatchingCRF(b=2).fit(tables, [np.argwhere(row).tolist() for row in y])
    np.testing.assert_array_equal(by_pairs.parameters_, MatchingCRF(b=2).fit(tables, y).parameters_)


@pytest.mark.parametrize("kind", ["complete", "edges"])
def test_vertices_of_one_kind(kind, rng):
    structure = BMatching(5, 2) if kind == "complete" else BMatching(EDGES, 2)
    X, y = drawn(rng, structure, 30)
    theta, logs = listed(structure, X, y, 0.5)
    if kind == "complete":
        given, tables = np.zeros((30, 2, 5, 5)), np.zeros((30, 5, 5), int)
        i, j = structure.ends.T
        given[:, :, i, j] = given[:, :, j, i] = X
        tables[:, i, j] = tables[:, j, i] = y
    else:
        given, tables = [{"edges": EDGES, "features": x.T} for x in X], np.array(y)
    model = MatchingCRF(b=2, bipartite=False, l2=0.5).fit(given, tables)
    np.testing.assert_allclose(model.parameters_, theta, atol=1e-4)
    np.testing.assert_allclose(model.log_likelihood(given, tables), logs, atol=1e-3)
    for found in (model.predict(given), model.sample(given, 1, 0)):
        assert np.reshape(found, tables.shape).dtype == np.int64
    if kind == "complete":
        (table,) = model.predict(given[:1])
        assert (table == table.T).all()
        assert (table.sum(0) == 2).all()
        with pytest.raises(ValueError, match="example 0: a table of vertices of one kind must be symmetric"):
            model.fit(given, np.triu(tables))
    pairs = [structure.ends[row.ravel() > 0][:, ::-1] for row in y]
    np.testing.assert_array_equal(MatchingCRF(b=2, bipartite=False, l2=0.5).fit(given, pairs).parameters_, model.parameters_)


def test_at_most_b_with_a_weight_for_each_edge_that_rows_lack(rng):
    structure = BMatching((3, 4), (2, 1), perfect=False)
    X, y = drawn(rng, structure, 30)
    theta, logs = listed(structure, X, y, 0.5, np.ones(12))
    tables = X.reshape(-1, 2, 3, 4)
    model = MatchingCRF(b=(2, 1), allow_unmatched=True, l2=0.5).fit(tables, y)
    np.testing.assert_allclose(np.concatenate([model.parameters_, model.row_parameters_]), theta, atol=1e-4)
    np.testing.assert_allclose(model.log_likelihood(tables, y), logs, atol=1e-3)
    empty = [*tables, np.zeros((2, 0, 4))]
    assert model.predict(empty)[-1].shape == (0, 4)
    assert model.fit(empty, [*y, []]).predict_marginals(empty)[-1].shape == (0, 4)


@pytest.mark.parametrize("unmatched", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_free_energies_bound_and_agree_with_best_sets_alone(unmatched, rng):
    structure = BMatching((4, 4), 2, perfect=not unmatched)
    X, y = drawn(rng, structure, 12)
    mask = np.zeros((12, 4, 4), bool)
    mask[::2, 0, 0] = True
    keep = [k for k in range(12) if not (np.array(y[k]).reshape(4, 4)[mask[k]]).any()]
    data = [{"features": X[k].reshape(2, 4, 4), "forbidden": mask[k]} for k in keep]
    y = [y[k] for k in keep]
    options = {"b": 2, "allow_unmatched": unmatched, "likelihood": "bethe", "l2": 1.0}
    model = MatchingCRF(**options).fit(data, y)
    assert model.gap_ <= 1e-8 * 8 * len(keep)
    blocks = MatchingCRF(**options, solver=BlockFrankWolfe(), tol=1e-4).fit(data, y)
    assert -1e-8 <= blocks.trace_.objective[-1] - model.trace_.objective[-1] <= blocks.gap_
    value, lower, upper = model.log_likelihood(data, y, bounds=True)
    assert (lower <= value + 1e-9).all()
    exact = MatchingCRF(**(options | {"likelihood": "full"})).fit(data, y)
    exact.parameters_, exact.row_parameters_ = model.parameters_, model.row_parameters_
    truth = exact.log_likelihood(data, y)
    assert (lower - 1e-9 <= truth).all()
    assert (truth <= upper + 1e-9).all()
    assert all(not tau[0, 0] for tau, k in zip(model.predict_marginals(data), keep, strict=True) if k % 2 == 0)


def test_one_edge_each_is_as_before(rng):
    X = rng.standard_normal((10, 2, 4, 4))
    y = [rng.permutation(4) for _ in X]
    for likelihood in ("full", "bethe"):
        first = MatchingCRF(likelihood).fit(X, y)
        for b in ((1, 1), [1, 1]):
            second = MatchingCRF(likelihood, b=b).fit(X, y)
            np.testing.assert_array_equal(first.parameters_, second.parameters_)
            np.testing.assert_array_equal(first.predict(X), second.predict(X))
    # and the same as sets of edges
    weights = np.tensordot(X, first.parameters_, (1, 0))
    np.testing.assert_array_equal(BMatching((4, 4), 1).best(weights.reshape(10, -1)).argmax(2), first.predict(X))


def test_what_is_refused(rng):
    structure = BMatching((4, 4), 2)
    X, y = drawn(rng, structure, 4)
    X = X.reshape(-1, 2, 4, 4)
    model = MatchingCRF(b=2).fit(X, y)
    assert [len(found) for found in model.kbest(X, 2)] == [2, 2, 2, 2]
    with pytest.raises(ValueError, match=r"standard errors need covariances of edges"):
        model.standard_errors()
    for options, message in [
        ({"b": 0}, "b must be"),
        ({"b": (1, 2, 3)}, "b must be a whole number from 1, or a pair"),
        ({"b": (1, 2), "bipartite": False}, r"b=\(1, 2\) is a pair"),
        ({"b": 2, "rho": (1.0, 0.5)}, "must be one number where b is above one"),
        ({"b": (2, 3)}, r"X: example 0: b allows no b-matching, .* or set allow_unmatched=True"),
        ({"b": 5}, r"X: example 0: b asks for 5 edges at vertex 0, which has 4: lower b, or set allow_unmatched=True"),
    ]:
        with pytest.raises(ValueError, match=message):
            MatchingCRF(**options).fit(X, y)
    with pytest.raises(CapabilityError, match="newton"):
        MatchingCRF(b=2, solver="newton").fit(X, y)
    table = np.array(y[0])
    for wrong, message in [
        (1 - table[:, :3], r"y: example 0: y must be a table of zeros and ones of shape \(4, 4\), or pairs"),
        (table * 2, "y: example 0: y must be zeros and ones"),
        (np.eye(4, dtype=int), r"y: example 0: y has 1 edges at vertex 0; b asks for 2"),
        ([(0, 1), (0, 1)], r"y: example 0: y has the pair \[0, 1\] twice"),
        ([(0, 7)], "y: example 0: pairs must be integers"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, [wrong, *y[1:]])
    few = [{"edges": EDGES[:5], "features": np.zeros((5, 1))}]
    with pytest.raises(ValueError, match=r"y has the pair \[3, 1\], which is no edge of the graph"):
        MatchingCRF(b=2, bipartite=False, allow_unmatched=True).fit(few, [[(3, 1)]])
    large = rng.standard_normal((1, 2, 30, 30))
    some = [np.eye(30, dtype=int) + np.roll(np.eye(30, dtype=int), 1, 0)]
    with pytest.raises(TooLargeError, match="Choose likelihood='bethe'"):
        MatchingCRF("full", b=2).fit(large, some)
    fitted = MatchingCRF(b=2, tol=1e-5).fit(large, some)
    assert fitted.likelihood_ == "bethe"
    with pytest.raises(TooLargeError, match="Draws are exact"):
        fitted.sample(large)

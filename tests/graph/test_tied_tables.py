"""The map from shared weights to tables of factors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partita.features import TableType, TiedTables
from partita.structures import FactorGraph


@pytest.fixture
def tables(rng):
    graph = FactorGraph([2, 3, 2, 3, 2], [(0, 1), (2,), (2, 3), (0,), (4, 3), (1,), ()])
    types = [
        TableType(np.array([0, 2, 4]), features=rng.standard_normal((3, 2))),
        TableType(np.array([3, 1]), features=sp.csr_matrix(np.eye(2)), basis=np.array([[-1.0], [1.0]])),
        TableType(np.array([5])),
        TableType(np.array([6]), parameters=np.array([[3]])),
    ]
    return TiedTables(graph, types)


def test_the_adjoint_is_the_transpose(tables, rng):
    theta, r = rng.standard_normal(tables.size), rng.standard_normal(tables.graph.size)
    assert tables.forward(theta) @ r == pytest.approx(theta @ tables.adjoint(r), rel=1e-12)
    np.testing.assert_allclose(tables.matrix @ theta, tables.forward(theta), atol=1e-14)
    np.testing.assert_allclose(tables.matrix.T @ r, tables.adjoint(r), atol=1e-13)


def test_each_table_is_features_times_weights_times_basis(tables, rng):
    theta = rng.standard_normal(tables.size)
    found = tables.graph.tables(tables.forward(theta))
    W = theta[:12].reshape(2, 6)
    for row, k in enumerate([0, 2, 4]):
        np.testing.assert_allclose(found[k].ravel(), tables.parts[0].features[row] @ W)
    np.testing.assert_allclose(found[3], [-theta[12], theta[12]])
    np.testing.assert_allclose(found[1], [-theta[13], theta[13]])
    np.testing.assert_allclose(found[5], theta[14:17])
    np.testing.assert_allclose(found[6], theta[3])


def test_variances_are_those_of_single_factors(tables, rng):
    p = np.concatenate([rng.dirichlet(np.ones(n)) for n in np.diff(tables.graph.offsets)])
    w = np.repeat(rng.random(tables.graph.n_factors), np.diff(tables.graph.offsets))
    expected = np.zeros(tables.size)
    A = tables.matrix.toarray()
    for lo, hi in zip(tables.graph.offsets[:-1], tables.graph.offsets[1:], strict=True):
        expected += w[lo] * (p[lo:hi] @ A[lo:hi] ** 2 - (p[lo:hi] @ A[lo:hi]) ** 2)
    np.testing.assert_allclose(tables.variances(p, w), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (TableType(np.array([0, 1])), "tables of one size"),
        (TableType(np.array([7])), "numbers below 7"),
        (TableType(np.array([0, 0])), "nor occur twice"),
        (TableType(np.array([0, 2]), features=np.ones((3, 1))), "a row for each of its 2"),
        (TableType(np.array([1]), features=np.array([[np.nan]])), "must be finite"),
        (TableType(np.array([1]), basis=np.ones((3, 1))), "with 2 rows"),
        (TableType(np.array([1]), parameters=np.ones((3, 1), int)), "of shape"),
    ],
)
def test_bad_types_are_refused(tables, kind, message):
    with pytest.raises(ValueError, match=message):
        TiedTables(tables.graph, [kind])

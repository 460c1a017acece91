from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partita.chain.features.state_weights import StateWeights
from partita.core import Workers


@pytest.mark.parametrize("used", [3, 40])
def test_scores_are_products(used, rng):
    n_attributes, n_labels = 50, 7
    W = np.zeros((n_attributes, n_labels))
    rows = rng.permutation(n_attributes)[:used]
    W[rows] = rng.standard_normal((used, n_labels)) * (rng.random((used, n_labels)) < 0.5)
    attribute, label = np.nonzero(W)
    weights = StateWeights(attribute, label, W[attribute, label], n_attributes, n_labels)
    X = sp.random(200, n_attributes, density=0.2, format="csr", random_state=0)
    np.testing.assert_allclose(weights.scores(X, Workers(2)), X @ W, atol=1e-12)
    for j in range(n_attributes):
        np.testing.assert_array_equal(weights.row(j), W[j])
    assert weights.table.size <= (used + 1 if used < 25 else n_attributes) * n_labels

"""Data that are changed in place after a fit do not change standard errors: what is needed was copied, or it is noticed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partita import ChainCRF, GraphCRF, MarkovNetwork, SequenceData

LENGTHS = [10] * 12


def flat(errors):
    if isinstance(errors, dict):
        return np.concatenate([np.zeros(0), *(flat(part) for part in errors.values())])
    return np.ravel(np.asarray(errors, dtype=np.float64))


def wipe(X):
    (X.data if sp.issparse(X) else X)[...] = 0


@pytest.mark.parametrize("convert", [np.array, sp.csr_matrix])
def test_errors_of_chains_and_graphs_stay(convert):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 3)), rng.integers(0, 2, 120)
    weights, edges = np.ones(12), np.column_stack([np.arange(9), np.arange(1, 10)])
    data, pieces = SequenceData(convert(X), LENGTHS), [convert(part) for part in np.split(X, 12)]
    labels = np.split(y.copy(), 12)
    chain = ChainCRF().fit(data, [part.tolist() for part in labels], sample_weight=weights)
    graph = GraphCRF().fit([(piece, edges) for piece in pieces], labels, sample_weight=weights)
    before = [flat(model.standard_errors()) for model in (chain, graph)]
    wipe(data.X)
    data.offsets[:] = 0
    for part in (*pieces, *labels, weights):
        wipe(part)
    edges[:] = [0, 1]
    for model, errors in zip((chain, graph), before, strict=True):
        assert np.array_equal(flat(model.standard_errors()), errors)
    with pytest.raises(ValueError, match="lengths must add up to the 120 rows"):
        chain.predict(data)


def test_errors_of_markov_networks_stay():
    X, weights = np.random.default_rng(0).integers(0, 2, (200, 4)), np.ones(200)
    model = MarkovNetwork.ising([(0, 1), (1, 2), (2, 3)]).fit(X, sample_weight=weights)
    before = model.standard_errors()
    wipe(X)
    wipe(weights)
    assert np.array_equal(model.standard_errors(), before)

"""Steps on single chains touch the weights that they should, and no memory beside them."""

from __future__ import annotations

import numpy as np

from partita.chain.kernels.sgd import descend
from partita.chain.kernels.tuples import Attributes, Chains, Entries, Weights


def test_steps_stay_within_the_rows_of_the_table(rng):
    n, length = 3, 5  # rows are padded to four labels
    ones, nothing = np.zeros(0), np.zeros(length + 1, np.uint64)
    common = Entries(ones, np.ones(length, np.uint32), np.arange(length + 1, dtype=np.uint64))
    attributes = Attributes(common, Entries(ones, np.zeros(0, np.uint32), nothing), np.zeros(0, np.uint16))
    y, chains = rng.integers(0, n, length), Chains(np.array([0, length]), np.ones(1))
    room, beside = np.zeros((3, n)), np.full((3, n), np.nan)
    room[2], beside[:2] = 7.0, 1.0
    weights = Weights(room[:2], np.zeros(0), np.zeros((n, n)), np.zeros(0), np.zeros(0))
    mask = Weights(beside[:2], np.zeros(0), np.ones((n, n)), np.zeros(0), np.zeros(0))
    loss, hard = descend(attributes, chains, y, mask, np.zeros(1, np.int64), 0.0, 0.5, 0.0, weights)
    assert hard == 0
    np.testing.assert_allclose(loss, length * np.log(n))
    expected = 0.5 * (np.bincount(y, minlength=n) - length / n)
    np.testing.assert_allclose(room, [np.zeros(n), expected, np.full(n, 7.0)], atol=1e-12)

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from partita.chain.features.pairs import label_indicator, label_pairs, state_pairs

X = sp.csr_matrix(np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.5]]))
OFFSETS = np.array([0, 2, 4])


def pairs(labels, every, minimum):
    return set(zip(*(index.tolist() for index in state_pairs(X, labels, every, minimum)), strict=True))


def test_known_labels():
    labels = label_indicator(np.array([0, 1, 0, 0]), 2)
    assert pairs(labels, False, 0) == {(0, 0), (2, 0), (1, 1)}
    assert pairs(labels, True, 0) == {(j, k) for j in range(3) for k in range(2)}
    assert pairs(labels, False, 2) == pairs(labels, True, 2) == {(0, 0), (1, 1)}
    assert label_pairs(labels, OFFSETS, False, 0).tolist() == [[0, 0], [0, 1]]
    assert label_pairs(labels, OFFSETS, True, 0).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert label_pairs(labels, OFFSETS, True, 2).tolist() == []


def test_a_weight_of_zero_is_still_an_occurrence():
    with_zero = X.copy()
    with_zero.data[:] = 0.0
    attribute, label = state_pairs(with_zero, label_indicator(np.array([0, 1, 0, 0]), 2), False, 0)
    assert set(zip(attribute.tolist(), label.tolist(), strict=True)) == {(0, 0), (2, 0), (1, 1)}


def test_negative_sums_are_below_a_minimum_of_zero():
    signed = X.copy()
    signed.data[signed.indices == 2] = [0.5, -0.5]
    labels = label_indicator(np.array([0, 1, 0, 1]), 2)
    for minimum, expected in ((-np.inf, {0, 1}), (0.0, {0}), (-0.5, {0, 1}), (0.5, {0}), (0.6, set())):
        attribute, label = state_pairs(signed, labels, False, minimum)
        assert set(label[attribute == 2].tolist()) == expected


def test_sets_count_for_each_label_and_unknown_for_none():
    sets = np.array([[True, True, True], [True, False, True]])
    labels = label_indicator(np.array([1, -1, -2, 2]), 3, sets)
    assert labels.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 1], [0, 0, 1]]
    assert pairs(labels, False, 0) == {(0, 1), (2, 1), (0, 0), (0, 2), (2, 2)}
    assert label_pairs(labels, OFFSETS, False, 0).tolist() == [[0, 2], [2, 2]]

"""The k best outputs by Lawler's partition, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partita.inference.kbest import k_best, k_best_parts


@pytest.mark.parametrize("k", [1, 2, 7, 24, 100])
def test_k_best_of_any_scores(rng, k):
    counts = np.array([2, 3, 1, 4])
    table = rng.standard_normal(counts)
    table[0, 1] = -np.inf
    each = np.array(list(itertools.product(*map(range, counts))))
    cells = np.concatenate(([0], np.cumsum(counts)))[:-1] + each

    def solve(allowed):
        scores = np.where(allowed[:, cells].all(axis=2), table.ravel(), -np.inf)
        return each[scores.argmax(axis=1)], scores.max(axis=1)

    found, values = k_best(counts, solve, k)
    best = np.sort(table.ravel())[::-1]
    best = best[best > -np.inf][:k]
    np.testing.assert_array_equal(values, best)
    np.testing.assert_array_equal(table[tuple(found.T)], best)
    assert len({tuple(y) for y in found.tolist()}) == len(found)


def test_k_best_sets_of_parts_by_best_sets_alone(rng):
    sets = np.array([s for s in itertools.product((0, 1), repeat=5) if sum(s) in (2, 3)])
    scores = rng.standard_normal(5)
    found, values = k_best_parts(lambda row: sets[(sets @ row).argmax()], scores, 8)
    np.testing.assert_allclose(values, np.sort(sets @ scores)[::-1][:8])
    np.testing.assert_allclose(found @ scores, values)
    assert len(k_best_parts(lambda row: sets[(sets @ row).argmax()], scores, 50)[1]) == len(sets)


def test_ties_are_listed_once():
    each = np.array(list(itertools.product((0, 1), repeat=3)))

    def solve(allowed):
        possible = allowed[:, 2 * np.arange(3) + each].all(axis=2)
        return each[possible.argmax(axis=1)], np.where(possible.any(axis=1), 0.0, -np.inf)

    found, values = k_best(np.array([2, 2, 2]), solve, 20)
    assert len(found) == len({tuple(y) for y in found.tolist()}) == 8
    assert (values == 0.0).all()

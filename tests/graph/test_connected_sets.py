"""Connected sets against a search of all sets."""

import itertools

import numpy as np
import pytest

from partita import TooLargeError
from partita.graph.structure import connected_sets
from partita.structures import FactorGraph


def hangs_together(row, edges):
    reached, left = {row[0]}, True
    while left:
        left = {b for a, b in [*edges, *((b, a) for a, b in edges)] if a in reached and b in row} - reached
        reached |= left
    return reached == set(row)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_all_connected_sets_once(k):
    rng = np.random.default_rng(k)
    for _ in range(5):
        edges = [pair for pair in itertools.combinations(range(7), 2) if rng.random() < 0.3]
        graph = FactorGraph([2] * 7, [*edges, (0, 3, 6)])
        pairs = [*edges, (0, 3), (3, 6), (0, 6)]
        want = [list(row) for row in itertools.combinations(range(7), k) if hangs_together(row, pairs)]
        assert connected_sets.connected_sets(graph, k).tolist() == want


def test_components():
    near = connected_sets.neighbours(FactorGraph([2] * 6, [(0, 1), (1, 2), (3, 4)]))
    assert near == [[1], [0, 2], [1], [4], [3], []]
    assert connected_sets.components(range(6), near) == [[0, 1, 2], [3, 4], [5]]
    assert connected_sets.components([2, 0, 4], near) == [[0], [2], [4]]


def test_sets_stay_within_examples():
    graph = FactorGraph([2] * 5, [(0, 1), (2, 3), (3, 4)], examples=[0, 0, 1, 1, 1])
    assert connected_sets.all_sets(graph, 2).tolist() == [[0, 1], [2, 3], [2, 4], [3, 4]]
    assert connected_sets.connected_sets(graph, 3).tolist() == [[2, 3, 4]]


def test_too_many_sets_are_refused(monkeypatch):
    monkeypatch.setattr(connected_sets, "MOST", 20)
    with pytest.raises(TooLargeError, match="more than 20 connected sets of 3"):
        connected_sets.connected_sets(FactorGraph.complete(7), 3)
    with pytest.raises(TooLargeError, match="35 sets of 3 variables"):
        connected_sets.all_sets(FactorGraph.complete(7), 3)

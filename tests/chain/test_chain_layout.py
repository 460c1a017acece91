from __future__ import annotations

import numpy as np

from partita.chain.features.layout import ChainLayout


def test_layouts_align_by_name():
    first = ChainLayout(np.array(["A", "B"]), ["x", "y"], 2, np.array([[0, 0], [1, 1]]), np.array([[0, 1]]), True)
    second = ChainLayout(
        np.array(["A", "B", "C"]), ["y", "z", "x"], 3, np.array([[0, 1], [2, 0], [2, 2]]), np.array([[0, 1], [1, 2]]), True
    )
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    expected = [2.0, 1.0, -1.0, 3.0, -1.0, 4.0, 5.0, -1.0, 6.0, 7.0, -1.0]
    assert first.align(values, second, fill=-1.0).tolist() == expected
    assert first.union(second).state.tolist() == [[0, 1], [2, 0], [2, 2]]
    back = second.align(first.align(values, second), first)
    assert back.tolist() == values.tolist()


def test_labels_of_another_type_have_nothing_in_common():
    first = ChainLayout(np.array(["1", "2"]), None, 1, np.array([[0, 0]]), np.array([[0, 1]]), False)
    second = ChainLayout(np.array([1, 2]), None, 1, np.array([[0, 0]]), np.array([[0, 1]]), False)
    assert first.align(np.array([1.0, 2.0]), second).tolist() == [0.0, 0.0]


def test_attributes_without_weights_lose_their_names():
    layout = ChainLayout(
        np.array(["A", "B"]), ["x", "y", "z"], 3, np.array([[0, 0], [2, 1]]), np.array([[0, 1], [1, 1]]), False
    )
    trimmed = layout.trim()
    assert trimmed.names == ["x", "z"]
    assert trimmed.state.tolist() == [[0, 0], [1, 1]]
    assert trimmed.trim() is trimmed
    part = layout.restrict(np.array([False, True, True, False]))
    assert (part.state.tolist(), part.transitions.tolist(), part.size) == ([[2, 1]], [[0, 1]], 2)
    assert layout.dicts(np.arange(4.0)) == ({("x", "A"): 0.0, ("z", "B"): 1.0}, {("A", "B"): 2.0, ("B", "B"): 3.0}, {}, {})

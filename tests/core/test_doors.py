"""The checks that stand before kernels: sizes, sparse matrices, what stands for unknown."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partita import TooLargeError
from partita.core.arrays.sparse import check_compressed
from partita.core.arrays.unknown import is_unknown, refuse_ignored, refuse_spins
from partita.core.memory import available_memory, check_memory, in_units, product


def test_products_do_not_overflow():
    assert product([2] * 64) == 2**64
    assert product(np.array([5] * 28)) == 5**28
    assert product([]) == 1


def test_memory_is_compared_before_work():
    assert 0 < available_memory() < float("inf")
    check_memory("nothing", 1e3)
    with pytest.raises(TooLargeError, match=r"n_hidden=7 needs 8 EB; .* are free\. Lower n_hidden"):
        check_memory("n_hidden=7", 8e18, "Lower n_hidden")
    with pytest.raises(TooLargeError, match="more than 1e300 bytes"):
        check_memory("this", float("inf"))


@pytest.mark.parametrize(("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1e3, "1 kB"), (2.5e10, "25 GB")])
def test_bytes_for_people(size, text):
    assert in_units(size) == text


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("indices", np.array([0, 9, 1])),
        ("indices", np.array([0, -1, 1])),
        ("indices", np.array([0])),
        ("indices", np.array([0.0, 1.0, 1.0])),
        ("indptr", np.array([0, 5, 3])),
        ("indptr", np.array([1, 2, 3])),
        ("indptr", np.array([0, 2, 2**40])),
        ("indptr", np.array([0, 3])),
        ("data", np.array([1.0])),
    ],
)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
def test_broken_sparse_matrices_are_refused(kind, part, value):
    matrix = kind(np.array([[1.0, 0.0], [2.0, 3.0]]))
    check_compressed("X", matrix)
    setattr(matrix, part, value)
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        check_compressed("X", matrix)


def test_spins_and_ignored_labels_are_refused():
    refuse_spins("X", np.array([-1, 0, 1]), "")
    refuse_spins("X", np.array([1, 1]), "")
    refuse_spins("X", np.array([-1, -1]), "")
    for spins in ([-1, 1], [-1.0, 1.0, np.nan]):
        with pytest.raises(ValueError, match=r"X holds -1 and 1 only.*Give 0 and 1"):
            refuse_spins("X", np.array(spins), "Give 0 and 1")
    refuse_ignored("y", np.array(["-100"]), "")
    with pytest.raises(ValueError, match=r"y holds -100.*Use None"):
        refuse_ignored("y", np.array([1, -100]), "Use None")


def test_unknown_is_none_and_nan():
    pandas = pytest.importorskip("pandas")
    assert all(map(is_unknown, (None, float("nan"), np.float32("nan"), pandas.NA, pandas.NaT)))
    assert not any(map(is_unknown, (0, -1, "", "nan", np.str_("x"), 1.5, frozenset())))

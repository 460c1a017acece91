"""Sparse matrices whose arrays do not fit together are refused by everything that takes one, and never end the process."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from partita import SequenceData, SoftmaxRegression
from partita.core.arrays.sparse import sound_csr

PROGRAM = Path(__file__).with_name("broken_matrices.py")


def test_broken_matrices_never_end_the_process():
    done = subprocess.run([sys.executable, str(PROGRAM), "7", "4"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"exit {done.returncode} after {done.stdout.splitlines()[-1:]}: {done.stderr[-500:]}"
    counts = ast.literal_eval(done.stdout.splitlines()[-1])
    assert counts["refused"] > counts["taken"] > 0
    assert set(counts) == {"refused", "taken"}  # every refusal says that the matrix is broken


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dia", "dok"])
def test_whole_matrices_of_every_format_are_taken(kind):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    np.testing.assert_array_equal(sound_csr("X", sp.csr_matrix(X).asformat(kind)).toarray(), X)
    np.testing.assert_array_equal(sound_csr("X", sp.csr_array(X).asformat(kind)).toarray(), X)


def test_what_a_matrix_remembers_of_its_order_is_not_believed():
    rng = np.random.default_rng(0)
    X, y = sp.random_array((60, 5), density=0.5, random_state=rng, format="csr"), np.arange(60) % 3
    expected = SoftmaxRegression(tol=1e-10).fit(X.toarray(), y).coef_
    Y = X.copy()
    assert Y.has_canonical_format  # remembered from here on
    for i in range(60):
        row = slice(Y.indptr[i], Y.indptr[i + 1])
        Y.indices[row], Y.data[row] = Y.indices[row][::-1].copy(), Y.data[row][::-1].copy()
    np.testing.assert_allclose(SoftmaxRegression(tol=1e-10).fit(Y, y).coef_, expected, atol=1e-7)


def test_entries_behind_the_last_pointer_count_for_nothing():
    X = sp.csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0]]))
    X.indices, X.data = np.append(X.indices, 10**6), np.append(X.data, 7.0)
    np.testing.assert_array_equal(sound_csr("X", X).toarray(), [[1.0, 0.0], [0.0, 2.0]])
    data = SequenceData(X, [2])
    assert data.X.nnz == 2

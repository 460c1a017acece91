from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

import partita
from partita import ChainCRF, ModelFileError, SequenceData
from partita.estimators.labels import encode_labels
from partita.features.templates import Templates
from partita.io import read_columns

X = [[["a", "b"], ["c"]], [], [["b"]], [["a"], ["a"], ["d"]]]
Y = [["P", None], [], [{"P", "Q"}], ["Q", "P", "R"]]


@pytest.fixture
def data():
    return SequenceData.from_tokens(X, Y)


def same(a, b):
    np.testing.assert_array_equal(a.X.toarray(), b.X.toarray())
    np.testing.assert_array_equal(a.offsets, b.offsets)
    assert a.y == b.y
    assert a.attributes == b.attributes


def test_it_keeps_sequences_labels_and_names(data):
    assert len(data) == 4
    assert data.lengths.tolist() == [2, 0, 1, 3]
    assert data.y == Y
    assert data.attributes == ["a", "b", "c", "d"]
    assert data[0].toarray().tolist() == [[1, 1, 0, 0], [0, 0, 1, 0]]
    assert data[-1].shape == (3, 4)
    assert data[1].shape == (0, 4)
    assert [x.shape[0] for x in data] == [2, 0, 1, 3]
    with pytest.raises(IndexError):
        data[4]


def test_parts_are_chosen_by_sequence(data):
    for key in (slice(1, 4), [1, 2, 3], np.array([1, 2, 3]), np.array([False, True, True, True])):
        same(data[key], SequenceData(data.X[2:], [0, 1, 3], Y[1:], data.attributes))
    same(data[[3, 0]], SequenceData(sp.vstack([data[3], data[0]]), [3, 2], [Y[3], Y[0]], data.attributes))
    same(_safe_indexing(data, np.array([0, 3])), data[[0, 3]])
    first, second, y_first, y_second = train_test_split(data, Y, test_size=0.5, random_state=0)
    assert len(first) == len(second) == 2
    assert (first.y, second.y) == (y_first, y_second)


def test_files_keep_it(data, tmp_path):
    path = tmp_path / "data.partita"
    for given in (data, SequenceData(data.X, data.lengths), data[[0]], SequenceData(np.eye(2), [1, 1], [[1], [2]])):
        given.save(path)
        same(SequenceData.load(path), given)
    with pytest.raises(ModelFileError, match=r"use SequenceData\.load"):
        partita.load(path)
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    with pytest.raises(ModelFileError):
        SequenceData.load(path)
    ChainCRF().fit([[["a"]]], [["P"]]).save(path)
    with pytest.raises(ModelFileError, match="holds a ChainCRF"):
        SequenceData.load(path)


def test_files_with_impossible_content_are_refused(data, tmp_path):
    path = tmp_path / "data.partita"
    bad = SequenceData(data.X, data.lengths, Y)
    bad.labels.codes[0] = 99
    bad.save(path)
    with pytest.raises(ModelFileError, match="codes of labels must be from -2 to 2, got 99"):
        SequenceData.load(path)
    bad = data[[0, 2]]
    bad.X.indices[0] = 77
    bad.save(path)
    with pytest.raises(ModelFileError, match="damaged"):
        SequenceData.load(path)


def test_it_comes_from_columns():
    columns = read_columns(io.BytesIO(b"The DT\ncat NN\n\nA DT\n"))
    templates = Templates.parse("U0:%x[0,0]")
    data = SequenceData.from_columns(columns, templates)
    assert data.attributes == ["U0:The", "U0:cat", "U0:A"]
    assert data.y == [["DT", "NN"], ["DT"]]
    other = read_columns(io.BytesIO(b"A\ndog\n"))
    new = SequenceData.from_columns(other, templates, label=None, fit=False)
    assert new.y is None
    assert new.X.toarray().tolist() == [[0, 0, 1], [0, 0, 0]]
    assert ChainCRF().fit(data).predict(new)[0][0] == "DT"


def test_labels_become_codes():
    labels = encode_labels(Y, np.array([0, 2, 2, 3, 6]))
    assert labels.classes.tolist() == ["P", "Q", "R"]
    assert labels.codes.tolist() == [0, -1, -2, 1, 0, 2]
    assert labels.sets.tolist() == [[True, True, True], [True, True, False]]
    rest = labels.take(slice(0, 3)).compact()
    assert rest.classes.tolist() == ["P", "Q"]
    assert rest.codes.tolist() == [0, -1, -2]
    known = labels.take(slice(3, 5)).compact()
    assert known.sets is None
    assert known.classes.tolist() == ["P", "Q"]
    flat = encode_labels(np.array([3, 1, 3]), np.array([0, 1, 3]))
    assert (flat.classes.tolist(), flat.codes.tolist(), flat.sets) == ([1, 3], [1, 0, 1], None)


def test_the_users_matrix_is_not_changed():
    matrix = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 0]), np.array([0, 3])), shape=(1, 2))
    data = SequenceData(matrix, [1])
    assert data.X.toarray().tolist() == [[5.0, 1.0]]
    assert matrix.indices.tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="attributes must name each of the 2 columns"):
        SequenceData(matrix, [1], attributes=["a"])
    with pytest.raises(ValueError, match="integers >= 0"):
        SequenceData(matrix, [-1, 2])

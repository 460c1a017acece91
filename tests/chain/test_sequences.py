from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

import partita
from partita import ChainCRF, ModelFileError, SequenceData
from partita.estimators.labels import encode_labels
from partita.features import Templates
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: setattr(d, "offsets", np.array([0, 3, 2, 3, 6])), "lengths must be a vector of integers >= 0"),
        (lambda d: setattr(d, "offsets", np.array([0, 2, 2, 3, 9])), "must add up to the 6 rows"),
        (lambda d: setattr(d, "offsets", np.array([1, 2, 2, 3, 6])), "begins with 0"),
        (lambda d: setattr(d, "offsets", np.array([0.0, 2.0, 6.0])), "vector of int64"),
        (lambda d: d.X.indices.__setitem__(0, 77), "indices must be from 0 to 3, got 77"),
        (lambda d: d.X.indices.__setitem__(0, -1), "indices must be from 0 to 3, got -1"),
        (lambda d: d.X.indptr.__setitem__(1, 99), "broken sparse matrix"),
        (lambda d: setattr(d, "X", d.X.toarray()), "must be a CSR matrix"),
        (lambda d: d.labels.codes.__setitem__(0, 3), "codes of labels must be from -2 to 2, got 3"),
        (lambda d: d.labels.codes.__setitem__(0, -3), "codes of labels must be from -2 to 2, got -3"),
        (lambda d: setattr(d, "labels", d.labels.take([0])), "codes of labels must be 6 of int64"),
        (lambda d: d.attributes.pop(), "name each of the 4 columns"),
        (lambda d: setattr(d, "kind", "other"), "kind of SequenceData"),
    ],
)
def test_parts_that_do_not_fit_together_reach_no_kernel(data, change, message, tmp_path):
    change(data)
    for estimator in (ChainCRF(), partita.LatentDynamicCRF()):
        with pytest.raises(ValueError, match=message):
            estimator.fit(data)
    try:
        data.save(tmp_path / "data")
    except (AttributeError, TypeError):
        return  # it has no form in which it could be written
    with pytest.raises(ModelFileError, match="damaged"):
        SequenceData.load(tmp_path / "data")


def test_lengths_that_overflow_are_refused():
    with pytest.raises(ValueError, match="add up to the 4 rows of X, but one is 4611686018427387904"):
        SequenceData(np.ones((4, 1)), np.array([2**62] * 4 + [4]))
    with pytest.raises(ValueError, match="attributes must be different, got 'a' twice"):
        SequenceData(np.ones((2, 2)), [2], attributes=["a", "a"])
    with pytest.raises(ValueError, match="attributes must be strings, got 1"):
        SequenceData(np.ones((2, 2)), [2], attributes=["a", 1])


def test_broken_sparse_matrices_are_refused():
    bad = sp.csr_matrix(np.eye(3))
    bad.indices[0] = 99
    for given, more in (([bad], {}), (bad, {"lengths": [3]})):
        with pytest.raises(ValueError, match="is a broken sparse matrix: indices must be from 0 to 2, got 99"):
            ChainCRF().fit(given, [["A", "B", "A"]], **more)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": np.array([0, 5, 3, 6])}, "offsets must rise"),
        ({"offsets": np.array([0, 3])}, "offsets must rise"),
        ({"offsets": np.array([0, 0, 6])}, "without empty sequences"),
        ({"codes": np.full((6, 2), 50)}, "codes of column 0 must be from 0 to"),
        ({"codes": np.full((6, 2), -1)}, "codes of column 0 must be from 0 to"),
        ({"codes": np.zeros((6, 1), int)}, "a column for each of 2 vocabularies"),
        ({"line_numbers": np.arange(2)}, "one entry for each of 6 tokens"),
    ],
)
def test_columns_made_by_hand_are_checked(changes, message):
    columns = read_columns(io.BytesIO(b"a A\nb B\n\nc A\nd A\n\ne B\nf B\n"))
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(columns, **changes)


NAN = float("nan")


@pytest.mark.parametrize("unknown", [None, NAN, np.float32("nan")])
def test_unknown_is_none_and_nan(unknown):
    expected = ChainCRF().fit(X, [["P", None], [], ["P"], ["Q", "P", "R"]]).parameters_
    np.testing.assert_array_equal(ChainCRF().fit(X, [["P", unknown], [], ["P"], ["Q", "P", "R"]]).parameters_, expected)
    numbers = ChainCRF().fit(X, [np.array([0.0, np.nan]), [], [0.0], [1, 0, 2]])  # what pandas makes of 0 and missing
    np.testing.assert_array_equal(numbers.parameters_, expected)
    assert numbers.classes_.tolist() == [0, 1, 2]


def test_missing_of_pandas_is_unknown():
    pd = pytest.importorskip("pandas")
    y = [pd.Series([0, None], dtype="Int64"), [], [0], [1, pd.NA, 2]]
    assert encode_labels(y, np.array([0, 2, 2, 3, 6])).lists(np.array([0, 2, 2, 3, 6])) == [[0, None], [], [0], [1, None, 2]]


@pytest.mark.parametrize("form", [list, np.array])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, -100, 1], "y holds -100, which other libraries ignore.*Write None where a label is not known"),
        ([0, 1, -1, 1], "y holds -1 among integers.*Write None where a label is not known"),
        ([1, 1, -1, 1], r"y holds -1 and 1 only.*Give \(y \+ 1\) // 2, or strings"),
    ],
)
def test_minus_one_and_minus_hundred_are_neither_labels_nor_unknown(form, labels, message):
    tokens = [[["a"], ["b"]], [["c"], ["a"]]]
    for estimator in (ChainCRF(), partita.LatentDynamicCRF()):
        with pytest.raises(ValueError, match=message):
            estimator.fit(tokens, [form(labels[:2]), form(labels[2:])])
    with pytest.raises(ValueError, match=message):
        partita.HiddenChainCRF().fit(tokens * 2, form(labels))
    ChainCRF().fit(tokens, [[str(k) for k in labels[:2]], [str(k) for k in labels[2:]]])
    ChainCRF().fit(tokens, [[-5, 3], [-2, 3]])  # other numbers are


def test_bytes_are_no_labels():
    with pytest.raises(ValueError, match=r"decode bytes to strings, as with y.astype\(str\)"):
        ChainCRF().fit([[["a"], ["b"]]], [np.array([b"A", b"B"])])


@pytest.mark.parametrize("estimator", [ChainCRF, partita.HiddenChainCRF, partita.LatentDynamicCRF])
def test_sizes_are_compared_with_the_memory_before_work(estimator, monkeypatch):
    monkeypatch.setattr("partita.core.memory.available_memory", lambda: 2e9)
    y = [0, 1] if estimator is partita.HiddenChainCRF else [["A"], ["B"]]
    with pytest.raises(
        partita.TooLargeError, match=r"hashing=1073741824 columns needs 77.3 GB; 2 GB are free. Hash into fewer"
    ):
        estimator(hashing=2**30).fit([[["a"]], [["b"]]], y)


def test_answers_too_large_are_refused_before_work(monkeypatch):
    model = ChainCRF().fit([[["a"], ["b"]]], [["A", "B"]])
    long = [[["a"]] * 100] * 100
    monkeypatch.setattr("partita.core.memory.available_memory", lambda: 2e9)
    with pytest.raises(partita.TooLargeError, match="k=100000 best labellings of 100 sequences with 10000 positions needs"):
        model.predict_kbest(long, 10**5)
    with pytest.raises(partita.TooLargeError, match="size=1000000000000 samples of 1 sequences with 1 positions needs"):
        model.sample([[["a"]]], 10**12)
    chain = partita.structures.Chain(2, [100] * 100)
    potentials = np.zeros((10_000, 2)), np.zeros((2, 2))
    with pytest.raises(partita.TooLargeError, match=r"the k=100000 best labellings needs 8\.72 GB; 2 GB are free"):
        chain.kbest(potentials, 10**5)
    with pytest.raises(partita.TooLargeError, match="a sample of size=1000000000 needs"):
        chain.sample(potentials, 10**9)
    assert len(model.predict_kbest([[["a"]] * 3], 10**12)[0]) == 8  # there are no more

from __future__ import annotations

import copy
import io
import pickle

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from partita import ChainCRF, ColumnTagger
from partita.features import Templates
from partita.io import read_columns

FILE = b"the D\ncat N\n\na D\ncat N\nsat V\n"
TUPLES = [[("the", "D"), ("cat", "N")], [("a", "D"), ("cat", "N"), ("sat", "V")]]
WORDS, LABELS = [["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]]


def tagger(**options):
    return ColumnTagger(Templates.builtin("word"), ChainCRF(l2=0.1), **options)


def test_sentences_give_the_model_of_the_file():
    expected = tagger().fit(read_columns(io.BytesIO(FILE)))
    for data in ((TUPLES,), (WORDS, LABELS), ([[list(token) for token in row] for row in TUPLES],), (iter(WORDS), LABELS)):
        found = tagger().fit(*data)
        assert found.model.state_features_ == expected.model.state_features_
        for X in (WORDS, TUPLES, (iter(row) for row in WORDS)):
            assert found.predict(X) == LABELS
        assert found.predict([[], ["cat"], []]) == [[], ["N"], []]
        assert found.predict([[]]) == [[]]
        assert found.score(WORDS, LABELS) == 1.0
    assert expected.predict(WORDS) == LABELS


def test_held_out_sentences_stop_training():
    files = tagger().fit(read_columns(io.BytesIO(FILE)), read_columns(io.BytesIO(FILE)))
    lists = tagger().fit(WORDS, LABELS, WORDS, LABELS)
    assert (files.model.dev_scores_ == lists.model.dev_scores_).all()
    assert len(lists.model.dev_scores_)


def test_columns_of_frames_are_found_by_name(tmp_path):
    pd = pytest.importorskip("pandas")
    train = [pd.DataFrame(row, columns=["word", "tag"]) for row in TUPLES]
    for found in (tagger().fit(train), tagger().fit([frame[["word"]] for frame in train], LABELS)):
        assert found.predict([frame[["tag", "word"]] for frame in train]) == LABELS
        assert found.predict([frame[["word"]] for frame in train]) == LABELS
        assert found.predict([[{"word": "cat"}]]) == [["N"]]
        found.save(tmp_path / "model")
        assert ColumnTagger.load(tmp_path / "model").predict([frame[["tag", "word"]] for frame in train]) == LABELS
        with pytest.raises(ValueError, match="X lacks 'word'"):
            found.predict([frame[["tag"]] for frame in train])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (([[("a", "D"), ("b",)]],), "sequence 0, position 1: 1 columns, but 2 before"),
        (([[("a", None)]],), "sequence 0, position 0: column 1 must be a string, got None"),
        ((WORDS, [[0, 1], [0, 1, 2]]), "labels of a ColumnTagger must be strings, got 0"),
        ((WORDS, LABELS[:1]), "as many sequences; got 2 and 1"),
        ((WORDS, [["D"], LABELS[1]]), "sequence 0 has 2 positions in X but 1 labels in y"),
        (("abc",), "X must be Columns, or a list of sentences"),
        (([],), "X has no tokens"),
        ((["ab"], [["D", "N"]]), "sentence 0 of X must be a list of tokens"),
    ],
)
def test_bad_sentences_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        tagger().fit(*data)


def test_messages_tell_sequence_and_position():
    with pytest.raises(ValueError, match="X, sequence 0, position 0: 3 columns, but 2 or 1 expected"):
        tagger().fit(TUPLES).predict([[("a", "b", "c")]])


def test_copies_label_as_the_original_does():
    X, y = [["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]]
    tagger = ColumnTagger(Templates.builtin("word"), ChainCRF(l2=0.1))
    with pytest.raises(NotFittedError, match="call fit first"):
        tagger.predict(X)
    assert tagger.fit(X, y).predict(X) == y
    for twin in (pickle.loads(pickle.dumps(tagger)), copy.deepcopy(tagger)):
        assert twin.predict(X) == y


def test_labels_may_be_arrays_of_pyarrow():
    pa = pytest.importorskip("pyarrow")
    X, y = [["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]]
    tagger = ColumnTagger(Templates.builtin("word"), ChainCRF(l2=0.1)).fit(X, [pa.array(labels) for labels in y])
    assert tagger.predict(X) == y


def test_parameters_are_those_of_scikit_learn():
    reading = {"separator": " "}
    made = tagger(columns=[0], reading=reading)
    assert made.get_params(deep=False).keys() == {"templates", "model", "label", "columns", "reading"}
    assert made.get_params()["model__l2"] == 0.1
    assert made.reading is reading
    twin = clone(made.fit(TUPLES))
    assert twin.model is not made.model
    assert not hasattr(twin, "columns_")
    with pytest.raises(NotFittedError, match="call fit first"):
        twin.predict(WORDS)
    assert twin.set_params(model__l2=0.2).fit(TUPLES).model.l2 == 0.2
    assert made.model.l2 == 0.1
    assert twin.predict(WORDS) == made.predict(WORDS)
    assert "ChainCRF" in repr(twin)


def test_a_search_finds_the_penalty():
    X, y = WORDS * 4, LABELS * 4
    search = GridSearchCV(tagger(), {"model__l2": [0.1, 1e6]}, cv=2).fit(X, y)
    assert search.best_params_ == {"model__l2": 0.1}
    assert search.predict(WORDS) == LABELS


def test_other_parts_are_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="templates must be a Templates, got 'word'"):
        ColumnTagger("word", ChainCRF()).fit(WORDS, LABELS)
    with pytest.raises(ValueError, match="model must be a ChainCRF, got None"):
        ColumnTagger(Templates.builtin("word"), None).fit(WORDS, LABELS)
    with pytest.raises(NotFittedError, match="call fit first"):
        tagger().save(tmp_path / "model")

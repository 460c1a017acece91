from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn import metrics as reference

from partita import metrics

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # scikit-learn's, of undefined ratios
KINDS = ("micro", "macro", "weighted")
PAIRS = st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=6), max_size=5).filter(any)


def _unzip(data):
    return [[a for a, _ in row] for row in data], [[b for _, b in row] for row in data]


def _flat(y):
    return [label for row in y for label in row]


@given(PAIRS, st.sampled_from([None, ["a", "b"], ["d", "a", "z"]]))
def test_scores_are_those_of_scikit_learn(data, labels):
    y_true, y_pred = _unzip(data)
    flat = _flat(y_true), _flat(y_pred)
    scores = metrics.label_scores(y_true, y_pred, labels=labels)
    each = reference.precision_recall_fscore_support(*flat, labels=labels, zero_division=0)
    for ours, theirs in zip((scores.precision, scores.recall, scores.f1, scores.support), each, strict=True):
        np.testing.assert_allclose(ours, theirs)
    for kind in KINDS:
        theirs = reference.precision_recall_fscore_support(*flat, labels=labels, average=kind, zero_division=0)[:3]
        np.testing.assert_allclose(scores.average(kind), theirs)
        f1 = metrics.flat_f1_score(y_true, y_pred, average=kind, labels=labels, zero_division=0)
        assert f1 == pytest.approx(theirs[2])
    report = reference.classification_report(*flat, labels=labels, zero_division=0, digits=3)
    assert metrics.flat_classification_report(y_true, y_pred, labels=labels, zero_division=0, digits=3) == report
    if labels is None:
        np.testing.assert_array_equal(metrics.confusion(y_true, y_pred).counts, reference.confusion_matrix(*flat))


@given(PAIRS)
def test_accuracies(data):
    y_true, y_pred = _unzip(data)
    assert metrics.token_accuracy(y_true, y_pred) == pytest.approx(reference.accuracy_score(_flat(y_true), _flat(y_pred)))
    whole = np.mean([a == b for a, b in zip(y_true, y_pred, strict=True)])
    assert metrics.sequence_accuracy(y_true, y_pred) == pytest.approx(whole)


def test_the_other_flat_scores():
    y_true, y_pred = [["a", "b"], ["b", "c", "c"]], [["a", "c"], ["b", "c", "a"]]
    flat = _flat(y_true), _flat(y_pred)
    assert metrics.flat_precision_score(y_true, y_pred, average="macro") == reference.precision_score(*flat, average="macro")
    assert metrics.flat_recall_score(y_true, y_pred, average="macro") == reference.recall_score(*flat, average="macro")
    theirs = reference.fbeta_score(*flat, beta=2, average="macro")
    assert metrics.flat_fbeta_score(y_true, y_pred, beta=2, average="macro") == theirs
    np.testing.assert_array_equal(
        metrics.flat_f1_score(y_true, y_pred, average=None, labels=["c", "a"]),
        reference.f1_score(*flat, average=None, labels=["c", "a"]),
    )


def test_two_labels_need_the_positive_one():
    y_true, y_pred = [["a", "b", "a"]], [["a", "b", "b"]]
    assert metrics.flat_f1_score(y_true, y_pred, pos_label="a") == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match=r"pos_label=1 is not one of the labels \['a', 'b'\]"):
        metrics.flat_f1_score(y_true, y_pred)
    assert metrics.flat_f1_score([[0, 1, 1]], [[0, 1, 0]]) == pytest.approx(2 / 3)


def test_confusion_of_some_labels():
    table = metrics.confusion([["a", "b", "c"]], [["b", "b", "a"]], labels=["c", "z", "a"])
    np.testing.assert_array_equal(table.counts, [[0, 0, 1], [0, 0, 0], [0, 0, 0]])
    lines = str(metrics.confusion([["a", "b"]], [["b", "b"]])).splitlines()
    assert [line.split() for line in lines[2:]] == [["a", "0", "1"], ["b", "0", "1"]]


def test_tables_show_labels_and_averages():
    lines = str(metrics.label_scores([["a", "b"]], [["b", "b"]])).splitlines()
    assert lines[3].split() == ["b", "0.5000", "1.0000", "0.6667", "1"]
    assert [line.split()[0] for line in lines[4:]] == list(KINDS)


def test_nothing_gives_zero():
    assert metrics.token_accuracy([[]], [[]]) == 0.0
    assert metrics.sequence_accuracy([], []) == 0.0
    assert metrics.label_scores([], []).average("weighted") == (0.0, 0.0, 0.0)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="labels must be distinct"):
        metrics.label_scores([["a"]], [["a"]], labels=["a", "a"])
    with pytest.raises(ValueError, match="kind must be 'micro', 'macro' or 'weighted', not 'mean'"):
        metrics.label_scores([["a"]], [["a"]]).average("mean")
    with pytest.raises(ValueError, match="sequence 0"):
        metrics.flat_f1_score([["a"]], [["a", "b"]], average="micro")

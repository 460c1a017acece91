"""Scores of label sequences against seqeval and sklearn-crfsuite, where they are installed."""

from __future__ import annotations

import numpy as np
import pytest

from partita import metrics

pytestmark = pytest.mark.filterwarnings("ignore")


def _labellings(letters, seed):
    rng = np.random.default_rng(seed)
    labels = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
    y_true = [rng.choice(labels, rng.integers(1, 9)).tolist() for _ in range(40)]
    return y_true, [[label if rng.random() < 0.8 else str(rng.choice(labels)) for label in row] for row in y_true]


@pytest.mark.parametrize(("scheme", "letters"), [("conlleval", "BI"), ("iob2", "BI"), ("iobes", "BIES")])
@pytest.mark.parametrize("seed", range(5))
def test_seqeval(scheme, letters, seed):
    labeling, v1 = (
        pytest.importorskip(f"seqeval.metrics.{name}", reason="no seqeval") for name in ("sequence_labeling", "v1")
    )
    from seqeval import scheme as schemes

    y_true, y_pred = _labellings(letters, seed)
    if scheme == "conlleval":
        theirs = labeling.precision_recall_fscore_support(y_true, y_pred, average=None)
    else:
        strict = getattr(schemes, scheme.upper())
        theirs = v1.precision_recall_fscore_support(y_true, y_pred, average=None, scheme=strict)
    precision, recall, f1, support = theirs
    ours = metrics.chunk_scores(y_true, y_pred, scheme=scheme)
    assert list(ours.by_type) == ["X", "Y"]
    np.testing.assert_allclose(precision, [c.precision for c in ours.by_type.values()])
    np.testing.assert_allclose(recall, [c.recall for c in ours.by_type.values()])
    np.testing.assert_allclose(f1, [c.f1 for c in ours.by_type.values()])
    np.testing.assert_array_equal(support, [c.true for c in ours.by_type.values()])


def test_where_seqeval_departs_from_conlleval():
    labeling = pytest.importorskip("seqeval.metrics.sequence_labeling", reason="no seqeval")
    for text, theirs, official in [("S-X S-X", 2, 1), ("E-X B-X", 2, 1), ("[-X ]-X", 1, 2)]:
        y = [text.split()]
        assert len(labeling.get_entities(y)) == theirs
        assert metrics.chunk_scores(y, y).overall.true == official


def test_sklearn_crfsuite():
    theirs = pytest.importorskip("sklearn_crfsuite.metrics", reason="no sklearn-crfsuite")
    y_true, y_pred = _labellings("BI", 0)
    labels = ["B-X", "I-X", "B-Y", "I-Y"]
    for average in ("weighted", "macro", "micro", None):
        for name in ("flat_f1_score", "flat_precision_score", "flat_recall_score"):
            np.testing.assert_allclose(
                getattr(metrics, name)(y_true, y_pred, average=average, labels=labels),
                getattr(theirs, name)(y_true, y_pred, average=average, labels=labels),
            )
    assert metrics.flat_accuracy_score(y_true, y_pred) == theirs.flat_accuracy_score(y_true, y_pred)
    assert metrics.sequence_accuracy_score(y_true, y_pred) == theirs.sequence_accuracy_score(y_true, y_pred)
    for options in ({"labels": labels, "digits": 3}, {}):
        report = theirs.flat_classification_report(y_true, y_pred, **options)
        assert metrics.flat_classification_report(y_true, y_pred, **options) == report

"""Accuracy of label sequences, position by position: tables, confusion, and the names that sklearn-crfsuite uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ..core.results import FloatArray, IntArray
from .tables import format_table

Labellings = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Encoded:
    """Two labellings of the same sequences as codes into the sorted `labels`, stacked; `offsets` tells where each starts."""

    labels: tuple[Any, ...]
    true: IntArray
    pred: IntArray
    offsets: IntArray


def encode(y_true: Labellings, y_pred: Labellings) -> Encoded:
    """Replace labels by small integers, once, after checking that the two labellings have the same lengths."""
    lengths = [_lengths(y, name) for y, name in ((y_true, "y_true"), (y_pred, "y_pred"))]
    if len(lengths[0]) != len(lengths[1]):
        raise ValueError(f"y_true has {len(lengths[0])} sequences, y_pred {len(lengths[1])}: expected as many")
    different = np.flatnonzero(lengths[0] != lengths[1])
    if different.size:
        i = int(different[0])
        raise ValueError(
            f"sequence {i} (counted from 0) has {lengths[0][i]} labels in y_true and {lengths[1][i]} in y_pred: "
            "expected as many"
        )
    codes: defaultdict[Hashable, int] = defaultdict()
    codes.default_factory = codes.__len__
    n = int(lengths[0].sum())
    true, pred = (np.fromiter(map(codes.__getitem__, chain.from_iterable(y)), np.int64, n) for y in (y_true, y_pred))
    found = list(codes)
    try:
        order = sorted(range(len(found)), key=found.__getitem__)  # type: ignore[arg-type]
    except TypeError as error:
        raise ValueError(f"labels of one type are expected in y_true and y_pred: {error}") from error
    rank = np.empty(len(found), np.int64)
    rank[order] = np.arange(len(found))
    offsets = np.concatenate([[0], np.cumsum(lengths[0])])
    return Encoded(tuple(found[i] for i in order), rank[true], rank[pred], offsets)


def _lengths(y: Labellings, name: str) -> IntArray:
    for i, labels in enumerate(y):
        if isinstance(labels, str) or not hasattr(labels, "__len__"):
            raise ValueError(f"{name} must be a list of sequences of labels, but its entry {i} is {labels!r}")
    return np.fromiter(map(len, y), np.int64, len(y))


def ratio(part: Any, whole: Any) -> Any:
    """`part / whole`, and 0 where the whole is 0."""
    part, whole = np.asarray(part, float), np.asarray(whole, float)
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0)


def token_accuracy(y_true: Labellings, y_pred: Labellings) -> float:
    """Share of positions with the right label; 0 without positions.

    >>> token_accuracy([["O", "B-X"]], [["O", "O"]])
    0.5
    """
    both = encode(y_true, y_pred)
    return float(ratio(np.count_nonzero(both.true == both.pred), both.true.size))


def sequence_accuracy(y_true: Labellings, y_pred: Labellings) -> float:
    """Share of sequences without a single wrong label; 0 without sequences."""
    both = encode(y_true, y_pred)
    wrong = np.concatenate([[0], np.cumsum(both.true != both.pred)])[both.offsets]
    return float(ratio(np.count_nonzero(np.diff(wrong) == 0), len(both.offsets) - 1))


@dataclass(frozen=True)
class Confusion:
    """`counts[i, j]` positions of true label `labels[i]` got label `labels[j]`. ``print`` it, or take the array."""

    labels: tuple[Any, ...]
    counts: IntArray

    def __str__(self) -> str:
        names = [str(label) for label in self.labels]
        rows = [[name, *map(str, row)] for name, row in zip(names, self.counts.tolist(), strict=True)]
        return format_table(["true \\ predicted", *names], rows)


def confusion(y_true: Labellings, y_pred: Labellings, labels: Iterable[Any] | None = None) -> Confusion:
    """Count the pairs of true and predicted label, for the `labels` given (all that occur, sorted, by default)."""
    both = encode(y_true, y_pred)
    wanted, where = _select(both, labels)
    n = len(both.labels)
    counts = np.bincount(both.true * n + both.pred, minlength=n * n).reshape(n, n)
    padded = np.pad(counts, ((0, 1), (0, 1)))
    return Confusion(wanted, padded[np.ix_(where, where)])


@dataclass(frozen=True)
class LabelScores:
    """Precision, recall, F1 and support of every label, and averages. ``print`` it, or take the arrays."""

    labels: tuple[Any, ...]
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray
    support: IntArray
    predicted: IntArray
    correct: IntArray

    def average(self, kind: str) -> tuple[float, float, float]:
        """Precision, recall and F1 averaged over the labels: `"micro"`, `"macro"` or `"weighted"` (by support)."""
        if kind == "micro":
            correct, predicted, support = self.correct.sum(), self.predicted.sum(), self.support.sum()
            return (
                float(ratio(correct, predicted)),
                float(ratio(correct, support)),
                float(ratio(2 * correct, predicted + support)),
            )
        weights = {"macro": np.ones(len(self.labels)), "weighted": self.support}
        if kind not in weights:
            raise ValueError(f"kind must be 'micro', 'macro' or 'weighted', not {kind!r}")
        columns = np.stack([self.precision, self.recall, self.f1])
        precision, recall, f1 = ratio(columns @ weights[kind], weights[kind].sum()).tolist()
        return precision, recall, f1

    def __str__(self) -> str:
        scores = zip(self.labels, self.precision, self.recall, self.f1, self.support.tolist(), strict=True)
        total = int(self.support.sum())
        rows = [
            *scores,
            *((f"{kind} average", *self.average(kind), total) for kind in ("micro", "macro", "weighted")),
        ]
        return format_table(
            ["label", "precision", "recall", "F1", "support"],
            [[str(name), f"{p:.4f}", f"{r:.4f}", f"{f:.4f}", str(support)] for name, p, r, f, support in rows],
        )


def label_scores(y_true: Labellings, y_pred: Labellings, labels: Iterable[Any] | None = None) -> LabelScores:
    """Precision, recall and F1 of single positions, per label. A ratio without cases is 0.

    Parameters
    ----------
    y_true, y_pred : list of sequences of labels
    labels : iterable of labels, optional
        The rows wanted, and what the averages are over: without ``"O"``, for example. All that occur by default.
    """
    both = encode(y_true, y_pred)
    wanted, where = _select(both, labels)
    hit = both.true[both.true == both.pred]
    support, predicted, correct = (
        np.bincount(codes, minlength=len(both.labels) + 1)[where] for codes in (both.true, both.pred, hit)
    )
    return LabelScores(
        wanted,
        ratio(correct, predicted),
        ratio(correct, support),
        ratio(2 * correct, predicted + support),
        support,
        predicted,
        correct,
    )


def _select(both: Encoded, labels: Iterable[Any] | None) -> tuple[tuple[Any, ...], IntArray]:
    """The labels wanted and their codes; labels that do not occur have the code after the last."""
    if labels is None:
        return both.labels, np.arange(len(both.labels))
    wanted = tuple(labels)
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"labels must be distinct, got {list(wanted)}")
    codes = {label: i for i, label in enumerate(both.labels)}
    return wanted, np.array([codes.get(label, len(codes)) for label in wanted], np.int64)


flat_accuracy_score = token_accuracy
sequence_accuracy_score = sequence_accuracy


def flat_f1_score(y_true: Labellings, y_pred: Labellings, **options: Any) -> Any:
    """Scikit-learn's ``f1_score`` of all positions, with its options (`average`, `labels`, `zero_division`, …)."""
    return _by_sklearn("f1_score", y_true, y_pred, options)


def flat_precision_score(y_true: Labellings, y_pred: Labellings, **options: Any) -> Any:
    """Scikit-learn's ``precision_score`` of all positions, with its options."""
    return _by_sklearn("precision_score", y_true, y_pred, options)


def flat_recall_score(y_true: Labellings, y_pred: Labellings, **options: Any) -> Any:
    """Scikit-learn's ``recall_score`` of all positions, with its options."""
    return _by_sklearn("recall_score", y_true, y_pred, options)


def flat_fbeta_score(y_true: Labellings, y_pred: Labellings, beta: float, **options: Any) -> Any:
    """Scikit-learn's ``fbeta_score`` of all positions, with its options."""
    return _by_sklearn("fbeta_score", y_true, y_pred, {"beta": beta, **options})


def flat_classification_report(
    y_true: Labellings, y_pred: Labellings, labels: Iterable[Any] | None = None, **options: Any
) -> Any:
    """Scikit-learn's ``classification_report`` of all positions, with its options (`digits`, `output_dict`, …)."""
    if labels is not None:
        labels = list(labels)
    if options.get("target_names") is None:
        names = encode(y_true, y_pred).labels if labels is None else labels
        options = {**options, "target_names": [str(name) for name in names]}
    return _by_sklearn("classification_report", y_true, y_pred, {**options, "labels": labels})


def _by_sklearn(name: str, y_true: Labellings, y_pred: Labellings, options: dict[str, Any]) -> Any:
    """Call a function of ``sklearn.metrics`` on codes, which it sorts faster than strings."""
    from sklearn import metrics

    both = encode(y_true, y_pred)
    codes = {label: i for i, label in enumerate(both.labels)}
    if options.get("labels") is not None:
        options = {**options, "labels": [codes.setdefault(label, len(codes)) for label in options["labels"]]}
    if name != "classification_report" and options.get("average", "binary") == "binary" and len(both.labels) == 2:
        positive = options.get("pos_label", 1)
        if positive not in codes:
            raise ValueError(f"pos_label={positive!r} is not one of the labels {list(both.labels)}; give it, or average=")
        options = {**options, "pos_label": codes[positive]}
    return getattr(metrics, name)(both.true, both.pred, **options)

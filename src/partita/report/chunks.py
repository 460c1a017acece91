"""Chunks (phrases, named entities) in label sequences: precision, recall and F1, as the CoNLL shared tasks count them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.results import IntArray
from .labels import Encoded, Labellings, encode, ratio

BoolArray = NDArray[np.bool_]

SCHEMES = ("conlleval", "iob2", "iobes")

_TAGS = "OBIES[]."
_OTHER = len(_TAGS)


def _pairs(pairs: str) -> BoolArray:
    table = np.zeros((_OTHER + 1, _OTHER + 1), bool)
    for pair in pairs.split():
        table[_TAGS.index(pair[0]), _TAGS.index(pair[1])] = True
    return table


def _tags(letters: str) -> BoolArray:
    return np.array([tag in letters for tag in _TAGS] + [False])


_SINGLE = _tags("[]")
_TYPED = ~_tags("O.")
_STARTS = _pairs("BB IB OB OI OE EE EI") | _SINGLE[None, :]
_ENDS = _pairs("BB BO IB IO EE EI EO") | _SINGLE[:, None]


@dataclass(frozen=True)
class ChunkCounts:
    """Chunks in the true labels (`true`), in the predicted labels (`found`), and in both (`correct`)."""

    correct: int
    found: int
    true: int

    @property
    def precision(self) -> float:
        return float(ratio(self.correct, self.found))

    @property
    def recall(self) -> float:
        return float(ratio(self.correct, self.true))

    @property
    def f1(self) -> float:
        return float(ratio(2 * self.correct, self.found + self.true))

    def _percentages(self) -> str:
        # In the order of conlleval's operations, so that the last digit printed is the same.
        precision = 100 * self.correct / self.found if self.found else 0.0
        recall = 100 * self.correct / self.true if self.true else 0.0
        f1 = 2 * precision * recall / (precision + recall) if self.correct else 0.0
        return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


@dataclass(frozen=True)
class ChunkScores:
    """What `chunk_scores` found. ``print`` it for the text that conlleval prints, or take the numbers (shares of 1)."""

    scheme: str
    n_tokens: int
    n_correct_tokens: int
    overall: ChunkCounts
    by_type: Mapping[str, ChunkCounts]

    @property
    def precision(self) -> float:
        return self.overall.precision

    @property
    def recall(self) -> float:
        return self.overall.recall

    @property
    def f1(self) -> float:
        return self.overall.f1

    @property
    def accuracy(self) -> float:
        """Share of positions with the right label."""
        return float(ratio(self.n_correct_tokens, self.n_tokens))

    def __str__(self) -> str:
        total = self.overall
        lines = [
            f"processed {self.n_tokens} tokens with {total.true} phrases; "
            f"found: {total.found} phrases; correct: {total.correct}."
        ]
        if self.n_tokens:
            lines.append(f"accuracy: {100 * self.n_correct_tokens / self.n_tokens:6.2f}%; {total._percentages()}")
        lines += [f"{name:>17}: {counts._percentages()}  {counts.found}" for name, counts in self.by_type.items()]
        return "\n".join(lines)


def chunk_scores(y_true: Labellings, y_pred: Labellings, scheme: str = "conlleval") -> ChunkScores:
    """Compare chunks: one is correct if its first and last position and its type are.

    Parameters
    ----------
    y_true, y_pred : list of sequences of str
        Labels such as ``O``, ``B-NP``, ``I-NP``. The type is what follows the first dash.
    scheme : {"conlleval", "iob2", "iobes"}
        How labels make chunks.

        - ``"conlleval"``: what the shared tasks' script of that name (version 2004-01-26) does. It is lenient: ``I`` after
          ``O``, and any change of type, starts a chunk. It knows ``B I O E [ ]`` and no ``S``: neighbouring ``S-X S-X`` are
          one chunk to it, and ``B-X`` after ``E-X`` starts none, so score such labels as ``"iobes"``.
        - ``"iob2"``: strict; a chunk is ``B-X`` and the ``I-X`` that follow it. Other ``I-X`` belong to no chunk.
        - ``"iobes"``: strict; a chunk is ``S-X``, or ``B-X``, any number of ``I-X``, and ``E-X``. Anything else is no chunk.

        The strict schemes refuse labels with other prefixes.

    Notes
    -----
    The script takes a type called ``0`` for no type, and prints the line of chunks without type twice if both labellings
    have them. Here ``0`` is a type like others, and the line is printed once.

    Examples
    --------
    >>> y_true = [["B-NP", "I-NP", "O", "B-VP"]]
    >>> print(chunk_scores(y_true, [["B-NP", "I-NP", "O", "I-VP"]]))
    processed 4 tokens with 2 phrases; found: 2 phrases; correct: 2.
    accuracy:  75.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00
                   NP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
                   VP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
    >>> chunk_scores(y_true, [["B-NP", "I-NP", "O", "I-VP"]], scheme="iob2").recall
    0.5
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(map(repr, SCHEMES))}, not {scheme!r}")
    both = encode(y_true, y_pred)
    for label in both.labels:
        if not isinstance(label, str):
            raise ValueError(f"labels must be strings in y_true and y_pred to be read as chunks, got {label!r}")
    parts = [label.partition("-") for label in both.labels]
    if scheme != "conlleval":
        _check_labels(both, scheme)
    names = sorted({"", *(name for _, _, name in parts)})
    tag_of = np.array([_TAGS.index(tag) if tag and tag in _TAGS else _OTHER for tag, _, _ in parts], np.int64)
    type_of = np.array([names.index(name) for _, _, name in parts], np.int64)

    # An O stands before the first sequence, between sequences and after the last, as the script reads empty lines.
    rows = np.arange(both.true.size) + 1 + np.repeat(np.arange(len(both.offsets) - 1), np.diff(both.offsets))
    n_rows = both.true.size + len(both.offsets)
    true, pred = (
        _Rows(_scatter(rows, tag_of[c], n_rows), _scatter(rows, type_of[c], n_rows)) for c in (both.true, both.pred)
    )
    types = _count_lenient(true, pred) if scheme == "conlleval" else _count_strict(true, pred, closed=scheme == "iobes")
    counts = np.array([np.bincount(t, minlength=len(names)) for t in types])
    by_type = {name: ChunkCounts(*column) for name, column in zip(names, counts.T.tolist(), strict=True) if any(column)}
    n_correct = int(np.count_nonzero(both.true == both.pred))
    return ChunkScores(scheme, both.true.size, n_correct, ChunkCounts(*counts.sum(axis=1).tolist()), by_type)


def _check_labels(both: Encoded, scheme: str) -> None:
    for code, label in enumerate(both.labels):
        tag, _, name = label.partition("-")
        if tag not in tuple(scheme.removesuffix("2").upper()) or (tag == "O" and name):
            where = "y_true" if np.any(both.true == code) else "y_pred"
            expected = ", ".join(f"{letter}-<type>" for letter in scheme.removesuffix("2").upper() if letter != "O")
            raise ValueError(
                f"{where} has the label {label!r}, which scheme {scheme!r} does not know: expected O, {expected}"
            )


@dataclass(frozen=True)
class _Rows:
    """Codes of the tags (into `_TAGS`) and of the types, one row per position and per border of sequences."""

    tag: IntArray
    kind: IntArray


def _scatter(rows: IntArray, values: IntArray, size: int) -> IntArray:
    """Values at their rows; elsewhere 0, the code of the tag O and of no type."""
    out = np.zeros(size, np.int64)
    out[rows] = values
    return out


def _borders(rows: _Rows) -> tuple[BoolArray, BoolArray]:
    """Whether a chunk starts at, and whether one ended before, each row but the first, by conlleval's rules."""
    before, after = rows.tag[:-1], rows.tag[1:]
    changed = rows.kind[1:] != rows.kind[:-1]
    return _STARTS[before, after] | (_TYPED[after] & changed), _ENDS[before, after] | (_TYPED[before] & changed)


def _count_lenient(true: _Rows, pred: _Rows) -> tuple[IntArray, IntArray, IntArray]:
    """Types of the chunks that are correct, found, true.

    The script reads row by row and remembers whether a chunk began in both labellings and has agreed since. Such a chunk is
    settled at the first row where one of the two ends or the types differ, and is correct if both end there.
    """
    (start_true, end_true), (start_pred, end_pred) = _borders(true), _borders(pred)
    same = true.kind[1:] == pred.kind[1:]
    begun = np.concatenate([[0], np.cumsum(start_true & start_pred & same)])
    settled = np.flatnonzero(end_true | end_pred | ~same)
    open_there = np.diff(begun[settled], prepend=0) > 0
    correct = settled[open_there & (end_true & end_pred)[settled]]
    correct_types = true.kind[correct]
    if begun[-1] > (begun[settled[-1]] if settled.size else 0):
        correct_types = np.append(correct_types, true.kind[-1])
    return correct_types, pred.kind[1:][start_pred], true.kind[1:][start_true]


def _count_strict(true: _Rows, pred: _Rows, closed: bool) -> tuple[IntArray, IntArray, IntArray]:
    """Types of the chunks that are correct, found, true, where only well-formed ones count."""
    (start_true, end_true), (start_pred, end_pred) = _well_formed(true, closed), _well_formed(pred, closed)
    end_at = np.zeros(true.tag.size, np.int64)
    end_at[start_pred] = end_pred
    hit = start_true[(end_at[start_true] == end_true) & (pred.kind[start_true] == true.kind[start_true])]
    return true.kind[hit], pred.kind[start_pred], true.kind[start_true]


def _well_formed(rows: _Rows, closed: bool) -> tuple[IntArray, IntArray]:
    """First rows of the chunks, and the rows after their last. `closed` asks for E or S at the end."""
    before, after = rows.tag[:-1], rows.tag[1:]
    goes_on = _tags("BI")[before] & _tags("IE")[after] & (rows.kind[1:] == rows.kind[:-1])
    bounds = np.concatenate([[0], 1 + np.flatnonzero(~goes_on), [rows.tag.size]])
    start, end = bounds[:-1], bounds[1:]
    valid = _tags("B")[rows.tag[start]]
    if closed:
        valid = _tags("S")[rows.tag[start]] | (valid & _tags("E")[rows.tag[end - 1]])
    return start[valid], end[valid]

"""Sentences, as users have them, as tables of words."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays.columns import Columns
from ...core.arrays.unknown import is_unknown
from ..features.records import Frame, as_record, check_names


class TokenColumns:
    """Sentences as columns, with the empty ones left out.

    Parameters
    ----------
    X : list of sentences
        A sentence is a list of tokens, or a data frame with a row per token. A token is a string, or a list or tuple of
        strings, one for each column, or a row with names.
    y : list of lists of str, optional
        Labels, which become one more column.
    names : list of str, optional
        Names of the columns to take, where they have names.

    Attributes
    ----------
    columns : Columns
    full : array of bool
        Which sentences are not empty.
    names : list of str or None
        Names of the columns, without labels; None if they have none.
    """

    def __init__(self, X: Any, y: Any = None, names: list[str] | None = None) -> None:
        if isinstance(X, str | bytes | dict) or not isinstance(X, Iterable) or Frame.of(X) is not None:
            raise ValueError(f"X must be Columns, or a list of sentences, each a list of tokens; got {type(X).__name__}")
        self.names = names
        sentences = [self._sentence(sentence, i) for i, sentence in enumerate(X)]
        rows = [row for sentence in sentences for row in sentence]
        lengths = [len(sentence) for sentence in sentences]
        self.full: NDArray[np.bool_] = np.array(lengths, dtype=np.int64) > 0
        self._check_widths(sentences)
        if y is not None:
            labels = _labels(y, lengths)
            rows = [[*row, label] for row, label in zip(rows, labels, strict=True)]
        if not rows:
            raise ValueError("X has no tokens")
        self.columns: Columns = Columns.from_rows(rows, [length for length in lengths if length])

    def _sentence(self, sentence: Any, i: int) -> list[list[str]]:
        frame = Frame.of(sentence)
        tokens = frame.records() if frame is not None else sentence
        if isinstance(tokens, str | bytes | dict) or not isinstance(tokens, Iterable):
            raise ValueError(f"sentence {i} of X must be a list of tokens, got {tokens!r}")
        return [self._token(token, f"X, sequence {i}, position {t}") for t, token in enumerate(tokens)]

    def _token(self, token: Any, where: str) -> list[str]:
        record = None if isinstance(token, str) else as_record(token)
        if record is not None:
            if self.names is None:
                self.names = [str(name) for name in record]
            given = {str(name): value for name, value in record.items()}
            if not set(self.names) <= set(given):
                check_names(list(given), self.names, "columns are")
            values = [given[name] for name in self.names]
        elif isinstance(token, str | numbers.Real):
            values = [token]
        elif isinstance(token, Iterable) and not isinstance(token, bytes | set | frozenset):
            values = list(token)
        else:
            raise ValueError(f"{where}: a token must be a string, or a list of strings, one for each column; got {token!r}")
        return [_word(value, c, where) for c, value in enumerate(values)]

    def _check_widths(self, sentences: list[list[list[str]]]) -> None:
        width: int | None = None
        for i, sentence in enumerate(sentences):
            for t, row in enumerate(sentence):
                width = len(row) if width is None else width
                if len(row) != width:
                    raise ValueError(f"X, sequence {i}, position {t}: {len(row)} columns, but {width} before")


def _word(value: Any, c: int, where: str) -> str:
    if isinstance(value, str):
        return str(value)
    if is_unknown(value) or not isinstance(value, numbers.Real):
        raise ValueError(f"{where}: column {c} must be a string, got {value!r}")
    return str(value)


def _labels(y: Any, lengths: list[int]) -> list[str]:
    plain = [row.to_pylist() if hasattr(row, "to_pylist") else row for row in y]  # arrays of pyarrow
    rows = [list(row) if isinstance(row, Iterable) and not isinstance(row, str | bytes) else row for row in plain]
    if len(rows) != len(lengths):
        raise ValueError(f"X and y must have as many sequences; got {len(lengths)} and {len(rows)}")
    out: list[str] = []
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if not isinstance(row, list):
            raise ValueError(f"y must be a list with one list of labels per sequence; sequence {i} of y is {row!r}")
        if len(row) != length:
            raise ValueError(f"sequence {i} has {length} positions in X but {len(row)} labels in y")
        for t, label in enumerate(row):
            if not isinstance(label, str):
                raise ValueError(
                    f"labels of a ColumnTagger must be strings, got {label!r} at position {t} of sequence {i}; ChainCRF "
                    "takes integers, None and sets as well"
                )
            out.append(str(label))
    return out

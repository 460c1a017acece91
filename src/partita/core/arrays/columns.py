"""Tables of words: what a column file holds, as integers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Columns:
    """Tokens of sequences in a few columns of strings, each column coded by its own vocabulary.

    Attributes
    ----------
    codes : ndarray of int32, shape (n_tokens, n_columns)
        ``vocabularies[c][codes[i, c]]`` is the string of token i in column c.
    vocabularies : tuple of ndarray of object
        The different strings of each column, in the order in which they first came.
    offsets : ndarray of int64, shape (n_sequences + 1,)
        Sequence i is rows ``offsets[i]:offsets[i + 1]``; no sequence is empty.
    line_numbers : ndarray of int64, shape (n_tokens,)
        Where each token stands in its file, from 1; 0 if it came from no file.
    source : str
        Name of the file, for messages.
    parts : tuple of pairs (int, str)
        The first token and the name of each file, if they are several.
    """

    codes: NDArray[np.int32]
    vocabularies: tuple[NDArray[np.object_], ...]
    offsets: NDArray[np.int64]
    line_numbers: NDArray[np.int64]
    source: str
    parts: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        """Everything that is looked up by number is there: tables may be made by hand."""
        codes, offsets, lines = np.asarray(self.codes), np.asarray(self.offsets), np.asarray(self.line_numbers)
        if codes.ndim != 2 or codes.dtype.kind not in "iu" or codes.shape[1] != len(self.vocabularies):
            shape = f"{codes.shape} of {codes.dtype}"
            raise ValueError(
                f"codes must be integers with a column for each of {len(self.vocabularies)} vocabularies, got {shape}"
            )
        for c, words in enumerate(self.vocabularies):
            if len(codes) and not 0 <= codes[:, c].min() <= codes[:, c].max() < len(words):
                low, high = int(codes[:, c].min()), int(codes[:, c].max())
                raise ValueError(f"codes of column {c} must be from 0 to {len(words) - 1}, got {low if low < 0 else high}")
        if offsets.ndim != 1 or offsets.dtype.kind not in "iu" or not len(offsets) or int(offsets[0]) != 0:
            raise ValueError("offsets must be a vector of integers that begins with 0")
        if (offsets[1:] <= offsets[:-1]).any() or int(offsets[-1]) != len(codes):
            raise ValueError(f"offsets must rise from 0 to the number of tokens, {len(codes)}, without empty sequences")
        if lines.shape != (len(codes),):
            raise ValueError(f"line_numbers must have one entry for each of {len(codes)} tokens, got shape {lines.shape}")

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[str]], lengths: Sequence[int], source: str = "X") -> Columns:
        """From the strings of each token and the lengths of the sequences, which must not be 0."""
        width = len(rows[0]) if rows else 0
        codes, vocabularies = np.zeros((len(rows), width), np.int32), []
        for c in range(width):
            numbers: dict[str, int] = {}
            codes[:, c] = [numbers.setdefault(row[c], len(numbers)) for row in rows]
            words = np.empty(len(numbers), object)
            words[:] = list(numbers)
            vocabularies.append(words)
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return cls(codes, tuple(vocabularies), offsets, np.zeros(len(rows), np.int64), source)

    @property
    def n_columns(self) -> int:
        return len(self.vocabularies)

    @property
    def n_tokens(self) -> int:
        return len(self.codes)

    @property
    def n_sequences(self) -> int:
        return len(self.offsets) - 1

    def index(self, column: int) -> int:
        """A column's number from the left; -1 is the last one. A ValueError if there is none such."""
        if not -self.n_columns <= column < self.n_columns:
            raise ValueError(
                f"column {column} was asked for, but {self.source} has {self.n_columns} columns (0 is the first)"
            )
        return column % self.n_columns

    def values(self, column: int) -> NDArray[np.object_]:
        """The strings of one column, token by token."""
        c = self.index(column)
        return np.asarray(self.vocabularies[c][self.codes[:, c]])

    def sequences(self, column: int) -> list[list[str]]:
        """The strings of one column as a list per sequence."""
        values, edges = self.values(column).tolist(), self.offsets.tolist()
        return [values[lo:hi] for lo, hi in itertools.pairwise(edges)]

    def where(self, token: int) -> str:
        """File and line of a token, or sequence and position, for messages."""
        if not self.line_numbers[token]:
            i = int(np.searchsorted(self.offsets, token, side="right")) - 1
            return f"{self.source}, sequence {i}, position {token - self.offsets[i]}"
        source = next((name for first, name in reversed(self.parts) if first <= token), self.source)
        return f"{source}, line {self.line_numbers[token]}"

"""Sentences as users give them: tokens, or features of pairs of words; and the heads of their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays.potentials import real_array, whole_array
from ..core.arrays.sparse import sound_csr
from ..core.arrays.unknown import is_unknown
from ..core.results import BoolArray, IntArray
from .features.attributes import dense_pairs
from .structure.dependency_trees import DependencyTrees

#: What X may be: tokens, or numbers for each pair of a head and a dependent.
TOKENS, NUMBERS = "tokens", "numbers"

Token = Mapping[str, str]


@dataclass(frozen=True)
class Sentences:
    """Sentences as they were read.

    Attributes
    ----------
    kind : {"tokens", "numbers"}
    trees : DependencyTrees
        The structure of all of them.
    tokens : list of lists of dicts
        Empty for numbers.
    matrix : array or CSR matrix of shape (pairs, features), or None
        Of numbers.
    """

    kind: str
    trees: DependencyTrees
    tokens: list[list[Token]]
    matrix: Any

    def split(self, values: Any) -> list[Any]:
        """One number per word, sentence by sentence."""
        return np.split(values, self.trees.word_offsets[1:-1])


def read_sentences(X: Sequence[Any], single_root: bool, n_jobs: int | None) -> Sentences:
    """Read X; a ValueError says which sentence is wrong.

    A sentence is a list of tokens (dicts of strings, or strings), an array of shape (words + 1, words + 1, features) with
    heads first and the root as number 0, or a matrix, sparse or dense, with a row for each pair in the order of
    `DependencyTrees.pairs`.
    """
    if isinstance(X, str | Mapping) or sp.issparse(X) or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a list of sentences, got {type(X).__name__}")
    if not len(X):
        raise ValueError("X has no sentences")
    first = X[0]
    if sp.issparse(first) or np.ndim(first) in (2, 3):
        return _numbers(X, single_root, n_jobs)
    tokens = [_tokens(sentence, i) for i, sentence in enumerate(X)]
    trees = DependencyTrees([len(sentence) for sentence in tokens], single_root, n_jobs)
    return Sentences(TOKENS, trees, tokens, None)


def _tokens(sentence: Any, number: int) -> list[Token]:
    if isinstance(sentence, str | Mapping) or not hasattr(sentence, "__len__") or not len(sentence):
        raise ValueError(f"sentence {number} of X must be a list of tokens, at least one; got {sentence!r}"[:200])
    out: list[Token] = []
    for token in sentence:
        if isinstance(token, str):
            out.append({"form": token})
        elif isinstance(token, Mapping) and all(isinstance(key, str) for key in token):
            out.append(token)
        else:
            raise ValueError(
                f"sentence {number} of X has the token {token!r}"[:200]
                + ": tokens are strings, or dicts of strings such as {'form': 'the', 'upos': 'DET'}"
            )
    return out


def _numbers(X: Sequence[Any], single_root: bool, n_jobs: int | None) -> Sentences:
    lengths: list[int] = []
    parts: list[Any] = []
    sparse = sp.issparse(X[0])
    for i, given in enumerate(X):
        if sp.issparse(given) != sparse:
            raise ValueError(f"sentence {i} of X is {'dense' if sparse else 'sparse'}, others are not: give one kind")
        part = sound_csr(f"sentence {i} of X", given) if sparse else real_array(f"sentence {i} of X", given)
        if part.ndim == 3 and part.shape[0] == part.shape[1] >= 2:
            lengths.append(part.shape[0] - 1)
        elif part.ndim == 2 and part.shape[0] >= 1 and round(part.shape[0] ** 0.5) ** 2 == part.shape[0]:
            lengths.append(round(part.shape[0] ** 0.5))
        else:
            raise ValueError(
                f"sentence {i} of X must have shape (words + 1, words + 1, features), or (words^2, features) with a row for "
                f"each pair of a head and a dependent; got {part.shape}"
            )
        if parts and part.shape[-1] != parts[0].shape[-1]:
            raise ValueError(f"sentence {i} of X has {part.shape[-1]} features, the first has {parts[0].shape[-1]}")
        parts.append(part)
    trees = DependencyTrees(lengths, single_root, n_jobs)
    if sparse:
        return Sentences(NUMBERS, trees, [], sp.vstack(parts, format="csr"))
    if len({part.ndim for part in parts}) > 1:
        raise ValueError("X has sentences with two and with three dimensions: give one kind")
    return Sentences(NUMBERS, trees, [], np.concatenate(parts) if parts[0].ndim == 2 else dense_pairs(parts, trees))


@dataclass(frozen=True)
class KnownHeads:
    """What is known about the heads of all words.

    Attributes
    ----------
    heads : array of int64
        The head of each word, -1 where it is not known for certain.
    allowed : array of bool of shape (pairs,), or None
        The pairs that agree with what is known; None where all heads are.
    """

    heads: IntArray
    allowed: BoolArray | None = None

    def told(self, trees: DependencyTrees) -> BoolArray:
        """Whether anything is known about the head of each word."""
        if self.allowed is None:
            return np.ones(trees.n_words, bool)
        possible = np.repeat(trees.lengths, trees.lengths)  # a word may have as many heads as its sentence has words
        return (self.heads >= 0) | (np.add.reduceat(self.allowed, trees.word_starts, dtype=np.int64) < possible)

    def right(self, heads: IntArray, trees: DependencyTrees) -> BoolArray:
        """Whether these heads agree with what is known."""
        return heads == self.heads if self.allowed is None else self.allowed[trees.places(heads)]

    def named(self, trees: DependencyTrees) -> IntArray:
        """The pairs that were named: those of known heads and of sets of heads, not those of words that may have any."""
        if self.allowed is None:
            return trees.chosen(self.heads)
        return np.flatnonzero(self.allowed & np.repeat(self.told(trees), np.repeat(trees.lengths, trees.lengths)))


def read_known_heads(y: Sequence[Any], trees: DependencyTrees) -> KnownHeads:
    """The same as `read_heads`, where the entry of a word may also be None (any head) or a set of heads."""
    _check_count(y, trees)
    if not any(_is_open(head) for heads in y if isinstance(heads, list | tuple | np.ndarray) for head in heads):
        return KnownHeads(read_heads(y, trees))
    heads, allowed = np.full(trees.n_words, -1, np.int64), np.zeros(trees.n_pairs, bool)
    word = 0
    for i, (given, n) in enumerate(zip(y, trees.lengths.tolist(), strict=True)):
        if not isinstance(given, list | tuple | np.ndarray) or len(given) != n:
            raise ValueError(f"sentence {i} of y must have {n} heads, one for each word; got {given!r}"[:200])
        for number, head in enumerate(given, start=1):
            start = int(trees.word_starts[word])
            if is_unknown(head):
                allowed[start : start + n] = True
            else:
                for one in head if isinstance(head, set | frozenset) else (head,):
                    allowed[start + _place(one, number, n, i)] = True
                if not isinstance(head, set | frozenset):
                    heads[word] = int(head)
            word += 1
    empty = np.flatnonzero(~np.logical_or.reduceat(allowed, trees.word_starts))
    if len(empty):
        raise ValueError(f"y has a set without a head, for word {empty[0]} of all words")
    try:
        trees.log_partition(np.where(allowed, 0.0, -np.inf))
    except ValueError as error:
        reason = str(error).removeprefix("potentials ")
        raise ValueError(f"y allows no tree: its heads {reason}") from None
    return KnownHeads(heads, None if (heads >= 0).all() else allowed)


def _is_open(head: Any) -> bool:
    return is_unknown(head) or isinstance(head, set | frozenset)


def _place(head: Any, number: int, n: int, sentence: int) -> int:
    """Where a head is among those of the word `number`."""
    if isinstance(head, bool) or not isinstance(head, int | np.integer) or not 0 <= head <= n or head == number:
        raise ValueError(
            f"sentence {sentence} of y has {head!r} for word {number}: heads are integers from 0, the root, to {n}, other "
            "than the word itself; None where a head is not known, or a set of heads"
        )
    return int(head) - int(head > number)


def _check_count(y: Any, trees: DependencyTrees) -> None:
    if not hasattr(y, "__len__") or len(y) != trees.n_sentences:
        got = len(y) if hasattr(y, "__len__") else type(y).__name__
        raise ValueError(f"y must have the heads of {trees.n_sentences} sentences, a list each; got {got}")


def read_heads(y: Sequence[Any], trees: DependencyTrees) -> IntArray:
    """The heads of all words: for each sentence as many integers as it has words, 0 for the root, as in CoNLL files."""
    _check_count(y, trees)
    parts = []
    for i, (heads, n) in enumerate(zip(y, trees.lengths.tolist(), strict=True)):
        part = whole_array(f"sentence {i} of y", heads, f"{n} integers, the head of each word")
        if part.shape != (n,):
            raise ValueError(f"sentence {i} of y must have {n} heads, one for each word; got shape {part.shape}")
        parts.append(part)
    return trees.trees(np.concatenate(parts))

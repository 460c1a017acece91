"""Attributes of pairs of tokens, for dependency parsing: what head and dependent are, what is beside them, their distance.

Words are integers (their places in a vocabulary), so that an attribute of a pair is one integer too, and those of all pairs
of all sentences come from a few operations on whole arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray, IntArray
from ..structure.dependency_trees import DependencyTrees

#: What is at a place: nothing (before the first word or behind the last), the artificial root, a word never seen.
OUTSIDE, ROOT, UNSEEN = 0, 1, 2
#: Columns with at most so many different values are looked at in triples too, with their neighbours.
FEW_VALUES = 100
#: Where distances are cut: 1, 2, 3, 4, 5, 6 to 10, beyond; with a sign for the direction, and one value for the root.
DISTANCES = np.array([1, 2, 3, 4, 5, 10])

#: A part of an attribute: whose ("head" or "dependent"), which column, how many words to the right; or the distance.
Atom = tuple[str, str, int]
DISTANCE: Atom = ("distance", "", 0)


@dataclass(frozen=True)
class PairAttributes:
    """A vocabulary of attributes of pairs, learned from trees.

    Attributes
    ----------
    values : dict
        The values of each column of the tokens; those that came together are sorted.
    keys : tuple of int64 arrays
        Of each template (see `templates`), the attributes that have a weight, sorted.
    """

    values: dict[str, list[str]]
    keys: tuple[IntArray, ...]

    @staticmethod
    def learned(sentences: Sequence[Sequence[Mapping[str, str]]], trees: DependencyTrees, named: IntArray) -> PairAttributes:
        """The attributes of the pairs that y names: others would only ever be evidence against."""
        columns = sorted({name for sentence in sentences for token in sentence for name in token})
        tokens = [token for sentence in sentences for token in sentence]
        values = {name: sorted({str(token[name]) for token in tokens if name in token}) for name in columns}
        empty = PairAttributes(values, ())
        codes = empty._codes(sentences)
        pairs = _Pairs.of(trees)
        keys = tuple(np.unique(empty._keys(template, codes, pairs.take(named))) for template in empty.templates)
        return PairAttributes(values, keys)

    def grown(
        self, sentences: Sequence[Sequence[Mapping[str, str]]], trees: DependencyTrees, named: IntArray
    ) -> tuple[PairAttributes, IntArray]:
        """With those of more trees, and where each attribute of before is among them; -1 where it is not, because its column
        has too many values now."""
        new = PairAttributes.learned(sentences, trees, named)
        values = {name: list(known) for name, known in self.values.items()}
        for name, found in new.values.items():
            known = set(values.setdefault(name, []))
            values[name] += [value for value in found if value not in known]
        both, parts = PairAttributes(values, ()), dict(zip(self.templates, self.keys, strict=True))
        others = dict(zip(new.templates, new.keys, strict=True))
        nothing, keys, starts, first = np.zeros(0, np.int64), [], {}, 0
        recoded = {template: self._recoded(template, part, both) for template, part in parts.items()}
        for template in both.templates:
            own = new._recoded(template, others[template], both) if template in others else nothing
            keys.append(np.union1d(recoded.get(template, nothing), own).astype(np.int64))
            starts[template] = first, keys[-1]
            first += len(keys[-1])
        place = [
            starts[template][0] + np.searchsorted(starts[template][1], part)
            if template in starts
            else np.full(len(part), -1)
            for template, part in recoded.items()
        ]
        return PairAttributes(values, tuple(keys)), np.concatenate([nothing, *place])

    def _recoded(self, template: tuple[Atom, ...], keys: IntArray, other: PairAttributes) -> IntArray:
        """Attributes in the numbers of a larger vocabulary."""
        codes = []
        for atom, part in zip(template, np.unravel_index(keys, [self._size(atom) for atom in template]), strict=True):
            if atom == DISTANCE:
                codes.append(part)
                continue
            number = {value: k for k, value in enumerate(other.values[atom[1]])}
            moved = np.array([*range(UNSEEN + 1), *(UNSEEN + 1 + number[value] for value in self.values[atom[1]])])
            codes.append(moved[part])
        found = np.ravel_multi_index(tuple(codes), [other._size(atom) for atom in template])
        return np.asarray(found, dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of attributes."""
        return sum(map(len, self.keys))

    @property
    def templates(self) -> list[tuple[Atom, ...]]:
        """What is combined to attributes: single words, pairs of them, and for few values their neighbours."""
        columns = list(self.values)
        few = [name for name in columns if len(self.values[name]) <= FEW_VALUES]
        out: list[tuple[Atom, ...]] = [(DISTANCE,)]
        for name in columns:
            head, dependent = ("head", name, 0), ("dependent", name, 0)
            out += [(head,), (dependent,), (head, DISTANCE), (dependent, DISTANCE), (head, dependent)]
        for name in few:
            head, dependent = ("head", name, 0), ("dependent", name, 0)
            out.append((head, dependent, DISTANCE))
            for a, b in itertools.product((-1, 1), (-1, 1)):
                out.append((head, ("head", name, a), dependent, ("dependent", name, b)))
            out += [(head, dependent, (whose, name, step)) for whose in ("head", "dependent") for step in (-1, 1)]
        for one, other in itertools.permutations(columns, 2):
            out.append((("head", one, 0), ("dependent", other, 0)))
        return out

    def names(self) -> list[str]:
        """What each attribute means."""
        out: list[str] = []
        for template, keys in zip(self.templates, self.keys, strict=True):
            sizes = [self._size(atom) for atom in template]
            parts = np.unravel_index(keys, sizes)
            out += [
                " & ".join(self._name(atom, int(code)) for atom, code in zip(template, row, strict=True))
                for row in zip(*parts, strict=True)
            ]
        return out

    def matrix(self, sentences: Sequence[Sequence[Mapping[str, str]]], trees: DependencyTrees) -> Any:
        """A row of zeros and ones for each pair of words, as a CSR matrix."""
        codes, pairs = self._codes(sentences), _Pairs.of(trees)
        rows, columns, first = [], [], 0
        for template, known in zip(self.templates, self.keys, strict=True):
            keys = self._keys(template, codes, pairs)
            place = np.minimum(np.searchsorted(known, keys), max(0, len(known) - 1))
            found = np.flatnonzero(known[place] == keys) if len(known) else np.zeros(0, np.int64)
            rows.append(found)
            columns.append(first + place[found])
            first += len(known)
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = (trees.n_pairs, self.size)
        return sp.csr_matrix((np.ones(len(row)), (row, column)), shape=shape)

    def _size(self, atom: Atom) -> int:
        return 2 * len(DISTANCES) + 3 if atom == DISTANCE else UNSEEN + 1 + len(self.values[atom[1]])

    def _name(self, atom: Atom, code: int) -> str:
        whose, column, step = atom
        if atom == DISTANCE:
            n = len(DISTANCES)
            return (
                "from the root"
                if code == 0
                else f"distance {'right' if code > n + 1 else 'left'} {(code - 1) % (n + 1) + 1}"
            )
        beside = f"{step:+d}" if step else ""
        value = {OUTSIDE: "outside", ROOT: "root", UNSEEN: "unseen"}.get(code)
        return f"{whose}{beside} {column}={self.values[column][code - UNSEEN - 1] if value is None else value}"

    def _codes(self, sentences: Sequence[Sequence[Mapping[str, str]]]) -> dict[str, IntArray]:
        """Values of each column as integers: sentences one after the other, each with the root first, and one outside."""
        lengths = [len(sentence) for sentence in sentences]
        starts = np.concatenate(([0], np.cumsum(np.array(lengths) + 2))).astype(np.int64)
        out = {}
        for name, values in self.values.items():
            number = {value: k + UNSEEN + 1 for k, value in enumerate(values)}
            codes = np.full(int(starts[-1]) + 1, OUTSIDE, np.int64)
            codes[starts[:-1]] = ROOT
            words = [number.get(str(token[name]), UNSEEN) if name in token else UNSEEN for s in sentences for token in s]
            codes[np.delete(np.arange(starts[-1]), np.concatenate([starts[:-1], starts[1:] - 1]))] = words
            out[name] = codes
        return out

    def _keys(self, template: tuple[Atom, ...], codes: dict[str, IntArray], pairs: _Pairs) -> IntArray:
        """One integer for each pair."""
        key = np.zeros(len(pairs.head), np.int64)
        for atom in template:
            whose, column, step = atom
            part = (
                pairs.distance
                if atom == DISTANCE
                else codes[column][(pairs.head if whose == "head" else pairs.dependent) + step]
            )
            key = key * self._size(atom) + part
        return key


@dataclass(frozen=True)
class _Pairs:
    """Head and dependent of pairs, as places in `PairAttributes._codes`, and how far apart they are."""

    head: IntArray
    dependent: IntArray
    distance: IntArray

    @staticmethod
    def of(trees: DependencyTrees) -> _Pairs:
        head, dependent = trees.pairs().T
        starts = np.concatenate(([0], np.cumsum(trees.lengths + 2)))[:-1]
        shift = np.repeat(starts, np.diff(trees.offsets))
        bucket = 1 + np.searchsorted(DISTANCES, np.abs(dependent - head))
        distance = np.where(head == 0, 0, bucket + np.where(dependent > head, len(DISTANCES) + 1, 0))
        return _Pairs(head + shift, dependent + shift, distance)

    def take(self, chosen: IntArray) -> _Pairs:
        return _Pairs(self.head[chosen], self.dependent[chosen], self.distance[chosen])


def dense_pairs(arrays: Sequence[FloatArray], trees: DependencyTrees) -> FloatArray:
    """Features of pairs, stacked, from arrays of shape (words + 1, words + 1, features) with heads first."""
    pairs, out = trees.pairs(), np.empty((trees.n_pairs, arrays[0].shape[2]))
    for i, array in enumerate(arrays):
        own = slice(int(trees.offsets[i]), int(trees.offsets[i + 1]))
        out[own] = array[pairs[own, 0], pairs[own, 1]]
    return out

"""Attributes of tokens: dicts and lists of strings, by the rules of python-crfsuite, as rows of a sparse matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.arrays.unknown import is_unknown
from .attribute_index import AttributeIndex, Codes, Indexed, KeyTable, assemble
from .records import Frame, as_record

#: Entries that are taken up together: few enough to stay in a cache.
BLOCK_ENTRIES = 50_000
#: Types of values that need no conversion, and whether they are text.
PLAIN: dict[type, bool] = {str: True, float: False, int: False, bool: False}
#: An odd number that spreads the bits of a hash, and what stands for the hash of a number.
MIX, NUMBER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


class AttributeVectorizer(Indexed):
    """Sequences of dicts or lists of strings as one sparse matrix, a row per token and a column per attribute.

    A token is a dict or a list, tuple or set of strings, or a row with names (see `features.records.as_record`), which is
    read as a dict; a data frame is a sequence of its rows. What a token means is what it means to python-crfsuite:

    - ``["a", "b"]``: attributes a and b of weight 1;
    - ``{"a": 0.5, "b": True, "c": 0}``: weights 0.5, 1 and 0;
    - ``{"a": "x"}``: attribute ``a:x`` of weight 1;
    - ``{"a": {...}}``, ``{"a": ["x"]}``, ``{"a": {"x"}}``: as the inner value, with ``a:`` before each name.

    Weights of an attribute that a token has twice are added. Attributes of weight zero stay as explicit zeros: CRFsuite has
    features for them too. ``pycrfsuite.ItemSequence`` objects are sequences as well. A plain string is refused as a token
    (python-crfsuite would take its letters), and so are weights that are not finite.

    Parameters
    ----------
    min_frequency : int
        Attributes that fewer tokens have in `fit_transform` are dropped. 0 and 1 keep all.
    hashing : int or None
        Number of columns to hash names into (see `AttributeIndex`), with no table of names and nothing to fit.

    Attributes
    ----------
    attributes_ : list of str
        Names of the columns, in the order in which they first came; empty with `hashing`.

    Examples
    --------
    >>> vectorizer = AttributeVectorizer()
    >>> X, offsets = vectorizer.fit_transform([[{"w": "The", "title": True}, {"w": "cat"}], [["w:cat", "last"]]])
    >>> vectorizer.attributes_
    ['w:The', 'title', 'w:cat', 'last']
    >>> X.toarray().tolist(), offsets.tolist()
    ([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]], [0, 2, 3])
    """

    def __init__(self, min_frequency: int = 0, hashing: int | None = None) -> None:
        super().__init__(min_frequency, hashing)

    def fit_transform(self, X: Iterable[Any]) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        """Number the attributes of `X`; return its matrix (float64, int32 indices sorted by row) and its offsets."""
        index = AttributeIndex(hashing=self.hashing)
        matrix, offsets = _encode(X, index.number, index)
        matrix = index.trim(matrix, self.min_frequency)
        self._index = index
        return matrix, offsets

    def transform(self, X: Iterable[Any]) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        """The matrix and offsets of other sequences; attributes that `fit_transform` did not see are dropped."""
        index = self._fitted()
        return _encode(X, index.find, index)

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays from which `from_state` makes the same vectorizer."""
        values, arrays = self._fitted().to_state()
        return {"min_frequency": self.min_frequency, **values}, arrays

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> AttributeVectorizer:
        vectorizer = cls(values["min_frequency"], values["hashing"])
        vectorizer._index = AttributeIndex.from_state(values, arrays)
        return vectorizer


class _BadTokenError(Exception):
    """What is wrong with a token; its place is known further up."""


def _encode(
    X: Iterable[Any], number: Callable[[list[str]], Codes], index: AttributeIndex
) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise ValueError(f"X must be a list of sequences of tokens, got {type(X).__name__}")
    counts: list[int] = []
    table, columns = KeyTable(), np.zeros(0, np.int32)
    indices, weights, lengths = [columns], [np.zeros(0)], [np.zeros(0, np.int64)]
    for block in _blocks(X, counts):
        names, codes, values = block.numbered(table)
        columns = np.append(columns, number(names))
        indices.append(columns[codes])
        weights.append(values)
        lengths.append(np.array(block.sizes, np.int64))
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    return assemble(np.concatenate(indices), np.concatenate(weights), np.concatenate(lengths), index.size), offsets


def _blocks(X: Iterable[Any], counts: list[int]) -> Iterator[_Block]:
    """Blocks of whole sequences; the lengths of the sequences are added to `counts`."""
    block = _Block(counts)
    for i, sequence in enumerate(X):
        if len(block.keys) >= BLOCK_ENTRIES:
            yield block
            block = _Block(counts)
        tokens = _tokens(sequence, i)
        kinds = set(map(type, tokens))
        if kinds == {dict}:
            block.add_dicts(tokens)
        elif kinds <= {list, tuple, set}:
            block.add_lists(tokens)
        else:
            for position, token in enumerate(tokens):
                token = _plain(token, i, position)
                (block.add_dicts if isinstance(token, dict) else block.add_lists)([token])
        counts.append(len(tokens))
    if block.sizes:
        yield block


def _tokens(sequence: Any, i: int) -> list[Any]:
    """The tokens of a sequence, which may be the rows of a data frame; an ItemSequence is known by its `items`."""
    if isinstance(sequence, list):
        return sequence
    frame = Frame.of(sequence)
    if frame is not None:
        return frame.records()
    if hasattr(sequence, "items") and not isinstance(sequence, Mapping) and not hasattr(sequence, "iloc"):
        sequence = sequence.items()
    if isinstance(sequence, str | bytes | Mapping) or not isinstance(sequence, Iterable):
        raise ValueError(f"sequence {i} of X must be a list of tokens, got {_shown(sequence)}")
    return list(sequence)


def _plain(token: Any, sequence: int, position: int) -> Any:
    """A token of any type as a dict or a list."""
    record = as_record(token)
    if record is not None:
        return record
    sized = isinstance(token, Iterable) and hasattr(token, "__len__")
    if isinstance(token, str | bytes) or not sized or getattr(token, "ndim", 1) != 1:
        hint = "; write [...] around a single attribute" if isinstance(token, str) else ""
        if isinstance(token, Real):
            hint = "; a sequence of numbers is a matrix with one column, np.reshape(sequence, (-1, 1))"
        raise _error(sequence, position, f"a token must be a dict or a list of strings, got {_shown(token)}{hint}")
    return list(token)


class _Block:
    """Entries of consecutive tokens: keys and values, flat.

    Equal entries are found by the 64-bit hashes of Python's strings, which have random keys: that two different attributes
    among a million are taken for one has a probability below 1e-7. Looking each up in a dict takes three times as long.
    """

    def __init__(self, counts: list[int]) -> None:
        self.counts = counts
        self.first = len(counts)
        self.keys: list[Any] = []
        self.values: list[Any] = []  # may be shorter than `keys`: the rest is 1.0
        self.sizes: list[int] = []

    def add_lists(self, tokens: list[Any]) -> None:
        self.keys.extend(chain.from_iterable(tokens))
        self.sizes.extend(map(len, tokens))

    def add_dicts(self, tokens: list[dict[Any, Any]]) -> None:
        self._fill()
        self.keys.extend(chain.from_iterable(tokens))
        self.values.extend(chain.from_iterable(map(dict.values, tokens)))
        self.sizes.extend(map(len, tokens))

    def numbered(self, table: KeyTable) -> tuple[list[str], Codes, NDArray[np.float64]]:
        """The names that are new in the table, the number of every entry's name, and every entry's weight."""
        types = list(map(type, self.values))
        if set(types) - PLAIN.keys():
            self._open()
            types = list(map(type, self.values))
        if set(map(type, self.keys)) - {str}:
            self.keys = [self._checked(at, _text, key) for at, key in enumerate(self.keys)]
        keys, values = self.keys, self.values
        weights = np.ones(len(keys))
        hashes = np.fromiter(map(hash, keys), np.int64, len(keys)).view(np.uint64) * MIX
        is_text = np.zeros(len(keys), bool)
        if values:
            is_text[: len(values)] = np.fromiter(map(PLAIN.__getitem__, types), bool, len(values))
            inner = np.full(len(keys), NUMBER)
            inner[: len(values)] = np.fromiter(map(hash, values), np.int64, len(values)).view(np.uint64)
            hashes += np.where(is_text, inner, NUMBER)
            numbers = np.flatnonzero(~is_text[: len(values)])
            weights[numbers] = self._weights(numbers.tolist())
        else:
            hashes += NUMBER
        codes, first = table.number((hashes & np.uint64(2**63 - 1)).view(np.int64))
        names = [
            f"{keys[at]}:{values[at]}" if text else keys[at]
            for at, text in zip(first.tolist(), is_text[first].tolist(), strict=True)
        ]
        return names, codes, weights

    def _fill(self) -> None:
        self.values.extend(repeat(1.0, len(self.keys) - len(self.values)))

    def _weights(self, at: list[int]) -> NDArray[np.float64]:
        try:
            weights = np.fromiter(map(float, map(self.values.__getitem__, at)), np.float64, len(at))
            bad = np.flatnonzero(~np.isfinite(weights))
        except OverflowError:
            weights, bad = np.zeros(0), np.arange(len(at))
        for k in bad.tolist():
            self._checked(at[k], _entry, self.keys[at[k]], self.values[at[k]])
        return weights

    def _open(self) -> None:
        """Replace nested entries by what is in them, and values of unusual types by strings or floats."""
        self._fill()
        keys: list[Any] = []
        values: list[Any] = []
        ends = [0]
        prefixes: dict[Any, _Prefix] = {}
        for at, (key, value) in enumerate(zip(self.keys, self.values, strict=True)):
            kind = type(value)
            if kind in PLAIN:
                keys.append(key)
                values.append(value)
            elif _is_flat(kind, value):
                if key not in prefixes:
                    prefixes[key] = _Prefix(self._checked(at, _text, key) + ":")
                keys.extend(map(prefixes[key].__getitem__, value))
                values.extend(value.values() if kind is dict else repeat(1.0, len(value)))
            else:
                for name, rest in self._checked(at, _opened, key, value):
                    keys.append(name)
                    values.append(rest)
            ends.append(len(keys))
        bounds = np.concatenate(([0], np.cumsum(self.sizes, dtype=np.int64)))
        self.sizes = np.diff(np.array(ends)[bounds]).tolist()
        self.keys, self.values = keys, values

    def _checked(self, entry: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on an entry; an error says where it is."""
        try:
            return function(*arguments)
        except _BadTokenError as error:
            token = int(np.searchsorted(np.cumsum(self.sizes), entry, side="right"))
            ends = np.cumsum(self.counts[self.first :])
            sequence = int(np.searchsorted(ends, token, side="right"))
            position = token - (int(ends[sequence - 1]) if sequence else 0)
            raise _error(self.first + sequence, position, str(error)) from None


def _is_flat(kind: type, value: Any) -> bool:
    """Whether a nested value holds nothing that must be opened or converted in turn."""
    if kind is dict:
        return set(map(type, value)) <= {str} and set(map(type, value.values())) <= PLAIN.keys()
    return kind in (list, set) and set(map(type, value)) <= {str}


class _Prefix(dict[str, str]):
    """Names with a prefix, each joined once."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __missing__(self, name: str) -> str:
        self[name] = joined = self.prefix + name
        return joined


def _opened(key: Any, value: Any) -> list[tuple[Any, Any]]:
    """The entries of one entry of a dict: several if its value is nested."""
    if isinstance(value, dict):
        prefix = _text(key) + ":"
        entries: list[tuple[Any, Any]] = []
        for name, rest in value.items():
            if type(rest) is str:
                entries.append((prefix + _text(name), rest))
            else:
                entries += [(prefix + inner, last) for inner, last in _opened(name, rest)]
        return entries
    if isinstance(value, list | set):
        prefix = _text(key) + ":"
        return [(prefix + _text(name), 1.0) for name in value]
    if isinstance(value, str | bytes):
        return [(_text(key), _text(value))]
    return [_entry(key, value)]


def _entry(key: Any, value: Any) -> tuple[str, float]:
    """Name and weight of an entry of a dict whose value is a number."""
    name = _text(key)
    try:  # older NumPy makes numbers of arrays with one entry
        weight = np.nan if isinstance(value, np.ndarray) and value.ndim else float(value)
    except (TypeError, ValueError, OverflowError):
        weight = np.nan
    if not np.isfinite(weight):
        expected = "a finite number, a bool, a string, or a dict, list or set"
        hint = "; leave out what is not known" if is_unknown(value) else ""
        raise _BadTokenError(f"the value of attribute {name!r} must be {expected}; got {_shown(value)}{hint}")
    return name, weight


def _text(name: Any) -> str:
    if type(name) is str:
        return name
    if isinstance(name, str):
        return str(name)
    if isinstance(name, bytes):
        try:
            return name.decode()
        except UnicodeDecodeError:
            raise _BadTokenError(f"attribute names must be UTF-8, got {name!r}") from None
    raise _BadTokenError(f"attribute names must be strings, got {_shown(name)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _error(sequence: int, position: int, what: str) -> ValueError:
    return ValueError(f"X, sequence {sequence}, position {position}: {what}")

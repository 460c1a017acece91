"""Attributes of tokens from columns of words, by templates like those of CRF++ and Wapiti.

A template is text with fields, such as ``U05:%x[-1,0]/%x[0,0]``: the value of column 0 one token back, and here. All tokens
are expanded at once: the codes of a template's fields are joined into one number, equal numbers are found by a hash table,
and a string is made once for each different one. Attributes are equal if their strings are, whichever template made them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.arrays.columns import Columns
from ...core.memory import check_memory
from ...core.validation import check_choice, check_count
from .attribute_index import AttributeIndex, Codes, Indexed, KeyTable, assemble

FIELD = re.compile(r"%(\w+)\[\s*([+-]?\d+)\s*,\s*(\d+)\s*\]")
BOUNDARIES = ("token", "drop")
#: Above it, what fields were joined so far is numbered before the next one.
LARGEST_KEY = 2**62
#: How far from its token a field may look, how many columns there may be, fields in a template, and characters in a file.
MOST_OFFSET, MOST_COLUMNS, MOST_FIELDS, MOST_CHARACTERS = 10_000, 10_000, 1_000, 10_000_000
BEGIN, END = "__BOS__", "__EOS__"
#: Templates that are shown in full.
SHOWN = 4


def _shape(word: str) -> str:
    """Kinds of characters, runs of a kind as one: Mc-Donald's7 is Xx-Xx'xd."""
    kinds = ("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)
    return re.sub(r"(.)\1+", r"\1", "".join(kinds), flags=re.DOTALL)


def _prefix(length: int) -> Callable[[str], str | None]:
    return lambda word: word[:length] if len(word) >= length else None


def _suffix(length: int) -> Callable[[str], str | None]:
    return lambda word: word[-length:] if len(word) >= length else None


def _flag(test: Callable[[str], bool]) -> Callable[[str], str | None]:
    return lambda word: "" if test(word) else None


#: What a field may take of a word; None means that the attribute is absent. Computed once for each different word.
FUNCTIONS: dict[str, Callable[[str], str | None]] = {
    "x": lambda word: word,
    "lower": str.lower,
    "shape": _shape,
    **{f"prefix{n}": _prefix(n) for n in (1, 2, 3, 4)},
    **{f"suffix{n}": _suffix(n) for n in (1, 2, 3, 4)},
    "isdigit": _flag(str.isdigit),
    "istitle": _flag(str.istitle),
    "isupper": _flag(str.isupper),
}


@dataclass(frozen=True)
class Field:
    """A function of the word in `column`, `offset` tokens further on."""

    offset: int
    column: int
    function: str = "x"

    def __str__(self) -> str:
        """As in a template file."""
        return f"%{self.function}[{self.offset},{self.column}]"


@dataclass(frozen=True)
class Template:
    """Text with fields: ``texts[0] field[0] texts[1] field[1] ... texts[-1]``."""

    texts: tuple[str, ...]
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        """As in a template file."""
        fields = [*map(str, self.fields), ""]
        return "".join(text + field for text, field in zip(self.texts, fields, strict=True))


class Templates(Indexed):
    """Templates, and the attributes they found in the columns they were fitted to.

    Parameters
    ----------
    templates : iterable of Template
        See also `Templates.parse` and `Templates.builtin`.
    boundary : {"token", "drop"}
        What fields beyond the ends of a sequence give. "token": ``_B-1``, ``_B-2``, … before it and ``_B+1``, … after it, as
        in CRF++. "drop": the attribute is absent, and first and last tokens have the attributes ``__BOS__`` and ``__EOS__``,
        as in CRFsuite's examples.
    min_frequency : int
        Attributes that fewer tokens have in `fit` are dropped. 0 and 1 keep all.
    hashing : int or None
        Number of columns to hash attributes into (see `AttributeIndex`), with nothing to fit.
    transitions : bool
        Whether there is a ``B`` line: weights for pairs of labels. Only kept, for whoever trains.

    Examples
    --------
    >>> import io
    >>> from partita.io import read_columns
    >>> columns = read_columns(io.BytesIO(b"The DT\\ncat NN\\n"))
    >>> X, attributes = Templates.parse("U00:%x[0,0]\\nU01:%x[-1,1]/%x[0,1]\\nB").fit(columns)
    >>> attributes
    ['U00:The', 'U00:cat', 'U01:_B-1/DT', 'U01:DT/NN']
    >>> X.toarray().tolist()
    [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    """

    def __init__(
        self,
        templates: Iterable[Template],
        *,
        boundary: str = "token",
        min_frequency: int = 0,
        hashing: int | None = None,
        transitions: bool = True,
    ) -> None:
        super().__init__(min_frequency, hashing)
        self.templates: tuple[Template, ...] = tuple(templates)
        self.boundary: str = check_choice("boundary", boundary, BOUNDARIES)
        self.transitions = transitions
        for template in self.templates:
            texts = template.texts
            if len(texts) != len(template.fields) + 1 or not all(isinstance(text, str) for text in texts):
                raise ValueError(f"a template must have one text more than fields, got {template!r}")
            _check_count_of_fields(len(template.fields), "a template")
        for field in self._fields():
            if field.function not in FUNCTIONS:
                raise ValueError(f"a field's function must be one of {', '.join(FUNCTIONS)}; got {field.function!r}")
            _check_reach(field.offset, field.column, "a field")

    def __repr__(self) -> str:
        count = len(self.templates)
        shown = [repr(str(template)) for template in self.templates[:SHOWN]] + (
            [f"… {count} in all"] if count > SHOWN else []
        )
        options = {name: vars(self)[name] for name in ("boundary", "min_frequency", "hashing", "transitions")}
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        return f"Templates([{', '.join(shown)}], {given})"

    @classmethod
    def parse(cls, text: str, **options: Any) -> Templates:
        """Read a template file of CRF++: ``U`` lines, ``B``, comments; `options` are those of the class.

        Beyond ``%x``, fields may be functions of the word: ``%lower[0,0]``, ``%shape[0,0]``, ``%suffix3[0,0]``, … (see
        `FUNCTIONS`). Bigram lines with fields, and Wapiti's ``*`` lines, are not supported.
        """
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"a template file has at most {MOST_CHARACTERS:,} characters, got {len(text):,}")
        templates, transitions = [], False
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            kind, where = line[0].upper(), f"template line {number}, {line if len(line) <= 80 else line[:77] + '...'!r}"
            if kind not in "UB":
                hint = "; write a U line and a B line" if kind == "*" else ""
                raise ValueError(f"{where}: lines must begin with U (attributes), B (pairs of labels) or #{hint}")
            template = _parse_line(line, where)
            if kind == "U":
                templates.append(template)
            elif template.fields:
                raise ValueError(f"{where}: pairs of labels with fields are not implemented; write B alone, or a U line")
            else:
                transitions = True
        if not templates:
            raise ValueError("a template file must have at least one line that begins with U")
        return cls(templates, transitions=transitions, **options)

    @classmethod
    def builtin(cls, name: str, **options: Any) -> Templates:
        """A set of templates by name, with ``boundary="drop"``; `options` are those of the class.

        - "chunking": words and part-of-speech tags in columns 0 and 1; exactly the attributes of CRFsuite's example.
        - "word": column 0 only; the word, its shape, ends and case, and its neighbours.
        - "ner": the same, and the tags in column 1.
        """
        check_choice("name", name, tuple(BUILTIN))
        return cls(BUILTIN[name], **{"boundary": "drop", **options})

    @property
    def n_columns(self) -> int:
        """How many columns the data must have."""
        return max((field.column + 1 for field in self._fields()), default=1)

    def fit(self, columns: Columns) -> tuple[sp.csr_matrix, list[str]]:
        """Number the attributes of `columns`; return its matrix (a row per token, indices sorted) and their names.

        Attributes are in the order of the templates, and within one in the order in which they first come.
        """
        index = AttributeIndex(hashing=self.hashing)
        matrix = index.trim(self._expand(columns, index, index.number), self.min_frequency)
        self._index = index
        return matrix, index.names

    def transform(self, columns: Columns) -> sp.csr_matrix:
        """The matrix of other columns; attributes that `fit` did not see are dropped."""
        index = self._fitted()
        return self._expand(columns, index, index.find)

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays from which `from_state` makes the same object."""
        index, arrays = self._fitted().to_state()
        values = {
            "templates": [
                {"texts": list(entry.texts), "fields": [[f.offset, f.column, f.function] for f in entry.fields]}
                for entry in self.templates
            ],
            "boundary": self.boundary,
            "min_frequency": self.min_frequency,
            "transitions": self.transitions,
        }
        return {**values, **index}, arrays

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Templates:
        templates = [
            Template(tuple(entry["texts"]), tuple(Field(*field) for field in entry["fields"]))
            for entry in values["templates"]
        ]
        options = {key: values[key] for key in ("boundary", "min_frequency", "hashing", "transitions")}
        made = cls(templates, **options)
        made._index = AttributeIndex.from_state(values, arrays)
        return made

    def _fields(self) -> list[Field]:
        return [field for entry in self.templates for field in entry.fields]

    def _expand(self, columns: Columns, index: AttributeIndex, number: Callable[[list[str]], Codes]) -> sp.csr_matrix:
        if columns.n_columns < self.n_columns:
            raise ValueError(
                f"the templates need {self.n_columns} columns, but {columns.source} has {columns.n_columns}; "
                "fields count columns from 0"
            )
        tokens = columns.n_tokens
        fields = len(set(self._fields()))
        check_memory(
            f"{len(self.templates)} templates with {fields} different fields, of {tokens} tokens,",
            tokens * (32.0 * (len(self.templates) + 2) + 8.0 * fields),
            "Use fewer templates, or give fewer sequences",
        )
        table = _FieldTable(columns, self.boundary == "token")
        ends = self.boundary == "drop"
        entries = np.empty((tokens, len(self.templates) + 2 * ends), np.int32)
        for t, template in enumerate(self.templates):
            codes, first = table.combine(template.fields)
            names = table.names(template, first)
            entries[:, t] = np.append(number(names), np.int32(-1))[codes]
        if ends:
            entries[:, -2:] = -1
            if tokens:
                entries[columns.offsets[:-1], -2] = number([BEGIN])
                entries[columns.offsets[1:] - 1, -1] = number([END])
        return assemble(entries.ravel(), np.ones(entries.size), np.full(tokens, entries.shape[1]), index.size)


class _FieldTable:
    """The values of fields at every token, as codes."""

    def __init__(self, columns: Columns, outside: bool) -> None:
        self.columns, self.outside = columns, outside
        lengths = np.diff(columns.offsets)
        self.before = np.arange(columns.n_tokens) - np.repeat(columns.offsets[:-1], lengths)
        self.after = np.repeat(columns.offsets[1:], lengths) - 1 - np.arange(columns.n_tokens)
        self._derived: dict[tuple[int, str], tuple[NDArray[np.int64], list[str]]] = {}
        self._shifted: dict[Field, tuple[NDArray[np.int64], NDArray[np.object_]]] = {}

    def combine(self, fields: tuple[Field, ...]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Number the different combinations: the code of every token (-1: absent), and where each code came first."""
        keys, radix = np.zeros(self.columns.n_tokens, np.int64), 1
        for field in fields:
            codes, words = self.field(field)
            if radix * len(words) > LARGEST_KEY:
                keys, radix = KeyTable().number(keys)[0].astype(np.int64), self.columns.n_tokens
            absent = (keys < 0) | (codes < 0)
            keys = keys * len(words) + codes
            keys[absent] = -1
            radix *= max(len(words), 1)
        return KeyTable().number(keys)

    def names(self, template: Template, rows: NDArray[np.int64]) -> list[str]:
        """The strings of a template at some tokens."""
        texts = template.texts
        if not template.fields:
            return [texts[0]] * len(rows)
        parts: list[Any] = []
        for text, field in zip(texts, template.fields, strict=False):
            codes, words = self.field(field)
            parts += [[text] * len(rows), words[codes[rows]].tolist()]
        if texts[-1]:
            parts.append([texts[-1]] * len(rows))
        return list(map("".join, zip(*parts, strict=True)))

    def field(self, field: Field) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
        """Codes of a field (-1: absent) and the strings they stand for."""
        if field not in self._shifted:
            self._shifted[field] = self._shift(field)
        return self._shifted[field]

    def _shift(self, field: Field) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
        codes, words = self._derive(field.column, field.function)
        step = abs(field.offset)
        room = self.before if field.offset < 0 else self.after
        inside = room >= step
        shifted = np.full(len(codes), -1, np.int64)
        at = np.flatnonzero(inside)
        shifted[at] = codes[at + field.offset]
        if self.outside and step:
            beyond = ~inside
            nearest = step - int(room[beyond].max(initial=0))  # no sequence reaches closer than that from outside
            shifted[beyond] = len(words) + step - room[beyond] - nearest
            sign = "-" if field.offset < 0 else "+"
            words = words + [f"_B{sign}{k}" for k in range(nearest, step + 1)]
        table = np.empty(len(words), object)
        table[:] = words
        return shifted, table

    def _derive(self, column: int, function: str) -> tuple[NDArray[np.int64], list[str]]:
        """Codes and strings of a function of a column, computed on its vocabulary."""
        key = (column, function)
        if key not in self._derived:
            codes, words = self.columns.codes[:, column].astype(np.int64), self.columns.vocabularies[column].tolist()
            if function != "x":
                results = [FUNCTIONS[function](word) for word in words]
                numbers = {result: k for k, result in enumerate(dict.fromkeys(r for r in results if r is not None))}
                lookup = np.array([-1 if result is None else numbers[result] for result in results], np.int64)
                codes, words = lookup[codes], list(numbers)
            self._derived[key] = codes, words
        return self._derived[key]


def _parse_line(line: str, where: str) -> Template:
    texts, fields, end = [], [], 0
    for match in FIELD.finditer(line):
        function, offset, column = match.groups()
        if function not in FUNCTIONS:
            raise ValueError(f"{where}: %{function} is unknown; fields are %{', %'.join(FUNCTIONS)}")
        _check_reach(_whole(offset), _whole(column), where)
        texts.append(line[end : match.start()])
        fields.append(Field(int(offset), int(column), function))
        end = match.end()
    _check_count_of_fields(len(fields), where)
    texts.append(line[end:])
    if any("%" in text for text in texts):
        raise ValueError(f"{where}: a field must look like %x[-1,0] (token offset, column)")
    return Template(tuple(texts), tuple(fields))


def _whole(digits: str) -> int:
    """An integer; one of very many digits is as good as any that is too large."""
    return int(digits[:12])


def _check_reach(offset: Any, column: Any, where: str) -> None:
    if abs(check_count("offset", offset, minimum=-(2**62))) > MOST_OFFSET:
        raise ValueError(f"{where}: a field looks at most {MOST_OFFSET:,} tokens back or ahead, got {offset:,}")
    if check_count("column", column) >= MOST_COLUMNS:
        raise ValueError(f"{where}: a field's column is below {MOST_COLUMNS:,}, got {column:,}")


def _check_count_of_fields(count: int, where: str) -> None:
    if count > MOST_FIELDS:
        raise ValueError(f"{where}: a template has at most {MOST_FIELDS:,} fields, got {count:,}")


def _window(name: str, column: int, *offsets: int, function: str = "x") -> Template:
    """Named the way CRFsuite's examples do: ``w[-1]|w[0]=in|the``."""
    label = "|".join(f"{name}[{offset}]" for offset in offsets) + "="
    return Template((label, *["|"] * (len(offsets) - 1), ""), tuple(Field(offset, column, function) for offset in offsets))


def _functions(*names: str) -> list[Template]:
    """Functions of the word itself; flags have a name only."""
    flag = {"isdigit", "istitle", "isupper"}
    return [Template((f"{name}[0]" + "=" * (name not in flag), ""), (Field(0, 0, name),)) for name in names]


_PAIRS = ((-2, -1), (-1, 0), (0, 1), (1, 2))
_TRIPLES = ((-2, -1, 0), (-1, 0, 1), (0, 1, 2))
_WORD = [
    *(_window("w", 0, offset) for offset in (-1, 0, 1)),
    *(_window("shape", 0, offset, function="shape") for offset in (-1, 0, 1)),
    *_functions("lower", *(f"{end}{n}" for end in ("prefix", "suffix") for n in (1, 2, 3, 4))),
    *_functions("isdigit", "istitle", "isupper"),
]
BUILTIN: dict[str, list[Template]] = {
    "chunking": [
        *(_window("w", 0, offset) for offset in range(-2, 3)),
        *(_window("w", 0, *pair) for pair in ((-1, 0), (0, 1))),
        *(_window("pos", 1, offset) for offset in range(-2, 3)),
        *(_window("pos", 1, *offsets) for offsets in (*_PAIRS, *_TRIPLES)),
    ],
    "word": _WORD,
    "ner": [*_WORD, *(_window("pos", 1, *offsets) for offsets in ((-1,), (0,), (1,), (-1, 0), (0, 1)))],
}

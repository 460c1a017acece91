"""Column files: one token a line, its columns separated by white space or a given separator, a blank line between sequences.

Files may be gzip-compressed (found by their first bytes, whatever their name). Lines stay bytes until their columns are
known, and only the different strings of a column are decoded.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..core.arrays.columns import Columns
from ..core.memory import check_memory
from ..core.validation import check_count, is_whole
from .text import GZIP, read_all

NEWLINE = 10
#: What bytes.split takes as white space.
IS_SPACE = np.isin(np.arange(256), list(b" \t\n\r\x0b\x0c"))
#: The end of a line and the blank line after it.
BLANK = re.compile(rb"\n[ \t\r\x0b\x0c]*\n")
#: Bytes that are read at a time from a file in blocks.
CHUNK = 1 << 20
#: How many times its size a text takes while it is read: as bytes, as words, as codes.
NEEDED = 8.0
CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
#: Options of `read_columns` and `iter_columns` for CoNLL-U: the ids 1-2 (multiword) and 1.1 (empty node) are no tokens.
CONLLU: dict[str, Any] = {"separator": "\t", "comments": "#", "skip": r"\d+[-.]\d+"}

Source = str | os.PathLike[str] | BinaryIO


@dataclass(frozen=True)
class Block:
    """Some whole sequences of a file, with the lines they came from.

    Attributes
    ----------
    columns : Columns
        Their tokens; none at all if only blank lines or comments were left at the end of a file.
    """

    columns: Columns
    _raw: bytes
    _first: int
    _layout: _Layout

    def append_column(self, labels: Sequence[str], out: BinaryIO) -> None:
        """Write the lines as they came, every token's with its label as one more column.

        Comments, blank lines and line endings are kept; a missing newline at the end of the file is added.
        """
        out.write(b"".join([line + b"\n" for line in self.lines(labels)]))

    def lines(self, *added: Sequence[str]) -> list[bytes]:
        """The lines as they came, without newlines; those of tokens with further columns, a list of strings for each."""
        lines, separator = _split_lines(self._raw), self._layout.separator
        for column in added:
            if len(column) != self.columns.n_tokens:
                raise ValueError(f"labels must have one entry for each of {self.columns.n_tokens} tokens, got {len(column)}")
        encoded = {word: word.encode(self._layout.encoding) for column in added for word in set(column)}
        for at, *words in zip(self.token_lines.tolist(), *added, strict=True):
            line = lines[at]
            body = line.rstrip(b"\r") if separator else line.rstrip()
            glue = separator or (b"\t" if b"\t" in body else b" ")
            lines[at] = glue.join([body, *map(encoded.__getitem__, words)]) + (b"\r" if line.endswith(b"\r") else b"")
        return lines

    @property
    def token_lines(self) -> NDArray[np.int64]:
        """Which of the `lines` each token is."""
        return self.columns.line_numbers - self._first


def read_columns(
    source: Source,
    *,
    columns: Sequence[int] | None = None,
    separator: str | None = None,
    comments: str | None = None,
    skip: str | None = None,
    encoding: str = "utf-8",
) -> Columns:
    r"""Read a whole column file.

    Parameters
    ----------
    source : path or binary stream
        Plain or gzip-compressed.
    columns : sequence of int or None
        Which columns to keep, in this order; -1 is the last. None keeps all.
    separator : str or None
        None: any run of ASCII white space. Otherwise one character, exactly once between two columns.
    comments : str or None
        Lines that begin with it are no tokens and do not end a sequence.
    skip : str or None
        A regular expression: lines whose whole first column matches are passed over like comments.
    encoding : str
        UTF-8 or another encoding that writes ASCII characters as ASCII does.

    Returns
    -------
    Columns

    Examples
    --------
    >>> import io
    >>> read_columns(io.BytesIO(b"The DT\ncat NN\n\nGo VB\n")).sequences(0)
    [['The', 'cat'], ['Go']]
    """
    layout = _Layout.check(columns, separator, comments, skip, encoding)
    with _opened(source) as (stream, name):
        return next(_blocks(stream, name, layout, None)).columns


def iter_columns(
    source: Source,
    tokens: int = 50_000,
    *,
    columns: Sequence[int] | None = None,
    separator: str | None = None,
    comments: str | None = None,
    skip: str | None = None,
    encoding: str = "utf-8",
) -> Iterator[Block]:
    """Read a column file in blocks of whole sequences, of about `tokens` lines; options as in `read_columns`.

    Every block has vocabularies of its own. Memory is bounded by the block (and by the longest sequence).
    """
    layout = _Layout.check(columns, separator, comments, skip, encoding)
    check_count("tokens", tokens, minimum=1)

    def read() -> Iterator[Block]:
        with _opened(source) as (stream, name):
            yield from _blocks(stream, name, layout, tokens)

    return read()


def check_reading(
    columns: Sequence[int] | None = None,
    separator: str | None = None,
    comments: str | None = None,
    skip: str | None = None,
    encoding: str = "utf-8",
) -> None:
    """Raise a ValueError unless these are options of `read_columns`."""
    _Layout.check(columns, separator, comments, skip, encoding)


def read_conllu(source: Source, columns: Iterable[str] = ("form", "upos", "xpos")) -> Columns:
    """Read columns of a CoNLL-U file by name: id, form, lemma, upos, xpos, feats, head, deprel, deps, misc."""
    names = list(columns)
    for name in names:
        if name not in CONLLU_COLUMNS:
            raise ValueError(f"columns must be names out of {', '.join(CONLLU_COLUMNS)}; got {name!r}")
    return read_columns(source, columns=[CONLLU_COLUMNS.index(name) for name in names], **CONLLU)


#: The options of `read_columns`.
READING = ("columns", "separator", "comments", "skip", "encoding")


@dataclass(frozen=True)
class _Layout:
    """The checked options of a reader, as bytes."""

    columns: tuple[int, ...] | None
    separator: bytes | None
    comments: bytes | None
    skip: re.Pattern[bytes] | None
    encoding: str

    @classmethod
    def check(
        cls, columns: Sequence[int] | None, separator: str | None, comments: str | None, skip: str | None, encoding: str
    ) -> _Layout:
        if columns is not None and not all(is_whole(c) for c in columns):
            raise ValueError(f"columns must be None or integers, got {columns!r}")
        try:
            encoding = codecs.lookup(encoding).name
            if "\t\n #".encode(encoding) != b"\t\n #":
                raise ValueError(f"encoding must write ASCII as ASCII, got {encoding!r}; convert the file to UTF-8")
        except (LookupError, TypeError) as error:
            raise ValueError(f"encoding must be the name of a text encoding, got {encoding!r}") from error
        if separator is not None and (not isinstance(separator, str) or len(separator) != 1 or separator in "\r\n"):
            raise ValueError(f"separator must be None or one character within a line, got {separator!r}")
        if comments is not None and (not isinstance(comments, str) or not comments):
            raise ValueError(f"comments must be None or the string that begins a comment, got {comments!r}")
        try:
            pattern = None if skip is None else re.compile(skip.encode())
        except (re.error, AttributeError) as error:
            raise ValueError(f"skip must be None or a regular expression, got {skip!r}") from error
        return cls(
            None if columns is None else tuple(columns),
            None if separator is None else separator.encode(),
            None if comments is None else comments.encode(),
            pattern,
            encoding,
        )


@contextmanager
def _opened(source: Source) -> Iterator[tuple[BinaryIO, str]]:
    """The uncompressed bytes of a source and its name; a stream of the caller's is left open."""
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file, _opened(file) as (content, _):
            yield content, os.fspath(source)
        return
    if isinstance(source, io.TextIOBase) or not hasattr(source, "read"):
        raise ValueError(f"source must be a path or a stream opened in binary mode, got {type(source).__name__}")
    name = getattr(source, "name", None)
    own = not isinstance(source, io.BufferedReader)
    stream: Any = io.BufferedReader(source) if own else source  # type: ignore[type-var]
    try:
        text: Any = io.BufferedReader(gzip.GzipFile(fileobj=stream), 1 << 20) if stream.peek(2)[:2] == GZIP else stream
        yield text, name if isinstance(name, str) else "<stream>"
    finally:
        if own:
            stream.detach()


def _pieces(stream: BinaryIO, name: str, tokens: int | None) -> Iterator[bytes]:
    """A file in pieces of at least `tokens` lines that end with a blank line; whole if `tokens` is None."""
    rest, lines, enough = b"", 0, 0
    try:
        if tokens is None:
            rest = read_all(stream, name)
        while tokens is not None and (chunk := b"".join(_chunks(stream, name, enough - len(rest)))):
            rest += chunk
            while tokens is not None:
                newlines = np.flatnonzero(np.frombuffer(rest, np.uint8) == NEWLINE)
                cut = BLANK.search(rest, int(newlines[max(tokens - 2, 0)])) if len(newlines) >= tokens else None
                if cut is None:
                    break
                yield rest[: cut.end()]
                rest, lines = rest[cut.end() :], lines + int(np.searchsorted(newlines, cut.end()))
            enough = 2 * len(rest)  # a sequence without end is not looked through again for every chunk
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        lines += rest.count(b"\n")
        raise ValueError(f"{name}, after line {lines}: the gzip data are damaged or cut off ({error})") from error
    yield rest


def _chunks(stream: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    """The next bytes of a stream, one chunk or as many as `size` takes, with a look at the memory there is."""
    total = 0
    while chunk := stream.read(CHUNK):
        total += len(chunk)
        check_memory(f"{name}: a sequence", NEEDED * total, "Is there no blank line between sequences?")
        yield chunk
        if total >= size:
            return


def _blocks(stream: BinaryIO, name: str, layout: _Layout, tokens: int | None) -> Iterator[Block]:
    reader = _Reader(name, layout)
    raw, first = b"", 1
    for piece in _pieces(stream, name, tokens):
        raw += piece
        block = reader.read(raw, first)
        if block.columns.n_tokens:
            yield block
            raw, first = b"", first + raw.count(b"\n")
    if not reader.width:
        raise ValueError(f"{name} is empty: it has no line with a token")
    if raw:
        yield reader.read(raw, first)


def _split_lines(raw: bytes) -> list[bytes]:
    """Lines without their newlines; the last one may lack it."""
    lines = raw.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _count_words(raw: bytes) -> np.ndarray:
    """How many words each line has."""
    content = np.frombuffer(raw if raw.endswith(b"\n") or not raw else raw + b"\n", np.uint8)
    space = IS_SPACE[content]
    ends = np.flatnonzero(space[1:] & ~space[:-1]) + 1
    newlines = np.flatnonzero(content == NEWLINE)
    return np.diff(np.searchsorted(ends, newlines, side="right"), prepend=0)


class _Reader:
    """Parses blocks of whole lines; remembers the number of columns."""

    def __init__(self, name: str, layout: _Layout) -> None:
        self.name, self.layout = name, layout
        self.width = self.width_line = 0

    def read(self, raw: bytes, first: int) -> Block:
        words, widths, tokens, blank = self._words(self._utf8(raw, first))
        numbers = first + np.flatnonzero(tokens)
        self._check_width(widths, numbers)
        chosen = self._chosen()
        codes = np.empty((len(chosen), len(numbers)), np.int32)
        vocabularies = []
        for row, column in zip(codes, chosen, strict=True):
            values = words[column :: self.width]
            vocabulary = {word: code for code, word in enumerate(dict.fromkeys(values))}
            row[:] = np.fromiter(map(vocabulary.__getitem__, values), np.int32, len(values))
            decoded = np.empty(len(vocabulary), object)
            decoded[:] = [word.decode() for word in vocabulary]
            vocabularies.append(decoded)
        starts = np.flatnonzero(np.diff(np.cumsum(blank)[tokens], prepend=-1))
        offsets = np.append(starts, len(numbers)) if len(numbers) else np.zeros(1, np.int64)
        return Block(Columns(codes.T, tuple(vocabularies), offsets, numbers, self.name), raw, first, self.layout)

    def _utf8(self, raw: bytes, first: int) -> bytes:
        """The same lines in UTF-8, without a byte order mark; errors name the line."""

        def line_of(position: int) -> str:
            line = first + raw.count(b"\n", 0, position)
            return f"{self.name}, line {line}"

        at = raw.find(b"\0")
        if at >= 0:
            raise ValueError(f"{line_of(at)}: a NUL byte; this is not a text file (or it is UTF-16: convert it to UTF-8)")
        try:
            text = raw.decode(self.layout.encoding)
        except UnicodeDecodeError as error:
            bad = raw[error.start : error.start + 1].hex()
            raise ValueError(
                f"{line_of(error.start)}: byte 0x{bad} is not {self.layout.encoding}; give the file's encoding"
            ) from error
        if self.layout.encoding != "utf-8":
            return text.encode()
        return raw.removeprefix(codecs.BOM_UTF8) if first == 1 else raw

    def _words(self, raw: bytes) -> tuple[list[bytes], np.ndarray, np.ndarray, np.ndarray]:
        """The words of all tokens, how many each token has, and which lines are tokens and which are blank."""
        separator, comments, skip = self.layout.separator, self.layout.comments, self.layout.skip
        if separator is None and comments is None and skip is None:
            counts = _count_words(raw)
            return raw.split(), counts[counts > 0], counts > 0, counts == 0
        lines = _split_lines(raw)
        blank = np.fromiter((not line or line.isspace() for line in lines), bool, len(lines))
        tokens = ~blank
        if comments is not None:
            tokens &= ~np.fromiter((line.startswith(comments) for line in lines), bool, len(lines))
        if skip is not None:
            at = np.flatnonzero(tokens)
            passed = (skip.fullmatch(lines[k].split(separator, 1)[0]) is not None for k in at.tolist())
            tokens[at] = ~np.fromiter(passed, bool, len(at))
        kept = [lines[k].rstrip(b"\r") for k in np.flatnonzero(tokens).tolist()]
        if separator is None:
            joined = b"\n".join(kept)
            return joined.split(), _count_words(joined), tokens, blank
        counts = np.fromiter((line.count(separator) + 1 for line in kept), np.int64, len(kept))
        return separator.join(kept).split(separator) if kept else [], counts, tokens, blank

    def _check_width(self, widths: np.ndarray, numbers: np.ndarray) -> None:
        if not len(widths):
            return
        if not self.width:
            self.width, self.width_line = int(widths[0]), int(numbers[0])
        wrong = np.flatnonzero(widths != self.width)
        if len(wrong):
            raise ValueError(
                f"{self.name}, line {numbers[wrong[0]]}: {_count(widths[wrong[0]])}, "
                f"but line {self.width_line} has {_count(self.width)}"
            )

    def _chosen(self) -> list[int]:
        if self.layout.columns is None or not self.width:
            return list(range(self.width))
        for column in self.layout.columns:
            if not -self.width <= column < self.width:
                raise ValueError(
                    f"{self.name}, line {self.width_line}: column {column} was asked for, "
                    f"but there are {_count(self.width)} (0 is the first)"
                )
        return [column % self.width for column in self.layout.columns]


def _count(columns: Any) -> str:
    return f"{columns} column{'s' if columns != 1 else ''}"

"""Whole text files, plain or gzip-compressed, with errors that name the line."""

from __future__ import annotations

import gzip
import os
import zlib

from .atomic import replacing

GZIP = b"\x1f\x8b"
Path = str | os.PathLike[str]


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without a byte order mark; gzip is found by its first bytes, whatever the name."""
    with open(path, "rb") as file:
        raw = file.read()
    name = os.fspath(path)
    if raw.startswith(GZIP):
        try:
            raw = gzip.decompress(raw)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{name}: the gzip data are damaged or cut off ({error})") from error
    at = raw.find(b"\0")
    if at >= 0:
        line = raw.count(b"\n", 0, at) + 1
        raise ValueError(f"{name}, line {line}: a NUL byte; this is not a text file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}, line {line}: not UTF-8 ({error.reason})") from error


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file whole or not at all; compressed if its name ends in .gz, the same bytes every time."""
    content = text.encode()
    if os.fspath(path).endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    with replacing(path) as file:
        file.write(content)

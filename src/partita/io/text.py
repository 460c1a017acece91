"""Whole text files, plain or gzip-compressed, with errors that name the line."""

from __future__ import annotations

import gzip
import os
import zlib
from typing import BinaryIO

from ..core.memory import check_memory
from .atomic import replacing

GZIP = b"\x1f\x8b"
CHUNK = 1 << 24
#: How many times its size a text takes while it is read: as bytes, as a string, as words.
NEEDED = 10.0
Path = str | os.PathLike[str]


def read_all(stream: BinaryIO, name: str) -> bytes:
    """All bytes of a stream, with a look at the memory there is: a compressed file may hold a thousand times its size."""
    chunks, total = [], 0
    while chunk := stream.read(CHUNK):
        chunks.append(chunk)
        total += len(chunk)
        check_memory(name, NEEDED * total, "Is it what you think it is? Read it in parts, or on a larger machine")
    return b"".join(chunks)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without a byte order mark; gzip is found by its first bytes, whatever the name."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        compressed = file.peek(2)[:2] == GZIP
        try:
            raw = read_all(gzip.GzipFile(fileobj=file), name) if compressed else read_all(file, name)  # type: ignore[arg-type]
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

"""What the commands share: output, and errors that name an option."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, TextIO

#: Exit status after Ctrl-C.
INTERRUPTED = 130


def say(text: str) -> None:
    """A line on standard error; if nobody can hear it, work goes on."""
    with suppress(AttributeError, OSError):  # there is none, or it is closed or full
        sys.stderr.write(text + "\n")


def standard_input() -> BinaryIO:
    """The bytes of standard input, or an error before any work."""
    if sys.stdin is None:
        raise ValueError("standard input is closed: name a file instead of -")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """Where bytes for standard output go, or an error before any work."""
    if sys.stdout is None:
        raise ValueError("standard output is closed: send it to a file or a pipe")
    return sys.stdout.buffer


def write(text: str) -> None:
    """Text on standard output."""
    standard_output().write(text.encode())  # UTF-8 like the data, whatever the terminal is


def open_missing() -> None:
    """Open the null device for each of the three standard streams that is closed.

    Else the next file to be opened would take its number, and be written to by whatever prints there.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def flush() -> None:
    """Write out what is left for standard output."""
    if sys.stdout is not None:
        sys.stdout.flush()


def give_up(stream: TextIO | None) -> None:
    """Forget what a broken stream still holds: Python would try again at exit, and complain."""
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())  # type: ignore[union-attr]
        os.close(null)


@contextmanager
def naming(name: str, value: str | None) -> Iterator[None]:
    """Let errors say which option they are about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name} {value}: {error}") from error


def check_output(path: str) -> None:
    """Fail before the work, not after it; - is standard output."""
    if path == "-":
        standard_output()
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise ValueError(f"{path} cannot be written: there is no folder {folder}")
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise ValueError(f"{path} cannot be written: it is a folder, or in one that is write-protected")


@contextmanager
def output(path: str) -> Iterator[BinaryIO]:
    """A file that is written whole or not at all; - is standard output."""
    from ..io.atomic import replacing

    if path == "-":
        out = standard_output()
        yield out
        out.flush()
    else:
        with replacing(path) as out:
            yield out

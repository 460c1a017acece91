"""What the commands share: output, and errors that name an option."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


def say(text: str) -> None:
    """A line on standard error."""
    sys.stderr.write(text + "\n")


def write(text: str) -> None:
    """Text on standard output."""
    sys.stdout.buffer.write(text.encode())  # UTF-8 like the data, whatever the terminal is


@contextmanager
def naming(name: str, value: str | None) -> Iterator[None]:
    """Let errors say which option they are about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name} {value}: {error}") from error


def check_output(path: str) -> None:
    """Fail before the work, not after it."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise ValueError(f"{path} cannot be written: there is no folder {folder}")
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise ValueError(f"{path} cannot be written: it is a folder, or in one that is write-protected")


@contextmanager
def output(path: str) -> Iterator[BinaryIO]:
    """A file that is written whole or not at all; - is standard output."""
    from .io import replacing

    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with replacing(path) as out:
            yield out

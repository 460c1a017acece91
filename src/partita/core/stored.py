"""Values that model files may hold besides numbers, text and arrays: frozen dataclasses that say so."""

from __future__ import annotations

from typing import TypeVar

C = TypeVar("C", bound=type)

#: Every class that said so, by name; it is there once its module was imported.
STORED: dict[str, type] = {}


def stored(cls: C) -> C:
    """Decorator: values of this class can be constructor parameters in a model file."""
    STORED[cls.__name__] = cls
    return cls

"""Names of a package that are imported when first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: dict[str, Any], homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a package, given its globals and the module of each name.

    Imports nothing else, so that ``import partita`` costs almost nothing.
    """
    own = package["__name__"]

    def find(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(f".{homes[name]}", own), name)
        raise AttributeError(f"module {own!r} has no attribute {name!r}")

    return find, lambda: sorted([*package, *package["__all__"]])

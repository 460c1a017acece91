"""What the library has, so that a table can tell what it lacks."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import partita


def classes(layer: str, wanted: Callable[[type], bool]) -> set[type]:
    """Public classes of a layer of all families (as ``"features"``) that are wanted."""
    found = set()
    for module in pkgutil.walk_packages(partita.__path__, "partita."):
        if layer not in module.name.split(".")[2:]:
            continue
        for name, member in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(member) and member.__module__ == module.name and not name.startswith("_") and wanted(member):
                found.add(member)
    return found


def offers(*names: str) -> Callable[[type], bool]:
    """Whether a class has all these methods, and is more than a protocol of them."""
    return lambda kind: (
        not getattr(kind, "_is_protocol", False) and all(callable(getattr(kind, name, None)) for name in names)
    )

"""Names of a package that are imported when first used, listed once: in the stub that type checkers read."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def names_of_stub(
    package: str, file: str, moved: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a module, from the ``from .module import Name as Name`` of its stub.

    Imports nothing else, so that ``import partita`` costs almost nothing. `moved` has the new modules of names that are
    elsewhere now: they are found for one more release, with a warning.
    """
    with open(file + "i", encoding="utf-8") as stub:
        homes = _homes(stub.read())
    anchor = package if file.endswith("__init__.py") else package.rpartition(".")[0]

    def find(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(homes[name], anchor), name)
        if moved is not None and name in moved:
            text = f"{package}.{name} is {moved[name]}.{name} now; the old name goes with the next release"
            warnings.warn(text, FutureWarning, stacklevel=2)
            return getattr(importlib.import_module(moved[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted(homes), sorted(homes)


def all_of(package: str) -> list[Any]:
    """All that is in the list of names of a package, imported."""
    module = importlib.import_module(package)
    return [getattr(module, name) for name in module.__all__]


def _homes(stub: str) -> dict[str, str]:
    """The module of each name."""
    homes = {}
    for statement in stub.split("from ")[1:]:
        module, _, names = statement.partition(" import ")
        for part in names.split(","):
            name = part.strip(" ()\n").partition(" as ")[0]
            if name:
                homes[name] = module
    return homes

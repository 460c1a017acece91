"""Parts of a family that its structures find by name: imported when first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def finder(homes: Mapping[str, str]) -> Callable[[str], Callable[..., Any]]:
    """A function from names to what is at their ``module:attribute``."""

    def find(name: str) -> Callable[..., Any]:
        module, attribute = homes[name].split(":")
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
        return found

    return find

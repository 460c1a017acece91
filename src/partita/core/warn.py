"""Warnings that point to the line of whoever called this package."""

from __future__ import annotations

import sys
import warnings

#: What stands between a user and us, scikit-learn's wrappers of methods among it.
WITHIN = ("partita", "sklearn", "contextlib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning that names the first caller outside the package, however deep within it we are."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in WITHIN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)

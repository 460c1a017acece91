"""What parameters of a `MatchingCRF` must be, and what a fitted one that comes from a file must have."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ModelFileError
from ...core.validation import check_count, check_real
from ...estimators.loaded import check_array, check_number, check_run, check_text
from ..features import Attribute

#: The kinds of features, and how many axes their parameters have.
KINDS = {"edges": 1, "nodes": 2, "attributes": 1}


def entropy_weight(name: str, value: Any) -> None:
    """A number above 0 and up to 1, or a pair of them."""
    for part in _parts(name, value, "a number above 0 and up to 1, or a pair of them for rows and columns"):
        if not 0.0 < check_real(name, part) <= 1.0:
            raise ValueError(f"{name} must be above 0 and up to 1, got {value!r}")


def edges_of_vertices(name: str, value: Any) -> None:
    """A whole number from 1, or a pair of them."""
    for part in _parts(name, value, "a whole number from 1, or a pair of them for rows and columns"):
        check_count(name, part, minimum=1)


def pairs_that_cannot_be(name: str, value: Any) -> None:
    """None, a function of an example, or a mask."""
    if value is None or callable(value):
        return
    mask = np.asarray(value)
    if mask.dtype != bool or mask.ndim not in (1, 2):
        raise ValueError(
            f"{name} must be True and False for pairs, of shape (n, m), or (edges,) where examples have edges; or a "
            f"function of an example that returns that or None; got shape {mask.shape} of {mask.dtype}"
        )


def _parts(name: str, value: Any, wanted: str) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        return (value,)
    if len(value) != 2:
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    return tuple(value)


def simplest(value: Any) -> Any:
    """One number for a pair of equal ones, and a tuple for another pair."""
    if not isinstance(value, tuple | list):
        return value
    return value[0] if value[0] == value[1] else tuple(value)


def check_fitted(model: Any, likelihoods: tuple[str, ...]) -> None:
    """Raise a ModelFileError unless a fitted model holds what it must."""
    if check_text(model, "kind_") not in KINDS:
        raise ModelFileError(f"kind_ must be one of {', '.join(KINDS)}, got {model.kind_!r}")
    if check_text(model, "likelihood_") not in likelihoods:
        raise ModelFileError(f"likelihood_ must be one of {', '.join(likelihoods)}, got {model.likelihood_!r}")
    size = _attributes_size(model) if model.kind_ == "attributes" else None
    check_array(model, "parameters_", (size,) * KINDS[model.kind_])
    check_array(model, "row_parameters_", (None,))
    check_array(model, "column_parameters_", (None,))
    check_number(model, "gap_")
    check_run(model)


def _attributes_size(model: Any) -> int:
    """How many parameters the attributes of a model have, if they are attributes."""
    found = getattr(model, "attributes_", None)
    if not isinstance(found, tuple) or not found or not all(isinstance(a, Attribute) for a in found):
        raise ModelFileError(f"attributes_ must be a tuple of Attribute, got {found!r}"[:300])
    for a in found:
        plain = isinstance(a.name, str) and isinstance(a.distance, bool) and isinstance(a.levels, tuple)
        if not plain or not all(isinstance(v, str | bool | int | float) and v == v for v in a.levels):
            raise ModelFileError(f"attributes_ must have a name, distance (true or false) and plain levels; got {a!r}"[:300])
        if len(set(a.levels)) < len(a.levels):
            raise ModelFileError(f"attributes_ must have each level once; {a.name!r} has not")
    if len({a.name for a in found}) < len(found):
        raise ModelFileError("attributes_ must have different names")
    return sum(a.distance + a.n_pairs for a in found)

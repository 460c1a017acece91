"""Methods that only some parameters allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.utils.metaestimators import available_if

M = TypeVar("M", bound=Callable[..., object])


def available(condition: Callable[[Any], bool]) -> Callable[[M], M]:
    """Decorator: the method is there if the condition holds for the estimator; it may raise an AttributeError that says why
    not. scikit-learn's `available_if`, with a type."""
    return cast(Callable[[M], M], available_if(condition))

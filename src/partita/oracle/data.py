"""Examples as users give them: features of parts, and whatever else their solver needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays.potentials import real_array
from ..core.arrays.sparse import sound_csr
from ..core.results import FloatArray
from ..inference.entropies import Entropy, GroupEntropy, IndependentEntropy
from ..inference.parts import Parts
from .features import PartFeatures
from .registry import find_oracle

INDEPENDENT, BETHE = "independent", "bethe"


@dataclass(frozen=True)
class Family:
    """How solvers and entropies are made: parameters of the estimator.

    Attributes
    ----------
    oracle : str, object or callable
        A solver, or with `per_example` what makes one from an example.
    entropy : str or Entropy
    groups : sequence, callable or None
        Of parts, for ``entropy="bethe"``.
    rho : number, array or None
    """

    oracle: Any
    per_example: bool = False
    delta: float = 0.0
    entropy: str | Entropy = INDEPENDENT
    groups: Any = None
    rho: Any = None

    def solver(self, x: Any, i: int, size: int) -> Parts:
        """The configurations of example `i`."""
        found = find_oracle(self.oracle)
        if self.per_example:
            if not callable(found):
                raise ValueError(f"with per_example=True oracle is a function of an example, got {type(found).__name__}")
            found = found(x)
        return Parts(size, found, f"example {i}", self.delta)

    def measure(self, x: Any, i: int, size: int) -> Entropy:
        """The entropy of example `i`."""
        if not isinstance(self.entropy, str):
            return self.entropy
        if self.entropy == INDEPENDENT:
            return IndependentEntropy()
        groups = self.groups(x) if callable(self.groups) else self.groups
        if groups is None and isinstance(x, Mapping):
            groups = x.get("groups")
        if groups is None:
            raise ValueError(
                f"entropy='bethe' needs groups of parts: the parameter groups (a list, or a function of an example), or "
                f"'groups' in the example; X[{i}] has none"
            )
        try:
            return GroupEntropy(size, groups, self.rho)
        except ValueError as error:
            raise ValueError(f"X[{i}]: {error}") from None


def read_features(X: Any) -> list[PartFeatures]:
    """Features of the parts of all examples; a ValueError says which one is wrong."""
    if isinstance(X, str | Mapping) or sp.issparse(X) or not isinstance(X, Sequence | np.ndarray):
        raise ValueError(f"X must be a list of examples, each with features of shape (features, parts); got {_kind(X)}")
    if not len(X):
        raise ValueError("X has no examples")
    found = [_features(x, i) for i, x in enumerate(X)]
    for i, features in enumerate(found):
        if features.size != found[0].size:
            raise ValueError(f"X[{i}] has {features.size} features for each part, X[0] has {found[0].size}")
    return found


def _kind(value: Any) -> str:
    return type(value).__name__


def _features(x: Any, i: int) -> PartFeatures:
    if isinstance(x, Mapping):
        if "features" not in x:
            raise ValueError(f"X[{i}] is a dict without 'features', an array of shape (features, parts)")
        x = x["features"]
    if sp.issparse(x):
        matrix = sound_csr(f"X[{i}]", x)
        values = matrix.data
    else:
        matrix = values = real_array(f"X[{i}]", x)
    if matrix.ndim != 2 or 0 in matrix.shape:
        one = "; one feature is x[None]" if matrix.ndim == 1 else ""
        raise ValueError(f"X[{i}] must have shape (features, parts), got {matrix.shape}{one}")
    if not np.isfinite(values).all():
        raise ValueError(f"X[{i}] must not hold NaN or inf")
    return PartFeatures(matrix.astype(np.float64) if sp.issparse(matrix) else np.ascontiguousarray(matrix, dtype=np.float64))


def read_configurations(y: Any, parts: Sequence[Parts]) -> list[FloatArray]:
    """What was observed, as zeros and ones."""
    if not isinstance(y, Sequence | np.ndarray) or isinstance(y, str) or len(y) != len(parts):
        count = len(y) if hasattr(y, "__len__") else "none"
        raise ValueError(f"y must have a configuration for each of {len(parts)} examples, got {count}")
    out = []
    for i, (row, known) in enumerate(zip(y, parts, strict=True)):
        found = np.asarray(row)
        if found.size and found.dtype.kind in "if" and found.min() == -1 and np.isin(found, (-1, 1)).all():
            raise ValueError(f"y[{i}] holds -1 and 1: parts are 0 (not chosen) or 1 (chosen). Give (y + 1) // 2")
        out.append(known.configuration(row, f"y[{i}]"))
    return out


Groups = Sequence[Any] | Callable[[Any], Sequence[Any]] | None

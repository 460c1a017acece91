"""Structures that we know, answered through best configurations only, as their users have them: any solver will do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.results import FloatArray, Result, Status
from ..core.warn import report
from .entropies import Entropy
from .parts import NEARLY, Parts, infer_checked


@dataclass(frozen=True)
class Example:
    """One example of a structure as zeros and ones over its parts.

    Attributes
    ----------
    potentials : array of shape (parts,)
        Checked; -inf forbids a part. Some configuration is allowed.
    entropy : Entropy
        What takes the place of the entropy if the user names none.
    asked : callable
        From scores of parts to potentials in the form of the structure, which is what solvers are given.
    point : callable
        From a configuration, in the form of the structure's y, to zeros and ones over parts; a ValueError says that it is
        none.
    best : callable
        The structure's own solver, from scores of parts to a point.
    name : str
        What messages call it.
    """

    potentials: FloatArray
    entropy: Entropy
    asked: Callable[[FloatArray], Any]
    point: Callable[[Any], FloatArray]
    best: Callable[[FloatArray], FloatArray]
    name: str = ""


class ExampleParts(Parts):
    """The configurations of an `Example`, as a solver finds them: the structure's own, or one that takes potentials of one
    example in the form of the structure and returns its y, or a point over the parts."""

    def __init__(self, example: Example, oracle: Any = None) -> None:
        self.example, self._own = example, oracle is None
        self.forbidden = np.isneginf(example.potentials)
        solver = (lambda scores: example.best(scores)) if oracle is None else oracle
        super().__init__(len(example.potentials), solver, example.name)

    def asked(self, scores: FloatArray) -> Any:
        allowed = self._allowed(scores)
        return allowed if self._own else self.example.asked(allowed)

    def _allowed(self, scores: FloatArray) -> FloatArray:
        return np.where(self.forbidden, -np.inf, scores)

    def configuration(self, y: Any, what: str, room: float = 0.0) -> FloatArray:
        if y is None:
            raise ValueError(f"{what} must be the best configuration; got nothing (None): the function must return it")
        if self._own:
            return np.asarray(y, dtype=np.float64)
        try:
            point = np.asarray(self.example.point(_nearly_whole(y)), dtype=np.float64)
        except ValueError as error:
            raise ValueError(f"{what} is not a configuration: {error}") from None
        if point[self.forbidden].any():
            raise ValueError(f"{what} uses what potentials forbid (-inf): part {int(np.argmax(point * self.forbidden))}")
        return point

    def rival(self, scores: FloatArray) -> float:
        return -np.inf if self._own else float(scores @ self.example.best(self._allowed(scores)))


def _nearly_whole(y: Any) -> Any:
    """Whole numbers for numbers that are so nearly: integer programs are off by a little."""
    if not isinstance(y, np.ndarray) or y.dtype.kind != "f":
        return y
    whole = np.rint(y)
    return whole if (np.abs(whole - y) <= NEARLY).all() else y


def infer_black_box(
    examples: Sequence[Example],
    oracle: Any = None,
    entropy: Entropy | None = None,
    variant: str = "blended",
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> tuple[list[FloatArray], Result]:
    """Marginals of parts of each example, and the answer (without them) about all: Frank-Wolfe through a solver.

    Parameters
    ----------
    oracle : object with ``argmax(potentials)`` or function, optional
        It is asked about one example at a time. In the end its answer is compared with that of the structure's own solver:
        one that does not find the best is a NumericalError. Default: the structure's own.
    entropy : Entropy, optional
    variant, tol, max_iter
        See `partita.inference.infer_parts`; `tol` is for the certificate of each example.
    """
    found, delta = [], 0.0
    for example in examples:
        parts, scores = ExampleParts(example, oracle), example.potentials
        measure = example.entropy if entropy is None else entropy
        found.append(infer_checked(parts, np.where(parts.forbidden, 0.0, scores), measure, tol, max_iter, variant))
        delta = max(delta, parts.delta)
    log_z, lower, upper, gap = (
        np.concatenate([np.asarray(getattr(one, name)) for one in found]) for name in ("log_z", "lower", "upper", "gap")
    )
    status = Status.CONVERGED if (gap <= tol + delta).all() else Status.UNCERTIFIED
    report("engine frank_wolfe", status)
    result = Result(
        log_z,
        np.zeros(0),
        status,
        exact=False,
        lower=lower,
        upper=upper,
        n_iter=max(one.n_iter for one in found),
        engine="frank_wolfe",
        certificate=gap,
        residual=float(gap.max()),
        tol=tol + delta,
    )
    return [one.marginals[0] for one in found], result

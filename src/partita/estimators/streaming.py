"""Learning from examples that come in pieces: what earlier ones left is a normal distribution, the Laplace approximation.

Its mean are the weights found so far, its precision the curvature of the objective there, one number per weight. A piece
adds its likelihood, and the minimum is expanded again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from ..core.contracts import Capability, Objective
from ..core.contracts.progress import DualPoint
from ..core.errors import ModelFileError
from ..core.interrupts import pass_on_in_search
from ..core.random import generator
from ..core.results import FloatArray, Status
from ..objectives.composite.likelihood import CompositeLikelihood
from .loaded import check_whole
from .trained import Trained, training

T = TypeVar("T", bound="Sum")
M = TypeVar("M", bound=Trained)

#: Weights up to which curvature is exact where something is hidden, and vectors of signs that it is estimated from.
EXACT, SIGNS = 150, 30


class Posterior(NamedTuple):
    """What the examples so far say of the weights, in the solver's units: a mean and a precision for each."""

    mean: FloatArray
    precision: FloatArray


class Sum(Objective, Protocol):
    """A penalised likelihood whose penalty can be put around other weights."""

    @property
    def penalty(self) -> FloatArray: ...
    @property
    def convex(self) -> bool: ...
    def around(self, mean: FloatArray, precision: FloatArray) -> Self:
        """The same likelihood, with this precision as a penalty on the distance to this mean."""
        ...


def precision_at(objective: Sum, point: Any) -> FloatArray | None:
    """The curvature of an objective along each weight, at a point; None if it is not known.

    That of what is known, where something is hidden: log Z alone would say that it was seen. It is at least the penalty.
    """
    if isinstance(point, DualPoint):
        return None
    if objective.convex or Capability.HESSIAN_PRODUCT not in objective.capabilities:
        return np.asarray(np.maximum(point.diagonal, objective.penalty))
    product = point.hessian_product()
    if objective.size <= EXACT:
        diagonal = np.array([product(unit)[j] for j, unit in enumerate(np.eye(objective.size))])
    else:
        signs = np.where(generator(0).random((SIGNS, objective.size)) < 0.5, -1.0, 1.0)
        diagonal = np.mean([z * product(z) for z in signs], axis=0)
    return np.asarray(np.maximum(diagonal, objective.penalty))


def check_streamed(*, l1: bool, constrained: bool, composite: bool) -> None:
    """Refuse what pieces cannot be learned with."""
    if l1:
        raise ValueError("partial_fit does not support l1 > 0; use fit, with warm_start=True to continue")
    if constrained:
        raise ValueError("partial_fit does not support constraints; use fit, with warm_start=True to continue")
    if composite:
        raise ValueError(
            "partial_fit needs likelihood='full': the curvature of a composite likelihood does not say how much was "
            "learned; use fit, with warm_start=True to continue"
        )


class FromStream(Trained):
    """An estimator that learns from an iterable of pieces by calls of its own `partial_fit`."""

    n_seen_: int

    @abstractmethod
    def partial_fit(self, *data: Any, **options: Any) -> Self:
        """Learn from one more piece."""

    @training
    def fit_stream(self, /, pieces: Iterable[Any], **options: Any) -> Self:
        """Forget what was learned, then learn from an iterable of pieces in one pass.

        A piece is a tuple of arguments of `partial_fit`, such as ``(X, y)``, or X alone; `options` go to every call of it.
        """
        self._forget(*[name for name in vars(self) if name.endswith("_") and not name.startswith("_")], *self.TRANSIENT)

        def learn(piece: Any) -> None:
            self.partial_fit(*(piece if isinstance(piece, tuple) else (piece,)), **options)

        learn_pieces(self, pieces, learn, "pieces")
        return self


def learn_pieces(model: M, pieces: Iterable[Any], learn: Callable[[Any], object], name: str) -> None:
    """Learn from pieces one after another; an interrupt ends it with what was learned."""
    count = 0
    try:
        for piece in pieces:
            learn(piece)
            count += 1
    except KeyboardInterrupt:
        pass_on_in_search()
        if not count:
            raise
        model._store_end(model.n_iter_, model.trace_, Status.INTERRUPTED)
    if not count:
        raise ValueError(f"{name} is empty: there was nothing to learn from")


class Streamed(FromStream):
    """An estimator that learns from pieces by the Laplace approximation. One writes `_learn`, which minimises
    `after` and calls `_store_precision`, and `_mean`.

    Attributes
    ----------
    precision_ : array or None
        Curvature of the objective along each weight, from which `partial_fit` goes on; None after solvers that know none.
    n_seen_ : int
        Examples learned from, over all calls of `partial_fit`.
    """

    precision_: FloatArray | None

    @abstractmethod
    def _learn(self, before: Any, *data: Any) -> Self:
        """Fit to data; in the layout of what is known `before`, if anything is."""

    def _mean(self) -> FloatArray | None:
        """The weights so far, as solvers see them; None before the first piece."""
        return vars(self).get("parameters_")

    def _posterior(self) -> Any:
        """What is known so far; None before the first piece."""
        mean = self._mean()
        return None if mean is None else Posterior(mean, self._known_precision())

    def _known_precision(self) -> FloatArray:
        precision: FloatArray | None = vars(self).get("precision_")
        if precision is None:
            raise ValueError(
                "partial_fit cannot continue this fit, whose curvature along each weight is not known (it was made by a "
                "solver of the dual, by a composite likelihood, on more columns than rows, or by an earlier version): begin "
                "with partial_fit on a new model"
            )
        return precision

    def _check_stream(self) -> None:
        """Refuse parameters that pieces cannot be learned with."""
        given = self.get_params(deep=False)
        likelihood = given.get("likelihood", "full")
        composite = isinstance(likelihood, CompositeLikelihood) or likelihood == "pseudo" or given.get("budget") is not None
        check_streamed(l1=bool(given.get("l1")), constrained=bool(given.get("constraints")), composite=composite)
        if Capability.BLOCKS in self._solver().requires:
            raise ValueError(
                f"partial_fit does not support solver {self._solver().key!r}: its dual is that of a penalty around zero, "
                "and pieces have one around the weights so far"
            )

    def _take_piece(self, *data: Any) -> Self:
        """`partial_fit`, once parameters are checked."""
        self._check_stream()
        before = self._posterior()
        seen = 0 if before is None else self.n_seen_
        self._learn(before, *data)
        self.n_seen_ += seen
        return self

    def _store_precision(self, objective: Sum, point: Any, n_examples: int) -> None:
        """Keep what `partial_fit` goes on from."""
        self.precision_, self.n_seen_ = precision_at(objective, point), int(n_examples)

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if "n_seen_" in vars(self):
            check_whole(self, "n_seen_")
        precision = vars(self).get("precision_")
        if precision is not None and not (isinstance(precision, np.ndarray) and precision.min(initial=0.0) >= 0.0):
            raise ModelFileError("precision_ must be an array of numbers that are not negative")


class StreamedExamples(Streamed):
    """One whose pieces are X, y and weights."""

    @training
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more examples; X, y and `sample_weight` are as in `fit`.

        What earlier pieces left is a normal distribution: its mean are the weights so far, its precision the curvature
        (`precision_`), one number per weight. The new weights minimise the loss of the new examples plus half the precisions
        times the squared distances to the old weights: the Laplace approximation, again and again. Every call counts as new
        data.
        """
        return self._take_piece(X, y, sample_weight)


def after(objective: T, before: Posterior | None) -> T:
    """The objective of a piece: with what is known as its penalty."""
    return objective if before is None else objective.around(*before)

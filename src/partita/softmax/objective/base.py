"""What likelihoods of labels, known or not, share: data, scores, penalty, and the signs and shapes of all of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.weights import held_down
from ...core.contracts.capabilities import Capability
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import check_weights
from ...objectives.penalized import PenalizedObjective, PenalizedPoint, check_penalty
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import SparseLinear
from ..structure import Binary, Categorical

#: Dense columns from which BLAS may use all threads.
HEAVY_COLUMNS = 400

P = TypeVar("P", bound=PenalizedPoint)


class SoftmaxObjective(PenalizedObjective, Generic[P]):
    """``F(theta) = loss(s) + linear . theta + 1/2 sum_j penalty_j theta_j^2``, a loss of scores ``s = A theta + log h``.

    The one place where signs and shapes are fixed: solvers minimise F, a sum (not a mean) over examples; theta is the flat
    vector of the feature map A; ``linear`` is zero unless given; the gradient is ``A' r + linear + penalty * theta`` with r
    that of the loss in the scores; curvature in theta is ``A' S A + diag(penalty)``.

    Parameters
    ----------
    features : LinearMap or LabelFeatures
        The map A.
    structure : Categorical or Binary
        The outputs; its base measure h enters the scores.
    y : array of int
        Each example's label, as a position in its label set.
    weights : array, optional
        Example weights.
    penalty : float or array of shape (size,)
        The l2 of each parameter.
    linear : array of shape (size,), optional
        Coefficients of a linear term.
    """

    size: int
    n_examples: int

    def __init__(
        self,
        features: LinearMap | LabelFeatures,
        structure: Categorical,
        y: ArrayLike,
        *,
        weights: Any = None,
        penalty: float | FloatArray = 0.0,
        linear: FloatArray | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.features = features
        self.structure = structure
        self.workers: Workers = workers or features.workers
        self.y: NDArray[np.int64] = _labels(y)
        self.weights: NDArray[Any] = check_weights("weights", weights, features.n_examples)
        self.size, self.n_examples = features.size, features.n_examples
        self.scale: float = float(held_down(self.weights).sum())
        self.penalty: FloatArray = check_penalty(penalty, self.size)
        self.linear: FloatArray | None = None if linear is None else np.ascontiguousarray(linear, dtype=np.float64)
        if self.linear is not None and (self.linear.shape != (self.size,) or not np.isfinite(self.linear).all()):
            raise ValueError(f"linear must be finite with shape ({self.size},), got {self.linear.shape}")
        _check_shapes(features, structure)
        self.sampled: dict[str, Any] = {}
        self.has_offset: bool = bool(np.any(structure.offset))
        if isinstance(structure, Binary):
            counts: Any = 2
        else:
            counts = structure.n_labels or np.diff(structure.offsets(features.n_examples))
        if self.y.shape != (features.n_examples,) or self.y.min() < 0 or (self.y >= counts).any():
            raise ValueError(f"y must hold one label per example ({features.n_examples}), each in its label set")
        self.capabilities: frozenset[Capability] = self._offers()

    @abstractmethod
    def _offers(self) -> frozenset[Capability]:
        """The capabilities."""

    @property
    def dense_cost(self) -> float:
        """Cost of the Hessian as a matrix and its factor, in units of one Hessian product (from operation counts)."""
        if isinstance(self.features, LabelFeatures):
            return float(self.size)
        n = self.features.n_outputs
        product, gram = self.features.product_cost()
        return (0.5 * n * (n + 1) * gram + self.size**3 / 12.0) / max(product, 1.0)

    @property
    def blas_threads(self) -> int | None:
        """One, unless matrices are so large that BLAS is the main work, or so small that there is no BLAS."""
        columns = self.features.size if isinstance(self.features, LabelFeatures) else self.features.n_columns
        heavy = columns >= HEAVY_COLUMNS and not isinstance(self.features, SparseLinear)
        return None if heavy or Capability.NEWTON_TRIAL in self.capabilities else 1

    def free_constants(self) -> IntArray:
        """Intercepts without a penalty: the same constant on all of them changes no probability."""
        features = self.features
        if not isinstance(features, LinearMap) or not features.intercept or features.n_outputs == 1:
            return super().free_constants()
        where: IntArray = np.asarray(features.columns())[:, -1]
        return super().free_constants() if self.penalty[where].any() else where

    def at(self, parameters: FloatArray) -> P:
        """The objective seen from `parameters`."""
        theta = np.ascontiguousarray(parameters, dtype=np.float64)
        u = self.features.forward(theta)
        if self.has_offset:
            u = u + self.structure.offset
        return self.view(theta, u)

    @abstractmethod
    def view(self, theta: FloatArray, u: FloatArray) -> P:
        """The point with parameters theta, whose scores u are known."""

    @property
    def slope(self) -> FloatArray | None:
        """The linear terms: one that is given, and that of a penalty that is not around zero."""
        parts = [part for part in (self.linear, super().slope) if part is not None]
        return np.asarray(sum(parts)) if parts else None

    @abstractmethod
    def of_rows(self, rows: IntArray, features: Any, structure: Categorical, penalty: FloatArray) -> Self:
        """The likelihood of some examples, whose features and structure these are, with a penalty of its own."""

    @abstractmethod
    def loss_of(self, rows: IntArray, structure: Categorical, u: FloatArray) -> tuple[float, FloatArray]:
        """The loss of some examples, whose structure and scores these are, and its gradient in u."""

    @abstractmethod
    def loss(self, u: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The loss at scores u, the marginals, and its gradient in u."""

    @abstractmethod
    def subspace(self, u: FloatArray, images: FloatArray, c: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The loss at u + sum_a c_a images[a], its gradient and Hessian in c."""


def _labels(y: ArrayLike) -> NDArray[np.int64]:
    labels = np.asarray(y)
    if labels.dtype.kind not in "iu":
        raise ValueError(f"y must hold integers, the position of each label; got {labels.dtype}")
    return np.ascontiguousarray(labels, dtype=np.int64)


def _check_shapes(features: LinearMap | LabelFeatures, structure: Categorical) -> None:
    """The map must write as many potentials as the structure reads."""
    if isinstance(features, LabelFeatures):
        fits = not isinstance(structure, Binary) and np.array_equal(
            np.diff(structure.offsets(features.n_examples)), features.counts
        )
        written = "the label counts of the features"
    else:
        fits = features.n_outputs == (1 if isinstance(structure, Binary) else structure.n_labels)
        written = f"{features.n_outputs} potentials per example"
    if not fits:
        raise ValueError(f"the feature map gives {written}, which is not what {type(structure).__name__} expects")

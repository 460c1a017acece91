"""Training on data that arrive in pieces, or are too large to hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ...core.interrupts import pass_on_in_search
from ...core.parallel import blas_limit
from ...core.results import Status, Trace
from ...core.validation import check_weights
from ...estimators.data import plain_labels, sound_input, text_is_named, unchanged_on_failure
from ...estimators.seeded_solver import seeded_solver, solver_seed
from ...solvers.stochastic import StochasticBound, Stream
from .class_order import ClassOrder

#: Numbers of X taken into memory at once.
CHUNK_NUMBERS = 4_000_000


def _can_stream(estimator: Any) -> bool:
    """Streams know neither l1 nor constraints."""
    if estimator.l1 == 0.0 and not estimator.constraints:
        return True
    raise AttributeError("partial_fit and fit_stream support neither l1 nor constraints: use fit")


class StreamingMixin:
    """`partial_fit` and `fit_stream` for a softmax regression."""

    @available_if(_can_stream)  # type: ignore[untyped-decorator]
    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from more examples: one pass, no learning rate. Every call counts as new data.

        X may be far larger than memory: a memory-mapped array, or a CSR matrix of memory-mapped arrays, is read a piece at
        a time. Continues from an earlier `fit` or `partial_fit`; after loading or unpickling, the parameters go on but the
        curvature starts afresh. The method is `StochasticBound.stream`, with the batch size, rank, bound and damping of the
        estimator's solver, if that is a `StochasticBound`. Examples should come in random order:
        a `DataWarning` says when they come sorted by class.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, optional
            All labels that will ever come; needed in the first call.
        sample_weight : array, optional

        Examples
        --------
        >>> import numpy as np
        >>> from partita import SoftmaxRegression
        >>> rng = np.random.default_rng(0)
        >>> model = SoftmaxRegression()
        >>> for _ in range(20):
        ...     X = rng.standard_normal((500, 3))
        ...     model = model.partial_fit(X, X[:, 0] > 0, classes=[False, True])
        >>> model.score(X, X[:, 0] > 0) > 0.98
        True
        """
        with unchanged_on_failure(self):
            return self._partial_fit(X, y, classes, sample_weight)

    @available_if(_can_stream)  # type: ignore[untyped-decorator]
    def fit_stream(self: Any, batches: Iterable[Any], classes: Any) -> Any:
        """Forget what was learned, then learn from an iterable of ``(X, y)`` or ``(X, y, sample_weight)`` in one pass."""
        with unchanged_on_failure(self):
            for name in ("coef_", "_stream", "n_seen_"):
                self.__dict__.pop(name, None)
            self._fit_pieces(batches, classes)
        return self

    def _fit_pieces(self: Any, batches: Iterable[Any], classes: Any) -> None:
        try:
            for batch in batches:
                self.partial_fit(batch[0], batch[1], classes, *batch[2:])
        except KeyboardInterrupt:
            pass_on_in_search()
            if not hasattr(self, "coef_"):
                raise
            self.status_ = Status.INTERRUPTED
        if not hasattr(self, "coef_"):
            raise ValueError("batches is empty: there was nothing to learn from")

    def _partial_fit(self: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> Any:
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError(f"class_weight={self.class_weight!r} needs all labels at once; give partial_fit a dict")
        solver = seeded_solver(self)
        if not isinstance(solver, StochasticBound):
            solver = StochasticBound(random_state=solver_seed(self.random_state))
        first = not hasattr(self, "coef_")
        self._check_classes(classes, first)
        X, y = sound_input(X), plain_labels(y)
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if not hasattr(y, "__len__") or len(y) != rows:
            raise ValueError(f"X and y must have as many rows; got {rows} and {len(y) if hasattr(y, '__len__') else y!r}")
        weights = None if sample_weight is None else check_weights("sample_weight", sample_weight, rows)
        pieces = list(_pieces(X))
        stream: Any = getattr(self, "_stream", None)  # never changed: the solver works on a copy
        for lo, hi in pieces:
            whole = len(pieces) == 1
            with text_is_named(X):
                part = validate_data(
                    self,
                    X if whole else X[lo:hi],
                    y if whole else y[lo:hi],
                    reset=first and lo == 0,
                    accept_sparse="csr",
                    dtype=np.float64,
                    order="C",
                    accept_large_sparse=True,
                )
            stream = self._absorb(solver, stream, *part, None if weights is None else weights[lo:hi])
        self._stream = stream
        self.n_seen_ = stream.seen
        self.n_iter_ = stream.steps
        self.status_ = Status.STREAM
        self.trace_ = Trace(*np.zeros((4, 0)))
        for name in ("_point", "_constrained_point", "kkt_residual_"):
            self.__dict__.pop(name, None)
        return self

    def _check_classes(self: Any, classes: Any, first: bool) -> None:
        if first and classes is None:
            raise ValueError("classes must be given in the first call to partial_fit: all labels that will ever come")
        if first:
            try:
                self.classes_ = np.unique(classes)
            except TypeError:
                raise ValueError(f"classes must be labels of one type, strings or numbers, got {classes!r}") from None
            if self.classes_.dtype.kind == "f" and not np.isfinite(self.classes_).all():
                raise ValueError(f"classes must be finite, got {self.classes_.tolist()}: NaN is no label")
            if len(self.classes_) < 2:
                raise ValueError(f"classes must hold at least two labels, got {self.classes_.tolist()}")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes {list(classes)} differ from those of the first call, {self.classes_.tolist()}")

    def _absorb(self: Any, solver: StochasticBound, stream: Any, X: Any, y: Any, weights: Any) -> Any:
        """One piece, already checked, through the solver; writes coef_ and intercept_."""
        try:
            codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
            unknown = self.classes_[codes] != y
        except TypeError:  # what cannot be compared with a class is none
            known = self.classes_.tolist()
            unknown = np.array([label not in known for label in y.tolist()])
            codes = np.array([known.index(label) for label in y[~unknown].tolist()], dtype=np.int64)
        if unknown.any():
            raise ValueError(f"y holds {y[unknown].tolist()[0]!r}, which is not among the classes {self.classes_.tolist()}")
        self._check_prior(self.classes_, codes)
        weights = np.ones(len(codes)) if weights is None else weights
        if self.class_weight is not None:
            factors = np.array([self.class_weight.get(label, 1.0) for label in self.classes_.tolist()])
            weights = weights * factors[codes]
        if stream is not None and not weights.any():
            return stream
        order = ClassOrder.after(stream.order if stream else None, codes[weights > 0.0], self.classes_)
        objective = self._objective(X, codes, len(self.classes_), weights)
        features = objective.features
        theta = features.pack(self.coef_, self.intercept_) if hasattr(self, "coef_") else np.zeros(objective.size)
        layout = f"{type(features).__name__}, {objective.size}"
        if hasattr(self, "coef_") and (stream is None or stream.layout != layout):
            stream = Stream.after(solver, objective, theta, stream.seen if stream else getattr(self, "n_seen_", 0))
        with blas_limit(1):
            theta, stream = solver.stream(stream, objective, theta)
        stream.layout, stream.order = layout, order
        coefficients, intercepts = features.unpack(theta)
        self.coef_, self.intercept_ = np.ascontiguousarray(coefficients), intercepts.copy()
        self.log_prior_ = objective.structure.log_prior
        return stream


def _pieces(X: Any) -> Iterator[tuple[int, int]]:
    """Ranges of rows of X small enough to copy; one range for anything that is not a large array."""
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    numbers = X.nnz if sp.issparse(X) else X.size if isinstance(X, np.ndarray) and X.ndim == 2 else 0
    count = min(max(1, -(-numbers // CHUNK_NUMBERS)), max(1, rows))
    edges = [rows * c // count for c in range(count + 1)]
    yield from itertools.pairwise(edges)

"""One label per example, chosen from a common set or from a set of its own."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.arrays.potentials import real_array, whole_array
from ..core.enumeration import configurations
from ..core.memory import check_memory, check_sample
from ..core.parallel import Workers
from ..core.random import generator
from ..core.results import FloatArray, Result
from ..core.validation import check_choice, check_count, check_no_options
from ..inference.black_box import Example, infer_black_box
from ..inference.entropies import TableEntropy
from .kernels import categorical as kernels

ENGINES = ("auto", "exact", "frank_wolfe")


def _log_prior(prior: ArrayLike | None, size: int) -> FloatArray:
    if prior is None:
        return np.zeros(size)
    weights = real_array("prior", prior)
    if weights.shape != (size,):
        raise ValueError(f"prior must have one weight per label, shape ({size},); got shape {weights.shape}")
    if not np.all(np.isfinite(weights)) or weights.min() < 0.0 or not weights.sum() > 0.0:
        raise ValueError("prior must be finite and non-negative with a positive sum")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))


class Categorical:
    """p(y) = h(y) exp(s_y) / Z over a finite set of labels.

    Parameters
    ----------
    labels : int or array of int
        The number of labels, or, for label sets that differ, the number of labels of each example.
    prior : array, optional
        The base measure h(y) >= 0 (zero forbids a label), of shape (labels,) or one per potential of ragged sets.

    Notes
    -----
    Potentials of a batch are an (examples, labels) array; of ragged sets, one flat array in which the labels of an
    example lie together. Marginals come in the same shape. A label is its position in its example's set.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.structures import Categorical
    >>> Categorical(3).log_partition(np.log([[1.0, 2.0, 5.0]])).round(6)
    array([2.079442])
    """

    _rows: FloatArray | None = None

    def __init__(self, labels: int | ArrayLike, prior: ArrayLike | None = None) -> None:
        self.n_labels: int | None = None
        self._ragged_offsets: NDArray[np.int64] | None = None
        self._regular_offsets: NDArray[np.int64] = np.zeros(0, np.int64)
        if np.ndim(labels) == 0:
            self.n_labels = check_count("labels", labels, minimum=1)
            size = self.n_labels
            check_memory(f"labels={size}", 16 * size, "Lower labels")
        else:
            counts = np.asarray(labels)
            if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
                raise ValueError("labels must be an integer or a vector of integers >= 1, one per example")
            total = counts.sum(dtype=np.float64)
            check_memory(f"label sets of {total:.4g} labels in all", 16 * int(total), "Give fewer examples at a time")
            self._ragged_offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
            size = int(self._ragged_offsets[-1])
        self.log_prior: FloatArray = _log_prior(prior, size)

    def offsets(self, n_examples: int) -> NDArray[np.int64]:
        """Where each example's labels start in the flat array of scores, and where the last ends."""
        if self._ragged_offsets is not None:
            if len(self._ragged_offsets) != n_examples + 1:
                raise ValueError(f"expected {len(self._ragged_offsets) - 1} examples, got {n_examples}")
            return self._ragged_offsets
        assert self.n_labels is not None
        offsets = self._regular_offsets
        if len(offsets) != n_examples + 1:
            self._regular_offsets = offsets = np.arange(n_examples + 1, dtype=np.int64) * self.n_labels
        return offsets

    @property
    def offset(self) -> Any:
        """What the base measure adds to the potentials of a batch."""
        return self._common if self._rows is None else self._rows

    @property
    def _common(self) -> Any:
        return self.log_prior

    def with_offset(self, offset: FloatArray) -> Self:
        """The same with numbers that are added to the potentials of each example, in their shape. (Of training only.)"""
        twin = copy.copy(self)
        twin._rows = offset + self._common
        return twin

    def take(self, examples: Any) -> Categorical:
        """The structure of some examples: itself, unless label sets or base measures differ."""
        if self._ragged_offsets is None:
            if self._rows is None:
                return self
            part = copy.copy(self)
            part._rows = self._rows[examples]
            return part
        counts = np.diff(self._ragged_offsets)[examples]
        part = Categorical(counts)
        where = [np.arange(self._ragged_offsets[i], self._ragged_offsets[i + 1]) for i in np.asarray(examples)]
        part.log_prior = self.log_prior[np.concatenate(where)]
        return part

    def scores(self, potentials: ArrayLike, possible: bool = True) -> tuple[FloatArray, NDArray[np.int64], tuple[int, ...]]:
        """Flat scores ``s + log h``, their offsets, and the shape the user gave. If `possible`, every example must have a
        label that is not forbidden."""
        s = real_array("potentials", potentials)
        if self._ragged_offsets is not None:
            if s.shape != (self._ragged_offsets[-1],):
                raise ValueError(f"potentials must have shape ({self._ragged_offsets[-1]},); got {s.shape}")
            u = s + self.log_prior
            offsets = self._ragged_offsets
        else:
            if s.ndim != 2 or s.shape[1] != self.n_labels:
                raise ValueError(f"potentials must have shape (examples, {self.n_labels}); got {s.shape}")
            if not len(s):
                raise ValueError("potentials hold no example: they must have at least one row")
            u = (s + self.log_prior).ravel()
            offsets = self.offsets(len(s))
        if np.isnan(u).any() or (u == np.inf).any():
            raise ValueError("potentials must not be NaN or +inf (-inf forbids a label)")
        if possible and not np.all(np.maximum.reduceat(u, offsets[:-1]) > -np.inf):
            raise ValueError("potentials forbid every label of an example: its partition function is zero")
        return u, offsets, s.shape

    def _labels(self, y: ArrayLike, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        shape = f"{len(offsets) - 1} integers, one label per example"
        labels = whole_array("y", y, shape)
        if labels.shape != (len(offsets) - 1,):
            raise ValueError(f"y must be {shape}; got shape {labels.shape}")
        if np.any(labels < 0) or np.any(labels >= np.diff(offsets)):
            raise ValueError("y has a label outside its example's label set")
        return labels.astype(np.int64)

    def score(self, potentials: ArrayLike, y: ArrayLike) -> FloatArray:
        """Log of the unnormalised weight of each y; -inf if it is forbidden."""
        u, offsets, _ = self.scores(potentials, possible=False)
        return np.asarray(u[offsets[:-1] + self._labels(y, offsets)])

    def log_partition(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> FloatArray:
        """log Z of each example; see `infer` for engines and options."""
        if check_choice("engine", engine, ENGINES) == "frank_wolfe":
            return self.infer(potentials, engine, **options).log_z
        check_no_options(engine, options)
        u, offsets, _ = self.scores(potentials)
        out = np.empty(len(offsets) - 1)
        kernels.log_partition(u, offsets, 0, len(out), out)
        return out

    def infer(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> Result:
        """log Z and the probability of every label.

        Parameters
        ----------
        engine : {"auto", "exact", "frank_wolfe"}
            ``"frank_wolfe"`` asks a solver for best labels and nothing else; log Z is right up to its certificate.
        options
            Of ``"frank_wolfe"``: `oracle`, a function of the potentials of one example (the base measure added), or an
            object with ``argmax``, that returns its best label; `entropy`, `variant`, `tol`, `max_iter`.
        """
        if engine == "frank_wolfe":
            u, offsets, shape = self.scores(potentials)
            rows = enumerate(np.split(u, offsets[1:-1]))
            marginals, result = infer_black_box([self._example(row, f"example {i}") for i, row in rows], **options)
            return replace(result, marginals=np.concatenate(marginals).reshape(shape))
        log_z = self.log_partition(potentials, engine, **options)
        u, offsets, shape = self.scores(potentials)
        counts, first = np.diff(offsets), offsets[:-1]
        with np.errstate(over="ignore"):  # a label of -1e308 below one of 1e308
            shares = np.exp(u - np.repeat(np.maximum.reduceat(u, first), counts))
        marginals = shares / np.repeat(np.add.reduceat(shares, first), counts)
        return Result(log_z, marginals.reshape(shape), lower=log_z, upper=log_z)

    def _example(self, row: FloatArray, name: str) -> Example:
        """One example, of a single label, as a black box. Its entropy is that of a table: exact."""
        labels, entropy = np.eye(len(row)), TableEntropy(np.ones(len(row)), exact=True)
        ends = np.array([0, len(row)])
        return Example(
            row,
            entropy,
            self._asked,
            lambda y: labels[self._labels(np.reshape(y, (-1,)), ends)[0]],
            lambda scores: labels[int(np.argmax(scores))],
            name,
        )

    def _asked(self, scores: FloatArray) -> FloatArray:
        """Scores of the labels of one example in the form of its potentials."""
        return scores.copy()

    def argmax(self, potentials: ArrayLike) -> tuple[NDArray[np.int64], FloatArray]:
        """The best label of each example and its score."""
        u, offsets, _ = self.scores(potentials)
        best, value = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1)
        kernels.argmax(u, offsets, 0, len(best), best, value)
        return best, value

    def sample(self, potentials: ArrayLike, size: int, random_state: Any = None) -> NDArray[np.int64]:
        """`size` independent labels for each example, shape (size, examples)."""
        u, offsets, _ = self.scores(potentials)
        n = check_sample(size, len(offsets) - 1)
        out = np.empty((n, len(offsets) - 1), np.int64)
        uniforms = generator(random_state).random(out.shape)
        kernels.sample(u, offsets, uniforms, 0, out.shape[1], out)
        return out

    def enumerate(self) -> NDArray[np.int64]:
        """Every y for few labels: of one example, shape (labels, 1); of ragged sets, of all examples, one column each.

        A TooLargeError if there are more than a million.
        """
        if self._ragged_offsets is not None:
            return configurations(np.diff(self._ragged_offsets).tolist())
        assert self.n_labels is not None
        return configurations([self.n_labels])

    # What a likelihood needs, on potentials as the feature map wrote them: base measure added, nothing checked.

    def targets(self, y: NDArray[np.int64], w: FloatArray) -> kernels.Targets:
        """Labels and weights of examples as kernels read them."""
        return kernels.Targets(y, w, self.offsets(len(y)))

    def loss(
        self, u: FloatArray, y: NDArray[np.int64], w: FloatArray, workers: Workers
    ) -> tuple[float, FloatArray, FloatArray]:
        """sum_i w_i (log Z_i - u_{i,y_i}), the marginals, and its gradient in u."""
        targets, flat = self.targets(y, w), u.ravel()
        p, r = np.empty_like(flat), np.empty_like(flat)
        ranges = workers.ranges(len(y), 20.0 * flat.size)
        parts = workers.run(kernels.loss, [(flat, targets, lo, hi, p, r) for lo, hi in ranges])
        return float(sum(parts)), p.reshape(u.shape), r.reshape(u.shape)

    def subspace(
        self, u: FloatArray, du: FloatArray, c: FloatArray, y: NDArray[np.int64], w: FloatArray, workers: Workers
    ) -> tuple[float, FloatArray, FloatArray]:
        """The loss at u + sum_a c_a du[a], its gradient and Hessian in c."""
        arguments = (u.ravel(), du.reshape(len(c), -1), c, self.targets(y, w))
        return subspace_sums(kernels.subspace, arguments, len(y), len(c), workers)


class Binary(Categorical):
    """Two labels with one potential per example, the log-odds of label 1.

    Potentials have shape (examples, 1): a categorical with potentials (0, s). Marginals have shape (examples, 2).
    """

    def __init__(self, prior: ArrayLike | None = None) -> None:
        super().__init__(2, prior)
        with np.errstate(invalid="ignore"):
            self.log_odds_prior: float = float(self.log_prior[1] - self.log_prior[0])

    @property
    def _common(self) -> Any:
        return self.log_odds_prior

    def scores(self, potentials: ArrayLike, possible: bool = True) -> tuple[FloatArray, NDArray[np.int64], tuple[int, ...]]:
        s = real_array("potentials", potentials)
        if s.ndim != 2 or s.shape[1] != 1:
            raise ValueError(f"potentials must have shape (examples, 1), the log-odds; got {s.shape}")
        return super().scores(np.hstack([np.zeros_like(s), s]), possible)

    def _asked(self, scores: FloatArray) -> FloatArray:
        return scores[1:] - scores[:1]

    def loss(
        self, u: FloatArray, y: NDArray[np.int64], w: FloatArray, workers: Workers
    ) -> tuple[float, FloatArray, FloatArray]:
        targets, flat = self.targets(y, w), u.ravel()
        p, r = np.empty_like(flat), np.empty_like(flat)
        ranges = workers.ranges(len(y), 30.0 * flat.size)
        parts = workers.run(kernels.binary_loss, [(flat, targets, lo, hi, p, r) for lo, hi in ranges])
        return float(sum(parts)), p.reshape(u.shape), r.reshape(u.shape)

    def subspace(
        self, u: FloatArray, du: FloatArray, c: FloatArray, y: NDArray[np.int64], w: FloatArray, workers: Workers
    ) -> tuple[float, FloatArray, FloatArray]:
        arguments = (u.ravel(), du.reshape(len(c), -1), c, self.targets(y, w))
        return subspace_sums(kernels.binary_subspace, arguments, len(y), len(c), workers)


def subspace_sums(
    kernel: Any, arguments: tuple[Any, ...], n_examples: int, k: int, workers: Workers
) -> tuple[float, FloatArray, FloatArray]:
    """Run a subspace kernel over chunks of examples and add the parts in order."""
    ranges = workers.ranges(n_examples, 60.0 * arguments[0].size)
    gradients, hessians = np.zeros((len(ranges), k)), np.zeros((len(ranges), k, k))
    tasks = [(*arguments, lo, hi, gradients[i], hessians[i]) for i, (lo, hi) in enumerate(ranges)]
    return float(sum(workers.run(kernel, tasks))), gradients.sum(0), hessians.sum(0)

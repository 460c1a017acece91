"""Sequences in which every label depends on the one before."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.arrays.potentials import are_potentials, not_potential, real_array, refusal, whole_array
from ...core.enumeration import configurations
from ...core.memory import check_memory, check_sample
from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_choice, check_count, check_no_options
from ...inference.black_box import infer_black_box
from ...softmax import ENGINES
from ..kernels import forward_backward_log, viterbi
from .black_box import sequence_example, split_parts
from .forward_backward import ChainSums

Potentials = tuple[ArrayLike, ArrayLike]


class Chain:
    """p(y) proportional to exp(sum_t unary[t, y_t] + sum_{t > first} pairwise[y_{t-1}, y_t]), over many sequences.

    Parameters
    ----------
    n_labels : int
        Number of labels, the same at every position.
    lengths : array of int
        Number of positions of each sequence, at least one.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Attributes
    ----------
    offsets : array of int64
        Sequence i occupies the positions ``offsets[i]:offsets[i + 1]``.
    n_sequences, n_positions : int
        How many sequences, and positions in all of them.

    Notes
    -----
    Potentials are a pair. ``unary`` has shape (positions, labels), the sequences one after the other. ``pairwise`` has
    shape (labels, labels), one matrix for all transitions, or (positions, labels, labels), where entry t leads from
    position t - 1 into t; entries of first positions are ignored. -inf forbids a label or a transition. Marginals come in
    the same shapes: they are the gradient of the sum of log Z. Labellings are flat too, one integer per position.

    A sequence of which every labelling is forbidden is a ValueError, except in `score`.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.structures import Chain
    >>> unary, pairwise = np.log([[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]]), np.log([[2.0, 1.0], [1.0, 2.0]])
    >>> chain = Chain(2, lengths=[2, 1])
    >>> chain.log_partition((unary, pairwise)).round(6)
    array([2.833213, 0.693147])
    >>> y, value = chain.argmax((unary, pairwise))
    >>> y, np.exp(value).round(6)
    (array([0, 0, 0]), array([6., 1.]))
    """

    def __init__(self, n_labels: int, lengths: ArrayLike, n_jobs: int | None = None) -> None:
        self.n_labels: int = check_count("n_labels", n_labels, minimum=1)
        counts = np.asarray(lengths)
        if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
            raise ValueError("lengths must be a vector of integers >= 1, one per sequence")
        total = counts.sum(dtype=np.float64)
        check_memory(f"a chain of {total:.4g} positions", 8 * int(total), "Give fewer sequences at a time")
        check_memory(f"a chain of n_labels={self.n_labels}", 8 * self.n_labels**2, "Lower n_labels")
        self.offsets: IntArray = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        self.n_sequences: int = len(counts)
        self.n_positions: int = int(self.offsets[-1])
        self.workers: Workers = Workers(n_jobs)

    def ranges(self, operations_per_position: float) -> list[tuple[int, int]]:
        """Ranges of sequences with about equal numbers of positions: the pieces of work for threads."""
        return Workers.balanced(self.offsets, operations_per_position * self.n_positions)

    def _where(self, position: int) -> str:
        i = int(np.searchsorted(self.offsets, position, side="right")) - 1
        return f"position {position - self.offsets[i]} of sequence {i}"

    def _potentials(self, potentials: Potentials) -> tuple[FloatArray, FloatArray]:
        """Checked unary potentials, and pairwise potentials of shape (1 or positions, labels, labels)."""
        if not isinstance(potentials, tuple | list) or len(potentials) != 2:
            raise ValueError(f"potentials must be a pair (unary, pairwise), got {type(potentials).__name__}")
        E = real_array("unary potentials", potentials[0])
        A = real_array("pairwise potentials", potentials[1])
        n, T = self.n_labels, self.n_positions
        if E.shape != (T, n):
            raise ValueError(f"unary potentials must have shape ({T}, {n}), (positions, labels); got {E.shape}")
        if A.shape not in ((n, n), (T, n, n)):
            raise ValueError(f"pairwise potentials must have shape ({n}, {n}) or ({T}, {n}, {n}); got {A.shape}")
        if not are_potentials(E):
            t, label = np.argwhere(not_potential(E))[0]
            raise refusal("unary potentials", float(E[t, label]), f": {self._where(int(t))}")
        if not are_potentials(A):
            bad = not_potential(A.reshape(-1, n, n))
            if A.ndim == 3:
                bad[self.offsets[:-1]] = False
            if bad.any():
                t, u, v = np.argwhere(bad)[0]
                where = f": into {self._where(int(t))}" if A.ndim == 3 else ""
                raise refusal("pairwise potentials", float(A.reshape(-1, n, n)[t, u, v]), where)
        return E, A.reshape(-1, n, n)

    def _check_possible(self, possible: Any) -> None:
        if not possible.all():
            i = int(np.argmin(possible))
            raise ValueError(f"potentials forbid every labelling of sequence {i}: its partition function is zero")

    def _labels(self, y: ArrayLike) -> IntArray:
        shape = f"{self.n_positions} integers, one label per position"
        labels = whole_array("y", y, shape)
        if labels.shape != (self.n_positions,):
            raise ValueError(f"y must be {shape}; got shape {labels.shape} of {labels.dtype}")
        bad = (labels < 0) | (labels >= self.n_labels)
        if bad.any():
            t = int(bad.argmax())
            raise ValueError(f"y must be labels from 0 to {self.n_labels - 1}; got {labels[t]} at {self._where(t)}")
        return np.require(labels, np.int64, ["C", "W"])

    def score(self, potentials: Potentials, y: ArrayLike) -> FloatArray:
        """Log of the unnormalised weight of each sequence's labelling; -inf if it is forbidden."""
        E, A = self._potentials(potentials)
        labels, out = self._labels(y), np.empty(self.n_sequences)
        viterbi.score(E, A, self.offsets, labels, 0, self.n_sequences, out)
        return out

    def log_partition(self, potentials: Potentials, engine: str = "auto", **options: Any) -> FloatArray:
        """log Z of each sequence; see `infer` for engines and options."""
        if check_choice("engine", engine, ENGINES) == "frank_wolfe":
            return self.infer(potentials, engine, **options).log_z
        check_no_options(engine, options)
        E, A = self._potentials(potentials)
        if np.ndim(potentials[1]) == 2:
            log_z = self._sums(E, A).log_z
        else:
            log_z = np.empty(self.n_sequences)
            self._run(forward_backward_log.log_partition, (E, A, self.offsets), (log_z,))
        self._check_possible(log_z > -np.inf)
        return log_z

    def infer(self, potentials: Potentials, engine: str = "auto", **options: Any) -> Result:
        """log Z of each sequence, and as marginals the pair of label probabilities and of expected transitions.

        Expected transitions are summed over all positions if the pairwise potentials are shared.

        Parameters
        ----------
        engine : {"auto", "exact", "frank_wolfe"}
            ``"exact"`` is forward-backward. ``"frank_wolfe"`` asks a solver for best labellings and nothing else; log Z is
            right up to its certificate.
        options
            Of ``"frank_wolfe"``: `oracle`, a function of the potentials of one sequence (a pair, with a matrix for each
            position), or an object with ``argmax``, that returns its best labelling (default: Viterbi's recursion);
            `entropy`, `variant`, `tol`, `max_iter`.
        """
        if check_choice("engine", engine, ENGINES) == "frank_wolfe":
            return self._frank_wolfe(potentials, options)
        check_no_options(engine, options)
        E, A = self._potentials(potentials)
        log_z, P, C = self._infer(E, A, shared=np.ndim(potentials[1]) == 2)
        return Result(log_z, (P, C), lower=log_z, upper=log_z)

    def _frank_wolfe(self, potentials: Potentials, options: dict[str, Any]) -> Result:
        self.argmax(potentials)  # refuses what forbids every labelling
        E, A = self._potentials(potentials)
        n, shared, examples = self.n_labels, np.ndim(potentials[1]) == 2, []
        ends = list(itertools.pairwise(self.offsets.tolist()))
        for i, (lo, hi) in enumerate(ends):
            pairs = np.broadcast_to(A, (hi - lo, n, n)) if shared else A[lo:hi]
            examples.append(sequence_example(Chain(n, [hi - lo], self.workers.threads), E[lo:hi], pairs, f"sequence {i}"))
        found, result = infer_black_box(examples, **options)
        parts = [split_parts(tau, hi - lo, n) for tau, (lo, hi) in zip(found, ends, strict=True)]
        P, C = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return replace(result, marginals=(P, C.sum(0) if shared else C))

    def indicators(self, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Labellings as zeros and ones: labels at positions (positions, labels), and pairs of labels at t - 1 and t
        (positions, labels, labels), zeros at first positions."""
        labels, n = self._labels(y), self.n_labels
        inner = np.setdiff1d(np.arange(self.n_positions), self.offsets)
        pairs = np.zeros((self.n_positions, n, n))
        pairs[inner, labels[inner - 1], labels[inner]] = 1.0
        return np.eye(n)[labels], pairs

    def pair_marginals(self, potentials: Potentials) -> FloatArray:
        """Probability of every pair of labels at t - 1 and t, shape (positions, labels, labels); zero at first positions."""
        n_bytes = 8 * self.n_positions * self.n_labels**2
        check_memory(f"pairs of {self.n_labels} labels", n_bytes, "Give fewer sequences at a time")
        return self._infer(*self._potentials(potentials), shared=False)[2]

    def _infer(self, E: FloatArray, A: FloatArray, shared: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        n = self.n_labels
        if shared:
            sums = self._sums(E, A)
            self._check_possible(sums.log_z > -np.inf)
            return sums.log_z, sums.P, sums.C
        ranges = self.ranges(40.0 * n * n)
        log_z, P = np.empty(self.n_sequences), np.empty_like(E)
        C = np.zeros((self.n_positions, n, n))
        self.workers.run(forward_backward_log.infer, [(E, A, self.offsets, lo, hi, log_z, P, C) for lo, hi in ranges])
        self._check_possible(log_z > -np.inf)
        return log_z, P, C

    def _sums(self, E: FloatArray, A: FloatArray) -> ChainSums:
        return ChainSums(E, A[0], self.offsets, np.ones(self.n_sequences), self.workers)

    def _run(self, kernel: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Call a kernel on ranges of sequences, by the n^2 exponentials or comparisons per position that most need."""
        ranges = self.ranges(10.0 * self.n_labels**2)
        self.workers.run(kernel, [(*inputs, lo, hi, *outputs) for lo, hi in ranges])

    def argmax(self, potentials: Potentials) -> tuple[IntArray, FloatArray]:
        """The best labelling, flat, and its score for each sequence, by Viterbi.

        Of equals, the one with the smallest last label.
        """
        E, A = self._potentials(potentials)
        y, value = np.empty(self.n_positions, np.int64), np.empty(self.n_sequences)
        self._run(viterbi.viterbi, (E, A, self.offsets), (y, value))
        self._check_possible(value > -np.inf)
        return y, value

    def kbest(self, potentials: Potentials, k: int) -> tuple[IntArray, FloatArray]:
        """The k best labellings of each sequence (n-best), best first.

        Returns
        -------
        labellings : array of int64, shape (k, positions)
            -1 where a sequence has fewer than k labellings that are not forbidden.
        scores : array, shape (k, sequences)
            -inf there.
        """
        k, lengths = check_count("k", k, minimum=1), np.diff(self.offsets)
        # Answers, and scores and predecessors of the longest sequence on every thread.
        room = 8 * k * (self.n_positions + self.n_sequences) + 16 * k * self.n_labels * int(lengths.max()) * self._threads()
        check_memory(f"the k={k} best labellings", room, "Lower k, or give fewer or shorter sequences at a time")
        E, A = self._potentials(potentials)
        Y, value = np.empty((k, self.n_positions), np.int64), np.empty((k, self.n_sequences))
        self._run(viterbi.n_best, (E, A, self.offsets), (Y, value))
        self._check_possible(value[0] > -np.inf)
        return Y, value

    def _threads(self) -> int:
        """How many ranges of sequences are worked on at once, at most."""
        return min(self.n_sequences, self.workers.threads)

    def sample(self, potentials: Potentials, size: int, random_state: Any = None) -> IntArray:
        """`size` independent labellings, shape (size, positions), by forward filtering and backward sampling."""
        n = check_sample(size, self.n_positions)
        E, A = self._potentials(potentials)
        Y = np.empty((n, self.n_positions), np.int64)
        uniforms, log_z = generator(random_state).random(Y.shape), np.empty(self.n_sequences)
        self._run(viterbi.sample, (E, A, self.offsets, uniforms), (log_z, Y))
        self._check_possible(log_z > -np.inf)
        return Y

    def enumerate(self) -> IntArray:
        """Every labelling of few positions, flat, shape (labellings, positions). A TooLargeError if there are more than a
        million."""
        return configurations(itertools.repeat(self.n_labels, self.n_positions))

    def entropy(self, potentials: Potentials) -> FloatArray:
        """Entropy of the distribution of each sequence, in nats."""
        E, A = self._potentials(potentials)
        out = np.empty(self.n_sequences)
        self._run(forward_backward_log.entropy, (E, A, self.offsets), (out,))
        self._check_possible(~np.isnan(out))
        return out

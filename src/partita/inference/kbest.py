"""The k best outputs of anything whose best output can be found under restrictions (Lawler's partition).

An output is a vector of states. All outputs but the best are split by the first variable whose state is another: the
variables before it keep theirs. The best of each part comes from the solver, and the next best of all is the best of the
parts, which is split in turn. With a solver that is exact, the outputs are the k best.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import numpy as np

from ..core.memory import check_memory, product
from ..core.results import BoolArray, FloatArray, IntArray
from ..core.validation import check_count

#: States of variables that are asked about at a time.
CELLS = 200_000
#: From the states that variables may have, a row of bool (all states of all variables) for each of several questions, to the
#: best output of each and its score; -inf where there is none.
Solve = Callable[[BoolArray], tuple[IntArray, FloatArray]]


def k_best(counts: IntArray, solve: Solve, k: int) -> tuple[IntArray, FloatArray]:
    """At most k outputs and their scores, best first.

    Parameters
    ----------
    counts : array of int
        The number of states of each variable.
    solve : callable
        See `Solve`.
    k : int

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference.kbest import k_best
    >>> scores = np.array([[0.0, 3.0], [2.0, 0.0]])
    >>> def solve(allowed):
    ...     own = np.where(allowed.reshape(-1, 2, 2), scores, -np.inf)
    ...     return own.argmax(2), own.max(2).sum(1)
    >>> k_best(np.array([2, 2]), solve, 3)[1]
    array([5., 3., 2.])
    """
    check_count("k", k, minimum=1)
    starts = np.concatenate(([0], np.cumsum(counts)))
    n, order = len(counts), itertools.count()  # of equals, the first found
    heap: list[tuple[float, int, IntArray, BoolArray]] = []

    def push(parts: BoolArray) -> None:
        step = max(1, CELLS // max(1, parts.shape[1]))
        for lo in range(0, len(parts), step):
            some = parts[lo : lo + step]
            for part, y, value in zip(some, *solve(some), strict=True):
                if value > -np.inf:
                    heapq.heappush(heap, (-float(value), next(order), y, part.copy()))

    total = min(k, product(counts.tolist()))
    check_memory(f"the k={k} best of {n} variables", float(total) * (n * (8 * n + int(starts[-1])) + 100), "Lower k")
    push(np.ones((1, int(starts[-1])), bool))
    found: list[IntArray] = []
    scores: list[float] = []
    while heap and len(found) < k:
        value, _, y, part = heapq.heappop(heap)
        found.append(y)
        scores.append(-value)
        if len(found) < k:
            rest = _others(part, y, starts)
            if len(rest):
                push(rest)
    return np.array(found, np.int64).reshape(-1, n), np.array(scores)


def _others(part: BoolArray, y: IntArray, starts: IntArray) -> BoolArray:
    """The parts that all outputs of a part but y fall into: by the first variable that has another state."""
    chosen = starts[:-1] + y
    open_ = np.flatnonzero(np.add.reduceat(part, starts[:-1]) > 1)
    out = np.repeat(part[None], len(open_), axis=0)
    owner = np.repeat(np.arange(len(y)), np.diff(starts))
    fixed = np.zeros(len(part), bool)
    fixed[chosen] = True
    out[owner[None] < open_[:, None]] = False
    out |= fixed & (owner[None] < open_[:, None])
    out[np.arange(len(open_)), chosen[open_]] = False
    return out


def k_best_parts(best: Callable[[FloatArray], FloatArray], scores: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """The same of sets of parts with scores, as zeros and ones, where `best` only knows the best set for given scores.

    A part is forced in, or out, by a score that no others can make up for; an answer that has it otherwise shows that there
    is none.
    """
    n = len(scores)
    force = 1.0 + 2.0 * float(np.abs(scores).sum())

    def solve(allowed: BoolArray) -> tuple[IntArray, FloatArray]:
        may = allowed.reshape(-1, n, 2)
        pushed = scores + force * (~may[:, :, 0] * 1.0 - ~may[:, :, 1] * 1.0)
        found = np.array([best(row) for row in pushed]).reshape(-1, n) > 0.5
        fits = np.take_along_axis(may, found[:, :, None].astype(np.int64), axis=2)[:, :, 0].all(axis=1)
        return found.astype(np.int64), np.where(fits, found @ scores, -np.inf)

    return k_best(np.full(n, 2), solve, k)

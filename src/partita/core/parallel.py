"""Threads for kernels that run without the GIL.

Work is cut into chunks by its size alone, never by the number of threads, and partial results are added in the order of
the chunks: the same data give the same bits at any thread count. A pool of Python threads is used rather than numba's own
layer, which recompiles for it, is not safe to call from two threads at once, or dies after a fork.
"""

from __future__ import annotations

import functools
import itertools
import numbers
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numba
import numpy as np
from threadpoolctl import ThreadpoolController

MAX_CHUNKS = 8
#: Elementary operations below which handing work to a thread costs more than it saves.
OPERATIONS_PER_CHUNK = 400_000

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def _pool(size: int) -> ThreadPoolExecutor:
    """One pool per size and process: a fork starts with none of its parent's threads."""
    key = (os.getpid(), size)
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(size, thread_name_prefix="partita")
    return _pools[key]


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def blas_limit(threads: int | None) -> AbstractContextManager[Any]:
    """Limit BLAS to so many threads within a `with` block; None leaves it alone.

    BLAS threads go on spinning after a call. On as many cores as threads they then take a core from ours, and small
    products become many times slower than on one thread.
    """
    return nullcontext() if threads is None else _blas().limit(limits=threads, user_api="blas")


def thread_count(n_jobs: int | None) -> int:
    """None means all cores (or what NUMBA_NUM_THREADS allows), -1 the same, -2 all but one, k means k."""
    available = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if n_jobs is None:
        return available
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a non-zero integer, got {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))


class Workers:
    """Runs a kernel over ranges of examples on a number of threads.

    Parameters
    ----------
    n_jobs : int or None
        See `thread_count`.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.threads: int = thread_count(n_jobs)

    @staticmethod
    def ranges(count: int, operations: float) -> list[tuple[int, int]]:
        """Cut ``range(count)`` into at most `MAX_CHUNKS` pieces of about equal length, by the total of operations."""
        if operations < 2 * OPERATIONS_PER_CHUNK:
            return [(0, count)]
        chunks = int(min(MAX_CHUNKS, max(1, operations // OPERATIONS_PER_CHUNK), max(1, count)))
        edges = [count * c // chunks for c in range(chunks + 1)]
        return list(itertools.pairwise(edges))

    @staticmethod
    def balanced(offsets: Any, operations: float) -> list[tuple[int, int]]:
        """As `ranges`, of items that begin and end at `offsets`: pieces of about equal extent, not of equal number."""
        count = len(offsets) - 1
        targets = np.linspace(0, offsets[-1], len(Workers.ranges(count, operations)) + 1)[1:-1]
        nearest = np.searchsorted(offsets[:-1] / 2 + offsets[1:] / 2, targets)
        return list(itertools.pairwise([0, *nearest.tolist(), count]))

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], interrupted: Callable[[], None] | None = None
    ) -> list[Any]:
        """Call ``function(*task)`` for every task; results in the order of the tasks.

        A keyboard interrupt is raised when all threads have ended. If `interrupted` is given, it is called instead, and
        should make them end soon: calls that came to their end are kept, the results of others are None.
        """
        if interrupted is None and (self.threads == 1 or len(tasks) == 1):
            return [function(*task) for task in tasks]
        share = max(1, min(self.threads, len(tasks)))
        results: list[Any] = [None] * len(tasks)

        def work(first: int) -> None:
            for index in range(first, len(tasks), share):
                results[index] = function(*tasks[index])

        futures = [_pool(self.threads).submit(work, first) for first in range(1, share)]
        try:
            work(0)
        except KeyboardInterrupt:
            if interrupted is None:
                raise
            interrupted()
        finally:  # an interrupt must not leave a thread writing into shared arrays
            _wait(futures, interrupted)
        return results


def _wait(futures: list[Future[None]], interrupted: Callable[[], None] | None) -> None:
    """Until all have ended, whatever comes meanwhile; then their errors, or the interrupt if nobody takes it."""
    raised: KeyboardInterrupt | None = None
    while not all(future.done() for future in futures):
        try:
            wait(futures)
        except KeyboardInterrupt as error:
            if interrupted is None:
                raised = error
            else:
                interrupted()
    for future in futures:
        future.result()
    if raised is not None:
        raise raised

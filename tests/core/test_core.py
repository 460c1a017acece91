from __future__ import annotations

import itertools
import multiprocessing
import signal
import threading

import numpy as np
import pytest
import threadpoolctl

from partita import SoftmaxRegression
from partita.core import Workers, generator
from partita.core.parallel import MAX_CHUNKS, blas_limit, thread_count
from partita.core.validation import check_count, check_real, check_weights


def test_generators_from_anything_reproducible():
    assert generator(3).random() == generator(3).random()
    seed = np.random.RandomState(1)
    other = np.random.RandomState(1)
    assert generator(seed).random() == generator(other).random()
    own = np.random.default_rng(5)
    assert generator(own) is own
    assert isinstance(generator(None), np.random.Generator)
    for bad in (-1, "seed", True):
        with pytest.raises(ValueError, match="random_state must be"):
            generator(bad)


def test_chunks_depend_on_work_only():
    assert Workers.ranges(10, 100) == [(0, 10)]
    pieces = Workers.ranges(1000, 1e9)
    assert len(pieces) == MAX_CHUNKS
    assert pieces[0][0] == 0
    assert pieces[-1][1] == 1000
    assert all(a[1] == b[0] for a, b in itertools.pairwise(pieces))
    assert Workers.ranges(3, 1e9) == [(0, 1), (1, 2), (2, 3)]


def test_balanced_chunks_have_equal_extent():
    offsets = np.concatenate([[0], np.cumsum([1] * 800 + [100] * 8)])
    pieces = Workers.balanced(offsets, 1e9)
    assert [offsets[hi] - offsets[lo] for lo, hi in pieces] == [200] * MAX_CHUNKS
    assert all(a[1] == b[0] for a, b in itertools.pairwise(pieces))
    assert Workers.balanced(offsets, 100) == [(0, 808)]
    assert Workers.balanced(np.array([0, 4, 10], np.uint64), 1e9) == [(0, 1), (1, 2)]
    assert Workers.balanced(np.array([0, 90, 91, 92, 93]), 1e9) == [(0, 0), (0, 1), (1, 1), (1, 4)]


def test_results_come_in_the_order_of_tasks():
    assert Workers(4).run(lambda a: a * a, [(i,) for i in range(20)]) == [i * i for i in range(20)]


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(index):
        if index == 3:
            raise RuntimeError("three")

    with pytest.raises(RuntimeError, match="three"):
        Workers(2).run(fail, [(i,) for i in range(6)])


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize("taken", [False, True])
def test_interrupt_waits_for_the_threads_and_keeps_what_is_done(taken):
    first_done, stop, ended = threading.Event(), threading.Event(), []

    def task(number):
        if number == 0:
            first_done.set()
        elif number == 1:
            first_done.wait()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            stop.wait(5.0 if taken else 0.1)
            ended.append(number)
        return number

    workers = Workers(2)
    if taken:
        assert workers.run(task, [(0,), (1,)], interrupted=stop.set) == [0, 1]
        assert stop.is_set()
    else:
        with pytest.raises(KeyboardInterrupt):
            workers.run(task, [(0,), (1,)])
    assert ended == [1]


def test_blas_is_limited_inside_and_restored_after():
    threads = lambda: [entry["num_threads"] for entry in threadpoolctl.threadpool_info() if entry["user_api"] == "blas"]  # noqa: E731
    before = threads()
    with blas_limit(1):
        assert set(threads()) == {1}
    assert threads() == before
    with blas_limit(None):
        assert threads() == before


def test_thread_counts():
    available = thread_count(None)
    assert available >= 1
    assert thread_count(3) == 3
    assert thread_count(-1) == available
    for bad in (0, 1.5, "two", True):
        with pytest.raises(ValueError, match="n_jobs must be"):
            thread_count(bad)


def _big_fit(seed, out=None):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((20_000, 20)), rng.integers(0, 3, 20_000)
    coef = SoftmaxRegression(n_jobs=2).fit(X, y).coef_
    if out is not None:
        out.append(coef)
    return float(coef.sum())


def test_fits_in_several_threads_at_once():
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=_big_fit, args=(0, results)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(results) == 4
    assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fits_in_a_forked_process_after_threads_were_used():
    here = _big_fit(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_big_fit, (0,)).get(timeout=120) == here


def test_numbers_are_checked_by_name():
    assert check_real("x", np.float32(2)) == 2.0
    assert check_count("k", np.int8(3)) == 3
    for bad in (True, None, "1", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="x must be a"):
            check_real("x", bad)
    with pytest.raises(ValueError, match="x must be a finite number > 0, got 0"):
        check_real("x", 0, minimum=0.0, strict=True)
    assert check_weights("w", 2.0, 3).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match=r"w must have shape \(3,\)"):
        check_weights("w", [1.0], 3)

"""The short form of ``make test-faults``: a few cases of every kind, the same ones every time."""

from __future__ import annotations

import full_disk
import kills
import mutated_bif
import mutated_columns
import mutated_models
import mutated_templates
import mutated_uai
import processes
import pytest
import resource_bombs
import streams
import threads
from harness import GOOD, Worker, judge


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.stop()


def check(counts, least):
    if counts.skipped and not counts.cases:
        pytest.skip(counts.skipped)
    assert counts.ok, "\n".join(counts.failures)
    assert sum(counts.cases[outcome] for outcome in GOOD) >= least


def test_changed_model_files_are_refused_or_answer(worker):
    counts = mutated_models.main(20.0, 0, most=500, worker=worker)
    check(counts, 100)
    assert counts.cases["refused"] > counts.cases["legal"]


@pytest.mark.parametrize("kind", [mutated_uai, mutated_bif, mutated_templates, mutated_columns], ids=lambda k: k.__name__)
def test_changed_texts_are_refused_or_read(worker, kind):
    check(kind.main(5.0, 0, most=80, worker=worker), 20)


def test_bombs_are_refused_before_work():
    check(resource_bombs.main(5.0, 0, resource_bombs.BOMBS), len(resource_bombs.BOMBS))


def test_killed_saves_leave_a_whole_model(worker):
    check(kills.main(3.0, 0, most=6, worker=worker), 2)


def test_a_limit_of_files_leaves_the_old_model(worker):
    check(full_disk.run_cases("full_disk:attempt", [("limit", "limit")], 30.0, worker=worker), 1)


def test_threads_agree_with_one_after_the_other(worker):
    check(threads.main(10.0, 0, most=4, worker=worker), 4)


def test_forked_children_agree_with_their_parent(worker):
    check(processes.main(10.0, 0, short=True, worker=worker), 3)


def test_closed_streams_have_a_status():
    check(streams.main(10.0, 0, streams.LINES[:1]), 1)


def test_the_harness_sees_crashes_hangs_and_bare_exceptions(worker):
    outcomes = [worker.attempt(f"test_faults:{name}", None, 1.0)[0] for name in ("dies", "sleeps", "raises")]
    assert outcomes == ["crash", "hang", "bare"]
    assert judge(KeyError("x"))[0] == judge(ValueError("x"))[0] == judge(MemoryError())[0] == "bare"
    assert judge(ValueError("x must be a number, got 'y'"))[0] == "refused"


def dies(case):
    import os

    os.kill(os.getpid(), 11)


def sleeps(case):
    import time

    time.sleep(60)


def raises(case):
    raise KeyError("x")

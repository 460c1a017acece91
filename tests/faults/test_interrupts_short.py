"""The short form of `interrupts.py`, and other ways in which a fit may end early."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))
import interrupts
from zoo import CASES

from partita import Status
from partita.report import ProgressPrinter

LOUD = [name for name in CASES if "pieces" not in name and "stream" not in name]


@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_at_any_line_leaves_all_or_nothing(name):
    counts = interrupts.one_estimator(name, 0.1, seed=0)
    assert counts["wrong"] == []
    assert counts["tried"] >= 3


@pytest.mark.parametrize("name", LOUD)
@pytest.mark.parametrize("iteration", [0, 1])
def test_a_callback_that_raises_changes_nothing(name, iteration, monkeypatch):
    def fail(self, progress):
        if progress.iteration == iteration:
            raise ZeroDivisionError("in the callback")

    case = CASES[name]
    for model in (case.made(verbose=2), case.fitted(verbose=0)):
        getattr(model, "model", model).verbose = 2
        before = interrupts.contents(model)
        with monkeypatch.context() as patch:
            patch.setattr(ProgressPrinter, "__call__", fail)
            with pytest.raises(ZeroDivisionError, match="in the callback"):
                case.fit(model)
        assert interrupts.unchanged(before, interrupts.contents(model))


@pytest.mark.parametrize("name", [name for name in LOUD if name != "MaxEnt"])
def test_a_callback_that_stops_at_once_leaves_a_whole_model(name, monkeypatch):
    case = CASES[name]
    monkeypatch.setattr(ProgressPrinter, "__call__", lambda self, progress: True)
    model = case.fitted(verbose=2)
    assert set(map(frozenset, interrupts.contents(model))) == set(map(frozenset, interrupts.contents(case.fitted())))
    case.use(model)
    inner = getattr(model, "model", model)
    assert inner.status_ in (Status.CALLBACK, Status.CONVERGED)
    assert inner.n_iter_ == 0

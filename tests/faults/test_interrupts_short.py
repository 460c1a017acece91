"""The short form of `interrupts.py`, and other ways in which a fit may end early."""

from __future__ import annotations

import interrupts
import pytest
from zoo import CASES, contents, unchanged

from partita import Status
from partita.report import ProgressPrinter

LOUD = [name for name in CASES if "pieces" not in name and "stream" not in name]


@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_at_any_line_leaves_all_or_nothing(name):
    counts = interrupts.one_estimator(name, 0.1, seed=0)
    assert counts["wrong"] == []
    assert counts["tried"] >= 3


@pytest.mark.parametrize(
    ("iteration", "name"), [(0, name) for name in LOUD] + [(1, name) for name in LOUD if CASES[name].iterates]
)
def test_a_callback_that_raises_changes_nothing(iteration, name, monkeypatch):
    def fail(self, progress):
        if progress.iteration == iteration:
            raise ZeroDivisionError("in the callback")

    case = CASES[name]
    for model in (case.made(verbose=2), case.fitted(verbose=0)):
        getattr(model, "model", model).verbose = 2
        before = contents(model)
        with monkeypatch.context() as patch:
            patch.setattr(ProgressPrinter, "__call__", fail)
            with pytest.raises(ZeroDivisionError, match="in the callback"):
                case.fit(model)
        assert unchanged(before, contents(model))


@pytest.mark.parametrize("name", [name for name in LOUD if name != "MaxEnt"])
def test_a_callback_that_stops_at_once_leaves_a_whole_model(name, monkeypatch):
    case = CASES[name]
    monkeypatch.setattr(ProgressPrinter, "__call__", lambda self, progress: True)
    model = case.fitted(verbose=2)
    assert set(map(frozenset, contents(model))) == set(map(frozenset, contents(case.fitted())))
    case.use(model)
    inner = getattr(model, "model", model)
    assert inner.status_ in (Status.CALLBACK, Status.CONVERGED)
    assert inner.n_iter_ == 0

from __future__ import annotations

import sys

import numpy as np
import pytest

from partita.core import Progress, Trace
from partita.report import ProgressPrinter, confusion, format_table, plot_confusion, plot_convergence


def test_tables_line_up():
    text = format_table(["solver", "seconds"], [["a", "1.0"], ["longer name", "10.25"]])
    lines = text.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[2].startswith("a ")
    assert lines[3].endswith("10.25")


def test_progress_is_not_more_frequent_than_asked(capsys):
    printer = ProgressPrinter(every=0.5)
    for i, seconds in enumerate([0.0, 0.1, 0.4, 0.6, 0.7, 1.2]):
        printer(Progress("newton", i, 1.0, 0.1, np.inf, seconds, np.zeros(1)))
    assert [line.split()[2].rstrip(",") for line in capsys.readouterr().err.splitlines()] == ["0", "3", "5"]


def test_convergence_plot_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    trace = Trace(np.array([3.0, 2.0, 1.0]), np.ones(3), np.full(3, np.inf), np.array([0.0, 0.1, 0.2]))
    plot_convergence({"one": trace, "two": trace}, tmp_path / "plot.png", "title")
    assert (tmp_path / "plot.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_confusion_plot_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    plot_confusion(confusion([["a", "b", "b"]], [["a", "c", "b"]]), tmp_path / "plot.png", "title")
    assert (tmp_path / "plot.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(ValueError, match="table has no labels"):
        plot_confusion(confusion([], []), tmp_path / "none.png")


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(ImportError, match=r"pip install 'partita\[plot\]'"):
        plot_convergence({}, tmp_path / "plot.png")

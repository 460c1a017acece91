from __future__ import annotations

import sys

import numpy as np
import pytest

from partita.core import Progress, Trace
from partita.report import (
    CoefficientTable,
    CountPrinter,
    ProgressPrinter,
    confusion,
    format_table,
    plot_boundary,
    plot_confusion,
    plot_convergence,
    plot_restarts,
)


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


class Halves:
    """Predicts a class on each side of x = 0, and remembers where it was asked."""

    def predict(self, X):
        self.asked = X
        return np.where(X[:, 0] > 0.0, "right", "left")


def test_boundary_plot_is_a_picture_of_regions_and_data(tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    rng, model = np.random.default_rng(0), Halves()
    X = rng.uniform(-1.0, 1.0, (50, 2))
    plot_boundary(model, X, model.predict(X), tmp_path / "one.png", resolution=40)
    assert model.asked.shape == (1600, 2)
    assert (model.asked.min(axis=0) < X.min(axis=0)).all()
    assert (model.asked.max(axis=0) > X.max(axis=0)).all()
    picture = imread(tmp_path / "one.png")[..., :3]
    rows, columns = picture.shape[:2]
    left, right = (picture[rows // 4 : rows // 2, columns * k // 10].mean(axis=0) for k in (3, 7))
    assert left[2] > left[0]  # the first class is blue, the second orange
    assert right[0] > right[2]
    plot_boundary({"a": model, "b": model}, X, model.predict(X), tmp_path / "two.png", resolution=40)
    assert imread(tmp_path / "two.png").shape[1] > 1.5 * columns
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 2\)"):
        plot_boundary(model, np.zeros((5, 3)), np.zeros(5), tmp_path / "none.png")
    for models, y, options, message in (
        ({}, [0, 1], {}, "model is an empty mapping"),
        (model, [0, None], {}, "y must hold a known class for each sample"),
        (model, [0, {0, 1}], {}, "y must hold a known class for each sample"),
        (model, [0, 1], {"resolution": 1}, "resolution must be an integer >= 2, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_boundary(models, np.eye(2), y, tmp_path / "none.png", **options)


def test_restart_plot_shows_every_start_and_the_bound(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.axes import Axes

    curves, lines = [], []
    plot, axhline = Axes.plot, Axes.axhline
    monkeypatch.setattr(Axes, "plot", lambda self, x, y, **k: (curves.append(y), plot(self, x, y, **k))[1])
    monkeypatch.setattr(Axes, "axhline", lambda self, y, **k: (lines.append(y), axhline(self, y, **k))[1])
    traces = [np.array([9.0, 5.0, 4.0]), np.zeros(0), np.array([8.0, 6.0])]
    plot_restarts(traces, tmp_path / "restarts.png", lower=3.5)
    assert [curve.tolist() for curve in curves] == [[9.0, 5.0, 4.0], [8.0, 6.0]]
    assert lines == [3.5]
    assert (tmp_path / "restarts.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="no start with an iteration"):
        plot_restarts([np.zeros(0)], tmp_path / "none.png")


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(ImportError, match=r"pip install 'partita\[plot\]'"):
        plot_convergence({}, tmp_path / "plot.png")


def test_long_tables_say_what_they_leave_out():
    estimate = np.arange(300.0)
    table = CoefficientTable.of([f"w{i}" for i in range(300)], estimate, np.ones(300), 0.9, "Many")
    assert "(100 more rows; `top` chooses those with the largest |z|)" in str(table)
    assert table.top(2).names == ("w299", "w298")
    assert "more rows" not in str(table.top(2))


def test_counts_are_shown_once_a_second(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("partita.report.progress.time.monotonic", lambda: now[0])
    show = CountPrinter("standard errors", 100)
    for done, seconds in ((8, 0.5), (16, 1.2), (24, 1.9), (32, 2.3)):
        now[0] = seconds
        show(done)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["standard errors: 16 of 100 draws, 1.2 s", "standard errors: 32 of 100 draws, 2.3 s"]

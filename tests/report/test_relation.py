from __future__ import annotations

import numpy as np
import pytest

from partita.report import plot_relation

pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install 'partita[plot]')")


def drawn(monkeypatch, *arguments, **options):
    """The matrix in the picture, and how many lines divide it."""
    from matplotlib.axes import Axes

    seen = []
    show, line = Axes.imshow, Axes.axhline
    monkeypatch.setattr(Axes, "imshow", lambda self, image, **k: seen.append(np.array(image)) or show(self, image, **k))
    monkeypatch.setattr(Axes, "axhline", lambda self, y, **k: seen.append(y) or line(self, y, **k))
    plot_relation(*arguments, **options)
    return seen[0], len(seen) - 1


def test_rows_of_a_cluster_are_side_by_side(monkeypatch, tmp_path, rng):
    labels = rng.integers(0, 3, 30)
    V = np.eye(3)[labels]
    blocks = np.sort(labels)[:, None] == np.sort(labels)
    for given in (V, V @ V.T):
        image, lines = drawn(monkeypatch, given, tmp_path / "m.png", labels)
        np.testing.assert_allclose(image, blocks)
        assert lines == 2
    assert (tmp_path / "m.png").stat().st_size > 1000


def test_without_labels_the_relation_itself_orders_rows(monkeypatch, tmp_path, rng):
    V = np.eye(2)[rng.permutation(np.arange(20) % 2)]
    image, lines = drawn(monkeypatch, V, tmp_path / "m.png")
    np.testing.assert_allclose(image, np.kron(np.eye(2), np.ones((10, 10))))
    assert lines == 0


def test_many_rows_are_thinned_out(monkeypatch, tmp_path):
    image, _ = drawn(monkeypatch, np.eye(4)[np.arange(5000) % 4], tmp_path / "m.png", np.arange(5000) % 4)
    assert image.shape == (1000, 1000)
    np.testing.assert_allclose(image.mean(), 0.25, atol=0.01)


def test_bad_shapes_are_named(tmp_path):
    with pytest.raises(ValueError, match="M must have shape"):
        plot_relation(np.ones((2, 3)), tmp_path / "m.png")
    with pytest.raises(ValueError, match=r"labels must have shape \(3,\)"):
        plot_relation(np.ones((3, 1)), tmp_path / "m.png", [0, 1])

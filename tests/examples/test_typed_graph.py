"""The example with two types of nodes runs, and its graph helps."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PATH = Path(__file__).resolve().parents[2] / "examples" / "typed_graph.py"
_SPEC = importlib.util.spec_from_file_location("typed_graph", _PATH)
typed_graph = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(typed_graph)


def test_the_graph_helps(capsys):
    found = typed_graph.main(n_train=60, n_test=60)
    assert found["paper"]["graph"] > found["paper"]["words alone"] + 0.02
    assert found["author"]["graph"] > found["author"]["words alone"] + 0.08
    assert "theory" in capsys.readouterr().out

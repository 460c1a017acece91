"""The example on hidden groups runs and draws its pictures."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_PATH = Path(__file__).resolve().parents[2] / "examples" / "hidden_groups.py"
_SPEC = importlib.util.spec_from_file_location("hidden_groups", _PATH)
hidden_groups = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hidden_groups)


def test_it_runs(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    hidden_groups.main(n=60, pictures=str(tmp_path))
    out = capsys.readouterr().out
    assert "from the relaxation: objective" in out
    assert "filled in, group first" in out
    assert {path.name for path in tmp_path.iterdir()} == {"relation.png", "restarts.png"}

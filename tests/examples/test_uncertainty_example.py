"""The example on uncertainty runs and says what it should."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PATH = Path(__file__).resolve().parents[2] / "examples" / "uncertainty.py"
_SPEC = importlib.util.spec_from_file_location("uncertainty", _PATH)
uncertainty = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(uncertainty)


def test_it_runs(capsys):
    uncertainty.main(n=3, samples=500)
    out = capsys.readouterr().out
    assert "of the 95 % intervals hold the truth" in out
    assert "frontier" in out

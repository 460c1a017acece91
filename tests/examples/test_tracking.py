"""The example on tracking runs, and its probabilities are right."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PATH = Path(__file__).resolve().parents[2] / "examples" / "tracking.py"
_SPEC = importlib.util.spec_from_file_location("tracking", _PATH)
tracking = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tracking)


def test_things_are_followed(capsys):
    found = tracking.main(train=150, test=150)
    assert found["model"] > 0.9
    assert found["model"] > found["nearest"] + 0.1
    assert found["calibration"] < 0.02
    out = capsys.readouterr().out
    assert "full likelihood" in out
    assert "column alone[0]" in out

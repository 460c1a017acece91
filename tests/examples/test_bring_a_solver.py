"""The example that learns through CP-SAT."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PATH = Path(__file__).resolve().parents[2] / "examples" / "bring_a_solver.py"
_SPEC = importlib.util.spec_from_file_location("bring_a_solver", _PATH)
example = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(example)


def test_tastes_are_found_through_cp_sat(capsys):
    model = example.main(days=12, orders=8)
    profit, late, distance = model.parameters_
    assert late > profit > 0 > distance
    assert model.gap_ <= 1e-2 * 12
    assert "calls of CP-SAT" in capsys.readouterr().out

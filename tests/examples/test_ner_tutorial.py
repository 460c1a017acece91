"""The tutorial of sklearn-crfsuite, start to end, on a small slice."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from partita import objectives


@pytest.fixture
def tutorial(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "examples"))
    return importlib.import_module("ner_tutorial")


def run(tutorial, capsys, sentences):
    candidates = 2 if hasattr(objectives, "L1") else 0  # the search needs l1
    tutorial.main(["--sentences", str(sentences), "--candidates", str(candidates)])
    text = capsys.readouterr().out
    for title in ("Likely transitions", "Strongest for", "three best labellings", "position 0: "):
        assert title in text
    assert ("best of 2 by cross-validation" in text) == bool(candidates)
    return float(re.search(r"weighted F1 of labels other than O (\d\.\d+)", text).group(1))


def test_it_runs_on_made_up_addresses(tutorial, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tutorial, "__file__", str(tmp_path / "repository" / "examples" / "ner_tutorial.py"))
    monkeypatch.delenv("PARTITA_DATA", raising=False)
    assert run(tutorial, capsys, 100) > 0.6


@pytest.mark.data
def test_it_runs_on_spanish_news(tutorial, capsys, monkeypatch, data_dir):
    monkeypatch.setenv("PARTITA_DATA", str(data_dir))
    assert run(tutorial, capsys, 200) > 0.3

"""What the project declares: the files of its source distribution, and the oldest versions of what it needs."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_source_distribution_has_every_test_and_what_they_read(monkeypatch):
    filelist = pytest.importorskip("setuptools.command.egg_info", reason="no setuptools here")
    if not (ROOT / "MANIFEST.in").exists():
        pytest.skip("not within the project's folder")
    monkeypatch.chdir(ROOT)
    chosen = filelist.FileList()
    for folder in ("tests", "examples", "docs", "benchmarks"):
        chosen.allfiles = [*(chosen.allfiles or []), *_files(folder)]
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        if not line.startswith("include "):
            chosen.process_template_line(line)
    missing = {path for path in _files("tests") if path not in chosen.files}
    assert not missing
    assert "examples/addresses.py" in chosen.files
    assert not [path for path in chosen.files if path.endswith((".pyc", ".nbi", ".nbc"))]


def _files(folder: str) -> list[str]:
    """All files that are not made by running them."""
    return [
        os.path.join(where, name)
        for where, _, names in os.walk(folder)
        if "__pycache__" not in where and ".hypothesis" not in where
        for name in names
    ]


def test_oldest_versions_are_those_of_the_project():
    spec = importlib.util.spec_from_file_location("oldest", Path(__file__).with_name("oldest.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = dict(line.split("==") for line in module.constraints())
    assert {"numpy", "scipy", "numba", "scikit-learn", "threadpoolctl"} <= set(found)
    assert found["numba"] == "0.61"  # 0.60 gives wrong numbers
    assert found["clarabel"].endswith(".*")

"""The short form of ``make test-portable``: what is most sensitive to rounding, under two other families of BLAS kernels."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("portable", Path(__file__).with_name("portable.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_verdicts_do_not_depend_on_the_kernels_of_blas():
    portable = _load()
    native, tried = portable.kernels_in_use(), 0
    for family in ("Nehalem", "SkylakeX", "Sandybridge", "Haswell"):
        if family == native or tried == 2 or portable.kernels_in_use(family) != family:
            continue
        # One thread: threads of BLAS beside those of the whole suite would wait for each other.
        chosen = {"OPENBLAS_CORETYPE": family, "OPENBLAS_NUM_THREADS": "1"}
        counts, failed, output = portable.run_tests(chosen, ["-p", "no:xdist", "-m", "rounding", *portable.SENSITIVE])
        assert not failed, output
        assert counts["passed"] >= 40
        tried += 1
    if not tried:
        pytest.skip("BLAS here has one family of kernels")


def test_a_failure_is_counted_and_named(tmp_path):
    portable = _load()
    (tmp_path / "test_two.py").write_text("def test_right():\n    pass\n\n\ndef test_wrong():\n    assert False\n")
    counts, failed, _ = portable.run_tests({}, ["-p", "no:xdist", str(tmp_path)])
    assert counts == {"passed": 1, "failed": 1, "skipped": 0}
    assert [name.rpartition("::")[2] for name in failed] == ["test_wrong"]
    assert portable.kernels_in_use("no such processor") != "no such processor"

"""Kernels where their cache cannot be written."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from partita.numerics import jit

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "partita"
SCRIPT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from partita.numerics import jit, math
    value = math.exp(1.0)
print(f"{value:.6f}", sum("NUMBA_CACHE_DIR" in str(w.message) for w in caught), math.exp._cache.__class__.__name__)
"""


def unprivileged(command):
    """The command such that permissions hold for root too; skips where that cannot be done."""
    if os.geteuid() != 0:
        return command
    if shutil.which("setpriv") is None:
        pytest.skip("root may write anywhere, and there is no setpriv to give that up")
    dropped = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}", *command]


@pytest.fixture
def read_only(tmp_path):
    """A copy of the package and a home, both write-protected, and a folder for temporary files."""
    if not hasattr(os, "geteuid"):
        pytest.skip("permissions of folders are those of POSIX")
    package = tmp_path / "package" / "partita"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "home").mkdir()
    (tmp_path / "temporary").mkdir()
    protected = [tmp_path / "home", package.parent, *(p for p in package.rglob("*") if p.is_dir()), package]
    for folder in protected:
        folder.chmod(0o555)
    yield tmp_path
    for folder in protected:
        folder.chmod(0o755)


def run(folder):
    keep = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    environment = keep | {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "temporary"),
        "PYTHONPATH": str(folder / "package"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = unprivileged([sys.executable, "-c", SCRIPT])
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_kernels_are_cached_among_temporary_files_if_package_and_home_are_read_only(read_only):
    assert run(read_only) == ["2.718282", "0", "FunctionCache"]
    (folder,) = (read_only / "temporary").glob("partita-kernels*")
    assert folder.stat().st_mode & 0o077 == 0
    assert list(folder.rglob("*.nbc"))


def test_a_cache_that_others_could_write_to_is_not_used(read_only):
    (read_only / "temporary" / f"partita-kernels-{os.geteuid()}").mkdir(mode=0o777)
    (read_only / "temporary" / f"partita-kernels-{os.geteuid()}").chmod(0o777)
    assert run(read_only) == ["2.718282", "1", "NullCache"]


def test_a_cache_that_is_full_is_left_alone(monkeypatch):
    kernel = jit.compiled()(lambda x: x + 1.0)
    jit._warn.cache_clear()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel._cache, "save_overload", functools.partial(jit._save, kernel._cache, full))
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR"):
        assert kernel(1.0) == 2.0
    assert kernel(1) == 2.0


TUPLES = """
import numpy as np
from partita.chain.kernels.attributes import common_scores
from partita.chain.kernels.tuples import Entries
entries = Entries(np.zeros(0), np.array([1, 0], np.uint32), np.array([0, 2], np.uint64))
U = np.empty((1, 2))
common_scores(entries, np.array([[1.0, 2.0], [3.0, 5.0]]), 0, 1, U)
print(*U[0], sum(common_scores.stats.cache_hits.values()), sum(common_scores.stats.cache_misses.values()))
"""


def test_kernels_of_named_tuples_are_compiled_by_the_first_process_only(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}
    command, answers = [sys.executable, "-c", TUPLES], []
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.split())
    assert answers == [["4.0", "7.0", "0", "1"], ["4.0", "7.0", "1", "0"]]

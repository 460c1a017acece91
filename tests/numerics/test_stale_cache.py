"""Caches of kernels of another version, whose types are elsewhere now."""

import subprocess
import sys
from pathlib import Path

MODULE = """
from typing import Any, NamedTuple
from partita.numerics.jit import kernel
{where}

@kernel
def total(pair):
    return pair.a + pair.b
"""
PAIR = "class Pair(NamedTuple):\n    a: Any\n    b: Any\n"


def test_a_cache_that_names_what_has_moved_is_made_anew(tmp_path: Path):
    """numba reads the list of what is cached before it compares the version of the source."""
    (tmp_path / "old_home.py").write_text("from typing import Any, NamedTuple\n\n" + PAIR)
    kernels = tmp_path / "sums.py"
    ask = "import sums; print(sums.total(sums.Pair(1.0, 2.0)))"

    def run(where: str) -> str:
        kernels.write_text(MODULE.format(where=where))
        done = subprocess.run([sys.executable, "-c", ask], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("from old_home import Pair\n\n\n") == "3.0"  # as many lines: indices are found by the line of a kernel
    assert any(b"old_home" in index.read_bytes() for index in tmp_path.rglob("*.nbi"))
    (tmp_path / "old_home.py").unlink()
    assert run(PAIR) == "3.0"

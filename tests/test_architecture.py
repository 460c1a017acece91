"""The house has rooms, and imports go one way."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "partita"

# What each room may import from. The version, and `_lazy`, which imports nothing, are open to all.
ALLOWED = {
    "core": set(),
    "kernels": {"core"},
    "structures": {"core", "kernels"},
    "features": {"core", "kernels", "structures"},
    "inference": {"core", "kernels", "structures"},
    "bounds": {"core", "kernels", "structures", "features"},
    "objectives": {"core", "kernels", "structures", "features", "inference", "bounds"},
    "solvers": {"core", "kernels.linalg"},
    "io": {"core", "structures"},
    "report": {"core"},
    "estimators": {"core", "structures", "features", "inference", "bounds", "objectives", "solvers", "io", "report"},
}


def _imports(path: Path) -> list[str]:
    """Dotted paths below the package that a file imports."""
    parts = ["partita", *path.relative_to(SOURCE).with_suffix("").parts]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] == "partita"]
        elif isinstance(node, ast.ImportFrom):
            base = parts[: len(parts) - node.level] if node.level else []
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            if module == "partita":
                found += [f"partita.{alias.name}" for alias in node.names]
            elif module.startswith("partita."):
                found += [f"{module}.{alias.name}" for alias in node.names]
    return [name.removeprefix("partita.") for name in found]


def _allowed(target: str, room: str) -> bool:
    own = target.split(".")[0]
    if own in (room, "__version__", "_lazy"):
        return True
    return any(target == rule or target.startswith(rule + ".") for rule in ALLOWED[room])


def test_imports_go_one_way():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        if len(relative.parts) == 1:
            continue
        room = relative.parts[0]
        assert room in ALLOWED, f"{room} is not a room of the design"
        wrong += [f"{relative} imports {name}" for name in _imports(path) if not _allowed(name, room)]
    assert not wrong, "\n".join(wrong)


def test_the_checker_sees_a_wrong_edge():
    assert not _allowed("bounds.dense.Quadratic", "solvers")
    assert not _allowed("kernels.dense.forward", "solvers")
    assert _allowed("kernels.linalg.CholeskyFactor", "solvers")


def test_library_never_prints_and_kernels_keep_infinities():
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"^\s*print\(", text, re.M), path
        assert "fastmath=True" not in text, path


@pytest.mark.parametrize("name", ["partita", "partita.io"])
def test_public_names_resolve_and_are_listed(name):
    package = importlib.import_module(name)
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018

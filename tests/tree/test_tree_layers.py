"""Imports within the folder go one way, and out of it to the ground floor only."""

from __future__ import annotations

import ast
from pathlib import Path

import partita.tree

FOLDER = Path(partita.tree.__file__).parent
#: From the lowest: what a layer may import from the folder is itself and what comes before.
LAYERS = ("kernels", "layout", "best", "sums", "structure", "dependency", "features", "oracles")
#: What may be imported from outside, with which the names of modules begin.
GROUND = (
    *("core.", "kernels._jit.", "kernels._math.", "kernels.linalg.", "kernels.dense.", "kernels.sparse."),
    "inference.map.oracle.",
)


def imports(path):
    """Names below the package that a file imports, as dotted paths."""
    here = ["partita", "tree", *path.relative_to(FOLDER).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(here[: len(here) - node.level + 1])
            module = f"{base}.{node.module}" if node.module else base
            for alias in node.names:
                yield f"{module}.{alias.name}".removeprefix("partita.")


def layer(name):
    return LAYERS.index(name.split(".")[0])


def test_layers():
    wrong = []
    for path in sorted(FOLDER.rglob("*.py")):
        own = path.relative_to(FOLDER).with_suffix("").parts[0]
        if own == "__init__":
            continue
        for name in imports(path):
            if name.startswith("tree."):
                if layer(name.removeprefix("tree.")) > layer(own):
                    wrong.append(f"{path.name} imports {name}")
            elif not (name + ".").startswith(GROUND):
                wrong.append(f"{path.name} imports {name}")
    assert not wrong, "\n".join(wrong)

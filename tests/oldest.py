"""The oldest versions that pyproject.toml declares, as pip's constraints: ``make test-oldest`` installs these.

python tests/oldest.py > constraints.txt
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

#: Extras whose packages are pinned too, beside what Partita always needs. Tools that only run the tests are not.
EXTRAS = ("plot", "constraints", "matching", "maxflow", "planar", "lapx", "cvxpy")


def constraints() -> list[str]:
    """``name==version`` for each ``name>=version`` that Partita needs; for extras any patch of it: some lack the first."""
    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
    extras = [item for name in EXTRAS for item in project["optional-dependencies"][name]]
    # Later ones of these do not work with the oldest NumPy.
    extras += [item for item in project["optional-dependencies"]["test"] if item.startswith("pyarrow")]
    return [*_pinned(project["dependencies"], ""), *_pinned(extras, ".*")]


def _pinned(declared: list[str], patch: str) -> list[str]:
    found = (re.fullmatch(r"([\w-]+)>=([\d.]+)", item) for item in declared)
    return [f"{match[1]}=={match[2]}{patch}" for match in found if match]


if __name__ == "__main__":
    print("\n".join(constraints()))

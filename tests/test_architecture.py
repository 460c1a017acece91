"""The house: families on a shared ground floor, and imports that go one way."""

from __future__ import annotations

import ast
import graphlib
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "partita"

#: What each shared room may import from, besides itself. `cli` sees all.
SHARED = {
    "core": set(),
    "numerics": {"core"},
    "inference": {"core", "numerics"},
    "objectives": {"core", "numerics", "inference"},
    "solvers": {"core", "numerics.linalg"},
    "io": {"core"},
    "report": {"core"},
    "estimators": {"core", "numerics", "inference", "objectives", "solvers", "io", "report"},
    "distributed": {"core", "objectives"},
}
#: The families, and the earlier ones that each may see through their `__init__`.
FAMILIES = {
    "softmax": set(),
    "chain": {"softmax"},
    "graph": {"softmax", "chain"},
    "bayesnet": {"softmax", "chain", "graph"},
    "matching": set(),
    "tree": set(),
    "oracle": set(),
}
#: Layers of a family: a file sees its own and those before it. `registry` finds engines and oracles by name.
LAYERS = ("kernels", "structure", "features", "engines", "oracles", "bounds", "objective", "data", "estimators")
#: Files of a family that stand beside the layers, and where they stand: after the layer.
BESIDE = {"registry": "kernels", "uai": "structure", "bif": "structure", "relaxation": "objective"}
#: Rooms that kernels may see.
BELOW_KERNELS = {"core", "numerics"}


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module without those of its functions: imports there are lazy, those for types alone are not."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from _outside_functions(node)


def _imports(name: str, nodes: Iterable[ast.AST] | None = None) -> list[str]:
    """Modules of the package that a module imports, anywhere in it, or in some nodes of it."""
    package = name.split(".") if MODULES[name].name == "__init__.py" else name.split(".")[:-1]
    found = []
    for node in ast.walk(TREES[name]) if nodes is None else nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = ".".join([*base, *(node.module.split(".") if node.module else [])])
            found += [full if (full := f"{module}.{alias.name}".strip(".")) in MODULES else module for alias in node.names]
    return found


def _layer(parts: list[str]) -> int | None:
    name = BESIDE.get(parts[1], parts[1]) if len(parts) > 1 else None
    return LAYERS.index(name) if name in LAYERS else None


def _complaint(source: str, target: str) -> str | None:
    """What is wrong with an import, if anything."""
    mine, theirs = source.split("."), target.split(".")
    room, other = mine[0], theirs[0]
    if (len(mine) == 1 and room not in FAMILIES | SHARED.keys()) or room == "cli" or other in ("", "_lazy"):
        return None  # public faces, the command
    if other not in FAMILIES and other not in SHARED:
        return None  # public faces are lazy
    if room in SHARED:
        allowed = other == room or any(target == rule or target.startswith(rule + ".") for rule in SHARED[room])
        return None if allowed else "a shared room sees the ground floor below it only"
    if other in FAMILIES and other != room:
        if other not in FAMILIES[room]:
            return "order of the families"
        return None if len(theirs) == 1 else "other families only through their __init__"
    a, b = _layer(mine), _layer(theirs)
    if other == room:
        return "order of the layers" if a is not None and b is not None and b > a else None
    if a == 0 and mine[1] == "kernels" and other not in BELOW_KERNELS:
        return "kernels see core and numerics only"
    if other == "estimators" and a is not None and a < LAYERS.index("data"):
        return "shared estimators are for data and estimators"
    return None


def test_imports_go_one_way():
    wrong = [f"{name} imports {to}: {why}" for name in MODULES for to in _imports(name) if (why := _complaint(name, to))]
    assert not wrong, "\n".join(wrong)


def _cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Modules of which each is imported by the next, the last one being the first; none if there is no such cycle."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_there_are_no_cycles_not_even_of_types():
    cycle = _cycle({name: _imports(name, _outside_functions(TREES[name])) for name in MODULES})
    assert not cycle, " is imported by ".join(cycle)


def test_the_checker_sees_a_cycle_of_types():
    tree = ast.parse("if TYPE_CHECKING:\n    from .b import B\ndef f():\n    from .c import C")
    assert [node.module for node in _outside_functions(tree) if isinstance(node, ast.ImportFrom)] == ["b"]
    assert _cycle({"a": ["b"], "b": ["a"]}) == ["a", "b", "a"]
    assert not _cycle({"a": ["b", "c"], "b": ["c"]})


def test_nearly_all_imports_stay_in_the_family_or_go_to_shared_rooms():
    rooms = [(name.split(".")[0], to.split(".")[0]) for name in MODULES if "." in name for to in _imports(name)]
    home = sum(a == b or b not in FAMILIES for a, b in rooms)
    assert home >= 0.9 * len(rooms), f"{home} of {len(rooms)}"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("solvers.newton", "softmax.bounds.quadratic"),
        ("solvers.newton", "numerics.dense"),
        ("objectives.l1", "softmax"),
        ("softmax.objective.likelihood", "chain"),
        ("chain.objective.likelihood", "softmax.structure"),
        ("graph.engines.gibbs", "graph.oracles.max_flow"),
        ("graph.kernels.gibbs", "inference.oracle"),
        ("matching.structure", "graph"),
        ("core.results", "numerics.jit"),
    ],
)
def test_the_checker_sees_a_wrong_edge(source, target):
    assert _complaint(source, target)


def test_the_checker_lets_right_edges_pass():
    right = [("solvers.newton", "numerics.linalg"), ("chain.bounds", "softmax"), ("graph.bounds", "graph.oracles.max_flow")]
    assert not any(_complaint(*edge) for edge in right)


def _offenders(pattern: str, *apart: str) -> list[str]:
    expression = re.compile(pattern, re.M)
    return [
        f"{name}: {found.group(0).strip()}"
        for name, path in MODULES.items()
        if name.split(".")[-1] not in apart
        for found in expression.finditer(path.read_text())
    ]


def test_what_is_never_written():
    never = {
        "printing from the library": _offenders(r"^\s*print\("),
        "flags that break infinities": _offenders(r"fastmath=True"),
        "underscore names across files": _offenders(r"^\s*from \.[\w.]* import .*\b_[a-z]\w*"),
        "names of modules as strings": _offenders(r"[\"']partita\.[a-z_]+[.:]\w+", "registry"),
    }
    assert not any(never.values()), "\n".join(f"{what}: {where}" for what, where in never.items() if where)


def test_every_package_says_what_lives_there():
    silent = [name for name, path in MODULES.items() if path.name == "__init__.py" and not ast.get_docstring(TREES[name])]
    assert not silent


FACES = [
    *("", "io", "structures", "features", "objectives", "bounds", "inference", "constraints", "metrics"),
    *(family for family in FAMILIES if family in MODULES),
]


@pytest.mark.parametrize("name", [f"partita.{face}".rstrip(".") for face in FACES])
def test_public_names_resolve_and_are_listed(name):
    package = importlib.import_module(name)
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_names_that_moved_are_found_with_a_warning():
    import partita

    with pytest.warns(FutureWarning, match=r"partita\.ConvexEM is partita\.objectives\.ConvexEM now"):
        found = partita.ConvexEM
    assert found is importlib.import_module("partita.objectives").ConvexEM

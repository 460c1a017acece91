"""Bayesian networks in the Interchange Format (BIF) of the bnlearn repository, pgmpy and JavaBayes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..core.memory import check_memory, product
from ..core.results import FloatArray, IntArray
from ..core.warn import warn
from ..io.text import Path, read_text, write_text
from .structure.bayes_net import find_cycle
from .structure.discrete_network import SUM_CURE, DiscreteNetwork, far_sum, row_sums, shown_names

#: How far the sum of a distribution may be from one without a warning.
ROW_SUM = 1e-6
#: Axes that an array of numpy 1 can have.
MOST_AXES = 32
TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<string>"[^"\n]*")|(?P<mark>[{}()\[\]|,;"])"""
    r"""|(?P<word>(?:(?!//|/\*)[^\s{}()\[\]|,;"])+)|(?P<open>/\*)""",
    re.DOTALL,
)
#: What can be written as a name without quotes. Words of the format itself are quoted too.
PLAIN = re.compile(r"""(?:(?!//|/\*)[^\s{}()\[\]|,;"])+""")
KEYWORDS = frozenset(("default", "discrete", "network", "probability", "property", "table", "type", "variable"))


# Reading


@dataclass
class _Block:
    """A probability block: where it begins, and what it says."""

    at: int
    child: str
    parents: list[str]
    rows: list[tuple[int, list[str], list[float]]] = field(default_factory=list)  # place, states of the parents, values
    table: tuple[int, list[float]] | None = None
    default: tuple[int, list[float]] | None = None


class _Parser:
    """Reads tokens; `fail` names the line of the last one."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = os.fspath(path), read_text(path)
        self.tokens: list[tuple[int, str, bool]] = []  # place, text, whether it may be a name
        for match in TOKEN.finditer(self.text):
            kind = match.lastgroup
            if kind == "open":
                raise self.fail("a comment that does not end", match.start())
            if kind != "space":
                body = match[0][1:-1] if kind == "string" else match[0]
                self.tokens.append((match.start(), body, kind != "mark"))
        self.next = 0

    def fail(self, message: str, place: int | None = None) -> ValueError:
        return ValueError(f"{self.path}, line {self.line(place)}: {message}")

    def line(self, place: int | None = None) -> int:
        if place is None:
            place = self.tokens[min(self.next, len(self.tokens)) - 1][0] if self.tokens and self.next else 0
        return self.text.count("\n", 0, place) + 1

    @property
    def place(self) -> int:
        return self.tokens[self.next - 1][0] if self.next else 0

    @property
    def done(self) -> bool:
        return self.next == len(self.tokens)

    def take(self, what: str) -> tuple[str, bool]:
        if self.done:
            raise self.fail(f"the file ends where {what} should be")
        _, text, word = self.tokens[self.next]
        self.next += 1
        return text, word

    def peek(self, mark: str) -> bool:
        """Whether the next token is this mark."""
        return not self.done and self.tokens[self.next][1:] == (mark, False)

    def skip(self, *marks: str) -> None:
        while any(map(self.peek, marks)):
            self.next += 1

    def mark(self, mark: str, where: str) -> None:
        text, word = self.take(f"{mark!r} {where}")
        if word or text != mark:
            raise self.fail(f"expected {mark!r} {where}, got {text!r}")

    def name(self, what: str) -> str:
        text, word = self.take(what)
        if not word or not text:
            raise self.fail(f"expected {what}, got {text!r}")
        return text

    def names(self, what: str, end: str) -> list[str]:
        """Names up to a mark, between commas or white space."""
        found = []
        self.skip(",")
        while not self.peek(end):
            found.append(self.name(what))
            self.skip(",")
        self.next += 1
        return found

    def values(self, what: str) -> list[float]:
        found = []
        self.skip(",")
        while not self.peek(";"):
            word = self.name(what)
            try:
                value = float(word) if "_" not in word else math.nan
            except ValueError:
                value = math.nan
            if not 0.0 <= value < math.inf:
                raise self.fail(f"{what} must be finite numbers that are not negative, got {word!r}")
            found.append(value)
            self.skip(",")
        self.next += 1
        return found

    def skip_property(self) -> None:
        while self.take("';' after a property")[0] != ";":
            pass


def read_bif(path: Path) -> DiscreteNetwork:
    """Read a network, plain or gzip-compressed.

    Distributions are kept as they are written; one whose sum is further than 1e-6 from one is warned of, further than 0.01
    refused. Properties are
    passed over. After ``table`` the variable itself changes slowest and its last parent fastest, as the format has it.

    Examples
    --------
    >>> network = read_bif("asia.bif")                                   # doctest: +SKIP
    >>> graph, potentials = network.factor_graph()                       # doctest: +SKIP
    >>> given, index = graph.condition(network.evidence({"smoke": "yes"}))  # doctest: +SKIP
    >>> given.log_partition(potentials[index])                           # doctest: +SKIP
    """
    parser = _Parser(path)
    name, states, blocks = "unknown", {}, {}  # type: str, dict[str, tuple[str, ...]], dict[str, _Block]
    while not parser.done:
        keyword = parser.name("network, variable or probability")
        if keyword == "network":
            name = _read_network(parser)
        elif keyword == "variable":
            variable, found = _read_variable(parser)
            if variable in states:
                raise parser.fail(f"variable {variable} is declared twice")
            states[variable] = found
        elif keyword == "probability":
            block = _read_probability(parser)
            if block.child in blocks:
                line = parser.line(blocks[block.child].at)
                raise parser.fail(f"{block.child} has a distribution already, on line {line}", block.at)
            blocks[block.child] = block
        else:
            raise parser.fail(f"expected network, variable or probability, got {keyword!r}")
    if not states:
        raise parser.fail("the file ends without a variable")
    total, tables = 0, {}
    for block in blocks.values():
        tables[block.child] = _table(parser, block, states)
        total += tables[block.child].size
        check_memory(f"{parser.path}: a network of {total} probabilities", 8.0 * total)
    for variable in states:
        if variable not in blocks:
            raise parser.fail(f"the file ends without the distribution of {variable}")
    parents = {variable: tuple(blocks[variable].parents) for variable in states}
    loop = find_cycle(parents)
    if loop:
        raise parser.fail(f"the network must have no cycle, got {' -> '.join(loop)}", blocks[loop[-1]].at)
    order = tuple(states)
    return DiscreteNetwork(
        order, tuple(states.values()), tuple(parents.values()), tuple(tables[variable] for variable in order), name
    )


def _read_network(parser: _Parser) -> str:
    name = "unknown"
    if not parser.peek("{"):
        name = parser.name("the name of the network")
    parser.mark("{", "after network")
    while not parser.peek("}"):
        keyword = parser.name("property or '}'")
        if keyword != "property":
            raise parser.fail(f"expected property or '}}', got {keyword!r}")
        parser.skip_property()
    parser.next += 1
    return name


def _read_variable(parser: _Parser) -> tuple[str, tuple[str, ...]]:
    variable = parser.name("the name of a variable")
    parser.mark("{", f"after variable {variable}")
    found: tuple[str, ...] | None = None
    while not parser.peek("}"):
        keyword = parser.name("type, property or '}'")
        if keyword == "property":
            parser.skip_property()
            continue
        if keyword != "type" or found is not None:
            raise parser.fail(f"expected {'type, ' if found is None else ''}property or '}}', got {keyword!r}")
        kind = parser.name("discrete")
        if kind != "discrete":
            raise parser.fail(f"the type of {variable} must be discrete, got {kind!r}")
        parser.mark("[", "after discrete")
        count = parser.name("the number of states")
        parser.mark("]", "after the number of states")
        parser.mark("{", "before the states")
        found = tuple(parser.names("a state", "}"))
        if not found or count != str(len(found)):
            raise parser.fail(f"{variable} must have {count} states, at least one; got {len(found)}")
        if len(set(found)) < len(found):
            raise parser.fail(f"{variable} must have different states, got {shown_names(found)}")
        parser.skip(";")
    parser.next += 1
    if found is None:
        raise parser.fail(f"variable {variable} has no type")
    return variable, found


def _read_probability(parser: _Parser) -> _Block:
    at = parser.place
    parser.mark("(", "after probability")
    child, parents = parser.name("the name of a variable"), []
    parser.skip("|", ",")
    while not parser.peek(")"):
        parents.append(parser.name("the name of a parent"))
        parser.skip("|", ",")
    parser.next += 1
    block = _Block(at, child, parents)
    parser.mark("{", f"after the variables of probability ( {child} … )")
    while not parser.peek("}"):
        if parser.peek("("):
            parser.next += 1
            place = parser.place
            given = parser.names("the state of a parent", ")")
            block.rows.append((place, given, parser.values("probabilities")))
            continue
        keyword = parser.name("table, default, '(' or '}'")
        place = parser.place
        if keyword == "property":
            parser.skip_property()
        elif keyword == "table" and block.table is None:
            block.table = place, parser.values("probabilities")
        elif keyword == "default" and block.default is None:
            block.default = place, parser.values("probabilities")
        else:
            twice = " for the second time" if keyword in ("table", "default") else ""
            raise parser.fail(f"expected table, default, '(' or '}}', got {keyword!r}{twice}")
    parser.next += 1
    return block


def _table(parser: _Parser, block: _Block, states: Mapping[str, tuple[str, ...]]) -> FloatArray:
    """The distribution that a block says, an axis for each parent and the last for the child."""
    shape = _shape(parser, block, states)
    if block.table is not None and (block.rows or block.default):
        raise parser.fail(f"the distribution of {block.child} must have a table or rows, not both", block.table[0])
    found = np.full(shape, np.nan)
    places = np.full(shape[:-1], -1, dtype=np.int64)  # where each distribution is in the file
    if block.table is not None:
        _fill_from_table(parser, block.child, *block.table, found)
        places[...] = block.table[0]
    else:
        _fill_from_rows(parser, block, states, found, places)
    _check_sums(parser, block.child, found, places)
    return found


def _shape(parser: _Parser, block: _Block, states: Mapping[str, tuple[str, ...]]) -> tuple[int, ...]:
    """Numbers of states of the parents and of the child, which are known variables, different, and not too many."""
    child = block.child
    for variable in (child, *block.parents):
        if variable not in states:
            raise parser.fail(f"there is no variable {variable}", block.at)
    if len({child, *block.parents}) < 1 + len(block.parents):
        raise parser.fail(f"probability ( {child} | … ) must have different variables", block.at)
    shape = tuple(len(states[variable]) for variable in (*block.parents, child))
    if len(shape) > MOST_AXES:
        raise parser.fail(f"{child} has {len(block.parents)} parents, more than {MOST_AXES - 1}", block.at)
    what = f"{parser.path}, line {parser.line(block.at)}: the distribution of {child} given {len(block.parents)} parents"
    check_memory(what, 32.0 * product(shape), "Give it fewer parents")
    return shape


def _fill_from_table(parser: _Parser, child: str, at: int, values: list[float], found: FloatArray) -> None:
    """One list of all numbers, in which the child changes slowest."""
    shape = found.shape
    if len(values) != found.size:
        raise parser.fail(f"the table of {child} must have {found.size} numbers, got {len(values)}", at)
    found[...] = np.moveaxis(np.array(values).reshape(shape[-1], *shape[:-1]), 0, -1)
    if far_sum(found) is not None and np.abs(row_sums(np.array(values).reshape(shape)) - 1.0).max() <= ROW_SUM:
        raise parser.fail(
            f"the table of {child} sums to one only if {child} changes fastest, but in BIF the first variable changes "
            "slowest; write it as rows, (states of the parents) probabilities;",
            at,
        )


def _fill_from_rows(
    parser: _Parser, block: _Block, states: Mapping[str, tuple[str, ...]], found: FloatArray, places: IntArray
) -> None:
    """A row of numbers for each configuration of the parents, over the default if there is one."""
    child, width = block.child, found.shape[-1]
    seen: set[tuple[int, ...]] = set()
    codes = [{state: i for i, state in enumerate(states[parent])} for parent in block.parents]
    rows = [] if block.default is None else [(block.default[0], None, block.default[1])]
    for at, given, values in [*rows, *block.rows]:
        if len(values) != width:
            raise parser.fail(f"a distribution of {child} must have {width} numbers, got {len(values)}", at)
        if given is None:
            found[...], places[...] = values, at
            continue
        if len(given) != len(block.parents):
            raise parser.fail(f"a row of {child} must have {len(block.parents)} states of parents, got {len(given)}", at)
        for parent, state, code in zip(block.parents, given, codes, strict=True):
            if state not in code:
                raise parser.fail(f"{parent} has no state {state!r}; there are {shown_names(states[parent])}", at)
        row = tuple(code[state] for state, code in zip(given, codes, strict=True))
        if row in seen:
            raise parser.fail(f"the row ({', '.join(given)}) of {child} is there twice", at)
        seen.add(row)
        found[row], places[row] = values, at
    missing = np.argwhere(places < 0)
    if len(missing):
        names = [states[parent][i] for parent, i in zip(block.parents, missing[0].tolist(), strict=True)]
        which = f"for ({', '.join(names)})" if names else "at all"
        raise parser.fail(f"the distribution of {child} has no numbers {which}", block.at)


def _check_sums(parser: _Parser, child: str, found: FloatArray, places: IntArray) -> None:
    """An error if a distribution is far from summing to one, a warning if it is off by more than rounded digits explain."""
    wrong = far_sum(found)
    if wrong is not None:
        total = "zero" if wrong[1] == 0.0 else f"{wrong[1]:.9g} instead of one; {SUM_CURE}"
        raise parser.fail(f"a distribution of {child} sums to {total}", int(places.flat[wrong[0]]))
    sums = found.sum(-1)
    far = np.abs(sums - 1.0)
    if far.max() > ROW_SUM:
        worst = np.unravel_index(far.argmax(), far.shape)
        warn(f"{parser.path}, line {parser.line(int(places[worst]))}: a distribution of {child} sums to {sums[worst]:.9g}")


# Writing


def write_bif(path: Path, network: DiscreteNetwork) -> None:
    """Write a network, with all digits; compressed if the name ends in .gz. Names that need it are quoted."""
    lines = [f"network {_quoted(network.name)} {{", "}"]
    for name, states in zip(network.variables, network.states, strict=True):
        listed = ", ".join(map(_quoted, states))
        lines += [f"variable {_quoted(name)} {{", f"  type discrete [ {len(states)} ] {{ {listed} }};", "}"]
    for name, parents, table in zip(network.variables, network.parents, network.tables, strict=True):
        scope = _quoted(name) + (f" | {', '.join(map(_quoted, parents))}" if parents else "")
        lines.append(f"probability ( {scope} ) {{")
        of = [network.states[network.index[parent]] for parent in parents]
        for row in np.ndindex(*table.shape[:-1]):
            given = ", ".join(_quoted(states[i]) for states, i in zip(of, row, strict=True))
            lines.append(f"  {f'({given})' if parents else 'table'} {_listed(table[row].tolist())};")
        lines.append("}")
    write_text(path, "\n".join(lines) + "\n")


def _listed(values: Iterable[float]) -> str:
    return ", ".join([repr(value) for value in values])


def _quoted(name: str) -> str:
    if PLAIN.fullmatch(name) and name not in KEYWORDS:
        return name
    if not name or '"' in name or "\n" in name:
        raise ValueError(f"a name in a BIF file must not be empty nor hold a quotation mark or a line break, got {name!r}")
    return f'"{name}"'

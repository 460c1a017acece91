"""Weights of edges from attributes of vertices: distances of numbers, and a weight for each pair of levels, in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import DataWarning
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.stored import stored
from ...core.warn import warn
from ..kernels import attributes as kernels

#: Whole numbers have levels too if there are at most so many.
MOST_LEVELS = 12


@stored
@dataclass(frozen=True)
class Attribute:
    """What is known of the vertices: a column of a table.

    Parameters
    ----------
    name : str
    distance : bool
        Whether values are numbers, whose distance ``|x_i - z_j|`` is a feature.
    levels : tuple
        The values that have a feature for each pair of them, in any order: it is one where one end of an edge has the one
        and the other end the other. Other values have none. Empty if there are no such features.
    """

    name: str
    distance: bool
    levels: tuple[Any, ...] = ()

    @property
    def n_pairs(self) -> int:
        """Pairs of levels, in any order."""
        return len(self.levels) * (len(self.levels) + 1) // 2


class Side(NamedTuple):
    """Vertices as `AttributePairs` sees them: the place of their level among those of each attribute that has any, and their
    numbers for each that has distances. Both have a row for each attribute and a column for each vertex."""

    levels: IntArray
    numbers: FloatArray


class AttributePairs:
    """Features of edges from attributes of their ends, none of which is ever written out for all edges.

    Parameters are the weights of all distances, then for each attribute with levels a weight for each pair of them:
    ``(0, 0), (0, 1), ..., (1, 1), ...``. See `parameter_names`.

    Parameters
    ----------
    attributes : sequence of Attribute
    rows : sequence of Side
        Vertices of every example.
    columns : sequence of Side, optional
        Those of the other side. Edges are then all pairs of a row and a column, row by row.
    ends : int array of shape (edges, 2), optional
        Edges of a graph with one kind of vertices, in the order of their first ends.
    workers : Workers, optional
        Threads; one by default. Results do not depend on them.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.features import Attribute, AttributePairs
    >>> from partita.matching.features import Side
    >>> smokes = Attribute("smokes", distance=False, levels=("no", "yes"))
    >>> side = Side(np.array([[0, 1, 1]]), np.zeros((0, 3)))  # no, yes, yes
    >>> pairs = AttributePairs([smokes], [side], ends=np.array([(0, 1), (0, 2), (1, 2)]))
    >>> pairs.forward(np.array([1.0, -5.0, 2.0]))  # both no, one of each, both yes
    array([[-5., -5.,  2.]])
    """

    n_examples: int
    size: int

    def __init__(
        self,
        attributes: Sequence[Attribute],
        rows: Sequence[Side],
        columns: Sequence[Side] | None = None,
        ends: IntArray | None = None,
        workers: Workers | None = None,
    ) -> None:
        if (columns is None) == (ends is None):
            raise ValueError("give columns, for all pairs of a row and a column, or ends, for edges among the rows")
        self._attributes, self._rows, self._columns = tuple(attributes), list(rows), columns
        self._ends, self._workers = ends, Workers(1) if workers is None else workers
        self._sides = [
            kernels.Ends(*_contiguous(one), *_contiguous(other))
            for one, other in zip(self._rows, self._rows if columns is None else columns, strict=True)
        ]
        sizes = [len(a.levels) + 1 for a in self._attributes if a.levels]  # the last has no weights: values unseen
        self._sizes = np.array(sizes, np.int64)
        self._firsts = np.concatenate([[0], np.cumsum(self._sizes**2)]).astype(np.int64)
        self._distances = sum(a.distance for a in self._attributes)
        self.n_examples = len(self._rows)
        self.size = self._distances + sum(a.n_pairs for a in self._attributes)
        n, m = self._rows[0].levels.shape[1], 0 if columns is None else columns[0].levels.shape[1]
        self._grid = _all_pairs(n, m) if ends is None else _edges(ends, n)

    def forward(self, theta: FloatArray) -> FloatArray:
        entries, at = np.zeros(self._firsts[-1]), self._distances
        for first, size in zip(self._firsts, self._sizes, strict=False):
            table, (a, b) = entries[first : first + size**2].reshape(size, size), np.triu_indices(size - 1)
            table[a, b] = table[b, a] = theta[at : at + len(a)]
            at += len(a)
        tables = kernels.Tables(self._firsts, self._sizes, entries, np.ascontiguousarray(theta[: self._distances]))
        out = np.empty((self.n_examples, int(self._grid.starts[-1])))
        for side, row in zip(self._sides, out, strict=True):
            self._workers.run(kernels.forward, [(self._grid, side, tables, lo, hi, row) for lo, hi in self._ranges()])
        return out

    def adjoint(self, values: FloatArray) -> FloatArray:
        return self._pull(values, 1)

    def squares(self, values: FloatArray) -> FloatArray:
        return self._pull(values, 2)

    def take(self, rows: IntArray) -> AttributePairs:
        mine = rows.tolist()
        columns = None if self._columns is None else [self._columns[i] for i in mine]
        return AttributePairs(self._attributes, [self._rows[i] for i in mine], columns, self._ends, self._workers)

    def example(self, i: int) -> AttributePairs:
        return self.take(np.array([i]))

    def _ranges(self) -> list[tuple[int, int]]:
        starts = self._grid.starts
        return Workers.balanced(starts, float(starts[-1]) * (len(self._sizes) + self._distances))

    def _pull(self, values: FloatArray, power: int) -> FloatArray:
        entries, slopes = np.zeros(self._firsts[-1]), np.zeros(self._distances)
        for side, row in zip(self._sides, np.ascontiguousarray(values), strict=True):
            ranges = self._ranges()
            sums = [kernels.Tables(self._firsts, self._sizes, np.zeros_like(entries), np.zeros_like(slopes)) for _ in ranges]
            tasks = [(self._grid, side, power, row, lo, hi, t) for (lo, hi), t in zip(ranges, sums, strict=True)]
            self._workers.run(kernels.adjoint, tasks)
            for part in sums:
                entries += part.entries
                slopes += part.slopes
        parts = [slopes]
        for first, size in zip(self._firsts, self._sizes, strict=False):
            table, (a, b) = entries[first : first + size**2].reshape(size, size), np.triu_indices(size - 1)
            parts.append(np.where(a == b, table[a, b], table[a, b] + table[b, a]))
        return np.concatenate(parts)


def _contiguous(side: Side) -> tuple[Any, Any]:
    return np.ascontiguousarray(side.levels, dtype=np.uint32), np.ascontiguousarray(side.numbers, dtype=np.float64)


def _all_pairs(n: int, m: int) -> kernels.Grid:
    return kernels.Grid(np.arange(0, n * m + 1, m, dtype=np.int64), np.zeros(n, np.int64), np.arange(m, dtype=np.uint32))


def _edges(ends: IntArray, n: int) -> kernels.Grid:
    if (np.diff(ends[:, 0]) < 0).any():
        raise ValueError("ends must be in the order of their first column: sort edges by their first vertex")
    starts = np.searchsorted(ends[:, 0], np.arange(n + 1)).astype(np.int64)
    return kernels.Grid(starts, starts[:-1], np.ascontiguousarray(ends[:, 1], dtype=np.uint32))


def parameter_names(attributes: Sequence[Attribute]) -> list[str]:
    """A name for each parameter, in their order.

    >>> parameter_names([Attribute("age", True), Attribute("smokes", False, ("no", "yes"))])
    ['|age|', 'smokes: no, no', 'smokes: no, yes', 'smokes: yes, yes']
    """
    names = [f"|{a.name}|" for a in attributes if a.distance]
    for a in attributes:
        names += [f"{a.name}: {a.levels[i]}, {a.levels[j]}" for i, j in zip(*np.triu_indices(len(a.levels)), strict=True)]
    return names


def _columns(table: Any, where: str) -> dict[str, Any]:
    """The columns of a frame, a dict of columns or a matrix, by name."""
    if hasattr(table, "columns") and hasattr(table, "iloc"):
        found = {str(name): np.asarray(table[name]) for name in table.columns}
    elif isinstance(table, Mapping):
        found = {str(name): np.asarray(column) for name, column in table.items()}
    else:
        matrix = np.asarray(table)
        if matrix.ndim != 2:
            raise ValueError(f"{where} must be a table: a frame, a dict of columns, or a matrix with a row for each vertex")
        found = {str(k): column for k, column in enumerate(matrix.T)}
    if not found or any(column.ndim != 1 or len(column) == 0 for column in found.values()):
        raise ValueError(f"{where} must have columns, each with a value for every vertex")
    if len({len(column) for column in found.values()}) > 1:
        raise ValueError(f"{where} has columns of different lengths: { ({k: len(v) for k, v in found.items()}) }")
    for name, column in found.items():
        bad = ~np.isfinite(column) if column.dtype.kind == "f" else np.array([v is None or v != v for v in column.tolist()])
        if bad.any():
            raise ValueError(
                f"{where}: column {name!r} has no finite value at vertex {int(np.argmax(bad))}. Fill in numbers, and give "
                "what is unknown of categories a level of its own, such as 'unknown'"
            )
    return found


def learn_attributes(tables: Sequence[Any]) -> tuple[Attribute, ...]:
    """Attributes of tables with the same columns: frames, dicts of columns, or matrices.

    Numbers have distances. Text, categories, booleans, and whole numbers if there are at most `MOST_LEVELS` of them, have
    levels: those that any of the tables shows.

    >>> learn_attributes([{"age": [20.5, 31.0], "smokes": ["no", "yes"]}])
    (Attribute(name='age', distance=True, levels=()), Attribute(name='smokes', distance=False, levels=('no', 'yes')))
    """
    return _learn(list(enumerate(tables)))


def _learn(tables: Sequence[tuple[int, Any]]) -> tuple[Attribute, ...]:
    """The same with the place of the example of each table."""
    read = [_columns(table, f"the attributes of example {i}") for i, table in tables]
    names = list(read[0])
    for (i, _), columns in zip(tables, read, strict=True):
        _check_names(columns, names, i)
    return tuple(_learned(name, [columns[name] for columns in read]) for name in names)


def _check_names(columns: Mapping[str, Any], names: Sequence[str], i: int) -> None:
    if set(columns) != set(names):
        raise ValueError(f"the attributes of example {i} must be {sorted(names)}, got {sorted(columns)}")


def _learned(name: str, columns: Sequence[Any]) -> Attribute:
    if all(column.dtype.kind in "iuf" for column in columns):
        values = np.unique(np.concatenate(columns).astype(np.float64))
        few = len(values) <= MOST_LEVELS and (values == np.round(values)).all()
        return Attribute(name, True, tuple(values.tolist()) if few else ())
    return Attribute(name, False, tuple(sorted({v for column in columns for v in column.tolist()}, key=str)))


def encode(attributes: Sequence[Attribute], table: Any, i: int) -> Side:
    """The vertices of example i; values without a level of their own get none of its features."""
    columns = _columns(table, f"the attributes of example {i}")
    _check_names(columns, [a.name for a in attributes], i)
    n = len(columns[attributes[0].name])
    levels, numbers = [np.zeros((0, n), np.int64)], [np.zeros((0, n))]
    for attribute in attributes:
        column = columns[attribute.name]
        if attribute.distance and column.dtype.kind not in "iuf":
            raise ValueError(f"the attributes of example {i}: column {attribute.name!r} must hold numbers, as in training")
        if attribute.distance:
            numbers.append(column.astype(np.float64)[None])
        if attribute.levels:
            places = {level: k for k, level in enumerate(attribute.levels)}
            levels.append(np.array([[places.get(value, len(places)) for value in column.tolist()]], np.int64))
    return Side(np.concatenate(levels), np.concatenate(numbers))


def read_attributes(
    X: Sequence[Any], bipartite: bool, attributes: Sequence[Attribute] | None = None
) -> tuple[tuple[Attribute, ...], list[tuple[Side, ...]]]:
    """Examples ``{"attributes": table}``, or ``{"attributes": (table of rows, table of columns)}`` if bipartite: what
    attributes there are (learned from the examples unless given), and for each example its one side or two."""
    tables = [_tables(x, i, bipartite) for i, x in enumerate(X)]
    known = attributes is not None
    if attributes is None:
        attributes = _learn([(i, table) for i, some in enumerate(tables) for table in some])
    sides = [tuple(encode(attributes, t, i) for t in some) for i, some in enumerate(tables)]
    if known:
        _warn_of_unseen(attributes, tables, sides)
    return tuple(attributes), sides


def _warn_of_unseen(
    attributes: Sequence[Attribute], tables: Sequence[tuple[Any, ...]], sides: Sequence[tuple[Side, ...]]
) -> None:
    """Say once which levels training did not have."""
    found: list[tuple[str, str]] = []
    for k, attribute in enumerate([a for a in attributes if a.levels]):
        for i, (some, mine) in enumerate(zip(tables, sides, strict=True)):
            for table, side in zip(some, mine, strict=True):
                unseen = np.flatnonzero(side.levels[k] == len(attribute.levels))
                if len(unseen) and not (found and found[-1][0] == attribute.name):
                    value = _columns(table, "")[attribute.name][unseen[0]]
                    found.append((attribute.name, f"{attribute.name!r} has {value!s} in example {i}"))
    if found:
        warn(
            f"X has levels that training did not have: {', '.join(text for _, text in found)}. Pairs with them have "
            "a weight of zero",
            DataWarning,
        )


def _tables(x: Any, i: int, bipartite: bool) -> tuple[Any, ...]:
    if not isinstance(x, Mapping) or set(x) != {"attributes"}:
        raise ValueError(f"X: example {i} must be a dict with 'attributes', as others are; got {type(x).__name__}")
    found = x["attributes"]
    if not bipartite:
        return (found,)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise ValueError(f"X: example {i} must have two tables of attributes, of rows and of columns: (rows, columns)")
    return tuple(found)


def attribute_pairs(attributes: Sequence[Attribute], sides: Sequence[tuple[Side, ...]], structure: Any) -> AttributePairs:
    """The map of examples on one structure, with the sides of each: one, or two if the structure has two."""
    rows, workers = [some[0] for some in sides], structure.workers
    if structure.left:
        return AttributePairs(attributes, rows, [some[1] for some in sides], workers=workers)
    return AttributePairs(attributes, rows, ends=structure.ends, workers=workers)

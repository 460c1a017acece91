"""Bayesian networks: directed graphs of variables with finitely many states, and of Gaussian leaves."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..core.memory import check_memory, product
from ..core.random import generator
from ..core.results import FloatArray, IntArray
from ..kernels import network as kernels
from .factor_graph import FactorGraph

Name = TypeVar("Name", bound=Hashable)
#: Numbers that are worked on at a time.
CELLS = 2_000_000


class BayesNet:
    """Families of a directed graph: variables 0..n-1 with finitely many states, and Gaussian leaves.

    Parameters
    ----------
    cardinalities : list of int
    parents : list of tuples of int
        Of every variable.
    leaves : list of tuples of int
        The parents of every Gaussian leaf. It has a mean, and perhaps a variance, for each of their configurations.

    Attributes
    ----------
    starts : int array
        The distributions of all variables are one vector: for each variable, and each configuration of its parents (the last
        of them changes first), one probability for each state. This is where each distribution begins.
    offsets : int array
        Where the distributions of each variable begin.
    """

    def __init__(
        self, cardinalities: Sequence[int], parents: Sequence[tuple[int, ...]], leaves: Sequence[tuple[int, ...]] = ()
    ) -> None:
        given = np.asarray(cardinalities)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu") or (given < 1).any():
            raise ValueError(f"cardinalities must be integers >= 1, one for each variable; got {cardinalities!r}")
        self.cardinalities = given.astype(np.int64)
        self.parents, self.leaves = (
            [_checked(what, of, len(given)) for of in each] for what, each in (("parents", parents), ("leaves", leaves))
        )
        if len(self.parents) != len(given):
            raise ValueError(f"parents must have an entry for each of {len(given)} variables, got {len(self.parents)}")
        loop = find_cycle(dict(enumerate(self.parents)))
        if loop:
            raise ValueError(f"the network must have no cycle, got {' -> '.join(map(str, loop))}")
        counts = [self.configurations(of) for of in self.parents]
        entries = sum(int(k) * count for k, count in zip(self.cardinalities, counts, strict=True))
        entries += sum(self.configurations(of) for of in self.leaves)
        check_memory(f"a network of {entries} probabilities", 16.0 * entries, "Give variables fewer parents or fewer states")
        widths = np.repeat(self.cardinalities, counts)
        self.starts = np.concatenate(([0], np.cumsum(widths)))
        self.offsets = self.starts[np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))]
        self.size = int(self.starts[-1])
        self.leaf_sizes = [self.configurations(of) for of in self.leaves]

    def configurations(self, variables: Sequence[int]) -> int:
        """Number of configurations of some variables."""
        return product(self.cardinalities[list(variables)])

    def shape(self, v: int) -> tuple[int, ...]:
        """Numbers of states of the parents of a variable, and of itself."""
        return tuple(self.cardinalities[[*self.parents[v], v]].tolist())

    def log_distributions(self, weights: FloatArray) -> FloatArray:
        """log p of every state in every distribution: p is proportional to the exponential of its weight."""
        out = np.empty(self.size)
        if weights.shape != out.shape:
            raise ValueError(f"weights must be {self.size} numbers, got {weights.shape}")
        kernels.log_distributions(weights, self.starts, 0, len(self.starts) - 1, out)
        return out

    def tables(self, flat: FloatArray) -> list[FloatArray]:
        """The vector of distributions, by variable: an axis for each parent, the last for the variable."""
        return [flat[lo:hi].reshape(self.shape(v)) for v, (lo, hi) in enumerate(self._ends())]

    def _ends(self) -> list[tuple[int, int]]:
        return list(zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True))

    def graph(self, n_rows: int, n_jobs: int | None = None) -> FactorGraph:
        """A factor for each variable over its parents and itself; its table is the distribution.

        If there are leaves, there is one more variable, which is the number of a row of data, and for every leaf a factor
        over that and its parents: the log-density of what the row has there.
        """
        scopes = [(*of, v) for v, of in enumerate(self.parents)] + [(self.n, *of) for of in self.leaves]
        counts = [*self.cardinalities.tolist(), *([n_rows] if self.leaves else [])]
        return FactorGraph(np.array(counts), scopes, n_jobs=n_jobs)

    @property
    def n(self) -> int:
        """Number of variables with finitely many states."""
        return len(self.parents)

    def codes(self, states: IntArray, variables: Sequence[int]) -> IntArray:
        """The number of the configuration of some variables in every row."""
        out = np.zeros(len(states), np.int64)
        for v in variables:
            out = out * self.cardinalities[v] + states[:, v]
        return out

    def order(self) -> list[int]:
        """Variables, parents before children."""
        out: list[int] = []
        done: set[int] = set()
        while len(out) < self.n:
            ready = [v for v in range(self.n) if v not in done and done.issuperset(self.parents[v])]
            out += ready
            done.update(ready)
        return out

    def sample(self, flat: FloatArray, size: int, random_state: Any = None) -> IntArray:
        """Independent rows of states, given all distributions."""
        rng = generator(random_state)
        states = np.zeros((size, self.n), np.int64)
        tables = self.tables(flat)
        for v in self.order():
            sums = tables[v].reshape(-1, self.cardinalities[v]).cumsum(axis=1)
            given, draws = self.codes(states, self.parents[v]), rng.random(size)
            step = max(1, CELLS // sums.shape[1])
            for lo in range(0, size, step):  # all at once would be a number for each row and state
                chosen = sums[given[lo : lo + step]]
                states[lo : lo + step, v] = (draws[lo : lo + step, None] * chosen[:, -1:] >= chosen[:, :-1]).sum(axis=1)
        return states


def _checked(what: str, variables: Sequence[int], n: int) -> tuple[int, ...]:
    """Different variables below n."""
    try:
        found = tuple(operator.index(v) for v in variables)
    except TypeError:
        found = (-1,)
    if len(set(found)) < len(found) or not all(0 <= v < n for v in found):
        raise ValueError(f"{what} must be tuples of different variables below {n}, got {variables!r}")
    return found


def find_cycle(parents: Mapping[Name, Sequence[Name]]) -> list[Name]:
    """Variables, each a parent of the next, that come back to the first; none if there is no cycle."""
    left = {name: set(of) for name, of in parents.items()}
    children: dict[Name, list[Name]] = {name: [] for name in parents}
    for name, of in parents.items():
        for parent in of:
            children[parent].append(name)
    free = [name for name, of in left.items() if not of]
    while free:
        done = free.pop()
        del left[done]
        for child in children[done]:
            left[child].discard(done)
            if not left[child]:
                free.append(child)
    if not left:
        return []
    walk = [next(iter(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(min(left[walk[-1]], key=str))
    return walk[walk.index(walk[-1]) :][::-1]

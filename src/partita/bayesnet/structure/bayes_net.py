"""Bayesian networks: directed graphs of variables with finitely many states, and of Gaussian leaves."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.potentials import real_array
from ...core.enumeration import configurations
from ...core.memory import check_memory, check_sample
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import is_whole
from ...graph import FactorGraph
from ..kernels import network as kernels

Name = TypeVar("Name", bound=Hashable)


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

    Notes
    -----
    As a structure, over the variables with finitely many states, a network is its graph (`families`), with the logarithms
    of all distributions (`log_distributions`) as potentials; y is a row of states.
    """

    def __init__(
        self, cardinalities: Sequence[int], parents: Sequence[tuple[int, ...]], leaves: Sequence[tuple[int, ...]] = ()
    ) -> None:
        counts = np.asarray(cardinalities)
        if counts.ndim != 1 or (counts.size and (counts.dtype.kind not in "iu" or counts.min() < 1)):
            raise ValueError("cardinalities must be integers >= 1, one per variable")
        check_memory("one state after another", 8 * int(counts.sum(dtype=np.float64)), "Lower the cardinalities")
        self.cardinalities: IntArray = counts.astype(np.int64)
        self.parents: list[tuple[int, ...]] = [_family(f"parents[{v}]", of, len(counts)) for v, of in enumerate(parents)]
        self.leaves: list[tuple[int, ...]] = [_family(f"leaves[{i}]", of, len(counts)) for i, of in enumerate(leaves)]
        if len(self.parents) != len(counts):
            raise ValueError(f"parents must have an entry for each of {len(counts)} variables, got {len(self.parents)}")
        loop = find_cycle(dict(enumerate(self.parents)))
        if loop:
            raise ValueError(f"the network must have no cycle, got {' -> '.join(map(str, loop))}")
        configurations = [self.configurations(of) for of in self.parents]
        tables = [count * k for count, k in zip(configurations, self.cardinalities.tolist(), strict=True)]
        if tables:
            v = int(np.argmax([float(min(size, 10**300)) for size in tables]))
            what = f"the table of variable {v}, which has {len(self.parents[v])} parents,"
            check_memory(what, 24 * sum(tables), "Give it fewer parents")
        widths = np.repeat(self.cardinalities, configurations)
        self.starts: NDArray[Any] = np.concatenate(([0], np.cumsum(widths)))
        self.offsets: NDArray[Any] = self.starts[np.concatenate(([0], np.cumsum(configurations, dtype=np.int64)))]
        self.size: int = int(self.starts[-1])
        self.leaf_sizes: list[int] = [self.configurations(of) for of in self.leaves]
        check_memory("the means of all leaves", 24 * sum(self.leaf_sizes), "Give them fewer parents")

    def configurations(self, variables: Sequence[int]) -> int:
        """Number of configurations of some variables."""
        return math.prod(self.cardinalities[list(variables)].tolist())

    def shape(self, v: int) -> tuple[int, ...]:
        """Numbers of states of the parents of a variable, and of itself."""
        return tuple(self.cardinalities[[*self.parents[v], v]].tolist())

    def log_distributions(self, weights: FloatArray) -> FloatArray:
        """log p of every state in every distribution: p is proportional to the exponential of its weight."""
        if np.shape(weights) != (self.size,):
            raise ValueError(f"weights must be {self.size} numbers, one per entry of all tables; got {np.shape(weights)}")
        out = np.empty(self.size)
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

    @cached_property
    def families(self) -> FactorGraph:
        """The variables with finitely many states as a factor graph. Leaves do not matter to them."""
        return FactorGraph(self.cardinalities, [(*of, v) for v, of in enumerate(self.parents)])

    def score(self, potentials: Any, y: ArrayLike) -> FloatArray:
        """log p of every row of states."""
        return self.families.score(potentials, y)

    def log_partition(self, potentials: Any, engine: str = "auto", **options: Any) -> FloatArray:
        """log Z, which is zero for distributions; see `FactorGraph`."""
        return self.families.log_partition(potentials, engine, **options)

    def infer(self, potentials: Any, engine: str = "auto", **options: Any) -> Result:
        """log Z, and the probability of every variable together with its parents; see `FactorGraph`."""
        return self.families.infer(potentials, engine, **options)

    def argmax(self, potentials: Any, engine: str = "auto", **options: Any) -> tuple[IntArray, FloatArray]:
        """The most probable states and their log p; see `FactorGraph`."""
        return self.families.argmax(potentials, engine, **options)

    def enumerate(self) -> IntArray:
        """Every row of states of a small network, the last variable changing fastest; see `FactorGraph`."""
        return configurations(self.cardinalities)

    def sample(self, potentials: ArrayLike, size: int, random_state: Any = None) -> IntArray:
        """`size` independent rows of states, parents drawn before children: shape (size, variables), or for a matrix of
        potentials (size, rows, variables)."""
        flat = real_array("potentials", potentials)
        if flat.ndim == 2 and len(flat):
            check_sample(size, self.n * len(flat))
            rng = generator(random_state)
            return np.stack([self.sample(row, size, rng) for row in flat], axis=1)
        if flat.shape != (self.size,):
            raise ValueError(f"potentials must be {self.size} numbers, one per entry of all tables; got {flat.shape}")
        p = np.exp(flat)
        sums = np.add.reduceat(p, self.starts[:-1]) if self.size else np.ones(1)
        if not np.abs(sums - 1.0).max() <= 1e-6:
            k = int(np.argmin(np.abs(sums - 1.0) <= 1e-6))
            raise ValueError(
                f"potentials must be logarithms of distributions; number {k} sums to {sums[k]:g}. See log_distributions"
            )
        n = check_sample(size, max(self.n, int(self.cardinalities.max(initial=1))))
        rng = generator(random_state)
        states = np.zeros((n, self.n), np.int64)
        tables = self.tables(p)
        for v in self.order():
            cumulated = tables[v].reshape(-1, self.cardinalities[v]).cumsum(axis=1)
            chosen = cumulated[self.codes(states, self.parents[v])]
            states[:, v] = (rng.random(n)[:, None] * chosen[:, -1:] >= chosen[:, :-1]).sum(axis=1)
        return states


def _family(name: str, variables: Any, n: int) -> tuple[int, ...]:
    """Checked numbers of variables, each at most once."""
    try:
        of = tuple(variables)
        if not all(is_whole(v) and 0 <= int(v) < n for v in of):
            raise TypeError
    except TypeError:
        raise ValueError(f"{name} must be numbers of variables from 0 to {n - 1}, got {variables!r}") from None
    if len(set(of)) < len(of):
        raise ValueError(f"{name} must have each variable at most once, got {variables!r}")
    return tuple(int(v) for v in of)


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

"""Best labellings of chains, by Viterbi's recursion, as points."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...chain import Chain, Potentials
from ...core.results import FloatArray
from ...inference.oracle import Answer, checked, scored
from ..structure.factor_graph import FactorGraph
from ..structure.tables import indicator


class ChainOracle:
    """The best labelling of all sequences of a chain.

    Its potentials are those of `graph`, the chain as a factor graph: a table for each position, then one for each
    transition. So it serves Frank-Wolfe on that graph, where counting numbers of one make the free energy exact.

    Parameters
    ----------
    chain : Chain

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import ChainOracle
    >>> from partita.structures import Chain
    >>> oracle = ChainOracle(Chain(2, [3]))
    >>> u = oracle.flat((np.log([[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]]), np.log([[2.0, 1.0], [1.0, 2.0]])))
    >>> float(np.exp(oracle(u).value).round(6))
    12.0
    >>> found = oracle.graph.infer(u, "frank_wolfe", oracle=oracle, rho=1.0, tol=1e-7)
    >>> bool(abs(found.log_z - oracle.graph.log_partition(u)) < 1e-6)
    True
    """

    polytope, delta = "exact", 0.0

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        inner = np.ones(chain.n_positions, dtype=bool)
        inner[chain.offsets[:-1]] = False
        self._later = np.flatnonzero(inner)  # positions that have one before them

    @cached_property
    def graph(self) -> FactorGraph:
        """The chain as a factor graph, with all sequences in one example."""
        scopes = [(t,) for t in range(self.chain.n_positions)] + [(t - 1, t) for t in self._later.tolist()]
        return FactorGraph(np.full(self.chain.n_positions, self.chain.n_labels), scopes)

    def flat(self, potentials: Potentials) -> FloatArray:
        """Potentials of the chain as those of the graph."""
        unary, pairwise = (np.asarray(part, dtype=np.float64) for part in potentials)
        n, T = self.chain.n_labels, self.chain.n_positions
        if unary.shape != (T, n) or pairwise.shape not in ((n, n), (T, n, n)):
            shapes = f"({T}, {n}) and ({n}, {n}) or ({T}, {n}, {n})"
            raise ValueError(f"potentials must have shapes {shapes}; got {unary.shape} and {pairwise.shape}")
        return np.concatenate([unary.ravel(), np.broadcast_to(pairwise, (T, n, n))[self._later].ravel()])

    def split(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Potentials or marginals of the graph as those of the chain, with a matrix for each position."""
        n, T = self.chain.n_labels, self.chain.n_positions
        values = checked(flat, self.graph.size, "numbers")
        pairwise = np.zeros((T, n, n))
        pairwise[self._later] = values[T * n :].reshape(-1, n, n)
        return values[: T * n].reshape(T, n), pairwise

    def __call__(self, potentials: FloatArray) -> Answer:
        labels, _ = self.chain.argmax(self.split(potentials))
        return scored(indicator(self.graph, labels), potentials, self.polytope)

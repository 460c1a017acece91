"""Penalised likelihoods of configurations that only a solver knows, seen as their dual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays.weights import held_down
from ..core.contracts.capabilities import Capability
from ..core.contracts.objective import ObjectiveBase
from ..core.contracts.progress import DualPoint
from ..core.parallel import Workers
from ..core.results import FloatArray
from ..inference.entropies import Entropy
from ..inference.parts import Parts, PartsEnergy
from ..objectives.conjugates import QuadraticConjugate, RestrictedConjugate
from ..objectives.constraints.feasible_set import FeasibleSet
from ..objectives.dual_blocks import Block, DualBlocks
from .features import PartFeatures


@dataclass(frozen=True)
class Example:
    """An example: what its solver knows, features of its parts, the configuration observed, the entropy, a weight."""

    parts: Parts
    features: PartFeatures
    observed: FloatArray
    entropy: Entropy
    weight: float


class OracleLikelihood(ObjectiveBase):
    """``F(theta) = sum_i w_i (log Z_H(x_i) - score(x_i, y_i)) + (l2 / 2) ||theta||^2`` with
    ``log Z_H = max_tau <scores, tau> + H(tau)`` over the hull of the configurations that a solver knows.

    It is never evaluated: solvers see its dual, whose blocks are moved by best configurations.

    Parameters
    ----------
    examples : sequence of Example
    l2 : float
        Above zero.
    workers : Workers
        Threads in which solvers may be called at the same time.
    l1 : float
        Of all parameters.
    feasible : FeasibleSet, optional
        Where parameters must stay.
    """

    capabilities: frozenset[Capability] = frozenset({Capability.BLOCKS})

    def __init__(
        self,
        examples: Sequence[Example],
        l2: float,
        workers: Workers | None = None,
        l1: float = 0.0,
        feasible: FeasibleSet | None = None,
    ) -> None:
        self.examples: list[Example] = list(examples)
        self.l1, self.feasible = l1, feasible
        self.l2, self.workers = l2, workers or Workers(1)
        self.size: int = self.examples[0].features.size
        self.n_examples: int = len(self.examples)
        self.scale: float = float(held_down(np.array([example.weight for example in self.examples])).sum())

    def blocks(self, oracle: Callable[..., Any] | None = None) -> DualBlocks:
        """The dual, where every part that can be had and lacked has a share. `oracle` makes other solvers from `Parts`."""

        def block(example: Example) -> Block:
            parts = example.parts
            parts = parts if oracle is None else Parts(parts.size, oracle(parts), parts.name, parts.delta)
            first = parts.first(example.observed)
            energy = PartsEnergy(parts, np.zeros(parts.size), example.entropy, first)
            maps = example.features.forward, example.features.adjoint
            made = Block(energy, *maps, example.weight, example.observed, parts.name)
            made.calls = parts.calls
            return made

        blocks = self.workers.run(block, [(example,) for example in self.examples])
        observed = sum(e.weight * e.features.adjoint(e.observed) for e in self.examples)
        return DualBlocks(blocks, np.asarray(observed), self._conjugate, workers=self.workers)

    @property
    def _conjugate(self) -> QuadraticConjugate:
        if self.l1 == 0.0 and self.feasible is None:
            return QuadraticConjugate(self.l2)
        return RestrictedConjugate(self.l2, self.size, np.full(self.size, self.l1) if self.l1 > 0.0 else None, self.feasible)

    def at(self, parameters: FloatArray) -> DualPoint:
        raise NotImplementedError("the objective is not evaluated where only best configurations are known: see its dual")

"""Penalised likelihoods of matchings, with the free energies of Bethe or reweighted ones in place of log Z."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ...core.arrays.weights import held_down
from ...core.contracts.capabilities import Capability, Product
from ...core.results import FloatArray, Result
from ...core.warn import holding
from ...objectives.dual_blocks import DualBlocks
from ...objectives.penalized import DotRay, PenalizedObjective, PenalizedPoint, diagonal_scaling, quadratic_gap
from ..features import EdgeMap
from .dual import matching_blocks


@dataclass(frozen=True)
class Group:
    """Examples on one graph: the structure, the map from parameters to weights, matchings as zeros and ones, weights of the
    examples."""

    structure: Any
    features: EdgeMap
    observed: FloatArray
    weights: FloatArray


class MatchingLikelihood(PenalizedObjective):
    """``F(theta) = sum_i w_i (log Z_rho(W_i) - <W_i, y_i>) + (l2 / 2) ||theta||^2`` with weights of edges linear in theta.

    log Z_rho is the largest negative free energy (see `engines.bethe`), a convex function of the weights, and its
    gradient the probabilities of edges. Where inference is exact, it is log Z itself. Messages begin where those of the
    last evaluation ended.

    Parameters
    ----------
    groups : sequence of Group
    l2 : float
        Above zero.
    rho : float
        Weights of the entropies; None for exact sums.
    tol : float
        Certificate of inference, for each vertex of an example.
    max_iter : int
        Most sweeps.
    """

    groups: list[Group]
    l2: float
    rho: float | None
    penalty: FloatArray
    tol: float

    costly_rays = True
    capabilities: frozenset[Capability] = frozenset({Capability.SMOOTH, Capability.PRECONDITIONER, Capability.BLOCKS})

    def __init__(
        self, groups: Sequence[Group], l2: float, rho: float | None = 1.0, tol: float = 1e-9, max_iter: int = 5000
    ) -> None:
        self.groups, self.l2, self.rho = list(groups), float(l2), rho
        self.size: int = self.groups[0].features.size
        self.n_examples: int = sum(len(g.weights) for g in self.groups)
        self.penalty, self.tol = np.full(self.size, self.l2), tol
        self.options: dict[str, Any] = {} if rho is None else {"rho": rho, "max_iter": max_iter}
        self.observed: FloatArray = sum(
            (g.features.adjoint(g.weights[:, None] * g.observed) for g in self.groups), start=np.zeros(self.size)
        )
        weights = np.split(
            held_down(np.concatenate([g.weights for g in self.groups])),
            np.cumsum([len(g.weights) for g in self.groups])[:-1],
        )
        self.scale: float = float(sum(w.sum() * g.structure.n_vertices for w, g in zip(weights, self.groups, strict=True)))
        self._messages: list[Any] = [None] * len(self.groups)

    @property
    def dense_cost(self) -> float:
        """There is no Hessian."""
        return np.inf

    def infer(self, theta: FloatArray) -> list[tuple[FloatArray, Result]]:
        """Weights and what is inferred from them, group by group."""
        found = []
        with holding():
            for k, group in enumerate(self.groups):
                W = group.features.forward(theta)
                tol = {"tol": self.tol * group.structure.n_vertices} if self.options else {}
                result = group.structure.free_energy(W, self._messages[k], **self.options, **tol)
                self._messages[k] = result.messages
                found.append((W, result))
        return found

    def blocks(self, oracle: Callable[..., Any] | None = None) -> DualBlocks:
        """The dual, at its start; `oracle` makes solvers for best matchings from structures."""
        rho = 1.0 if self.rho is None else self.rho
        blocks = [
            block
            for g in self.groups
            for block in matching_blocks(g.structure, g.features, g.weights, g.observed, rho, oracle)
        ]
        return DualBlocks(blocks, self.observed, self.l2, workers=self.groups[0].structure.workers)

    def at(self, parameters: FloatArray) -> MatchingPoint:
        """The objective seen from `parameters`."""
        return MatchingPoint(self, np.ascontiguousarray(parameters, dtype=np.float64))


class MatchingPoint(PenalizedPoint):
    """The likelihood at one parameter vector."""

    parameters: FloatArray

    objective: MatchingLikelihood

    def __init__(self, objective: MatchingLikelihood, theta: FloatArray) -> None:
        self.objective, self.parameters = objective, theta
        self.found: list[tuple[FloatArray, Result]] = objective.infer(theta)
        value = -float(objective.observed @ theta) + 0.5 * objective.l2 * float(theta @ theta)
        for group, (_, result) in zip(objective.groups, self.found, strict=True):
            value += float(group.weights @ result.free_energy)
        self.value = value

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        out = o.l2 * self.parameters - o.observed
        for group, (_, result) in zip(o.groups, self.found, strict=True):
            out += group.features.adjoint(group.weights[:, None] * result.marginals)
        return out

    @cached_property
    def inference_gap(self) -> float:
        """The sum of the certificates of inference."""
        pairs = zip(self.objective.groups, self.found, strict=True)
        return float(sum(float(group.weights @ result.gap) for group, (_, result) in pairs))

    @property
    def gap(self) -> float:
        """``||gradient||^2 / (2 l2)`` plus the certificates of inference: at least ``F - minimum``, and at least the
        distance of F from the dual objective at these probabilities."""
        return quadratic_gap(self.gradient, self.objective.l2) + self.inference_gap

    def along(self, direction: FloatArray) -> DotRay[Self]:
        return DotRay(self, direction)

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of the Hessian, as if edges were independent."""
        o = self.objective
        out = np.full(o.size, o.l2)
        for group, (_, result) in zip(o.groups, self.found, strict=True):
            tau = np.clip(result.marginals, 0.0, 1.0)
            out += group.features.squares(group.weights[:, None] * tau * (1.0 - tau))
        return out

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> v over the root of the diagonal of the Hessian."""
        return diagonal_scaling(self.diagonal, 0.0, 0.5)

"""Penalised likelihoods of matchings: what all share, and those with Bethe or reweighted free energies for log Z."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from ...core.arrays.weights import held_down
from ...core.contracts.capabilities import Capability, Product
from ...core.results import FloatArray, IntArray, Result
from ...core.warn import holding
from ...objectives.batches import SumOverExamples
from ...objectives.dual_blocks import DualBlocks
from ...objectives.penalized import DotRay, PenalizedPoint, diagonal_scaling
from ..features import EdgeMap, PaddedFeatures
from ..structure.evidence import Evidence
from .dual import matching_blocks


@dataclass(frozen=True)
class Group:
    """Examples on one graph: the structure, the map from parameters to weights, matchings as zeros and ones, weights of the
    examples, which edges are forbidden, (examples, edges), if any are, and where examples are in the data, for messages."""

    structure: Any
    features: EdgeMap
    observed: FloatArray
    weights: FloatArray
    forbidden: NDArray[np.bool_] | None = None
    places: Sequence[int] | None = None
    evidence: Evidence | None = None  # of examples of which not all is known: `observed` is then zero

    def potentials(self, theta: FloatArray) -> FloatArray:
        """The weights of edges, -inf where they are forbidden."""
        W = self.features.forward(theta)
        return W if self.forbidden is None else np.where(self.forbidden, -np.inf, W)

    def squared(self) -> Group:
        """The same with as many vertices on both sides, if all of one side are matched: see `BipartiteMatching.padded`."""
        s = self.structure
        if not s.is_padded:
            return self
        forbidden = None if self.forbidden is None else s.pad(self.forbidden) > 0.0
        evidence = self.evidence
        if evidence is not None:
            out = s.pad(evidence.demands == -np.inf) > 0.0
            demands = np.where(out, -np.inf, s.pad(np.maximum(evidence.demands, 0.0)))
            evidence = evidence._replace(demands=demands)
        return replace(
            self,
            structure=s.padded,
            features=PaddedFeatures(self.features, s),
            observed=s.pad(self.observed),
            forbidden=forbidden,
            evidence=evidence,
        )

    def take(self, rows: IntArray) -> Group:
        """Some of the examples."""
        forbidden = None if self.forbidden is None else self.forbidden[rows]
        places = None if self.places is None else [self.places[b] for b in rows.tolist()]
        data = self.features.take(rows), self.observed[rows], self.weights[rows]
        evidence = None if self.evidence is None else self.evidence.take(rows)
        return Group(self.structure, *data, forbidden, places, evidence)

    @property
    def excess(self) -> float:
        """What `squared` adds to the sum of log Z."""
        s, weights = self.structure, self.weights.copy()
        if self.evidence is not None:
            weights[self.evidence.rows] = 0.0  # it is taken off again with what is known
        return float(weights.sum()) * math.lgamma(abs(s.n - s.m) + 1.0) if s.is_padded else 0.0


class MatchingObjective(SumOverExamples):
    """``F(theta) = sum_i w_i (log Z(W_i) - <W_i, y_i>) + (l2 / 2) ||theta||^2`` with weights of edges linear in theta.

    What log Z is, subclasses say: `infer`.

    Parameters
    ----------
    groups : sequence of Group
    l2 : float
    """

    groups: list[Group]
    l2: float
    penalty: FloatArray

    costly_rays = True

    def __init__(self, groups: Sequence[Group], l2: float) -> None:
        self.l2 = float(l2)
        self.size: int = groups[0].features.size
        self.penalty = np.full(self.size, self.l2)
        self._hold(groups)

    def _hold(self, groups: Sequence[Group]) -> None:
        """Keep examples, and what depends on them."""
        self._given = self.groups = list(groups)
        self.n_examples: int = sum(len(g.weights) for g in self.groups)
        self.weights: FloatArray = np.concatenate([g.weights for g in self.groups])
        self.observed: FloatArray = sum(
            (g.features.adjoint(g.weights[:, None] * g.observed) for g in self.groups), start=np.zeros(self.size)
        )
        self.scale: float = float(held_down(self.weights) @ self._vertices)
        self.convex = all(g.evidence is None for g in self.groups)
        #: What is taken from all values.
        self.excess: float = 0.0

    @property
    def _vertices(self) -> FloatArray:
        """The number of vertices of each example."""
        return np.concatenate([np.full(len(g.weights), float(g.structure.n_vertices)) for g in self.groups])

    @property
    def masses(self) -> FloatArray:
        """The weighted number of vertices of each example."""
        return self.weights * self._vertices

    def part(self, rows: IntArray) -> Self:
        twin = self.with_penalty(np.zeros(self.size))
        ends = np.cumsum([0, *(len(g.weights) for g in self.groups)])
        mine = [np.sort(rows[(rows >= lo) & (rows < hi)]) - lo for lo, hi in itertools.pairwise(ends.tolist())]
        twin._hold([group.take(own) for group, own in zip(self._given, mine, strict=True) if len(own)])
        twin.l2 = 0.0
        return twin

    def evaluate(self, theta: FloatArray) -> tuple[float, list[FloatArray]]:
        point: Any = self.at(theta)
        return point.value, [
            group.weights[:, None] * (point.residual(k) - group.observed) for k, group in enumerate(self.groups)
        ]

    def pull_back(self, residual: Sequence[FloatArray]) -> FloatArray:
        parts = [group.features.adjoint(part) for group, part in zip(self.groups, residual, strict=True)]
        return np.asarray(sum(parts))

    def known(self, k: int, W: FloatArray) -> Result | None:
        """What is inferred of the matchings that agree with what is known, of the examples of group k where not all is."""
        evidence = self.groups[k].evidence
        if evidence is None:
            return None
        weights, excess = evidence.weights(W)
        result = self.infer_known(k, weights)
        return replace(result, log_z=result.log_z - excess, free_energy=result.free_energy - excess, lower=None, upper=None)

    def infer_known(self, k: int, W: FloatArray) -> Result:
        """What is inferred from weights of examples of group k."""
        return cast(Result, self.groups[k].structure.free_energy(W))

    @abstractmethod
    def infer(self, theta: FloatArray) -> list[tuple[FloatArray, Result]]:
        """Weights and what is inferred from them, group by group."""


class MatchingLikelihood(MatchingObjective):
    """The likelihood of matchings with log Z_rho for log Z.

    log Z_rho is the largest negative free energy (see `engines.bethe`), a convex function of the weights, and its
    gradient the probabilities of edges. Messages begin where those of the last evaluation ended. Sides of different sizes,
    one of which is matched, are filled up (`Group.squared`).

    Parameters
    ----------
    groups : sequence of Group
    l2 : float
        Above zero.
    rho : float or pair
        Weights of the entropies, perhaps of rows and of columns.
    tol : float
        Certificate of inference, for each vertex of an example.
    max_iter : int
        Most sweeps.
    """

    capabilities: frozenset[Capability] = frozenset(
        {Capability.SMOOTH, Capability.PRECONDITIONER, Capability.BLOCKS, Capability.BATCHES}
    )

    rho: Any
    tol: float

    def __init__(self, groups: Sequence[Group], l2: float, rho: Any = 1.0, tol: float = 1e-9, max_iter: int = 5000) -> None:
        self.rho, self.tol = rho, tol
        self.options: dict[str, Any] = {"rho": rho, "max_iter": max_iter}
        super().__init__(groups, l2)

    def _hold(self, groups: Sequence[Group]) -> None:
        super()._hold([group.squared() for group in groups])
        self._given = list(groups)
        self.excess = sum(group.excess for group in groups)
        self._messages: list[Any] = [None] * len(self.groups)
        self._inner: list[Any] = [None] * len(self.groups)
        if not self.convex:  # of which there is no dual
            self.capabilities = self.capabilities - {Capability.BLOCKS}

    @property
    def dense_cost(self) -> float:
        """There is no Hessian."""
        return np.inf

    def infer(self, theta: FloatArray) -> list[tuple[FloatArray, Result]]:
        found = []
        with holding():
            for k, group in enumerate(self.groups):
                W, tol = group.potentials(theta), self.tol * group.structure.n_vertices
                result = group.structure.free_energy(W, self._messages[k], tol=tol, **self.options)
                self._messages[k] = result.messages
                found.append((W, result))
        return found

    def infer_known(self, k: int, W: FloatArray) -> Result:
        structure = self.groups[k].structure
        with holding():
            result = structure.free_energy(W, self._inner[k], tol=self.tol * structure.n_vertices, **self.options)
        self._inner[k] = result.messages
        return cast(Result, result)

    def blocks(self, oracle: Callable[..., Any] | None = None) -> DualBlocks:
        """The dual, at its start; `oracle` makes solvers for best matchings from structures."""
        blocks = [block for g in self.groups for block in matching_blocks(g, self.rho, oracle)]
        return DualBlocks(blocks, self.observed, self.l2, workers=self.groups[0].structure.workers)

    def at(self, parameters: FloatArray) -> MatchingPoint:
        """The objective seen from `parameters`."""
        return MatchingPoint(self, np.ascontiguousarray(parameters, dtype=np.float64))


class MatchingPoint(PenalizedPoint):
    """The likelihood at one parameter vector."""

    parameters: FloatArray

    objective: MatchingObjective

    def __init__(self, objective: MatchingObjective, theta: FloatArray) -> None:
        self.objective, self.parameters = objective, theta
        self.found: list[tuple[FloatArray, Result]] = objective.infer(theta)
        value = -float(objective.observed @ theta) + objective.penalty_value(theta) - objective.excess
        #: Of each group, what is inferred given what is known, where not all is.
        self.inside: list[Result | None] = [objective.known(k, W) for k, (W, _) in enumerate(self.found)]
        for group, (_, result), inside in zip(objective.groups, self.found, self.inside, strict=True):
            value += float(group.weights @ result.free_energy)
            if inside is not None and group.evidence is not None:
                value -= float(group.weights[group.evidence.rows] @ inside.free_energy)
        self.value = value

    def residual(self, k: int) -> FloatArray:
        """Probabilities of the edges of group k, less those given what is known where not all is."""
        P, inside, evidence = self.found[k][1].marginals, self.inside[k], self.objective.groups[k].evidence
        if inside is None or evidence is None:
            return np.asarray(P)
        P = P.copy()
        P[evidence.rows] -= inside.marginals
        return np.asarray(P)

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        out = o.penalty_gradient(self.parameters) - o.observed
        for k, group in enumerate(o.groups):
            out += group.features.adjoint(group.weights[:, None] * self.residual(k))
        return out

    @cached_property
    def slack(self) -> float:
        """The sum of the certificates of inference: with it, `gap` is at least the distance of F from the dual objective at
        these probabilities."""
        pairs = zip(self.objective.groups, self.found, strict=True)
        return float(sum(float(group.weights @ result.gap) for group, (_, result) in pairs))

    def along(self, direction: FloatArray) -> DotRay[Self]:
        return DotRay(self, direction)

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of the Hessian, as if edges were independent."""
        o = self.objective
        out = np.array(o.penalty)
        for group, (_, result) in zip(o.groups, self.found, strict=True):
            tau = np.clip(result.marginals, 0.0, 1.0)
            out += group.features.squares(group.weights[:, None] * tau * (1.0 - tau))
        return out

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> v over the root of the diagonal of the Hessian."""
        return diagonal_scaling(self.diagonal, 1e-12 * float(self.diagonal.max(initial=1e-300)), 0.5)

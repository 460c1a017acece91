"""The likelihood of matchings itself, by exact sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.contracts.capabilities import Capability, Product
from ...core.results import FloatArray, Result
from ...core.validation import check_choice
from ...objectives.bounds.blocks import PlacedBlocks, joined, softmax_blocks
from ...objectives.bounds.quadratic import BOUNDED, BoundedPoint
from ...objectives.information import dense_errors
from .likelihood import Group, MatchingObjective, MatchingPoint

#: Products of an evaluation, up to which exact sums are cheap: .6 ns each, about .3 s on one core.
CHEAP = 5e8
#: Parameters up to which Hessians are formed for standard errors.
SIZE_LIMIT = 3000
#: The number of examples' worth of information (as at zero weights) below which estimates run to infinity,
SEPARATED = 0.01
#: the share of the largest eigenvalue that counts as none, and the most parameters for which that is looked at.
SINGULAR, LOOKED_AT = 1e-10, 200


def is_cheap(groups: Sequence[Group]) -> bool:
    """Whether the exact likelihood of all examples takes little time."""
    work = sum(len(group.weights) * group.structure.exact_work for group in groups if group.structure.is_small)
    return work <= CHEAP and all(group.structure.is_small for group in groups)


class ExactMatchingLikelihood(MatchingObjective):
    """The likelihood of matchings. Gradients are probabilities of edges, by sums over sets of vertices, and products with
    its Hessian their derivatives, all exact.

    Parameters
    ----------
    groups : sequence of Group
    l2 : float
        Not negative. At 0 there is no gap.
    """

    capabilities: frozenset[Capability] = BOUNDED | {
        *(Capability.SMOOTH, Capability.PRECONDITIONER, Capability.HESSIAN_PRODUCT, Capability.BATCHES)
    }

    def infer(self, theta: FloatArray) -> list[tuple[FloatArray, Result]]:
        found = []
        for group in self.groups:
            W = group.potentials(theta)
            found.append((W, group.structure.free_energy(W)))
        return found

    def at(self, parameters: FloatArray) -> ExactMatchingPoint:
        """The objective seen from `parameters`."""
        return ExactMatchingPoint(self, np.ascontiguousarray(parameters, dtype=np.float64))


class ExactMatchingPoint(MatchingPoint, BoundedPoint):
    """The exact likelihood at one parameter vector."""

    objective: ExactMatchingLikelihood

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v: the covariance of the features under the model, and the penalty."""
        o = self.objective

        def product(v: FloatArray) -> FloatArray:
            out = o.penalty * v
            for group, (W, _) in zip(o.groups, self.found, strict=True):
                image = group.features.forward(v)
                moved = group.structure.covariances(W, image)
                if group.evidence is not None:
                    rows = group.evidence.rows
                    moved[rows] -= group.structure.covariances(group.evidence.weights(W)[0], image[rows])
                out = out + group.features.adjoint(group.weights[:, None] * moved)
            return np.asarray(out)

        return product

    def curvature_above(self, kind: str) -> tuple[Product, FloatArray]:
        """By Hölder's inequality over vertices: each has one of its edges, of which it is the first end, or none. Where
        vertices may have several, each edge is for itself."""
        o = self.objective
        parts = [
            (group.features, _blocks(group, W, result.marginals, kind))
            for group, (W, result) in zip(o.groups, self.found, strict=True)
        ]

        def product(v: FloatArray) -> FloatArray:
            out = np.zeros(o.size)
            for features, blocks in parts:
                out += features.adjoint(blocks.product(features.forward(v)))
            return out

        diagonal = np.zeros(o.size)
        for (features, blocks), (W, _) in zip(parts, self.found, strict=True):
            diagonal += features.squares(blocks.diagonal(W.size).reshape(W.shape))
        return product, diagonal

    def scores(self) -> FloatArray:
        """The derivatives of the examples' log-likelihoods times their weights, a row each, group by group."""
        out = []
        for k, group in enumerate(self.objective.groups):
            left = group.weights[:, None] * (group.observed - self.residual(k))
            out += [group.features.example(b).adjoint(row[None]) for b, row in enumerate(left)]
        return np.array(out)


def _blocks(group: Group, W: FloatArray, marginals: FloatArray, kind: str) -> PlacedBlocks:
    """The curvature in the weights of the edges, (examples, edges) flat."""
    s, (B, E) = group.structure, W.shape
    single = int(s.b.max(initial=1)) == 1
    owner = s.ends[:, 0] if single else np.arange(E)
    order = np.argsort(owner, kind="stable")
    owners, first = np.unique(owner[order], return_index=True)
    alone = s.may_stay_alone[owners] if single and s.left else np.ones(len(owners), bool)
    places = np.insert(order, first, -1)  # every block begins with "none"
    offsets = np.append(first + np.arange(len(first)), len(places))
    p = np.insert(marginals[:, order], first, 0.0, axis=1)
    starts = offsets[:-1]
    p[:, starts] = np.maximum(1.0 - np.add.reduceat(p, starts, axis=1), 0.0)
    live = np.insert(W[:, order] > -np.inf, first, alone, axis=1)
    every = np.append((starts + len(places) * np.arange(B)[:, None]).ravel(), B * len(places))
    examples = np.repeat(np.arange(B), len(starts))
    blocks = joined(softmax_blocks(p, every, kind, s.workers, live), examples, group.weights)
    shifted = np.where(places >= 0, places + E * np.arange(B)[:, None], -1)
    return PlacedBlocks(blocks, shifted.ravel())


def matching_errors(point: ExactMatchingPoint, method: str) -> FloatArray:
    """Standard errors: roots of the diagonal of H^-1 K H^-1 (``"sandwich"``) or H^-1 (``"information"``)."""
    check_choice("method", method, ("information", "sandwich"))
    if point.objective.size > SIZE_LIMIT:
        raise ValueError(f"standard errors of {point.objective.size} weights need their Hessian; the limit is {SIZE_LIMIT}")
    if method == "information":
        return dense_errors(point)
    S = point.scores()
    return dense_errors(point, S.T @ S)


def separated(point: ExactMatchingPoint) -> bool:
    """Whether the data, without a penalty, drive some weights to infinity: next to no information is left along them."""
    o = point.objective
    if o.l2 > 0.0 or not o.convex or o.size > LOOKED_AT:
        return False
    values, Q = np.linalg.eigh(_hessian(o.at(np.zeros(o.size))))
    keep = values > SINGULAR * values[-1]
    Q = Q[:, keep] / np.sqrt(values[keep])
    total = float(sum(group.weights.sum() for group in o.groups))
    return bool(keep.any()) and float(np.linalg.eigvalsh(Q.T @ _hessian(point) @ Q)[0]) * total < SEPARATED


def _hessian(point: ExactMatchingPoint) -> FloatArray:
    product = point.hessian_product()
    H = np.column_stack([product(unit) for unit in np.eye(point.objective.size)])
    return np.asarray(0.5 * (H + H.T))

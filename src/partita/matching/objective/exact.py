"""The likelihood of matchings itself, by exact sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.contracts.capabilities import Capability, Product
from ...core.results import FloatArray, Result
from ...core.validation import check_choice
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
    its Hessian their derivatives, all exact. (b-matchings have no covariances, and so no such products.)

    Parameters
    ----------
    groups : sequence of Group
    l2 : float
        Not negative. At 0 there is no gap.
    """

    def __init__(self, groups: Sequence[Group], l2: float) -> None:
        super().__init__(groups, l2)
        offers = {Capability.SMOOTH, Capability.PRECONDITIONER}
        if all(group.structure.has_covariances for group in self.groups):
            offers.add(Capability.HESSIAN_PRODUCT)
        self.capabilities: frozenset[Capability] = frozenset(offers)

    def infer(self, theta: FloatArray) -> list[tuple[FloatArray, Result]]:
        found = []
        for group in self.groups:
            W = group.potentials(theta)
            found.append((W, group.structure.free_energy(W)))
        return found

    def at(self, parameters: FloatArray) -> ExactMatchingPoint:
        """The objective seen from `parameters`."""
        return ExactMatchingPoint(self, np.ascontiguousarray(parameters, dtype=np.float64))


class ExactMatchingPoint(MatchingPoint):
    """The exact likelihood at one parameter vector."""

    objective: ExactMatchingLikelihood

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v: the covariance of the features under the model, and the penalty."""
        o = self.objective

        def product(v: FloatArray) -> FloatArray:
            out = o.l2 * v
            for group, (W, _) in zip(o.groups, self.found, strict=True):
                image = group.features.forward(v)
                moved = group.structure.covariances(W, image)
                if group.evidence is not None:
                    rows = group.evidence.rows
                    moved[rows] -= group.structure.covariances(group.evidence.weights(W)[0], image[rows])
                out = out + group.features.adjoint(group.weights[:, None] * moved)
            return np.asarray(out)

        return product

    def scores(self) -> FloatArray:
        """The derivatives of the examples' log-likelihoods times their weights, a row each, group by group."""
        out = []
        for k, group in enumerate(self.objective.groups):
            left = group.weights[:, None] * (group.observed - self.residual(k))
            out += [group.features.example(b).adjoint(row[None]) for b, row in enumerate(left)]
        return np.array(out)


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
    if o.l2 > 0.0 or not o.convex or o.size > LOOKED_AT or Capability.HESSIAN_PRODUCT not in o.capabilities:
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

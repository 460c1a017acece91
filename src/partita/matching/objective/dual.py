"""The dual of Bethe learning on matchings (MLE-Struct): marginals of every example, moved by best matchings only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...objectives.dual_blocks import Block, DualBlocks
from ..engines.frank_wolfe import MatchingEnergy

if TYPE_CHECKING:
    from .likelihood import MatchingLikelihood


def matching_blocks(objective: MatchingLikelihood) -> DualBlocks:
    """The dual for matchings, at the mean of matchings that have every edge.

    Moves are towards best matchings: on graphs that are not bipartite it stays in their hull, which is smaller than what the
    likelihood itself maximises over.
    """
    rho = 1.0 if objective.rho is None else objective.rho
    blocks = []
    for group in objective.groups:
        energy = MatchingEnergy(group.structure, np.zeros(group.structure.n_edges), rho)
        first = energy.start().mean(0)
        for b, weight in enumerate(group.weights.tolist()):
            features = group.features.example(b)
            blocks.append(
                Block(
                    first.copy(),
                    energy,
                    lambda theta, m=features: m.forward(theta)[0],  # type: ignore[misc]
                    lambda tau, m=features: m.adjoint(tau[None]),  # type: ignore[misc]
                    weight,
                )
            )
    return DualBlocks(blocks, objective.observed, objective.l2, workers=objective.groups[0].structure.workers)

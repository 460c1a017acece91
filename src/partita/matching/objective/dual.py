"""The dual of Bethe learning on matchings (MLE-Struct): marginals of every example, moved by best matchings only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...objectives.dual_blocks import Block
from ..engines.frank_wolfe import MatchingEnergy
from ..features import EdgeMap


def matching_blocks(structure: Any, features: EdgeMap, weights: FloatArray, rho: float) -> list[Block]:
    """The blocks of the dual for examples on one graph, at the mean of matchings that have every edge.

    Moves are towards best matchings: on graphs that are not bipartite it stays in their hull, which is smaller than what the
    likelihood itself maximises over.
    """
    energy = MatchingEnergy(structure, np.zeros(structure.n_edges), rho)
    first = energy.start().mean(0)
    blocks = []
    for b, weight in enumerate(weights.tolist()):
        example = features.example(b)
        blocks.append(
            Block(
                first.copy(),
                energy,
                lambda theta, m=example: m.forward(theta)[0],  # type: ignore[misc]
                lambda tau, m=example: m.adjoint(tau[None]),  # type: ignore[misc]
                weight,
            )
        )
    return blocks

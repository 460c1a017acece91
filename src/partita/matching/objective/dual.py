"""The dual of Bethe learning on matchings (MLE-Struct): marginals of every example, moved by best matchings only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...objectives.dual_blocks import Block
from ..engines.b_frank_wolfe import BMatchingEnergy
from ..engines.frank_wolfe import MatchingEnergy
from ..features import EdgeMap
from ..structure.b_matching import BMatching


def matching_blocks(
    structure: Any,
    features: EdgeMap,
    weights: FloatArray,
    observed: FloatArray,
    rho: float,
    oracle: Callable[..., Any] | None = None,
) -> list[Block]:
    """The blocks of the dual for examples on one graph, at the mean of matchings that have every edge.

    Moves are towards best matchings: on graphs that are not bipartite it stays in their hull, which is smaller than what the
    likelihood itself maximises over.
    """
    kind = BMatchingEnergy if isinstance(structure, BMatching) else MatchingEnergy
    energy = kind(structure, np.zeros(structure.n_edges), rho, None if oracle is None else oracle(structure))
    blocks = []
    # where a side was filled up, what its vertices were matched with is nobody's observation
    touched = [len(np.unique(structure.ends[y > 0.0])) for y in observed]
    whole = not structure.perfect or min(touched) == structure.n_vertices
    for b, (weight, y) in enumerate(zip(weights.tolist(), observed, strict=True)):
        example = features.example(b)
        blocks.append(
            Block(
                energy,
                lambda theta, m=example: m.forward(theta)[0],  # type: ignore[misc]
                lambda tau, m=example: m.adjoint(tau[None]),  # type: ignore[misc]
                weight,
                y if whole else None,
            )
        )
    return blocks

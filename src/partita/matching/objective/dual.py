"""The dual of Bethe learning on matchings (MLE-Struct): marginals of every example, moved by best matchings only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...objectives.dual_blocks import Block
from ..engines.b_frank_wolfe import BMatchingEnergy
from ..engines.frank_wolfe import MatchingEnergy
from ..structure.b_matching import BMatching


def matching_blocks(group: Any, rho: Any, oracle: Callable[..., Any] | None = None) -> list[Block]:
    """The blocks of the dual for a `Group` of examples, at the mean of matchings that have every edge that can be.

    Moves are towards best matchings: on graphs that are not bipartite it stays in their hull, which is smaller than what the
    likelihood itself maximises over.
    """
    structure, observed = group.structure, group.observed
    energies = _energies(group, rho, oracle)
    blocks = []
    # where a side was filled up, what its vertices were matched with is nobody's observation
    touched = [len(np.unique(structure.ends[y > 0.0])) for y in observed]
    whole = not structure.perfect or min(touched) == structure.n_vertices
    for b, (energy, weight, y) in enumerate(zip(energies, group.weights.tolist(), observed, strict=True)):
        example = group.features.example(b)
        blocks.append(
            Block(
                energy,
                lambda theta, m=example: m.forward(theta)[0],  # type: ignore[misc]
                lambda tau, m=example: m.adjoint(tau[None]),  # type: ignore[misc]
                weight,
                y if whole else None,
                name="" if group.places is None else f"example {group.places[b]}",
            )
        )
    return blocks


def _energies(group: Any, rho: Any, oracle: Callable[..., Any] | None) -> list[MatchingEnergy]:
    """The entropy of each example; examples with the same edges share one."""
    structure = group.structure
    kind = BMatchingEnergy if isinstance(structure, BMatching) else MatchingEnergy
    solver = None if oracle is None else oracle(structure)
    masks = np.zeros((1, structure.n_edges), bool) if group.forbidden is None else group.forbidden
    patterns, which = np.unique(masks, axis=0, return_inverse=True)
    energies = [kind(structure, np.where(mask, -np.inf, 0.0), rho, solver) for mask in patterns]
    return [energies[k] for k in np.broadcast_to(which.ravel(), len(group.weights)).tolist()]

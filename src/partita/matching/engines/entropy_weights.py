"""The weights rho of the entropies of vertices in free energies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.validation import check_real


def entropy_weights(structure: Any, rho: Any, zero: bool = False) -> tuple[float, float]:
    """The weights of the entropies of rows and of columns, from one number or a pair, each above 0 (with `zero`, from 0) and
    up to 1.

    An edge of a perfect matching has ``-(rho_i + rho_j) tau log tau`` in the entropies of its ends: these depend on the sum
    of the pair alone, and both are its mean.

    >>> from partita.structures import BipartiteMatching
    >>> entropy_weights(BipartiteMatching(3), (0.75, 0.25)), entropy_weights(BipartiteMatching(3, 4, True), (0.75, 0.25))
    ((0.5, 0.5), (0.75, 0.25))
    """
    rows, columns = _pair(rho)
    if not (min(rows, columns) > 0.0 or (zero and min(rows, columns) == 0.0)) or max(rows, columns) > 1.0:
        raise ValueError(f"rho must be {'from 0' if zero else 'above 0 and up'} to 1, got {rho}")
    if rows != columns and not structure.left:
        raise ValueError(f"rho={rho} is a pair, for rows and columns, but vertices are of one kind here: give one number")
    mean = 0.5 * (rows + columns)
    return (mean, mean) if structure.perfect else (rows, columns)


def one_weight(structure: Any, rho: Any, zero: bool = False) -> float:
    """The same where all vertices must have the same weight: vertices with several edges have entropies of their own."""
    rows, columns = _pair(rho)
    if rows != columns and (structure.b > 1).any():
        raise ValueError(f"rho={rho} must be one number for b-matchings: rows and columns have the same weight there")
    if rows != columns and not structure.perfect:
        raise ValueError(
            f"rho={rho} must be one number, or have a mean of at least 1/2: where vertices may stay alone, messages for a "
            "smaller one take one weight for all"
        )
    return entropy_weights(structure, rho, zero)[0]


def _pair(rho: Any) -> tuple[float, float]:
    several = isinstance(rho, tuple | list | np.ndarray)
    if several and np.shape(rho) != (2,):
        raise ValueError(f"rho must be a number, or a pair of them for rows and columns; got {rho!r}")
    return (check_real("rho", rho[0]), check_real("rho", rho[1])) if several else (check_real("rho", rho),) * 2

"""What is known of matchings of which not all is, in terms of weights."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray


class Evidence(NamedTuple):
    """What is known of some examples on one graph.

    A vertex that may stay alone, and has one of some partners, has one in a matching of largest weight if these edges weigh
    enough: so it is said by weights, and by edges that are forbidden.

    Attributes
    ----------
    rows : int array
        Which examples they are.
    demands : array of shape (rows, edges)
        -inf where an edge is ruled out; else how many vertices must have it, or another such edge.
    totals : array of shape (rows,)
        How many vertices must have a partner.
    n_vertices : int
    """

    rows: IntArray
    demands: FloatArray
    totals: FloatArray
    n_vertices: int

    def take(self, rows: IntArray) -> Evidence | None:
        """The same of some of all examples, in their order; None if everything is known of them."""
        known = {row: k for k, row in enumerate(self.rows.tolist())}
        mine = [(place, known[row]) for place, row in enumerate(rows.tolist()) if row in known]
        if not mine:
            return None
        places, own = np.array(mine).T
        return Evidence(places, self.demands[own], self.totals[own], self.n_vertices)

    def weights(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of edges that leave the matchings that agree, and what is to be taken from their log Z.

        Others are below these by a factor of 1e-17 or less, together, whatever their number.
        """
        own = W[self.rows]
        finite = np.where(own > -np.inf, np.abs(own), 0.0)
        n = self.n_vertices  # a matching has n / 2 edges at most, and there are n! at most
        force = 40.0 + n * finite.max(axis=1) + math.lgamma(n + 1.0)
        force = np.where(self.totals > 0.0, force, 0.0)
        demanded = np.where(self.demands > 0.0, self.demands, 0.0) * force[:, None]
        return np.where(self.demands == -np.inf, -np.inf, own + demanded), force * self.totals

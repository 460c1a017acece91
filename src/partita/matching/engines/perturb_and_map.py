"""Perturb-and-MAP on matchings: marginals as shares of best matchings under Gumbel noise on edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.random import generator
from ...core.results import FloatArray, Result, Status
from ...core.validation import check_count
from ...inference.perturb_and_map import gumbel, perturbed_shares


def matching_perturb_and_map(
    structure: Any, weights: FloatArray, *, n_samples: int = 1000, random_state: Any = None
) -> Result:
    """Marginals of matchings, with a Gumbel variable of mean zero for each edge and, where they may stay alone, each vertex.

    The mean of the largest scores, `log_z`, is above log Z in expectation: vertex by vertex, the choice of a partner is an
    exact draw given the expected best of what follows, which by induction is above the logarithm of its sum.
    """
    weights = structure.rows(weights)
    check_count("n_samples", n_samples, minimum=1)
    ends = structure.ends

    def noise(rng: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
        edges = gumbel(rng, (draws, structure.n_edges))
        if structure.perfect:
            return edges, np.zeros(draws)
        alone = gumbel(rng, (draws, structure.n_vertices))  # an edge then costs what its vertices had alone
        return edges - alone[:, ends[:, 0]] - alone[:, ends[:, 1]], alone.sum(1)

    def best(noisy: FloatArray) -> tuple[FloatArray, FloatArray]:
        chosen = structure.indicators(structure.best(noisy))
        return chosen.sum(0), np.where(chosen > 0.0, noisy, 0.0).sum(1)

    marginals, log_z = perturbed_shares(weights, n_samples, generator(random_state), noise, best)
    return Result(log_z.ravel(), marginals, Status.SAMPLED, False, n_iter=n_samples, engine="perturb_and_map")


def b_matching_perturb_and_map(
    structure: Any, weights: FloatArray, *, n_samples: int = 1000, random_state: Any = None
) -> Result:
    """Marginals of b-matchings, with a Gumbel variable of mean zero for each edge that is there, and for each that is not.

    The mean of the largest scores, `log_z`, is above log Z in expectation, as in `matching_perturb_and_map`, edge by edge.
    """
    weights = structure.rows(weights)
    check_count("n_samples", n_samples, minimum=1)

    def noise(rng: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
        there, out = gumbel(rng, (draws, structure.n_edges)), gumbel(rng, (draws, structure.n_edges))
        return there - out, out.sum(1)

    def best(noisy: FloatArray) -> tuple[FloatArray, FloatArray]:
        chosen = structure.indicators(structure.best(noisy))
        return chosen.sum(0), np.where(chosen > 0.0, noisy, 0.0).sum(1)

    marginals, log_z = perturbed_shares(weights, n_samples, generator(random_state), noise, best)
    return Result(log_z.ravel(), marginals, Status.SAMPLED, False, n_iter=n_samples, engine="perturb_and_map")

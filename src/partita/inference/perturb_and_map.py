"""Marginals as shares of best configurations under random changes of the potentials (perturb-and-MAP).

With a Gumbel variable for every configuration the best one would be a draw from the distribution. Here there is one for each
state of each variable, or for each edge. Shares are then near the marginals where potentials are weak, but not in general,
and more draws do not mend that. The mean of the largest scores is above log Z in expectation (Hazan and Jaakkola, 2012).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import NumericalError
from ..core.results import FloatArray
from .frank_wolfe import NOISE

#: Numbers of potentials that are held at once.
_HELD = 2_000_000


def check_answers(oracle: str, noisy: FloatArray, points: FloatArray, delta: float) -> None:
    """An answer must be at least as good as the answer to the draw before it: that one is a configuration too."""
    if len(points) < 2:
        return
    with np.errstate(invalid="ignore"):
        used = np.where((points > 0.0) | (np.roll(points, 1, axis=0) > 0.0), noisy, 0.0)
        mine, others = (used * points).sum(1), (used * np.roll(points, 1, axis=0)).sum(1)
        room = delta + NOISE * (1.0 + np.abs(np.where(np.isfinite(used), used, 0.0)).sum(1))
        wrong = others > mine + room
    if wrong.any():
        i = int(wrong.argmax())
        raise NumericalError(
            f"oracle {oracle} answered with a configuration of score {mine[i]:.9g} where one of {others[i]:.9g} is known: "
            "it does not find the best configuration. Mend it, or state its largest error as delta"
        )


def perturbed_shares(
    potentials: FloatArray,
    n_samples: int,
    rng: np.random.Generator,
    noise: Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]],
    best: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """Of each row, shares of entries in best configurations, and means of largest scores (for each example)."""
    size = max(1, potentials.shape[1])
    shares, means = np.zeros_like(potentials), []
    for i, row in enumerate(potentials):
        total: Any = 0.0
        for first in range(0, n_samples, max(1, _HELD // size)):
            draws = min(n_samples - first, max(1, _HELD // size))
            changes, constants = noise(rng, draws)
            counts, values = best(row + changes)
            shares[i] += counts
            total = total + values.reshape(draws, -1).sum(0) + constants.sum()
        means.append(total / n_samples)
    return shares / n_samples, np.array(means)


def gumbel(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return np.asarray(rng.gumbel(-np.euler_gamma, 1.0, shape))

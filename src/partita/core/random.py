"""One way from a ``random_state`` to a generator."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def check_random_state(random_state: Any) -> None:
    """Raise a ValueError unless `generator` can make something of it. Draws nothing."""
    if random_state is None or isinstance(
        random_state, np.random.Generator | np.random.RandomState | np.random.SeedSequence
    ):
        return
    if not isinstance(random_state, numbers.Integral) or isinstance(random_state, bool):
        raise ValueError(
            "random_state must be None, an int, a numpy SeedSequence, RandomState or Generator, "
            f"got {type(random_state).__name__}"
        )
    if random_state < 0:
        raise ValueError(f"random_state must be a non-negative integer, got {random_state!r}")


def generator(random_state: Any = None) -> np.random.Generator:
    """Return a `numpy.random.Generator` from None, an int, a SeedSequence, a RandomState or a Generator.

    A Generator is used as it is (and advances); a RandomState is asked for a seed, as in scikit-learn.
    """
    check_random_state(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    return np.random.default_rng(int(random_state) if isinstance(random_state, numbers.Integral) else random_state)

"""One way from a ``random_state`` to a generator."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def generator(random_state: Any = None) -> np.random.Generator:
    """Return a `numpy.random.Generator` from None, an int, a SeedSequence, a RandomState or a Generator.

    A Generator is used as it is (and advances); a RandomState is asked for a seed, as in scikit-learn.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be a non-negative integer, got {random_state!r}")
        return np.random.default_rng(int(random_state))
    if random_state is None or isinstance(random_state, np.random.SeedSequence):
        return np.random.default_rng(random_state)
    raise ValueError(
        "random_state must be None, an int, a numpy SeedSequence, RandomState or Generator, "
        f"got {type(random_state).__name__}"
    )

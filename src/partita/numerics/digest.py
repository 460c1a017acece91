"""A number for the contents of an array, at the speed of memory."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def digest(words):
    """A hash of an array of uint64 in which order counts: a change of one word always changes it, one of several nearly so.

    Four chains of (h ^ word) * odd, each step of which can be undone, so that no difference is lost within a chain.
    """
    odd = np.uint64(0x9E3779B97F4A7C15)
    shift = np.uint64(29)
    a, b, c, d = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    n = words.shape[0]
    for i in range(0, n - 3, 4):
        a = (a ^ words[i]) * odd
        b = (b ^ words[i + 1]) * odd
        c = (c ^ words[i + 2]) * odd
        d = (d ^ words[i + 3]) * odd
        a, b, c, d = a ^ (a >> shift), b ^ (b >> shift), c ^ (c >> shift), d ^ (d >> shift)
    for i in range(n - n % 4, n):
        a = (a ^ words[i]) * odd
        a = a ^ (a >> shift)
    return a ^ (b * odd) ^ (c * odd * odd) ^ (d * odd * odd * odd)

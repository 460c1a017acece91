"""Elementary functions without branches, so that loops over them are vectorised (the C library's are not)."""

from __future__ import annotations

import numpy as np

from .jit import compiled

# No reassociation here: `shifted - MAGIC` must stay as written.
exact = compiled(fastmath={"contract"})
# Functions that the compiler finds too large to put them into loops by itself; without that, loops are not vectorised.
forced = compiled(fastmath={"contract"}, forceinline=True)

MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, held in the low bits
LOG2_E = 1.4426950408889634
LN2_HI = 0.693147180369123816490
LN2_LO = 1.90821492927058770002e-10
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of the root of 1/2


@exact
def exp(x):
    """exp(x) for x <= 709, to 1 unit in the last place; 0 below -708, NaN for NaN."""
    y = x if x > -708.0 else -708.0
    shifted = y * LOG2_E + MAGIC
    k = shifted - MAGIC
    r = (y - k * LN2_HI) - k * LN2_LO
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r * r + r
    scale = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    small = 0.0 if x <= -708.0 else x
    return scale + scale * p if x > -708.0 else small


@forced
def twice_atanh(z):
    """2 atanh(z) for |z| <= 1/3, by its series, to a few units in the last place."""
    q = z * z
    p = 1.0 / 33.0
    p = p * q + 1.0 / 31.0
    p = p * q + 1.0 / 29.0
    p = p * q + 1.0 / 27.0
    p = p * q + 1.0 / 25.0
    p = p * q + 1.0 / 23.0
    p = p * q + 1.0 / 21.0
    p = p * q + 1.0 / 19.0
    p = p * q + 1.0 / 17.0
    p = p * q + 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    return 2.0 * (z + z * q * p)


@exact
def log1p_unit(e):
    """log(1 + e) for 0 <= e <= 1, to a few units in the last place."""
    return twice_atanh(e / (2.0 + e))


@exact
def log(x):
    """log(x) for finite x >= 2.3e-308, to a few units in the last place."""
    bits = np.float64(x).view(np.int64)
    k = (bits - _ROOT_HALF) >> 52
    m = np.int64(bits - (k << 52)).view(np.float64)  # between the root of 1/2 and that of 2
    return k * LN2_HI + (twice_atanh((m - 1.0) / (m + 1.0)) + k * LN2_LO)

"""Numbers ``m R^e`` with ``R = 2^512``: no sum, product or quotient of weights leaves their range, and none loses digits.

A mantissa m that is not zero lies in ``[2^-256, 2^256)``; zero is ``(0, 0, 0)``. Exponents e are whole numbers held as
doubles. With each mantissa goes the derivative t of the number along some direction, in the same units ``R^e``.
"""

from __future__ import annotations

import math

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import LN2_HI, LN2_LO

LARGEST, LEAST = 2.0**256, 2.0**-256
UP, DOWN = 2.0**512, 2.0**-512
LOG_HI, LOG_LO = 512.0 * LN2_HI, 512.0 * LN2_LO
FARTHEST = -1e15


@kernel
def two_sum(a, b):
    """The rounded sum of two numbers, and what rounding took away."""
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


@kernel
def exponential(s, error):
    """Mantissa, zero and exponent of ``exp(s + error)`` for s <= 0 and an error that is small beside one."""
    e = np.rint(s / LOG_HI)
    if s < FARTHEST:  # the digits of s end before those of the mantissa begin
        return 1.0, 0.0, e
    r, lost = two_sum(s - e * LOG_HI, -e * LOG_LO)
    return normal(math.exp(r) * (1.0 + (lost + error)), 0.0, e)


@kernel
def normal(m, t, e):
    """The same number with its mantissa within the range."""
    if m >= LARGEST:
        return m * DOWN, t * DOWN, e + 1.0
    if m < LEAST:
        if m == 0.0:
            return 0.0, 0.0, 0.0
        return m * UP, t * UP, e - 1.0
    return m, t, e


@kernel
def add(m, t, e, n, u, f):
    """The sum of two numbers (m, t, e) and (n, u, f)."""
    if n == 0.0:
        return m, t, e
    if m == 0.0:
        return n, u, f
    if e == f:
        return normal(m + n, t + u, e)
    if e - f == 1.0:
        return normal(m + n * DOWN, t + u * DOWN, e)
    if f - e == 1.0:
        return normal(n + m * DOWN, u + t * DOWN, f)
    if e > f:  # the other is below 2^-512 of this
        return m, t, e
    return n, u, f


@kernel
def multiply(m, t, e, n, u, f):
    """Their product."""
    return normal(m * n, t * n + m * u, e + f)


@kernel
def divide(m, t, e, n, u, f):
    """Their quotient; the second is not zero."""
    q = m / n
    return normal(q, (t - q * u) / n, e - f)


@kernel
def lifted(m, e):
    """``m R^e`` as a double, for e <= 0; m may also be a derivative."""
    if e < -3.0:
        return 0.0
    for _ in range(int(-e)):
        m *= DOWN
    return m


@kernel
def logarithm(m, e):
    """log(m R^e) of a number that is not zero, as a sum of two numbers with more digits than one has."""
    fraction, power = math.frexp(m)
    twos = 512.0 * e + power
    return twos * LN2_HI, math.log(fraction) + twos * LN2_LO


@kernel
def summed(a, b, c, d):
    """The sum of two such sums (a, b) and (c, d). It is -inf or NaN if the first number of either is."""
    if not math.isfinite(a) or not math.isfinite(c):
        return a + c
    s, lost = two_sum(a, c)
    return s + (lost + (b + d))

"""Reweighted sum-product on pairs of binary variables without forbidden states: one number per message, its log odds.

The table of pair (i, j) divided by rho is a constant plus b x_i + c x_j + d x_i x_j. Messages[2 e] go to i, [2 e + 1] to j;
odds[i] = the score of state 1 less that of state 0, plus the sum of rho times messages.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp, forced, twice_atanh

BLOCK = 256


@forced
def _step(x, d):
    """log(1 + exp(x + d)) - log(1 + exp(x)), without loss where both are large.

    With p = exp(-|x + d|) and q = exp(-|x|) what is left is log((1 + p) / (1 + q)) = 2 atanh((p - q) / (2 + p + q)), whose
    argument is at most a third.
    """
    y = x + d
    p, q = exp(-abs(y)), exp(-abs(x))
    z = (p - q) / (2.0 + p + q)
    return ((y if y > 0.0 else 0.0) - (x if x > 0.0 else 0.0)) + twice_atanh(z)


@kernel
def sweep_sequential(pairs, b, c, d, rho, order, backward, damping, odds, messages):
    """One pair after another, each with the newest messages; returns the largest change."""
    change = 0.0
    count = len(order)
    keep = 1.0 - damping
    for k in range(count):
        e = order[count - 1 - k if backward else k]
        i, j = pairs[2 * e], pairs[2 * e + 1]
        to_i = b[e] + _step(odds[j] - messages[2 * e + 1] + c[e], d[e]) - messages[2 * e]
        to_j = c[e] + _step(odds[i] - messages[2 * e] + b[e], d[e]) - messages[2 * e + 1]
        change = max(change, abs(to_i), abs(to_j))
        messages[2 * e] += keep * to_i
        messages[2 * e + 1] += keep * to_j
        odds[i] += rho[e] * keep * to_i
        odds[j] += rho[e] * keep * to_j
    return change


@kernel
def sweep_parallel(pairs, b, c, d, damping, odds, messages, lo, hi, out):
    """Messages of pairs lo:hi into out, all from the old ones; returns the largest change."""
    x, y = np.empty(BLOCK), np.empty(BLOCK)
    change = 0.0
    keep = 1.0 - damping
    for first in range(lo, hi, BLOCK):
        count = min(BLOCK, hi - first)
        # views from zero: with other indices the loops below are not vectorised
        bb, cc, dd = b[first : first + count], c[first : first + count], d[first : first + count]
        for k in range(count):
            e = first + k
            x[k] = odds[pairs[2 * e + 1]] - messages[2 * e + 1] + c[e]
            y[k] = odds[pairs[2 * e]] - messages[2 * e] + b[e]
        for k in range(count):
            x[k] = _step(x[k], dd[k]) + bb[k]
        for k in range(count):
            y[k] = _step(y[k], dd[k]) + cc[k]
        for k in range(count):
            e = first + k
            p, q = x[k] - messages[2 * e], y[k] - messages[2 * e + 1]
            change = max(change, abs(p), abs(q))
            out[2 * e] = messages[2 * e] + keep * p
            out[2 * e + 1] = messages[2 * e + 1] + keep * q
    return change


@kernel
def set_odds(incident, edge_factor, rho, scores, messages, lo, hi, odds):
    """Odds of variables lo:hi from messages."""
    starts, members = incident
    for i in range(lo, hi):
        total = scores[i]
        for k in range(starts[i], starts[i + 1]):
            e = members[k]
            total += rho[edge_factor[e]] * messages[e]
        odds[i] = total

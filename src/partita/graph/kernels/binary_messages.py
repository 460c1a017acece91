"""Sum-product, also tree-reweighted, on pairs of binary variables without forbidden states: a message is one number, its log
odds.

messages[2 e] goes to the first variable of pair e, [2 e + 1] to the second. log_odds[i] = the score of state 1 less that of
state 0, plus the sum of rho times the messages to i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray
from ...numerics.jit import in_place, kernel
from ...numerics.math import exp, forced, twice_atanh

BLOCK = 256


class PairTables(NamedTuple):
    """Tables of pairs divided by rho: with x_i, x_j 0 or 1 they are constants plus b x_i + c x_j + d x_i x_j."""

    ends: IntArray  #: (2 * pairs,) i and j of each pair
    b: FloatArray  #: (pairs,)
    c: FloatArray  #: (pairs,)
    d: FloatArray  #: (pairs,)


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


@in_place
def sweep_sequential(pairs, rho, order, backward, damping, log_odds, messages):
    """One pair after another, each with the newest messages; returns the largest change."""
    ends, b, c, d = pairs
    change = 0.0
    count = len(order)
    keep = 1.0 - damping
    for k in range(count):
        e = order[count - 1 - k if backward else k]
        i, j = ends[2 * e], ends[2 * e + 1]
        to_i = b[e] + _step(log_odds[j] - messages[2 * e + 1] + c[e], d[e]) - messages[2 * e]
        to_j = c[e] + _step(log_odds[i] - messages[2 * e] + b[e], d[e]) - messages[2 * e + 1]
        change = max(change, abs(to_i), abs(to_j))
        messages[2 * e] += keep * to_i
        messages[2 * e + 1] += keep * to_j
        log_odds[i] += rho[e] * keep * to_i
        log_odds[j] += rho[e] * keep * to_j
    return change


@kernel
def sweep_parallel(pairs, damping, log_odds, messages, lo, hi, out):
    """Messages of pairs lo..hi into out, all from the old ones; returns the largest change."""
    ends, b, c, d = pairs
    x, y = np.empty(BLOCK), np.empty(BLOCK)
    change = 0.0
    keep = 1.0 - damping
    for first in range(lo, hi, BLOCK):
        count = min(BLOCK, hi - first)
        # views from zero: with other indices the loops below are not vectorised
        bb, cc, dd = b[first : first + count], c[first : first + count], d[first : first + count]
        for k in range(count):
            e = first + k
            x[k] = log_odds[ends[2 * e + 1]] - messages[2 * e + 1] + c[e]
            y[k] = log_odds[ends[2 * e]] - messages[2 * e] + b[e]
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


@in_place
def set_log_odds(layout, rho, scores, messages, lo, hi, log_odds):
    """Log odds of variables lo..hi from the messages to them."""
    for i in range(lo, hi):
        total = scores[i]
        for k in range(layout.var_ptr[i], layout.var_ptr[i + 1]):
            e = layout.var_edges[k]
            total += rho[layout.edge_factor[e]] * messages[e]
        log_odds[i] = total

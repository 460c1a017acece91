"""Sets of a fixed number of items (conditional Bernoulli distributions), by elementary symmetric polynomials."""

from __future__ import annotations

import numpy as np

from .jit import kernel

#: The largest logarithm of a product of odds that sums are formed of as they are.
MOST = 300.0


@kernel
def size_shift(sizes, total, b):
    """What must be added to all log-odds so that sets have `total` items on average; `sizes` are logs of sums by size."""
    wanted = min(total, b * (1.0 - 1e-13))  # sets of b alone would need infinite odds
    lo, hi = -100.0, 100.0
    for _ in range(70):
        c = 0.5 * (lo + hi)
        top = -np.inf
        for k in range(b + 1):
            top = max(top, sizes[k] + c * k)
        mass, mean = 0.0, 0.0
        for k in range(b + 1):
            p = np.exp(sizes[k] + c * k - top)
            mass += p
            mean += k * p
        if mean < wanted * mass:
            lo = c
        else:
            hi = c
    return 0.5 * (lo + hi)


@kernel
def _scale(sizes, total, b):
    """What all odds must be multiplied with so that sets have `total` items on average; `sizes` are sums by size.

    By Newton's steps for the logarithm, within a bracket: the mean rises with it, and has the variance as its slope.
    """
    wanted = min(total, b * (1.0 - 1e-13))
    lo, hi, c = -100.0, 100.0, 0.0
    for _ in range(70):
        factor, power, mass, mean, square = np.exp(c), 1.0, 0.0, 0.0, 0.0
        for k in range(b + 1):
            p = sizes[k] * power
            mass += p
            mean += k * p
            square += k * k * p
            power *= factor
        mean, square = mean / mass, square / mass
        if mean < wanted:
            lo = c
        else:
            hi = c
        variance = square - mean * mean
        step = (wanted - mean) / variance if variance > 1e-300 else np.inf
        if abs(step) <= 1e-14:  # before the bracket is asked: rounding may be on the wrong side of it
            break
        c = c + step if lo < c + step < hi else 0.5 * (lo + hi)
    return np.exp(c)


@kernel
def _sweep(tau, b, exactly, odds, left, right):
    """A sweep of `tilt` over all items, by sums that are no logarithms; returns the largest error of a probability."""
    n, error = len(tau), 0.0
    right[n, :], left[0, :] = 0.0, 0.0
    right[n, 0] = left[0, 0] = 1.0
    for e in range(n - 1, -1, -1):
        right[e, 0] = 1.0
        for k in range(1, b + 1):
            right[e, k] = right[e + 1, k] + right[e + 1, k - 1] * odds[e]
    for e in range(n):
        without, room = 0.0, 0.0  # sets of the others: with b of them, and with one less
        for j in range(b + 1):
            before = left[e, j]
            for k in range(max(b - 1 - j, 0) if exactly else 0, b + 1 - j):
                term = before * right[e + 1, k]
                if not exactly or j + k == b:
                    without += term
                if j + k == b - 1 or (not exactly and j + k < b):
                    room += term
        if tau[e] > 0.0 and tau[e] < 1.0 and room > 0.0 and without > 0.0:
            p = odds[e] * room / without
            error = max(error, abs(p / (1.0 + p) - tau[e]))
            odds[e] = tau[e] / (1.0 - tau[e]) * without / room
        left[e + 1, 0] = 1.0
        for k in range(1, b + 1):
            left[e + 1, k] = left[e, k] + left[e, k - 1] * odds[e]
    return error


@kernel
def _tilt_in_range(tau, b, exactly, odds, left, right, tol, max_sweeps):
    """`tilt` with odds for their logarithms; the error is inf if they leave the range in which sums do not overflow."""
    n, error, limit = len(tau), np.inf, np.exp(MOST / b)
    for _ in range(max_sweeps):
        for e in range(n):
            if not 1.0 / limit < odds[e] < limit:
                return 0.0, np.inf
        error = _sweep(tau, b, exactly, odds, left, right)
        if error <= tol:
            break
        if not exactly:  # the one direction in which single items are slow
            factor = _scale(left[n], tau.sum(), b)
            power = 1.0
            for k in range(b + 1):
                left[n, k] *= power
                power *= factor
            for e in range(n):
                odds[e] *= factor
    total = left[n, b]
    if not exactly:
        for k in range(b):
            total += left[n, k]
    return np.log(total), error


@kernel
def tilt(tau, b, exactly, w, left, right, tol, max_sweeps):
    """Find log-odds w such that sets of (exactly, or at most) b items, with odds exp(w), have items with probabilities tau.

    Coordinate descent of ``log Z(w) - tau . w``, whose minimum is the entropy. `w` is where it begins, and is overwritten;
    `left` and `right` are workspaces of (items + 1) x (b + 1). Returns log Z and the largest error of a probability. Where
    odds are far from one, sums are logarithms, which takes ten times as long.
    """
    n = len(tau)
    odds = np.exp(w)
    log_z, error = _tilt_in_range(tau, b, exactly, odds, left, right, tol, max_sweeps)
    if error < np.inf:
        w[:] = np.log(odds)
        return log_z, error
    log_z = 0.0
    for _ in range(max_sweeps):
        right[n, :] = -np.inf
        right[n, 0] = 0.0
        for e in range(n - 1, -1, -1):
            right[e, 0] = 0.0
            for k in range(1, b + 1):
                right[e, k] = np.logaddexp(right[e + 1, k], right[e + 1, k - 1] + w[e])
        left[0, :] = -np.inf
        left[0, 0] = 0.0
        error = 0.0
        for e in range(n):
            without, room = -np.inf, -np.inf  # sets of the others: with b of them, and with one less
            for j in range(b + 1):
                for k in range(b + 1 - j):
                    if exactly and j + k < b - 1:
                        continue
                    term = left[e, j] + right[e + 1, k]
                    if j + k < b and (not exactly or j + k == b - 1):
                        room = np.logaddexp(room, term)
                    if not exactly or j + k == b:
                        without = np.logaddexp(without, term)
            if tau[e] > 0.0 and tau[e] < 1.0 and room > -np.inf and without > -np.inf:
                odds = w[e] + room - without
                error = max(error, abs(1.0 / (1.0 + np.exp(-odds)) - tau[e]))
                w[e] = np.log(tau[e]) - np.log1p(-tau[e]) + without - room
            left[e + 1, 0] = 0.0
            for k in range(1, b + 1):
                left[e + 1, k] = np.logaddexp(left[e, k], left[e, k - 1] + w[e])
        if error <= tol:
            break
        if not exactly:  # the one direction in which single items are slow
            c = size_shift(left[n], tau.sum(), b)
            for e in range(n):
                w[e] += c
            for k in range(b + 1):
                left[n, k] += c * k
    log_z = left[n, b]
    if not exactly:
        for k in range(b):
            log_z = np.logaddexp(log_z, left[n, k])
    return log_z, error

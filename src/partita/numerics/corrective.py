"""Fully corrective Frank-Wolfe: the best shares of known configurations, by Newton steps on all of them at once."""

from __future__ import annotations

import numpy as np

from .exchanges import REST, TINY, score_vertices, slope_of_part_with_groups
from .jit import kernel
from .secant import bracketed, found_step, is_found, narrowed, next_step

#: What is added to the diagonal of the Hessian, relative to it: configurations may depend on each other.
RIDGE = 1e-10
#: Shares below which a configuration has none.
NONE = 1e-15


@kernel
def curvature(terms, place, e):
    """Minus the second derivative of the entropy in one part, that of its groups left out."""
    t = min(max(place.tau[e], TINY), 1.0 - REST)
    return terms.own[e] / (t * (1.0 - t)) + terms.single[e] / t


@kernel
def hessian(terms, vertices, place, scaling, keep, free, column, counts, M):
    """Minus the Hessian in the shares of the `free` configurations. `column` is their number among these, or -1."""
    n, size = len(free), len(place.tau)
    M[:n, :n] = 0.0
    of_part, ends = np.empty(counts[size], np.int64), counts[:size].copy()
    for v in free:
        for at in range(vertices.starts[v], vertices.starts[v + 1]):
            e = vertices.parts[at]
            of_part[ends[e]] = column[v]
            ends[e] += 1
    for e in range(size):
        if ends[e] == counts[e]:
            continue
        d = keep * keep * curvature(terms, place, e)
        for a in range(counts[e], ends[e]):
            for b in range(counts[e], ends[e]):
                M[of_part[a], of_part[b]] += d
    usage = np.zeros(n)
    for g in range(len(terms.slack)):
        if terms.slack[g] == 0.0:
            continue
        usage[:] = 0.0
        for at in range(terms.group_starts[g], terms.group_starts[g + 1]):
            e = terms.group_parts[at]
            for a in range(counts[e], ends[e]):
                usage[of_part[a]] += keep
        d = terms.slack[g] / max(place.rest[g], TINY)
        for a in range(n):
            if usage[a] != 0.0:
                for b in range(n):
                    M[a, b] += d * usage[a] * usage[b]
    for a in range(n):
        for b in range(n):
            total = 0.0
            for k in range(len(scaling)):
                total += vertices.images[free[a], k] * vertices.images[free[b], k] * scaling[k]
            M[a, b] += keep * keep * total


@kernel
def solve(M, n, g, d, z):
    """The Newton direction d among vectors that sum to zero; False if there is none. M is overwritten.

    A constant that is added to all of M changes nothing there, and makes it definite for a configuration without parts.
    """
    mean = 0.0
    for a in range(n):
        mean += M[a, a] / n
    for a in range(n):
        for b in range(n):
            M[a, b] += mean
        M[a, a] += RIDGE * (M[a, a] + mean)
    for a in range(n):
        for b in range(a + 1):
            total = M[a, b]
            for k in range(b):
                total -= M[a, k] * M[b, k]
            if a == b:
                if not total > 0.0:
                    return False
                M[a, a] = np.sqrt(total)
            else:
                M[a, b] = total / M[b, b]
    for right in range(2):
        x = d if right == 0 else z
        for a in range(n):
            total = g[a] if right == 0 else 1.0
            for k in range(a):
                total -= M[a, k] * x[k]
            x[a] = total / M[a, a]
        for a in range(n - 1, -1, -1):
            total = x[a]
            for k in range(a + 1, n):
                total -= M[k, a] * x[k]
            x[a] = total / M[a, a]
    top, bottom = 0.0, 0.0
    for a in range(n):
        top += d[a]
        bottom += z[a]
    for a in range(n):
        d[a] -= z[a] * top / bottom
        if not abs(d[a]) < np.inf:
            return False
    return True


@kernel
def slope_at(terms, fixed, place, moved, direction, leaving, rise, bend, step):
    """The slope along a direction at a step."""
    out = rise - step * bend
    for e in moved:
        t = min(max(place.tau[e] + step * direction[e], TINY), 1.0 - REST)
        log_t = np.log(t)
        out += direction[e] * (fixed[e] + terms.own[e] * (np.log1p(-t) - log_t) - terms.single[e] * (1.0 + log_t))
    for g in range(len(terms.slack)):
        if terms.slack[g] != 0.0 and leaving[g] != 0.0:
            out += terms.slack[g] * leaving[g] * (1.0 + np.log(max(place.rest[g] - step * leaving[g], TINY)))
    return out


@kernel
def best_step(terms, fixed, place, moved, direction, leaving, rise, bend, longest):
    """The step at which the slope vanishes."""
    at_lo = slope_at(terms, fixed, place, moved, direction, leaving, rise, bend, 0.0)
    if at_lo <= 0.0:
        return 0.0
    at_hi = slope_at(terms, fixed, place, moved, direction, leaving, rise, bend, longest)
    if at_hi >= 0.0:
        return longest
    bracket = bracketed(longest, at_lo, at_hi)
    for _ in range(40):
        step = next_step(bracket)
        now = slope_at(terms, fixed, place, moved, direction, leaving, rise, bend, step)
        bracket = narrowed(bracket, step, now)
        if is_found(bracket, now, 1e-2):
            break
    return found_step(bracket)


@kernel
def let_go(vertices, free, column, best, worthless, d):
    """Let what is nearly nothing and wants to be less go at once, to the best one, so that it does not stop the others.

    Returns the longest step that leaves all shares above zero.
    """
    for a in range(len(free)):
        share = vertices.shares[free[a]]
        if free[a] != best and share < worthless and d[a] < 0.0 and share + d[a] <= 0.0:
            d[column[best]] += d[a] + share
            d[a] = -share
    longest = 1.0
    for a in range(len(free)):
        if d[a] < 0.0 and d[a] != -vertices.shares[free[a]]:
            longest = min(longest, -vertices.shares[free[a]] / d[a])
    return longest


@kernel
def spread(terms, vertices, free, d, keep, direction, leaving, image):
    """What a change of shares does to parts, groups and parameters' side."""
    direction[:] = 0.0
    leaving[:] = 0.0
    image[:] = 0.0
    for a in range(len(free)):
        for at in range(vertices.starts[free[a]], vertices.starts[free[a] + 1]):
            direction[vertices.parts[at]] += keep * d[a]
        for k in range(len(image)):
            image[k] += keep * d[a] * vertices.images[free[a], k]
    for group in range(len(terms.slack)):
        for at in range(terms.group_starts[group], terms.group_starts[group + 1]):
            leaving[group] += direction[terms.group_parts[at]]


@kernel
def correct(terms, fixed, vertices, place, scaling, keep, promise, most):
    """Newton steps on the shares of all known configurations until none is better than another by `promise`.

    Arguments are those of `exchanges.exchange`. Returns the number of steps, and the difference of scores at the end.
    """
    n, size = len(vertices.shares), len(place.tau)
    gradient, direction, leaving = np.empty(size), np.zeros(size), np.zeros(len(place.rest))
    image, scores, column = np.zeros(len(place.theta)), np.empty(n), np.full(n, -1)
    M, g, d, z = np.empty((n, n)), np.empty(n), np.empty(n), np.empty(n)
    counts = np.zeros(size + 1, np.int64)
    for at in range(len(vertices.parts)):
        counts[vertices.parts[at] + 1] += 1
    used = np.flatnonzero(counts[1:] > 0)
    counts = np.cumsum(counts)
    for turn in range(most + 1):
        for e in used:
            gradient[e] = fixed[e] + slope_of_part_with_groups(terms, place, e)
        best, worst = score_vertices(vertices, gradient, place.theta, scores)
        difference = scores[best] - scores[worst]
        # one without a share needs some first: entropies are steep at the border
        if turn == most or difference < promise or not vertices.shares[best] > NONE:
            return turn, difference
        free = np.flatnonzero(vertices.shares > NONE)
        for a in range(len(free)):
            column[free[a]] = a
            g[a] = keep * (scores[free[a]] - scores[best])
        hessian(terms, vertices, place, scaling, keep, free, column, counts, M)
        if not solve(M, len(free), g, d, z):
            return turn, difference
        longest = let_go(vertices, free, column, best, 0.01 * promise / (30.0 * n), d)
        spread(terms, vertices, free, d, keep, direction, leaving, image)
        rise, bend = 0.0, 0.0
        for k in range(len(image)):
            rise += place.theta[k] * image[k]
            bend += image[k] * image[k] * scaling[k]
        step = best_step(terms, fixed, place, used, direction, leaving, rise, bend, longest)
        if not step > 0.0:
            return turn, difference
        for k in range(len(image)):
            place.theta[k] -= step * image[k] * scaling[k]
        for a in range(len(free)):
            vertices.shares[free[a]] = max(vertices.shares[free[a]] + step * d[a], 0.0)
        for e in used:
            place.tau[e] += step * direction[e]
        for group in range(len(terms.slack)):
            place.rest[group] -= step * leaving[group]
    return most, 0.0

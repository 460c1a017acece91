"""Pairwise Frank-Wolfe steps between known configurations, many in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import kernel

#: What stands for zero in logarithms of shares, and of what is missing to one.
TINY, REST = 1e-300, 1e-15


class GroupTerms(NamedTuple):
    """An entropy with the derivative ``own log((1 - t) / t) - single (1 + log t) + sum_g slack_g (1 + log s_g)`` for a part
    with probability t in groups that lack s_g to one. Groups of parts and parts of groups are CSR lists."""

    own: Any
    single: Any
    slack: Any
    part_starts: Any
    part_groups: Any
    group_starts: Any
    group_parts: Any


def group_terms(own: Any, single: Any, slack: Any, members: Any, owner: Any) -> GroupTerms:
    """Those of an entropy whose groups (`owner`) have the parts `members`."""
    by_part, by_group = np.argsort(members, kind="stable"), np.argsort(owner, kind="stable")
    starts = [np.searchsorted(np.sort(keys), np.arange(n + 1)) for keys, n in ((members, len(own)), (owner, len(slack)))]
    arrays = (starts[0], owner[by_part], starts[1], members[by_group])
    return GroupTerms(own, single, slack, *(np.ascontiguousarray(a, dtype=np.int64) for a in arrays))


class Vertices(NamedTuple):
    """Sets of parts (CSR), what they add to the parameters' side, and their shares."""

    starts: Any
    parts: Any
    images: Any
    shares: Any


class Place(NamedTuple):
    """Where a block is: probabilities of parts, what groups lack to one, parameters; all of them are changed."""

    tau: Any
    rest: Any
    theta: Any


@kernel
def slope_of_part(terms, e, t):
    t = min(max(t, TINY), 1.0 - REST)
    log_t = np.log(t)
    out = terms.own[e] * (np.log1p(-t) - log_t)
    if terms.single[e] != 0.0:
        out -= terms.single[e] * (1.0 + log_t)
    return out


@kernel
def slope_of_part_with_groups(terms, place, e):
    out = slope_of_part(terms, e, place.tau[e])
    for at in range(terms.part_starts[e], terms.part_starts[e + 1]):
        g = terms.part_groups[at]
        if terms.slack[g] != 0.0:
            out += terms.slack[g] * (1.0 + np.log(max(place.rest[g], TINY)))
    return out


@kernel
def step_slope(terms, place, moved, direction, groups, leaving, counts, step):
    """The slope of the entropy at a step: parts and groups that change only."""
    out = 0.0
    for k in range(counts[0]):
        e = moved[k]
        out += direction[e] * slope_of_part(terms, e, place.tau[e] + step * direction[e])
    for k in range(counts[1]):
        g = groups[k]
        out += terms.slack[g] * leaving[g] * (1.0 + np.log(max(place.rest[g] - step * leaving[g], TINY)))
    return out


@kernel
def best_step(terms, place, moved, direction, groups, leaving, counts, rise, bend, longest):
    """The step at which the slope vanishes, by secants within a bracket; see `inference.active_set.line_search`."""
    lo, hi = 0.0, longest
    at_lo = rise + step_slope(terms, place, moved, direction, groups, leaving, counts, 0.0)
    at_hi = rise - hi * bend + step_slope(terms, place, moved, direction, groups, leaving, counts, hi)
    if at_hi >= 0.0:
        return longest
    if at_lo <= 0.0:
        return 0.0
    first, halve = at_lo, False
    for _ in range(60):
        width = hi - lo
        part = 0.5 if halve else min(max(at_lo / (at_lo - at_hi), 0.01), 0.99)
        step = lo + part * width
        now = rise - step * bend + step_slope(terms, place, moved, direction, groups, leaving, counts, step)
        if now > 0.0:
            lo, at_lo = step, now
        else:
            hi, at_hi = step, now
        halve = hi - lo > 0.5 * width
        if abs(now) <= 1e-2 * first or hi - lo <= 1e-15 * longest:
            break
    return lo if lo > 0.0 else 0.5 * hi


@kernel
def exchange(terms, fixed, vertices, place, scaling, keep, promise, turns):
    """Move shares from the worst known configuration to the best one as long as that promises enough, at most so often.

    Parameters
    ----------
    fixed : scores of parts besides those of the parameters
    scaling : by how much parameters fall for each unit of an image
    keep : the part of a share that counts: the rest is that of the first mean
    promise : the least difference of scores that pays

    Returns the number of exchanges, and the difference of scores at the end.
    """
    n, size, width = len(vertices.shares), len(place.tau), len(place.theta)
    gradient, direction = np.empty(size), np.zeros(size)
    leaving, marked = np.zeros(len(place.rest)), np.zeros(len(place.rest), np.bool_)
    moved, groups, counts = np.empty(size, np.int64), np.empty(len(place.rest), np.int64), np.zeros(2, np.int64)
    for e in range(size):
        gradient[e] = fixed[e] + slope_of_part_with_groups(terms, place, e)
    difference = 0.0
    for turn in range(turns + 1):
        worst, best, low, high = -1, -1, np.inf, -np.inf
        for v in range(n):
            score = 0.0
            for k in range(width):
                score += place.theta[k] * vertices.images[v, k]
            for at in range(vertices.starts[v], vertices.starts[v + 1]):
                score += gradient[vertices.parts[at]]
            if score > high:
                best, high = v, score
            if vertices.shares[v] > 1e-15 and score < low:
                worst, low = v, score
        difference = high - low
        if turn == turns or difference < promise or worst == best:
            return turn, difference
        counts[0] = counts[1] = 0
        for sign in range(2):
            v = best if sign == 0 else worst
            for at in range(vertices.starts[v], vertices.starts[v + 1]):
                e = vertices.parts[at]
                direction[e] += keep if sign == 0 else -keep
        for sign in range(2):
            v = best if sign == 0 else worst
            for at in range(vertices.starts[v], vertices.starts[v + 1]):
                e = vertices.parts[at]
                if direction[e] == 0.0 or (sign == 1 and direction[e] > 0.0):
                    continue
                moved[counts[0]] = e
                counts[0] += 1
                for place_of in range(terms.part_starts[e], terms.part_starts[e + 1]):
                    g = terms.part_groups[place_of]
                    if terms.slack[g] != 0.0:
                        leaving[g] += direction[e]
                        if not marked[g]:
                            marked[g] = True
                            groups[counts[1]] = g
                            counts[1] += 1
        rise, bend = 0.0, 0.0
        for k in range(width):
            image = keep * (vertices.images[best, k] - vertices.images[worst, k])
            rise += place.theta[k] * image
            bend += image * image * scaling[k]
        for k in range(counts[0]):
            rise += direction[moved[k]] * fixed[moved[k]]
        step = best_step(terms, place, moved, direction, groups, leaving, counts, rise, bend, vertices.shares[worst])
        if step > 0.0:
            vertices.shares[best] += step
            vertices.shares[worst] -= step
            for k in range(width):
                place.theta[k] -= step * keep * (vertices.images[best, k] - vertices.images[worst, k]) * scaling[k]
            for k in range(counts[0]):
                place.tau[moved[k]] += step * direction[moved[k]]
            for k in range(counts[1]):
                place.rest[groups[k]] -= step * leaving[groups[k]]
            for k in range(counts[0]):
                gradient[moved[k]] = fixed[moved[k]] + slope_of_part_with_groups(terms, place, moved[k])
            for k in range(counts[1]):
                for at in range(terms.group_starts[groups[k]], terms.group_starts[groups[k] + 1]):
                    e = terms.group_parts[at]
                    gradient[e] = fixed[e] + slope_of_part_with_groups(terms, place, e)
        for k in range(counts[0]):
            direction[moved[k]] = 0.0
        for k in range(counts[1]):
            leaving[groups[k]], marked[groups[k]] = 0.0, False
        if not step > 0.0:
            return turn, difference
    return turns, difference

"""Pairwise Frank-Wolfe steps between known configurations, many in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import kernel
from .secant import bracketed, found_step, is_found, narrowed, next_step

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
    """The step at which the slope vanishes."""
    at_lo = rise + step_slope(terms, place, moved, direction, groups, leaving, counts, 0.0)
    at_hi = rise - longest * bend + step_slope(terms, place, moved, direction, groups, leaving, counts, longest)
    if at_hi >= 0.0:
        return longest
    if at_lo <= 0.0:
        return 0.0
    bracket = bracketed(longest, at_lo, at_hi)
    for _ in range(60):
        step = next_step(bracket)
        now = rise - step * bend + step_slope(terms, place, moved, direction, groups, leaving, counts, step)
        bracket = narrowed(bracket, step, now)
        if is_found(bracket, now, 1e-2):
            break
    return found_step(bracket)


@kernel
def score_vertices(vertices, gradient, theta, scores):
    """Scores of configurations: parameters' side and parts. Returns the best one, and the worst one that has a share."""
    worst, best = -1, -1
    for v in range(len(scores)):
        scores[v] = 0.0
        for k in range(len(theta)):
            scores[v] += theta[k] * vertices.images[v, k]
        for at in range(vertices.starts[v], vertices.starts[v + 1]):
            scores[v] += gradient[vertices.parts[at]]
        if best < 0 or scores[v] > scores[best]:
            best = v
        if vertices.shares[v] > 1e-15 and (worst < 0 or scores[v] < scores[worst]):
            worst = v
    return best, worst


@kernel
def head_for(terms, vertices, best, worst, keep, work):
    """The direction from one configuration to another: parts that change, and groups that do."""
    moved, direction, groups, leaving, counts = work
    counts[0] = counts[1] = 0
    for v, sign in ((best, keep), (worst, -keep)):
        for at in range(vertices.starts[v], vertices.starts[v + 1]):
            direction[vertices.parts[at]] += sign
    for v, sign in ((best, keep), (worst, -keep)):
        for at in range(vertices.starts[v], vertices.starts[v + 1]):
            e = vertices.parts[at]
            if direction[e] != sign:  # a part of both
                continue
            moved[counts[0]] = e
            counts[0] += 1
            for place_of in range(terms.part_starts[e], terms.part_starts[e + 1]):
                g = terms.part_groups[place_of]
                if terms.slack[g] == 0.0:
                    continue
                if leaving[g] == 0.0:
                    groups[counts[1]] = g
                    counts[1] += 1
                    leaving[g] = 1e-300  # noted, also where what comes and goes is the same
                leaving[g] += direction[e]


@kernel
def arrive(terms, fixed, place, gradient, work, step):
    """Move by a step, renew the gradient where anything changed, and clear the direction."""
    moved, direction, groups, leaving, counts = work
    for k in range(counts[0]):
        place.tau[moved[k]] += step * direction[moved[k]]
    for k in range(counts[1]):
        place.rest[groups[k]] -= step * leaving[groups[k]]
    for k in range(counts[0]):
        gradient[moved[k]] = fixed[moved[k]] + slope_of_part_with_groups(terms, place, moved[k])
        direction[moved[k]] = 0.0
    for k in range(counts[1]):
        for at in range(terms.group_starts[groups[k]], terms.group_starts[groups[k] + 1]):
            e = terms.group_parts[at]
            gradient[e] = fixed[e] + slope_of_part_with_groups(terms, place, e)
        leaving[groups[k]] = 0.0


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
    size, width, n_groups = len(place.tau), len(place.theta), len(place.rest)
    gradient, scores = np.empty(size), np.empty(len(vertices.shares))
    counts = np.zeros(2, np.int64)
    moved, direction, groups, leaving = (
        np.empty(size, np.int64),
        np.zeros(size),
        np.empty(n_groups, np.int64),
        np.zeros(n_groups),
    )
    work = (moved, direction, groups, leaving, counts)
    for e in range(size):
        gradient[e] = fixed[e] + slope_of_part_with_groups(terms, place, e)
    for turn in range(turns + 1):
        best, worst = score_vertices(vertices, gradient, place.theta, scores)
        difference = scores[best] - scores[worst]
        if turn == turns or difference < promise or worst == best:
            return turn, difference
        head_for(terms, vertices, best, worst, keep, work)
        rise, bend = 0.0, 0.0
        for k in range(width):
            image = keep * (vertices.images[best, k] - vertices.images[worst, k])
            rise += place.theta[k] * image
            bend += image * image * scaling[k]
        for k in range(counts[0]):
            rise += direction[moved[k]] * fixed[moved[k]]
        step = best_step(terms, place, moved, direction, groups, leaving, counts, rise, bend, vertices.shares[worst])
        vertices.shares[best] += step
        vertices.shares[worst] -= step
        for k in range(width):
            place.theta[k] -= step * keep * (vertices.images[best, k] - vertices.images[worst, k]) * scaling[k]
        arrive(terms, fixed, place, gradient, work, step)
        if not step > 0.0:
            return turn, difference
    return turns, 0.0

"""Which states can be at all (arc consistency), and configurations that are not forbidden (backtracking search).

`allowed` says of every table entry whether it is above -inf, `alive` of every state of every variable. Layouts are
those of `factor_layout`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.results import IntArray
from ...numerics.jit import in_place, kernel, step

#: Variables that a factor has at most: its table has at least two entries for each.
MOST_VARIABLES = 64


class Propagation(NamedTuple):
    """What arc consistency works in."""

    queue: IntArray  #: (F,) factors to be gone through, in a ring
    queued: NDArray[np.bool_]  #: (F,) whether a factor is in the queue
    trail: IntArray  #: (S,) removed states, in order
    states: IntArray  #: (64,) states of the variables of one factor
    seen: NDArray[np.bool_]  #: (S,) whether their states have support


class Choices(NamedTuple):
    """The stack of choices of a search, of each:"""

    length: IntArray  #: (n + 1,) how many states had been removed before
    state: IntArray  #: (n + 1,) the state chosen
    position: IntArray  #: (n + 1,) its variable's place in the order


@step
def _supported(f, layout, allowed, alive, states, seen):
    """seen[p] = whether a state of a variable of factor f has support, an entry that is allowed and alive."""
    var_offsets, fac_offsets, fac_ptr, edge_var = layout.var_offsets, layout.fac_offsets, layout.fac_ptr, layout.edge_var
    first, arity = fac_ptr[f], fac_ptr[f + 1] - fac_ptr[f]
    for j in range(arity):
        states[j] = 0
    width = 0
    for j in range(arity):
        i = edge_var[first + j]
        width += var_offsets[i + 1] - var_offsets[i]
    for p in range(width):
        seen[p] = False
    for x in range(fac_offsets[f + 1] - fac_offsets[f]):
        good = allowed[fac_offsets[f] + x]
        for j in range(arity):
            good = good and alive[var_offsets[edge_var[first + j]] + states[j]]
        p = 0
        for j in range(arity):
            i = edge_var[first + j]
            if good:
                seen[p + states[j]] = True
            p += var_offsets[i + 1] - var_offsets[i]
        for j in range(arity - 1, -1, -1):
            i = edge_var[first + j]
            states[j] += 1
            if states[j] < var_offsets[i + 1] - var_offsets[i]:
                break
            states[j] = 0


@kernel
def _propagation(layout, alive):
    factors = len(layout.fac_ptr) - 1
    queue, queued = np.empty(factors, np.int64), np.zeros(factors, np.bool_)
    trail = np.empty(len(alive), np.int64)
    states, seen = np.empty(MOST_VARIABLES, np.int64), np.empty(len(alive), np.bool_)
    return Propagation(queue, queued, trail, states, seen)


@in_place
def _propagate(layout, allowed, alive, count, length, work):
    """Remove states without support (generalised arc consistency, AC-3), beginning with the factors in queue[:count].

    Removed states go to trail[length:]. Returns the new length of the trail, or minus one minus it if a variable has no
    state left.
    """
    queue, queued, trail, states, seen = work
    factors = len(queued)
    head = 0
    lost = False
    while count > 0:
        f = queue[head]
        head = head + 1 if head + 1 < factors else 0
        count -= 1
        queued[f] = False
        if lost:
            continue
        _supported(f, layout, allowed, alive, states, seen)
        p = 0
        for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
            i = layout.edge_var[e]
            changed = False
            left = 0
            for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
                if alive[s] and not seen[p]:
                    alive[s] = False
                    trail[length] = s
                    length += 1
                    changed = True
                left += alive[s]
                p += 1
            lost = lost or left == 0
            if changed:
                for k in range(layout.var_ptr[i], layout.var_ptr[i + 1]):
                    g = layout.edge_factor[layout.var_edges[k]]
                    if not queued[g]:
                        queued[g] = True
                        tail = head + count
                        queue[tail if tail < factors else tail - factors] = g
                        count += 1
    return -1 - length if lost else length


@kernel
def arc_consistency(layout, allowed, alive):
    """Remove every state without support; False if a variable has no state left."""
    for i in range(len(layout.var_offsets) - 1):
        left = 0
        for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
            left += alive[s]
        if left == 0:
            return False
    work = _propagation(layout, alive)
    factors = len(work.queue)
    for f in range(factors):
        work.queue[f] = f
        work.queued[f] = True
    return _propagate(layout, allowed, alive, factors, 0, work) >= 0


@in_place
def _best_state(i, layout, alive, scores):
    """The state of variable i with the highest score, and how many are left."""
    best, left = -1, 0
    for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
        if alive[s]:
            left += 1
            if best < 0 or scores[s] > scores[best]:
                best = s
    return best, left


@in_place
def _assign(i, state, layout, alive, trail, length):
    """Remove all other states of variable i; returns the new length of the trail."""
    for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
        if alive[s] and s != state:
            alive[s] = False
            trail[length] = s
            length += 1
    return length


@in_place
def _refute(choice, choices, alive, trail, length):
    """Take a choice back, and remove its state, which cannot be given the choices before; returns the trail's new length."""
    while length > choices.length[choice]:
        length -= 1
        alive[trail[length]] = True
    alive[choices.state[choice]] = False
    trail[length] = choices.state[choice]
    return length + 1


@in_place
def _enqueue(i, layout, work):
    """Put the factors of variable i into the empty queue; returns how many."""
    count = 0
    for k in range(layout.var_ptr[i], layout.var_ptr[i + 1]):
        f = layout.edge_factor[layout.var_edges[k]]
        if not work.queued[f]:
            work.queued[f] = True
            work.queue[count] = f
            count += 1
    return count


@kernel
def search(layout, allowed, alive, order, scores, limit, y):
    """Write into y a configuration that is not forbidden; variables in `order`, states of high score first.

    Backtracking search that maintains arc consistency. `alive` must be what `arc_consistency` left; it is changed. Returns 1
    if found, 0 if there is none, -1 if more than `limit` choices had to be taken back.
    """
    n = len(order)
    work = _propagation(layout, alive)
    choices = Choices(np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64))
    depth, length, position, undone = 0, 0, 0, 0
    while position < n:
        i = order[position]
        best, left = _best_state(i, layout, alive, scores)
        if left == 1:
            position += 1
            continue
        choices.length[depth], choices.state[depth], choices.position[depth] = length, best, position
        depth += 1
        length = _assign(i, best, layout, alive, work.trail, length)
        position += 1
        while True:
            length = _propagate(layout, allowed, alive, _enqueue(i, layout, work), length, work)
            if length >= 0:
                break
            length = -1 - length
            undone += 1
            if depth == 0:
                return 0
            if undone > limit:
                return -1
            depth -= 1
            length = _refute(depth, choices, alive, work.trail, length)
            position = choices.position[depth]
            i = order[position]
    for i in range(n):
        for s in range(layout.var_offsets[i], layout.var_offsets[i + 1]):
            if alive[s]:
                y[i] = s - layout.var_offsets[i]
    return 1

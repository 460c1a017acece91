"""Which states can be, and configurations that are not forbidden.

Layouts are tuples of arrays as in `belief_propagation`; `allowed` says of every table entry whether it is above -inf,
`alive` of every state of every variable.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel


@kernel
def _supported(f, layout, allowed, alive, states, seen):
    """seen[p] = whether a state of a member of table f is in an entry that is allowed and alive; members in order."""
    var_offsets, fac_offsets, fac_ptr, edge_var = layout[0], layout[1], layout[2], layout[3]
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
def _propagate(layout, incident, edge_factor, allowed, alive, queue, queued, count, trail, length, states, seen):
    """Remove states without support, beginning with the tables in queue[:count]; removed states go to trail[length:].

    Returns the new length of the trail, or minus one minus it if a variable has no state left.
    """
    var_offsets, fac_ptr, edge_var = layout[0], layout[2], layout[3]
    starts, members = incident
    tables = len(queued)
    head = 0
    lost = False
    while count > 0:
        f = queue[head]
        head = head + 1 if head + 1 < tables else 0
        count -= 1
        queued[f] = False
        if lost:
            continue
        _supported(f, layout, allowed, alive, states, seen)
        p = 0
        for e in range(fac_ptr[f], fac_ptr[f + 1]):
            i = edge_var[e]
            changed = False
            left = 0
            for s in range(var_offsets[i], var_offsets[i + 1]):
                if alive[s] and not seen[p]:
                    alive[s] = False
                    trail[length] = s
                    length += 1
                    changed = True
                left += alive[s]
                p += 1
            lost = lost or left == 0
            if changed:
                for k in range(starts[i], starts[i + 1]):
                    g = edge_factor[members[k]]
                    if not queued[g]:
                        queued[g] = True
                        tail = head + count
                        queue[tail if tail < tables else tail - tables] = g
                        count += 1
    return -1 - length if lost else length


@kernel
def propagate_all(layout, incident, edge_factor, allowed, alive):
    """Remove every state without support; False if a variable has no state left."""
    var_offsets, fac_ptr = layout[0], layout[2]
    tables = len(fac_ptr) - 1
    for i in range(len(var_offsets) - 1):
        left = 0
        for s in range(var_offsets[i], var_offsets[i + 1]):
            left += alive[s]
        if left == 0:
            return False
    queue, queued = np.arange(tables), np.ones(tables, np.bool_)
    trail = np.empty(len(alive), np.int64)
    states, seen = np.empty(64, np.int64), np.empty(len(alive), np.bool_)
    return _propagate(layout, incident, edge_factor, allowed, alive, queue, queued, tables, trail, 0, states, seen) >= 0


@kernel
def search(layout, incident, edge_factor, allowed, alive, order, scores, limit, y):
    """Write into y a configuration that is not forbidden; variables in `order`, states of high score first.

    `alive` must be what `propagate_all` left; it is changed. Returns 1 if found, 0 if there is none, -1 if more than `limit`
    choices had to be taken back.
    """
    var_offsets, fac_ptr = layout[0], layout[2]
    tables, n = len(fac_ptr) - 1, len(order)
    queue, queued = np.empty(tables, np.int64), np.zeros(tables, np.bool_)
    trail = np.empty(len(alive), np.int64)
    states, seen = np.empty(64, np.int64), np.empty(len(alive), np.bool_)
    starts, members = incident
    level_trail, level_state = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    level_position = np.empty(n + 1, np.int64)
    depth, length, position, undone = 0, 0, 0, 0
    while position < n:
        i = order[position]
        best, left = -1, 0
        for s in range(var_offsets[i], var_offsets[i + 1]):
            if alive[s]:
                left += 1
                if best < 0 or scores[s] > scores[best]:
                    best = s
        if left == 1:
            position += 1
            continue
        level_trail[depth], level_state[depth], level_position[depth] = length, best, position
        depth += 1
        for s in range(var_offsets[i], var_offsets[i + 1]):
            if alive[s] and s != best:
                alive[s] = False
                trail[length] = s
                length += 1
        position += 1
        while True:
            count = 0
            for k in range(starts[i], starts[i + 1]):
                f = edge_factor[members[k]]
                if not queued[f]:
                    queued[f] = True
                    queue[count] = f
                    count += 1
            length = _propagate(
                layout, incident, edge_factor, allowed, alive, queue, queued, count, trail, length, states, seen
            )
            if length >= 0:
                break
            # take the last choice back: that state cannot be, given the choices before it
            length = -1 - length
            undone += 1
            if depth == 0:
                return 0
            if undone > limit:
                return -1
            depth -= 1
            while length > level_trail[depth]:
                length -= 1
                alive[trail[length]] = True
            position = level_position[depth]
            i = order[position]
            alive[level_state[depth]] = False
            trail[length] = level_state[depth]
            length += 1
    for i in range(n):
        for s in range(var_offsets[i], var_offsets[i + 1]):
            if alive[s]:
                y[i] = s - var_offsets[i]
    return 1

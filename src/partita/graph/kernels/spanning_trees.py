"""Walks over graphs of tables, and sets of tables without cycles."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel


@kernel
def _find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def acyclic_set(fac_ptr, edge_var, order, parent, counts):
    """Take tables in order unless two of their variables are joined already; add one to the counts of those taken."""
    for i in range(len(parent)):
        parent[i] = i
    for f in order:
        a, b = fac_ptr[f], fac_ptr[f + 1]
        free = True
        for e in range(a, b):
            for g in range(a, e):
                if _find(parent, edge_var[e]) == _find(parent, edge_var[g]):
                    free = False
                    break
            if not free:
                break
        if free:
            root = _find(parent, edge_var[a])
            for e in range(a + 1, b):
                parent[_find(parent, edge_var[e])] = root
            counts[f] += 1


@kernel
def outwards(starts, members, edge_factor, fac_ptr, edge_var, variables, tables):
    """Variables and tables from roots outwards; whether no two paths lead to the same variable."""
    n = len(variables)
    seen, used = np.zeros(n, np.bool_), np.zeros(len(tables), np.bool_)
    acyclic = True
    head, tail, count = 0, 0, 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        variables[tail] = root
        tail += 1
        while head < tail:
            v = variables[head]
            head += 1
            for k in range(starts[v], starts[v + 1]):
                f = edge_factor[members[k]]
                if used[f]:
                    continue
                used[f] = True
                tables[count] = f
                count += 1
                for e in range(fac_ptr[f], fac_ptr[f + 1]):
                    u = edge_var[e]
                    if u != v:
                        acyclic = acyclic and not seen[u]
                        if not seen[u]:
                            seen[u] = True
                            variables[tail] = u
                            tail += 1
    return acyclic

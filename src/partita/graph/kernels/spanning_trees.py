"""Spanning trees of factor graphs (acyclic sets of factors, by Kruskal's algorithm), and breadth-first search."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import in_place, kernel, step


@step
def _find(parent, i):
    """The root of i in a forest of disjoint sets, with path halving."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@in_place
def acyclic_set(layout, order, parent, counts):
    """Take factors in order unless two of their variables are joined already; add one to the counts of those taken.

    `parent` is scratch for a number per variable.
    """
    fac_ptr, edge_var = layout.fac_ptr, layout.edge_var
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
def breadth_first(layout, variables, factors):
    """Variables and factors in breadth-first order from a root of each component; returns whether there is no cycle."""
    var_ptr, var_edges, edge_factor = layout.var_ptr, layout.var_edges, layout.edge_factor
    fac_ptr, edge_var = layout.fac_ptr, layout.edge_var
    n = len(variables)
    seen, used = np.zeros(n, np.bool_), np.zeros(len(factors), np.bool_)
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
            for k in range(var_ptr[v], var_ptr[v + 1]):
                f = edge_factor[var_edges[k]]
                if used[f]:
                    continue
                used[f] = True
                factors[count] = f
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

"""Observing a set of states per example: losses and derivatives of ``log sum_all exp u - log sum_allowed exp u``.

As in `categorical`, the states of example i are u[offsets[i]:offsets[i+1]].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray
from ...numerics.jit import kernel, sum_kernel
from ...numerics.math import exp


class Observed(NamedTuple):
    """What was observed: the states that agree with it, and the weights of examples.

    Attributes
    ----------
    allowed : bool array
        In the order of flat scores.
    w : array (examples,)
    offsets : int64 array (examples + 1,)
        Where the states of each example begin in the flat array of scores.
    """

    allowed: Any
    w: FloatArray
    offsets: IntArray


@kernel
def largest(u, allowed, a, b):
    """The largest score from a to b, of all states and of those allowed."""
    top = -np.inf
    top_allowed = -np.inf
    for k in range(a, b):
        top = max(top, u[k])
        if allowed[k]:
            top_allowed = max(top_allowed, u[k])
    return top, top_allowed


@sum_kernel
def loss(u, observed, lo, hi, p, q, r):
    """Return the loss; write the marginals p, those given what is allowed q, and the residuals r = w (p - q)."""
    allowed, w, offsets = observed
    total = 0.0
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        top, _ = largest(u, allowed, a, b)
        for k in range(a, b):
            p[k] = u[k] - top
    for k in range(offsets[lo], offsets[hi]):  # one long loop, which vectorises
        p[k] = exp(p[k])
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        inside = 0.0
        outside = 0.0  # kept apart: 1 - (share of the allowed) is exact when that is close to 1
        for k in range(a, b):
            if allowed[k]:
                inside += p[k]
            else:
                outside += p[k]
        z = inside + outside
        ratio = outside / z
        term = np.log1p(outside / inside)
        for k in range(a, b):
            q[k] = p[k] / inside if allowed[k] else 0.0
        if inside < 1e-290:  # what is allowed is so improbable that it needs a scale of its own
            top, top_allowed = largest(u, allowed, a, b)
            own = 0.0
            for k in range(a, b):
                q[k] = np.exp(u[k] - top_allowed) if allowed[k] else 0.0
                own += q[k]
            for k in range(a, b):
                q[k] /= own
            term = top - top_allowed + np.log(z) - np.log(own)
        for k in range(a, b):
            p[k] /= z
            r[k] = -w[i] * ratio * q[k] if allowed[k] else w[i] * p[k]
        if w[i] != 0.0:
            total += w[i] * term
    return total


@sum_kernel
def subspace(u, du, c, observed, lo, hi, gradient, hessian):
    """Loss at u + sum_a c_a du[a], with derivatives in c added to `gradient` (k) and `hessian` (k x k)."""
    allowed, w, offsets = observed
    n_dirs = du.shape[0]
    start = offsets[lo]
    e = np.empty(offsets[hi] - start)
    mean = np.empty(n_dirs)
    total = 0.0
    for k in range(len(e)):
        s = u[start + k]
        for j in range(n_dirs):
            s += c[j] * du[j, start + k]
        e[k] = s
    live = allowed[start : offsets[hi]]
    for i in range(lo, hi):
        a, b = offsets[i] - start, offsets[i + 1] - start
        tops = largest(e, live, a, b)
        for part in range(2):  # all states, less those allowed
            sign = w[i] if part == 0 else -w[i]
            z = 0.0
            mean[:] = 0.0
            for k in range(a, b):
                if part == 0 or live[k]:
                    share = np.exp(e[k] - tops[part])
                    z += share
                    for j in range(n_dirs):
                        mean[j] += share * du[j, start + k]
            for j in range(n_dirs):
                mean[j] /= z
                gradient[j] += sign * mean[j]
            if sign != 0.0:
                total += sign * (tops[part] + np.log(z))
            for k in range(a, b):
                if part == 0 or live[k]:
                    share = sign * np.exp(e[k] - tops[part]) / z
                    for j in range(n_dirs):
                        for l in range(n_dirs):  # noqa: E741
                            hessian[j, l] += share * (du[j, start + k] - mean[j]) * (du[l, start + k] - mean[l])
    return total

"""Choosing one label per example: losses, marginals, samples from scores alone.

Ragged label sets: the scores of example i are u[offsets[i]:offsets[i+1]] and y[i] counts from the start of that range.
The binary kernels hold one score per example, the log-odds of label 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray
from ...numerics.curvature import beta, sigmoid
from ...numerics.jit import kernel, sum_kernel
from ...numerics.math import exp, log1p_unit


class Targets(NamedTuple):
    """What was observed: the label of each example, counted from the start of its label set, and its weight.

    Attributes
    ----------
    y : int64 array (examples,)
    w : array (examples,)
    offsets : int64 array (examples + 1,)
        Where the labels of each example begin in a flat array of scores. Binary kernels do not read it.
    """

    y: IntArray
    w: FloatArray
    offsets: IntArray


@kernel
def log_partition(u, offsets, lo, hi, out):
    """out[i] = log sum exp of the scores of example i; -inf when every label is."""
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        m = -np.inf
        for k in range(a, b):
            m = max(m, u[k])
        if m == -np.inf:
            out[i] = -np.inf
            continue
        z = 0.0
        for k in range(a, b):
            z += np.exp(u[k] - m)
        out[i] = m + np.log(z)


@sum_kernel
def loss(u, targets, lo, hi, p, r):
    """Return sum w (log Z - u_y); write the marginals p and the residuals r = w (p - e_y)."""
    y, w, offsets = targets
    total = 0.0
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        m = -np.inf
        for k in range(a, b):
            m = max(m, u[k])
        for k in range(a, b):
            p[k] = u[k] - m
    for k in range(offsets[lo], offsets[hi]):  # one long loop, which vectorises
        p[k] = exp(p[k])
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        wi = w[i]
        target = a + y[i]
        e = p[target]
        rest = 0.0  # the sum of the others: 1 - p of the target is exact when p is close to 1
        for k in range(a, b):
            if k != target:
                rest += p[k]
        scale = 1.0 / (rest + e)
        for k in range(a, b):
            p[k] *= scale
            r[k] = wi * p[k]
        r[target] = -wi * (rest * scale)
        if wi != 0.0:
            if rest <= e:
                total += wi * np.log1p(rest / e)
            elif e > 1e-300:
                total += wi * np.log((rest + e) / e)
            else:
                m = -np.inf
                for k in range(a, b):
                    m = max(m, u[k])
                total += wi * (m + np.log(rest + e) - u[target])
    return total


@sum_kernel
def binary_loss(u, targets, lo, hi, p, r):
    """As `loss`, for one log-odds per example and y in {0, 1}; p is the probability of label 1.

    The sum has a loop of its own: where sums and stores share one, the addresses of the arrays decide at run time whether it
    is vectorised, and the last digits change from call to call.
    """
    y, w = targets.y, targets.w
    terms = np.empty(hi - lo)
    for i in range(lo, hi):
        s = u[i]
        size = abs(s)
        e = exp(-size)
        small = e / (1.0 + e)
        large = 1.0 / (1.0 + e)
        p[i] = large if s > 0.0 else small
        sign = 2.0 * y[i] - 1.0
        right = s * sign > 0.0
        r[i] = -sign * w[i] * (small if right else large)
        terms[i - lo] = w[i] * (log1p_unit(e) + (0.0 if right else size))
    total = 0.0
    for i in range(hi - lo):
        total += terms[i]
    return total


@sum_kernel
def slope(u, du, t, targets, lo, hi, scratch):
    """First and second derivative of the loss along u + t du. `scratch` has the length of u."""
    y, w, offsets = targets
    first = 0.0
    second = 0.0
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        m = -np.inf
        for k in range(a, b):
            scratch[k] = u[k] + t * du[k]
            m = max(m, scratch[k])
        for k in range(a, b):
            scratch[k] -= m
    for k in range(offsets[lo], offsets[hi]):
        scratch[k] = exp(scratch[k])
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        z = 0.0
        mean = 0.0
        for k in range(a, b):
            z += scratch[k]
            mean += scratch[k] * du[k]
        mean /= z
        spread = 0.0
        for k in range(a, b):
            v = du[k] - mean
            spread += scratch[k] * v * v
        first += w[i] * (mean - du[a + y[i]])
        second += w[i] * spread / z
    return first, second


@sum_kernel
def binary_slope(u, du, t, targets, lo, hi):
    """As `slope`, for one log-odds per example."""
    y, w = targets.y, targets.w
    first = 0.0
    second = 0.0
    for i in range(lo, hi):
        s = u[i] + t * du[i]
        e = exp(-abs(s))
        q = 1.0 / (1.0 + e)
        p = q if s > 0.0 else e * q
        first += w[i] * (p - y[i]) * du[i]
        second += w[i] * e * q * q * du[i] * du[i]
    return first, second


@kernel
def binary_curvature(kind, u, w, lo, hi, D):
    """kind 0: p (1 - p); 1: Böhning's 1/4; otherwise the optimal beta(u)."""
    for i in range(lo, hi):
        if kind == 0:
            D[i] = w[i] * sigmoid(u[i]) * sigmoid(-u[i])
        elif kind == 1:
            D[i] = 0.25 * w[i]
        else:
            D[i] = w[i] * beta(u[i])


@sum_kernel
def subspace(u, du, c, targets, lo, hi, gradient, hessian):
    """Loss at u + sum_a c_a du[a], with derivatives in c added to `gradient` (k) and `hessian` (k x k)."""
    y, w, offsets = targets
    n_dirs = du.shape[0]
    start = offsets[lo]
    e = np.empty(offsets[hi] - start)
    top = np.empty(hi - lo)
    mean = np.empty(n_dirs)
    total = 0.0
    for k in range(len(e)):
        s = u[start + k]
        for j in range(n_dirs):
            s += c[j] * du[j, start + k]
        e[k] = s
    for i in range(lo, hi):
        a, b = offsets[i] - start, offsets[i + 1] - start
        m = -np.inf
        for k in range(a, b):
            m = max(m, e[k])
        top[i - lo] = m - e[a + y[i]]
        for k in range(a, b):
            e[k] -= m
    for k in range(len(e)):
        e[k] = exp(e[k])
    for i in range(lo, hi):
        a, b = offsets[i] - start, offsets[i + 1] - start
        z = 0.0
        mean[:] = 0.0
        for k in range(a, b):
            z += e[k]
            for j in range(n_dirs):
                mean[j] += e[k] * du[j, start + k]
        if w[i] != 0.0:
            total += w[i] * (top[i - lo] + np.log(z))
        for j in range(n_dirs):
            mean[j] /= z
            gradient[j] += w[i] * (mean[j] - du[j, start + a + y[i]])
        for k in range(a, b):
            p = w[i] * e[k] / z
            for j in range(n_dirs):
                for l in range(n_dirs):  # noqa: E741
                    hessian[j, l] += p * (du[j, start + k] - mean[j]) * (du[l, start + k] - mean[l])
    return total


@sum_kernel
def binary_subspace(u, du, c, targets, lo, hi, gradient, hessian):
    """As `subspace`, for one log-odds per example."""
    y, w = targets.y, targets.w
    n_dirs = du.shape[0]
    total = 0.0
    for i in range(lo, hi):
        s = u[i]
        for j in range(n_dirs):
            s += c[j] * du[j, i]
        e = exp(-abs(s))
        q = 1.0 / (1.0 + e)
        p = q if s > 0.0 else e * q
        right = s * (2.0 * y[i] - 1.0) > 0.0
        total += w[i] * (log1p_unit(e) + (0.0 if right else abs(s)))
        h = w[i] * e * q * q
        for j in range(n_dirs):
            gradient[j] += w[i] * (p - y[i]) * du[j, i]
            for l in range(n_dirs):  # noqa: E741
                hessian[j, l] += h * du[j, i] * du[l, i]
    return total


@kernel
def argmax(u, offsets, lo, hi, best, value):
    for i in range(lo, hi):
        m = -np.inf
        best[i] = 0
        for k in range(offsets[i], offsets[i + 1]):
            if u[k] > m:
                m = u[k]
                best[i] = k - offsets[i]
        value[i] = m


@kernel
def sample(u, offsets, uniforms, lo, hi, out):
    """out[s, i]: inverse of the cumulative distribution at uniforms[s, i]."""
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        m = -np.inf
        for k in range(a, b):
            m = max(m, u[k])
        z = 0.0
        for k in range(a, b):
            z += np.exp(u[k] - m)
        for s in range(uniforms.shape[0]):
            level = uniforms[s, i] * z
            cumulative = 0.0
            chosen = -1
            for k in range(a, b):
                e = np.exp(u[k] - m)
                cumulative += e
                if e > 0.0:
                    chosen = k - a
                    if cumulative > level:
                        break
            out[s, i] = chosen

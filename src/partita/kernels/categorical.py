"""Choosing one label per example: losses, marginals, samples from scores alone.

Ragged label sets: the scores of example i are u[offsets[i]:offsets[i+1]] and y[i] counts from the start of that range.
The binary kernels hold one score per example, the log-odds of label 1.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from .curvature import beta, sigmoid


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


@kernel
def loss(u, offsets, y, w, lo, hi, p, r):
    """Return sum w (log Z - u_y); write the marginals p and the residuals r = w (p - e_y)."""
    total = 0.0
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        m = -np.inf
        for k in range(a, b):
            m = max(m, u[k])
        z = 0.0
        for k in range(a, b):
            e = np.exp(u[k] - m)
            p[k] = e
            z += e
        for k in range(a, b):
            p[k] /= z
            r[k] = w[i] * p[k]
        target = a + y[i]
        # 1 - p of the target as the sum of the others: exact when p is close to 1
        rest = 0.0
        for k in range(a, b):
            if k != target:
                rest += p[k]
        r[target] = -w[i] * rest
        if w[i] != 0.0:
            if rest < 0.5:
                total -= w[i] * np.log1p(-rest)
            else:
                total += w[i] * (m + np.log(z) - u[target])
    return total


@kernel
def binary_loss(u, y, w, lo, hi, p, r):
    """As `loss`, for one log-odds per example and y in {0, 1}; p is the probability of label 1."""
    total = 0.0
    for i in range(lo, hi):
        s = u[i]
        e = np.exp(-abs(s))
        small = e / (1.0 + e)
        p[i] = 1.0 - small if s > 0 else small
        right = (s > 0) == (y[i] == 1)
        wrong_mass = small if right else 1.0 - small
        r[i] = -w[i] * wrong_mass if y[i] == 1 else w[i] * wrong_mass
        if w[i] != 0.0:
            total += w[i] * (np.log1p(e) + (0.0 if right else abs(s)))
    return total


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


@kernel
def subspace(u, du, c, offsets, y, w, lo, hi, gradient, hessian):
    """Loss at u + sum_a c_a du[a], with derivatives in c added to `gradient` (k) and `hessian` (k x k)."""
    n_dirs = du.shape[0]
    total = 0.0
    mean = np.empty(n_dirs)
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        m = -np.inf
        for k in range(a, b):
            s = u[k]
            for j in range(n_dirs):
                s += c[j] * du[j, k]
            m = max(m, s)
        z = 0.0
        target = 0.0
        mean[:] = 0.0
        for k in range(a, b):
            s = u[k]
            for j in range(n_dirs):
                s += c[j] * du[j, k]
            e = np.exp(s - m)
            z += e
            for j in range(n_dirs):
                mean[j] += e * du[j, k]
            if k == a + y[i]:
                target = s
        total += w[i] * (m + np.log(z) - target) if w[i] != 0.0 else 0.0
        for j in range(n_dirs):
            mean[j] /= z
            gradient[j] += w[i] * (mean[j] - du[j, a + y[i]])
        for k in range(a, b):
            s = u[k]
            for j in range(n_dirs):
                s += c[j] * du[j, k]
            e = w[i] * np.exp(s - m) / z
            for j in range(n_dirs):
                for l in range(n_dirs):  # noqa: E741
                    hessian[j, l] += e * (du[j, k] - mean[j]) * (du[l, k] - mean[l])
    return total


@kernel
def binary_subspace(u, du, c, y, w, lo, hi, gradient, hessian):
    """As `subspace`, for one log-odds per example."""
    n_dirs = du.shape[0]
    total = 0.0
    for i in range(lo, hi):
        s = u[i]
        for j in range(n_dirs):
            s += c[j] * du[j, i]
        e = np.exp(-abs(s))
        small = e / (1.0 + e)
        p = 1.0 - small if s > 0 else small
        right = (s > 0) == (y[i] == 1)
        total += w[i] * (np.log1p(e) + (0.0 if right else abs(s))) if w[i] != 0.0 else 0.0
        h = w[i] * small * (1.0 - small)
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

"""Covariances of chains on the labels that are likely, many directions at a time.

Positions with one likely label cut a chain into *segments* of open positions, with *pairs* of position and label, and edges
between them (`tuples.Segments`). Directions are columns of blocks (`kernels.blocks`).
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import sum_kernel
from ...numerics.simd import LANES, load, spread, store
from .blocks import WIDTH


@sum_kernel
def condition(M, messages, position, before, after, segments, lo, hi):
    """Fill in the probabilities of pairs and edges given that only likely labels occur: backward, then forward.

    Open position i is at ``position[i]``. `before` and `after` are the labels of certain neighbours, -1 where there is no
    such neighbour.
    """
    (alpha, B, P), (offsets, first, label, edges, p, e) = messages, segments
    for s in range(lo, hi):
        begin, end = offsets[s], offsets[s + 1]
        weight = 0.0
        for v in range(P.shape[1]):
            weight += P[position[begin], v]
        # Backward: p holds the probability that the labels to come are likely ones, up to a factor per position.
        for i in range(end - 1, begin - 1, -1):
            t, top = position[i], 0.0
            for x in range(first[i], first[i + 1]):
                a, total = label[x], 0.0
                if i + 1 < end:
                    at = edges[i + 1] + (x - first[i]) * (first[i + 2] - first[i + 1])
                    for y in range(first[i + 1], first[i + 2]):
                        b = label[y]
                        e[at] = alpha[t, a] * M[a, b] * B[t + 1, b] / P[t, a] * p[y]
                        total += e[at]
                        at += 1
                else:
                    c = after[i]
                    total = alpha[t, a] * M[a, c] * B[t + 1, c] / P[t, a] if c >= 0 else 1.0
                p[x] = total
                top = max(top, total)
            if i + 1 < end:
                for x in range(first[i], first[i + 1]):
                    at = edges[i + 1] + (x - first[i]) * (first[i + 2] - first[i + 1])
                    for q in range(at, at + first[i + 2] - first[i + 1]):
                        e[q] = e[q] / p[x] if p[x] > 0.0 else 0.0
            for x in range(first[i], first[i + 1]):
                p[x] = p[x] / top if top > 0.0 else 0.0
        # Forward: from conditional probabilities to joint ones.
        for i in range(begin, end):
            total = 0.0
            for y in range(first[i], first[i + 1]):
                b = label[y]
                if i == begin:
                    t, c = position[i], before[i]
                    p[y] *= alpha[t - 1, c] * M[c, b] * B[t, b] if c >= 0 else P[t, b]
                else:
                    p[y] = 0.0
                    for x in range(first[i - 1], first[i]):
                        at = edges[i] + (x - first[i - 1]) * (first[i + 1] - first[i]) + y - first[i]
                        e[at] *= p[x]
                        p[y] += e[at]
                total += p[y]
            if i == begin:
                for y in range(first[i], first[i + 1]):
                    p[y] *= weight / total


@sum_kernel
def covariances(segments, n, dU, dA, lo, hi, R, C):
    """R and C: derivatives of the weighted probabilities of pairs, and of transitions, along each direction.

    ``dU[x]`` and ``dA[a n + b]`` are the directions. C gets all but ``dA`` times the expected counts. With m the expected
    score of the past up to a pair, its own included, and f that of the future, the derivative of the probability of a
    pair is ``p (m + f - mean)``, and that of an edge ``e (m + dA + dU + f - mean)``.
    """
    offsets, first, label, edges, p, e = segments
    future, ahead, zero = np.empty((n, WIDTH)), np.empty((n, WIDTH)), spread(0.0)
    for s in range(lo, hi):
        begin, end = offsets[s], offsets[s + 1]
        mean0, mean1, weight = zero, zero, 0.0
        for i in range(begin, end):
            here, stop = first[i], first[i + 1]
            for y in range(here, stop):
                m0, m1, at = zero, zero, edges[i] + y - here
                if i > begin:
                    for x in range(first[i - 1], here):
                        q, past, move = spread(e[at]), x * WIDTH, (label[x] * n + label[y]) * WIDTH
                        m0 = m0 + q * (load(R, past) + load(dA, move))
                        m1 = m1 + q * (load(R, past + LANES) + load(dA, move + LANES))
                        at += stop - here
                q = spread(1.0 / p[y] if p[y] > 0.0 else 0.0)
                m0 = load(dU, y * WIDTH) + q * m0
                m1 = load(dU, y * WIDTH + LANES) + q * m1
                store(R, y * WIDTH, m0)
                store(R, y * WIDTH + LANES, m1)
                if i + 1 == end:
                    q = spread(p[y])
                    mean0, mean1, weight = mean0 + q * m0, mean1 + q * m1, weight + p[y]
                    store(future, (y - here) * WIDTH, zero)
                    store(future, (y - here) * WIDTH + LANES, zero)
        mean0, mean1 = spread(1.0 / weight) * mean0, spread(1.0 / weight) * mean1
        for i in range(end - 1, begin - 1, -1):
            here, stop = first[i], first[i + 1]
            for y in range(here, stop):
                q, at, row = spread(p[y]), (y - here) * WIDTH, y * WIDTH
                f0, f1 = load(future, at), load(future, at + LANES)
                store(R, row, q * (load(R, row) + f0 - mean0))
                store(R, row + LANES, q * (load(R, row + LANES) + f1 - mean1))
                store(ahead, at, load(dU, row) + f0)
                store(ahead, at + LANES, load(dU, row + LANES) + f1)
            at = edges[i]
            before = first[i - 1] if i > begin else here
            for x in range(before, here):
                f0, f1 = zero, zero
                m0, m1 = load(R, x * WIDTH) - mean0, load(R, x * WIDTH + LANES) - mean1
                for y in range(stop - here):
                    q, move = spread(e[at]), (label[x] * n + label[here + y]) * WIDTH
                    g0, g1 = load(ahead, y * WIDTH), load(ahead, y * WIDTH + LANES)
                    f0 = f0 + q * (load(dA, move) + g0)
                    f1 = f1 + q * (load(dA, move + LANES) + g1)
                    store(C, move, load(C, move) + q * (m0 + g0))
                    store(C, move + LANES, load(C, move + LANES) + q * (m1 + g1))
                    at += 1
                q = spread(1.0 / p[x] if p[x] > 0.0 else 0.0)
                store(future, (x - before) * WIDTH, q * f0)
                store(future, (x - before) * WIDTH + LANES, q * f1)


@sum_kernel
def draws(segments, n, uniforms, lo, hi, R, C):
    """R and C: labellings drawn at random, less their means, times the roots of the weights; one for each direction."""
    offsets, first, label, edges, p, e = segments
    for s in range(lo, hi):
        begin, end = offsets[s], offsets[s + 1]
        weight = 0.0
        for y in range(first[begin], first[begin + 1]):
            weight += p[y]
        root = np.sqrt(weight)
        for y in range(first[begin], first[end]):
            R[y] = -p[y] / root
        for i in range(begin + 1, end):
            at = edges[i]
            for x in range(first[i - 1], first[i]):
                for y in range(first[i], first[i + 1]):
                    C[label[x] * n + label[y]] -= e[at] / root
                    at += 1
        for d in range(WIDTH):
            x = 0
            for i in range(begin, end):
                here, stop = first[i], first[i + 1]
                y, at, total = here, here, weight
                if i > begin:
                    at, total = edges[i] + (x - first[i - 1]) * (stop - here), p[x]
                left = uniforms[i, d] * total
                while y + 1 < stop:
                    left -= p[y] if i == begin else e[at]
                    if left < 0.0:
                        break
                    y += 1
                    at += 1
                R[y, d] += root
                if i > begin:
                    C[label[x] * n + label[y], d] += root
                x = y

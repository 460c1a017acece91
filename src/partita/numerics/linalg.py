"""Linear algebra that several rooms share: a factor that never fails, and conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from .jit import kernel, sum_kernel

Vector = NDArray[np.float64]


#: Length of vectors up to which a larger space is made for eigenpairs: it costs next to nothing.
FEW = 2000


class CholeskyFactor:
    """A Cholesky factor of a symmetric positive semi-definite matrix, read from its lower triangle.

    A matrix that is singular to working precision gets the smallest multiple of the identity (of its mean diagonal) that
    makes it factor; `shift` says how much.
    """

    def __init__(self, matrix: NDArray[np.floating]) -> None:
        self.single: bool = matrix.dtype == np.float32
        factor = spotrf if self.single else dpotrf
        self.shift: float = 0.0
        scale = float(np.trace(matrix)) / max(1, len(matrix)) or 1.0
        relative = 1e-7 if self.single else 1e-14
        while True:
            attempt = matrix
            if self.shift > 0.0:
                attempt = matrix.copy()
                attempt.flat[:: len(matrix) + 1] += self.shift
            self.factor, info = factor(attempt.T, lower=0, overwrite_a=False, clean=0)
            if info == 0:
                return
            if relative > 1.0 or not np.isfinite(scale):
                raise np.linalg.LinAlgError("the curvature matrix is not finite or not positive semi-definite")
            self.shift = relative * scale
            relative *= 100.0

    def solve(self, vector: Vector) -> Vector:
        """Solve for one or several right-hand sides (columns)."""
        if self.single:
            solution, _ = spotrs(self.factor, vector.astype(np.float32), lower=0)
            return np.asarray(solution, dtype=np.float64)
        solution, _ = dpotrs(self.factor, vector, lower=0)
        return np.asarray(solution)


@kernel
def _advance(alpha, p, Ap, x, r):  # type: ignore[no-untyped-def]
    """x += alpha p, r -= alpha Ap in one pass."""
    for i in range(len(x)):
        x[i] += alpha * p[i]
        r[i] -= alpha * Ap[i]


@kernel
def _redirect(ratio, z, p):  # type: ignore[no-untyped-def]
    """p = z + ratio p in one pass."""
    for i in range(len(p)):
        p[i] = z[i] + ratio * p[i]


@sum_kernel
def add_and_dot(a, y, q, s):  # type: ignore[no-untyped-def]
    """q += a y, and the product of s with the new q, in one pass."""
    total = 0.0
    for i in range(len(q)):
        value = q[i] + a * y[i]
        q[i] = value
        total += s[i] * value
    return total


def conjugate_gradient(
    matvec: Callable[[Vector], Vector],
    b: Vector,
    precondition: Callable[[Vector], Vector],
    rtol: float,
    max_iter: int,
) -> tuple[Vector, int]:
    """Solve ``A x = b`` from x = 0 until ``r' M r <= rtol^2 b' M b``; returns x and the number of products.

    Stops early at a direction without curvature. Every iterate lowers ``x' A x / 2 - b' x``.
    """
    x = np.zeros_like(b)
    r = b.copy()
    z = precondition(r)
    p = z.copy()
    rz = float(r @ z)
    target = rtol * rtol * rz
    for iteration in range(max_iter):
        if not rz > target:
            return x, iteration
        Ap = matvec(p)
        curvature = float(p @ Ap)
        if not curvature > 0.0:
            return (p if iteration == 0 else x), iteration + 1
        _advance(rz / curvature, p, Ap, x, r)
        z = precondition(r)
        rz, previous = float(r @ z), rz
        _redirect(rz / previous, z, p)
    return x, max_iter


def block_lanczos(
    products: Callable[[Vector], Vector],
    size: int,
    rank: int,
    start: Vector | None = None,
    rtol: float = 1e-3,
) -> tuple[Vector, Vector, float]:
    """The largest eigenpairs of a positive semi-definite matrix given by its products with the columns of others.

    Returns the `rank` best Ritz vectors (as rows), the Ritz values in descending order (more than `rank` of them where
    there are more) and the norm of the residuals ``A v - t v`` of the vectors returned.

    A block Krylov space from `start` and random vectors (always the same ones), kept orthogonal in full. It grows until
    the residuals are below `rtol` times the first Ritz value left out, or to three times the rank; where vectors are short,
    to four times and a few more. The products are a small part of the cost, most of it keeps the space orthogonal.
    """
    rng = np.random.default_rng(0)
    width = min(size, max(2, -(-rank // 2)) if start is None else rank + 2)
    block = rng.standard_normal((width, size))
    if start is not None:
        known = min(len(start), width)
        block[:known] = start[:known] + 1e-8 * block[:known]
    limit = min(size, max(3 * rank, 2 * width, 16) if size > FEW else 4 * rank + 16)
    basis, T = np.empty((limit, size)), np.zeros((limit, limit))
    m, block = 0, _orthonormal(block)[:limit]
    while True:
        last, m = m, m + len(block)
        basis[last:m] = block
        images = np.ascontiguousarray(products(np.ascontiguousarray(block.T)).T)
        T[last:m, :m] = images @ basis[:m].T
        values, W = np.linalg.eigh(T[:m, :m])  # of the lower triangle
        values, W = values[::-1], W[:, ::-1][:, :rank]
        images -= T[last:m, :m] @ basis[:m]
        # what the basis lacks of A times the basis is what it lacks of A times the last block
        coupling = W[last:m].T @ (images @ images.T) @ W[last:m]
        residual = float(np.sqrt(max(0.0, np.linalg.eigvalsh(coupling)[-1])))
        following = values[rank] if len(values) > rank else 0.0
        enough = len(values) > rank and residual <= rtol * max(following, 1e-12 * values[0])
        if not enough and m < limit:
            block = _orthonormal(images, 1e-10 * float(np.abs(values).max()))
            block = _orthonormal(block - (block @ basis[:m].T) @ basis[:m], 1e-6)[: limit - m]  # the rest may be rounding
        if enough or m >= limit or not len(block):
            return W.T @ basis[:m], values, residual


def _orthonormal(rows: Vector, least: float = 0.0) -> Vector:
    """An orthonormal basis, as rows, of the span of some rows, but for what is shorter than `least`."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows = rows[length > least] / length[length > least, None]
    for _ in range(2):  # the first time, the shortest are found to half of the digits only
        values, W = np.linalg.eigh(rows @ rows.T)
        kept = values > 1e-14
        rows = (W[:, kept] / np.sqrt(values[kept])).T @ rows
    return rows

"""Solutions of programs over balls beyond the accuracy of an interior-point method.

An interior-point solution tells which constraints are active. With those as equations, Newton's method on the optimality
conditions gives all digits in two or three steps. Whatever does not come out better is left as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.results import FloatArray
from .conic import ConicResult
from .feasible_set import FeasibleSet, NormBall

#: Distance to equality, relative, up to which a constraint with a larger multiplier is taken as active.
NEAR = 1e-5
MAX_STEPS = 6


@dataclass
class _Active:
    """The equations: rows and balls that hold with equality, and the variables that are not held."""

    rows: Any  # positions of rows
    targets: FloatArray
    balls: list[int]
    free: Any


def refine(result: ConicResult, C: FloatArray, g: FloatArray, feasible: FeasibleSet, center: FloatArray) -> ConicResult:
    """The same solution with more digits, if every cone is a ball and Newton's method agrees on what is active."""
    balls = [cone.ball for cone in feasible.cones]
    if not result.solved or any(ball is None for ball in balls):
        return result
    known: list[NormBall] = [ball for ball in balls if ball is not None]
    active, x, strengths = _identify(result, feasible, known)
    A = feasible.rows[active.rows].toarray() if active.rows.size else np.zeros((0, feasible.size))
    mu = result.row_multipliers[active.rows]
    eta = np.array([strengths[k] for k in active.balls])
    for _ in range(MAX_STEPS):
        normals = np.array([_normal(known[k], x) for k in active.balls]).reshape(-1, feasible.size)
        values = np.array([_level(known[k], x) for k in active.balls])
        slope = C @ (x - center) + g - A.T @ mu + normals.T @ eta
        residual = np.concatenate([slope[active.free], A @ x - active.targets, values])
        bend = C.copy()
        for k, strength in zip(active.balls, eta, strict=True):
            if known[k].norm == 2:
                bend[known[k].where, known[k].where] += strength
        B = np.vstack([A, normals])[:, active.free]
        corner = np.zeros((len(B), len(B)))
        try:
            step = np.linalg.solve(np.block([[bend[np.ix_(active.free, active.free)], B.T], [B, corner]]), -residual)
        except np.linalg.LinAlgError:
            return result
        count = active.free.size
        x = x.copy()
        x[active.free] += step[:count]
        mu, eta = mu - step[count : count + len(mu)], eta + step[count + len(mu) :]
        if float(np.abs(step[:count]).max(initial=0.0)) <= 1e-15 * (1.0 + float(np.abs(x).max())):
            break
    return _checked(result, feasible, known, active, x, mu, eta, C @ (x - center) + g)


def _identify(result: ConicResult, feasible: FeasibleSet, balls: list[NormBall]) -> tuple[_Active, FloatArray, list[float]]:
    """What is active, the point with held entries in place, and the multipliers of the balls in terms of their normals."""
    x = result.x.copy()
    held = (x == feasible.lower) | (x == feasible.upper)
    strengths, on = [], []
    for k, (ball, z) in enumerate(zip(balls, result.cone_multipliers, strict=True)):
        slack = ball.radius - float(np.linalg.norm(ball.off(x), ball.norm))
        strength = float(z[0]) / ball.radius if ball.norm == 2 and ball.radius > 0.0 else float(z[-1])
        strengths.append(strength)
        if strength > slack and slack <= NEAR * (1.0 + ball.radius):
            on.append(k)
            if ball.norm == 1:
                zero = np.abs(ball.off(x)) <= NEAR
                x[ball.where[zero]] = ball.center[zero]
                held[ball.where[zero]] = True
    values, (low, high) = feasible.row_values(x), feasible.row_bounds()
    mu = result.row_multipliers
    side = np.where(mu > 0.0, low, high)
    rows = np.flatnonzero((low == high) | ((np.abs(values - side) <= NEAR * (1.0 + np.abs(side))) & (np.abs(mu) > NEAR)))
    return _Active(rows, side[rows], on, np.flatnonzero(~held)), x, strengths


def _normal(ball: NormBall, x: FloatArray) -> FloatArray:
    """The gradient of the ball's function at x."""
    out = np.zeros(len(x))
    off = ball.off(x)
    out[ball.where] = off if ball.norm == 2 else np.sign(off)
    return out


def _level(ball: NormBall, x: FloatArray) -> float:
    """The ball's function, zero on its surface: half the difference of squares, or the difference of norms."""
    off = ball.off(x)
    return float(0.5 * (off @ off - ball.radius**2) if ball.norm == 2 else np.abs(off).sum() - ball.radius)


def _checked(
    result: ConicResult,
    feasible: FeasibleSet,
    balls: list[NormBall],
    active: _Active,
    x: FloatArray,
    mu: FloatArray,
    eta: FloatArray,
    slope: FloatArray,
) -> ConicResult:
    """The refined result with multipliers in the form of the cones, or the old one if it is not a solution after all."""
    if not np.isfinite(x).all() or float(np.abs(x - result.x).max()) > 10.0 * NEAR * (1.0 + float(np.abs(x).max())):
        return result
    rows = np.zeros_like(result.row_multipliers)
    rows[active.rows] = mu
    low, high = feasible.row_bounds()
    wrong = ((rows > 0.0) & np.isinf(low)) | ((rows < 0.0) & np.isinf(high))
    if np.any(eta < 0.0) or wrong.any() or np.any((x < feasible.lower) | (x > feasible.upper)) or not feasible.contains(x):
        return result
    left = slope - (feasible.rows.T @ rows if feasible.rows is not None else 0.0)
    cones = [np.zeros_like(z) for z in result.cone_multipliers]
    if len(balls) > 1 and any(ball.norm == 1 for ball in balls) and _overlap(balls):
        return result  # which ball pushes a held entry how much is not determined here
    for k, strength in zip(active.balls, eta, strict=True):
        ball = balls[k]
        if ball.norm == 2:
            cones[k] = strength * np.concatenate([[ball.radius], -ball.off(x)])
        else:
            off = ball.off(x)
            push = np.where(off == 0.0, np.clip(-left[ball.where], -strength, strength), strength * np.sign(off))
            cones[k] = np.concatenate([0.5 * (strength + push), 0.5 * (strength - push), [strength]])
    return replace(result, x=x, row_multipliers=rows, cone_multipliers=tuple(cones))


def _overlap(balls: list[NormBall]) -> bool:
    where = np.concatenate([ball.where for ball in balls])
    return len(np.unique(where)) < len(where)

"""One line search for every solver that needs one."""

from __future__ import annotations

import numpy as np

from ..core.contracts.point import Point, Ray

MAX_TRIALS = 60


def line_search(
    point: Point,
    ray: Ray,
    step: float = 1.0,
    curvature: float = 0.1,
    decrease: float = 1e-4,
    first: tuple[Point, float] | None = None,
    slope0: float | None = None,
    limit: float = np.inf,
) -> tuple[Point, float] | None:
    """Find a point along a ray of descent that satisfies the strong Wolfe conditions.

    Parameters
    ----------
    step : float
        The first step tried.
    curvature, decrease : float
        The slope must shrink to `curvature` times the first slope, the value must fall by `decrease` times step times
        slope. Close to the optimum, where differences of values are lost to rounding, the slope alone decides.
    first : (point, slope), optional
        The outcome of the first step, if it is known.
    slope0 : float, optional
        The slope at the point; default its gradient along the ray.
    limit : float
        The largest step allowed.

    Returns
    -------
    (point, step), or None when no step lowers the objective.
    """
    slope0 = float(point.gradient @ ray.direction) if slope0 is None else slope0
    if not slope0 < 0.0:
        return None
    noise = 1e-15 * max(1.0, abs(point.value))
    low, low_slope = 0.0, slope0
    high, high_slope = np.inf, np.nan
    best: tuple[Point, float] | None = None
    stalled = False
    for _ in range(MAX_TRIALS):
        trial, slope = first or ray.at(step)
        first = None
        fine = np.isfinite(trial.value)
        falls = fine and (
            trial.value <= point.value + decrease * step * slope0
            or (trial.value <= point.value + noise and slope <= (2.0 * decrease - 1.0) * slope0)
        )
        if falls and (best is None or trial.value <= best[0].value):
            best = (trial, step)
        if falls and (abs(slope) <= curvature * abs(slope0) or (slope < 0.0 and step >= limit)):
            return trial, step
        width = high - low
        if falls and slope < 0.0:
            low, low_slope = step, slope
        else:
            high, high_slope = step, slope if fine else np.nan
        stalled = high - low > 0.5 * width and not stalled
        step = min(limit, _next_step(low, low_slope, high, high_slope, stalled))
        if high - low <= 1e-14 * low:
            break
    if best is not None and best[0].value < point.value:
        return best
    return None


def _next_step(low: float, low_slope: float, high: float, high_slope: float, stalled: bool) -> float:
    """Secant step on the slopes, kept inside the bracket; growth when there is no upper end yet.

    Losses of badly scaled data are nearly piecewise linear, where secants creep along one end: a bracket that did not
    halve is cut in the middle, or to a tenth while its lower end is still 0.
    """
    if np.isinf(high):
        return 2.0 * low if low > 0.0 else 1.0
    width = high - low
    if stalled or np.isnan(high_slope) or high_slope <= low_slope:
        return low + (0.5 if low > 0.0 else 0.1) * width
    step = low - low_slope * width / (high_slope - low_slope)
    return float(min(max(step, low + 0.05 * width), high - 0.05 * width))

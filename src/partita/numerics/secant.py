"""Where the falling slope of a concave function vanishes: secants within a bracket, which is cut in the middle where it did
not halve. Plain functions that kernels can call; who searches brings the slope: functions cannot be given to kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.extending import register_jitable

#: Brackets that are narrower than this part of the longest step are a point.
NARROW = 1e-15


class Bracket(NamedTuple):
    """Two steps, with slopes above and below zero there, the slope at the start, the longest step, and whether the next
    step is in the middle."""

    lo: Any
    hi: Any
    at_lo: Any
    at_hi: Any
    first: Any
    longest: Any
    halve: Any


@register_jitable
def bracketed(longest: Any, at_start: Any, at_end: Any) -> Any:
    """All steps up to the longest."""
    return Bracket(0.0, longest, at_start, at_end, at_start, longest, False)


@register_jitable
def next_step(bracket: Any) -> Any:
    """Where the slope is to be seen next."""
    part = 0.5 if bracket.halve else min(max(bracket.at_lo / (bracket.at_lo - bracket.at_hi), 0.01), 0.99)
    return bracket.lo + part * (bracket.hi - bracket.lo)


@register_jitable
def narrowed(bracket: Any, step: Any, slope: Any) -> Any:
    """The bracket, given the slope at a step within."""
    lo, hi, at_lo, at_hi, first, longest, _ = bracket
    width = hi - lo
    if slope > 0.0:
        lo, at_lo = step, slope
    else:
        hi, at_hi = step, slope
    return Bracket(lo, hi, at_lo, at_hi, first, longest, hi - lo > 0.5 * width)


@register_jitable
def is_found(bracket: Any, slope: Any, accuracy: Any) -> Any:
    """Whether the last slope is a small part of the first, or nothing is left of the bracket."""
    return abs(slope) <= accuracy * bracket.first or bracket.hi - bracket.lo <= NARROW * bracket.longest


@register_jitable
def found_step(bracket: Any) -> Any:
    """A step up to which the function certainly rises, if there is one."""
    return bracket.lo if bracket.lo > 0.0 else 0.5 * bracket.hi

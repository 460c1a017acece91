"""Quadratic programs over a set, in variables of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.results import FloatArray
from ...numerics.quadratic_program import OPTIMAL, Program, solve_program
from .conic import solve_conic
from .conic_refinement import refine
from .feasible_set import FeasibleSet
from .substitution import Substitution


@dataclass(frozen=True)
class Multipliers:
    """Lagrange multipliers of rows and cones (those of bounds follow from the gradient), and the active set."""

    rows: FloatArray
    cones: tuple[FloatArray, ...] = ()
    active: Any = field(default=None, repr=False)


class Solved(NamedTuple):
    """The minimum of a program, and its multipliers."""

    z: FloatArray
    multipliers: Multipliers


def solve_within(
    variables: Substitution, C: FloatArray, g: FloatArray, center: FloatArray, guess: Any = None
) -> Solved | None:
    """``min 1/2 s'Cs + g's`` over feasible ``center + s`` in these variables; None if it was not solved."""
    feasible = variables.feasible
    if feasible.cones:
        conic = refine(solve_conic(C, g, feasible, center), C, g, feasible, center)
        multipliers = Multipliers(conic.row_multipliers, conic.cone_multipliers)
        return Solved(conic.x, multipliers) if conic.solved else None
    values, (low, high) = feasible.row_values(center), feasible.row_bounds()
    program = Program(C, g, feasible.lower - center, feasible.upper - center, feasible.rows, low - values, high - values)
    result = solve_program(program, guess)
    if result.status != OPTIMAL:
        return None
    z = on_sides(result.active[: len(g)], feasible, center + result.x)
    return Solved(z, Multipliers(result.row_multipliers, (), result.active))


def on_sides(side: Any, feasible: FeasibleSet, z: FloatArray) -> FloatArray:
    """z with the variables that are on a bound exactly there."""
    return np.where(side < 0, feasible.lower, np.where(side > 0, feasible.upper, z))

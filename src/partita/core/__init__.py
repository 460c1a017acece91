"""The words everything else shares: protocols, results, statuses, errors, validation, randomness, threads."""

from .errors import CapabilityError, ConvergenceWarning, DataWarning, ModelFileError, NumericalError, TooLargeError
from .parallel import Workers
from .protocols import (
    Callback,
    Capability,
    ConstrainedRay,
    Objective,
    Point,
    Progress,
    QuadraticModel,
    Ray,
    Solver,
    Subspace,
)
from .random import generator
from .results import Result, Solution, Status, Trace

__all__ = [
    "Callback",
    "Capability",
    "CapabilityError",
    "ConstrainedRay",
    "ConvergenceWarning",
    "DataWarning",
    "ModelFileError",
    "NumericalError",
    "Objective",
    "Point",
    "Progress",
    "QuadraticModel",
    "Ray",
    "Result",
    "Solution",
    "Solver",
    "Status",
    "Subspace",
    "TooLargeError",
    "Trace",
    "Workers",
    "generator",
]

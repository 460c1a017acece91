"""The words everything else shares: contracts, results, statuses, errors, validation, randomness, threads."""

from .contracts.capabilities import Capability, ConstrainedRay, QuadraticModel, Subspace
from .contracts.objective import Objective, ObjectiveBase
from .contracts.point import Point, Ray
from .contracts.progress import Callback, EstimatedPoint, Progress
from .contracts.solver import Solver
from .errors import CapabilityError, ConvergenceWarning, DataWarning, ModelFileError, NumericalError, TooLargeError
from .parallel import Workers
from .random import generator
from .results import Result, Solution, Status, Trace

__all__ = [
    "Callback",
    "Capability",
    "CapabilityError",
    "ConstrainedRay",
    "ConvergenceWarning",
    "DataWarning",
    "EstimatedPoint",
    "ModelFileError",
    "NumericalError",
    "Objective",
    "ObjectiveBase",
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

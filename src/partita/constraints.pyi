from .chain.data.weight_constraints import WeightBounds as WeightBounds, WeightTies as WeightTies
from .objectives.constraints.constraint import Constraint as Constraint
from .objectives.constraints.sets import (
    Ball as Ball,
    Box as Box,
    CvxpySet as CvxpySet,
    Linear as Linear,
    Monotone as Monotone,
    Simplex as Simplex,
    Ties as Ties,
)

"""The parameters `l1` and `constraints`, which all likelihoods take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.parameters import Check, checked, real
from ..objectives.composite.likelihood import CompositeLikelihood
from ..objectives.constraints.constraint import Constraint
from ..objectives.constraints.feasible_set import FeasibleSet
from ..objectives.constraints.named import NamedWeights
from ..objectives.constraints.sets import check_constraints, compile_constraints

#: Their checks.
RESTRICTIONS: Mapping[str, Check] = {"l1": real(0.0), "constraints": checked(check_constraints)}


def is_restricted(l1: float, constraints: Any) -> bool:
    """Whether there is either."""
    return l1 > 0.0 or bool(check_constraints(constraints))


def feasible_weights(constraints: Any, weights: NamedWeights) -> FeasibleSet | None:
    """The set that satisfies all constraints; None without any."""
    items: tuple[Constraint, ...] = check_constraints(constraints)
    return compile_constraints(items, weights) if items else None


def check_refinement(composite: CompositeLikelihood | None, l1: float, constraints: Any) -> None:
    """Raise a ValueError if a composite likelihood is to be refined under either."""
    if composite is not None and composite.refine is not None and is_restricted(l1, constraints):
        raise ValueError("refine cannot be combined with l1 or constraints: a Newton step knows nothing of them")


def check_errors(l1: float, constraints: Any) -> None:
    """Raise a ValueError if estimates have no standard errors because of either."""
    if is_restricted(l1, constraints):
        raise ValueError(
            "standard errors need l1=0 and no constraints: estimates at exact zeros and on the edge of what is allowed are "
            "not asymptotically normal; leave them out, or bootstrap"
        )

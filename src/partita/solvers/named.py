"""Solvers by name: the classes in the list of names of this package (`__init__.pyi`)."""

from __future__ import annotations

from functools import cache

from .._lazy import all_of
from ..core.contracts.solver import AnySolver, Solver


@cache
def solver_classes() -> dict[str, type[AnySolver]]:
    """Every solver of the library by its `key`, in the order in which messages list them."""
    classes = [cls for cls in all_of(__package__) if isinstance(cls, type) and issubclass(cls, Solver)]
    return {cls.key: cls for cls in sorted(classes, key=lambda cls: (cls.key != "auto", cls.key))}


def make_solver(solver: str | AnySolver) -> AnySolver:
    """A solver from its name, or the object itself."""
    if isinstance(solver, str):
        classes = solver_classes()
        if solver not in classes:
            names = ", ".join(repr(name) for name in classes)
            raise ValueError(f"solver must be one of {names}, or a solver object; got {solver!r}")
        return classes[solver]()
    if not isinstance(solver, Solver):
        own = "" if isinstance(solver, type) else "; a solver of your own inherits partita.core.Solver"
        raise ValueError(f"solver must be a name or a solver object such as Newton(); got {solver!r}{own}")
    return solver

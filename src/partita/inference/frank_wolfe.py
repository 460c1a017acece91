"""Marginals through a solver for the best configuration only: Frank-Wolfe on a concave free energy.

Every point is a mean of configurations that the solver has found (the active ones). The gap, what the solver's answer says a
step could gain at most, is above the distance to the largest value: it is the certificate, and the reason to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..core.errors import NumericalError
from ..core.results import FloatArray, Result, Status
from ..core.validation import check_choice, check_count, check_real
from ..numerics.exchanges import GroupTerms
from .active_set import ActiveSet, line_search

#: Plain with line search; exchanges between active configurations and the best; the same among active ones only, as long as
#: that pays, without asking the solver.
VARIANTS = ("plain", "pairwise", "blended")
#: Exchanges go on among active configurations as long as they promise this part of the last certificate, at most so often.
LAZY, TURNS = 0.5, 1000
#: What stands for zero in logarithms: of tau, and of 1 - tau. Steps that leave an edge without any share then never pay.
TINY, REST = 1e-300, 1e-16
#: What a solver may be wrong by, in parts of the scores: linear programs are the least exact.
NOISE = 1e-7


class FreeEnergy(Protocol):
    """A concave function on the convex hull of configurations.

    `solver` is what finds the best configuration, for messages, and `delta` how far below the best its answers may be.
    """

    solver: str
    delta: float

    def value(self, tau: FloatArray) -> float: ...
    def gradient(self, tau: FloatArray) -> FloatArray: ...
    def best(self, scores: FloatArray) -> FloatArray:
        """The configuration of largest score, as a point."""
        ...

    def rival(self, scores: FloatArray, vertex: FloatArray) -> float:
        """The score of a configuration that is found without the solver, which may not be better than its answer."""
        ...

    def start(self) -> FloatArray:
        """Configurations whose mean has no zero that can be avoided, one per row."""
        ...

    def compiled(self) -> tuple[GroupTerms, FloatArray] | None:
        """The entropy and the fixed scores as compiled exchanges take them, if they can."""
        return None

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        """The slope of the value at steps in a direction."""
        return lambda step: float(self.gradient(tau + step * direction) @ direction)


def maximize(
    energy: FreeEnergy, variant: str = "blended", tol: float = 1e-6, max_iter: int = 10_000
) -> tuple[FloatArray, float, float, int]:
    """The point of the largest value found, that value, its certificate, and how often the solver was asked.

    It also ends where no step gains anything, which rounding may bring about; the certificate then is above `tol`.

    Parameters
    ----------
    energy : FreeEnergy
    variant : {"plain", "pairwise", "blended"}
    tol : float
        Stop when the certificate is at most so large.
    max_iter : int
        Most calls of the solver.
    """
    check_choice("variant", variant, VARIANTS)
    check_real("tol", tol, minimum=0.0)
    check_count("max_iter", max_iter, minimum=1)
    first = energy.start()
    if variant == "plain":
        return _plain(energy, first.mean(0), tol, max_iter)
    state = ActiveSet(first, floor_of(energy, first.mean(0), tol))
    calls, turns, promise, certificate = 1, 0, np.inf, np.inf  # one for the floor
    compiled = energy.compiled() if variant == "blended" else None
    while calls < max_iter:
        gradient = energy.gradient(state.tau)
        scores = state.scores(gradient)
        worst, local = int(np.argmin(scores)), int(np.argmax(scores))
        lazy = variant == "blended" and scores[local] - scores[worst] >= promise and turns < TURNS
        if lazy and _moved(state, compiled, promise, worst, local, energy):
            turns += 1
            continue
        vertex = energy.best(gradient)
        calls, turns = calls + 1, 0
        certificate = certified(energy, gradient, vertex, state.tau, float(scores[local]))
        if certificate <= tol:
            certified(energy, gradient, vertex, state.tau, energy.rival(gradient, vertex))
            break
        if certificate < promise:
            promise = LAZY * certificate
        taker = state.add(vertex)
        if variant == "pairwise" and state.exchange(worst, taker, energy) > 0.0:
            continue
        if not state.toward(taker, energy) > 0.0:
            break
    return state.tau, energy.value(state.tau), max(certificate, 0.0), calls


def infer_all(energies: Sequence[FreeEnergy], variant: str, tol: float, max_iter: int) -> Result:
    """`maximize` for each of several examples, as one answer. What solvers may be wrong by is part of the certificate."""
    found = [maximize(energy, variant, tol, max_iter) for energy in energies]
    delta = np.array([energy.delta for energy in energies])
    gap = np.array([one[2] for one in found]) + delta
    wanted = tol + float(delta.max())
    return Result(
        np.array([one[1] for one in found]),
        np.array([one[0] for one in found]),
        Status.CONVERGED if (gap <= wanted).all() else Status.UNCERTIFIED,
        exact=False,
        n_iter=max(one[3] for one in found),
        engine="frank_wolfe",
        certificate=gap,
        residual=float(gap.max()),
        tol=wanted,
    )


def _moved(state: ActiveSet, compiled: Any, promise: float, worst: int, local: int, energy: FreeEnergy) -> bool:
    """Whether shares moved among known configurations: all at once where that is compiled, else from worst to best."""
    if compiled is not None and state.binary:
        terms, fixed = compiled
        return state.improve(terms, fixed, np.zeros(0), np.zeros(0), promise)[0]
    return state.exchange(worst, local, energy) > 0.0


def _plain(energy: FreeEnergy, tau: FloatArray, tol: float, max_iter: int) -> tuple[FloatArray, float, float, int]:
    """Without a list of configurations: every step is towards the best one, and not quite all the way."""
    certificate, calls = np.inf, 0
    while calls < max_iter:
        gradient = energy.gradient(tau)
        vertex = energy.best(gradient)
        direction = vertex - tau
        calls, certificate = calls + 1, certified(energy, gradient, vertex, tau)
        if certificate <= tol:
            certified(energy, gradient, vertex, tau, energy.rival(gradient, vertex))
        step = line_search(energy.along(tau, direction), 1.0 - 1e-6) if certificate > tol else 0.0
        if step <= 0.0:
            break
        tau = tau + step * direction
    return tau, energy.value(tau), max(certificate, 0.0), calls


def floor_of(energy: FreeEnergy, tau: FloatArray, tol: float) -> float:
    """The part of the first mean that stays: what it costs is a small part of `tol`."""
    gradient = energy.gradient(tau)
    reach = certified(energy, gradient, energy.best(gradient), tau)
    return float(np.clip(0.1 * tol / (1.0 + reach), 1e-13, 1e-4))


def certified(energy: FreeEnergy, scores: FloatArray, vertex: FloatArray, tau: FloatArray, known: float = -np.inf) -> float:
    """What a step from tau to the best configuration could gain at most.

    No point of the hull has a better score than the best configuration: if tau has one, or a configuration that is `known`
    with its score, the solver did not answer with the best one, and what follows from its answers is no certificate.
    """
    best = float(scores @ vertex)
    least = max(float(scores @ tau), known)
    room = energy.delta + NOISE * (1.0 + float(np.abs(scores) @ (np.abs(vertex) + tau)))
    if not best >= least - room:
        raise NumericalError(
            f"{energy.solver} answered with a configuration of score {best:.9g} where one of {least:.9g} is known: it does "
            f"not find the best configuration (by {least - best:.3g}), and its answers certify nothing. Mend it, or "
            "state its largest error as delta"
        )
    return best - float(scores @ tau)

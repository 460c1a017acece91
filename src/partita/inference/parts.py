"""Configurations as zeros and ones over parts, of which a solver for the best one is all that is known.

Frank-Wolfe goes over the hull of the configurations that it answers with, with an entropy of the user's choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from ..core.arrays.potentials import are_potentials, not_potential, real_array, refusal
from ..core.errors import NumericalError
from ..core.results import FloatArray, Result, Status
from ..numerics.exchanges import GroupTerms
from .covering import covering
from .entropies import Entropy, TableEntropy
from .frank_wolfe import NOISE, FreeEnergy, maximize
from .oracle import Answer, Oracle, oracle_name

#: How far answers may be from zeros and ones.
NEARLY = 1e-5


class Parts:
    """The configurations of one example.

    Parameters
    ----------
    size : int
        Parts.
    oracle : object with argmax(scores), or callable
        From an array of scores, one for each part, to the best configuration: zeros and ones, or booleans. An `Oracle` of
        `partita.inference` will do too.
    name : str
        What errors call the example.
    delta : float
        Answers may be so much below the best score.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import Parts
    >>> best_pair = lambda scores: np.isin(np.arange(len(scores)), np.argsort(-scores)[:2])
    >>> Parts(4, best_pair).best(np.array([0.1, 3.0, 2.0, -1.0]))
    array([0., 1., 1., 0.])
    """

    size: int
    name: str
    delta: float

    def __init__(self, size: int, oracle: Any, name: str = "", delta: float = 0.0) -> None:
        self.size, self.name, self.delta = size, name, delta
        function = oracle if isinstance(oracle, Oracle) else getattr(oracle, "argmax", oracle)
        if isinstance(oracle, np.ndarray) or not callable(function):
            raise ValueError(
                "oracle must be an object with argmax(scores), or a function of them, that gives zeros and ones, one for "
                f"each part; got {type(oracle).__name__}"
            )
        self._solver: Callable[[FloatArray], Any] = function
        self.solver: str = f"oracle {oracle_name(oracle)}"
        self.calls: int = 0

    def scores(self, potentials: ArrayLike) -> FloatArray:
        """Checked scores of parts."""
        flat = real_array("potentials", potentials)
        if flat.shape != (self.size,):
            raise ValueError(f"potentials must be {self.size} numbers, one for each part; got shape {flat.shape}")
        if not are_potentials(flat) or np.isneginf(flat).any():
            bad = not_potential(flat) | np.isneginf(flat)
            raise refusal("potentials", float(flat[bad][0]), forbids="is for the oracle to know")
        return flat

    def configuration(self, y: Any, what: str, room: float = 0.0) -> FloatArray:
        """Checked zeros and ones, from which integer programs may be off by a little."""
        try:
            found = np.asarray(y)
        except ValueError:
            found = np.array(None)
        if found.shape != (self.size,) or found.dtype.kind not in "biuf":
            got = "nothing" if y is None else f"shape {found.shape} of {found.dtype}"
            if callable(y):
                got = "a function: where oracle makes a solver from an example, set per_example=True"
            raise ValueError(f"{what} must be {self.size} zeros and ones, one for each part; got {got}")
        given = found.astype(np.float64)
        out = np.where(given > 0.5, 1.0, 0.0)
        wrong = ~(np.abs(given - out) <= room)
        if wrong.any():
            part = int(np.argmax(wrong))
            raise ValueError(f"{what} must be zeros and ones; it has {float(given[part])!r} for part {part}")
        return out

    def asked(self, scores: FloatArray) -> Any:
        """Scores in the form in which the solver is given them, which it may change."""
        return scores.copy()

    def best(self, scores: FloatArray) -> FloatArray:
        """The best configuration, as the solver has it."""
        self.calls += 1
        given, where = self.asked(scores), f" for {self.name}" if self.name else ""
        try:
            found = self._solver(given)
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            raise RuntimeError(f"{self.solver} failed{where}: {type(error).__name__}: {error}") from error
        if isinstance(found, Answer):
            self.delta, found = max(self.delta, found.delta), found.point
        return self.configuration(found, f"the answer of {self.solver}{where}", NEARLY)

    def rival(self, scores: FloatArray) -> float:
        """The score of a configuration found without the solver, which may not be better than its answer."""
        return -np.inf  # nobody else knows the configurations

    def first(self, observed: FloatArray | None = None) -> FloatArray:
        """Configurations that have, and lack, whatever can be had and lacked, one per row. The one observed must be the best
        for scores of 1 on its parts and -1 on others: else it is none, or the solver does not find the best."""

        def ask(scores: FloatArray) -> FloatArray:
            vertex = self.best(scores)
            if observed is not None:
                check_best(self, scores, vertex, observed)
            return vertex

        if observed is not None:
            ask(2.0 * observed - 1.0)
        return covering(ask, self.size, observed)


def check_best(parts: Parts, scores: FloatArray, vertex: FloatArray, known: FloatArray) -> None:
    """Raise an error if a configuration that is known is better than the answer of a solver."""
    best, least = float(scores @ vertex), float(scores @ known)
    if best < least - parts.delta - NOISE * (1.0 + float(np.abs(scores) @ (vertex + known))):
        raise NumericalError(
            f"{parts.name or 'an example'}: {parts.solver} answered with a configuration of score {best:.9g} where the one "
            f"observed has {least:.9g}: it does not find the best configuration "
            f"(by {least - best:.3g}), or the one observed is not among its own"
        )


class PartsEnergy(FreeEnergy):
    """Scores of parts plus an entropy, over the hull of the configurations of a solver.

    Parameters
    ----------
    parts : Parts
    scores : array
    entropy : Entropy
    first : array, optional
        Configurations to begin with, one per row. Default: the solver is asked.
    """

    def __init__(self, parts: Parts, scores: FloatArray, entropy: Entropy, first: FloatArray | None = None) -> None:
        self.parts, self.scores, self.entropy, self._first = parts, scores, entropy, first
        self.solver: str = parts.solver
        self._keeps = first is None  # training does not ask for what was met
        self.found: dict[bytes, float] = {}  # scores of configurations that were met

    @property
    def delta(self) -> float:  # type: ignore[override]
        return self.parts.delta

    def value(self, tau: FloatArray) -> float:
        return float(self.scores @ tau) + self.entropy.value(tau)

    def gradient(self, tau: FloatArray) -> FloatArray:
        return self.scores + self.entropy.gradient(tau)

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        fixed, entropy = float(self.scores @ direction), self.entropy.along(tau, direction)
        return lambda step: fixed + entropy(step)

    def compiled(self) -> tuple[GroupTerms, FloatArray] | None:
        terms = self.entropy.terms(self.parts.size)
        return None if terms is None else (terms, self.scores)

    def best(self, scores: FloatArray) -> FloatArray:
        vertex = self.parts.best(scores)
        self.entropy.check(vertex, f"the answer of {self.solver}")
        self._note(vertex)
        return vertex

    def rival(self, scores: FloatArray, vertex: FloatArray) -> float:
        return self.parts.rival(scores)

    def start(self) -> FloatArray:
        if self._first is None:
            self._first = self.parts.first()
        for row in self._first:
            self.entropy.check(row, f"an answer of {self.solver}, or what was observed,")
            self._note(row)
        return self._first

    def _note(self, vertex: FloatArray) -> None:
        if self._keeps:
            self.found[np.packbits(vertex > 0.0).tobytes()] = float(self.scores @ vertex)

    def lower(self) -> float:
        """Below log Z: the sum over the configurations that were met."""
        return float(logsumexp(list(self.found.values())))


def infer_parts(
    parts: Parts, scores: FloatArray, entropy: Entropy, tol: float = 1e-6, max_iter: int = 1000, variant: str = "blended"
) -> Result:
    """log Z with an entropy of choice, and the probabilities of parts, through best configurations only.

    `lower` is the sum over all configurations met, which is below log Z; `upper` is a bound where the entropy is above the
    true one, else inf.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import IndependentEntropy, Parts, infer_parts
    >>> one = Parts(3, lambda scores: np.eye(3)[np.argmax(scores)])
    >>> infer_parts(one, np.zeros(3), IndependentEntropy()).marginals.round(3)
    array([[0.333, 0.333, 0.333]])
    """
    return infer_checked(parts, parts.scores(scores), entropy, tol, max_iter, variant)


def infer_checked(
    parts: Parts, scores: FloatArray, entropy: Entropy, tol: float = 1e-6, max_iter: int = 1000, variant: str = "blended"
) -> Result:
    """`infer_parts` of scores that were checked."""
    energy = PartsEnergy(parts, scores, entropy)
    tau, value, gap, calls = maximize(energy, variant, tol, max_iter)
    gap += parts.delta
    log_z, certificate = np.array([value]), np.array([gap])
    result = Result(
        log_z,
        tau[None],
        Status.CONVERGED if gap <= tol + parts.delta else Status.UNCERTIFIED,
        exact=False,
        n_iter=calls,
        engine="frank_wolfe",
        certificate=certificate,
        residual=gap,
        tol=tol + parts.delta,
    )
    low = log_z.copy() if isinstance(entropy, TableEntropy) and entropy.exact else np.array([energy.lower()])
    return result.within(low, log_z + certificate if entropy.upper else np.full(1, np.inf))

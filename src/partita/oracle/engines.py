"""Frank-Wolfe over the hull of configurations that a solver knows, with an entropy of the user's choice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from ..core.results import FloatArray, Result, Status
from ..inference.entropies import Entropy
from ..inference.frank_wolfe import FreeEnergy, maximize
from ..numerics.exchanges import GroupTerms
from .structure import Parts


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
        self.solver, self.delta = parts.solver, parts.delta
        self.found: dict[bytes, float] = {}  # scores of configurations

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
        self._note(vertex)
        return vertex

    def rival(self, scores: FloatArray, vertex: FloatArray) -> float:
        return -np.inf  # nobody else knows the configurations

    def start(self) -> FloatArray:
        if self._first is None:
            self._first = self.parts.first()
        for row in self._first:
            self._note(row)
        return self._first

    def _note(self, vertex: FloatArray) -> None:
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
    >>> from partita.inference import IndependentEntropy
    >>> from partita.oracle import Parts, infer_parts
    >>> one = Parts(3, lambda scores: np.eye(3)[np.argmax(scores)])
    >>> infer_parts(one, np.zeros(3), IndependentEntropy()).marginals.round(3)
    array([[0.333, 0.333, 0.333]])
    """
    energy = PartsEnergy(parts, parts.scores(scores), entropy)
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
    return result.within(np.array([energy.lower()]), log_z + certificate if entropy.upper else np.full(1, np.inf))

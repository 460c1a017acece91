"""Configurations as zeros and ones over parts, of which a solver for the best one is all that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.arrays.potentials import are_potentials, not_potential, real_array, refusal
from ..core.errors import NumericalError
from ..core.results import FloatArray
from ..inference.covering import covering
from ..inference.frank_wolfe import NOISE
from ..inference.oracle import Answer, Oracle, oracle_name

#: Solvers by name, for model files: what `register_oracle` was told.
_REGISTERED: dict[str, Any] = {}


def register_oracle(name: str, oracle: Any) -> None:
    """Give a solver a name. Model files keep the name, and nothing that would be executed; register it before use.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.oracle import register_oracle
    >>> register_oracle("positive parts", lambda scores: (scores > 0).astype(int))
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be a string, got {name!r}")
    if not callable(oracle) and not hasattr(oracle, "argmax"):
        raise ValueError(f"oracle must be an object with argmax(scores), or a function; got {type(oracle).__name__}")
    _REGISTERED[name] = oracle


def find_oracle(oracle: Any) -> Any:
    """What was registered under a name; anything else as it is."""
    if not isinstance(oracle, str):
        return oracle
    if oracle not in _REGISTERED:
        known = f"; registered are {', '.join(map(repr, sorted(_REGISTERED)))}" if _REGISTERED else ""
        raise ValueError(f"oracle {oracle!r} is not registered: call partita.oracle.register_oracle first{known}")
    return _REGISTERED[oracle]


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
    >>> from partita.oracle import Parts
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

    def configuration(self, y: Any, what: str) -> FloatArray:
        """Checked zeros and ones."""
        try:
            found = np.asarray(y)
        except ValueError:
            found = np.array(None)
        if found.shape != (self.size,) or found.dtype.kind not in "biuf":
            got = "nothing" if y is None else f"shape {found.shape} of {found.dtype}"
            raise ValueError(f"{what} must be {self.size} zeros and ones, one for each part; got {got}")
        out = found.astype(np.float64)
        wrong = ~((out == 0.0) | (out == 1.0))
        if wrong.any():
            part = int(np.argmax(wrong))
            raise ValueError(f"{what} must be zeros and ones; it has {out[part]:g} for part {part}")
        return out

    def best(self, scores: FloatArray) -> FloatArray:
        """The best configuration, as the solver has it."""
        self.calls += 1
        given = scores.copy()  # it may be changed
        try:
            found = self._solver(given)
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            where = f" for {self.name}" if self.name else ""
            raise RuntimeError(f"{self.solver} failed{where}: {type(error).__name__}: {error}") from error
        return self.configuration(found.point if isinstance(found, Answer) else found, f"the answer of {self.solver}")

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

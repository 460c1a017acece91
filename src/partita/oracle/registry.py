"""Solvers by name, for model files, which hold nothing that would be executed."""

from __future__ import annotations

from typing import Any

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

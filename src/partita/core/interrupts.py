"""Ctrl-C: a fit that someone waits for keeps what it has, one of many ends them all."""

from __future__ import annotations

import sys

#: Packages that fit many times, or throw away what an interrupted fit returns.
SEARCHES = ("sklearn", "joblib", "dask", "distributed", "optuna", "ray", "hyperopt", "skopt", "flaml", "mlxtend", "imblearn")
#: Modules among them that fit once and give the result to the caller.
SINGLE = ("sklearn.base", "sklearn.pipeline", "sklearn.utils", "sklearn.compose", "imblearn.pipeline")
#: Within these, modules that do not.
MANY = ("sklearn.utils.parallel", "sklearn.utils.estimator_checks")


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is a keyboard interrupt, or what compiled code made of one.

    Numba and NumPy call Python now and then, to learn the type of an argument, say. An interrupt that comes just there is
    the cause of a SystemError or a TypeError.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__
    return False


def pass_on_in_search() -> None:
    """Called where a keyboard interrupt was caught, before what was found so far is kept.

    Raises KeyboardInterrupt if the fit is one of many, as in a grid search: the next one would begin at once, and Ctrl-C
    would have stopped nothing. It is recognised by who called: frames of the packages that do so, or of our
    own modules that say `FITS_MANY_TIMES`.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("FITS_MANY_TIMES", False) or _is_search(frame.f_globals.get("__name__") or ""):
            raise KeyboardInterrupt
        frame = frame.f_back  # type: ignore[assignment]


def _is_search(module: str) -> bool:
    if module.partition(".")[0] not in SEARCHES:
        return False
    return _within(module, MANY) or not _within(module, SINGLE)


def _within(module: str, places: tuple[str, ...]) -> bool:
    return any(module == place or module.startswith(place + ".") for place in places)

"""Standard errors of any estimator from refits to resampled examples."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

import numpy as np

from ..core.errors import DataWarning
from ..core.interrupts import pass_on_in_search
from ..core.random import generator
from ..core.results import FloatArray, Status
from ..core.types import RandomState
from ..core.validation import check_count, check_weights
from ..core.warn import warn
from ..objectives.uncertainty import FIT_AGAIN
from ..report.progress import CountPrinter

#: An interrupt ends the bootstrap, not one fit of it (`core.interrupts`).
FITS_MANY_TIMES = True
#: Weight of examples that are not drawn: what they alone show (labels, names, columns) keeps its place.
LEFT_OUT = 1e-9
#: Refits that the effective number of parameters is estimated from, and its share of the examples that is warned of.
JUDGED, MANY = 20, 0.1
#: Relative difference of the objective above which the data are not those of the fit.
CHANGED = 0.02
#: Names of arguments of `fit` for weights, and for the lengths of sequences that are stacked.
WEIGHTS, LENGTHS = "sample_weight", "lengths"


class Resampled(Protocol):
    """What is asked of an estimator."""

    verbose: int
    status_: Status
    trace_: Any

    def _training_data(self) -> Mapping[str, Any] | None: ...
    def _estimates(self) -> FloatArray: ...
    def _estimates_like(self, other: Self) -> FloatArray: ...
    def _warm_copy(self) -> Any: ...


def bootstrap_errors(
    model: Resampled, function: Callable[[FloatArray], FloatArray], draws: int, random_state: RandomState
) -> FloatArray:
    """Standard deviations of a function of the estimates over refits to as many examples, drawn with replacement.

    A refit starts from the estimates, and has the numbers of times that examples were drawn as weights. Resampling repeats
    what a penalised optimum has overfitted: with many effective parameters the errors are too small (by about 40 % where
    they are as many as the examples), and a `DataWarning` says so. Their number is estimated by how much better refits fit
    the examples that they drew.
    """
    data = model._training_data()
    if data is None:
        raise ValueError(FIT_AGAIN)
    check_count("draws", draws, minimum=2)
    n = count_examples(data)
    given = np.asarray(check_weights(WEIGHTS, data.get(WEIGHTS), n), dtype=np.float64)
    used = np.flatnonzero(given > 0.0)
    if len(used) < 2:
        raise ValueError("a bootstrap needs at least two examples with a positive weight")
    rng = generator(random_state)
    before = _check_unchanged(model, data, given)
    progress = CountPrinter("bootstrap", draws) if model.verbose else None
    found: list[FloatArray] = []
    optimism: list[float] = []
    short = 0
    for done in range(draws):
        counts = np.zeros(n)
        counts[used] = np.bincount(rng.integers(0, len(used), len(used)), minlength=len(used))
        weights = np.where((given > 0.0) & (counts == 0.0), LEFT_OUT, counts) * given
        try:
            other = _refit(model, data, weights)
            if done < JUDGED and before is not None:
                optimism.append(float(((counts - 1.0) * given)[used] @ (_log_likelihood(other, data) - before)[used]))
        except KeyboardInterrupt:
            pass_on_in_search()
            if len(found) < 2:
                raise
            warn(f"interrupted: standard errors are from {len(found)} refits of {draws}", RuntimeWarning)
            break
        found.append(function(model._estimates_like(other)))
        short += not other.status_.ok
        if progress is not None:
            progress(done + 1)
    if short:
        warn(f"{short} of {len(found)} refits of the bootstrap ended before their tolerance: {other.status_}", DataWarning)
    _warn_of_overfitting(optimism, float(given[used].sum() ** 2 / (given[used] ** 2).sum()))
    return np.asarray(np.std(found, axis=0, ddof=1))


def _refit(model: Resampled, data: Mapping[str, Any], weights: FloatArray) -> Any:
    """A copy of the model fitted to the same examples with other weights, from where the model is, without warnings."""
    other = model._warm_copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(**{**data, WEIGHTS: weights})
    if other.status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return other


def _log_likelihood(model: Any, data: Mapping[str, Any]) -> FloatArray:
    """Of each example, of what `fit` was given."""
    known = inspect.signature(model.log_likelihood).parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.log_likelihood(**{name: value for name, value in data.items() if name in known}))


def _check_unchanged(model: Any, data: Mapping[str, Any], weights: FloatArray) -> FloatArray | None:
    """The log-likelihood of each example, None if some are impossible; data that were changed after `fit` are refused."""
    if model.status_.ok and len(model.trace_.objective):
        again, before = _refit(model, data, weights).trace_.objective, float(model.trace_.objective[-1])
        if len(again) and not abs(float(again[-1]) - before) <= CHANGED * (1.0 + abs(before)):
            raise ValueError(
                f"a refit to the training data has the objective {again[-1]:.6g}, the fit had {before:.6g}: X, y or "
                "sample_weight were changed in place after fit, or the fit was not reproducible; fit again"
            )
    found = _log_likelihood(model, data)
    return found if found.shape == weights.shape and np.isfinite(found).all() else None


def _warn_of_overfitting(optimism: list[float], examples: float) -> None:
    """Warn where refits fit what they drew so much better that effective parameters are many beside the examples."""
    effective = float(np.mean(optimism)) if optimism else 0.0
    if effective > MANY * examples:
        warn(
            f"bootstrap of a fit with about {effective:.3g} effective parameters for {examples:.0f} examples: resampling "
            "repeats what was overfitted, and errors are too small (by about 40 % where these are as many as examples). "
            "Raise l2, have fewer weights, or more examples",
            DataWarning,
        )


def count_examples(data: Mapping[str, Any]) -> int:
    """The number of examples in the arguments of a `fit`: sequences by their lengths, rows, entries, or those of columns."""
    if data.get(LENGTHS) is not None:
        return len(data[LENGTHS])
    X = data["X"]
    if hasattr(X, "shape"):
        return int(X.shape[0])
    return len(next(iter(X.values()))) if isinstance(X, Mapping) else len(X)


def copied(model: Any, **parameters: Any) -> Any:
    """A copy of a fitted model that fits silently, with other parameters."""
    other = copy.copy(model)
    for name, value in {"verbose": 0, **parameters}.items():
        setattr(other, name, value)
    return other

"""The dial between cost and accuracy, measured."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from ...core.random import generator
from ...core.results import FloatArray
from ...core.types import RandomState
from ...objectives.composite.efficiency import efficiency
from ...objectives.composite.likelihood import FULL, CompositeLikelihood, as_composite
from ...report.tradeoff import Tradeoff
from ..objective.asymptotics import Limits
from ..objective.composite import GraphComposite
from ..objective.operations import graph_operations

#: An interrupt ends the comparison, not one fit of it (`core.interrupts`).
FITS_MANY_TIMES = True
#: Examples on which a pass is timed if there are no data, and passes.
EXAMPLES, PASSES = 1000, 5


def tradeoff(
    estimator: BaseEstimator,
    X: object = None,
    y: object = None,
    likelihoods: Mapping[str, str | CompositeLikelihood] | None = None,
    *,
    theta: ArrayLike | None = None,
    X_test: Sized | None = None,
    y_test: object = None,
    measure: str = "rdet",
    random_state: RandomState = 0,
) -> Tradeoff:
    """Operations, seconds and accuracy of several likelihoods of one model, and which of them are worth their cost.

    With `theta`, accuracy is the variance of estimates in the limit, relative to the likelihood of the whole, if a
    `MarkovNetwork` is true with these weights; no data are needed, and seconds are those of a pass over 1000 examples. Else
    the model is fitted to X (and y) by each likelihood; seconds are those of the fit, and accuracy is the mean negative
    log-likelihood of X_test (and y_test).

    Parameters
    ----------
    estimator : MarkovNetwork, GraphCRF, ChainCRF or BoltzmannChain
        Not changed: copies are fitted.
    X, y, X_test, y_test
        As in ``fit``.
    likelihoods : dict, optional
        Names and what `likelihood` may be: ``"full"``, ``"pseudo"`` or a `CompositeLikelihood`. Default: orders 1 and 2, and
        the whole, with some mixtures.
    theta : array, optional
    measure : {"det", "rdet", "trace"}
        With `theta`, see `CompositeLikelihood.efficiency`.
    random_state : int, Generator or None
        Of drawn examples.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import CompositeLikelihood, MarkovNetwork, tradeoff
    >>> some = {"1": "pseudo", "2": CompositeLikelihood({2: 1.0}), "all": "full"}
    >>> found = tradeoff(MarkovNetwork.boltzmann(5), likelihoods=some, theta=np.repeat([-1.0, 1.0], 5))
    >>> found.loss.round(4)
    array([1.0497, 1.0298, 1.    ])
    """
    chosen = {name: _composite(likelihood) for name, likelihood in (likelihoods or _mixtures()).items()}
    if not chosen:
        raise ValueError("likelihoods must not be empty")
    if theta is not None:
        if X is not None or X_test is not None:
            raise ValueError("tradeoff takes theta or data, not both")
        return _in_the_limit(estimator, chosen, theta, measure, random_state)
    if X is None or X_test is None:
        raise ValueError("tradeoff needs theta, or data: X to fit to and X_test to compare by")
    if getattr(estimator, "budget", None) is not None:
        raise ValueError("tradeoff compares likelihoods: set budget=None")
    operations, seconds, loss = np.zeros(len(chosen)), np.zeros(len(chosen)), np.zeros(len(chosen))
    given = () if y is None else (y,)
    for i, composite in enumerate(chosen.values()):
        model = clone(estimator).set_params(likelihood=FULL if composite.rates == {FULL: 1.0} else composite)
        start = time.perf_counter()
        model.fit(X, *given)
        seconds[i] = time.perf_counter() - start
        operations[i] = float(model._operations(composite).sum())
        loss[i] = -float(np.sum(model.log_likelihood(X_test, *(() if y_test is None else (y_test,))))) / len(X_test)
    return Tradeoff(tuple(chosen), operations, seconds, loss, "held-out", "fit")


def _composite(likelihood: str | CompositeLikelihood) -> CompositeLikelihood:
    return as_composite(likelihood, (FULL,)) or CompositeLikelihood({FULL: 1.0})


def _mixtures() -> dict[str, str | CompositeLikelihood]:
    """The family of the first figures: order 1 and a share of 2, or of the whole, drawn once for each example."""
    out: dict[str, str | CompositeLikelihood] = {"PL1": "pseudo"}
    for order, name in ((2, "PL2"), (FULL, "FL")):
        for rate in (0.1, 0.3, 0.6):
            out[f"PL1 + {rate:g} {name}"] = CompositeLikelihood(
                {1: 1.0, order: rate}, weights="auto", refresh=False, random_state=0
            )
        out[name] = CompositeLikelihood({order: 1.0})
    return out


def _in_the_limit(
    net: Any, chosen: Mapping[str, CompositeLikelihood], theta: ArrayLike, measure: str, random_state: RandomState
) -> Tradeoff:
    features = net.feature_map()
    rng = generator(random_state)
    limits = Limits(features, theta, random_state=rng)
    rows = features.graph.sample(features.forward(limits.theta), EXAMPLES, rng)
    operations, seconds, loss = [], [], []
    for composite in chosen.values():
        beta = limits.beta(composite)
        operations.append(float(graph_operations(features.graph, composite).sum()))
        loss.append(efficiency(limits.covariance(composite, beta), limits.information, measure))
        seconds.append(_pass_seconds(GraphComposite(features, rows, composite, beta=beta), limits.theta))
    return Tradeoff(
        tuple(chosen), np.array(operations), np.array(seconds), np.array(loss), "variance", f"pass over {EXAMPLES}"
    )


def _pass_seconds(objective: Any, theta: FloatArray) -> float:
    times = []
    for _ in range(PASSES + 1):
        start = time.perf_counter()
        _ = objective.at(theta).gradient
        times.append(time.perf_counter() - start)
    return min(times[1:])

"""Chains whose states are pairs of a label and a hidden state: what their estimators share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Solution
from ...core.validation import check_choice, check_count, check_flag, check_real, check_verbose
from ...estimators.convergence import warn_if_short
from ...estimators.labels import Labels
from ...estimators.loaded import check_labels, check_whole, is_fitted
from ...estimators.nearest_means import nearest_means
from ...estimators.persistence import SavedModel
from ...estimators.restarts import end_values, rough_fit, run_starts
from ...solvers.auto import make_solver
from ..data.inputs import ChainInputs
from ..data.sequences import check_hashing
from .weights import WEIGHTS, ChainWeightsMixin, Tagging, check_weights_fit

INITS = ("random", "kmeans", "left_right")
#: Iterations in which a start is fitted to a guess of the hidden states.
GUESS_ITER = 10


def hidden_labels(labels: Labels, n_hidden: int) -> Labels:
    """What labels say of states, which are ``label * n_hidden + hidden``: a set each, or a state if there is only one."""
    n, names = len(labels.classes), state_names(labels.classes, n_hidden)
    if n_hidden == 1:
        return replace(labels, classes=names)
    given = np.zeros((0, n), bool) if labels.sets is None else labels.sets
    sets = np.repeat(np.vstack([given, np.eye(n, dtype=bool)]), n_hidden, axis=1)
    codes = np.where(labels.codes >= 0, -1 - len(given) - labels.codes, labels.codes)
    return Labels(names, codes, sets)


def state_names(classes: Any, n_hidden: int) -> Any:
    """The pairs (label, hidden state) in order."""
    names = np.empty(len(classes) * n_hidden, object)
    names[:] = [(label, h) for label in classes.tolist() for h in range(n_hidden)]
    return names


def hidden_pairs(pairs: IntArray, n_hidden: int, both: bool) -> IntArray:
    """Pairs whose second entry, or `both`, are labels, once for every hidden state of these."""
    h = np.arange(n_hidden)
    first = pairs[:, 0, None, None] * n_hidden + h[:, None] if both else pairs[:, 0, None, None]
    second = pairs[:, 1, None, None] * n_hidden + h
    return np.stack(np.broadcast_arrays(first, second), axis=-1).reshape(-1, 2)


def clusters(X: Any, groups: IntArray, n_hidden: int, random: np.random.Generator) -> IntArray:
    """The number of the k-means cluster of every row of X within its group; 0 where the group is below zero."""
    out = np.zeros(len(groups), np.int64)
    for group in np.unique(groups[groups >= 0]):
        rows = np.flatnonzero(groups == group)
        out[rows] = nearest_means(X[rows], n_hidden, random)
    return out


def parts(starts: IntArray, n_positions: int, n_hidden: int) -> IntArray:
    """In which of `n_hidden` equal parts of its piece each position is; pieces begin at `starts`."""
    lengths = np.diff(np.append(starts, n_positions))
    within = np.arange(n_positions) - np.repeat(starts, lengths)
    return np.asarray(within * n_hidden // np.repeat(lengths, lengths), dtype=np.int64)


class HiddenStates(ChainWeightsMixin, SavedModel, BaseEstimator):
    """Checks, restarts and fitted state of a chain over pairs (label, hidden state)."""

    n_hidden: int
    hashing: int | None
    start_end: bool
    fit_intercept: bool
    l2: float
    solver: Any
    init: str
    init_scale: float
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None
    random_state: Any
    verbose: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        tags.input_tags.dict = True
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> Any:
        return {key: value for key, value in super().__getstate__().items() if key != "_cache"}

    @property
    def _states(self: Any) -> Any:
        return state_names(self.classes_, self.n_hidden_)

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(self, "n_hidden_", "objectives_", *WEIGHTS):
            check_labels("classes_", self.classes_, 1)
            check_whole(self, "n_hidden_", 1, len(self.parameters_))
            check_weights_fit(self, self._states)

    def _check_size(self, n_labels: int, n_positions: int) -> None:
        """Scores of states at positions, and weights of pairs of states."""
        states = n_labels * int(self.n_hidden)
        what = f"n_hidden={self.n_hidden} with {n_labels} labels and {n_positions} positions"
        check_memory(what, 64.0 * states * (states + n_positions), "Lower n_hidden")

    def _check_parameters(self) -> None:
        check_count("n_hidden", self.n_hidden, minimum=1)
        check_real("l2", self.l2, minimum=0.0)
        make_solver(self.solver)
        check_flag("start_end", self.start_end)
        check_flag("fit_intercept", self.fit_intercept)
        check_hashing(self.hashing)
        check_choice("init", self.init, INITS)
        check_real("init_scale", self.init_scale, minimum=0.0)
        check_count("n_init", self.n_init, minimum=1)
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, minimum=0.0)
        check_verbose(self.verbose)
        Workers(self.n_jobs)

    def _best(self, objective: Any, guessed: Callable[[np.random.Generator], Any]) -> Solution:
        """The lowest of the minima that the starts lead to; `guessed` is the objective if hidden states were as guessed."""

        def start(random: np.random.Generator) -> FloatArray:
            weights: FloatArray = self.init_scale * random.standard_normal(objective.size)
            if self.init == "random" or self.n_hidden == 1:
                return weights
            return rough_fit(guessed(random), weights, "lbfgs", GUESS_ITER, self.tol)

        seeds = generator(self.random_state).integers(2**31, size=self.n_init)
        best, solutions = run_starts(
            *(objective, [partial(start, generator(seed)) for seed in seeds.tolist()], make_solver(self.solver)),
            max_iter=self.max_iter,
            tol=self.tol,
            verbose=self.verbose,
            n_jobs=1,  # threads are for the chains
        )
        warn_if_short(self, best)
        self.objectives_ = end_values(solutions)
        self.n_iter_, self.trace_, self.status_ = best.n_iter, best.trace, best.status
        return best

    def _hidden(self: Any, tagging: Tagging) -> FloatArray:
        """The probability of every label and hidden state at every position."""
        shape = (len(self.classes_), self.n_hidden_)
        if tagging.chain is None:
            return np.zeros((0, *shape))
        return np.asarray(tagging.chain.infer(tagging.potentials).marginals[0]).reshape(-1, *shape)

    def _store_states(
        self, classes: Any, inputs: ChainInputs, layout: Any, values: FloatArray, forbidden: Any, trim: bool
    ) -> None:
        self.classes_, self.n_hidden_ = classes, int(self.n_hidden)
        self.forbidden_transitions_, self.forbidden_starts_, self.forbidden_ends_ = forbidden, None, None
        values = inputs.to_user(layout) @ values if inputs.intercept else values
        self._store_weights(layout.trim() if trim else layout, values, inputs)

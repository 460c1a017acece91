"""Chains whose states are pairs of a label and a hidden state: what their estimators share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from ....core.memory import check_memory
from ....core.parameters import Check, checked, choice, count, flag, real, seed, threads, verbosity
from ....core.random import generator
from ....core.results import FloatArray, IntArray, Solution
from ....core.types import LabelArray, RandomState, SampleWeight, SolverLike
from ....core.validation import check_choice
from ....estimators.bootstrap import copied
from ....estimators.labels import split
from ....estimators.loaded import check_labels, check_whole, is_fitted
from ....estimators.restarts import end_values, rough_fit
from ....estimators.restrictions import RESTRICTIONS, check_errors, feasible_weights
from ....estimators.streaming import Streamed, precision_at
from ....estimators.trained import solver_like, training
from ....objectives.constraints.constraint import Constraint
from ....objectives.constraints.feasible_set import FeasibleSet
from ....objectives.constraints.sets import check_constraints
from ....objectives.information import warn_of_many_weights
from ....objectives.restricted import smooth_point
from ....objectives.uncertainty import FIT_AGAIN, METHODS, errors
from ...data.examples import Examples
from ...data.hidden_states import hidden_labels, state_names
from ...data.inputs import ChainInputs
from ...data.reading import Sequences, check_hashing
from ...data.types import Lengths
from ...data.weight_constraints import named_weights
from ...features.chain import ChainFeatures
from ...features.layout import ChainLayout
from ...structure.forbidden import Forbidden
from ..chain_model import FITTED, ChainModel, check_chain
from ..problem import ChainProblem, on_parameters
from ..streaming import Learned, Posterior, with_earlier_weights

INITS = ("random", "kmeans", "left_right")
#: Iterations in which a start is fitted to a guess of the hidden states.
GUESS_ITER = 10


class HiddenStates(ChainModel, Streamed):
    """A chain over pairs (label, hidden state), fitted from several starts."""

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "n_hidden": count(1),
        "l2": real(0.0),
        "solver": solver_like,
        "start_end": flag,
        "fit_intercept": flag,
        "hashing": checked(check_hashing),
        "init": choice(*INITS),
        "init_scale": real(0.0),
        "n_init": count(1),
        "max_iter": count(),
        "tol": real(0.0),
        "verbose": verbosity,
        "n_jobs": threads,
        "random_state": seed,
        **RESTRICTIONS,
    }

    TRANSIENT: ClassVar[tuple[str, ...]] = (*ChainModel.TRANSIENT, "_ended")

    #: What was minimised, and where that ended; and where a refit begins.
    _ended: tuple[ChainProblem, Any] | None = None
    _begin: tuple[ChainLayout, FloatArray] | None = None

    n_hidden: int
    start_end: bool
    fit_intercept: bool
    l2: float
    solver: SolverLike
    init: str
    init_scale: float
    n_init: int
    l1: float
    constraints: Constraint | Iterable[Constraint] | None

    n_hidden_: int
    objectives_: FloatArray

    def hidden_proba(self, X: Sequences, lengths: Lengths = None) -> list[FloatArray]:
        """For each sequence the probability of every label and hidden state, shape (positions, labels, n_hidden).

        By forward-backward.
        """
        scored = self._scored(X, lengths)
        return split(self.chain_.hidden_marginals(scored), scored.offsets)

    def standard_errors(
        self, method: str = "sandwich", draws: int = 100, random_state: RandomState = None
    ) -> dict[str, dict[Any, float]]:
        """Standard errors of the weights at the local optimum that was found, from the training data.

        Parameters
        ----------
        method : {"sandwich", "information", "bootstrap"}
            The sandwich stays right when the model is wrong; the inverse of the observed information (penalty included; what
            is not known of hidden states is taken off) when it is true; or refits to resampled sequences, which start from
            the estimates, so that states keep their numbers. Where a penalised fit has many effective parameters for its
            sequences, these are too small, and a warning says so.
        draws, random_state
            Number of refits of the bootstrap, and seed. Above 3000 weights, of random vectors that the sandwich is estimated
            from.

        Returns
        -------
        dict
            "state", "transition", "start" and "end", each a dict with the keys of `state_features_` and so on.
        """
        layout = self.chain_.layout
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            found = self._bootstrap(draws, random_state)
        else:
            check_errors(self.l1, self.constraints)
            if self._ended is None:
                raise ValueError(FIT_AGAIN)
            (problem, point), n = self._ended, len(self._ended[0].examples.data)
            warn_of_many_weights(point.objective.size, n, "sequences", self.l2, "fewer attributes or hidden states")
            found = errors(point, method, draws, random_state, problem.change)
        return dict(zip(("state", "transition", "start", "end"), layout.dicts(found), strict=True))

    def _warm_copy(self) -> Self:
        other: Self = copied(self, n_init=1)
        other._begin = self.chain_.layout, self.parameters_
        return other

    def _posterior(self) -> Posterior | None:
        if "parameters_" not in vars(self):
            return None
        return Posterior.of(self.chain_, self._known_precision(), self.n_seen_, None, True)

    @abstractmethod
    def _read(
        self, X: Sequences, y: Any, lengths: Lengths, sample_weight: SampleWeight, before: Posterior | None
    ) -> Examples:
        """The sequences, each position with its label; in the columns and with the labels of earlier ones, if any."""

    def _learn(self, before: Posterior | None, *data: Any) -> Self:
        X, y, lengths, sample_weight = data
        self._fit_hidden(self._read(X, y, lengths, sample_weight, before), before)
        return self

    @training
    def partial_fit(self, X: Sequences, y: Any = None, lengths: Lengths = None, sample_weight: SampleWeight = None) -> Self:
        """Learn from more sequences, by the Laplace approximation; see `ChainCRF.partial_fit`.

        X, y, `lengths` and `sample_weight` are as in `fit`. Labels are those of the first piece; new attributes get weights.
        """
        return self._take_piece(X, y, lengths, sample_weight)

    def _fit_hidden(self, examples: Examples, before: Posterior | None) -> None:
        """Find weights for examples with labels of their positions, and keep them."""
        labels, data, states = examples.labels, examples.data, len(examples.labels.classes) * self.n_hidden
        what = f"n_hidden={self.n_hidden} with {len(labels.classes)} labels and {examples.n_positions} positions"
        check_memory(what, 64.0 * states * (states + examples.n_positions), "Lower n_hidden")
        if before is None:
            # Constraints are on the user's weights, which must then be the solver's.
            standard = not check_constraints(self.constraints)
            inputs = ChainInputs.of(data, examples.weights, float(self.l2), bool(self.fit_intercept), standard)
        else:
            inputs = before.inputs
        rows = inputs.rows(data).X
        problem = self._problem(inputs, examples, rows, before)
        if before is None:
            best = self._best_of_starts(problem, examples, rows)
        else:
            mean = problem.parameters(before.layout.align(before.mean, problem.layout))
            best = self._minimize(problem.objective(), mean)
            self._finish(best, [best])
        point = smooth_point(best.point)
        precision = precision_at(point.objective, point)
        assert precision is not None
        found = Learned(problem.layout, problem.weights(best.parameters), problem.weights(precision))
        if before is not None:
            found = found.joined(before)
        values = np.asarray(inputs.to_user(found.layout) @ found.mean) if inputs.intercept else np.array(found.mean)
        chain = problem.chain(found.layout, values, self.hashing, labels.classes)
        self._store_chain(chain.trimmed() if examples.owns_names else chain)
        self.precision_, self.n_seen_ = found.precision, len(data)
        self.n_hidden_ = int(self.n_hidden)
        self._ended = problem, point

    def _problem(
        self, inputs: ChainInputs, examples: Examples, rows: sp.csr_matrix, before: Posterior | None
    ) -> ChainProblem:
        """What the states are to be learned from."""
        labels = examples.labels
        states, features = hidden_labels(labels, self.n_hidden), self._features(inputs, examples, rows)
        if before is not None:
            features = with_earlier_weights(features, rows, before.layout, states.classes, examples.data.attributes)
        layout = inputs.layout(features, states.classes, examples.data.attributes)
        # A hidden state that nobody needs would run away if its intercept were free; at the means of the columns it has a
        # penalty, and a shift of X changes nothing all the same.
        l2 = inputs.strengths(layout, self.l2, 2, free=False)
        l1 = inputs.strengths(layout, self.l1, 1, free=False) if self.l1 > 0.0 else None
        whole = feasible_weights(self.constraints, named_weights(layout))
        ties = self._ties(features)
        if ties is not None:
            once = np.unique(ties, return_index=True)[1]  # a weight that is shared is penalised once
            share = np.isin(np.arange(len(l2)), once)
            l2, l1 = np.where(share, l2, 0.0), None if l1 is None else np.where(share, l1, 0.0)
            tied = FeasibleSet.tied(ties)
            whole = tied if whole is None else FeasibleSet.intersection(layout.size, [whole, tied])
        numbers = None if whole is None else whole.numbers
        if numbers is not None:
            l2 = np.bincount(numbers, weights=l2).astype(np.float64)
            l1 = None if l1 is None else np.bincount(numbers, weights=l1).astype(np.float64)
        problem = ChainProblem(
            *(replace(examples, labels=states), self._forbidden(len(labels.classes)), inputs, features, layout, l2, l1),
            ties=numbers,
            feasible=on_parameters(whole),
        )
        if before is None:
            return problem
        mean, known = (problem.parameters(before.layout.align(part, layout)) for part in (before.mean, before.precision))
        precision = np.where(problem.parameters(before.has(layout).astype(np.float64)) > 0.0, known, l2)
        # Half the precision times the squared distance to the mean, up to a constant, is a penalty and a linear term.
        return replace(problem, l2=precision, linear=-precision * mean)

    @abstractmethod
    def _features(self, inputs: ChainInputs, examples: Examples, rows: sp.csr_matrix) -> ChainFeatures:
        """The map from weights to scores of states."""

    @abstractmethod
    def _guess(self, examples: Examples, rows: sp.csr_matrix, random: np.random.Generator) -> IntArray:
        """A hidden state for every position, to start from."""

    def _ties(self, features: ChainFeatures) -> IntArray | None:
        """The parameter of each weight; None if each is one."""
        return None

    def _forbidden(self, n_labels: int) -> Forbidden:
        """States that may not follow each other."""
        return Forbidden()

    def _best_of_starts(self, problem: ChainProblem, examples: Examples, rows: sp.csr_matrix) -> Solution:
        """The lowest of the minima that the starts lead to."""
        objective, codes, H = problem.restricted(problem.objective()), examples.labels.codes, self.n_hidden

        def start(random: np.random.Generator) -> FloatArray:
            weights: FloatArray = self.init_scale * random.standard_normal(objective.size)
            if self.init == "random" or H == 1:
                return weights
            h = self._guess(examples, rows, random)
            guessed = np.where(codes >= 0, codes * H + h, problem.examples.labels.codes)
            return rough_fit(problem.with_codes(guessed).objective(), weights, "lbfgs", GUESS_ITER, self.tol)

        seeds = generator(self.random_state).integers(2**31, size=self.n_init)
        starts: list[Any] = [partial(start, generator(number)) for number in seeds.tolist()]
        if self._begin is not None:
            starts = [problem.start(*self._begin)]
        best, solutions = self._minimize_from(objective, starts, self._solver(), n_jobs=1)  # threads are for the chains
        self._finish(best, solutions)
        return best

    def _finish(self, best: Solution, solutions: list[Solution | None]) -> None:
        """Keep how the runs went."""
        self._warn_if_short(best)
        self.objectives_ = end_values(solutions)
        self._store_run(best)

    def _states(self) -> LabelArray:
        return state_names(self.classes_, self.n_hidden_)

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(self, "n_hidden_", "objectives_", *FITTED):
            check_labels("classes_", self.classes_, 1)
            check_whole(self, "n_hidden_", 1, len(self.parameters_))
            check_chain(self, len(self.classes_) * self.n_hidden_)

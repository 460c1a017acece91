"""What a chain is fitted to: sequences with labels, the weights there are, and what holds them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from ...core import Objective
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.types import LabelArray
from ...objectives.composite.likelihood import FULL, CompositeLikelihood
from ...objectives.constraints.feasible_set import FeasibleSet
from ...objectives.constraints.substitution import Substitution
from ...objectives.l1 import L1
from ...objectives.restricted import restricted
from ..data.examples import Examples
from ..data.forbidden import Rules, check_possible, forbidden_tables
from ..data.inputs import ChainInputs, WeightChoice
from ..data.sequences import ATTRIBUTES, SequenceData
from ..data.weight_constraints import AnyConstraint, weight_set
from ..features.chain import ChainFeatures
from ..features.layout import ChainLayout
from ..features.tied import TiedFeatures
from ..objective.composite import ChainComposite, composite_of
from ..objective.likelihood import ChainLikelihood
from ..structure.forbidden import BoolArray, Forbidden
from .fitted_chain import FittedChain

#: The likelihood of chains, or a composite one.
Likelihood: TypeAlias = ChainLikelihood | ChainComposite


def chain_objective(
    features: ChainFeatures,
    y: IntArray,
    *,
    l2: float | FloatArray = 1.0,
    l1: float = 0.0,
    weights: FloatArray | None = None,
    forbidden: Forbidden | None = None,
    linear: FloatArray | None = None,
    sets: BoolArray | None = None,
    likelihood: str | CompositeLikelihood = FULL,
) -> Likelihood | L1:
    """The objective that `ChainCRF` minimises, for use with `partita.minimize`.

    Parameters
    ----------
    features : ChainFeatures
    y : array of int64
        Codes of the labels of all positions; a code below zero stands for row ``-1 - code`` of `sets`.
    l2, l1 : float
        Penalties, on every parameter. `l2` may be an array.
    weights : array, optional
        One weight per sequence.
    forbidden : Forbidden, optional
        Labels that may not follow each other, not stand first, or not last.
    linear : array of shape (features.size,), optional
        Coefficients of a linear term.
    sets : array of bool of shape (k, n_labels), optional
        Sets of labels, one of which is right.
    likelihood : {"full", "pseudo"} or CompositeLikelihood
        See `ChainCRF`. Weights that are still to be chosen are one.
    """
    options: dict[str, Any] = {"sets": sets, "weights": weights, "penalty": l2, "linear": linear, "forbidden": forbidden}
    composite = composite_of(likelihood)
    smooth: Likelihood
    if composite is None:
        smooth = ChainLikelihood(features, y, **options)
    else:
        smooth = ChainComposite(features, y, composite, **options)
    return smooth if l1 == 0.0 else L1(smooth, np.full(features.size, l1))


class ChainSettings(NamedTuple):
    """A chain CRF without data. Fields are parameters of the estimator."""

    l2: float
    l1: float
    choice: WeightChoice
    fit_intercept: bool
    constraints: Sequence[AnyConstraint]
    forbidden: Rules
    n_jobs: int | None


@dataclass(frozen=True)
class ChainProblem:
    """Sequences, and the weights of a chain that are to be found, in the solver's units.

    Attributes
    ----------
    examples : Examples
        Sequences with labels (codes of states) and weights.
    forbidden : Forbidden
    inputs : ChainInputs
        What the columns are to the solver.
    features : ChainFeatures
        The map from weights to scores.
    layout : ChainLayout
        What each weight belongs to.
    l2 : float or array
        Quadratic penalty of each parameter.
    l1 : array, optional
        Penalty on the absolute value of each parameter.
    linear : array, optional
        Coefficients of a linear term.
    ties : array of int, optional
        The parameter of each weight; without it each weight is one.
    feasible : FeasibleSet, optional
        Where parameters must stay.
    """

    examples: Examples
    forbidden: Forbidden
    inputs: ChainInputs
    features: ChainFeatures
    layout: ChainLayout
    l2: float | FloatArray
    l1: FloatArray | None = None
    linear: FloatArray | None = None
    ties: IntArray | None = None
    feasible: FeasibleSet | None = None

    @classmethod
    def of(cls, settings: ChainSettings, examples: Examples) -> ChainProblem:
        """The problem that a chain CRF is to examples."""
        labels, data, constraints = examples.labels, examples.data, settings.constraints
        forbidden = forbidden_tables(settings.forbidden, labels.classes)
        check_possible(labels, data.offsets, forbidden, examples.where)
        # Constraints are on the user's weights, which must then be the solver's.
        standard = not constraints
        inputs = ChainInputs.of(data, examples.weights, float(settings.l2), bool(settings.fit_intercept), standard)
        features = chain_features(settings, inputs, examples)
        layout = inputs.layout(features, labels.classes, data.attributes)
        whole = weight_set(constraints, layout)
        ties = None if whole is None else whole.numbers
        l2: float | FloatArray = inputs.strengths(layout, settings.l2, 2) if inputs.intercept else float(settings.l2)
        l1 = inputs.strengths(layout, settings.l1, 1) if settings.l1 > 0.0 else None
        if ties is not None:
            l2 = np.bincount(ties, weights=np.broadcast_to(l2, ties.shape)).astype(np.float64)
            l1 = None if l1 is None else np.bincount(ties, weights=l1).astype(np.float64)
        return cls(examples, forbidden, inputs, features, layout, l2, l1, ties=ties, feasible=on_parameters(whole))

    @cached_property
    def map(self) -> ChainFeatures:
        """The map from parameters to scores."""
        if self.ties is None:
            return self.features
        return cast(ChainFeatures, TiedFeatures(self.features, self.ties))  # all that a likelihood asks of one

    def objective(self, composite: CompositeLikelihood | None = None) -> Likelihood:
        """The negative log-likelihood, or a composite one, with the quadratic penalty."""
        labels = self.examples.labels
        found = chain_objective(
            *(self.map, labels.codes),
            l2=self.l2,
            weights=self.examples.weights,
            forbidden=self.forbidden,
            linear=self.linear,
            sets=labels.sets,
            likelihood=FULL if composite is None else composite,
        )
        assert not isinstance(found, L1)
        return found

    def restricted(self, objective: Likelihood) -> Objective:
        """The objective with the penalty on absolute values and within the constraints, where there are any."""
        return restricted(objective, self.l1, self.feasible)

    def with_codes(self, codes: IntArray) -> ChainProblem:
        """The same problem if the labels had these codes."""
        examples = replace(self.examples, labels=replace(self.examples.labels, codes=codes))
        return replace(self, examples=examples)

    def start(self, layout: ChainLayout, values: FloatArray) -> FloatArray:
        """Parameters from the user's weights in another layout."""
        return self.parameters(np.asarray(self.inputs.to_solver(self.layout) @ layout.align(values, self.layout)))

    def parameters(self, weights: FloatArray) -> FloatArray:
        """Parameters from the weight of everything that has one, in the solver's units."""
        if self.ties is None:
            return weights
        parameters = np.zeros(self.map.size)
        parameters[self.ties] = weights
        return parameters

    def weights(self, parameters: FloatArray) -> FloatArray:
        """The weight of everything that has one, in the solver's units."""
        return parameters if self.ties is None else parameters[self.ties]

    def user_weights(self, parameters: FloatArray) -> FloatArray:
        """The same on the columns of the user."""
        weights = self.weights(parameters)
        return np.asarray(self.inputs.to_user(self.layout) @ weights) if self.inputs.intercept else np.array(weights)

    @property
    def change(self) -> Any:
        """The matrix of `user_weights`; None if weights are parameters."""
        change = self.inputs.to_user(self.layout) if self.inputs.intercept else None
        if self.ties is None:
            return change
        size = len(self.ties)
        spread = sp.csr_matrix((np.ones(size), (np.arange(size), self.ties)), (size, self.map.size))
        return spread if change is None else change @ spread

    def chain(
        self, layout: ChainLayout, values: FloatArray, hashing: int | None, classes: LabelArray | None = None
    ) -> FittedChain:
        """The chain with these weights, on the columns of the user; `classes` are its labels, if not its states."""
        kind, labels = self.inputs.kind, layout.classes if classes is None else classes
        inputs = self.inputs if self.inputs.intercept else ChainInputs.plain(layout.n_columns, kind)
        return FittedChain(labels, layout, values, self.forbidden, inputs, kind != ATTRIBUTES, hashing)


def on_parameters(whole: FeasibleSet | None) -> FeasibleSet | None:
    """A set of weights as one of parameters, of which those that are tied share one; None where that is everything."""
    if whole is None:
        return None
    feasible = Substitution(whole, None).feasible
    bounded = bool(np.isfinite(feasible.lower).any() or np.isfinite(feasible.upper).any())
    return feasible if bounded or not feasible.is_box else None


def chain_features(
    settings: ChainSettings,
    inputs: ChainInputs,
    examples: Examples,
    earlier: ChainLayout | None = None,
    data: SequenceData | None = None,
) -> ChainFeatures:
    """The feature map of the examples, or of `data`: pairs of the examples have weights, and those of an earlier layout."""
    labels, n = examples.labels, len(examples.labels.classes)
    state, transitions = inputs.pairs(settings.choice, examples.data, labels)
    rows = inputs.rows(examples.data if data is None else data)
    if earlier is None:
        seen = np.bincount(labels.codes[labels.codes >= 0], minlength=n) > 0
        reference = int(seen.argmax())
    else:
        names, columns = examples.data.attributes, rows.X.shape[1]
        found = ChainLayout(labels.classes, names, columns, state, transitions, False, inputs.intercept)
        both = earlier.union(found)
        present = np.bincount(rows.X.indices, minlength=columns) > 0
        state, transitions = both.state[present[both.state[:, 0]]], both.transitions
        reference = _reference(earlier, labels.classes)
    if inputs.intercept:
        state = state[state[:, 0] < examples.data.X.shape[1]]
        state = np.concatenate([state, inputs.intercept_pairs(np.delete(np.arange(n), reference))])
    settings.choice.check(state, transitions)
    ends, workers = bool(settings.choice.start_end), Workers(settings.n_jobs)
    return ChainFeatures(*(rows.X, rows.offsets, n, state[:, 0], state[:, 1], transitions, ends, ends), workers=workers)


def _reference(earlier: ChainLayout, classes: LabelArray) -> int:
    """The number, among new classes, of the label that has no intercept in an earlier layout."""
    with_one = earlier.state[earlier.state[:, 0] == earlier.n_columns, 1]
    first = np.setdiff1d(np.arange(earlier.n_labels), with_one)[0]
    return int(np.flatnonzero(classes == earlier.classes[first])[0])

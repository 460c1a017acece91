"""Attributes of chains as training sees them: numbers in standard units beside a column of ones, tokens as they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray, IntArray
from ...core.types import LabelArray
from ...estimators.labels import Labels
from ...softmax import StandardColumns
from ..features.chain import ChainFeatures
from ..features.layout import ChainLayout
from ..features.pairs import label_indicator, label_pairs, state_pairs
from ..structure.forbidden import BoolArray
from .sequences import ATTRIBUTES, DENSE, SequenceData


class WeightChoice(NamedTuple):
    """What has a weight. Fields are parameters of the estimators."""

    features: str = "observed"
    transitions: str = "observed"
    start_end: bool = False
    min_frequency: float | None = None

    def check(self, state: IntArray, transitions: IntArray) -> None:
        """Raise a ValueError unless something has a weight, of these pairs or of starts and ends."""
        if not (len(state) or len(transitions) or self.start_end):
            raise ValueError(f"nothing has a weight: no pair is in X and y often enough, min_frequency={self.min_frequency}")


class ChainInputs:
    """The columns that a solver sees, and the way from weights on them to weights on the columns of the user.

    Tokens stay as they are. Numbers get a column of ones, whose weights, the intercepts, have no penalty. Dense columns are
    centred and scaled, sparse ones share one scale: ``(x - mean) / spread``. The penalty of a weight is that of the
    corresponding weight on the user's column, so that the optimum is the same; only the solver's way there is shorter. One
    label may have no intercept: the same constant on all of them changes nothing, and what changes nothing has no standard
    error. (Hidden states all have one, or they would not be alike.)

    Parameters
    ----------
    mean, spread : arrays of shape (n_columns,)
    intercept : bool
        Whether there is a column of ones, the last.
    kind : {"attributes", "sparse", "dense"}
        See `SequenceData`.
    """

    mean: FloatArray
    spread: FloatArray
    intercept: bool
    kind: str
    varies: BoolArray  # which dense columns are not constant

    def __init__(self, mean: FloatArray, spread: FloatArray, intercept: bool, kind: str) -> None:
        self.mean, self.spread, self.intercept, self.kind = mean, spread, intercept, kind
        self.varies = np.ones(len(mean), bool)

    @classmethod
    def plain(cls, n_columns: int, kind: str) -> ChainInputs:
        """Columns as they are, without intercepts."""
        return cls(np.zeros(n_columns), np.ones(n_columns), False, kind)

    @classmethod
    def of(
        cls, data: SequenceData, weights: FloatArray, l2: float, fit_intercept: bool, standard: bool = True
    ) -> ChainInputs:
        """What sequences with weights call for; without `standard`, columns keep their units."""
        p = data.X.shape[1]
        made = cls(np.zeros(p), np.ones(p), fit_intercept and data.kind != ATTRIBUTES, data.kind)
        if not made.intercept or not p:
            return made
        if data.kind == DENSE:
            found = StandardColumns(data.X.toarray(), np.repeat(weights, data.lengths), l2, True, rotate=False)
            made.varies = found.varies
            if standard:
                made.mean, made.spread = found.mean, found.spread
        elif standard and not (data.X.data == 1.0).all():
            made.spread = StandardColumns(data.X, np.repeat(weights, data.lengths), l2, True).spread
        return made

    @property
    def dense(self) -> bool:
        """Whether zeros are numbers like any other."""
        return self.intercept and self.kind == DENSE

    def rows(self, data: SequenceData) -> SequenceData:
        """The data in the columns that the solver sees."""
        X, count = data.X, data.X.shape[0]
        if not self.intercept:
            return data
        if self.dense:
            full = np.ones((count, X.shape[1] + 1))
            full[:, :-1] = np.where(self.varies, (X.toarray() - self.mean) / self.spread, 0.0)
            X = _all_entries(full)
        else:
            scale = 1.0 if len(self.spread) == 0 else float(self.spread[0])
            X = sp.hstack([X if scale == 1.0 else X * (1.0 / scale), np.ones((count, 1))], format="csr")
        return SequenceData.unchecked(X, data.offsets, data.labels, None, data.kind)

    def pairs(self, choice: WeightChoice, data: SequenceData, labels: Labels) -> tuple[IntArray, IntArray]:
        """Pairs of an attribute and a label, and of labels that follow each other, that have a weight by choice.

        Intercepts are not among them. A number stands beside every label.
        """
        n = len(labels.classes)
        indicator = label_indicator(labels.codes, n, labels.sets)
        minimum = -np.inf if choice.min_frequency is None else float(choice.min_frequency)
        if self.dense:
            seen = np.full(n, True) if choice.features == "all" else np.asarray(indicator.sum(axis=0)).ravel() > 0.0
            attribute, label = (part.ravel() for part in np.meshgrid(np.flatnonzero(self.varies), np.flatnonzero(seen)))
            if minimum > -np.inf:
                totals = np.asarray((data.X.T @ indicator).todense())
                enough = totals[attribute, label] >= minimum
                attribute, label = attribute[enough], label[enough]
        else:
            attribute, label = state_pairs(data.X, indicator, choice.features == "all", minimum)
        moves = label_pairs(indicator, data.offsets, choice.transitions == "all", minimum)
        return np.column_stack([attribute, label]), moves

    def intercept_pairs(self, labels: IntArray) -> IntArray:
        """Pairs of the column of ones and some labels."""
        count = len(labels) if self.intercept else 0
        return np.column_stack([np.full(count, len(self.mean)), labels[:count]]).astype(np.int64)

    def layout(self, features: ChainFeatures, classes: LabelArray, names: list[str] | None) -> ChainLayout:
        """What the weights of a feature map of these rows mean."""
        return ChainLayout.of(features, classes, names, self.intercept)

    def strengths(self, layout: ChainLayout, strength: float, power: int, free: bool | BoolArray = True) -> FloatArray:
        """A penalty on the user's weights as one on the solver's, whose `power` it grows with; 0 for `free` intercepts."""
        out = np.full(layout.size, float(strength))
        if not self.intercept:
            return out
        state, attribute = layout.parts(out)[0], layout.state[:, 0]
        inner = attribute < len(self.spread)
        # Not the power of the spread itself, which may be out of range.
        state[inner] = (float(strength) ** (1.0 / power) / self.spread[attribute[inner]]) ** power
        state[~inner & np.broadcast_to(free, (layout.n_labels,))[layout.state[:, 1]]] = 0.0
        return out

    def to_user(self, layout: ChainLayout) -> sp.csr_matrix:
        """The matrix from the solver's weights to the user's."""
        return self._change(layout, 1.0 / self.spread, -self.mean / self.spread)

    def to_solver(self, layout: ChainLayout) -> sp.csr_matrix:
        """The matrix from the user's weights to the solver's."""
        return self._change(layout, self.spread, self.mean)

    def _change(self, layout: ChainLayout, factor: FloatArray, shift: FloatArray) -> sp.csr_matrix:
        """Weights times `factor`; their sum with `shift` goes to the intercepts, less that of a label without one."""
        p, n = len(self.mean), layout.n_labels
        attribute, label = layout.state.T
        inner = np.flatnonzero(attribute < p)
        diagonal = np.ones(layout.size)
        diagonal[inner] = factor[attribute[inner]]
        change = sp.diags(diagonal, format="csr")
        at = np.full(n, -1)
        ones = np.flatnonzero(attribute == p)
        at[label[ones]] = ones
        moved = inner[shift[attribute[inner]] != 0.0]
        if not len(ones) or not len(moved):
            return change
        values = shift[attribute[moved]]
        own = at[label[moved]] >= 0
        entries = [(at[label[moved[own]]], moved[own], values[own])]
        reference = int(np.flatnonzero(at < 0)[0]) if (at < 0).any() else -1
        here = label[moved] == reference
        rows = np.repeat(ones, np.count_nonzero(here))
        entries.append((rows, np.tile(moved[here], len(ones)), np.tile(-values[here], len(ones))))
        row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
        return (change + sp.csr_matrix((value, (row, column)), shape=change.shape)).tocsr()


def _all_entries(full: FloatArray) -> Any:
    """A CSR matrix with every entry of an array, zeros too."""
    rows, columns = full.shape
    small = np.int32 if full.size < 2**31 else np.int64
    indices = np.tile(np.arange(columns, dtype=small), rows)
    return sp.csr_matrix((full.ravel(), indices, np.arange(rows + 1, dtype=small) * columns), shape=full.shape)

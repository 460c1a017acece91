"""Sequences that come in pieces: what earlier ones left is a normal distribution, the Laplace approximation.

Its mean are the weights found so far, its precision the curvature of the objective there, one number per weight. A piece
adds its likelihood, and the minimum is expanded again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import DataWarning
from ...core.results import FloatArray, Solution
from ...core.types import LabelArray, SampleWeight
from ...core.validation import check_weights
from ...core.warn import warn
from ...estimators.labels import Labels, check_label_text
from ..data.examples import Examples
from ..data.forbidden import check_possible, forbidden_tables
from ..data.inputs import ChainInputs
from ..data.memory import in_columns, new_labels, stand_in, with_earlier
from ..data.reading import Sequences, labels_of, read_training
from ..data.sequences import DENSE, SequenceData
from ..data.types import LabelSequences, Lengths
from ..features.attribute_index import AttributeIndex, assemble
from ..features.chain import ChainFeatures
from ..features.layout import ChainLayout
from ..features.records import check_names
from ..structure.forbidden import BoolArray, Forbidden
from .fitted_chain import FittedChain
from .problem import ChainProblem, ChainSettings, chain_features


@dataclass(frozen=True)
class Posterior:
    """What the sequences so far say of the weights, in the solver's units.

    Attributes
    ----------
    layout : ChainLayout
    inputs : ChainInputs
    mean, precision : arrays
        Of each weight.
    n_seen : int
        Sequences so far.
    sample : SequenceData or None
        Some of them; None if they are lost.
    fixed_classes : bool
        Whether there will be no other labels.
    numeric : bool or None
        Whether columns are numbers; see `FittedChain`.
    """

    layout: ChainLayout
    inputs: ChainInputs
    mean: FloatArray
    precision: FloatArray
    n_seen: int
    sample: SequenceData | None
    fixed_classes: bool
    numeric: bool | None

    @classmethod
    def of(
        cls,
        chain: FittedChain,
        precision: NDArray[Any],
        n_seen: int,
        sample: SequenceData | None,
        fixed_classes: bool,
    ) -> Posterior:
        """Around the weights of a chain."""
        mean = np.asarray(chain.inputs.to_solver(chain.layout) @ chain.values)
        wide = precision.astype(np.float64)
        return cls(chain.layout, chain.inputs, mean, wide, n_seen, sample, fixed_classes, chain.numeric)

    def has(self, layout: ChainLayout) -> BoolArray:
        """Which weights of another layout it knows."""
        return self.layout.align(np.ones(self.layout.size), layout) > 0.0


class Learned(NamedTuple):
    """Mean and precision of the weights of a layout, in the solver's units."""

    layout: ChainLayout
    mean: FloatArray
    precision: FloatArray

    def joined(self, before: Posterior) -> Learned:
        """With the weights that only earlier sequences had."""
        layout = before.layout.union(self.layout)
        new = self.layout.align(np.ones(self.layout.size), layout) > 0.0
        mean = np.where(new, self.layout.align(self.mean, layout), before.layout.align(before.mean, layout))
        own = self.layout.align(self.precision, layout)
        return Learned(layout, mean, np.where(new, own, before.layout.align(before.precision, layout)))


def with_earlier_weights(
    features: ChainFeatures, rows: Any, earlier: ChainLayout, classes: LabelArray, names: list[str] | None
) -> ChainFeatures:
    """A map of the same rows in which the weights of an earlier layout have their place too."""
    found = ChainLayout.of(features, classes, names, earlier.intercept)
    both = earlier.union(found)
    present = np.bincount(rows.indices, minlength=rows.shape[1]) > 0
    state = both.state[present[both.state[:, 0]]]
    pairs = state[:, 0], state[:, 1], both.transitions
    given = rows, features.offsets, features.n_labels
    return ChainFeatures(*given, *pairs, features.starts, features.ends, workers=features.workers)


@dataclass(frozen=True)
class Update:
    """A piece of sequences, and the problem of finding the weights after it.

    Attributes
    ----------
    settings : ChainSettings
    piece : Examples
        The new sequences.
    posterior : Posterior or None
        What earlier ones left; None if these are the first.
    problem : ChainProblem
        Of the piece and, if it brings new labels, of earlier sequences, which did not have them.
    start : array
        The mean so far.
    """

    settings: ChainSettings
    piece: Examples
    posterior: Posterior | None
    problem: ChainProblem
    start: FloatArray

    @classmethod
    def of(cls, settings: ChainSettings, piece: Examples, posterior: Posterior | None) -> Update:
        """The next step, given what is known."""
        labels, data = piece.labels, piece.data
        forbidden = forbidden_tables(settings.forbidden, labels.classes)
        check_possible(labels, data.offsets, forbidden, piece.where)
        _warn_of_one_label(labels)
        batch = piece
        if posterior is None:
            inputs = ChainInputs.of(data, piece.weights, float(settings.l2), bool(settings.fit_intercept))
        else:
            inputs, batch = posterior.inputs, _with_absent_labels(piece, posterior)
        problem, start = _problem(settings, inputs, forbidden, piece, batch, posterior)
        return cls(settings, piece, posterior, problem, start)

    def posterior_at(self, solution: Solution) -> Learned:
        """Layout, mean and precision of all weights after the piece, in the solver's units."""
        point: Any = solution.point
        batch, mean, precision = self.problem.layout, np.array(solution.parameters), point.diagonal
        before = self.posterior
        if before is None:
            return Learned(batch, mean, precision)
        if self.problem.examples is not self.piece:
            # What earlier sequences say of weights that they were learned from is known already.
            own = self._precision_of_piece(before, batch, mean)
            own = np.where(np.isnan(own), self.problem.l2, own)
            precision = np.where(before.has(batch), own, precision)
        return Learned(batch, mean, precision).joined(before)

    def _precision_of_piece(self, posterior: Posterior, batch: ChainLayout, mean: FloatArray) -> FloatArray:
        """The precision at `mean` without the earlier sequences; NaN for weights that the piece does not have."""
        inputs, forbidden = self.problem.inputs, self.problem.forbidden
        alone, _ = _problem(self.settings, inputs, forbidden, self.piece, self.piece, posterior)
        point = alone.objective().at(batch.align(mean, alone.layout))
        return alone.layout.align(point.diagonal, batch, fill=np.nan)


def _problem(
    settings: ChainSettings,
    inputs: ChainInputs,
    forbidden: Forbidden,
    piece: Examples,
    batch: Examples,
    posterior: Posterior | None,
) -> tuple[ChainProblem, FloatArray]:
    """The problem of a batch of sequences, those of the piece among them, and the mean that earlier ones left.

    The piece decides which weights there are.
    """
    earlier = None if posterior is None else posterior.layout
    features = chain_features(settings, inputs, piece, earlier, batch.data)
    layout = inputs.layout(features, piece.labels.classes, piece.data.attributes)
    # A label that is nowhere has an intercept like any other weight: without a penalty it would have no end.
    seen = np.bincount(piece.labels.codes[piece.labels.codes >= 0], minlength=layout.n_labels) > 0
    mean, precision = np.zeros(layout.size), inputs.strengths(layout, settings.l2, 2, free=seen)
    if posterior is not None:
        mean = posterior.layout.align(posterior.mean, layout)
        precision = np.where(posterior.has(layout), posterior.layout.align(posterior.precision, layout), precision)
    # Half the precision times the squared distance to the mean, up to a constant, is a penalty and a linear term.
    return ChainProblem(batch, forbidden, inputs, features, layout, precision, linear=-precision * mean), mean


def _with_absent_labels(piece: Examples, posterior: Posterior) -> Examples:
    """The piece, and if it brings new labels earlier sequences, in which these were absent."""
    new = new_labels(posterior.layout, piece.labels)
    if not new.any():
        return piece
    if posterior.sample is None:
        _warn_of_lost_sequences(piece.labels.classes[new].tolist(), posterior.n_seen)
        earlier = stand_in(posterior.inputs, posterior.layout, piece.data)
    else:
        earlier = in_columns(posterior.sample, piece.data)
    if new.all() or not len(earlier):
        return piece
    return with_earlier(piece, earlier, new, posterior.n_seen)


def read_piece(
    X: Sequences,
    y: LabelSequences,
    classes: ArrayLike | None,
    lengths: Lengths,
    sample_weight: SampleWeight,
    posterior: Posterior | None,
    hashing: int | None,
) -> Examples:
    """New sequences, in columns and with codes of labels that continue those so far."""
    if posterior is None:
        data, known = read_training(X, lengths, hashing), _known_classes(classes, None, False)
        before = known
    else:
        earlier, data = posterior.layout, read_more(X, lengths, hashing, posterior)
        known = _known_classes(classes, earlier, posterior.fixed_classes)
        before = earlier.classes if known is None else known
    labels = labels_of(data, y, before, more=known is None)
    return Examples.of(data, labels, check_weights("sample_weight", sample_weight, len(data)))


def read_more(X: Sequences, lengths: Lengths, hashing: int | None, before: Posterior | None) -> SequenceData:
    """Sequences to learn from, in columns that begin with those of earlier ones."""
    if before is None:
        return read_training(X, lengths, hashing)
    return _extended_columns(read_training(X, lengths, hashing, before.numeric), before.layout)


def _known_classes(classes: Any, earlier: ChainLayout | None, fixed: bool) -> LabelArray | None:
    """The only labels that may come; None if there may be new ones."""
    check_label_text([] if classes is None else classes)
    if earlier is None:
        return None if classes is None else np.unique(classes)
    if classes is not None and not np.array_equal(np.unique(classes), earlier.classes):
        raise ValueError(f"classes {list(classes)} differ from those known so far, {earlier.classes.tolist()}")
    return earlier.classes if classes is not None or fixed else None


def _extended_columns(data: SequenceData, earlier: ChainLayout) -> SequenceData:
    """The data in columns that begin with those of an earlier layout."""
    if data.attributes is None or earlier.names is None:
        if (data.attributes is None) != (earlier.names is None) or data.X.shape[1] != earlier.n_columns:
            kind = "without names" if earlier.names is None else "with names"
            raise ValueError(f"X must have the {earlier.n_columns} attributes {kind} that the model began with")
        return data
    if data.kind == DENSE:
        check_names(data.attributes, earlier.names)
    index = AttributeIndex(earlier.names)
    X, columns = data.X, index.number(data.attributes)
    X = assemble(columns[X.indices], X.data, np.diff(X.indptr), index.size)
    return SequenceData.unchecked(X, data.offsets, data.labels, index.names, data.kind)


def _warn_of_one_label(labels: Labels) -> None:
    """A piece in which only one of several labels comes."""
    seen = np.unique(labels.codes)
    if len(seen) == 1 and seen[0] >= 0 and len(labels.classes) > 1 and len(labels.codes) > 1:
        label, known = labels.classes.tolist()[seen[0]], len(labels.classes)
        warn(
            f"all {len(labels.codes)} positions of this piece have the label {label!r}, one of {known} known ones: pieces "
            "of one label unlearn the others. Shuffle the sequences before they are cut into pieces",
            DataWarning,
        )


def _warn_of_lost_sequences(new: list[Any], count: int) -> None:
    warn(
        f"y brings the new label {new[0]!r} to a model that was copied or read from a file, which keep none of the {count} "
        "sequences it learned from: how strongly their having other labels speaks against it is only known roughly. Fit "
        "again, or go on with the model itself",
        DataWarning,
    )

"""Training of chains on data that arrive in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import DataWarning
from ...core.results import FloatArray, Status
from ...core.validation import check_weights
from ...core.warn import warn
from ...estimators.convergence import warn_if_short
from ...estimators.data import unchanged_on_failure
from ...estimators.labels import UNKNOWN, check_label_text
from ..data.forbidden import Forbidden, check_possible, forbidden_tables
from ..data.inputs import ChainInputs
from ..data.memory import in_columns, new_labels, remembered, stand_in, with_earlier
from ..data.sequences import DENSE, SequenceData, counting, labels_of, places, read_sequences
from ..data.weight_constraints import check_weight_constraints
from ..features.attributes import AttributeIndex, AttributeVectorizer, assemble
from ..features.layout import ChainLayout
from ..features.records import check_names


class ChainStreamingMixin:
    """`partial_fit` for a chain."""

    def partial_fit(
        self: Any, X: Any, y: Any = None, classes: Any = None, lengths: Any = None, sample_weight: Any = None
    ) -> Any:
        """Learn from more sequences, starting from what was learned before. Every call counts as new data.

        What the earlier sequences said is kept as a normal distribution of the weights: its mean is the current weights, its
        precision the curvature (`precision_`), one number per weight. The new weights minimise the loss of the new sequences
        plus half the precisions times the squared distances to the old weights: Laplace's approximation, again and again.
        The first call is the same as `fit`. A few large batches are better than many small ones. New attributes and labels
        get weights, unless attributes are hashed or `classes` was given. `min_frequency` counts within a call.

        That a new label was in none of the earlier sequences counts too: up to 500 of them, chosen at random, are kept for
        that. Copies and files have none; there each known attribute stands for itself.

        Parameters
        ----------
        X, y, lengths, sample_weight
            As in `fit`.
        classes : list of labels, optional
            All labels that will ever come, in the first call. Without it, every call may bring new ones.

        Examples
        --------
        >>> from partita import ChainCRF
        >>> model = ChainCRF(l2=0.1)
        >>> model = model.partial_fit([[["w:the"], ["w:cat"]]], [["D", "N"]])
        >>> model = model.partial_fit([[["w:a"], ["w:cat"], ["w:sat"]]], [["D", "N", "V"]])
        >>> model.predict([[["w:the"], ["w:cat"], ["w:sat"]]])
        [['D', 'N', 'V']]
        """
        with unchanged_on_failure(self):
            return self._partial_fit(X, y, classes, lengths, sample_weight)

    def _partial_fit(self: Any, X: Any, y: Any, classes: Any, lengths: Any, sample_weight: Any) -> Any:
        self._check_parameters()
        old = self._layout if hasattr(self, "parameters_") else None
        if self.l1 > 0.0 or (old is not None and self.precision_ is None):
            raise ValueError("partial_fit does not support l1 > 0; use fit, with warm_start=True to continue")
        if check_weight_constraints(self.constraints):
            raise ValueError("partial_fit does not support constraints; use fit, with warm_start=True to continue")
        if self.likelihood != "full" or self.budget is not None:
            raise ValueError(
                "partial_fit needs likelihood='full': the curvature of a composite likelihood does not say how much was "
                "learned; use fit, with warm_start=True to continue"
            )
        numeric = None if old is None else self._numeric
        data = read_sequences(X, lengths, AttributeVectorizer(hashing=self.hashing), fit=True, numeric=numeric)
        data = data if old is None else _extended(data, old)
        known = self._known_classes(classes, old)
        found = labels_of(data, y, old.classes if known is None and old is not None else known, more=known is None)
        weights = check_weights("sample_weight", sample_weight, len(data))
        data, weights, kept = counting(data, found, weights)
        labels: Any = data.labels
        if old is not None and (labels.codes == UNKNOWN).all():
            return self  # nothing is said about any label
        tables = forbidden_tables(self.forbidden, labels.classes)
        check_possible(labels, data.offsets, tables, places("y", data.offsets, kept))
        _warn_of_one_label(labels)
        inputs = self._inputs if old is not None else ChainInputs.of(data, weights, float(self.l2), bool(self.fit_intercept))
        piece = (data, labels, weights)
        if old is not None and new_labels(old, labels).any():
            piece = self._with_earlier(inputs, *piece, old)
        batch, objective, mean, precision = self._step(inputs, *piece, old, tables, data, labels)
        solution = self._minimize(objective, mean, [])
        warn_if_short(self, solution, held_out=False)
        values, firm = np.array(solution.parameters), solution.point.diagonal
        layout = batch
        if old is not None:
            known = old.align(np.ones(old.size), batch) > 0.0
            if piece[0] is not data:  # what earlier sequences say of weights that they were learned from is known already
                alone, objective, _, _ = self._step(inputs, data, labels, weights, old, tables, data, labels)
                own = alone.align(objective.at(batch.align(values, alone)).diagonal, batch, fill=np.nan)
                firm = np.where(known, np.where(np.isnan(own), precision, own), firm)
            layout = old.union(batch)
            changed = batch.align(np.ones(batch.size), layout) > 0.0
            before = inputs.to_solver(old) @ self.parameters_, self.precision_.astype(np.float64)
            values, firm = (
                np.where(changed, batch.align(after, layout), old.align(was, layout))
                for after, was in zip((values, firm), before, strict=True)
            )
        fixed = classes is not None or getattr(self, "fixed_classes_", False)
        count = getattr(self, "n_seen_", 0)
        self._kept = remembered(getattr(self, "_kept", None), count, data)
        self._store_layout(layout, inputs.to_user(layout) @ values, firm, inputs)
        interrupted = solution.status is Status.INTERRUPTED
        self._store_run(solution, solution.status if interrupted else Status.STREAM, tables, count + len(data))
        self.fixed_classes_ = fixed
        self.dev_scores_ = np.zeros(0)
        return self

    def _with_earlier(
        self: Any, inputs: ChainInputs, data: SequenceData, labels: Any, weights: FloatArray, old: ChainLayout
    ) -> tuple[SequenceData, Any, FloatArray]:
        """A piece with new labels, and earlier sequences, in which these were absent."""
        new, kept = new_labels(old, labels), getattr(self, "_kept", None)
        if kept is None:
            _warn_of_lost_sequences(labels.classes[new].tolist(), self.n_seen_)
        earlier = stand_in(inputs, old, data) if kept is None else in_columns(kept, data)
        if new.all() or not len(earlier):
            return data, labels, weights
        return with_earlier(data, labels, weights, earlier, new, self.n_seen_)

    def _step(
        self: Any,
        inputs: ChainInputs,
        data: SequenceData,
        labels: Any,
        weights: FloatArray,
        old: ChainLayout | None,
        tables: Forbidden,
        piece: SequenceData,
        found: Any,
    ) -> tuple[ChainLayout, Any, FloatArray, FloatArray]:
        """Layout and objective of sequences, and the mean and the precision that earlier ones left.

        Those of the `piece`, with their labels `found`, are new, and decide which weights there are.
        """
        features = self._features(inputs, piece, found, also=old, beside=data)
        batch = inputs.layout(features, found.classes, piece.attributes)
        # A label that never came has an intercept like any other weight: without a penalty it would have no end.
        came = np.bincount(found.codes[found.codes >= 0], minlength=batch.n_labels) > 0
        mean, precision = np.zeros(batch.size), inputs.strengths(batch, self.l2, 2, free=came)
        if old is not None:
            mean = old.align(inputs.to_solver(old) @ self.parameters_, batch)
            known = old.align(np.ones(old.size), batch) > 0.0
            precision = np.where(known, old.align(self.precision_.astype(np.float64), batch), precision)
        # The squared distance to `mean`, up to a constant, is a penalty and a linear term.
        objective = self._objective_of(features, labels, weights, tables, precision, linear=-precision * mean)
        return batch, objective, mean, precision

    def _known_classes(self: Any, classes: Any, old: ChainLayout | None) -> Any:
        """The only labels that may come; None if there may be new ones."""
        check_label_text([] if classes is None else classes)
        if old is None:
            return None if classes is None else np.unique(classes)
        if classes is not None and not np.array_equal(np.unique(classes), old.classes):
            raise ValueError(f"classes {list(classes)} differ from those known so far, {old.classes.tolist()}")
        return old.classes if classes is not None or self.fixed_classes_ else None


def _warn_of_one_label(labels: Any) -> None:
    """A piece in which only one of several labels comes."""
    came = np.unique(labels.codes)
    if len(came) == 1 and came[0] >= 0 and len(labels.classes) > 1 and len(labels.codes) > 1:
        label, known = labels.classes.tolist()[came[0]], len(labels.classes)
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


def _extended(data: SequenceData, old: ChainLayout) -> SequenceData:
    """The data in columns that begin with those of an earlier layout."""
    if data.attributes is None or old.names is None:
        if (data.attributes is None) != (old.names is None) or data.X.shape[1] != old.n_columns:
            kind = "without names" if old.names is None else "with names"
            raise ValueError(f"X must have the {old.n_columns} attributes {kind} that the model began with")
        return data
    if data.kind == DENSE:
        check_names(data.attributes, old.names)
    index = AttributeIndex(old.names)
    X, columns = data.X, index.number(data.attributes)
    X = assemble(columns[X.indices], X.data, np.diff(X.indptr), index.size)
    return SequenceData._make(X, data.offsets, data.labels, index.names, data.kind)

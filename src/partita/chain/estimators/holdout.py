"""Held-out sequences that tell when to stop the training of a chain."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.contracts.progress import Progress
from ...core.parallel import Workers
from ...core.results import FloatArray
from ...estimators.labels import Labels
from ..data.forbidden import Forbidden, check_possible
from ..data.inputs import ChainInputs
from ..data.sequences import ATTRIBUTES, SequenceData, labels_of, places, read_sequences
from ..features.layout import ChainLayout
from ..structure.chain import Chain
from .prediction import log_probabilities
from .weights import align_columns, packed, potentials, vectorizer_of


class Holdout:
    """A solver callback: keeps the parameters with the highest log-likelihood of held-out sequences."""

    def __init__(
        self, model: Any, data: SequenceData, labels: Labels, layout: ChainLayout, group: Any, tables: Forbidden
    ) -> None:
        self.data, self.labels, self.layout, self.group, self.tables = data, labels, layout, group, tables
        self.patience, self.workers = model.patience, Workers(model.n_jobs)
        lengths = data.lengths[data.lengths > 0]
        if not len(lengths):
            raise ValueError("X_dev has no sequence with a position")
        self.chain = Chain(layout.n_labels, lengths, model.n_jobs)
        self.scores: list[float] = []
        self.best: FloatArray | None = None
        self.stopped = False

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, lengths: Any, inputs: ChainInputs, layout: ChainLayout, group: Any, rules: Forbidden
    ) -> Holdout:
        """From sequences as users give them, read as those of training were."""
        vectorizer = vectorizer_of(*packed(layout.names), model.hashing)
        data = align_columns(read_sequences(X, lengths, vectorizer, fit=False, numeric=inputs.kind != ATTRIBUTES), layout)
        labels = labels_of(data, y, layout.classes)
        check_possible(labels, data.offsets, rules, places("y_dev", data.offsets))
        return cls(model, inputs.rows(data), labels, layout, group, rules)

    def __call__(self, progress: Progress) -> bool:
        scores = potentials(self.layout, progress.parameters[self.group], self.data, self.tables, self.workers)
        value = float(log_probabilities(self.chain, scores, self.labels).sum()) / len(scores[0])
        if not self.scores or value > max(self.scores):
            self.best = progress.parameters.copy()
        self.scores.append(value)
        self.stopped = len(self.scores) - 1 - int(np.argmax(self.scores)) >= self.patience
        return self.stopped

"""Held-out sequences that tell when to stop the training of a chain."""

from __future__ import annotations

import numpy as np

from ...core import Objective, Progress
from ...core.parallel import Workers
from ...core.results import FloatArray, Solution, Status
from ...estimators.labels import Labels, position_of
from ...objectives.composite.likelihood import AUTO, CompositeLikelihood
from ..data.forbidden import check_possible
from ..data.reading import Sequences, labels_of, read_sequences
from ..data.sequences import ATTRIBUTES, SequenceData
from ..data.types import LabelSequences, Lengths
from ..structure.chain import Chain
from .fitted_chain import vectorizer_of
from .problem import ChainProblem
from .scores import align_columns, log_probabilities, potentials


def check_held_out(
    X: Sequences | None, y: LabelSequences, composite: CompositeLikelihood | None, budget: float | None
) -> None:
    """Raise a ValueError unless there are held-out sequences with labels, or neither; what fits several times takes none."""
    if (X is None) != (y is None) and not isinstance(X, SequenceData):
        raise ValueError("X_dev and y_dev must be given together")
    if X is not None and budget is not None:
        raise ValueError("X_dev cannot be combined with a budget, which fits several times")
    if X is not None and composite is not None and composite.weights == AUTO:
        raise ValueError("X_dev cannot be combined with weights='auto', which fits several times; give the weights")


class Holdout:
    """A solver callback: keeps the parameters with the highest log-likelihood of held-out sequences.

    Parameters
    ----------
    problem : ChainProblem
        Of training.
    X, y, lengths
        The held-out sequences, as users give them; read as those of training were.
    hashing : int or None
        Of training.
    patience : int
        Iterations without improvement after which training stops.
    n_jobs : int or None

    Attributes
    ----------
    scores : list of float
        Mean log-likelihood of a position, by iteration.
    best : array or None
        The parameters with the highest one.
    stopped : bool
        Whether patience ran out.
    """

    problem: ChainProblem
    patience: int
    workers: Workers
    data: SequenceData
    chain: Chain

    def __init__(
        self,
        problem: ChainProblem,
        X: Sequences,
        y: LabelSequences,
        lengths: Lengths,
        *,
        hashing: int | None,
        patience: int,
        n_jobs: int | None,
    ) -> None:
        layout, inputs = problem.layout, problem.inputs
        read = read_sequences(
            *(X, lengths, vectorizer_of(layout.names, hashing)), fit=False, numeric=inputs.kind != ATTRIBUTES
        )
        data = align_columns(read, layout)
        self.labels: Labels = labels_of(data, y, layout.classes)
        check_possible(*(self.labels, data.offsets, problem.forbidden), lambda t: f"{position_of(t, data.offsets)} of y_dev")
        counts = data.lengths[data.lengths > 0]
        if not len(counts):
            raise ValueError("X_dev has no sequence with a position")
        self.problem, self.patience, self.workers = problem, patience, Workers(n_jobs)
        self.data, self.chain = inputs.rows(data), Chain(layout.n_labels, counts, n_jobs)
        self.scores: list[float] = []
        self.best: FloatArray | None = None
        self.stopped: bool = False

    def __call__(self, progress: Progress) -> bool:
        problem, weights = self.problem, self.problem.weights(progress.parameters)
        found = potentials(problem.layout, weights, self.data, problem.forbidden, self.workers)
        value = float(log_probabilities(self.chain, found, self.labels).sum()) / len(found[0])
        if not self.scores or value > max(self.scores):
            self.best = progress.parameters.copy()
        self.scores.append(value)
        self.stopped = len(self.scores) - 1 - int(np.argmax(self.scores)) >= self.patience
        return self.stopped

    def status(self, solution: Solution) -> Status:
        """Why training ended: an interrupt counts for more than patience."""
        return Status.STALLED if self.stopped and solution.status is not Status.INTERRUPTED else solution.status

    def chosen(self, solution: Solution, objective: Objective, scale: float) -> Solution:
        """The run with the best parameters as its end; `scale` is that of the gradients of its trace."""
        return solution if self.best is None else solution.at(objective.at(self.best), scale)

"""Which features pushed which label."""

from __future__ import annotations

import numpy as np

from ...core.results import FloatArray, IntArray
from ...report.explanation import Explanation, PositionExplanation, Push
from .fitted_chain import FittedChain
from .scores import ScoredSequences


def explain(fitted: FittedChain, scored: ScoredSequences, position: int | None = None) -> Explanation:
    """Why one sequence has the labels of its Viterbi labelling, at each position or at one."""
    length = int(scored.offsets[-1])
    if not length:
        return Explanation(())
    codes, P = scored.viterbi(), scored.marginals()
    chosen = range(length) if position is None else [position % length]
    return Explanation(tuple(_explain(fitted, scored, codes, P[t], t) for t in chosen))


def _explain(fitted: FittedChain, scored: ScoredSequences, codes: IntArray, p: FloatArray, t: int) -> PositionExplanation:
    """At position t, where labels have the probabilities p; the neighbours' labels are as predicted."""
    best, labels = int(codes[t]), fitted.labels
    others = np.where(np.arange(len(p)) == best, -1.0, p)
    second = int(others.argmax()) if len(p) > 1 else None

    def push(row: FloatArray) -> float:
        return float(row[best] - (0.0 if second is None else row[second]))

    pushes = [(name, push(row)) for name, row in _rows(fitted, scored, codes, t)]
    pushes = sorted((entry for entry in pushes if entry[1] != 0.0), key=lambda entry: -abs(entry[1]))
    return PositionExplanation(
        position=t,
        label=labels[best],
        runner_up=None if second is None else labels[second],
        probability=float(p[best]),
        runner_up_probability=0.0 if second is None else float(p[second]),
        pushes=tuple(Push(*entry) for entry in pushes),
    )


def _rows(fitted: FittedChain, scored: ScoredSequences, codes: IntArray, t: int) -> list[tuple[str, FloatArray]]:
    """What each feature of position t adds to the score of every label."""
    layout, X, labels = fitted.layout, scored.data.X, fitted.labels
    rows = []
    for q in range(X.indptr[t], X.indptr[t + 1]):
        j = int(X.indices[q])
        numbered = layout.names is None and j < layout.n_columns
        rows.append((f"attribute {j}" if numbered else str(layout.feature(j)), X.data[q] * fitted.state_weights.row(j)))
    A, last = scored.scores[1], len(codes) - 1
    if t > 0:
        rows.append((f"after {labels[codes[t - 1]]}", A[codes[t - 1]]))
    if t < last:
        rows.append((f"before {labels[codes[t + 1]]}", A[:, codes[t + 1]]))
    if layout.start_end:
        _, _, start, end = layout.parts(fitted.values)
        rows += [("first", start)] * (t == 0) + [("last", end)] * (t == last)
    return rows

"""Which features pushed which label."""

from __future__ import annotations

from ...core.results import FloatArray, IntArray
from ...report.explanation import Explanation, explained
from .fitted_chain import FittedChain
from .scores import ScoredSequences


def explain(fitted: FittedChain, scored: ScoredSequences, chosen: list[int]) -> Explanation:
    """Why positions of one sequence have the labels of its Viterbi labelling."""
    codes, P = scored.viterbi(), scored.marginals()
    return Explanation(
        tuple(explained(t, fitted.labels, P[t], _rows(fitted, scored, codes, t), int(codes[t])) for t in chosen)
    )


def _rows(fitted: FittedChain, scored: ScoredSequences, codes: IntArray, t: int) -> list[tuple[str, FloatArray]]:
    """What each feature of position t adds to the score of every label."""
    layout, labels = fitted.layout, fitted.labels
    rows = [(name, value * fitted.state_weights.row(j)) for name, j, value in attributes_at(fitted, scored, t)]
    A, last = scored.scores[1], len(codes) - 1
    if t > 0:
        rows.append((f"after {labels[codes[t - 1]]}", A[codes[t - 1]]))
    if t < last:
        rows.append((f"before {labels[codes[t + 1]]}", A[:, codes[t + 1]]))
    if layout.start_end:
        _, _, start, end = layout.parts(fitted.values)
        rows += [("first", start)] * (t == 0) + [("last", end)] * (t == last)
    return rows


def attributes_at(fitted: FittedChain, scored: ScoredSequences, t: int) -> list[tuple[str, int, float]]:
    """The attributes of position t: what they are called, their numbers and values."""
    layout, X = fitted.layout, scored.data.X
    out = []
    for q in range(X.indptr[t], X.indptr[t + 1]):
        j = int(X.indices[q])
        numbered = layout.names is None and j < layout.n_columns
        out.append((f"attribute {j}" if numbered else str(layout.feature(j)), j, float(X.data[q])))
    return out

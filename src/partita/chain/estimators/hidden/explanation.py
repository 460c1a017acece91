"""Which features pushed which label, where labels have hidden states.

The score of a label is then a sum over hidden states, ``log sum_h exp s_h``, which is what is expected of the score under
the states given the label, and their entropy: features have the shares that are expected, and the entropy is a row of its
own.
"""

from __future__ import annotations

import numpy as np

from ....core.results import FloatArray
from ....report.explanation import Explanation, explained
from ...structure.chain import Chain
from ..explanation import attributes_at
from ..fitted_chain import FittedChain
from ..scores import ScoredSequences


def explain_sequence(fitted: FittedChain, scored: ScoredSequences, log_p: FloatArray) -> Explanation:
    """Why one sequence has the label of the largest log-probability."""
    T, n, H = int(scored.offsets[-1]), len(fitted.classes), fitted.n_hidden
    (U, A), chain = scored.scores, Chain(H, [T], 1)
    rows: list[tuple[str, FloatArray]] = []
    shares, moves, entropy = np.zeros((T, n * H)), np.zeros(n), np.zeros(n)
    for c in range(n):
        block = slice(c * H, c * H + H)
        found = chain.infer((U[:, block], A[block, block]))
        P, C = found.marginals
        shares[:, block] = P
        moves[c] = float((C * A[block, block]).sum())
        entropy[c] = float(found.log_z[0]) - float((P * U[:, block]).sum()) - moves[c]
    known = np.zeros((T, n))
    for t in range(T):
        for name, j, value in attributes_at(fitted, scored, t):
            row = value * (shares[t] * fitted.state_weights.row(j)).reshape(n, H).sum(axis=1)
            known[t] += row
            rows.append((name, row))
    ends = (shares * U).reshape(T, n, H).sum(axis=2).sum(axis=0) - known.sum(axis=0)
    rows += [("order of hidden states", moves + ends), ("freedom of hidden states", entropy)]
    return Explanation((explained(0, fitted.labels, np.exp(log_p), rows, what="sequence"),))


def explain_positions(fitted: FittedChain, scored: ScoredSequences, positions: list[int]) -> Explanation:
    """Why positions of one sequence have their labels, the labels of others being as predicted."""
    T, n, H = int(scored.offsets[-1]), len(fitted.classes), fitted.n_hidden
    if not T:
        return Explanation(())
    (U, A), chain = scored.scores, Chain(n * H, [T], 1)
    P = fitted.label_marginals(scored)
    best = P.argmax(axis=1)
    inside = np.where(np.repeat(np.eye(n, dtype=bool)[best], H, axis=1), U, -np.inf)
    entries = []
    for t in positions:
        rows: list[tuple[str, FloatArray]] = []
        total, hidden = np.full(n, -np.inf), np.zeros((n, H))
        for c in range(n):
            own = inside.copy()
            own[t] = np.where(np.arange(n * H) // H == c, U[t], -np.inf)
            score = chain.kbest((own, A), 1)[1][0, 0] if (own[t] > -np.inf).any() else -np.inf
            if score > -np.inf:  # else that label is impossible beside the others
                found = chain.infer((own, A))
                total[c], hidden[c] = float(found.log_z[0]), found.marginals[0][t].reshape(n, H)[c]
        known = np.zeros(n)
        for name, j, value in attributes_at(fitted, scored, t):
            row = value * (hidden * fitted.state_weights.row(j).reshape(n, H)).sum(axis=1)
            known += row
            rows.append((name, row))
        rows.append(("neighbours and hidden states", total - known))
        entries.append(explained(t, fitted.labels, P[t], rows, int(best[t])))
    return Explanation(tuple(entries))

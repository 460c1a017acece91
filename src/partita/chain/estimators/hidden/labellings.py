"""The most probable labellings where every label has hidden states: latent-dynamic inference (Sun and Tsujii, 2009)."""

from __future__ import annotations

import numpy as np

from ....core.validation import check_count
from ....estimators.labels import encode_labels
from ...data.types import Label
from ..fitted_chain import FittedChain
from ..scores import ScoredSequences

#: Most probable paths of hidden states whose labellings are looked at, at most.
MOST_PATHS = 20_000


def best_labellings(fitted: FittedChain, scored: ScoredSequences, k: int) -> tuple[list[tuple[list[Label], float]], bool]:
    """At most k labellings of one sequence with their log-probabilities, best first; and whether they are surely the best.

    Labellings of the n most probable paths are summed up exactly. One that is not among them can have no more than what is
    left of the probability; n doubles until the k-th best has that, or nothing is left.
    """
    check_count("k", k, minimum=1)
    length = int(scored.offsets[-1])
    if not length:
        return [([], 0.0)], True
    known: dict[tuple[Label, ...], float] = {}
    n_paths = 2 * k
    while True:
        paths = scored.kbest(n_paths)[0]
        new = {tuple(label for label, _ in states): 0.0 for states, _ in paths}
        fresh = [labelling for labelling in new if labelling not in known]
        for labelling in fresh:
            labels = encode_labels([list(labelling)], scored.offsets, fitted.classes)
            known[labelling] = float(scored.log_probabilities(fitted.states_of(labels))[0])
        ranked = sorted(known.items(), key=lambda item: -item[1])[:k]
        left = 1.0 - float(np.exp(list(known.values())).sum())
        everything = len(paths) < n_paths
        certain = everything or (len(ranked) == k and np.exp(ranked[-1][1]) >= left)
        if certain or n_paths >= MOST_PATHS:
            return [(list(labelling), value) for labelling, value in ranked], certain
        n_paths *= 2

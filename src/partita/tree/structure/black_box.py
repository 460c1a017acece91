"""Trees as a black box: nothing is known but the best one.

log Z has the entropy of independent edges in place of the true one, unless the user names another: it is above log Z.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...inference.black_box import Example
from ...inference.entropies import IndependentEntropy


def tree_examples(structure: Any, weights: FloatArray) -> list[Example]:
    """Those of a `SpanningTree`, for a checked matrix of examples times edges."""
    one, several = IndependentEntropy(), len(weights) > 1
    return [
        Example(
            row,
            one,
            asked=np.copy,
            point=lambda y: structure.trees(y)[0].astype(np.float64),
            best=lambda scores: structure.best(scores[None])[0].astype(np.float64),
            name=f"example {i}" if several else "",
        )
        for i, row in enumerate(weights)
    ]


def sentence_examples(structures: list[Any], weights: list[FloatArray]) -> list[Example]:
    """Those of a `DependencyTrees` of one sentence each, with their checked potentials."""
    return [_sentence(one, row, f"sentence {i}") for i, (one, row) in enumerate(zip(structures, weights, strict=True))]


def _sentence(structure: Any, row: FloatArray, name: str) -> Example:
    def point(y: Any) -> FloatArray:
        chosen = np.zeros(structure.n_pairs)
        chosen[structure.chosen(y)] = 1.0
        return chosen

    return Example(row, IndependentEntropy(), np.copy, point, lambda scores: point(structure.argmax(scores)[0]), name)

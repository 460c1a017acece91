"""The weights of examples, without what a few of them have too much of."""

from __future__ import annotations

import numpy as np

from ..results import FloatArray

#: Part of the examples, the heaviest ones, that cannot loosen a tolerance, and how many times the weight of the lightest of
#: these an example may count there.
HEAVIEST, LARGEST = 0.1, 10.0


def held_down(weights: FloatArray) -> FloatArray:
    """The weights, none above ten times the weight that a tenth of the examples (and at least two) reach.

    Gradients are divided by the sum of these before they are compared with a tolerance. With the plain sum, an example of
    weight 1e9 makes the tolerance 1e9 times looser for all others, and a solver stops where nothing was learned from them.
    Equal weights, and any that differ by no more than a factor of ten, stay as they are; a common factor of all weights
    stays a common factor. A quantile high up is taken, not the median, because weights may nearly vanish for most examples
    (kernels, masks), and a tolerance for those alone could not be met in double precision.
    """
    top = float(weights.max(initial=0.0))
    if top <= LARGEST * float(weights.min(initial=top)):
        return weights
    positive = weights[weights > 0.0]
    place = min(len(positive), max(2, int(np.ceil(HEAVIEST * len(positive)))))
    limit = LARGEST * float(np.partition(positive, len(positive) - place)[len(positive) - place])
    return weights if top <= limit else np.minimum(weights, limit)

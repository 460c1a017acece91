"""A quadratic above log Z of any structure whose score is a sum over parts, from the marginals of the parts.

Let a_m(y_m) be what a direction adds to the score of part m in its state y_m, and c_m > 0 with ``sum_m c_m <= 1``. Hölder's
inequality bounds the change of log Z,

    log E exp(sum_m a_m(y_m)) <= sum_m c_m log E exp(a_m(y_m) / c_m),

and each term on the right is log Z of a softmax with the marginals of part m for probabilities, bounded by any quadratic for
those: ``S_m / c_m`` in the scores of the part. The sum touches log Z with its gradient, whatever the parts are: factors of a
graph, heads of the words of a sentence, partners of the vertices of a graph. It is loose by about the number of parts that
are uncertain, as it must be where all may change together; c_m goes with the root of the trace of S_m, which minimises the
trace of the whole, so that parts that are certain count for little.
"""

from __future__ import annotations

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...numerics import curvature as kernels

#: Probabilities below this may be rounding. A larger one gives a larger curvature, so that the bound holds.
LEAST = 1e-15
#: The forms of curvature that blocks may have; the orders of Algorithm 1 have none, and stand for the proved one.
FORMS = {"bohning": kernels.BOHNING, "symmetric": kernels.SYMMETRIC}
#: The conjectured factor of the symmetric bound (see `softmax.bounds.potential`).
SYMMETRIC_FACTOR = 10.0 / 9.0


class BlockCurvature:
    """``diag(D) - D D' / sum(D)`` for blocks of entries that lie together.

    Parameters
    ----------
    D : array
    top : array of int
        Of each block, the place of its largest entry within it.
    offsets : array of int
        Where each block begins, and where the last ends.
    """

    def __init__(self, D: FloatArray, top: IntArray, offsets: IntArray, workers: Workers) -> None:
        self.D, self.top, self.offsets, self.workers = D, top, offsets, workers

    def product(self, v: FloatArray) -> FloatArray:
        """S v, in the shape of v."""
        out = np.array(v, dtype=np.float64).ravel()
        ranges = Workers.balanced(self.offsets, 6.0 * out.size)
        self.workers.run(
            kernels.ragged_rank_one_product, [(self.D, self.top, self.offsets, lo, hi, out) for lo, hi in ranges]
        )
        return out.reshape(v.shape)

    @property
    def others(self) -> FloatArray:
        """Of each block the sum of D without its largest: half of the trace of the block, up to a factor of two."""
        rest = self.D.copy()
        rest[self.offsets[:-1] + self.top] = 0.0
        return np.asarray(np.add.reduceat(rest, self.offsets[:-1]))

    def diagonal(self) -> FloatArray:
        """Numbers above the diagonal: D, and for the largest of a block the sum of the others."""
        out = self.D.copy()
        places = self.offsets[:-1] + self.top
        out[places] = np.minimum(out[places], self.others)
        return out

    def scaled(self, factors: FloatArray) -> BlockCurvature:
        """The same with every block times a factor. Blocks of one state, whose D may be inf, have no curvature anyway."""
        each = np.repeat(factors, np.diff(self.offsets))
        D = np.multiply(self.D, each, out=np.zeros_like(each), where=each > 0.0)
        return BlockCurvature(D, self.top, self.offsets, self.workers)


def softmax_blocks(
    probabilities: FloatArray, offsets: IntArray, kind: str, workers: Workers, possible: np.ndarray | None = None
) -> BlockCurvature:
    """Curvatures of `kind` above log Z of one softmax for each block of probabilities; no block is empty.

    States that are not `possible` have none; by default all are.
    """
    log_p = np.log(np.maximum(np.ascontiguousarray(probabilities, dtype=np.float64).ravel(), LEAST))
    if possible is not None:
        log_p[~possible.ravel()] = -np.inf
    count = len(offsets) - 1
    D, top, ones = np.empty_like(log_p), np.zeros(count, np.int64), np.ones(count)
    factor = 1.0 if np.diff(offsets).max(initial=2) == 2 else SYMMETRIC_FACTOR
    given = (FORMS.get(kind, kernels.SYMMETRIC_PROVED), factor, log_p, offsets, ones)
    ranges = Workers.balanced(offsets, 30.0 * log_p.size)
    workers.run(kernels.rank_one_weights, [(*given, lo, hi, D, top) for lo, hi in ranges])
    return BlockCurvature(D, top, offsets, workers)


def shares(sizes: FloatArray, examples: IntArray, n_examples: int) -> FloatArray:
    """c of each part, which sum to one over the parts of an example, by the traces of their curvatures."""
    roots = np.sqrt(sizes)
    total = np.bincount(examples, weights=roots, minlength=n_examples)[examples]
    return np.divide(roots, total, out=np.zeros_like(roots), where=total > 0.0)


def joined(blocks: BlockCurvature, examples: IntArray, weights: FloatArray) -> BlockCurvature:
    """Hölder's bound: the blocks of each example over their shares, times its weight."""
    c = shares(blocks.others, examples, len(weights))
    return blocks.scaled(np.divide(weights[examples], c, out=np.zeros_like(c), where=c > 0.0))


class PlacedBlocks:
    """Blocks whose entries are potentials at some places; place -1 is a state without one, whose score is constant.

    Parameters
    ----------
    blocks : BlockCurvature
    places : array of int
        For each entry of the blocks.
    """

    def __init__(self, blocks: BlockCurvature, places: IntArray) -> None:
        self.blocks, self.places = blocks, places
        self._real = places >= 0

    def product(self, v: FloatArray) -> FloatArray:
        """S v for potentials of any shape."""
        flat = np.where(self._real, v.ravel()[np.maximum(self.places, 0)], 0.0)
        return self._collect(self.blocks.product(flat), v.size).reshape(v.shape)

    def diagonal(self, size: int) -> FloatArray:
        """See `BlockCurvature.diagonal`."""
        return self._collect(self.blocks.diagonal(), size)

    def _collect(self, values: FloatArray, size: int) -> FloatArray:
        real = self._real
        return np.asarray(np.bincount(self.places[real], weights=values[real], minlength=size), dtype=np.float64)

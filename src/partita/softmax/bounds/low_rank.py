"""Low-rank quadratics above those of softmax likelihoods; see `objectives.bounds.low_rank` for the ways to make them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.contracts.capabilities import LowRankModel
from ...core.results import FloatArray
from ...objectives.bounds.low_rank import LowRank, low_rank_quadratic
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import SparseLinear
from .potential import PotentialCurvature
from .quadratic import Quadratic

#: Numbers in one block of expanded outer-product roots.
BLOCK_NUMBERS = 4_000_000


def outer_roots(features: LinearMap | LabelFeatures, potential: PotentialCurvature) -> Any:
    """Blocks of rows r with ``A' S A = sum r r'``, n - 1 rows for an example with n labels."""
    roots, examples = potential.roots()
    numbers = features.size
    if isinstance(features, SparseLinear):
        numbers = features.n_outputs * (1 + features.nnz // max(1, features.n_examples))
    step = max(1, BLOCK_NUMBERS // numbers)
    for lo in range(0, len(roots), step):
        yield features.outer(examples[lo : lo + step], roots[lo : lo + step])


def low_rank_model(
    quadratic: Quadratic, rank: int, method: str = "lanczos", allow_invalid: bool = False, start: LowRankModel | None = None
) -> LowRank:
    """A low-rank quadratic above a dense one (which is never formed), from its potential curvature.

    Parameters
    ----------
    quadratic : Quadratic
        The dense bound (or Hessian).
    rank : int
        Rows of V.
    method : str
        See `partita.objectives.bounds.low_rank`.
    start : LowRankModel, optional
        A model at a point nearby, whose directions are a good start for block Lanczos.
    """
    q = quadratic
    bare = Quadratic(q.features, q.potential, np.zeros_like(q.penalty), q.center, 0.0, q.gradient0, q.is_bound)

    def data(block: FloatArray) -> FloatArray:
        if isinstance(q.features, LinearMap):
            return q.features.curvature_block(q.potential.product, block)
        return np.column_stack([bare.matvec(np.ascontiguousarray(column)) for column in block.T])

    def roots() -> Any:
        return outer_roots(q.features, q.potential)

    trace = bare.trace() if method == "lanczos" else np.inf
    return low_rank_quadratic(q, data, q.penalty, rank, method, allow_invalid, start, roots=roots, trace=trace)

"""Trees as a black box: nothing is known but the best one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray, Result, Status
from ...core.warn import report
from ...inference.entropies import Entropy, IndependentEntropy
from ...inference.parts import Parts, infer_parts


def tree_frank_wolfe(
    structure: Any,
    weights: FloatArray,
    oracle: Any = None,
    entropy: Entropy | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> Result:
    """log Z with an entropy in place of the true one (default: that of independent edges, which is above it), through best
    trees only, for a checked matrix of examples times edges."""
    if not np.isfinite(weights).all():
        raise ValueError("Frank-Wolfe takes finite potentials: leave forbidden edges out of the graph")
    solver = (lambda scores: structure.best(scores[None])[0]) if oracle is None else oracle
    measure = IndependentEntropy() if entropy is None else entropy
    found = [infer_parts(Parts(weights.shape[1], solver), row, measure, tol, max_iter) for row in weights]
    gap = np.concatenate([one.gap for one in found])
    status = Status.CONVERGED if (gap <= tol).all() else Status.UNCERTIFIED
    report("engine frank_wolfe", status)
    return Result(
        np.concatenate([one.log_z for one in found]),
        np.concatenate([one.marginals for one in found]),
        status,
        exact=False,
        lower=np.concatenate([np.asarray(one.lower) for one in found]),
        upper=np.concatenate([np.asarray(one.upper) for one in found]),
        n_iter=max(one.n_iter for one in found),
        engine="frank_wolfe",
        certificate=gap,
        residual=float(gap.max()),
        tol=tol,
    )

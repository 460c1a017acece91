"""Trees drawn by Hypothesis, and answers about them by enumeration in sixty digits."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
from hypothesis import strategies as st

from partita.tree import SpanningTree

DIGITS = 60


@dataclass(frozen=True)
class Case:
    """A structure with a tree at least, potentials of one example, and a direction."""

    structure: SpanningTree
    potentials: np.ndarray
    direction: np.ndarray


@dataclass(frozen=True)
class Exact:
    """log Z, marginals and covariances with a direction, and the scores of all trees."""

    log_z: float
    marginals: np.ndarray
    product: np.ndarray
    trees: np.ndarray
    probabilities: np.ndarray
    best: float


@st.composite
def cases(draw, kinds=("undirected", "directed", "single")):
    """Graphs of up to six vertices, some edges missing and some forbidden, with weights near each other or far apart."""
    kind = draw(st.sampled_from(kinds))
    n = draw(st.integers(2, 6 if kind == "undirected" else 5))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    root = draw(st.integers(0, n - 1))
    complete = SpanningTree(n, directed=kind != "undirected", root=root)
    edges = complete.edges
    if draw(st.booleans()):
        edges = rng.permutation(edges[rng.random(len(edges)) < 0.8])
    structure = SpanningTree(n, edges, kind != "undirected", root, kind == "single", n_jobs=1)
    spread = draw(st.sampled_from([0.0, 1.0, 30.0, 300.0, 1500.0]))
    potentials = spread * rng.standard_normal(len(edges)) + draw(st.sampled_from([0.0, 700.0, -2000.0]))
    if draw(st.booleans()):
        potentials = np.rint(potentials)  # ties
    potentials[rng.random(len(edges)) < draw(st.sampled_from([0.0, 0.0, 0.2]))] = -np.inf
    return Case(structure, potentials, rng.standard_normal(len(edges)))


def exact(case: Case) -> Exact | None:
    """By enumeration; None if there is no tree that is allowed."""
    trees = case.structure.enumerate()
    allowed = trees[~(trees[:, case.potentials == -np.inf] == 1).any(1)]
    if not len(allowed):
        return None
    with localcontext() as context:
        context.prec = DIGITS
        weights = [Decimal(float(s)).exp() if s > -np.inf else Decimal(0) for s in case.potentials]
        slopes = [Decimal(float(v)) for v in case.direction]
        each, change = [], []
        for y in allowed:
            total, slope = Decimal(1), Decimal(0)
            for e in np.flatnonzero(y).tolist():
                total, slope = total * weights[e], slope + slopes[e]
            each.append(total)
            change.append(slope)
        z = sum(each)
        mean = sum((w * c for w, c in zip(each, change, strict=True)), Decimal(0)) / z
        marginals, product = np.zeros(len(weights)), np.zeros(len(weights))
        for e in range(len(weights)):
            own = np.flatnonzero(allowed[:, e]).tolist()
            marginals[e] = sum((each[k] for k in own), Decimal(0)) / z
            product[e] = sum((each[k] * (change[k] - mean) for k in own), Decimal(0)) / z
        log_z = float(z.ln())
        probabilities = np.array([float(w / z) for w in each])
    scores = np.where(allowed == 1, case.potentials, 0.0).sum(1)
    return Exact(log_z, marginals, product, allowed, probabilities, float(scores.max()))

"""Quadratics above sums of log Z: never below them, touching them, and majorization with them arrives at the optimum."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from partita import CompositeLikelihood, Majorize, minimize
from partita.chain.bounds import SharedCurvature
from partita.chain.features.chain import ChainFeatures
from partita.chain.structure.forbidden import Forbidden
from partita.core import Capability
from partita.core.contracts import BOUNDS
from partita.core.parallel import Workers
from partita.features import TableType, TiedTables
from partita.graph.objective.composite import GraphComposite
from partita.objectives import ChainLikelihood, GraphLikelihood
from partita.objectives.bounds.blocks import joined, softmax_blocks
from partita.structures import FactorGraph

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))
from zoo import OBJECTIVES

#: Objectives of the zoo whose quadratics are made of marginals, or of forward messages.
NAMES = (
    *("chains", "chains, tied weights", "chains, unknown labels", "chains, composite", "boltzmann chains"),
    *("graphs", "graphs, unknown states", "graphs, reweighted", "graphs, composite"),
    *("matchings, exact", "trees", "trees, unknown heads"),
)
PLACES, MOVES = 4, 12


def check_above(objective, rng, places=PLACES, moves=MOVES, spread=1.0):
    """Quadratics of all kinds and forms touch the objective, and are above it near and far; returns how many checks."""
    count = 0
    for _ in range(places):
        point = objective.at(rng.standard_normal(objective.size) * 10.0 ** rng.uniform(-1.5, spread))
        models = [point.model(kind) for kind in BOUNDS]
        models += [point.low_rank_model("symmetric", 2, method, False, None) for method in ("lanczos", "exact", "corrected")]
        models += [point.bound_model(kind) for kind in ("bohning", "symmetric")]
        for model in models:
            assert model.is_bound
            assert model.value(point.parameters) == pytest.approx(point.value, rel=1e-12)
            np.testing.assert_array_equal(model.gradient0, point.gradient)
        for _ in range(moves):
            theta = point.parameters + rng.standard_normal(objective.size) * 10.0 ** rng.uniform(-2.0, 1.3)
            value = objective.at(theta).value
            slack = 1e-9 * (1.0 + abs(value) + abs(point.value))
            for model in models:
                assert model.value(theta) >= value - slack
                count += 1
    return count


@pytest.mark.parametrize("name", NAMES)
def test_quadratics_are_above_the_objective(name, rng):
    assert check_above(OBJECTIVES[name](), rng) == PLACES * MOVES * (len(BOUNDS) + 5)


def grid_features(graph, rng, d=5):
    """Weights of every factor have parts in all of a few parameters."""
    groups = {}
    for k, size in enumerate(np.diff(graph.offsets).tolist()):
        groups.setdefault(size, []).append(k)
    kinds = [
        TableType(
            np.array(factors),
            features=np.eye(len(factors)),
            basis=np.eye(size),
            parameters=rng.integers(0, d, (len(factors), size)),
        )
        for size, factors in groups.items()
    ]
    return TiedTables(graph, kinds, size=d)


def random_graph(rng):
    """A union of two graphs of a few variables each, with tables of up to three."""
    sizes = rng.integers(3, 6, 2)
    counts, factors, first = rng.integers(2, 4, sizes.sum()), [], 0
    for size in sizes.tolist():
        factors += [(first + v,) for v in range(size)]
        for _ in range(size + 1):
            factors.append(tuple(np.sort(first + rng.choice(size, rng.integers(2, 4), replace=False)).tolist()))
        first += size
    return FactorGraph(counts, factors, examples=np.repeat([0, 1], sizes))


@pytest.mark.parametrize("engine", ["exact", "trw"])
def test_random_graphs_with_weights_and_tables_of_three(engine, rng):
    checks = 0
    for _ in range(6):
        graph = random_graph(rng)
        y = np.array([rng.integers(0, c) for c in graph.cardinalities])
        options = {"tol": 1e-11, "max_iter": 20_000} if engine == "trw" else {}
        objective = GraphLikelihood(
            grid_features(graph, rng), y, weights=[0.3, 2.5], penalty=0.1, engine=engine, options=options
        )
        checks += check_above(objective, rng, places=2, moves=8, spread=0.3)
    assert checks > 1000


def test_forbidden_entries_of_tables(rng):
    graph = FactorGraph.grid(2, 3)
    base = np.zeros(graph.size)
    pairs = np.flatnonzero(np.diff(graph.offsets) == 4)
    base[graph.offsets[pairs[:3]] + 3] = -np.inf  # not both in their second state
    objective = GraphLikelihood(
        grid_features(graph, rng), np.zeros((3, 6), int), weights=[1.0, 0.5, 2.0], penalty=0.3, base=base
    )
    check_above(objective, rng)


def test_a_mixture_of_exact_and_reweighted_examples(rng):
    """Counting numbers are those of the part that is reweighted."""
    small = [(0, 1), (1, 2), (2,)]
    wide = [(3 + a, 3 + b) for a in range(7) for b in range(a)]
    graph = FactorGraph([2] * 10, [*small, *wide], examples=[0] * 3 + [1] * 7)
    options = {"memory_limit": 700.0, "tol": 1e-9, "max_iter": 5000}
    objective = GraphLikelihood(grid_features(graph, rng), np.zeros(10, int), penalty=0.2, options=options)
    assert objective.engine == "mixed"
    check_above(objective, rng, places=2, moves=6, spread=-0.5)


def test_composites_with_sets_that_get_a_junction_tree(rng):
    graph = FactorGraph.grid(3, 4)
    objective = GraphComposite(
        grid_features(graph, rng), rng.integers(0, 2, (5, 12)), CompositeLikelihood({1: 1.0, "full": 0.5}), penalty=0.1
    )
    assert objective.sets.tree is not None
    check_above(objective, rng)


def chain_objective(rng, n=3, lengths=(1, 4, 7, 2), weights=None, forbidden=None, d=6):
    """Chains with a few dense attributes; a weight for each attribute and label, and for each transition."""
    import scipy.sparse as sp

    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_matrix(rng.standard_normal((offsets[-1], d)))
    attribute, label = np.divmod(np.arange(d * n), n)
    features = ChainFeatures(X, offsets, n, attribute, label, np.argwhere(np.ones((n, n))), starts=True, ends=True)
    return ChainLikelihood(
        features, np.zeros(offsets[-1], int), weights=weights, forbidden=forbidden, penalty=0.2, workers=Workers(1)
    )


def shared(objective, theta, kind="symmetric"):
    """The curvature as a matrix in the scores (U, A), flat."""
    point = objective.at(theta)
    U, A = point.scores
    found = SharedCurvature(U, A, objective.features.offsets, objective.weights, kind, Workers(1))

    def column(unit):
        dU, dA = found.product(unit[: U.size].reshape(U.shape), unit[U.size :].reshape(A.shape))
        return np.concatenate([dU.ravel(), dA.ravel()])

    return point, np.column_stack([column(unit) for unit in np.eye(U.size + A.size)])


def test_the_shared_curvature_is_symmetric_and_above_the_hessian(rng):
    """In all scores, not only where features reach; the ratio of traces does not grow with the length."""
    for n, length in ((2, 5), (3, 12), (5, 4)):
        objective = chain_objective(rng, n, (length, 1), weights=[1.5, 0.5])
        for kind in ("symmetric", "bohning"):
            point, K = shared(objective, rng.standard_normal(objective.size), kind)
            np.testing.assert_allclose(K, K.T, atol=1e-12)
            U, A = point.scores
            H = np.column_stack(
                [
                    np.concatenate(
                        [
                            part.ravel()
                            for part in point.sums.product(unit[: U.size].reshape(U.shape), unit[U.size :].reshape(A.shape))
                        ]
                    )
                    for unit in np.eye(len(K))
                ]
            )
            assert np.linalg.eigvalsh(K - 0.5 * (H + H.T))[0] > -1e-9
    ratios = []
    for length in (10, 80):
        objective = chain_objective(rng, 3, (length,))
        _, K = shared(objective, np.zeros(objective.size))
        ratios.append(np.trace(K[: 3 * length, : 3 * length]) / (length * 3 * (1 / 3) * (2 / 3)))
    assert ratios[1] < 1.2 * ratios[0] < 12.0


def test_chains_with_forbidden_transitions_ties_of_examples_and_weights(rng):
    forbidden = Forbidden(np.array([[False, True, False], [False, False, True], [False, False, False]]), None, None)
    objective = chain_objective(rng, lengths=(3, 3, 1, 6), weights=[0.1, 7.0, 1.0, 0.0], forbidden=forbidden)
    check_above(objective, rng, places=2)


def test_scores_that_underflow_keep_their_curvature(rng):
    """Labels of probability zero to working precision still bend the curve: far away they may be the likeliest."""
    objective = chain_objective(rng, n=3, lengths=(4, 2))
    for scale in (300.0, 3000.0):
        theta = scale * rng.standard_normal(objective.size)
        model = objective.at(theta).bound_model("symmetric")
        for step in (0.3, 1.0, 1.7, 2.0):
            there = theta * (1.0 - step)
            value = objective.at(there).value
            assert model.value(there) >= value - 1e-9 * abs(value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("solver", [Majorize(), Majorize(rank=2), Majorize("bohning", None)], ids=lambda s: s.name)
def test_majorization_never_rises_and_arrives(name, solver):
    objective = OBJECTIVES[name]()
    plain = solver.acceleration is None
    solution = minimize(objective, solver=solver, tol=1e-6, max_iter=20 if plain else 3000)
    values = solution.trace.objective
    assert np.all(np.diff(values) <= 1e-12 * np.abs(values[:-1]))
    assert len(values) > 2
    if not plain:
        assert solution.status.ok
    if objective.convex and not plain:
        best = minimize(objective, solver="lbfgs", tol=1e-8).value
        assert solution.value == pytest.approx(best, rel=1e-6)


def test_shares_that_minimise_the_trace(rng):
    """Parts that are certain leave the others their share."""
    p = np.array([0.5, 0.5, 1.0 - 1e-12, 1e-12, 0.3, 0.7])
    offsets = np.array([0, 2, 4, 6])
    blocks = softmax_blocks(p, offsets, "symmetric", Workers(1))
    together = joined(blocks, np.zeros(3, int), np.ones(1))
    each = np.array(
        [
            np.trace(np.column_stack([together.product(u) for u in np.eye(6)])[lo:hi, lo:hi])
            for lo, hi in ((0, 2), (2, 4), (4, 6))
        ]
    )
    alone = blocks.others
    np.testing.assert_allclose(each.sum(), 2.0 * np.sqrt(alone).sum() ** 2, rtol=0.5)
    assert each.sum() < 3.0 * 2.0 * alone.sum()


def test_bounds_that_do_not_exist_are_not_offered():
    graph = FactorGraph.grid(2, 2)
    features = grid_features(graph, np.random.default_rng(0))
    for engine in ("bp", "mean_field"):
        objective = GraphLikelihood(features, np.zeros(4, int), penalty=1.0, engine=engine)
        assert Capability.QUADRATIC_BOUND not in objective.capabilities

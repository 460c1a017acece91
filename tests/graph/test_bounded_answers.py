"""Answers are finite and within what tables alone say, or refused: zeros in tables, circuits, networks, huge weights."""

from __future__ import annotations

import numpy as np
import pytest
from enumeration import choices

from partita.core import Status
from partita.graph.structure.trivial_bounds import trivial_bounds
from partita.structures import BipartiteMatching, FactorGraph, Matching

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def zeros_and_ones(seed, n=5, n_factors=7):
    """Binary variables, and tables that forbid a quarter of their entries."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph(
        [2] * n, [tuple(rng.choice(n, rng.integers(2, 4), replace=False).tolist()) for _ in range(n_factors)]
    )
    return graph, np.where(rng.random(graph.size) < 0.75, 0.0, -np.inf)


#: Each of them gave between 3e4 and 4e39, of either sign: messages doubled in every sweep.
DIVERGED = (125, 450, 611, 664, 707, 725, 944, 1066, 1172, 1191, 1195, 1249, 2015)


@pytest.mark.parametrize("schedule", ["sequential", "parallel", "residual"])
@pytest.mark.parametrize("seed", DIVERGED)
def test_messages_that_diverge_end_where_they_lead(seed, schedule):
    graph, potentials = zeros_and_ones(seed)
    exact = graph.log_partition(potentials, "exact")[0]
    found = graph.infer(potentials, "bp", schedule=schedule)
    assert found.status is Status.CONVERGED
    assert found.residual <= found.tol
    assert abs(found.log_z[0] - exact) < 0.75  # a Bethe value of the same size, not a power of two
    assert found.log_z[0] == pytest.approx(found.free_energy[0], abs=1e-9)  # nothing had to be clipped
    for v, p in enumerate(graph.variable_marginals(found.marginals)):
        assert p.sum() == pytest.approx(1.0, abs=1e-9), v


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_zeros_in_tables_never_leave_the_trivial_bounds(first):
    for seed in range(first, first + 100):
        graph, potentials = zeros_and_ones(seed, n=6, n_factors=9)
        try:
            exact = graph.log_partition(potentials, "exact")[0]
        except ValueError:
            continue
        for engine, options in (("bp", {}), ("bp", {"max_iter": 3}), ("trw", {"max_iter": 50}), ("mean_field", {})):
            found = graph.infer(potentials, engine, **options)
            assert found.upper[0] <= 6 * np.log(2.0) + 1e-12
            assert found.lower[0] <= exact + 1e-9
            assert found.upper[0] >= exact - 1e-9
            if found.knows_log_z:
                assert found.lower[0] <= found.log_z[0] <= found.upper[0]


def circuit(n, seed, n_in, observe, fan, window, kinds):
    """Gates of a random circuit as tables whose last variable is the output, given the states of some gates."""
    rng = np.random.default_rng(seed)
    gates = {"and": all, "or": any, "xor": lambda x: sum(x) % 2, "nand": lambda x: not all(x), "nor": lambda x: not any(x)}
    factors, tables, states = [], [], []
    for v in range(n):
        if v < n_in:
            factors.append((v,))
            tables.append(np.array([0.5, 0.5]))
            continue
        k = min(int(rng.integers(1, fan + 1)), v)
        near = np.arange(max(0, v - window), v)
        parents = rng.choice(near, k, replace=False) if len(near) >= k else np.arange(v)[:k]
        gate = gates[kinds[rng.integers(len(kinds))]]
        table = np.zeros((2,) * (len(parents) + 1))
        for inputs in map(tuple, choices([2] * len(parents)).tolist()):
            table[(*inputs, int(gate(inputs)))] = 1.0
        factors.append((*parents.tolist(), v))
        tables.append(table)
    for v in range(n):
        states.append(
            int(rng.integers(2)) if v < n_in else int(tables[v][tuple(states[p] for p in factors[v][:-1])].argmax())
        )
    known = {int(v): states[v] for v in rng.choice(np.arange(n_in, n), observe, replace=False)}
    with np.errstate(divide="ignore"):
        potentials = np.log(np.concatenate([table.ravel() for table in tables]))
    graph = FactorGraph([2] * n, factors)
    given, index = graph.condition(known)
    return given, potentials[index]


def test_the_bound_of_a_circuit_is_not_a_million():
    """The upper bound was 249,985 nats; tables of probabilities allow no more than 0."""
    graph, potentials = circuit(99, 50, 6, 1, 3, 11, ("and", "xor"))
    for options in ({}, {"schedule": "parallel", "max_iter": 100}):
        found = graph.infer(potentials, "trw", lower=False, **options)
        assert found.upper[0] <= 1e-12
        assert found.log_z[0] <= found.upper[0]
        assert found.free_energy[0] < 1000.0


def test_a_circuit_of_751_variables():
    graph, potentials = circuit(751, 2, 60, 5, 3, 80, ("and", "or", "xor", "nand"))
    found = graph.infer(potentials, "trw", max_iter=30)
    assert np.isfinite(found.lower[0])
    assert found.lower[0] <= found.log_z[0] <= found.upper[0] <= 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_trivial_bounds_hold_for_any_tables(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, 5)
    scopes = [tuple(rng.choice(5, rng.integers(0, 4), replace=False).tolist()) for _ in range(rng.integers(0, 7))]
    graph = FactorGraph(counts, scopes)
    potentials = 3.0 * rng.standard_normal((3, graph.size))
    if seed % 2:
        potentials[rng.random(potentials.shape) < 0.1] = -np.inf
    lower, upper = trivial_bounds(graph, potentials)
    for row, low, high in zip(potentials, lower, upper, strict=True):
        try:
            exact = graph.log_partition(row, "exact")[0]
        except ValueError:
            continue
        assert low <= exact + 1e-12
        assert exact <= high + 1e-12
        entries = sum(table.max() for table in graph.tables(row)) + np.log(counts).sum()
        assert high <= entries + 1e-9


def test_trivial_bounds_of_a_union_are_those_of_its_examples(rng):
    graphs = [FactorGraph.grid(2, 2), FactorGraph([3, 2], [(1, 0)]), FactorGraph([4], [])]
    union = FactorGraph.union(graphs)
    parts = [rng.standard_normal((2, graph.size)) for graph in graphs]
    both = trivial_bounds(union, np.concatenate(parts, axis=1))
    for side, whole in zip(range(2), both, strict=True):
        apart = np.column_stack([trivial_bounds(graph, part)[side] for graph, part in zip(graphs, parts, strict=True)])
        np.testing.assert_allclose(whole.reshape(2, 3), apart, rtol=1e-12)


def network(rng, n=9):
    """Random conditional tables, with the child as the last variable and parents in no particular order."""
    order = rng.permutation(n)
    factors, tables = [], []
    for i, v in enumerate(order):
        parents = rng.choice(order[:i], min(i, int(rng.integers(0, 4))), replace=False).tolist()
        table = rng.dirichlet(np.full(3, 0.1), (3,) * len(parents))
        factors.append((*map(int, parents), int(v)))
        tables.append(table.ravel())
    with np.errstate(divide="ignore"):
        return FactorGraph([3] * n, factors), np.log(np.concatenate(tables))


@pytest.mark.parametrize("seed", range(10))
def test_the_probability_of_evidence_is_at_most_one(seed):
    rng = np.random.default_rng(seed)
    graph, potentials = network(rng)
    given, index = graph.condition({0: 1, 4: 2, 7: 0})
    exact = given.log_partition(potentials[index])[0]
    for engine, options in (("bp", {}), ("trw", {"max_iter": 5}), ("mean_field", {}), ("gibbs", {"n_samples": 5})):
        found = given.infer(potentials[index], engine, **options)
        assert exact - 1e-9 <= found.upper[0] <= 1e-12
        assert not found.log_z[0] > 1e-12


def test_bounds_by_engines_that_have_none_of_their_own(rng):
    graph = FactorGraph.grid(3, 3)
    potentials = rng.standard_normal((2, graph.size))
    exact = graph.log_partition(potentials)
    for engine, options in (
        ("bp", {}),
        ("gibbs", {"n_samples": 10}),
        ("perturb_and_map", {"n_samples": 10}),
        ("frank_wolfe", {"max_iter": 3}),
        ("frank_wolfe", {"max_iter": 3, "rho": 1.0}),
    ):
        found = graph.infer(potentials, engine, **options)
        assert np.all(found.lower <= exact)
        assert np.all(exact <= found.upper)
        assert np.all(np.isfinite(found.gap))


def test_matchings_by_engines_that_have_no_bounds_of_their_own(rng):
    for structure in (
        BipartiteMatching(4),
        Matching(6),
        Matching(5, perfect=False),
        Matching([(0, 1), (1, 2)], perfect=False),
    ):
        weights = rng.standard_normal((3, *((4, 4) if structure.left else (structure.n_edges,))))
        exact = structure.log_partition(weights)
        for engine, options in (("bethe", {}), ("bethe", {"rho": 0.7}), ("perturb_and_map", {"n_samples": 10})):
            found = structure.infer(weights, engine, **options)
            assert np.all(found.lower <= exact + 1e-9)
            assert np.all(exact <= found.upper + 1e-9)
            assert np.all((found.lower <= found.log_z) & (found.log_z <= found.upper))


@pytest.mark.parametrize("engine", ["exact", "bp", "trw", "mean_field", "gibbs", "frank_wolfe", "perturb_and_map"])
def test_weights_beyond_1e100_are_refused_and_those_below_are_not(engine, rng):
    graph = FactorGraph.grid(2, 3)
    u = rng.standard_normal(graph.size)
    options = {"n_samples": 10} if engine in ("gibbs", "perturb_and_map") else {}
    with pytest.raises(ValueError, match=r"potentials must be at most 1e\+100 in size.*factor 0; -inf forbids"):
        graph.infer(1e307 * u, engine, **options)
    found = graph.infer(1e99 * u, engine, **options)
    best = graph.argmax(1e99 * u, "exact")[1]
    assert not np.isnan(found.marginals).any()
    assert np.all(found.lower <= best * (1.0 + 1e-9))
    assert np.all(best <= found.upper * (1.0 + 1e-9))


@pytest.mark.parametrize("engine", ["bethe", "frank_wolfe", "perturb_and_map"])
def test_matchings_of_weights_beyond_1e100_are_refused_and_those_below_are_not(engine, rng):
    for structure, shape in ((BipartiteMatching(4), (4, 4)), (Matching(6), (15,)), (Matching(6, perfect=False), (15,))):
        w = rng.standard_normal(shape)
        options = {"perturb_and_map": {"n_samples": 10}, "frank_wolfe": {"max_iter": 50}}.get(engine, {})
        with pytest.raises(ValueError, match=r"potentials must be at most 1e\+100 in size.*-inf forbids an edge"):
            structure.infer(1e307 * w, engine, **options)
        found = structure.infer(1e99 * w, engine, **options)
        assert not np.isnan(found.marginals).any()
        np.testing.assert_allclose(found.log_z, structure.argmax(1e99 * w)[1], rtol=1e-6)


def test_learning_sees_the_value_whose_gradient_marginals_are():
    """Where the tree-reweighted value is above what tables allow, log Z is not, but the objective keeps its own."""
    graph, potentials = circuit(99, 50, 6, 1, 3, 11, ("and", "xor"))
    found = graph.infer(potentials, "trw", max_iter=20, lower=False)
    assert found.free_energy[0] > found.log_z[0] == found.upper[0]

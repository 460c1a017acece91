"""Every objective that is a sum over examples: its mini-batches sum to the whole, and solvers on them reach its optimum."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from partita import SGD, StochasticBound, minimize
from partita.core import Capability
from partita.objectives.batches import Parts
from partita.objectives.composite.draws import DrawnBatches
from partita.structures import FactorGraph

sys.path.insert(0, str(Path(__file__).parent))
import zoo
from zoo import OBJECTIVES

#: Each part of the library that has examples has one here.
FAMILIES = ("softmax", "latent", "chains", "boltzmann chains", "graphs", "matchings", "trees")


def made(name):
    """An objective that is a sum, made in the test: compiling has no place in the collection of tests."""
    objective = OBJECTIVES[name]()
    if Capability.BATCHES not in objective.capabilities:
        pytest.skip(f"{name} is no sum over examples")
    return objective


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_batches(family):
    assert Capability.BATCHES in OBJECTIVES[family]().capabilities


def summed(source, theta, batch_size):
    loss, gradient, weight = 0.0, np.zeros(source.size), 0.0
    batches = source.shuffled(batch_size)
    if isinstance(source, DrawnBatches):
        source.rng = None  # draws agree on average only (tests/objectives/test_drawn_objects.py): weigh by probabilities
    for lo, hi in batches:
        part, residual = source.evaluate(theta, lo, hi)
        loss += part
        gradient += source.pull_back(residual, lo, hi)
        weight += source.weight(lo, hi)
    return loss, gradient, weight


@pytest.mark.parametrize("batch_size", [1, 4, 1000])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_batches_sum_to_the_whole(name, batch_size):
    objective = made(name)
    theta = 0.3 * np.random.default_rng(0).standard_normal(objective.size)
    source = objective.batches(1)
    loss, gradient, weight = summed(source, theta, batch_size)
    point = objective.at(theta)
    # messages of reweighted sums and of Bethe free energies end at a tolerance, not at the last digit
    rtol = 1e-6 if name in ("graphs, reweighted", "matchings") else 1e-12
    assert weight == pytest.approx(source.scale, rel=1e-12)
    assert loss + objective.penalty_value(theta) == pytest.approx(point.value, rel=rtol)
    size = np.abs(point.gradient).max() + objective.scale
    np.testing.assert_allclose(gradient + source.penalty * theta, point.gradient, atol=rtol * size, rtol=0.0)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_what_is_held_out_is_the_rest(name):
    objective = made(name)
    theta = 0.3 * np.random.default_rng(0).standard_normal(objective.size)
    source = objective.batches(2, validation=0.4)
    assert 0 < len(source.held) < objective.n_examples
    loss = summed(source, theta, 3)[0]
    whole = objective.at(theta).value - objective.penalty_value(theta)
    total = objective.batches(2).scale
    linear = 0.0 if objective.slope is None else float(objective.slope @ theta)  # spread over examples as penalties are
    loss, whole = loss - linear * source.scale / total, whole - linear
    held = source.held_out(theta) * (total - source.scale) / source.scale
    assert loss + held == pytest.approx(whole, rel=1e-6)
    np.testing.assert_allclose(source.penalty, objective.penalty * source.scale / total)
    assert objective.batches(2).held_out(theta) is None
    with pytest.raises(ValueError, match=r"validation=0\.999 leaves no example to train on"):
        objective.batches(2, validation=0.999)


#: Those that take seconds.
LONG = ("graphs, reweighted", "boltzmann chains", "chains, composite", "chains, tied weights", "graphs, composite")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in OBJECTIVES])
def test_saga_reaches_the_optimum(name):
    objective = made(name)
    if not objective.convex or isinstance(objective.batches(0), DrawnBatches):
        pytest.skip("there is no one optimum, or noise that no table removes: objects are drawn anew in every pass")
    best = minimize(objective, solver="lbfgs", tol=1e-10, max_iter=2000).value
    solver = SGD(method="saga", batch_size=max(1, objective.n_examples // 4), patience=1000)
    found = minimize(objective, solver=solver, max_iter=500, tol=1e-7).value
    assert found - best <= 1e-6 * abs(best)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_saga_reaches_a_stationary_point(name):
    objective = made(name)
    if objective.convex:
        pytest.skip("it has an optimum")
    solver = SGD(method="saga", batch_size=max(1, objective.n_examples // 4), patience=1000)
    start = 0.1 * np.random.default_rng(0).standard_normal(objective.size)
    found = minimize(objective, start, solver=solver, max_iter=500, tol=1e-6)
    assert np.abs(objective.at(found.parameters).gradient).max() <= 1e-4 * objective.scale


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_table_remembers_what_was_stored(name):
    objective = made(name)
    rng = np.random.default_rng(3)
    source = objective.batches(1)
    table, total = source.table(), np.zeros(objective.size)
    batches = source.shuffled(max(1, objective.n_examples // 4))
    for lo, hi in [*batches, *batches[::2]]:
        theta = 0.3 * rng.standard_normal(objective.size)
        _, residual = source.evaluate(theta, lo, hi)
        total += source.pull_back(residual - table[source.slots(lo, hi)], lo, hi)
        table[source.slots(lo, hi)] = residual
    again = sum(source.pull_back(table[source.slots(lo, hi)], lo, hi) for lo, hi in batches)
    np.testing.assert_allclose(total, again, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_penalty_around_another_place_is_shared_out(name):
    objective = made(name)
    if not isinstance(objective.batches(0), Parts):
        pytest.skip("it has mini-batches of its own kind")
    theta, center = 0.3 * np.random.default_rng(4).standard_normal((2, objective.size))
    objective.center = center
    loss, gradient, _ = summed(objective.batches(1), theta, 3)
    point = objective.at(theta)
    constant = 0.5 * float(objective.penalty @ center**2)
    assert loss + 0.5 * float(objective.penalty @ theta**2) + constant == pytest.approx(point.value, rel=1e-6)
    np.testing.assert_allclose(gradient + objective.penalty * theta, point.gradient, atol=1e-6 * objective.scale)


def test_parts_of_a_union_are_planned_once(monkeypatch):
    """A batch takes the plans of its graphs from the whole."""
    objective = OBJECTIVES["graphs"]()
    source = objective.batches(0)
    with monkeypatch.context() as patch:
        patch.setattr("partita.graph.structure.factor_graph.eliminate", None)
        for lo, hi in source.shuffled(2):
            source.evaluate(np.zeros(source.size), lo, hi)


def test_one_graph_with_many_rows_is_one_graph_in_every_batch(rng):
    from partita.features import TableType, TiedTables
    from partita.objectives import GraphLikelihood

    graph = FactorGraph([2, 2, 2], [(0,), (1,), (2,), (0, 1), (1, 2)])
    tables = TiedTables(graph, [TableType(np.arange(3)), TableType(np.arange(3, 5))])
    y = rng.integers(-1, 2, (40, 3))
    objective = GraphLikelihood(tables, y, weights=rng.uniform(0.5, 2.0, 40), penalty=0.3)
    theta = rng.standard_normal(objective.size)
    source = objective.batches(0)
    loss, gradient, _ = summed(source, theta, 7)
    point = objective.at(theta)
    assert loss + objective.penalty_value(theta) == pytest.approx(point.value, rel=1e-12)
    np.testing.assert_allclose(gradient + source.penalty * theta, point.gradient, atol=1e-11)
    assert all(source.part(lo, hi).graph is graph for lo, hi in source.shuffled(7))


ESTIMATORS = {
    "LatentSoftmax": (lambda **o: pt.LatentSoftmax(random_state=0, **o), (zoo.X, zoo.Y), "coef_"),
    "ChainCRF": (pt.ChainCRF, (zoo.ATTRIBUTES, zoo.TAGS), "parameters_"),
    "HiddenChainCRF": (lambda **o: pt.HiddenChainCRF(random_state=0, **o), (zoo.ATTRIBUTES, zoo.WHOLE), "parameters_"),
    "BoltzmannChain": (pt.BoltzmannChain, (zoo.TOKENS, zoo.TAGS), "token_weights_"),
    "GraphCRF": (pt.GraphCRF, (zoo.GRAPHS, zoo.NODES), "parameters_"),
    "MarkovNetwork": (lambda **o: pt.MarkovNetwork.ising(zoo.PATH, **o), (zoo.STATES,), "parameters_"),
    "MatchingCRF": (pt.MatchingCRF, (zoo.MATCHES, zoo.PAIRS), "parameters_"),
    "DependencyCRF": (pt.DependencyCRF, (zoo.TOKENS, zoo.HEADS), "parameters_"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_same_seed_gives_the_same_answer_at_any_thread_count(name):
    make, data, attribute = ESTIMATORS[name]
    found = []
    for jobs in (1, 2, 2):
        seed = 1 if len(found) == 2 else 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(solver=StochasticBound(batch_size=4, random_state=seed), max_iter=4, n_jobs=jobs)
            found.append(np.array(getattr(model.fit(*data), attribute)))
    np.testing.assert_array_equal(found[0], found[1])
    if name not in ("LatentSoftmax", "HiddenChainCRF"):  # whose own `random_state` is that of the solver too
        assert np.any(found[0] != found[2])

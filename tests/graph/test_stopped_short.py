"""Engines that have not converged say so: in the status, and by one warning for a call."""

from __future__ import annotations

import warnings
import weakref

import numpy as np
import pytest

from partita import ConvergenceWarning, GraphCRF, MarkovNetwork, Status
from partita.core import warn
from partita.core.warn import holding, one_warning
from partita.graph.engines.partition_bounds import log_partition_bounds
from partita.structures import FactorGraph

SHORT = {"max_iter": 1}


def count(call):
    """The warnings that a call gives, and its answer."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        answer = call()
    assert all(w.category is ConvergenceWarning for w in given)
    return [str(w.message) for w in given], answer


@pytest.fixture
def graph(rng):
    """A graph with cycles, and potentials on it."""
    grid = FactorGraph.grid(4, 4)
    return grid, rng.standard_normal((2, grid.size))


@pytest.mark.parametrize("engine", ["bp", "trw", "mean_field"])
def test_one_warning_for_a_call_of_a_structure(graph, engine):
    grid, potentials = graph
    given, result = count(lambda: grid.infer(potentials, engine, **SHORT))
    assert given == [f"engine {engine} has {Status.UNSETTLED}"]
    assert result.status is Status.UNSETTLED
    for advice in ("Raise max_iter", "damping", "bounds on log Z hold"):
        assert advice in str(result.status)
    assert len(count(lambda: grid.log_partition(potentials, engine, **SHORT))[0]) == 1
    assert len(count(lambda: log_partition_bounds(grid, potentials, engine, **SHORT))[0]) == 1
    assert count(lambda: grid.infer(potentials, engine, damping=0.5) if engine != "mean_field" else None)[0] == []


def test_argmax_and_samples(graph):
    grid, potentials = graph
    given, _ = count(lambda: grid.argmax(potentials, "bp", **SHORT))
    assert given == [f"max-product has {Status.UNSETTLED}"]
    assert count(lambda: grid.infer(potentials, "gibbs", n_samples=1))[0] == []
    assert count(lambda: grid.argmax(potentials))[0] == []


def test_the_warning_names_the_line_of_the_call(graph):
    grid, potentials = graph
    for call in (
        lambda: grid.infer(potentials, "bp", **SHORT),
        lambda: grid.log_partition(potentials, "bp", **SHORT),
        lambda: grid.argmax(potentials, "bp", **SHORT),
        lambda: log_partition_bounds(grid, potentials, "bp", **SHORT),
    ):
        with pytest.warns(ConvergenceWarning) as given:
            call()
        assert (given[0].filename, given[0].lineno) == (__file__, call.__code__.co_firstlineno)


def test_held_warnings_go_to_the_innermost_caller(graph):
    grid, potentials = graph

    @one_warning()
    def twice():
        for _ in range(2):
            grid.infer(potentials, "bp", **SHORT)

    with holding() as outer:
        assert count(twice)[0] == []
    assert len(outer) == 1
    assert len(count(twice)[0]) == 1


def networks(rng, **options):
    edges = [scope for scope in FactorGraph.grid(3, 3).factors if len(scope) == 2]
    X = rng.integers(0, 2, (30, 9))
    X[rng.random(X.shape) < 0.1] = -1
    yield MarkovNetwork.ising(edges, l2=1.0, engine="trw", engine_options=options), (X,)
    graphs = [(rng.standard_normal((9, 2)), np.array(edges)) for _ in range(6)]
    labels = [rng.integers(0, 2, 9) for _ in graphs]
    yield GraphCRF(engine="trw", decoding="marginals", engine_options=options), (graphs, labels)


def test_one_warning_for_a_call_of_an_estimator(rng):
    for model, data in networks(rng, **SHORT):
        given, _ = count(lambda: model.fit(*data))  # noqa: B023
        assert len(given) == 1
        assert given[0].startswith(type(model).__name__)
        assert f"engine trw has {Status.UNSETTLED}" in given[0]
        inputs = () if isinstance(model, MarkovNetwork) else data[:1]
        for call in (
            lambda: model.predict_marginals(data[0]),  # noqa: B023
            lambda: model.log_likelihood(*data),  # noqa: B023
            lambda: model.log_partition(*inputs),  # noqa: B023
            lambda: model.log_partition(*inputs, bounds=True),  # noqa: B023
        ):
            assert count(call)[0] == [f"engine trw has {Status.UNSETTLED}"]
        assert len(count(lambda: model.score(*data))[0]) == 1  # noqa: B023


def test_no_warning_where_all_is_well(rng):
    for model, data in networks(rng):
        assert count(lambda: model.fit(*data).score(*data))[0] == []  # noqa: B023


def test_what_an_interrupt_left_behind_holds_nothing_back():
    """Ctrl-C between two instructions may leave a place for warnings behind that nobody owns."""
    token = warn._held.set(weakref.ref(warn.Held()))
    try:
        with pytest.warns(ConvergenceWarning, match="engine bp"):
            warn.report("engine bp", Status.UNSETTLED)
    finally:
        warn._held.reset(token)

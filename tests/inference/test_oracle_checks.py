"""Solvers that do not find the best configuration are found out by what is known already."""

from __future__ import annotations

import numpy as np
import pytest

from partita import BlockFrankWolfe, GraphCRF, MarkovNetwork, MatchingCRF
from partita.core import ConvergenceWarning, NumericalError
from partita.graph.oracles.max_flow import MaxFlowOracle
from partita.graph.oracles.polytopes import JunctionTreeOracle, LinearProgramOracle
from partita.graph.structure.tables import indicator
from partita.inference.frank_wolfe import VARIANTS, maximize
from partita.inference.oracle import Answer, UserOracle
from partita.matching.engines.frank_wolfe import MatchingEnergy
from partita.objectives.dual_blocks import Block, DualBlocks
from partita.structures import BipartiteMatching, FactorGraph

GRID = FactorGraph.grid(3, 3)


def worst(graph=GRID, delta=0.0):
    """The configuration of the lowest score."""
    return UserOracle(lambda u: graph.argmax(-u, "exact")[0], lambda y: indicator(graph, y), delta=delta)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_worst_configuration_is_no_certificate(variant, scale, rng):
    u = scale * rng.standard_normal(GRID.size)
    with pytest.raises(
        NumericalError, match=r"oracle UserOracle answered with a configuration of score .* Mend it, or state"
    ):
        GRID.infer(u, "frank_wolfe", oracle=worst(), variant=variant)


def test_an_error_that_is_stated_is_no_lie(rng):
    u = rng.standard_normal(GRID.size)
    with pytest.warns(ConvergenceWarning):
        found = GRID.infer(u, "frank_wolfe", oracle=worst(delta=1e3), max_iter=50)
    assert not found.status.ok
    assert found.certificate[0] >= 1e3
    assert found.upper[0] >= GRID.log_partition(u)[0]


def test_one_fixed_configuration_is_found_out_later(rng):
    """It is the best one at first. Where it leads to no step gains anything, and single variables tell."""
    u = rng.standard_normal(GRID.size)
    y = GRID.argmax(u, "exact")[0]
    fixed = UserOracle(lambda _: y, lambda states: indicator(GRID, states))
    with pytest.raises(NumericalError, match="does not find the best configuration"):
        GRID.infer(u, "frank_wolfe", oracle=fixed, tol=1e-6)


def test_perturb_and_map_compares_draws(rng):
    u = rng.standard_normal(GRID.size)
    with pytest.raises(NumericalError, match="oracle UserOracle answered with a configuration of score"):
        GRID.infer(u, "perturb_and_map", oracle=worst(), n_samples=20, random_state=0)
    for oracle in (JunctionTreeOracle(GRID), MaxFlowOracle(GRID)):
        assert np.isfinite(GRID.infer(u, "perturb_and_map", oracle=oracle, n_samples=20, random_state=0).log_z).all()


@pytest.mark.parametrize("oracle", [JunctionTreeOracle, MaxFlowOracle, LinearProgramOracle])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_honest_oracles_pass(oracle, scale, rng):
    u = scale * rng.standard_normal(GRID.size)
    found = GRID.infer(u, "frank_wolfe", oracle=oracle(GRID), max_iter=100, tol=1e-2)
    assert found.upper[0] >= GRID.log_partition(u)[0] - 1e-9 * scale


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (lambda _: np.zeros(GRID.size), "shares that sum to one; those of factor 0 sum to 0"),
        (lambda _: np.full(GRID.size, np.nan), "shares from 0 to 1"),
        (lambda _: np.full(GRID.size, 0.5), "shares that sum to one; those of factor 9 sum to 2"),
        (lambda _: np.zeros(3), "must have shape"),
        (lambda _: np.array(["a"] * GRID.size), "must be real numbers"),
        (
            lambda _: (
                np.where(np.arange(GRID.size) < 18, np.arange(GRID.size) % 2 == 0, np.arange(GRID.size) % 4 == 3) * 1.0
            ),
            "must answer with a configuration: its tables disagree on variable",
        ),
    ],
)
@pytest.mark.parametrize("engine", ["frank_wolfe", "perturb_and_map"])
def test_answers_that_are_no_points_are_refused(points, message, engine):
    if engine == "perturb_and_map" and "disagree" in message:
        pytest.skip("tables are compared where there is a factor for every variable")
    with pytest.raises(ValueError, match=message):
        GRID.infer(np.zeros(GRID.size), engine, oracle=UserOracle(lambda u: u, points))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda u: u, "the answer of oracle .* is not a configuration: it must be integers, one for each of 9 variables"),
        (lambda u: np.full(9, 2), "has 2 for variable 0"),
        (lambda u: np.full(9, -1), "must be one configuration, all of it known"),
        (lambda u: np.zeros((2, 9), int), "must be one configuration, all of it known; got 2 rows"),
        (lambda u: None, "returned nothing"),
        (3.0, "oracle must be an object with argmax"),
        (np.zeros(3), "oracle must be an object with argmax"),
    ],
)
@pytest.mark.parametrize("engine", ["frank_wolfe", "perturb_and_map"])
def test_functions_that_answer_with_no_configuration_are_named(answer, message, engine):
    with pytest.raises(ValueError, match=message):
        GRID.infer(np.zeros(GRID.size), engine, oracle=answer)


@pytest.mark.parametrize("engine", ["frank_wolfe", "perturb_and_map"])
def test_a_plain_function_or_an_object_with_argmax_is_a_solver(engine, rng):
    u = rng.standard_normal(GRID.size)

    class Solver:
        def argmax(self, potentials):
            return GRID.argmax(potentials)[0]

    options = {"random_state": 0} if engine == "perturb_and_map" else {}
    found = [GRID.infer(u, engine, oracle=o, **options) for o in (Solver(), Solver().argmax, JunctionTreeOracle(GRID))]
    for other in found[1:]:
        np.testing.assert_allclose(found[0].marginals, other.marginals, atol=1e-9)


def test_the_dual_of_learning_checks_its_blocks(rng):
    structure = BipartiteMatching(4)

    class Worst(MatchingEnergy):
        def best(self, scores):
            return super().best(-scores)

    energy = Worst(structure, rng.standard_normal(16))
    with pytest.raises(NumericalError, match="the solver for best matchings answered"):
        maximize(energy)
    features = rng.standard_normal((16, 3))
    block = Block(energy, lambda t: features @ t, lambda m: features.T @ m, 1.0)
    dual = DualBlocks([block], rng.standard_normal(3), 1.0)
    for ask in (dual.gap, lambda: dual.step(0, None), lambda: dual.step_all(0.5)):
        with pytest.raises(NumericalError, match="the solver for best matchings answered"):
            ask()


@pytest.mark.parametrize(
    "bad", [np.zeros(3), np.full(GRID.size, np.nan), np.full(GRID.size, 1e300), ["a"] * GRID.size, None]
)
@pytest.mark.parametrize("oracle", [JunctionTreeOracle, MaxFlowOracle, LinearProgramOracle])
def test_oracles_check_potentials(oracle, bad):
    with pytest.raises(ValueError, match="potentials must"):
        oracle(GRID)(bad)


def test_an_answer_of_its_own_is_taken(rng):
    u = rng.standard_normal(GRID.size)

    def oracle(scores):
        y, value = GRID.argmax(scores, "exact")
        return Answer(indicator(GRID, y), float(value[0]), "exact", 0.0)

    found = GRID.infer(u, "frank_wolfe", oracle=oracle, tol=1e-2)
    assert found.upper[0] >= GRID.log_partition(u)[0]


def learns(oracle, kind):
    """A fit by the answers of a solver only, of the kind of estimator that is named."""
    rng, options = np.random.default_rng(0), {"solver": BlockFrankWolfe(oracle=lambda structure: oracle), "l2": 1.0}
    if kind == "matching":
        X = rng.standard_normal((3, 2, 3, 3))
        return MatchingCRF("bethe", **options).fit(X, [rng.permutation(3) for _ in X])
    if kind == "graph":
        X = [(rng.standard_normal((3, 2)), np.array([(0, 1), (1, 2)])) for _ in range(3)]
        return GraphCRF(engine="trw", **options).fit(X, [[0, 1, 1], [1, 0, 1], [0, 0, 1]])
    return MarkovNetwork([(0, 1), (1, 2)], engine="trw", **options).fit(rng.integers(0, 2, (20, 3)))


def broken(scores):
    raise KeyError("no licence")


@pytest.mark.parametrize("kind", ["matching", "graph", "network"])
@pytest.mark.parametrize(
    ("oracle", "error", "message"),
    [
        (lambda s: np.zeros(2, int), ValueError, r"the answer of oracle <lambda> is not a configuration: .* must be"),
        (lambda s: np.full(3, np.nan), ValueError, r"the answer of oracle <lambda> is not a configuration: .* must be"),
        (
            lambda s: np.zeros((2, 2, 2), int),
            ValueError,
            r"the answer of oracle <lambda> is not a configuration: .* must be",
        ),
        (lambda s: np.full(3, 7), ValueError, r"the answer of oracle <lambda> is not a configuration: "),
        (lambda s: None, ValueError, "oracle <lambda> returned nothing; it must return the best configuration"),
        (broken, RuntimeError, "oracle broken failed: KeyError: 'no licence'"),
    ],
)
def test_bad_answers_in_training_name_the_example_and_the_solver(kind, oracle, error, message):
    with pytest.raises(error, match=rf"example \d: {message}"):
        learns(oracle, kind)


@pytest.mark.parametrize("kind", ["matching", "graph", "network"])
def test_lies_in_training_name_the_example_and_the_amount(kind):
    def lie(scores):  # of three vertices with two states, or three rows
        if kind == "matching":
            return BipartiteMatching(3).argmax(-scores)[0]
        graph = FactorGraph([2, 2, 2], [(0,), (1,), (2,), (0, 1), (1, 2)])
        return graph.argmax(-scores)[0]

    with pytest.raises(NumericalError, match=r"example \d: oracle lie .* does not find the best configuration \(by \d"):
        learns(lie, kind)

"""Frank-Wolfe through best configurations against messages, and its dual against the primal."""

from __future__ import annotations

import numpy as np
import pytest

from partita import BlockFrankWolfe, MatchingCRF
from partita.core.errors import NumericalError
from partita.inference.frank_wolfe import VARIANTS, maximize
from partita.matching.engines.bethe import matching_bethe
from partita.matching.engines.frank_wolfe import MatchingEnergy, every_edge, matching_frank_wolfe
from partita.structures import BipartiteMatching, FactorGraph, Matching


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("rho", [0.5, 0.8, 1.0])
def test_agrees_with_messages_on_two_sides(variant, rho, rng):
    s = BipartiteMatching(5)
    W = rng.standard_normal((2, 5, 5))
    expected = s.infer(W, rho=rho, tol=1e-9)
    tol = 1e-2 if variant == "plain" else 1e-6
    found = matching_frank_wolfe(s, s.weights(W), rho=rho, variant=variant, tol=tol, max_iter=3000)
    assert (found.gap <= tol).all()
    excess = expected.log_z - found.log_z
    assert (excess >= -1e-7).all()
    assert (excess <= found.gap + 1e-7).all()


def test_lazy_steps_ask_the_solver_less(rng):
    s = BipartiteMatching(10)
    energy = MatchingEnergy(s, rng.standard_normal(100))
    calls = {variant: maximize(energy, variant, 1e-3, 3000)[3] for variant in VARIANTS}
    assert calls["blended"] < calls["pairwise"] < calls["plain"]
    assert 5 * calls["blended"] <= calls["plain"]


@pytest.mark.parametrize("variant", ["pairwise", "blended"])
@pytest.mark.parametrize("kind", ["bipartite", "general", "free"])
def test_large_weights_do_not_jam(variant, kind):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = 6
        s = BipartiteMatching(n) if kind == "bipartite" else Matching(n, perfect=kind == "general")
        w = 50.0 * rng.standard_normal((1, s.n_edges))
        found = matching_frank_wolfe(s, w, variant=variant, tol=1e-6)
        assert found.gap[0] <= 1e-6
        best = w[0] @ s.indicators(s.best(w))[0]
        assert found.log_z[0] >= best - 1e-6
        if kind == "bipartite":  # the same polytope; messages may need more sweeps than they have
            by_messages = matching_bethe(s, w)
            assert abs(found.log_z[0] - by_messages.log_z[0]) <= by_messages.gap[0] + 1e-6


@pytest.mark.parametrize("rho", [0.6, 1.0])
@pytest.mark.parametrize("perfect", [True, False])
def test_slopes_are_those_of_the_gradient(rho, perfect, rng):
    s = Matching(6, perfect=perfect)
    energy = MatchingEnergy(s, rng.standard_normal(s.n_edges), rho)
    points = s.indicators(every_edge(s))
    tau = points.mean(0)
    direction = points[0] - points[1]
    slope = energy.along(tau, direction)
    for step in (0.0, 0.05, 0.1):
        assert slope(step) == pytest.approx(energy.gradient(tau + step * direction) @ direction, abs=1e-10)


@pytest.mark.parametrize("perfect", [True, False])
def test_coverings_have_every_edge(perfect, rng):
    structures = [Matching(n, perfect=perfect) for n in (4, 6, 8)]
    structures.append(Matching([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)], perfect=perfect))
    if perfect:
        structures.append(BipartiteMatching(5))
    else:
        structures.append(Matching(5, perfect=False))
    for s in structures:
        chosen = s.indicators(every_edge(s))
        assert (chosen.sum(0) > 0).all()


def test_hull_of_matchings_is_inside_what_messages_see(rng):
    s = Matching(6)
    w = rng.standard_normal((1, s.n_edges))
    inside = matching_frank_wolfe(s, w, rho=0.5, tol=1e-6)
    outside = s.infer(w, rho=0.5)
    exact = s.log_partition(w, "exact")
    assert exact[0] <= inside.log_z[0] + inside.gap[0]
    assert inside.log_z[0] <= outside.log_z[0] + 1e-6


def pairs(rng):
    X = rng.standard_normal((8, 2, 5, 5))
    return X, [BipartiteMatching(5).argmax(x[0] - x[1] + rng.gumbel(size=(5, 5)))[0] for x in X]


@pytest.mark.parametrize("options", [{}, {"variant": "pairwise"}, {"averaging": True}])
def test_exchanges_find_the_optimum(options, rng):
    X, y = pairs(rng)
    best = MatchingCRF(likelihood="bethe", l2=2.0).fit(X, y)
    found = MatchingCRF(l2=2.0, solver=BlockFrankWolfe(**options), max_iter=3000, tol=1e-4).fit(X, y)
    assert found.gap_ <= 1e-4 * 80
    assert found.gap_ == found.trace_.gap[-1]
    assert -1e-9 <= found.trace_.objective[-1] - best.trace_.objective[-1] <= found.gap_
    np.testing.assert_allclose(found.parameters_, best.parameters_, atol=0.02)
    again = MatchingCRF(l2=2.0, solver=BlockFrankWolfe(**options), max_iter=3000, tol=1e-4, warm_start=True).fit(X, y)
    calls, again = again.n_oracle_calls_, again.fit(X, y)
    assert again.n_oracle_calls_ <= 1.2 * calls


@pytest.mark.parametrize("options", [{"line_search": False}, {"batch": True}, {"variant": "plain"}])
def test_plain_steps_come_near_the_optimum(options, rng):
    X, y = pairs(rng)
    best = MatchingCRF(likelihood="bethe", l2=2.0).fit(X, y)
    with pytest.warns(UserWarning, match="iteration limit"):
        found = MatchingCRF(l2=2.0, solver=BlockFrankWolfe(**options), max_iter=500, tol=1e-12).fit(X, y)
    assert found.trace_.gap[-1] >= found.trace_.objective[-1] - best.trace_.objective[-1] - 1e-9
    assert found.trace_.objective[-1] - best.trace_.objective[-1] <= 0.5
    np.testing.assert_allclose(found.parameters_, best.parameters_, atol=0.1)


def test_the_dual_value_is_above_every_likelihood(rng):
    from partita.matching.data import Reading, read_examples
    from partita.matching.objective.likelihood import Group, MatchingLikelihood

    X = rng.standard_normal((4, 3, 4, 4))
    batches, _ = read_examples(list(X), Reading(bipartite=True, allow_unmatched=False, n_jobs=1))
    s, features = batches[0].structure, batches[0].features
    y = s.indicators(np.array([rng.permutation(4) for _ in range(4)]))
    objective = MatchingLikelihood([Group(s, features, y, np.ones(4))], 1.0)
    blocks = objective.blocks()
    values = [blocks.value()]
    for _ in range(5):
        for m in range(4):
            blocks.step(m, None)
            values.append(blocks.value())
    assert (np.diff(values) <= 1e-10).all()  # line search never goes up
    for _ in range(20):
        assert values[-1] >= -objective.at(rng.standard_normal(3)).value - 1e-9
    gap = blocks.gap()
    assert values[-1] + objective.at(blocks.parameters).value <= gap + 1e-8


@pytest.mark.parametrize("k", [2, 3])
def test_graphs_agree_with_messages(k, rng):
    graph = FactorGraph.grid(3, 3, k)
    u = rng.standard_normal(graph.size)
    by_messages = graph.infer(u, "trw")
    found = graph.infer(u, "frank_wolfe", tol=1e-3)
    assert found.gap[0] <= 1.1e-3
    assert found.upper[0] >= graph.log_partition(u, "exact")[0]
    if k == 2:  # the flow sees the local polytope, as messages do
        assert found.log_z[0] == pytest.approx(by_messages.upper[0], abs=2e-3)
    else:  # the junction tree sees less
        assert found.log_z[0] <= by_messages.upper[0] + 1e-6


def test_trees_are_exact_by_frank_wolfe_too(rng):
    graph = FactorGraph([2, 3, 2], [(0,), (1,), (2,), (0, 1), (1, 2)])
    u = rng.standard_normal(graph.size)
    found = graph.infer(u, "frank_wolfe", tol=1e-6)
    exact = graph.infer(u, "exact")
    assert found.log_z[0] == pytest.approx(exact.log_z[0], abs=2e-6)
    np.testing.assert_allclose(found.marginals, exact.marginals, atol=2e-3)


@pytest.mark.parametrize("rho", [0.3, 1.0, (1.0, 0.5)])
@pytest.mark.parametrize("unmatched", [False, True])
def test_forbidden_edges_agree_with_messages(rho, unmatched, rng):
    s = BipartiteMatching(4, 5, allow_unmatched=unmatched)
    W = rng.standard_normal((3, 4, 5))
    W[0, 0, 1:] = W[1, :, 2] = -np.inf  # row 0 has one column left, or none
    messages, found = s.infer(W, "bethe", rho=rho, tol=1e-9), s.infer(W, "frank_wolfe", rho=rho, tol=1e-6)
    assert (found.gap <= 1e-6).all()
    np.testing.assert_allclose(found.log_z, messages.log_z, atol=2e-6)
    assert not found.marginals[-np.inf == W].any()
    with pytest.raises(ValueError, match="no perfect matching in example 0"):
        BipartiteMatching(4).infer(np.where(np.arange(4) > 0, W[2, :, :4], -np.inf), "frank_wolfe")


def test_a_pair_of_weights_is_its_mean_where_all_are_matched(rng):
    W = rng.standard_normal((2, 4, 4))
    for engine in ("bethe", "frank_wolfe"):
        mean = BipartiteMatching(4).infer(W, engine, rho=0.75)
        pair = BipartiteMatching(4).infer(W, engine, rho=(0.5, 1.0))
        np.testing.assert_array_equal(mean.log_z, pair.log_z)
    free = BipartiteMatching(4, allow_unmatched=True)
    assert abs(free.infer(W, "bethe", rho=(0.5, 1.0)).log_z - free.infer(W, "bethe", rho=0.75).log_z).max() > 1e-3
    turned = free.infer(W.transpose(0, 2, 1), "bethe", rho=(1.0, 0.5), tol=1e-10)
    np.testing.assert_allclose(turned.log_z, free.infer(W, "bethe", rho=(0.5, 1.0), tol=1e-10).log_z, atol=1e-9)
    with pytest.raises(ValueError, match="one number, or have a mean of at least 1/2"):
        free.infer(W, "bethe", rho=(0.1, 0.5))
    with pytest.raises(ValueError, match="vertices are of one kind here"):
        Matching(4).infer(np.zeros(6), "bethe", rho=(0.5, 1.0))


@pytest.mark.parametrize("rho", [0.3, (0.6, 1.0)])
def test_learning_by_other_weights_agrees_with_best_matchings_alone(rho, rng):
    X, y = pairs(rng)
    y = [np.where(row == 4, -1, row) for row in y]
    options = {"allow_unmatched": True, "rho": rho, "l2": 2.0}
    best = MatchingCRF(**options).fit(X, y)
    assert best.likelihood_ == "bethe"
    found = MatchingCRF(**options, solver="block_frank_wolfe", tol=1e-4).fit(X, y)
    assert -1e-9 <= found.trace_.objective[-1] - best.trace_.objective[-1] <= found.gap_
    value, lower, upper = best.log_likelihood(X, y, bounds=True)
    exact = MatchingCRF("full", allow_unmatched=True, l2=2.0).fit(X, y)
    exact.parameters_, exact.row_parameters_ = best.parameters_, best.row_parameters_
    truth = exact.log_likelihood(X, y)
    assert (lower <= truth).all()
    assert (truth <= upper).all()
    assert rho != 0.3 or (value <= truth + 1e-9).all()  # log Z is at most the value


def test_lying_solvers_are_named_with_the_example(rng):
    X, y = pairs(rng)
    masks = [np.zeros((5, 5), bool) for _ in X]
    masks[3][0, (y[3][0] + 1) % 5] = True
    data = [{"features": x, "forbidden": mask} for x, mask in zip(X, masks, strict=True)]

    def worst(structure):
        return lambda W: BipartiteMatching(5).argmax(np.where(-np.inf < W, -W, -1e6))[0]

    with pytest.raises(NumericalError, match=r"example \d: oracle .* does not find the best configuration"):
        MatchingCRF(solver=BlockFrankWolfe(oracle=worst), l2=2.0).fit(data, y)

    def careless(structure):
        return lambda W: BipartiteMatching(5).argmax(np.where(-np.inf < W, W, 1e3))[0]

    i, j = 0, (y[3][0] + 1) % 5
    with pytest.raises(ValueError, match=rf"example 3: oracle .* edges that are forbidden \(-inf\), such as {i} with {j}"):
        MatchingCRF(solver=BlockFrankWolfe(oracle=careless), l2=2.0).fit(data, y)

"""b-matchings as a structure: sums, draws, free energies and learning, against enumeration, b = 1 and SciPy."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from enumeration import edge_sets
from scipy.optimize import minimize as scipy_minimize
from scipy.special import logsumexp

from partita import ConvergenceWarning, TooLargeError
from partita.matching.engines.b_support import degree_support
from partita.matching.features import EdgeFeatures
from partita.matching.objective.exact import ExactMatchingLikelihood
from partita.matching.objective.likelihood import Group, MatchingLikelihood
from partita.solvers import minimize
from partita.structures import BipartiteMatching, BMatching, Matching

CASES = {
    "regular": lambda: BMatching((4, 4), 2),
    "rectangle": lambda: BMatching((3, 5), ([2, 3, 1], [1, 2, 1, 1, 1])),
    "tall": lambda: BMatching((5, 2), (1, [3, 2])),
    "at most": lambda: BMatching((3, 4), 2, perfect=False),
    "at most, uneven": lambda: BMatching((2, 5), ([3, 9], [0, 1, 2, 1, 2]), perfect=False),
    "complete": lambda: BMatching(5, 2),
    "graph": lambda: BMatching([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3), (3, 4), (0, 4)], [2, 1, 2, 2, 1]),
    "graph, at most": lambda: BMatching([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)], 2, perfect=False, n_vertices=5),
}
cases = pytest.mark.parametrize("name", CASES)
SIDES = ("regular", "rectangle", "tall")


def truth(structure, w):
    """log Z and marginals of weights of edges."""
    sets = edge_sets(structure.ends, structure.b, structure.perfect)
    scores = np.where(sets > 0, w, 0.0).sum(1)
    log_z = logsumexp(scores)
    return log_z, np.exp(scores - log_z) @ sets


def drawn(structure, rng, scale=1.0):
    return scale * rng.standard_normal(structure.n_edges)


@cases
@pytest.mark.parametrize("scale", [1.0, 4.0, 200.0])
def test_exact_sums(name, scale, rng):
    structure = CASES[name]()
    w = drawn(structure, rng, scale)
    log_z, marginals = truth(structure, w)
    result = structure.free_energy(w[None])
    assert result.log_z[0] == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(result.marginals[0], marginals, atol=1e-11)
    assert structure.log_partition(structure.as_given(w[None])[0])[0] == pytest.approx(log_z, rel=1e-12)


@pytest.mark.parametrize("rho", [None, 1.0, 0.8, 0.5])
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_one_edge_each_is_a_matching(rho, scale, rng):
    square = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
    for one, other in (
        (BipartiteMatching(6), BMatching((6, 6), 1)),
        (Matching(6), BMatching(6, 1)),
        (Matching(square, perfect=False), BMatching(square, 1, perfect=False)),
    ):
        w = drawn(one, rng, scale)[None]
        options = {} if rho is None else {"rho": rho, "tol": 1e-10}
        found, expected = other.free_energy(w, **options), one.free_energy(w, **options)
        np.testing.assert_allclose(found.log_z, expected.log_z, atol=1e-8)
        np.testing.assert_allclose(found.marginals, expected.marginals, atol=1e-6 if rho else 1e-10)


def entropy(tau, b, perfect):
    """The largest entropy of sets of b things, or at most b, with these probabilities, by its dual."""
    n = len(tau)
    sizes = [b] if perfect else range(b + 1)
    sets = np.array([[k in chosen for k in range(n)] for size in sizes for chosen in itertools.combinations(range(n), size)])

    def dual(theta):
        scores = sets @ theta
        log_z = logsumexp(scores)
        return log_z - theta @ tau, np.exp(scores - log_z) @ sets - tau

    return scipy_minimize(dual, np.zeros(n), jac=True, method="BFGS", options={"gtol": 1e-10}).fun


@pytest.mark.parametrize("name", ["regular", "at most", "graph"])
@pytest.mark.parametrize("rho", [1.0, 0.7, 0.5, 0.3])
def test_free_energies_are_what_they_are_said_to_be(name, rho, rng):
    """The value at the answer by entropies found here; and no other point near it has a larger one."""
    structure = CASES[name]()
    w = drawn(structure, rng)

    def value(tau):
        own = -(tau * np.log(tau) + (1.0 - tau) * np.log(1.0 - tau)).sum()
        parts = [
            entropy(tau[(structure.ends == v).any(1)], int(structure.b[v]), structure.perfect)
            for v in range(structure.n_vertices)
        ]
        return w @ tau + (1.0 - 2.0 * rho) * own + rho * sum(parts)

    result = structure.free_energy(w[None], rho=rho, tol=1e-9)
    tau = result.marginals[0]
    assert value(tau) == pytest.approx(result.free_energy[0], abs=1e-6)
    sets = edge_sets(structure.ends, structure.b, structure.perfect)
    for vertex in sets[rng.choice(len(sets), 4)]:
        assert value(tau + 0.05 * (vertex - tau)) < value(tau) + 1e-7


@cases
@pytest.mark.parametrize("rho", [1.0, 0.75, 0.5])
def test_marginals_are_the_gradient_of_the_free_energy(name, rho, rng):
    structure = CASES[name]()
    w, v, step = drawn(structure, rng), drawn(structure, rng), 1e-4
    ahead, here, back = (structure.free_energy((w + by * v)[None], rho=rho, tol=1e-11) for by in (step, 0.0, -step))
    slope = (ahead.free_energy[0] - back.free_energy[0]) / (2.0 * step)
    assert here.marginals[0] @ v == pytest.approx(slope, abs=1e-5)
    np.testing.assert_allclose(
        structure.degrees(here.marginals)[0] if structure.perfect else 0.0, structure.b if structure.perfect else 0.0
    )


@cases
@pytest.mark.parametrize("seed", range(6))
def test_bounds_and_certificates_hold(name, seed):
    """At every stage, frozen or not, with edges forbidden or not."""
    rng = np.random.default_rng(seed)
    structure = CASES[name]()
    w = drawn(structure, rng, (0.3, 1.0, 3.0)[seed % 3])
    if seed > 2:
        sets = edge_sets(structure.ends, structure.b, structure.perfect)
        w[(rng.random(len(w)) < 0.3) & (sets[rng.integers(len(sets))] == 0)] = -np.inf
    given, (log_z, _) = structure.as_given(w[None])[0], truth(structure, w)
    for rho in (1.0, 0.75, 0.5, 0.25):
        best = structure.infer(given, "bethe", rho=rho)
        assert best.status.ok
        assert best.lower[0] <= log_z + 1e-9
        assert log_z <= best.upper[0] + 1e-9
        if rho <= 0.5:
            assert best.log_z[0] >= log_z - best.gap[0]
        if rho == 1.0 and name in SIDES:
            assert best.lower[0] >= best.log_z[0] - 1e-7
        for max_iter in (1, 2, 5):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                early = structure.free_energy(w[None], rho=rho, max_iter=max_iter, tol=0.0)
            off = abs(early.free_energy[0] - best.free_energy[0])
            assert off <= early.gap[0] + best.gap[0] + 1e-9 * (1.0 + off)


def test_edges_at_a_vertex_have_covariances_of_at_most_twice_their_variances():
    """What makes free energies concave for rho up to one."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(2, 8))
        b, perfect = int(rng.integers(1, n)), bool(rng.integers(2))
        sizes = [b] if perfect else range(b + 1)
        sets = np.array([[k in c for k in range(n)] for size in sizes for c in itertools.combinations(range(n), size)]) * 1.0
        p = np.exp(sets @ (3.0 * rng.standard_normal(n)))
        p /= p.sum()
        mean = p @ sets
        C = (sets - mean).T @ ((sets - mean) * p[:, None])
        scale = 1.0 / np.sqrt(np.diag(C))
        assert np.linalg.eigvalsh(scale[:, None] * C * scale)[-1] <= 2.0 + 1e-9


def test_frozen_answers_are_best_sets(rng):
    structure = BMatching((5, 5), 2)
    w = np.full((5, 5), -8.0)
    w[np.arange(5), np.arange(5)] = w[np.arange(5), (np.arange(5) + 1) % 5] = 0.0
    result = structure.infer(w, "bethe", rho=1.0)
    assert result.status.ok
    np.testing.assert_allclose(result.marginals, w == 0.0, atol=1e-6)
    assert result.log_z[0] == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_edges_that_are_free_and_those_that_are_not(seed):
    rng = np.random.default_rng(seed)
    ends = np.array([(i, 3 + j) for i in range(3) for j in range(4)])[rng.random(12) < 0.7]
    chosen = ends[rng.random(len(ends)) < 0.5]
    b = np.bincount(chosen.ravel(), minlength=7)
    sets = edge_sets(ends, b, True)
    free, used = degree_support(ends, b, 3)
    np.testing.assert_array_equal(free, sets.min(0) != sets.max(0))
    np.testing.assert_array_equal(used[~free], sets[0][~free])
    assert degree_support(ends, b + np.eye(7, dtype=int)[0], 3) is None


def test_draws_are_sets_with_the_right_frequencies(rng):
    for name in ("rectangle", "at most", "complete", "graph, at most"):
        structure = CASES[name]()
        w = drawn(structure, rng)
        given = structure.as_given(np.stack([w, -w]))
        draws = structure.sample(given, 4000, random_state=0)
        assert draws.shape == (4000, *given.shape)
        for k, weights in enumerate((w, -w)):
            structure.indicators(draws[:, k])
            np.testing.assert_allclose(draws[:, k].reshape(4000, -1).mean(0), truth(structure, weights)[1], atol=0.04)


def test_large_graphs_take_messages(rng):
    structure = BMatching((40, 60), (3, 2))
    W = rng.standard_normal((40, 60))
    result = structure.infer(W)
    assert result.engine == "bethe"
    assert result.status.ok
    assert result.lower[0] <= result.upper[0]
    np.testing.assert_allclose(result.marginals.sum(1), 3.0, atol=1e-6)
    np.testing.assert_allclose(result.marginals.sum(0), 2.0, atol=1e-6)
    again = structure.free_energy(structure.weights(W), result.messages, rho=1.0)
    assert again.n_iter <= 2
    for ask in (lambda: structure.infer(W, "exact"), lambda: structure.sample(W, 1)):
        with pytest.raises(TooLargeError, match="operations; the limit is"):
            ask()


def test_what_is_refused(rng):
    structure = CASES["rectangle"]()
    W = rng.standard_normal((3, 5))
    for rho in (0.0, 1.1, -1.0):
        with pytest.raises(ValueError, match="rho must be above 0 and up to 1"):
            structure.infer(W, "bethe", rho=rho)
    with pytest.raises(ValueError, match="messages must be finite, of shape"):
        structure.infer(W, "bethe", messages=np.zeros((1, 3)))
    with pytest.raises(ValueError, match="y has 1 edges at vertex 0; b asks for 2"):
        structure.score(W, np.eye(3, 5, dtype=int))
    with pytest.raises(ValueError, match="y must be zeros and ones"):
        structure.score(W, 2 * np.eye(3, 5, dtype=int))
    W[0, 1:] = -np.inf
    for engine in ("exact", "bethe"):
        with pytest.raises(ValueError, match=r"forbid every|no perfect b-matching"):
            structure.infer(W, engine)


def learned(structure, F, y, rho, l2=0.5):
    groups = [Group(structure, EdgeFeatures(F), structure.indicators(y), np.arange(1.0, len(y) + 1.0))]
    return ExactMatchingLikelihood(groups, l2) if rho is None else MatchingLikelihood(groups, l2, rho=rho, tol=1e-12)


@pytest.mark.parametrize("name", ["regular", "rectangle", "at most", "graph"])
def test_exact_learning_is_that_of_scipy_on_a_list_of_all_sets(name, rng):
    structure = CASES[name]()
    F = rng.standard_normal((4, 6, structure.n_edges))
    y = np.stack([structure.sample(structure.as_given((F[0] - F[1])[[i]])[0], 1, rng)[0] for i in range(6)])
    objective = learned(structure, F, y, None)
    sets = edge_sets(structure.ends, structure.b, structure.perfect)

    def loss(theta):
        W = np.tensordot(theta, F, 1)
        log_z = logsumexp(W @ sets.T, axis=1)
        own = (W * y.reshape(6, -1)).sum(1)
        return float(np.arange(1.0, 7.0) @ (log_z - own)) + 0.25 * float(theta @ theta)

    solution = minimize(objective, solver="lbfgs", tol=1e-9)
    expected = scipy_minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(solution.parameters, expected.x, atol=1e-5)
    assert solution.value == pytest.approx(expected.fun, rel=1e-9)
    assert solution.point.gap < 1e-9


@pytest.mark.parametrize("name", ["rectangle", "at most", "graph"])
@pytest.mark.parametrize("rho", [1.0, 0.5])
def test_learning_by_free_energies_is_certified(name, rho, rng):
    structure = CASES[name]()
    F = 0.5 * rng.standard_normal((3, 5, structure.n_edges))
    y = np.stack([structure.sample(structure.as_given((F[0] - F[1])[[i]])[0], 1, rng)[0] for i in range(5)])
    objective = learned(structure, F, y, rho)
    theta, v, step = rng.standard_normal(3), rng.standard_normal(3), 1e-5
    slope = (objective.at(theta + step * v).value - objective.at(theta - step * v).value) / (2.0 * step)
    assert objective.at(theta).gradient @ v == pytest.approx(slope, abs=1e-5)
    solution = minimize(objective, solver="lbfgs", tol=1e-6)
    assert solution.status.ok
    assert solution.point.gap < 1e-5
    elsewhere = min(objective.at(solution.parameters + 0.1 * rng.standard_normal(3)).value for _ in range(5))
    assert solution.value < elsewhere


@cases
@pytest.mark.parametrize("rho", [1.0, 0.5])
def test_frank_wolfe_finds_what_messages_find(name, rho, rng):
    """Through best b-matchings, and entropies by coordinate descent: nothing of it is shared with the messages."""
    structure = CASES[name]()
    W = structure.as_given(drawn(structure, rng)[None])[0]
    found, expected = (structure.infer(W, engine, rho=rho, tol=1e-4) for engine in ("frank_wolfe", "bethe"))
    assert found.status.ok
    assert found.free_energy[0] == pytest.approx(expected.free_energy[0], abs=1e-4)
    np.testing.assert_allclose(found.marginals, expected.marginals, atol=2e-3)


def test_a_solver_of_ones_own_is_asked_and_checked(rng):
    structure = CASES["regular"]()
    W, asked = rng.standard_normal((4, 4)), []

    def mine(scores):
        asked.append(scores.shape)
        return structure.argmax(scores)[0]

    found = structure.infer(W, "frank_wolfe", oracle=mine, tol=1e-4)
    assert found.free_energy[0] == pytest.approx(structure.infer(W, "bethe").free_energy[0], abs=1e-4)
    assert set(asked) == {(4, 4)}
    with pytest.raises(ValueError, match=r"b asks for 2"):
        structure.infer(W, "frank_wolfe", oracle=lambda scores: np.eye(4, dtype=int))


def test_learning_by_best_sets_alone(rng):
    structure = CASES["rectangle"]()
    F = 0.5 * rng.standard_normal((3, 4, structure.n_edges))
    y = np.stack([structure.sample(structure.as_given((F[0] - F[1])[[i]])[0], 1, rng)[0] for i in range(4)])
    objective = learned(structure, F, y, 1.0, l2=2.0)
    best = minimize(objective, solver="lbfgs", tol=1e-8)
    solution = minimize(objective, solver="block_frank_wolfe", max_iter=100, tol=1e-4)
    np.testing.assert_allclose(solution.parameters, best.parameters, atol=0.05)

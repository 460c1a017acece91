from __future__ import annotations

import numpy as np
import pytest
from enumeration import choices
from regression_forms import primal
from scipy.sparse import csr_array

from partita import Status
from partita.bayesnet.relaxation.hidden_terms import groups
from partita.bayesnet.relaxation.relation_bound import DiagonalLessColumns, smallest_eigenpairs
from partita.bayesnet.relaxation.relation_problem import Constraint, Problem, Relation
from partita.bayesnet.relaxation.relation_search import Search
from partita.bayesnet.relaxation.rounding import METHODS, centred_points, round_labels, simplex_weights
from partita.bayesnet.relaxation.stationary import to_stationary
from partita.core import Workers
from partita.objectives import ChildTerm, HiddenTerm, critical_alpha, relax

ROWS = "111111 111110 111011 110111 011111 111101 000000 000001 000100 001000 100000 000011"
X = np.array([[int(c) for c in row] for row in ROWS.split()])


def naive_bayes(x, n_values=2):
    return [HiddenTerm(), *(ChildTerm(column, n_values=n_values) for column in x.T)]


def drawn(seed, t, k=6, v=2, n_values=2):
    """A naive Bayes model with a hidden root: data and hidden values."""
    rng = np.random.default_rng(seed)
    hidden, tables = rng.integers(0, v, t), rng.dirichlet(np.full(n_values, 0.5), size=(v, k))
    return (rng.random((t, k, 1)) > tables[hidden].cumsum(2)).sum(2).clip(0, n_values - 1), hidden


def joint_em(x, labels, alpha, v, n_values=2):
    """What joint EM minimises, at a labelling."""
    own = primal(np.zeros(len(labels), dtype=int), labels, v, alpha).optimum
    return own + sum(primal(labels, column, n_values, alpha).optimum for column in x.T)


@pytest.mark.rounding
@pytest.mark.parametrize(
    ("alpha", "objective", "entry"),
    [
        (0.5, 35.106361, 0.116443),
        (1.0, 40.810413, 0.098175),
        (2.0, 45.074503, 0.149862),
        (4.0, 48.140560, 0.320447),
        (8.0, 49.766541, 0.784262),
    ],
)
def test_published_optima(alpha, objective, entry):
    found = relax(naive_bayes(X), 12, alpha, tol=1e-8)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(objective, abs=1e-6)
    assert found.lower <= found.objective
    assert found.gap <= 1e-8
    assert found.M[0, 6] == pytest.approx(entry, abs=1e-6)
    assert found.alpha_crit == pytest.approx(9.46018212, abs=1e-8)
    np.testing.assert_allclose(np.diag(found.M), 1.0)


@pytest.mark.rounding
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_certificate_reaches_far_below_where_values_stand_still(seed, nonnegative):
    """Values stand still with gradients of 1e-9, and the bound is of first order in them: L-BFGS alone ends above 1e-9."""
    x, _ = drawn(seed, 20 + 5 * seed, k=4 + seed, v=2 + seed)
    for alpha in (1.0, 3.0):
        found = relax(naive_bayes(x), len(x), alpha, tol=1e-10, nonnegative=nonnegative)
        assert found.status is Status.CONVERGED
        assert -1e-14 <= found.gap <= 1e-10


def test_rounds_from_the_same_place_are_not_repeated(monkeypatch):
    rounds = []
    descend = Search._descend
    monkeypatch.setattr(Search, "_descend", lambda run, part: rounds.append(part) or descend(run, part))
    found = relax(naive_bayes(X), 12, 1.0, tol=0.0)
    assert found.status is Status.PRECISION
    assert found.gap < 1e-10
    assert len(rounds) <= 4


def test_newton_steps_go_on_where_values_stand_still(rng):
    A = rng.standard_normal((30, 10))
    H, b = A.T @ A, rng.standard_normal(10)

    def evaluate(x):
        return 1e3 + 0.5 * x @ H @ x - b @ x + 0.1 * np.sum(x**4), H @ x - b + 0.4 * x**3

    best = to_stationary(evaluate, np.linalg.solve(H, b), 1e-13, lambda x: False)
    assert np.abs(evaluate(best)[1]).max() <= 1e-13
    near = best + 1e-9 * rng.standard_normal(10)
    assert evaluate(near)[0] == pytest.approx(evaluate(best)[0], rel=1e-15)
    assert np.abs(evaluate(near)[1]).max() > 1e-9
    assert np.abs(evaluate(to_stationary(evaluate, near, 1e-13, lambda x: False))[1]).max() <= 1e-13
    # No minimum is near: nothing is done.
    down = np.ones(3)
    assert np.array_equal(to_stationary(lambda x: (-x @ x, -2.0 * x), down, 1e-9, lambda x: False), down)


def test_relation_is_trivial_from_the_critical_alpha_on():
    critical, eigenvalues = critical_alpha(naive_bayes(X), 12)
    assert critical == eigenvalues[0] == pytest.approx(9.46018212, abs=1e-8)
    above, below = (relax(naive_bayes(X), 12, critical * (1.0 + s)) for s in (1e-6, -1e-3))
    assert above.trivial
    assert above.gap < 1e-12
    np.testing.assert_allclose(above.M, 1.0)
    assert not below.trivial
    assert below.M.min() < 0.999
    assert below.objective < above.objective


def test_equal_rows_are_one_row():
    once, thrice = relax(naive_bayes(X), 12, 1.0), relax(naive_bayes(np.repeat(X, 3, axis=0)), 36, 3.0)
    assert thrice.n_distinct == once.n_distinct == 12
    assert thrice.objective == pytest.approx(3.0 * once.objective, rel=1e-6)
    np.testing.assert_allclose(thrice.M[::3, ::3], once.M, atol=1e-4)
    np.testing.assert_allclose(thrice.M[0, :3], 1.0)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
def test_lower_bound_holds_for_all_labellings_and_the_objective_there_is_that_of_joint_em(alpha):
    x, _ = drawn(3, 8, k=3)
    found = relax(naive_bayes(x), 8, alpha)
    (group,) = groups(naive_bayes(x), 8)
    assert found.lower <= found.objective
    for tail in choices([2] * 7).tolist():
        labels = np.array([0, *tail])
        value = joint_em(x, labels, alpha, 2)
        assert value >= found.objective * (1.0 - 1e-9)
        # Rows of V are indicators of labels: the objective is joint EM's if both labels occur, else below.
        at = np.eye(2)[labels]
        relation = Relation(np.zeros(8, dtype=np.int64), _all_rows(x), np.ones(8), alpha, Workers(1))
        weights = np.vstack([[primal([0] * 8, labels, 2, alpha).solution[0]], *_weights(x, labels, alpha)])
        value_there = _evaluate(relation, np.concatenate([at.ravel(), weights.ravel()]), 2)[0]
        assert value_there == pytest.approx(value, rel=1e-9) if any(tail) else value_there <= value
    assert len(group.w) < 8


def _all_rows(x):
    zeros = np.zeros(len(x), dtype=np.int64)
    return [ChildTerm(column, given=zeros, n_values=2) for column in x.T]


def _weights(x, labels, alpha):
    """For each child, and value of it, weights over the labels."""
    found = []
    for column in x.T:
        W = np.zeros((2, 2))
        solution = primal(labels, column, 2, alpha).solution
        W[: len(solution)] = solution
        found.append(W.T)
    return found


def _evaluate(relation, x, rank):
    """Value and gradient, of the sum over rows."""
    value, _, gradient = Problem([relation], []).evaluate(x, rank)
    return value * relation.total, gradient * relation.total


def _relation(rng, n=9):
    """All kinds of terms, with weights."""
    children = [
        ChildTerm(rng.integers(0, 3, n), given=rng.integers(0, 2, n), n_values=3),
        ChildTerm(rng.standard_normal(n), given=rng.integers(0, 2, n), variance=0.7),
        ChildTerm(rng.integers(0, 2, n), given=np.zeros(n, dtype=np.int64), n_values=2),
    ]
    return Relation(rng.integers(0, 2, n), children, rng.integers(1, 4, n).astype(float), 0.8, Workers(1))


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_gradient_is_that_of_finite_differences(spread, rng):
    relation, rank = _relation(rng), 3
    V = np.eye(3)[0] + spread * rng.standard_normal((9, rank))
    s = V @ (relation.w @ V) / np.linalg.norm(V, axis=1)
    assert (s.min() < 0.5) == (spread > 1.0)  # on both sides of where log s goes on as a parabola
    x = np.concatenate([V.ravel(), 0.5 * rng.standard_normal(relation.size(rank) - V.size)])
    value, gradient = _evaluate(relation, x, rank)
    step = 1e-6
    moved = [[_evaluate(relation, x + sign * step * unit, rank)[0] for sign in (1, -1)] for unit in np.eye(len(x))]
    numeric = np.array([(up - down) / (2.0 * step) for up, down in moved])
    np.testing.assert_allclose(gradient, numeric, atol=2e-7 * max(1.0, np.abs(numeric).max()))
    assert value == _evaluate(relation, x, rank)[0]


def test_gradient_with_constraints_is_that_of_finite_differences(rng):
    relations = [_relation(rng), _relation(rng)]
    relations[1].w = relations[0].w
    problem = Problem(relations, [Constraint({0: 1.0}), Constraint({0: 1.0, 1: -1.0}), Constraint({0: -1.0, 1: 1.0}, 0.5)])
    size = sum(r.size(2) for r in relations)
    x = rng.standard_normal(size)
    for _ in range(3):
        problem.raise_multipliers(x, 2, stiffer=True)
    assert max(z.max() for z in problem.multipliers) > 0.1
    gradient, step = problem.evaluate(x, 2)[2], 1e-6
    moved = [[problem.evaluate(x + sign * step * unit, 2)[1] for sign in (1, -1)] for unit in np.eye(size)]
    np.testing.assert_allclose(gradient, [(up - down) / (2.0 * step) for up, down in moved], atol=1e-7)


def test_bound_holds_at_any_relation_whatever_the_weights(rng):
    relation = _relation(rng)
    best = np.inf
    for rank in (2, 4, 9):
        V = np.eye(rank)[0] + 0.5 * rng.standard_normal((9, rank))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        weights = 0.5 * rng.standard_normal((relation.units[-1], rank))
        best = min(best, _evaluate(relation, np.concatenate([V.ravel(), weights.ravel()]), rank)[0])
        assert relation.linear(V, weights).lower_bound(V)[0] < best
        assert relation.linear(V, weights).lower_bound(V, Z=np.zeros((9, 9)))[0] < best


def test_results_do_not_depend_on_threads():
    x, _ = drawn(0, 3000, k=14)
    one, two = (relax(naive_bayes(x), 3000, 300.0, max_iter=20, nonnegative=False, n_jobs=n) for n in (1, 2))
    assert len(Workers.ranges(one.n_distinct, 6.0 * one.n_distinct * 24 * 29)) > 1
    np.testing.assert_array_equal(one.vectors[0], two.vectors[0])
    assert one.lower == two.lower


def test_same_seed_same_answer_and_other_seeds_agree():
    x, _ = drawn(1, 30)
    first, again, other = (relax(naive_bayes(x), 30, 1.0, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.vectors[0], again.vectors[0])
    assert other.objective == pytest.approx(first.objective, rel=1e-6)


def test_too_few_columns_are_noticed_and_mended():
    x, _ = drawn(2, 20)
    terms = naive_bayes(x)
    stuck = relax(terms, 20, 0.1, rank=2, max_iter=60)
    assert stuck.status is Status.MAX_ITER
    assert stuck.gap > 0.1
    mended, plain = relax(terms, 20, 0.1, rank=2), relax(terms, 20, 0.1)
    assert mended.rank > 2
    assert mended.gap <= 1e-6
    assert mended.objective == pytest.approx(plain.objective, rel=1e-6)
    assert stuck.objective > 1.01 * plain.objective


def test_separated_hidden_variables_add_up():
    (x, _), (y, _) = drawn(4, 25, k=4), drawn(5, 25, k=3)
    both = [HiddenTerm(1), HiddenTerm(0)]
    both += [ChildTerm(column, (0,), n_values=2) for column in x.T] + [ChildTerm(column, (1,), n_values=2) for column in y.T]
    together, parts = relax(both, 25, 2.0), [relax(naive_bayes(z), 25, 2.0) for z in (x, y)]
    assert together.objective == pytest.approx(sum(p.objective for p in parts), rel=2e-6)
    for h, part in enumerate(parts):
        np.testing.assert_allclose(together.relation(h), part.M, atol=5e-3)
        np.testing.assert_allclose(together.eigenvalues[h], part.eigenvalues[0], atol=1e-8)


def test_mixture_of_gaussians_is_found(rng):
    hidden = np.arange(60) % 3
    x = np.array([[4, 0], [-2, 3], [-2, -3]])[hidden] + 0.5 * rng.standard_normal((60, 2))
    terms = [HiddenTerm(), *(ChildTerm(column, variance=0.25) for column in x.T)]
    values = critical_alpha(terms, 60)[1]
    found = relax(terms, 60, float(np.sqrt(values[1] * values[2])))
    assert found.gap <= 1e-6
    for method in METHODS:
        labels = round_labels(found.vectors[0], 3, method)
        assert _same(labels, hidden), method


def _same(labels, hidden):
    """One label for each hidden value, and the other way round."""
    return len({(a, b) for a, b in zip(labels, hidden, strict=True)}) == len(set(labels)) == len(set(hidden))


def test_labels_of_a_relation_are_found_back(rng):
    labels = rng.integers(0, 4, 50)
    V = np.linalg.qr(rng.standard_normal((4, 4)))[0][labels]
    assert centred_points(V, 4).shape == (50, 3)
    for method in METHODS:
        found = round_labels(V, 4, method, random_state=3)
        assert _same(found, labels), method
        np.testing.assert_array_equal(found, round_labels(V, 4, method, random_state=3))
    weights = simplex_weights(V, 4)
    np.testing.assert_allclose(weights.sum(1), 1.0)
    np.testing.assert_allclose(weights.max(1), 1.0, atol=1e-9)


def test_simplex_weights_are_soft_between_clusters():
    angle = np.concatenate([np.zeros(10), np.full(10, np.pi / 2), [np.pi / 4]])
    weights = simplex_weights(np.column_stack([np.cos(angle), np.sin(angle)]), 2)
    assert 0.3 < weights[-1].max() < 0.7
    assert weights[:-1].max(1).min() > 0.95


def test_trivial_relations_have_one_label():
    for method in METHODS:
        assert not round_labels(np.ones((5, 1)), 3, method).any()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_counted_eigenvalues_are_those_of_the_dense_matrix(sign, rng):
    n = 400
    columns = np.where(rng.random((n, 7)) < 0.5, 0.0, rng.standard_normal((n, 7)))
    matrix = DiagonalLessColumns(sign * rng.random(n), 0.1 * csr_array(columns), rng.standard_normal(n), 0.1 * rng.random(n))
    exact, _ = smallest_eigenpairs(matrix.dense())
    bound, vectors = matrix.smallest()
    assert 1.1 * exact < bound <= exact
    rayleigh = vectors[:, 0] @ (matrix @ vectors[:, 0])
    assert rayleigh == pytest.approx(exact, rel=0.1)
    np.testing.assert_allclose(matrix.lowest(3)[0], np.linalg.eigvalsh(matrix.dense())[:3], rtol=1e-8)


def test_positive_matrix_has_no_negative_bound(rng):
    n = 400
    matrix = DiagonalLessColumns(1.0 + rng.random(n), csr_array(0.01 * rng.standard_normal((n, 3))), np.zeros(n), np.ones(n))
    assert -1e-10 < matrix.smallest()[0] <= 0.0


def test_callbacks_and_limits_keep_what_there_is():
    seen = []
    found = relax(naive_bayes(X), 12, 1.0, callbacks=[lambda progress: seen.append(progress.objective) or len(seen) == 5])
    assert found.status is Status.CALLBACK
    assert found.n_iter == len(seen) == 5
    assert found.trace.objective[-1] == found.objective
    assert found.lower <= found.objective
    limited = relax(naive_bayes(X), 12, 1.0, max_iter=7)
    assert limited.status is Status.MAX_ITER
    assert limited.n_iter == 7


def test_impossible_tolerance_ends():
    found = relax(naive_bayes(X), 12, 1.0, tol=0.0)
    assert found.status is Status.PRECISION
    assert found.gap < 1e-6


def test_interrupt_keeps_what_there_is():
    def interrupt(progress):
        if progress.iteration == 10:
            raise KeyboardInterrupt

    found = relax(naive_bayes(X), 12, 1.0, callbacks=[interrupt])
    assert found.status is Status.INTERRUPTED
    assert found.lower <= found.objective < relax(naive_bayes(X), 12, 1e6).objective
    assert found.objective == pytest.approx(found.trace.objective[-1])
    assert found.vectors[0].shape[0] == 12


def test_bad_input_is_named():
    good = naive_bayes(X)
    for terms, n_rows, options, message in (
        (good, 1, {}, "n_rows must be an integer >= 2"),
        (good, 12, {"alpha": 0.0}, "alpha must be a finite number > 0"),
        (good, 12, {"alpha": -1.0}, "alpha must be a finite number > 0"),
        (good, 12, {"rank": 0}, "rank must be an integer >= 1"),
        (good, 13, {}, r"child term 0 must be integers of shape \(13,\)"),
        ([HiddenTerm(), ChildTerm(X[:, 0] + 1, n_values=2)], 12, {}, "child term 0 must be at least 0 and below 2"),
        (
            [HiddenTerm(), ChildTerm(X[:, 0], given=X[:, 1] - 1, n_values=2)],
            12,
            {},
            "given of child term 0 must be at least 0",
        ),
        ([HiddenTerm(), ChildTerm(np.full(12, np.nan))], 12, {}, "must be 12 finite numbers"),
        ([HiddenTerm(), ChildTerm(X[:, 0], (1,), n_values=2)], 12, {}, "parents of child term 0 must be among"),
        ([HiddenTerm(), ChildTerm(X[:, 0] * 1.0, variance=0.0)], 12, {}, "variance of child term 0"),
        ([HiddenTerm(), HiddenTerm()], 12, {}, "has two HiddenTerms"),
        ([ChildTerm(X[:, 0], n_values=2)], 12, {}, "must have a HiddenTerm"),
        ([HiddenTerm(0), HiddenTerm(1, parents=(0,))], 12, {}, "hidden variable 1 has hidden parents .* not convex"),
    ):
        with pytest.raises(ValueError, match=message):
            relax(terms, n_rows, **({"alpha": 1.0} | options))
    with pytest.raises(ValueError, match="hidden must be one of"):
        critical_alpha(good, 12, hidden=1)
    with pytest.raises(ValueError, match="method must be one of"):
        round_labels(np.ones((3, 1)), 2, "guess")

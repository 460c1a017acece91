"""MatchingCRF by exact sums, on sides of any sizes, with vertices that stay alone and pairs that are forbidden: against
lists of all matchings and SciPy."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from partita import ConvergenceWarning, DataWarning, MatchingCRF, Status, TooLargeError
from partita.matching.data import Reading, read_examples, read_known
from partita.structures import BipartiteMatching


def drawn(rng, n, m, theta, count, unmatched=None):
    """Features, and matchings drawn from the model; `unmatched` is the score of a row that stays alone."""
    X, y = rng.standard_normal((count, len(theta), n, m)), []
    s = BipartiteMatching(n, m, unmatched is not None)
    for x in X:
        y.append(s.sample(np.tensordot(theta, x, 1) - (unmatched or 0.0), 1, rng)[0])
    return list(X), y


def features_of(x, Y, alone=None):
    """The features of all matchings Y of an example: sums over their edges, and over rows that stay alone."""
    n = x.shape[1]
    padded = np.concatenate([x, np.zeros((*x.shape[:2], 1))], axis=2)  # -1 is the last
    edges = padded[:, np.arange(n), Y].sum(-1).T
    return edges if alone is None else np.column_stack([edges, (Y == -1).sum(1)])


def listed_likelihood(X, y, Y, l2, alone=None):
    """What is to be minimised, with its gradient and Hessian, from lists of all matchings."""
    F = [features_of(x, Y, alone) for x in X]
    observed = [features_of(x, np.array([row]), alone)[0] for x, row in zip(X, y, strict=True)]

    def at(theta):
        value, gradient = l2 / 2.0 * theta @ theta, l2 * theta
        hessian, scores = l2 * np.eye(len(theta)), []
        for f, o in zip(F, observed, strict=True):
            s = f @ theta
            z = logsumexp(s)
            p = np.exp(s - z)
            value, scores = value + z - o @ theta, [*scores, p @ f - o]
            hessian = hessian + (f.T * p) @ f - np.outer(p @ f, p @ f)
        return value, gradient + np.sum(scores, axis=0), hessian, np.array(scores)

    return at


def listed_fit(X, y, Y, l2, alone=None):
    at = listed_likelihood(X, y, Y, l2, alone)
    start = np.zeros(X[0].shape[0] + (alone is not None))
    return minimize(lambda t: at(t)[:2], start, jac=True, method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize(
    ("n", "theta", "count"), [(2, (1.0,), 400), (3, (1.0, -0.5), 300), (4, (2.0, 1.0), 200), (5, (1.0, 0.5), 100)]
)
def test_small_matchings_are_fitted_by_maximum_likelihood(n, theta, count, rng):
    X, y = drawn(rng, n, n, theta, count)
    expected = listed_fit(X, y, BipartiteMatching(n).enumerate(), 1e-2)
    model = MatchingCRF(l2=1e-2).fit(X, y)
    assert model.likelihood_ == "full"
    np.testing.assert_allclose(model.parameters_, expected, rtol=1e-4)
    assert model.gap_ <= 1e-8 * 2 * n * count


def ryser(W):
    """The logarithm of a permanent by Ryser's formula, in extended precision."""
    n, top = len(W), W.max(1)
    sets = ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.longdouble)
    terms = (sets @ np.exp(W - top[:, None]).astype(np.longdouble).T).prod(1)
    return float(np.log(((-1.0) ** (n - sets.sum(1)) * terms).sum())) + top.sum()


@pytest.mark.parametrize(("n", "count"), [(8, 30), (12, 6)])
def test_larger_ones_against_ryser(n, count, rng):
    X, y = drawn(rng, n, n, (1.0, -0.5), count)
    observed = np.sum([x[:, np.arange(n), row].sum(1) for x, row in zip(X, y, strict=True)], axis=0)

    def loss(t):
        return sum(ryser(np.tensordot(t, x, 1)) for x in X) - observed @ t + 0.05 * t @ t

    model = MatchingCRF(l2=0.1).fit(X, y)
    assert model.likelihood_ == "full"
    assert model.trace_.objective[-1] == pytest.approx(loss(model.parameters_), rel=1e-9)
    steps = 1e-3 * np.vstack([np.eye(2), -np.eye(2)])
    assert min(loss(model.parameters_ + step) for step in steps) > loss(model.parameters_)
    slopes = [(loss(model.parameters_ + step) - loss(model.parameters_ - step)) / 2e-3 for step in steps[:2]]
    np.testing.assert_allclose(slopes, 0.0, atol=5e-3)


@pytest.mark.parametrize(("n", "m"), [(2, 4), (4, 2), (3, 3), (1, 3)])
@pytest.mark.parametrize("unmatched", [None, 0.5])
def test_other_sizes_and_rows_that_stay_alone(n, m, unmatched, rng):
    X, y = drawn(rng, n, m, (1.5, -1.0), 60, unmatched)
    Y = BipartiteMatching(n, m, unmatched is not None).enumerate()
    model = MatchingCRF(allow_unmatched=unmatched is not None, l2=0.1).fit(X, y)
    theta = np.concatenate([model.parameters_, model.row_parameters_])
    np.testing.assert_allclose(theta, listed_fit(X, y, Y, 0.1, unmatched), atol=1e-3)
    at = listed_likelihood(X, y, Y, 0.1, unmatched)
    assert model.trace_.objective[-1] == pytest.approx(at(theta)[0], rel=1e-10)
    for x, tau, log_p, row in zip(X[:5], model.predict_marginals(X), model.log_likelihood(X, y), y, strict=False):
        s = features_of(x, Y, unmatched) @ theta
        p = np.exp(s - logsumexp(s))
        expected = np.array([[(p * (Y[:, i] == j)).sum() for j in range(m)] for i in range(n)])
        np.testing.assert_allclose(tau, expected, atol=1e-10)
        assert log_p == pytest.approx(np.log(p[(row == Y).all(1)][0]), abs=1e-10)
    value, lower, upper = model.log_likelihood(X, y, bounds=True)
    np.testing.assert_array_equal(value, lower)
    np.testing.assert_array_equal(value, upper)


def test_features_of_staying_alone(rng):
    """Scores of rows and columns without a partner, from features of their own."""
    n, m, theta = 3, 2, np.array([1.0, 0.7, -0.8, 0.5])
    s, X, y = BipartiteMatching(n, m, allow_unmatched=True), [], []
    for _ in range(80):
        x = {"features": rng.standard_normal((1, n, m)), "row_features": rng.standard_normal((2, n))}
        x["column_features"] = rng.standard_normal((1, m))
        r, c = theta[1:3] @ x["row_features"], theta[3:] @ x["column_features"]
        X.append(x)
        y.append(s.sample(theta[0] * x["features"][0] - r[:, None] - c, 1, rng)[0])
    model = MatchingCRF(allow_unmatched=True, l2=1e-3).fit(X, y)
    assert model.parameter_names_ == ["edges[0]", "row alone[0]", "row alone[1]", "column alone[0]"]
    Y = s.enumerate()
    used = np.array([[j in row for j in range(m)] for row in Y.tolist()])

    def loss(t):
        total = 0.5e-3 * t @ t
        for x, row in zip(X, y, strict=True):
            scores = features_of(x["features"], Y) @ t[:1] + (Y == -1) @ (t[1:3] @ x["row_features"])
            scores = scores + ~used @ (t[3:] @ x["column_features"])
            total += logsumexp(scores) - scores[(row == Y).all(1)][0]
        return total

    found = np.concatenate([model.parameters_, model.row_parameters_, model.column_parameters_])
    expected = minimize(loss, np.zeros(4), method="BFGS").x
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert np.abs(found - theta).max() < 1.0
    with pytest.raises(ValueError, match=r"X must have edges with \(1,\) features, and 2 and 1 of staying alone, got edges"):
        model.predict([x["features"] for x in X])


def test_graphs_of_one_kind_have_features_of_staying_alone(rng):
    F = rng.standard_normal((20, 1, 4, 4))
    X = [{"features": f + f.transpose(0, 2, 1), "vertex_features": np.ones((1, 4))} for f in F]
    y = [[1, 0, -1, -1], [-1, -1, -1, -1]] * 10
    model = MatchingCRF(allow_unmatched=True, bipartite=False).fit(X, y)
    assert model.row_parameters_.shape == (1,)
    assert model.row_parameters_[0] > 0.2  # three of four stay alone
    assert model.parameter_names_[1] == "vertex alone[0]"


@pytest.mark.parametrize("likelihood", ["full", "bethe"])
@pytest.mark.parametrize("unmatched", [False, True])
def test_forbidden_pairs(likelihood, unmatched, rng):
    n, m = 3, 4
    mask = np.zeros((n, m), bool)
    mask[0, 1:3] = mask[2, 3] = True
    s, X, y = BipartiteMatching(n, m, unmatched), [], []
    for k in range(40):
        F = rng.standard_normal((2, n, m))
        W = np.where(mask, -np.inf, F[0] - F[1])
        X.append({"features": np.where(mask, np.nan, F), "forbidden": mask if k % 2 else mask.copy()})
        y.append(s.sample(W, 1, rng)[0])
    model = MatchingCRF(likelihood, allow_unmatched=unmatched, l2=0.1).fit(X, y)
    for tau, y_hat in zip(model.predict_marginals(X), model.predict(X), strict=True):
        assert not tau[mask].any()
        assert not s.indicators(y_hat)[0].reshape(n, m)[mask].any()
    assert np.isfinite(model.log_likelihood(X, y)).all()
    assert all(np.isfinite(log_p) for found in model.kbest(X[:3], 100) for _, log_p in found)
    if likelihood == "full":
        Y = s.enumerate()
        allowed = Y[~((s.indicators(Y).reshape(-1, n, m) > 0.0) & mask).any((1, 2))]
        full = [np.where(mask, 0.0, x["features"]) for x in X]
        expected = listed_fit(full, y, allowed, 0.1, 1.0 if unmatched else None)
        np.testing.assert_allclose(np.concatenate([model.parameters_, model.row_parameters_]), expected, atol=1e-3)
    wrong = [np.array([1, 0, 2])] * len(y)
    with pytest.raises(ValueError, match=r"y: example 0 matches 0 with 1, which 'forbidden' rules out"):
        model.fit(X, wrong)
    if likelihood == "bethe":
        blocks = MatchingCRF(allow_unmatched=unmatched, solver="block_frank_wolfe", l2=0.1, tol=1e-6).fit(X, y)
        assert blocks.gap_ <= 1e-6 * 40 * 8
        assert -1e-9 <= blocks.trace_.objective[-1] - model.trace_.objective[-1] <= blocks.gap_
        np.testing.assert_allclose(blocks.parameters_, model.parameters_, atol=0.03)


@pytest.mark.parametrize("method", ["sandwich", "information"])
def test_standard_errors(method, rng):
    X, y = drawn(rng, 3, 4, (1.0, -0.5), 50, 0.3)
    weights = rng.uniform(0.5, 2.0, 50)
    model = MatchingCRF(allow_unmatched=True, l2=0.1).fit(X, y, weights)
    theta = np.concatenate([model.parameters_, model.row_parameters_])
    Y, H, K = BipartiteMatching(3, 4, True).enumerate(), 0.1 * np.eye(3), np.zeros((3, 3))
    for x, row, w in zip(X, y, weights, strict=True):
        _, _, hessian, scores = listed_likelihood([x], [row], Y, 0.0, 0.3)(theta)
        H, K = H + w * hessian, K + w**2 * np.outer(scores[0], scores[0])
    inverse = np.linalg.inv(H)
    expected = np.sqrt(np.diag(inverse if method == "information" else inverse @ K @ inverse))
    np.testing.assert_allclose(model.standard_errors(method), expected, rtol=1e-8)
    table = str(model.summary(method=method))
    assert "row alone[0]" in table
    assert f"{method} standard errors" in table


def test_standard_errors_are_refused_or_warned_of(rng, tmp_path):
    X, y = drawn(rng, 3, 3, (1.0, -0.5), 2)
    model = MatchingCRF().fit(X, y)
    with pytest.warns(DataWarning, match="standard errors of 2 weights from 2 examples"):
        model.standard_errors()
    with pytest.raises(ValueError, match="method must be one of"):
        model.standard_errors("hessian")
    for again in (pickle.loads(pickle.dumps(model)), _saved(model, tmp_path)):
        assert again.likelihood_ == "full"
        with pytest.raises(ValueError, match="copies and files do not keep"):
            again.standard_errors()
    with pytest.raises(ValueError, match="likelihood 'bethe' maximises a surrogate"):
        MatchingCRF("bethe").fit(X, y).standard_errors()


def _saved(model, folder):
    model.save(folder / "model.partita")
    return MatchingCRF.load(folder / "model.partita")


def test_without_a_penalty_there_is_an_optimum_or_it_is_said_that_there_is_none(rng):
    X, y = drawn(rng, 3, 3, (1.0, -0.5), 100)
    model = MatchingCRF(l2=0.0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.gap_ == np.inf
    np.testing.assert_allclose(model.parameters_, listed_fit(X, y, BipartiteMatching(3).enumerate(), 0.0), atol=1e-5)
    best = [BipartiteMatching(3).argmax(x[0])[0] for x in X]
    with pytest.warns(ConvergenceWarning, match="separated"):
        model.fit(X, best)
    assert model.status_ is Status.UNBOUNDED
    constant = [np.concatenate([x, np.ones((1, 3, 3))]) for x in X]  # which no probability depends on
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(constant, y)
    assert model.parameters_[2] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "cg"])
def test_solvers_agree(solver, rng):
    X, y = drawn(rng, 4, 3, (1.0, -0.5), 50, 0.0)
    first = MatchingCRF(allow_unmatched=True, l2=0.1).fit(X, y)
    found = MatchingCRF(allow_unmatched=True, l2=0.1, solver=solver).fit(X, y)
    np.testing.assert_allclose(found.parameters_, first.parameters_, atol=1e-4)
    np.testing.assert_allclose(found.row_parameters_, first.row_parameters_, atol=1e-4)


@pytest.mark.parametrize("unmatched", [False, True])
def test_free_energies_of_other_sizes(unmatched, rng):
    X, y = drawn(rng, 4, 5, (1.0, -0.5), 30, 0.2 if unmatched else None)
    model = MatchingCRF("bethe", allow_unmatched=unmatched).fit(X, y)
    value, lower, upper = model.log_likelihood(X, y, bounds=True)
    exact = MatchingCRF("full", allow_unmatched=unmatched, max_iter=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact.fit(X, y)
    exact.parameters_, exact.row_parameters_ = model.parameters_, model.row_parameters_
    truth = exact.log_likelihood(X, y)
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()
    assert (lower <= truth + 1e-9).all()
    assert (truth <= upper + 1e-9).all()
    penalty = 0.5 * ((model.parameters_**2).sum() + (model.row_parameters_**2).sum())
    assert model.trace_.objective[-1] == pytest.approx(-value.sum() + penalty, abs=1e-5)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        by_best = MatchingCRF(allow_unmatched=unmatched, solver="block_frank_wolfe", max_iter=100, tol=1e-12).fit(X, y)
    assert by_best.likelihood_ == "bethe"
    np.testing.assert_allclose(by_best.parameters_, model.parameters_, atol=0.05)


def test_the_choice_is_one_for_a_fit_and_by_cost(rng):
    small, large = drawn(rng, 3, 3, (1.0,), 5), drawn(rng, 14, 14, (1.0,), 2)
    X, y = small[0] + large[0], small[1] + large[1]
    assert MatchingCRF().fit(X, y).likelihood_ == "full"
    big = rng.standard_normal((1, 40, 40))
    model = MatchingCRF().fit([*X, big], [*y, np.arange(40)])
    assert model.likelihood_ == "bethe"
    assert MatchingCRF(rho=0.5).fit(*small).likelihood_ == "bethe"
    with pytest.raises(TooLargeError, match="Choose likelihood='bethe'"):
        MatchingCRF("full").fit([*X, big], [*y, np.arange(40)])
    exact = MatchingCRF().fit(*small)
    assert len(exact.predict([big])[0]) == 40
    with pytest.raises(TooLargeError, match="fit it by likelihood='bethe'"):
        exact.predict_marginals([big])


def test_draws_and_the_most_probable(rng):
    X, y = drawn(rng, 3, 4, (1.0, -0.5), 30, 0.3)
    model = MatchingCRF(allow_unmatched=True).fit(X, y)
    Y = BipartiteMatching(3, 4, True).enumerate()
    (found,) = model.kbest(X[:1], len(Y) + 1)
    assert len(found) == len(Y)
    assert np.exp([log_p for _, log_p in found]).sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(found[0][0], model.predict(X[:1])[0])
    draws = model.sample(X[:2], 3000, random_state=0)
    assert draws[0].shape == (3000, 3)
    share = np.mean([(draws[0] == found[0][0]).all(1)])
    assert share == pytest.approx(np.exp(found[0][1]), abs=0.03)


@pytest.mark.filterwarnings("ignore::partita.ConvergenceWarning")  # messages of three rows are long on their way
def test_marginals_are_calibrated(rng):
    """Of pairs with a predicted probability near p, a share near p are real: exactly so by exact sums, not by Bethe's."""
    X, y = drawn(rng, 3, 3, (1.0, 0.5), 3000)
    real = np.array([BipartiteMatching(3).indicators(row)[0] for row in y]).ravel()
    errors = {}
    for likelihood in ("full", "bethe"):
        tau = np.ravel(MatchingCRF(likelihood).fit(X, y).predict_marginals(X))
        cell = np.minimum((10.0 * tau).astype(int), 9)
        sums = [np.bincount(cell, values, 10) for values in (tau, real, np.ones_like(tau))]
        errors[likelihood] = np.abs(sums[0] - sums[1]).sum() / sums[2].sum()
    assert errors["full"] < 0.012
    assert errors["bethe"] > 2.0 * errors["full"]


@pytest.mark.parametrize("likelihood", ["full", "bethe"])
@pytest.mark.parametrize("kind", ["edges", "nodes"])
def test_pictures_in_which_there_is_nothing(likelihood, kind, rng):
    """A side without vertices adds nothing to the likelihood, and has an answer."""
    X, y = drawn(rng, 3, 4, (1.0, -0.5), 20, 0.3)
    empty = [np.ones((2, 0, 4)), np.ones((2, 3, 0)), np.ones((2, 0, 0))]
    if kind == "nodes":
        X = [{"rows": x[0].T[:3], "columns": x[1].T} for x in X]
        empty = [{"rows": np.ones((n, 3)), "columns": np.ones((m, 3))} for n, m in ((0, 4), (3, 0), (0, 0))]
    alone = MatchingCRF(likelihood, allow_unmatched=True, tol=1e-9).fit(X, y)
    model = MatchingCRF(likelihood, allow_unmatched=True, tol=1e-9).fit([*X, *empty], [*y, [], [-1, -1, -1], []])
    np.testing.assert_allclose(model.parameters_, alone.parameters_, atol=1e-4)
    np.testing.assert_allclose(model.row_parameters_, alone.row_parameters_, atol=1e-4)
    assert [found.tolist() for found in model.predict(empty)] == [[], [-1, -1, -1], []]
    assert [tau.shape for tau in model.predict_marginals(empty)] == [(0, 4), (3, 0), (0, 0)]
    np.testing.assert_allclose(model.log_likelihood(empty, [[], [-1] * 3, []]), 0.0, atol=1e-9)
    assert [draws.shape for draws in model.sample(empty, 5, random_state=0)] == [(5, 0), (5, 3), (5, 0)]
    assert [len(found) for found in model.kbest(empty, 5)] == [1, 1, 1]
    assert model.score([*X, *empty], [*y, [], [-1, -1, -1], []]) > model.score(X, y)
    with pytest.raises(ValueError, match="a score needs one"):
        model.score(empty[:1], [[]])


def test_options_of_inference(rng):
    X, y = drawn(rng, 5, 5, (1.0, -0.5), 10)
    with pytest.warns(ConvergenceWarning, match="engine bethe has not converged"):
        MatchingCRF("bethe", inference_max_iter=1).fit(X, y)
    loose = MatchingCRF("bethe", inference_tol=1e-4, tol=1e-3).fit(X, y)
    tight = MatchingCRF("bethe", inference_tol=1e-13).fit(X, y)
    np.testing.assert_allclose(loose.parameters_, tight.parameters_, atol=0.05)
    assert loose.gap_ > tight.gap_


def test_the_old_name_warns(rng):
    X, y = drawn(rng, 3, 3, (1.0,), 5, 0.0)
    with pytest.warns(FutureWarning, match="perfect=False is allow_unmatched=True now"):
        old = MatchingCRF(perfect=False).fit(X, y)
    new = MatchingCRF(allow_unmatched=True).fit(X, y)
    np.testing.assert_array_equal(old.parameters_, new.parameters_)
    with pytest.raises(ValueError, match="perfect must be True, False or None"):
        MatchingCRF(perfect=1).fit(X, y)


def test_edges_of_two_sides_keep_both_bounds(rng):
    edges = np.array([(i, 4 + j) for i in range(4) for j in range(4)])[rng.permutation(16)]
    X = [{"edges": edges, "features": rng.standard_normal((16, 1))} for _ in range(6)]
    y = [np.array([(0, 4), (1, 5), (2, 6), (3, 7)])] * 6
    model = MatchingCRF("bethe", bipartite=False).fit(X, y)
    _, lower, upper = model.log_likelihood(X, y, bounds=True)
    exact = MatchingCRF("full", bipartite=False).fit(X, y)
    exact.parameters_ = model.parameters_
    truth = exact.log_likelihood(X, y)
    assert (lower <= truth + 1e-9).all()
    assert (truth <= upper + 1e-9).all()
    assert np.isfinite([lower, upper]).all()


def test_pairs_and_vertices_of_other_sizes_are_read(rng):
    X = [{"rows": rng.standard_normal((2, 3)), "columns": rng.standard_normal((4, 2))} for _ in range(6)]
    model = MatchingCRF(allow_unmatched=True).fit(X, [[(0, 3)], [], [(1, 2), (0, 0)]] * 2)
    assert model.parameters_.shape == (3, 2)
    assert model.row_parameters_.shape == (1,)
    assert model.predict_marginals(X)[0].shape == (2, 4)
    batches, _ = read_examples(X, Reading(True, True, None))
    np.testing.assert_array_equal(read_known([[(0, 3)]] * 6, batches)[0].matchings[0], [3, -1])


@pytest.mark.parametrize(
    ("options", "x", "y", "message"),
    [
        ({}, {"features": np.ones((1, 2, 3)), "row_features": np.ones((1, 2))}, [0, 1], "set allow_unmatched=True"),
        (
            {"allow_unmatched": True},
            {"features": np.ones((1, 2, 3)), "row_features": np.ones((1, 3))},
            [0, 1],
            "row_features",
        ),
        ({}, {"features": np.ones((1, 2, 3)), "forbidden": np.zeros((3, 2), bool)}, [0, 1], r"of shape \(2, 3\)"),
        ({}, {"features": np.ones((1, 2, 3)), "forbidden": np.zeros((2, 3))}, [0, 1], "True and False"),
        ({}, {"features": np.ones((1, 2, 2)), "forbidden": np.ones((2, 2), bool)}, [0, 1], "rules out"),
        ({}, {"features": np.full((1, 2, 2), np.nan)}, [0, 1], "NaN or inf"),
        ({}, {"features": np.ones((1, 2, 2)), "rows": np.ones((2, 1))}, [0, 1], "got keys"),
        ({}, np.ones((1, 0, 2)), [], "example 0 has no rows, or no columns, .*: leave it out, or set allow_unmatched=True"),
        ({"allow_unmatched": True}, np.ones((0, 2, 2)), [0, 1], "none of them zero"),
        ({"allow_unmatched": True}, np.ones((1, 2, 0)), [0, -1], "row 0 has column 0|which 'forbidden'"),
        ({"bipartite": False}, np.ones((1, 0, 0)), [], "none of them zero"),
        ({}, np.ones((1, 2, 3)), [0, -1], "leaves row 1 without a column .*allow_unmatched=True"),
        ({}, np.ones((1, 3, 2)), [0, -1, -1], "leaves column 1 without a row"),
        ({"allow_unmatched": True}, np.ones((1, 3, 2)), [0, -1, 0], "rows 0 and 2 have column 0"),
        ({"allow_unmatched": True}, np.ones((1, 3, 2)), [0, 2, -1], "row 1 has column 2, not one from 0 to 1"),
        ({"allow_unmatched": True}, np.ones((1, 3, 2)), [(0, 2)], "a row below 3 and a column below 2"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(options, x, y, message):
    model = MatchingCRF(**options)
    with pytest.raises(ValueError, match=message):
        model.fit([x], [y])
    assert not hasattr(model, "parameters_")

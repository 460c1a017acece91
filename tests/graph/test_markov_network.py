"""Markov networks against enumeration, scipy and what generated the data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from enumeration import choices
from scipy.optimize import minimize as scipy_minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from partita import ConvergenceWarning, DataWarning, MarkovNetwork, TooLargeError, load
from partita.structures import FactorGraph


def statistics(states, factors, counts, kind):
    """One column for each weight, factor by factor."""
    columns = []
    for scope in factors:
        part = states[:, list(scope)]
        entries = choices(counts[v] for v in scope)
        if kind == "spins":
            columns.append(np.prod(2 * part - 1, axis=1))
        elif kind == "agreement" and len(scope) > 1:
            columns.append((part == part[:, :1]).all(1))
        else:
            kept = [e for e in entries if kind == "entries" or min(e) > 0]
            columns += [(part == e).all(1) for e in kept]
    return np.array(columns, dtype=float).T


CASES = [
    ("entries", [2, 3, 2], [(0,), (0, 1), (1, 2), (2, 0)], 0.3),
    ("entries", [2, 3, 2], [(0, 1, 2), (1,)], 0.5),
    ("contrasts", [2, 3, 2], [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)], 0.0),
    ("spins", [2, 2, 2, 2], [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (3, 0)], 0.0),
    ("agreement", [3, 3, 3], [(0,), (1,), (2,), (0, 1), (1, 2)], 0.0),
]


@pytest.mark.parametrize(("kind", "counts", "factors", "l2"), CASES)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_the_maximum_is_that_of_scipy(rng, kind, counts, factors, l2, missing):
    states = choices(counts)
    T = statistics(states, factors, counts, kind)
    X = states[rng.integers(0, len(states), 120)]
    X[rng.random(X.shape) < missing] = -1
    w = rng.random(len(X))
    agree = ((X[:, None] == states) | (X[:, None] < 0)).all(2)

    def loss(theta):
        s = T @ theta
        inside = np.log(agree @ np.exp(s))
        return w.sum() * np.logaddexp.reduce(s) - w @ inside + 0.5 * l2 * theta @ theta

    best = scipy_minimize(loss, np.zeros(T.shape[1]), method="BFGS", options={"gtol": 1e-7})
    model = MarkovNetwork(factors, counts, statistics=kind, l2=l2, tol=1e-9).fit(X, sample_weight=w)
    assert model.trace_.objective[-1] == pytest.approx(best.fun, rel=1e-9, abs=1e-9)
    assert model.trace_.objective[-1] == pytest.approx(loss(model.parameters_), rel=1e-11)
    np.testing.assert_allclose(model.parameters_, best.x, atol=2e-4)
    s = T @ model.parameters_
    log_z = np.logaddexp.reduce(s)
    p = np.exp(s - log_z)
    np.testing.assert_allclose(model.log_likelihood(X), np.log(agree @ p), atol=1e-11)
    assert model.score(X) == pytest.approx(np.log(agree @ p).mean())
    assert model.log_partition() == pytest.approx(log_z)
    assert model.log_partition(bounds=True) == pytest.approx((log_z, log_z, log_z))
    marginals = model.predict_marginals(X)
    filled = model.predict(X)
    for i in range(0, len(X), 7):
        given = p * agree[i]
        for v, table in enumerate(marginals):
            expected = np.bincount(states[:, v], weights=given / given.sum(), minlength=counts[v])
            np.testing.assert_allclose(table[i], expected, atol=1e-10)
        best_state = np.flatnonzero((states == filled[i]).all(1))[0]
        assert given[best_state] == pytest.approx(given.max())
    for v, table in enumerate(model.predict_marginals()):
        np.testing.assert_allclose(table[0], np.bincount(states[:, v], weights=p, minlength=counts[v]), atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("method", ["information", "sandwich"])
def test_standard_errors_are_those_of_the_formula(rng, method, missing):
    counts, factors = [2, 2, 3], [(0,), (1,), (2,), (0, 1), (1, 2)]
    states = choices(counts)
    T = statistics(states, factors, counts, "contrasts")
    X = states[rng.integers(0, len(states), 300)]
    X[rng.random(X.shape) < missing] = -1
    model = MarkovNetwork(factors, counts, statistics="contrasts", tol=1e-10).fit(X)
    p = np.exp(T @ model.parameters_)
    p /= p.sum()
    H, J = np.zeros((2, T.shape[1], T.shape[1]))
    for x in X:
        q = p * ((x == states) | (x < 0)).all(1)
        q /= q.sum()
        H += np.cov(T.T, aweights=p, ddof=0) - np.cov(T.T, aweights=q, ddof=0)
        g = q @ T - p @ T
        J += np.outer(g, g)
    inverse = np.linalg.inv(H)
    expected = inverse if method == "information" else inverse @ J @ inverse
    np.testing.assert_allclose(model.standard_errors(method), np.sqrt(np.diag(expected)), rtol=1e-6)


def test_standard_errors_of_free_tables_are_those_of_normalised_ones(rng):
    X = rng.integers(0, 2, (200, 1))
    model = MarkovNetwork([(0,)], tol=1e-12).fit(X)
    p = X.mean()
    # (a, -a) with 2 a the log-odds
    np.testing.assert_allclose(model.parameters_, [-0.5 * np.log(p / (1 - p)), 0.5 * np.log(p / (1 - p))], atol=1e-8)
    np.testing.assert_allclose(model.standard_errors(), 0.5 / np.sqrt(200 * p * (1 - p)), rtol=1e-6)


def test_standard_errors_are_refused_where_they_mean_nothing(rng, tmp_path):
    X = np.zeros((50, 2), int)
    X[:, 1] = rng.integers(0, 2, 50)
    model = MarkovNetwork(cardinalities=2, statistics="contrasts").fit(X)
    with pytest.raises(ValueError, match="set l2 > 0"):
        model.standard_errors()
    model.set_params(l2=1.0).fit(X)
    assert np.isfinite(model.standard_errors()).all()
    np.testing.assert_array_equal(model.summary().standard_error, model.standard_errors())
    assert len(model.summary(top=2).names) == 2
    model.save(tmp_path / "m.partita")
    with pytest.raises(ValueError, match="fit again"):
        load(tmp_path / "m.partita").standard_errors()


def grid_edges(h, w):
    return [scope for scope in FactorGraph.grid(h, w).factors if len(scope) == 2]


def test_a_10_by_10_ising_model_is_recovered():
    edges = grid_edges(10, 10)
    rng = np.random.default_rng(1)
    truth = np.concatenate([0.3 * rng.standard_normal(100), rng.uniform(0.1, 0.5, len(edges))])
    model = MarkovNetwork.ising(edges)
    source = clone(model).set_params(l2=1.0).fit(np.zeros((1, 100), int))
    source.parameters_ = truth
    spread = []
    for n in (500, 2000):
        fitted = clone(model).fit(source.sample(n, random_state=n))
        error = fitted.parameters_ - truth
        spread.append(np.sqrt(np.mean(error**2)))
        if n == 500:
            z = error / fitted.standard_errors()
            assert np.abs(z).max() < 4.5
            assert 0.85 < np.sqrt(np.mean(z**2)) < 1.15
    assert 1.6 < spread[0] / spread[1] < 2.5  # the root of four


def test_tied_weights_are_shared(rng):
    edges = grid_edges(3, 3)
    X = rng.integers(0, 3, (60, 9))
    model = MarkovNetwork.potts(edges, 3).fit(X)
    assert model.parameters_.shape == (3,)
    tables = model.tables_
    np.testing.assert_array_equal(tables[9], tables[-1])
    np.testing.assert_array_equal(tables[0], [0.0, *model.parameters_[:2]])
    np.testing.assert_array_equal(tables[9], np.eye(3) * model.parameters_[2])
    assert MarkovNetwork.potts(edges, 3, tied=False).fit(X).parameters_.shape == (9 * 2 + len(edges),)
    assert MarkovNetwork.ising(edges, tied=True).fit(X % 2).parameters_.shape == (2,)
    by_shape = MarkovNetwork(cardinalities=3, tie=True, l2=1.0).fit(X[:, :3])
    assert by_shape.parameters_.shape == (3 + 9,)
    named = MarkovNetwork([(0,), (1,), (0, 1)], 3, tie=["a", "b", "c"], l2=1.0).fit(X[:, :2])
    free = MarkovNetwork([(0,), (1,), (0, 1)], 3, l2=1.0).fit(X[:, :2])
    np.testing.assert_allclose(named.parameters_, free.parameters_, atol=1e-10)
    assert MarkovNetwork.boltzmann(4, biases=True).fit(X[:, :4] % 2).parameters_.shape == (10,)


def test_boltzmann_machines_have_pairs_in_order_and_no_biases(rng):
    states = choices([2] * 4)
    X = states[rng.integers(0, 16, 200)]
    model = MarkovNetwork.boltzmann(4, tol=1e-10).fit(X)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert model.factors == pairs
    T = np.array([states[:, i] * states[:, j] for i, j in pairs]).T
    p = np.exp(T @ model.parameters_)
    np.testing.assert_allclose(p / p.sum() @ T, np.array([X[:, i] * X[:, j] for i, j in pairs]).mean(1), atol=1e-8)
    assert MarkovNetwork.boltzmann(4, biases=True).factors == [(0,), (1,), (2,), (3,), *pairs]
    with pytest.raises(ValueError, match="m must be"):
        MarkovNetwork.boltzmann(1)
    assert MarkovNetwork.boltzmann(1, biases=True).factors == [(0,)]


def test_ising_takes_networkx_graphs(rng):
    networkx = pytest.importorskip("networkx")
    model = MarkovNetwork.ising(networkx.cycle_graph(4))
    assert model.factors[4:] == [(0, 1), (0, 3), (1, 2), (2, 3)]


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "cg"])
def test_solvers_agree(rng, solver):
    X = rng.integers(0, 2, (100, 5))
    a = MarkovNetwork.boltzmann(5, solver=solver, tol=1e-10).fit(X)
    b = MarkovNetwork.boltzmann(5, tol=1e-10).fit(X)
    assert a.trace_.objective[-1] == pytest.approx(b.trace_.objective[-1], rel=1e-12)
    np.testing.assert_allclose(a.parameters_, b.parameters_, atol=1e-7)


def test_threads_do_not_matter(rng):
    X = rng.integers(0, 2, (100, 16))
    X[rng.random(X.shape) < 0.1] = -1
    one, two = (MarkovNetwork.ising(grid_edges(4, 4), n_jobs=jobs).fit(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one.parameters_, two.parameters_)


def test_a_model_file_gives_the_same_model(rng, tmp_path):
    X = rng.integers(0, 3, (40, 4))
    for model in (MarkovNetwork.potts([(0, 1), (1, 2), (2, 3)], 3), MarkovNetwork(tie=True, l2=0.1, engine_options={})):
        model.fit(X)
        model.save(tmp_path / "m.partita")
        again = MarkovNetwork.load(tmp_path / "m.partita")
        np.testing.assert_array_equal(again.log_likelihood(X), model.log_likelihood(X))
        assert again.get_params() == model.get_params()
        assert again.status_ is model.status_
        np.testing.assert_array_equal(again.sample(5, 0), model.sample(5, 0))


def test_it_works_in_a_grid_search(rng):
    X = rng.integers(0, 2, (60, 4))
    search = GridSearchCV(MarkovNetwork.boltzmann(4), {"l2": [0.1, 10.0]}, cv=3).fit(X)
    assert search.best_params_ == {"l2": 10.0}
    assert search.best_estimator_.score(X) < 0.0


def test_unknown_values_may_be_none_or_nan():
    X = [[0, None], [1, 1], [1, 0], [0, 0], [0, 0], [1, 1], [0, 1]]
    a = MarkovNetwork(l2=0.1).fit(X)
    b = MarkovNetwork(l2=0.1).fit(np.array([[np.nan if v is None else v for v in row] for row in X]))
    c = MarkovNetwork(l2=0.1).fit([[-1 if v is None else v for v in row] for row in X])
    np.testing.assert_array_equal(a.parameters_, b.parameters_)
    np.testing.assert_array_equal(a.parameters_, c.parameters_)
    np.testing.assert_array_equal(a.predict([[1, 0]]), [[1, 0]])


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({}, [[0.5, 1.0]], "must hold integers"),
        ({}, [["a", "b"]], "must hold integers"),
        ({}, [0, 1], "must have shape"),
        ({"cardinalities": 2}, [[0, 2]], "X has 2 for variable 1"),
        ({"cardinalities": [2]}, [[0, 1]], "cardinalities must be"),
        ({"factors": [(0, 2)]}, [[0, 1]], "factor 0 must have"),
        ({"factors": [()]}, [[0, 1]], "at least one variable"),
        ({"tie": ["a"]}, [[0, 1]], "a label for each of 3"),
        ({"tie": ["a", "b", "a"]}, [[0, 1]], "have tables"),
        ({"statistics": "odd"}, [[0, 1]], "statistics must be"),
        ({"statistics": "spins"}, [[0, 2]], "two states"),
        ({"l2": -1.0}, [[0, 1]], "l2 must be"),
        ({"engine": "gibbs"}, [[0, 1]], "engine must be"),
        ({"likelihood": "half"}, [[0, 1]], "likelihood must be"),
        ({"solver": "no"}, [[0, 1]], "solver must be"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(parameters, X, message):
    model = MarkovNetwork(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    assert not hasattr(model, "parameters_")


def test_too_wide_for_exact_sums_is_an_error_before_work(rng):
    model = MarkovNetwork.boltzmann(12, engine="exact", engine_options={"memory_limit": 1e4})
    with pytest.raises(TooLargeError, match="limit"):
        model.fit(rng.integers(0, 2, (5, 12)))


def test_stopping_early_is_a_warning(rng):
    with pytest.warns(ConvergenceWarning, match="MarkovNetwork stopped at the iteration limit"):
        MarkovNetwork.boltzmann(4, max_iter=1).fit(rng.integers(0, 2, (30, 4)))


def test_a_surrogate_says_so(rng):
    X = rng.integers(0, 2, (50, 9))
    model = MarkovNetwork.ising(grid_edges(3, 3), engine="trw", l2=1.0).fit(X)
    assert model.engine_ == "trw"
    exact = clone(model).set_params(engine="exact").fit(X)
    np.testing.assert_allclose(model.parameters_, exact.parameters_, atol=0.2)
    value, lower, upper = model.log_partition(bounds=True)
    assert lower < model.set_params(engine="exact").log_partition() < upper
    assert value == pytest.approx(upper, abs=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a word on the number of weights is for errors that there are
        with pytest.raises(ValueError, match=r"exact inference.*Fit with .*engine='exact'"):
            model.standard_errors()
    model.set_params(engine="trw")
    assert (model.predict(np.full((1, 9), -1)) >= 0).all()


def test_auto_takes_an_approximate_engine_where_exact_sums_do_not_fit(rng):
    X = rng.integers(0, 2, (30, 9))
    model = MarkovNetwork.ising(grid_edges(3, 3), engine_options={"memory_limit": 100.0}, l2=1.0).fit(X)
    assert model.engine_ == "trw"
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_columns_that_are_ignored_may_hold_anything(rng, kind):
    pandas, module = pytest.importorskip("pandas"), pytest.importorskip(kind)
    frame = pandas.DataFrame(rng.integers(0, 2, (50, 2)), columns=["a", "b"])
    wide = frame.assign(day=pandas.date_range("2020-01-01", periods=50), town="Rome")[["day", "b", "town", "a"]]
    model = MarkovNetwork.ising([("a", "b")], l2=1.0)
    plain = clone(model).fit(frame)
    if kind != "pandas":
        wide = module.from_pandas(wide) if kind == "polars" else module.Table.from_pandas(wide)
    with pytest.warns(DataWarning, match="2 columns that MarkovNetwork does not have"):
        model.fit(wide)
    np.testing.assert_array_equal(model.parameters_, plain.parameters_)
    with pytest.warns(DataWarning, match="ignored"):
        assert model.score(wide) == plain.score(frame)
    with pytest.warns(DataWarning, match="ignored"):
        np.testing.assert_array_equal(model.predict(wide), frame[["b", "a"]])

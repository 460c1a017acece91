"""Bayesian networks with hidden variables and unknown values."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from enumeration import choices
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from partita import BayesianNetwork, ConvergenceWarning, DataWarning, TooLargeError, load
from partita.io import DiscreteNetwork, read_bif, write_bif
from partita.solvers import EM

pd = pytest.importorskip("pandas")

EDGES = [("H", f"x{i}") for i in range(4)]


def grouped(seed=0, n=200, k=4):
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    return (rng.random((n, k)) < np.where(group, 0.85, 0.2)[:, None]).astype(int), group


def frame(X):
    return pd.DataFrame({f"x{i}": np.array(["no", "yes"], dtype=object)[X[:, i]] for i in range(X.shape[1])})


def test_supervised_tables_are_frequencies():
    data = pd.DataFrame({"a": list("uuuvvv"), "b": list("xxyxyy"), "c": [0, 1, 1, 0, 0, 1]})
    model = BayesianNetwork([("a", "b"), ("a", "c"), ("b", "c")], alpha=0.0).fit(data)
    np.testing.assert_allclose(model.tables_["a"], [0.5, 0.5])
    np.testing.assert_allclose(model.tables_["b"], [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    np.testing.assert_allclose(model.tables_["c"][1, 1], [0.5, 0.5])
    assert model.states_ == {"a": ["u", "v"], "b": ["x", "y"], "c": [0, 1]}
    expected = np.log([0.5 * 2 / 3 * 0.5, 0.5 * 2 / 3 * 0.5, 0.5 * 1 / 3, 0.5 * 1 / 3, 0.5 * 2 / 3 * 0.5, 0.5 * 2 / 3 * 0.5])
    np.testing.assert_allclose(model.log_likelihood(data), expected, atol=1e-12)
    assert model.n_parameters_ == 1 + 2 + 4
    assert model.bic(data) == pytest.approx(np.log(6) * 7 - 2 * expected.sum())
    assert model.aic(data) == pytest.approx(14 - 2 * expected.sum())


def test_objective_is_the_penalised_likelihood_of_what_is_known():
    X, _ = grouped()
    model = BayesianNetwork(EDGES, hidden={"H": 2}, alpha=0.8, random_state=0).fit(X)
    prior, tables = model.tables_["H"], [model.tables_[f"x{i}"] for i in range(4)]
    p = sum(prior[h] * np.prod([tables[i][h, X[:, i]] for i in range(4)], axis=0) for h in range(2))
    np.testing.assert_allclose(model.log_likelihood(X), np.log(p), atol=1e-12)
    weights = [np.log(t) - np.log(t).mean(-1, keepdims=True) for t in (prior, *tables)]  # W sums to zero at the optimum
    penalty = 0.4 * sum((w**2).sum() for w in weights)
    assert model.objective_ == pytest.approx(penalty - np.log(p).sum(), rel=1e-9)
    assert model.score(X) == pytest.approx(np.log(p).mean())


@pytest.mark.parametrize("method", ["em", "viterbi", "conditional"])
def test_every_method_finds_the_groups_and_never_rises(method):
    X, group = grouped(n=300)
    model = BayesianNetwork(EDGES, hidden={"H": 2}, method=method, random_state=0).fit(X)
    found = model.predict_proba(X)["H"].argmax(1)
    if method != "conditional":  # its optimum may call all rows by one name
        assert max(np.mean(found == group), np.mean(found != group)) > 0.85
    assert model.objective_ == np.nanmin(model.objectives_)
    assert len(model.traces_) == 10
    for trace in model.traces_:
        assert (np.diff(trace) <= 0.0).all()


def test_posteriors_and_filled_values_are_those_of_enumeration(rng):
    edges = [("a", "H"), ("H", "b"), ("H", "c"), ("b", "c"), ("c", "d")]
    X = rng.integers(3, size=(80, 4)).astype(float)  # a b c d in the order of edges: a, b, c, d
    X[rng.random(X.shape) < 0.2] = np.nan
    model = BayesianNetwork(edges, hidden={"H": 2}, n_init=2, random_state=0, max_iter=20, tol=1e-3).fit(X)
    nodes = model.nodes_
    assert nodes == ["a", "H", "b", "c", "d"]
    rows = choices([3, 2, 3, 3, 3])
    joint = np.ones(len(rows))
    for name, table in model.tables_.items():
        scope = [nodes.index(v) for v in (*model.parents_[name], name)]
        joint *= table[tuple(rows[:, scope].T)]
    assert joint.sum() == pytest.approx(1.0)
    filled, proba, logs = model.predict(X), model.predict_proba(X), model.log_likelihood(X)
    for i, x in enumerate(X):
        known = [np.nan if name == "H" else x[["a", "b", "c", "d"].index(name)] for name in nodes]
        fits = (np.isnan(known) | (rows == np.nan_to_num(known, nan=-1.0))).all(axis=1)
        assert logs[i] == pytest.approx(np.log(joint[fits].sum()))
        assert joint[(rows == filled[i]).all(axis=1)] == pytest.approx(joint[fits].max())
        posterior = np.bincount(rows[fits, 1], weights=joint[fits], minlength=2) / joint[fits].sum()
        np.testing.assert_allclose(proba["H"][i], posterior, atol=1e-12)


def test_data_frames_arrays_and_codes_are_the_same():
    X, _ = grouped()
    options = {"hidden": {"H": 2}, "random_state": 0, "n_init": 2}
    a = BayesianNetwork(EDGES, **options).fit(X)
    b = BayesianNetwork(EDGES, **options).fit(frame(X))
    c = BayesianNetwork(EDGES, **options).fit(frame(X)[["x3", "x1", "x0", "x2"]].astype("category"))
    d = BayesianNetwork(EDGES, cardinalities={f"x{i}": ["no", "yes"] for i in range(4)}, **options).fit(X)
    with_column = np.column_stack([np.full(len(X), -1), X])  # H is the first of the nodes
    e = BayesianNetwork(EDGES, **options).fit(with_column)
    expected = a.log_likelihood(X)
    for other, table in ((b, frame(X)), (c, frame(X)), (d, X), (e, X)):
        np.testing.assert_array_equal(other.log_likelihood(table), expected)
    assert b.predict(frame(X)).columns.tolist() == ["x0", "x1", "x2", "x3", "H"]
    assert c.states_["x0"] == ["no", "yes"]
    assert d.predict(X).dtype.kind == "i"


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_every_kind_of_missing_value(missing):
    X, _ = grouped()
    data = frame(X)
    data.loc[::3, "x1"] = missing
    data.loc[1::7, "x2"] = missing
    model = BayesianNetwork(EDGES, hidden={"H": 2}, random_state=0).fit(data)
    filled = model.predict(data)
    assert not filled.isna().any().any()
    known = data.notna()
    assert (filled[data.columns][known] == data[known]).sum().sum() == known.sum().sum()
    values = np.where(data.isna(), None, data.to_numpy(dtype=object))
    again = BayesianNetwork(EDGES, hidden={"H": 2}, random_state=0).fit(values)
    np.testing.assert_array_equal(again.log_likelihood(values), model.log_likelihood(data))


def test_hidden_values_that_are_known_are_used():
    X, group = grouped(n=400)
    data = pd.DataFrame(X, columns=[f"x{i}" for i in range(4)])
    data["H"] = np.where(np.arange(400) < 40, group, np.nan)
    model = BayesianNetwork(EDGES, hidden={"H": 2}).fit(data)
    assert len(model.objectives_) == 1  # some are known: no symmetry, one start
    assert np.mean(model.predict(data)["H"] == group) > 0.85


def test_rows_without_values_are_left_out():
    X, _ = grouped()
    options = {"hidden": {"H": 2}, "random_state": 0}
    data = np.vstack([X, np.full((5, 4), -1)])
    model = BayesianNetwork(EDGES, **options).fit(data)
    assert model.objective_ == BayesianNetwork(EDGES, **options).fit(X).objective_
    np.testing.assert_allclose(model.log_likelihood(data)[-5:], 0.0, atol=1e-12)


def test_weights_repeat_rows():
    X, _ = grouped(n=60)
    options = {"hidden": {"H": 2}, "random_state": 0, "tol": 1e-8}
    weighted = BayesianNetwork(EDGES, **options).fit(X, sample_weight=1.0 + (np.arange(60) < 20))
    repeated = BayesianNetwork(EDGES, **options).fit(np.vstack([X, X[:20]]))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)


def test_values_that_never_occur():
    X, _ = grouped()
    cards = {"x0": 3}
    smooth = BayesianNetwork(EDGES, cards, hidden={"H": 2}, random_state=0).fit(X)
    assert (smooth.tables_["x0"][:, 2] > 0.0).all()
    plain = BayesianNetwork(EDGES, cards, hidden={"H": 2}, alpha=0.0, random_state=0).fit(X)
    assert (plain.tables_["x0"][:, 2] == 0.0).all()
    assert plain.log_likelihood([[2, 0, 0, 0], [2, 0, -1, 0]]).tolist() == [-np.inf, -np.inf]


def test_gaussian_leaves_are_a_mixture():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=600)
    X = rng.standard_normal((600, 2)) * [1.0, 20.0] + np.where(group, 3.0, -3.0)[:, None] * [1.0, 30.0] + [0.0, 500.0]
    model = BayesianNetwork([("H", "a"), ("H", "b")], hidden={"H": 2}, gaussian=["a", "b"], alpha=0.0, random_state=0)
    found = model.set_params(variance="free", tol=1e-8).fit(X)
    rival = GaussianMixture(2, covariance_type="diag", tol=1e-10, n_init=5, random_state=0).fit(X)
    assert found.score(X) == pytest.approx(rival.score(X), abs=1e-5)
    order, other = found.means_["a"].argsort(), rival.means_[:, 0].argsort()
    np.testing.assert_allclose(found.means_["b"][order], rival.means_[other, 1], rtol=1e-3)
    np.testing.assert_allclose(found.variances_["b"][order], rival.covariances_[other, 1], rtol=1e-2)
    missing = X.copy()
    missing[::4, 1] = np.nan
    filled = model.fit(missing).predict(missing)
    np.testing.assert_allclose(filled[1::4, 2], X[1::4, 1])
    assert np.mean(np.abs(filled[::4, 2] - X[::4, 1])) < 25.0
    tied = BayesianNetwork([("H", "a"), ("H", "b")], hidden={"H": 2}, gaussian=["a", "b"], random_state=0).fit(X)
    assert tied.variances_["a"][0] == tied.variances_["a"][1]
    draws = tied.sample(5000, 0)
    np.testing.assert_allclose(draws[:, 1:].mean(0), X.mean(0), atol=10.0)
    np.testing.assert_allclose(draws[:, 1:].std(0), X.std(0), rtol=0.1)


def test_scale_of_a_gaussian_column_does_not_matter():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 1)) + 4.0 * rng.integers(2, size=100)[:, None]
    options = {"hidden": {"H": 2}, "gaussian": ["a"], "random_state": 0}
    a = BayesianNetwork([("H", "a")], **options).fit(X)
    b = BayesianNetwork([("H", "a")], **options).fit(1000.0 * X + 5.0)
    np.testing.assert_allclose(a.log_likelihood(X) - np.log(1000.0), b.log_likelihood(1000.0 * X + 5.0), atol=1e-7)


def test_bif_files(tmp_path):
    network = DiscreteNetwork(
        ("rain", "wet"),
        (("no", "yes"), ("dry", "damp", "soaked")),
        ((), ("rain",)),
        (np.array([0.7, 0.3]), np.array([[0.9, 0.08, 0.02], [0.1, 0.4, 0.5]])),
    )
    data = BayesianNetwork(network, alpha=0.0).fit(pd.DataFrame({"rain": ["no", "yes"] * 5, "wet": ["dry"] * 10}))
    assert data.states_["wet"] == ["dry", "damp", "soaked"]
    path = tmp_path / "net.bif"
    data.to_bif(path)
    back = read_bif(path)
    assert back.variables == ("rain", "wet")
    np.testing.assert_array_equal(back.tables[1], data.tables_["wet"])
    again = BayesianNetwork(path, hidden=["rain"], random_state=0).fit(pd.DataFrame({"wet": ["dry", "soaked"] * 20}))
    assert again.states_["rain"] == ["no", "yes"]
    codes = BayesianNetwork(path).fit(np.array([[0, 2], [1, 0], [1, 0]]))
    assert codes.predict([[-1, 0], [-1, 2]]).tolist() == [[1, 0], [0, 2]]
    codes.save(tmp_path / "model.partita")
    assert load(tmp_path / "model.partita").edges == str(path)


def test_states_named_by_numbers_in_a_file_are_these_numbers(tmp_path):
    X = np.array([[1, 2], [2, 3], [3, 3], [3, 2], [1, 2]])
    model = BayesianNetwork([("a", "b")]).fit(X)
    model.to_bif(tmp_path / "net.bif")
    back = BayesianNetwork(tmp_path / "net.bif").fit(X[[0, 1, 1, 0]])  # in which 3 does not occur
    assert back.states_["a"] == ["1", "2", "3"]
    np.testing.assert_allclose(back.tables_["a"].argmin(), 2)
    np.testing.assert_array_equal(back.predict([[1, -1], [2, -1]]), [[1, 2], [2, 3]])


def test_draws_have_the_fitted_frequencies():
    X, _ = grouped()
    model = BayesianNetwork(EDGES, hidden={"H": 2}, random_state=0).fit(frame(X))
    draws = model.sample(20_000, 1)
    assert draws.columns.tolist() == model.nodes_
    assert np.mean(draws["H"] == 1) == pytest.approx(model.tables_["H"][1], abs=0.02)
    assert model.log_likelihood(draws.drop(columns="H")).mean() == pytest.approx(model.score(frame(X)), abs=0.1)


def test_given_tables_are_where_em_starts():
    X, _ = grouped()
    tables = {"H": [0.5, 0.5]} | {f"x{i}": [[0.6, 0.4], [0.3, 0.7]] for i in range(4)}
    model = BayesianNetwork(EDGES, hidden={"H": 2}, alpha=0.0, init=tables, max_iter=1, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="limit"):
        model.fit(X)
    p = 0.5 * np.prod(np.array([0.6, 0.4])[X], axis=1) + 0.5 * np.prod(np.array([0.3, 0.7])[X], axis=1)
    assert model.traces_[0][0] == pytest.approx(-np.log(p).sum())
    assert len(model.objectives_) == 1


def test_starts_in_which_hidden_states_are_alike_are_refused():
    X, _ = grouped()
    tables = {"H": [0.5, 0.5]} | {f"x{i}": [[0.6, 0.4], [0.6, 0.4]] for i in range(4)}
    with pytest.raises(ValueError, match="states 0 and 1 of hidden variable 'H' are alike"):
        BayesianNetwork(EDGES, hidden={"H": 2}, init=tables).fit(X)
    BayesianNetwork(EDGES, hidden={"H": 2}, init={"H": [0.5, 0.5]}, random_state=0).fit(X)


def test_result_depends_on_the_seed_alone():
    X, _ = grouped()
    fits = [BayesianNetwork(EDGES, hidden={"H": 3}, random_state=4, n_jobs=jobs).fit(X) for jobs in (1, 2)]
    np.testing.assert_array_equal(fits[0].objectives_, fits[1].objectives_)
    np.testing.assert_array_equal(fits[0].parameters_, fits[1].parameters_)


def test_clone_pipeline_grid_search_and_files(tmp_path):
    X, _ = grouped(n=120)
    model = BayesianNetwork(EDGES, cardinalities=dict.fromkeys(("x0", "x1", "x2", "x3"), 2), hidden={"H": 2}, random_state=0)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"hidden": [{"H": 1}, {"H": 2}], "alpha": [1.0]}, cv=3).fit(X)
    assert search.best_params_["hidden"] == {"H": 2}
    assert make_pipeline(clone(model)).fit(X).score(X) == pytest.approx(clone(model).fit(X).score(X))
    path = tmp_path / "net.partita"
    model.fit(X).save(path)
    again = load(path)
    np.testing.assert_array_equal(again.log_likelihood(X), model.log_likelihood(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.states_ == model.states_
    assert again.get_params() == model.get_params()


def test_integer_names_are_columns():
    X, _ = grouped()
    model = BayesianNetwork([(2, 0), (2, 1), (2, 3)], alpha=0.0).fit(X)
    assert model.nodes_ == [0, 1, 2, 3]
    assert model.tables_[2][1] == pytest.approx(X[:, 2].mean())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": [("a", "b"), ("b", "a")]}, "edges must have no cycle, got"),
        ({"edges": [("a", "a")]}, "edges must have no cycle"),
        ({"edges": [("a", "b"), ("a", "b")]}, "twice"),
        ({"edges": ["ab"]}, r"pairs \(parent, child\)"),
        ({"edges": 3}, r"pairs \(parent, child\)"),
        ({"edges": [], "hidden": None}, "at least one pair"),
        ({"cardinalities": {"x0": 10**5, "x1": 10**5}, "edges": [*EDGES, ("x0", "x1")]}, "20000000000 entries"),
        ({"edges": [("H", "x0"), (1.5, "x1")]}, "strings or integers"),
        ({"hidden": {"H": 0}}, "must be at least 1"),
        ({"hidden": ["H"]}, "needs a number of states"),
        ({"hidden": {"H": 2, "Q": 2}}, "hidden variable 'Q' has no neighbour"),
        ({"gaussian": ["H"]}, "Gaussian and hidden"),
        ({"edges": [*EDGES, ("x0", "x1")], "gaussian": ["x0"]}, "must be a leaf"),
        ({"gaussian": ["x0"], "cardinalities": {"x0": 2}}, "has no number of states"),
        ({"cardinalities": {"x0": "two"}}, "number of states or a list"),
        ({"cardinalities": {"x0": 1}}, "row . has 1 for 'x0', which is none of its states: 0"),
        ({"cardinalities": 2}, "cardinalities must be a dict"),
        ({"alpha": -1.0}, "alpha"),
        ({"method": "magic"}, "method"),
        ({"method": "supervised"}, "row 0 has none for 'H'"),
        ({"n_init": 0}, "n_init"),
        ({"variance": "big"}, "variance"),
        ({"init": 3}, "init must be a dict"),
        ({"init": {"H": [0.5, 0.6]}}, "sum to one"),
        ({"init": {"H": [[0.5, 0.5]]}}, "must have shape"),
        ({"init": {"Q": [0.5, 0.5]}}, "no variable with states"),
        ({"hidden": {"H": 500}}, "has 500 states and is unknown in all of 200 rows"),
    ],
)
def test_bad_parameters_are_named_and_change_nothing(options, message):
    X, _ = grouped()
    model = BayesianNetwork(EDGES, hidden={"H": 2}, random_state=0, n_init=1).fit(X)
    before = model.parameters_
    model.set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    assert model.parameters_ is before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda X: X[:, :3], "4 observed variables"),
        (lambda X: X[:0], "at least one row"),
        (lambda X: X[0], "at least one row"),
        (lambda X: frame(X).rename(columns={"x0": "y"}), "no column 'x0'.*does not have: 'y'"),
        (lambda X: frame(X).drop(columns="x2"), "no column 'x2'"),
        (lambda X: np.full(X.shape, -1), "no known value"),
        (lambda X: frame(X).assign(x1=None), "'x1' has no known value"),
        (lambda X: frame(X)[["x0", "x1", "x2", "x3", "x3"]], "more than one column 'x3'"),
        (lambda X: np.where(X == 1, np.inf, X), "infinite value"),
        (lambda X: X + np.random.default_rng(0).random(X.shape), "name it in gaussian"),
    ],
)
def test_bad_data_are_named(data, message):
    X, _ = grouped()
    with pytest.raises(ValueError, match=message):
        BayesianNetwork(EDGES, hidden={"H": 2}).fit(data(X))


def test_bad_data_after_a_fit():
    X, _ = grouped()
    model = BayesianNetwork(EDGES, hidden={"H": 2}, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X)
    with pytest.raises(ValueError, match="row 1 has 2 for 'x3', which is none of its states: 0, 1"):
        model.predict([[0, 0, 0, 0], [0, 0, 0, 2]])
    with pytest.raises(ValueError, match="must hold numbers"):
        BayesianNetwork([("H", "a")], hidden={"H": 2}, gaussian=["a"]).fit(pd.DataFrame({"a": ["u", "v", "w"]}))
    with pytest.raises(ValueError, match="finite numbers"):
        BayesianNetwork([("H", "a")], hidden={"H": 2}, gaussian=["a"]).fit([[1.0], [np.inf]])
    gaussian = BayesianNetwork([("H", "a")], hidden={"H": 2}, gaussian=["a"], random_state=0).fit([[0.0], [1.0], [5.0]])
    with pytest.raises(ValueError, match="no Gaussian variables"):
        gaussian.to_bif("never.bif")


def test_an_interrupt_keeps_the_best_start(monkeypatch):
    X, _ = grouped()
    calls = []
    advance = EM.advance

    def interrupted(self, state, point):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return advance(self, state, point)

    monkeypatch.setattr(EM, "advance", interrupted)
    model = BayesianNetwork(EDGES, hidden={"H": 2}, random_state=0, n_jobs=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="interrupt"):
        model.fit(X)
    assert np.isnan(model.objectives_[-1])
    assert np.isfinite(model.score(X))


def test_states_that_no_known_value_shows_are_told_apart():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=600)
    p = np.array([[0.9, 0.9, 0.1, 0.1, 0.5, 0.5], [0.1, 0.9, 0.9, 0.1, 0.9, 0.1], [0.1, 0.1, 0.9, 0.9, 0.1, 0.9]])
    data = pd.DataFrame((rng.random((600, 6)) < p[group]).astype(int), columns=[f"x{i}" for i in range(6)])
    edges = [("H", f"x{i}") for i in range(6)]
    without = BayesianNetwork(edges, hidden={"H": 3}, random_state=0).fit(data)
    one = BayesianNetwork(edges, hidden={"H": 3}, random_state=0).fit(data.assign(H=[0.0, *[np.nan] * 599]))
    assert len(one.objectives_) == 10
    assert one.objective_ == pytest.approx(without.objective_, rel=2e-3)
    all_three = data.assign(H=np.where(np.arange(600) < 30, group, np.nan))
    assert len(BayesianNetwork(edges, hidden={"H": 3}, random_state=0).fit(all_three).objectives_) == 1


def test_without_a_penalty_nothing_starts_at_zero():
    edges, cards = [("a", "b"), ("a", "c"), ("b", "d")], dict.fromkeys("abcd", 2)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(2, size=(12, 4))
        X[rng.random(X.shape) < 0.35] = -1
        model = BayesianNetwork(edges, cards, alpha=0.0, tol=1e-7, max_iter=5000).fit(X)
        nudged = {name: 0.99 * table + 0.005 for name, table in model.tables_.items()}
        again = BayesianNetwork(edges, cards, alpha=0.0, tol=1e-7, max_iter=5000, init=nudged).fit(X)
        assert model.objective_ <= again.objective_ + 1e-4


def test_minus_one_is_a_number_of_a_gaussian_variable():
    options = {"hidden": {"H": 1}, "gaussian": ["a"], "alpha": 0.0}
    model = BayesianNetwork([("H", "a")], **options).fit(np.array([[-1], [0], [1], [2]]))
    assert model.means_["a"][0] == pytest.approx(0.5)
    assert model.predict([[-1.0]])[0, 1] == pytest.approx(-1.0)


def test_posteriors_of_gaussian_mixtures_take_memory_in_proportion_to_the_rows():
    X = np.random.default_rng(0).standard_normal((5000, 1))
    model = BayesianNetwork([("H", "a")], hidden={"H": 2}, gaussian=["a"], n_init=1, random_state=0, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    tracemalloc.start()
    model.predict_proba(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # a table of rows by rows has 200


@pytest.mark.parametrize(
    ("tables", "alpha"),
    [
        ({"H": [0.6, 0.4], "x0": [[0.6, 0.4], [0.6, 0.4]]}, 0.0),
        ({"H": [0.4, 0.3, 0.3], "x0": [[0.6, 0.4], [0.3, 0.7], [0.3, 0.7]]}, 1.0),
    ],
)
def test_two_states_that_are_alike_are_refused(tables, alpha):
    X, _ = grouped(k=1)
    model = BayesianNetwork(EDGES[:1], hidden={"H": len(tables["H"])}, alpha=alpha, init=tables)
    with pytest.raises(ValueError, match="are alike in init"):
        model.fit(X)


def test_draws_are_like_the_table_that_was_fitted():
    strings = BayesianNetwork([("a", "b")]).fit(np.array([["u", "x"], ["v", "y"], ["u", "y"]]))
    assert set(strings.sample(20, 0).ravel()) == {"u", "v", "x", "y"}
    assert BayesianNetwork([("a", "b")]).fit([[0, 1], [1, 0]]).sample(5, 0).dtype.kind == "i"


@pytest.mark.parametrize(
    ("X", "variance"), [([[0, 3.0], [1, 3.0], [1, 3.0]], "tied"), ([[0, 1.0], [0, 2.0], [1, 5.0], [1, 5.0]], "free")]
)
def test_variances_end_at_their_floor_without_a_warning(X, variance):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianNetwork([("a", "y")], gaussian=["y"], variance=variance, alpha=0.0).fit(np.array(X))
    assert model.status_.ok
    assert model.variances_["y"].min() < 1e-4


def test_scores_of_weighted_rows():
    X, _ = grouped()
    model = BayesianNetwork(EDGES, hidden={"H": 2}, n_init=1, random_state=0).fit(frame(X))
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    logs, weights = model.log_likelihood(frame(X)), 1.0 + np.arange(200) % 3
    assert model.score(frame(X), sample_weight=weights) == pytest.approx(weights @ logs / weights.sum())
    assert not hasattr(model.fit(X), "feature_names_in_")


def test_missing_values_of_pandas_in_an_array_of_objects():
    X, _ = grouped()
    with_none, with_na = X.astype(object), X.astype(object)
    with_none[::5, 1], with_na[::5, 1] = None, pd.NA
    a, b = (BayesianNetwork(EDGES, hidden={"H": 2}, n_init=1, random_state=0).fit(table) for table in (with_none, with_na))
    np.testing.assert_array_equal(a.parameters_, b.parameters_)


def test_graphs_without_directions_are_refused():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="directed graph"):
        BayesianNetwork(networkx.Graph([("a", "b")])).fit([[0, 1], [1, 0]])


def chain_frame(n=300):
    rng = np.random.default_rng(3)
    a = rng.integers(2, size=n)
    b = np.where(rng.random(n) < 0.95, a, 1 - a)
    c = np.where(rng.random(n) < 0.7, b, 1 - b)
    return pd.DataFrame({"a": a, "b": b, "c": c})


CHAIN = [("a", "b"), ("b", "c")]


def test_extra_columns_are_ignored_with_one_warning():
    data = chain_frame()
    wide = data.assign(id=np.arange(300), when=pd.Timestamp("2020"))[["when", "c", "id", "a", "b"]]
    with pytest.warns(DataWarning, match="2 columns that the network does not have, ignored: 'when', 'id'") as told:
        model = BayesianNetwork(CHAIN).fit(wide)
    assert len(told) == 1
    assert told[0].filename == __file__
    np.testing.assert_array_equal(model.parameters_, BayesianNetwork(CHAIN).fit(data).parameters_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # these were there at the fit
        assert model.score(wide) == model.score(data)
        assert model.predict(wide).columns.tolist() == ["c", "a", "b"]
    with pytest.warns(DataWarning, match="a column that the network does not have, ignored: 'new'"):
        model.predict_proba(data.assign(new=1))


def test_absent_columns_are_unknown_after_a_fit_and_an_error_before():
    data = chain_frame()
    model = BayesianNetwork(CHAIN).fit(data)
    unknown = data.assign(b=None)
    absent = data.drop(columns="b")
    np.testing.assert_array_equal(model.log_likelihood(absent), model.log_likelihood(unknown))
    np.testing.assert_array_equal(model.predict(absent)["b"], model.predict(unknown)["b"])
    np.testing.assert_array_equal(model.predict_proba(absent)["b"], model.predict_proba(unknown)["b"])
    with pytest.raises(ValueError, match=r"no column 'b': add it.*hidden=\{'b': 2\}.*does not have: 'B'"):
        BayesianNetwork(CHAIN).fit(data.rename(columns={"b": "B"}))
    for names in (["x", "y", "z"], pd.MultiIndex.from_product([["a", "b", "c"], [0]])):
        with pytest.raises(ValueError, match="no column of the data is a variable of the network"):
            model.predict(data.set_axis(names, axis=1))
    gaussian = BayesianNetwork([("a", "g")], gaussian=["g"]).fit(data[["a"]].assign(g=np.arange(300.0)))
    np.testing.assert_allclose(gaussian.predict(data[["a"]])["g"], gaussian.means_["g"][data["a"]])


def test_arrays_after_a_frame_have_the_columns_of_the_fit():
    data = chain_frame()[["c", "a", "b"]]
    model = BayesianNetwork(CHAIN).fit(data)
    with pytest.warns(DataWarning, match="was fitted with feature names; .* in the order of the fit: c, a, b"):
        logs = model.log_likelihood(data.to_numpy())
    np.testing.assert_array_equal(logs, model.log_likelihood(data))
    with pytest.raises(
        ValueError, match="no names and 2 columns; the network was fitted to a frame of 3, in this order: c, a, b"
    ):
        model.predict(data.to_numpy()[:, :2])
    with pytest.warns(DataWarning, match="ignored"):
        model.fit(data.assign(z=1)[["z", "c", "a", "b"]])
    with pytest.warns(DataWarning, match=r"\(ignored\), c, a, b"):
        np.testing.assert_array_equal(model.log_likelihood(np.insert(data.to_numpy(), 0, 7, axis=1)), logs)
    by_position = BayesianNetwork(CHAIN).fit(chain_frame().to_numpy())
    np.testing.assert_array_equal(by_position.log_likelihood(data), logs)  # a frame after an array: names win
    np.testing.assert_array_equal(by_position.log_likelihood(chain_frame().to_numpy()), logs)


def test_column_order_is_saved(tmp_path):
    data = chain_frame()[["c", "a", "b"]]
    model = BayesianNetwork(CHAIN).fit(data)
    model.save(tmp_path / "net.partita")
    again = load(tmp_path / "net.partita")
    with pytest.warns(DataWarning, match="order of the fit: c, a, b"):
        assert again.score(data.to_numpy()) == model.score(data)
    del again.columns_  # as in files of older versions
    assert again.score(data) == model.score(data)


def test_log_likelihoods_of_states_are_at_most_zero_and_probabilities_at_most_one(rng):
    for seed in range(20):
        counts = rng.integers(1, 4, size=5)
        edges = [(i, j) for j in range(5) for i in range(j) if rng.random() < 0.6] or [(0, 1)]
        X = np.column_stack([rng.integers(k, size=30) for k in counts])
        cards = {v: int(k) for v, k in enumerate(counts)}
        model = BayesianNetwork(edges, cards, alpha=0.1, random_state=seed).fit(X)
        rows = np.where(rng.random(X.shape) < rng.random(), -1, X)
        assert (model.log_likelihood(rows) <= 0.0).all()
        for p in model.predict_proba(rows).values():
            assert p.max() <= 1.0
            np.testing.assert_allclose(p.sum(1), 1.0, rtol=0, atol=1e-15)


def rain(**options):
    network = DiscreteNetwork(
        ("rain", "wet"),
        (("no", "yes"), ("dry", "damp", "soaked")),
        ((), ("rain",)),
        (np.array([0.7, 0.3]), np.array([[0.9, 0.1, 0.0], [0.1, 0.4, 0.5]])),
    )
    return network, BayesianNetwork(network, **options)


def test_a_file_with_tables_is_ready_to_use(tmp_path):
    network, model = rain()
    write_bif(tmp_path / "rain.bif", network)
    data = pd.DataFrame({"wet": ["dry", "soaked", None], "rain": ["no", None, None]})
    for ready in (
        model,
        BayesianNetwork(tmp_path / "rain.bif"),
        BayesianNetwork(str(tmp_path / "rain.bif"), hidden=["rain"]),
    ):
        np.testing.assert_allclose(ready.log_likelihood(data), np.log([0.63, 0.15, 1.0]), atol=1e-12)
        assert ready.predict(data)["rain"].tolist() == ["no", "yes", "no"]
        np.testing.assert_allclose(ready.predict_proba(data)["rain"][1], [0.0, 1.0], atol=1e-12)
        np.testing.assert_allclose(ready.predict_marginals(data[["wet"]])["rain"][0], [21 / 22, 1 / 22], atol=1e-12)
        np.testing.assert_allclose(ready.tables_["wet"], network.tables[1], atol=1e-15)
        assert ready.states_["rain"] == ["no", "yes"]
        assert ready.nodes_ == ["rain", "wet"]
        assert ready.score(data) == pytest.approx(np.log(0.63 * 0.15) / 3)
        assert set(ready.sample(50, 0)[:, 0]) == {"no", "yes"}
        assert ready.n_parameters_ == 5
        ready.to_bif(tmp_path / "again.bif")
        np.testing.assert_allclose(read_bif(tmp_path / "again.bif").tables[1], network.tables[1])
        ready.save(tmp_path / "rain.partita")
        np.testing.assert_array_equal(load(tmp_path / "rain.partita").log_likelihood(data), ready.log_likelihood(data))
    assert model.log_likelihood([[0, 2], [1, 2]]).tolist() == [-np.inf, pytest.approx(np.log(0.15))]  # in the file's order
    check_is_fitted(BayesianNetwork(tmp_path / "rain.bif"))
    assert clone(model).get_params()["edges"] is not None
    fitted = clone(model).fit(pd.DataFrame({"rain": ["no"] * 4, "wet": ["dry"] * 4}))
    assert fitted.tables_["rain"][0] > 0.75


def test_without_tables_that_fit_there_is_nothing_to_use(tmp_path):
    network, model = rain()
    data = pd.DataFrame({"wet": ["dry"], "rain": ["no"]})
    for options in ({"hidden": {"rain": 3}}, {"cardinalities": {"wet": ["dry", "damp", "soaked", "ice"]}}):
        with pytest.raises(NotFittedError):
            BayesianNetwork(network, **options).predict(data)
    with pytest.raises(FileNotFoundError):
        BayesianNetwork(tmp_path / "none.bif").predict(data)
    repr(BayesianNetwork(tmp_path / "none.bif"))
    assert not hasattr(BayesianNetwork(tmp_path / "none.bif"), "nodes_")
    assert not hasattr(BayesianNetwork(CHAIN), "nodes_")
    model.predict(data)
    with pytest.raises(NotFittedError):  # tables of another network are forgotten
        model.set_params(edges=CHAIN).predict(data)


def test_impossible_rows_are_told():
    _, model = rain()
    data = pd.DataFrame({"rain": ["no", "no", None], "wet": ["dry", "soaked", "soaked"]})
    for method in (model.predict, model.predict_proba):
        with pytest.warns(DataWarning, match="1 of 3 rows are impossible here, the first is row 1"):
            method(data)


def test_states_that_do_not_fit_parameters_are_refused():
    data = chain_frame()
    for change, message in (
        (lambda m: m.states_["a"].append(2), "parameters_ must be 13 float64 numbers .* got"),
        (lambda m: setattr(m, "parameters_", m.parameters_[:4]), "parameters_ must be 10"),
        (lambda m: setattr(m, "parameters_", m.parameters_.astype(np.float32)), "float32"),
        (lambda m: setattr(m, "parameters_", m.parameters_ * np.nan), "parameters_ must be finite"),
        (lambda m: m.parents_.update(a=("c",)), "parents_ must have no cycle"),
        (lambda m: m.parents_.update(a=("q",)), "parents_ of 'a' must be different other variables"),
        (lambda m: m.parents_.pop("a"), "parents_ have an entry for each"),
        (lambda m: m.states_.update(q=[1]), "states_ must be of variables among nodes_"),
        (lambda m: m.states_.update(a=[]), "at least one"),
        (lambda m: m.states_.update(a=[0, 0]), "twice"),
        (lambda m: m.nodes_.append("a"), "nodes_ must be a list of different names"),
        (lambda m: setattr(m, "hidden_", ("q",)), "hidden_"),
        (lambda m: setattr(m, "variance_", "odd"), "variance_"),
        (lambda m: setattr(m, "table_", "odd"), "table_"),
        (lambda m: setattr(m, "columns_", ["q"]), "columns_"),
        (lambda m: setattr(m, "scale_", np.ones(3)), "scale_ must be 0"),
        (lambda m: delattr(m, "parents_"), "has no parents_"),
    ):
        model = BayesianNetwork(CHAIN).fit(data)
        model._validate_loaded()
        change(model)
        with pytest.raises(ValueError, match=message):
            model._validate_loaded()
        with pytest.raises(ValueError, match=message):
            model.predict(data.assign(c=None))


def test_sizes_are_compared_with_memory_before_work():
    model = BayesianNetwork(CHAIN).fit(chain_frame())
    with pytest.raises(TooLargeError, match="size=1000000000000 rows"):
        model.sample(10**12)
    for options in ({"hidden": {"a": 10**12}}, {"cardinalities": {"a": 10**12}}):
        with pytest.raises(ValueError, match="must be at most 100000000, got 1000000000000"):
            BayesianNetwork(CHAIN, **options).fit(chain_frame())
    with pytest.raises(ValueError, match=r"18446744073709551616 entries|36893488147419103232 entries"):
        BayesianNetwork([(v, 64) for v in range(64)]).fit(np.arange(130).reshape(2, 65) % 2)


def test_frames_without_names_are_arrays():
    data = chain_frame()
    model = BayesianNetwork(CHAIN).fit(pd.DataFrame(data.to_numpy()))
    np.testing.assert_array_equal(model.parameters_, BayesianNetwork(CHAIN).fit(data).parameters_)
    numbered = BayesianNetwork([(0, 1), (1, 2)]).fit(data.set_axis([2, 0, 1], axis=1))
    by_name = BayesianNetwork([(0, 1), (1, 2)]).fit(data.to_numpy()[:, [1, 2, 0]])
    np.testing.assert_array_equal(numbered.parameters_, by_name.parameters_)

"""Bayesian networks by the convex relaxation of joint EM."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from enumeration import choices
from scipy.optimize import minimize
from sklearn.base import clone

from partita import BayesianNetwork, ConvergenceWarning, Status
from partita.bayesnet.estimators.convex_em import usual_alpha
from partita.bayesnet.relaxation.relation_problem import Problem

pd = pytest.importorskip("pandas")

ROWS = (
    *("111111", "111110", "111011", "110111", "011111", "111101"),
    *("000000", "000001", "000100", "001000", "100000", "000011"),
)
X = np.array([[int(c) for c in row] for row in ROWS])
EDGES = [("H", f"x{i}") for i in range(6)]
GROUPS = np.repeat([0, 1], 6)


def network(**options):
    return BayesianNetwork(EDGES, hidden={"H": 2}, random_state=0, **options)


def same_partition(a, b):
    return np.array_equal(a[:, None] == a, b[:, None] == b)


@pytest.mark.parametrize(
    ("alpha", "objective", "entry"),
    [(0.5, 35.106361, 0.116443), (1.0, 40.810413, 0.098175), (2.0, 45.074503, 0.149862), (8.0, 49.766541, 0.784262)],
)
def test_published_oracle(alpha, objective, entry):
    found = network().convex_relaxation(X, alpha=alpha)
    assert found.objective == pytest.approx(objective, rel=2e-6)
    assert found.M[0, 6] == pytest.approx(entry, abs=2e-3)
    assert found.alpha_crit == pytest.approx(9.46018212, rel=1e-8)
    assert found.lower <= found.objective
    assert found.gap <= 1e-6
    assert not found.trivial


def test_units_of_the_critical_penalty():
    with pytest.warns(UserWarning, match="relaxation is trivial"):
        assert network().convex_relaxation(X, 1.02, "critical").trivial
    below = network().convex_relaxation(X, 0.5, "critical")
    assert below.alpha == pytest.approx(0.5 * 9.46018212)
    assert not below.trivial
    with pytest.raises(ValueError, match="units"):
        network().convex_relaxation(X, 0.5, "metres")


def test_usual_penalty():
    assert usual_alpha(np.array([9.0, 4.0, 1.0]), 2) == 6.0
    assert usual_alpha(np.array([9.0, 4.0, 1.0]), 3) == 2.0
    assert usual_alpha(np.array([9.0, 0.0, 0.0]), 2) == pytest.approx(0.45)


@pytest.mark.parametrize("edges", [EDGES, [*EDGES, ("x0", "x1"), ("x4", "x5")], [("x0", "H"), *EDGES[1:], ("x0", "x1")]])
def test_bound_is_below_every_labelling(edges):
    """Families without hidden variables are part of the objective."""
    alpha, data = 2.0, X[::2]
    model = BayesianNetwork(edges, hidden={"H": 2}, alpha=alpha)
    found = model.convex_relaxation(data, alpha)
    best = np.inf
    for labels in choices([2] * len(data)).tolist():
        column = model.edges and list(dict.fromkeys(name for edge in edges for name in edge)).index("H")
        table = np.insert(data, column, labels, axis=1)
        best = min(best, BayesianNetwork(edges, {"H": 2}, alpha=alpha, method="supervised").fit(table).objective_)
    assert found.lower <= found.objective + 1e-9
    assert found.lower <= best
    assert best <= 1.5 * found.lower


@pytest.mark.parametrize("seed", range(3))
def test_bound_is_below_viterbi_em(seed):
    rng = np.random.default_rng(seed)
    data = (rng.random((60, 6)) < np.where(rng.integers(2, size=60), 0.8, 0.3)[:, None]).astype(int)
    viterbi = network(method="viterbi", alpha=3.0).fit(data)
    assert network().convex_relaxation(data, 3.0).lower <= viterbi.objective_


@pytest.mark.parametrize("rounding", ["kmeans", "random", "simplex"])
def test_rounded_states_are_the_groups(rounding):
    model = network(method="convex", rounding=rounding).fit(X)
    assert same_partition(model.convex_.labels(rounding=rounding), GROUPS)
    supervised = BayesianNetwork(EDGES, method="supervised").fit(np.column_stack([GROUPS, X]))
    assert model.objective_ == pytest.approx(supervised.objective_, rel=1e-9)  # refitted with alpha of the network
    assert model.convex_.alpha != model.alpha
    assert model.fit(X).objective_ == model.objective_


def test_em_goes_on_from_there():
    rounded, then = network(method="convex").fit(X), network(method="convex+em").fit(X)
    assert len(then.traces_) == 1
    penalty = 0.5 * sum((rounded.parameters_**2).tolist())
    assert then.traces_[0][0] == pytest.approx(penalty - rounded.log_likelihood(X).sum())
    assert then.objective_ < then.traces_[0][0]
    assert (np.diff(then.traces_[0]) <= 0.0).all()
    assert then.objective_ == pytest.approx(network(method="em").fit(X).objective_, rel=1e-6)
    assert then.convex_.names == ("H",)
    with pytest.raises(AttributeError, match="no relaxation"):
        _ = network(method="em").fit(X).convex_


def test_fits_without_a_relaxation_forget_that_of_an_earlier_one():
    model = network(method="convex").fit(X)
    assert not hasattr(model.set_params(method="em").fit(X), "convex_")


def test_separated_hidden_variables():
    rng = np.random.default_rng(0)
    first, second = rng.integers(2, size=(2, 80))
    shown = np.column_stack([first] * 3 + [second] * 3)
    data = np.where(rng.random(shown.shape) < 0.1, 1 - shown, shown)
    edges = [("G", "a"), ("G", "b"), ("G", "c"), ("H", "d"), ("H", "e"), ("H", "f")]
    model = BayesianNetwork(edges, hidden={"G": 2, "H": 2}, method="convex", random_state=0).fit(data)
    both = model.convex_
    assert both.names == ("G", "H")
    for name, truth in (("G", first), ("H", second)):
        found = both.labels(name)
        assert max(np.mean(found == truth), np.mean(found != truth)) > 0.9
        assert both.relation(name).shape == (80, 80)
    alone = BayesianNetwork(edges[:3], hidden={"G": 2}).convex_relaxation(data[:, :3], both.alpha)
    other = BayesianNetwork(edges[3:], hidden={"H": 2}).convex_relaxation(data[:, 3:], both.alpha)
    assert both.objective == pytest.approx(alone.objective + other.objective, rel=1e-5)
    with pytest.raises(ValueError, match="'a' is not hidden"):
        both.labels("a")


def test_two_hidden_parents_of_one_child():
    rng = np.random.default_rng(1)
    G, H = rng.integers(2, size=(2, 16))
    data = np.column_stack([G, H, G & H])
    model = BayesianNetwork([("G", "a"), ("H", "b"), ("G", "c"), ("H", "c")], hidden={"G": 2, "H": 2}, method="convex")
    found = model.fit(data).convex_
    assert found.lower <= found.objective
    assert found.gap < 1e-4
    assert (
        found.lower
        <= BayesianNetwork(model.edges, hidden=model.hidden, method="viterbi", alpha=found.alpha, random_state=0)
        .fit(data)
        .objective_
    )


def test_gaussian_children():
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=90)
    data = rng.standard_normal((90, 2)) + 6.0 * np.array([[0, 0], [1, 0], [0, 1]])[group]
    edges = [("H", "a"), ("H", "b")]
    model = BayesianNetwork(edges, hidden={"H": 3}, gaussian=["a", "b"], method="convex+em", random_state=0).fit(data)
    assert same_partition(model.predict_proba(data)["H"].argmax(1), group)
    assert model.convex_.lower <= model.convex_.objective


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({}, np.where(np.arange(72).reshape(12, 6) == 5, -1, X), "'x5' is known in some"),
        ({"edges": [("G", "H"), *EDGES], "hidden": {"G": 2, "H": 2}}, X, "'H' has the hidden parent 'G'"),
        ({"edges": EDGES, "hidden": None}, np.column_stack([GROUPS, X]), "there is none"),
        ({"rounding": "floor"}, X, "rounding"),
    ],
)
def test_what_the_relaxation_cannot_do(options, data, message):
    with pytest.raises(ValueError, match=message):
        network(method="convex").set_params(**options).fit(data)


def test_weights_of_rows_are_refused():
    with pytest.raises(ValueError, match="equal weights"):
        network(method="convex").fit(X, sample_weight=1.0 + np.arange(12))


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_penalty_must_be_positive(alpha):
    with pytest.raises(ValueError, match="alpha"):
        network().convex_relaxation(X, alpha)


def test_bound_with_gaussian_leaves_of_observed_parents_is_that_of_variance_one():
    rng = np.random.default_rng(0)
    o, a = rng.integers(6, size=60), rng.integers(2, size=60)
    y = 0.3 * rng.standard_normal(60) + 2.0 * o
    model = BayesianNetwork([("H", "a"), ("o", "y")], hidden={"H": 1}, gaussian=["y"])
    data = pd.DataFrame({"a": a, "o": o, "y": y})
    found = model.convex_relaxation(data, 30.0)
    x = (y - y.mean()) / y.std()
    discrete = BayesianNetwork([("H", "a")], {"o": 6}, hidden={"H": 1}, alpha=30.0).fit(data[["a", "o"]]).objective_

    def loss(means):
        return 0.5 * np.sum((x - means[o]) ** 2) + 15.0 * means @ means + 30.0 * np.log(2.0 * np.pi)

    assert found.objective == pytest.approx(discrete + minimize(loss, np.zeros(6), tol=1e-10).fun, rel=1e-6)
    assert found.lower <= found.objective


def test_trivial_solutions_of_hidden_variables_that_share_a_child_are_seen():
    rng = np.random.default_rng(2)
    model = BayesianNetwork([("G", "a"), ("H", "b"), ("G", "c"), ("H", "c")], hidden={"G": 2, "H": 2})
    with pytest.warns(UserWarning, match="relaxation is trivial"):
        found = model.convex_relaxation(rng.integers(2, size=(12, 3)), 2.0, "critical")
    assert found.M.min() > 1.0 - 1e-6
    assert found.violation <= 1e-6


def test_an_interrupted_relaxation_ends_the_fit(monkeypatch):
    calls = []
    evaluate = Problem.evaluate

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return evaluate(self, *arguments)

    monkeypatch.setattr(Problem, "evaluate", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupt"):
        model = network(method="convex+em").fit(X)
    assert model.status_ is Status.INTERRUPTED
    assert model.convex_.status is Status.INTERRUPTED
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("seed", range(8))
def test_bound_is_below_the_objective_it_comes_with(seed):
    """At the alpha that was chosen, which is not that of the network, and at others."""
    rng = np.random.default_rng(seed)
    n, k, count = int(rng.integers(5, 40)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    names = [f"x{i}" for i in range(k)]
    data = pd.DataFrame(rng.integers(3, size=(n, k)), columns=names)
    edges = [("H", name) for name in names] + ([("x0", "x1")] if seed % 2 else [])
    gaussian = None
    if seed % 3 == 0:
        data[names[-1]] = 5.0 + 3.0 * rng.standard_normal(n)
        gaussian = [names[-1]]
        edges = [edge for edge in edges if edge != ("x0", names[-1])]
    model = BayesianNetwork(edges, hidden={"H": count}, gaussian=gaussian, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are trivial
        for alpha in (None, 0.3, 30.0):
            found = model.convex_relaxation(data, alpha)
            assert found.lower <= found.joint_objective()
            assert all(found.lower <= found.joint_objective(rng.integers(count, size=n)) for _ in range(10))
            assert f"alpha={found.alpha:.6g}" in repr(found)
            if gaussian is None:
                fitted = clone(model).set_params(alpha=found.alpha, method="viterbi", n_init=3).fit(data)
                assert found.lower <= fitted.objective_
                chosen = fitted.predict(data)["H"].to_numpy()
                assert found.joint_objective({"H": chosen}) == pytest.approx(fitted.objective_, rel=1e-6)


def test_joint_objective_is_that_of_the_completed_rows():
    found = network().convex_relaxation(X)
    assert found.alpha != network().alpha
    completed = BayesianNetwork(EDGES, alpha=found.alpha, method="supervised").fit(np.column_stack([GROUPS, X]))
    assert found.joint_objective(GROUPS) == pytest.approx(completed.objective_, rel=1e-9)
    for labels, message in (
        (GROUPS[:3], "labels of 'H' must be integers of shape"),
        (GROUPS + 1, "labels of 'H' must be at least 0 and below 2"),
        ({"Q": GROUPS}, "labels must have states of 'H'"),
    ):
        with pytest.raises(ValueError, match=message):
            found.joint_objective(labels)

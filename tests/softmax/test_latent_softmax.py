from __future__ import annotations

import pickle
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from threadpoolctl import threadpool_info

from partita import (
    LBFGS,
    ConvergenceWarning,
    LatentSoftmax,
    Majorize,
    Newton,
    SoftmaxRegression,
    Status,
    TooLargeError,
    load,
    minimize,
)
from partita.softmax.estimators.latent_softmax import latent_objective

SETS = {"wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris}


def data(name):
    X, y = SETS[name](return_X_y=True)
    return scale(X), y


def quadrants(n=400, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "opposite")


def objective(model, X, y, l2):
    """The penalised negative log-likelihood in plain numpy."""
    scores = np.einsum("id,chd->ich", X, model.coef_) + model.intercept_
    weight = np.exp(scores - scores.max(axis=(1, 2), keepdims=True))
    shares = weight.sum(axis=2) / weight.sum(axis=(1, 2))[:, None]
    codes = np.unique(y, return_inverse=True)[1]
    return -np.log(shares[np.arange(len(y)), codes]).sum() + 0.5 * l2 * np.sum(model.coef_**2)


@pytest.mark.parametrize("name", SETS)
def test_one_hidden_state_is_softmax_regression(name):
    X, y = data(name)
    # two classes have a weight vector each here, and the penalty on their difference is half as strong
    factor = 2.0 if y.max() == 1 else 1.0
    plain = SoftmaxRegression(l2=1.0, tol=1e-10).fit(X, y)
    latent = LatentSoftmax(n_hidden=1, l2=factor, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(latent.predict_proba(X), plain.predict_proba(X), atol=1e-7)
    if factor == 1.0:
        np.testing.assert_allclose(latent.coef_[:, 0], plain.coef_, atol=1e-7)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton", "majorize", "cg", "steepest", Majorize(rank=4)])
@pytest.mark.parametrize("init", ["random", "kmeans"])
def test_objective_is_what_it_says_for_every_solver(solver, init):
    X, y = data("wine")
    model = LatentSoftmax(l2=0.5, solver=solver, init=init, tol=1e-5, random_state=1, max_iter=5000).fit(X, y)
    assert model.trace_.objective[-1] == pytest.approx(objective(model, X, y, 0.5), rel=1e-9)
    assert model.trace_.gradient_norm[-1] <= 1e-5
    assert model.objectives_.tolist() == [model.trace_.objective[-1]]


@pytest.mark.parametrize("acceleration", [None, "subspace"])
@pytest.mark.parametrize("init", ["random", "kmeans"])
@pytest.mark.parametrize("name", SETS)
def test_majorization_is_monotone(name, init, acceleration):
    X, y = data(name)
    solver = Majorize("descending", acceleration)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trace = LatentSoftmax(solver=solver, init=init, random_state=0, max_iter=10).fit(X, y).trace_
    assert len(trace) > 3
    assert (np.diff(trace.objective) < 0.0).all()


def test_hidden_states_separate_what_lines_cannot():
    X, y = quadrants()
    assert SoftmaxRegression().fit(X, y).score(X, y) < 0.65
    model = LatentSoftmax(l2=0.1, n_init=5, random_state=0).fit(X, y)
    test = quadrants(seed=1)
    assert model.score(*test) > 0.95
    assert len(model.objectives_) == 5
    assert model.objectives_.min() == model.trace_.objective[-1]


def test_best_of_several_minima_is_kept():
    X, y = data("wine")
    model = LatentSoftmax(l2=0.1, n_init=6, random_state=0).fit(X, y)
    assert np.ptp(model.objectives_) > 0.01
    assert model.objectives_.min() == pytest.approx(objective(model, X, y, 0.1), rel=1e-9)


def test_probabilities_agree():
    X, y = data("iris")
    model = LatentSoftmax(n_hidden=3, l2=0.1, random_state=0).fit(X, y)
    hidden = model.hidden_proba(X)
    assert hidden.shape == (150, 3, 3)
    np.testing.assert_allclose(hidden.sum(axis=(1, 2)), 1.0)
    np.testing.assert_allclose(hidden.sum(axis=2), model.predict_proba(X), atol=1e-14)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_marginals(X))
    assert np.array_equal(model.predict(X), hidden.sum(axis=2).argmax(axis=1))


@pytest.mark.parametrize("init", ["random", "kmeans"])
def test_scale_and_shift_of_columns_do_not_matter_to_starts(init):
    X, y = data("wine")
    model = LatentSoftmax(l2=0.0, init=init, random_state=0, max_iter=0)
    with pytest.warns(ConvergenceWarning):
        plain = clone(model).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        moved = clone(model).fit(1000.0 * X + 5.0, y)
    np.testing.assert_allclose(moved.predict_proba(1000.0 * X + 5.0), plain.predict_proba(X), atol=1e-6)
    assert np.ptp(plain.coef_, axis=1).min() > 0.0


def test_unscaled_columns():
    """Columns that differ by 10^5 in scale: as many iterations as with standard ones, to the objective as it was given."""
    X, y = load_wine(return_X_y=True)
    model = LatentSoftmax(l2=0.01, random_state=0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ < 300
    assert model.trace_.objective[-1] == pytest.approx(objective(model, X, y, 0.01), rel=1e-8)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_columns_of_zeros_have_no_weight(convert):
    X, y = data("iris")
    X = np.column_stack([X, np.zeros(len(X))])
    model = LatentSoftmax(l2=0.0, random_state=0, max_iter=5)
    with pytest.warns(ConvergenceWarning):
        model.fit(convert(X), y)
    assert not model.coef_[..., -1].any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e6 + 0.1])
@pytest.mark.parametrize("wide", [False, True])
def test_constant_columns_have_no_weight(value, weighted, wide):
    """Their mean is off by rounding, which must not be taken for what varies."""
    X, y = data("iris")
    X = np.column_stack([X, np.full(len(X), value)])
    X = np.tile(X, (1, 50)) if wide else X
    weights = np.random.default_rng(0).integers(0, 3, len(y)) / 7.0 if weighted else np.ones(len(y))
    X[weights == 0.0, 4] = 5.0
    model = LatentSoftmax(l2=0.0, random_state=0, max_iter=5)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y, sample_weight=weights)
    assert np.abs(model.coef_[..., 4::5]).max() <= (1e-12 if wide else 0.0)
    loss = -weights @ model.predict_log_proba(X)[np.arange(len(y)), y]
    assert model.objectives_[0] == pytest.approx(loss, rel=1e-8)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("factor", [1e200, 1e-170])
def test_very_large_and_very_small_columns(factor, convert):
    """Their squares are out of range."""
    X, y = data("iris")
    plain, scaled = (LatentSoftmax(l2=0.0, random_state=0, max_iter=20) for _ in range(2))
    with pytest.warns(ConvergenceWarning):
        plain.fit(convert(X), y)
    with pytest.warns(ConvergenceWarning):
        scaled.fit(convert(factor * X), y)
    np.testing.assert_allclose(scaled.objectives_, plain.objectives_, rtol=1e-6)
    np.testing.assert_allclose(scaled.predict_proba(convert(factor * X)), plain.predict_proba(convert(X)), atol=1e-4)


def test_kmeans_starts_from_clusters():
    """Four blobs, two of each class, on the corners of a square: one step of nothing already separates them."""
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0], [10, 10], [0, 10], [10, 0]])
    X, y = (corners[:, None] + rng.standard_normal((4, 30, 2))).reshape(-1, 2), np.repeat([0, 0, 1, 1], 30)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = LatentSoftmax(init="kmeans", max_iter=0, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert len(np.unique(model.hidden_proba(X).reshape(120, 4).argmax(axis=1))) == 4


def test_kmeans_with_fewer_rows_than_hidden_states():
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 0, 0, 1, 1])
    model = LatentSoftmax(n_hidden=3, l2=1.0, init="kmeans", random_state=0).fit(X, y)
    assert model.status_ is Status.CONVERGED


def test_dense_sparse_and_wide_agree():
    X, y = data("iris")
    options = {"l2": 0.3, "tol": 1e-9, "random_state": 0}
    dense = LatentSoftmax(**options).fit(X, y)
    start = np.concatenate([dense.coef_, dense.intercept_[..., None]], axis=2)
    rough = start + 0.1 * np.random.default_rng(0).standard_normal(start.shape)
    for matrix in (X, sp.csr_matrix(X)):
        again = LatentSoftmax(**options, init=rough).fit(matrix, y)
        np.testing.assert_allclose(again.predict_proba(matrix), dense.predict_proba(X), atol=1e-5)
    # more columns than rows: fitted in the row space, where penalty and scores are the same
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((400, 4)))[0]
    wide = LatentSoftmax(**options, init=np.concatenate([rough[..., :4] @ rotation.T, rough[..., 4:]], axis=2))
    wide.fit(X @ rotation.T, y)
    assert wide.coef_.shape == (3, 2, 400)
    np.testing.assert_allclose(wide.predict_proba(X @ rotation.T), dense.predict_proba(X), atol=1e-5)


def test_sample_weights_repeat_rows():
    X, y = data("iris")
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"l2": 0.3, "tol": 1e-9, "random_state": 0}
    weighted = LatentSoftmax(**options).fit(X, y, sample_weight=counts)
    repeated = LatentSoftmax(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


def test_same_seed_same_fit_at_any_number_of_threads():
    X, y = data("wine")
    fits = [LatentSoftmax(l2=0.1, n_init=5, random_state=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 3)]
    for fit in fits[1:]:
        assert np.array_equal(fit.objectives_, fits[0].objectives_)
        assert np.array_equal(fit.coef_, fits[0].coef_)
    other = LatentSoftmax(l2=0.1, random_state=4).fit(X, y)
    assert not np.array_equal(other.objectives_, fits[0].objectives_[:1])


def test_parallel_starts_leave_the_threads_of_blas_as_they_were():
    X, y = data("iris")
    before = [pool["num_threads"] for pool in threadpool_info()]
    LatentSoftmax(l2=0.1, n_init=6, random_state=0, n_jobs=3).fit(X, y)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_sets_of_classes_and_unknown_ones():
    X, y = quadrants()
    known = np.arange(len(y)) % 4 == 0
    partial = [label if k else None for label, k in zip(y, known, strict=True)]
    options = {"l2": 0.1, "tol": 1e-8, "random_state": 0, "n_init": 3}
    only = LatentSoftmax(**options).fit(X[known], y[known])
    start = np.concatenate([only.coef_, only.intercept_[..., None]], axis=2)
    model = LatentSoftmax(**{**options, "init": start, "n_init": 1}).fit(X, partial)
    # where nothing is known, nothing is learned
    np.testing.assert_allclose(model.predict_proba(X), only.predict_proba(X), atol=1e-5)
    # of three classes, "not this one" is worth something
    X, y = data("iris")
    rng = np.random.default_rng(0)
    sets = np.array([frozenset({label, rng.choice([k for k in range(3) if k != label])}) for label in y], dtype=object)
    model = LatentSoftmax(n_hidden=1, l2=0.1).fit(X, sets)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, y) > 0.9
    singles = LatentSoftmax(l2=0.1, random_state=0).fit(X, [{label} for label in y.tolist()])
    assert np.array_equal(singles.predict(X), LatentSoftmax(l2=0.1, random_state=0).fit(X, y).predict(X))
    assert LatentSoftmax(l2=0.1, init="kmeans", random_state=0).fit(X, sets).score(X, y) > 0.8


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([{0, 1}, set(), {1}], "no label at example 1: a set of labels must not be empty"),
        ([{0}, {0}, None], r"y has one class only, \[0\]"),
        ([{0}, {"a"}, None], "labels of one type; got integers and strings"),
        ([{0}, {1}], "inconsistent numbers of samples"),
        ([None, None, None], "y holds no label at all"),
        ([{0, 1}, {0, 1}, None], "y tells nothing: all labels are possible everywhere"),
        ([{0.5}, 1, None], r"got frozenset\({0.5}\) at example 0"),
        ([{0}, 0.5, None], "got 0.5 at example 1"),
        ([{0}, [0, 1], None], r"got \[0, 1\] at example 1"),
        ([{0}, (0, 1), None], r"got \(0, 1\) at example 1"),
        ([{0}, {"a": 1}, None], "at example 1"),
        (np.array([0, 1, 0.5], dtype=object), "got 0.5 at example 2"),
    ],
)
def test_bad_sets(y, message):
    with pytest.raises(ValueError, match=message):
        LatentSoftmax().fit(np.eye(3), y)


def test_nan_beside_sets_is_unknown():
    models = [LatentSoftmax(random_state=0).fit(np.eye(4), [{0}, 1, 0, unknown]) for unknown in (None, float("nan"))]
    np.testing.assert_array_equal(models[0].predict_proba(np.eye(4)), models[1].predict_proba(np.eye(4)))


@pytest.mark.parametrize("labels", [["same", "opposite"], [3, 1], [True, False]])
def test_cross_validation_of_sets_of_classes(labels):
    """Some folds have no set at all: arrays of objects are read as such."""
    X, which = quadrants(120)
    y = np.array([labels[label == "same"] for label in which], dtype=object)
    y[:20:2] = None
    y[1:20:2] = [frozenset(labels)] * 10
    model = LatentSoftmax(l2=0.1, init="kmeans", random_state=0)
    search = GridSearchCV(model, {"n_hidden": [1, 2]}, cv=KFold(3), error_score="raise").fit(X, y)
    assert search.best_params_ == {"n_hidden": 2}
    assert np.isfinite(cross_val_score(model, X, y, cv=KFold(3), error_score="raise")).all()


def test_columns_of_pandas_are_classes():
    pandas = pytest.importorskip("pandas")
    X, y = data("iris")
    plain = LatentSoftmax(n_hidden=1, l2=0.1, random_state=0).fit(X, y)
    for column in (pandas.Series(y.astype(float)).astype("category"), pandas.Series(y, dtype=object)):
        model = LatentSoftmax(n_hidden=1, l2=0.1, random_state=0).fit(X, column)
        assert np.array_equal(model.coef_, plain.coef_)
        assert model.score(X, column) == plain.score(X, y)


def test_score_counts_what_is_known():
    X, y = data("iris")
    model = LatentSoftmax(n_hidden=1, l2=0.1).fit(X, y)
    found, weights = model.predict(X), np.random.default_rng(0).random(len(y))
    assert model.score(X, y.tolist(), weights) == pytest.approx(np.average(found == y, weights=weights))
    partial = [None, {0, 1}, *y[2:].tolist()]
    right = np.array([False, found[1] < 2, *(found == y)[2:]])
    assert model.score(X, partial) == pytest.approx(right[1:].mean())
    assert model.score(X, partial, weights) == pytest.approx(np.average(right[1:], weights=weights[1:]))
    assert model.score(X[:2], [{2}, {7, 8}]) == 0.0
    with pytest.raises(ValueError, match="y holds no label at all"):
        model.score(X[:2], [None, None])


def test_array_start_is_where_the_solver_starts():
    X, y = data("iris")
    start = np.random.default_rng(0).standard_normal((3, 2, 5))
    with pytest.warns(ConvergenceWarning):
        model = LatentSoftmax(init=start, max_iter=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, start[..., :4], rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, start[..., 4], atol=1e-12)
    bare = LatentSoftmax(init=start[..., :4], fit_intercept=False, l2=1.0).fit(X, y)
    assert not bare.intercept_.any()


def test_starts_with_equal_hidden_states_are_refused():
    X, y = data("iris")
    start = np.random.default_rng(0).standard_normal((3, 2, 5))
    start[1, 0] = start[1, 1]
    for init in (np.zeros((3, 2, 5)), start):
        with pytest.raises(ValueError, match=r"two hidden states of class [01] the same weights"):
            LatentSoftmax(init=init).fit(X, y)
    LatentSoftmax(n_hidden=1, l2=1.0, init=np.zeros((3, 1, 5))).fit(X, y)


BAD = [
    ({"n_hidden": 0}, "n_hidden must be an integer >= 1, got 0"),
    ({"l2": -1.0}, "l2 must be a finite number >= 0"),
    ({"n_init": 0}, "n_init must be an integer >= 1"),
    ({"init": "zeros"}, "init must be one of 'random', 'kmeans'; got 'zeros'"),
    ({"init": np.zeros((3, 2, 4))}, r"finite array of shape \(3, 2, 5\) \(classes, hidden states, features and intercept\)"),
    ({"init": np.full((3, 2, 5), np.nan)}, r"init must be .* a finite array"),
    ({"init": np.zeros((3, 2, 5)), "n_init": 2}, "n_init must be 1 when init is an array"),
    ({"fit_intercept": 1}, "fit_intercept must be True or False"),
    ({"max_iter": -1}, "max_iter must be"),
    ({"tol": "small"}, "tol must be"),
    ({"solver": "gauss"}, "solver must be one of"),
    ({"n_jobs": 0}, "n_jobs must be"),
    ({"random_state": "today"}, "random_state must be"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_parameters_are_named_and_change_nothing(options, message):
    X, y = data("iris")
    model = LatentSoftmax(l2=1.0, random_state=0).fit(X, y)
    before = dict(vars(model))
    model.set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    fitted = {key: value for key, value in vars(model).items() if key.endswith("_")}
    assert fitted == {key: value for key, value in before.items() if key.endswith("_")}


def test_clone_pipeline_and_grid_search():
    X, y = quadrants()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LatentSoftmax(l2=0.1, solver=LBFGS(memory=5), n_init=3, random_state=0)),
        {"latentsoftmax__n_hidden": [1, 2]},
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, y)
    assert search.best_params_ == {"latentsoftmax__n_hidden": 2}
    copy = clone(search.best_estimator_)[-1]
    assert copy.solver == LBFGS(memory=5)
    assert not hasattr(copy, "coef_")


@pytest.mark.parametrize("options", [{}, {"solver": Newton("cg")}, {"init": np.arange(20.0).reshape(2, 2, 5)[..., :3]}])
def test_save_load_and_pickle(tmp_path, options):
    X, y = quadrants(100)
    model = LatentSoftmax(l2=0.5, random_state=0, **options).fit(X, y)
    model.save(tmp_path / "model.partita")
    for copy in (load(tmp_path / "model.partita"), pickle.loads(pickle.dumps(model))):
        assert isinstance(copy, LatentSoftmax)
        assert np.array_equal(copy.hidden_proba(X), model.hidden_proba(X))
        assert np.array_equal(copy.predict(X), model.predict(X))
        assert np.array_equal(copy.objectives_, model.objectives_)
        assert copy.status_ is model.status_
        assert np.array_equal(copy.fit(X, y).coef_, model.coef_)


def test_interrupt_ends_all_starts_and_keeps_the_best(monkeypatch):
    X, y = data("digits")
    calls = []

    def advance(self, state, point, original=Majorize.advance):
        if threading.current_thread() is threading.main_thread():
            calls.append(1)
            if len(calls) == 4:
                raise KeyboardInterrupt
        return original(self, state, point)

    monkeypatch.setattr(Majorize, "advance", advance)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = LatentSoftmax(l2=0.0, solver="majorize", n_init=4, random_state=0, n_jobs=2).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(model.objectives_[0])
    assert np.isnan(model.objectives_[2])  # the main thread's second
    assert np.nanmin(model.objectives_) == pytest.approx(objective(model, X, y, 0.0), rel=1e-9)


@pytest.mark.usefixtures("heeds_interrupts")
def test_interrupt_while_waiting_for_another_start_keeps_both(monkeypatch):
    """The main thread has ended its own start, and waits; a signal finds it there."""
    X, y = data("iris")
    first_done = threading.Event()

    def advance(self, state, point, original=Majorize.advance):
        if threading.current_thread() is threading.main_thread():
            first_done.set()
            return None
        if first_done.is_set() and not calls:
            calls.append(signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
        return original(self, state, point)

    calls = []
    monkeypatch.setattr(Majorize, "advance", advance)
    model = LatentSoftmax(l2=0.1, solver="majorize", n_init=2, random_state=0, n_jobs=2, tol=0.0, max_iter=10**9)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(model.objectives_).all()
    assert model.objectives_.min() == pytest.approx(objective(model, X, y, 0.1), rel=1e-9)


def test_interrupt_while_a_start_is_made_changes_nothing(monkeypatch):
    X, y = data("iris")

    def interrupted(objective, *args, **options):
        return replace(minimize(objective, *args, **options), status=Status.INTERRUPTED)

    model = LatentSoftmax(l2=1.0, init="kmeans", random_state=0).fit(X, y)
    before = dict(vars(model))
    monkeypatch.setattr("partita.estimators.restarts.minimize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model) == before


def test_errors_within_a_start_come_through_and_change_nothing(monkeypatch):
    X, y = data("iris")

    def advance(self, state, point):
        raise MemoryError("none left")

    monkeypatch.setattr(Majorize, "advance", advance)
    model = LatentSoftmax(solver="majorize", n_init=4, random_state=0, n_jobs=2)
    with pytest.raises(MemoryError, match="none left"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_verbose_tells_starts_apart(capsys):
    X, y = data("iris")
    LatentSoftmax(l2=1.0, verbose=2, n_init=2, random_state=0).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "start 1 of 2, newton: iteration 1, objective" in captured.err
    assert "start 2 of 2, newton: iteration 1, objective" in captured.err


def test_iteration_limit_warns_with_the_cure():
    X, y = data("wine")
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = LatentSoftmax(max_iter=2, random_state=0).fit(X, y)
    assert model.n_iter_ == 2


def test_probabilities_are_at_most_one_and_rows_sum_to_one():
    """1 + 2e-15 made scikit-learn's log-loss NaN, and a grid search take n_hidden=1."""
    rng = np.random.default_rng(0)
    X, y = 30.0 * rng.normal(size=(600, 4)), rng.integers(0, 3, 600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LatentSoftmax(n_hidden=3, l2=0.0, random_state=0, max_iter=20).fit(X, y)
    model.coef_ *= 50.0
    for P in (model.predict_proba(X), model.hidden_proba(X).reshape(600, -1)):
        assert P.max() <= 1.0
        assert np.abs(P.sum(axis=1) - 1.0).max() <= 4e-16
    assert model.predict_log_proba(X).max() <= 0.0
    assert np.isfinite(log_loss(y, model.predict_proba(X)))


@pytest.mark.parametrize("name", SETS)
def test_the_default_does_not_overfit(name):
    X, y = data(name)
    model = LatentSoftmax(random_state=0)
    found, plain = (-cross_val_score(m, X, y, scoring="neg_log_loss", cv=5).mean() for m in (model, SoftmaxRegression()))
    assert found < 1.5 * plain


def test_sizes_beyond_memory_are_refused_before_work():
    X, y = data("iris")
    message = r"n_hidden=1000000000 with 4 features, 3 classes and 150 examples needs 22\.9 TB; .* Lower n_hidden"
    with pytest.raises(TooLargeError, match=message):
        LatentSoftmax(n_hidden=10**9).fit(X, y)
    with pytest.raises(TooLargeError, match="a model of 3000000000 outputs for 150 examples of 4 columns"):
        latent_objective(X, np.eye(3, dtype=bool)[y], n_hidden=10**9)


def test_separated_classes_are_told():
    X, y = data("wine")
    with pytest.warns(ConvergenceWarning, match=r"the classes are separated.*raise l2"):
        model = LatentSoftmax(l2=0.0, random_state=0).fit(X, y)
    assert model.status_ is Status.UNBOUNDED
    assert LatentSoftmax(random_state=0).fit(X, y).status_ is Status.CONVERGED

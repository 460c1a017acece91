from __future__ import annotations

import contextlib
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from partita import (
    ConvergenceWarning,
    DataWarning,
    LatentSoftmax,
    Majorize,
    Newton,
    SoftmaxRegression,
    Status,
    TooLargeError,
)

SETS = {"wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris}


def data(name):
    X, y = SETS[name](return_X_y=True)
    return scale(X), y


def objective(X, y, coef, intercept, l2, penalize_intercept=False, w=None):
    """The penalised negative log-likelihood in plain numpy."""
    codes = np.unique(y, return_inverse=True)[1]
    scores = X @ coef.T + intercept
    if coef.shape[0] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    losses = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(scores)), codes]
    penalty = np.sum(coef**2) + (np.sum(np.square(intercept)) if penalize_intercept else 0.0)
    return losses @ (np.ones(len(y)) if w is None else w) + 0.5 * l2 * penalty


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("l2", [0.1, 1.0, 100.0])
def test_same_optimum_as_scikit_learn(name, l2):
    X, y = data(name)
    ours = SoftmaxRegression(l2=l2, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=1 / l2, solver="newton-cg", tol=1e-10, max_iter=10_000).fit(X, y)
    mine, reference = (objective(X, y, m.coef_, m.intercept_, l2) for m in (ours, theirs))
    assert abs(mine - reference) <= 1e-8 * reference
    assert ours.status_ in (Status.CONVERGED, Status.PRECISION)
    np.testing.assert_allclose(ours.trace_.objective[-1], mine, rtol=1e-12)


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("penalize", [True, False])
def test_dense_and_sparse_agree(name, fit_intercept, penalize):
    X, y = data(name)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    options = {"fit_intercept": fit_intercept, "penalize_intercept": penalize, "tol": 1e-11}
    dense = SoftmaxRegression(**options).fit(X, y)
    for convert in (sp.csr_matrix, sp.csc_array, sp.coo_array):
        sparse = SoftmaxRegression(**options).fit(convert(X), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-8)
        np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-8)
        np.testing.assert_allclose(sparse.predict_proba(convert(X)), dense.predict_proba(X), atol=1e-8)


def test_penalised_intercept_is_a_penalised_column_of_ones():
    X, y = data("iris")
    ours = SoftmaxRegression(l2=2.0, penalize_intercept=True, tol=1e-11).fit(X, y)
    columns = SoftmaxRegression(l2=2.0, fit_intercept=False, tol=1e-11).fit(np.column_stack([X, np.ones(len(X))]), y)
    np.testing.assert_allclose(ours.intercept_, columns.coef_[:, -1], atol=1e-9)
    assert columns.intercept_.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_sample_and_class_weights_repeat_rows(name):
    X, y = data(name)
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = SoftmaxRegression(tol=1e-11).fit(X, y, sample_weight=counts)
    repeated = SoftmaxRegression(tol=1e-11).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    by_class = SoftmaxRegression(class_weight={0: 3.0}, tol=1e-11).fit(X, y)
    by_hand = SoftmaxRegression(tol=1e-11).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    np.testing.assert_allclose(by_class.coef_, by_hand.coef_, atol=1e-10)


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_prior_is_absorbed_by_a_free_intercept(name):
    X, y = data(name)
    n = len(np.unique(y))
    h = np.arange(1.0, n + 1.0)
    plain = SoftmaxRegression(tol=1e-11).fit(X, y)
    shifted = SoftmaxRegression(prior=h, tol=1e-11).fit(X, y)
    np.testing.assert_allclose(shifted.coef_, plain.coef_, atol=1e-8)
    np.testing.assert_allclose(shifted.predict_proba(X), plain.predict_proba(X), atol=1e-8)
    offset = np.log(h[1] / h[0]) if n == 2 else np.log(h) - np.log(h).mean()
    np.testing.assert_allclose(shifted.intercept_ + offset, plain.intercept_, atol=1e-8)


def test_prior_of_zero_forbids_a_class_and_one_that_occurs_is_an_error():
    X, y = data("iris")
    with pytest.raises(ValueError, match="prior is zero for class"):
        SoftmaxRegression(prior=[1.0, 0.0, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match=r"prior must have one weight per label, shape \(3,\)"):
        SoftmaxRegression(prior=[1.0, 1.0]).fit(X, y)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_result_does_not_depend_on_threads(n_jobs):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20_000, 30))
    y = rng.integers(0, 4, len(X))
    one, many = (SoftmaxRegression(n_jobs=jobs, tol=1e-8).fit(X, y) for jobs in (1, n_jobs))
    assert np.array_equal(one.coef_, many.coef_)
    S = sp.random(20_000, 500, 0.02, format="csr", random_state=0)
    one, many = (SoftmaxRegression(n_jobs=jobs, tol=1e-8).fit(S, y) for jobs in (1, n_jobs))
    assert np.array_equal(one.coef_, many.coef_)


def test_works_in_pipeline_grid_search_and_clone():
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SoftmaxRegression(solver=Newton("cg")))
    search = GridSearchCV(pipeline, {"softmaxregression__l2": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    copy = clone(search.best_estimator_)
    assert copy[-1].solver == Newton("cg")
    assert not hasattr(copy[-1], "coef_")


def test_grid_search_on_threads_and_processes():
    X, y = data("iris")
    for backend in ("threading", "loky"):
        import joblib

        with joblib.parallel_backend(backend, n_jobs=2):
            search = GridSearchCV(SoftmaxRegression(), {"l2": [0.1, 1.0]}, cv=2, n_jobs=2).fit(X, y)
        assert search.best_score_ > 0.8


def test_warm_start_continues():
    X, y = data("digits")
    model = SoftmaxRegression(l2=1.0, warm_start=True, tol=1e-9).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ == 0
    assert model.set_params(l2=1.1).fit(X, y).n_iter_ < first


def test_string_labels_and_data_frames_keep_names():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)
    model = SoftmaxRegression().fit(X, names[y])
    assert set(model.predict(X)) == set(names)
    assert list(model.feature_names_in_) == list(X.columns)
    assert isinstance(X, pd.DataFrame)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        SoftmaxRegression().predict([[1.0]])


BAD = [
    ({}, lambda X, y: (np.where(X > 1, np.nan, X), y), "NaN"),
    ({}, lambda X, y: (np.where(X > 1, np.inf, X), y), "infinity"),
    ({}, lambda X, y: (X, np.zeros_like(y)), "one class only"),
    ({}, lambda X, y: (X[:0], y[:0]), "0 sample"),
    ({}, lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    ({}, lambda X, y: (X[:, 0], y), "2D array"),
    ({}, lambda X, y: (X, y + 0.5), "continuous"),
    ({"l2": -1.0}, lambda X, y: (X, y), r"l2 must be a finite number >= 0, got -1.0"),
    ({"l2": "big"}, lambda X, y: (X, y), r"l2 must be a number >= 0, got 'big' \(str\)"),
    ({"l2": np.nan}, lambda X, y: (X, y), "l2 must be a finite number"),
    ({"tol": -1}, lambda X, y: (X, y), "tol must be"),
    ({"max_iter": 1.5}, lambda X, y: (X, y), "max_iter must be an integer >= 0, got 1.5"),
    ({"solver": "adagrad"}, lambda X, y: (X, y), "solver must be one of 'auto', 'block_frank_wolfe'"),
    ({"solver": Newton}, lambda X, y: (X, y), r"such as Newton\(\)"),
    ({"n_jobs": 0}, lambda X, y: (X, y), "n_jobs must be None or a non-zero integer"),
    ({"class_weight": {0: -1.0}}, lambda X, y: (X, y), "class_weight times sample_weight must be finite and non-negative"),
    ({"fit_intercept": "no"}, lambda X, y: (X, y), "fit_intercept must be True or False, got 'no'"),
    ({"class_weight": "even"}, lambda X, y: (X, y), "class_weight"),
]


@pytest.mark.parametrize(("options", "spoil", "message"), BAD)
def test_bad_input_is_named_and_changes_nothing(options, spoil, message):
    X, y = data("iris")
    model = SoftmaxRegression().fit(X, y)
    coef, keys = model.coef_, set(vars(model))
    model.set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(*spoil(X, y))
    assert model.coef_ is coef
    assert set(vars(model)) == keys


@pytest.mark.parametrize(("weight", "message"), [(-1.0, "non-negative"), (0.0, "every weight is zero"), (np.nan, "finite")])
def test_bad_sample_weight(weight, message):
    X, y = data("iris")
    with pytest.raises(ValueError, match=f"sample_weight must .*{message}"):
        SoftmaxRegression().fit(X, y, sample_weight=np.full(len(y), weight))


def test_iteration_limit_warns_with_the_cure():
    X, y = data("digits")
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = SoftmaxRegression(solver="steepest", max_iter=3).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == 3


def test_stopping_short_of_the_optimum_warns():
    """Far from the optimum 'no step helps' is not a success."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)) * 1e160, np.arange(60) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.warns(ConvergenceWarning, match="rescale the features"):
            SoftmaxRegression(solver="lbfgs").fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_extreme_but_possible_scales():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = (X @ rng.standard_normal((3, 3)) + rng.gumbel(size=(200, 3))).argmax(1)
    plain = SoftmaxRegression(l2=0.0, tol=1e-9).fit(X, y).predict_proba(X)
    for factor in (1e-100, 1e-6, 1e6, 1e18):
        scaled = SoftmaxRegression(l2=0.0, tol=1e-9).fit(X * factor, y).predict_proba(X * factor)
        np.testing.assert_allclose(scaled, plain, atol=1e-5)


def test_parameters_changed_after_fit_do_not_change_the_fit():
    X, y = data("iris")
    model = SoftmaxRegression(prior=[1.0, 2.0, 3.0]).fit(X, y)
    before = model.predict_proba(X)
    model.set_params(prior=None, fit_intercept=False)
    assert np.array_equal(model.predict_proba(X), before)
    assert len(model.summary().names) == 3 * 5


def test_many_classes_need_little_memory():
    import tracemalloc

    rng = np.random.default_rng(0)
    X, y = sp.random(3000, 1500, 0.01, format="csr", random_state=0), np.arange(3000) % 200
    tracemalloc.start()
    SoftmaxRegression(max_iter=3, tol=1e-2).fit(X, rng.permutation(y))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 3000 * 200 * 8


def test_interrupt_keeps_the_best_iterate(monkeypatch):
    X, y = data("digits")
    calls = []

    def advance(self, state, point, original=Majorize.advance):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, state, point)

    monkeypatch.setattr(Majorize, "advance", advance)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SoftmaxRegression(solver="majorize").fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == 3
    assert model.score(X, y) > 0.9


def test_verbose_shows_progress_on_standard_error(capsys):
    X, y = data("iris")
    SoftmaxRegression(verbose=2).fit(X, y)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "auto: iteration 1, objective" in captured.err


def test_pickle_leaves_the_data_behind():
    X, y = data("digits")
    model = SoftmaxRegression().fit(X, y)
    content = pickle.dumps(model)
    assert len(content) < 50_000
    copy = pickle.loads(content)
    assert np.array_equal(copy.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="fit again"):
        copy.standard_errors()


@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_unscaled_columns(name):
    """Newton does not mind columns that differ by 10^5 in scale."""
    X, y = SETS[name](return_X_y=True)
    model = SoftmaxRegression(l2=1.0, tol=1e-7).fit(X, y)
    assert model.status_ in (Status.CONVERGED, Status.PRECISION)
    wide = SoftmaxRegression(l2=1.0, tol=1e-7, solver=Newton("cg")).fit(X, y)
    assert abs(model.trace_.objective[-1] - wide.trace_.objective[-1]) <= 1e-6 * model.trace_.objective[-1]


def test_sizes_beyond_memory_are_refused_before_work():
    X = sp.csr_matrix((np.ones(2000), (np.arange(2000), np.arange(2000))), shape=(2000, 10**8))
    with pytest.raises(
        TooLargeError, match=r"a model of 1000 outputs for 2000 examples of 100000000 columns needs .* Use fewer"
    ):
        SoftmaxRegression().fit(X, np.arange(2000) % 1000)


def separated_sets():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    labels = (X @ [1.0, 2.0, -1.0] > 0.0).astype(int)
    noisy = (rng.random(100) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))).astype(int)
    rare = ((noisy == 1) & (rng.random(100) < 0.2)).astype(float)  # a column that is 1 in one class only
    three = rng.integers(0, 3, 100)
    tied = np.r_[np.zeros(40), np.ones(30), -np.ones(30)][:, None]  # all that overlaps is at zero
    return {
        "whole": (X, labels, r"every one of 100 examples is on the right side, by a score of at least \d"),
        "rare column": (np.column_stack([X, rare]), noisy, "along 'x3'"),
        "rare column, three classes": (np.column_stack([X, (three == 1) & (X[:, 0] > 1.0)]), three, "along 'x3'"),
        "collinear": (np.column_stack([X, rare, 2.0 * rare, np.ones(100)]), noisy, "along 'x3', 'x4'"),
        "tied": (tied, np.r_[np.arange(40) % 2, np.ones(30), np.zeros(30)].astype(int), "along 'x0'"),
        "setosa": (*load_iris(return_X_y=True), "along"),
        "wide": (rng.standard_normal((20, 50)), np.arange(20) % 2, "every one of 20 examples"),
    }


@pytest.mark.parametrize("units", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("name", separated_sets())
def test_separated_classes_are_recognised_in_any_units(name, units):
    """As linear programs say, for 1,466 random cases."""
    X, y, where = separated_sets()[name]
    model = SoftmaxRegression(l2=0.0)
    with pytest.warns(ConvergenceWarning, match=f"the classes are separated.*{where}.*Raise l2"):
        model.fit(units * X, y)
    assert model.status_ is Status.UNBOUNDED
    for ask in (model.standard_errors, model.summary):
        with pytest.raises(ValueError, match="the classes are separated"):
            ask()


@pytest.mark.parametrize("solver", ["lbfgs", "majorize"])
def test_other_solvers_recognise_separation_too(solver):
    X, y, where = separated_sets()["rare column"]
    with pytest.warns(ConvergenceWarning, match=where):
        SoftmaxRegression(l2=0.0, solver=solver).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="along"):
        SoftmaxRegression(l2=0.0, solver=solver).fit(sp.csr_matrix(X), y)


@pytest.mark.parametrize("units", [1e-8, 1.0, 1e8])
def test_overlapping_classes_are_not_taken_for_separated(units):
    """Two examples out of place, next to the boundary: a steep maximum, but a maximum."""
    X = np.sort(np.random.default_rng(0).standard_normal((200, 1)), axis=0)
    y = (np.arange(200) >= 100).astype(int)
    y[[99, 100]] = [1, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SoftmaxRegression(l2=0.0).fit(units * X, y)
    assert model.status_ is Status.CONVERGED
    assert units * model.coef_[0, 0] == pytest.approx(462.06, rel=1e-4)
    assert units * model.standard_errors()[0, 0] == pytest.approx(508.92, rel=1e-4)


def test_a_penalty_too_small_to_count_is_told():
    X, y, _ = separated_sets()["whole"]
    for options in ({"l2": 1e-12}, {"l2": 0.0, "l1": 1e-12}):
        with pytest.warns(ConvergenceWarning, match="are too small to count at tol=1e-06"):
            assert SoftmaxRegression(**options).fit(X, y).status_ is Status.UNBOUNDED
    for options in ({"l2": 1e-3}, {"l2": 0.0, "l1": 1e-2}, {}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert SoftmaxRegression(**options).fit(X, y).status_ is Status.CONVERGED


@pytest.mark.parametrize("convert", [np.array, sp.csr_matrix])
def test_x_changed_in_place_is_noticed_by_standard_errors(convert):
    X, y = data("iris")
    weights = np.ones(150)
    X = convert(X)
    model = SoftmaxRegression().fit(X, y, sample_weight=weights)
    before = model.standard_errors()
    weights[:] = 7.0  # a copy was kept
    assert np.array_equal(model.standard_errors(), before)
    entries = X.data if sp.issparse(X) else X.reshape(-1)
    for change in (lambda: entries.__setitem__(100, 5.0), lambda: entries.__setitem__(slice(None), entries[::-1].copy())):
        kept = entries.copy()
        change()
        with pytest.raises(ValueError, match="X was changed in place after fit"):
            model.standard_errors()
        with pytest.raises(ValueError, match="fit again"):
            model.summary()
        entries[:] = kept
        assert np.array_equal(model.standard_errors(), before)


@pytest.mark.parametrize("model", [SoftmaxRegression(), LatentSoftmax(random_state=0)], ids=["softmax", "latent"])
def test_a_shift_of_columns_does_not_matter(model):
    X, y = data("wine")
    plain = clone(model).fit(X, y).predict_proba(X)
    for shift in (1e4, 1e6, 1e9):
        np.testing.assert_allclose(clone(model).fit(X + shift, y).predict_proba(X + shift), plain, atol=1e-5)


@pytest.mark.parametrize("model", [SoftmaxRegression(), LatentSoftmax(random_state=0)], ids=["softmax", "latent"])
def test_labels_keep_the_type_they_came_with(model):
    pandas = pytest.importorskip("pandas")
    X, y = data("breast_cancer")
    for kind, scalar in (("Int64", np.integer), ("boolean", np.bool_), ("string", str), ("category", str)):
        values = pandas.Series(y.astype(str) if kind in ("string", "category") else y, dtype=kind)
        assert isinstance(clone(model).fit(X, values).predict(X)[0], scalar), kind
    for labels in (2 * y - 1, y > 0):
        assert np.array_equal(clone(model).fit(X, labels).classes_, np.unique(labels))
    with pytest.raises(ValueError, match="y must hold labels of one type, got int, str"):
        clone(model).fit(X[:4], ["a", 1, "a", 1])


def test_unknown_labels_of_pandas_may_be_any():
    pandas = pytest.importorskip("pandas")
    X, y = data("iris")
    for kind in ("Int64", "string"):
        values = pandas.Series([None, *(y[1:].astype(str) if kind == "string" else y[1:]).tolist()], dtype=kind)
        alone = SoftmaxRegression().fit(X[1:], y[1:])
        assert np.allclose(SoftmaxRegression().fit(X, values).coef_, alone.coef_, atol=1e-3)
        assert len(LatentSoftmax(n_hidden=1).fit(X, values).classes_) == 3


def test_unknown_labels_in_lists_and_arrays_may_be_any():
    pandas = pytest.importorskip("pandas")
    X, y = data("iris")
    holes = [[hole, *y[1:].tolist()] for hole in (None, np.nan, pandas.NA)]
    objects = [np.array(values, dtype=object) for values in holes]
    for values in (*holes, *objects, np.array(holes[1]), pandas.Series(holes[1])):
        assert SoftmaxRegression().fit(X, values).classes_.tolist() == [0, 1, 2]
        assert LatentSoftmax(n_hidden=1).fit(X, values).classes_.tolist() == [0, 1, 2]
    for name, make in (("polars", "Series"), ("pyarrow", "array")):
        values = getattr(pytest.importorskip(name), make)(holes[0])
        assert LatentSoftmax(n_hidden=1).fit(X, values).classes_.tolist() == [0, 1, 2]
        assert SoftmaxRegression().fit(X, values).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("label", [None, "a", {0, 1}, (0, 1), np.datetime64("2020-01-01")])
def test_pieces_with_labels_that_are_no_classes_are_refused(label):
    X, y = data("iris")
    labels = y.astype(object)
    labels[7] = label
    with pytest.raises(ValueError, match=r"not among the classes \[0, 1, 2\]"):
        SoftmaxRegression().partial_fit(X, labels, classes=[0, 1, 2])
    for classes in (["a", 1, None], [0, 1, np.nan]):
        with pytest.raises(ValueError, match="classes must be"):
            SoftmaxRegression().partial_fit(X, y, classes=classes)


def every_kind_of(frame):
    """A frame of pandas, and the same of polars and pyarrow where they are installed."""
    frames = [frame]
    with contextlib.suppress(ImportError):
        frames.append(__import__("polars").from_pandas(frame))
        frames.append(__import__("pyarrow").Table.from_pandas(frame))
    return frames


def test_text_in_a_frame_is_told_by_its_column():
    pandas = pytest.importorskip("pandas")
    X, y = data("iris")
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(city="Rome")
    for made in every_kind_of(frame):
        with pytest.raises(ValueError, match="column 'city' of X holds text"):
            SoftmaxRegression().fit(made, y)
        with pytest.raises(ValueError, match="column 'city' of X holds text"):
            SoftmaxRegression().partial_fit(made, y, classes=[0, 1, 2])
        with pytest.raises(ValueError, match="column 'city' of X holds text"):
            LatentSoftmax().fit(made, [None, *y[1:].tolist()])


def test_dates_are_not_taken_for_numbers():
    pandas = pytest.importorskip("pandas")
    X, y = data("iris")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    day = pandas.date_range("2020-01-01", periods=len(X))
    for dates in (frame.assign(day=day), frame[[]].assign(day=day), frame.assign(day=day.tz_localize("UTC"))):
        for made in every_kind_of(dates):
            with pytest.raises(ValueError, match="column 'day' of X holds dates or times"):
                SoftmaxRegression().fit(made, y)
    with pytest.raises(ValueError, match="X holds dates or times"):
        LatentSoftmax().fit(day.to_numpy()[:, None], y)


def test_a_class_without_weight_is_told():
    X, y = data("iris")
    with pytest.warns(DataWarning, match="every example of class 2 has weight zero"):
        SoftmaxRegression().fit(X, y, sample_weight=(y < 2).astype(float))


@pytest.mark.parametrize("model", [SoftmaxRegression(), LatentSoftmax(random_state=0)], ids=["softmax", "latent"])
def test_columns_in_another_order_are_refused(model):
    pandas = pytest.importorskip("pandas")
    X, y = data("iris")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    fitted = clone(model).fit(frame, y)
    for ask in (fitted.predict, fitted.predict_proba, fitted.decision_function):
        with pytest.raises(ValueError, match="same order"):
            ask(frame[list("dcba")])


def test_log_likelihood_is_one_number_for_each_example():
    X, y = load_iris(return_X_y=True)
    for labels in (y, np.array(["a", "b", "c"])[y], y > 0):
        model = SoftmaxRegression(max_iter=20).fit(X, labels)
        codes = np.searchsorted(model.classes_, labels)
        expected = model.predict_log_proba(X)[np.arange(len(y)), codes]
        np.testing.assert_array_equal(model.log_likelihood(X, labels), expected)
    with pytest.raises(ValueError, match="not among the classes"):
        model.log_likelihood(X[:1], ["z"])

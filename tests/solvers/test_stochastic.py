"""Stochastic solvers: the published method and its bias, the mended ones, and streams."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale

from partita import SGD, ConjugateGradient, SoftmaxRegression, Status, StochasticBound, minimize
from partita.estimators.softmax import softmax_objective
from partita.features import LabelFeatures
from partita.objectives import Likelihood
from partita.structures import Categorical


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def binary_data(rng, rows=3000, columns=8):
    X = rng.standard_normal((rows, columns))
    y = (X @ rng.standard_normal(columns) + rng.logistic(size=rows) > 0).astype(int)
    return X, y


def excess(objective, solution):
    optimum = minimize(objective, tol=1e-10).value
    return (objective.at(solution.parameters).value - optimum) / optimum


@pytest.mark.parametrize("n_labels", [2, 4])
@pytest.mark.parametrize("form", ["dense", "sparse", "labels"])
def test_variance_reduced_bound_converges_to_the_optimum(n_labels, form, rng):
    X = rng.standard_normal((2000, 6))
    y = np.argmax(X[:, :n_labels] + rng.gumbel(size=(2000, n_labels)), axis=1)
    if form == "labels":
        F = np.einsum("ij,kl->ikjl", X, np.eye(n_labels)).reshape(2000, n_labels, -1)
        objective = Likelihood(LabelFeatures(F), Categorical(n_labels), y, penalty=1.0)
    else:
        objective = softmax_objective(sp.csr_matrix(X) if form == "sparse" else X, y, l2=1.0)
    solution = minimize(objective, solver=StochasticBound(batch_size=100, patience=100), max_iter=60, tol=1e-7)
    assert solution.status is Status.CONVERGED
    assert excess(objective, solution) < 1e-10


@pytest.mark.parametrize(
    ("solver", "limit"),
    [
        (StochasticBound(batch_size=100, rank=3), 1e-6),
        (StochasticBound(batch_size=100, curvature="ema"), 2e-3),
        (StochasticBound(batch_size=100, curvature="ema", lag=5, rank=3), 1e-2),
        (SGD(batch_size=50, learning_rate=1.0), 2e-3),
        (SGD(batch_size=50, method="averaged", learning_rate=1.0), 1e-3),
        (SGD(batch_size=50, method="adam", learning_rate=0.02), 2e-3),
        (SGD(batch_size=50, method="saga", learning_rate=1.0), 1e-8),
        (SGD(batch_size=50, method="svrg", learning_rate=1.0), 1e-8),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_every_stochastic_solver_comes_close(solver, limit, rng):
    objective = softmax_objective(*binary_data(rng), l2=1.0)
    solution = minimize(objective, solver=solver, max_iter=30, tol=1e-9)
    assert excess(objective, solution) < limit


def published(objective, start, batch_size, **options):
    """Mean excess over the last of several epochs and seeds, started at `start`."""
    values = []
    for seed in range(3):
        solver = StochasticBound(batch_size=batch_size, random_state=seed, patience=1000, **options)
        solution = minimize(objective, start, solver, max_iter=20, tol=0.0)
        values.append(solution.value)
    return float(np.mean(values))


def test_the_published_method_is_biased_and_the_lagged_average_is_not(wine):
    """Started at the optimum (the specification's experiment, excess per example): curvature from the gradient's own batch
    drives the parameters away, the more the smaller the batch; a moving average of earlier batches does not."""
    objective = softmax_objective(*wine, l2=1.0, penalize_intercept=True)
    optimum = minimize(objective, tol=1e-12)

    def excess_of(batch_size, **options):
        return (published(objective, optimum.parameters, batch_size, **options) - optimum.value) / len(wine[0])

    biased = {b: excess_of(b, curvature="batch", step="4/t") for b in (5, 20, 60)}
    specified = {5: 0.28, 20: 0.031, 60: 0.0034}
    for batch_size, value in biased.items():
        assert 0.5 * specified[batch_size] < value < 2.0 * specified[batch_size]
        assert excess_of(batch_size, curvature="ema") < 0.1 * value


def test_low_rank_forms_of_the_published_method_run(wine):
    objective = softmax_objective(*wine, l2=1.0)
    start = objective.at(np.zeros(objective.size)).value
    for method in ("exact", "corrected", "lanczos"):
        solver = StochasticBound(batch_size=30, curvature="batch", rank=5, low_rank=method, step="4/t")
        assert minimize(objective, solver=solver, max_iter=3, tol=0.0).value < 0.6 * start


def test_the_same_seed_gives_the_same_bits_at_any_thread_count():
    X, y = load_digits(return_X_y=True)
    fits = [
        SoftmaxRegression(solver=StochasticBound(), max_iter=3, n_jobs=jobs, tol=0.0).fit(
            np.tile(X / 16.0, (4, 1)), np.tile(y, 4)
        )
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    again = SoftmaxRegression(solver="stochastic", max_iter=2, random_state=3, tol=0.0).fit(X / 16.0, y)
    other = SoftmaxRegression(solver="stochastic", max_iter=2, random_state=4, tol=0.0).fit(X / 16.0, y)
    assert not np.array_equal(again.coef_, other.coef_)


def test_validation_keeps_the_best_epoch_and_stops_early(rng):
    X = rng.standard_normal((400, 200))
    y = (X[:, 0] + 2.0 * rng.standard_normal(400) > 0).astype(int)
    objective = softmax_objective(X, y, l2=1e-3)
    seen = []
    solver = StochasticBound(batch_size=20, validation=0.25, patience=3)
    solution = minimize(
        objective, solver=solver, max_iter=200, tol=0.0, callbacks=[lambda p: seen.append((p.objective, p.parameters))]
    )
    assert solution.status is Status.STALLED
    assert solution.status.ok
    best = min(seen[1:], key=lambda entry: entry[0])
    np.testing.assert_array_equal(solution.parameters, best[1])
    assert len(seen) < 100


def test_an_interrupt_in_the_middle_of_an_epoch_keeps_what_was_learned(rng, monkeypatch):
    from partita.objectives.batches import Batches

    objective = softmax_objective(*binary_data(rng), l2=1.0)
    calls = []
    evaluate = Batches.evaluate

    def interrupted(self, theta, lo, hi):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return evaluate(self, theta, lo, hi)

    monkeypatch.setattr(Batches, "evaluate", interrupted)
    solution = minimize(objective, solver=StochasticBound(batch_size=100))
    assert solution.status is Status.INTERRUPTED
    assert solution.value < 0.9 * objective.at(np.zeros(objective.size)).value


def test_bad_options_are_named():
    for options, message in [
        ({"step": "4/s"}, "step must be 'auto', a number"),
        ({"batch_size": 0}, "batch_size must be an integer >= 1"),
        ({"validation": 1.0}, r"validation must be in \[0, 1\)"),
        ({"curvature": "none"}, "curvature must be one of"),
        ({"rank": 2, "low_rank": "original"}, "is not an upper bound"),
        ({"rank": 2, "low_rank": "lanczos"}, "cannot be accumulated"),
    ]:
        with pytest.raises(ValueError, match=message):
            StochasticBound(**options)
    with pytest.raises(ValueError, match="method must be one of"):
        SGD(method="momentum")


def test_partial_fit_in_one_pass_is_close_to_the_optimum(rng):
    X, y = binary_data(rng, rows=40_000, columns=20)
    model = SoftmaxRegression(l2=1.0)
    for part in np.array_split(np.arange(40_000), 16):
        model.partial_fit(X[part], y[part], classes=[0, 1])
    assert model.n_seen_ == 40_000
    assert model.status_ is Status.STREAM
    objective = softmax_objective(X, y, l2=1.0)
    optimum = minimize(objective, tol=1e-10).value
    reached = objective.at(objective.features.pack(model.coef_, model.intercept_)).value
    assert (reached - optimum) / optimum < 2e-3  # the statistical error of 40,000 examples is 21 / (2 * 40,000) per example


def test_partial_fit_reads_memory_maps_a_piece_at_a_time(rng, tmp_path, monkeypatch):
    import partita.estimators.streaming as streaming

    X, y = binary_data(rng, rows=6000, columns=10)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    monkeypatch.setattr(streaming, "CHUNK_NUMBERS", 10_000)
    model = SoftmaxRegression().partial_fit(mapped, y, classes=[0, 1])
    assert model.n_seen_ == 6000
    sparse = SoftmaxRegression().partial_fit(sp.csr_matrix(X), y, classes=[0, 1])
    assert model.score(X, y) == pytest.approx(sparse.score(X, y), abs=0.01)
    assert model.score(X, y) > 0.8


def test_a_failed_partial_fit_changes_nothing(rng, monkeypatch):
    import partita.estimators.streaming as streaming

    monkeypatch.setattr(streaming, "CHUNK_NUMBERS", 1000)
    X, y = binary_data(rng, rows=1000, columns=5)
    model = SoftmaxRegression().partial_fit(X, y, classes=[0, 1])
    twin = SoftmaxRegression().partial_fit(X, y, classes=[0, 1])
    bad = X.copy()
    bad[900, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(bad, y)
    with pytest.raises(ValueError, match="which is not among the classes"):
        model.partial_fit(X[:100], y[:100] + 5)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
    np.testing.assert_array_equal(model.partial_fit(X, y).coef_, twin.partial_fit(X, y).coef_)


def test_partial_fit_needs_classes_first_and_goes_on_after_fit(rng):
    X, y = binary_data(rng, rows=4000)
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        SoftmaxRegression().partial_fit(X, y)
    model = SoftmaxRegression().fit(X, y)
    fitted = model.coef_.copy()
    model.partial_fit(X[:256], y[:256])
    assert model.n_seen_ == 4256
    assert np.abs(model.coef_ - fitted).max() < 0.2 * np.abs(fitted).max()
    with pytest.raises(ValueError, match="need the training data"):
        model.standard_errors()


def test_fit_stream_takes_an_iterator_and_starts_afresh(rng):
    X, y = binary_data(rng, rows=5000)
    parts = [(X[i : i + 500], y[i : i + 500]) for i in range(0, 5000, 500)]
    first = SoftmaxRegression().fit_stream(iter(parts), classes=[0, 1])
    second = SoftmaxRegression().fit(X[:50], y[:50]).fit_stream(iter(parts), classes=[0, 1])
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.n_seen_ == 5000


def test_ordinary_solvers_ignore_batches(wine):
    objective = softmax_objective(*wine, l2=1.0)
    assert minimize(objective, solver=ConjugateGradient()).status.ok

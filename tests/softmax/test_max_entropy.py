"""Maximum entropy: known solutions, raking, inequalities, edges, impossible moments."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.base import clone

import partita
from partita import ConvergenceWarning, MaxEnt, Status, minimize
from partita.features import LabelFeatures
from partita.objectives import Likelihood
from partita.objectives.constraints.feasibility import smallest_conflict
from partita.softmax.objective.moments import MomentProblem
from partita.structures import Categorical

FACES = np.arange(1.0, 7.0)


def tables(row, column):
    """Indicators of the rows and columns of a table, and its margins."""
    r, c = len(row), len(column)
    F = np.hstack([np.kron(np.eye(r), np.ones((c, 1))), np.kron(np.ones((r, 1)), np.eye(c))])
    return F, np.concatenate([row, column])


def rake(prior, row, column, rounds=5000):
    p = prior / prior.sum()
    for _ in range(rounds):
        with np.errstate(invalid="ignore", divide="ignore"):
            p = np.nan_to_num(p * (row / p.sum(1))[:, None])
            p = np.nan_to_num(p * (column / p.sum(0)))
    return p


@pytest.mark.parametrize("solver", ["auto", "majorize", "newton", "lbfgs"])
def test_a_die_of_given_mean(solver):
    mean = lambda t: (FACES * np.exp(t * FACES)).sum() / np.exp(t * FACES).sum()  # noqa: E731
    multiplier = brentq(lambda t: mean(t) - 4.5, 0.0, 2.0, xtol=1e-14)
    model = MaxEnt(FACES[:, None], [4.5], solver=solver, tol=1e-9).fit()
    assert model.status_ is Status.CONVERGED
    assert model.coef_[0] == pytest.approx(multiplier, abs=1e-7)
    expected = np.exp(multiplier * FACES) / np.exp(multiplier * FACES).sum()
    np.testing.assert_allclose(model.probabilities_, expected, atol=1e-8)
    assert model.log_partition_ == pytest.approx(np.log(np.exp(multiplier * FACES).sum()), abs=1e-6)
    assert model.relative_entropy_ == pytest.approx((expected * np.log(6 * expected)).sum(), abs=1e-7)
    assert model.gap_ <= 1e-7
    assert model.violation_ <= 1e-7
    assert model.inequality_coef_.shape == (0,)


def test_raking_a_table(rng):
    prior = rng.random((4, 5)) + 0.1
    row, column = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))
    F, margins = tables(row, column)
    model = MaxEnt(F, margins, prior=prior.ravel()).fit()  # rows and columns are dependent
    np.testing.assert_allclose(model.probabilities_.reshape(4, 5), rake(prior, row, column), atol=1e-9)


def test_raking_with_empty_cells_and_margins(rng):
    prior = rng.random((4, 5)) + 0.1
    prior[0, 2] = 0.0
    row, column = np.array([0.3, 0.0, 0.5, 0.2]), np.array([0.2, 0.2, 0.0, 0.1, 0.5])
    F, margins = tables(row, column)
    model = MaxEnt(F, margins, prior=prior.ravel()).fit()
    p = model.probabilities_.reshape(4, 5)
    np.testing.assert_allclose(p, rake(prior, row, column), atol=1e-9)
    assert not p[1].any()
    assert not p[:, 2].any()
    assert model.excluded_.sum() == 8
    assert np.all(model.log_prob()[model.excluded_] == -np.inf)


def test_inequalities_satisfy_the_optimality_conditions(rng):
    F, G = rng.standard_normal((60, 2)), rng.standard_normal((60, 3))
    inside = rng.dirichlet(np.ones(60))
    bound = inside @ G - np.array([0.0, 0.05, 3.0])
    prior = rng.random(60) + 0.1
    model = MaxEnt(F, inside @ F, (G, bound), prior).fit()
    p, slack = model.probabilities_, model.probabilities_ @ G - bound
    assert np.all(slack >= -1e-9)
    np.testing.assert_allclose(p @ F, inside @ F, atol=1e-9)
    assert np.all(model.inequality_coef_ >= 0.0)
    assert np.abs(model.inequality_coef_ * slack).max() <= 1e-8
    assert model.inequality_coef_[2] == 0.0  # never binds
    weights = prior * np.exp(F @ model.coef_ + G @ model.inequality_coef_)
    np.testing.assert_allclose(p, weights / weights.sum(), rtol=1e-8)
    assert np.log(weights.sum()) == pytest.approx(model.log_partition_, abs=1e-8)
    # No other feasible distribution is closer to the prior.
    q = prior / prior.sum()
    assert model.relative_entropy_ <= (inside * np.log(inside / q)).sum()
    free = MaxEnt(F, inside @ F, prior=prior).fit()
    assert free.relative_entropy_ <= model.relative_entropy_ + 1e-9


def test_an_inequality_alone_binds_only_when_it_must():
    assert MaxEnt(inequality=(FACES, 4.5)).fit().inequality_coef_[0] == pytest.approx(0.37104894, abs=1e-7)
    loose = MaxEnt(inequality=(FACES, 3.0)).fit()
    assert loose.inequality_coef_[0] == 0.0
    np.testing.assert_allclose(loose.probabilities_, 1 / 6, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"features": FACES, "equality": 6.0}, [0, 0, 0, 0, 0, 1]),
        ({"features": FACES, "equality": 1.0}, [1, 0, 0, 0, 0, 0]),
        ({"inequality": (FACES, 6.0)}, [0, 0, 0, 0, 0, 1]),
        # The least second moment for this mean: faces 4 and 5 only.
        ({"features": np.column_stack([FACES, FACES**2]), "equality": [4.5, 20.5]}, [0, 0, 0, 0.5, 0.5, 0]),
        ({"features": FACES, "equality": 4.5, "inequality": (-(FACES**2), -20.5)}, [0, 0, 0, 0.5, 0.5, 0]),
        ({"features": FACES, "equality": 3.0, "prior": [1, 0, 1, 0, 0, 0]}, [0, 0, 1, 0, 0, 0]),
    ],
)
def test_moments_on_the_edge_have_zero_probabilities(options, expected):
    model = MaxEnt(**options).fit()
    assert model.status_ is Status.CONVERGED
    np.testing.assert_allclose(model.probabilities_, expected, atol=1e-9)
    assert np.array_equal(model.probabilities_ == 0.0, np.array(expected) == 0)
    assert model.violation_ <= 1e-9


@pytest.mark.parametrize("mean", [5.99, 5.9999, 5.999999])
def test_close_to_the_edge_no_state_is_dropped(mean):
    model = MaxEnt(FACES, mean).fit()
    assert np.all(model.probabilities_ > 0.0)
    assert model.violation_ <= 1e-9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": FACES, "equality": 7.0}, r"equality 0: target 7 lies outside \[1, 6\]"),
        ({"features": np.column_stack([FACES, FACES]), "equality": [3.0, 0.5]}, r"equality 1: target 0.5 lies outside"),
        ({"inequality": (FACES, 6.5)}, "inequality 0: bound 6.5 lies above the largest value, 6"),
        ({"features": FACES, "equality": 4.0, "prior": [1, 1, 1, 0, 0, 0]}, r"target 4 lies outside \[1, 3\]"),
        (
            {"features": np.column_stack([FACES == 2, FACES, FACES**2]), "equality": [0.1, 4.5, 20.0]},
            "satisfies equality 1 and equality 2 together",
        ),
        ({"inequality": (np.column_stack([FACES == 1, FACES, -FACES]), [0.1, 4.5, -4.0])}, "inequality 1 and inequality 2"),
        ({"features": FACES, "equality": 2.0, "inequality": (FACES**2, 20.0)}, "equality 0 and inequality 0"),
        ({}, "MaxEnt needs moments"),
        ({"features": FACES}, "features and equality belong together"),
        ({"features": FACES, "equality": [1.0, 2.0]}, "equality must be 1 finite numbers"),
        ({"features": [[np.nan], [1.0]], "equality": [1.0]}, "features must be finite"),
        ({"inequality": FACES}, "inequality must be a pair"),
        ({"features": FACES, "equality": 3.0, "inequality": ([1.0, 2.0], 1.0)}, "must agree"),
        ({"features": FACES, "equality": 3.0, "prior": [1.0]}, "prior must have one weight per label"),
    ],
)
def test_impossible_or_wrong_problems_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        MaxEnt(**options).fit()


def test_features_of_any_scale_and_offset(rng):
    F = rng.standard_normal((30, 3))
    target = rng.dirichlet(np.ones(30)) @ F
    plain = MaxEnt(F, target).fit()
    scale, shift = np.array([1e6, 1e-6, 1.0]), np.array([1e9, 0.0, -1e3])
    other = MaxEnt(F * scale + shift, target * scale + shift).fit()
    np.testing.assert_allclose(other.probabilities_, plain.probabilities_, atol=1e-6)


def test_samples_have_the_probabilities():
    model = MaxEnt(FACES, 4.5).fit()
    states = model.sample(40_000, random_state=0)
    np.testing.assert_allclose(np.bincount(states, minlength=6) / 40_000, model.probabilities_, atol=0.01)
    assert np.array_equal(states, model.sample(40_000, random_state=0))
    np.testing.assert_allclose(np.exp(model.log_prob(states[:5])), model.probabilities_[states[:5]])
    with pytest.raises(ValueError, match="states must be integers from 0 to 5"):
        model.log_prob([6])
    edge = MaxEnt(FACES, 6.0).fit()
    assert np.all(edge.sample(10, 0) == 5)


def test_save_load_and_clone(tmp_path):
    model = MaxEnt(FACES, 4.5, (np.column_stack([FACES**2, -FACES]), [21.0, -5.0]), np.ones(6)).fit()
    model.save(tmp_path / "m")
    copy = partita.load(tmp_path / "m")
    assert np.array_equal(copy.probabilities_, model.probabilities_)
    assert copy.status_ is model.status_
    assert np.array_equal(copy.sample(5, 0), model.sample(5, 0))
    np.testing.assert_array_equal(copy.fit().probabilities_, model.probabilities_)
    np.testing.assert_array_equal(clone(model).fit().probabilities_, model.probabilities_)


def test_frames_and_series_can_be_saved(tmp_path):
    pandas = pytest.importorskip("pandas")
    F = pandas.DataFrame({"u": [1.0, 0, 1, 0], "v": [0, 0, 1, 1.0]}, index=list("pqrs"))
    g = pandas.DataFrame({"w": [3.0, 0.0, 1.0, 2.0]}, index=list("srqp"))
    prior = pandas.Series([4.0, 3.0, 2.0, 1.0], index=list("srqp"))
    model = MaxEnt(F, pandas.Series({"v": 0.3, "u": 0.6}), (g, pandas.Series({"w": 1.4})), prior).fit()
    model.save(tmp_path / "m")
    copy = partita.load(tmp_path / "m")
    np.testing.assert_array_equal(copy.probabilities_, model.probabilities_)
    np.testing.assert_array_equal(copy.fit().probabilities_, model.probabilities_)
    assert list(copy.features) == ["u", "v"]
    assert isinstance(model.features, pandas.DataFrame)


def test_a_failed_fit_changes_nothing():
    model = MaxEnt(FACES, 4.5).fit()
    before = dict(vars(model))
    with pytest.raises(ValueError, match="outside"):
        model.set_params(equality=9.0).fit()
    assert {**before, "equality": 9.0} == vars(model)


def test_the_linear_term_of_a_likelihood(rng):
    F = rng.standard_normal((20, 4, 3))
    linear = rng.standard_normal(3)
    y = rng.integers(0, 4, 20)
    plain = Likelihood(LabelFeatures(F), Categorical(4), y, penalty=1.0)
    tilted = Likelihood(LabelFeatures(F), Categorical(4), y, penalty=1.0, linear=linear)
    theta, direction = rng.standard_normal(3), rng.standard_normal(3)
    assert tilted.at(theta).value == pytest.approx(plain.at(theta).value + linear @ theta)
    np.testing.assert_allclose(tilted.at(theta).gradient, plain.at(theta).gradient + linear)
    point, slope = tilted.at(theta).along(direction).at(0.7)
    assert point.value == pytest.approx(tilted.at(theta + 0.7 * direction).value)
    assert slope == pytest.approx(point.gradient @ direction)
    value, gradient, _ = tilted.at(theta).subspace([direction]).evaluate(np.array([0.7]))
    assert value == pytest.approx(point.value)
    assert gradient[0] == pytest.approx(slope)
    assert minimize(tilted, solver="majorize", tol=1e-8).value == pytest.approx(minimize(tilted, tol=1e-9).value)
    with pytest.raises(ValueError, match="linear must be finite"):
        Likelihood(LabelFeatures(F), Categorical(4), y, linear=np.ones(2))


def test_relative_entropy_counts_the_states_that_the_moments_exclude():
    assert MaxEnt(np.arange(1, 7), [6]).fit().relative_entropy_ == pytest.approx(np.log(6.0))
    edge = MaxEnt([0, 0, 1, 2.0], [0], prior=[1, 2, 3, 4]).fit()
    assert edge.relative_entropy_ == pytest.approx(np.log(10.0 / 3.0))


@pytest.mark.parametrize("distance", [1e-6, 1e-8, 1e-9])
def test_a_target_next_to_the_edge_is_met(distance):
    model = MaxEnt(np.arange(1, 7), [6 - distance]).fit()
    assert model.violation_ < 1e-9
    assert model.status_ is not Status.CALLBACK
    assert model.relative_entropy_ == pytest.approx(np.log(6.0), abs=1e-4)


def test_the_conflict_named_is_smallest_among_many():
    """290 harmless moments and two that contradict each other."""
    values = np.arange(300.0)
    F = np.column_stack([np.cos(np.outer(values, np.arange(290)) / 300.0), values, values])
    target = np.r_[F[:, :290].mean(0), 149.5, 140.0]
    group = smallest_conflict(range(292), lambda chosen: 290 in chosen and 291 in chosen)
    assert group == [290, 291]
    problem = MomentProblem(F[:, 288:], target[288:], 4, np.ones(300))
    with pytest.raises(ValueError, match="equality 2 and equality 3 together"):
        problem.raise_conflict()


STATES = [[0, 0], [1, 0], [0, 1], [1, 1]]
#: P(a) = 0.2, P(b) = 0.9, independent
RAKED = [0.08, 0.02, 0.72, 0.18]


@pytest.mark.parametrize("kind", ["series", "dict", "row", "column", "list"])
@pytest.mark.parametrize("table", ["frame", "dict"])
def test_names_win_over_positions(kind, table):
    pandas = pytest.importorskip("pandas")
    targets = pandas.Series({"b": 0.9, "a": 0.2})
    given = {
        "series": targets,
        "dict": targets.to_dict(),
        "row": targets.to_frame().T,
        "column": targets.to_frame(),
        "list": [0.2, 0.9],
    }[kind]
    frame = pandas.DataFrame(STATES, columns=["a", "b"])
    features = frame if table == "frame" else {key: frame[key].tolist() for key in frame}
    np.testing.assert_allclose(MaxEnt(features, given).fit().probabilities_, RAKED, atol=1e-9)


def test_names_win_in_inequalities_states_and_prior():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(STATES, columns=["a", "b"], index=["none", "a", "b", "both"])
    either = np.array([[0, 0], [0, 1], [0, 2], [1, 1]])
    expected = MaxEnt(STATES, [0.2, 0.6], inequality=(either, [0.15, 0.5]), prior=[1, 2, 3, 4]).fit()
    other = pandas.DataFrame(either, columns=["x", "y"], index=frame.index).loc[["both", "b", "none", "a"], ["y", "x"]]
    model = MaxEnt(
        frame,
        pandas.Series({"b": 0.6, "a": 0.2}),
        inequality=(other, {"x": 0.15, "y": 0.5}),
        prior=pandas.Series({"both": 4, "a": 2, "none": 1, "b": 3}),
    ).fit()
    # Four moments of four states depend on each other, so that multipliers are not unique: Newton's method stops for want of
    # digits with moments right to 1e-7, and where it does so depends on the order of the columns.
    np.testing.assert_allclose(model.probabilities_, expected.probabilities_, atol=1e-6)
    by_dict = MaxEnt(frame, [0.2, 0.6], prior={"both": 4, "a": 2, "none": 1, "b": 3}).fit()
    np.testing.assert_allclose(by_dict.probabilities_, MaxEnt(STATES, [0.2, 0.6], prior=[1, 2, 3, 4]).fit().probabilities_)


def test_numbered_columns_and_positions_agree():
    pandas = pytest.importorskip("pandas")
    for features in (STATES, pandas.DataFrame(STATES)):
        for targets in (pandas.Series([0.2, 0.9]), pandas.Series([0.9, 0.2], index=[1, 0]), {1: 0.9, 0: 0.2}):
            np.testing.assert_allclose(MaxEnt(features, targets).fit().probabilities_, RAKED, atol=1e-9)
    named = pandas.DataFrame(STATES, columns=["a", "b"])
    np.testing.assert_allclose(MaxEnt(named, pandas.Series([0.2, 0.9])).fit().probabilities_, RAKED, atol=1e-9)


def test_names_that_do_not_match_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(STATES, columns=["a", "b"])
    double = pandas.DataFrame(STATES, columns=["a", "a"])
    cases = [
        (
            frame,
            {"a": 0.2, "c": 0.9},
            r"equality has 'c', which features has not and lacks 'b'\. Names of features: 'a', 'b'",
        ),
        (frame, {"a": 0.2}, "equality lacks 'b'"),
        (frame, pandas.Series([0.2, 0.9, 0.1], index=["a", "b", "b"]), "equality: 'b' occurs more than once"),
        (double, [0.2, 0.9], "columns of features: 'a' occurs more than once"),
        (
            STATES,
            {"a": 0.2, "b": 0.9},
            "features is an array, whose columns are 0 to 1: give it as a frame, or equality as a",
        ),
        (pandas.DataFrame({"a": [0, 1], "b": ["x", "y"]}), [0.1, 0.2], "column 'b' is not. Code categories"),
        (frame.astype(float).replace(1.0, np.nan), [0.2, 0.9], "column 'a' holds NaN or infinity"),
        (frame, [0.2, np.nan], "equality must be 2 finite numbers"),
        (frame, {"b": 3.0, "a": 0.2}, r"equality 'b': target 3 lies outside \[0, 1\]"),
    ]
    for features, targets, message in cases:
        with pytest.raises(ValueError, match=message):
            MaxEnt(features, targets).fit()
    with pytest.raises(ValueError, match=r"inequality\[1\] has 'c', which inequality\[0\] has not"):
        MaxEnt(inequality=(frame, {"a": 0.1, "b": 0.1, "c": 0.1})).fit()
    with pytest.raises(ValueError, match="prior names its states, but features does not"):
        MaxEnt(frame, [0.2, 0.9], prior={"x": 1.0}).fit()
    contradiction = pandas.DataFrame({"a": [0, 1, 2], "minus a": [0, -1, -2]})
    with pytest.raises(ValueError, match="no distribution on these states satisfies equality 'a' and equality 'minus a'"):
        MaxEnt(contradiction, [1.0, -0.5]).fit()


@pytest.mark.parametrize("targets", [[4.5], [6.0], [5.9999]])
def test_an_interrupt_at_any_call_leaves_the_model_whole(targets):
    """The interrupt comes at the k-th Python call, for many k: it is raised and changes nothing, or is a status."""
    model = MaxEnt(np.arange(1, 7), [3.5]).fit()
    before, raised, kept = dict(vars(model)), 0, 0
    model.set_params(equality=targets)

    def interrupt_at(count):
        left = [count]

        def profile(frame, event, argument):
            if "partita" in frame.f_code.co_filename and event == "call":
                left[0] -= 1
                if left[0] == 0:
                    sys.setprofile(None)
                    raise KeyboardInterrupt

        return profile

    for count in range(1, 300, 5):
        model.__dict__.update(before | {"equality": targets})
        sys.setprofile(interrupt_at(count))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit()
            sys.setprofile(None)
            kept += model.status_ is Status.INTERRUPTED
            assert len(model.trace_) > 0
            assert model.probabilities_.sum() == pytest.approx(1.0)
        except KeyboardInterrupt:
            raised += 1
            now = vars(model)
            same = all(now.get(key) is value for key, value in before.items() if key != "equality")
            # Else it came in the very last call, when all was stored.
            mean = float(model.probabilities_ @ np.arange(1, 7))
            assert (same and now.keys() == before.keys()) or mean == pytest.approx(*targets)
        finally:
            sys.setprofile(None)
    assert raised > 0
    assert kept > 0 or targets == [6.0]  # which one linear program decides

"""Tables of states: what is unknown, what only looks like it, and numbers of states that may not be meant."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from partita import DataWarning, MarkovNetwork, TooLargeError
from partita.estimators.states import doubtful_states, read_states

EDGES = [(0, 1), (1, 2)]


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float64, object])
def test_spins_are_refused_with_the_cure(rng, dtype):
    X = rng.integers(0, 2, (50, 3))
    spins = (2 * X - 1).astype(dtype)
    model = MarkovNetwork.ising(EDGES).fit(X)
    for use in (MarkovNetwork.ising(EDGES).fit, model.score, model.log_likelihood, model.predict, model.predict_marginals):
        with pytest.raises(ValueError, match=r"X holds -1 and 1 only: these are spins.* Give \(X \+ 1\) // 2"):
            use(spins)
    if dtype in (np.float64, object):
        spins[0, 0] = np.nan
        with pytest.raises(ValueError, match="these are spins"):
            MarkovNetwork.ising(EDGES).fit(spins)
    np.testing.assert_array_equal(MarkovNetwork.ising(EDGES).fit((2 * X - 1 + 1) // 2).parameters_, model.parameters_)


def test_spins_in_a_frame_are_refused(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(2 * rng.integers(0, 2, (50, 3)) - 1, columns=list("abc"))
    for table in (frame, frame.astype("Int64"), frame.where(rng.random(frame.shape) > 0.1)):
        with pytest.raises(ValueError, match="these are spins"):
            MarkovNetwork.ising(EDGES).fit(table)
    frame[["a", "c"]] = (frame[["a", "c"]] + 1) // 2
    with pytest.raises(ValueError, match=r"column 'b' of X holds -1 and 1 only.* Give \(X \+ 1\) // 2 there"):
        MarkovNetwork.ising(EDGES).fit(frame)


def test_unknown_values_are_not_taken_for_spins(rng):
    X = rng.integers(0, 2, (60, 3))
    X[rng.random(X.shape) < 0.2] = -1
    X[:, 1] = np.where(rng.random(60) < 0.5, 1, -1)  # never 0 where known; the other columns say what -1 means
    np.testing.assert_array_equal(read_states(X), X)
    as_nan = np.where(X < 0, np.nan, X)
    np.testing.assert_array_equal(read_states(as_nan), X)
    np.testing.assert_array_equal(read_states(as_nan[:, 1:2]), X[:, 1:2])  # NaN is never a spin
    model = MarkovNetwork.ising(EDGES, l2=1.0).fit(X)
    np.testing.assert_array_equal(model.predict([[1, -1, 1]]), [[1, 1, 1]])  # one row may ask so
    assert (model.predict([[1, None, 1], [None, 1, 1]]) >= 0).all()


def test_what_pandas_calls_unknown_is_unknown():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.array([0, 1, None, 1], dtype="Int64"), "b": [0, 1, 1, 0]})
    np.testing.assert_array_equal(read_states(frame), [[0, 0], [1, 1], [-1, 1], [1, 0]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0, 1], [-100, 1]], "X holds -100, .* give -1, NaN or None"),
        ([[0.0, np.inf]], "got inf"),
        ([[0.0, -np.inf]], "got -inf"),
        ([["a", 1], ["b", 0]], "must hold integers"),
        (np.array([["a", 1], ["b", None]], dtype=object), "Number the states 0, 1"),
        (np.array([["0", "1"]], dtype=object), "Number the states 0, 1"),
        ([[0.5, 1.0]], "must hold integers"),
    ],
)
def test_what_is_no_state_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        read_states(X)


def test_doubtful_numbers_of_states_are_said():
    assert doubtful_states("a", 2, [0, 1], "numbers") == ""
    assert doubtful_states("a", 5, [0, 1, 4], "numbers") == ""
    assert doubtful_states("a", 10, [0, 1, 9], "numbers").startswith("column 'a' has 10 states, 0 to 9, though only 3")
    assert "one for every whole number up to 152" in doubtful_states("a", 153, range(153), "numbers")
    assert doubtful_states("a", 51, range(51), "values") == "column 'a' has 51 states, one for each different value"
    assert doubtful_states("a", 4, ["x", "y"], "categories").endswith("though only 2 of them occur")
    assert doubtful_states("a", 2, ["x", "y"], "categories") == ""


def test_codes_and_quantities_in_a_column_are_a_warning(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.integers(0, 2, (300, 2)), columns=["smoker", "age"])
    factors = [("smoker",), ("age",)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MarkovNetwork(factors, l2=1.0).fit(frame)
    frame.loc[3, "smoker"] = 999
    frame["age"] = rng.permutation(np.resize(np.arange(153), 300))
    with pytest.warns(DataWarning) as caught:
        MarkovNetwork(factors, l2=1.0).fit(frame)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert "column 'smoker' has 1000 states, 0 to 999, though only 3 values occur (0, 1, 999)" in said
    assert "column 'age' has 153 states" in said
    assert "give NaN or -1 there" in said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MarkovNetwork(factors, cardinalities=[1000, 153], l2=1.0).fit(frame)


def test_a_state_of_a_billion_is_refused_before_work(rng):
    with pytest.warns(DataWarning, match="1000000001 states"), pytest.raises(TooLargeError, match="table entries"):
        MarkovNetwork().fit([[0, 10**9], [10**9, 1]])

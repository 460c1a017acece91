"""How values are read as states."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from partita import BayesianNetwork, DataWarning
from partita.bayesnet.data.column_states import StateNames
from partita.io import DiscreteNetwork

pd = pytest.importorskip("pandas")

EDGES = [("a", "b")]


@pytest.mark.parametrize(
    ("states", "values", "codes"),
    [
        ([1, 2], [1, 2.0, np.int64(1), True, "1", 3], [0, 1, 0, 0, -2, -2]),
        (["1", "2"], ["1", 1, 2.0, 0, "one", True], [0, 0, 1, -2, -2, -2]),
        (["0.50", "2"], [0.5, 2, "0.5"], [0, 1, -2]),
        (["1", "01"], [1, "01", "1"], [0, 1, 0]),
        (["few", "10"], [10, 0, 1, "few"], [1, -2, -2, 0]),
        (["no", "yes"], ["yes", 0, 1, 1.0, 2, -1, True], [1, 0, 1, 1, -2, -2, -2]),
        (["False", "True"], [True, "True", 0], [1, 1, 0]),
        ([False, True], [True, 1, 0, "True"], [1, 1, 0, -2]),
        (["nan", "inf"], ["nan", 0], [0, 0]),
        ([-1, 1], [-1, 1], [0, 1]),
    ],
)
def test_a_value_is_read_by_the_states_alone(states, values, codes):
    names = StateNames(states)
    assert [names.code(value) for value in values] == codes


def test_reading_a_number_does_not_depend_on_other_rows():
    tables = (np.array([0.6, 0.4]), np.array([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]]))
    model = BayesianNetwork(DiscreteNetwork(("a", "b"), (("no", "yes"), ("1", "2", "3")), ((), ("a",)), tables))
    alone = model.log_likelihood(pd.DataFrame({"a": ["no"], "b": [1]}))
    assert alone[0] == pytest.approx(np.log(0.6 * 0.7))
    with pytest.raises(ValueError, match="row 1 has 0 for 'b', which is none of its states: '1', '2', '3'"):
        model.log_likelihood(pd.DataFrame({"a": ["no", "no"], "b": [1, 0]}))
    mixed = pd.DataFrame({"a": ["no"] * 3, "b": [1, "1", 1.0]}, dtype=object)
    np.testing.assert_array_equal(model.log_likelihood(mixed), np.repeat(alone, 3))


@pytest.mark.parametrize("kind", ["frame", "dict", "records", "objects"])
def test_mixed_kinds_are_refused_with_their_rows(kind):
    values = [1, 2, None, "1", 2]
    table = {
        "frame": pd.DataFrame({"a": values, "b": [0, 1, 1, 0, 1]}),
        "dict": {"a": values, "b": [0, 1, 1, 0, 1]},
        "records": [{"a": value, "b": i % 2} for i, value in enumerate(values)],
        "objects": np.array([values, [0, 1, 1, 0, 1]], dtype=object).T,
    }[kind]
    with pytest.raises(ValueError, match=r"'a' mixes numbers and text: row 0 has 1, row 3 has '1'.*astype\(str\)"):
        BayesianNetwork(EDGES).fit(table)


def test_whole_floats_are_integers_and_halves_are_not():
    X = np.array([[0, 1], [1, 0], [1, 1]])
    model = BayesianNetwork(EDGES).fit(X.astype(float))
    assert model.states_ == {"a": [0, 1], "b": [0, 1]}
    assert model.score(X.astype(bool)) == model.score(X)
    with pytest.raises(ValueError, match=r"row 0 has 0.5 for 'a', which is none of its states: 0, 1"):
        model.score([[0.5, 1]])


@pytest.mark.parametrize("kind", [int, float])
def test_spins_in_arrays_are_refused_with_the_cure(kind):
    X = np.array([[-1, 1], [1, 1], [1, -1], [-1, -1]]).astype(kind)
    with pytest.raises(ValueError, match=r"'a' holds -1 and 1 only.*\(X \+ 1\) // 2.*cardinalities=\{'a': \[-1, 1\]\}"):
        BayesianNetwork(EDGES).fit(X)
    bits = BayesianNetwork(EDGES).fit((X + 1) // 2)
    for model, data in (
        (BayesianNetwork(EDGES, {"a": [-1, 1], "b": [-1, 1]}), X),  # -1 is a state, as they say
        (BayesianNetwork(EDGES), pd.DataFrame(X, columns=["a", "b"])),  # in a frame it is never unknown
    ):
        model.fit(data)
        assert model.states_["a"] == [-1, 1]
        np.testing.assert_array_equal(model.parameters_, bits.parameters_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            np.testing.assert_array_equal(model.log_likelihood(X), bits.log_likelihood((X + 1) // 2))


def test_minus_one_is_unknown_in_arrays_of_integers_only():
    X = np.array([[0, 1], [1, 0], [-1, 1], [1, 1]])
    model = BayesianNetwork(EDGES, random_state=0).fit(X)
    assert model.states_["a"] == [0, 1]
    for other in (X.astype(float), X.astype(object), [[0, 1], [1, None], [-1, 1]]):
        with pytest.raises(ValueError, match=r"holds -1, which means unknown in arrays of integers only\. Give None or NaN"):
            BayesianNetwork(EDGES).fit(other)
        with pytest.raises(ValueError, match=r"row 2 has -1 for 'a'.*give None or NaN"):
            model.predict(other)
    with pytest.warns(
        DataWarning, match=r"'a' has 3 states, one of them -1, which looks like a code for unknown \(1 rows\)"
    ):
        assert BayesianNetwork(EDGES).fit(pd.DataFrame(X, columns=["a", "b"])).states_["a"] == [-1, 0, 1]


def test_the_index_that_others_ignore_is_refused():
    X = np.array([[0, 1], [1, 0], [-100, 1], [1, 1]])
    for data in (X, pd.DataFrame(X, columns=["a", "b"])):
        with pytest.raises(ValueError, match=r"'a' holds -100.*None or NaN.*cardinalities=\{'a': \[...\]\}"):
            BayesianNetwork(EDGES).fit(data)
    assert BayesianNetwork(EDGES, {"a": [-100, 0, 1]}).fit(X).states_["a"] == [-100, 0, 1]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            np.where(np.arange(200) % 50, np.arange(200) % 3, 999),
            r"'b' has 4 states, one of them 999.*\(4 rows\).*None or NaN",
        ),
        (np.where(np.arange(200) % 50, np.arange(200) % 3, -99), "'b' has 4 states, one of them -99"),
        (np.arange(200) % 153, r"'b' has 153 states, one for each different value.*gaussian=\[...\]"),
        (np.char.add("id", (np.arange(200)).astype(str)), "'b' has 200 states"),
        (
            pd.Categorical(np.arange(200) % 2, categories=range(10)),
            "'b' has 10 states, its categories, though only 2 of them",
        ),
    ],
)
def test_numbers_of_states_that_may_not_be_meant_are_told(column, message):
    data = pd.DataFrame({"a": np.arange(200) % 2, "b": column})
    with pytest.warns(DataWarning, match=message) as told:
        model = BayesianNetwork(EDGES).fit(data)
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():  # said to be meant, or not there
        warnings.simplefilter("error")
        BayesianNetwork(EDGES, {"b": model.states_["b"]}).fit(data)
        BayesianNetwork(EDGES).fit(data.assign(b=np.arange(200) % 12))


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([0, "a"], "mixes numbers and text"),
        ([0, 0.0], "has 0 twice"),
        ([0, None], "has None, which cannot be a state"),
        ([0, float("nan")], "has nan, which cannot"),
        ([0, float("inf")], "infinite"),
        ([[0], [1]], r"has \[0\], which cannot"),
        (10**12, "at most"),
    ],
)
def test_declared_states_are_checked(states, message):
    with pytest.raises(ValueError, match=message):
        BayesianNetwork(EDGES, {"a": states}).fit([[0, 1], [0, 0]])


def test_intervals_of_pandas_are_states():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": pd.cut(rng.standard_normal(50), 3), "b": rng.integers(2, size=50)})
    model = BayesianNetwork(EDGES).fit(data)
    assert len(model.states_["a"]) == 3
    assert np.isfinite(model.score(data))


@pytest.mark.parametrize("values", [["1.5", "2", "x"], pd.date_range("2020", periods=3), [1.0, "2", 3.0]])
def test_gaussian_variables_are_numbers(values):
    with pytest.raises(ValueError, match="'g' is Gaussian and must hold numbers, but row "):
        BayesianNetwork([("a", "g")], gaussian=["g"]).fit(pd.DataFrame({"a": [0, 1, 0], "g": values}))


def test_one_and_unknown_are_no_spins_where_another_column_has_codes():
    X = np.array([[-1, 0], [1, 1], [1, -1], [-1, 1]])
    assert BayesianNetwork(EDGES, random_state=0).fit(X).states_ == {"a": [1], "b": [0, 1]}
    assert BayesianNetwork(EDGES, {"a": 2}, random_state=0).fit(X[:, [0, 0]] * [1, 0]).states_ == {"a": [0, 1], "b": [0]}

"""Tables as people have them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from partita import BayesianNetwork
from partita.bayesnet.data.tables import read_table

pd = pytest.importorskip("pandas")

EDGES = [("a", "b"), ("b", "c")]
A = [0, 1, None, 1, 0, 1, 0, 0]
B = ["no", "yes", "yes", None, "no", "yes", "no", "yes"]
C = [True, False, True, True, None, False, True, False]
ROWS = {"a": A, "b": B, "c": C}


def polars_frame():
    return pytest.importorskip("polars").DataFrame(ROWS)


def polars_enums():
    polars = pytest.importorskip("polars")
    return polars.DataFrame(ROWS).with_columns(polars.col("b").cast(polars.Enum(["no", "yes"])))


def polars_categories():
    polars = pytest.importorskip("polars")
    return polars.DataFrame(ROWS).with_columns(polars.col("b").cast(polars.Categorical))


def arrow_table():
    return pytest.importorskip("pyarrow").table(ROWS)


def arrow_batch():
    return arrow_table().to_batches()[0]


def arrow_dictionary():
    """In chunks with dictionaries of their own; null would be the last entry if its code were an index."""
    arrow = pytest.importorskip("pyarrow")
    chunks = [arrow.array(part).dictionary_encode() for part in (B[:3], B[3:])]
    return arrow.table({"a": A, "b": arrow.chunked_array([chunks[0], chunks[1].cast(chunks[0].type)]), "c": C})


def pandas_arrow():
    pytest.importorskip("pyarrow")
    return pd.DataFrame(ROWS).convert_dtypes(dtype_backend="pyarrow")


TABLES = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "nullable": lambda: pd.DataFrame(ROWS).astype({"a": "Int64", "b": "string", "c": "boolean"}),
    "categories": lambda: pd.DataFrame(ROWS).astype({"b": "category"}),
    "objects": lambda: pd.DataFrame(ROWS, dtype=object),
    "another order": lambda: pd.DataFrame(ROWS)[["c", "a", "b"]],
    "another index": lambda: pd.DataFrame(ROWS, index=list("stuvwxyz")),
    "pandas with arrow": pandas_arrow,
    "polars": polars_frame,
    "polars enums": polars_enums,
    "polars categories": polars_categories,
    "arrow": arrow_table,
    "arrow batch": arrow_batch,
    "arrow dictionary": arrow_dictionary,
    "dict": lambda: dict(ROWS),
    "dict of series": lambda: {name: pd.Series(values) for name, values in ROWS.items()},
    "records": lambda: [dict(zip(ROWS, row, strict=True)) for row in zip(A, B, C, strict=True)],
    "records with gaps": lambda: [
        {name: value for name, value in zip(ROWS, row, strict=True) if value is not None}
        for row in zip(A, B, C, strict=True)
    ],
    "nested lists": lambda: [list(row) for row in zip(A, B, C, strict=True)],
    "array of objects": lambda: np.array([A, B, C], dtype=object).T,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_of_table_is_the_same(name):
    expected = BayesianNetwork(EDGES, random_state=0).fit(pd.DataFrame(ROWS))
    table = TABLES[name]()
    model = BayesianNetwork(EDGES, random_state=0).fit(table)
    assert model.states_ == {"a": [0, 1], "b": ["no", "yes"], "c": [False, True]}
    np.testing.assert_allclose(model.parameters_, expected.parameters_, atol=1e-9)
    logs = model.log_likelihood(table)
    np.testing.assert_allclose(logs, expected.log_likelihood(pd.DataFrame(ROWS)), atol=1e-9)
    filled, draws = model.predict(table), model.sample(3, 0)
    assert type(filled) is type(draws) or name == "nested lists" or name == "arrow batch"
    if hasattr(table, "index") and hasattr(table, "columns"):
        assert filled.index.equals(table.index)
        assert filled.columns.tolist() == list(table.columns)
    again = read_table(filled)
    assert again.n_rows == 8
    for j in range(3):
        assert not again.read(j).unknown.any()
    np.testing.assert_array_less(logs + 1e-9, 0.0)


def test_structured_and_masked_arrays():
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0], [1, 1]])
    records = np.rec.fromarrays([X[:, 1], X[:, 0]], names=["b", "a"])
    plain = BayesianNetwork([("a", "b")]).fit(X)
    np.testing.assert_array_equal(BayesianNetwork([("a", "b")]).fit(records).parameters_, plain.parameters_)
    assert plain.predict(records).dtype.names == ("b", "a")
    masked = np.ma.masked_array(X, mask=np.eye(5, 2, dtype=bool))
    unknown = np.where(np.eye(5, 2, dtype=bool), -1, X)
    np.testing.assert_array_equal(plain.log_likelihood(masked), plain.log_likelihood(unknown))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_large_integers_beside_nulls_stay_what_they_are(library):
    module = pytest.importorskip(library)
    ids = [2**60, 2**60 + 1, None, 2**60]
    table = {
        "pandas": lambda: pd.DataFrame({"a": pd.array(ids, dtype="Int64"), "b": [0, 1, 1, 0]}),
        "polars": lambda: module.DataFrame({"a": ids, "b": [0, 1, 1, 0]}),
        "pyarrow": lambda: module.table({"a": ids, "b": [0, 1, 1, 0]}),
    }[library]()
    assert BayesianNetwork([("a", "b")], random_state=0).fit(table).states_["a"] == [2**60, 2**60 + 1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: pd.DataFrame([[0, 1, 1]], columns=["a", "b", "b"]), "more than one column 'b'"),
        (lambda: {"a": [0, 1], "b": [0]}, "equally long, but 'a' has 2 values, 'b' has 1"),
        (lambda: {"a": [0, 1], "b": 3}, "'b' must be a list or an array, got 3"),
        (lambda: {"a": [0, 1], "b": "01"}, "'b' must be a list"),
        (lambda: [{"a": 0}, [1, 2]], "row 0 is a dict, so that all rows must be, but row 1"),
        (lambda: [[0, 1], [1]], "not equally long"),
        (lambda: pytest.importorskip("scipy.sparse").csr_matrix(np.eye(2)), r"sparse matrix.*X.toarray\(\)"),
        (lambda: pytest.importorskip("polars").LazyFrame({"a": [0], "b": [1]}), r"LazyFrame.*X.collect\(\)"),
        (lambda: pd.Series([0, 1]), r"got shape \(2,\)"),
        (lambda: 3, r"got shape \(\)"),
        (lambda: {}, "at least one row"),
        (lambda: [{}, {}], "no column of the data is a variable"),
        (lambda: pd.DataFrame({"a": [[0], [1]], "b": [0, 1]}), r"row 0 has \[0\] for 'a', which cannot be a state"),
        (lambda: {"a": [b"x", b"y"], "b": [0, 1]}, "cannot be a state"),
        (lambda: {"a": [1j, 2j], "b": [0, 1]}, "row 0 has 1j for 'a', which cannot be a state"),
        (lambda: pd.DataFrame({"a": pd.date_range("2020", periods=2), "b": [0, 1]}), "'a' holds dates or times"),
        (lambda: pd.DataFrame({"a": pd.date_range("2020", periods=2, tz="UTC"), "b": [0, 1]}), "'a' holds dates or times"),
        (lambda: pd.DataFrame({"a": pd.period_range("2020", periods=2), "b": [0, 1]}), "'a' holds dates or times"),
    ],
)
def test_tables_that_cannot_be_read_are_named(data, message):
    with pytest.raises(ValueError, match=message):
        BayesianNetwork([("a", "b")]).fit(data())


def test_no_library_of_frames_is_needed():
    code = """
import sys
sys.modules.update(dict.fromkeys(("pandas", "polars", "pyarrow")))
from partita import BayesianNetwork
model = BayesianNetwork([("a", "b")]).fit({"a": [0, 1], "b": [1, 0]})
model.predict([{"a": 0}]), model.sample(2)
"""
    subprocess.run([sys.executable, "-c", code], check=True)

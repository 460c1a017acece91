"""Columns by name: order does not matter, absent ones are named, extra ones are ignored with a word."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from partita import DataWarning, MarkovNetwork, load
from partita.estimators.named_columns import column_names, match_columns

EDGES = [(0, 1), (1, 2), (2, 3)]


def rows(rng, n=200):
    """Four variables that like to be equal to the one before."""
    X = rng.integers(0, 2, (n, 4))
    for j in range(1, 4):
        X[:, j] = np.where(rng.random(n) < 0.4 + 0.1 * j, X[:, j - 1], X[:, j])
    return X


def frames(X, names):
    pandas = pytest.importorskip("pandas")
    yield pandas.DataFrame(X, columns=names)
    for library, make in (("polars", "DataFrame"), ("pyarrow", "table")):
        try:
            module = __import__(library)
        except ImportError:
            continue
        yield getattr(module, make)({name: X[:, j] for j, name in enumerate(names)})


def test_names_of_columns_of_any_frame(rng):
    pandas = pytest.importorskip("pandas")
    X = rows(rng, 5)
    for frame in frames(X, list("abcd")):
        assert column_names(frame) == ["a", "b", "c", "d"]
    assert column_names(X) is None
    assert column_names(X.tolist()) is None
    assert column_names(pandas.DataFrame(X)) is None
    assert column_names(pandas.DataFrame(X)[[2, 0, 1, 3]]) == [2, 0, 1, 3]
    with pytest.raises(TypeError, match="all strings or all integers"):
        column_names(pandas.DataFrame(X, columns=["a", 1, 2, 3]))
    with pytest.raises(ValueError, match="more than one column 'a'"):
        column_names(pandas.DataFrame(X, columns=["a", "b", "a", "d"]))


def test_absent_columns_are_named_and_extra_ones_ignored_with_one_warning():
    np.testing.assert_array_equal(match_columns(["a", "b"], ["b", "a"]), [1, 0])
    np.testing.assert_array_equal(match_columns(["a", "b"], ["b"], optional=["a"]), [-1, 0])
    with pytest.raises(ValueError, match=r"no column 'c', which the model needs; its columns are 'b', 'a'"):
        match_columns(["a", "c"], ["b", "a"])
    with pytest.warns(DataWarning, match="2 columns that the model does not have, 'x', 'y': they are ignored") as caught:
        np.testing.assert_array_equal(match_columns(["a"], ["x", "a", "y"]), [1])
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_network_finds_its_columns_by_name(rng):
    X = rows(rng)
    plain = MarkovNetwork.ising(EDGES).fit(X)
    order = [3, 1, 0, 2]
    for frame, turned in zip(frames(X, list("abcd")), frames(X[:, order], list("dbac")), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = MarkovNetwork.ising(EDGES).fit(frame)
            assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
            assert model.score(turned) == pytest.approx(plain.score(X), rel=1e-12)
            np.testing.assert_array_equal(model.predict(turned), X[:, order])
            for a, b in zip(model.predict_marginals(turned), model.predict_marginals(frame), strict=True):
                np.testing.assert_array_equal(a, b)


def test_names_and_positions_together_are_said(rng):
    pandas = pytest.importorskip("pandas")
    X = rows(rng)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named, plain = MarkovNetwork.ising(EDGES).fit(frame), MarkovNetwork.ising(EDGES).fit(X)
    with pytest.warns(UserWarning, match="does not have valid feature names, but MarkovNetwork was fitted with"):
        named.score(X)
    with pytest.warns(UserWarning, match="X has feature names, but MarkovNetwork was fitted without"):
        plain.score(frame)
    with pytest.raises(ValueError, match="X has no column 'b', which MarkovNetwork needs"):
        named.score(frame[["a", "c", "d"]])
    with pytest.warns(DataWarning, match="1 column that MarkovNetwork does not have, 'e': it is ignored"):
        assert named.score(frame.assign(e=7)) == named.score(frame)


def test_numbers_as_names_of_columns_are_numbers_of_variables(rng):
    pandas = pytest.importorskip("pandas")
    X = rows(rng)
    frame = pandas.DataFrame(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MarkovNetwork.ising(EDGES).fit(frame[[2, 0, 3, 1]])
        assert model.score(X) == model.score(frame) == model.score(frame[[3, 2, 1, 0]])
    assert model.score(X) == pytest.approx(MarkovNetwork.ising(EDGES).fit(X).score(X), rel=1e-12)


def test_factors_may_name_columns(rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = rows(rng)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    numbered = MarkovNetwork([(0,), (1, 0)], [2, 2], l2=0.1).fit(X[:, :2])
    with pytest.warns(DataWarning, match="2 columns"):
        model = MarkovNetwork([("a",), ("b", "a")], [2, 2], l2=0.1).fit(frame[["c", "b", "d", "a"]])
    assert model.n_features_in_ == 2
    assert model.factors_ == [(0,), (1, 0)]
    np.testing.assert_allclose(model.parameters_, numbered.parameters_, atol=1e-9)
    assert model.summary().names[2] == "(b, a) = (0, 0)"
    model.save(tmp_path / "m.partita")
    assert load(tmp_path / "m.partita").score(frame[["b", "a"]]) == model.score(frame[["a", "b"]])
    with pytest.raises(ValueError, match="factors name variables 'a', 'b', so that X must be a data frame"):
        MarkovNetwork([("a",), ("b", "a")]).fit(X)
    with pytest.raises(ValueError, match="X has no column 'q'"):
        MarkovNetwork([("a", "q")]).fit(frame)

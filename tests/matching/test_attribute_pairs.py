"""Features over pairs of attributes of vertices, against a table with a number for every feature and edge."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import partita
from partita import DataWarning, MatchingCRF, ModelFileError, minimize
from partita.features import Attribute, AttributePairs
from partita.matching.features import EdgeFeatures, Side, attribute_pairs, learn_attributes, parameter_names, read_attributes
from partita.matching.objective.likelihood import Group, MatchingLikelihood
from partita.structures import BipartiteMatching, BMatching, Matching

ROOMS = {"age": [20.5, 31.0, 22.25, 40.0], "floor": [1, 3, 2, 1], "smokes": ["no", "yes", "no", "no"]}
OTHERS = {"age": [21.0, 30.0, 27.5, 33.0], "floor": [2, 2, 3, 1], "smokes": ["yes", "maybe", "no", "no"]}


def written_out(attributes, one, other):
    """Features of all pairs of rows of two tables, (parameters, rows, columns)."""
    out = []
    for a in attributes:
        if a.distance:
            out.append(np.abs(np.subtract.outer(np.array(one[a.name]), np.array(other[a.name]))))
    for a in attributes:
        for i, x in enumerate(a.levels):
            for y in a.levels[i:]:
                left, right = (np.array([[v == level for v in t[a.name]] for level in (x, y)]) for t in (one, other))
                out.append(1.0 * (np.outer(left[0], right[1]) | np.outer(left[1], right[0])))
    return np.array(out, dtype=float)


def examples(*tables):
    return [{"attributes": table} for table in tables]


def test_weights_are_those_of_written_out_features(rng):
    attributes = learn_attributes([ROOMS, OTHERS])
    names = parameter_names(attributes)
    for graph in (Matching(4), Matching([(0, 2), (0, 3), (2, 1)], perfect=False, n_vertices=4)):
        features = attribute_pairs(*read_attributes(examples(ROOMS, OTHERS), False), graph)
        tables = np.array([written_out(attributes, t, t)[:, graph.ends[:, 0], graph.ends[:, 1]] for t in (ROOMS, OTHERS)])
        check(features, EdgeFeatures(tables.transpose(1, 0, 2)), names, rng)
    both = (ROOMS, OTHERS), (OTHERS, ROOMS)
    features = attribute_pairs(*read_attributes(examples(*both), True), BipartiteMatching(4))
    tables = np.array([written_out(attributes, *pair).reshape(len(names), -1) for pair in both])
    check(features, EdgeFeatures(tables.transpose(1, 0, 2)), names, rng)


def check(features, table, names, rng):
    assert features.size == table.size == len(names)
    theta = rng.standard_normal(features.size)
    W = features.forward(theta)
    values = rng.standard_normal(W.shape)
    np.testing.assert_allclose(W, table.forward(theta), rtol=1e-13)
    np.testing.assert_allclose(features.adjoint(values), table.adjoint(values), atol=1e-12)
    np.testing.assert_allclose(features.squares(values), table.squares(values), atol=1e-11)
    for i in range(2):
        np.testing.assert_array_equal(features.example(i).forward(theta), W[i : i + 1])


def test_sides_of_different_sizes(rng):
    attributes = learn_attributes([ROOMS])
    table = pd.DataFrame(ROOMS)
    few, many = (
        attribute_pairs(*read_attributes(examples((rows, table)), True, attributes), BipartiteMatching(4))
        for rows in (table.iloc[:2], table)
    )
    theta = rng.standard_normal(few.size)
    np.testing.assert_array_equal(few.forward(theta)[0], many.forward(theta)[0, :8])


def test_learning_is_that_of_written_out_features():
    rng = np.random.default_rng(3)
    tables = [{"floor": rng.integers(0, 4, 8), "age": rng.standard_normal(8)} for _ in range(5)]
    attributes, graph = learn_attributes(tables), Matching(8)
    y = np.array([graph.sample(-np.abs(np.subtract.outer(t["age"], t["age"])), 1, rng)[0] for t in tables])
    dense = np.array([written_out(attributes, t, t)[:, graph.ends[:, 0], graph.ends[:, 1]] for t in tables])
    maps = attribute_pairs(*read_attributes(examples(*tables), False), graph), EdgeFeatures(dense.transpose(1, 0, 2))
    found = [
        minimize(MatchingLikelihood([Group(graph, m, graph.indicators(y), np.ones(5))], 1.0), tol=0.0, gap_tol=1e-9)
        for m in maps
    ]
    np.testing.assert_allclose(found[0].parameters, found[1].parameters, atol=1e-4)


def test_kinds_of_columns():
    frame = pd.DataFrame(
        {
            "age": [0.5, 1.0],
            "floor": [3, 1],
            "id": [10.0, 20.0],
            "pet": pd.Categorical(["cat", "dog"]),
            "quiet": [True, False],
        }
    )
    found = {a.name: (a.distance, a.levels) for a in learn_attributes([frame, frame])}
    assert found["age"] == (True, ())
    assert found["floor"] == (True, (1.0, 3.0))
    assert found["pet"] == (False, ("cat", "dog"))
    assert found["quiet"] == (False, (False, True))
    many = learn_attributes([{"id": np.arange(13)}])[0]
    assert many.distance
    assert many.levels == ()
    assert [a.name for a in learn_attributes([np.ones((3, 2))])] == ["0", "1"]


def test_values_that_training_did_not_show_have_no_indicators():
    attributes = learn_attributes([ROOMS])
    new = ROOMS | {"smokes": ["never"] * 4, "floor": [9, 1, 1, 1]}
    theta = np.zeros(len(parameter_names(attributes)))
    theta[2:] = 1.0  # indicators only
    with pytest.warns(DataWarning, match="'floor' has 9 in example 0, 'smokes' has never in example 0"):
        known = read_attributes(examples(new), False, attributes)
    W = attribute_pairs(*known, Matching(4)).forward(theta)[0]
    np.testing.assert_array_equal(W, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0])  # floors of all but the first vertex


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learn_attributes([{"a": [1.0, np.nan]}]), "no finite value at vertex 1.*level of its own"),
        (lambda: learn_attributes([{"a": ["x", None]}]), "no finite value at vertex 1"),
        (lambda: learn_attributes([{"a": [1.0]}, {"b": [1.0]}]), r"example 1 must be \['a'\], got \['b'\]"),
        (lambda: learn_attributes([{"a": [1.0], "b": [1.0, 2.0]}]), "different lengths"),
        (lambda: learn_attributes([np.ones(3)]), "must be a table"),
        (lambda: learn_attributes([{}]), "must have columns"),
        (lambda: read_attributes(examples(ROOMS | {"age": ["old"] * 4}), False, learn_attributes([ROOMS])), "numbers"),
        (lambda: read_attributes(examples(ROOMS), True), "two tables"),
        (lambda: read_attributes([*examples(ROOMS), np.ones((2, 2))], False), "example 1 must be a dict"),
        (lambda: read_attributes(examples(ROOMS, {"age": [1.0]}), False), "example 1 must be"),
        (lambda: AttributePairs([], [Side(np.zeros((0, 2)), np.zeros((0, 2)))]), "give columns"),
        (
            lambda: AttributePairs([], [Side(np.zeros((0, 2)), np.zeros((0, 2)))], ends=np.array([(1, 0), (0, 1)])),
            "sort edges",
        ),
    ],
)
def test_bad_tables_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_nothing_of_the_size_of_edges_times_features_is_made():
    """A thousand by a thousand edges with 210 features would be 1.7 GB; weights are 8 MB."""
    n, rng = 1000, np.random.default_rng(0)
    side = {f"question {k}": rng.integers(0, 5, n) for k in range(14)}
    attributes, sides = read_attributes(examples((side, side)), True)
    features = attribute_pairs(attributes, sides, BipartiteMatching(n, n_jobs=1))
    W = features.forward(np.ones(features.size))
    features.adjoint(W)
    tracemalloc.start()
    features.adjoint(features.forward(np.ones(features.size)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert features.size == 14 + 14 * 15
    assert peak < 3 * W.nbytes
    two = attribute_pairs(attributes, sides, BipartiteMatching(n, n_jobs=2))
    np.testing.assert_array_equal(two.adjoint(W), features.adjoint(W))


def rooms(rng, count, n=6):
    """Tables of people, whose matchings like equal habits and small distances."""
    out = []
    for _ in range(count):
        age, smokes = 20.0 + 10.0 * rng.random(n), rng.choice(["no", "yes"], n)
        table = pd.DataFrame({"age": age, "smokes": smokes})
        W = -0.5 * np.abs(np.subtract.outer(age, age)) + 2.0 * (smokes[:, None] == smokes)
        out.append((table, W))
    return out


@pytest.mark.parametrize("kind", ["bipartite", "one kind", "two edges each"])
def test_models_of_attributes_are_those_of_written_out_features(kind, rng, tmp_path):
    found = rooms(rng, 12)
    if kind == "bipartite":
        s, options = BipartiteMatching(6), {}
        X = [{"attributes": (table, table[::-1])} for table, _ in found]
        y = [s.sample(W[:, ::-1], 1, rng)[0] for _, W in found]
    else:
        b = 2 if kind == "two edges each" else 1
        s, options = Matching(6) if b == 1 else BMatching(6, 2), {"bipartite": False, "b": b}
        X = [{"attributes": table.to_dict("list")} for table, _ in found]
        y = [s.sample(W[s.ends[:, 0], s.ends[:, 1]], 1, rng)[0] for _, W in found]
        if b == 2:
            y = [s.ends[row > 0] for row in y]
    model = MatchingCRF(l2=0.1, **options).fit(X, y)
    attributes = learn_attributes([table for table, _ in found])
    assert model.attributes_ == attributes
    assert model.parameter_names_ == parameter_names(attributes) == ["|age|", *(f"smokes: {v}" for v in PAIRS_OF_LEVELS)]
    plain = [{"features": written_out(attributes, t, t[::-1] if kind == "bipartite" else t)} for t, _ in found]
    other = MatchingCRF(l2=0.1, **options).fit(plain, y)
    assert not hasattr(other, "attributes_")
    np.testing.assert_allclose(model.parameters_, other.parameters_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.log_likelihood(X, y), other.log_likelihood(plain, y), atol=1e-5)
    model.save(tmp_path / "model")
    again = partita.load(tmp_path / "model")
    assert again.attributes_ == model.attributes_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert model.fit(plain, y).kind_ == "edges"  # what was known of attributes is gone
    assert not hasattr(model, "attributes_")


PAIRS_OF_LEVELS = ("no, no", "no, yes", "yes, yes")


def test_models_keep_the_levels_of_training(rng, recwarn):
    found = rooms(rng, 8)
    X = [
        {"attributes": table, "forbidden": np.eye(6, k=3, dtype=bool), "vertex_features": np.ones((1, 6))}
        for table, _ in found
    ]
    s = Matching(6, perfect=False)
    y = [s.argmax(np.where(np.eye(6, k=3) + np.eye(6, k=-3), -9.0, W))[0] for _, W in found]
    model = MatchingCRF(bipartite=False, allow_unmatched=True, l2=0.1).fit(X, y)
    assert model.parameter_names_[-1] == "vertex alone[0]"
    small = X[0] | {"attributes": found[0][0][:2], "forbidden": np.zeros((2, 2), bool), "vertex_features": np.ones((1, 2))}
    assert len(model.predict([small])[0]) == 2  # with the levels of training
    assert not recwarn.list
    new = small | {"attributes": pd.DataFrame({"age": [20.0, 20.0], "smokes": ["cigars", "no"]})}
    with pytest.warns(DataWarning, match=r"levels that training did not have: 'smokes' has cigars in example 1"):
        tau = model.predict_marginals([small, new])[1]
    weight = np.exp(-2.0 * model.row_parameters_[0])  # of the pair, and none of its own
    assert tau[0, 1] == pytest.approx(weight / (1.0 + weight))
    for wrong, message in [
        (found[0][0][["age"]], r"the attributes of example 0 must be \['age', 'smokes'\]"),
        (found[0][0].assign(age="old"), "column 'age' must hold numbers, as in training"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict([{"attributes": wrong, "vertex_features": np.ones((1, 6))}])
    with pytest.raises(ValueError, match="example 1 must be a dict with 'attributes', as others are"):
        model.predict([X[0], {"features": np.zeros((1, 6, 6))}])
    with pytest.raises(ValueError, match="X must have attributes"):
        model.predict([{"features": np.zeros((4, 6, 6)), "vertex_features": np.ones((1, 6))}])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (None, "tuple of Attribute"),
        ((Attribute("age", True), Attribute("age", True)), "different names"),
        ((Attribute("age", True, ("a", "a")),), "each level once"),
        ((Attribute("age", True, ((1,),)),), "plain levels"),
        ((Attribute(3, True),), "a name"),
        ((Attribute("age", True),), r"parameters_ must have shape \(1\)"),
    ],
)
def test_files_with_other_attributes_are_refused(attributes, message, rng, tmp_path):
    found = rooms(rng, 3)
    model = MatchingCRF(bipartite=False).fit([{"attributes": table} for table, _ in found], [[1, 0, 3, 2, 5, 4]] * 3)
    model.attributes_ = attributes
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=message):
        partita.load(tmp_path / "model")

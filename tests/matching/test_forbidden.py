"""Pairs that can never be, as a parameter of `MatchingCRF`: the same as in every example."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from partita import MatchingCRF
from partita.structures import BipartiteMatching

MASK = np.zeros((4, 4), bool)
MASK[0, 1] = MASK[2, 3] = True


@pytest.fixture
def data(rng):
    X = rng.standard_normal((20, 2, 4, 4))
    structure = BipartiteMatching(4)
    return X, [structure.sample(np.where(MASK, -np.inf, x[0] - x[1]), 1, rng)[0] for x in X]


def masked(X, masks):
    return [{"features": x, "forbidden": mask} for x, mask in zip(X, masks, strict=True)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"likelihood": "bethe"},
        {"likelihood": "bethe", "solver": "block_frank_wolfe", "tol": 1e-3},
        {"allow_unmatched": True},
    ],
)
def test_a_mask_and_a_function_are_as_masks_of_examples(options, data):
    X, y = data
    given = masked(X, [MASK] * len(X))
    expected = MatchingCRF(**options).fit(given, y)
    bad = np.where(MASK, np.nan, X)  # features of forbidden pairs do not matter
    for forbidden in (MASK, MASK.tolist(), lambda x: MASK):
        model = MatchingCRF(forbidden=forbidden, **options).fit(bad, y)
        np.testing.assert_array_equal(model.parameters_, expected.parameters_)
        for one, two in zip(model.predict_marginals(bad), expected.predict_marginals(given), strict=True):
            np.testing.assert_array_equal(one, two)
            assert not one[MASK].any()
        np.testing.assert_array_equal(model.predict(bad), expected.predict(given))
        np.testing.assert_array_equal(model.log_likelihood(bad, y), expected.log_likelihood(given, y))
        for draw in np.concatenate(model.sample(bad[:3], 20, random_state=0)):
            assert not MASK[np.arange(4), draw][draw >= 0].any()
        assert all(not MASK[np.arange(4), m][m >= 0].any() for m, _ in model.kbest(bad[:1], 30)[0])


def test_both_kinds_add_up(data):
    X, y = data
    own = np.zeros((20, 4, 4), bool)
    for mask, row in zip(own, y, strict=True):
        mask[3, (row[3] + 1) % 4] = True
    one = MatchingCRF(forbidden=MASK).fit(masked(X, own), y)
    two = MatchingCRF().fit(masked(X, own | MASK), y)
    np.testing.assert_array_equal(one.parameters_, two.parameters_)


def test_sizes_that_differ_and_graphs_of_one_kind(rng):
    X = [rng.standard_normal((1, n, n)) for n in (2, 3, 4)]

    def far(x):
        n = np.asarray(x["features"] if isinstance(x, dict) else x).shape[1]
        return np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > 1 if n > 2 else None

    model = MatchingCRF(forbidden=far).fit([X[0], {"features": X[1]}, X[2]], [[0, 1], [1, 0, 2], [0, 2, 1, 3]])
    assert not model.predict_marginals(X)[2][far(X[2])].any()
    edges = {"edges": [(0, 1), (1, 2), (2, 3), (0, 3)], "features": rng.standard_normal((4, 1))}
    options = {"bipartite": False, "forbidden": [True, False, False, False]}
    assert MatchingCRF(**options).fit([edges], [[(1, 2), (0, 3)]]).predict_marginals([edges])[0].tolist() == [0, 1, 0, 1]
    people = {"attributes": {"age": [1.5, 2.0, 3.5, 9.25]}}
    mask = np.zeros((4, 4), bool)
    mask[0, 1] = True
    model = MatchingCRF(bipartite=False, forbidden=mask).fit([people], [[2, 3, 0, 1]])
    tau = model.predict_marginals([people])[0]
    assert tau[0, 1] == tau[1, 0] == 0.0
    assert tau[0, 2] > 0.0


def test_files_keep_masks_and_refuse_functions(data, tmp_path):
    X, y = data
    model = MatchingCRF(forbidden=MASK).fit(X, y)
    model.save(tmp_path / "m.partita")
    again = MatchingCRF.load(tmp_path / "m.partita")
    np.testing.assert_array_equal(again.forbidden, MASK)
    assert again.forbidden.dtype == bool
    np.testing.assert_array_equal(again.predict_marginals(X), model.predict_marginals(X))
    np.testing.assert_array_equal(clone(model).fit(X, y).parameters_, model.parameters_)
    function = MatchingCRF(forbidden=lambda x: MASK).fit(X, y)
    with pytest.raises(TypeError, match=r"forbidden is a function, .*set_params\(forbidden=None\)"):
        function.save(tmp_path / "f.partita")
    function.set_params(forbidden=None).save(tmp_path / "f.partita")
    loaded = MatchingCRF.load(tmp_path / "f.partita").set_params(forbidden=lambda x: MASK)
    np.testing.assert_array_equal(loaded.predict_marginals(X), model.predict_marginals(X))


def test_what_is_refused(data):
    X, y = data

    def broken(x):
        raise KeyError("age")

    for forbidden, message in [
        (
            MASK[:3],
            r"forbidden \(a function, where sizes differ\), for example 0 of X, must be .* shape \(4, 4\); got \(3, 4\)",
        ),
        (np.zeros((4, 4)), "forbidden must be True and False for pairs"),
        ("none", "forbidden must be True and False for pairs"),
        (lambda x: 3, r"what forbidden returns for example 0 of X must be None, or True and False"),
        (broken, "forbidden failed for example 0 of X: KeyError: 'age'"),
        (np.ones((4, 4), bool), "y: example 0 matches 0 with ., which 'forbidden' rules out"),
    ]:
        with pytest.raises(ValueError, match=message):
            MatchingCRF(forbidden=forbidden).fit(X, y)

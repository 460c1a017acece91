"""Chains on numbers: a shift of a column and other units change nothing that the penalty does not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import partita
from partita import ChainCRF, DataWarning, HiddenChainCRF, LatentDynamicCRF, SequenceData
from partita.constraints import WeightBounds

MOVES = np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.3, 0.2, 0.5]])


def numbers(count=60, seed=1, longest=9):
    """Sequences of two noisy columns and labels that are not equally frequent."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(count):
        labels = [0]
        while len(labels) < longest:
            labels.append(int(rng.choice(3, p=MOVES[labels[-1]])))
        k = np.array(labels)
        X.append(np.column_stack([k, k == 1]) + rng.normal(0, 0.9, (longest, 2)))
        y.append(labels)
    return X, y


def marginals(model, X):
    return np.vstack(model.predict_marginals(X, as_array=True))


X, Y = numbers()
TEST, TRUE = numbers(200, seed=2)


@pytest.mark.parametrize("shift", [20.0, 100.0, -1e5])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"start_end": True, "features": "all", "transitions": "all"},
        {"l1": 0.5, "l2": 0.1},
        {"likelihood": "pseudo"},
        {"constraints": [WeightBounds(transitions=[(0, 1)], lower=0.0)], "max_iter": 2000},
    ],
    ids=str,
)
def test_a_shift_changes_no_probability(options, shift):
    if "constraints" in options and abs(shift) > 20.0:
        pytest.skip("columns keep their units under constraints, and their offsets slow the solver down")
    plain = ChainCRF(tol=1e-8, **options).fit(X, Y)
    moved = ChainCRF(tol=1e-8, **options).fit([x + shift for x in X], Y)
    np.testing.assert_allclose(marginals(moved, [x + shift for x in TEST]), marginals(plain, TEST), atol=1e-5)
    assert moved.score([x + shift for x in TEST], TRUE) == plain.score(TEST, TRUE) > 0.78
    if not options:
        assert ChainCRF(fit_intercept=False).fit([x + 100.0 for x in X], Y).score([x + 100.0 for x in TEST], TRUE) < 0.72


@pytest.mark.parametrize("shift", [20.0, 100.0])
@pytest.mark.parametrize("init", ["kmeans", "left_right", "random"])
def test_a_shift_changes_no_hidden_chain(init, shift):
    options = {"n_hidden": 2, "init": init, "random_state": 0, "tol": 1e-7, "max_iter": 3000}
    first = [row[-1] for row in Y]
    classifiers = [(HiddenChainCRF(shared=shared, **options), first) for shared in (False, True)]
    for model, y in ((LatentDynamicCRF(**options), Y), *classifiers):
        plain = clone(model).fit(X[:30], y[:30])
        moved = clone(model).fit([x + shift for x in X[:30]], y[:30])
        assert moved.objectives_ == pytest.approx(plain.objectives_, rel=1e-6)
        assert moved.score([x + shift for x in X], y) == pytest.approx(plain.score(X, y), abs=0.02)


def test_other_units_with_their_penalty_change_no_probability():
    """Weights of transitions have the penalty too, and no units: there are none here."""
    alone, labels = np.vstack(X)[:, None], np.concatenate(Y)[:, None]
    expected = marginals(ChainCRF(l2=0.7, tol=1e-9).fit(alone, labels), alone)
    for scale in (1e3, 1e-4):
        moved = scale * alone + 5.0 * scale
        found = marginals(ChainCRF(l2=0.7 * scale**2, tol=1e-9).fit(moved, labels), moved)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_intercepts_are_free_and_the_optimum_is_in_the_units_of_x():
    """The gradient of the penalised likelihood, in the user's weights, vanishes; intercepts have no penalty."""
    shifted = [x * [1.0, 30.0] + [3.0, -200.0] for x in X]
    model = ChainCRF(l2=0.5, tol=1e-10).fit(shifted, Y)
    weights, free = model.state_features_, [key for key in model.state_features_ if key[0] == "intercept"]
    assert [label for _, label in free] == [1, 2]  # differences to the first
    P, rows = marginals(model, shifted), np.vstack(shifted)
    residual = np.eye(3)[np.concatenate(Y)] - P
    for (column, label), weight in weights.items():
        values = np.ones(len(rows)) if column == "intercept" else rows[:, column]
        gradient = values @ residual[:, label] - (0.0 if column == "intercept" else 0.5 * weight)
        assert abs(gradient) < 1e-5 * np.abs(values).sum()
    assert model.n_features_in_ == 2
    assert model.attributes_ == [0, 1]


def test_standard_errors_are_those_of_the_users_weights():
    shifted, y = [x * [1.0, 30.0] + [3.0, -20.0] for x in X[:25]], Y[:25]
    model = ChainCRF(l2=0.5, tol=1e-10).fit(shifted, y)
    penalty = np.where(model.chain_.layout.state[:, 0] == 2, 0.0, 0.5)
    penalty = np.append(penalty, np.full(len(model.parameters_) - len(penalty), 0.5))

    def gradient(theta):
        def value(t):
            model.parameters_ = t
            return 0.5 * penalty @ (t * t) - model.log_likelihood(shifted, y).sum()

        steps = 1e-4 * np.eye(len(theta)) / scale[:, None]
        return np.array([(value(theta + e) - value(theta - e)) / (2.0 * np.abs(e).sum()) for e in steps])

    best, scale = model.parameters_, np.ones(len(model.parameters_))
    scale[: len(model.chain_.layout.state)] = np.array([1.0, 30.0, 1.0])[model.chain_.layout.state[:, 0]]
    steps = 1e-3 * np.eye(len(best)) / scale[:, None]
    H = np.array([(gradient(best + e) - gradient(best - e)) / (2.0 * e.sum()) for e in steps])
    model.parameters_ = best
    errors = [value for part in model.standard_errors("information").values() for value in part.values()]
    np.testing.assert_allclose(errors, np.sqrt(np.diag(np.linalg.inv(0.5 * (H + H.T)))), rtol=2e-3)


def test_sparse_numbers_have_free_intercepts_too():
    sparse = [sp.csr_matrix(x) for x in X]
    dense = ChainCRF(tol=1e-9).fit(X, Y)
    model = ChainCRF(tol=1e-9).fit(sparse, Y)
    assert (model.input_kind_, dense.input_kind_) == ("sparse", "dense")
    np.testing.assert_allclose(marginals(model, sparse), marginals(dense, X), atol=1e-6)  # no entry is zero here
    weights = np.arange(1.0, 61.0)
    stacked = ChainCRF(tol=1e-9).fit(sp.csr_matrix(np.vstack(X)), Y, lengths=[9] * 60, sample_weight=weights)
    again = ChainCRF(tol=1e-9).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(marginals(stacked, X), marginals(again, X), atol=1e-6)


def test_tokens_have_no_intercept():
    tokens = [[{"a": float(a), "b": float(b)} for a, b in x] for x in X]
    model = ChainCRF(tol=1e-9).fit(tokens, Y)
    assert not model.has_intercept_
    assert model.input_kind_ == "attributes"
    named = SequenceData(sp.csr_matrix(np.vstack(X)), [9] * 60, Y, ["a", "b"])  # attributes, counted by the user
    np.testing.assert_array_equal(ChainCRF(tol=1e-9).fit(named).parameters_, model.parameters_)
    without = ChainCRF(tol=1e-9, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(marginals(without, X), marginals(model, tokens), atol=1e-6)


def test_pieces_of_numbers_are_learned_in_the_units_of_the_first(tmp_path):
    found = []
    for shift in (0.0, 100.0):
        moved = [x + shift for x in X]
        model = ChainCRF().partial_fit(moved[:30], Y[:30]).partial_fit(moved[30:], Y[30:])
        found.append(marginals(model, moved))
        assert model.score([x + shift for x in TEST], TRUE) > 0.78
    np.testing.assert_allclose(*found, atol=1e-6)
    model.save(tmp_path / "model")
    read = ChainCRF.load(tmp_path / "model")
    np.testing.assert_array_equal(marginals(read, moved), found[1])
    np.testing.assert_array_equal(
        marginals(read.partial_fit(moved[:9], Y[:9]), moved), marginals(model.partial_fit(moved[:9], Y[:9]), moved)
    )


def test_held_out_numbers_and_warm_starts_are_in_the_same_units():
    moved, held = [x + 50.0 for x in X], [x + 50.0 for x in TEST]
    model = ChainCRF(l2=1e-4, tol=1e-9).fit(moved, Y, X_dev=held, y_dev=TRUE)
    assert model.dev_scores_.max() == pytest.approx(model.log_likelihood(held, TRUE).sum() / 1800.0)
    model = ChainCRF(warm_start=True, tol=1e-9).fit(moved, Y)
    assert model.n_iter_ > 5
    assert model.fit(moved, Y).n_iter_ <= 1


def test_columns_that_do_not_vary_and_single_labels_are_harmless():
    one = ChainCRF().fit([np.ones((2, 2)), np.ones((1, 2))], [["A", "B"], ["A"]])
    assert set(one.state_features_) == {("intercept", "B")}
    assert ChainCRF().fit([np.eye(2)], [["A", "A"]]).predict([np.eye(2)]) == [["A", "A"]]
    huge = ChainCRF().fit([np.array([[1e300, 1.0], [0.0, 2.0]])] * 2, [["A", "B"]] * 2)
    assert np.isfinite(huge.parameters_).all()


def frames():
    pd = pytest.importorskip("pandas")
    return [pd.DataFrame(x, columns=["speed", "heat"]) for x in X]


def test_columns_of_frames_are_found_by_name():
    pd = pytest.importorskip("pandas")
    model = ChainCRF().fit(frames(), Y)
    assert model.attributes_ == ["speed", "heat"]
    assert ("intercept", 1) in model.state_features_
    np.testing.assert_allclose(marginals(model, frames()), marginals(ChainCRF().fit(X, Y), X))
    turned = [frame[["heat", "speed"]] for frame in frames()]
    np.testing.assert_array_equal(marginals(model, turned), marginals(model, frames()))
    np.testing.assert_array_equal(ChainCRF().fit([*frames()[:1], *turned[1:]], Y).parameters_, model.parameters_)
    again = ChainCRF().partial_fit(frames(), Y).partial_fit(turned, Y)
    assert again.score(turned, Y) == again.score(frames(), Y) > 0.78
    np.testing.assert_array_equal(
        model.predict(pd.concat(turned), lengths=[9] * 60),
        model.predict(frames()),  # one frame with lengths
    )
    with pytest.raises(ValueError, match="the model was fitted to 'speed', 'heat', and X lacks 'heat'"):
        model.predict([frame[["speed"]] for frame in frames()])
    with pytest.raises(ValueError, match="X has 'extra' besides"):
        model.partial_fit([frame.assign(extra=1.0) for frame in frames()], Y)
    with pytest.warns(DataWarning, match="2 columns are read in the order of training"):
        model.predict(X)
    with pytest.raises(ValueError, match="holds nan in column 'heat'"):
        ChainCRF().fit([frames()[0].replace(frames()[0].iloc[0, 1], np.nan)], Y[:1])
    with pytest.raises(ValueError, match="X is one data frame: pass lengths="):
        model.predict(frames()[0])


def test_frames_with_words_are_tokens():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    frame = pd.DataFrame({"word": ["May", "x"], "next": ["x", "May"], "long": [0.5, 2.0]})
    for given in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        model = ChainCRF().fit([given, given], [["A", "B"]] * 2)
        assert model.attributes_ == ["word:May", "next:x", "long", "word:x", "next:May"]
        assert model.predict([given]) == [["A", "B"]]
    assert ChainCRF().fit(pd.concat([frame, frame]), [["A", "B"]] * 2, lengths=[2, 2]).predict([frame]) == [["A", "B"]]
    model = ChainCRF().fit([frame], [["A", "B"]])
    assert model.predict([frame[["long"]]]) == model.predict([[{"long": 0.5}, {"long": 2.0}]])  # numbers only, but tokens


def test_lists_of_lists_and_stacks_of_numbers_are_matrices():
    expected = ChainCRF().fit(X, Y).parameters_
    for given in ([x.tolist() for x in X], np.array(X), (x for x in X), [list(x) for x in X]):
        np.testing.assert_array_equal(ChainCRF().fit(given, Y).parameters_, expected)
    with pytest.raises(ValueError, match=r"np\.reshape"):
        ChainCRF().fit([[1.0, 2.0]], [["A", "B"]])
    with pytest.raises(ValueError, match=r"sequence 0 has the row \[3.0\]"):
        ChainCRF().fit([[[1.0, 2.0], [3.0]]], [["A", "B"]])
    words = np.array([[["a", "b"], ["c", "d"]]] * 2)
    assert ChainCRF().fit(words, [["A", "B"]] * 2).attributes_ == ["a", "b", "c", "d"]
    assert ChainCRF().fit(((token for token in [["a"], ["b"]]) for _ in range(2)), [["A", "B"]] * 2).attributes_ == [
        "a",
        "b",
    ]


def test_more_weights_than_sequences_warn_with_numbers():
    rng = np.random.default_rng(0)
    tokens = [[[f"w{k}"] for k in rng.integers(30, size=4)] for _ in range(15)]
    labels = [[str(k) for k in rng.integers(3, size=4)] for _ in range(15)]
    model = ChainCRF(l2=0.2).fit(tokens, labels)
    text = rf"errors of {len(model.parameters_)} weights from 15 sequences \(60 positions\), of which the penalty l2=0.2"
    with pytest.warns(DataWarning, match=text) as caught:
        model.standard_errors()
    assert caught[0].filename == __file__
    with pytest.warns(DataWarning, match="neither 'sandwich' nor 'information' errors can be trusted"):
        model.summary()
    small = partita.SoftmaxRegression().fit(rng.normal(size=(8, 9)), np.arange(8) % 2)
    with pytest.warns(DataWarning, match="standard errors of 10 weights from 8 rows"):
        small.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ChainCRF().fit(X, Y).standard_errors()

from __future__ import annotations

import copy
import importlib.util
import itertools
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from enumeration import labellings
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import partita
from partita import LBFGS, ChainCRF, ConvergenceWarning, ModelFileError, SequenceData, Status, metrics
from partita.constraints import WeightBounds
from partita.estimators import trained

_PATH = Path(__file__).resolve().parents[2] / "examples" / "addresses.py"
_SPEC = importlib.util.spec_from_file_location("addresses", _PATH)
addresses = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(addresses)

TOKENS, LABELS = addresses.make_addresses(60, random_state=1)
X_ADDRESSES = [addresses.address_features(tokens) for tokens in TOKENS]


def toy(count=12, n_labels=3, n_attributes=4, seed=0, longest=4):
    """Dense sequences of random lengths, some labels and the same attributes as dicts."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, count)
    X = [
        np.where(rng.random((t, n_attributes)) < 0.6, rng.standard_normal((t, n_attributes)).round(2), 0.0) for t in lengths
    ]
    y = [[f"L{k}" for k in rng.integers(0, n_labels, t)] for t in lengths]
    y[0] = [f"L{k % n_labels}" for k in range(len(y[0]))]
    y[1] = [f"L{n_labels - 1}"] * len(y[1])
    return X, y


def as_dicts(X):
    return [[{f"a{j}": float(v) for j, v in enumerate(row) if v != 0.0} for row in matrix] for matrix in X]


def score_of(model, x, codes):
    """The score of a labelling, from the weights by name."""
    labels = model.classes_.tolist()
    total = 0.0
    for t, k in enumerate(codes):
        total += sum(value * model.state_features_.get((j, labels[k]), 0.0) for j, value in enumerate(x[t]))
        total += model.state_features_.get(("intercept", labels[k]), 0.0)
        if t:
            total += model.transition_features_.get((labels[codes[t - 1]], labels[k]), 0.0)
    total += model.start_features_.get(labels[codes[0]], 0.0) + model.end_features_.get(labels[codes[-1]], 0.0)
    return total


def is_intercept(model):
    """Which of the parameters are intercepts, which have no penalty."""
    out = np.zeros(len(model.parameters_), bool)
    out[: len(model.state_index_)] = model.state_index_[:, 0] == model.n_features_in_
    return out


def brute(model, x, allowed=lambda codes: True):
    """All labellings of a sequence with their probabilities."""
    rows = [codes for codes in map(tuple, labellings(len(model.classes_), len(x)).tolist()) if allowed(codes)]
    scores = np.array([score_of(model, x, codes) for codes in rows])
    return rows, np.exp(scores - np.logaddexp.reduce(scores))


@pytest.mark.parametrize("options", [{}, {"start_end": True}, {"features": "all", "transitions": "all"}])
def test_answers_are_those_of_enumeration(options):
    X, y = toy()
    model = ChainCRF(l2=0.5, tol=1e-9, **options).fit(X, y)
    best = model.predict(X)
    marginals = model.predict_marginals(X)
    arrays = model.predict_marginals(X, as_array=True)
    given = np.exp(model.log_likelihood(X, y))
    kbest = model.predict_kbest(X, 5)
    labels = model.classes_.tolist()
    for i, x in enumerate(X):
        rows, p = brute(model, x)
        order = np.argsort(-p, kind="stable")
        assert best[i] == [labels[k] for k in rows[order[0]]]
        codes = tuple(labels.index(label) for label in y[i])
        np.testing.assert_allclose(given[i], p[rows.index(codes)], rtol=1e-9)
        expected = np.zeros((len(x), len(labels)))
        for row, probability in zip(rows, p, strict=True):
            expected[np.arange(len(x)), row] += probability
        np.testing.assert_allclose(arrays[i], expected, atol=1e-10)
        assert [list(entry) for entry in marginals[i]] == [labels] * len(x)
        np.testing.assert_allclose([[entry[label] for label in labels] for entry in marginals[i]], expected, atol=1e-10)
        assert len(kbest[i]) == min(5, len(rows))
        np.testing.assert_allclose([np.exp(value) for _, value in kbest[i]], p[order][: len(kbest[i])], rtol=1e-9)
        assert len({tuple(labelling) for labelling, _ in kbest[i]}) == len(kbest[i])
    penalty = 0.25 * np.sum(model.parameters_[~is_intercept(model)] ** 2)
    np.testing.assert_allclose(model.trace_.objective[-1], penalty - np.log(given).sum(), rtol=1e-10)
    with pytest.warns(FutureWarning, match=r"predict_proba\(X, y\) is np.exp\(log_likelihood\(X, y\)\) now"):
        np.testing.assert_array_equal(model.predict_proba(X, y), given)
    for P, Q in zip(model.predict_proba(X), model.predict_marginals(X, as_array=True), strict=True):
        np.testing.assert_array_equal(P, Q)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 3),
    longest=st.integers(1, 4),
    l2=st.floats(0.05, 5.0),
    start_end=st.booleans(),
    every=st.booleans(),
)
def test_probabilities_are_those_of_enumeration(seed, n_labels, longest, l2, start_end, every):
    X, y = toy(6, n_labels, 3, seed, longest)
    kind = "all" if every else "observed"
    model = ChainCRF(l2=l2, start_end=start_end, features=kind, transitions=kind).fit(X, y)
    labels = model.classes_.tolist()
    for x, row, p, P in zip(
        X, y, np.exp(model.log_likelihood(X, y)), model.predict_marginals(X, as_array=True), strict=True
    ):
        rows, probabilities = brute(model, x)
        np.testing.assert_allclose(p, probabilities[rows.index(tuple(labels.index(label) for label in row))], rtol=1e-8)
        expected = [[probabilities[[r[t] == k for r in rows]].sum() for k in range(len(labels))] for t in range(len(x))]
        np.testing.assert_allclose(P, expected, atol=1e-9)


def test_the_optimum_has_no_gradient():
    X, y = toy(seed=3)
    model = ChainCRF(l2=0.5, start_end=True, tol=1e-10).fit(X, y)

    def objective(theta):
        other = clone(model).fit(X, y)
        other.parameters_ = theta
        return 0.25 * np.sum(theta[~is_intercept(model)] ** 2) - other.log_likelihood(X, y).sum()

    rng = np.random.default_rng(0)
    for _ in range(3):
        direction = rng.standard_normal(len(model.parameters_))
        up, down = (objective(model.parameters_ + h * direction) for h in (1e-4, -1e-4))
        assert abs(up - down) / 2e-4 < 1e-5
        assert up + down > 2.0 * objective(model.parameters_)


def test_weights_are_those_of_observed_pairs():
    X = [[["a"], ["b"]], [["b"], ["c", "a"]]]
    y = [["P", "Q"], ["Q", "Q"]]
    model = ChainCRF().fit(X, y)
    assert set(model.state_features_) == {("a", "P"), ("b", "Q"), ("c", "Q"), ("a", "Q")}
    assert set(model.transition_features_) == {("P", "Q"), ("Q", "Q")}
    assert model.attributes_ == ["a", "b", "c"]
    every = ChainCRF(features="all", transitions="all", start_end=True).fit(X, y)
    assert set(every.state_features_) == set(itertools.product("abc", "PQ"))
    assert set(every.transition_features_) == set(itertools.product("PQ", "PQ"))
    assert set(every.start_features_) == set(every.end_features_) == {"P", "Q"}
    assert model.start_features_ == model.end_features_ == {}
    twice = ChainCRF(min_frequency=2).fit(X, y)
    assert set(twice.state_features_) == {("b", "Q")}
    assert twice.attributes_ == ["b"]
    assert twice.transition_features_ == {}
    assert twice.predict([[["a"], ["b"], ["new"]]])[0][1] == "Q"


@pytest.mark.parametrize(
    "options", [{"c2": 1.0}, {"c2": 0.1, "all_possible_transitions": True, "all_possible_states": True}]
)
def test_agrees_with_crfsuite(options, tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    names = {"all_possible_transitions": "feature.possible_transitions", "all_possible_states": "feature.possible_states"}
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({names.get(key, key): value for key, value in options.items()})
    for x, labels in zip(X_ADDRESSES, LABELS, strict=True):
        trainer.append(x, labels)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    theirs = tagger.info()  # rounds the weights to six decimals

    model = ChainCRF.from_crfsuite(**options).set_params(tol=1e-8).fit(X_ADDRESSES, LABELS)
    assert sorted(tagger.labels()) == model.classes_.tolist()
    ours = model.trace_.objective[-1]
    copied = clone(model).set_params(max_iter=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        copied.fit(X_ADDRESSES, LABELS)
    # CRFsuite leaves out features whose weight it found to be exactly zero.
    assert set(theirs.state_features) <= set(copied.state_features_)
    assert set(theirs.transitions) <= set(copied.transition_features_)
    parameters = copied.parameters_.copy()
    weights = copied.chain_.layout.parts(parameters)
    weights[0][:] = [theirs.state_features.get(key, 0.0) for key in copied.state_features_]
    weights[1][:] = [theirs.transitions.get(key, 0.0) for key in copied.transition_features_]
    copied.parameters_ = parameters

    value = options["c2"] * np.sum(copied.parameters_**2) - copied.log_likelihood(X_ADDRESSES, LABELS).sum()
    assert value == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-5)
    assert ours <= value * (1.0 + 1e-6) + 1e-3
    answers = (
        copied.predict(X_ADDRESSES),
        copied.predict_marginals(X_ADDRESSES),
        np.exp(copied.log_likelihood(X_ADDRESSES, LABELS)),
    )
    for i, (labels, marginals, p) in enumerate(zip(*answers, strict=True)):
        assert tagger.tag(X_ADDRESSES[i]) == labels
        assert tagger.probability(LABELS[i]) == pytest.approx(p, abs=1e-5)
        for t, entry in enumerate(marginals):
            for label, probability in entry.items():
                assert tagger.marginal(label, t) == pytest.approx(probability, abs=1e-5)


def test_minimum_frequency_is_that_of_crfsuite(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"feature.minfreq": 3, "c2": 0.1})
    for x, labels in zip(X_ADDRESSES, LABELS, strict=True):
        trainer.append(x, labels)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    theirs = tagger.info()
    model = ChainCRF.from_crfsuite(min_freq=3, c2=0.1).fit(X_ADDRESSES, LABELS)
    assert set(model.state_features_) >= set(theirs.state_features)
    assert len(model.state_features_) - len(theirs.state_features) <= 0.01 * len(model.state_features_)
    assert set(model.transition_features_) == set(theirs.transitions)


@pytest.mark.parametrize("every", [False, True])
def test_negative_values_are_counted_as_crfsuite_counts_them(every, tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X = [[{"p": 1.0, "n": -1.0, "m": 1.0, "z": 0.0}, {"p": 2.0, "n": 1.0, "m": -1.0, "q": -0.3}], [{"p": -1.0, "n": -0.5}]]
    y = [["A", "B"], ["A"]]
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"feature.possible_states": every, "c2": 1.0, "epsilon": 1e-9, "delta": 1e-12})
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    theirs = tagger.info()
    model = ChainCRF.from_crfsuite(c2=1.0, all_possible_states=every).set_params(tol=1e-10).fit(X, y)
    assert len(model.parameters_) == trainer.logparser.featgen_num_features
    assert {key for key, weight in model.state_features_.items() if abs(weight) > 1e-5} == set(theirs.state_features)
    for key, weight in theirs.state_features.items():
        assert model.state_features_[key] == pytest.approx(weight, abs=1e-5)
    assert model.transition_features_ == pytest.approx(theirs.transitions, abs=1e-5)
    assert not {("n", "A"), ("m", "B"), ("q", "B")} & model.state_features_.keys()
    assert {("n", "A"), ("m", "B"), ("q", "B")} < ChainCRF().fit(X, y).state_features_.keys()


def test_every_form_of_input_gives_the_same_model():
    X, y = toy(count=20, seed=5)
    lengths = [len(x) for x in X]
    options = {"l2": 0.3, "tol": 1e-10, "fit_intercept": False}  # tokens have none
    dense = ChainCRF(**options).fit(X, y)
    expected = dense.predict_marginals(X, as_array=True)
    sparse = [sp.csr_matrix(x) for x in X]
    data = SequenceData(np.vstack(X), lengths, y, attributes=[f"a{j}" for j in range(4)])
    dicts = as_dicts(X)
    cases = {
        "sparse": (sparse, y, None),
        "arrays": ([sp.coo_array(x) for x in X], [np.array(row) for row in y], None),
        "stacked": (np.vstack(X), y, lengths),
        "stacked, flat labels": (sp.csc_matrix(np.vstack(X)), np.concatenate(y), lengths),
        "data": (data, None, None),
        "data with labels beside": (data, y, None),
        "dicts": (dicts, y, None),
        "tokens": (SequenceData.from_tokens(dicts, y), None, None),
    }
    for name, (form, labels, form_lengths) in cases.items():
        model = ChainCRF(**options).fit(form, labels, lengths=form_lengths)
        found = model.predict_marginals(form, lengths=form_lengths, as_array=True)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6, err_msg=name)
        assert model.predict(form, lengths=form_lengths) == dense.predict(X)
        assert model.score(form, labels, lengths=form_lengths) == dense.score(X, y)
    named = ChainCRF(**options).fit(data)
    assert named.predict(dicts) == ChainCRF(**options).fit(dicts, y).predict(data) == dense.predict(X)
    numbers = ChainCRF(**options).fit(X, [[int(label[1:]) for label in row] for row in y])
    assert [[f"L{k}" for k in row] for row in numbers.predict(X)] == dense.predict(X)
    assert type(numbers.predict(X)[0][0]) is int


def test_empty_sequences_are_labelled_with_nothing():
    X, y = toy()
    with_empty = ([[], *X[:3], np.zeros((0, 4)), *X[3:]], [[], *y[:3], [], *y[3:]])
    model = ChainCRF(tol=1e-9).fit(*with_empty)
    plain = ChainCRF(tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(model.parameters_, plain.parameters_)
    predicted = model.predict(with_empty[0])
    assert predicted[0] == predicted[4] == []
    assert predicted[1:4] + predicted[5:] == plain.predict(X)
    assert model.predict([[], []]) == [[], []]
    assert model.predict_marginals([[]]) == [[]]
    assert model.predict_kbest([[], X[0]], 2)[0] == [([], 0.0)]
    assert model.log_likelihood([[], X[0]], [[], y[0]])[0] == 0.0
    assert model.sample([[], X[0]], 2)[0] == [[], []]
    dicts = ChainCRF().fit([[], *as_dicts(X)], [[], *y])
    assert dicts.predict([[], as_dicts(X)[0]]) == [[], dicts.predict_single(as_dicts(X)[0])]


def test_weights_repeat_sequences_and_zero_removes_them():
    X, y = toy(seed=2)
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    weighted = ChainCRF(tol=1e-10).fit(X, y, sample_weight=counts)
    rows = np.repeat(np.arange(len(X)), counts)
    repeated = ChainCRF(tol=1e-10).fit([X[i] for i in rows], [y[i] for i in rows])
    assert weighted.state_features_.keys() == repeated.state_features_.keys()
    for key, value in repeated.state_features_.items():
        assert weighted.state_features_[key] == pytest.approx(value, abs=1e-7)


def test_one_and_two_threads_agree():
    models = [ChainCRF(tol=1e-9, n_jobs=k).fit(X_ADDRESSES, LABELS) for k in (1, 2)]
    np.testing.assert_array_equal(models[0].parameters_, models[1].parameters_)
    for a, b in zip(*(model.predict_marginals(X_ADDRESSES, as_array=True) for model in models), strict=True):
        np.testing.assert_array_equal(a, b)


def test_samples_follow_the_probabilities():
    X, y = toy()
    model = ChainCRF(l2=0.5).fit(X, y)
    i = int(np.argmax([len(x) for x in X]))
    rows, p = brute(model, X[i])
    drawn = model.sample([X[i]], 4000, random_state=0)[0]
    assert drawn == model.sample([X[i]], 4000, random_state=0)[0]
    labels = model.classes_.tolist()
    counts = np.zeros(len(rows))
    for labelling in drawn:
        counts[rows.index(tuple(labels.index(label) for label in labelling))] += 1
    assert np.abs(counts / 4000 - p).max() < 5 * np.sqrt(p.max() / 4000)


def test_partial_labels():
    X, y = toy(seed=4)
    partial = [list(row) for row in y]
    partial[2] = [None] * len(y[2])
    partial[3] = [{"L0", "L1"} for _ in y[3]]
    partial[4][0] = frozenset({y[4][0]})
    model = ChainCRF(l2=0.5, features="all", transitions="all", tol=1e-9).fit(X, partial)
    labels = model.classes_.tolist()
    loss = 0.0
    for x, row, p in zip(X, partial, np.exp(model.log_likelihood(X, partial)), strict=True):
        known = [{label} if isinstance(label, str) else set(labels) if label is None else label for label in row]
        rows, probabilities = brute(model, x)
        fits = [all(labels[k] in known[t] for t, k in enumerate(codes)) for codes in rows]
        np.testing.assert_allclose(p, probabilities[fits].sum(), rtol=1e-9)
        loss -= np.log(probabilities[fits].sum())
    assert model.log_likelihood(X, partial)[2] == pytest.approx(0.0, abs=1e-12)
    penalty = 0.25 * np.sum(model.parameters_[~is_intercept(model)] ** 2)
    np.testing.assert_allclose(model.trace_.objective[-1], loss + penalty, rtol=1e-9)
    assert np.all(np.diff(model.trace_.objective) <= 1e-9)
    assert all(error > 0.0 for part in model.standard_errors().values() for error in part.values())


def test_partial_labels_that_say_all_are_labels():
    X, y = toy(seed=4)
    sets = [[{label} for label in row] for row in y]
    model = ChainCRF(tol=1e-9).fit(X, sets)
    np.testing.assert_allclose(model.parameters_, ChainCRF(tol=1e-9).fit(X, y).parameters_, atol=1e-6)


def test_forbidden_transitions():
    X, y = toy(seed=6)
    pairs = [(a, b) for a in ("L0", "L1", "L2") for b in ("L0", "L1", "L2")]
    used = {pair for row in y for pair in itertools.pairwise(row)}
    with pytest.raises(ValueError, match=r"forbidden: 'L\d' is followed by 'L\d' at position \d of sequence \d+ of y"):
        ChainCRF(forbidden=[next(iter(used))]).fit(X, y)
    kept = [i for i, row in enumerate(y) if ("L0", "L1") not in set(itertools.pairwise(row))]
    X, y = [X[i] for i in kept], [y[i] for i in kept]
    assert ("L0", "L1") in pairs
    model = ChainCRF(l2=0.5, tol=1e-9, forbidden=[("L0", "L1")]).fit(X, y)
    labels = model.classes_.tolist()
    for x, row, p, best in zip(X, y, np.exp(model.log_likelihood(X, y)), model.predict(X), strict=True):
        rows, probabilities = brute(model, x, lambda codes: (0, 1) not in set(itertools.pairwise(codes)))
        np.testing.assert_allclose(p, probabilities[rows.index(tuple(labels.index(label) for label in row))], rtol=1e-9)
        assert best == [labels[k] for k in rows[int(np.argmax(probabilities))]]
    with pytest.warns(UserWarning, match="forbidden names 'nothing'"):
        ChainCRF(forbidden=[("nothing", "L1")]).fit(X, y)


def test_rules_forbid_what_is_no_chunk():
    from partita.chain.data.forbidden import forbidden_tables

    classes = np.array(sorted(["O", "B-X", "I-X", "B-Y", "I-Y"]))
    table, starts, ends = forbidden_tables("iob2", classes)
    assert ends is None
    at = {label: k for k, label in enumerate(classes.tolist())}
    bad = {(a, b) for a in at for b in at if table[at[a], at[b]]}
    assert bad == {
        *(("O", "I-X"), ("O", "I-Y"), ("B-X", "I-Y"), ("I-X", "I-Y"), ("B-Y", "I-X"), ("I-Y", "I-X")),
    }
    assert {label for label in at if starts[at[label]]} == {"I-X", "I-Y"}
    classes = np.array(sorted(["O", "B-X", "I-X", "E-X", "S-X"]))
    table, starts, ends = forbidden_tables("iobes", classes)
    assert [label for label, last in zip(classes, ends, strict=True) if last] == [
        c for c in classes if c[:2] in ("B-", "I-")
    ]
    at = {label: k for k, label in enumerate(classes.tolist())}
    good = {(a, b) for a in at for b in at if not table[at[a], at[b]]}
    outside = itertools.product(("O", "E-X", "S-X"), ("O", "B-X", "S-X"))
    assert good == {*outside, *itertools.product(("B-X", "I-X"), ("I-X", "E-X"))}
    assert {label for label in at if starts[at[label]]} == {"I-X", "E-X"}
    with pytest.raises(ValueError, match="needs labels that are strings"):
        forbidden_tables("iob2", np.array([0, 1]))
    with pytest.raises(ValueError, match="'I-X' stands first, at position 0 of sequence 1 of y"):
        ChainCRF(forbidden="iob2").fit([[], [["a"]]], [[], ["I-X"]])


def test_l1_drops_weights_as_crfsuite_does(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    model = ChainCRF.from_crfsuite(c1=0.3, c2=0.05).set_params(tol=1e-7)
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c1": 0.3, "c2": 0.05})
    for x, labels in zip(X_ADDRESSES, LABELS, strict=True):
        trainer.append(x, labels)
    trainer.train(str(tmp_path / "model"))
    model.fit(X_ADDRESSES, LABELS)
    value = 0.05 * np.sum(model.parameters_**2) + 0.3 * np.abs(model.parameters_).sum()
    value -= model.log_likelihood(X_ADDRESSES, LABELS).sum()
    assert value == pytest.approx(model.trace_.objective[-1], rel=1e-9)
    assert value <= trainer.logparser.last_iteration["loss"] * (1.0 + 1e-5)
    assert all(weight != 0.0 for weight in model.state_features_.values())
    assert len(model.state_features_) < 0.5 * len(ChainCRF().fit(X_ADDRESSES, LABELS).state_features_)
    assert set(model.attributes_) == {attribute for attribute, _ in model.state_features_}
    for call in (model.standard_errors, lambda: model.partial_fit(X_ADDRESSES, LABELS)):
        with pytest.raises(ValueError, match="l1 > 0"):
            call()


def test_early_stopping_keeps_the_best():
    train, dev = slice(0, 30), slice(30, 60)
    classes = {label for row in LABELS[train] for label in row}
    keep = [i for i in range(30, 60) if set(LABELS[i]) <= classes]
    X_dev, y_dev = [X_ADDRESSES[i] for i in keep], [LABELS[i] for i in keep]
    assert len(keep) > 10
    options = {"l2": 1e-4, "solver": "lbfgs", "patience": 3}
    model = ChainCRF(**options).fit(X_ADDRESSES[train], LABELS[train], X_dev=X_dev, y_dev=y_dev)
    tokens = sum(map(len, y_dev))
    assert model.log_likelihood(X_dev, y_dev).sum() / tokens == pytest.approx(model.dev_scores_.max(), rel=1e-9)
    assert model.status_ is Status.STALLED
    assert len(model.dev_scores_) - 1 - int(np.argmax(model.dev_scores_)) == 3
    free = ChainCRF(**{**options, "patience": 500}).fit(X_ADDRESSES[train], LABELS[train])
    assert model.log_likelihood(X_dev, y_dev).sum() > free.log_likelihood(X_dev, y_dev).sum()
    assert len(free.dev_scores_) == 0
    with pytest.raises(ValueError, match="given together"):
        ChainCRF().fit(X_ADDRESSES, LABELS, X_dev=X_ADDRESSES[dev])
    with pytest.raises(ValueError, match="not among the classes"):
        ChainCRF().fit(X_ADDRESSES, LABELS, X_dev=X_dev, y_dev=[["no"] * len(row) for row in y_dev])


def test_warm_start_matches_weights_by_name():
    model = ChainCRF(tol=1e-7, warm_start=True).fit(X_ADDRESSES[:40], LABELS[:40])
    cold = ChainCRF(tol=1e-7).fit(X_ADDRESSES, LABELS)
    model.fit(X_ADDRESSES, LABELS)
    assert model.trace_.objective[0] < 0.5 * cold.trace_.objective[0]
    assert model.trace_.objective[-1] == pytest.approx(cold.trace_.objective[-1], rel=1e-8)
    again = model.fit(X_ADDRESSES[::-1], LABELS[::-1])
    assert again.n_iter_ == 0


def test_partial_fit_comes_close_to_fit():
    X, y = X_ADDRESSES, LABELS
    whole = ChainCRF(l2=2.0, tol=1e-8).fit(X, y)

    def objective(model):
        return np.sum(model.parameters_**2) - model.log_likelihood(X, y).sum()

    once = ChainCRF(l2=2.0, tol=1e-8).partial_fit(X, y)
    assert objective(once) == pytest.approx(objective(whole), rel=1e-8)
    parts = ChainCRF(l2=2.0, tol=1e-8)
    values = []
    for k in range(3):
        parts.partial_fit(X[20 * k : 20 * k + 20], y[20 * k : 20 * k + 20])
        assert parts.n_seen_ == 20 * (k + 1)
        known = set(parts.classes_.tolist())
        if all(set(row) <= known for row in y):
            values.append(objective(parts))
    assert parts.status_ is Status.STREAM
    assert set(parts.state_features_) == set(whole.state_features_)
    assert values[-1] < 1.15 * objective(whole)
    only_last = ChainCRF(l2=2.0, tol=1e-8).fit(X[40:], y[40:])
    assert parts.score(X, y) > only_last.score(X, y)


def test_partial_fit_continues_a_fit_or_a_loaded_model(tmp_path):
    model = ChainCRF(l2=2.0, tol=1e-8).fit(X_ADDRESSES[:50], LABELS[:50])
    model.save(tmp_path / "model")
    loaded = ChainCRF.load(tmp_path / "model")
    before = dict(model.state_features_)
    for continued in (model, loaded):
        continued.partial_fit(X_ADDRESSES[50:], LABELS[50:])
    np.testing.assert_array_equal(model.parameters_, loaded.parameters_)
    assert model.n_seen_ == 60
    assert set(before) < set(model.state_features_)
    untouched = [key for key in before if key[0].startswith("word:") and before[key] == model.state_features_[key]]
    assert untouched
    with pytest.raises(ValueError, match="standard errors need"):
        model.standard_errors()


def test_partial_fit_with_fixed_labels_and_hashing():
    X, y = as_dicts(toy()[0]), toy()[1]
    model = ChainCRF(hashing=64).partial_fit(X[:6], y[:6], classes=["L2", "L1", "L0", "L3"])
    assert model.classes_.tolist() == ["L0", "L1", "L2", "L3"]
    assert model.n_features_in_ == 64
    model.partial_fit(X[6:], y[6:])
    with pytest.raises(ValueError, match=r"y holds 'other' at position 0 of sequence 0"):
        model.partial_fit(X[:1], [["other"] * len(y[0])])
    with pytest.raises(ValueError, match=r"classes .* differ"):
        model.partial_fit(X[:1], y[:1], classes=["L0"])
    assert model.n_seen_ == len(X)
    with pytest.raises(ValueError, match="labels of one type"):
        ChainCRF().fit(X, y).partial_fit(X, [[0] * len(row) for row in y])
    with pytest.raises(ValueError, match="attributes with names"):
        ChainCRF().fit(X, y).partial_fit(toy()[0], y)


def test_hashing_into_many_columns_changes_nothing():
    X, y = X_ADDRESSES[:8], LABELS[:8]
    plain, hashed = ChainCRF(tol=1e-8).fit(X, y), ChainCRF(tol=1e-8, hashing=2**20).fit(X, y)
    assert len(plain.parameters_) == len(hashed.parameters_)
    assert hashed.trace_.objective[-1] == pytest.approx(plain.trace_.objective[-1], rel=1e-9)
    assert hashed.predict(X) == plain.predict(X)
    assert hashed.attributes_[:2] == [0, 1]


def test_files_keep_the_model(tmp_path):
    path = tmp_path / "model.partita"
    model = ChainCRF(l2=0.5, start_end=True, solver=LBFGS()).fit(X_ADDRESSES, LABELS)
    model.save(path)
    for other in (ChainCRF.load(path), partita.load(path), pickle.loads(pickle.dumps(model))):
        assert other.get_params() == model.get_params()
        assert other.predict_kbest(X_ADDRESSES, 2) == model.predict_kbest(X_ADDRESSES, 2)
        assert other.state_features_ == model.state_features_
        assert other.transition_features_ == model.transition_features_
        assert other.end_features_ == model.end_features_
        assert other.attributes_ == model.attributes_
        assert (other.n_iter_, other.n_seen_, other.status_) == (model.n_iter_, model.n_seen_, model.status_)
        np.testing.assert_array_equal(other.trace_.objective, model.trace_.objective)
    matrices, y = toy()
    numbers = ChainCRF(forbidden=None).fit(matrices, [[int(label[1]) for label in row] for row in y])
    numbers.save(path)
    assert ChainCRF.load(path).predict(matrices) == numbers.predict(matrices)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "model.partita"
    ChainCRF().fit(X_ADDRESSES[:5], LABELS[:5]).save(path)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:200] + b"\xff" * 40 + content[240:], b"nothing"):
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            ChainCRF.load(path)
    model = ChainCRF().fit(X_ADDRESSES[:5], LABELS[:5])
    for name, value, message in (
        ("n_features_in_", 3, "vocabulary_offsets_ must have shape|state_index_ must be from 0"),
        ("parameters_", model.parameters_[1:], "do not fit together"),
        ("state_index_", -1 - model.state_index_, "state_index_ must be from 0"),
    ):
        changed = pickle.loads(pickle.dumps(model))
        setattr(changed, name, value)
        changed.save(path)
        with pytest.raises(ModelFileError, match=message):
            ChainCRF.load(path)
    SequenceData(np.eye(2), [2]).save(path)
    with pytest.raises(ModelFileError, match="SequenceData"):
        ChainCRF.load(path)


def test_grid_search_over_lists():
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=["B-CITY", "B-STREET"])
    grid = {"l2": [0.1, 10.0]}
    search = GridSearchCV(ChainCRF(), grid, cv=2, scoring=scorer).fit(X_ADDRESSES, LABELS)
    assert search.best_params_["l2"] == 0.1
    assert search.best_score_ > 0.5
    data = SequenceData.from_tokens(X_ADDRESSES, LABELS)
    packed = GridSearchCV(ChainCRF(), grid, cv=2, scoring=scorer).fit(data, LABELS)
    np.testing.assert_allclose(packed.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], atol=0.02)
    random = RandomizedSearchCV(ChainCRF(), {"l2": [0.1, 1.0]}, n_iter=2, cv=2, random_state=0).fit(data)
    assert random.best_score_ > 0.5
    scores = cross_val_score(ChainCRF(), X_ADDRESSES, LABELS, cv=KFold(2))
    assert scores.shape == (2,)
    assert scores.min() > 0.5


def test_pipeline_and_clone():
    pipe = make_pipeline(FunctionTransformer(lambda X: [addresses.address_features(x) for x in X]), ChainCRF(l2=0.5))
    pipe.fit(TOKENS, LABELS)
    assert pipe.score(TOKENS, LABELS) > 0.9
    assert pipe.predict(TOKENS) == pipe[-1].predict(X_ADDRESSES)
    fresh = clone(pipe[-1])
    assert fresh.get_params() == pipe[-1].get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X_ADDRESSES)
    with pytest.raises(NotFittedError):
        _ = fresh.state_features_


def test_score_is_the_share_of_right_labels():
    model = ChainCRF().fit(X_ADDRESSES[:20], LABELS[:20])
    predicted = model.predict(X_ADDRESSES)
    pairs = [(a, b) for row, other in zip(LABELS, predicted, strict=True) for a, b in zip(row, other, strict=True)]
    assert model.score(X_ADDRESSES, LABELS) == pytest.approx(np.mean([a == b for a, b in pairs]))


def test_explanation_sums_to_the_difference_in_score():
    X, y = toy(seed=7, longest=5)
    model = ChainCRF(l2=0.2, start_end=True).fit(X, y)
    labels = model.classes_.tolist()
    for x in X:
        told = model.explain(x)
        best = [labels.index(label) for label in model.predict_single(x)]
        assert [labels.index(entry.label) for entry in told.positions] == best
        for entry in told.positions:
            other = [*best]
            other[entry.position] = labels.index(entry.runner_up)
            difference = score_of(model, x, best) - score_of(model, x, other)
            assert sum(push.contribution for push in entry.pushes) == pytest.approx(difference, abs=1e-9)
            sizes = [abs(push.contribution) for push in entry.pushes]
            assert sizes == sorted(sizes, reverse=True)
    named = ChainCRF(l2=0.2).fit(X_ADDRESSES, LABELS)
    text = str(named.explain(X_ADDRESSES[0], position=-1))
    assert text.startswith(f"position {len(TOKENS[0]) - 1}: ")
    assert "EOS" in text or "more)" in text
    with pytest.raises(ValueError, match="position must be"):
        named.explain(X_ADDRESSES[0], position=99)


def test_standard_errors_invert_the_hessian():
    X, y = toy(count=40, seed=8)
    model = ChainCRF(l2=0.5, start_end=True, tol=1e-10, fit_intercept=False).fit(X, y)
    errors = model.standard_errors("information")
    objective, theta = model._objective, model.parameters_
    h, eye = 1e-5, np.eye(len(theta))
    H = np.array([(objective.at(theta + h * e).gradient - objective.at(theta - h * e).gradient) / (2 * h) for e in eye])
    expected = np.sqrt(np.diag(np.linalg.inv(H)))
    found = [value for part in errors.values() for value in part.values()]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert errors["state"].keys() == model.state_features_.keys()
    with pytest.raises(ValueError, match="singular"):
        ChainCRF(l2=0.0, features="all", max_iter=2, solver="lbfgs", tol=10.0).fit(X, y).standard_errors()


def test_standard_errors_of_large_models_come_from_draws(capsys):
    model = ChainCRF(random_state=0, verbose=0).fit(X_ADDRESSES, LABELS)
    assert len(model.parameters_) > 2000
    first, again = (model.standard_errors("sandwich", draws=16) for _ in range(2))
    assert first == again != model.standard_errors("sandwich", draws=16, random_state=1)
    assert all(0.0 < value < 2.0 for part in first.values() for value in part.values())
    assert first["transition"].keys() == model.transition_features_.keys()
    assert capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="more than 2000 weights need l2 > 0"):
        ChainCRF(l2=0.0, max_iter=2, tol=10.0).fit(X_ADDRESSES, LABELS).standard_errors()
    with pytest.raises(ValueError, match="draws must be"):
        model.standard_errors(draws=0)


@pytest.mark.parametrize("method", ["information", "sandwich"])
def test_summary_has_a_row_for_every_weight(method):
    model = ChainCRF(l2=0.5, start_end=True).fit(*toy(count=40, seed=8))
    table, errors = model.summary(method=method), model.standard_errors(method)
    assert len(table.names) == len(model.parameters_)
    (u, v), weight = next(iter(model.transition_features_.items()))
    row = table.names.index(f"{u} -> {v}")
    assert table.estimate[row] == weight
    assert table.standard_error[row] == errors["transition"][u, v]
    np.testing.assert_allclose(table.upper - table.estimate, 1.959964 * table.standard_error, rtol=1e-6)
    best = model.summary(method=method, top=3)
    np.testing.assert_array_equal(np.abs(best.z), np.sort(np.abs(table.z))[::-1][:3])
    with pytest.raises(ValueError, match="level must be in"):
        model.summary(level=95)


def test_standard_errors_under_constraints_are_refused():
    X, y = toy()
    model = ChainCRF(constraints=[WeightBounds(lower=0.0)]).fit(X, y)
    with pytest.raises(ValueError, match="not available with constraints"):
        model.standard_errors()


def test_from_crfsuite_maps_the_options():
    model = ChainCRF.from_crfsuite(
        algorithm="lbfgs", c1=0.1, c2=0.25, max_iterations=100, all_possible_transitions=True, epsilon=1e-4, min_freq=2
    )
    expected = ChainCRF(l1=0.1, l2=0.5, max_iter=100, transitions="all", min_frequency=2)
    assert model.get_params() == expected.get_params()
    assert ChainCRF.from_crfsuite().get_params() == ChainCRF(l2=2.0, min_frequency=0).get_params()
    with pytest.raises(ValueError, match="maximises no likelihood"):
        ChainCRF.from_crfsuite(algorithm="arow")
    with pytest.raises(ValueError, match="algorithm must be"):
        ChainCRF.from_crfsuite(algorithm="newton")
    with pytest.raises(TypeError, match="no option 'epsilom'"):
        ChainCRF.from_crfsuite(epsilom=1)
    with pytest.raises(ValueError, match="model_filename"):
        ChainCRF.from_crfsuite(model_filename="x")


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({"l2": -1}, None, None, "l2 must be a finite number >= 0"),
        ({"features": "some"}, None, None, "features must be one of 'observed', 'all'; got 'some'"),
        ({"constraints": ["x"]}, None, None, "must be WeightBounds, WeightTies or sets"),
        ({"forbidden": "bio"}, None, None, "forbidden must be pairs of labels or one of 'iob2', 'iobes'; got 'bio'"),
        ({"forbidden": [("a",)]}, None, None, "forbidden must be pairs of labels"),
        ({"patience": 0}, None, None, "patience must be an integer >= 1"),
        ({"n_jobs": 0}, None, None, "n_jobs must be"),
        ({}, [[["a"], ["b"]], [["a"]]], [["P", "Q"], ["P", "Q"]], "sequence 1 has 1 positions in X but 2 labels in y"),
        ({}, [[["a"]]], [["P"], ["Q"]], "X and y must have as many sequences; got 1 and 2"),
        ({}, [[["a"]]], ["P", "Q"], "X and y must have as many sequences"),
        ({}, [[["a"], ["b"]]], ["PQ"], "sequence 0 of y is 'PQ'"),
        ({}, [[["a"], ["b"]]], [["P", 1]], "one type; got integers and strings"),
        ({}, [[["a"], ["b"]]], [["P", 1.5]], "got 1.5 at position 1 of sequence 0"),
        ({}, [[["a"], ["b"]]], [["P", ["Q"]]], r"got \['Q'\] at position 1 of sequence 0"),
        ({}, [[["a"], ["b"]]], [["P", set()]], "allows no label at position 1 of sequence 0"),
        ({}, [[["a"]]], [[None]], "y holds no label at all"),
        ({}, [[["a"]]], None, "y is missing"),
        ({}, [], [], "X has no sequences"),
        ({}, [[]], [[]], "y holds no label at all"),
        ({}, np.eye(2), [["P", "P"]], "pass lengths="),
        ({}, [np.eye(2), np.ones((1, 3))], [["P", "P"], ["Q"]], "sequence 1 of X has 3 columns, but 2 came before"),
        ({}, [np.full((1, 2), np.nan)], [["P"]], "X must be finite"),
        ({}, "abc", [["P"]], "X must be a list of sequences"),
        ({}, [["ab"]], [["P"]], "sequence 0"),
    ],
)
def test_errors_name_what_is_wrong(options, X, y, message):
    if X is None:
        X, y = [[["a"]]], [["P"]]
    model = ChainCRF(**options)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert vars(model) == before


def test_wrong_input_to_a_fitted_model():
    X, y = toy()
    model = ChainCRF().fit(X, y)
    with pytest.raises(ValueError, match="X has 3 attributes, but the model was fitted to 4"):
        model.predict([x[:, :3] for x in X])
    with pytest.raises(ValueError, match="X must be matrices"):
        model.predict(as_dicts(X))
    with pytest.raises(ValueError, match="lengths must add up to"):
        model.predict(np.vstack(X), lengths=[1, 2])
    with pytest.raises(ValueError, match="y holds 'new' at position 0 of sequence 0"):
        model.log_likelihood(X[:1], [["new"] * len(X[0])])
    with pytest.raises(ValueError, match="k must be"):
        model.predict_kbest(X, 0)


def test_a_failed_fit_changes_nothing(monkeypatch):
    model = ChainCRF().fit(X_ADDRESSES, LABELS)
    expected, state = model.predict(X_ADDRESSES), dict(vars(model))
    with pytest.raises(ValueError, match="labels in y"):
        model.fit(X_ADDRESSES, [row[:-1] for row in LABELS])

    def broken(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(trained, "minimize", broken)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(MemoryError):
            method(X_ADDRESSES[:5], LABELS[:5])
    assert vars(model) == state
    assert model.predict(X_ADDRESSES) == expected


def test_an_interrupted_fit_keeps_what_it_has(monkeypatch):
    def interrupt(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt
        return False

    real = trained.minimize

    def minimize(*args, callbacks=(), **options):
        return real(*args, callbacks=[*callbacks, interrupt], **options)

    monkeypatch.setattr(trained, "minimize", minimize)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = ChainCRF(tol=1e-12, solver="lbfgs").fit(X_ADDRESSES, LABELS)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == 3
    assert model.score(X_ADDRESSES, LABELS) > 0.3


def test_warning_at_the_iteration_limit_and_progress(capsys):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = ChainCRF(max_iter=2, solver="lbfgs", verbose=2).fit(X_ADDRESSES, LABELS)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("iteration") == 3
    assert model.n_iter_ == 2


@pytest.mark.parametrize("rule", ["iob2", "iobes"])
def test_sets_at_the_ends_under_a_rule(rule):
    y = [["O"], [{"O"}], [{"O", "S-X"}], [None]]
    model = ChainCRF(forbidden=rule).fit([[["a"]]] * 4, y)
    assert model.predict([[["a"]]]) == [["O"]]


def test_held_out_labels_that_break_a_rule_are_refused():
    X, y = [[["a"], ["b"]]] * 3, [["B-X", "I-X"], ["O", "O"], ["B-X", "O"]]
    with pytest.raises(ValueError, match="'O' is followed by 'I-X' at position 1 of sequence 0 of y_dev"):
        ChainCRF(forbidden="iob2").fit(X, y, X_dev=X[:1], y_dev=[["O", "I-X"]])


def test_partial_fit_refuses_constraints():
    with pytest.raises(ValueError, match="partial_fit does not support constraints"):
        ChainCRF(constraints=[WeightBounds(lower=0.0)]).partial_fit([[["a"]]], [["O"]])


def test_partial_fit_learns_nothing_from_unknown_labels():
    X, y = toy()
    for classes in (None, ["L0", "L1", "L2"]):
        model = ChainCRF().partial_fit(X, y, classes=classes)
        before = copy.deepcopy(vars(model))
        assert model.partial_fit(X[:2], [[None] * len(row) for row in y[:2]]) is model
        np.testing.assert_array_equal(model.parameters_, before["parameters_"])
        np.testing.assert_array_equal(model.precision_, before["precision_"])
        assert model.n_seen_ == len(X)
    with pytest.raises(ValueError, match="labels of one type"):
        ChainCRF().partial_fit(X, y).partial_fit(X[:1], [[1] * len(y[0])])


def test_hashing_of_named_data():
    X, y = X_ADDRESSES[:8], LABELS[:8]
    data = SequenceData.from_tokens(X, y)
    model, expected = ChainCRF(hashing=512).fit(data), ChainCRF(hashing=512).fit(X, y)
    np.testing.assert_array_equal(model.parameters_, expected.parameters_)
    assert model.predict(X) == model.predict(data) == expected.predict(X)
    assert model.score(data) == expected.score(X, y)
    ChainCRF(hashing=512).fit(data, X_dev=data)
    with pytest.raises(ValueError, match="hashing=32, but X is SequenceData of 64 columns without names"):
        ChainCRF(hashing=32).fit(SequenceData.from_tokens(X, y, hashing=64))


def test_a_frequency_that_nothing_has():
    X, y = [[["a"], ["b"]], [["c"], ["d"]]], [["P", "Q"], ["P", "Q"]]
    model = ChainCRF(min_frequency=2).fit(X, y)
    assert model.state_features_ == {}
    assert model.predict(X) == y
    with pytest.raises(ValueError, match=r"nothing has a weight.*min_frequency=3"):
        ChainCRF(min_frequency=3).fit(X, y)


def test_nothing_works_before_fit():
    X, y = X_ADDRESSES[:1], LABELS[:1]
    model = ChainCRF()
    calls = [
        *(lambda: model.score(X, y), lambda: model.predict(X), lambda: model.predict_single(X[0])),
        *(lambda: model.predict_marginals(X), lambda: model.predict_kbest(X, 1), lambda: model.sample(X)),
        *(lambda: model.predict_proba(X), lambda: model.log_likelihood(X, y), lambda: model.explain(X[0])),
        *(model.standard_errors, lambda: model.attributes_, lambda: model.start_features_),
    ]
    for call in calls:
        with pytest.raises(NotFittedError):
            call()


def test_score_with_partial_labels():
    X, y = [[["a"], ["b"]], [["b"]]], [["P", "Q"], ["Q"]]
    model = ChainCRF(l2=0.01).fit(X, y)
    assert model.score(X, [[None, "Q"], ["P"]]) == 0.5
    assert model.score(X, [["Q", {"P", "Q"}], [{"P", "R"}]]) == pytest.approx(1 / 3)
    data = SequenceData.from_tokens(X, y)
    for empty in (([[]], [[]]), (X, [[None, None], [None]]), (data[:0],)):
        with pytest.raises(ValueError, match="y holds no label at all"):
            model.score(*empty)


def test_no_sequences_have_no_predictions():
    for model in (ChainCRF().fit(X_ADDRESSES[:5], LABELS[:5]), ChainCRF().fit(*toy())):
        assert model.predict([]) == model.predict_marginals([]) == model.predict_kbest([], 2) == model.sample([]) == []
        assert model.predict_marginals([], as_array=True) == []
        assert model.log_likelihood([], []).shape == (0,)


def test_forbidden_is_read_again_at_every_fit():
    X, y = [[["a"], ["b"]]], [["P", "Q"]]
    with pytest.raises(ValueError, match="got an iterator"):
        ChainCRF(forbidden=(pair for pair in [("Q", "P")])).fit(X, y)
    model = ChainCRF(forbidden={("Q", "P")})
    for fitted in (model.fit(X, y), model.fit(X, y), clone(model).fit(X, y)):
        assert fitted.forbidden_transitions_.tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize("forbidden", [[("Q", "P")], [("Q", "P"), ("Q", "Q")], (("Q", "P"),)])
def test_forbidden_pairs_survive_a_file(forbidden, tmp_path):
    model = ChainCRF(forbidden=forbidden).fit([[["a"], ["b"]]], [["P", "Q"]])
    model.save(tmp_path / "model")
    loaded = ChainCRF.load(tmp_path / "model")
    assert loaded.forbidden == forbidden
    assert clone(loaded).get_params() == model.get_params()


def test_rules_know_prefixes_by_the_whole():
    y = [["IE-x", "BI-x"], ["O", "IE-x"]]
    model = ChainCRF(forbidden="iobes").fit([[["a"], ["b"]]] * 2, y)
    assert not model.forbidden_transitions_.any()
    assert not model.forbidden_starts_.any()


def test_a_sequence_of_weight_zero_may_be_impossible():
    X, good, bad = [[["a"], ["b"]]] * 3, ["B-X", "I-X"], ["O", "I-X"]
    for impossible in (bad, ["O", {"I-X", "I-Y"}]):
        model = ChainCRF(forbidden="iob2").fit(X, [impossible, good, ["O", "O"]], sample_weight=[0, 1, 1])
        assert model.predict(X[:1])[0] != bad
        model.partial_fit(X, [impossible, good, ["O", "O"]], sample_weight=[0, 1, 1])
        with pytest.raises(ValueError, match="sequence 2 of y"):
            ChainCRF(forbidden="iob2").fit(X, [impossible, good, impossible], sample_weight=[0, 1, 1])
    with pytest.raises(ValueError, match="y holds no label at all"):
        ChainCRF(forbidden="iob2").fit(X[:2], [good, [None, None]], sample_weight=[0, 1])


def test_advice_for_l1_names_solvers_that_work():
    X, y = toy()
    for solver in ("proximal", "newton", "constrained_newton"):
        with pytest.raises(TypeError, match=r"Choose 'auto' or 'owlqn'\.$"):
            ChainCRF(l1=0.1, solver=solver).fit(X, y)
    ChainCRF(l1=0.1, solver="owlqn").fit(X, y)


def test_labels_that_numpy_would_merge_are_refused():
    X = [[["a"]], [["b"]]]
    for call in (
        lambda: ChainCRF().fit(X, [["x"], ["x\0"]]),
        lambda: ChainCRF().fit(X, [["x"], [{"x", "x\0"}]]),
        lambda: ChainCRF().partial_fit(X, [["x"], ["y"]], classes=["x", "x\0", "y"]),
    ):
        with pytest.raises(ValueError, match="must not end with a NUL character"):
            call()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_leave_the_data_behind(copied):
    model = copied(ChainCRF().fit(*toy()))
    with pytest.raises(ValueError, match="training data, which copies, files and partial_fit do not keep"):
        model.standard_errors()

"""Chains with hidden states, against enumeration and against the models that they become."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from enumeration import labellings
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import partita
from partita import ChainCRF, HiddenChainCRF, LatentDynamicCRF, Majorize, SequenceData, SoftmaxRegression
from partita.chain.data.hidden_states import clusters, hidden_labels, parts
from partita.chain.features.chain import ChainFeatures
from partita.chain.features.tied import TiedFeatures
from partita.chain.structure.forbidden import Forbidden
from partita.estimators.labels import encode_labels
from partita.objectives import ChainLikelihood

LENGTHS = (3, 1, 4, 2, 3, 2)
LABELS = ["b", "a", "c", "a", "b", "c"]


@pytest.fixture(scope="module")
def matrices():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((length, 2)) for length in LENGTHS]


@pytest.fixture(scope="module")
def position_labels():
    rng = np.random.default_rng(1)
    return [rng.choice(["p", "q"], length).tolist() for length in LENGTHS]


def weights_of(model):
    """Tables of the weights by (label, hidden state): attributes, transitions, starts, ends."""
    classes, H = model.classes_.tolist(), model.n_hidden_
    number = {(label, h): c * H + h for c, label in enumerate(classes) for h in range(H)}
    W = np.zeros((model.n_features_in_ + model.has_intercept_, len(number)))  # intercepts are the last row
    A, start, end = np.zeros((len(number),) * 2), np.zeros(len(number)), np.zeros(len(number))
    for (j, state), value in model.state_features_.items():
        W[-1 if j == "intercept" else j, number[state]] = value
    for (u, v), value in model.transition_features_.items():
        A[number[u], number[v]] = value
    for table, named in ((start, model.start_features_), (end, model.end_features_)):
        for state, value in named.items():
            table[number[state]] = value
    return W, A, start, end


def at_means(model, W):
    """The weights that are penalised: of columns, and as intercepts the scores at their means."""
    return np.vstack([W[:-1], W[-1] + model.column_mean_ @ W[:-1]])


def enumerate_states(model, x):
    """All paths of states and their scores."""
    W, A, start, end = weights_of(model)
    paths = labellings(len(A), len(x))
    x = np.column_stack([x, np.ones(len(x))]) if model.has_intercept_ else x
    scores = (x @ W)[np.arange(len(x)), paths].sum(1) + A[paths[:, :-1], paths[:, 1:]].sum(1)
    return paths, scores + start[paths[:, 0]] + end[paths[:, -1]]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("y", [LABELS, ["b", {"a", "c"}, None, {"a"}, "b", "c"]], ids=["known", "partial"])
def test_hidden_chain_agrees_with_enumeration(matrices, shared, y):
    model = HiddenChainCRF(2, shared, l2=0.3, init="random", init_scale=1.0, random_state=0, max_iter=5, tol=0.0)
    with pytest.warns(partita.ConvergenceWarning):
        model.fit(matrices, y)
    found, hidden, loss = model.predict_proba(matrices), model.hidden_proba(matrices), 0.0
    assert np.array_equal(model.predict_marginals(matrices), found)
    for i, x in enumerate(matrices):
        paths, scores = enumerate_states(model, x)
        label, h = np.divmod(paths, 2)
        same = (label == label[:, :1]).all(1)
        p = softmax(np.where(same, scores, -np.inf))
        expected = np.bincount(label[:, 0], weights=p, minlength=3)
        assert_allclose(found[i], expected, atol=1e-12)
        marginals = np.zeros((len(x), 3, 2))
        for t in range(len(x)):
            np.add.at(marginals[t], (label[:, t], h[:, t]), p)
        assert_allclose(hidden[i], marginals, atol=1e-12)
        allowed = {"a", "b", "c"} if y[i] is None else set(y[i])
        loss -= np.log(sum(p for p, label in zip(expected, model.classes_, strict=True) if label in allowed))
    assert_allclose(model.log_likelihood(matrices, y).sum(), -loss)
    W, A, start, end = weights_of(model)
    if shared:
        W = W[:, :2]
    penalty = 0.15 * sum(np.sum(part**2) for part in (at_means(model, W), A, start, end))
    assert_allclose(model.objectives_, [loss + penalty])


@pytest.mark.parametrize("init", ["random", "kmeans", "left_right"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n_hidden", [1, 2])
def test_labels_of_sequences_may_be_known_in_part(init, shared, n_hidden):
    X, y = ordered(np.random.default_rng(5), 40)
    y += [{"up", "down"}, {"up"}, None]
    X += X[:3]
    model = HiddenChainCRF(n_hidden, shared, init=init, random_state=0).fit(X, y)
    assert model.status_ is partita.Status.CONVERGED
    # what may be anything adds nothing
    known = HiddenChainCRF(n_hidden, shared, init=init, random_state=0).fit([*X[:40], X[41]], [*y[:40], "up"])
    if n_hidden == 1:
        assert_allclose(model.predict_proba(X), known.predict_proba(X), atol=1e-3)
    found = model.predict(X)
    right = [*(found[:40] == y[:40]), True, found[41] == "up"]
    assert model.score(X, y) == pytest.approx(np.mean(right))
    weights = np.arange(43.0)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(np.average(right, weights=weights[:42]))


def test_scores_take_lengths_and_weights_in_one_order(matrices, position_labels):
    for model, y in ((HiddenChainCRF(2), LABELS), (LatentDynamicCRF(2), position_labels)):
        model.set_params(random_state=0).fit(matrices, y)
        only = [1.0, 0.0, 2.0, 0.0, 0.0, 0.0]
        assert model.score(np.vstack(matrices), y, LENGTHS) == model.score(matrices, y)
        score = model.score(np.vstack(matrices), y, LENGTHS, only)
        assert score == model.score(matrices, y, sample_weight=only)
        assert score == model.score([matrices[i] for i in (0, 2, 2)], [y[i] for i in (0, 2, 2)])


def test_empty_sequences_without_weight_do_not_count(matrices):
    model = HiddenChainCRF(2, random_state=0).fit(
        [*matrices, np.zeros((0, 2))], [*LABELS, "a"], sample_weight=[1.0] * 6 + [0.0]
    )
    assert np.array_equal(model.parameters_, HiddenChainCRF(2, random_state=0).fit(matrices, LABELS).parameters_)


def test_shared_attributes_have_equal_weights_for_all_labels(matrices):
    W = weights_of(HiddenChainCRF(2, shared=True, random_state=0).fit(matrices, LABELS))[0].reshape(3, 3, 2)
    assert np.ptp(W, axis=1).max() == 0.0
    assert np.ptp(W[:, 0], axis=1).max() > 0.0


def test_latent_dynamic_agrees_with_enumeration(matrices, position_labels):
    y = [list(row) for row in position_labels]
    y[0][1], y[2][0] = None, {"p", "q"}
    options = {"init": "random", "init_scale": 1.0, "random_state": 0, "max_iter": 5, "tol": 0.0, "start_end": True}
    model = LatentDynamicCRF(2, l2=0.3, **options)
    with pytest.warns(partita.ConvergenceWarning):
        model.fit(matrices, y)
    hidden, marginals = model.hidden_proba(matrices), model.predict_marginals(matrices, as_array=True)
    found, log_p = model.predict(matrices), model.log_likelihood(matrices, y)
    for i, x in enumerate(matrices):
        paths, scores = enumerate_states(model, x)
        p, label = softmax(scores), paths // 2
        expected = np.array([np.bincount(paths[:, t], weights=p, minlength=4) for t in range(len(x))]).reshape(-1, 2, 2)
        assert_allclose(hidden[i], expected, atol=1e-12)
        assert_allclose(marginals[i], expected.sum(2), atol=1e-12)
        assert found[i] == [["p", "q"][k] for k in expected.sum(2).argmax(1)]
        known = [(t, "pq".index(value)) for t, value in enumerate(y[i]) if isinstance(value, str)]
        agree = np.all([label[:, t] == k for t, k in known], axis=0) if known else np.ones(len(p), bool)
        assert_allclose(log_p[i], np.log(p[agree].sum()))
    W, *rest = weights_of(model)
    penalty = 0.15 * sum(np.sum(part**2) for part in (at_means(model, W), *rest))
    assert_allclose(np.exp(log_p), np.exp(model.log_likelihood(matrices, y)))
    assert_allclose(model.objectives_, [penalty - log_p.sum()])


@pytest.fixture(params=[False, True], ids=["own", "shared"])
def likelihood(matrices, request):
    """One label for a sequence: chains of labels that never mix, and all states of the label at every position."""
    data = SequenceData(np.vstack(matrices), LENGTHS)
    labels = encode_labels(np.repeat(LABELS, LENGTHS).tolist(), data.offsets)
    states, label = hidden_labels(labels, 2), np.arange(6) // 2
    forbidden = label[:, None] != label
    pairs = np.repeat([0, 1], 6), np.tile(np.arange(6), 2)
    features = ChainFeatures(data.X, data.offsets, 6, *pairs, np.argwhere(~forbidden), True, True)
    if request.param:
        state = features.attribute * 2 + features.label % 2
        features = TiedFeatures(features, np.concatenate([state, 4 + np.arange(features.size - features.n_state)]))
    return ChainLikelihood(features, states.codes, sets=states.sets, penalty=0.2, forbidden=Forbidden(forbidden))


def test_gradient_against_differences(likelihood):
    theta = np.random.default_rng(2).standard_normal(likelihood.size)
    step = 1e-6 * np.eye(likelihood.size)
    numeric = [(likelihood.at(theta + e).value - likelihood.at(theta - e).value) / 2e-6 for e in step]
    assert_allclose(likelihood.at(theta).gradient, numeric, atol=1e-6)


def test_bounds_along_lines_are_above_the_objective(likelihood):
    rng = np.random.default_rng(3)
    for _ in range(20):
        point = likelihood.at(2.0 * rng.standard_normal(likelihood.size))
        direction = -point.gradient * rng.uniform(0.5, 1.5, likelihood.size)
        ray, slope = point.along(direction), float(point.gradient @ direction)
        bound = ray.bound()
        for t in (1e-3, 1e-2, 0.1, 1.0, 10.0):
            above = point.value + t * slope + 0.5 * bound.curvature(t) * t * t
            assert ray.at(t)[0].value <= above + 1e-9 * abs(above)


@pytest.mark.parametrize("options", [{}, {"start_end": True, "transitions": "all", "features": "all"}])
def test_latent_dynamic_with_one_hidden_state_is_a_chain(options):
    rng = np.random.default_rng(3)
    X = [[[f"w:{w}", f"s:{w % 3}"] for w in rng.integers(8, size=length)] for length in (4, 6, 3, 5, 7)]
    y = [[str(rng.choice(["D", "N", "V"])) for _ in row] for row in X]
    y[0][2] = None
    plain = ChainCRF(l2=0.5, tol=1e-9, **options).fit(X, y)
    hidden = LatentDynamicCRF(1, l2=0.5, tol=1e-9, random_state=0, **options).fit(X, y)
    assert hidden.state_features_.keys() == {(name, (label, 0)) for name, label in plain.state_features_}
    for (name, label), value in plain.state_features_.items():
        assert hidden.state_features_[name, (label, 0)] == pytest.approx(value, abs=1e-6)
    marginals = (np.vstack(model.predict_marginals(X, as_array=True)) for model in (hidden, plain))
    assert_allclose(*marginals, atol=1e-6)
    found, true = itertools.chain(*hidden.predict(X)), itertools.chain(*y)
    assert hidden.score(X, y) == np.mean([a == b for a, b in zip(found, true, strict=True) if b])


def test_hidden_chain_with_one_hidden_state_is_a_softmax(matrices):
    """Sums of attributes, the number of transitions, and a constant for the start and one for the end."""
    sums = np.array([[*x.sum(0), len(x) - 1.0, 1.0, 1.0] for x in matrices])
    flat = SoftmaxRegression(l2=0.7, fit_intercept=False, tol=1e-10).fit(sums, LABELS)
    for shared in (False, True):
        options = {"l2": 0.7, "tol": 1e-10, "random_state": 0, "fit_intercept": False}
        model = HiddenChainCRF(1, shared, **options).fit(matrices, LABELS)
        if shared:  # attributes then say nothing about the label
            assert_allclose(model.predict_proba(matrices)[0], model.predict_proba([matrices[0] + 5.0])[0])
        else:
            assert_allclose(model.predict_proba(matrices), flat.predict_proba(sums), atol=1e-7)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n_features", [2, 150])
def test_majorization_never_rises(shared, n_features):
    """By quadratics for few parameters, along lines for many."""
    rng = np.random.default_rng(4)
    X = [rng.standard_normal((length, n_features)) for length in rng.integers(1, 7, size=12)]
    y = rng.integers(3, size=12)
    for solver in ("majorize", Majorize(acceleration=None)):
        model = HiddenChainCRF(2, shared, solver=solver, init="random", random_state=0, tol=0.0, max_iter=100)
        with pytest.warns(partita.ConvergenceWarning):
            model.fit(X, y)
        assert model.trace_.objective[-1] < 0.95 * model.trace_.objective[0]
        assert np.diff(model.trace_.objective).max() <= 1e-13 * model.trace_.objective[0]


@pytest.mark.parametrize("n_features", [2, 150])
def test_majorization_never_rises_with_labels_known_in_part(n_features):
    rng = np.random.default_rng(4)
    X = [rng.standard_normal((length, n_features)) for length in rng.integers(1, 7, size=12)]
    choices = ["p", "q", "r", None, {"p", "q"}]
    y = [[choices[k] for k in rng.integers(5, size=len(x))] for x in X]
    for solver in ("majorize", Majorize(acceleration=None)):
        model = LatentDynamicCRF(2, solver=solver, init="random", random_state=0, tol=0.0, max_iter=100)
        with pytest.warns(partita.ConvergenceWarning):
            model.fit(X, y)
        assert model.trace_.objective[-1] < 0.95 * model.trace_.objective[0]
        assert np.diff(model.trace_.objective).max() <= 1e-13 * model.trace_.objective[0]


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "majorize", "cg", "newton"])
def test_solvers_end_where_the_gradient_vanishes(matrices, position_labels, solver):
    for model, y in ((HiddenChainCRF(2), LABELS), (LatentDynamicCRF(2), position_labels)):
        model.set_params(solver=solver, tol=1e-6, random_state=0, max_iter=5000).fit(matrices, y)
        assert model.status_ is partita.Status.CONVERGED
        assert model.trace_.gradient_norm[-1] <= 1e-6


def ordered(rng, count):
    """Sequences of the same numbers of two kinds of rows, in one order or the other."""
    X, y = [], []
    for _ in range(count):
        k, label = int(rng.integers(2, 5)), int(rng.integers(2))
        rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], k, axis=0)[:: 1 - 2 * label]
        X.append(rows + 0.3 * rng.standard_normal(rows.shape))
        y.append(["up", "down"][label])
    return X, y


@pytest.mark.parametrize("init", ["random", "kmeans", "left_right"])
@pytest.mark.parametrize("shared", [False, True])
def test_order_is_learned_from_every_kind_of_start(init, shared):
    X, y = ordered(np.random.default_rng(5), 80)
    test, expected = ordered(np.random.default_rng(6), 60)
    sums = [[*x.sum(0)] for x in X]
    assert SoftmaxRegression().fit(sums, y).score([[*x.sum(0)] for x in test], expected) < 0.7
    model = HiddenChainCRF(2, shared, l2=0.1, init=init, n_init=3, random_state=0).fit(X, y)
    assert model.score(test, expected) > 0.95
    W, *rest = weights_of(model)
    assert len(model.objectives_) == 3
    penalty = 0.05 * sum(np.sum(part**2) for part in (at_means(model, W[:, :2] if shared else W), *rest))
    assert model.objectives_.min() == pytest.approx(penalty - model.log_likelihood(X, y).sum())


@pytest.mark.parametrize("init", ["random", "kmeans", "left_right"])
def test_restarts_depend_on_the_seed_alone(init):
    X, y = ordered(np.random.default_rng(7), 30)
    steps = [["head"] + ["tail"] * (len(x) - 1) for x in X]
    for model, labels in ((HiddenChainCRF(2), y), (LatentDynamicCRF(2), steps)):
        model.set_params(init=init, n_init=3, random_state=3, n_jobs=1, init_scale=0.5)
        first, second = clone(model).fit(X, labels), clone(model).set_params(n_jobs=2).fit(X, labels)
        assert np.array_equal(first.parameters_, second.parameters_)
        assert np.array_equal(first.objectives_, second.objectives_)
        assert first.trace_.objective[-1] == first.objectives_.min()
        single = clone(model).set_params(n_init=1).fit(X, labels)
        assert single.objectives_[0] == first.objectives_[0]
        assert not np.array_equal(clone(model).set_params(random_state=4).fit(X, labels).parameters_, first.parameters_)


def test_without_noise_hidden_states_stay_alike():
    X, y = ordered(np.random.default_rng(8), 20)
    model = HiddenChainCRF(2, init="random", init_scale=0.0, random_state=0).fit(X, y)
    W = weights_of(model)[0].reshape(3, 2, 2)
    assert_allclose(W[..., 0], W[..., 1], atol=1e-9)


def test_clusters_are_found_within_groups():
    rng = np.random.default_rng(12)
    groups, side = np.repeat([0, 1, -1], 30), rng.integers(2, size=90)
    X = sp.csr_matrix(np.column_stack([10.0 * side, groups]) + 0.1 * rng.standard_normal((90, 2)))
    found = clusters(X, groups, 2, rng)
    for group in (0, 1):
        here = groups == group
        assert np.array_equal(found[here], side[here]) or np.array_equal(found[here], 1 - side[here])
    assert not found[groups < 0].any()
    assert clusters(X[:1], groups[:1], 3, rng).tolist() == [0]
    assert clusters(sp.csr_matrix(np.ones((4, 2))), np.zeros(4, int), 2, rng).tolist() == [0] * 4


def test_parts_of_pieces():
    assert parts(np.array([0, 3, 4]), 8, 2).tolist() == [0, 0, 1, 0, 0, 0, 1, 1]


def test_latent_dynamic_finds_what_one_state_cannot():
    """Labels of a period of three, without attributes that tell where it begins."""
    X = [[["a"]] * length for length in range(6, 14)]
    y = [["mark" if t % 3 == 2 else "no" for t in range(len(row))] for row in X]
    options = {"l2": 0.01, "start_end": True, "random_state": 0}
    scores = [LatentDynamicCRF(h, init="left_right", **options).fit(X, y).score(X, y) for h in (1, 2)]
    assert scores[0] < 0.8
    assert scores[1] == 1.0


def test_tokens_matrices_and_stored_data_are_the_same_to_both():
    rng = np.random.default_rng(9)
    tokens = [[[f"w:{w}"] for w in rng.integers(4, size=length)] for length in (3, 4, 2, 5)]
    positions = [[int(rng.integers(2)) for _ in row] for row in tokens]
    data = SequenceData.from_tokens(tokens)
    lengths, stacked = data.lengths, data.X
    for model, y in ((HiddenChainCRF(2), [0, 1, 1, 0]), (LatentDynamicCRF(2), positions)):
        model.set_params(random_state=0, fit_intercept=False)  # tokens have none
        plain = clone(model).fit(tokens, y)
        for X, more in ((data, {}), (stacked, {"lengths": lengths}), ([data[i].toarray() for i in range(4)], {})):
            other = clone(model).fit(X, y, **more)
            assert_allclose(other.parameters_, plain.parameters_, atol=1e-9)
            assert_allclose(np.concatenate(other.hidden_proba(X, **more)), np.concatenate(plain.hidden_proba(tokens)))
            assert other.score(X, y, **more) == plain.score(tokens, y)
        assert len(plain.predict([[["w:unseen"]]])) == 1
        hashed = clone(model).set_params(hashing=64).fit(tokens, y)
        assert hashed.attributes_ == list(range(64))
        assert len(hashed.predict(tokens)) == 4


def test_weights_of_sequences_are_repetitions(matrices):
    twice = HiddenChainCRF(2, tol=1e-9, random_state=0).fit(matrices + matrices[:1], LABELS + LABELS[:1])
    weighted = HiddenChainCRF(2, tol=1e-9, random_state=0).fit(matrices, LABELS, sample_weight=[2, 1, 1, 1, 1, 1])
    assert_allclose(weighted.parameters_, twice.parameters_, atol=1e-6)
    assert weighted.score(matrices, LABELS, sample_weight=[1, 0, 0, 0, 0, 0]) in (0.0, 1.0)


def test_saved_models_answer_as_before(matrices, position_labels, tmp_path):
    for model, y in ((HiddenChainCRF(2, shared=True), LABELS), (LatentDynamicCRF(2), position_labels)):
        model.set_params(random_state=0).fit(matrices, y).save(tmp_path / "model")
        twin = partita.load(tmp_path / "model")
        assert twin.get_params() == model.get_params()
        assert np.array_equal(np.concatenate(twin.hidden_proba(matrices)), np.concatenate(model.hidden_proba(matrices)))
        assert twin.state_features_ == model.state_features_
        twin.set_params(n_hidden=5)  # what was fitted stays what it is
        assert list(twin.predict(matrices)) == list(model.predict(matrices))


def test_grid_search_over_lists_of_sequences():
    X, y = ordered(np.random.default_rng(10), 40)
    search = GridSearchCV(HiddenChainCRF(random_state=0, l2=0.1), {"n_hidden": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"n_hidden": 2}
    assert search.predict_proba(X).shape == (40, 2)
    assert_allclose(search.predict_proba(X).sum(1), 1.0)
    assert_allclose(logsumexp(search.best_estimator_.predict_log_proba(X), axis=1), 0.0, atol=1e-12)


def test_bad_input_is_named_and_changes_nothing(matrices, position_labels):
    model = HiddenChainCRF(2, random_state=0).fit(matrices, LABELS)
    before = model.parameters_.copy()
    for X, y, message in (
        (matrices, None, "one label for each sequence, got NoneType"),
        (matrices, [None] * 6, "y holds no label at all"),
        (matrices, [{"a", "b"}] * 6, "y tells nothing: all labels are possible everywhere"),
        (matrices, [*LABELS[:-1], {"a", 0.5}], "strings or integers.* at sequence 5"),
        (matrices, position_labels, r"strings or integers.* got \['p', 'q', 'q'\] at sequence 0"),
        (matrices, LABELS[:-1], "as many sequences; got 6 and 5"),
        (matrices, "abcabc", "got str"),
        (matrices, ["a"] * 6, "at least two different labels, got only 'a'"),
        (matrices, [0.5, 1.0, 0.5, 1.0, 1.0, 1.0], "strings or integers"),
        ([*matrices[:-1], np.zeros((0, 2))], LABELS, "sequence 5 of X is empty"),
        ([], [], "no sequences"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        assert np.array_equal(model.parameters_, before)
    with pytest.raises(ValueError, match="sequence 1 of X is empty"):
        model.predict([matrices[0], np.zeros((0, 2))])
    with pytest.raises(ValueError, match="not among the classes"):
        model.log_likelihood(matrices[:1], ["z"])
    assert model.predict_proba([]).shape == (0, 3)
    for name, value in (("n_hidden", 0), ("init", "best"), ("init_scale", -1.0), ("n_init", 0), ("shared", 1), ("l2", -1.0)):
        with pytest.raises(ValueError, match=name):
            clone(model).set_params(**{name: value}).fit(matrices, LABELS)
    with pytest.raises(ValueError, match="n_hidden"):
        LatentDynamicCRF(n_hidden=0).fit(matrices, position_labels)
    with pytest.raises(ValueError, match="y tells nothing: all labels are possible everywhere"):
        LatentDynamicCRF().fit(matrices, [[{"p", "q"}] * length for length in LENGTHS])


def test_empty_sequences_have_empty_labellings(matrices, position_labels):
    model = LatentDynamicCRF(2, random_state=0).fit([*matrices, np.zeros((0, 2))], [*position_labels, []])
    assert model.predict([np.zeros((0, 2)), matrices[1]])[0] == []
    assert model.predict([np.zeros((0, 2))]) == [[]]
    assert model.hidden_proba([np.zeros((0, 2))])[0].shape == (0, 2, 2)
    assert model.log_likelihood([np.zeros((0, 2))], [[]]).tolist() == [0.0]


def test_very_different_labels_keep_their_probabilities():
    """A label a thousand nats behind at some place may still win in the end."""
    X, y = ordered(np.random.default_rng(11), 20)
    model = HiddenChainCRF(2, random_state=0).fit(X, y)
    far = np.vstack([np.full((3, 2), 4000.0), np.full((3, 2), -4000.0)]) * [[1.0, 0.9]]
    log_p = model.predict_log_proba([far])[0]
    assert np.isfinite(log_p).all()
    hidden = model.hidden_proba([far])[0].sum(2)
    assert_allclose(hidden, np.tile(np.exp(log_p), (6, 1)), atol=1e-9)


def test_an_interrupt_keeps_the_best_start(matrices, monkeypatch):
    calls = []

    def stop(self, progress):
        calls.append(progress.iteration)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr("partita.report.ProgressPrinter.__call__", stop)
    model = HiddenChainCRF(2, n_init=4, verbose=2, random_state=0)
    with pytest.warns(partita.ConvergenceWarning, match="interrupted"):
        model.fit(matrices, LABELS)
    assert np.isnan(model.objectives_).tolist() == [False, True, True, True]
    assert model.predict(matrices).shape == (6,)


def test_an_interrupt_of_a_later_start_is_told(matrices, monkeypatch):
    """Of its search, or of the guess that it would begin with: the starts before it are kept."""
    for within_guess in (False, True):
        calls = []

        def interrupted(objective, start, solver, calls=calls, within_guess=within_guess, **options):
            guess = solver == "lbfgs"
            calls.append(guess)
            solution = partita.minimize(objective, start, solver, **options)
            last = calls.count(guess) == 2 and guess == within_guess
            return replace(solution, status=partita.Status.INTERRUPTED) if last else solution

        monkeypatch.setattr("partita.estimators.restarts.minimize", interrupted)
        with pytest.warns(partita.ConvergenceWarning, match="interrupted"):
            model = HiddenChainCRF(2, n_init=3, random_state=0).fit(matrices, LABELS)
        assert model.status_ is partita.Status.INTERRUPTED
        assert np.isnan(model.objectives_).tolist() == [False, within_guess, True]
        assert np.nanmin(model.objectives_) == model.trace_.objective[-1]


def test_an_interrupt_of_the_first_guess_changes_nothing(matrices, monkeypatch):
    model = HiddenChainCRF(2, random_state=0).fit(matrices, LABELS)
    before = dict(vars(model))

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(partita.LBFGS, "advance", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(matrices, LABELS)
    assert vars(model) == before


def test_verbose_tells_starts_apart(matrices, capsys):
    HiddenChainCRF(2, n_init=2, verbose=2, random_state=0).fit(matrices, LABELS)
    shown = capsys.readouterr().err
    assert "start 1 of 2, " in shown
    assert "start 2 of 2, " in shown

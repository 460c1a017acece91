"""Classes that are known in part, class weights, the k best classes, and draws."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

from partita import ConvergenceWarning, HiddenChainCRF, LatentSoftmax, SoftmaxRegression
from partita.core.results import Status

rng = np.random.default_rng(3)
X = rng.standard_normal((60, 3))
Y = (X @ rng.standard_normal((3, 3)) + rng.gumbel(size=(60, 3))).argmax(axis=1)
SETS = [{int(c), int(c + 1) % 3} if i % 4 == 0 else None if i % 7 == 0 else int(c) for i, c in enumerate(Y)]
ALLOWED = np.array([[y is None or c == y or (isinstance(y, set) and c in y) for c in range(3)] for y in SETS])
KEPT = np.array([not isinstance(y, set) and y is not None for y in SETS])


def objective(theta, l2, prior, weights, X=X):
    W = theta.reshape(3, 4)
    s = X @ W[:, :3].T + W[:, 3] + np.log(prior)
    inside = logsumexp(np.where(ALLOWED, s, -np.inf), axis=1)
    return float(weights @ (logsumexp(s, axis=1) - inside)) + 0.5 * l2 * float((W[:, :3] ** 2).sum())


def slopes(theta, *rest):
    moves = 1e-5 * np.eye(len(theta))
    return np.array([(objective(theta + m, *rest) - objective(theta - m, *rest)) / 2e-5 for m in moves])


def flat(model):
    return np.column_stack([model.coef_, model.intercept_]).ravel()


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "majorize", "em"])
def test_sets_of_classes_are_summed_over(solver):
    prior, weights = np.array([0.5, 1.0, 2.0]), 1.0 + np.arange(60) % 3
    model = SoftmaxRegression(l2=0.5, prior=prior, solver=solver, tol=1e-8).fit(X, SETS, weights)
    value = objective(flat(model), 0.5, prior, weights)
    assert model.trace_.objective[-1] == pytest.approx(value, rel=1e-10)
    assert np.abs(slopes(flat(model), 0.5, prior, weights)).max() < 1e-4  # finite differences of a value near 100
    expected = np.where(ALLOWED, model.predict_proba(X), 0.0).sum(axis=1)
    assert np.allclose(model.log_likelihood(X, SETS), np.log(expected))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"l1": 0.5, "l2": 0.1}])
def test_examples_of_unknown_class_say_nothing(n_classes, options):
    y = np.minimum(Y, n_classes - 1)
    known = np.arange(60) % 3 > 0
    given = [int(c) if k else None for c, k in zip(y, known, strict=True)]
    options = {"tol": 1e-9, **options}
    weights = {"class_weight": dict(enumerate(known.sum() / (n_classes * np.bincount(y[known]))))}
    alone = SoftmaxRegression(**{**options, **(weights if "class_weight" in options else {})}).fit(X[known], y[known])
    model = SoftmaxRegression(**{**options, **(weights if "class_weight" in options else {})}).fit(X, given)
    assert np.allclose(flat(model), flat(alone), atol=1e-5)
    assert model.status_ is Status.CONVERGED


def test_balanced_weights_count_shares_of_sets():
    shares = ALLOWED / ALLOWED.sum(axis=1, keepdims=True)
    by_class = 60 / (3 * shares.sum(axis=0))
    weights = shares @ by_class
    one = SoftmaxRegression(class_weight="balanced", tol=1e-9).fit(X, SETS)
    other = SoftmaxRegression(tol=1e-9).fit(X, SETS, weights)
    assert np.allclose(flat(one), flat(other), atol=1e-6)


def test_sets_with_an_l1_penalty_end_at_a_stationary_point():
    model = SoftmaxRegression(l1=2.0, l2=0.1, tol=1e-8).fit(X, SETS)
    gradient = slopes(flat(model), 0.1, np.ones(3), np.ones(60)).reshape(3, 4)
    slope, coef = gradient[:, :3], model.coef_
    assert (coef == 0.0).any()
    assert np.allclose(slope[coef != 0.0], -2.0 * np.sign(coef[coef != 0.0]), atol=1e-4)
    assert np.abs(slope[coef == 0.0]).max() <= 2.0 + 1e-4
    assert np.abs(gradient[:, 3]).max() < 1e-4


def test_sets_that_are_separated_are_told():
    rows = np.array([[-1.0], [-0.9], [0.0], [0.1], [1.0], [1.2]])
    given = [{"a", "b"}, "a", "b", "b", "c", {"c", "b"}]
    with pytest.warns(ConvergenceWarning, match="the classes are separated"):
        model = SoftmaxRegression(l2=0.0, fit_intercept=True).fit(np.hstack([rows, rows**2]), given)
    assert model.status_ is Status.UNBOUNDED


def test_a_set_of_impossible_classes_is_refused_before_work():
    with pytest.raises(ValueError, match="positive prior"):
        SoftmaxRegression(prior=[0.0, 0.0, 1.0]).fit(X, [{0, 1} if i % 2 else 2 for i in range(60)])


@pytest.mark.parametrize("made", [SoftmaxRegression(l2=0.1), LatentSoftmax(l2=0.1, random_state=0)])
def test_k_best_classes_are_the_largest_probabilities(made):
    model = made.fit(X, np.array(["a", "b", "c"])[Y])
    P = model.predict_proba(X)
    for k in (1, 2, 5):
        for p, found in zip(P, model.predict_kbest(X, k), strict=True):
            assert [label for label, _ in found] == model.classes_[np.argsort(-p)][:k].tolist()
            assert np.allclose([value for _, value in found], np.log(np.sort(p)[::-1][:k]))


def words():
    return [[[letter] for letter in word] for word in ("aabb", "ab", "aab", "bbaa", "ba", "baa", "abc", "cc")]


@pytest.mark.parametrize(
    ("made", "data"),
    [
        (SoftmaxRegression(l2=1.0), (X, Y)),
        (LatentSoftmax(l2=1.0, random_state=0), (X, Y)),
        (HiddenChainCRF(n_hidden=2, random_state=0), (words(), [0, 0, 0, 1, 1, 1, 2, 2])),
    ],
)
def test_draws_have_the_probabilities_of_the_classes(made, data):
    model = made.fit(*data)
    rows = data[0][:4]
    drawn = model.sample(rows, 20_000, random_state=5)
    assert drawn.shape == (4, 20_000)
    assert np.array_equal(drawn, model.sample(rows, 20_000, random_state=5))
    for p, labels in zip(model.predict_proba(rows), drawn, strict=True):
        assert chisquare(np.bincount(labels, minlength=3), 20_000 * p).pvalue > 1e-3


def test_impossible_classes_are_neither_listed_nor_drawn():
    model = SoftmaxRegression(prior=[1.0, 1.0, 0.0]).fit(X, [int(min(c, 1)) if i else {0, 2} for i, c in enumerate(Y)])
    assert all(len(found) == 2 for found in model.predict_kbest(X, 3))
    assert model.sample(X, 200, random_state=0).max() == 1


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (lambda **o: LatentSoftmax(random_state=0, **o), (X, SETS)),
        (lambda **o: HiddenChainCRF(n_hidden=2, random_state=0, **o), (words(), [0, 0, {0, 1}, 1, 1, None, 2, 2])),
    ],
)
def test_class_weights_are_weights_of_examples(make, data):
    by_class = {0: 1.0, 1: 3.0, 2: 0.5}
    sets = [{0, 1, 2} if y is None else y if isinstance(y, set) else {y} for y in data[1]]
    weights = [np.mean([by_class[c] for c in y]) for y in sets]
    one, other = make(class_weight=by_class).fit(*data), make().fit(*data, sample_weight=weights)
    assert np.allclose(one.predict_log_proba(data[0]), other.predict_log_proba(data[0]))
    with pytest.raises(ValueError, match="class_weight must be"):
        make(class_weight="equal").fit(*data)
    with pytest.raises(ValueError, match="class_weight must be"):
        make(class_weight=3).fit(*data)

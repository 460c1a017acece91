"""Certificates, bounds and errors of learning by best configurations, where they once were wrong."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from partita import OracleCRF
from partita.inference import Answer, GroupEntropy, IndependentEntropy, PartGroup, Parts, infer_parts
from partita.matching.engines.frank_wolfe import matching_frank_wolfe
from partita.structures import BipartiteMatching

SUBSETS = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
AT_MOST_TWO = SUBSETS[SUBSETS.sum(1) <= 2]
PAIRS = SUBSETS[SUBSETS.sum(1) == 2]


def best_of(every):
    return lambda s: every[np.argmax(every @ s)]


@pytest.mark.parametrize("scores", [np.zeros(4), np.array([5.0, 4.0, 3.0, 2.0])])
def test_at_most_b_upper_bound(scores):
    found = infer_parts(Parts(4, best_of(AT_MOST_TWO)), scores, GroupEntropy(4, [PartGroup(np.arange(4), 2)], 1.0))
    assert found.upper[0] >= logsumexp(AT_MOST_TWO @ scores) - 1e-9


def test_at_most_b_certificate_of_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 2, 4))
    y = [AT_MOST_TWO[np.argmax(AT_MOST_TWO @ (2 * x[0] + 3) + rng.gumbel(size=len(AT_MOST_TWO)))] for x in X]
    model = OracleCRF(best_of(AT_MOST_TWO), "bethe", groups=[PartGroup(np.arange(4), 2)], tol=1e-6).fit(X, y)
    t = model.parameters_  # one group with rho = 1 has the exact entropy
    F = sum(logsumexp(AT_MOST_TWO @ (t @ x)) - t @ x @ r for x, r in zip(X, y, strict=True)) + 0.5 * t @ t
    assert model.trace_.objective[-1] + 1e-6 >= F


@pytest.mark.parametrize("slack", [1e-3, 1e-4, 1e-6])
def test_entropy_of_nearly_full_groups(slack):
    t = np.array([0.9, 0.5, 0.4, 0.2])
    t *= (2 - slack) / t.sum()
    C, w = AT_MOST_TWO, np.log(t / (1 - t)) + np.log(1 / slack) / 2
    for _ in range(500):  # damped Newton
        p = np.exp(C @ w - logsumexp(C @ w))
        m = p @ C
        d = np.linalg.solve((C * p[:, None]).T @ C - np.outer(m, m), t - m)
        w = w + d * min(1.0, 1.0 / np.abs(d).max())
    true = logsumexp(C @ w) - t @ w
    assert GroupEntropy(4, [PartGroup(np.arange(4), 2)], 1.0).value(t) == pytest.approx(true, abs=1e-9)


def test_all_subsets_inference():
    scores = np.array([0.3, 0.6, 0.9, 0.1])
    found = infer_parts(Parts(4, lambda s: s > 0), scores, IndependentEntropy())
    assert found.log_z[0] == pytest.approx(np.log1p(np.exp(scores)).sum(), abs=1e-5)


def test_all_subsets_predict_marginals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2, 4))
    y = [x[0] + rng.logistic(size=4) > 0 for x in X]
    OracleCRF(lambda s: s > 0).fit(X, y).predict_marginals(X)


def test_refit_with_one_entropy_object_is_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2, 4))
    y = [best_of(PAIRS)(x[0] + rng.gumbel(size=4)) for x in X]
    model = OracleCRF(best_of(PAIRS), GroupEntropy(4, [PartGroup(np.arange(4), 2, True)]))
    a, b = (model.fit(X, y).parameters_ for _ in range(2))
    np.testing.assert_array_equal(a, b)


class Lazy:
    polytope, delta, name = "exact", 0.5, "lazy"

    def __init__(self, every):
        self.every = every

    def __call__(self, s):
        v = self.every @ s
        ok = np.flatnonzero(v >= v.max() - 0.5)
        k = ok[np.argmin(v[ok])]
        return Answer(self.every[k], float(v[k]), "exact", 0.5)


def test_delta_of_answers_counts_parts():
    rng = np.random.default_rng(0)
    s = rng.normal(size=4)
    found = infer_parts(Parts(4, Lazy(PAIRS)), s, IndependentEntropy())
    best = infer_parts(Parts(4, best_of(PAIRS)), s, IndependentEntropy())
    assert found.log_z[0] + found.gap[0] >= best.log_z[0] - 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_delta_of_answers_counts_matching(seed):
    every = np.array([np.eye(3)[list(p)].ravel() for p in itertools.permutations(range(3))])
    w = 2 * np.random.default_rng(seed).normal(size=(1, 9))
    good = matching_frank_wolfe(BipartiteMatching(3), w, 0.5)
    lazy = matching_frank_wolfe(BipartiteMatching(3), w, 0.5, Lazy(every))
    assert lazy.log_z[0] + lazy.gap[0] >= good.log_z[0] - 1e-5


def test_groups_that_configurations_do_not_obey():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2, 4))
    y = [best_of(PAIRS)(x[0] + rng.gumbel(size=4)) for x in X]
    with pytest.raises(ValueError, match="has 2 parts of groups"):
        OracleCRF(best_of(PAIRS), "bethe", groups=[[0, 1, 2, 3]]).fit(X, y)


def test_answers_of_integer_programs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2, 4))
    y = [best_of(PAIRS)(x[0] + rng.gumbel(size=4)) for x in X]
    OracleCRF(lambda s: best_of(PAIRS)(s) * (1 - 1e-10)).fit(X, y)

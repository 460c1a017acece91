"""Dependency parsing: the likelihood against enumeration, and what the estimator takes and refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize
from sklearn.base import clone

import partita as pt
from partita.structures import DependencyTrees, SpanningTree
from partita.tree import PairFeatures, TreeLikelihood

WORDS = [["the", "cat", "sat"], ["a", "cat", "saw", "a", "dog"], ["dogs", "sat"], ["run"]]
HEADS = [[2, 3, 0], [2, 3, 0, 5, 3], [2, 0], [0]]
TAGS = {"the": "D", "a": "D", "cat": "N", "dog": "N", "dogs": "N", "sat": "V", "saw": "V", "run": "V"}
TOKENS = [[{"form": w, "upos": TAGS[w]} for w in sentence] for sentence in WORDS]


def problem(rng, single_root=True, dense=True, lengths=(3, 2, 4)):
    trees = DependencyTrees(lengths, single_root)
    A = rng.standard_normal((trees.n_pairs, 4)) * (rng.random((trees.n_pairs, 4)) < 0.7)
    features = PairFeatures(A if dense else sp.csr_matrix(A), trees.offsets)
    heads = trees.sample(np.zeros(trees.n_pairs), 1, 0)[0]
    objective = TreeLikelihood(features, trees, heads, weights=[1.0, 0.5, 2.0], penalty=0.3)
    return objective, A, heads


def enumerated(theta, objective, A, heads):
    """The objective by a list of all trees of each sentence."""
    trees, value = objective.structure, 0.15 * float(theta @ theta)
    for i, n in enumerate(trees.lengths.tolist()):
        rows = slice(int(trees.offsets[i]), int(trees.offsets[i + 1]))
        own = SpanningTree(n + 1, directed=True, single_root=trees.single_root)
        pairs = [tuple(pair) for pair in trees.pairs()[rows].tolist()]
        order = [pairs.index(tuple(edge)) for edge in own.edges.tolist()]
        scores = own.enumerate() @ (A[rows] @ theta)[order]
        chosen = [pairs.index((h, d + 1)) for d, h in enumerate(heads[trees.word_offsets[i] :][:n].tolist())]
        value += objective.weights[i] * (np.logaddexp.reduce(scores) - (A[rows] @ theta)[chosen].sum())
    return value


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("single_root", [True, False])
def test_the_likelihood_is_that_of_all_trees(rng, single_root, dense):
    objective, A, heads = problem(rng, single_root, dense)
    theta = rng.standard_normal(4)
    np.testing.assert_allclose(objective.at(theta).value, enumerated(theta, objective, A, heads), rtol=1e-12)


def test_derivatives_are_those_of_finite_differences(rng):
    objective, _, _ = problem(rng)
    theta, v, h = rng.standard_normal(4), rng.standard_normal(4), 1e-5
    ahead, behind = objective.at(theta + h * v), objective.at(theta - h * v)
    point = objective.at(theta)
    np.testing.assert_allclose(point.gradient @ v, (ahead.value - behind.value) / (2 * h), rtol=1e-8)
    np.testing.assert_allclose(
        point.hessian_product()(v), (ahead.gradient - behind.gradient) / (2 * h), rtol=1e-7, atol=1e-8
    )
    assert point.gap >= point.value - pt.minimize(objective, tol=1e-10).value - 1e-9


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "cg"])
def test_solvers_find_the_maximum_of_the_enumerated_likelihood(rng, solver):
    objective, A, heads = problem(rng)
    found = pt.minimize(objective, solver=solver, tol=1e-9)
    reference = scipy_minimize(enumerated, np.zeros(4), (objective, A, heads), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(found.parameters, reference.x, atol=1e-5)


@pytest.mark.parametrize("X", [WORDS, TOKENS], ids=["strings", "dicts"])
def test_a_parser_learns_its_sentences(X):
    model = pt.DependencyCRF(l2=0.1).fit(X, HEADS)
    assert model.status_ is pt.Status.CONVERGED
    assert [heads.tolist() for heads in model.predict(X)] == HEADS
    assert model.score(X, HEADS) == 1.0
    for table, n in zip(model.predict_marginals(X), map(len, X), strict=True):
        assert table.shape == (n + 1, n + 1)
        np.testing.assert_allclose(table.sum(0), [0.0] + [1.0] * n, atol=1e-12)
        np.testing.assert_allclose(table[0].sum(), 1.0, atol=1e-12)  # one word at the root
    assert len(model.attributes_) == len(model.parameters_)


def test_a_new_word_is_attached_by_its_tag():
    model = pt.DependencyCRF(l2=0.1).fit(TOKENS, HEADS)
    new = [[{"form": "this", "upos": "D"}, {"form": "ox", "upos": "N"}, {"form": "ran", "upos": "V"}]]
    assert model.predict(new)[0].tolist() == [2, 3, 0]
    assert "head upos=N & dependent upos=D" in model.attributes_


def test_numbers_in_three_forms_are_one_model(rng):
    lengths = [len(sentence) for sentence in WORDS]
    cubes = [rng.standard_normal((n + 1, n + 1, 3)) for n in lengths]
    rows = [cube[tuple(DependencyTrees([n]).pairs().T)] for cube, n in zip(cubes, lengths, strict=True)]
    fits = [pt.DependencyCRF(tol=1e-9).fit(X, HEADS) for X in (cubes, rows, [sp.csr_matrix(part) for part in rows])]
    for other in fits[1:]:
        np.testing.assert_allclose(other.parameters_, fits[0].parameters_, rtol=1e-6)
    np.testing.assert_allclose(fits[0].log_likelihood(cubes, HEADS), fits[1].log_likelihood(rows, HEADS), rtol=1e-6)


def test_samples_have_the_shares_of_the_marginals():
    model = pt.DependencyCRF(l2=2.0).fit(WORDS, HEADS)
    (drawn,) = model.sample(WORDS[:1], 4000, random_state=0)
    (table,) = model.predict_marginals(WORDS[:1])
    shares = np.array([[np.mean(drawn[:, d] == h) for d in range(3)] for h in range(4)])
    np.testing.assert_allclose(shares, table[:, 1:], atol=0.03)


def test_decoding_by_marginals_is_the_best_tree_of_these():
    model = pt.DependencyCRF(l2=2.0, decoding="marginals").fit(WORDS, HEADS)
    for heads, table in zip(model.predict(WORDS), model.predict_marginals(WORDS), strict=True):
        n = len(heads)
        trees = DependencyTrees([n])
        value = lambda h, t=table: sum(t[head, d + 1] for d, head in enumerate(h))  # noqa: E731
        every = [h for h in np.ndindex(*(n + 1,) * n) if _is_tree(trees, h)] if n <= 3 else []
        assert all(value(heads) >= value(other) - 1e-12 for other in every)


def _is_tree(trees, heads):
    try:
        trees.trees(np.array(heads))
    except ValueError:
        return False
    return True


def test_threads_files_copies_and_weights(tmp_path):
    one, two = (pt.DependencyCRF(n_jobs=jobs).fit(TOKENS, HEADS) for jobs in (1, 2))
    np.testing.assert_array_equal(one.parameters_, two.parameters_)
    one.save(tmp_path / "model")
    for other in (pt.load(tmp_path / "model"), pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(other.log_likelihood(TOKENS, HEADS), one.log_likelihood(TOKENS, HEADS))
        assert other.attributes_ == one.attributes_
    assert clone(one).get_params() == one.get_params()
    twice = pt.DependencyCRF(tol=1e-9).fit(TOKENS * 2, HEADS * 2)
    heavy = pt.DependencyCRF(tol=1e-9).fit(TOKENS, HEADS, sample_weight=[2.0] * 4)
    np.testing.assert_allclose(heavy.parameters_, twice.parameters_, atol=1e-6)
    again = one.set_params(warm_start=True).fit(TOKENS, HEADS)
    assert again.n_iter_ <= 1


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        ([["a", "b"]], [[2, 1]], "has a cycle"),
        ([["a", "b"]], [[0, 0]], "2 words have the root as head"),
        ([["a", "b"]], [[0, 3]], "heads from 0"),
        ([["a", "b"]], [[0]], "must have 2 heads"),
        ([["a", "b"]], [[0, 1], [0]], "heads of 1 sentences"),
        ([[]], [[]], "at least one"),
        ([[3, 4]], [[0, 1]], "tokens are strings, or dicts"),
        ("a b", [[0, 1]], "list of sentences"),
        ([np.zeros((3, 4, 2))], [[0, 1]], "must have shape"),
        ([np.full((3, 3, 2), np.nan)], [[0, 1]], "finite"),
    ],
)
def test_what_is_no_tree_or_no_sentence_is_refused(X, y, text):
    model = pt.DependencyCRF()
    with pytest.raises(ValueError, match=text):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_model_of_tokens_wants_tokens():
    model = pt.DependencyCRF().fit(TOKENS, HEADS)
    with pytest.raises(ValueError, match="X must be tokens"):
        model.predict([np.zeros((3, 3, 2))])
    with pytest.warns(pt.DataWarning, match="no token with 'upos'"):
        model.predict(WORDS)

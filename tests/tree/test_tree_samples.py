"""Trees drawn at random against their probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare
from tree_cases import Case, exact

from partita import NumericalError
from partita.tree import DependencyTrees, SpanningTree
from partita.tree.kernels import draws
from partita.tree.structure import sums

KINDS = ("undirected", "directed", "single")


def spanning(n, kind, root=0):
    return SpanningTree(n, directed=kind != "undirected", root=root, single_root=kind == "single")


def p_value(structure, potentials, Y):
    """Of a chi-squared test of drawn trees against their probabilities, rare trees taken together."""
    expected = exact(Case(structure, potentials, np.zeros(structure.n_edges)))
    number = {tuple(y): k for k, y in enumerate(expected.trees.tolist())}
    counts = np.bincount([number[tuple(y)] for y in Y.tolist()], minlength=len(number)).astype(float)
    often = expected.probabilities * len(Y) >= 5.0
    seen, due = counts[often], expected.probabilities[often] * len(Y)
    if not often.all():
        seen, due = np.append(seen, counts[~often].sum()), np.append(due, len(Y) - due.sum())
    if due[-1] < 1.0:  # nothing is rare enough to matter
        assert seen[-1] < 10.0
        seen, due = seen[:-1], due[:-1] * seen[:-1].sum() / due[:-1].sum()
    return 1.0 if len(seen) == 1 else chisquare(seen, due).pvalue


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("few_steps", [10_000, -(4**3)], ids=["walks", "sums"])
def test_draws_have_the_probabilities_of_trees(kind, few_steps, monkeypatch, rng):
    """By walks, and by sums where no walk is allowed a step."""
    monkeypatch.setattr(sums, "FEW_STEPS", few_steps)
    structure = spanning(4, kind, root=2)
    s = 1.5 * rng.standard_normal(structure.n_edges)
    Y = structure.sample(s, 20_000, random_state=1)
    assert p_value(structure, s, Y) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_giving_up_walks_is_no_bias(kind, monkeypatch, rng):
    """The number of steps is independent of the tree: here all walks with a loop are given up."""
    structure, least = spanning(4, kind), 2 if kind == "single" else 3
    s = rng.standard_normal(structure.n_edges)
    cumulative, target = draws.prepare(structure.graphs(1), s, 0).sums, int(kind == "single")
    heads = np.zeros(4, np.int64)
    done = [draws.walk(cumulative, target, 0, np.uint64(100 * q), least, heads) for q in range(300)]
    assert 0.1 < np.mean(done) < 0.9
    monkeypatch.setattr(sums, "FEW_STEPS", least - 4**3)
    assert p_value(structure, s, structure.sample(s, 20_000, random_state=2)) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weak", [-30.0, -1000.0])
def test_walks_that_would_take_forever(kind, weak, rng):
    structure = spanning(4, kind)
    S = weak + rng.standard_normal((4, 4))
    S[1:3, 1:3] = 0.0
    s = structure.edge_values(S)
    assert p_value(structure, s, structure.sample(s, 3_000, random_state=3)) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_forbidden_edges_are_never_drawn(kind, rng):
    structure = spanning(5, kind)
    s = rng.standard_normal(structure.n_edges)
    s[structure.enumerate()[7] == 0] = np.where(rng.random(len(s) - 4) < 0.5, -np.inf, 0.0)
    Y = structure.sample(s, 5_000, random_state=4)
    assert (Y[:, s == -np.inf] == 0).all()
    assert p_value(structure, s, Y) > 1e-3


def test_the_only_vertex_that_has_no_other_head_is_below_the_root():
    structure = SpanningTree(4, [(0, 1), (0, 2), (1, 2), (2, 3), (1, 3), (3, 2)], directed=True, single_root=True)
    Y = structure.sample(np.zeros(6), 400, random_state=0)
    assert (structure.heads(Y)[:, 1] == 0).all()
    assert p_value(structure, np.zeros(6), Y) > 1e-3


def test_shapes_seeds_and_examples(rng):
    structure = SpanningTree(4, directed=True)
    S = rng.standard_normal((3, 9))
    Y = structure.sample(S, 50, random_state=5)
    assert Y.shape == (50, 3, 9)
    assert Y.dtype == np.int8
    np.testing.assert_array_equal(Y, structure.sample(S, 50, random_state=5))
    assert (structure.sample(S, 50, random_state=6) != Y).any()
    assert (structure.sample(S[0], 50, random_state=5) == Y[:, 0]).all()
    for b in range(3):
        structure.score(S[b], Y[:, b])
    assert structure.sample(S, 0, random_state=5).shape == (0, 3, 9)


def test_draws_of_sentences_are_trees_with_their_probabilities(rng):
    trees = DependencyTrees([3, 1, 20, 3])
    s = rng.standard_normal(trees.n_pairs)
    heads = trees.sample(s, 4_000, random_state=7)
    assert heads.shape == (4_000, 27)
    for row in heads[:50]:
        trees.trees(row)
    pairs = np.array([trees.chosen(row) for row in heads])
    shares = np.bincount(pairs.ravel(), minlength=trees.n_pairs) / len(heads)
    p = trees.infer(s).marginals
    assert (np.abs(shares - p) <= 5.0 * np.sqrt(p * (1.0 - p) / len(heads)) + 2e-3).all()


def test_bits_of_draws_do_not_depend_on_threads(rng):
    s = rng.standard_normal(190)
    drawn = [SpanningTree(20, n_jobs=n_jobs).sample(s, 2_000, random_state=8) for n_jobs in (1, 2, 3)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])


def test_a_draw_that_fails_is_an_error(monkeypatch):
    monkeypatch.setattr(draws, "sample", lambda *_: 1)
    with pytest.raises(NumericalError, match="a tree could not be drawn"):
        SpanningTree(3).sample(np.zeros(3), 2)


def test_counted_numbers_are_uniform():
    u = np.array([draws.uniform(9, np.uint64(k)) for k in range(20_000)])
    assert 0.0 <= u.min() <= u.max() < 1.0
    assert chisquare(np.histogram(u, 50, (0.0, 1.0))[0]).pvalue > 1e-3

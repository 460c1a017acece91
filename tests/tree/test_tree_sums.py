"""Sums over trees against enumeration in sixty digits, closed forms, and determinants."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from tree_cases import Case, cases, exact

from partita.tree import DependencyTrees, SpanningTree
from partita.tree.kernels import sums as kernels
from partita.tree.kernels.arborescence import best
from partita.tree.kernels.checks import edge_sets, head_vectors
from partita.tree.kernels.draws import sample


@settings(max_examples=200)
@given(cases())
def test_sums_are_those_of_enumeration_to_the_last_digits(case):
    """Marginals and their derivatives keep their digits however small they are, also where doubles have no room."""
    expected, structure, s = exact(case), case.structure, case.potentials
    if expected is None:
        with pytest.raises(ValueError, match="potentials forbid every one, or the graph has none"):
            structure.log_partition(s)
        with pytest.raises(ValueError, match=r"there is no (tree with one edge|spanning tree)"):
            structure.infer(s)
        with pytest.raises(ValueError, match="potentials forbid every one, or the graph has none"):
            structure.covariance_product(s, case.direction)
        with pytest.raises(ValueError, match="there is no"):
            structure.sample(s, 1, random_state=0)
        return
    result = structure.infer(s)
    assert result.exact
    assert result.status.ok
    assert result.log_z[0] == pytest.approx(expected.log_z, rel=1e-14, abs=1e-14)
    assert structure.log_partition(s)[0] == pytest.approx(expected.log_z, rel=1e-14, abs=1e-14)
    np.testing.assert_allclose(result.marginals, expected.marginals, rtol=1e-12, atol=1e-30)
    product = structure.covariance_product(s, case.direction)
    room = 1e-12 * expected.marginals * (1.0 + np.abs(case.direction).max()) + 1e-30
    assert (np.abs(product - expected.product) <= room).all()


def clusters(weak):
    """Two pairs and a triple whose edges weigh one, joined by weak ones: the Laplacian is nearly singular."""
    rng = np.random.default_rng(3)
    S = weak + rng.standard_normal((6, 6))
    for group in ([1, 2], [3, 4, 5]):
        S[np.ix_(group, group)] = rng.standard_normal((len(group), len(group)))
    return S


@pytest.mark.parametrize("weak", [-20.0, -45.0, -200.0, -800.0, -3000.0])
@pytest.mark.parametrize("kind", ["undirected", "directed", "single"])
def test_clusters_lose_no_digits(weak, kind, rng):
    structure = SpanningTree(6, directed=kind != "undirected", single_root=kind == "single")
    case = Case(structure, structure.edge_values(clusters(weak)), rng.standard_normal(structure.n_edges))
    expected, result = exact(case), structure.infer(case.potentials)
    np.testing.assert_allclose(result.log_z, expected.log_z, rtol=1e-14)
    np.testing.assert_allclose(result.marginals, expected.marginals, rtol=1e-13, atol=1e-30)
    product = structure.covariance_product(case.potentials, case.direction)
    assert (np.abs(product - expected.product) <= 1e-12 * expected.marginals + 1e-30).all()


def test_a_determinant_would_lose_them():
    """The usual formulas on the same weights: what the elimination without subtractions is for."""
    structure = SpanningTree(6, directed=True)
    s = structure.edge_values(clusters(-45.0))
    expected = exact(Case(structure, s, np.zeros_like(s)))
    W = np.zeros((6, 6))
    W[structure.edges[:, 1], structure.edges[:, 0]] = np.exp(s)
    G = np.linalg.inv((np.diag(W.sum(1)) - W)[1:, 1:])
    head, dependent = structure.edges.T
    inverse = np.zeros((6, 6))
    inverse[1:, 1:] = G
    usual = np.exp(s) * (inverse[dependent, dependent] - inverse[head, dependent])
    assert np.abs(usual - expected.marginals).max() > 1e-3
    assert np.abs(structure.infer(s).marginals - expected.marginals).max() < 1e-14


@pytest.mark.parametrize("n", range(1, 9))
def test_cayley(n):
    np.testing.assert_allclose(SpanningTree(n).log_partition(np.zeros(n * (n - 1) // 2)), (n - 2) * np.log(n), atol=1e-13)
    if n < 7:
        assert len(SpanningTree(n).enumerate()) == max(1, round(n ** (n - 2)))


@pytest.mark.parametrize("n", range(1, 8))
def test_numbers_of_dependency_trees(n):
    """(n + 1)^(n - 1) over n words, and n^(n - 1) with one at the root."""
    zeros = np.zeros(n * n)
    many, one = (DependencyTrees([n], single_root=single).log_partition(zeros) for single in (False, True))
    np.testing.assert_allclose(many, (n - 1) * np.log(n + 1), atol=1e-13)
    np.testing.assert_allclose(one, (n - 1) * np.log(n), atol=1e-13)


def test_trees_of_complete_bipartite_graphs():
    a, b = 4, 7
    edges = [(i, a + j) for i in range(a) for j in range(b)]
    expected = (b - 1) * np.log(a) + (a - 1) * np.log(b)
    np.testing.assert_allclose(SpanningTree(a + b, edges).log_partition(np.zeros(a * b)), expected, rtol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 64, 101])
@pytest.mark.parametrize("single", [False, True])
def test_larger_graphs_against_determinants(n, single, rng):
    """Koo et al. (2007): with one word at the root, the first row of the Laplacian holds the root's weights."""
    trees = DependencyTrees([n], single_root=single)
    s = rng.standard_normal(n * n)
    W = np.zeros((n + 1, n + 1))
    head, dependent = trees.pairs().T
    W[dependent, head] = np.exp(s)
    L = np.diag(W[1:, 1:].sum(1)) - W[1:, 1:]
    if single:
        L[:, 0] = W[1:, 0]
    else:
        L += np.diag(W[1:, 0])
    sign, expected = np.linalg.slogdet(L)
    assert sign == 1.0
    np.testing.assert_allclose(trees.log_partition(s), expected, rtol=1e-12, atol=1e-12)
    marginals = trees.infer(s).marginals
    np.testing.assert_allclose(np.bincount(dependent, marginals)[1:], 1.0, rtol=1e-13)
    if single:
        assert marginals[head == 0].sum() == pytest.approx(1.0, rel=1e-12)


def inverse_and_determinant(A):
    """Of a matrix of Decimals, by Gauss-Jordan elimination."""
    n, det = len(A), Decimal(1)
    rows = [[*row, *(Decimal(int(i == j)) for j in range(n))] for i, row in enumerate(A)]
    for k in range(n):
        top = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[top] = rows[top], rows[k]
        pivot = rows[k][k]
        det *= abs(pivot)
        rows[k] = [value / pivot for value in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [value - factor * own for value, own in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows], det


def by_determinants(trees, s, digits):
    """log Z and marginals of one sentence from its Laplacian; of trees with one word at the root as Koo et al. (2007) do.

    Weights have sixty digits, what is computed from them more.
    """
    head, dependent = trees.pairs().T
    n, single = trees.n_words, trees.single_root
    w = np.full((n + 1, n + 1), Decimal(0))
    with localcontext() as context:
        context.prec = 60
        w[dependent, head] = [Decimal(float(x)).exp() for x in s]
        context.prec = digits
        L = np.diag(w[1:, int(single) :].sum(1)) - w[1:, 1:]
        if single:
            L[:, 0] = w[1:, 0]
        inverse, det = inverse_and_determinant(L.tolist())
        G = np.full((n + 1, n + 1), Decimal(0))
        G[1:, 1:] = inverse
        root = G[1].copy() if single else G.diagonal()
        if single:  # column 1 of L has the root's weights and no others
            G[1] = Decimal(0)
        slopes = np.where(head == 0, root[dependent], G[dependent, dependent] - G[head, dependent])
        marginals = (w[dependent, head] * slopes).astype(np.float64)
        context.prec = 60
        return float((+det).ln()), marginals


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("weak", [0.0, -40.0, -300.0])
def test_graphs_too_large_for_enumeration(weak, single, rng):
    """Clusters joined by weak edges, and Laplacians with so many digits that no subtraction hurts."""
    trees = DependencyTrees([13], single_root=single)
    head, dependent = trees.pairs().T
    s = 3.0 * rng.standard_normal(13 * 13) + np.where((head % 4 == dependent % 4) & (head > 0), 0.0, weak)
    log_z, marginals = by_determinants(trees, s, 2_000)
    np.testing.assert_allclose(trees.log_partition(s), log_z, rtol=1e-14)
    np.testing.assert_allclose(trees.infer(s).log_z, log_z, rtol=1e-14)
    np.testing.assert_allclose(trees.infer(s).marginals, marginals, rtol=1e-12, atol=1e-30)


def test_covariances_are_those_of_the_transfer_current_theorem(rng):
    structure = SpanningTree(7, directed=True)
    s, v = rng.standard_normal(structure.n_edges), rng.standard_normal(structure.n_edges)
    head, dependent = structure.edges.T
    W = np.zeros((7, 7))
    W[dependent, head] = np.exp(s)
    G = np.zeros((7, 7))
    G[1:, 1:] = np.linalg.inv((np.diag(W.sum(1)) - W)[1:, 1:])
    K = np.exp(s)[:, None] * (G[np.ix_(dependent, dependent)] - G[np.ix_(head, dependent)])
    np.testing.assert_allclose(structure.covariance_product(s, v), v * np.diag(K) - (K * K.T) @ v, atol=1e-13)


@pytest.mark.parametrize("weak", [-1.0, -250.0, -900.0])
def test_products_are_linear_in_large_directions(weak, rng):
    structure = SpanningTree(6, directed=True)
    s, v = structure.edge_values(clusters(weak)), rng.standard_normal(structure.n_edges)
    product = structure.covariance_product(s, v)
    np.testing.assert_allclose(structure.covariance_product(s, 2.0**330 * v), 2.0**330 * product, rtol=1e-14)
    np.testing.assert_allclose(structure.covariance_product(s, np.full_like(v, 1e100)), 0.0, atol=1e87)


@settings(max_examples=30)
@given(cases())
def test_marginals_are_the_gradient(case):
    structure, allowed = case.structure, case.potentials > -np.inf
    s = case.potentials / np.abs(case.potentials[allowed]).max(initial=1.0)
    if exact(case) is None:
        return
    marginals, step = structure.infer(s).marginals, 1e-4
    for e in np.flatnonzero(s > -np.inf):
        shifts = step * np.eye(len(s))[e] * np.array([-2.0, -1.0, 1.0, 2.0])[:, None]
        slope = np.array([1.0, -8.0, 8.0, -1.0]) @ structure.log_partition(s + shifts) / (12.0 * step)
        assert marginals[e] == pytest.approx(slope, abs=1e-10)


def test_the_root_of_undirected_trees_does_not_matter(rng):
    s = 20.0 * rng.standard_normal(15)
    answers = [SpanningTree(6, root=root).infer(s) for root in range(6)]
    for other in answers[1:]:
        np.testing.assert_allclose(other.log_z, answers[0].log_z, rtol=1e-14)
        np.testing.assert_allclose(other.marginals, answers[0].marginals, rtol=1e-12)


def test_rows_are_examples(rng):
    structure = SpanningTree(5, directed=True, root=3)
    S, V = rng.standard_normal((7, 16)), rng.standard_normal((7, 16))
    S[2] *= 1000.0
    together, product = structure.infer(S), structure.covariance_product(S, V)
    assert together.marginals.shape == S.shape
    for b in range(7):
        alone = structure.infer(S[b])
        np.testing.assert_array_equal(together.log_z[b], alone.log_z[0])
        np.testing.assert_array_equal(together.marginals[b], alone.marginals)
        np.testing.assert_array_equal(product[b], structure.covariance_product(S[b], V[b]))
    np.testing.assert_array_equal(structure.covariance_product(S, V[0])[3], structure.covariance_product(S[3], V[0]))


@pytest.mark.parametrize("single", [False, True])
def test_sentences_of_all_lengths_at_once(single, rng):
    lengths = [3, 1, 7, 2, 3, 12]
    trees = DependencyTrees(lengths, single_root=single)
    s, v = 5.0 * rng.standard_normal(trees.n_pairs), rng.standard_normal(trees.n_pairs)
    result, product = trees.infer(s), trees.covariance_product(s, v)
    for i, n in enumerate(lengths):
        own = slice(trees.offsets[i], trees.offsets[i + 1])
        one = SpanningTree(n + 1, directed=True, single_root=single)
        np.testing.assert_array_equal(trees.pairs()[own], one.edges)
        np.testing.assert_array_equal(result.log_z[i], one.infer(s[own]).log_z[0])
        np.testing.assert_array_equal(result.marginals[own], one.infer(s[own]).marginals)
        np.testing.assert_array_equal(product[own], one.covariance_product(s[own], v[own]))
    np.testing.assert_allclose(trees.log_partition(s), result.log_z, rtol=1e-14)


def test_exponents_are_used_where_doubles_have_no_room_and_only_there(rng):
    structure = SpanningTree(6, directed=True)
    S = np.stack([structure.edge_values(clusters(weak)) for weak in (-1.0, -200.0, -400.0)])
    arguments = (structure.graphs(3), S.reshape(-1), np.empty(0), 0, 3, np.empty(3), np.empty(S.size), np.empty(0))
    assert kernels.infer(*arguments) == 1
    assert kernels.log_partitions(*arguments[:2], 0, 3, np.empty(3)) == 1


def test_potentials_may_be_as_large_as_the_door_allows():
    structure = SpanningTree(4, directed=True, single_root=True)
    s = np.zeros(9)
    s[0], s[4] = 1e100, -1e100
    result = structure.infer(s)
    np.testing.assert_allclose(result.log_z, 1e100)
    assert result.marginals[0] == 1.0
    np.testing.assert_allclose(SpanningTree(3).infer([1e100, 1e100, 0.0]).marginals, [1.0, 1.0, 0.0])


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_bits_do_not_depend_on_threads(n_jobs, rng):
    lengths = rng.integers(1, 40, 60)
    one, many = DependencyTrees(lengths, n_jobs=1), DependencyTrees(lengths, n_jobs=n_jobs)
    s, v = 10.0 * rng.standard_normal(one.n_pairs), rng.standard_normal(one.n_pairs)
    np.testing.assert_array_equal(one.log_partition(s), many.log_partition(s))
    np.testing.assert_array_equal(one.infer(s).marginals, many.infer(s).marginals)
    np.testing.assert_array_equal(one.covariance_product(s, v), many.covariance_product(s, v))
    np.testing.assert_array_equal(one.argmax(s)[0], many.argmax(s)[0])
    np.testing.assert_array_equal(one.sample(s, 20, random_state=4), many.sample(s, 20, random_state=4))


def test_kernels_are_compiled_once(rng):
    """Whatever arrays come in: another type would be compiled in every process that meets it."""
    for structure in (SpanningTree(4), SpanningTree(4, [(0, 1), (1, 2), (2, 3)], directed=True), SpanningTree(1)):
        m = structure.n_edges
        frozen = np.zeros(m)
        frozen.flags.writeable = False
        for s in (np.zeros(m, np.float32), np.zeros((2, m), np.int32), np.asfortranarray(np.zeros((3, m))), frozen):
            structure.log_partition(s)
            structure.covariance_product(s, frozen)
            structure.sample(s, 2, random_state=np.random.default_rng(0))
            structure.score(s, structure.argmax(s)[0].astype(bool))
    trees = DependencyTrees(np.array([2, 3], np.uint8), single_root=False)
    trees.score(np.zeros(13), trees.argmax(np.zeros(13))[0].astype(np.int16))
    trees.sample(np.zeros(13), 2)
    for kernel in (kernels.log_partitions, kernels.infer, best, sample, edge_sets, head_vectors):
        assert len(kernel.signatures) == 1, kernel


def test_an_edge_into_the_root_is_in_no_tree(rng):
    structure = SpanningTree(3, [(1, 0), (0, 1), (1, 2), (2, 1), (0, 2)], directed=True)
    s = rng.standard_normal(5)
    marginals = structure.infer(s).marginals
    assert marginals[0] == 0.0
    assert (structure.enumerate()[:, 0] == 0).all()
    np.testing.assert_allclose(marginals[1:], SpanningTree(3, structure.edges[1:], directed=True).infer(s[1:]).marginals)


def test_one_vertex_is_a_tree():
    for directed in (False, True):
        structure = SpanningTree(1, directed=directed)
        result = structure.infer(np.zeros((2, 0)))
        np.testing.assert_array_equal(result.log_z, [0.0, 0.0])
        assert structure.argmax(np.zeros(0))[0].shape == (0,)
        assert structure.sample(np.zeros(0), 3, random_state=0).shape == (3, 0)
        assert structure.enumerate().shape == (1, 0)

"""Every structure whose best output some solver finds: Frank-Wolfe through that solver alone, against exact sums."""

from __future__ import annotations

import numpy as np
import pytest

from partita import ConvergenceWarning, NumericalError
from partita.inference import Answer, IndependentEntropy, Parts, TableEntropy, infer_parts
from partita.structures import Binary, Categorical, Chain, FactorGraph
from partita.tree import DependencyTrees, SpanningTree

N = -np.inf
RNG = np.random.default_rng(5)
GRAPH = FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), (1, 2)])  # no variable has a table of its own
LOOSE = FactorGraph([2, 3, 2], [(0, 1)])  # the last one is in no factor
UNION = FactorGraph.union([FactorGraph([2, 2], [(0, 1)]), FactorGraph([3, 2], [(0, 1), (1,)])])
TREE = SpanningTree(4, directed=True)


def chains(lengths, n=3, forbids=False):
    rng = np.random.default_rng(len(lengths))
    unary, pairwise = rng.standard_normal((sum(lengths), n)), rng.standard_normal((sum(lengths), n, n))
    if forbids:
        unary[0, 1], pairwise[2, 0, 0] = N, N
    return Chain(n, lengths), (unary, pairwise)


def best_path(potentials):
    """Of all labellings, listed."""
    unary, pairwise = potentials
    T, n = unary.shape
    Y = np.indices((n,) * T).reshape(T, -1).T
    scores = unary[np.arange(T), Y].sum(1) + pairwise[np.arange(1, T), Y[:, :-1], Y[:, 1:]].sum(1)
    return Y[np.argmax(scores)]


def best_heads(potentials):
    words = round(np.sqrt(len(potentials)))
    return DependencyTrees([words]).argmax(potentials)[0]


def of_union(potentials):
    graph = FactorGraph([2, 2], [(0, 1)]) if len(potentials) == 4 else FactorGraph([3, 2], [(0, 1), (1,)])
    return graph.argmax(potentials)[0]


#: A structure, potentials, a solver for one example, and whether the entropy is the true one.
CASES = {
    "labels": (Categorical(3), RNG.standard_normal((2, 3)), np.argmax, True),
    "labels with a prior": (Categorical(3, [1, 2, 0.0]), RNG.standard_normal((2, 3)), np.argmax, True),
    "label sets": (Categorical([2, 1, 3]), np.array([0.3, N, 1.0, 2.0, -1.0, 0.0]), np.argmax, True),
    "two labels": (Binary(), np.array([[0.3], [-2.0]]), lambda odds: int(odds[0] > 0.0), True),
    "chains": (*chains([1, 3, 2]), best_path, True),
    "chains with -inf": (*chains([3, 4], 2, True), best_path, True),
    "graph": (GRAPH, RNG.standard_normal(GRAPH.size), lambda s: GRAPH.argmax(s)[0], False),
    "graph, rows": (LOOSE, RNG.standard_normal((2, LOOSE.size)), lambda s: LOOSE.argmax(s)[0], False),
    "union": (UNION, RNG.standard_normal(UNION.size), of_union, False),
    "tree": (TREE, RNG.standard_normal((2, TREE.n_edges)), lambda s: TREE.argmax(s)[0], False),
    "heads": (DependencyTrees([2, 1, 3]), RNG.standard_normal(14), best_heads, False),
    "heads with -inf": (DependencyTrees([3]), np.array([N, 1.0, 2.0, 0.5, 0.1, N, 2.0, 0.5, 0.3]), best_heads, False),
}
cases = pytest.mark.parametrize("name", CASES)


class Counted:
    """A solver as an object."""

    name = "mine"

    def __init__(self, function):
        self.function, self.calls = function, 0

    def argmax(self, potentials):
        self.calls += 1
        return self.function(potentials)


def flat(marginals):
    return np.concatenate([np.ravel(part) for part in (marginals if isinstance(marginals, tuple) else (marginals,))])


@cases
def test_any_solver_gives_what_the_own_one_gives(name):
    structure, potentials, solver, exact = CASES[name]
    truth, own = structure.infer(potentials), structure.infer(potentials, "frank_wolfe", tol=1e-5)
    oracle = Counted(solver)
    for asked in (solver, oracle):
        found = structure.infer(potentials, "frank_wolfe", oracle=asked, tol=1e-5)
        assert found.status.ok
        assert not found.exact
        assert (found.lower <= truth.log_z + 1e-9).all()
        assert (truth.log_z <= found.upper + 1e-9).all()
        np.testing.assert_allclose(found.log_z, own.log_z, atol=2e-5)
        np.testing.assert_allclose(flat(found.marginals), flat(own.marginals), atol=1e-2)
        if exact:  # log Z itself, up to the certificate
            assert (np.abs(found.log_z - truth.log_z) <= found.gap + 1e-9).all()
            np.testing.assert_allclose(flat(found.marginals), flat(truth.marginals), atol=5e-3)
    assert oracle.calls > 0
    np.testing.assert_allclose(
        structure.log_partition(potentials, "frank_wolfe", oracle=solver, tol=1e-5), own.log_z, atol=2e-5
    )


@cases
def test_solvers_that_do_not_find_the_best_are_found_out(name):
    structure, potentials, solver, _ = CASES[name]

    def worst(scores):
        turned = [np.where(part == N, N, -part) for part in (scores if isinstance(scores, tuple) else (scores,))]
        return solver(tuple(turned) if isinstance(scores, tuple) else turned[0])

    with pytest.raises(NumericalError, match="does not find the best configuration"):
        structure.infer(potentials, "frank_wolfe", oracle=worst)


@cases
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, r"nothing"),
        (np.zeros((7, 7)), r"must|answer"),
        (np.nan, r"must|answer|integer"),
        (-5, r"must|answer|outside"),
        ("x", r"must|answer|integer"),
    ],
)
def test_answers_that_are_none_are_named(name, answer, message):
    structure, potentials, _, _ = CASES[name]
    with pytest.raises(ValueError, match=message) as caught:
        structure.infer(potentials, "frank_wolfe", oracle=lambda scores: answer)
    assert "answer" in str(caught.value) or "oracle" in str(caught.value)


@cases
def test_solvers_that_fail_are_named(name):
    structure, potentials, _, _ = CASES[name]

    def broken(scores):
        raise KeyError("no licence")

    with pytest.raises(RuntimeError, match=r"oracle broken failed.*KeyError: 'no licence'"):
        structure.infer(potentials, "frank_wolfe", oracle=broken)
    with pytest.raises(ValueError, match="oracle must be"):
        structure.infer(potentials, "frank_wolfe", oracle=3)


def test_examples_are_named():
    chain, (unary, pairwise) = chains([2, 3])
    with pytest.raises(ValueError, match=r"the answer of oracle mine for sequence 1 is not .*y must be 3 integers"):
        chain.infer((unary, pairwise), "frank_wolfe", oracle=Counted(lambda p: best_path(p)[:2]))


def test_what_is_forbidden_may_not_be_answered_with():
    with pytest.raises(ValueError, match=r"the answer of oracle .* uses what potentials forbid"):
        Categorical(2).infer([[N, 0.0]], "frank_wolfe", oracle=lambda s: 0)
    with pytest.raises(ValueError, match="forbid every labelling of sequence 1"):
        Chain(2, [1, 1]).infer((np.array([[0.0, 0.0], [N, N]]), np.zeros((2, 2))), "frank_wolfe")
    with pytest.raises(ValueError, match="there is no spanning tree in example 1"):
        SpanningTree(2).infer([[0.0], [N]], "frank_wolfe")


def test_what_stops_short_says_so_and_its_bounds_hold():
    chain, potentials = chains([5])
    with pytest.warns(ConvergenceWarning, match="engine frank_wolfe has not converged"):
        found = chain.infer(potentials, "frank_wolfe", max_iter=3)
    log_z = chain.log_partition(potentials)
    assert (found.lower <= log_z).all()
    assert (log_z <= found.upper).all()
    assert found.upper[0] - found.lower[0] > 0.1


def test_shared_transitions_and_other_entropies():
    chain, (unary, pairwise) = chains([3, 2], 2)
    exact = chain.infer((unary, pairwise[0]))
    found = chain.infer((unary, pairwise[0]), "frank_wolfe", tol=1e-8)
    np.testing.assert_allclose(found.marginals[1], exact.marginals[1], atol=1e-4)
    above = chain.infer((unary, pairwise[0]), "frank_wolfe", entropy=IndependentEntropy())
    assert (above.log_z > exact.log_z + 0.1).all()
    assert (above.lower <= exact.log_z).all()
    assert (exact.log_z <= above.upper).all()


def test_answers_with_a_stated_error_are_part_of_the_certificate():
    def nearly(scores):
        return Answer(np.eye(3)[np.argmax(scores)], float(scores.max()), "exact", 0.01)

    one = infer_parts(Parts(3, nearly), np.zeros(3), TableEntropy(np.ones(3), exact=True))
    assert one.gap[0] >= 0.01
    assert one.lower[0] <= np.log(3.0) <= one.upper[0]


def test_tables_are_counted_as_said():
    entropy, rng = TableEntropy(np.array([1.0, 2.0, -0.5])), np.random.default_rng(0)
    tau, d = rng.uniform(0.2, 0.8, 3), 0.1 * rng.standard_normal(3)
    assert entropy.value(tau) == pytest.approx(-float(entropy.counts @ (tau * np.log(tau))))
    slope, h = entropy.along(tau, d), 1e-6
    for step in (0.0, 0.5):
        numeric = (entropy.value(tau + (step + h) * d) - entropy.value(tau + (step - h) * d)) / (2.0 * h)
        assert slope(step) == pytest.approx(numeric, abs=1e-6)
        assert entropy.gradient(tau + step * d) @ d == pytest.approx(slope(step))

"""The doors of structures: whatever comes is read as it is meant, or refused with a ValueError that names it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from partita import TooLargeError
from partita.bayesnet.structure.bayes_net import BayesNet
from partita.core import NumericalError
from partita.graph.structure.evidence import Evidence
from partita.inference import bethe, gibbs, gibbs_states, is_concave, max_product, mean_field, tree_reweighted
from partita.matching.engines.bethe import matching_bethe
from partita.structures import Binary, BipartiteMatching, BMatching, Categorical, Chain, FactorGraph, Matching

RNG = np.random.default_rng(0)
GRAPH = FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,)])
CHAIN = Chain(3, [4, 5])
UNARY, PAIRWISE, BY_POSITION = (RNG.standard_normal(shape) for shape in ((9, 3), (3, 3), (9, 3, 3)))

#: Of every structure: potentials, an output, and one more than its largest entry.
STRUCTURES = {
    "graph": (GRAPH, RNG.standard_normal(GRAPH.size), [0, 2, 1, 0], 3),
    "rows of a graph": (GRAPH, RNG.standard_normal((3, GRAPH.size)), [[0, 2, 1, 0]] * 3, 3),
    "permutation": (BipartiteMatching(3), RNG.standard_normal((3, 3)), [1, 2, 0], 3),
    "permutations": (BipartiteMatching(3), RNG.standard_normal((2, 3, 3)), [[1, 2, 0]] * 2, 3),
    "complete matching": (Matching(4), RNG.standard_normal(6), [1, 0, 3, 2], 4),
    "matchings": (Matching([(0, 1), (1, 2)], perfect=False), RNG.standard_normal((2, 2)), [[1, 0, -1]] * 2, 3),
    "tables": (BMatching((2, 3), ([2, 1], 1)), RNG.standard_normal((2, 2, 3)), [[[1, 0, 1], [0, 1, 0]]] * 2, 2),
    "b-matchings": (BMatching([(0, 1), (1, 2)], 1, perfect=False), RNG.standard_normal((2, 2)), [[1, 0]] * 2, 2),
    "labels": (Categorical(3), RNG.standard_normal((4, 3)), [0, 1, 2, 0], 3),
    "label sets": (Categorical([1, 2, 3]), RNG.standard_normal(6), [0, 1, 2], 3),
    "odds": (Binary(), RNG.standard_normal((4, 1)), [0, 1, 1, 0], 2),
}
ENGINES = {"graph": ("exact", "bp", "trw", "mean_field"), "permutation": ("exact", "bethe"), "matchings": ("exact", "bethe")}
ENGINES |= dict.fromkeys(("b-matching", "b-matchings"), ("exact", "bethe"))


def same_numbers(good):
    """Other forms of the same numbers."""
    frozen = good.copy()
    frozen.flags.writeable = False
    yield from (np.asfortranarray(good), np.repeat(good, 2, axis=-1)[..., ::2], good[::-1][::-1], frozen, good.tolist())
    yield from (good.astype(np.longdouble), good.astype(">f8"), np.ma.masked_array(good))
    if good.ndim == 2:
        yield pd.DataFrame(good)


def no_potentials(good):
    """What is not potentials, with a name."""
    yield from {
        "complex": good.astype(complex),
        "objects": good.astype(object),
        "strings": good.astype(str),
        "dates": np.zeros(good.shape, "M8[s]"),
        "masked": np.ma.masked_array(good, mask=np.ones(good.shape, bool)),
        "sparse": sp.csr_array(np.atleast_2d(good).reshape(-1, good.shape[-1])),
        "nothing": None,
        "a number": 1.0,
        "a word": "abc",
        "a dict": {0: 1},
        "a generator": (x for x in (1, 2)),
        "an object": np.array(object()),
        "ragged": [[0.0], [0.0, 1.0]],
        "no numbers": np.zeros(0),
        "too few": good[..., :-1],
        "too many": np.concatenate([good, good[..., :1]], axis=-1),
        "no rows": good[:0],
        "too deep": good[None, None],
    }.items()
    for value in (np.nan, np.inf):
        bad = good.copy()
        bad.flat[-1] = value
        yield str(value), bad


def no_outputs(good, most):
    """What is no y, with a name."""
    yield from {
        "floats": good.astype(float),
        "halves": good + 0.5,
        "bools": good > 0,
        "strings": good.astype(str),
        "objects": good.astype(object),
        "too low": good - 5,
        "too high": good + most,
        "far too high": good.astype(np.uint64) + np.uint64(2**63),
        "too few": good[..., :-1],
        "too many": np.concatenate([good, good[..., :1]], axis=-1),
        "too deep": good[None, None],
        "nothing": None,
        "none": np.zeros(0, int),
        "no rows": np.zeros((0, good.shape[-1]), int),
        "masked": np.ma.masked_array(good, mask=np.ones(good.shape, bool)),
        "a number": 0,
        "a word": "a",
        "a set": {1},
    }.items()


def calls(name):
    structure, _, y, _ = STRUCTURES[name]
    yield "score", lambda u: structure.score(u, y)
    yield "log_partition", structure.log_partition
    for engine in ENGINES.get(name, ("auto",)):
        yield f"infer {engine}", lambda u, engine=engine: structure.infer(u, engine).marginals
    yield "argmax", lambda u: structure.argmax(u)[1]
    if name not in ("rows of a graph", "permutations", "matchings", "b-matchings", "tables"):
        yield "sample", lambda u: structure.sample(u, 3, 0)


def refuses(ask, what):
    """A ValueError of our own: none of NumPy's, none about attributes."""
    with pytest.raises(ValueError, match=r".") as caught:
        ask()
    text = str(caught.value)
    for foreign in ("broadcast", "could not convert", "cannot reshape", "setting an array element", "not iterable"):
        assert foreign not in text, f"{what}: {text}"


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_form_of_potentials_does_not_matter(name):
    good = STRUCTURES[name][1]
    for call, ask in calls(name):
        expected = ask(good)
        for other in same_numbers(good):
            if isinstance(other, list) and name == "rows of a graph":
                continue  # a list of rows is a list of tables
            np.testing.assert_array_equal(ask(other), expected, err_msg=call)


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_is_not_potentials_is_refused(name):
    structure, good, _, _ = STRUCTURES[name]
    for call, ask in calls(name):
        for what, bad in no_potentials(good):
            if what == "no rows" and good.ndim == 1:
                continue
            if what == "ragged":
                with pytest.raises(ValueError, match=r"."):
                    ask(bad)
                continue
            refuses(lambda ask=ask, bad=bad: ask(bad), f"{call}, {what}")
    for engine in ("nope", None, 3):
        refuses(lambda engine=engine: structure.infer(good, engine), "engine")


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_is_no_output_is_refused(name):
    structure, u, y, most = STRUCTURES[name]
    good = np.array(y)
    expected = structure.score(u, good)
    for kind in (np.int8, np.int32, ">i8", *((np.uint8, np.uint64) if good.min() >= 0 else ())):
        np.testing.assert_array_equal(structure.score(u, good.astype(kind)), expected)
    for what, bad in no_outputs(good, most):
        if what == "too deep" and good.ndim == 2:
            bad = bad[0]
        refuses(lambda bad=bad: structure.score(u, bad), what)
    if len(expected) > 2:
        refuses(lambda: structure.score(u, np.array([good[0]] * 2) if good.ndim == 2 else good[:2]), "other rows")


@pytest.mark.parametrize("name", STRUCTURES)
def test_samples_are_counted_before_they_are_drawn(name):
    structure, u, _, _ = STRUCTURES[name]
    u = u[0] if name in ("rows of a graph", "permutations", "matchings", "b-matchings", "tables") else u
    for size in (-1, 1.5, "3", None, True):
        refuses(lambda size=size: structure.sample(u, size, 0), f"size={size}")
    for size in (10**12, 10**30):
        with pytest.raises(TooLargeError, match=rf"a sample of size={size} needs .* Lower size, and draw several times"):
            structure.sample(u, size, 0)
    assert len(structure.sample(u, 0, 0)) == 0


CHAIN_CALLS = {
    "score": lambda u: CHAIN.score(u, [0, 1, 2] * 3),
    "log_partition": CHAIN.log_partition,
    "infer": lambda u: CHAIN.infer(u).marginals[1],
    "argmax": lambda u: CHAIN.argmax(u)[1],
    "kbest": lambda u: CHAIN.kbest(u, 2)[1],
    "sample": lambda u: CHAIN.sample(u, 2, 0),
    "entropy": CHAIN.entropy,
    "pair_marginals": CHAIN.pair_marginals,
}


@pytest.mark.parametrize("call", CHAIN_CALLS)
def test_potentials_of_chains(call):
    ask = CHAIN_CALLS[call]
    for place, good in ((0, UNARY), (1, PAIRWISE), (1, BY_POSITION)):
        pair = (UNARY, good) if place else (good, PAIRWISE)
        expected = ask(pair)
        for other in same_numbers(good):
            np.testing.assert_array_equal(ask((UNARY, other) if place else (other, PAIRWISE)), expected)
        for what, bad in no_potentials(good):
            if what == "ragged":
                continue
            refuses(lambda bad=bad, place=place: ask((UNARY, bad) if place else (bad, PAIRWISE)), f"{place} {what}")
    for bad in (None, (UNARY,), (UNARY, PAIRWISE, PAIRWISE), UNARY, {}):
        refuses(lambda bad=bad: ask(bad), "pair")
    for scale in (1e101, -1e101, 1e308):
        with pytest.raises(
            ValueError, match=r"unary potentials must be at most 1e\+100 in size.*: position 0 of sequence 0"
        ):
            ask((np.full((9, 3), scale), PAIRWISE))


def test_labellings_of_chains():
    for what, bad in no_outputs(np.array([0, 1, 2] * 3), 3):
        refuses(lambda bad=bad: CHAIN.score((UNARY, PAIRWISE), bad), what)


@pytest.mark.parametrize("k", [0, -1, 1.5, None, True])
def test_counts_of_best_labellings(k):
    refuses(lambda: CHAIN.kbest((UNARY, PAIRWISE), k), "k")


def test_best_labellings_are_counted_before_they_are_found():
    """k-best of 1e5 on long chains took the machine: predecessors are kept for every position, label and rank."""
    chain = Chain(50, np.full(200, 10_000))
    with pytest.raises(TooLargeError, match=r"the k=100000 best labellings needs .* Lower k"):
        chain.kbest(None, 10**5)
    with pytest.raises(TooLargeError, match="k=1" + "0" * 30):
        CHAIN.kbest((UNARY, PAIRWISE), 10**30)


def test_first_transitions_are_ignored_whatever_they_are():
    A = BY_POSITION.copy()
    A[[0, 4]] = [[[np.nan]], [[1e308]]]
    np.testing.assert_array_equal(CHAIN.log_partition((UNARY, A)), CHAIN.log_partition((UNARY, BY_POSITION)))


TOO_LARGE = {
    "2^64 entries": lambda: FactorGraph([2] * 64, [tuple(range(64))]).log_partition([]),
    "2^63 entries": lambda: FactorGraph([2] * 63, [tuple(range(63))]).log_partition([]),
    "5^28 entries": lambda: FactorGraph([5] * 28, [tuple(range(28))]),
    "2^1100 entries": lambda: FactorGraph([2] * 1100, [tuple(range(1100))]),
    "many tables": lambda: FactorGraph([2**20] * 2, [(0, 1)] * 3),
    "2^62 states": lambda: FactorGraph([2**62] * 4, []),
    "2^64 states": lambda: FactorGraph(np.array([2**64 - 1], np.uint64), []),
    "a grid": lambda: FactorGraph.grid(10**6, 10**7),
    "a huge grid": lambda: FactorGraph.grid(10**200, 10**200),
    "a grid of states": lambda: FactorGraph.grid(3, 3, 10**8),
    "a complete graph": lambda: FactorGraph.complete(10**7),
    "a complete graph of states": lambda: FactorGraph.complete(3, 2**31),
    "permutations": lambda: BipartiteMatching(10**7),
    "more permutations": lambda: BipartiteMatching(10**30),
    "matchings": lambda: Matching(10**7),
    "vertices": lambda: Matching([(0, 2**62)], perfect=False),
    "vertices that wrap": lambda: Matching(np.array([[0, 2**63 + 1]], np.uint64), perfect=False),
    "b-matchings": lambda: BMatching((10**6, 10**7), 1),
    "b-matchings of a complete graph": lambda: BMatching(10**7, 1),
    "vertices of b-matchings": lambda: BMatching([(0, 1)], 1, n_vertices=10**13),
    "stated vertices": lambda: Matching([(0, 1)], n_vertices=10**13),
    "labels": lambda: Categorical(10**13),
    "more labels": lambda: Categorical(10**30),
    "label sets": lambda: Categorical([2**62] * 4),
    "labels of a chain": lambda: Chain(10**9, [1]),
    "positions": lambda: Chain(2, [2**62] * 4),
    "a family": lambda: BayesNet([2] * 70, [()] * 69 + [tuple(range(69))]),
    "a leaf": lambda: BayesNet([2] * 70, [()] * 70, [tuple(range(69))]),
    "rows of a network": lambda: BayesNet([2], [()]).sample(np.log([0.5, 0.5]), 10**13),
    "an exact sum": lambda: FactorGraph.complete(70).tree(memory_limit=np.inf),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_sizes_do_not_overflow(what):
    with pytest.raises(TooLargeError, match=r"needs? "):
        TOO_LARGE[what]()


REFUSED = {
    "cardinalities must be a vector of integers": [
        lambda c=c: FactorGraph(c, []) for c in ([2.0], [True], [0], [-1], "22", None, [2, None], [10**30], [[2]], [])
    ],
    "must have different variables below": [
        lambda s=s: FactorGraph([2, 2], [s]) for s in ((2,), (-1,), (0, 0), (0, 1, 0), np.array([2**62]))
    ],
    "factors must be tuples of integers": [
        lambda f=f: FactorGraph([2, 2], f)
        for f in ([(0.0,)], [(True,)], [0], None, 5, ["a"], "ab", [(10**30,)], [(None,)], {(0,): 1}, [[[0]]])
    ],
    "a matrix of factors must be of integers": [lambda: FactorGraph([2], [np.zeros((1, 1))])],
    "examples must": [
        lambda e=e: FactorGraph([2, 2], [], examples=e) for e in ([0, 0.5], ["a", "b"], [0, 2], [1, 1], [0], [-1, 0])
    ],
    "evidence must be a dict": [lambda e=e: GRAPH.condition(e) for e in ([0, 1], None, "01", 3, {0})],
    "evidence must have integers only": [
        lambda e=e: GRAPH.condition(e) for e in ({"a": 1}, {0: 0.5}, {0: 1.0}, {0: True}, {None: 1}, {0: "1"}, {(0,): 1})
    ],
    "evidence names variable": [lambda v=v: GRAPH.condition({v: 0}) for v in (-1, 4, 2**70)],
    "evidence gives state": [lambda s=s: GRAPH.condition({1: s}) for s in (-1, 3, 2**70)],
    "graphs must": [lambda: FactorGraph.union([]), lambda: FactorGraph.union([1])],
    "graph must be a networkx graph": [lambda: FactorGraph.from_networkx(5)],
    "cardinalities must have a number for every node; node 1": [
        lambda: FactorGraph.from_networkx(nx.path_graph(2), {0: 2}),
    ],
    "entries, those of all tables": [lambda: GRAPH.tables(np.zeros(3)), lambda: GRAPH.variable_marginals(np.zeros(100))],
    "memory_limit must": [
        lambda m=m: GRAPH.infer(STRUCTURES["graph"][1], "exact", memory_limit=m) for m in (-1, 0, "4G", None, np.nan)
    ],
    "graph must be a number of vertices or an array of pairs": [
        lambda e=e: Matching(e) for e in ([(0.0, 1.0)], [(0, 1, 2)], [(0, -1)], [])
    ],
    "b must be an integer or 5 of them": [
        lambda b=b: BMatching((2, 3), b) for b in (1.5, "a", None, [1] * 4, (1, [1, 1]), [[1] * 5], np.ones(5))
    ],
    "b must not be negative": [lambda: BMatching((2, 3), -1), lambda: BMatching((2, 3), (1, [1, -1, 1]))],
    "b asks for 4 edges at vertex 0, which has 3": [lambda: BMatching((2, 3), (4, 1))],
    "b allows no b-matching": [lambda: BMatching((2, 3), 1), lambda: BMatching(5, 1)],
    r"graph\[0\] must": [lambda g=g: BMatching(g, 1) for g in ((0, 1), (1.5, 2), ("a", 1))],
    "graph must be a pair": [lambda: BMatching((1, 2, 3), 1)],
    "graph must": [lambda g=g: BMatching(g, 1) for g in ([(0, 1, 2)], [(0.0, 1.0)], 0, None, "abc")],
    "labels must": [lambda n=n: Categorical(n) for n in (None, "abc", 0, -1, 1.5, [0, 1], [-1, 2], [1.5], [])],
    "prior must": [
        lambda p=p: Categorical(2, p) for p in (["a", "b"], [1j, 1], [-1, 1], [np.nan, 1], [0, 0], [1], [[1, 1]])
    ],
    "lengths must": [lambda n=n: Chain(2, n) for n in ([0], [1.5], "ab", [], None, 3, [[1]], [-1])],
    "parents": [
        lambda p=p: BayesNet([2, 2], p) for p in ([(), (5,)], [(), (-1,)], [(), (0, 0)], [()], [(), (0.0,)], [(), 0])
    ],
    "must have no cycle": [lambda: BayesNet([2, 2], [(1,), (0,)]), lambda: BayesNet([2], [(0,)])],
    "must be integers >= 1, one per variable": [lambda c=c: BayesNet(c, [()]) for c in ([0], [1.5], ["a"], [[1]])],
    "weights must be 2 numbers": [lambda: BayesNet([2], [()]).log_distributions(np.zeros(5))],
    "potentials must be 2 numbers": [lambda: BayesNet([2], [()]).sample(np.zeros(3), 2)],
    "potentials must be logarithms of distributions; number 0 sums to 2": [
        lambda: BayesNet([2], [()]).sample(np.zeros(2), 2),
    ],
    "states must be integers": [
        lambda s=s: Evidence(GRAPH, s) for s in ([0.5] * 4, [0] * 3, ["a"] * 4, None, [[[0] * 4]], [True] * 4)
    ],
    "states has": [lambda s=s: Evidence(GRAPH, [0, 0, 0, s]) for s in (-2, 2, 2**62)],
    "weights must": [
        lambda w=w: matching_bethe(BipartiteMatching(3), w) for w in (["a"], None, "abc", np.zeros((2, 9), complex))
    ],
    r"must have shape \(9,\)": [
        lambda w=w: matching_bethe(BipartiteMatching(3), w)
        for w in (0.0, np.zeros(9), np.zeros((2, 8)), np.zeros((2, 3, 3)))
    ],
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_structure_is_refused(message):
    for ask in REFUSED[message]:
        with pytest.raises(ValueError, match=message):
            ask()


def test_numbers_of_numpy_are_evidence():
    graph, index = GRAPH.condition({np.int8(0): np.uint8(1)})
    assert graph.cardinalities.tolist() == [1, 3, 2, 2]
    assert len(index) == graph.size


@pytest.mark.parametrize("engine", [bethe, tree_reweighted, mean_field, gibbs, gibbs_states, max_product])
def test_engines_that_are_called_by_themselves(engine):
    good = STRUCTURES["graph"][1]
    for what, bad in no_potentials(good):
        if what not in ("no rows", "ragged"):
            refuses(lambda bad=bad: engine(GRAPH, bad), what)
    for no_graph in (None, 5, BipartiteMatching(2)):
        with pytest.raises(ValueError, match="graph must be a FactorGraph, got"):
            engine(no_graph, good)


@pytest.mark.parametrize(
    "options",
    [
        {"damping": 1.0},
        {"damping": -0.1},
        {"damping": "a"},
        {"damping": np.nan},
        {"max_iter": -1},
        {"max_iter": 1.5},
        {"tol": -1.0},
        {"tol": np.nan},
        {"tol": "a"},
        {"schedule": "x"},
        {"messages": np.zeros(3)},
        {"messages": "a"},
        {"messages": [[None]]},
        {"rho": "a"},
        {"rho": 0.0},
        {"rho": np.nan},
        {"rho": [1.0, 2.0]},
        {"rho": np.ones(5) * 1j},
    ],
)
def test_options_of_engines(options):
    good = STRUCTURES["graph"][1]
    refuses(lambda: bethe(GRAPH, good, **options), options)
    if "rho" in options:
        refuses(lambda: is_concave(GRAPH, options["rho"]), options)
    else:
        refuses(lambda: tree_reweighted(GRAPH, good, **options), options)


def test_nothing_is_nan_at_the_largest_numbers(rng):
    for scale in (1e99, 1e50, 1e16):
        for result in (
            CHAIN.infer((scale * UNARY / 3.0, scale * PAIRWISE / 3.0)),
            Categorical(3).infer(scale * rng.standard_normal((4, 3))),
            Binary().infer(scale * rng.standard_normal((4, 1))),
        ):
            assert np.isfinite(result.log_z).all()
    extreme = np.array([[1e308, -1e308, 0.0], [1.7e308, 1.7e308, -1.7e308]])
    found = Categorical(3).infer(extreme)
    np.testing.assert_array_equal(found.marginals, [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    assert issubclass(NumericalError, ArithmeticError)

"""Every feature map of the table is linear, and its adjoint is the transpose: <A theta, mu> = <theta, A' mu>."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from discovery import classes, offers
from hypothesis import given, settings, strategies as st

from partita.chain.features.chain import ChainFeatures
from partita.chain.features.tied import TiedFeatures
from partita.core import Workers, parallel
from partita.features import DenseLinear, LabelFeatures, LinearMap, RowBlocks, SparseLinear, TableType, TiedTables
from partita.matching.features import (
    AloneFeatures,
    Attribute,
    AttributePairs,
    EdgeFeatures,
    NodePairs,
    PaddedFeatures,
    Side,
)
from partita.oracle import PartFeatures
from partita.softmax.features.rows import SparseRows
from partita.structures import BipartiteMatching, FactorGraph
from partita.tree import PairFeatures

RNG = np.random.default_rng(0)
X = np.where(RNG.random((9, 4)) < 0.5, RNG.standard_normal((9, 4)), 0.0)
ORDER = np.array([4, 2, 7, 0, 8])
GRAPH = FactorGraph([2, 3, 2, 3, 2], [(0, 1), (2,), (2, 3), (0,), (4, 3), (1,), ()])
TYPES = [
    TableType(np.array([0, 2, 4]), features=RNG.standard_normal((3, 2))),
    TableType(np.array([3, 1]), features=sp.csr_matrix(np.eye(2)), basis=np.array([[-1.0], [1.0]])),
    TableType(np.array([6]), parameters=np.array([[3]])),  # factor 5 has no weights
]
ENDS = np.array([(0, 1), (0, 3), (1, 2), (2, 3), (2, 4)])
ATTRIBUTES = [Attribute("age", True), Attribute("room", True, (1.0, 2.0, 3.0)), Attribute("smokes", False, ("no", "yes"))]
#: Levels beyond those of an attribute are unseen ones.
SIDES = [Side(RNG.integers(0, [[4], [3]], (2, 5)), RNG.standard_normal((2, 5))) for _ in range(3)]


def chains(workers, tables=False, **options):
    """Attributes with weights for all labels, for one, and for none; three labels."""
    pairs = np.array([(0, 0), (0, 1), (0, 2), (1, 1), (2, 0), (2, 2)]).T
    rows = sp.csr_matrix(X if tables else (X != 0.0).astype(np.float64))
    return ChainFeatures(rows, [0, 4, 4 + 1, 9], 3, *pairs, [(0, 1), (2, 2), (1, 0)], workers=workers, **options)


def block(X, workers):
    return RowBlocks(SparseLinear(X, 3, True, workers), ORDER).block(1, 4)


#: Of every map, how it is made for a number of threads.
MAPS = {
    "dense": lambda w: DenseLinear(X, 3, True, w),
    "dense, one output": lambda w: DenseLinear(X, 1, False, w),
    "dense, some rows": lambda w: DenseLinear(X, 3, True, w).take(ORDER),
    "sparse": lambda w: SparseLinear(sp.csr_matrix(X), 3, True, w),
    "sparse, one output": lambda w: SparseLinear(sp.csr_matrix(X), 1, True, w),
    "sparse, no intercept": lambda w: SparseLinear(sp.csr_matrix(X), 2, False, w),
    "sparse, some rows": lambda w: block(sp.csr_matrix(X), w),
    "labels": lambda w: LabelFeatures(RNG_FEATURES, workers=w),
    "label sets": lambda w: LabelFeatures(RNG_FEATURES.reshape(-1, 4), [2, 3, 1], workers=w),
    "chain": chains,
    "chain with values": lambda w: chains(w, tables=True),
    "chain with starts and ends": lambda w: chains(w, tables=True, starts=True, ends=True),
    "chain, some sequences": lambda w: chains(w, tables=True, starts=True).take(np.array([2, 0])),
    "chain, a block": lambda w: chains(w, tables=True, ends=True).block(1, 3),
    "tied chain": lambda w: TiedFeatures(chains(w, tables=True), np.array([0, 1, 0, 2, 2, 3, 1, 4, 4])),
    "pairs of words": lambda w: PairFeatures(X, [0, 4, 9], w.threads),
    "pairs of words, sparse": lambda w: PairFeatures(sp.csr_matrix(X), [0, 4, 9], w.threads),
    "tables": lambda w: TiedTables(GRAPH, TYPES),
    "edges": lambda w: EdgeFeatures(RNG_EDGES),
    "pairs of rows and columns": lambda w: NodePairs(RNG_EDGES, RNG_EDGES[:, :, :4]),
    "parts": lambda w: PartFeatures(RNG_FEATURES[0]),
    "parts, sparse": lambda w: PartFeatures(sp.csr_array(RNG_FEATURES[0])),
    "pairs of vertices": lambda w: NodePairs(RNG_EDGES, RNG_EDGES, ENDS),
    "edges and staying alone": lambda w: AloneFeatures(EdgeFeatures(RNG_EDGES), RNG_EDGES[:, :2], ENDS),
    "edges of a side filled up": lambda w: PaddedFeatures(EdgeFeatures(RNG_SIDES), BipartiteMatching(2, 3)),
    "attributes of vertices": lambda w: AttributePairs(ATTRIBUTES, SIDES, ends=ENDS, workers=w),
    "attributes of rows and columns": lambda w: AttributePairs(ATTRIBUTES, SIDES[:2], SIDES[1:], workers=w),
}
RNG_FEATURES, RNG_EDGES = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((5, 5, 5))
RNG_SIDES = RNG.standard_normal((2, 3, 6))

maps = pytest.mark.parametrize("name", MAPS)


def arrays(values):
    return values if isinstance(values, tuple) else (values,)


def flat(values):
    return np.concatenate([np.ravel(part) for part in arrays(values)])


def pull(features, values):
    """The adjoint of a vector, given to it in the shape of the potentials."""
    shapes = [part.shape for part in arrays(features.forward(np.zeros(features.size)))]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    parts = [part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), shapes, strict=True)]
    return features.adjoint(tuple(parts) if len(parts) > 1 else parts[0])


def numbers(count):
    return st.lists(st.floats(-10.0, 10.0), min_size=count, max_size=count).map(np.array)


def test_every_map_is_in_the_table():
    made = {type(make(Workers(1))) for make in MAPS.values()}
    assert made == classes("features", offers("forward", "adjoint")) - {LinearMap}
    assert SparseRows in made


@maps
def test_the_adjoint_is_the_transpose(name):
    """All of the matrix: forward gives its columns, the adjoint its rows."""
    features = MAPS[name](Workers(1))
    A = np.array([flat(features.forward(unit)) for unit in np.eye(features.size)]).T
    rows = np.array([pull(features, unit) for unit in np.eye(len(A))])
    assert np.abs(A).max() > 0.1
    np.testing.assert_allclose(rows, A, rtol=1e-14, atol=1e-15)


@maps
@settings(max_examples=25)
@given(st.data())
def test_maps_are_linear(name, data):
    features = MAPS[name](Workers(1))
    a, theta, other = data.draw(st.floats(-5.0, 5.0)), *(data.draw(numbers(features.size)) for _ in range(2))
    size = len(flat(features.forward(theta)))
    mu, nu = data.draw(numbers(size)), data.draw(numbers(size))
    potentials = flat(features.forward(theta))
    np.testing.assert_allclose(
        flat(features.forward(a * theta + other)), a * potentials + flat(features.forward(other)), rtol=1e-11, atol=1e-11
    )
    back = pull(features, mu)
    np.testing.assert_allclose(
        pull(features, a * mu + nu),
        a * back + pull(features, nu),
        rtol=1e-11,
        atol=1e-11,
    )
    assert potentials @ mu == pytest.approx(theta @ back, rel=1e-11, abs=1e-9)


@maps
def test_threads_change_no_bit(name, monkeypatch, rng):
    monkeypatch.setattr(parallel, "OPERATIONS_PER_CHUNK", 1)  # so that small work is cut up
    one, two = (MAPS[name](Workers(n_jobs)) for n_jobs in (1, 2))
    theta = rng.standard_normal(one.size)
    mu = rng.standard_normal(len(flat(one.forward(theta))))
    np.testing.assert_array_equal(flat(one.forward(theta)), flat(two.forward(theta)))
    np.testing.assert_array_equal(pull(one, mu), pull(two, mu))

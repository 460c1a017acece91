"""Every engine of every structure against enumeration: what it promises, and what its answer says of itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from structures import STRUCTURES, Truth, arrays

from partita import ConvergenceWarning, Status
from partita.core import parallel
from partita.graph.structure import factor_graph
from partita.matching.structure import common
from partita.softmax import ENGINES as OF_LABELS
from partita.tree.structure import spanning_tree

ACYCLIC = ("FactorGraph without cycles", "FactorGraph of triples", "FactorGraph of several examples")
GRAPHS = ("FactorGraph", "FactorGraph by union", *ACYCLIC)
TWO_SIDES = tuple(name for name in STRUCTURES if name.startswith("BipartiteMatching"))
MATCHINGS = (*TWO_SIDES, "Matching", "Matching that need not be perfect")
B_MATCHINGS = ("BMatching", "BMatching with fewer edges", "BMatching without sides")
SEVERAL = ("FactorGraph", "BipartiteMatching", "Matching", "BMatching", "BayesNet")
ALONE = tuple(name for name in STRUCTURES if not name.startswith(SEVERAL))
TREES = tuple(name for name in ALONE if name.startswith("SpanningTree"))
LABELS = tuple(name for name in ALONE if name not in TREES)
EXACT = ("auto", "exact")


@dataclass(frozen=True)
class Engine:
    """An engine.

    Attributes
    ----------
    on : names of structures
    name : str
    options : dict
        Such that it converges.
    exact : names of structures
        Where its answers are exact.
    side : str
        ``"above"`` or ``"below"`` if `log_z` is on that side of log Z (by as much as `gap` at most on the other).
    finite : bool
        Whether it refuses -inf.
    drawn : bool
        Whether it draws, and takes a seed.
    stops : dict
        Options with which it stops before it has converged; nothing if it does not iterate.
    knows : bool
        Whether it has a value for log Z.
    takes : callable
        From the structure and potentials to such as the engine takes.
    """

    on: tuple[str, ...]
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    exact: tuple[str, ...] = ()
    side: str = ""
    finite: bool = False
    drawn: bool = False
    stops: dict[str, Any] = field(default_factory=dict)
    knows: bool = True
    takes: Callable[[Any, Any], Any] = lambda structure, potentials: potentials

    def infer(self, structure: Any, potentials: Any, **more: Any) -> Any:
        return structure.infer(potentials, self.name, **{**self.options, **more})


def without_fields(graph: Any, potentials: Any) -> Any:
    """Tables that stay the same when all states change."""
    parts = np.split(np.atleast_2d(potentials), graph.offsets[1:-1], axis=1)
    return np.concatenate([0.5 * (part + part[:, ::-1]) for part in parts], axis=1).reshape(np.shape(potentials))


BRIEF = {"max_iter": 1, "tol": 1e-12}
ENGINES = {
    "graph auto": Engine(GRAPHS, "auto", exact=GRAPHS),
    "graph exact": Engine(GRAPHS, "exact", exact=GRAPHS),
    "bp": Engine(GRAPHS, "bp", exact=ACYCLIC, stops=BRIEF),
    "bp parallel": Engine(GRAPHS, "bp", {"schedule": "parallel", "damping": 0.5}, exact=ACYCLIC, stops=BRIEF),
    "bp residual": Engine(GRAPHS, "bp", {"schedule": "residual"}, exact=ACYCLIC, stops=BRIEF),
    "trw": Engine(GRAPHS, "trw", exact=ACYCLIC, side="above", stops=BRIEF),
    "trw with steps": Engine(GRAPHS, "trw", {"tree_steps": 2, "joint": True}, exact=ACYCLIC, side="above", stops=BRIEF),
    "trw with a certificate": Engine(GRAPHS, "trw", {"certify": True}, exact=ACYCLIC, side="above", stops=BRIEF),
    "mean_field": Engine(GRAPHS, "mean_field", {"n_starts": 3}, side="below", stops=BRIEF),
    "gibbs": Engine(GRAPHS, "gibbs", {"n_samples": 100, "burn_in": 10}, drawn=True, knows=False),
    "graph frank_wolfe": Engine(GRAPHS, "frank_wolfe", side="above", stops=BRIEF),
    "graph perturb_and_map": Engine(GRAPHS, "perturb_and_map", {"n_samples": 50}, drawn=True),
    "planar": Engine(("FactorGraph by union",), "planar", exact=GRAPHS, finite=True, takes=without_fields),
    "network auto": Engine(("BayesNet",), "auto", exact=("BayesNet",)),
    "network bp": Engine(("BayesNet",), "bp", exact=("BayesNet",)),
    "network frank_wolfe": Engine(("BayesNet",), "frank_wolfe", side="above", stops=BRIEF),
    "matching auto": Engine(MATCHINGS, "auto", exact=MATCHINGS),
    "matching exact": Engine(MATCHINGS, "exact", exact=MATCHINGS),
    "bethe": Engine(MATCHINGS, "bethe", stops=BRIEF),
    "bethe with two sides": Engine(TWO_SIDES, "bethe", {"rho": 1.0}, side="below", stops=BRIEF),
    "bethe, plain entropy": Engine(MATCHINGS, "bethe", {"rho": 0.5}, side="above", stops=BRIEF),
    "bethe below plain entropy": Engine(MATCHINGS, "bethe", {"rho": 0.3}, side="above", stops=BRIEF),
    "matching frank_wolfe": Engine(MATCHINGS, "frank_wolfe", {"tol": 1e-4}, stops=BRIEF),
    "matching perturb_and_map": Engine(MATCHINGS, "perturb_and_map", {"n_samples": 50}, drawn=True),
    "b-matching auto": Engine(B_MATCHINGS, "auto", exact=B_MATCHINGS),
    "b-matching exact": Engine(B_MATCHINGS, "exact", exact=B_MATCHINGS),
    "b-matching bethe": Engine(B_MATCHINGS, "bethe", stops=BRIEF),
    "b-matching bethe with two sides": Engine(B_MATCHINGS[:1], "bethe", {"rho": 1.0}, side="below", stops=BRIEF),
    "b-matching bethe, plain entropy": Engine(B_MATCHINGS, "bethe", {"rho": 0.5}, side="above", stops=BRIEF),
    "b-matching frank_wolfe": Engine(B_MATCHINGS, "frank_wolfe", {"tol": 1e-4}, stops=BRIEF),
    "b-matching perturb_and_map": Engine(B_MATCHINGS, "perturb_and_map", {"n_samples": 50}, drawn=True),
    "tree frank_wolfe": Engine(TREES, "frank_wolfe", {"tol": 1e-5}, side="above", stops=BRIEF),
    "label frank_wolfe": Engine(LABELS, "frank_wolfe", side="below", stops=BRIEF),
    **{f"others {name}": Engine(ALONE, name, exact=ALONE) for name in EXACT},
}
EVERY = [(engine, name) for engine, row in ENGINES.items() for name in row.on]
pairs = pytest.mark.parametrize(("engine", "name"), EVERY)


def cases(engine, row):
    """Potentials of several sizes, some of them with -inf."""
    shares = (0.0, 0.0) if engine.finite else (0.0, 0.3)
    drawn = [row.potentials(scale, share, seed) for seed, (scale, share) in enumerate(zip((1.0, 3.0), shares, strict=True))]
    return [engine.takes(row.structure, potentials) for potentials in drawn]


def test_every_engine_is_in_the_table():
    def named(on):
        return {row.name for row in ENGINES.values() if set(row.on) & set(on)}

    assert named(GRAPHS) == set(factor_graph.ENGINES)
    assert named(MATCHINGS) == set(common.ENGINES)
    assert named(B_MATCHINGS) == set(common.ENGINES)
    assert named(TREES) == set(spanning_tree.ENGINES)
    assert named(LABELS) == set(OF_LABELS)
    assert {name for row in ENGINES.values() for name in row.on} == set(STRUCTURES)


def brackets(result, truth):
    room = 1e-9 * (1.0 + abs(truth.log_z))
    assert result.lower.sum() <= truth.log_z + room
    assert truth.log_z <= result.upper.sum() + room
    assert (result.gap >= 0.0).all()


@pairs
def test_bounds_bracket_log_z_and_exact_answers_equal_it(engine, name):
    engine, row = ENGINES[engine], STRUCTURES[name]
    for potentials in cases(engine, row):
        truth = Truth(row, potentials)
        result = engine.infer(row.structure, potentials, **({"random_state": 0} if engine.drawn else {}))
        brackets(result, truth)
        assert result.exact == (name in engine.exact)
        if result.exact:
            assert result.log_z.sum() == pytest.approx(truth.log_z, rel=1e-10, abs=1e-10)
            for found, expected in zip(arrays(row.gradient(result.marginals)), truth.marginals, strict=True):
                np.testing.assert_allclose(found, expected, atol=1e-8)
        room = 1e-7 + (result.certificate.sum() if result.certificate is not None else 0.0)
        if engine.side == "above":
            assert result.log_z.sum() >= truth.log_z - room
        if engine.side == "below":
            assert result.log_z.sum() <= truth.log_z + room


@pairs
def test_the_status_says_the_truth(engine, name):
    engine, row = ENGINES[engine], STRUCTURES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = engine.infer(row.structure, cases(engine, row)[0])
    assert result.engine == ("exact" if engine.name == "auto" else engine.name)
    assert result.status.ok
    assert (result.status is Status.EXACT) == (result.engine in ("exact", "planar"))
    assert (result.status is Status.SAMPLED) == engine.drawn
    assert result.knows_log_z == engine.knows
    assert np.isfinite(result.log_z).all() == engine.knows
    if engine.stops:
        assert result.status is Status.CONVERGED
        assert result.residual <= result.tol
        assert result.n_iter > 0


@pytest.mark.parametrize(("engine", "name"), [pair for pair in EVERY if ENGINES[pair[0]].stops])
def test_bounds_hold_where_an_engine_stopped_short(engine, name):
    engine, row = ENGINES[engine], STRUCTURES[name]
    potentials = row.potentials(2.0, 0.0, 5)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = engine.infer(row.structure, potentials, **engine.stops)
    brackets(result, Truth(row, potentials))
    told = [str(warning.message) for warning in given if issubclass(warning.category, ConvergenceWarning)]
    assert bool(told) != result.status.ok
    assert not result.status.ok or name in ACYCLIC
    if not result.status.ok:
        assert f"engine {engine.name} has {result.status}" in told[0]
        assert result.residual > result.tol
        assert not result.exact


def agree(graph, marginals, atol):
    """Tables sum to one, and say the same of every variable."""
    found = {}
    for scope, table in zip(graph.factors, graph.tables(marginals), strict=True):
        np.testing.assert_allclose(table.sum(), 1.0, atol=1e-9)
        for axis, v in enumerate(scope):
            p = table.sum(axis=tuple(a for a in range(len(scope)) if a != axis))
            np.testing.assert_allclose(found.setdefault(v, p), p, atol=atol)


def degrees(structure, marginals, atol):
    """Edges at a vertex sum to one (or b), or to at most that."""
    most = getattr(structure, "b", np.ones(structure.n_vertices))
    sums = np.bincount(structure.ends.ravel(), np.repeat(marginals.ravel(), 2), structure.n_vertices)
    np.testing.assert_allclose(np.where(structure.may_stay_alone, np.maximum(sums, most), sums), most, atol=atol)


@pytest.mark.parametrize(("engine", "name"), [pair for pair in EVERY if pair[1] not in ALONE])
def test_marginals_sum_as_they_must(engine, name):
    engine, row = ENGINES[engine], STRUCTURES[name]
    for potentials in cases(engine, row):
        marginals = engine.infer(row.structure, potentials).marginals
        assert marginals.shape == potentials.shape
        assert marginals.min() >= -1e-9
        assert not marginals[potentials == -np.inf].any()
        graph = row.structure.families if name == "BayesNet" else row.structure
        (degrees if name in MATCHINGS + B_MATCHINGS else agree)(
            graph, marginals, 1e-6 if engine.name != "frank_wolfe" else 1e-5
        )


@pytest.mark.parametrize(("engine", "name"), [pair for pair in EVERY if ENGINES[pair[0]].drawn])
def test_the_seed_decides(engine, name):
    engine, row = ENGINES[engine], STRUCTURES[name]
    potentials = row.potentials(1.0, 0.0, 0)
    one, again, other = (engine.infer(row.structure, potentials, random_state=seed) for seed in (3, 3, 4))
    for attribute in ("marginals", "log_z", "lower", "upper"):
        np.testing.assert_array_equal(getattr(one, attribute), getattr(again, attribute))
    assert (one.marginals != other.marginals).any()


@pytest.mark.parametrize(("engine", "name"), [pair for pair in EVERY if STRUCTURES[pair[1]].threads])
def test_threads_change_no_bit(engine, name, monkeypatch):
    monkeypatch.setattr(parallel, "OPERATIONS_PER_CHUNK", 1)  # so that small work is cut up
    engine, row, found = ENGINES[engine], STRUCTURES[name], []
    alone = [row.potentials(1.0, 0.0, seed) for seed in range(3)]
    for n_jobs in (1, 2):
        structure = row.make(n_jobs)
        whole, potentials = row.join(structure, alone) if row.join else (structure, alone[0])
        potentials = engine.takes(whole, potentials)
        result = engine.infer(whole, potentials, **({"random_state": 0} if engine.drawn else {}))
        found.append((result.log_z, *arrays(result.marginals), result.lower, result.upper))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("engine", "name"), [pair for pair in EVERY if ENGINES[pair[0]].finite])
def test_engines_that_need_finite_potentials_say_so(engine, name):
    row = STRUCTURES[name]
    with pytest.raises(ValueError, match="takes finite potentials"):
        ENGINES[engine].infer(row.structure, row.potentials(1.0, 0.7, 1))

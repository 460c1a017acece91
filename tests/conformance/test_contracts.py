"""A table for each contract: solvers, objectives with their capabilities, feature maps."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import typing
from dataclasses import dataclass, is_dataclass
from pathlib import Path

import numpy as np
import pytest

import partita
from partita import StochasticStart, solvers
from partita.chain.features.tied import TiedFeatures
from partita.core import Capability, Objective, ObjectiveBase, Point, Solver, contracts
from partita.features import LabelFeatures, linear_map
from partita.matching.features import NodePairs
from partita.objectives.composite.draws import DrawnBatches
from partita.objectives.products import ProductModel
from partita.solvers import make_solver
from partita.solvers.named import solver_classes

sys.path.insert(0, str(Path(__file__).parent))
from zoo import OBJECTIVES, X, Y, chain_features, edge_features, tied_tables

SOURCE = Path(partita.__file__).parent

#: The protocol of what a capability adds to the points of an objective, or (the last ones) to the objective itself.
AT_A_POINT = {
    Capability.WORKING_SET: contracts.HasWorkingSet,
    Capability.ORTHANT: contracts.HasOrthantStep,
    Capability.HESSIAN_PRODUCT: contracts.HasHessianProduct,
    Capability.PRECONDITIONER: contracts.HasPreconditioner,
    Capability.MODEL: contracts.HasModel,
    Capability.HESSIAN: contracts.HasModel,
    Capability.QUADRATIC_BOUND: contracts.HasModel,
    Capability.LOW_RANK_BOUND: contracts.HasLowRankModel,
    Capability.NEWTON_TRIAL: contracts.HasNewtonTrial,
    Capability.SUBSPACE: contracts.HasSubspace,
    Capability.EM_STEP: contracts.HasEMStep,
    Capability.CONSTRAINED_STEP: contracts.HasConstrainedStep,
}
ON_A_RAY = {Capability.LINE_BOUND: contracts.BoundedRay}
OF_THE_OBJECTIVE = {
    Capability.BATCHES: contracts.HasBatches,
    Capability.SWEEPS: contracts.HasSweeps,
    Capability.BLOCKS: contracts.HasBlocks,
}


def members(protocol):
    """The names that a protocol itself declares."""
    return {name for name in vars(protocol) if not name.startswith("_")}


def arguments(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


#: Every class of solvers in the list of names.
CLASSES = [cls for cls in (getattr(solvers, name) for name in solvers.__all__) if isinstance(cls, type)]


def state_class(cls):
    """What a class of solvers says its state is."""
    for base in cls.__mro__:
        for generic in base.__dict__.get("__orig_bases__", ()):
            first = typing.get_args(generic)[:1]
            if first and isinstance(first[0], type):
                return first[0]
    return None


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
class TestEverySolver:
    def test_is_a_value_that_inherits_the_contract(self, cls):
        assert issubclass(cls, Solver)
        assert is_dataclass(cls)
        assert cls.__dataclass_params__.frozen
        assert cls() == cls()
        assert hash(cls()) == hash(cls())

    def test_is_found_by_its_name(self, cls):
        assert cls.key
        assert solver_classes()[cls.key] is cls
        assert make_solver(cls.key) == cls()
        assert sum(other.key == cls.key for other in CLASSES) == 1

    def test_is_exported(self, cls):
        assert cls.__name__ == "Auto" or getattr(partita, cls.__name__) is cls

    def test_declares_capabilities_only(self, cls):
        solver = cls()
        for declared in (solver.requires, solver.uses, *solver.alternatives):
            assert isinstance(declared, frozenset)
            assert declared <= set(Capability)

    def test_overrides_nothing_but_what_the_contract_declares(self, cls):
        """A hook that the loop does not know would never be called."""
        hooks = {name for name in vars(Solver) if not name.startswith("_")}
        for name in hooks & set(vars(cls)) - {"key", "stochastic", "keeps_last"}:
            own, declared = vars(cls)[name], vars(Solver)[name]
            assert isinstance(own, property) == isinstance(declared, property), name
            if not isinstance(own, property):
                assert arguments(own) == arguments(declared), name

    def test_has_a_state_of_its_own(self, cls):
        solver, state = cls(), state_class(cls)
        assert is_dataclass(state)
        makes = [make for make in OBJECTIVES.values() if solver.requires <= make().capabilities]
        assert makes, "no objective of the zoo offers what it requires"
        for make in makes:
            objective = make()
            point = solver.first(objective, objective.project(np.zeros(objective.size)))
            assert type(solver.start(objective, point)) is state


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if "random_state" in cls.__dataclass_fields__])
def test_solvers_that_draw_take_another_seed(cls):
    assert cls(random_state=3).with_seed(7) == cls(random_state=7)


def test_those_that_do_not_draw_stay_as_they_are():
    for cls in CLASSES:
        solver = cls()
        assert "random_state" in cls.__dataclass_fields__ or solver.with_seed(7) is solver


def test_every_capability_has_a_protocol():
    rows = (AT_A_POINT, ON_A_RAY, OF_THE_OBJECTIVE)
    assert set().union(*rows) == set(Capability) - {Capability.SMOOTH}
    assert sum(map(len, rows)) == len(Capability) - 1


def test_a_point_has_five_members():
    assert members(Point) == {"parameters", "value", "gradient", "gap", "along"}


def test_the_base_class_has_all_that_the_loop_may_ask():
    assert members(Objective) <= {*vars(ObjectiveBase), *ObjectiveBase.__annotations__}


def start_of(objective):
    """A place that is no minimum and, where there is a set, within it."""
    return objective.project(0.1 * np.random.default_rng(0).standard_normal(objective.size))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_keeps_the_contract(name):
    objective = OBJECTIVES[name]()
    assert isinstance(objective, ObjectiveBase)
    assert objective.capabilities <= set(Capability)
    assert objective.demands <= objective.capabilities
    assert objective.scale > 0.0
    for cost in (objective.dense_cost, objective.strong_cost):
        assert cost > 0.0
    assert objective.n_examples > 0
    assert objective.costly_rays in (True, False)
    theta = start_of(objective)
    np.testing.assert_array_equal(objective.project(theta), theta)
    point = objective.at(theta)
    assert isinstance(point.value, float)
    assert point.gap >= 0.0
    assert np.isfinite(point.gradient).all()
    np.testing.assert_array_equal(point.parameters, theta)
    if Capability.SMOOTH in objective.capabilities:
        ray = point.along(np.ones(objective.size))
        following, slope = ray.at(1e-4)
        assert slope == pytest.approx((following.value - point.value) / 1e-4, rel=0.05, abs=1e-4 * objective.scale)
    else:
        with pytest.raises(NotImplementedError, match="no slope along a line"):
            point.along(theta)


def declared(protocols, objectives):
    """The protocols of what some objectives declare, and those of what none of them does."""
    offered = frozenset().union(*(objective.capabilities for objective in objectives))
    some = {protocol for capability, protocol in protocols.items() if capability in offered}
    return some, set(protocols.values()) - some


@functools.cache
def objectives_by_class():
    """The objectives of the zoo and their points, by the class of the point. Made in a test: this compiles kernels."""
    found = {}
    for make in OBJECTIVES.values():
        objective = make()
        point = objective.at(start_of(objective))
        found.setdefault(type(point), []).append((objective, point))
    return found


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_have_the_methods_of_what_they_declare_and_no_others(name):
    """What a class can do is what some objective of it declares: the rest would never be called, or guessed at."""
    own = OBJECTIVES[name]()
    pairs = objectives_by_class()[type(own.at(start_of(own)))]
    objectives, points = ([pair[k] for pair in pairs] for k in (0, 1))
    smooth = [p for o, p in zip(objectives, points, strict=True) if Capability.SMOOTH in o.capabilities]
    rays = [point.along(np.ones_like(point.parameters)) for point in smooth]
    for protocols, owners in ((AT_A_POINT, points), (ON_A_RAY, rays), (OF_THE_OBJECTIVE, objectives)):
        some, others = declared(protocols, objectives)
        for owner in owners:
            for protocol in some:
                for name in members(protocol):
                    assert hasattr(owner, name), f"{protocol.__name__} is declared, but there is no {name}"
                    if inspect.isfunction(vars(protocol)[name]):
                        assert arguments(getattr(type(owner), name)) == arguments(vars(protocol)[name])
            for protocol in others:
                for name in members(protocol):
                    assert not hasattr(owner, name), f"{name}, but no objective declares {protocol.__name__}"


def is_linear(product, size):
    """Whether a product is a linear map of vectors of this size."""
    u, v = np.random.default_rng(1).standard_normal((2, size))
    np.testing.assert_allclose(product(2.0 * u + v), 2.0 * product(u) + product(v), rtol=1e-6, atol=1e-6)
    return True


def models_touch(point, kinds):
    for kind in kinds:
        model = point.model(kind)
        assert model.value(point.parameters) == pytest.approx(point.value)
        assert is_linear(model.matvec, len(point.parameters))
        assert model.is_bound == (kind != "hessian")
        ones = np.ones_like(point.parameters)
        np.testing.assert_allclose(model.matvec(model.solve(ones)), ones, atol=0.01)


def sources_agree(objective, point):
    source = objective.batches(0)
    batches = source.shuffled(7)
    if isinstance(source, DrawnBatches):
        source.rng = None  # draws agree on average only (tests/objectives/test_drawn_objects.py): weigh by probabilities
    found = [source.evaluate(point.parameters, lo, hi) for lo, hi in batches]
    loss = sum(value for value, _ in found)
    gradient = sum(source.pull_back(residual, lo, hi) for (_, residual), (lo, hi) in zip(found, batches, strict=True))
    theta = point.parameters
    assert loss + 0.5 * source.penalty @ theta**2 == pytest.approx(point.value)
    np.testing.assert_allclose(gradient + source.penalty * theta, point.gradient, atol=1e-9)
    total = source.curvature()
    source.add_curvature(total, "hessian", theta, *batches[0], 1.0)
    total.prepare(source.penalty, 7, 0.5)
    assert is_linear(total.copy().solve, objective.size)


def planes_agree(point):
    plane = point.subspace([point.gradient[: len(point.parameters)]])
    coordinates = np.full(plane.dimension, -1e-6)
    value, gradient, hessian = plane.evaluate(coordinates)
    assert value == pytest.approx(plane.at(coordinates).value)
    assert gradient.shape == (plane.dimension,)
    assert hessian.shape == (plane.dimension, plane.dimension)


def trial_is_on_its_ray(point):
    ray, trial, step, slope = point.newton_trial()
    expected, slope_there = ray.at(step)
    np.testing.assert_allclose(trial.parameters, expected.parameters, atol=1e-10)
    assert slope == pytest.approx(slope_there, abs=1e-8)


def sweeps_descend(objective, point):
    sweeps = objective.sweeps(point.parameters, 0)
    sweeps.advance()
    assert objective.at(sweeps.parameters()).value < point.value


def blocks_close_the_gap(objective):
    blocks = objective.blocks()
    before = blocks.value()
    assert blocks.step(0, None) >= 0.0
    assert blocks.step_all(0.1) >= 0.0
    assert np.isfinite(blocks.parameters).all()
    assert blocks.value() <= before + 1e-9 * abs(before)
    assert blocks.n_blocks == objective.n_examples


def segments_are_feasible(objective, point):
    inner = point.unrestricted
    ray = point.step_within(
        ProductModel(inner.parameters, inner.value, inner.gradient, lambda v: 9.0 * v, lambda v: v / 9.0)
    )
    if Capability.MODEL in objective.capabilities:
        ray = point.constrained_step("hessian")
    assert ray.slope <= 0.0
    assert ray.reach >= 1.0
    following, _ = ray.at(1.0)
    np.testing.assert_array_equal(objective.project(following.parameters), following.parameters)
    assert ray.stay().value == point.value


def descends(point, following):
    assert following.value < point.value


def lines_are_bounded(point):
    ray = point.along(-point.gradient)
    step = ray.bound().step()
    assert step > 0.0
    descends(point, ray.at(step)[0])


def low_rank_bounds_are_quadratics(point):
    model = point.low_rank_model("symmetric", 2, "lanczos", False, None)
    again = point.low_rank_model("symmetric", 2, "lanczos", False, model)
    assert is_linear(again.inflated().solve, len(point.parameters))
    assert again.inflated().trace() > again.trace()


#: What each capability is used for, on an objective and a point of it.
USES = {
    Capability.WORKING_SET: lambda o, p: descends(p, p.descend(np.arange(o.size), 1e-3)),
    Capability.ORTHANT: lambda o, p: descends(p, p.orthant_step(-1e-3 * p.gradient)),
    Capability.HESSIAN_PRODUCT: lambda o, p: is_linear(p.hessian_product(), o.size),
    Capability.PRECONDITIONER: lambda o, p: is_linear(p.preconditioner(), o.size),
    Capability.MODEL: lambda o, p: models_touch(p, ["hessian"]),
    Capability.HESSIAN: lambda o, p: models_touch(p, ["hessian"]),
    Capability.QUADRATIC_BOUND: lambda o, p: models_touch(p, contracts.BOUNDS),
    Capability.LOW_RANK_BOUND: lambda o, p: low_rank_bounds_are_quadratics(p),
    Capability.NEWTON_TRIAL: lambda o, p: trial_is_on_its_ray(p),
    Capability.SUBSPACE: lambda o, p: planes_agree(p),
    Capability.EM_STEP: lambda o, p: descends(p, o.at(p.em_step())),
    Capability.CONSTRAINED_STEP: segments_are_feasible,
    Capability.LINE_BOUND: lambda o, p: lines_are_bounded(p),
    Capability.BATCHES: sources_agree,
    Capability.SWEEPS: sweeps_descend,
    Capability.BLOCKS: lambda o, p: blocks_close_the_gap(o),
}


@pytest.mark.parametrize(
    ("name", "capability"),
    [(name, c) for name, make in OBJECTIVES.items() for c in sorted(make().capabilities & set(USES), key=lambda c: c.name)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_what_is_declared_works(name, capability):
    objective = OBJECTIVES[name]()
    USES[capability](objective, objective.at(start_of(objective)))


FEATURE_MAPS = {
    "dense": lambda: linear_map(X, 3, True),
    "labels": lambda: LabelFeatures(np.random.default_rng(0).standard_normal((5, 3, 4))),
    "chains": chain_features,
    "tied chains": lambda: TiedFeatures(chain_features(), np.arange(chain_features().size) // 2),
    "tables": tied_tables,
    "edges": edge_features,
    "pairs of nodes": lambda: NodePairs(*np.random.default_rng(0).standard_normal((2, 3, 4, 2))),
}


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_every_feature_map_is_linear_and_has_its_adjoint(name):
    """``<A theta, mu> = <theta, A' mu>``, whatever the shape of potentials."""
    features, rng = FEATURE_MAPS[name](), np.random.default_rng(1)
    theta = rng.standard_normal(features.size)
    image = features.forward(theta)
    parts = image if isinstance(image, tuple) else (image,)
    mu = tuple(rng.standard_normal(part.shape) for part in parts)
    product = sum(float(np.vdot(part, other)) for part, other in zip(parts, mu, strict=True))
    back = features.adjoint(mu if isinstance(image, tuple) else mu[0])
    assert back.shape == (features.size,)
    assert product == pytest.approx(float(theta @ back))


def test_no_solver_objective_or_point_is_guessed_at():
    """What it has is a type or a declared capability; `getattr` with a default would hide a missing one."""
    targets = {"solver", "method", "objective", "point", "state", "smooth", "likelihood", "inner", "finish"}
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
                first = node.args[0]
                name = first.attr if isinstance(first, ast.Attribute) else first.id if isinstance(first, ast.Name) else ""
                if name in targets or path.parent.name == "solvers":
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not found, found


def test_a_solver_of_ones_own_is_not_stored_as_another_of_its_name(tmp_path):
    @dataclass(frozen=True)
    class Newton(partita.SteepestDescent):
        pass

    model = partita.SoftmaxRegression(solver=Newton(), tol=1e-2).fit(X, Y)
    with pytest.raises(TypeError, match=r"parameter solver=.* cannot be stored"):
        model.save(tmp_path / "model")
    assert model.set_params(solver=partita.Newton()).save(tmp_path / "model") is None
    assert partita.load(tmp_path / "model").solver == partita.Newton()


def test_a_start_goes_on_with_any_solver():
    """Wrapped solvers are asked for the same things as others."""
    objective = OBJECTIVES["chains"]()
    for finish in (make_solver("newton"), make_solver("cg"), make_solver("majorize")):
        assert partita.minimize(objective, solver=StochasticStart(finish, epochs=1), tol=1e-6).status.ok

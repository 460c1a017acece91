"""l1 and constraints, alone and together: every family against SciPy on the same likelihood, duals, units and names."""

from __future__ import annotations

import matrix
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize

from partita import ConstrainedLBFGS, ConstrainedNewton, DependencyCRF, Majorize, MarkovNetwork, SoftmaxRegression, minimize
from partita.constraints import Ball, Box, Linear, Monotone, Simplex, Ties
from partita.estimators import trained
from partita.objectives import Constrained, FeasibleSet, NamedWeights, compile_constraints
from partita.objectives.conjugates import RestrictedConjugate
from partita.objectives.constraints.units import in_units
from partita.softmax.estimators.problem import softmax_objective

#: Those with a convex likelihood and few weights; the matrix checks that local optima of others are stationary.
FAMILIES = ["SoftmaxRegression", "ChainCRF", "BoltzmannChain", "GraphCRF", "MarkovNetwork", "MatchingCRF", "DependencyCRF"]
#: Relative excess over an independent optimum.
CLOSE = 1e-6
RNG = np.random.default_rng(0)
#: Sentences whose pairs have three numbers each.
SENTENCES = [RNG.standard_normal((4, 4, 3)) for _ in range(6)], [[2, 3, 0], [0, 1, 2], [2, 0, 2]] * 2


def polyhedron(feasible):
    """Rows of a set, ties among them, with their sides."""
    d = feasible.size
    rows = [np.zeros((0, d))] if feasible.rows is None else [feasible.rows.toarray()]
    low, high = ([part] for part in feasible.row_bounds())
    for group in feasible.ties:
        rows.append(np.eye(d)[group[1:]] - np.eye(d)[group[0]])
        low.append(np.zeros(len(group) - 1))
        high.append(np.zeros(len(group) - 1))
    return np.vstack(rows), np.concatenate(low), np.concatenate(high)


def by_slsqp(evaluate, feasible, l1):
    """The minimum that SciPy finds: a weight with an l1 penalty is the difference of two parts."""
    d = feasible.size
    E = np.hstack([np.eye(d), -np.eye(d)]) if np.any(l1) else np.eye(d)
    cost = np.broadcast_to(l1, (d,)) @ np.abs(E)

    def value(z):
        loss, gradient = evaluate(E @ z)
        return loss + cost @ z, E.T @ gradient + cost

    A, low, high = polyhedron(feasible)
    inside = np.vstack([np.eye(d), -np.eye(d), A, -A])
    ends = np.concatenate([-feasible.lower, feasible.upper, -low, high])
    inside, ends = (inside @ E)[np.isfinite(ends)], ends[np.isfinite(ends)]
    constraint = {"type": "ineq", "fun": lambda z: inside @ z + ends, "jac": lambda z: inside}
    bounds = [(0.0, None)] * (2 * d) if np.any(l1) else None
    found = scipy_minimize(
        value,
        np.zeros(E.shape[1]) + 0.01,
        jac=True,
        method="SLSQP",
        bounds=bounds,
        constraints=[constraint] if len(ends) else [],
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return float(found.fun), E @ found.x


@pytest.mark.parametrize("l1", [0.0, 0.7])
@pytest.mark.parametrize("kind", ["rows in a box", "ties"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_reaches_the_optimum_of_scipy(monkeypatch, name, kind, l1):
    seen = []

    def minimized(objective, *arguments, **options):
        seen.append(objective)
        return minimize(objective, *arguments, **options)

    monkeypatch.setattr(trained, "minimize", minimized)
    options = {"l1": l1} if l1 else {}
    if name == "DependencyCRF":
        sets = [Ties(features=[0, 1])] if kind == "ties" else [Box(-0.2, 0.4), Linear([[1.0, -1.0, 0.5]], upper=-0.1)]
        model = DependencyCRF(l2=matrix.L2, tol=1e-9, constraints=sets, **options).fit(*SENTENCES)
    else:
        sets = [matrix._ties(name)[0]] if kind == "ties" else [matrix._set(name, "linear")[0], Box(-0.2, 0.4)]
        model = matrix.SUBJECTS[name].fit(constraints=sets, **options)
    objective = seen[-1]
    likelihood = (
        objective.likelihood if isinstance(objective, Constrained) or l1 else objective
    )  # ties of chains: in the map
    feasible = objective.feasible if isinstance(objective, Constrained) else FeasibleSet.everything(objective.size)

    def evaluate(theta):
        point = likelihood.at(theta)
        return point.value, point.gradient

    best, _ = by_slsqp(evaluate, feasible, objective.l1 if l1 else 0.0)
    assert abs(model.trace_.objective[-1] - best) <= CLOSE * abs(best)


def wine():
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import scale

    X, y = load_wine(return_X_y=True)
    return softmax_objective(scale(X)[::3], y[::3], l2=0.5, penalize_intercept=True)


SETS = {
    "everything": [],
    "box": [Box(-0.2, 0.3)],
    "positive": [Box(lower=0.0)],
    "monotone": [Monotone()],
    "ties and a row": [Ties(features=[0, 1, 2]), Linear(np.ones((1, 39)), upper=0.5)],
    "ties in a box": [Ties(features=[0, 1, 2]), Box(-0.1, 0.1, features=[1])],
}


@pytest.mark.parametrize("name", SETS)
def test_all_constrained_solvers_end_at_one_optimum_with_l1_and_the_gap_bounds_the_way(name):
    likelihood = wine()
    whole = compile_constraints(SETS[name], likelihood.features) if SETS[name] else FeasibleSet.everything(likelihood.size)
    objective = Constrained(likelihood, whole, 1.5)
    runs = [minimize(objective, solver=solver, tol=1e-8) for solver in (ConstrainedNewton(), ConstrainedLBFGS(), Majorize())]
    best = min(run.value for run in runs)
    for run in runs:
        assert run.value - best <= 1e-9 * best
        assert np.all(np.diff(run.trace.objective) <= 1e-12 * best)
        assert np.all(run.trace.objective - best <= run.trace.gap + 1e-9 * best)
        assert run.trace.gap[-1] <= 1e-6 * best
        assert whole.contains(run.parameters)
    assert (runs[0].parameters == 0.0).sum() == (runs[1].parameters == 0.0).sum() > 0


@pytest.mark.parametrize("l1", [None, 0.4])
@pytest.mark.parametrize(
    "sets",
    [
        [Box(-0.1, 0.5)],
        [Ties([[(0, 0), (0, 2)]]), Box(upper=0.3)],
        [Linear([[1.0, 1.0, -1.0, 0.0]], upper=-0.2)],
        [Simplex()],
    ],
)
def test_conjugates_are_the_largest_values_and_parameters_their_slopes(sets, l1):
    feasible = compile_constraints(sets, NamedWeights.of_features(4))
    penalty, d = np.array([1.0, 2.0, 0.5, 1.5]), np.array([1.0, -2.0, 0.7, 0.1])
    strength = None if l1 is None else np.full(4, l1)
    conjugate = RestrictedConjugate(penalty, 4, strength, feasible)
    theta = conjugate.parameters(d)
    assert feasible.contains(theta)

    def evaluate(x):
        return 0.5 * float(penalty @ (x * x)) - float(d @ x), penalty * x - d

    best, where = by_slsqp(evaluate, feasible, 0.0 if l1 is None else l1)
    assert conjugate.value(d) == pytest.approx(-best, abs=1e-8)
    np.testing.assert_allclose(theta, where, atol=1e-4)  # SLSQP ends by values
    for direction in np.eye(4):
        slope = (conjugate.value(d + 1e-6 * direction) - conjugate.value(d - 1e-6 * direction)) / 2e-6
        assert slope == pytest.approx(theta @ direction, abs=1e-6)


def test_a_set_in_other_units_has_the_same_members():
    back = sp.csr_matrix([[0.5, 0.0, 0.0], [0.0, 2.0, 0.0], [0.3, -0.7, 1.0]])
    sets = [Box(-0.5, [0.3, 0.2, 0.4]), Linear([[1.0, -1.0, 2.0]], upper=0.1), Ties([[(0, 0), (0, 1)]]), Ball(0.6)]
    for chosen in (sets[:1], sets[1:2], sets[2:3], sets):
        pytest.importorskip("clarabel")
        plain = compile_constraints(chosen, NamedWeights.of_features(3))
        other = in_units(plain, back)
        rng = np.random.default_rng(1)
        for z in rng.uniform(-0.6, 0.6, (200, 3)):
            z = np.array([z[0], 0.25 * z[0], z[2]]) if len(chosen) == 1 and chosen[0] is sets[2] else z
            assert other.contains(z) == plain.contains(back @ z)


@pytest.mark.parametrize("size", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_weights_within_bounds_and_ties_need_no_matrix(size):
    X = sp.random(200, size, 10.0 / size, format="csr", random_state=0)
    y = np.random.default_rng(0).integers(0, 2, 200)
    sets = [Box(lower=0.0), Ties(features=range(1000))]
    model = SoftmaxRegression(constraints=sets, solver=ConstrainedLBFGS(), fit_intercept=False, tol=1e-5).fit(X, y)
    assert model.status_.ok
    assert model.coef_.min() == 0.0
    assert np.ptp(model.coef_[0, :1000]) == 0.0
    assert model.kkt_residual_ <= 1e-5


@pytest.mark.parametrize("name", ["MarkovNetwork", pytest.param("GraphCRF", marks=pytest.mark.slow)])
def test_duals_by_best_configurations_end_where_gradients_do(name):
    for options in ({"l1": 0.7}, {"constraints": [Box(-0.2, 0.3)]}, {"l1": 0.7, "constraints": [matrix._ties(name)[0]]}):
        given = {"likelihood": "bethe", **options}
        free = matrix.SUBJECTS[name].fit(**given)
        dual = matrix.SUBJECTS[name].fit(solver="block_frank_wolfe", **(given | {"tol": 1e-4}))
        ends = [model.trace_.objective[-1] for model in (free, dual)]
        assert free.gap_ <= 1e-4 * ends[0]
        assert np.isfinite(dual.gap_)
        # Each is at most its gap above the same minimum.
        assert -free.gap_ - 1e-9 <= ends[1] - ends[0] <= dual.gap_ + 1e-9


def test_unknown_names_are_refused_with_those_that_are_near():
    X = [[{"word": "street"}, {"word": "of"}], [{"word": "streets"}, {"word": "fire"}]]
    y = [["NOUN", "ADP"], ["NOUN", "NOUN"]]
    fit = matrix.pt.ChainCRF
    with pytest.raises(ValueError, match=r"names the feature 'word:strets'.*near it are 'word:streets', 'word:street'"):
        fit(constraints=[Box(features=["word:strets"])]).fit(X, y)
    with pytest.raises(ValueError, match=r"names the label 'NUON'.*near it are 'NOUN'"):
        fit(constraints=[Box(labels=["NUON"])]).fit(X, y)
    with pytest.raises(ValueError, match=r"names the transition \('NOUN', 'VERB'\)"):
        fit(constraints=[Box(transitions=[("NOUN", "VERB")])]).fit(X, y)
    with pytest.raises(ValueError, match=r"names the factor \(0, 2\).*near it are \(0, 1\)"):
        MarkovNetwork.ising([(0, 1)], constraints=[Box(factors=[(0, 2)])]).fit([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match="either transitions, or factors"):
        Box(transitions=[("a", "b")], features=["c"])


def test_weights_are_found_by_name():
    X = [[{"word": "street"}, {"word": "of"}], [{"word": "streets"}, {"word": "fire"}], [{"word": "of"}, {"word": "of"}]]
    y = [["NOUN", "ADP"], ["NOUN", "NOUN"], ["ADP", "ADP"]]
    sets = [
        Box(lower=0.5, features=["word:street"], labels=["NOUN"]),
        Box(upper=-0.25, transitions=[("NOUN", "NOUN")]),
        Ties([[("NOUN", "word:streets"), ("ADP", "word:of")]]),
    ]
    model = matrix.pt.ChainCRF(constraints=sets).fit(X, y)
    assert model.state_features_["word:street", "NOUN"] >= 0.5
    assert model.transition_features_["NOUN", "NOUN"] == -0.25
    assert model.state_features_["word:streets", "NOUN"] == model.state_features_["word:of", "ADP"] != 0.0

"""EM on whatever has something hidden."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import OBJECTIVES

from partita import EM, LBFGS, Newton, Status, minimize
from partita.core import Capability

HIDDEN = ["chains, unknown labels", "boltzmann chains, unknown labels", "graphs, unknown states", "trees, unknown heads"]


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("acceleration", [None, "squarem"])
def test_em_falls_to_a_stationary_point(name, acceleration):
    objective = OBJECTIVES[name]()
    assert Capability.EM_STEP in objective.capabilities
    solution = minimize(objective, solver=EM(acceleration), tol=1e-7, max_iter=2000)
    assert solution.status in (Status.CONVERGED, Status.PRECISION)
    assert (np.diff(solution.trace.objective) <= 1e-13 * solution.value).all()
    found = minimize(objective, solution.parameters, Newton(), tol=1e-10)
    assert solution.value == pytest.approx(found.value, rel=1e-8)


@pytest.mark.parametrize("name", HIDDEN)
def test_the_m_step_minimises_a_function_above_that_touches(name, rng):
    """Jensen: with the tangent in place of what is hidden, F rises nowhere, and not at all at the point itself."""
    objective = OBJECTIVES[name]()
    point = objective.at(0.5 * rng.standard_normal(objective.size))
    expected = objective.expecting(np.zeros(objective.size)).at(point.parameters).gradient - point.gradient
    above = objective.expecting(expected)
    there = above.at(point.parameters)
    np.testing.assert_allclose(there.gradient, point.gradient, atol=1e-9)
    for scale in (0.1, 1.0, 5.0):
        theta = point.parameters + scale * rng.standard_normal(objective.size)
        assert objective.at(theta).value - point.value <= above.at(theta).value - there.value + 1e-9
    best = minimize(above, point.parameters, LBFGS(), tol=1e-9)
    assert above.at(point.em_step()).value == pytest.approx(best.value, rel=1e-7)


def test_where_all_is_known_there_is_nothing_to_expect():
    with pytest.raises(TypeError, match="hidden variables, of which EM takes expectations; here all is known"):
        minimize(OBJECTIVES["chains"](), solver="em")

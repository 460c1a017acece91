"""The skeletons of docs/adding.md work as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import partita as pt
from partita.features import linear_map
from partita.objectives import Likelihood
from partita.structures import Categorical

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding.md"


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names that the page defines."""
    module = ModuleType("adding")
    sys.modules["adding"] = module  # dataclasses look up the module of a class
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), vars(module))
    return vars(module)


@pytest.fixture(scope="module")
def objective() -> Likelihood:
    X, y = load_iris(return_X_y=True)
    return Likelihood(linear_map(X, 3, intercept=False), Categorical(3), y, penalty=1.0)


def test_the_structure_agrees_with_its_enumeration(page, rng):
    structure = page["Subsets"](5, 2)
    u = rng.standard_normal((3, 5))
    u[1, 2] = -np.inf
    every = structure.enumerate()
    assert len(every) == 10
    for row, result, best in zip(u, structure.infer(u).marginals, structure.argmax(u)[0], strict=True):
        scores = structure.score(row, every)
        p = np.exp(scores - structure.log_partition(row))
        np.testing.assert_allclose(p.sum(), 1.0, rtol=1e-12)
        np.testing.assert_allclose(result, p @ every, atol=1e-12)
        np.testing.assert_array_equal(best, every[scores.argmax()])
    drawn = structure.sample(u[0], 4000, random_state=0)
    np.testing.assert_allclose(drawn.mean(0), structure.infer(u[0]).marginals[0], atol=0.03)
    with pytest.raises(ValueError, match="potentials must be 5 numbers"):
        structure.infer(np.zeros(4))


def test_the_solver_finds_the_minimum(page, objective):
    best = pt.minimize(objective)
    found = pt.minimize(objective, solver=page["GradientDescent"](first_step=0.01), max_iter=3000, tol=1e-4)
    assert found.status is pt.Status.CONVERGED
    np.testing.assert_allclose(found.value, best.value, rtol=1e-5)


def test_the_oracle_finds_the_best(page, rng):
    u = rng.standard_normal(6)
    answer = page["BestSubset"](6, 3)(u)
    np.testing.assert_allclose(answer.value, np.sort(u)[3:].sum(), rtol=1e-12)


def test_the_estimator_is_one(page, objective, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = clone(page["PlainSoftmax"](tol=1e-8)).fit(X, y)
    np.testing.assert_allclose(model.trace_.objective[-1], pt.minimize(objective, tol=1e-8).value, rtol=1e-9)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(pt.load(tmp_path / "model").predict(X), model.predict(X))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="l2 must be a finite number >= 0"):
        model.set_params(l2=-1.0).fit(X, y)
    assert vars(model).keys() == before.keys()

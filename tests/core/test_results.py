"""What every `Result` is checked for, whoever makes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partita.core import NumericalError, Result, Status

HALF = np.array([0.5, 0.5])


def answer(log_z=1.0, lower=None, upper=None, **others):
    bounds = {name: None if b is None else np.array([b]) for name, b in (("lower", lower), ("upper", upper))}
    return Result(np.array([log_z]), **({"marginals": HALF, "exact": False, "engine": "mine"} | bounds | others))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_log_z_is_a_number(value):
    with pytest.raises(NumericalError, match=rf"engine mine gave log Z = {value}"):
        answer(value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1])
def test_marginals_are_probabilities(bad):
    with pytest.raises(NumericalError, match="engine mine gave marginals that are NaN, infinite or negative"):
        answer(marginals=np.array([0.5, bad]))
    with pytest.raises(NumericalError, match="marginals"):
        answer(marginals=(HALF, np.array([[bad]])))


def test_nothing_known_of_log_z_is_said():
    found = answer(np.nan, 0.0, 2.0, knows_log_z=False)
    assert (found.lower[0], found.upper[0], found.gap[0]) == (0.0, 2.0, 2.0)
    with pytest.raises(NumericalError, match="bound on log Z that is NaN"):
        answer(np.nan, np.nan, 2.0, knows_log_z=False)


@pytest.mark.parametrize(("lower", "upper"), [(1.1, None), (None, 0.9), (2.0, 1.5)])
def test_an_estimate_outside_its_own_bounds_is_an_error(lower, upper):
    with pytest.raises(NumericalError, match=r"engine mine contradicts itself in example 0: .*bound"):
        answer(1.0, lower, upper)


def test_rounding_is_taken_away():
    found = answer(1.0, 1.0 + 1e-12, 1.0 - 1e-12)
    assert found.lower[0] <= found.log_z[0] <= found.upper[0]


def test_bounds_are_clipped_to_the_trivial_ones_and_log_z_lies_between():
    found = answer(5.0, -9.0, 9.0).within(np.array([0.0]), np.array([2.0]))
    assert (found.lower[0], found.log_z[0], found.upper[0], found.free_energy[0]) == (0.0, 2.0, 2.0, 5.0)
    assert answer(-5.0).within(np.array([0.0]), np.array([2.0])).log_z[0] == 0.0
    narrow = answer(1.0, 0.9, 1.1).within(np.array([0.0]), np.array([2.0]))
    assert (narrow.lower[0], narrow.upper[0]) == (0.9, 1.1)
    with pytest.raises(NumericalError, match="contradicts itself"):
        answer(5.0, 4.0, 9.0).within(np.array([0.0]), np.array([2.0]))


def test_converged_needs_what_was_measured():
    with pytest.raises(ValueError, match="CONVERGED without the residual and tol"):
        answer(status=Status.CONVERGED)
    for residual in (2e-3, np.nan):
        with pytest.raises(NumericalError, match="residual of"):
            answer(status=Status.CONVERGED, residual=residual, tol=1e-3)
    found = answer(status=Status.CONVERGED, residual=1e-3, tol=1e-3)
    with pytest.raises(NumericalError):
        replace(found, tol=1e-4)

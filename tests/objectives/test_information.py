from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from partita.objectives.information import dense_errors


def point(H, uniform=None):
    """A point with Hessian H, of an objective whose Hessian at zero is `uniform`."""
    start = SimpleNamespace(parameters=np.zeros(len(H)), hessian_product=lambda: lambda v: uniform @ v)
    objective = SimpleNamespace(at=lambda theta: start)
    return SimpleNamespace(parameters=np.ones(len(H)), hessian_product=lambda: lambda v: H @ v, objective=objective)


def test_it_inverts_the_hessian(rng):
    A, B = rng.standard_normal((2, 8, 5))
    H, K = A.T @ A, B.T @ B
    inverse = np.linalg.inv(H)
    np.testing.assert_allclose(dense_errors(point(H)), np.sqrt(np.diag(inverse)), rtol=1e-9)
    np.testing.assert_allclose(dense_errors(point(H), K), np.sqrt(np.diag(inverse @ K @ inverse)), rtol=1e-9)


def test_a_singular_hessian_is_refused_with_the_reason(rng):
    A = rng.standard_normal((3, 5))
    H = A.T @ A
    with pytest.raises(ValueError, match="singular: 2 directions in the space of weights change no probability"):
        dense_errors(point(H, 2.0 * H))
    with pytest.raises(ValueError, match="singular: the labels are separated"):
        dense_errors(point(H, np.eye(5)))

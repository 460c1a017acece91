from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from partita.objectives.information import information_errors


def point(H):
    return SimpleNamespace(parameters=np.zeros(len(H)), hessian_product=lambda: lambda v: H @ v)


def test_it_inverts_the_hessian(rng):
    A = rng.standard_normal((8, 5))
    H = A.T @ A
    np.testing.assert_allclose(information_errors(point(H)), np.sqrt(np.diag(np.linalg.inv(H))), rtol=1e-9)


def test_a_singular_hessian_is_refused(rng):
    A = rng.standard_normal((3, 5))
    with pytest.raises(ValueError, match="information matrix is singular"):
        information_errors(point(A.T @ A))

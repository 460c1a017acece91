"""Numbers of the Bethe learning paper's synthetic experiment, and its inequalities in ten thousand random cases.

Data are drawn, so that a published likelihood is one draw among ours. Estimators on the same data go up and down together:
differences between them are far sharper than the likelihoods themselves.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from partita import minimize
from partita.matching.engines.frozen import frozen
from partita.matching.features import EdgeFeatures
from partita.matching.objective.exact import ExactMatchingLikelihood
from partita.matching.objective.likelihood import Group, MatchingLikelihood
from partita.structures import BipartiteMatching

N, DRAWS = 10, 30
RHOS = (None, 1.0, 0.5)  # exact sums, Bethe's, plain entropy
PUBLISHED = {  # off-diagonal weight, number of matchings: true penalised log-likelihood for each, at the three estimates
    (-2.0, 100): (-7.224, -7.263, -8.913),
    (-2.0, 10_000): (-7.481, -7.524, -9.308),
    (-0.5, 10_000): (-14.9213, -14.9214, -14.9262),
}
cases = pytest.mark.parametrize(("off", "m"), list(PUBLISHED))


def diagonal(n, off):
    return np.where(np.eye(n) > 0.0, 0.0, off)


@cache
def fits(off, m):
    """(data sets, estimators, 3): the true likelihood at the estimate, the likelihood it maximises, and the certificate.

    All examples have the same features, so that one with the mean of the matchings and the weight of all stands for them.
    """
    s, features = BipartiteMatching(N), EdgeFeatures(np.eye(N * N)[:, None, :])
    out = np.empty((DRAWS, len(RHOS), 3))
    for seed in range(DRAWS):
        shares = s.indicators(s.sample(diagonal(N, off), m, random_state=seed)).mean(0)
        group = Group(s, features, shares[None], np.array([float(m)]))
        for k, rho in enumerate(RHOS):
            objective = ExactMatchingLikelihood([group], 1.0) if rho is None else MatchingLikelihood([group], 1.0, rho)
            found = minimize(objective, tol=0.0, gap_tol=1e-6 * m, max_iter=2000)
            theta = np.asarray(found.parameters)
            log_z = s.log_partition(theta.reshape(N, N), "exact")[0]
            true = shares @ theta - log_z - theta @ theta / (2.0 * m)
            out[seed, k] = true, -found.point.value / m, found.point.gap / m
    return out


@cases
def test_published_likelihoods_are_draws_of_ours(off, m):
    true, published = fits(off, m)[:, :, 0], np.array(PUBLISHED[off, m])
    rounding = 1e-4 if off == -0.5 else 1e-3  # of a difference of two published numbers
    # At the true weights the likelihood of a draw is -off times a count of rows off the diagonal, and varies as it does.
    s, W = BipartiteMatching(N), diagonal(N, off)
    count = (s.sample(W, 20_000, random_state=0) != np.arange(N)).sum(1)
    assert true[:, 0].std(ddof=1) == pytest.approx(-off * count.std() / np.sqrt(m), rel=0.5)
    for ours, theirs in (
        (true[:, 0], published[0]),
        (true[:, 0] - true[:, 1], published[0] - published[1]),
        (true[:, 0] - true[:, 2], published[0] - published[2]),
        (true[:, 1] - true[:, 2], published[1] - published[2]),
    ):
        # One draw differs from the mean of ours by its own error and that of the mean.
        error = ours.std(ddof=1) * np.sqrt(1.0 + 1.0 / DRAWS)
        assert abs(ours.mean() - theirs) <= 3.0 * error + rounding


@cases
def test_likelihoods_of_estimators_are_in_order(off, m):
    true, own, gap = np.moveaxis(fits(off, m), 2, 0)
    assert (gap <= 1e-6).all()
    assert (true[:, 0] + gap[:, 0] >= true[:, 1]).all()
    assert (true[:, 1] > true[:, 2]).all()
    # Bethe's likelihood is above the true one everywhere, that of plain entropy below: so are their maxima.
    assert (own[:, 1] + gap[:, 1] >= true[:, 1]).all()
    assert (own[:, 2] <= true[:, 2] + gap[:, 2]).all()
    assert (own[:, 1] + gap[:, 1] >= own[:, 0]).all()
    assert (own[:, 2] <= own[:, 0] + gap[:, 0]).all()


@pytest.mark.filterwarnings("ignore:engine bethe has not converged")
def test_free_energies_enclose_log_z_in_ten_thousand_cases():
    """Certificates are taken into account, so that no case has to settle; those with moderate weights must."""
    rng, count = np.random.default_rng(0), 1430
    for n in range(2, 9):
        s = BipartiteMatching(n)
        scale = 10.0 ** rng.uniform(-1.0, np.log10(20.0), count)
        W = scale[:, None, None] * rng.standard_normal((count, n, n))
        exact = s.log_partition(W, "exact")
        bethe, plain = s.infer(W, rho=1.0, tol=1e-4, max_iter=500), s.infer(W, rho=0.5, tol=1e-2, max_iter=100)
        rounding = 1e-12 * (1.0 + np.abs(exact))
        assert (bethe.log_z - bethe.gap <= exact + rounding).all()
        assert (exact <= bethe.log_z + bethe.gap + 0.5 * n * np.log(2.0) + rounding).all()
        assert (exact <= plain.log_z + plain.gap + rounding).all()
        moderate = scale < 1.5
        assert (plain.gap[moderate] <= 1e-2).all()
        if n > 2:
            assert (bethe.gap[moderate] <= 1e-4).all()


@pytest.mark.filterwarnings("ignore:engine bethe has not converged")
@pytest.mark.parametrize("scale", [1.0, 3.0, 20.0])
def test_certificates_reach_the_best_matching(scale):
    """The entropy of a matching is zero, so that its score is at most the largest negative free energy."""
    for n in (2, 3, 5):
        W = scale * np.random.default_rng(0).standard_normal((500, n, n))
        result = BipartiteMatching(n).infer(W, rho=1.0, tol=1e-6, max_iter=500)
        assert (BipartiteMatching(n).argmax(W)[1] <= result.log_z + result.gap + 1e-9).all()


@pytest.mark.parametrize("n", [3, 6, 10])
def test_bethe_thaws_below_the_logarithm(n):
    """With 0 on the diagonal and -w elsewhere the solution has two values, and is the identity only from log(n - 1) on."""
    for w in (np.log(n - 1) - 0.3, np.log(n - 1) - 0.05):

        def energy(a, w=w):
            b = (1.0 - a) / (n - 1)
            entropy = [(1.0 - t) * np.log1p(-t) - t * np.log(t) for t in (a, b)]
            return -n * (entropy[0] + (n - 1) * (entropy[1] - w * b))

        found = minimize_scalar(energy, bounds=(1e-9, 1.0 - 1e-9), method="bounded", options={"xatol": 1e-12})
        result = BipartiteMatching(n).infer(diagonal(n, -w), rho=1.0, tol=1e-12)
        assert found.x < 0.99
        assert result.log_z[0] == pytest.approx(-found.fun, abs=1e-9)
        np.testing.assert_allclose(np.diag(result.marginals), found.x, atol=1e-5)


def test_where_the_best_matching_is_the_answer(rng):
    """Frozen exactly where the spectral radius is at most one; what the matching says of itself is never too little."""
    for n in (2, 3, 5, 8):
        for scale in (1.0, 5.0, 30.0):
            W = scale * rng.standard_normal((40, n, n))
            free = BipartiteMatching(n).infer(W, rho=1.0, tol=1e-9, max_iter=50_000)
            for w, value, gap in zip(W, free.log_z, free.gap, strict=True):
                columns, weight, above, *_ = frozen(w)
                assert value <= weight + above + gap + 1e-9
                A = np.exp(w[:, columns] - w[np.arange(n), columns][:, None]) - np.eye(n)
                radius = float(np.abs(np.linalg.eigvals(A)).max())
                if radius < 0.999:
                    assert above == 0.0
                    assert value == pytest.approx(weight, abs=1e-8)
                if radius > 1.05:
                    assert value > weight


@pytest.mark.parametrize(("beta", "bethe", "drawn"), [(0.25, 0.0002, 0.008), (10.0, 0.071, 0.153), (20.0, 0.214, 0.182)])
def test_marginals_against_exact_ones(beta, bethe, drawn):
    """The published errors are those of one matrix each, with uniform weights: among ours of forty."""
    s, W = BipartiteMatching(10), beta * np.random.default_rng(0).random((40, 10, 10))
    truth = s.infer(W, "exact").marginals
    errors = np.abs(s.infer(W, rho=1.0).marginals - truth).max(axis=(1, 2))
    assert np.quantile(errors, 0.2) - 5e-5 < bethe < np.quantile(errors, 0.8)
    sampled = s.infer(W[:4], "perturb_and_map", n_samples=2500, random_state=0).marginals
    assert np.abs(sampled - truth[:4]).max(axis=(1, 2)).mean() == pytest.approx(drawn, rel=0.5, abs=0.01)

"""Learning with nothing but a solver for the best configuration."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.base import clone

from partita import BlockFrankWolfe, NumericalError, OracleCRF, Status, load
from partita.inference import GroupEntropy, IndependentEntropy, PartGroup, Parts, SeparableEntropy, infer_parts
from partita.oracle import register_oracle

PAIRS = np.array([np.isin(np.arange(5), pair) for pair in itertools.combinations(range(5), 2)], dtype=float)
CELLS = np.arange(9).reshape(3, 3)
PERMUTATIONS = np.array([np.eye(3)[list(p)].ravel() for p in itertools.permutations(range(3))])


def best_of(every):
    return lambda scores: every[np.argmax(every @ scores)]


class Solver:
    """A solver as an object."""

    def argmax(self, scores):
        return best_pair(scores).astype(bool)


best_pair, best_permutation = best_of(PAIRS), best_of(PERMUTATIONS)
register_oracle("best pair of five", best_pair)


def drawn(rng, every, examples=30, theta=(1.0, -0.5)):
    X = rng.standard_normal((examples, len(theta), every.shape[1]))
    y = []
    for x in X:
        scores = every @ (np.array(theta) @ x)
        y.append(every[rng.choice(len(every), p=np.exp(scores - logsumexp(scores)))])
    return X, y


def reference(every, X, y, entropy, l2=1.0, steps=400):
    """The optimum with an entropy, by plain means: shares of all configurations, and SciPy."""
    from scipy.optimize import minimize

    def inner(scores):
        def negative(z):
            p = np.exp(z - logsumexp(z))
            tau = p @ every
            gradient = every @ (scores + entropy.gradient(tau))
            return -(scores @ tau + entropy.value(tau)), -p * (gradient - p @ gradient)

        found = minimize(negative, every @ scores, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": steps})
        return -found.fun, np.exp(found.x - logsumexp(found.x)) @ every

    def outer(theta):
        value, slope = 0.5 * l2 * theta @ theta, l2 * theta
        for x, row in zip(X, y, strict=True):
            log_z, tau = inner(theta @ x)
            value, slope = value + log_z - theta @ x @ row, slope + x @ (tau - row)
        return value, slope

    return minimize(outer, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-7})


ENTROPIES = {
    "independent": (PAIRS, best_pair, IndependentEntropy()),
    "groups": (PERMUTATIONS, best_permutation, GroupEntropy(9, [PartGroup(g, 1, True) for g in (*CELLS, *CELLS.T)])),
    "bethe": (PERMUTATIONS, best_permutation, GroupEntropy(9, [PartGroup(g, 1, True) for g in (*CELLS, *CELLS.T)], 0.9)),
    "at most": (PERMUTATIONS, best_permutation, GroupEntropy(9, [*CELLS, *CELLS.T])),
    "two of five": (PAIRS, best_pair, GroupEntropy(5, [PartGroup(np.arange(5), 2, True)])),
    "at most two": (PAIRS, best_pair, GroupEntropy(5, [PartGroup(np.arange(5), 2)])),
    "of the user": (PAIRS, best_pair, SeparableEntropy(lambda t: 2 * t * (1 - t), lambda t: 2 - 4 * t)),
}


@pytest.mark.parametrize("name", ENTROPIES)
def test_the_optimum_is_that_of_other_means(name, rng):
    every, best, entropy = ENTROPIES[name]
    X, y = drawn(rng, every, 8)
    expected = reference(every, X, y, entropy)
    model = OracleCRF(best, entropy, tol=1e-7, max_iter=3000).fit(X, y)
    assert model.gap_ <= 1e-7 * 8
    assert model.trace_.objective[-1] == pytest.approx(expected.fun, abs=2e-6)
    np.testing.assert_allclose(model.parameters_, expected.x, atol=2e-3)


@pytest.mark.parametrize("name", ENTROPIES)
def test_derivatives_and_concavity_of_entropies(name, rng):
    every, _, entropy = ENTROPIES[name]
    shares = rng.dirichlet(np.full(len(every), 2.0), 20)
    points = shares @ every
    for tau, other in itertools.pairwise(points):
        d = other - tau
        assert entropy.value(0.5 * (tau + other)) >= 0.5 * (entropy.value(tau) + entropy.value(other)) - 1e-10
        slope = entropy.along(tau, d)
        for step in (0.0, 0.3, 0.9):
            h = 1e-6
            numeric = (entropy.value(tau + (step + h) * d) - entropy.value(tau + (step - h) * d)) / (2 * h)
            assert slope(step) == pytest.approx(numeric, abs=1e-5)
            assert entropy.gradient(tau + step * d) @ d == pytest.approx(slope(step), abs=1e-8)


@pytest.mark.parametrize("name", [name for name, (_, _, entropy) in ENTROPIES.items() if entropy.upper])
def test_upper_ones_are_above_every_entropy(name, rng):
    every, _, entropy = ENTROPIES[name]
    for alpha in (0.1, 1.0):
        for p in rng.dirichlet(np.full(len(every), alpha), 100):
            assert entropy.value(p @ every) >= -float(p @ np.log(np.maximum(p, 1e-300))) - 1e-9


def test_the_entropy_of_sets_of_several_is_the_largest(rng):
    """Of all distributions over pairs with given probabilities, that of conditional independence has the most entropy."""
    w = rng.standard_normal(5)
    p = np.exp(PAIRS @ w - logsumexp(PAIRS @ w))
    entropy = GroupEntropy(5, [PartGroup(np.arange(5), 2, True)], 1.0)
    assert entropy.value(p @ PAIRS) == pytest.approx(-float(p @ np.log(p)), abs=1e-9)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_bounds_of_log_z_hold(scale, rng):
    for every, best in ((PAIRS, best_pair), (PERMUTATIONS, best_permutation)):
        scores = scale * rng.standard_normal(every.shape[1])
        exact = logsumexp(every @ scores)
        found = infer_parts(Parts(every.shape[1], best), scores, IndependentEntropy())
        assert found.lower[0] <= exact + 1e-9
        assert exact <= found.upper[0] + 1e-9
        assert found.gap[0] <= 1e-6
        np.testing.assert_allclose(found.marginals.sum(), every[0].sum(), rtol=1e-9)


@pytest.mark.parametrize("variant", ["blended", "pairwise", "plain"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_kinds_of_steps_agree(variant, n_jobs, rng):
    X, y = drawn(rng, PAIRS, 12)
    solver = BlockFrankWolfe(variant=variant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OracleCRF(best_pair, solver=solver, tol=1e-3, max_iter=800, n_jobs=n_jobs).fit(X, y)
        best = OracleCRF(best_pair, tol=1e-8, max_iter=3000).fit(X, y)
    assert (model.trace_.objective - model.trace_.gap <= best.trace_.objective[-1] + 1e-7)[1:].all()
    assert model.trace_.objective[-1] >= best.trace_.objective[-1] - 1e-7
    np.testing.assert_allclose(model.parameters_, best.parameters_, atol=0.05)


def test_threads_do_not_change_the_result(rng):
    X, y = drawn(rng, PAIRS, 12)
    for solver in ("block_frank_wolfe", BlockFrankWolfe(batch=True)):
        one, two = (OracleCRF(best_pair, solver=solver, tol=1e-2, max_iter=300, n_jobs=k).fit(X, y) for k in (1, 2))
        np.testing.assert_array_equal(one.parameters_, two.parameters_)
        assert one.n_oracle_calls_ == two.n_oracle_calls_


def test_every_call_is_counted_and_nothing_else_is_called(rng):
    calls = []

    def counted(scores):
        calls.append(scores)
        return best_pair(scores)

    X, y = drawn(rng, PAIRS, 10)
    model = OracleCRF(counted).fit(X, y)
    assert model.n_oracle_calls_ == len(calls)
    assert model.status_ is Status.CONVERGED
    assert model.upper_bound_


def test_forms_of_data_and_solvers_agree(rng):
    X, y = drawn(rng, PAIRS, 10)
    expected = OracleCRF(best_pair).fit(X, y).parameters_
    sparse = [sp.coo_array(x) for x in X]
    dicts = [{"features": x, "graph": "whatever", "groups": None} for x in X]
    for data, oracle, options in (
        (list(X), Solver(), {}),
        (sparse, best_pair, {}),
        (dicts, lambda x: best_pair, {"per_example": True}),
        (dicts, lambda x: Solver(), {"per_example": True}),
    ):
        model = OracleCRF(oracle, **options).fit(data, [row.astype(int).tolist() for row in y])
        np.testing.assert_allclose(model.parameters_, expected, atol=1e-4)  # certain to .04; paths differ by rounding
        assert model.score(data, y) == OracleCRF(best_pair).fit(X, y).score(X, y)
    grouped = [{"features": x, "groups": [np.arange(5)]} for x in X]
    assert OracleCRF(best_pair, "bethe").fit(grouped, y).gap_ <= 1e-3
    again = OracleCRF(best_pair, "bethe", groups=lambda x: [PartGroup(np.arange(5), 2, True)]).fit(grouped, y)
    assert again.upper_bound_


def test_examples_of_different_sizes_and_weights(rng):
    def best(scores):
        return np.isin(np.arange(len(scores)), np.argsort(-scores, kind="stable")[:2])

    X = [rng.standard_normal((2, n)) for n in (3, 5, 4, 3, 6)]
    y = [best(x[0] + rng.gumbel(size=x.shape[1])) for x in X]
    twice = OracleCRF(best, tol=1e-8, max_iter=3000).fit([*X, *X[:2]], [*y, *y[:2]])
    heavy = OracleCRF(best, tol=1e-8, max_iter=3000).fit(X, y, sample_weight=[2, 2, 1, 1, 1])
    np.testing.assert_allclose(heavy.parameters_, twice.parameters_, atol=1e-3)
    assert [len(row) for row in heavy.predict(X)] == [3, 5, 4, 3, 6]


def test_likelihoods_and_their_bounds(rng):
    X, y = drawn(rng, PERMUTATIONS, 20)
    model = OracleCRF(best_permutation).fit(X, y)
    value, lower, upper = model.log_likelihood(X, y, bounds=True)
    for k, (x, row) in enumerate(zip(X, y, strict=True)):
        true = model.parameters_ @ x @ row - logsumexp(PERMUTATIONS @ (model.parameters_ @ x))
        assert lower[k] - 1e-9 <= true <= upper[k] + 1e-9
        assert lower[k] <= value[k] + 1e-9
    np.testing.assert_array_equal(model.log_likelihood(X, y), value)


def test_warm_starts_begin_where_the_last_fit_ended(rng):
    X, y = drawn(rng, PAIRS, 20)
    model = OracleCRF(best_pair, warm_start=True).fit(X, y)
    first, before = model.parameters_, model.n_oracle_calls_
    model.fit(X, y)
    np.testing.assert_allclose(model.parameters_, first, atol=0.02)
    assert model.n_oracle_calls_ <= 1.2 * before


def test_named_solvers_are_saved(rng, tmp_path):
    X, y = drawn(rng, PAIRS, 5)
    model = clone(OracleCRF("best pair of five")).fit(X, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(TypeError, match="cannot be stored"):
        OracleCRF(best_pair).fit(X, y).save(tmp_path / "other")
    with pytest.raises(ValueError, match="'unheard of' is not registered"):
        OracleCRF("unheard of").fit(X, y)


def test_a_time_limit_ends_training_with_a_certificate(rng):
    import time

    def slow(scores):
        time.sleep(0.01)
        return best_pair(scores)

    X, y = drawn(rng, PAIRS, 5)
    with pytest.warns(UserWarning, match="time limit"):
        model = OracleCRF(slow, tol=0.0, time_limit=0.5).fit(X, y)
    assert model.status_ is Status.TIME_LIMIT
    assert np.isfinite(model.gap_)


def test_liars_are_named(rng):
    X, y = drawn(rng, PAIRS, 6)

    def worst(scores):
        return PAIRS[np.argmin(PAIRS @ scores)]

    with pytest.raises(
        NumericalError, match=r"oracle worst answered with a configuration of score .* where the one observed"
    ):
        OracleCRF(worst).fit(X, y)
    calls = itertools.count()

    def later(scores):
        return (best_pair if next(calls) < 60 else worst)(scores)

    with pytest.raises(NumericalError, match=r"example \d: oracle later answered .* where one of .* is known"):
        OracleCRF(later, tol=1e-9).fit(X, y)
    with pytest.raises(NumericalError, match="or the one observed is not among its own"):
        OracleCRF(best_pair).fit(X, [np.ones(5)] * 6)


BAD = {
    "wrong length": (lambda s: np.zeros(3), ValueError, r"the answer of oracle .* must be 5 zeros and ones.* shape \(3,\)"),
    "shares": (lambda s: np.full(5, 0.4), ValueError, "must be zeros and ones; it has 0.4 for part 0"),
    "NaN": (lambda s: np.full(5, np.nan), ValueError, "must be zeros and ones; it has nan for part 0"),
    "nothing": (lambda s: None, ValueError, "must be 5 zeros and ones, one for each part; got nothing"),
    "raises": (lambda s: 1 / 0, RuntimeError, "failed for example 0: ZeroDivisionError: division by zero"),
    "text": (lambda s: "best", ValueError, "must be 5 zeros and ones"),
    "no solver": (3.0, ValueError, "oracle must be an object with argmax"),
}


@pytest.mark.parametrize("name", BAD)
def test_answers_that_are_none_are_named(name, rng):
    oracle, error, message = BAD[name]
    X, y = drawn(rng, PAIRS, 3)
    model = OracleCRF(oracle)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert not hasattr(model, "parameters_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[0], y), r"X\[0\] must have shape \(features, parts\)"),
        (lambda X, y: ("abc", y), "X must be a list of examples"),
        (lambda X, y: ([], y), "X has no examples"),
        (lambda X, y: ([*X[:2], X[2][:1]], y), r"X\[2\] has 1 features for each part, X\[0\] has 2"),
        (lambda X, y: (np.where(X > 2, np.nan, X) * np.nan, y), r"X\[0\] must not hold NaN"),
        (lambda X, y: ([{"edges": 3}] * 3, y), "a dict without 'features'"),
        (lambda X, y: (X, y[:2]), "a configuration for each of 3 examples, got 2"),
        (lambda X, y: (X, [2 * row - 1 for row in y]), r"y\[0\] holds -1 and 1"),
        (lambda X, y: (X, [row[:4] for row in y]), r"y\[0\] must be 5 zeros and ones"),
        (lambda X, y: (X, [0.5 * row for row in y]), r"y\[0\] must be zeros and ones"),
    ],
)
def test_bad_data_are_named_before_any_call(change, message, rng):
    def refuse(scores):
        raise AssertionError("the solver was called")

    X, y = drawn(rng, PAIRS, 3)
    with pytest.raises(ValueError, match=message):
        OracleCRF(refuse).fit(*change(X, y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2": 0.0}, "l2 must be"),
        ({"solver": "newton"}, "solver must be 'block_frank_wolfe'"),
        ({"solver": "auto"}, "solver must be 'block_frank_wolfe'"),
        ({"entropy": "shannon"}, "entropy must be 'independent'"),
        ({"entropy": 3}, "entropy must have value"),
        ({"entropy": "bethe"}, "needs groups of parts"),
        ({"entropy": "bethe", "groups": [[0, 7]]}, r"X\[0\]: groups\[0\] must be numbers of parts from 0 to 4"),
        ({"entropy": "bethe", "groups": [[0, 0]]}, "has a part twice"),
        ({"entropy": "bethe", "groups": [[0, 1], [0, 2], [0, 3]], "rho": 1.0}, "concave for sure only up to 2"),
        ({"entropy": "bethe", "groups": [PartGroup([0, 1, 2], 2), [0, 3]], "rho": 1.0}, "only up to 1 where groups have b"),
        ({"entropy": "bethe", "groups": [PartGroup([0], 2, True)]}, "2 cannot be chosen"),
        ({"per_example": True, "oracle": Solver()}, "per_example=True oracle is a function of an example"),
    ],
)
def test_bad_parameters_are_named(options, message, rng):
    X, y = drawn(rng, PAIRS, 3)
    with pytest.raises(ValueError, match=message):
        OracleCRF(**({"oracle": best_pair} | options)).fit(X, y)


@pytest.mark.parametrize(
    ("function", "derivative", "message"),
    [
        (lambda t: t, lambda t: 2 * t, "derivative is"),
        (lambda t: t**2, lambda t: 2 * t, "must be concave"),
        (lambda t: 1.0, lambda t: t, "the same shape"),
    ],
)
def test_entropies_of_users_are_checked(function, derivative, message):
    with pytest.raises(ValueError, match=message):
        SeparableEntropy(function, derivative)


def test_one_example_one_part_and_forced_parts():
    model = OracleCRF(lambda s: np.array([1.0])).fit([np.ones((2, 1))], [[1]])
    np.testing.assert_allclose(model.parameters_, 0.0)
    forced = OracleCRF(lambda s: np.array([1.0, s[1] > 0, 0.0])).fit([np.ones((1, 3))], [[1, 1, 0]])
    assert forced.parameters_[0] == pytest.approx(0.4, abs=0.2)
    (tau,) = forced.predict_marginals([np.ones((1, 3))])
    np.testing.assert_allclose(tau[[0, 2]], [1.0, 0.0], atol=1e-9)
    assert tau[1] == pytest.approx(1 / (1 + np.exp(-forced.parameters_[0])), abs=1e-5)

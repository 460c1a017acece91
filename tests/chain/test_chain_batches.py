"""Mini-batches of chains sum to the whole, steps on single chains are what they claim, and solvers on both come close."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from partita import (
    LBFGS,
    SGD,
    CapabilityError,
    ChainCRF,
    ConvergenceWarning,
    Newton,
    Status,
    StochasticBound,
    StochasticStart,
    minimize,
)
from partita.chain.features.chain import ChainFeatures, take_pieces
from partita.chain.features.pairs import label_indicator, state_pairs
from partita.chain.objective.sweeps import ChainSweeps
from partita.core import Workers
from partita.estimators.convergence import FAR_STALLED
from partita.objectives import ChainLikelihood


def chains(seed=0, l2=1.0, n_chains=200, labels=4, attributes=30, jobs=1, length=8, unit=True):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, length, n_chains)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.random(offsets[-1], attributes, 0.15, format="csr", random_state=seed)
    X.data[:] = 1.0 if unit else rng.uniform(0.2, 2.0, X.nnz)
    y = np.argmax(X @ rng.standard_normal((attributes, labels)) + rng.gumbel(size=(len(X.indptr) - 1, labels)), axis=1)
    inner = np.setdiff1d(np.arange(1, len(y)), offsets)
    seen = np.unique(np.stack([y[inner - 1], y[inner]], 1), axis=0)[::2]
    features = ChainFeatures(
        X, offsets, labels, *state_pairs(X, label_indicator(y, labels), False, 0.0), seen, True, True, workers=Workers(jobs)
    )
    weights = rng.uniform(0.5, 2.0, n_chains)
    weights[:3] = 0.0
    return ChainLikelihood(features, y, weights=weights, penalty=l2)


@pytest.mark.parametrize("unit", [True, False])
def test_batches_sum_to_the_whole(unit, rng):
    objective = chains(unit=unit)
    theta = rng.standard_normal(objective.size)
    source = objective.batches(0)
    loss, gradient, weight, seen = 0.0, np.zeros(objective.size), 0.0, 0
    for lo, hi in source.shuffled(16):
        part, residual = source.evaluate(theta, lo, hi)
        loss, gradient = loss + part, gradient + source.pull_back(residual, lo, hi)
        weight, seen = weight + source.weight(lo, hi), seen + hi - lo
    point = objective.at(theta)
    assert seen == source.n_examples == 197
    assert weight == pytest.approx(objective.scale)
    assert source.scale == pytest.approx(objective.scale)
    assert loss + 0.5 * float(objective.penalty @ theta**2) == pytest.approx(point.value, rel=1e-12)
    np.testing.assert_allclose(gradient + source.penalty * theta, point.gradient, rtol=1e-10, atol=1e-9)


def test_the_table_remembers_what_was_stored(rng):
    objective = chains()
    source = objective.batches(1)
    table, total = source.table(), np.zeros(objective.size)
    batches = source.shuffled(20)
    for lo, hi in [*batches, *batches[::2]]:
        theta = rng.standard_normal(objective.size)
        _, residual = source.evaluate(theta, lo, hi)
        total += source.pull_back(residual - table[source.slots(lo, hi)], lo, hi)
        table[source.slots(lo, hi)] = residual
    again = sum(source.pull_back(table[source.slots(lo, hi)], lo, hi) for lo, hi in batches)
    np.testing.assert_allclose(total, again, rtol=1e-10, atol=1e-10)


def test_held_out_chains_are_not_trained_on(rng):
    objective = chains(l2=0.0)
    source = objective.batches(0, validation=0.25)
    theta = rng.standard_normal(objective.size)
    trained = sum(source.evaluate(theta, lo, hi)[0] for lo, hi in source.shuffled(10))
    held = source.held_out(theta) * (objective.scale - source.scale) / source.scale
    assert trained + held == pytest.approx(objective.at(theta).value, rel=1e-12)
    assert objective.batches(0).held_out(theta) is None
    with pytest.raises(ValueError, match=r"validation=0\.999 leaves no example to train on"):
        objective.batches(0, validation=0.999)


def test_blocks_and_taken_chains_have_the_scores_of_their_rows(rng):
    features = chains(unit=False).features
    theta = rng.standard_normal(features.size)
    U, A = features.forward(theta)
    order = rng.permutation(features.n_examples)[:50]
    part, (offsets, positions) = features.take(order), take_pieces(features.offsets, order)
    np.testing.assert_array_equal(part.offsets, offsets)
    np.testing.assert_array_equal(part.forward(theta)[0], U[positions])
    block = part.block(7, 21)
    np.testing.assert_array_equal(block.forward(theta)[0], U[positions[offsets[7] : offsets[21]]])
    np.testing.assert_array_equal(block.forward(theta)[1], A)


def test_the_diagonal_is_above_the_hessian_of_chains_of_length_one(rng):
    objective = chains(length=2, l2=0.0, n_chains=60, attributes=10, unit=False)
    theta = rng.standard_normal(objective.size)
    source = objective.batches(0)
    total = source.curvature()
    source.add_curvature(total, "hessian", theta, 0, source.n_examples, 1.0)
    product = objective.at(theta).hessian_product()
    H = np.stack([product(unit) for unit in np.eye(objective.size)])
    states = objective.features.n_state
    assert np.linalg.eigvalsh((np.diag(total.sum) - H)[:states, :states]).min() >= -1e-9


@pytest.mark.parametrize(
    ("solver", "limit"),
    [
        (StochasticBound(batch_size=20, patience=100), 5e-3),
        (SGD(batch_size=10, method="saga", learning_rate=1.0, patience=100), 1e-3),
        (SGD(batch_size=10, method="svrg", learning_rate=1.0, patience=100), 1e-3),
        (SGD(batch_size=10, learning_rate=2.0), 3e-2),
        (SGD(batch_size=10, method="averaged", learning_rate=2.0), 3e-2),
        (SGD(batch_size=10, method="adam", learning_rate=0.05), 3e-2),
        *((SGD(batch_size=10, method=method), 3e-2) for method in ("plain", "averaged", "adam", "saga", "svrg")),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_stochastic_solvers_come_close(solver, limit):
    objective = chains()
    optimum = minimize(objective, tol=1e-9).value
    solution = minimize(objective, solver=solver, max_iter=30, tol=0.0)
    assert optimum * (1.0 - 1e-12) <= solution.value <= optimum * (1.0 + limit)


def sticky_chains(n_chains=60, length=60):
    """Labels that stay the same for long: what a position says of others adds up."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.cumsum(rng.random(length) < 0.03) % 3 for _ in range(n_chains)])
    X = sp.csr_matrix(np.column_stack([np.ones(len(y)), (y == 0) + rng.standard_normal(len(y)) * 3]))
    offsets = np.arange(0, len(y) + 1, length)
    pairs = np.argwhere(np.ones((3, 3), bool))
    features = ChainFeatures(X, offsets, 3, *state_pairs(X, label_indicator(y, 3), False, 0.0), pairs, workers=Workers(1))
    return ChainLikelihood(features, y, penalty=1.0)


def test_dependence_along_a_chain_shortens_the_steps():
    objective = sticky_chains()
    optimum = minimize(objective, tol=1e-9)
    source = objective.batches(0)
    total = source.curvature()
    source.add_curvature(total, "hessian", optimum.parameters, 0, source.n_examples, 1.0)
    product = objective.at(optimum.parameters).hessian_product()
    H = np.stack([product(unit) for unit in np.eye(objective.size)]) - np.eye(objective.size)
    scaling = np.diag(total.sum**-0.5)
    ratio = np.linalg.eigvalsh(scaling @ H @ scaling).max()
    assert ratio > 1.5
    assert 2.0 / total.cushion == pytest.approx(ratio, rel=0.02)
    solution = minimize(objective, solver=StochasticBound(batch_size=8, patience=100), max_iter=60, tol=0.0)
    start = objective.at(np.zeros(objective.size)).value
    assert solution.value - optimum.value < 0.03 * (start - optimum.value)


@pytest.mark.parametrize("name", ["stochastic", "sgd"])
@pytest.mark.parametrize("make", [chains, sticky_chains])
def test_solvers_by_name_are_far_below_the_start(name, make):
    objective = make()
    start, optimum = objective.at(np.zeros(objective.size)).value, minimize(objective, tol=1e-9).value
    solution = minimize(objective, solver=name, max_iter=60, tol=0.0)
    assert solution.value - optimum < 0.4 * (start - optimum)


def test_the_same_seed_gives_the_same_bits_at_any_thread_count():
    runs = [
        minimize(chains(n_chains=3000, labels=8, jobs=jobs), solver=StochasticBound(batch_size=1000), max_iter=3, tol=0.0)
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].parameters, runs[1].parameters)
    other = minimize(chains(n_chains=3000, labels=8), solver=StochasticBound(batch_size=1000, random_state=1), max_iter=3)
    assert np.any(other.parameters != runs[0].parameters)


def test_what_chains_do_not_offer_is_refused():
    objective = chains()
    with pytest.raises(ValueError, match="rank must be None on chains"):
        minimize(objective, solver=StochasticBound(rank=3))


@pytest.mark.parametrize(("curvature", "excess"), [("ema", 0.02), ("batch", 0.1)])  # the latter is biased
def test_batches_of_small_models_have_bounds(curvature, excess):
    objective = chains(n_chains=60, attributes=8)
    best = minimize(objective, solver=Newton(), tol=1e-10).value
    solver = StochasticBound(curvature=curvature, batch_size=10, patience=50)
    assert minimize(objective, solver=solver, max_iter=50, tol=0.0).value < (1.0 + excess) * best


# of the way from the start, what is left: the published steps are short where parameters outnumber the batch
@pytest.mark.parametrize(("curvature", "left"), [("ema", 0.2), ("batch", 0.5)])
def test_batches_of_wide_models_have_bounds_by_products(curvature, left):
    objective = chains(n_chains=60, attributes=100)
    start = objective.at(np.zeros(objective.size)).value
    best = minimize(objective, solver=Newton(), tol=1e-8).value
    solver = StochasticBound(curvature=curvature, batch_size=20, patience=50)
    assert minimize(objective, solver=solver, max_iter=40, tol=0.0).value - best < left * (start - best)


@pytest.mark.parametrize("unit", [True, False])
def test_an_epoch_is_a_gradient_step_for_every_chain(unit, rng):
    objective = chains(n_chains=30, unit=unit, l2=3.0)
    theta = rng.standard_normal(objective.size)
    sweeps = ChainSweeps(objective, theta, 5)
    f, order = objective.features, np.random.default_rng(5)
    np.testing.assert_allclose(sweeps.parameters(), theta)
    used = np.flatnonzero(objective.weights)
    order.permutation(used)  # the sample that the rate is chosen on
    t = 0
    for _ in range(2):
        sweeps.advance()
        for i in order.permutation(used):
            rows = slice(f.offsets[i], f.offsets[i + 1])
            one = ChainLikelihood(
                f.block(i, i + 1), objective.y[rows], weights=objective.weights[i : i + 1], penalty=3.0 / len(used)
            )
            rate = sweeps.rate / (1.0 + 3.0 / len(used) * sweeps.rate * t)
            theta = theta - rate * one.at(theta).gradient
            t += 1
    np.testing.assert_allclose(sweeps.parameters(), theta, rtol=1e-9, atol=1e-11)


def test_the_rate_follows_the_scale_of_the_weights():
    objective = chains()
    larger = ChainLikelihood(objective.features, objective.y, weights=64.0 * objective.weights, penalty=64.0)
    zero = np.zeros(objective.size)
    assert ChainSweeps(larger, zero, 0).rate == pytest.approx(ChainSweeps(objective, zero, 0).rate / 64.0)


@pytest.mark.parametrize("finish", [LBFGS(), Newton()], ids=repr)
def test_starts_close_and_finishes_at_the_optimum(finish):
    objective = chains(n_chains=600)
    optimum = minimize(objective, tol=1e-9).value
    first = objective.at(np.zeros(objective.size)).value
    solution = minimize(objective, solver=StochasticStart(finish), tol=1e-8)
    assert solution.value == pytest.approx(optimum, rel=1e-9)
    assert solution.trace.objective[1] - optimum <= 0.02 * (first - optimum)
    assert np.all(np.diff(solution.trace.objective) <= 1e-12 * optimum)


def test_a_start_that_is_better_already_is_kept():
    objective = chains()
    optimum = minimize(objective, tol=1e-10)
    solution = minimize(objective, optimum.parameters, solver=StochasticStart(epochs=1), tol=0.0, max_iter=3)
    assert solution.value <= optimum.value


def test_sweeps_of_one_seed_give_the_same_bits_at_any_thread_count():
    runs = [minimize(chains(jobs=jobs), solver=StochasticStart(epochs=2), max_iter=1, tol=0.0) for jobs in (1, 2)]
    np.testing.assert_array_equal(runs[0].parameters, runs[1].parameters)


def test_needs_one_penalty_for_all():
    objective = chains()
    for penalty in (0.0, np.arange(objective.size) + 1.0):
        other = ChainLikelihood(objective.features, objective.y, penalty=penalty)
        with pytest.raises(CapabilityError, match="epochs of steps on single examples"):
            minimize(other, solver="stochastic_start")


@pytest.mark.parametrize("solver", [SGD, StochasticBound])
def test_a_part_that_the_solver_holds_out_decides_when_to_stop(solver):
    """A loss that no longer falls is a good end on held-out chains, and none of training, where the gradient is large."""
    rng = np.random.default_rng(0)
    y = [[f"L{k}" for k in rng.integers(0, 3, 5)] for _ in range(150)]
    seen = [[label if rng.random() > 0.5 else f"L{rng.integers(3)}" for label in row] for row in y]
    X = [[[label, *(f"noise {j}" for j in rng.integers(0, 300, 4))] for label in row] for row in seen]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = ChainCRF(l2=1e-3, solver=solver(batch_size=10, validation=0.3, patience=2), tol=0.0).fit(X, y)
    assert model.status_ is Status.STALLED
    assert model.trace_.gradient_norm[-1] > FAR_STALLED  # a warning, if it were the loss of training that stalled
    best = int(np.nanargmin(model.trace_.objective[:-1]))
    assert best < model.n_iter_ < 20
    few = ChainCRF(l2=1e-3, solver=solver(batch_size=10, validation=0.3), tol=0.0, max_iter=best)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        few.fit(X, y)
    np.testing.assert_array_equal(model.parameters_, few.parameters_)  # the best epoch is kept

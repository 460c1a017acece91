from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita import Status
from partita.structures import Binary, Categorical

SCORES = st.floats(-50, 50) | st.just(-np.inf)


@st.composite
def batches(draw):
    """Potentials of a few examples with label sets of their own, each with a possible label; and a prior."""
    counts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    values = [draw(st.lists(SCORES, min_size=n, max_size=n)) for n in counts]
    for row in values:
        row[draw(st.integers(0, len(row) - 1))] = draw(st.floats(-50, 50))
    prior = draw(st.lists(st.floats(0.1, 10), min_size=sum(counts), max_size=sum(counts)))
    return counts, values, prior


def listed(values, prior):
    """log Z, probabilities and best value by listing every label."""
    start = 0
    for row in values:
        h = np.array(prior[start : start + len(row)])
        weights = [float(np.longdouble(a) * np.exp(np.longdouble(s))) for a, s in zip(h, row, strict=True)]
        total = sum(weights)
        yield np.log(total), np.array(weights) / total, max(np.log(h) + row)
        start += len(row)


@given(batches())
def test_every_answer_by_enumeration(batch):
    counts, values, prior = batch
    structure, potentials = Categorical(counts, prior), np.concatenate(values)
    result = structure.infer(potentials)
    best, value = structure.argmax(potentials)
    start = 0
    for i, (log_z, probabilities, top) in enumerate(listed(values, prior)):
        stop = start + counts[i]
        assert result.log_z[i] == pytest.approx(log_z, abs=1e-10)
        np.testing.assert_allclose(result.marginals[start:stop], probabilities, atol=1e-12)
        assert value[i] == pytest.approx(top)
        assert structure.score(potentials, best)[i] == value[i]
        start = stop
    assert result.exact
    assert result.status is Status.EXACT
    assert result.gap.tolist() == [0.0] * len(counts)


@given(st.lists(st.lists(st.floats(-30, 30), min_size=3, max_size=3), min_size=1, max_size=5))
def test_regular_batches_are_ragged_batches(rows):
    potentials = np.array(rows)
    regular = Categorical(3).infer(potentials)
    ragged = Categorical([3] * len(rows)).infer(potentials.ravel())
    assert np.array_equal(regular.log_z, ragged.log_z)
    assert np.array_equal(regular.marginals.ravel(), ragged.marginals)


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=5))
def test_binary_is_a_categorical_with_a_zero(odds):
    s = np.array(odds)[:, None]
    two = Categorical(2, [1.0, 3.0]).infer(np.hstack([np.zeros_like(s), s]))
    one = Binary([1.0, 3.0]).infer(s)
    assert np.array_equal(two.log_z, one.log_z)


def test_huge_scores_stay_exact():
    potentials = np.array([[1e6, 1e6, -1e6], [-1e6, -1e6, -np.inf]])
    np.testing.assert_allclose(Categorical(3).log_partition(potentials), [1e6 + np.log(2), -1e6 + np.log(2)])


def test_samples_follow_the_marginals_and_the_seed():
    structure, potentials = Categorical([2, 3], [1, 1, 1, 2, 0]), np.array([0.0, 1.0, 0.3, 0.0, 5.0])
    draws = structure.sample(potentials, 40_000, random_state=0)
    assert np.array_equal(draws, structure.sample(potentials, 40_000, random_state=0))
    p = structure.infer(potentials).marginals
    assert np.mean(draws[:, 0] == 1) == pytest.approx(p[1], abs=0.01)
    for label in range(3):
        assert np.mean(draws[:, 1] == label) == pytest.approx(p[2 + label], abs=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Categorical(0), "labels must be an integer >= 1"),
        (lambda: Categorical([2, 0]), "vector of integers >= 1"),
        (lambda: Categorical(2, [1.0]), r"prior must have one weight per label, shape \(2,\)"),
        (lambda: Categorical(2, [-1.0, 1.0]), "prior must be finite and non-negative"),
        (lambda: Categorical(2).log_partition(np.zeros((1, 3))), r"potentials must have shape \(examples, 2\)"),
        (lambda: Categorical(2).log_partition([[np.nan, 0.0]]), "NaN or \\+inf"),
        (lambda: Categorical(2).log_partition([[-np.inf, -np.inf]]), "forbid every label"),
        (lambda: Categorical(2).log_partition(np.zeros((1, 2)), engine="magic"), "engine must be one of"),
        (lambda: Categorical(2).score(np.zeros((1, 2)), [2]), "outside its example's label set"),
        (lambda: Categorical([2, 2]).log_partition(np.zeros(3)), r"potentials must have shape \(4,\)"),
        (lambda: Binary().log_partition(np.zeros((1, 2))), "the log-odds"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

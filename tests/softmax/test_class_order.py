"""Streams that come sorted by class are noticed, others are not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from partita import DataWarning, SoftmaxRegression


def stream(order, size, X, y):
    model = SoftmaxRegression()
    for lo in range(0, len(order), size):
        rows = order[lo : lo + size]
        model.partial_fit(X[rows], y[rows], classes=np.unique(y))
    return model


@pytest.mark.parametrize("size", [1, 30, 180])
def test_a_stream_sorted_by_class_is_noticed_once(size):
    X, y = load_digits(return_X_y=True)
    with pytest.warns(DataWarning, match=r"of the last \d+ examples \d+% are of class \d.*shuffle the examples") as caught:
        stream(np.argsort(y, kind="stable")[: 600 if size == 1 else None], size, X / 16.0, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("size", [1, 7, 60, 500])
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_streams_in_random_order_are_not(size, share, rng):
    X = rng.standard_normal((2000, 2))
    y = rng.random(2000) < share
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        stream(np.arange(600 if size == 1 else 2000), size, X, y)


def test_a_slow_drift_is_not_an_order(rng):
    X = rng.standard_normal((3000, 2))
    y = rng.random(3000) < np.linspace(0.2, 0.6, 3000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        stream(np.arange(3000), 100, X, y)


def test_one_large_call_is_in_pieces_too(rng, monkeypatch):
    import partita.softmax.estimators.streaming as streaming

    monkeypatch.setattr(streaming, "CHUNK_NUMBERS", 400)
    X, y = rng.standard_normal((1000, 2)), np.repeat(["a", "b"], 500)
    with pytest.warns(DataWarning, match="of class 'b'"):
        SoftmaxRegression().partial_fit(X, y, classes=["a", "b"])
    with pytest.warns(DataWarning, match="of class 'b'"):
        SoftmaxRegression().fit_stream([(X[:500], y[:500]), (X[500:], y[500:])], classes=["a", "b"])

"""Ctrl-C in a search ends the search; in a fit that someone waits for, it keeps what was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, signal, sys, threading, time, warnings
from dataclasses import dataclass
import numpy as np
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from partita import LatentSoftmax, MarkovNetwork, SoftmaxRegression, SteepestDescent, tradeoff
from partita.solvers.descent import DescentState

signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in what a shell starts in the background
warnings.simplefilter("ignore")

@dataclass
class SlowState(DescentState):
    steps: int = 0

@dataclass(frozen=True)
class Slow(SteepestDescent):
    # interrupts itself in the fifth step of every fit; in other processes it is merely slow
    def start(self, objective, point):
        return SlowState(super().start(objective, point).step)

    def advance(self, state, point):
        state.steps += 1
        time.sleep(0.01)
        if state.steps == 5 and os.getpid() == os.getpgid(0) and threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGINT)
        return super().advance(state, point)

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5)) * 10.0 ** np.arange(5)
y = rng.integers(0, 3, 200)
model = SoftmaxRegression(solver=Slow(), tol=0.0, max_iter=1000)
hidden = LatentSoftmax(solver=Slow(), tol=0.0, max_iter=300, n_init=4, l2=1.0, n_jobs=2)
network = MarkovNetwork.ising([(0, 1), (1, 2)], solver=Slow(), tol=0.0, max_iter=300)
grid, piped = {"l2": [1.0, 2.0, 3.0]}, {"softmaxregression__l2": [1.0, 2.0]}
many = {
    "grid": lambda: GridSearchCV(model, grid, cv=2).fit(X, y),
    "grid, two jobs": lambda: GridSearchCV(model, grid, cv=2, n_jobs=2).fit(X, y),
    "random": lambda: RandomizedSearchCV(make_pipeline(StandardScaler(), model), piped, n_iter=2).fit(X, y),
    "cross validation": lambda: cross_val_score(model, X, y, cv=3),
    "starts in threads": lambda: cross_val_score(hidden, X, y, cv=3),
    "bagging": lambda: BaggingClassifier(model, n_estimators=5).fit(X, y),
    "tradeoff": lambda: tradeoff(network, rng.integers(0, 2, (50, 3)), X_test=rng.integers(0, 2, (9, 3))),
}
single = {
    "fit": lambda: clone(model).fit(X, y),
    "starts": lambda: clone(hidden).fit(X, y),
    "pipeline": lambda: make_pipeline(StandardScaler(), clone(model)).fit(X, y)[-1],
}
found = {}
for name, call in {**many, **single}.items():
    if "jobs" in name:
        threading.Timer(2.0, lambda: os.killpg(0, signal.SIGINT)).start()
    try:
        fitted = call()
        found[name] = fitted.status_.name if name in single else "went on"
    except KeyboardInterrupt:
        found[name] = "stopped"
found["changed"] = [hasattr(m, "coef_") for m in (model, hidden)]
print(json.dumps(found))
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to its process group")
def test_an_interrupt_ends_a_search_and_keeps_a_single_fit():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, start_new_session=True, check=False
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found.pop("changed") == [False, False]
    kept = {name: found.pop(name) for name in ("fit", "starts", "pipeline")}
    assert set(kept.values()) == {"INTERRUPTED"}, kept
    assert set(found.values()) == {"stopped"}, found

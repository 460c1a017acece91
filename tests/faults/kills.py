"""Kill -9 while models are saved again and again over one file: what is there afterwards is a whole model."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from typing import Any

import numpy as np
from harness import Counts, Worker, run_cases

#: Bytes of weights: small enough to be saved often, large enough to be caught in the act.
SIZES = (2_000, 200_000, 3_000_000)


def _model(value: float, size: int) -> Any:
    import partita as pt

    model = pt.SoftmaxRegression().fit(np.eye(2), [0, 1])
    model.n_features_in_ = size // 8
    model.coef_ = np.full((1, size // 8), value)
    return model


def attempt(case: tuple[int, float]) -> tuple[str, str]:
    import partita as pt

    size, delay = case
    one, other = _model(1.0, size), _model(2.0, size)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m")
        one.save(path)
        child = os.fork()
        if child == 0:
            try:
                while True:
                    other.save(path)
                    one.save(path)
            finally:
                os._exit(1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = [name for name in os.listdir(folder) if name != "m"]
        found = pt.load(path).coef_
        if found.shape != one.coef_.shape or not (found == found[0, 0]).all() or found[0, 0] not in (1.0, 2.0):
            return "silent", "neither of the two models"
        other.save(path)
        if os.listdir(folder) != ["m"]:
            return "silent", f"{os.listdir(folder)} are left"
        return "same", "caught in the act" if left else ""


def main(budget_seconds: float, seed: int, most: int | None = None, worker: Worker | None = None) -> Counts:
    if not hasattr(os, "fork"):
        return Counts(skipped="no fork here")
    rng = np.random.default_rng(seed)
    endless = (((SIZES[k % 3], float(rng.uniform(0.0, 0.05)))) for k in range(1 << 30))
    cases = ((f"{size} bytes, killed after {delay:.4f} s", (size, delay)) for size, delay in endless)
    return run_cases("kills:attempt", cases, budget_seconds, most=most, worker=worker)

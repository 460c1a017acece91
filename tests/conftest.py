from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "conformance"))  # the tables of structures and estimators, and enumeration
settings.register_profile("partita", deadline=None, max_examples=50)
settings.load_profile("partita")


#: Packages of extras. A test that asks for one that is not here is skipped, as if it began with `pytest.importorskip`.
OPTIONAL = frozenset(
    {
        *("clarabel", "cvxpy", "lap", "matplotlib", "networkx", "ortools", "pandas", "polars", "pyarrow"),
        *("pycrfsuite", "pymatching", "rustworkx", "sklearn_crfsuite"),
    }
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    try:
        return (yield)
    except ImportError as error:
        cause: BaseException | None = error
        while cause is not None:
            package = (getattr(cause, "name", None) or "").partition(".")[0]
            if isinstance(cause, ModuleNotFoundError) and package in OPTIONAL:
                pytest.skip(f"{package} is not installed")
            cause = cause.__cause__ or cause.__context__
        raise


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the suite was started with interrupts ignored, as background jobs are."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The public data sets; tests that need them skip without."""
    root = Path(__file__).resolve().parents[1]
    for candidate in (os.environ.get("PARTITA_DATA"), root.parent / "shared" / "data"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    pytest.skip("no public data sets here: set PARTITA_DATA to their folder")

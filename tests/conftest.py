from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("partita", deadline=None, max_examples=50)
settings.load_profile("partita")


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

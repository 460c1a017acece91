"""Sizes, computed without overflow and compared with the memory there is before any work."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import TooLargeError
from .validation import check_count

#: Share of the memory that is free which one array, or one answer, may take.
SHARE = 0.8
#: What is assumed where the system does not tell.
UNTOLD = float(1 << 34)


def product(sizes: Iterable[Any]) -> int:
    """The product of sizes as a Python integer: exact, however large."""
    return math.prod(int(size) for size in sizes)


def available_memory() -> float:
    """Bytes that this process can still take: what is free, within the limits of its address space and control group."""
    return min(_free(), _address_space(), _control_group())


def check_memory(what: str, n_bytes: float, cure: str = "") -> None:
    """Raise a TooLargeError, before any work, for something larger than the memory there is.

    Parameters
    ----------
    what : str
        Subject of the message, as ``"n_hidden=1000000 with 64 features and 10 classes"``.
    n_bytes : float
        A Python number, so that it cannot overflow.
    cure : str
        What the caller can do, as ``"Lower n_hidden"``.
    """
    if n_bytes < 1 << 24:
        return
    there = available_memory()
    if n_bytes > SHARE * there:
        raise TooLargeError(f"{what} needs {in_units(n_bytes)}; {in_units(there)} are free. {cure}".rstrip())


def check_sample(size: Any, width: int) -> int:
    """Return the number of draws, of `width` numbers each, if it is one and there is memory for them."""
    n = check_count("size", size)
    check_memory(f"a sample of size={n}", 16 * n * width, "Lower size, and draw several times")
    return n


def in_units(n_bytes: float) -> str:
    """Bytes for people."""
    if not n_bytes < 1e27:
        return f"{n_bytes:.3g} bytes" if n_bytes < 1e300 else "more than 1e300 bytes"
    exponent = 0 if n_bytes < 1.0 else min(int(math.log10(n_bytes) // 3), 6)
    return f"{n_bytes / 1000.0**exponent:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB')[exponent]}"


def _free() -> float:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024.0
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return UNTOLD


def _address_space() -> float:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return math.inf
        used = float(Path("/proc/self/statm").read_text().split()[0]) * float(os.sysconf("SC_PAGE_SIZE"))
        return max(0.0, float(limit) - used)
    except (ImportError, AttributeError, OSError, ValueError, IndexError):
        return math.inf


def _control_group() -> float:
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            return max(0.0, float(Path(limit).read_text()) - float(Path(used).read_text()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return math.inf

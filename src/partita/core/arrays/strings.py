"""Many strings as two plain arrays, the form in which files keep them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def pack_strings(strings: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The UTF-8 bytes of all strings, one after the other, and the offsets at which each begins and the last one ends."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def unpack_strings(content: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[str]:
    """The strings that `pack_strings` was given."""
    edges = offsets.tolist()
    if not edges or edges[0] != 0 or edges[-1] != len(content) or np.any(np.diff(offsets) < 0):
        raise ValueError("offsets of a string table must rise from 0 to the number of its bytes")
    data = content.tobytes()
    if data.isascii():
        text = data.decode("ascii")
        return [text[lo:hi] for lo, hi in itertools.pairwise(edges)]
    return [data[lo:hi].decode("utf-8", "surrogatepass") for lo, hi in itertools.pairwise(edges)]

"""Changed texts: what a hand, a bad disk or a stranger makes of a file that was good."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

NUMBERS = b"-1 0 1 2 3 1.5 +2 0x10 1_000 1000000000 99999999999999999999 -99999999999 4611686018427387904 1e400 1e-400"
NAMES = b'nan NaN inf -inf MARKOV BAYES { } ( ) ; | , " % # \xff \xc3\xa9 \xef\xbb\xbf'
ODD_WORDS = [*NUMBERS.split(), *NAMES.split(), b"", b"\0", b"\n", b"\n\n", b"\t", b"\r"]


def change(text: bytes, rng: np.random.Generator, words: Sequence[bytes] = ()) -> bytes:
    """One change of a text: of a word, a line, a byte, or of all of it."""
    odd = [*ODD_WORDS, *words]
    kind = int(rng.integers(10))
    if kind <= 3:  # a word
        parts = text.split(b" ")
        i = int(rng.integers(len(parts)))
        new = odd[int(rng.integers(len(odd)))]
        parts[i : i + int(rng.integers(2))] = [new] if kind else []
        return b" ".join(parts)
    lines = text.split(b"\n")
    i, j = (int(rng.integers(len(lines))) for _ in range(2))
    if kind == 4:
        del lines[i]
    elif kind == 5:
        lines.insert(i, lines[j])
    elif kind == 6:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 7:
        lines[i] = odd[int(rng.integers(len(odd)))]
    elif kind == 8 and text:
        at = int(rng.integers(len(text)))
        return text[:at] + bytes([int(rng.integers(256))]) + text[at + int(rng.integers(2)) :]
    else:
        return text[: int(rng.integers(len(text) + 1))]
    return b"\n".join(lines)


def changed(texts: Sequence[bytes], seed: int, words: Sequence[bytes] = ()) -> Iterator[tuple[str, bytes]]:
    """Endlessly many texts, each with one to three changes; some are compressed, and cut off then."""
    rng = np.random.default_rng(seed)
    while True:
        for number, text in enumerate(texts):
            new = text
            for _ in range(int(rng.integers(1, 4))):
                new = change(new, rng, words)
            if rng.random() < 0.05:
                new = gzip.compress(new)
                new = new[: int(rng.integers(len(new) + 1))] if rng.random() < 0.5 else new
            yield f"text {number}: {new[:300]!r}", new


def corpus(name: str) -> Iterator[tuple[str, Any]]:
    """What ever failed: files of this kind that are kept."""
    from harness import HERE

    for path in sorted((HERE / "corpus").glob(f"{name}*")):
        yield f"corpus {path.name}", path.read_bytes()

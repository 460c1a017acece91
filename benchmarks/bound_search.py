"""A million random problems and a long adversarial search against every bound (the test suite does a tenth of it)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from bounds.test_bounds import adversarial_search, excess_ratio, random_problems

from partita.bounds import BOUNDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=1_000_000)
    tries = parser.parse_args().tries
    rng = np.random.default_rng(1)
    print("largest excess of log Z over its tangent, as a share of what the bound allows (1 is the limit)")
    for kind in BOUNDS:
        random = max(
            excess_ratio(kind, *random_problems(rng, tries // 100, n)).max() for n in (2, 3, 4, 6, 10) for _ in range(20)
        )
        searched = max(adversarial_search(kind, rng, n, 1000, 200) for n in (2, 3, 4, 6, 10))
        print(f"{kind:17s} {tries:,} random: {random:.6f}   adversarial: {searched:.9f}")


if __name__ == "__main__":
    main()

from __future__ import annotations

from partita.report.explanation import Explanation, PositionExplanation, Push


def test_it_reads_well():
    pushes = tuple(Push(f"f{k}", 1.0 / (k + 1)) for k in range(4))
    first = PositionExplanation(0, "A", "B", 0.75, 0.2, pushes)
    only = PositionExplanation(1, "A", None, 1.0, 0.0, ())
    text = str(Explanation((first, only), limit=2))
    assert text.splitlines() == [
        "position 0: A (0.750), not B (0.200)",
        "feature     push",
        "--------  ------",
        "f0        +1.000",
        "f1        +0.500",
        "(2 more)  +0.583",
        "",
        "position 1: A (1.000)",
        "feature  push",
        "-------  ----",
    ]

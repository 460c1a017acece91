"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.results import FloatArray


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned, the first to the left and the others to the right."""
    table = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[c]) for row in table) for c in range(len(header))]
    lines = [
        "  ".join(cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in table
    ]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


@dataclass(frozen=True)
class CoefficientTable:
    """Estimates with their uncertainty: one row per parameter. ``print`` it, or take the arrays."""

    names: tuple[str, ...]
    estimate: FloatArray
    standard_error: FloatArray
    z: FloatArray
    p: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    title: str

    def __str__(self) -> str:
        header = ("", "estimate", "std. error", "z", "p", f"lower {self.level:.0%}", f"upper {self.level:.0%}")
        columns = (self.estimate, self.standard_error, self.z, self.p, self.lower, self.upper)
        formats = ("{:.4f}", "{:.4f}", "{:.2f}", "{:.3g}", "{:.4f}", "{:.4f}")
        rows = [
            [name, *(form.format(column[i]) for form, column in zip(formats, columns, strict=True))]
            for i, name in enumerate(self.names)
        ]
        return f"{self.title}\n{format_table(header, rows)}"

"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from ..core.results import FloatArray
from ..core.validation import check_count

#: Rows that are printed at most.
MOST_ROWS = 200


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

    @classmethod
    def of(cls, names: Sequence[str], estimate: Any, error: Any, level: float, title: str) -> CoefficientTable:
        """The table of estimates and their standard errors, for a level of confidence in (0, 1)."""
        estimates, errors = np.ravel(estimate), np.ravel(error)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = estimates / errors
        half, p = ndtri(0.5 + 0.5 * level) * errors, 2.0 * ndtr(-np.abs(z))
        return cls(tuple(names), estimates, errors, z, p, estimates - half, estimates + half, level, title)

    def top(self, count: int) -> CoefficientTable:
        """The rows with the largest absolute z, those first."""
        order = np.argsort(-np.abs(self.z), kind="stable")[: check_count("count", count)]
        fields = ("estimate", "standard_error", "z", "p", "lower", "upper")
        columns: dict[str, Any] = {name: getattr(self, name)[order] for name in fields}
        return replace(self, names=tuple(self.names[i] for i in order.tolist()), **columns)

    def __str__(self) -> str:
        header = ("", "estimate", "std. error", "z", "p", f"lower {self.level:.0%}", f"upper {self.level:.0%}")
        columns = (self.estimate, self.standard_error, self.z, self.p, self.lower, self.upper)
        formats = ("{:.4f}", "{:.4f}", "{:.2f}", "{:.3g}", "{:.4f}", "{:.4f}")
        rows = [
            [name, *(form.format(column[i]) for form, column in zip(formats, columns, strict=True))]
            for i, name in enumerate(self.names[:MOST_ROWS])
        ]
        more = len(self.names) - len(rows)
        rest = f"\n({more} more rows; `top` chooses those with the largest |z|)" if more else ""
        return f"{self.title}\n{format_table(header, rows)}{rest}"

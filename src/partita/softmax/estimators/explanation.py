"""Which columns pushed which class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray
from ...report.explanation import Explanation, explained


def one_row(X: Any) -> Any:
    """A table, of one row if X is a vector of numbers."""
    return np.asarray(X).reshape(1, -1) if not sp.issparse(X) and np.ndim(X) == 1 else X


def explain_rows(
    rows: Any,
    classes: Sequence[Any],
    names: Sequence[str],
    P: FloatArray,
    weights: FloatArray,
    others: dict[str, FloatArray],
) -> Explanation:
    """Why each row of X has its most probable class.

    Parameters
    ----------
    weights : array of shape (rows, classes, columns) or (classes, columns)
        What a column, times its value, adds to the score of each class.
    others : dict of arrays of shape (rows, classes) or (classes,)
        What else is added.
    """
    X = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
    entries = []
    for i, (x, p) in enumerate(zip(X, P, strict=True)):
        W = weights if weights.ndim == 2 else weights[i]
        given = [(names[j], x[j] * W[:, j]) for j in np.flatnonzero(x).tolist()]
        given += [(name, np.asarray(row if row.ndim == 1 else row[i])) for name, row in others.items()]
        entries.append(explained(i, classes, p, given, what="example"))
    return Explanation(tuple(entries))

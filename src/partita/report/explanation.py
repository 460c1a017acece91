"""Why a label was chosen, feature by feature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.results import FloatArray
from .tables import format_table


@dataclass(frozen=True)
class Push:
    """One feature's share in the choice of a label: what it adds to its score, less what it adds to the runner-up's."""

    feature: str
    contribution: float


@dataclass(frozen=True)
class PositionExplanation:
    """The label of one position (or node, or example) and what spoke for it and against it.

    Attributes
    ----------
    position : int or name
    label, runner_up : labels
        The predicted label, and the most probable other one (None if there is no other).
    probability, runner_up_probability : float
        Their marginal probabilities.
    pushes : tuple of Push
        By falling size. They sum to the difference in score between the predicted labelling and the same one with the
        runner-up at this position.
    what : str
        What a position is.
    """

    position: int
    label: Any
    runner_up: Any
    probability: float
    runner_up_probability: float
    pushes: tuple[Push, ...]
    what: str = "position"


@dataclass(frozen=True)
class Explanation:
    """What pushed the labels of a sequence. ``print`` it, or take ``positions``."""

    positions: tuple[PositionExplanation, ...]
    limit: int = 8

    def __str__(self) -> str:
        blocks = []
        for entry in self.positions:
            title = f"{entry.what} {entry.position}: {entry.label} ({entry.probability:.3f})"
            if entry.runner_up is not None:
                title += f", not {entry.runner_up} ({entry.runner_up_probability:.3f})"
            rows = [[push.feature, f"{push.contribution:+.3f}"] for push in entry.pushes[: self.limit]]
            rest = sum(push.contribution for push in entry.pushes[self.limit :])
            if len(entry.pushes) > self.limit:
                rows.append([f"({len(entry.pushes) - self.limit} more)", f"{rest:+.3f}"])
            blocks.append(f"{title}\n{format_table(('feature', 'push'), rows)}")
        return "\n\n".join(blocks)


def explained(
    position: Any,
    labels: Sequence[Any],
    p: FloatArray,
    rows: Iterable[tuple[str, FloatArray]],
    best: int | None = None,
    what: str = "position",
) -> PositionExplanation:
    """Why a label was chosen among some, of which `p` are the probabilities.

    Parameters
    ----------
    rows : iterable of (name, array)
        What each feature adds to the score of every label. Rows of one name are one feature.
    best : int, optional
        The label that was chosen. Default: the most probable one.
    """
    best = int(np.argmax(p)) if best is None else best
    others = np.where(np.arange(len(p)) == best, -1.0, p)
    second = int(others.argmax()) if len(p) > 1 else None
    sums: dict[str, float] = {}
    for name, row in rows:
        push = float(row[best] - (0.0 if second is None else row[second]))
        sums[name] = sums.get(name, 0.0) + push
    pushes = sorted((entry for entry in sums.items() if entry[1] != 0.0), key=lambda entry: -abs(entry[1]))
    return PositionExplanation(
        position=position,
        label=labels[best],
        runner_up=None if second is None else labels[second],
        probability=float(p[best]),
        runner_up_probability=0.0 if second is None else float(p[second]),
        pushes=tuple(Push(*entry) for entry in pushes),
        what=what,
    )

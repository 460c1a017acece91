"""Why a label was chosen, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .tables import format_table


@dataclass(frozen=True)
class Push:
    """One feature's share in the choice of a label: what it adds to its score, less what it adds to the runner-up's."""

    feature: str
    contribution: float


@dataclass(frozen=True)
class PositionExplanation:
    """The label of one position and what spoke for it and against it.

    Attributes
    ----------
    position : int
    label, runner_up : labels
        The predicted label, and the most probable other one (None if there is no other).
    probability, runner_up_probability : float
        Their marginal probabilities.
    pushes : tuple of Push
        By falling size. They sum to the difference in score between the predicted labelling and the same one with the
        runner-up at this position.
    """

    position: int
    label: Any
    runner_up: Any
    probability: float
    runner_up_probability: float
    pushes: tuple[Push, ...]


@dataclass(frozen=True)
class Explanation:
    """What pushed the labels of a sequence. ``print`` it, or take ``positions``."""

    positions: tuple[PositionExplanation, ...]
    limit: int = 8

    def __str__(self) -> str:
        blocks = []
        for entry in self.positions:
            title = f"position {entry.position}: {entry.label} ({entry.probability:.3f})"
            if entry.runner_up is not None:
                title += f", not {entry.runner_up} ({entry.runner_up_probability:.3f})"
            rows = [[push.feature, f"{push.contribution:+.3f}"] for push in entry.pushes[: self.limit]]
            rest = sum(push.contribution for push in entry.pushes[self.limit :])
            if len(entry.pushes) > self.limit:
                rows.append([f"({len(entry.pushes) - self.limit} more)", f"{rest:+.3f}"])
            blocks.append(f"{title}\n{format_table(('feature', 'push'), rows)}")
        return "\n\n".join(blocks)

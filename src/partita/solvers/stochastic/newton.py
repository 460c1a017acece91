"""Newton steps from the residuals of every example's last visit: steps on batches of any size, with no rate to choose."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ...core.contracts.batches import AnyBatchSource, CurvatureSum, LeveragedSource, ResidualTable
from ...core.results import FloatArray

#: Part of an epoch after which curvature is taken again; twice as late every time, and after an epoch once in each.
FIRST_REFRESH = 0.25
#: The longest step, as a part of Newton's, and the part of what low leverages would allow that is taken.
LONGEST, CAUTION = 0.5, 0.25
#: Newton steps in the first epoch, whose residuals are not old yet, and in the others.
FIRST, OTHERS = 2.0, 1.0
#: What steps are multiplied by after an epoch that rose, and after one that did not until they are as long as before.
SLOWER, FASTER = 0.5, 1.2


@dataclass
class RestrainedNewton:
    """What turns residuals into steps.

    The gradient is the sum of every example's residual when last seen, corrected on the batch at hand (SAGA); the step is a
    part of Newton's, by curvature that is taken anew every epoch. Three things keep that stable however few examples a batch
    has.

    - *Length.* Stored residuals are an epoch old and so is the curvature: what is safe at any leverage is one Newton step in
      an epoch, 1 / number of batches at a time. More is safe where no example has much leverage: b / (b + n h) for b of n
      examples and the highest leverage h, were all curvature as large as it can be.
    - *Implicit corrections.* A batch stands for the whole sum, its change counts n / b times. An example of leverage h would
      overshoot by that times h: its change is divided by one plus that, as an implicit step would have it
      (point-SAGA), and what is stored is the residual *after* the step. Storing the plain one lets a rare column, whose
      curvature has just come back, throw the parameters for the whole epoch until it is seen again.
    - *Lasting curvature.* Where a label is sure and wrong the Hessian is zero though it will not stay so; see
      `LeveragedSource.add_lasting`.

    In the first epoch a batch stands for those that were not seen yet, so that no pass is lost on filling the table.
    """

    source: LeveragedSource[Any, Any, Any]
    total: CurvatureSum
    per_epoch: int
    next_refresh: float = 0.0
    leverages: ResidualTable[Any, Any] = field(default_factory=lambda: np.zeros(0))
    highest: float = 0.0
    unseen: int = 0
    pace: float = 1.0

    @classmethod
    def begun(cls, source: AnyBatchSource, theta: FloatArray, per_epoch: int) -> Self | None:
        """None if the source does not offer what it takes."""
        total = source.whole_curvature() if isinstance(source, LeveragedSource) else None
        if total is None or not isinstance(source, LeveragedSource):
            return None
        newton = cls(source, total, per_epoch, FIRST_REFRESH * per_epoch, unseen=source.n_examples)
        newton.refresh(theta)
        return newton

    def refresh(self, theta: FloatArray) -> None:
        """Curvature at parameters, and the leverages that follow."""
        self.total.decay(0.0)
        self.source.add_lasting(self.total, theta)
        self.total.prepare(self.source.penalty)
        self.leverages, self.highest = self.source.leverages(self.total)

    def refresh_if_due(self, steps: int, theta: FloatArray) -> None:
        """Take curvature anew if so many steps are enough."""
        if steps >= self.next_refresh and np.all(np.isfinite(theta)):
            self.refresh(theta)
            self.next_refresh += min(self.next_refresh, self.per_epoch)

    def size_of_step(self, count: int) -> float:
        """The part of Newton's step that a batch of so many examples may take."""
        share = 1.0 if self.unseen else CAUTION
        quick = share * count / (count + self.source.n_examples * self.highest)
        steady = (FIRST if self.unseen else OTHERS) / self.per_epoch
        return self.pace * min(LONGEST, max(steady, quick))

    def slow_down(self) -> None:
        """After an epoch that was taken back; all residuals are known now."""
        self.pace, self.unseen = SLOWER * self.pace, 0

    def recover(self) -> None:
        """After an epoch, before anyone knows whether it is kept."""
        self.pace = min(1.0, FASTER * self.pace)

    def gradient(
        self, table: ResidualTable[Any, Any], total: FloatArray, residual: Any, lo: int, hi: int, size: float
    ) -> tuple[FloatArray, FloatArray]:
        """The change of the sum of stored gradients, which is stored, and an estimate of the whole gradient."""
        factor = self.source.n_examples / (hi - lo)
        slots = self.source.slots(lo, hi)
        stored = table[slots]
        change = self.source.restrained(residual - stored, residual, self.leverages[slots], size * factor, lo, hi)
        table[slots] = stored + change
        part = self.source.pull_back(change, lo, hi)
        if self.unseen > 0:
            factor, self.unseen = self.unseen / (hi - lo), self.unseen - (hi - lo)
        return part, factor * part + total

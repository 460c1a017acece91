"""Frank-Wolfe in the dual: likelihood learning with nothing but best configurations (MLE-Struct)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..core.contracts.batches import Blocks, HasBlocks
from ..core.contracts.capabilities import Capability
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from ..core.validation import check_flag


@dataclass
class BlockState:
    """The dual where it is, the order of the examples, and the mean of the parameters so far."""

    objective: Objective
    blocks: Blocks
    order: np.random.Generator
    steps: int = 0
    average: FloatArray | None = None


@dataclass(frozen=True)
class BlockFrankWolfe(Solver[BlockState, HasBlocks, Point]):
    """One iteration is a pass: a step of every example's block in the dual towards its best configuration.

    Parameters
    ----------
    line_search : bool
        Take the best step, not one that shrinks by a rule (2M / (2M + t) for a block, 2 / (t + 2) for all).
    averaging : bool
        Report a mean of the parameters that favours late ones. Single ones swing.
    batch : bool
        Move all blocks at once.
    random_state : int or None
        Seed of the order of the examples.
    """

    key = "block_frank_wolfe"
    #: The dual goes down, the objective up and down: what is lowest by chance is not the best.
    keeps_last = True
    line_search: bool = True
    averaging: bool = True
    batch: bool = False
    random_state: int | None = 0

    def __post_init__(self) -> None:
        check_flag("line_search", self.line_search)
        check_flag("averaging", self.averaging)
        check_flag("batch", self.batch)

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.BLOCKS})

    def with_seed(self, seed: Any) -> Self:
        return replace(self, random_state=seed)

    def start(self, objective: HasBlocks, point: Point) -> BlockState:
        """The dual has a start of its own, whatever the point is."""
        return BlockState(objective, objective.blocks(), np.random.default_rng(self.random_state))

    def advance(self, state: BlockState, point: Point) -> Point:
        """One pass, and the objective itself with its certificate at the end."""
        blocks = state.blocks
        if self.batch:
            state.steps += 1
            blocks.step_all(None if self.line_search else 2.0 / (state.steps + 2.0))
            self._average(state)
        else:
            twice = 2.0 * blocks.n_blocks
            for m in state.order.permutation(blocks.n_blocks).tolist():
                state.steps += 1
                blocks.step(m, None if self.line_search else twice / (twice + state.steps))
                self._average(state)
        theta = state.average if self.averaging and state.average is not None else blocks.parameters
        return state.objective.at(np.array(theta))

    def _average(self, state: BlockState) -> None:
        theta, k = state.blocks.parameters, state.steps
        state.average = theta if state.average is None else state.average + 2.0 / (k + 2.0) * (theta - state.average)

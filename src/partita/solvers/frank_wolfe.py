"""Frank-Wolfe in the dual: likelihood learning with nothing but best configurations (MLE-Struct)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ..core.contracts.batches import Blocks, Certified, HasBlocks
from ..core.contracts.capabilities import Capability
from ..core.contracts.progress import DualPoint
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from ..core.validation import check_choice, check_flag

VARIANTS = ("auto", "plain", "pairwise", "blended")


@dataclass(frozen=True)
class FirstPoint(DualPoint):
    """Where the dual begins, with the dual."""

    blocks: Blocks = field(repr=False, compare=False)


@dataclass
class BlockState:
    """The dual where it is, the order of the examples, and the steps taken."""

    blocks: Blocks
    order: np.random.Generator
    steps: int = 0


@dataclass(frozen=True)
class BlockFrankWolfe(Solver[BlockState, HasBlocks, FirstPoint]):
    """One iteration is a pass: every example's block in the dual moves by the answer of its solver for best configurations.

    Nothing else is asked of a model: no messages, no sums. What a trace has as the objective is what it is at most (the
    value of the dual and the gap), and the gap is collected from the answers; in the end a call for each example makes both
    exact.

    Parameters
    ----------
    oracle : callable, optional
        Makes a solver from the structure of an example: ``oracle(structure)`` is an `Oracle`, such as
        ``partita.inference.MaxFlowOracle``, or a function from potentials to a configuration. Default: the family's own.
    variant : {"auto", "plain", "pairwise", "blended"}
        ``"plain"`` steps go towards the best configuration; ``"pairwise"`` ones move shares from the worst configuration
        found so far to the best one; ``"blended"`` ones do that among known configurations as long as it pays, without
        asking the solver. ``"auto"`` is blended, and plain for steps without line search or of all blocks at once.
    line_search : bool
        Take the best step, not one that shrinks by a rule (2M / (2M + t) for a block, 2 / (t + 2) for all).
    averaging : bool or None
        Return a mean of the parameters that favours late ones: single ones swing. None: for plain steps.
    batch : bool
        Move all blocks at once.
    random_state : int or None
        Seed of the order of the examples.
    """

    key = "block_frank_wolfe"
    #: The dual goes down, what the objective is at most up and down: what is lowest by chance is not the best.
    keeps_last = True
    oracle: Callable[..., Any] | None = None
    variant: str = "auto"
    line_search: bool = True
    averaging: bool | None = None
    batch: bool = False
    random_state: int | None = 0

    def __post_init__(self) -> None:
        check_choice("variant", self.variant, VARIANTS)
        check_flag("line_search", self.line_search)
        check_flag("batch", self.batch)
        if self.averaging is not None:
            check_flag("averaging", self.averaging)
        if self.oracle is not None and not callable(self.oracle):
            raise ValueError(
                "oracle must make a solver from the structure of an example, such as oracle=partita.inference.MaxFlowOracle "
                f"or oracle=lambda structure: my_solver; got {type(self.oracle).__name__}"
            )
        if self.variant in ("pairwise", "blended") and (self.batch or not self.line_search):
            raise ValueError(f"variant={self.variant!r} moves one block at a time by line search; set variant='plain'")

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.BLOCKS})

    @property
    def uses(self) -> frozenset[Capability]:
        """A dual knows the set of its parameters."""
        return self.requires | {Capability.CONSTRAINED_STEP}

    @property
    def _steps(self) -> str:
        """The variant."""
        if self.variant != "auto":
            return self.variant
        return "plain" if self.batch or not self.line_search else "blended"

    @property
    def _averages(self) -> bool:
        return self._steps == "plain" if self.averaging is None else self.averaging

    def with_seed(self, seed: Any) -> Self:
        return replace(self, random_state=seed)

    def first(self, objective: Any, theta: FloatArray) -> FirstPoint:
        """The start of the dual: its own, or marginals near those of parameters that are not zero."""
        blocks = objective.blocks(self.oracle)
        if theta.any():
            blocks.begin(theta)
        at = blocks.parameters
        return FirstPoint(at, -blocks.value(), np.inf, False, blocks.n_calls, blocks)

    def start(self, objective: HasBlocks, point: FirstPoint) -> BlockState:
        return BlockState(point.blocks, np.random.default_rng(self.random_state))

    def advance(self, state: BlockState, point: DualPoint) -> DualPoint:
        """One pass."""
        blocks, mean = state.blocks, None
        if self.batch:
            state.steps += 1
            blocks.step_all(None if self.line_search else 2.0 / (state.steps + 2.0))
            mean = blocks.average() if self._averages else None
        else:
            twice, variant = 2.0 * blocks.n_blocks, self._steps
            for m in state.order.permutation(blocks.n_blocks).tolist():
                state.steps += 1
                blocks.step(m, None if self.line_search else twice / (twice + state.steps), variant)
                mean = blocks.average() if self._averages else None
        found = blocks.estimate()
        return _point(found if mean is None else replace(found, parameters=mean), blocks, certified=False)

    def settle(self, state: BlockState | None, point: Any) -> DualPoint:
        """The same place, certified by a call for each example."""
        if point.certified:
            return point  # type: ignore[no-any-return]
        blocks = point.blocks if state is None else state.blocks
        return _point(blocks.certify(mean=self._averages), blocks, certified=True)


def _point(found: Certified, blocks: Blocks, certified: bool) -> DualPoint:
    return DualPoint(found.parameters, found.value, found.gap, certified, blocks.n_calls)

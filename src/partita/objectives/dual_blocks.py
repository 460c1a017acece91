"""The dual of Bethe learning: marginals of every example instead of parameters, moved by best configurations only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ..core.contracts.batches import Certified
from ..core.errors import NumericalError
from ..core.parallel import Workers
from ..core.results import FloatArray
from ..inference.active_set import ActiveSet, line_search
from ..inference.frank_wolfe import LAZY, FreeEnergy, certified
from .conjugates import QuadraticConjugate

#: The longest plain step: one of all the way would leave zeros, whose logarithms say nothing about the way back.
LONGEST = 0.99
#: The part of the first mean that stays in a mean of configurations, and most exchanges within it for one call of a solver.
FLOOR, TURNS = 1e-10, 30
#: Most turns of a block one after the other without asking its solver: other blocks move parameters meanwhile.
SKIPPED = 2
#: How close marginals come to those of parameters that a run begins with, and the calls that may take.
NEAR, CALLS = 1e-2, 10


@dataclass
class Block:
    """An example in the dual.

    Attributes
    ----------
    energy : FreeEnergy
        What its marginals maximise when parameters are zero: the entropy, and fixed scores if there are any.
    forward, adjoint : callable
        The linear map from parameters to scores, and its transpose.
    weight : float
        Of the example.
    observed : array, optional
        The configuration that was observed: a solver that answers with less than its score is wrong.
    name : str
        What errors call the example.
    """

    energy: FreeEnergy
    forward: Callable[[FloatArray], FloatArray]
    adjoint: Callable[[FloatArray], FloatArray]
    weight: float
    observed: FloatArray | None = None
    name: str = ""
    tau: FloatArray = field(init=False)  # the marginals
    gap: float = field(init=False, default=np.inf)  # what the last answer said
    calls: int = field(init=False, default=0)
    promise: float = field(init=False, default=np.inf)  # exchanges that gain less wait for the solver
    skipped: int = field(init=False, default=0)  # turns without the solver since the last one with it
    active: ActiveSet | None = field(init=False, default=None)
    summed: FloatArray | None = field(init=False, default=None)  # of marginals, for their mean
    since: float = field(init=False, default=0.0)  # the weight of means up to which it was summed

    def __post_init__(self) -> None:
        self.first, self.compiled = self.energy.start(), self.energy.compiled()
        self.tau = self.first.mean(0)

    def best(self, scores: FloatArray, tau: FloatArray, known: float = -np.inf) -> tuple[FloatArray, float]:
        """The best configuration, and what a step to it from tau could gain at most."""
        if self.observed is not None:
            known = max(known, float(scores @ self.observed))
        try:
            vertex = self.energy.best(scores)
            self.calls += 1
            return vertex, certified(self.energy, scores, vertex, tau, known)
        except (NumericalError, RuntimeError, ValueError) as error:
            if not self.name or self.name in str(error):
                raise
            raise type(error)(f"{self.name}: {error}") from error.__cause__


class _Others:
    """The dual as a function of one block: all others, and so parameters, are where they are."""

    def __init__(self, block: Block, d: FloatArray, conjugate: QuadraticConjugate, held: FloatArray | None = None) -> None:
        self.block, self.conjugate, self.held = block, conjugate, held
        self.image: FloatArray = np.zeros_like(d)  # by how much d changes per step
        self.follow(d)

    def gradient(self) -> FloatArray:
        return self.block.forward(self.theta) + self.block.energy.gradient(self.block.tau)

    def follow(self, d: FloatArray) -> None:
        """Take the parameters that belong to new marginals, unless they are held."""
        self.theta: FloatArray = self.conjugate.parameters(d) if self.held is None else self.held

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        self.image = self.block.adjoint(direction)
        entropy, weight = self.block.energy.along(tau, direction), self.block.weight
        if self.held is not None:
            rise = float(self.theta @ self.image)
            return lambda step: rise + entropy(step)
        slope = self.conjugate.along(self.theta, weight * self.image)
        return lambda step: slope(step) / weight + entropy(step)


class DualBlocks:
    """``L(tau) = phi(d) - sum_i w_i H(tau_i)``, to be minimised; ``d = sum_i w_i A_i'(y_i - tau_i)``.

    phi is the conjugate of the penalty R, ``sum_j d_j^2 / (2 penalty_j)`` where that is quadratic, and the parameters that
    belong to tau are where it is reached, ``d / penalty``. ``-L`` is nowhere above the minimum of the penalised likelihood F
    (within the set, if there is one), and with g the sum of the gaps of all blocks, ``F(theta) <= g - L`` there. H has fixed
    scores added, if there are any.

    Parameters
    ----------
    blocks : sequence of Block
    observed : array
        ``sum_i w_i A_i' y_i``.
    penalty : float, array or QuadraticConjugate
        R: the l2 of each parameter, above zero, or its conjugate.
    constant : float
        Fixed scores of the observed configurations.
    workers : Workers
        Threads for steps of all blocks at once, and for certificates.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        observed: FloatArray,
        penalty: float | FloatArray | QuadraticConjugate,
        constant: float = 0.0,
        workers: Workers | None = None,
    ) -> None:
        self.blocks: list[Block] = list(blocks)
        self._conjugate = penalty if isinstance(penalty, QuadraticConjugate) else QuadraticConjugate(penalty)
        self._constant, self._observed = constant, observed
        self._workers = workers or Workers(1)
        self._d, self._sum, self._weights, self._steps = observed.copy(), np.zeros_like(observed), 0.0, 0
        for block in self.blocks:
            self._d -= block.weight * block.adjoint(block.tau)

    def under(self, conjugate: QuadraticConjugate) -> Self:
        """The same dual, at its start, with another penalty."""
        self._conjugate = conjugate
        return self

    @property
    def n_blocks(self) -> int:
        return len(self.blocks)

    @property
    def n_calls(self) -> int:
        """How often best configurations were asked for."""
        return sum(block.calls for block in self.blocks)

    @property
    def parameters(self) -> FloatArray:
        return self._conjugate.parameters(self._d)

    def begin(self, theta: FloatArray) -> None:
        """Move marginals close to those of parameters, by the solver alone."""
        for block in self.blocks:
            for _ in range(CALLS):
                if self._exchange(block, "blended", theta) <= NEAR * block.weight:
                    break
            block.gap = block.promise = np.inf  # they were those at other parameters

    def value(self) -> float:
        """L."""
        return self._value(self._d, [block.tau for block in self.blocks])

    def _value(self, d: FloatArray, taus: list[FloatArray]) -> float:
        entropies = sum(block.weight * block.energy.value(tau) for block, tau in zip(self.blocks, taus, strict=True))
        return self._conjugate.value(d) + self._constant - float(entropies)

    def estimate(self) -> Certified:
        """Where it is, with the gap that the last answer for each block suggests: it was given at other parameters."""
        gap = float(sum(block.weight * (block.gap + block.energy.delta) for block in self.blocks))
        return Certified(self.parameters, gap - self.value(), gap)

    def certify(self, mean: bool = False) -> Certified:
        """Where it is, or the mean of where it was, with its gap: one call of the solver for each block."""
        if not mean:  # what many steps have rounded is not in it
            self._d = self._observed - sum(block.weight * block.adjoint(block.tau) for block in self.blocks)
        d, taus = self._mean() if mean else (self._d, [block.tau for block in self.blocks])
        theta = self._conjugate.parameters(d)

        def ask(block: Block, tau: FloatArray) -> float:
            return block.best(block.forward(theta) + block.energy.gradient(tau), tau)[1]

        gaps = self._workers.run(ask, list(zip(self.blocks, taus, strict=True)))
        gap = float(sum(b.weight * (max(g, 0.0) + b.energy.delta) for b, g in zip(self.blocks, gaps, strict=True)))
        return Certified(theta, gap - self._value(d, taus), gap)

    def gap(self) -> float:
        """At least what the value is above its minimum."""
        return self.certify().gap

    def step(self, block: int, size: float | None, variant: str = "plain") -> float:
        """Move a block by the answers of its solver, by a part or as far as is best; returns its gap as last seen."""
        if variant == "plain":
            return self._plain([self.blocks[block]], size)
        return self._exchange(self.blocks[block], variant)

    def step_all(self, size: float | None) -> float:
        """Move all blocks at once by the same part; returns the gap."""
        return self._plain(self.blocks, size)

    def _exchange(self, block: Block, variant: str, held: FloatArray | None = None) -> float:
        """Exchanges between configurations: those that are known as long as that pays, then with the best one.

        Parameters follow the marginals, unless they are `held`.
        """
        self._leave(block)
        if block.active is None:
            block.active = ActiveSet(block.first, FLOOR, block.adjoint)
        active = block.active
        others = _Others(block, self._d, self._conjugate, held)
        if variant == "blended" and self._among_known(block, others) and block.skipped < SKIPPED:
            block.skipped += 1
            return block.weight * block.gap
        block.skipped = 0
        gradient = others.gradient()
        scores = active.scores(gradient)
        vertex, block.gap = block.best(gradient, block.tau, float(scores.max()))
        block.promise = LAZY * min(block.promise, block.gap)
        if block.gap > 0.0:
            taker, giver = active.add(vertex), int(np.argmin(scores))
            step = active.exchange(giver, taker, others) if taker != giver else 0.0
            if not step > 0.0:
                step = active.toward(taker, others)
            self._moved(block, others, step)
        return block.weight * block.gap

    def _among_known(self, block: Block, others: _Others) -> bool:
        """Moves between configurations that are known, as long as that pays; whether the solver can wait."""
        active = block.active
        assert active is not None
        if block.promise == np.inf:
            return False
        if block.compiled is not None and active.binary:
            return self._compiled(block, active, others)
        for turn in range(TURNS):
            scores = active.scores(others.gradient())
            worst, local = int(np.argmin(scores)), int(np.argmax(scores))
            if scores[local] - scores[worst] < block.promise:
                return turn > 0
            if not self._moved(block, others, active.exchange(worst, local, others)):
                return False
        return True

    def _compiled(self, block: Block, active: ActiveSet, others: _Others) -> bool:
        """The same in one call."""
        assert block.compiled is not None
        penalty = np.inf if others.held is not None else others.conjugate.penalty
        scaling = np.broadcast_to(np.asarray(block.weight / penalty, dtype=np.float64), others.theta.shape).copy()
        moved, left, change = active.improve(*block.compiled, others.theta, scaling, block.promise)
        if moved:
            self._d = self._d - block.weight * change
            block.tau = active.tau
            others.follow(self._d)
        return moved and left < block.promise

    def _moved(self, block: Block, others: _Others, step: float) -> bool:
        """Keep d in step with the marginals of a block."""
        assert block.active is not None
        if step > 0.0:
            self._d = self._d - step * block.weight * others.image
            block.tau = block.active.tau
            others.follow(self._d)
        return step > 0.0

    def _plain(self, blocks: list[Block], size: float | None) -> float:
        """A step towards the best configurations, which leaves no list of them."""
        theta = self.parameters

        def toward(block: Block) -> tuple[FloatArray, FloatArray]:
            scores = block.forward(theta) + block.energy.gradient(block.tau)
            vertex, block.gap = block.best(scores, block.tau)
            return vertex - block.tau, block.weight * block.adjoint(vertex - block.tau)

        found = self._workers.run(toward, [(block,) for block in blocks])
        change = np.sum([one[1] for one in found], axis=0)
        directions = [one[0] for one in found]
        eta = self._best_step(blocks, directions, change) if size is None else size
        for block, direction in zip(blocks, directions, strict=True):
            self._leave(block)
            block.tau, block.active = block.tau + eta * direction, None
        self._d = self._d - eta * change
        return float(sum(block.weight * block.gap for block in blocks))

    def _best_step(self, blocks: list[Block], directions: list[FloatArray], change: FloatArray) -> float:
        """The best step."""
        descent = self._conjugate.along(self.parameters, change)
        slopes = [b.energy.along(b.tau, direction) for b, direction in zip(blocks, directions, strict=True)]
        pairs = list(zip([block.weight for block in blocks], slopes, strict=True))

        def slope(eta: float) -> float:
            return descent(eta) + float(sum(self._workers.run(lambda w, along: w * along(eta), pairs)))

        return line_search(slope, LONGEST)

    def average(self) -> FloatArray:
        """Count where it is in the mean, which favours late places; returns the parameters of the mean."""
        self._steps += 1
        self._weights += self._steps
        self._sum = self._sum + self._steps * self._d
        return self._conjugate.parameters(self._sum / self._weights)

    def _leave(self, block: Block) -> None:
        """Marginals of a block are about to change: they count in the mean for as long as they stood."""
        if self._weights > block.since:
            summed = np.zeros_like(block.tau) if block.summed is None else block.summed
            block.summed, block.since = summed + (self._weights - block.since) * block.tau, self._weights

    def _mean(self) -> tuple[FloatArray, list[FloatArray]]:
        for block in self.blocks:
            self._leave(block)
        taus = [block.tau if block.summed is None else block.summed / block.since for block in self.blocks]
        return self._sum / self._weights if self._weights else self._d, taus

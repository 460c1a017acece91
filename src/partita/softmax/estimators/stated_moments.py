"""A problem of maximum entropy as users state it: read into arrays, or into what a model file can hold."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.results import FloatArray
from ...core.types import Frame
from ..objective.moments import MomentProblem
from ..structure import Categorical
from .moment_names import Names, align_states, read_moments, read_targets

#: Functions of states: an array, (states,) or (states, k), a frame, or a dict of columns.
MomentsLike: TypeAlias = ArrayLike | Frame | Mapping[Any, ArrayLike]
#: A number for each function: in their order, or by name.
TargetsLike: TypeAlias = ArrayLike | Mapping[Any, float] | Frame
#: A weight for each state: in their order, or by name.
PriorLike: TypeAlias = ArrayLike | Mapping[Any, float]


class Block(NamedTuple):
    """Functions of states and the numbers that belong to their means, in one order, with their names."""

    F: FloatArray
    target: FloatArray
    columns: Names
    states: Names

    def labels(self, kind: str) -> list[str]:
        """What users call the moments."""
        return [f"{kind} {key!r}" for key in (range(self.F.shape[1]) if self.columns is None else self.columns)]

    def plain(self) -> FloatArray | dict[Hashable, FloatArray]:
        """The functions without a frame: columns by name, if they have names."""
        return self.F if self.columns is None else dict(zip(self.columns, self.F.T, strict=True))


class StatedMoments(NamedTuple):
    """The parameters of `MaxEnt` that state its problem."""

    features: MomentsLike | None
    equality: TargetsLike | None
    inequality: tuple[MomentsLike, TargetsLike] | None
    prior: PriorLike | None

    def problem(self) -> tuple[MomentProblem, NDArray[np.bool_]]:
        """The checked problem on the states that the prior allows, and which those are."""
        equal = self._equal()
        least = self._least(equal.states if equal else None)
        blocks = [block for block in (equal, least) if block is not None]
        if not blocks:
            raise ValueError("MaxEnt needs moments: give features and equality, or inequality, or both")
        count = len(blocks[0].F)
        if len(blocks[-1].F) != count:
            raise ValueError(f"features has {count} states, inequality[0] has {len(blocks[-1].F)}; they must agree")
        prior = np.ones(count) if self.prior is None else self._prior(self._states(equal, least))
        live = np.exp(Categorical(count, prior).log_prior) > 0.0
        F, target = np.hstack([block.F for block in blocks])[live], np.concatenate([block.target for block in blocks])
        names = [*(equal.labels("equality") if equal else []), *(least.labels("inequality") if least else [])]
        return MomentProblem(F, target, equal.F.shape[1] if equal else 0, prior[live], tuple(names)), live

    def plain(self) -> StatedMoments:
        """The same problem without frames and series: columns by name, numbers in one order."""
        equal = self._equal() if self.features is not None and self.equality is not None else None
        least = self._least(equal.states if equal else None)
        features, equality = (equal.plain(), equal.target) if equal else (self.features, self.equality)
        inequality = (least.plain(), least.target) if least else None
        prior = None if self.prior is None else self._prior(self._states(equal, least))
        return StatedMoments(features, equality, inequality, prior)

    def _equal(self) -> Block | None:
        if self.features is None and self.equality is None:
            return None
        if self.features is None or self.equality is None:
            raise ValueError("features and equality belong together: give both or neither")
        F, columns, states = read_moments("features", self.features)
        return Block(F, read_targets("equality", self.equality, "features", columns, F.shape[1]), columns, states)

    def _least(self, states: Names) -> Block | None:
        """The functions in the order of the states of `features`, and their bounds."""
        if self.inequality is None:
            return None
        if not isinstance(self.inequality, list | tuple) or len(self.inequality) != 2:
            raise ValueError("inequality must be a pair (g, bound): g of shape (states, m) and bound of shape (m,)")
        F, columns, own = read_moments("inequality[0]", self.inequality[0])
        if self.features is not None and own:
            order = align_states("inequality[0]", self.inequality[0], "features", states)
            F = F if order is None else F[order]
        bound = read_targets("inequality[1]", self.inequality[1], "inequality[0]", columns, F.shape[1])
        return Block(F, bound, columns, own)

    def _states(self, equal: Block | None, least: Block | None) -> Names:
        """The names of the states, from whichever block has any."""
        return next((block.states for block in (equal, least) if block is not None and block.states is not None), None)

    def _prior(self, states: Names) -> FloatArray:
        """The prior in the order of the states, by name if both have names."""
        order = align_states("prior", self.prior, "features", states)
        values: Any = list(self.prior.values()) if isinstance(self.prior, Mapping) else self.prior
        try:
            prior = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("prior must be numbers, one for each state") from None
        return prior if order is None else np.asarray(prior[order])

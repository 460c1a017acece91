"""What a composite likelihood is made of: which objects, how often, with which weights."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...core.random import generator
from ...core.results import FloatArray, IntArray
from ...core.stored import stored
from ...core.validation import check_choice, check_flag, check_real
from .efficiency import efficiency, relative_size
from .policies import Independent, Multinomial, Policy, Product

#: Names of orders that are not a number of variables: all of them, and objects that the user lists.
FULL, PAIRS = "full", "pairs"

POLICIES = ("independent", "multinomial", "product")
AUTO = "auto"


class Limits(Protocol):
    """What estimates of a composite likelihood tend to if a model is true."""

    @property
    def information(self) -> FloatArray: ...
    def covariance(self, composite: CompositeLikelihood) -> FloatArray: ...


@runtime_checkable
class HasLimits(Protocol):
    """A model whose composite likelihoods have known limits."""

    def composite_limits(self, theta: Any, samples: int, random_state: Any) -> Limits: ...


@stored
@dataclass(frozen=True)
class CompositeLikelihood:
    """A weighted sum of objects log p(x_A | x_B), each computed for a random part of the examples.

    Parameters
    ----------
    orders : dict, optional
        For every order, how often its objects are used. Order k has an object for every set A of k variables (on chains,
        of k labels in a row), given all others; order ``"full"`` is the likelihood of the whole; ``"pairs"`` are those of
        `pairs`. Default: ``{1: 1.0}``, the pseudo-likelihood.
    pairs : list of (A, B), optional
        Objects of your own, tuples of variables. What is in neither is summed out; the likelihood then need not be concave.
    weights : None, "auto" or dict
        The weight of every order in the sum: one, or what makes the estimates most accurate, or as given: by order a number,
        or a list with one for each object (sets A in ascending order, windows of chains from the first to the last, pairs
        as they are listed), of which every example must then have as many.
    policy : {"independent", "multinomial", "product"}, policy or function
        ``"independent"``: every object by itself, with the probability that `orders` gives. ``"multinomial"``: exactly one
        object; `orders` has the probability of each order, and they sum to one. ``"product"``: one object of each order, or
        none with the probability that is left. Or `Independent`, `Multinomial`, `Product` or `Listed` of
        `partita.objectives`, or an object of your own with `mean`, `second` and `draw`, or a function that makes one from
        the order of every object of an example.
    refresh : bool
        True: objects are drawn anew in every pass, and the estimates are those of the sum weighted by probabilities. Solvers
        that take mini-batches (``"sgd"``, ``"stochastic"``) draw, and compute no more; others see all data, and take that
        sum at once: they compute every object, whatever its probability. False: they are drawn once for each example, so
        that a pass is cheap; the estimates are less accurate.
    blocks : {"connected", "all"}
        Which sets A an order has: those that hang together, or all of them. Others than connected ones add nothing but
        weight: given the rest, their parts are independent. On complete graphs, and on chains, there is no difference.
    refine : None, "full" or dict
        After the fit, one Newton step of a costlier likelihood: of the whole, or of other `orders`. It has the accuracy of
        a fit by that likelihood where there are many examples, for the price of a few evaluations.
    random_state : int, Generator or None
        Of what is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import CompositeLikelihood, MarkovNetwork
    >>> net, theta = MarkovNetwork.boltzmann(5), np.repeat([-1.0, 1.0], 5)
    >>> CompositeLikelihood().efficiency(net, theta).__round__(6)
    1.624489
    >>> CompositeLikelihood(orders={1: 0.7, 2: 0.3}).efficiency(net, theta).__round__(6)
    1.431941
    """

    orders: Mapping[Any, float] | None = None
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]] | None = None
    weights: Any = None
    policy: Any = "independent"
    refresh: bool = True
    blocks: str = "connected"
    refine: Any = None
    random_state: Any = None

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        check_flag("refresh", self.refresh)
        check_choice("blocks", self.blocks, ("connected", "all"))
        for order, rate in self.rates.items():
            if order not in (FULL, PAIRS) and (isinstance(order, bool) or not isinstance(order, int) or order < 1):
                raise ValueError(f"orders must be numbers of variables from 1, 'full' or 'pairs'; got {order!r}")
            if not 0.0 < check_real(f"orders[{order!r}]", rate, minimum=0.0) <= 1.0:
                raise ValueError(f"orders[{order!r}] must be a probability above 0, got {rate!r}")
        if (self.pairs is None) == (PAIRS in self.rates):
            raise ValueError("orders must have 'pairs' if pairs are given, and only then")
        if isinstance(self.policy, str):
            check_choice("policy", self.policy, POLICIES)
            if self.policy == "multinomial" and not np.isclose(sum(self.rates.values()), 1.0, atol=1e-9):
                raise ValueError(f"orders must sum to one with policy 'multinomial', got {sum(self.rates.values())}")
        elif not callable(self.policy) and not isinstance(self.policy, Policy):
            raise ValueError(f"policy must be one of {POLICIES}, a function, or have mean, second and draw")
        if isinstance(self.weights, str):
            check_choice("weights", self.weights, (AUTO,))
        elif self.weights is not None:
            if not isinstance(self.weights, Mapping) or set(self.weights) != set(self.rates):
                raise ValueError(f"weights must be a dict with the keys of orders, {list(self.rates)}")
            given = [
                check_real(f"weights[{o!r}]", each, minimum=0.0) for o, w in self.weights.items() for each in _listed(w)
            ]
            if not max(given, default=0.0) > 0.0:
                raise ValueError("weights must not all be zero")
        if self.refine is not None and self.refine != FULL:
            if not isinstance(self.refine, Mapping):
                raise ValueError(f"refine must be None, 'full' or a dict of orders, got {self.refine!r}")
            self.refinement.check()

    @property
    def refinement(self) -> CompositeLikelihood:
        """The costlier likelihood of `refine`, if that is a dict."""
        return CompositeLikelihood(orders=self.refine, blocks=self.blocks)

    @property
    def rates(self) -> dict[Any, float]:
        """`orders`, or its default."""
        if self.orders is not None:
            return dict(self.orders)
        return {1: 1.0} if self.pairs is None else {PAIRS: 1.0}

    @property
    def automatic(self) -> bool:
        """Whether weights are to be chosen."""
        return isinstance(self.weights, str) and len(self.rates) > 1

    @property
    def beta(self) -> FloatArray:
        """The weight of every order, in the order of `rates`; ones where they are still to be chosen, or by object."""
        given = {order: weight for order, weight in self._given.items() if isinstance(weight, numbers.Real)}
        return np.array([float(given.get(order, 1.0)) for order in self.rates])

    @property
    def _given(self) -> Mapping[Any, Any]:
        return self.weights if isinstance(self.weights, Mapping) else {}

    def weights_within(self, groups: IntArray, examples: IntArray) -> FloatArray:
        """The weight of every object within its order: one, or as `weights` lists it.

        `groups` and `examples` are as in `shares`.
        """
        out = np.ones(len(groups))
        for g, order in enumerate(self.rates):
            weights = self._given.get(order, 1.0)
            if isinstance(weights, numbers.Real):
                continue
            own = np.flatnonzero(groups == g)
            counts = np.unique(examples[own], return_counts=True)[1]
            if (counts != len(weights)).any():
                raise ValueError(
                    f"weights[{order!r}] must have a number for each object of that order in every example: there are "
                    f"{' to '.join(map(str, np.unique([counts.min(), counts.max()])))}, got {len(weights)} numbers"
                )
            out[own] = np.tile(np.asarray(weights, dtype=np.float64), len(counts))
        return out

    def named_weights(self, beta: FloatArray) -> dict[Any, Any]:
        """Weights of orders by name; lists of those of objects as they were given."""
        found = dict(zip(self.rates, beta.tolist(), strict=True))
        lists = {order: w for order, w in self._given.items() if not isinstance(w, numbers.Real)}
        return found | {order: np.asarray(w, dtype=np.float64).tolist() for order, w in lists.items()}

    def law(self, groups: IntArray) -> Policy:
        """The policy for an example whose objects are of these groups (numbers of entries of `rates`)."""
        rates = np.array(list(self.rates.values()))
        if self.policy == "independent":
            return Independent(rates[groups])
        if isinstance(self.policy, str):
            return _one_of(groups, rates, apart=self.policy == "product")
        names: list[Hashable] = list(self.rates)
        made: Policy = self.policy([names[g] for g in groups.tolist()]) if callable(self.policy) else self.policy
        if len(made.mean) != len(groups):
            raise ValueError(f"policy is for {len(made.mean)} objects, but an example has {len(groups)}")
        return made

    def shares(self, groups: IntArray, examples: IntArray) -> FloatArray:
        """How much of every object is used: its probability, or with ``refresh=False`` one or zero, as drawn.

        `groups` and `examples` have the order and the example of every object; those of an example stand together.
        """
        return self.selected(groups, examples, None if self.refresh else self._generator())

    def selected(self, groups: IntArray, examples: IntArray, rng: np.random.Generator | None) -> FloatArray:
        """One or zero for every object, as `rng` draws; without, probabilities."""
        if self.policy == "independent":
            rates = np.array(list(self.rates.values()))[groups]
            return rates if rng is None else np.asarray(rng.random(len(rates)) < rates, dtype=np.float64)
        out = np.empty(len(groups))
        starts = np.flatnonzero(np.r_[True, np.diff(examples) != 0, True])
        lengths = np.diff(starts)
        keys: dict[bytes, list[int]] = {}
        for i, (lo, hi) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
            keys.setdefault(groups[lo:hi].tobytes(), []).append(i)
        for alike in keys.values():  # one draw for all examples with the same objects
            first, length = starts[alike], int(lengths[alike[0]])
            law = self.law(groups[first[0] : first[0] + length])
            drawn = np.tile(law.mean, (len(alike), 1)) if rng is None else law.draw(len(alike), rng)
            out[first[:, None] + np.arange(length)] = drawn
        return out

    def asymptotic_covariance(
        self, net: Any, theta: Any = None, samples: int = 10_000, random_state: Any = None
    ) -> FloatArray:
        """n times the variance of the estimates from n examples, in the limit, if `net` is true with weights `theta`.

        Exact where all configurations of the network can be listed; else from `samples` of them, if its junction tree fits.
        What is drawn once for each example (``refresh=False``) adds to it.

        Parameters
        ----------
        net : MarkovNetwork
            Fitted, or with `cardinalities`.
        theta : array, optional
            Default: the weights of `net`.
        """
        self.check()
        return self._limits(net, theta, samples, random_state).covariance(self)

    def efficiency(
        self,
        net: Any,
        theta: Any = None,
        measure: str = "det",
        reference: Any = FULL,
        samples: int = 10_000,
        random_state: Any = None,
    ) -> float:
        """How many times the variance of the estimates by the likelihood of the whole, in the limit; at least one.

        Parameters
        ----------
        net, theta, samples
            As in `asymptotic_covariance`.
        measure : {"det", "rdet", "trace"}
            Of the covariance matrices: determinant, its root by the number of weights, or trace.
        reference : "full" or CompositeLikelihood
            What to compare with.
        """
        self.check()
        limits = self._limits(net, theta, samples, random_state)
        if isinstance(reference, CompositeLikelihood):
            reference.check()
            return relative_size(limits.covariance(self), limits.covariance(reference), measure)
        check_choice("reference", reference, (FULL,))
        return efficiency(limits.covariance(self), limits.information, measure)

    @staticmethod
    def _limits(net: HasLimits, theta: Any, samples: int, random_state: Any) -> Limits:
        if not isinstance(net, HasLimits):
            raise ValueError(f"net must be a MarkovNetwork, got {type(net).__name__}")
        return net.composite_limits(theta, samples, random_state)

    def _generator(self) -> np.random.Generator:
        """Not the stream of the seed itself: data may have been drawn from that, and must not depend on what is selected."""
        return generator(self.random_state).spawn(1)[0]

    def computed_shares(self, groups: IntArray, examples: IntArray, draws: bool) -> FloatArray:
        """How much of every object is computed in a pass, in expectation.

        Its probability if objects are drawn: once for each example, or in every pass by a solver that `draws`. Others
        compute the sum weighted by probabilities, for which they need every object whole.
        """
        shares = self.selected(groups, examples, None) if self.drawn(draws) else np.ones(len(groups))
        return np.asarray(shares * (self.weights_within(groups, examples) > 0.0))

    @property
    def leaves_out(self) -> bool:
        """Whether a pass that draws would leave something out."""
        return self.refresh and (self.policy != "independent" or min(self.rates.values()) < 1.0)

    def drawn(self, draws: bool) -> bool:
        """Whether a pass computes only what is drawn, by a solver that `draws` in every pass, or not."""
        return draws or not self.refresh

    def many_shares(self, groups: IntArray, count: int) -> FloatArray:
        """The same for `count` examples that have the same objects: a row each, or one row for all if they are equal."""
        law = self.law(groups)
        if self.refresh:
            return law.mean[None]
        return np.asarray(law.draw(count, self._generator()), dtype=np.float64)


def _listed(weights: Any) -> list[Any]:
    """A weight, or those of a list."""
    return [weights] if np.ndim(weights) == 0 else list(weights)


def _one_of(groups: IntArray, rates: FloatArray, apart: bool) -> Policy:
    """One object, of any group, or (`apart`) at most one of each: objects of a group are equally likely."""
    counts = np.bincount(groups, minlength=len(rates))
    p = (rates / np.maximum(counts, 1))[groups]
    if not apart:
        return Multinomial(p / p.sum())  # an example may lack an order
    if (np.diff(groups) < 0).any():
        raise ValueError("objects must be sorted by their order")
    return Product([Multinomial(p[groups == g]) for g in np.flatnonzero(counts)])


def as_composite(likelihood: Any, names: tuple[str, ...]) -> CompositeLikelihood | None:
    """What an estimator's `likelihood` stands for: a composite likelihood, or None for the `names` that are not one."""
    if isinstance(likelihood, CompositeLikelihood):
        likelihood.check()
        return likelihood
    if likelihood == "pseudo":
        return CompositeLikelihood()
    if not isinstance(likelihood, str) or likelihood not in names:
        raise ValueError(f"likelihood must be one of {names}, 'pseudo', or a CompositeLikelihood; got {likelihood!r}")
    return None

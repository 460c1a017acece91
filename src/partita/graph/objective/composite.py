"""Penalised composite likelihood of factor graphs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.weights import held_down
from ...core.contracts.batches import AnyBatchSource
from ...core.contracts.capabilities import Capability, Product
from ...core.random import generator
from ...core.results import FloatArray, IntArray
from ...core.warn import warn
from ...objectives.bounds.blocks import PlacedBlocks, softmax_blocks
from ...objectives.bounds.quadratic import BOUNDED
from ...objectives.composite.draws import DrawnBatches
from ...objectives.composite.likelihood import CompositeLikelihood
from ...objectives.information import dense_hessian
from ...objectives.penalized import diagonal_scaling
from ..features.tied_tables import TiedTables
from ..structure.free_sets import FreeSets, FreeSums
from .base import GraphObjective, GraphObjectivePoint
from .composite_draws import DrawnGraphs
from .likelihood_objects import Objects, list_objects
from .majorization import factor_blocks

#: Least part of the largest entry of the diagonal of the Hessian that scales steps, and its power.
LEAST_CURVATURE, POWER = 1e-6, 0.5
#: Numbers that rows of scores may hold at a time.
CHUNK = 20_000_000
#: Parameters up to which a diagonal is computed entry by entry, and vectors of signs that it is estimated from.
EXACT_DIAGONAL, SIGNS = 200, 30
#: Parameters up to which policies are compared by whole matrices.
DENSE_MOMENTS = 300
#: Examples for each parameter from which weights are chosen by whole matrices: the determinant of a covariance that is
#: estimated from fewer is too small, and more so for objects that say much.
EXAMPLES_EACH = 10


class GraphComposite(GraphObjective["CompositePoint"]):
    """``F(theta) = sum_i w_i sum_j beta_j Z_ij (-log p(x_Aj | x_Bj)) + 1/2 sum_j penalty_j theta_j^2``, a sum over examples.

    Z_ij is the share of object j in example i: its probability, or one or zero as drawn (see `CompositeLikelihood`).
    Examples come as in `GraphLikelihood`: many graphs and one row of states, or one graph and many rows. All states must be
    known. `scale` is the number of variables in sets A, weighted, so that ``tol`` means the same for all policies.

    Parameters
    ----------
    features : TiedTables
    y : int array
        States, as in `GraphLikelihood`.
    composite : CompositeLikelihood
    weights, penalty, base
        As in `GraphLikelihood`.
    beta : array, optional
        Weight of every order; default those of `composite`.
    options : dict, optional
        `memory_limit` of junction trees of large objects.
    """

    engine = "composite"

    def __init__(
        self,
        features: TiedTables,
        y: ArrayLike,
        composite: CompositeLikelihood,
        *,
        weights: Any = None,
        penalty: float | FloatArray = 0.0,
        base: FloatArray | None = None,
        beta: FloatArray | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(features, y, weights, penalty, base)
        if (self.states < 0).any():
            raise ValueError("composite likelihoods need all values known: y has unknown ones (-1, None or NaN)")
        self.composite = composite
        self.options: dict[str, Any] = {key: value for key, value in (options or {}).items() if key == "memory_limit"}
        self.objects: Objects = list_objects(self.graph, composite)
        self.shares: FloatArray = self._draw()
        #: Of every object, within its order.
        self.within: FloatArray = composite.weights_within(self.objects.groups, self.objects.examples)
        self.convex: bool = not self.objects.hidden
        self.capabilities: frozenset[Capability] = BOUNDED | {
            *(Capability.SMOOTH, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER, Capability.BATCHES)
        }
        self.beta: FloatArray = composite.beta if beta is None else np.asarray(beta, dtype=np.float64)
        self._weigh()

    def _draw(self) -> FloatArray:
        """Shares of objects, (1 or n_rows, objects)."""
        o, c = self.objects, self.composite
        if len(self.states) == 1:
            return c.shares(o.groups, o.examples)[None]
        return c.many_shares(o.groups, len(self.states))

    def _weigh(self) -> None:
        """Make what depends on beta."""
        self.sets: FreeSets = self._free_sets(self.beta)
        self.observed: FloatArray = self.features.adjoint(self.sets.counts)
        used = self.sets.counts > 0.0
        self.constant: float = 0.0 if self.base is None else float(self.sets.counts[used] @ self.base[used])
        if not np.isfinite(self.constant):
            raise ValueError("y has a forbidden configuration: the tables give it probability zero")
        self.scale: float = self._scale()
        if not self.scale > 0.0:
            raise ValueError("no object of the composite likelihood was drawn; raise the probabilities in orders")

    def _scale(self) -> float:
        """The number of variables in sets A, weighted."""
        o, sizes = self.objects, self._sizes()
        if len(self.states) == 1:
            return float((self.shares @ (sizes * held_down(self.weights)[o.examples]))[0])
        return float(np.broadcast_to(self.shares @ sizes, len(self.states)) @ held_down(self.weights))

    def _sizes(self) -> FloatArray:
        """The number of variables in the set A of each object, weighted."""
        o = self.objects
        known = np.add.reduceat(~o.latent, o.sets.offsets[:-1])
        return np.asarray(np.bincount(o.columns, weights=known, minlength=len(o.groups)) * self.object_weights)

    def _object_weights(self, beta: FloatArray) -> FloatArray:
        return np.asarray(beta[self.objects.groups] * self.within)

    def _free_sets(self, beta: FloatArray) -> FreeSets:
        o = self.objects
        shares = self.shares * self._object_weights(beta)
        rows = np.ones(1)
        if len(self.states) == 1:
            shares = shares * self.weights[o.examples]
        else:
            rows = self.weights
        return FreeSets(self.graph, o.sets, self.states, rows, shares, o.columns, o.signs, o.latent, **self.options)

    @property
    def masses(self) -> FloatArray:
        """The weighted number of variables in sets A of each example."""
        sizes = self._sizes()
        if len(self.states) == 1:
            used = self.shares[0] * sizes
            each = np.bincount(self.objects.examples, weights=used, minlength=self.n_examples)
            return np.asarray(each * self.weights)
        return np.asarray(np.broadcast_to(self.shares @ sizes, len(self.states)) * self.weights)

    def part(self, rows: IntArray) -> GraphComposite:
        rows = np.sort(rows)
        twin = copy(self)
        for name in ("uniform_diagonal", "examples"):
            twin.__dict__.pop(name, None)
        twin.features, twin.states, twin.base = self.some(rows)
        twin.graph, twin.weights, twin.n_examples = twin.features.graph, self.weights[rows], len(rows)
        twin.penalty, twin.center = np.zeros(self.size), None
        if self.graph.n_examples > 1:
            twin.objects, chosen = self.objects.take(self.graph, rows)
            twin.shares, twin.within = self.shares[:, chosen], self.within[chosen]
        elif len(self.shares) > 1:
            twin.shares = self.shares[rows]
        twin._weigh()
        return twin

    def evaluate(self, theta: FloatArray) -> tuple[float, tuple[FloatArray]]:
        point = self.at(theta)
        return point.value, (point.sums.gradient - self.sets.counts,)

    def with_weights(self, beta: FloatArray) -> GraphComposite:
        """The same objective with other weights of orders; what was drawn stays."""
        if np.array_equal(beta, self.beta):
            return self
        out = copy(self)
        out.__dict__.pop("uniform_diagonal", None)
        out.beta = np.asarray(beta, dtype=np.float64)
        out._weigh()
        return out

    def of(
        self, features: TiedTables, y: ArrayLike, base: FloatArray | None, sets: NDArray[np.bool_] | None = None
    ) -> GraphComposite:
        """The same objects of other examples, with weight one and no penalty."""
        if sets is not None:
            raise ValueError("composite likelihoods need all values known: y has sets of states")
        return GraphComposite(features, y, self.composite, base=base, beta=self.beta, options=self.options)

    @property
    def object_weights(self) -> FloatArray:
        """What every object counts if it is used."""
        return self._object_weights(self.beta)

    def drawn_part(self, rows: IntArray) -> DrawnGraphs:
        """Some examples, whose objects are drawn when they are evaluated."""
        return DrawnGraphs(self, rows)

    def batches(self, random_state: Any = None, validation: float = 0.0) -> AnyBatchSource:
        """The examples as mini-batches in random order; objects that are refreshed are drawn at every visit."""
        if self.composite.leaves_out:
            return DrawnBatches(self, random_state, validation)
        return super().batches(random_state, validation)

    def check_covered(self) -> None:
        """Warn if no object that is used says anything about some weights, or if the sum need not be concave."""
        touched = self.sets.touched()
        idle = np.flatnonzero((self.features.squared(touched) == 0.0) & (self.penalty == 0.0))
        if len(idle):
            warn(
                f"the likelihood objects do not cover the model: {len(idle)} of {self.size} weights take part in none that "
                f"is used (the first is number {idle[0]}), and stay at zero; add pairs or orders, or draw more",
            )
        if not self.convex:
            warn(
                "some likelihood objects sum over variables that are in neither A nor B: their sum need not be concave, and "
                "the fit may be a local optimum",
            )

    @cached_property
    def uniform_diagonal(self) -> FloatArray:
        """The diagonal of the Hessian of the loss at zero weights, as if entries were independent."""
        return self.features.squared(self.sets.at(self.potentials(np.zeros(self.size))).variances())

    def moments(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What `best_weights` asks for, see `CompositePoint.moments`: matrices where there are examples enough for them."""
        dense = self.size <= DENSE_MOMENTS and self.n_examples >= EXAMPLES_EACH * self.size
        return self.at(theta).moments(dense)

    def spread(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What `choose` asks for: the same as matrices, unless they are large."""
        return self.at(theta).moments(dense=self.size <= DENSE_MOMENTS)

    def with_potentials(self, theta: FloatArray, u: FloatArray) -> CompositePoint:
        return CompositePoint(self, theta, u)


class CompositePoint(GraphObjectivePoint):
    """The composite likelihood at one parameter vector."""

    parameters: FloatArray
    u: FloatArray

    objective: GraphComposite

    def __init__(self, objective: GraphComposite, theta: FloatArray, u: FloatArray) -> None:
        self.objective, self.parameters, self.u = objective, theta, u
        o = objective
        self.sums: FreeSums = o.sets.at(u)
        value = self.sums.value - float((o.observed * theta).sum()) - o.constant
        self.value: float = value + o.penalty_value(theta)

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        return o.features.adjoint(self.sums.gradient) - o.observed + o.penalty_gradient(self.parameters)

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v."""
        o = self.objective
        return lambda v: _pulled_back(o.features, self.sums, v) + o.penalty * v

    def curvature_above(self, kind: str) -> tuple[Product, FloatArray]:
        """A softmax over the configurations of each set that is written out, and Hölder's inequality over the factors of
        larger ones; what is taken off for hidden variables is concave, and linear in the quadratic."""
        o, sums, sets = self.objective, self.sums, self.objective.sets
        P, starts = sums.softmaxes
        factors = np.zeros(len(starts) - 1)
        if len(P):
            # not the conjectured form, whose largest entries have no bound: S is made as a covariance with shares of D
            D = softmax_blocks(P, starts, kind if kind == "bohning" else "symmetric_proved", o.graph.workers).D
            factors = np.add.reduceat(D, starts[:-1])
            P = D / np.repeat(factors, np.diff(starts))
        diagonal = o.features.squared(sums.variances())
        tree = sets.tree
        if tree is None:
            return lambda v: o.features.adjoint(sums.weighted(P, factors, o.features.forward(v))), diagonal
        u = self.u[sets.index]
        weights = np.maximum(sets.tree_weights, 0.0)
        blocks = PlacedBlocks(
            factor_blocks(tree, u, tree.infer(u, "exact", **sets.options).marginals, weights, kind), sets.index
        )

        def product(v: FloatArray) -> FloatArray:
            image = o.features.forward(v)
            return o.features.adjoint(sums.weighted(P, factors, image) + blocks.product(image))

        return product, diagonal + o.features.squared(blocks.diagonal(o.graph.size))

    def information_product(self) -> Product:
        """The same: nothing is unknown."""
        return self.hessian_product()

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of the Hessian, as if entries were independent."""
        o = self.objective
        return np.maximum(o.features.squared(self.sums.variances()) + o.penalty, 1e-12)

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> v over the square root of the diagonal of the Hessian."""
        return diagonal_scaling(self.diagonal, LEAST_CURVATURE * self.diagonal.max(), POWER)

    def score_chunks(self, beta: FloatArray | None = None) -> Iterator[FloatArray]:
        """Gradients of the weighted log-likelihood of each example, (examples, parameters), some examples at a time; with
        other weights of orders, if given."""
        o = self.objective
        sets, A = o.sets if beta is None else o._free_sets(beta), o.features.matrix
        if len(o.states) == 1 and o.graph.n_examples > 1:
            values = sets.row_residuals(self.u, 0, 1)[0]
            owner = np.repeat(o.graph.factor_examples, np.diff(o.graph.offsets))
            M = sp.csr_matrix((values, (owner, np.arange(o.graph.size))), shape=(o.n_examples, o.graph.size)) @ A
            step = max(1, CHUNK // o.size)
            yield from (M[lo : lo + step].toarray() for lo in range(0, o.n_examples, step))
        else:
            step = max(1, CHUNK // (o.size + o.graph.size))
            for lo in range(0, o.n_examples, step):
                yield sets.row_residuals(self.u, lo, min(lo + step, o.n_examples)) @ A

    def moments(self, dense: bool = False) -> tuple[FloatArray, FloatArray]:
        """Of each order alone, the diagonal of the Hessian (orders, parameters), and the diagonals of the covariances of the
        scores of any two (orders, orders, parameters); if `dense`, whole matrices."""
        o = self.objective
        units = np.eye(len(o.beta))
        shape = (o.size, o.size) if dense else (o.size,)
        J, S = np.zeros((len(units), *shape)), np.zeros((len(units), len(units), *shape))
        for parts in zip(*(self.score_chunks(unit) for unit in units), strict=True):
            for j, k in itertools.product(range(len(units)), repeat=2):
                S[j, k] += parts[j].T @ parts[k] if dense else (parts[j] * parts[k]).sum(0)
        for k, unit in enumerate(units):
            sums = o._free_sets(unit).at(self.u)
            product = partial(_pulled_back, o.features, sums)
            J[k] = dense_hessian(product, o.size) if dense else _diagonal(product, o.size)
        return J, S


def _pulled_back(features: TiedTables, sums: FreeSums, v: FloatArray) -> FloatArray:
    """A product with the Hessian of a sum, in the parameters."""
    return features.adjoint(sums.product(features.forward(v)))


def _diagonal(product: Product, size: int) -> FloatArray:
    """The diagonal of a matrix known by products: exactly if it is small, else from random signs."""
    if size <= EXACT_DIAGONAL:
        return np.array([product(unit)[j] for j, unit in enumerate(np.eye(size))])
    signs = np.where(generator(0).random((SIGNS, size)) < 0.5, -1.0, 1.0)
    return np.asarray(np.maximum(np.mean([z * product(z) for z in signs], axis=0), 0.0))

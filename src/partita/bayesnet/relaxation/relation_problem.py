"""Relations of hidden variables on distinct rows: the relaxed EM objective, its lower bounds and its constraints.

`joint_em` says what is minimised.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels import joint_em as kernels
from .hidden_terms import ChildTerm
from .relation_bound import DiagonalLessColumns, smallest_eigenpairs
from .relational import log_softmax, table_weights

#: Of the augmented Lagrangian: the first penalty, by what it grows where violations do not shrink, and where that ends.
FIRST_PENALTY, STIFFER, STIFFEST = 1.0, 4.0, 64.0
#: Share of the length of V below which a column counts as none.
VANISHED = 1e-8


class Relation:
    """One relation M and the terms that know it, on distinct rows of data with weights."""

    w: FloatArray
    alpha: float
    workers: Workers
    n: int
    total: float

    def __init__(
        self, own: IntArray | None, children: Sequence[ChildTerm], w: FloatArray, alpha: float, workers: Workers
    ) -> None:
        self.w, self.alpha, self.workers = w, alpha, workers
        self.n, self.total = len(w), float(w.sum())
        self.own: IntArray = np.zeros(self.n, dtype=np.int64) if own is None else own
        self.counts: FloatArray = np.zeros(0) if own is None else np.asarray(np.bincount(own, weights=w), dtype=np.float64)
        self.children = children
        discrete = [c.n_values > 0 for c in children]
        self.n_values: IntArray = np.array([c.n_values for c in children], dtype=np.int64)
        self.given: IntArray = np.array([c.given for c in children], dtype=np.int64).reshape(len(children), self.n)
        self.codes: IntArray = np.array(
            [c.child if d else self.own * 0 for c, d in zip(children, discrete, strict=True)], dtype=np.int64
        )
        self.codes = self.codes.reshape(self.given.shape)
        self.reals: NDArray[Any] = np.array([self.w * 0 if d else c.child for c, d in zip(children, discrete, strict=True)])
        self.reals = self.reals.reshape(self.given.shape)
        self.precisions: NDArray[Any] = np.array([1.0 / c.variance for c in children])
        configurations = self.given.max(axis=1, initial=-1) + 1
        #: Weight vectors: of the own term, then of each child.
        self.units: NDArray[Any] = np.cumsum([len(self.counts), *(configurations * np.maximum(1, self.n_values))])

    def size(self, rank: int) -> int:
        return int(self.n + self.units[-1]) * rank

    def split(self, x: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
        """Rows X and weight vectors."""
        return x[: self.n * rank].reshape(self.n, rank), x[self.n * rank :].reshape(-1, rank)

    def rows_of(self, V: FloatArray) -> FloatArray:
        """X for V: lengths by which L-BFGS is the same as if equal rows were apart, and of the order of the weights."""
        length = np.sqrt(self.w / self.total) / np.linalg.norm(V, axis=1)
        return np.asarray(V * length[:, None])

    def evaluate(self, X: FloatArray, weights: FloatArray, gX: FloatArray, gW: FloatArray) -> float:
        """The value; gradients are stored in the last two."""
        theta, rank = weights.ravel(), X.shape[1]
        ranges = Workers.ranges(self.n, 6.0 * self.n * rank * (self.units[-1] + 2))
        parts, B = len(ranges), len(self.counts)
        rows = kernels.Rows(self.w, np.empty(X.shape), np.empty(self.n))
        mass, value, run = np.empty((parts, rank)), 0.0, self.workers.run
        run(kernels.directions, [(X, lo, hi, rows, mass[c]) for c, (lo, hi) in enumerate(ranges)])
        scores = (np.empty((self.n, B)), np.empty(self.n), np.empty(B), np.zeros(rank))
        own = kernels.OwnTerm(self.own, self.counts, mass.sum(0), *scores)
        if B:
            sums = kernels.OwnSums(np.empty((parts, B)), np.empty((parts, B)), np.empty((parts, B, rank)))
            pieces = [kernels.OwnSums(*each) for each in zip(*sums, strict=True)]
            shares = zip(ranges, pieces, strict=True)
            run(kernels.own_scores, [(rows, weights[:B], lo, hi, own, piece) for (lo, hi), piece in shares])
            value = kernels.own_totals(sums, own)
        slopes = np.empty((parts, len(theta)))
        children = kernels.ChildTerms(
            self.codes, self.reals, self.given, self.n_values, self.units[:-1] * rank, self.precisions
        )
        tasks = [(rows, theta, own, children, lo, hi, gX, slopes[c]) for c, (lo, hi) in enumerate(ranges)]
        value += sum(run(kernels.terms, tasks))
        gW[:] = slopes.sum(0).reshape(gW.shape) + self.alpha * weights
        return float(value + 0.5 * self.alpha * (theta @ theta))

    def linear(self, V: FloatArray, weights: FloatArray) -> Linear:
        """A linear function of M nowhere above the objective, and equal to it at VV' if the weights are best there."""
        constant = 0.0
        columns: list[Any] = []
        q, s, B = np.zeros(self.n), V @ (self.w @ V), len(self.counts)
        if B:
            edge = kernels.DOMAIN * self.w
            d = np.minimum(0.0, s / edge - 1.0)
            U = V @ weights[:B].T
            scores = U + (np.log(self.w / np.maximum(s, edge)) - d + 0.5 * d * d)[:, None]
            p = self.counts * np.exp(log_softmax(scores.T)).T
            q = p.sum(1) * (1.0 - d) / np.maximum(s, edge)
            constant += float(np.sum(p * (scores - log_softmax(scores.T).T - U)) + q @ s)
            columns.append(np.where(np.arange(B) == self.own[:, None], self.w[:, None], 0.0) - p)
        for c, child in enumerate(self.children):
            block = weights[self.units[c] : self.units[c + 1]].reshape(-1, max(1, child.n_values), V.shape[1])
            scores = np.einsum("ir,iar->ia", V, block[child.given])
            if child.n_values:
                logs = log_softmax(scores)
                constant -= float(self.w @ np.sum(np.exp(logs) * logs, axis=1))
                residual = np.eye(child.n_values)[child.child] - np.exp(logs)
            else:
                residual = (child.child[:, None] - scores) / child.variance
                constant += float(self.w @ (residual * child.child[:, None] - 0.5 * child.variance * residual**2)[:, 0])
            columns.append(self.w[:, None] * residual)
        order, pattern = self._pattern
        R = pattern.copy()
        R.data = np.hstack(columns).ravel()[order] / np.sqrt(2.0 * self.alpha)
        return Linear(constant, R, q, self.w)

    @cached_property
    def _pattern(self) -> tuple[IntArray, csr_array]:
        """Where residuals are in a sparse matrix: each row of a term is in the columns of its configuration."""
        places, start = [], 0
        widths = [len(self.counts), *(max(1, child.n_values) for child in self.children)]
        for width, codes in zip(widths, [0 * self.own, *(child.given for child in self.children)], strict=True):
            places.append(start + codes[:, None] * width + np.arange(width))
            start += width * (int(codes.max()) + 1)
        columns = np.hstack(places)
        order = np.argsort(columns, axis=1) + columns.shape[1] * np.arange(self.n)[:, None]
        indices, indptr = columns.ravel()[order.ravel()], columns.shape[1] * np.arange(self.n + 1)
        return order.ravel(), csr_array((np.ones(columns.size), indices, indptr), shape=(self.n, start))

    def spectrum(self, alpha: float, count: int) -> tuple[FloatArray, FloatArray]:
        """The largest e for which M = 11' is not best along their vectors, if alpha were below them; and the vectors.

        They are half the eigenvalues of S - Diag(S1), where S is the sum of residuals times residuals (own terms
        included) with the hidden variable constant. M = 11' is best if none is above alpha.
        """
        _ = self._pattern  # which the copy then has
        relation = copy.copy(self)
        relation.alpha = alpha
        V, weights = relation.trivial()
        linear = replace(relation.linear(V, weights), q=np.zeros(self.n))
        values, vectors = linear.scaled(-linear.diagonal_of_product(V)).lowest(count)
        return -alpha * values, vectors / np.sqrt(self.w)[:, None]

    def trivial(self) -> tuple[FloatArray, FloatArray]:
        """V = 1 and the weights that are best there."""
        weights = np.zeros(self.units[-1])
        for n_values in set(self.n_values.tolist()):
            mine = [c for c, child in enumerate(self.children) if child.n_values == n_values]
            found = self._tables(mine, n_values) if n_values else [self._means(self.children[c]) for c in mine]
            for c, part in zip(mine, found, strict=True):
                weights[self.units[c] : self.units[c + 1]] = part
        return np.ones((self.n, 1)), weights[:, None]

    def _tables(self, mine: Sequence[int], n_values: int) -> list[FloatArray]:
        """Best weights of children that have as many values, all at once."""
        counts: list[Any] = []
        for child in (self.children[c] for c in mine):
            counts.append(np.bincount(child.given * n_values + child.child, weights=self.w))
            counts[-1].resize(n_values * (int(child.given.max()) + 1), refcheck=False)
        found = table_weights(np.concatenate(counts).reshape(-1, n_values), self.alpha).ravel()
        return np.split(found, np.cumsum([len(each) for each in counts])[:-1])

    def _means(self, child: ChildTerm) -> FloatArray:
        """Of a Gaussian child, for every configuration: shrunken means."""
        total, n = (np.bincount(child.given, weights=w) for w in (self.w * child.child, self.w))
        return np.asarray(total / (n + self.alpha * child.variance))


@dataclass(frozen=True)
class Linear:
    """``constant + <C, M>`` with ``C = -R R' - (q w' + w q') / 2``."""

    constant: float
    R: csr_array
    q: FloatArray
    w: FloatArray

    def scaled(self, nu: FloatArray) -> DiagonalLessColumns:
        """C + Diag(nu), rows and columns divided by the roots of the weights."""
        root = np.sqrt(self.w)
        R = self.R.copy()
        R.data = R.data / np.repeat(root, np.diff(R.indptr))
        return DiagonalLessColumns(nu / self.w, R, self.q / root, root)

    def diagonal_of_product(self, V: FloatArray) -> FloatArray:
        """The diagonal of C VV'."""
        product = self.R @ (self.R.T @ V) + 0.5 * (np.outer(self.q, self.w @ V) + np.outer(self.w, self.q @ V))
        return -np.asarray(np.sum(product * V, axis=1))

    def lower_bound(self, V: FloatArray, Z: FloatArray | None = None) -> tuple[float, FloatArray]:
        """A bound on ``constant + <C - Z, M>`` for all M, close to the value at VV' if that is best, and directions down.

        For any nu it is ``constant - sum(nu) + <C - Z + Diag(nu), M>``, and M has eigenvalues of at least zero and
        ones on its diagonal, so that the last is at least the total weight times the smallest eigenvalue (where that
        is negative).
        """
        nu = -self.diagonal_of_product(V)
        if Z is None:
            smallest, vectors = self.scaled(nu).smallest()
        else:
            root = np.sqrt(self.w)
            nu += np.sum((Z @ V) * V, axis=1)
            smallest, vectors = smallest_eigenpairs(self.scaled(nu).dense() - Z / np.outer(root, root))
        return self.constant - float(nu.sum()) + float(self.w.sum()) * smallest, vectors / np.sqrt(self.w)[:, None]


@dataclass(frozen=True)
class Constraint:
    """``constant + sum_h coefficient_h M_h >= 0``."""

    coefficients: dict[int, float]
    constant: float = 0.0

    def values(self, V: Sequence[FloatArray]) -> FloatArray:
        total = np.asarray(sum(coefficient * (V[h] @ V[h].T) for h, coefficient in self.coefficients.items()))
        return total + self.constant


class Problem:
    """Relations that hang together, on distinct rows, and the linear constraints on their entries.

    A constraint is ``constant + sum_h coefficient_h M_h >= 0``, for every entry. They are met by an augmented
    Lagrangian, with dense matrices of multipliers; without them nothing has the size of a matrix. They add
    ``rho/2 sum_ij sqrt(w_i w_j) max(0, z_ij - c_ij)^2``, where roots make the curvature in X the same for all pairs.
    """

    relations: Sequence[Relation]
    constraints: Sequence[Constraint]
    w: FloatArray
    total: float
    n: int
    rho: float

    def __init__(self, relations: Sequence[Relation], constraints: Sequence[Constraint]) -> None:
        self.relations, self.constraints = relations, constraints
        self.w, self.total, self.n = relations[0].w, relations[0].total, relations[0].n
        self.multipliers: list[FloatArray] = []
        self.rho = FIRST_PENALTY
        self.roots: NDArray[Any] = np.sqrt(self.w)

    def split(self, x: FloatArray, rank: int) -> list[tuple[FloatArray, FloatArray]]:
        """Rows X and weight vectors of every relation."""
        found, start = [], 0
        for relation in self.relations:
            stop = start + relation.size(rank)
            found.append(relation.split(x[start:stop], rank))
            start = stop
        return found

    def vectors(self, x: FloatArray, rank: int) -> list[FloatArray]:
        """V of every relation."""
        return [X / np.linalg.norm(X, axis=1, keepdims=True) for X, _ in self.split(x, rank)]

    def evaluate(self, x: FloatArray, rank: int) -> tuple[float, float, FloatArray]:
        """The objective; its value and gradient with the terms of constraints. All three are means over the rows."""
        gradient, objective = np.empty(len(x)), 0.0
        places = zip(self.relations, self.split(x, rank), self.split(gradient, rank), strict=True)
        for relation, (X, weights), (gX, gW) in places:
            objective += relation.evaluate(X, weights, gX, gW)
        if not self.multipliers:
            return objective / self.total, objective / self.total, gradient / self.total
        V = self.vectors(x, rank)
        extra, pulled = 0.0, [np.zeros_like(v) for v in V]
        slopes = np.empty((self.n, self.n))
        for constraint, z in zip(self.constraints, self.multipliers, strict=True):
            extra += kernels.penalty(constraint.values(V), z, self.roots, self.rho, slopes)
            for h, coefficient in constraint.coefficients.items():
                pulled[h] -= 2.0 * coefficient * (slopes @ V[h])
        for (X, _), v, pull, g in zip(self.split(x, rank), V, pulled, self.split(gradient, rank), strict=True):
            pull -= np.sum(pull * v, axis=1, keepdims=True) * v
            g[0][:] += pull / np.linalg.norm(X, axis=1, keepdims=True)
        return objective / self.total, (objective + extra) / self.total, gradient / self.total

    def lower_bound(self, x: FloatArray, rank: int) -> tuple[float, list[FloatArray]]:
        """A bound on the objective at all feasible relations, and directions for every relation in which it may fall."""
        V = self.vectors(x, rank)
        Z: list[Any] = [np.zeros((self.n, self.n)) if self.multipliers else None for _ in V]
        bound = 0.0
        for constraint, z in zip(self.constraints, self.multipliers, strict=False):
            scaled = self.rho * np.outer(self.roots, self.roots) * z
            bound -= constraint.constant * float(scaled.sum())
            for h, coefficient in constraint.coefficients.items():
                Z[h] += coefficient * scaled
        directions = []
        for relation, (_, weights), v, shift in zip(self.relations, self.split(x, rank), V, Z, strict=True):
            lower, direction = relation.linear(v, weights).lower_bound(v, shift)
            bound += lower
            directions.append(direction)
        return bound, directions

    def widened(self, x: FloatArray, rank: int, columns: Sequence[FloatArray]) -> tuple[FloatArray, int]:
        """Parameters with new columns of V, and their rank; columns that have vanished make room.

        Weights of the new ones are those of a stationary point, ``W = A'V / alpha`` with residuals A.
        """
        turned, kept = [], 1
        for relation, (_, weights), V in zip(self.relations, self.split(x, rank), self.vectors(x, rank), strict=True):
            values, Q = np.linalg.eigh((V.T * self.w) @ V)
            turned.append((relation, V @ Q[:, ::-1], weights @ Q[:, ::-1]))
            kept = max(kept, int(np.sum(values > VANISHED * self.total)))
        more, found = min(self.n - kept, columns[0].shape[1]), []
        for (relation, V, weights), extra in zip(turned, columns, strict=True):
            R = relation.linear(V, weights).R
            wider = np.hstack([weights[:, :kept], np.sqrt(2.0 / relation.alpha) * (R.T @ extra[:, :more])])
            found += [relation.rows_of(np.hstack([V[:, :kept], extra[:, :more]])).ravel(), wider.ravel()]
        return np.concatenate(found), kept + more

    def violation(self, x: FloatArray, rank: int) -> float:
        """How far below zero a constraint is at most."""
        V = self.vectors(x, rank)
        return max((-float(c.values(V).min()) for c in self.constraints), default=0.0)

    def raise_multipliers(self, x: FloatArray, rank: int, stiffer: bool) -> None:
        """The next multipliers, or the first."""
        if not self.multipliers:
            self.multipliers = [np.zeros((self.n, self.n)) for _ in self.constraints]
            return
        V = self.vectors(x, rank)
        factor = STIFFER if stiffer and self.rho < STIFFEST else 1.0
        found = zip(self.constraints, self.multipliers, strict=True)
        self.multipliers = [np.maximum(0.0, z - c.values(V)) / factor for c, z in found]
        self.rho *= factor

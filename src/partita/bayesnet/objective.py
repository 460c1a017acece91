"""Penalised likelihood of Bayesian networks of which some variables are unknown."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize as scipy_minimize

from ..core.arrays.weights import held_down
from ..core.contracts.capabilities import Capability
from ..core.results import FloatArray, IntArray
from ..core.validation import check_choice, check_real, check_weights
from ..graph import FactorGraph, FreeSums
from ..objectives.penalized import DotRay, PenalizedObjective, PenalizedPoint
from .kernels import network as kernels
from .kernels.network import NEVER as NEVER
from .structure.bayes_net import BayesNet
from .structure.unknown_sets import Choice, UnknownSets

#: What can be maximised: p(x), the largest p(x, y), or the largest p(y | x), where x is known and y is not.
KINDS = ("marginal", "joint", "conditional")
#: Most evaluations of one step of conditional EM.
INNER = 30
#: Least variance of a leaf, in units of its column's.
LEAST_VARIANCE = 1e-6


class NetworkLikelihood(PenalizedObjective):
    """``F = -sum_i w_i log p(row i) + alpha / 2 ||theta||^2``; what counts as p(row) is said by `kind`.

    Every distribution has a weight for each state: p = exp(w) / sum exp(w). A Gaussian leaf has a mean for each
    configuration of its parents, which is penalised too, and a variance, which is not. Parameters are weights, means, and
    logarithms of variances.

    Parameters
    ----------
    net : BayesNet
    states : int array of shape (n_rows, net.n)
        -1 where unknown.
    leaves : array of shape (n_rows, number of leaves), optional
        In standard units; NaN where unknown.
    kind : {"marginal", "joint", "conditional"}
        The probability of what is known; the largest of that and what is unknown together; the largest of what is unknown
        given what is known. In the last, families without unknown variables have no say, and are fitted to the data.
    tied_variance : bool
        One variance for a leaf, or one for each configuration of its parents.
    """

    net: BayesNet
    kind: str
    n_penalized: int
    n_examples: int

    costly_rays = True
    convex = False

    def __init__(
        self,
        net: BayesNet,
        states: IntArray,
        leaves: ArrayLike | None = None,
        *,
        weights: Any = None,
        alpha: float = 1.0,
        kind: str = "marginal",
        tied_variance: bool = True,
        n_jobs: int | None = None,
        **options: float,
    ) -> None:
        self.net, self.kind = net, check_choice("kind", kind, KINDS)
        self.alpha: float = check_real("alpha", alpha, minimum=0.0)
        self.weights: NDArray[Any] = check_weights("weights", weights, len(states))
        self.leaves: FloatArray = np.zeros((len(states), 0)) if leaves is None else np.asarray(leaves, dtype=np.float64)
        self.tied_variance = tied_variance
        rows = _checked_rows(net, states, self.leaves)
        if net.leaves:
            rows = np.column_stack([rows, np.arange(len(rows))])
        self.graph: FactorGraph = net.graph(len(rows), n_jobs)
        self.sets: UnknownSets = UnknownSets(self.graph, rows, self.weights, **options)
        self.n_means: int = sum(net.leaf_sizes)
        self.size: int = net.size + self.n_means + (len(net.leaves) if tied_variance else self.n_means)
        self.n_penalized, self.n_examples = net.size + self.n_means, len(states)
        self.penalty: FloatArray = np.where(np.arange(self.size) < self.n_penalized, self.alpha, 0.0)
        self.scale: float = float(held_down(self.weights).sum())
        self.capabilities: frozenset[Capability] = frozenset({Capability.SMOOTH, Capability.EM_STEP})
        self.complete: bool = self.sets.n_items == 0
        self.untouched: NDArray[np.bool_] = self.sets.touched() == 0.0 if kind == "conditional" else np.zeros(0, bool)

    def split(self, theta: FloatArray) -> tuple[FloatArray, list[FloatArray], list[FloatArray]]:
        """Weights, and for every leaf the means and the variances of configurations of its parents."""
        w, rest = theta[: self.net.size], theta[self.net.size :]
        edges = np.cumsum(np.array(self.net.leaf_sizes, dtype=np.int64))[:-1]
        means = np.split(rest[: self.n_means], edges) if self.net.leaves else []
        variances = np.maximum(np.exp(rest[self.n_means :]), LEAST_VARIANCE)
        if self.tied_variance:
            return w, means, [np.full(n, s) for n, s in zip(self.net.leaf_sizes, variances, strict=True)]
        return w, means, np.split(variances, edges)

    def potentials(self, theta: FloatArray) -> FloatArray:
        """Of the graph: logarithms of distributions, and log-densities of leaves in every row."""
        _, means, variances = self.split(theta)
        densities = []
        for x, mean, variance in zip(self.leaves.T, means, variances, strict=False):
            table = -0.5 * ((x[:, None] - mean) ** 2 / variance + np.log(2.0 * np.pi * variance))
            densities.append(np.where(np.isnan(x)[:, None], 0.0, table).ravel())
        return np.concatenate([self.net.log_distributions(theta[: self.net.size]), *densities])

    def at(self, parameters: FloatArray) -> NetworkPoint:
        """The objective seen from `parameters`."""
        return NetworkPoint(self, np.ascontiguousarray(parameters, dtype=np.float64))

    def penalty_value(self, theta: FloatArray) -> float:
        """Of weights and means."""
        part = theta[: self.n_penalized]
        return 0.5 * self.alpha * float((part * part).sum())

    def conditional_value(self, theta: FloatArray, sums: FreeSums, choice: Choice) -> float:
        """The objective of kind "conditional" if `choice` is what the unknown variables are."""
        known = float(self.sets.counts[self.untouched] @ sums.u[self.untouched])
        return self.penalty_value(theta) - known + self.sets.surplus(sums, choice)

    def refit(self, counts: FloatArray, start: FloatArray) -> FloatArray:
        """The parameters under which entries that are picked as often as `counts` say are most probable."""
        theta, size = start.copy(), self.net.size
        kernels.fit_distributions(counts[:size], self.net.starts, self.alpha, theta[:size])
        if self.net.leaves:
            _, means, variances = self.split(theta)
            found = [self._refit_leaf(*part) for part in zip(self._moments(counts), means, variances, strict=True)]
            theta[size : size + self.n_means] = np.concatenate([mean for mean, _ in found])
            kept = [variance[:1] if self.tied_variance else variance for _, variance in found]
            theta[size + self.n_means :] = np.log(np.concatenate(kept))
        return theta

    def _moments(self, counts: FloatArray) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """For every leaf: the weight, the sum and the sum of squares of what it has with each configuration."""
        found, lo = [], self.net.size
        for x, n in zip(self.leaves.T, self.net.leaf_sizes, strict=True):
            shares = np.where(np.isnan(x)[:, None], 0.0, counts[lo : lo + len(x) * n].reshape(len(x), n))
            known = np.where(np.isnan(x), 0.0, x)
            found.append((shares.sum(0), known @ shares, known**2 @ shares))
            lo += len(x) * n
        return found

    def _refit_leaf(self, moments: Any, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means given variances, then variances given means, a few times: every step lowers the objective."""
        n, first, second = moments
        for _ in range(1 if self.alpha == 0.0 else 5):
            with np.errstate(invalid="ignore"):
                mean = np.where(n + self.alpha > 0.0, first / (n + self.alpha * variance), 0.0)
            spread = np.maximum(second - 2.0 * mean * first + n * mean**2, 0.0)
            if self.tied_variance:
                variance = np.full(len(n), spread.sum() / n.sum() if n.sum() > 0.0 else 1.0)
            else:
                variance = np.where(n > 0.0, spread / np.maximum(n, 1e-300), 1.0)
            variance = np.maximum(variance, LEAST_VARIANCE)
        return mean, variance

    def slopes(self, counts: FloatArray, u: FloatArray, theta: FloatArray) -> FloatArray:
        """The gradient in the parameters of ``-counts . u``."""
        size, starts = self.net.size, self.net.starts
        own = counts[:size]
        totals = np.repeat(np.add.reduceat(own, starts[:-1]), np.diff(starts))
        out = [totals * np.exp(u[:size]) - own]
        if self.net.leaves:
            _, means, variances = self.split(theta)
            of_means, of_variances = [], []
            for (n, first, second), mean, variance in zip(self._moments(counts), means, variances, strict=True):
                of_means.append((n * mean - first) / variance)
                slope = 0.5 * (n - (second - 2.0 * mean * first + n * mean**2) / variance)
                slope = slope.sum(keepdims=True) if self.tied_variance else slope
                least = variance[: len(slope)] <= LEAST_VARIANCE * (1.0 + 1e-9)
                of_variances.append(np.where(least, np.minimum(slope, 0.0), slope))  # it goes no lower
            out += of_means + of_variances
        return np.concatenate(out)


def _checked_rows(net: BayesNet, states: Any, leaves: FloatArray) -> IntArray:
    """Rows of states, within range: compiled loops look up tables by them."""
    rows = np.asarray(states)
    if rows.ndim != 2 or rows.shape[1] != net.n or rows.dtype.kind not in "iu" or len(rows) == 0:
        raise ValueError(f"states must be integers, rows of {net.n} variables; got {rows.shape} of {rows.dtype}")
    if leaves.shape != (len(rows), len(net.leaves)) or np.isinf(leaves).any():
        raise ValueError(f"leaves must be finite or NaN, of shape {(len(rows), len(net.leaves))}; got {leaves.shape}")
    bad = (rows < -1) | (rows >= net.cardinalities)
    if bad.any():
        row, v = np.argwhere(bad)[0].tolist()
        last = int(net.cardinalities[v]) - 1
        raise ValueError(
            f"states has {rows[row, v]} for variable {v} in row {row}; its states are 0 to {last} (-1 for unknown)"
        )
    return rows.astype(np.int64)


class NetworkPoint(PenalizedPoint):
    """The likelihood of a network at one parameter vector."""

    parameters: FloatArray
    chosen: FloatArray
    choice: Choice

    objective: NetworkLikelihood

    def __init__(self, objective: NetworkLikelihood, theta: FloatArray) -> None:
        self.objective, self.parameters = objective, theta
        self.u: FloatArray = objective.potentials(theta)
        o = objective
        if o.kind != "joint":
            self.sums: FreeSums = o.sets.at(self.u)
        if o.kind != "marginal":
            best, self.chosen, self.choice = o.sets.best(self.u)
        if o.kind == "conditional":
            self.value = o.conditional_value(theta, self.sums, self.choice)
        else:
            unknown = best if o.kind == "joint" else self.sums.value
            self.value: float = o.penalty_value(theta) - float(o.sets.counts @ self.u) - unknown

    @property
    def counts(self) -> FloatArray:
        """The E-step: how often each entry is picked, known, and as expected (marginal EM) or chosen (joint EM)."""
        o = self.objective
        return np.asarray(o.sets.counts + (self.sums.gradient if o.kind == "marginal" else self.chosen))

    def _conditional(self, expected: FloatArray) -> FloatArray:
        """Entries that are chosen, less those expected, and those of families without a say."""
        return np.asarray(np.where(self.objective.untouched, self.objective.sets.counts, self.chosen - expected))

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        counts = self._conditional(self.sums.gradient) if o.kind == "conditional" else self.counts
        return self._slopes(counts, self.u, self.parameters)

    def _slopes(self, counts: FloatArray, u: FloatArray, theta: FloatArray) -> FloatArray:
        o = self.objective
        out = o.slopes(counts, u, theta)
        out[: o.n_penalized] += o.alpha * theta[: o.n_penalized]
        return out

    def em_step(self) -> FloatArray:
        """The M-step: the parameters that fit best what is expected, or chosen, of what is unknown."""
        o = self.objective
        if o.kind != "conditional":
            return o.refit(self.counts, self.parameters)

        def function(theta: FloatArray) -> tuple[float, FloatArray]:
            u = o.potentials(theta)
            sums = o.sets.at(u)
            slopes = self._slopes(self._conditional(sums.gradient), u, theta)
            return o.conditional_value(theta, sums, self.choice), slopes

        found = scipy_minimize(function, self.parameters, jac=True, method="L-BFGS-B", options={"maxfun": INNER})
        return np.asarray(found.x)

    def along(self, direction: FloatArray) -> DotRay[Self]:
        return DotRay(self, direction)

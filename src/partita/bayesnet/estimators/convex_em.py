"""The convex relaxation of joint EM for the hidden variables of a Bayesian network."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.contracts.progress import Callback
from ...core.errors import ConvergenceWarning
from ...core.results import FloatArray, IntArray, Status
from ...core.types import RandomState
from ...core.validation import check_choice, check_real
from ...core.warn import warn
from ..data.network import NetworkLayout
from ..relaxation.joint_em import ChildTerm, HiddenTerm, Relaxation, critical_alpha, relax
from ..relaxation.relational import check_codes, table_loss, table_weights
from ..relaxation.rounding import METHODS as ROUNDINGS, round_labels

__all__ = ["ROUNDINGS", "ConvexEM", "solve_relaxation"]

#: Least alpha that is chosen, in units of the critical one.
FLOOR = 0.05
#: Relative gap, or violation, from which on a relaxation that has not converged deserves a warning.
FAR = 1e-3
#: Relative rounding error of a sum that is left to a bound.
ROUNDING = 1e-13


@dataclass(frozen=True, repr=False)
class ConvexEM:
    """A solution of the relaxation: which rows have the same hidden state, without saying which state that is.

    Attributes
    ----------
    objective, lower, gap : float
        The relaxed objective, a certified bound below joint (Viterbi) EM with this `alpha`, whatever labels and weights,
        and their relative difference: ``lower <= joint_objective(labels)`` for all labels. The `objective_` of a fitted
        network is another matter unless it has the same alpha (as ``BayesianNetwork(method="viterbi", alpha=found.alpha)``
        has): the chosen alpha is not that of the network. Gaussian variables are in standard units, with a variance of one
        given any parents: a fit that learns variances may go lower.
    violation : float
        By how much an entry of a relation breaks a constraint. The objective is above the optimum only if it is zero;
        `lower` is a bound in any case.
    alpha, alpha_crit : float
        The penalty, and that from which on the solution is `trivial`: all rows alike.
    trivial : bool
    names : tuple
        Hidden variables.
    relaxation : Relaxation
        The solution in all detail.
    """

    relaxation: Relaxation
    names: tuple[Hashable, ...]
    counts: tuple[int, ...]
    constant: float = field(repr=False)
    layout: NetworkLayout = field(repr=False)
    states: IntArray = field(repr=False)
    values: FloatArray = field(repr=False)

    def __repr__(self) -> str:
        trivial = ", trivial" if self.trivial else ""
        bound = f"lower={self.lower:.6g} at this alpha, gap={self.gap:.1e}"
        return f"ConvexEM(alpha={self.alpha:.6g}, {bound}, names={self.names}{trivial})"

    @property
    def objective(self) -> float:
        """The relaxed objective, families without hidden variables included."""
        return self.relaxation.objective + self.constant

    @property
    def lower(self) -> float:
        """A certified lower bound on joint EM with this `alpha`, see `joint_objective`."""
        lower = self.relaxation.lower
        return float(lower + self.constant - ROUNDING * (abs(lower) + abs(self.constant)))

    @property
    def gap(self) -> float:
        """``(objective - lower) / |objective|``."""
        return (self.objective - self.lower) / max(abs(self.objective), 1e-300)

    @property
    def violation(self) -> float:
        """The largest amount by which an entry breaks a constraint."""
        return self.relaxation.violation

    @property
    def alpha(self) -> float:
        """The penalty."""
        return self.relaxation.alpha

    @property
    def alpha_crit(self) -> float:
        """The penalty from which on the solution is trivial."""
        return self.relaxation.alpha_crit

    @property
    def trivial(self) -> bool:
        """Whether all rows are alike."""
        return self.relaxation.trivial

    @property
    def status(self) -> Status:
        """Why the solver stopped."""
        return self.relaxation.status

    @property
    def M(self) -> FloatArray:
        """The relation of the first hidden variable, (n_rows, n_rows)."""
        return self.relaxation.M

    def relation(self, name: Hashable) -> FloatArray:
        """The relation of a hidden variable, (n_rows, n_rows)."""
        return self.relaxation.relation(self._place(name))

    def labels(self, name: Hashable | None = None, rounding: str = "kmeans", random_state: RandomState = 0) -> IntArray:
        """A state for every row, of one hidden variable (default the first).

        Parameters
        ----------
        rounding : {"kmeans", "random", "simplex"}
            Clusters, the best of random roundings, or the nearest corners of a simplex.
        """
        check_choice("rounding", rounding, ROUNDINGS)
        place = 0 if name is None else self._place(name)
        if self.counts[place] == 1:
            return np.zeros(len(self.relaxation.vectors[place]), np.int64)
        return round_labels(self.relaxation.vectors[place], self.counts[place], rounding, random_state)

    def joint_objective(self, labels: Mapping[Any, ArrayLike] | ArrayLike | None = None) -> float:
        """The objective of joint EM, at `alpha` and the best weights, for states of hidden variables: never below `lower`.

        Parameters
        ----------
        labels : dict of int arrays, or int array, optional
            The number of the state of every row, by hidden variable, or of the only one. Default: those of `labels`.
        """
        if labels is None:
            labels = {name: self.labels(name) for name in self.names}
        elif not isinstance(labels, Mapping):
            if len(self.names) > 1:
                raise ValueError(f"labels must be a dict with states of {', '.join(map(repr, self.names))}")
            labels = {self.names[0]: labels}
        if set(labels) != set(self.names):
            raise ValueError(f"labels must have states of {', '.join(map(repr, self.names))}, got {list(labels)}")
        filled = self.states.copy()
        for name, count in zip(self.names, self.counts, strict=True):
            filled[:, self.layout.number[name]] = check_codes(f"labels of {name!r}", labels[name], count, len(filled))
        net, alpha = self.layout.net, self.alpha
        families = range(net.n + len(net.leaves))
        total = sum(_separate_loss(self.layout, filled, self.values, family, alpha) for family in families)
        return float(total + _density_constant(self.layout, filled))

    def _place(self, name: Hashable) -> int:
        if name not in self.names:
            raise ValueError(f"{name!r} is not hidden; hidden variables are {', '.join(map(repr, self.names))}")
        return self.names.index(name)


def solve_relaxation(
    layout: NetworkLayout,
    states: IntArray,
    values: FloatArray,
    alpha: float | None,
    *,
    units: str = "absolute",
    callbacks: list[Callback] | None = None,
    n_jobs: int | None = None,
) -> ConvexEM:
    """The relaxation for variables that are unknown in all rows. All others must be known in all."""
    hidden, terms, rest = network_terms(layout, states, values)
    counts = [int(layout.net.cardinalities[v]) for v in hidden]
    if alpha is None:
        spectra = [critical_alpha(terms, len(states), h)[1] for h in range(len(hidden))]
        alpha = min(usual_alpha(e, count) for e, count in zip(spectra, counts, strict=True))
    elif units == "critical":
        alpha = alpha * max(critical_alpha(terms, len(states), h)[0] for h in range(len(hidden)))
    check_real("alpha", alpha, minimum=0.0, strict=True)
    found = relax(terms, len(states), alpha, callbacks=callbacks or [], n_jobs=n_jobs)
    constant = sum(_separate_loss(layout, states, values, family, alpha) for family in rest)
    constant += _density_constant(layout, states)
    names = tuple(layout.discrete[v] for v in hidden)
    result = ConvexEM(found, names, tuple(counts), float(constant), layout, states, values)
    _warn_if_useless(result)
    return result


def _density_constant(layout: NetworkLayout, states: IntArray) -> float:
    """What Gaussians of variance one have beside their squares."""
    return float(0.5 * np.log(2.0 * np.pi) * len(layout.gaussian) * len(states))


def _warn_if_useless(found: ConvexEM) -> None:
    """Warn of a trivial solution, and of one that is far from where it should be."""
    if found.trivial:
        warn(
            f"the relaxation is trivial: all rows are alike, because alpha = {found.alpha:.4g} is not below alpha_crit = "
            f"{found.alpha_crit:.4g}; use a smaller alpha",
        )
    elif not found.status.ok and max(found.gap, found.violation) > FAR:
        warn(
            f"the relaxation {found.status}; its relative gap is {found.gap:.1e}, its violation {found.violation:.1e}, and "
            "`lower` is a bound all the same",
            ConvergenceWarning,
        )


def usual_alpha(eigenvalues: FloatArray, count: int) -> float:
    """Between where the relaxation begins to tell `count` groups apart and one more; smaller ones relax too much."""
    e = np.maximum(np.append(eigenvalues, np.zeros(count)), 0.0)
    return float(max(np.sqrt(e[max(count - 2, 0)] * e[count - 1]), FLOOR * e[0], 1e-8))


def network_terms(
    layout: NetworkLayout, states: IntArray, values: FloatArray
) -> tuple[list[int], list[HiddenTerm | ChildTerm], list[int]]:
    """Hidden variables, their terms, and families without any: numbers of variables, then of leaves."""
    net = layout.net
    absent = (states < 0).all(axis=0)
    hidden = np.flatnonzero(absent).tolist()
    if not hidden:
        raise ValueError("the relaxation needs a variable that is hidden in all rows; there is none")
    partly = np.flatnonzero(~absent & (states < 0).any(axis=0))
    lacking = [layout.discrete[v] for v in partly] + [
        name for name, column in zip(layout.gaussian, values.T, strict=True) if np.isnan(column).any()
    ]
    if lacking:
        raise ValueError(
            f"the relaxation needs variables that are hidden in all rows or known in all; {lacking[0]!r} is known in some: "
            "use method='em'"
        )
    place = {v: h for h, v in enumerate(hidden)}
    terms: list[HiddenTerm | ChildTerm] = []
    rest = []
    for j, of in enumerate([*net.parents, *net.leaves]):
        above = tuple(place[parent] for parent in of if parent in place)
        given = net.codes(states, [parent for parent in of if parent not in place])
        if j in place:
            if above:
                names = layout.discrete
                raise ValueError(
                    f"hidden variable {names[j]!r} has the hidden parent {names[hidden[above[0]]]!r}: the relaxation is not "
                    "convex there; use method='em'"
                )
            terms.append(HiddenTerm(hidden=place[j], given=given))
        elif not above:
            rest.append(j)
        elif j < net.n:
            terms.append(ChildTerm(parents=above, given=given, child=states[:, j], n_values=int(net.cardinalities[j])))
        else:
            terms.append(ChildTerm(parents=above, given=given, child=values[:, j - net.n]))
    return hidden, terms, rest


def _separate_loss(layout: NetworkLayout, states: IntArray, values: FloatArray, family: int, alpha: float) -> float:
    """The least loss of a family without hidden variables, penalty included, constants of Gaussians not."""
    net = layout.net
    of = [*net.parents, *net.leaves][family]
    given, n = net.codes(states, of), net.configurations(of)
    if family < net.n:
        k = int(net.cardinalities[family])
        counts = np.bincount(given * k + states[:, family], minlength=n * k).reshape(n, k).astype(np.float64)
        return table_loss(counts, table_weights(counts, alpha), alpha)
    x = values[:, family - net.n]
    means = np.bincount(given, weights=x, minlength=n) / (np.bincount(given, minlength=n) + alpha)
    return float(0.5 * np.sum((x - means[given]) ** 2) + 0.5 * alpha * np.sum(means**2))

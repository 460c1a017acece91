"""Loopy belief propagation on factor graphs: sum-product, tree-reweighted sum-product with its bounds, and max-product."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_count
from ...core.warn import report, warn
from ..structure.factor_graph import FactorGraph
from ..structure.trivial_bounds import trivial_bounds
from .counting_numbers import N_TREES, factor_numbers, has_concave_entropy, heaviest_set, tree_numbers
from .layout import Layout, given, layout
from .mean_field import ascend
from .message_passing import FreeEnergy, MessageRun, Sweeps

#: Sweeps of max-product after which messages are decoded: those that go round in circles pass by good configurations. Even,
#: because sweeps take turns in their direction.
DECODED = 2


class SweepOptions(TypedDict, total=False):
    """Options of `bethe` that `tree_reweighted` has too; their defaults are those of `Sweeps`."""

    damping: float | None
    max_iter: int
    tol: float
    schedule: str


def bethe(
    graph: FactorGraph,
    potentials: FloatArray,
    *,
    rho: ArrayLike | None = None,
    damping: float | None = None,
    max_iter: int = 1000,
    tol: float = 1e-9,
    schedule: str = "sequential",
    messages: FloatArray | None = None,
) -> Result:
    """Loopy belief propagation (sum-product): exact without cycles, else the Bethe approximation of log Z and marginals.

    Parameters
    ----------
    graph, potentials
        A factor graph and a matrix of potentials, one set per row.
    rho : number or array, optional
        Counting numbers of factors. Default: all are one, and factors are first added to others that have all of their
        variables (which changes nothing on trees and makes the approximation better elsewhere).
        Numbers that do not make the entropy provably concave (`is_concave`) are answered with a warning.
    damping : float or None
        Share of the old message that is kept, below one. None begins without (with 0.1 where `rho` is not one) and raises it
        when changes do not shrink.
    max_iter, tol
        Sweeps, and the change of messages (in logarithms) below which they end.
    schedule : {"sequential", "parallel", "residual"}
        One table after another, all at once, or the largest change first (residual belief propagation).
    messages : array, optional
        Where to begin: `Result.messages` of a call on the same graph with the same kind of `rho`.

    Notes
    -----
    With n_i = theta_i + sum_b rho_b m_b - m_a, messages are m_a(x_i) = log sum exp(theta_a / rho_a + sum_{j != i} n_j).
    ``log_z`` is sum_i c_i + sum_a rho_a (c_a - sum_{i in a} c_i) with c the logarithms of the sums of beliefs, which equals
    <theta, b> + H_rho(b) where messages have converged.
    """
    potentials, inner = given(graph, potentials), layout(graph, merge=rho is None)
    if rho is None:
        numbers = np.ones(inner.n_tables)
    else:
        numbers = factor_numbers(graph, inner, rho)
        if not (numbers == 1.0).all() and not has_concave_entropy(inner, numbers):
            warn(
                "the entropy with these counting numbers rho is not provably concave: there may be several answers, and "
                "messages need not converge; lower rho, or use tree_reweighted",
            )
    run = MessageRun(graph, inner, potentials, numbers, Sweeps(damping, max_iter, tol, schedule), messages)
    value, _, marginals, beliefs = run.free_energy()
    exact = inner.acyclic and run.status.ok and bool((numbers == 1.0).all())
    lower, upper = (value, value) if exact else trivial_bounds(graph, potentials)
    result = Result(value, marginals, run.status, exact, engine="bp", messages=run.messages, **run.summary())
    return result.within(np.maximum(lower, run.likeliest_scores(beliefs.states)) if not exact else lower, upper)


def tree_reweighted(
    graph: FactorGraph,
    potentials: FloatArray,
    *,
    messages: FloatArray | None = None,
    n_trees: int = N_TREES,
    random_state: Any = 0,
    tree_steps: int = 0,
    joint: bool = False,
    lower: bool = True,
    certify: bool = False,
    **sweeps: Unpack[SweepOptions],
) -> Result:
    """Tree-reweighted belief propagation: a concave problem whose value is above log Z, with a certificate.

    Parameters
    ----------
    n_trees, random_state
        Random trees from which counting numbers are counted, where they are not computed: see `tree_probabilities`.
    tree_steps : int
        Steps that shift counting numbers towards the trees of the largest mutual information, which lowers the bound
        (Frank-Wolfe; each costs as much as the first answer). They depend on the potentials, so that marginals remain the
        gradient of ``log_z`` with the numbers held fixed only.
    joint : bool
        Replace each table of more than two variables by a variable of its joint states, tied to its members by pairs. Trees
        may then cut ties, not whole tables. Looser as it is and slower, but often far tighter with `tree_steps` (UAI's
        Promedus networks; not the Pedigrees).
    lower : bool
        Whether to look for a lower bound too, by mean field that begins at the beliefs and at what max-product decodes.
    certify : bool
        Whether `Result.gap` is to be how far the answer is from the largest reweighted free energy, not from log Z.
    messages, damping, max_iter, tol, schedule
        As of `bethe`, with the same defaults.

    Notes
    -----
    ``upper`` holds whether or not messages have converged. For any messages, with beliefs b_i and b_a that sum to one,

    - exp theta(x) = e^C prod_i b_i prod_a (b_a / prod_{i in a} b_i)^rho_a, where C is ``log_z`` (insert the definitions);
    - rho is a mean over acyclic sets T of tables, so the product is a geometric mean of f_T = prod_i b_i
      prod_{a in T} (b_a / prod b_i), and by Hoelder's inequality its sum over x is at most that mean of the sums of f_T;
    - a leaf a of T hangs on the rest by one variable i: summed over its others it leaves sum b_a / b_i(x_i) <= r_a, the
      largest such ratio over i in a and x_i; leaf after leaf the sum of f_T is at most prod_{a in T} r_a (all r_a >= 1);
    - hence log Z <= C + sum_a rho_a log r_a. At a fixed point r_a = 1. What rounding may do is added.

    This needs no pairs: tables of any size are treated alike.
    """
    passed = _sweeps(sweeps)
    potentials, inner = given(graph, potentials), layout(graph, merge=True)
    if joint and not inner.pairwise:
        trees: dict[str, Any] = {"n_trees": n_trees, "random_state": random_state, "tree_steps": tree_steps}
        return _joint(graph, inner, potentials, lower, {"certify": certify, "messages": messages, **trees, **sweeps})
    rho = tree_numbers(inner, n_trees, random_state)
    run = MessageRun(graph, inner, potentials, rho, passed, messages)
    run, found = _tightened(run, potentials, check_count("tree_steps", tree_steps) if not inner.acyclic else 0, passed)
    value, slack, marginals, beliefs = found
    exact = inner.acyclic and run.status.ok
    result = Result(
        value,
        marginals,
        run.status,
        exact,
        value if exact else None,
        value if exact else value + slack,
        engine="trw",
        certificate=value + slack - run.consistent_free_energy(beliefs) if certify else None,
        messages=run.messages,
        **run.summary(),
    )
    if exact:
        return result
    low, high = trivial_bounds(graph, potentials)
    return result.within(np.maximum(low, _lower(graph, inner, potentials, beliefs.states)) if lower else low, high)


def _sweeps(options: SweepOptions) -> Sweeps:
    unknown = sorted(options.keys() - set(Sweeps._fields))
    if unknown:
        raise TypeError(f"tree_reweighted() got an unexpected keyword argument {unknown[0]!r}")
    return Sweeps(**options)


def _tightened(run: MessageRun, potentials: FloatArray, steps: int, sweeps: Sweeps) -> tuple[MessageRun, FreeEnergy]:
    """Frank-Wolfe steps of the counting numbers, towards the tree of the largest mutual information: the lowest bound."""
    last, answer = run, run.free_energy()
    beliefs, rho = answer.beliefs, run.rho
    for step in range(steps):
        share = 2.0 / (step + 6.0)
        rho = (1.0 - share) * rho + share * heaviest_set(run.inner, last.mutual_information(beliefs.tables).mean(0))
        last = MessageRun(run.graph, run.inner, potentials, rho, sweeps, last.messages)
        new = last.free_energy()
        beliefs = new.beliefs
        if (new.value + new.slack).sum() < (answer.value + answer.slack).sum():
            run, answer = last, new
    return run, answer


def _lower(graph: FactorGraph, inner: Layout, potentials: FloatArray, states: FloatArray) -> FloatArray:
    """The better bound of mean field, of each example, from beliefs about states and from what max-product decodes."""
    sweeps = Sweeps(max_iter=100, tol=1e-4)
    run = MessageRun(graph, inner, potentials, np.ones(inner.n_tables), sweeps, max_product=True)
    best = np.zeros_like(states)
    np.put_along_axis(best, inner.var_offsets[:-1] + run.decode(), 1.0, axis=1)
    first, second = (
        ascend(graph, inner, run.states, run.tables, run.constant, start, max_iter=200, tol=1e-5) for start in (states, best)
    )
    return np.maximum(first.value, second.value)


def _joint(graph: FactorGraph, inner: Layout, potentials: FloatArray, lower: bool, options: dict[str, Any]) -> Result:
    """`tree_reweighted` on the graph of pairs that `pairs_of` makes, told in terms of the given one."""
    if "joint" not in inner.cache:
        inner.cache["joint"] = pairs_of(graph, inner)
    pairs, template, entries = inner.cache["joint"]
    states, tables = inner.scores(potentials)
    constant = inner.constant(potentials)
    flat = np.tile(template, (len(potentials), 1))
    flat[:, : inner.n_states], flat[:, entries] = states, tables
    result = tree_reweighted(pairs, flat, lower=False, **options)
    beliefs = result.marginals
    b_states = np.ascontiguousarray(beliefs[:, : inner.n_states])
    marginals = inner.marginals(b_states, np.ascontiguousarray(beliefs[:, entries]))
    value, low, high, own = (
        np.asarray(part) + constant.ravel() for part in (result.log_z, result.lower, result.upper, result.free_energy)
    )
    result = replace(result, log_z=value, lower=low, upper=high, free_energy=own, marginals=marginals)
    if result.exact:
        return result
    bound, high = trivial_bounds(graph, potentials)
    if lower:
        bound = np.maximum(bound, _lower(graph, inner, potentials, b_states))
    return result.within(bound, high)


def pairs_of(graph: FactorGraph, inner: Layout) -> tuple[FactorGraph, FloatArray, IntArray]:
    """A graph of pairs with a variable for each table of more than two, its potentials where they do not depend on those of
    the given graph (ties: 0 or -inf), and where the entries of tables are among them; scores of states come first."""
    counts = graph.cardinalities.tolist()
    cardinalities, examples = list(counts), graph.examples.tolist()
    factors: list[tuple[int, ...]] = [(v,) for v in range(graph.n_variables)]
    parts: list[FloatArray] = [np.zeros(inner.n_states)]
    entries: list[IntArray] = []
    at = inner.n_states
    for scope in inner.scopes:
        shape = tuple(counts[v] for v in scope)
        size = int(np.prod(shape))
        entries.append(np.arange(at, at + size))
        parts.append(np.zeros(size))
        at += size
        if len(scope) == 2:
            factors.append(scope)
            continue
        new = len(cardinalities)
        cardinalities.append(size)
        examples.append(examples[scope[0]])
        factors.append((new,))
        for states, v in zip(np.indices(shape).reshape(len(scope), -1), scope, strict=True):
            tie = np.full((size, counts[v]), -np.inf)
            tie[np.arange(size), states] = 0.0
            factors.append((new, v))
            parts.append(tie.ravel())
            at += tie.size
    order = np.argsort(examples, kind="stable")  # examples stay together
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    pairs = FactorGraph(
        np.array(cardinalities)[order],
        [tuple(number[list(scope)].tolist()) for scope in factors],
        examples=np.array(examples)[order],
        n_jobs=graph.n_jobs,
    )
    return pairs, np.concatenate(parts), np.concatenate(entries)


def max_product(
    graph: FactorGraph,
    potentials: Any,
    *,
    damping: float | None = None,
    max_iter: int = 200,
    tol: float = 1e-9,
    schedule: str = "sequential",
) -> tuple[IntArray, FloatArray]:
    """Max-product: a configuration and its score, of each example. The best one without cycles, else the best one met.

    Every other sweep, messages are decoded one variable after another, and single variables are changed while that helps.
    Where all that is forbidden, a configuration that is not is looked for; a score of -inf says that none was found.
    Options are those of `bethe`, but a `damping` of None is none in the first half of the sweeps and then a half.
    """
    single = isinstance(potentials, list | tuple) or np.ndim(potentials) == 1
    flat = given(graph, potentials)
    inner = layout(graph, merge=True)
    ones, start = np.ones(inner.n_tables), None
    y, best = np.zeros((len(flat), graph.n_variables), np.int64), np.full((len(flat), graph.n_examples), -np.inf)
    for first in range(0, max(1, check_count("max_iter", max_iter)), DECODED):
        used = damping if damping is not None else 0.0 if 2 * first < max_iter else 0.5
        sweeps = Sweeps(used, min(DECODED, max_iter - first), tol, schedule)
        run = MessageRun(graph, inner, flat, ones, sweeps, start, max_product=True)
        new = run.decode()
        value = run.scores(new)
        y = np.where((value > best)[:, graph.examples], new, y)
        best, start = np.maximum(best, value), run.messages
        if run.status.ok:
            break
    report("max-product", run.status)
    if np.isneginf(best).any():
        run.mend(y, np.isneginf(best))
    return (y[0] if single else y), graph.score(flat, y)

"""Messages between variables and tables: belief propagation, tree-reweighted bounds, max-product."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.parallel import OPERATIONS_PER_CHUNK, Workers
from ..core.results import FloatArray, IntArray, Result, Status
from ..core.stopped_short import report
from ..core.validation import check_choice, check_count, check_real
from ..kernels import belief_propagation as kernels
from ..kernels import binary_messages as binary
from ..structures.factor_graph import FactorGraph
from ..structures.scopes import ranges
from .counting_numbers import N_TREES, _concave, factor_numbers, heaviest_set, tree_numbers
from .layout import Layout, layout
from .mean_field import ascend, configuration

SCHEDULES = ("sequential", "parallel", "residual")
#: Sweeps of max-product after which messages are decoded: those that go round in circles pass by good configurations. Even,
#: because sweeps take turns in their direction.
DECODED = 2
#: Earlier messages that reweighted ones are mixed with.
MIXED = 5


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
    """Belief propagation: exact without cycles, else the Bethe approximation of log Z and marginals.

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
        One table after another, at once, or the largest change first.
    messages : array, optional
        Where to begin: `Result.messages` of a call on the same graph with the same kind of `rho`.

    Notes
    -----
    With n_i = theta_i + sum_b rho_b m_b - m_a, messages are m_a(x_i) = log sum exp(theta_a / rho_a + sum_{j != i} n_j).
    ``log_z`` is sum_i c_i + sum_a rho_a (c_a - sum_{i in a} c_i) with c the logarithms of the sums of beliefs, which equals
    <theta, b> + H_rho(b) where messages have converged.
    """
    inner = layout(graph, merge=rho is None)
    if rho is None:
        numbers = np.ones(inner.n_tables)
    else:
        numbers = factor_numbers(graph, inner, rho)
        if not (numbers == 1.0).all() and not _concave(inner, numbers):
            warnings.warn(
                "the entropy with these counting numbers rho is not provably concave: there may be several answers, and "
                "messages need not converge; lower rho, or use tree_reweighted",
                stacklevel=2,
            )
    run = _Run(graph, inner, potentials, numbers, damping, max_iter, tol, schedule, messages)
    value, _, marginals, _, _ = run.conclude()
    exact = inner.acyclic and run.status.ok and bool((numbers == 1.0).all())
    bounds = {"lower": value, "upper": value} if exact else {}
    return Result(value, marginals, run.status, exact, n_iter=run.n_iter, engine="bp", messages=run.messages, **bounds)


def tree_reweighted(
    graph: FactorGraph,
    potentials: FloatArray,
    *,
    damping: float | None = None,
    max_iter: int = 1000,
    tol: float = 1e-9,
    schedule: str = "sequential",
    messages: FloatArray | None = None,
    n_trees: int = N_TREES,
    random_state: Any = 0,
    tree_steps: int = 0,
    joint: bool = False,
    lower: bool = True,
    certify: bool = False,
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
    others
        As of `bethe`.

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
    inner = layout(graph, merge=True)
    if joint and not inner.pairwise:
        options: dict[str, Any] = {"damping": damping, "max_iter": max_iter, "tol": tol, "schedule": schedule}
        options |= {
            "certify": certify,
            "messages": messages,
            "n_trees": n_trees,
            "random_state": random_state,
            "tree_steps": tree_steps,
        }
        return _joint(graph, inner, potentials, lower, options)
    rho = tree_numbers(inner, n_trees, random_state)
    run = _Run(graph, inner, potentials, rho, damping, max_iter, tol, schedule, messages)
    value, slack, marginals, states, tables = run.conclude()
    used, beliefs = run, tables
    for step in range(check_count("tree_steps", tree_steps) if not inner.acyclic else 0):
        share = 2.0 / (step + 6.0)
        rho = (1.0 - share) * rho + share * heaviest_set(inner, used.information(beliefs).mean(0))
        used = _Run(graph, inner, potentials, rho, damping, max_iter, tol, schedule, used.messages)
        new = used.conclude()
        beliefs = new[4]
        if (new[0] + new[1]).sum() < (value + slack).sum():
            run, (value, slack, marginals, states, tables) = used, new
    result = Result(
        value, marginals, run.status, False, upper=value + slack, n_iter=run.n_iter, engine="trw", messages=run.messages
    )
    if certify:
        result = replace(result, certificate=value + slack - run.attained(states, tables))
    if inner.acyclic and run.status.ok:
        return replace(result, exact=True, lower=value, upper=value)
    if lower:
        result = replace(result, lower=np.minimum(_lower(graph, inner, potentials, states), value + slack))
    return result


def _lower(graph: FactorGraph, inner: Layout, potentials: FloatArray, states: FloatArray) -> FloatArray:
    """The better bound of mean field, of each example, from beliefs about states and from what max-product decodes."""
    run = _Run(graph, inner, potentials, np.ones(inner.n_tables), None, 100, 1e-4, "sequential", None, best=True)
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
    pairs, template, place = inner.cache["joint"]
    states, tables = inner.scores(potentials)
    constant = inner.constant(potentials)
    flat = np.tile(template, (len(potentials), 1))
    flat[:, : inner.n_states], flat[:, place] = states, tables
    result = tree_reweighted(pairs, flat, lower=False, **options)
    beliefs = result.marginals
    b_states = np.ascontiguousarray(beliefs[:, : inner.n_states])
    assert result.upper is not None
    value, upper = result.log_z + constant.ravel(), result.upper + constant.ravel()
    bound = value if result.exact else None
    if lower and not result.exact:
        bound = np.minimum(_lower(graph, inner, potentials, b_states), upper)
    marginals = inner.marginals(b_states, np.ascontiguousarray(beliefs[:, place]))
    return replace(result, log_z=value, upper=upper, lower=bound, marginals=marginals)


def pairs_of(graph: FactorGraph, inner: Layout) -> tuple[FactorGraph, FloatArray, IntArray]:
    """A graph of pairs with a variable for each table of more than two, its potentials where they do not depend on those of
    the given graph (ties: 0 or -inf), and where the entries of tables are among them; scores of states come first."""
    counts = graph.cardinalities.tolist()
    cardinalities, examples = list(counts), graph.examples.tolist()
    factors: list[tuple[int, ...]] = [(v,) for v in range(graph.n_variables)]
    parts: list[FloatArray] = [np.zeros(inner.n_states)]
    place: list[IntArray] = []
    at = inner.n_states
    for scope in inner.scopes:
        shape = tuple(counts[v] for v in scope)
        size = int(np.prod(shape))
        place.append(np.arange(at, at + size))
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
    return pairs, np.concatenate(parts), np.concatenate(place)


def max_product(
    graph: FactorGraph,
    potentials: Any,
    *,
    damping: float | None = None,
    max_iter: int = 200,
    tol: float = 1e-9,
    schedule: str = "sequential",
) -> tuple[IntArray, FloatArray]:
    """A configuration and its score, of each example: the best one without cycles, else the best one that was met.

    Every other sweep, messages are decoded one variable after another, and single variables are changed while that helps.
    Where all that is forbidden, a configuration that is not is looked for; a score of -inf says that none was found.
    Options are those of `bethe`, but a `damping` of None is none in the first half of the sweeps and then a half.
    """
    single = isinstance(potentials, list | tuple) or np.ndim(potentials) == 1
    flat = graph.potentials(potentials)
    inner = layout(graph, merge=True)
    ones, start = np.ones(inner.n_tables), None
    y, best = np.zeros((len(flat), graph.n_variables), np.int64), np.full((len(flat), graph.n_examples), -np.inf)
    for first in range(0, max(1, check_count("max_iter", max_iter)), DECODED):
        used = damping if damping is not None else 0.0 if 2 * first < max_iter else 0.5
        run = _Run(graph, inner, flat, ones, used, min(DECODED, max_iter - first), tol, schedule, start, best=True)
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


class _Brake:
    """Damping that rises, to a half and then to three quarters, when changes have not shrunk for a while.

    Reweighted messages begin with a little: without, some of strong pairs go back and forth for ever.
    """

    def __init__(self, damping: float | None, reweighted: bool) -> None:
        self.damping = damping if damping is not None else 0.1 if reweighted else 0.0
        self.steps = [0.5, 0.75] if damping is None else []
        self.seen: list[float] = []

    def see(self, change: float) -> None:
        self.seen.append(change)
        if self.steps and len(self.seen) == 40:
            if min(self.seen[20:]) >= min(self.seen[:20]):  # slow is no reason: damping makes it slower
                self.damping = self.steps.pop(0)
            self.seen = self.seen[20:]


class _Mixer:
    """Anderson acceleration: messages after a sweep back and forth become the combination of the last few such that would
    have changed the least, if changes were linear.

    Where reweighted messages settle slowly, as those of strong pairs do, this takes a quarter of the sweeps.
    """

    def __init__(self, messages: FloatArray, index: IntArray) -> None:
        self._messages, self._index = messages, index
        self._before = messages[index]
        self._after, self._change, self._size = self._before, self._before, np.inf
        #: Differences between successive messages, and between successive changes.
        self._steps, self._bends = np.empty((2, MIXED, len(index)))
        self._count = 0

    def mix(self) -> None:
        after = self._messages[self._index]
        change = after - self._before
        size = float(change @ change)
        if np.isfinite(self._size):
            place = self._count % MIXED
            np.subtract(after, self._after, out=self._steps[place])
            np.subtract(change, self._change, out=self._bends[place])
            self._count += 1
        if not size <= 4.0 * self._size:  # not linear at all
            self._count = 0
        self._after, self._change, self._size = after, change, size
        kept = min(self._count, MIXED)
        if kept:
            bends = self._bends[:kept]
            products = bends @ bends.T
            products[np.diag_indices(kept)] += 1e-12 * np.trace(products) + 1e-300
            mixed = after - np.linalg.solve(products, bends @ change) @ self._steps[:kept]
            if np.isfinite(mixed).all():
                after = mixed
        self._messages[self._index] = self._before = after


class _Run:
    """Messages of all rows, passed until they settle."""

    def __init__(
        self,
        graph: FactorGraph,
        inner: Layout,
        potentials: FloatArray,
        rho: FloatArray,
        damping: float | None,
        max_iter: int,
        tol: float,
        schedule: str,
        messages: FloatArray | None,
        best: bool = False,
    ) -> None:
        self.damping = None if damping is None else check_real("damping", damping, minimum=0.0)
        if self.damping is not None and self.damping >= 1.0:
            raise ValueError(f"damping must be None or below 1, got {damping!r}")
        self.max_iter, self.tol = check_count("max_iter", max_iter), check_real("tol", tol, minimum=0.0)
        self.schedule = check_choice("schedule", schedule, SCHEDULES)
        self.graph, self.inner, self.rho, self.best = graph, inner, rho, best
        self.reweighted = not (rho == 1.0).all()
        self.constant = inner.constant(potentials)
        self.states, self.tables = inner.scores(potentials)
        possible = inner.prune(self.states, self.tables) and bool((self.constant > -np.inf).all())
        if not possible:
            raise ValueError("potentials forbid every configuration: the partition function is zero")
        rows = len(potentials)
        if messages is None:
            self.messages = np.zeros((rows, inner.n_messages))
        else:
            self.messages = np.array(messages, dtype=np.float64)
            if self.messages.shape != (rows, inner.n_messages) or not np.isfinite(self.messages).all():
                raise ValueError(
                    f"messages must be finite and of shape ({rows}, {inner.n_messages}), as a result on the same graph has "
                    f"them; got {self.messages.shape}"
                )
        self.totals = np.empty_like(self.states)
        self.fast = inner.binary and not best and schedule != "residual" and bool(np.isfinite(self.tables).all())
        self.fast = self.fast and bool(np.isfinite(self.states).all())
        done = np.zeros(rows, np.int64)
        settled = np.zeros(rows, bool)

        def work(first: int, last: int) -> None:
            for row in range(first, last):
                done[row], settled[row] = self._pass_fast(row) if self.fast else self._pass(row)

        if inner.n_tables == 0:
            settled[:] = True
        else:
            graph.workers.run(work, Workers.ranges(rows, 1e3 * inner.n_messages * rows) if rows > 1 else [(0, 1)])
        for row in range(rows):
            self._set_totals(row)
        self.n_iter = int(done.max(initial=0))
        self.status = Status.CONVERGED if settled.all() else Status.UNSETTLED

    def _set_totals(self, row: int, lo: int = 0, hi: int | None = None) -> None:
        kernels.set_totals(
            self.inner.arrays,
            self.inner.incident,
            self.inner.edge_factor,
            self.rho,
            self.states[row],
            self.messages[row],
            lo,
            self.inner.n_variables if hi is None else hi,
            self.totals[row],
        )

    def _one_after_another(
        self,
        prepare: Callable[[int, int], None],
        sweep: Callable[[IntArray, bool, float], float],
        messages: FloatArray,
        bounds: IntArray,
    ) -> tuple[int, bool]:
        """Sweeps back and forth, each chunk of examples until it settles: how many at most, and whether all have.

        Those of table f are ``messages[bounds[f]:bounds[f + 1]]``.
        """

        def work(lo: int, hi: int, first: int, last: int) -> tuple[int, bool]:
            brake, order = _Brake(self.damping, self.reweighted), self.inner.order[lo:hi]
            mixer = None
            if self.reweighted and not self.best:
                mixer = _Mixer(messages, ranges(bounds[order], bounds[order + 1] - bounds[order]))
            for count in range(self.max_iter):
                prepare(first, last)
                change = sweep(order, count % 2 == 0, brake.damping)
                if change <= self.tol:
                    return count + 1, True
                brake.see(change)
                if mixer is not None and count % 2 == 1:
                    mixer.mix()
            return self.max_iter, False

        done = self._run_chunks(work)
        return max(count for count, _ in done), all(settled for _, settled in done)

    def _run_chunks(self, work: Callable[..., Any]) -> list[Any]:
        """On threads, unless those are busy with rows."""
        chunks = self.inner.chunks
        return self.graph.workers.run(work, chunks) if len(self.tables) == 1 else [work(*chunk) for chunk in chunks]

    def _scratch(self) -> tuple[FloatArray, ...]:
        inner = self.inner
        return np.empty(inner.largest), np.empty(inner.largest), np.empty(inner.widest), np.empty(inner.widest)

    def _pass(self, row: int) -> tuple[int, bool]:
        inner, scratch = self.inner, self._scratch()
        totals, tables, m = self.totals[row], self.tables[row], self.messages[row]
        shared = (inner.arrays, tables, self.rho)
        if self.schedule == "sequential":

            def sweep_part(order: IntArray, backward: bool, damping: float) -> float:
                return float(
                    kernels.sweep_sequential(*shared, order, backward, damping, self.best, totals, m, *self._scratch())
                )

            bounds = inner.arrays[4][inner.arrays[2]]  # of the messages of tables
            return self._one_after_another(lambda lo, hi: self._set_totals(row, lo, hi), sweep_part, m, bounds)
        if self.schedule == "residual":
            count = inner.n_tables
            key, heap, place = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
            self._set_totals(row)
            kernels.residual_start(*shared, self.best, totals, m, key, heap, place, *scratch)
        ranges = Workers.ranges(inner.n_tables, 40.0 * inner.size)
        out = np.empty_like(m)
        brake = _Brake(self.damping, self.reweighted)
        for sweep in range(self.max_iter):
            damping = brake.damping
            self._set_totals(row)
            if self.schedule == "parallel":

                def part(lo: int, hi: int) -> float:
                    return float(
                        kernels.sweep_parallel(
                            *shared,
                            damping,  # noqa: B023
                            self.best,
                            totals,
                            m,
                            lo,
                            hi,
                            out,
                            *self._scratch(),
                        )
                    )

                change = max(self.graph.workers.run(part, ranges) if len(self.tables) == 1 else [part(0, inner.n_tables)])
                m[:] = out
            else:
                change = kernels.sweep_residual(
                    inner.arrays,
                    inner.incident,
                    inner.edge_factor,
                    tables,
                    self.rho,
                    damping,
                    self.best,
                    self.tol,
                    totals,
                    m,
                    key,
                    heap,
                    place,
                    *scratch,
                )
            if change <= self.tol:
                return sweep + 1, True
            brake.see(change)
        return self.max_iter, False

    def _pass_fast(self, row: int) -> tuple[int, bool]:
        inner, rho = self.inner, self.rho
        pairs = inner.arrays[3]
        table = self.tables[row].reshape(-1, 4) / rho[:, None]
        b, c = table[:, 2] - table[:, 0], table[:, 1] - table[:, 0]
        d = (table[:, 3] - table[:, 2]) - c
        scores = np.zeros(inner.n_variables)
        scores[pairs] = self.states[row][inner.var_offsets[pairs] + 1] - self.states[row][inner.var_offsets[pairs]]
        full = self.messages[row].reshape(-1, 2)
        m = np.ascontiguousarray(full[:, 1] - full[:, 0])
        odds, out = np.empty(inner.n_variables), np.empty_like(m)

        def sums(lo: int, hi: int) -> None:
            binary.set_odds(inner.incident, inner.edge_factor, rho, scores, m, lo, hi, odds)

        if self.schedule == "sequential":

            def sweep_part(order: IntArray, backward: bool, damping: float) -> float:
                return float(binary.sweep_sequential(pairs, b, c, d, rho, order, backward, damping, odds, m))

            sweep, settled = self._one_after_another(sums, sweep_part, m, 2 * np.arange(len(d) + 1))
        else:
            m, sweep, settled = self._at_once(pairs, b, c, d, sums, odds, m, out)
        full[:, 0], full[:, 1] = -0.5 * m, 0.5 * m
        return sweep, settled

    def _at_once(
        self,
        pairs: IntArray,
        b: FloatArray,
        c: FloatArray,
        d: FloatArray,
        sums: Callable[[int, int], None],
        odds: FloatArray,
        m: FloatArray,
        out: FloatArray,
    ) -> tuple[FloatArray, int, bool]:
        alone, workers, inner = len(self.tables) == 1, self.graph.workers, self.inner
        ranges = Workers.ranges(len(d), 100.0 * len(d)) if alone else [(0, len(d))]
        nodes = Workers.ranges(inner.n_variables, 20.0 * len(m)) if alone else [(0, inner.n_variables)]
        brake = _Brake(self.damping, self.reweighted)
        for sweep in range(self.max_iter):

            def part(lo: int, hi: int) -> float:
                return float(binary.sweep_parallel(pairs, b, c, d, brake.damping, odds, m, lo, hi, out))

            workers.run(sums, nodes)
            change = max(workers.run(part, ranges))
            m[:] = out
            if change <= self.tol:
                return m, sweep + 1, True
            brake.see(change)
        return m, self.max_iter, False

    def information(self, tables: FloatArray) -> FloatArray:
        """For each row and table: entropies of its members less its own, from beliefs about tables."""
        inner = self.inner
        out = np.empty((len(tables), inner.n_tables))
        for row in range(len(tables)):
            kernels.information(inner.arrays, tables[row], out[row], np.empty(inner.widest))
        return out

    def conclude(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """The value, how far log Z may be above it (by example), marginals, and beliefs about states and tables."""
        inner = self.inner
        value, slack = self.constant.copy(), np.zeros_like(self.constant)
        states, tables = np.empty_like(self.states), np.empty_like(self.tables)

        def work(lo: int, hi: int, first: int, last: int, row: int = 0) -> None:
            kernels.conclude(
                inner.arrays,
                inner.order[lo:hi],
                first,
                last,
                self.tables[row],
                self.rho,
                inner.examples,
                inner.fac_examples,
                self.totals[row],
                self.messages[row],
                value[row],
                slack[row],
                states[row],
                tables[row],
                *self._scratch(),
            )

        self._run_all(work)
        return value.ravel(), slack.ravel(), inner.marginals(states, tables), states, tables

    def _run_all(self, work: Callable[..., None]) -> None:
        """All chunks of all rows."""
        tasks = [(*chunk, row) for row in range(len(self.tables)) for chunk in self.inner.chunks]
        if self.inner.size * len(tasks) / len(self.inner.chunks) < OPERATIONS_PER_CHUNK / 40:
            for task in tasks:
                work(*task)
        else:
            self.graph.workers.run(work, tasks)

    def attained(self, states: FloatArray, tables: FloatArray) -> FloatArray:
        """What the reweighted free energy is at marginals that agree with each other, close to the given beliefs."""
        inner, value = self.inner, self.constant.copy()

        def work(lo: int, hi: int, first: int, last: int, row: int = 0) -> None:
            kernels.attained(
                inner.arrays,
                inner.order[lo:hi],
                first,
                last,
                self.states[row],
                self.tables[row],
                self.rho,
                inner.examples,
                inner.fac_examples,
                states[row],
                tables[row],
                value[row],
                *self._scratch(),
            )

        self._run_all(work)
        return value.ravel()

    def decode(self) -> IntArray:
        inner = self.inner
        y = np.empty((len(self.states), inner.n_variables), np.int64)
        shape = (inner.arrays, inner.incident, inner.edge_factor)
        for row in range(len(y)):
            scratch = np.empty(inner.largest)
            inputs = (self.tables[row], self.states[row])
            kernels.decode(*shape, *inputs, self.totals[row], self.messages[row], inner.var_order, y[row], scratch)
            kernels.ascend(*shape, *inputs, y[row])
        return y

    def scores(self, y: IntArray) -> FloatArray:
        """Scores of configurations, (rows, examples)."""
        inner, out = self.inner, self.constant.copy()
        _, fac_offsets, fac_ptr, edge_var, _, strides = inner.arrays
        for row in range(len(y)):
            n = out.shape[1]
            out[row] += np.bincount(inner.examples, self.states[row][inner.var_offsets[:-1] + y[row]], n)
            if inner.n_tables:
                place = fac_offsets[:-1] + np.add.reduceat(strides * y[row][edge_var], fac_ptr[:-1])
                out[row] += np.bincount(inner.fac_examples, self.tables[row][place], n)
        return out

    def mend(self, y: IntArray, wrong: NDArray[np.bool_]) -> None:
        """Put allowed configurations, where some are found, in place of those of the examples that are `wrong`."""
        inner = self.inner
        for row in np.flatnonzero(wrong.any(1)).tolist():
            inputs = (self.tables[row], self.states[row])
            found = configuration(inner, self.states[row], self.tables[row], self.totals[row])
            if found is not None:
                kernels.ascend(inner.arrays, inner.incident, inner.edge_factor, *inputs, found)
                y[row] = np.where(wrong[row][inner.examples], found, y[row])

"""Messages passed between variables and tables until they settle, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays.potentials import real_array
from ...core.errors import NumericalError
from ...core.parallel import OPERATIONS_PER_CHUNK, Workers
from ...core.results import CURE, FloatArray, IntArray, Status
from ...core.validation import check_choice, check_count, check_real
from ..kernels import belief_propagation as kernels, binary_messages as binary
from ..structure.factor_graph import FactorGraph
from ..structure.scopes import ranges
from .layout import Layout
from .mean_field import configuration

SCHEDULES = ("sequential", "parallel", "residual")
#: What stands for the logarithm of zero in messages.
VANISHED = 750.0
#: Earlier messages that reweighted ones are mixed with.
MIXED = 5


class Brake:
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


class Mixer:
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


def _reach(scores: FloatArray, offsets: IntArray) -> FloatArray:
    """By how much a table, from each of the offsets to the next, can bring apart the states of a variable."""
    finite = scores > -np.inf
    high = np.maximum.reduceat(np.where(finite, scores, -np.inf), offsets[:-1])
    low = np.minimum.reduceat(np.where(finite, scores, np.inf), offsets[:-1])
    return np.asarray(high - low + np.log(np.diff(offsets)))


class MessageRun:
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
            self.messages = np.array(real_array("messages", messages))
            if self.messages.shape != (rows, inner.n_messages) or not np.isfinite(self.messages).all():
                raise ValueError(
                    f"messages must be finite and of shape ({rows}, {inner.n_messages}), as a result on the same graph has "
                    f"them; got {self.messages.shape}"
                )
        self.totals = np.empty_like(self.states)
        self.fast = inner.binary and not best and schedule != "residual" and bool(np.isfinite(self.tables).all())
        self.fast = self.fast and bool(np.isfinite(self.states).all())
        done = np.zeros(rows, np.int64)
        change = np.zeros(rows)

        def work(first: int, last: int) -> None:
            for row in range(first, last):
                done[row], change[row] = self._pass_fast(row) if self.fast else self._pass(row)

        if inner.n_tables:
            graph.workers.run(work, Workers.ranges(rows, 1e3 * inner.n_messages * rows) if rows > 1 else [(0, 1)])
        for row in range(rows):
            self._set_totals(row)
        self.n_iter = int(done.max(initial=0))
        # Largest changes are kept by comparisons, which do not see NaN.
        if not np.isfinite(self.messages).all():
            raise NumericalError(f"messages became infinite or NaN. {CURE}")
        #: The largest change of a message, in logarithms, in the last sweep.
        self.residual = float(change.max(initial=0.0))
        self.status = Status.CONVERGED if self.residual <= self.tol else Status.UNSETTLED

    def told(self) -> dict[str, Any]:
        """What a result says about the sweeps."""
        return {"n_iter": self.n_iter, "residual": self.residual, "tol": self.tol}

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
    ) -> tuple[int, float]:
        """Sweeps back and forth, each chunk of examples until it settles: how many at most, and the largest last change.

        Those of table f are ``messages[bounds[f]:bounds[f + 1]]``.
        """

        def work(lo: int, hi: int, first: int, last: int) -> tuple[int, float]:
            brake, order = Brake(self.damping, self.reweighted), self.inner.order[lo:hi]
            mixer, change = None, np.inf
            if self.reweighted and not self.best:
                mixer = Mixer(messages, ranges(bounds[order], bounds[order + 1] - bounds[order]))
            for count in range(self.max_iter):
                prepare(first, last)
                change = sweep(order, count % 2 == 0, brake.damping)
                if change <= self.tol:
                    return count + 1, change
                brake.see(change)
                if mixer is not None and count % 2 == 1:
                    mixer.mix()
            return self.max_iter, change

        done = self._run_chunks(work)
        return max(count for count, _ in done), max(change for _, change in done)

    def _run_chunks(self, work: Callable[..., Any]) -> list[Any]:
        """On threads, unless those are busy with rows."""
        chunks = self.inner.chunks
        return self.graph.workers.run(work, chunks) if len(self.tables) == 1 else [work(*chunk) for chunk in chunks]

    def _scratch(self) -> tuple[FloatArray, ...]:
        inner = self.inner
        return np.empty(inner.largest), np.empty(inner.largest), np.empty(inner.widest), np.empty(inner.widest)

    def _largest(self, row: int) -> float:
        """How far apart messages of two states may be: as far as all tables together can bring them, and then as far as
        makes a share of nothing."""
        var_offsets, fac_offsets = self.inner.arrays[:2]
        of_states = _reach(self.states[row], var_offsets)
        return VANISHED + float(of_states.sum() + (_reach(self.tables[row], fac_offsets) / self.rho).sum())

    def _pass(self, row: int) -> tuple[int, float]:
        inner, scratch = self.inner, self._scratch()
        totals, tables, m = self.totals[row], self.tables[row], self.messages[row]
        cap = self._largest(row)
        shared = (inner.arrays, tables, self.rho)
        if self.schedule == "sequential":

            def sweep_part(order: IntArray, backward: bool, damping: float) -> float:
                return float(
                    kernels.sweep_sequential(*shared, order, backward, damping, self.best, cap, totals, m, *self._scratch())
                )

            bounds = inner.arrays[4][inner.arrays[2]]  # of the messages of tables
            return self._one_after_another(lambda lo, hi: self._set_totals(row, lo, hi), sweep_part, m, bounds)
        if self.schedule == "residual":
            count = inner.n_tables
            key, heap, place = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
            self._set_totals(row)
            kernels.residual_start(*shared, self.best, cap, totals, m, key, heap, place, *scratch)
        ranges = Workers.ranges(inner.n_tables, 40.0 * inner.size)
        out, change = np.empty_like(m), np.inf
        brake = Brake(self.damping, self.reweighted)
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
                            cap,
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
                    cap,
                    self.tol,
                    totals,
                    m,
                    key,
                    heap,
                    place,
                    *scratch,
                )
            if change <= self.tol:
                return sweep + 1, float(change)
            brake.see(change)
        return self.max_iter, float(change)

    def _pass_fast(self, row: int) -> tuple[int, float]:
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

            sweep, change = self._one_after_another(sums, sweep_part, m, 2 * np.arange(len(d) + 1))
        else:
            m, sweep, change = self._at_once(pairs, b, c, d, sums, odds, m, out)
        full[:, 0], full[:, 1] = -0.5 * m, 0.5 * m
        return sweep, change

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
    ) -> tuple[FloatArray, int, float]:
        alone, workers, inner = len(self.tables) == 1, self.graph.workers, self.inner
        ranges = Workers.ranges(len(d), 100.0 * len(d)) if alone else [(0, len(d))]
        nodes = Workers.ranges(inner.n_variables, 20.0 * len(m)) if alone else [(0, inner.n_variables)]
        brake, change = Brake(self.damping, self.reweighted), np.inf
        for sweep in range(self.max_iter):

            def part(lo: int, hi: int) -> float:
                return float(binary.sweep_parallel(pairs, b, c, d, brake.damping, odds, m, lo, hi, out))

            workers.run(sums, nodes)
            change = max(workers.run(part, ranges))
            m[:] = out
            if change <= self.tol:
                return m, sweep + 1, change
            brake.see(change)
        return m, self.max_iter, change

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

    def likely(self, beliefs: FloatArray) -> FloatArray:
        """The score of the configuration of the likeliest state of every variable, of each example of each row."""
        offsets, found = self.inner.var_offsets, []
        for row in beliefs:
            best = row == np.repeat(np.maximum.reduceat(row, offsets[:-1]), np.diff(offsets))
            places = np.flatnonzero(best)  # the first of each variable
            found.append(places[np.searchsorted(places, offsets[:-1])] - offsets[:-1])
        return self.scores(np.array(found)).ravel()

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

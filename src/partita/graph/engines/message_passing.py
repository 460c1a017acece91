"""Runs of loopy belief propagation: messages between variables and factors, passed until they settle, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.arrays.potentials import real_array
from ...core.errors import NumericalError
from ...core.parallel import OPERATIONS_PER_CHUNK, Workers
from ...core.results import CURE, FloatArray, IntArray, Status
from ...core.validation import check_choice, check_count, check_real
from ..kernels import belief_propagation as kernels, binary_messages as binary, free_energy as energies
from ..kernels.conditional import iterated_conditional_modes
from ..kernels.factor_layout import Chunk, Entries, Messages, Update
from ..structure.factor_graph import FactorGraph
from ..structure.scopes import ranges
from .layout import Layout
from .mean_field import configuration
from .message_damping import AdaptiveDamping, AndersonAcceleration

SCHEDULES = ("sequential", "parallel", "residual")
#: What stands for the logarithm of zero in messages.
VANISHED = 750.0


class Sweeps(NamedTuple):
    """How messages are passed: options of `bethe`, `tree_reweighted` and `max_product`."""

    damping: float | None = None
    max_iter: int = 1000
    tol: float = 1e-9
    schedule: str = "sequential"

    def checked(self) -> Sweeps:
        """The same, or a ValueError."""
        damping = None if self.damping is None else check_real("damping", self.damping, minimum=0.0)
        if damping is not None and damping >= 1.0:
            raise ValueError(f"damping must be None or below 1, got {self.damping!r}")
        max_iter, tol = check_count("max_iter", self.max_iter), check_real("tol", self.tol, minimum=0.0)
        return Sweeps(damping, max_iter, tol, check_choice("schedule", self.schedule, SCHEDULES))


class FreeEnergy(NamedTuple):
    """What messages say. Values are of each example of each row of potentials, beliefs have a row for each."""

    value: FloatArray  #: the reweighted log Z
    slack: FloatArray  #: how far log Z may be above it, if counting numbers are shares of trees
    marginals: FloatArray
    beliefs: Entries


def _spread(scores: FloatArray, offsets: IntArray) -> FloatArray:
    """By how much a table, from each of the offsets to the next, can bring apart the states of a variable."""
    finite = scores > -np.inf
    high = np.maximum.reduceat(np.where(finite, scores, -np.inf), offsets[:-1])
    low = np.minimum.reduceat(np.where(finite, scores, np.inf), offsets[:-1])
    return np.asarray(high - low + np.log(np.diff(offsets)))


class MessageRun:
    """Messages of all rows of potentials, passed until they settle.

    Parameters
    ----------
    graph, inner, potentials
        A factor graph, its layout, and a matrix of potentials.
    rho : array of shape (inner.n_tables,)
        Counting numbers.
    sweeps : Sweeps
    messages : array of shape (rows, inner.n_messages), optional
        Where to begin.
    max_product : bool
        Maxima in place of sums.
    """

    damping: float | None
    max_iter: int
    tol: float
    schedule: str
    graph: FactorGraph
    inner: Layout
    rho: FloatArray
    max_product: bool
    states: FloatArray
    tables: FloatArray

    def __init__(
        self,
        graph: FactorGraph,
        inner: Layout,
        potentials: FloatArray,
        rho: FloatArray,
        sweeps: Sweeps,
        messages: FloatArray | None = None,
        max_product: bool = False,
    ) -> None:
        self.damping, self.max_iter, self.tol, self.schedule = sweeps.checked()
        self.graph, self.inner, self.rho, self.max_product = graph, inner, rho, max_product
        self.reweighted: bool = not (rho == 1.0).all()
        self.constant: FloatArray = inner.constant(potentials)
        self.states, self.tables = inner.scores(potentials)
        possible = inner.prune(self.states, self.tables) and bool((self.constant > -np.inf).all())
        if not possible:
            raise ValueError("potentials forbid every configuration: the partition function is zero")
        self.messages: FloatArray = self._start(messages, len(potentials))
        self.log_beliefs: FloatArray = np.empty_like(self.states)
        self.binary: bool = inner.binary and not max_product and self.schedule != "residual"
        self.binary = self.binary and bool(np.isfinite(self.tables).all()) and bool(np.isfinite(self.states).all())
        done, change = self._run()
        for row in range(len(potentials)):
            self._set_log_beliefs(row)
        self.n_iter: int = int(done.max(initial=0))
        # Largest changes are kept by comparisons, which do not see NaN.
        if not np.isfinite(self.messages).all():
            raise NumericalError(f"messages became infinite or NaN. {CURE}")
        #: The largest change of a message, in logarithms, in the last sweep.
        self.residual: float = float(change.max(initial=0.0))
        self.status = Status.CONVERGED if self.residual <= self.tol else Status.UNSETTLED

    def _start(self, messages: FloatArray | None, rows: int) -> FloatArray:
        """Checked messages to begin with."""
        if messages is None:
            return np.zeros((rows, self.inner.n_messages))
        start = np.array(real_array("messages", messages))
        if start.shape != (rows, self.inner.n_messages) or not np.isfinite(start).all():
            raise ValueError(
                f"messages must be finite and of shape ({rows}, {self.inner.n_messages}), as a result on the same graph has "
                f"them; got {start.shape}"
            )
        return start

    def _run(self) -> tuple[IntArray, FloatArray]:
        """Pass messages: sweeps of each row, and the largest change in the last."""
        inner, rows = self.inner, len(self.tables)
        done, change = np.zeros(rows, np.int64), np.zeros(rows)
        passes = {"sequential": self._pass_sequential, "parallel": self._pass_parallel, "residual": self._pass_residual}
        pass_row = self._pass_binary if self.binary else passes[self.schedule]

        def work(first: int, last: int) -> None:
            for row in range(first, last):
                done[row], change[row] = pass_row(row)

        if inner.n_tables:
            self.graph.workers.run(work, Workers.ranges(rows, 1e3 * inner.n_messages * rows) if rows > 1 else [(0, 1)])
        return done, change

    @property
    def alone(self) -> bool:
        """Whether there is one row: threads are then free to share its work."""
        return len(self.tables) == 1

    def summary(self) -> dict[str, Any]:
        """What a result says about the sweeps."""
        return {"n_iter": self.n_iter, "residual": self.residual, "tol": self.tol}

    def _messages(self, row: int) -> Messages:
        return Messages(self.messages[row], self.log_beliefs[row])

    def _potentials(self, row: int) -> Entries:
        return Entries(self.states[row], self.tables[row])

    def _set_log_beliefs(self, row: int, lo: int = 0, hi: int | None = None) -> None:
        last = self.inner.n_variables if hi is None else hi
        kernels.set_log_beliefs(self.inner.arrays, self.rho, self.states[row], lo, last, self._messages(row))

    def _update(self, row: int) -> Update:
        """Without damping. Log messages of two states may be as far apart as all tables together can bring them, and then as
        far as makes a share of nothing."""
        of_states = _spread(self.states[row], self.inner.arrays.var_offsets)
        of_tables = _spread(self.tables[row], self.inner.arrays.fac_offsets) / self.rho
        return Update(self.rho, self.max_product, 0.0, VANISHED + float(of_states.sum() + of_tables.sum()))

    def _until_settled(self, sweep: Callable[[float], float]) -> tuple[int, float]:
        """Sweeps, each with its damping, until the largest change is at most `tol`: how many, and that change."""
        damping, change = AdaptiveDamping(self.damping, self.reweighted), np.inf
        for count in range(self.max_iter):
            change = sweep(damping.value)
            if change <= self.tol:
                return count + 1, float(change)
            damping.see(change)
        return self.max_iter, float(change)

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

        def work(order: IntArray, first: int, last: int) -> tuple[int, float]:
            damping = AdaptiveDamping(self.damping, self.reweighted)
            acceleration, change = None, np.inf
            if self.reweighted and not self.max_product:
                acceleration = AndersonAcceleration(messages, ranges(bounds[order], bounds[order + 1] - bounds[order]))
            for count in range(self.max_iter):
                prepare(first, last)
                change = sweep(order, count % 2 == 0, damping.value)
                if change <= self.tol:
                    return count + 1, change
                damping.see(change)
                if acceleration is not None and count % 2 == 1:
                    acceleration.mix()
            return self.max_iter, change

        chunks = self.inner.chunks
        done = self.graph.workers.run(work, chunks) if self.alone else [work(*chunk) for chunk in chunks]
        return max(count for count, _ in done), max(change for _, change in done)

    def _pass_sequential(self, row: int) -> tuple[int, float]:
        inner, update, messages, tables = self.inner, self._update(row), self._messages(row), self.tables[row]

        def sweep(order: IntArray, backward: bool, damping: float) -> float:
            damped = update._replace(damping=damping)
            return float(
                kernels.sweep_sequential(inner.arrays, tables, damped, order, backward, messages, inner.workspace())
            )

        bounds = inner.arrays.edge_offsets[inner.arrays.fac_ptr]
        return self._one_after_another(
            lambda lo, hi: self._set_log_beliefs(row, lo, hi), sweep, messages.to_variables, bounds
        )

    def _pass_parallel(self, row: int) -> tuple[int, float]:
        inner, update, messages, tables = self.inner, self._update(row), self._messages(row), self.tables[row]
        parts = Workers.ranges(inner.n_tables, 40.0 * inner.size) if self.alone else [(0, inner.n_tables)]
        out = np.empty_like(messages.to_variables)

        def sweep(damping: float) -> float:
            damped = update._replace(damping=damping)

            def part(lo: int, hi: int) -> float:
                return float(kernels.sweep_parallel(inner.arrays, tables, damped, messages, lo, hi, out, inner.workspace()))

            self._set_log_beliefs(row)
            change = max(self.graph.workers.run(part, parts) if self.alone else [part(*parts[0])])
            messages.to_variables[:] = out
            return change

        return self._until_settled(sweep)

    def _pass_residual(self, row: int) -> tuple[int, float]:
        inner, update, messages, tables = self.inner, self._update(row), self._messages(row), self.tables[row]
        count, work = inner.n_tables, inner.workspace()
        queue = kernels.ResidualQueue(np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64))
        self._set_log_beliefs(row)
        kernels.residual_start(inner.arrays, tables, update, messages, queue, work)

        def sweep(damping: float) -> float:
            self._set_log_beliefs(row)
            damped = update._replace(damping=damping)
            return float(kernels.sweep_residual(inner.arrays, tables, damped, self.tol, messages, queue, work))

        return self._until_settled(sweep)

    def _pass_binary(self, row: int) -> tuple[int, float]:
        """Sequential or parallel, on pairs of binary variables: a message is its log odds."""
        inner, rho, ends = self.inner, self.rho, self.inner.arrays.edge_var
        table = self.tables[row].reshape(-1, 4) / rho[:, None]
        b, c = table[:, 2] - table[:, 0], table[:, 1] - table[:, 0]
        pairs = binary.PairTables(ends, b, c, (table[:, 3] - table[:, 2]) - c)
        scores = np.zeros(inner.n_variables)
        scores[ends] = self.states[row][inner.var_offsets[ends] + 1] - self.states[row][inner.var_offsets[ends]]
        full = self.messages[row].reshape(-1, 2)
        m = np.ascontiguousarray(full[:, 1] - full[:, 0])
        log_odds = np.empty(inner.n_variables)

        def prepare(lo: int, hi: int) -> None:
            binary.set_log_odds(inner.arrays, rho, scores, m, lo, hi, log_odds)

        def sweep(order: IntArray, backward: bool, damping: float) -> float:
            return float(binary.sweep_sequential(pairs, rho, order, backward, damping, log_odds, m))

        if self.schedule == "sequential":
            done = self._one_after_another(prepare, sweep, m, 2 * np.arange(len(b) + 1))
        else:
            done = self._binary_parallel(pairs, prepare, log_odds, m)
        full[:, 0], full[:, 1] = -0.5 * m, 0.5 * m
        return done

    def _binary_parallel(
        self, pairs: binary.PairTables, prepare: Callable[[int, int], None], log_odds: FloatArray, m: FloatArray
    ) -> tuple[int, float]:
        n_pairs, n, workers, out = len(pairs.b), self.inner.n_variables, self.graph.workers, np.empty_like(m)
        parts = Workers.ranges(n_pairs, 100.0 * n_pairs) if self.alone else [(0, n_pairs)]
        variables = Workers.ranges(n, 20.0 * len(m)) if self.alone else [(0, n)]

        def sweep(damping: float) -> float:
            def part(lo: int, hi: int) -> float:
                return float(binary.sweep_parallel(pairs, damping, log_odds, m, lo, hi, out))

            workers.run(prepare, variables)
            change: float = max(workers.run(part, parts))
            m[:] = out
            return change

        return self._until_settled(sweep)

    def mutual_information(self, tables: FloatArray) -> FloatArray:
        """For each row and table: entropies of its variables less its own, from beliefs about tables."""
        inner = self.inner
        out = np.empty((len(tables), inner.n_tables))
        for row in range(len(tables)):
            energies.mutual_information(inner.arrays, tables[row], out[row], np.empty(inner.widest))
        return out

    def free_energy(self) -> FreeEnergy:
        """The Bethe or tree-reweighted value of log Z, and beliefs."""
        inner = self.inner
        value, slack = self.constant.copy(), np.zeros_like(self.constant)
        beliefs = Entries(np.empty_like(self.states), np.empty_like(self.tables))

        def work(chunk: Chunk, row: int) -> None:
            own = Entries(beliefs.states[row], beliefs.tables[row])
            answer = (own, value[row], slack[row], inner.workspace())
            energies.free_energy(inner.arrays, chunk, self.tables[row], self.rho, self._messages(row), *answer)

        self._run_all(work)
        return FreeEnergy(value.ravel(), slack.ravel(), inner.marginals(*beliefs), beliefs)

    def _run_all(self, work: Callable[[Chunk, int], None]) -> None:
        """All chunks of all rows."""
        tasks = [(chunk, row) for row in range(len(self.tables)) for chunk in self.inner.chunks]
        if self.inner.size * len(tasks) / len(self.inner.chunks) < OPERATIONS_PER_CHUNK / 40:
            for task in tasks:
                work(*task)
        else:
            self.graph.workers.run(work, tasks)

    def consistent_free_energy(self, beliefs: Entries) -> FloatArray:
        """The free energy at marginals that agree with each other, close to the given beliefs."""
        inner, value = self.inner, self.constant.copy()

        def work(chunk: Chunk, row: int) -> None:
            own = Entries(beliefs.states[row], beliefs.tables[row])
            potentials, scratch = self._potentials(row), inner.workspace()
            energies.consistent_free_energy(inner.arrays, chunk, potentials, self.rho, own, value[row], scratch)

        self._run_all(work)
        return value.ravel()

    def decode(self) -> IntArray:
        """A configuration of each row: by max-marginals, then by iterated conditional modes."""
        inner = self.inner
        y = np.empty((len(self.states), inner.n_variables), np.int64)
        for row in range(len(y)):
            potentials = self._potentials(row)
            kernels.decode(inner.arrays, potentials, self._messages(row), inner.var_order, y[row], inner.workspace())
            iterated_conditional_modes(inner.arrays, potentials, y[row])
        return y

    def likeliest_scores(self, beliefs: FloatArray) -> FloatArray:
        """The score of the configuration of the likeliest state of every variable, of each example of each row."""
        offsets, found = self.inner.var_offsets, []
        for row in beliefs:
            best = row == np.repeat(np.maximum.reduceat(row, offsets[:-1]), np.diff(offsets))
            likeliest = np.flatnonzero(best)  # the first of each variable
            found.append(likeliest[np.searchsorted(likeliest, offsets[:-1])] - offsets[:-1])
        return self.scores(np.array(found)).ravel()

    def scores(self, y: IntArray) -> FloatArray:
        """Scores of configurations, (rows, examples)."""
        arrays, out = self.inner.arrays, self.constant.copy()
        for row in range(len(y)):
            n = out.shape[1]
            out[row] += np.bincount(arrays.var_examples, self.states[row][arrays.var_offsets[:-1] + y[row]], n)
            if self.inner.n_tables:
                steps = np.add.reduceat(arrays.strides * y[row][arrays.edge_var], arrays.fac_ptr[:-1])
                out[row] += np.bincount(arrays.fac_examples, self.tables[row][arrays.fac_offsets[:-1] + steps], n)
        return out

    def mend(self, y: IntArray, wrong: NDArray[np.bool_]) -> None:
        """Put allowed configurations, where some are found, in place of those of the examples that are `wrong`."""
        inner = self.inner
        for row in np.flatnonzero(wrong.any(1)).tolist():
            found = configuration(inner, self.states[row], self.tables[row], self.log_beliefs[row])
            if found is not None:
                iterated_conditional_modes(inner.arrays, self._potentials(row), found)
                y[row] = np.where(wrong[row][inner.arrays.var_examples], found, y[row])

"""Exact sums over Ising models without fields on graphs drawn in the plane, by the determinant of Kac and Ward."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...core.errors import NumericalError, TooLargeError
from ...core.memory import check_memory, in_units
from ...core.parallel import blas_limit
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_real
from ..structure.factor_graph import FactorGraph
from ..structure.mixture import each_example
from .planar_dissection import Front, fronts
from .planar_layout import PlanarLayout, check_positions

#: How far a determinant may be from a positive number, and the inverse times the matrix from one, as parts of one.
DIGITS = 1e-6


def kac_ward(
    graph: FactorGraph, potentials: FloatArray, *, positions: ArrayLike | None = None, memory_limit: float = np.inf
) -> Result:
    """log Z and marginals of planar Ising models, exactly.

    Parameters
    ----------
    graph : FactorGraph
        Variables with two states, factors of at most two variables, and pairs that are edges of a planar graph.
    potentials : array of shape (rows, entries)
        Finite, and the same when all states change: such a model has no fields.
    positions : array of shape (variables, 2), optional
        Places of the variables in a drawing without crossings; see `PlanarLayout`.
    memory_limit : float
        Bytes that this may take; if it would take more, or more than there are, that is a TooLargeError before any work.

    Notes
    -----
    ``Z = 2^n prod cosh J_e sqrt(det(1 - W))``, where W joins half-edges that follow each other, with the weight tanh J of
    the first and half of the angle between them as phase. The matrix is eliminated by nested dissection, vertex by vertex.
    That takes no exchange of vertices: the determinant of those eliminated so far is the square of a partition function
    (that of the graph of these vertices), and above zero. The entries of the inverse that marginals need come by the same
    steps backwards: 60 x 60 variables take a tenth of a second, 200 x 200 some seconds.

    The determinant becomes small where couplings are strong and contradict each other, and digits are lost. What is visibly
    no positive number, or no inverse, is a NumericalError.
    """
    parts, rows = planar_parts(graph, positions, memory_limit), len(potentials)
    log_z, marginals = np.empty((rows, len(parts))), np.empty((rows, graph.size))

    def work(row: int, k: int) -> None:
        index, model = parts[k]
        sums = KacWard(model, potentials[row, index])
        log_z[row, k], marginals[row, index] = sums.log_z, model.layout.point(sums.agreement())

    with blas_limit(1):
        graph.workers.run(work, [(row, k) for row in range(rows) for k in range(len(parts))])
    flat = log_z.ravel()
    return Result(flat, marginals, lower=flat, upper=flat, engine="planar")


def planar_log_partition(
    graph: FactorGraph, potentials: FloatArray, *, positions: ArrayLike | None = None, memory_limit: float = np.inf
) -> FloatArray:
    """`kac_ward` without marginals, which take twice as long as this."""
    parts = planar_parts(graph, positions, memory_limit)

    def work(row: int, k: int) -> float:
        return KacWard(parts[k][1], potentials[row, parts[k][0]]).log_z

    with blas_limit(1):
        return np.array(graph.workers.run(work, [(row, k) for row in range(len(potentials)) for k in range(len(parts))]))


_known: weakref.WeakKeyDictionary[FactorGraph, dict[Any, list[tuple[Any, PlanarIsing]]]] = weakref.WeakKeyDictionary()


def planar_parts(
    graph: FactorGraph, positions: ArrayLike | None = None, memory_limit: float = np.inf
) -> list[tuple[Any, PlanarIsing]]:
    """The entries and the model of every example of a graph, compiled once."""
    limit = check_real("memory_limit", memory_limit, minimum=0.0, strict=True, finite=False)
    key = None if positions is None else np.asarray(positions, dtype=np.float64).tobytes()
    if key not in _known.setdefault(graph, {}):
        if graph.n_examples == 1:
            found: list[tuple[Any, PlanarIsing]] = [(slice(None), PlanarIsing(graph, positions))]
        else:
            places = None if positions is None else check_positions(positions, graph.n_variables)
            found = [
                (part.index, PlanarIsing(part.graph, None if places is None else places[part.variables]))
                for part in each_example(graph)
            ]
        _known[graph] = {key: found}
    for _, model in _known[graph][key]:
        if model.memory > limit:
            raise TooLargeError(
                f"a planar Ising model of {model.layout.n_variables} variables needs {in_units(model.memory)}; memory_limit "
                f"is {in_units(limit)}. Raise it, or choose an approximate engine"
            )
        check_memory(f"a planar Ising model of {model.layout.n_variables} variables", model.memory, "Choose engine='trw'")
    return _known[graph][key]


class PlanarIsing:
    """A planar graph, its Kac-Ward matrix without weights, and the fronts of its elimination.

    Attributes
    ----------
    rows, columns : int arrays
        Half-edges that follow each other, numbered by the vertex they leave.
    phases : complex array
        Of half the angles between them.
    edges : int array
        The edge of every half-edge.
    memory : float
        Bytes for the sums of one set of potentials, about.
    """

    layout: PlanarLayout
    fronts: list[Front]

    def __init__(self, graph: FactorGraph, positions: ArrayLike | None = None) -> None:
        self.layout = layout = PlanarLayout(graph, positions)
        order, starts = layout.around
        size = 2 * layout.n_edges
        place = np.empty(size, np.int64)
        place[order] = np.arange(size)
        counts = (starts[1:] - starts[:-1])[layout.heads[order]]
        rows = np.repeat(np.arange(size), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        columns = np.repeat(starts[layout.heads[order]], counts) + within
        on = columns != place[layout.reverse[order[rows]]]
        self.rows: IntArray = rows[on]
        self.columns: IntArray = columns[on]
        self.edges: IntArray = order % max(layout.n_edges, 1)
        self.phases: Any = np.exp(0.5j * layout.turn(order[self.rows], order[self.columns]))
        diagonal = np.arange(size)
        both = np.concatenate([diagonal, self.rows]), np.concatenate([diagonal, self.columns])
        self.fronts = fronts(layout.adjacency(), layout.places, starts, *both) if size else []
        self.memory: float = 64.0 * sum(float(len(front.members)) ** 2 for front in self.fronts)


class KacWard:
    """The factored Kac-Ward matrix of one set of potentials; with `keep`, what `agreement_along` takes is kept."""

    log_z: float

    def __init__(self, model: PlanarIsing, potentials: FloatArray, keep: bool = False) -> None:
        J, constant = model.layout.couplings(potentials)
        size = np.abs(J)
        self.model, self.t = model, np.tanh(J)
        self.log_z = constant + model.layout.n_variables * np.log(2.0)
        self.log_z += float((size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)).sum())
        self._slopes = 1.0 / np.cosh(np.minimum(size, 350.0)) ** 2  # 1 - t^2, which would lose its digits
        self._steps: list[tuple[Any, Any, Any]] = []
        self._keep = keep
        self._known: dict[int, Any] = {}
        self.log_z += 0.5 * self._eliminate()

    def _front(self, front: Front, entries: Any, left: dict[int, Any]) -> Any:
        """The matrix of a front, from its own entries and what its children left."""
        F = np.zeros((len(front.members),) * 2, np.complex128)
        F[front.rows, front.columns] = entries[front.entries]
        for c in front.children:
            places = self.model.fronts[c].places
            F[places[:, None], places] += left.pop(c)
        return F

    def _entries(self, diagonal: float, weights: FloatArray) -> Any:
        """The entries of a matrix: the diagonal, then those of half-edges that follow others, by the edges of these."""
        model = self.model
        ahead = -weights[model.edges[model.rows]] * model.phases
        return np.concatenate([np.full(2 * len(self.t), diagonal, np.complex128), ahead])

    def _eliminate(self) -> float:
        """The logarithm of the determinant. Keeps what solving with the matrix takes, front by front."""
        total, entries = 0.0, self._entries(1.0, self.t)
        left: dict[int, Any] = {}
        for k, front in enumerate(self.model.fronts):
            p, F = front.pivots, self._front(front, entries, left)
            phase, size = np.linalg.slogdet(F[:p, :p])
            if not abs(phase - 1.0) < DIGITS:
                raise _lost()
            total += float(size)
            inverse = np.linalg.inv(F[:p, :p])
            after, before = inverse @ F[:p, p:], F[p:, :p] @ inverse
            left[k] = F[p:, p:] - F[p:, :p] @ after
            self._steps.append((inverse, after, before))
        return total

    def _inverse(self) -> Any:
        """The entries of the inverse where the transposed matrix has any (Takahashi's equations), in their order."""
        fronts = self.model.fronts
        out = np.zeros(2 * len(self.t) + len(self.model.rows), np.complex128)
        waiting = [len(front.children) for front in fronts]
        for k in range(len(fronts) - 1, -1, -1):
            front, (own, after, before) = fronts[k], self._steps[k]
            p, Z = front.pivots, np.empty((len(front.members),) * 2, np.complex128)
            if front.above >= 0:
                Z[p:, p:] = self._known[front.above][front.places[:, None], front.places]
                waiting[front.above] -= 1
                if not (waiting[front.above] or self._keep):
                    del self._known[front.above]
            Z[:p, p:] = -after @ Z[p:, p:]
            Z[p:, :p] = -Z[p:, p:] @ before
            Z[:p, :p] = own - after @ Z[p:, :p]
            out[front.entries] = Z[front.columns, front.rows]
            if front.children or self._keep:
                self._known[k] = Z
        return out

    def _ahead(self, inverse: Any) -> tuple[Any, FloatArray]:
        """Sums of phases times entries of the inverse, of each half-edge; and the means over both halves of an edge, of
        which one has the conjugate."""
        model, m = self.model, len(self.t)
        sums = np.zeros(2 * m, np.complex128)
        np.add.at(sums, model.rows, model.phases * inverse[2 * m :])
        return sums, np.asarray(0.5 * np.bincount(model.edges, weights=sums.real, minlength=m), dtype=np.float64)

    @cached_property
    def _ratios(self) -> FloatArray:
        inverse, m = self._inverse(), len(self.t)
        sums, ahead = self._ahead(inverse)
        product = inverse[: 2 * m] - self.t[self.model.edges] * sums  # the diagonal of the matrix times its inverse
        if not np.abs(product - 1.0).max(initial=0.0) < DIGITS:
            raise _lost()
        return ahead

    def agreement(self) -> FloatArray:
        """The mean of s_i s_j of every edge: the derivative of log Z."""
        return np.clip(self.t - self._slopes * self._ratios, -1.0, 1.0)

    def agreement_along(self, direction: FloatArray) -> FloatArray:
        """The derivative of `agreement` along a direction of the couplings: all steps, differentiated."""
        ratios, change = self._ratios, self._slopes * direction
        entries, fronts = self._entries(0.0, change), self.model.fronts
        left: dict[int, Any] = {}
        steps: list[Any] = []
        for k, front in enumerate(fronts):
            p, F = front.pivots, self._front(front, entries, left)
            inverse, after, before = self._steps[k]
            right, below = F[:p, p:] - F[:p, :p] @ after, F[p:, :p] - before @ F[:p, :p]
            left[k] = F[p:, p:] - F[p:, :p] @ after - before @ right
            steps.append((-inverse @ F[:p, :p] @ inverse, inverse @ right, below @ inverse))
        known: list[Any] = [None] * len(fronts)
        moved = np.zeros(len(entries), np.complex128)
        for k in range(len(fronts) - 1, -1, -1):
            front, p, Z = fronts[k], fronts[k].pivots, self._known[k]
            (_, after, before), (own, d_after, d_before) = self._steps[k], steps[k]
            D = np.empty_like(Z)
            if front.above >= 0:
                D[p:, p:] = known[front.above][front.places[:, None], front.places]
            D[:p, p:] = -d_after @ Z[p:, p:] - after @ D[p:, p:]
            D[p:, :p] = -D[p:, p:] @ before - Z[p:, p:] @ d_before
            D[:p, :p] = own - d_after @ Z[p:, :p] - after @ D[p:, :p]
            moved[front.entries] = D[front.columns, front.rows]
            known[k] = D
        return np.asarray(change * (1.0 + 2.0 * self.t * ratios) - self._slopes * self._ahead(moved)[1])


class PlanarCovariance:
    """The Hessian of log Z in the potentials, without fields: `EntryCovariance` by Kac and Ward, at any width."""

    def __init__(self, graph: FactorGraph, potentials: FloatArray, **options: Any) -> None:
        self.graph, self._parts = graph, planar_parts(graph, **options)
        with blas_limit(1):
            self._sums = graph.workers.run(lambda index, model: KacWard(model, potentials[index], keep=True), self._parts)

    def product(self, direction: FloatArray) -> FloatArray:
        """Covariances with the sum of the entries of `direction`, which has no fields, one for each entry."""
        out = np.zeros(self.graph.size)

        def work(k: int) -> None:
            (index, model), sums = self._parts[k], self._sums[k]
            dJ, _ = model.layout.couplings(direction[index])
            out[index] = model.layout.point(sums.agreement_along(dJ)) - model.layout.point(np.zeros(len(dJ)))

        with blas_limit(1):
            self.graph.workers.run(work, [(k,) for k in range(len(self._parts))])
        return out


def check_no_fields(graph: FactorGraph, matrix: Any, base: FloatArray | None, **options: Any) -> None:
    """Refuse weights that give fields: `matrix` is the linear map from weights to potentials."""
    for index, model in planar_parts(graph, **options):
        if base is not None:
            model.layout.couplings(base[index])
        fields = sp.coo_array(model.layout.field_matrix @ matrix[index])
        wrong = np.flatnonzero(np.abs(fields.data) > 1e-9 * (1.0 + np.abs(matrix).max()))
        if len(wrong):
            first = wrong[np.lexsort((fields.row[wrong], fields.col[wrong]))[0]]
            v, weight = fields.row[first], fields.col[first]
            raise ValueError(
                f"engine='planar' takes models without fields, but weight {weight} gives variable {v} one. Take "
                "MarkovNetwork.ising(graph, fields=False), or factors of pairs only with statistics 'spins' or 'agreement'; "
                "with fields, choose another engine"
            )


def _lost() -> NumericalError:
    return NumericalError(
        "the Kac-Ward matrix is singular to double precision: couplings are too strong, and contradict each other too much. "
        "Scale potentials down (in learning, raise l2), or choose engine='exact' or 'trw'"
    )

"""Answers of a fitted `MatchingCRF`: best matchings, probabilities of edges, draws, log-probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.random import generator
from ...core.results import FloatArray, IntArray
from ...core.types import MatchingLike, RandomState
from ...core.validation import check_count
from ...core.warn import one_warning
from ...estimators.data import ListInput
from ...estimators.loaded import RUN, is_fitted
from ...estimators.trained import Trained
from ...report.explanation import Explanation
from ..data import Batch, Layout, Reading, read_examples, read_known
from ..features import Attribute, parameter_names
from .checks import check_fitted, simplest
from .explanation import explain_matching

#: What users bring: examples, and who is matched with whom in each.
Examples = Sequence[MatchingLike] | NDArray[Any]
Matchings = Sequence[ArrayLike] | NDArray[Any]
#: What log Z is.
LIKELIHOODS = ("auto", "full", "bethe")


class MatchingModel(ListInput, Trained):
    """What a model of matchings knows once it has parameters."""

    allow_unmatched: bool
    b: int | tuple[int, int]
    rho: float | tuple[float, float]
    bipartite: bool
    forbidden: ArrayLike | Callable[[Any], ArrayLike | None] | None
    inference_tol: float | None
    inference_max_iter: int
    n_jobs: int | None
    perfect: bool | None

    parameters_: FloatArray
    row_parameters_: FloatArray
    column_parameters_: FloatArray
    attributes_: tuple[Attribute, ...]
    likelihood_: str
    kind_: str
    gap_: float

    @property
    def _theta(self) -> FloatArray:
        return np.concatenate([self.parameters_.ravel(), self.row_parameters_, self.column_parameters_])

    @property
    def _layout(self) -> Layout:
        alone = len(self.row_parameters_), len(self.column_parameters_)
        return Layout(self.kind_, self.parameters_.shape, alone, getattr(self, "attributes_", ()))

    @property
    def parameter_names_(self) -> list[str]:
        check_is_fitted(self)
        return self._names(self._layout)

    def _names(self, layout: Layout) -> list[str]:
        """A name for each parameter of a layout."""
        alone = ("row alone", "column alone") if self.bipartite else ("vertex alone", "")
        shapes = [(name, (count,)) for name, count in zip(alone, layout.alone, strict=True)]
        first = parameter_names(layout.attributes) if layout.kind == "attributes" else []
        named = shapes if first else [(layout.kind, layout.shape), *shapes]
        return first + [f"{name}{list(place)}" for name, shape in named for place in np.ndindex(*shape)]

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        fitted = ("parameters_", "row_parameters_", "column_parameters_", "likelihood_", "kind_", "gap_")
        if is_fitted(self, *fitted, *RUN):
            check_fitted(self, LIKELIHOODS[1:])

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if callable(self.forbidden):
            raise TypeError(
                "forbidden is a function, which a model file cannot hold: save a model with forbidden=None "
                "(set_params(forbidden=None)), and give the function again once it is loaded, by set_params(forbidden=...)"
            )
        return super()._pack()

    def _read(self, X: Examples, attributes: tuple[Attribute, ...] | None = None) -> tuple[list[Batch], Layout]:
        unmatched = self.allow_unmatched if self.perfect is None else not self.perfect
        return read_examples(
            X, Reading(self.bipartite, unmatched, self.n_jobs, simplest(self.b), attributes, self.forbidden)
        )

    def _weights(self, X: Examples) -> list[tuple[Batch, FloatArray]]:
        """New examples by graph, and the weights of their edges."""
        batches, _ = self._read_new(X)
        theta = self._theta
        return [(batch, batch.weights(theta)) for batch in batches]

    def _read_new(self, X: Examples) -> tuple[list[Batch], Layout]:
        """New examples by graph, in the layout of those in training."""
        check_is_fitted(self)
        batches, layout = self._read(X, getattr(self, "attributes_", None))
        if layout != self._layout:
            raise ValueError(f"X must have {self._layout.describe()}, got {layout.describe()}")
        return batches, layout

    def _infer(self, batch: Batch, W: FloatArray, rho: float | None = None) -> Any:
        """log Z and marginals by the likelihood of the fit."""
        if self.likelihood_ == "full":
            batch.structure.check_small(
                "The model was fitted by exact sums, as is asked for here: fit it by likelihood='bethe'"
            )
            return batch.structure.free_energy(W)
        options: dict[str, Any] = {"rho": simplest(self.rho) if rho is None else rho, "max_iter": self.inference_max_iter}
        if self.inference_tol is not None:
            options["tol"] = self.inference_tol * batch.structure.n_vertices
        return batch.structure.free_energy(W, **options)

    def _in_order(self, parts: Sequence[tuple[Batch, Any]]) -> list[Any]:
        """An entry for each example, in the order of the examples."""
        out = {place: row for batch, rows in parts for place, row in zip(batch.places, rows, strict=True)}
        return [out[place] for place in range(len(out))]

    def predict(self, X: Examples) -> list[IntArray]:
        """The most probable matching of each example: for each row its column, for each vertex its partner; -1 for none.
        Where `b` is above one, tables of zeros and ones, as y."""
        return self._in_order([(batch, batch.outputs(batch.structure.best(W))) for batch, W in self._weights(X)])

    @one_warning()
    def predict_marginals(self, X: Examples) -> list[FloatArray]:
        """The probability of each edge: a matrix, symmetric if not bipartite, or a vector where edges were given.

        What a row or column lacks to one is the probability that it stays alone (to `b`, the number of edges it lacks).
        """
        found = []
        for batch, W in self._weights(X):
            found.append((batch, batch.matrices(self._infer(batch, W).marginals)))
        return self._in_order(found)

    def predict_kbest(self, X: Examples, k: int) -> list[list[tuple[IntArray, float]]]:
        """Of each example, at most k matchings, most probable first, with their log-probabilities.

        By Murty's algorithm; where `b` is above one by Lawler's, whose parts are edges.
        """
        check_count("k", k, minimum=1)
        found = []
        for batch, W in self._weights(X):
            lists = []
            for row, log_z in zip(W, self._infer(batch, W).log_z.tolist(), strict=True):
                ((matchings, scores),) = batch.structure.kbest(self._given(batch, row), k)
                pairs = zip(batch.outputs(matchings), scores.tolist(), strict=True)
                lists.append([(y, score - log_z) for y, score in pairs])
            found.append((batch, lists))
        return self._in_order(found)

    @one_warning()
    def explain(self, x: MatchingLike) -> Explanation:
        """Which features pushed which partner of each row (or vertex) of an example. ``print`` the answer.

        A push is what a feature adds to the weight of the edge to the predicted partner, less what it adds to that of the
        runner-up, the most probable other one (None for staying alone). Where `b` is above one, it is what a feature adds to
        the weight of an edge that is in the predicted set, and takes from one that is not.
        """
        ((batch, W),) = self._weights([x])
        shares = [batch.features.forward(part)[0] for part in np.diag(self._theta)]
        P, found = self._infer(batch, W).marginals[0], batch.structure.best(W)
        return explain_matching(batch, P, np.asarray(found)[0], list(zip(self.parameter_names_, shares, strict=True)))

    def kbest(self, X: Examples, k: int) -> list[list[tuple[IntArray, float]]]:
        """The same as `predict_kbest`, under its older name."""
        return self.predict_kbest(X, k)

    def sample(self, X: Examples, size: int = 1, random_state: RandomState = None) -> list[IntArray]:
        """`size` matchings of each example, arrays (size, rows): independent draws where exact sums are within reach (about
        20 vertices on the smaller side), else by a Markov chain. Where `b` is above one, tables (size, n, m), by
        independent draws only."""
        parts, random = self._weights(X), generator(random_state)
        rows = {place: (batch, W[k]) for batch, W in parts for k, place in enumerate(batch.places)}
        ordered = (rows[place] for place in range(len(rows)))
        return [batch.outputs(batch.structure.sample(self._given(batch, row), size, random)) for batch, row in ordered]

    def _given(self, batch: Batch, row: FloatArray) -> FloatArray:
        """The weights of one example as potentials of its structure."""
        structure = batch.structure
        return structure.as_given(row[None])[0] if structure.left else row

    def score(self, X: Examples, y: Matchings) -> float:
        """The share of rows (or vertices) that `predict` gives the right partner, or rightly none. Where `b` is above one,
        the share of edges that it rightly has or has not, those that are forbidden left out."""
        parts = self._weights(X)
        right = total = 0
        for (batch, W), known in zip(parts, read_known(y, [batch for batch, _ in parts]), strict=True):
            found, same = batch.structure.best(W), batch.right(W, known.matchings)
            same = known.right(found, same) if known.evidence is not None else same
            right, total = right + int(same.sum()), total + same.size
        if not total:
            raise ValueError("X has no rows at all (or nothing to decide), and a score needs one")
        return right / total

    @overload
    def log_likelihood(self, X: Examples, y: Matchings, bounds: Literal[False] = False) -> FloatArray: ...
    @overload
    def log_likelihood(
        self, X: Examples, y: Matchings, bounds: Literal[True]
    ) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    @one_warning()
    def log_likelihood(
        self, X: Examples, y: Matchings, bounds: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray, FloatArray]:
        """log p of each matching, with log Z_rho for log Z if `likelihood_` is ``"bethe"``; with `bounds` also numbers below
        and above the true one, which are infinite where none are known: ``(value, lower, upper)``."""
        parts = self._weights(X)
        found = []
        for (batch, W), known in zip(parts, read_known(y, [batch for batch, _ in parts]), strict=True):
            result = self._infer(batch, W)
            score = batch.structure.score_of(W, known.matchings)
            if known.evidence is not None:
                inner, excess = known.evidence.weights(W)
                score = np.array(score)
                score[known.evidence.rows] = self._infer(batch, inner).log_z - excess
            lower, upper = np.asarray(result.lower), np.asarray(result.upper)
            if bounds and not result.exact and simplest(self.rho) != 0.5:
                upper = np.minimum(upper, np.asarray(self._infer(batch, W, rho=0.5).upper))
            found.append((batch, np.column_stack([score - result.log_z, score - upper, score - lower])))
        values = np.array(self._in_order(found)).T
        return (values[0], values[1], values[2]) if bounds else values[0]

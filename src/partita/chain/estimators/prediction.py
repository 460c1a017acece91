"""What a fitted chain says about new sequences and about itself."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.simplex import normalized
from ...core.memory import check_memory
from ...core.random import generator
from ...core.results import FloatArray
from ...core.validation import check_choice, check_count, check_level, check_weights
from ...estimators.labels import Labels, split
from ...objectives.information import warn_of_many_weights
from ...report.explanation import Explanation, PositionExplanation, Push
from ...report.progress import CountPrinter
from ...report.tables import CoefficientTable
from ..data.forbidden import mask_scores
from ..data.sequences import labels_of, read_sequences
from ..objective.information import EXACT, chain_errors
from ..structure.chain import Chain
from .weights import ChainWeightsMixin, Tagging


def log_probabilities(chain: Chain, scores: tuple[FloatArray, FloatArray], labels: Labels) -> FloatArray:
    """Log-probability of each sequence's labelling, or of all those that its sets allow."""
    if labels.sets is None:
        inside = chain.score(scores, labels.codes)
    else:
        inside = chain.log_partition((mask_scores(scores[0], labels), scores[1]))
    return inside - chain.log_partition(scores)


def _check_answer(what: str, count: int, tagging: Tagging, cure: str) -> None:
    """Lists of so many labellings of every sequence, before they are made."""
    positions, sequences = tagging.data.X.shape[0], len(tagging.full)
    n_bytes = float(count) * (24.0 * positions + 100.0 * sequences)
    check_memory(f"{what} of {sequences} sequences with {positions} positions", n_bytes, cure)


class LabellingMixin(ChainWeightsMixin):
    """Labels of positions and their probabilities, for models with a method `predict`."""

    def _label_marginals(self, tagging: Tagging) -> FloatArray:
        """The probability of every label at every position."""
        return np.asarray(tagging.chain.infer(tagging.potentials).marginals[0])

    def _labels_as_states(self, labels: Labels) -> Labels:
        """What labels say of the states of the chain, which are the labels themselves here."""
        return labels

    def predict_single(self: Any, sequence: Any) -> list[Any]:
        """The most probable labelling of one sequence."""
        return self.predict([sequence])[0]  # type: ignore[no-any-return]

    def predict_marginals(self: Any, X: Any, lengths: Any = None, as_array: bool = False) -> list[Any]:
        """The probability of every label at every position.

        For each sequence a list of dicts ``{label: probability}``; with `as_array`, an array of shape (positions, labels) in
        the order of `classes_`.
        """
        tagging = Tagging(self, X, lengths)
        P = np.zeros((0, len(tagging.labels)))
        if tagging.chain is not None:
            P = normalized(self._label_marginals(tagging))
        if as_array:
            return split(P, tagging.data.offsets)
        return split([dict(zip(tagging.labels, row, strict=True)) for row in P.tolist()], tagging.data.offsets)

    def predict_marginals_single(self: Any, sequence: Any) -> list[dict[Any, float]]:
        """The probability of every label at every position of one sequence."""
        return self.predict_marginals([sequence])[0]  # type: ignore[no-any-return]

    def predict_log_proba(self: Any, X: Any, y: Any = None, lengths: Any = None) -> FloatArray:
        """Log-probability of the given labelling of each sequence (of all that fit, where labels are None or sets)."""
        tagging = Tagging(self, X, lengths)
        labels = self._labels_as_states(labels_of(tagging.data, y, self.classes_))
        if tagging.chain is None:
            return np.zeros(len(tagging.full))
        return tagging.spread(log_probabilities(tagging.chain, tagging.potentials, labels))

    def predict_proba(self: Any, X: Any, y: Any = None, lengths: Any = None) -> FloatArray:
        """Probability of the given labelling of each sequence. For probabilities of labels see `predict_marginals`."""
        return np.asarray(np.exp(self.predict_log_proba(X, y, lengths)))

    def log_likelihood(self: Any, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Sum of the log-probabilities of the given labellings."""
        return float(self.predict_log_proba(X, y, lengths).sum())

    def score(self: Any, X: Any, y: Any = None, lengths: Any = None, sample_weight: Any = None) -> float:
        """The share of right labels, one of the set where y has a set; positions where y is None do not count.

        `sample_weight` is by sequence. For other scores see `partita.metrics`.
        """
        data = read_sequences(X, lengths, self._vectorizer, fit=False, numeric=self._numeric)
        labels, weights = labels_of(data, y), check_weights("sample_weight", sample_weight, len(data))
        found = list(itertools.chain.from_iterable(self.predict(data)))
        return labels.share_right(found, np.repeat(weights, data.lengths))


class ChainPredictionMixin(LabellingMixin):
    """Predictions, probabilities, weights by name, explanations and standard errors of a chain."""

    def predict(self: Any, X: Any, lengths: Any = None) -> list[list[Any]]:
        """The most probable labelling of each sequence."""
        tagging = Tagging(self, X, lengths)
        if tagging.chain is None:
            return [[] for _ in tagging.full]
        return tagging.decode(tagging.chain.argmax(tagging.potentials)[0])

    def predict_kbest(self: Any, X: Any, k: int, lengths: Any = None) -> list[list[tuple[list[Any], float]]]:
        """The k most probable labellings of each sequence, best first, each with its log-probability.

        Fewer than k where a sequence has fewer.
        """
        check_count("k", k, minimum=1)
        tagging = Tagging(self, X, lengths)
        # No sequence has more labellings than that.
        k = min(k, len(tagging.labels) ** min(int(tagging.data.lengths.max(initial=1)), 64))
        _check_answer(f"k={k} best labellings", k, tagging, "Lower k, or give fewer sequences at a time")
        out: list[list[tuple[list[Any], float]]] = [[] if full else [([], 0.0)] for full in tagging.full]
        if tagging.chain is None:
            return out
        Y, scores = tagging.chain.kbest(tagging.potentials, k)
        scores = scores - tagging.chain.log_partition(tagging.potentials)
        where = np.flatnonzero(tagging.full)
        for codes, values in zip(Y, scores, strict=True):
            labellings = tagging.decode(codes)
            for i, value in zip(where.tolist(), values.tolist(), strict=True):
                if value > -np.inf:
                    out[i].append((labellings[i], value))
        return out

    def sample(self: Any, X: Any, size: int = 1, random_state: Any = None, lengths: Any = None) -> list[list[list[Any]]]:
        """Labellings drawn at random by their probability: for each sequence, a list of `size` of them."""
        check_count("size", size)
        tagging = Tagging(self, X, lengths)
        _check_answer(f"size={size} samples", size, tagging, "Draw fewer at a time")
        if tagging.chain is None:
            return [[[] for _ in range(size)] for _ in tagging.full]
        seed = self.random_state if random_state is None else random_state
        drawn = [tagging.decode(codes) for codes in tagging.chain.sample(tagging.potentials, size, seed)]
        return [[labellings[i] for labellings in drawn] for i in range(len(tagging.full))]

    def explain(self: Any, sequence: Any, position: int | None = None) -> Explanation:
        """Which features pushed which label: for each position, or one.

        A feature's push is what it adds to the score of the predicted label, less what it adds to that of the runner-up (the
        most probable other label there), the neighbours' labels being as predicted. ``print`` the answer to read it.
        """
        tagging = Tagging(self, [sequence], None)
        length = int(tagging.data.offsets[-1])
        if position is not None and not -length <= check_count("position", position, minimum=-length) < length:
            raise ValueError(f"position must be below the length of the sequence, {length}; got {position}")
        if not length:
            return Explanation(())
        codes = tagging.chain.argmax(tagging.potentials)[0]
        P = tagging.chain.infer(tagging.potentials).marginals[0]
        chosen = range(length) if position is None else [position % length]
        return Explanation(tuple(self._explain(tagging, codes, P[t], t) for t in chosen))

    def _explain(self: Any, tagging: Tagging, codes: Any, p: FloatArray, t: int) -> PositionExplanation:
        labels, layout, X = tagging.labels, self._layout, tagging.data.X
        best = int(codes[t])
        others = np.where(np.arange(len(p)) == best, -1.0, p)
        second = int(others.argmax()) if len(p) > 1 else None

        def push(row: Any) -> float:
            return float(row[best] - (0.0 if second is None else row[second]))

        pushes = []
        for q in range(X.indptr[t], X.indptr[t + 1]):
            row, j = X.data[q] * self._state_weights.row(X.indices[q]), int(X.indices[q])
            plain = layout.names is None and j < layout.n_columns
            pushes.append((f"attribute {j}" if plain else str(layout.feature(j)), push(row)))
        A = tagging.potentials[1]
        if t > 0:
            pushes.append((f"after {labels[codes[t - 1]]}", push(A[codes[t - 1]])))
        if t + 1 < len(codes):
            pushes.append((f"before {labels[codes[t + 1]]}", push(A[:, codes[t + 1]])))
        _, _, start, end = layout.parts(self.parameters_)
        if layout.start_end and t == 0:
            pushes.append(("first", push(start)))
        if layout.start_end and t + 1 == len(codes):
            pushes.append(("last", push(end)))
        pushes = sorted((entry for entry in pushes if entry[1] != 0.0), key=lambda entry: -abs(entry[1]))
        return PositionExplanation(
            position=t,
            label=labels[best],
            runner_up=None if second is None else labels[second],
            probability=float(p[best]),
            runner_up_probability=0.0 if second is None else float(p[second]),
            pushes=tuple(Push(*entry) for entry in pushes),
        )

    def standard_errors(
        self: Any, method: str = "sandwich", draws: int = 100, random_state: Any = None
    ) -> dict[str, dict[Any, float]]:
        """Standard errors of the weights, from the training data (which are kept by reference, not copied).

        Models of up to 2000 weights have exact ones. Those of larger models, with l2 > 0, come from random draws, on labels
        that are not too unlikely: their relative error is about ``1 / sqrt(2 draws)``, and a few percent.

        Parameters
        ----------
        method : {"sandwich", "information"}
            The sandwich, which stays right when the model is wrong, and for composite likelihoods; or the inverse of the
            observed information (penalty included).
        draws : int
            An interrupt keeps those done so far.
        random_state : None, int or generator
            Of the draws; None means that of the model.

        Returns
        -------
        dict
            "state", "transition", "start" and "end", each a dict with the keys of `state_features_` and so on.
        """
        errors = self._standard_errors(method, draws, random_state)
        return dict(zip(("state", "transition", "start", "end"), self._layout.dicts(errors), strict=True))

    def summary(
        self: Any,
        level: float = 0.95,
        method: str = "sandwich",
        draws: int = 100,
        random_state: Any = None,
        top: int | None = None,
    ) -> CoefficientTable:
        """Estimate, standard error, z, p and confidence interval of every weight, as a table to print.

        Parameters are as in `standard_errors`; `top` keeps only so many rows, those with the largest absolute z.
        """
        check_level(level)
        errors = self._standard_errors(method, draws, random_state)
        state, transition, start, end = self._named_weights
        names = [f"{attribute}: {label}" for attribute, label in state]
        names += [f"{first} -> {second}" for first, second in transition]
        names += [*(f"first: {label}" for label in start), *(f"last: {label}" for label in end)]
        how = method if len(errors) <= EXACT else f"{method} ({draws} draws)"
        title = f"Chain CRF, l2 = {self.l2:g}, {how} standard errors, {self.status_.name.lower()}"
        table = CoefficientTable.of(names, self.parameters_, errors, level, title)
        return table if top is None else table.top(top)

    def _standard_errors(self: Any, method: str, draws: int, random_state: Any) -> FloatArray:
        """Of `parameters_`, in their order."""
        check_is_fitted(self, "parameters_")
        check_choice("method", method, ("information", "sandwich"))
        check_count("draws", draws, minimum=1)
        if self.precision_ is None:
            raise ValueError(
                "standard errors are not defined with l1 > 0: the estimates are biased towards zero, and exact zeros have "
                "no normal distribution; refit with l1=0, or resample"
            )
        if self.constraints:
            raise ValueError(
                "standard errors are not available with constraints: estimates on the edge of what is allowed are not "
                "asymptotically normal; drop the constraints, or bootstrap"
            )
        if not hasattr(self, "_objective"):
            raise ValueError(
                "standard errors need the training data, which copies, files and partial_fit do not keep: fit again"
            )
        if self._objective.partial is not None:
            raise ValueError("standard errors are not available for partial labels: the information that is missing counts")
        random = generator(self.random_state if random_state is None else random_state)
        progress = CountPrinter("standard errors", draws) if self.verbose else None
        inputs = self._inputs
        point = self._objective.at(inputs.to_solver(self._layout) @ self.parameters_)
        change = inputs.to_user(self._layout) if inputs.intercept else None
        objective = point.objective
        warn_of_many_weights(
            *(objective.size, objective.n_examples, "sequences", self.l2, "a higher min_frequency, fewer attributes"),
            detail=f" ({objective.features.n_positions} positions)",
            effective=float((1.0 - objective.penalty / point.diagonal).sum()),
        )
        return chain_errors(point, method, draws, random, progress, change)

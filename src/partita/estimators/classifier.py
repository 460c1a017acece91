"""What classifiers share that know the probability of every class: predictions, draws, scores, labels known in part."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin

from ..core.arrays.simplex import normalized
from ..core.memory import check_memory, check_sample
from ..core.random import generator
from ..core.results import FloatArray
from ..core.types import LabelArray, Labels, RandomState, SampleWeight
from ..core.validation import check_count, check_weights
from .class_sets import encode_examples, has_sets


def ranked_classes(log_p: FloatArray, classes: LabelArray, k: int) -> list[list[tuple[Any, float]]]:
    """For each row of log-probabilities at most k classes that are possible, best first, each with its log-probability."""
    check_count("k", k, minimum=1)
    labels = classes.tolist()
    check_memory(f"the k={k} best of {len(labels)} classes", 200 * len(log_p) * min(k, len(labels)), "Lower k")
    order = np.argsort(-log_p, axis=1, kind="stable")[:, :k]
    ranked = np.take_along_axis(log_p, order, axis=1)
    return [
        [(labels[c], value) for c, value in zip(codes, values, strict=True) if value > -np.inf]
        for codes, values in zip(order.tolist(), ranked.tolist(), strict=True)
    ]


def drawn_classes(P: FloatArray, classes: LabelArray, size: int, random: np.random.Generator) -> NDArray[Any]:
    """`size` classes for each row of probabilities, (n_samples, size)."""
    size = check_sample(size, len(P))
    steps = np.cumsum(P, axis=1)
    steps[steps >= steps[:, -1:]] = np.inf  # rounding must not draw the last class where it is impossible
    uniform = random.random((len(P), size))
    codes = [np.searchsorted(row, draws, side="right") for row, draws in zip(steps, uniform, strict=True)]
    return np.asarray(classes[np.array(codes, dtype=np.intp).reshape(len(P), size)])


class ClassProbabilities(ClassifierMixin):
    """A classifier from `predict_log_proba`. Its other arguments are also those of all methods."""

    classes_: LabelArray
    random_state: RandomState
    #: What an example is called in messages.
    EXAMPLE = "example"

    @abstractmethod
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log-probabilities, (n_samples, n_classes), in the order of `classes_`."""

    def predict_proba(self, X: Any, **more: Any) -> FloatArray:
        """Probabilities, (n_samples, n_classes), in the order of `classes_`."""
        return normalized(np.exp(self.predict_log_proba(X, **more)))

    def predict_marginals(self, X: Any, **more: Any) -> FloatArray:
        """The same as `predict_proba`: the name that all Partita estimators share."""
        return self.predict_proba(X, **more)

    def predict(self, X: Any, **more: Any) -> LabelArray:
        """The most probable class."""
        best = self.predict_log_proba(X, **more).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_kbest(self, X: Any, k: int, **more: Any) -> list[list[tuple[Any, float]]]:
        """The k most probable classes of each example, best first, each with its log-probability.

        Fewer than k where there are fewer that are possible.
        """
        return ranked_classes(self.predict_log_proba(X, **more), self.classes_, k)

    def sample(self, X: Any, size: int = 1, random_state: RandomState = None, **more: Any) -> NDArray[Any]:
        """Classes drawn at random by their probability, (n_samples, size)."""
        random = generator(self.random_state if random_state is None else random_state)
        return drawn_classes(self.predict_proba(X, **more), self.classes_, size, random)

    def log_likelihood(self, X: Any, y: Labels, **more: Any) -> FloatArray:
        """log p(y | x) of each example: of all that its set allows, where y has a set; 0 where y is None."""
        log_p = self.predict_log_proba(X, **more)
        labels = encode_examples(y, len(log_p), self.EXAMPLE, self.classes_)
        if labels.sets is None:
            return np.asarray(log_p[np.arange(len(log_p)), labels.codes])
        return np.asarray(np.minimum(logsumexp(np.where(labels.allowed(), log_p, -np.inf), axis=1), 0.0))

    def score(self, X: Any, y: Labels, sample_weight: SampleWeight = None, **more: Any) -> float:
        """The share of right classes, one of the set where y has a set; examples where y is None do not count."""
        if not has_sets(y) and not more:
            return float(super().score(X, y, sample_weight))
        found = self.predict(X, **more)
        weights = check_weights("sample_weight", sample_weight, len(found))
        return encode_examples(y, len(found), self.EXAMPLE).share_right(found.tolist(), weights)

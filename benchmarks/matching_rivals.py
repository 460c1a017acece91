"""Structured perceptron and structured SVM: learning with best matchings, without probabilities."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from partita.matching.objective.likelihood import Group


def wrong(groups: Sequence[Group], theta: np.ndarray) -> np.ndarray:
    """For each example the share of edges of its matching that are not in the best one."""
    found = []
    for group in groups:
        y = group.structure.indicators(group.structure.best(group.features.forward(theta)))
        found.append(1.0 - (y * group.observed).sum(1) / group.observed.sum(1))
    return np.concatenate(found)


def _examples(groups: Sequence[Group]) -> list[tuple[Any, Any, np.ndarray]]:
    """The structure, the features and the matching of each example."""
    return [(g.structure, g.features.example(b), g.observed[b]) for g in groups for b in range(len(g.observed))]


def _missed(structure: Any, features: Any, truth: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the best matching, and the features of the true one minus its features."""
    y = structure.indicators(structure.best(weights))[0]
    return y, features.adjoint((truth - y)[None])


def perceptron(groups: Sequence[Group], passes: Iterable[int], seed: int = 0) -> dict[int, np.ndarray]:
    """Means of all weights of the structured perceptron, after some numbers of passes over the shuffled examples."""
    rng, examples, wanted = np.random.default_rng(seed), _examples(groups), sorted(passes)
    theta, total, out, steps = np.zeros(groups[0].features.size), np.zeros(groups[0].features.size), {}, 0
    for done in range(1, wanted[-1] + 1):
        for m in rng.permutation(len(examples)):
            structure, features, truth = examples[m]
            theta = theta + _missed(structure, features, truth, features.forward(theta))[1]
            total, steps = total + theta, steps + 1
        if done in wanted:
            out[done] = total / steps
    return out


def structured_svm(
    groups: Sequence[Group], l2: float, tol: float = 1e-3, passes: int = 1000, seed: int = 0
) -> tuple[np.ndarray, float]:
    """Minimise ``l2 / 2 ||theta||^2 + mean_m max_y [loss(y, y_m) - <theta, f(y_m) - f(y)>]``, by block Frank-Wolfe.

    The loss is the share of wrong edges. Steps are the best ones; the mean favours late weights. Ends when the duality gap
    over one pass is at most `tol`. Returns the weights and that gap.
    """
    rng, examples = np.random.default_rng(seed), _examples(groups)
    M, size = len(examples), groups[0].features.size
    parts, losses = np.zeros((M, size)), np.zeros(M)
    theta, mean, steps, gap = np.zeros(size), np.zeros(size), 0, np.inf
    for _ in range(passes):
        gap = 0.0
        for m in rng.permutation(M):
            structure, features, truth = examples[m]
            price = (1.0 - truth) / truth.sum()
            y, missed = _missed(structure, features, truth, features.forward(theta) + price)
            toward, loss = missed / (l2 * M), float(price @ y) / M
            step = parts[m] - toward
            ascent = l2 * float(step @ theta) - losses[m] + loss
            gap += ascent
            length = l2 * float(step @ step)
            gamma = float(np.clip(ascent / length, 0.0, 1.0)) if length > 0.0 else 1.0
            theta, parts[m] = theta - gamma * step, parts[m] - gamma * step
            losses[m] += gamma * (loss - losses[m])
            mean += 2.0 / (steps + 2.0) * (theta - mean)
            steps += 1
        if gap <= tol:
            break
    return mean, gap

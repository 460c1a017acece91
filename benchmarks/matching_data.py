"""Data of the matching benchmarks: points on a toy house and a toy hotel, and made-up students who choose roommates."""

from dataclasses import dataclass

import numpy as np
from datasets import data_directory

from partita.matching.features import Attribute, AttributePairs, EdgeFeatures, Side
from partita.matching.objective.likelihood import Group
from partita.structures import BipartiteMatching, Matching

BASELINES = tuple(range(0, 100, 10))
PARTS = ("train", "validate", "test")
#: Levels of the answers of a questionnaire: two questions with two, twelve with five.
LEVELS = (2, 2, *[5] * 12)


def shape_contexts(points: np.ndarray) -> np.ndarray:
    """How many other points lie in each of 5 x 12 cells around every point, (frames, points, 60).

    Rings end at 1/8, 1/4, 1/2, 1 and 2 mean distances; points beyond do not count. On the house this differs from the
    published counts in 0.4 % of the cells, by points on a border.
    """
    to = points[:, :, None] - points[:, None]
    distance = np.hypot(to[..., 0], to[..., 1])
    ring = np.searchsorted(np.geomspace(0.125, 2.0, 5), distance / distance.mean(axis=(1, 2), keepdims=True), "right")
    sector = np.floor(np.arctan2(to[..., 1], to[..., 0]) % (2.0 * np.pi) * (6.0 / np.pi)).astype(int) % 12
    frame, i, j = np.nonzero((ring < 5) & ~np.eye(points.shape[1], dtype=bool))
    out = np.zeros((*points.shape[:2], 60))
    np.add.at(out, (frame, i, 12 * ring[frame, i, j] + sector[frame, i, j]), 1.0)
    return out


@dataclass(frozen=True)
class Pairs:
    """Pairs of frames: features X (pairs, 60, 30, 30), and for each point of the first its column in the second."""

    X: np.ndarray
    y: np.ndarray

    def groups(self) -> list[Group]:
        """The same for objectives."""
        count, size, n = self.X.shape[:3]
        features = EdgeFeatures(self.X.transpose(1, 0, 2, 3).reshape(size, count, n * n))
        structure = BipartiteMatching(n)
        return [Group(structure, features, structure.indicators(self.y), np.ones(count))]


def contexts(name: str) -> np.ndarray:
    """Shape contexts of the house or the hotel, (frames, 30, 60); point j is the same in every frame.

    Those of the house are the published ones, those of the hotel are counted from its points.
    """
    with np.load(data_directory() / "cmu_house_hotel" / f"{name}.npz") as file:
        return file["shape_context"].astype(float) if "shape_context" in file else shape_contexts(file["points"])


def frame_pairs(contexts: np.ndarray, baseline: int, part: str) -> Pairs:
    """Pairs of frames i and i + baseline, with minus the squared difference of every cell as features.

    A pair is for training, validation or tests as i mod 3 says; the published lists of the house obey that rule too. Points
    of the second frame are shuffled, so that the identity, which solvers return for ties, is no better than a guess.
    """
    first = np.arange(PARTS.index(part), len(contexts) - baseline, 3)
    rng = np.random.default_rng(baseline)
    order = rng.permuted(np.tile(np.arange(contexts.shape[1]), (len(first), 1)), axis=1)
    a, b = contexts[first], contexts[first[:, None] + baseline, order]
    X = -((a.transpose(0, 2, 1)[:, :, :, None] - b.transpose(0, 2, 1)[:, :, None, :]) ** 2)
    return Pairs(X, np.argsort(order, axis=1))


#: For each question the absolute difference of the two answers, and an indicator of each pair of answers in any order.
QUESTIONS = tuple(Attribute(f"question {k}", True, tuple(range(levels))) for k, levels in enumerate(LEVELS))


@dataclass(frozen=True)
class Year:
    """Students of one year: one-hot answers (n, 64), and everybody's roommate."""

    answers: np.ndarray
    partners: np.ndarray


def questionnaire_truth(rng: np.random.Generator) -> np.ndarray:
    """Weights of the 200 features: distances are disliked, some more than others, and every pair of answers counts a little.

    The sizes are such that distances alone rank pairs about as well as the paper's constant weights do.
    """
    pairs = sum(levels * (levels + 1) // 2 for levels in LEVELS)
    return np.concatenate([-0.25 * rng.random(len(LEVELS)), 0.17 * rng.standard_normal(pairs)])


def roommates(n: int, theta: np.ndarray, rng: np.random.Generator) -> Year:
    """Students whose answers are correlated through two traits, and a matching drawn from the model with weights theta."""
    traits = rng.standard_normal((n, 2)) @ rng.standard_normal((2, len(LEVELS))) * 0.5
    latent = traits + rng.standard_normal((n, len(LEVELS)))
    answers = np.zeros((n, sum(LEVELS)))
    first = 0
    for question, levels in enumerate(LEVELS):
        cuts = np.quantile(latent[:, question], np.arange(1, levels) / levels)
        answers[np.arange(n), first + np.searchsorted(cuts, latent[:, question])] = 1.0
        first += levels
    graph = Matching(n)
    W = attribute_features([answers], graph).forward(theta)[0]
    return Year(answers, graph.sample(W, 1, rng, burn_in=200)[0])


def attribute_features(answers: list[np.ndarray], graph: Matching) -> AttributePairs:
    """The 200 features of all pairs of students, for years with the same number of them, given one-hot answers."""
    cuts = np.cumsum(LEVELS)[:-1]
    chosen = [np.array([part.argmax(1) for part in np.split(year, cuts, axis=1)]) for year in answers]
    sides = [Side(levels, levels.astype(float)) for levels in chosen]
    return AttributePairs(QUESTIONS, sides, ends=graph.ends, workers=graph.workers)


def year_groups(years: list[Year]) -> list[Group]:
    """Years with the same number of students for objectives."""
    graph = Matching(len(years[0].answers))
    observed = graph.indicators(np.array([year.partners for year in years]))
    return [Group(graph, attribute_features([year.answers for year in years], graph), observed, np.ones(len(years)))]

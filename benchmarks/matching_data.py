"""Data of the matching benchmarks: points on a toy house and a toy hotel, and made-up students who choose roommates."""

from dataclasses import dataclass

import numpy as np
from datasets import data_directory
from scipy import sparse

from partita.matching.features import EdgeFeatures, NodePairs
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


class Tied:
    """The features of `NodePairs`, summed by columns of a matrix: its parameters are ``ties @ theta``."""

    def __init__(self, pairs: NodePairs, ties: sparse.csr_matrix) -> None:
        self._pairs, self._ties = pairs, ties
        self.size, self.n_examples = ties.shape[1], pairs.n_examples

    def forward(self, theta: np.ndarray) -> np.ndarray:
        return self._pairs.forward(self._ties @ theta)

    def adjoint(self, values: np.ndarray) -> np.ndarray:
        return self._ties.T @ self._pairs.adjoint(values)

    def squares(self, values: np.ndarray) -> np.ndarray:
        """Exact where the entries of a column are never seen together, as with one-hot features."""
        return self._ties.power(2).T @ self._pairs.squares(values)

    def example(self, i: int) -> "Tied":
        return Tied(self._pairs.example(i), self._ties)


def questionnaire_features() -> sparse.csr_matrix:
    """Columns of 64 x 64 matrices T such that ``o_i' T o_j`` is a feature of a pair of students with one-hot answers o.

    For each question the absolute difference of the two answers (14 columns first), then an indicator of each pair of
    answers in any order: 200 in all.
    """
    starts = np.concatenate([[0], np.cumsum(LEVELS)])
    total = int(starts[-1])
    distances, indicators = [], []
    for first, levels in zip(starts, LEVELS, strict=False):
        T = np.zeros((total, total))
        a = np.arange(levels)
        T[first : first + levels, first : first + levels] = np.abs(a[:, None] - a)
        distances.append(T.ravel())
        for i in range(levels):
            for j in range(i, levels):
                T = np.zeros((total, total))
                T[first + i, first + j] = T[first + j, first + i] = 1.0
                indicators.append(T.ravel())
    return sparse.csr_matrix(np.array(distances + indicators).T)


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
    W = tied_pairs([answers], graph).forward(theta)[0]
    return Year(answers, graph.sample(W, 1, rng, burn_in=200)[0])


def tied_pairs(answers: list[np.ndarray], graph: Matching) -> Tied:
    """The 200 features of all pairs of students, for years with the same number of them."""
    rows = np.array(answers)
    return Tied(NodePairs(rows, rows, graph.ends), questionnaire_features())


def year_groups(years: list[Year]) -> list[Group]:
    """Years with the same number of students for objectives."""
    graph = Matching(len(years[0].answers))
    observed = graph.indicators(np.array([year.partners for year in years]))
    return [Group(graph, tied_pairs([year.answers for year in years], graph), observed, np.ones(len(years)))]

"""A conditional random field with two types of nodes: papers, which have a field, and authors, who do theory or practice.

Papers cite papers, and authors write papers. The words of a paper say little about its field, and nothing is known about an
author but the number of papers; what is written by the same hands, or cites each other, decides. Some labels are missing
from the training data. Run it with ``python examples/typed_graph.py``.
"""

from __future__ import annotations

import numpy as np

from partita import GraphCRF

FIELDS, CAMPS = np.array(["biology", "maths", "physics"]), np.array(["practice", "theory"])
#: How often an author of each camp writes in each field.
HABITS = np.array([[0.6, 0.1, 0.3], [0.05, 0.6, 0.35]])
PAPERS, AUTHORS = 14, 5


def make_graph(rng: np.random.Generator) -> tuple[dict, dict]:
    """A graph of papers and authors, and their labels."""
    camp = rng.integers(0, 2, AUTHORS)
    writer = rng.integers(0, AUTHORS, PAPERS)
    field = np.array([rng.choice(3, p=HABITS[camp[a]]) for a in writer])
    cites = []
    for paper in range(1, PAPERS):
        like = np.where(field[:paper] == field[paper], 8.0, 1.0)
        cites.append((paper, rng.choice(paper, p=like / like.sum())))
    words = 0.8 * np.eye(3)[field] + rng.standard_normal((PAPERS, 3))
    graph = {
        "nodes": {"paper": words, "author": np.bincount(writer, minlength=AUTHORS)[:, None] / 5.0},
        "edges": {
            ("paper", "paper"): np.array(cites),
            ("author", "paper"): np.column_stack([writer, np.arange(PAPERS)]),
        },
    }
    return graph, {"paper": FIELDS[field], "author": CAMPS[camp]}


def hide(labels: dict, share: float, rng: np.random.Generator) -> dict:
    """Forget a share of the labels."""
    return {kind: [None if rng.random() < share else str(label) for label in part] for kind, part in labels.items()}


def accuracy(model: GraphCRF, X: list, y: list, kind: str) -> float:
    found = model.predict(X)
    return float(np.mean(np.concatenate([a[kind] == b[kind] for a, b in zip(found, y, strict=True)])))


def main(n_train: int = 80, n_test: int = 80, random_state: int = 0) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(random_state)
    X, y = map(list, zip(*(make_graph(rng) for _ in range(n_train + n_test)), strict=True))
    partly = [hide(labels, 0.2, rng) for labels in y[:n_train]]
    # Single labels are scored, so each is decided by its own probability.
    model = GraphCRF(l2=1.0, decoding="marginals").fit(X[:n_train], partly)
    alone = [{"nodes": graph["nodes"]} for graph in X]
    without = GraphCRF(l2=1.0).fit(alone[:n_train], partly)
    found = {}
    for kind in ("paper", "author"):
        by_words = accuracy(without, alone[n_train:], y[n_train:], kind)
        found[kind] = {"words alone": by_words, "graph": accuracy(model, X[n_train:], y[n_train:], kind)}
    for kind, scores in found.items():
        print(f"{kind:>7}: " + ", ".join(f"{name} {score:.3f}" for name, score in scores.items()))
    print("\nweights of (author, paper) pairs:")
    weights = model.weights_[(("author", "paper"), "author", "paper")][0]
    for camp, row in zip(CAMPS, weights, strict=True):
        print(f"{camp:>9}: " + ", ".join(f"{field} {w:+.2f}" for field, w in zip(FIELDS, row, strict=True)))
    return found


if __name__ == "__main__":
    main()

"""Groups of people that nobody wrote down: a hidden variable behind the answers to a questionnaire.

Run it with ``python examples/hidden_groups.py``; with ``--pictures FOLDER`` it draws what it found.
"""

import argparse
from pathlib import Path

import numpy as np

from partita import BayesianNetwork
from partita.report import plot_relation, plot_restarts

QUESTIONS = [f"question {i}" for i in range(1, 9)]


def answers(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three groups who answer yes with their own probabilities."""
    group = rng.choice(3, size=n, p=[0.4, 0.35, 0.25])
    habits = rng.choice([0.12, 0.5, 0.88], size=(3, len(QUESTIONS)), p=[0.4, 0.2, 0.4])
    return (rng.random((n, len(QUESTIONS))) < habits[group]).astype(float), group


def main(n: int = 150, pictures: str | None = None) -> None:
    """Fit by restarts of EM and from the convex relaxation, and compare."""
    rng = np.random.default_rng(4)
    X, group = answers(n, rng)
    edges = [("group", question) for question in QUESTIONS]
    hidden = {"group": 3}

    relaxation = BayesianNetwork(edges, hidden=hidden).convex_relaxation(X)
    print(f"convex relaxation: {relaxation.objective:.3f}, certified to be above {relaxation.lower:.3f}")
    print(f"  alpha {relaxation.alpha:.2f}; from {relaxation.alpha_crit:.2f} on it would tell nobody apart")
    hard = BayesianNetwork(edges, hidden=hidden, alpha=relaxation.alpha, method="viterbi", n_init=30, random_state=0).fit(X)
    ends = np.sort(hard.objectives_)
    print(
        f"joint EM with that alpha, 30 random starts: best {ends[0]:.3f}, median {np.median(ends):.3f}, worst {ends[-1]:.3f}"
    )

    print("\nmarginal EM with alpha = 1:")
    for name, options in {
        "30 random starts": {"method": "em", "n_init": 30},
        "from the relaxation": {"method": "convex+em"},
    }.items():
        model = BayesianNetwork(edges, hidden=hidden, random_state=0, **options).fit(X)
        found = model.predict_proba(X)["group"].argmax(axis=1)
        overlap = np.array([[np.sum((found == a) & (group == b)) for b in range(3)] for a in range(3)])
        print(f"  {name}: objective {model.objective_:.3f}, {overlap.max(axis=1).sum() / n:.0%} of people in their group")

    X[rng.random(X.shape) < 0.05] = np.nan
    model = BayesianNetwork(edges, hidden=hidden, random_state=0).fit(X)
    print(f"\nwith 5 % of the answers missing: log-likelihood {model.score(X):.3f} per person, bic {model.bic(X):.0f}")
    person = int(np.argmax(np.isnan(X).any(axis=1)))
    print(f"  the first person with a gap: {X[person]}\n  filled in, group first:      {model.predict(X)[person]}")
    if pictures:
        folder = Path(pictures)
        plot_relation(relaxation.M, folder / "relation.png", relaxation.labels())
        label = "certified bound of the convex relaxation"
        plot_restarts(hard.traces_, folder / "restarts.png", "joint EM", lower=relaxation.lower, label=label)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=150)
    parser.add_argument("--pictures", help="folder for two pictures")
    arguments = parser.parse_args()
    main(arguments.people, arguments.pictures)

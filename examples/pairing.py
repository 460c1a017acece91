"""Match things that were seen twice: learn a distribution over matchings, and say how sure each pair is."""

from __future__ import annotations

import numpy as np

from partita import MatchingCRF
from partita.report import format_table
from partita.structures import BipartiteMatching

TRAIN, TEST, THINGS = 40, 40, 8


def make_pairs(count: int, random_state: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two noisy views of things with a place and a colour, the second in another order. Features of a pair: how far apart
    the places are, how different the colours, and whether the sizes agree."""
    rng = np.random.default_rng(random_state)
    X, y = [], []
    for _ in range(count):
        place, colour, large = rng.random((THINGS, 2)), rng.random((THINGS, 3)), rng.random(THINGS) < 0.5
        order = rng.permutation(THINGS)
        place2 = place[order] + 0.15 * rng.standard_normal((THINGS, 2))
        colour2 = colour[order] + 0.25 * rng.standard_normal((THINGS, 3))
        large2 = large[order] ^ (rng.random(THINGS) < 0.1)
        apart = np.linalg.norm(place[:, None] - place2, axis=2)
        differ = np.linalg.norm(colour[:, None] - colour2, axis=2)
        X.append([apart, differ, large[:, None] == large2])
        y.append(np.argsort(order))  # of each thing in the first view, its number in the second
    return np.array(X, dtype=float), np.array(y)


def main() -> None:
    X, y = make_pairs(TRAIN + TEST)
    model = MatchingCRF(l2=1.0).fit(X[:TRAIN], y[:TRAIN])
    print(f"Matchings of {THINGS} things seen twice: {TRAIN} to learn from, {TEST} to test on")
    print("weights of distance, colour, size: " + ", ".join(f"{w:+.2f}" for w in model.parameters_))
    print(f"certificate {model.gap_:.1e}; {100 * model.score(X[TRAIN:], y[TRAIN:]):.1f} % of the test pairs are right\n")
    scored = model.log_likelihood(X[TRAIN:], y[TRAIN:])
    hard = TRAIN + int(np.argmin(scored))
    print("The hardest of them, with the probability of every pair (the true one in brackets):")
    probabilities = model.predict_marginals(X[hard : hard + 1])[0]
    rows = [
        [str(i), *(f"[{p:.2f}]" if j == y[hard, i] else f"{p:.2f}" for j, p in enumerate(row))]
        for i, row in enumerate(probabilities)
    ]
    print(format_table(["", *map(str, range(THINGS))], rows))
    weights, structure = np.tensordot(model.parameters_, X[hard], 1), BipartiteMatching(THINGS)
    score, bethe = structure.score(weights, y[hard])[0], structure.infer(weights, engine="bethe")
    value, lower, upper = (float(score - part[0]) for part in (bethe.log_z, bethe.upper, bethe.lower))
    print(f"\nlog p of the truth: {scored.min():.3f}, exactly; by Bethe's free energy, which larger matchings take,")
    print(f"{value:.3f}, and certainly from {lower:.3f} to {upper:.3f}")


if __name__ == "__main__":
    main()

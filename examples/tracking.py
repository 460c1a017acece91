"""Follow things that come and go between two pictures: who is who, who left, who is new, and how sure is that?"""

from __future__ import annotations

import numpy as np

from partita import MatchingCRF
from partita.report import format_table

GATE = 0.3  # nothing moves farther than that between two pictures


def frames(count: int, random_state: int = 0) -> tuple[list[dict[str, np.ndarray]], list[np.ndarray]]:
    """Pairs of pictures of things in the unit square. They move, some walk out of the picture or are overlooked, others come
    in or are seen where nothing is.

    Of a pair of sightings: the square of their distance, and how much brighter one is. Of a sighting without a partner: one,
    and how near to the edge of the picture it is.
    """
    rng = np.random.default_rng(random_state)
    X, y = [], []
    while len(X) < count:
        place, bright = rng.random((rng.integers(3, 10), 2)), rng.random(10)
        moved = place + np.clip(0.08 * rng.standard_normal(place.shape), -0.2, 0.2)
        stay = np.flatnonzero(((moved > 0.0) & (moved < 1.0)).all(1) & (rng.random(len(place)) < 0.9))
        order, new = rng.permutation(stay), rng.random((rng.poisson(1.0), 2))
        later = np.concatenate([moved[order], new])
        light = np.concatenate([bright[order] + 0.1 * rng.standard_normal(len(order)), rng.random(len(new))])
        if not len(later):
            continue
        apart = ((place[:, None] - later) ** 2).sum(2)
        column = np.full(len(place), -1)
        column[order] = np.arange(len(order))
        X.append(
            {
                "features": np.array([apart, np.abs(bright[: len(place), None] - light)]),
                "forbidden": apart > GATE**2,
                "row_features": np.array([np.ones(len(place)), border(place)]),
                "column_features": border(later)[None],
            }
        )
        y.append(column)
    return X, y


def border(place: np.ndarray) -> np.ndarray:
    """One at the edge of the picture, less and less within it."""
    return np.exp(-np.minimum(place, 1.0 - place).min(1) / 0.05)


def main(train: int = 300, test: int = 300) -> dict[str, float]:
    X, y = frames(train + test)
    model = MatchingCRF(allow_unmatched=True, l2=0.01).fit(X[:train], y[:train])
    print(f"{train} pairs of pictures, {model.likelihood_} likelihood, certificate {model.gap_:.0e}")
    print(model.summary())
    X, y = X[train:], y[train:]
    nearest = [np.where(x["forbidden"], np.inf, x["features"][0]) for x in X]
    right = [np.where(np.isinf(d.min(1)), -1, d.argmin(1)) == column for d, column in zip(nearest, y, strict=True)]
    found = {"model": model.score(X, y), "nearest": float(np.concatenate(right).mean())}
    shares = [f"{100 * found[name]:.1f} %" for name in ("model", "nearest")]
    print(f"\n{shares[0]} of the things are followed rightly, {shares[1]} if each is taken for the nearest")
    alone = np.concatenate([1.0 - p.sum(1) for p in model.predict_marginals(X)])
    gone = np.concatenate([column == -1 for column in y])
    rows = []
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.7), (0.7, 0.9), (0.9, 1.001)):
        here = (alone >= low) & (alone < high)
        means = [f"{part[here].mean():.2f}" for part in (alone, gone)]
        rows.append([f"{low:.1f} to {min(high, 1.0):.1f}", f"{here.sum()}", *means])
    print("\nThings that are said to have left, with a probability:")
    print(format_table(["probability", "things", "mean", "left indeed"], rows))
    found["calibration"] = float(abs(alone.mean() - gone.mean()))
    hard = int(np.argmin(model.log_likelihood(X, y)))
    print("\nThe hardest pair of pictures, and the best matchings (-1: left):", y[hard].tolist())
    for matching, log_p in model.kbest(X[hard : hard + 1], 3)[0]:
        print(f"  {np.exp(log_p):.3f}  {matching.tolist()}")
    return found


if __name__ == "__main__":
    main()

"""How sure an estimate is, and what a cheaper likelihood costs in accuracy: couplings of a grid of spins.

Run it with ``python examples/uncertainty.py``.
"""

import time

import numpy as np

from partita import CompositeLikelihood, MarkovNetwork, tradeoff


def grid(n: int) -> np.ndarray:
    """Pairs of neighbours of an n x n grid."""
    number = np.arange(n * n).reshape(n, n)
    across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    return np.vstack([np.column_stack([a.ravel(), b.ravel()]) for a, b in (across, down)])


def main(n: int = 6, samples: int = 3000) -> None:
    """Draw samples, fit by several likelihoods, and print what they know."""
    rng = np.random.default_rng(0)
    edges = grid(n)
    theta = np.concatenate([rng.normal(0.0, 0.3, n * n), rng.normal(0.3, 0.3, len(edges))])
    net = MarkovNetwork.ising(edges)
    features = net.feature_map()
    X = features.graph.sample(features.forward(theta), samples, 0)
    print(f"{samples} samples of a {n} x {n} grid of spins, {len(theta)} weights\n")
    for name, likelihood in {
        "likelihood of the whole": "full",
        "each spin given its neighbours": "pseudo",
        "the same, and one Newton step of the whole": CompositeLikelihood(refine="full"),
    }.items():
        start = time.perf_counter()
        model = MarkovNetwork.ising(edges, likelihood=likelihood).fit(X)
        seconds = time.perf_counter() - start
        errors = model.standard_errors()
        inside = np.abs(model.parameters_ - theta) <= 1.96 * errors
        print(f"{name}: {seconds:.2f} s, variances {model.efficiency():.3f} times the least possible,")
        print(f"  standard error {np.median(errors):.4f} (median), {inside.mean():.0%} of the 95 % intervals hold the truth")
    print("\nThe five surest couplings of the last:\n")
    print(model.summary(top=5))
    print("\nVariance (relative to the likelihood) against cost, if the weights above were true:\n")
    print(tradeoff(net, theta=theta))


if __name__ == "__main__":
    main()

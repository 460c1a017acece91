"""Read postal addresses with a chain CRF, find objects in noisy images, match things seen twice."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pairing
import segmentation
from addresses import address_features, make_addresses

from partita import LBFGS, SGD, ChainCRF, Majorize, Newton, StochasticBound, metrics
from partita.report import format_table, label_types, plot_confusion, plot_convergence, render_legend, render_tagged

TRAIN, TEST = 1500, 500
SOLVERS = {
    "auto": "auto",
    "newton (cg)": Newton("cg"),
    "lbfgs": LBFGS(),
    "stochastic bound": StochasticBound(batch_size=64),
    "averaged SGD": SGD(method="averaged", batch_size=16),
    "majorize": Majorize(),
}
STOCHASTIC, EPOCHS = ("stochastic bound", "averaged SGD"), 40
SAMPLES = [
    "Flat 3, 12 Baker Street, London NW1 6XE",
    "Lindenallee 7b | 50667 Köln | Germany",
    "PO Box 118, Springfield, IL 62701",
]


def main() -> None:
    tokens, labels = make_addresses(TRAIN + TEST, random_state=0)
    X = [address_features(address) for address in tokens]
    X_train, y_train, X_test, y_test = X[:TRAIN], labels[:TRAIN], X[TRAIN:], labels[TRAIN:]
    words = sum(map(len, y_train))
    ChainCRF(max_iter=2, tol=1.0).fit(X_train[:20], y_train[:20])  # load the compiled kernels outside the timing
    print(f"Postal addresses of ten countries: {TRAIN} to learn from ({words} words), {TEST} to test on\n")
    rows, traces, models = [], {}, {}
    for name, solver in SOLVERS.items():
        model = ChainCRF(l2=1.0, solver=solver, max_iter=EPOCHS if name in STOCHASTIC else 150, tol=1e-5, random_state=0)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # slow solvers are meant to hit the iteration limit here
            model.fit(X_train, y_train)
        seconds = time.perf_counter() - start
        models[name], traces[name] = model, model.trace_
        f1 = metrics.chunk_scores(y_test, model.predict(X_test)).f1
        objective = f"{model.trace_.objective[-1]:.2f}"
        rows.append([name, str(model.n_iter_), f"{seconds:.2f}", objective, f"{100 * f1:.2f}", model.status_.name.lower()])
    print(format_table(["solver", "iterations", "seconds", "objective", "test F1", "stopped"], rows))
    model = models["auto"]
    show_examples(model, label_types(label for address in labels for label in address))
    show_features(model)
    folder = Path("demo-output")
    folder.mkdir(exist_ok=True)
    plot_convergence(traces, folder / "convergence.png", "A chain CRF on postal addresses")
    table = metrics.confusion([parts(y) for y in y_test], [parts(y) for y in model.predict(X_test)])
    plot_confusion(table, folder / "confusion.png", "Parts of addresses, words of the test set")
    print(f"\nPictures: {folder / 'convergence.png'}, {folder / 'confusion.png'}")
    print("\n" + "-" * 80 + "\n")
    segmentation.main(folder)
    print("\n" + "-" * 80 + "\n")
    pairing.main()


def parts(labels: list[str]) -> list[str]:
    """Labels without B- and I-."""
    return [label.split("-", 1)[-1] for label in labels]


def show_examples(model: ChainCRF, types: list[str]) -> None:
    """Addresses in colour, with the probability of every label, and the three best labellings of the last."""
    print("\n" + render_legend(types, color=None))
    for sample in SAMPLES:
        tokens = sample.replace(",", " ,").split()
        features = address_features(tokens)
        labels = model.predict([features])[0]
        marginals = model.predict_marginals([features])[0]
        chances = [chances[label] for chances, label in zip(marginals, labels, strict=True)]
        print(render_tagged(tokens, labels, chances, color=None, types=types))
    print("\nThe three best labellings of the last, with their probabilities:")
    import math

    for labels, log_probability in model.predict_kbest([features], 3)[0]:
        print(f"  {math.exp(log_probability):.3f}  {' '.join(labels)}")


def show_features(model: ChainCRF) -> None:
    """The largest weights, and why a word got its label."""
    best = sorted(model.state_features_.items(), key=lambda item: -abs(item[1]))[:8]
    print("\nLargest weights of attributes:")
    print(format_table(["attribute", "label", "weight"], [[a, label, f"{w:+.2f}"] for (a, label), w in best]))
    moves = sorted(model.transition_features_.items(), key=lambda item: -item[1])
    rows = [[a, b, f"{w:+.2f}"] for (a, b), w in [*moves[:4], *moves[-3:]]]
    print("\nLargest and smallest weights of transitions:")
    print(format_table(["from", "to", "weight"], rows))
    print("\nWhy the second word of the first example is what it is:")
    tokens = SAMPLES[0].replace(",", " ,").split()
    print(model.explain(address_features(tokens), position=1))


if __name__ == "__main__":
    main()

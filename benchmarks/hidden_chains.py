"""Chains with hidden states, and partial labels.

Parts (`--only`): `gestures`, made-up strokes in the plane, and `genres`, sentences of English by where they come from:
accuracy of `HiddenChainCRF` against softmax regressions on sums of attributes and an HMM for each class (hmmlearn, if it is
installed). `partial`: chunking with labels hidden at random, against training on the labelled pieces and on all labels.
`states`: hidden states of chunk labels. `solvers`: seconds to an objective from the same starts.
"""

import argparse
import gzip
import time
import warnings
from functools import partial

import numpy as np
from datasets import data_directory
from harness import digits, machine, markdown, print_load, read_results, with_threads, write_results
from scipy.sparse import csr_matrix

from partita import ChainCRF, HiddenChainCRF, LatentDynamicCRF, SequenceData, SoftmaxRegression, metrics
from partita.features import Templates
from partita.io import read_columns

try:
    from hmmlearn.hmm import CategoricalHMM, GaussianHMM
except ImportError:
    CategoricalHMM = GaussianHMM = None

#: The strokes of each gesture. The first three have the same ones, in another order.
GESTURES = ("RULD", "RDLU", "URDL", "RLRL", "UDUD", "RURU")
DIRECTION = {"R": (1.0, 0.0), "U": (0.0, 1.0), "L": (-1.0, 0.0), "D": (0.0, -1.0)}
PENALTIES = (0.01, 0.1, 1.0, 10.0)
STATES = tuple((states, l2) for states in (4, 6) for l2 in (0.03, 0.1, 0.3, 1.0, 3.0))


def gestures(rng, count):
    """Movements from one moment to the next: strokes of random lengths and speeds, turned a little, with much noise."""
    X, y = [], rng.permutation(np.arange(count) % len(GESTURES))
    for label in y:
        lengths = rng.integers(3, 13, size=4)
        strokes = np.repeat([DIRECTION[stroke] for stroke in GESTURES[label]], lengths, axis=0)
        strokes = strokes * np.repeat(rng.uniform(0.5, 1.5, size=4), lengths)[:, None]
        angle = 0.3 * rng.standard_normal()
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        X.append(strokes @ turn + 0.8 * rng.standard_normal(strokes.shape))
    return X, y


def genres(part, count, rng):
    """Part-of-speech tags of sentences of five words or more, as numbers, and their genres."""
    with gzip.open(data_directory() / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz", "rt", encoding="utf-8") as file:
        sentences = [block.splitlines() for block in file.read().split("\n\n") if block.strip()]
    X, y = [], []
    for lines in sentences:
        words = [line.split("\t") for line in lines if line[0] != "#"]
        tags = [word[4] for word in words if word[0].isdigit()]
        if len(tags) >= 5:
            X.append(tags)
            y.append(next(line for line in lines if line.startswith("# sent_id")).split()[-1].split("-")[0])
    chosen = rng.permutation(len(X))[:count]
    return [X[i] for i in chosen], np.array(y)[chosen]


class OnSums:
    """A softmax regression on a vector made of each sequence."""

    def __init__(self, vector, l2):
        self.vector, self.model = vector, SoftmaxRegression(l2=l2)

    def matrix(self, X):
        return csr_matrix(np.array([self.vector(x) for x in X], dtype=float))

    def fit(self, X, y):
        self.model.fit(self.matrix(X), y)
        return self

    def score(self, X, y):
        return self.model.score(self.matrix(X), y)


class ClassHMMs:
    """One HMM for each class, the likeliest of three; a sequence belongs to where its probability times prior is highest."""

    def __init__(self, make, rows):
        self.make, self.rows = make, rows

    def fit(self, X, y):
        self.classes, counts = np.unique(y, return_counts=True)
        self.prior, self.models = np.log(counts / len(y)), []
        for label in self.classes:
            own = [self.rows(x) for x, other in zip(X, y, strict=True) if other == label]
            data = np.vstack(own), [len(x) for x in own]
            fits = [self.make(random_state=seed, n_iter=20).fit(*data) for seed in range(3)]
            self.models.append(max(fits, key=lambda fit, data=data: fit.score(*data)))
        return self

    def score(self, X, y):
        scores = np.array([[model.score(self.rows(x)) for model in self.models] for x in X]) + self.prior
        return float(np.mean(self.classes[scores.argmax(1)] == y))


class Tokens:
    """A hidden chain on symbols."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.model.fit([[[symbol] for symbol in x] for x in X], y)
        return self

    def score(self, X, y):
        return self.model.score([[[symbol] for symbol in x] for x in X], y)


def choose(make, options, X, y):
    """The model with the option that is best on the last third of training, fitted to all of it."""
    cut = len(X) * 2 // 3
    scores = [make(option).fit(X[:cut], y[:cut]).score(X[cut:], y[cut:]) for option in options]
    best = options[int(np.argmax(scores))]
    return make(best).fit(X, y), best


def hidden(shared, init, wrap=lambda model: model):
    """A hidden chain by its option."""
    return lambda o: wrap(HiddenChainCRF(o[0], shared, l2=o[1], init=init, random_state=0, tol=1e-4, max_iter=200))


def compare(title, rivals, draws):
    """A row for each rival: mean accuracy over draws of (train, test), its deviation, seconds, options chosen."""
    rows = []
    for name, (make, options) in rivals.items():
        scores, start, chosen = [], time.perf_counter(), []
        for (X, y), (T, expected) in draws:
            model, best = choose(make, options, X, y)
            scores.append(model.score(T, expected))
            chosen.append(str(best))
        seconds = (time.perf_counter() - start) / len(draws)
        row = {"task": title, "model": name, "accuracy": float(np.mean(scores)), "deviation": float(np.std(scores))}
        rows.append(row | {"seconds": seconds, "option": max(set(chosen), key=chosen.count)})
        print(markdown_row(rows[-1]), flush=True)
    return rows


def markdown_row(row):
    return "  ".join(str(digits(value) if isinstance(value, float) else value) for value in row.values())


def by_thirds(x):
    """Sums of each third of a sequence, and its length."""
    return np.concatenate([*(part.sum(0) for part in np.array_split(x, 3)), [len(x)]])


def run_gestures():
    """Accuracy on 400 gestures."""
    rivals = {
        "softmax, sums": (lambda l2: OnSums(lambda x: x.sum(0), l2), PENALTIES),
        "softmax, sums of thirds": (lambda l2: OnSums(by_thirds, l2), PENALTIES),
        "HiddenChainCRF": (hidden(False, "left_right"), STATES),
        "HiddenChainCRF, shared": (hidden(True, "left_right"), STATES),
        "HiddenChainCRF, from k-means": (hidden(False, "kmeans"), STATES),
        "HiddenChainCRF, from random": (hidden(False, "random"), STATES),
    }
    if GaussianHMM is not None:
        rivals["HMM for each class"] = (lambda h: ClassHMMs(partial(GaussianHMM, h), np.asarray), (3, 4, 6))
    rows = []
    for size, repeats in ((60, 5), (300, 2)):
        draws = []
        for seed in range(repeats):
            rng = np.random.default_rng(100 + seed)
            draws.append((gestures(rng, size), gestures(rng, 400)))
        rows += compare(f"{size} gestures", rivals, draws)
    return rows


def run_genres():
    """Accuracy on sentences of the test part, from tags alone."""
    rng = np.random.default_rng(0)
    draws = [(genres("train", 2000, rng), genres("test", 3000, rng))]
    number = {tag: i for i, tag in enumerate(sorted({tag for X, _ in draws[0] for x in X for tag in x}))}
    n = len(number)

    def codes(x):
        return np.array([number[tag] for tag in x])

    def counts(x):
        return np.append(np.bincount(codes(x), minlength=n), len(x))

    def pairs(x):
        return np.concatenate([counts(x), np.bincount(codes(x)[:-1] * n + codes(x)[1:], minlength=n * n)])

    options = ((2, 1.0), (2, 3.0), (3, 3.0))
    rivals = {
        "softmax, sums": (lambda l2: OnSums(counts, l2), (*PENALTIES, 100.0)),
        "softmax, sums of tags and pairs": (lambda l2: OnSums(pairs, l2), (1.0, 10.0, 100.0)),
        "HiddenChainCRF": (hidden(False, "left_right", Tokens), options),
        "HiddenChainCRF, shared": (hidden(True, "left_right", Tokens), options),
        "HiddenChainCRF, from k-means": (hidden(False, "kmeans", Tokens), options),
    }
    if CategoricalHMM is not None:
        hmms = (lambda h: ClassHMMs(partial(CategoricalHMM, h, n_features=n), lambda x: codes(x)[:, None]), (2, 3))
        rivals["HMM for each class"] = hmms
    return compare("2000 sentences", rivals, draws)


def chunking(count):
    """CoNLL-2000: some sentences to train on, and all to test."""
    templates = Templates.builtin("chunking")
    parts = (read_columns(data_directory() / "conll2000" / f"{name}.txt.gz") for name in ("train", "test"))
    train, test = (SequenceData.from_columns(part, templates, fit=i == 0) for i, part in enumerate(parts))
    return train[:count], test


def f1(model, test):
    return float(metrics.chunk_scores(test.y, model.predict(test)).f1)


def labelled_pieces(data, known):
    """Runs of positions whose labels are known, as sequences of their own; attributes stay those of the whole sentence."""
    rows = np.flatnonzero(known)
    breaks = (np.diff(rows) > 1) | np.isin(rows[1:], data.offsets)
    edges = np.concatenate(([0], 1 + np.flatnonzero(breaks), [len(rows)]))
    y = np.array([label for row in data.y for label in row])[rows]
    return SequenceData(data.X[rows], np.diff(edges), y.tolist(), data.attributes)


def run_partial(count):
    """Chunk F1 with a share of the labels hidden at random."""
    train, test = chunking(count)
    rows = [{"hidden": 0.0, "all labels": f1(ChainCRF().fit(train), test)}]
    flat = [label for row in train.y for label in row]
    for share in (0.3, 0.5, 0.7, 0.9):
        found = {"unknown": [], "pieces": []}
        for seed in range(2):
            known = np.random.default_rng(seed).random(len(flat)) >= share
            y = [label if here else None for label, here in zip(flat, known, strict=True)]
            found["unknown"].append(f1(ChainCRF().fit(train, y), test))
            found["pieces"].append(f1(ChainCRF().fit(labelled_pieces(train, known)), test))
        rows.append({"hidden": share, **{name: float(np.mean(values)) for name, values in found.items()}})
        print(markdown_row(rows[-1]), flush=True)
    return rows


def run_states(count):
    """Chunk F1 with hidden states for each label."""
    train, test = chunking(count)
    rows = []
    for n_hidden, l2 in ((1, 1.0), (2, 1.0), (2, 0.5), (3, 0.33)):
        start = time.perf_counter()
        model = LatentDynamicCRF(n_hidden, l2=l2, random_state=0, tol=2e-5).fit(train)
        rows.append({"n_hidden": n_hidden, "l2": l2, "F1": f1(model, test), "seconds": time.perf_counter() - start})
        print(markdown_row(rows[-1]), flush=True)
    return rows


def run_solvers(starts):
    """From each start, seconds to the highest of the objectives that the solvers end at, and those objectives."""
    rng = np.random.default_rng(0)
    tags, genre = genres("train", 300, rng)
    trajectories, gesture = gestures(rng, 120)
    sentences, _ = chunking(100)
    problems = {
        "gestures": (HiddenChainCRF(4), trajectories, gesture),
        "gestures, shared": (HiddenChainCRF(4, shared=True), trajectories, gesture),
        "genres": (HiddenChainCRF(2), [[[tag] for tag in x] for x in tags], genre),
        "chunks": (LatentDynamicCRF(2), sentences, sentences.y),
    }
    rows = []
    for title, (model, X, y) in problems.items():
        names = ("auto", "lbfgs", "majorize", "cg", "newton")
        traces = {name: [] for name in names}
        for seed in range(starts):
            for name in names:
                model.set_params(solver=name, init="random", random_state=seed, max_iter=200, tol=1e-5)
                traces[name].append(model.fit(X, y).trace_)
        finals = np.array([[trace.objective[-1] for trace in traces[name]] for name in names])
        targets = finals.max(axis=0) * (1.0 + 1e-9)
        for name, values in zip(names, finals, strict=True):
            first = [int(np.argmax(t.objective <= goal)) for t, goal in zip(traces[name], targets, strict=True)]
            row = {"problem": title, "solver": name, "best": float(values.min()), "mean": float(values.mean())}
            seconds = [trace.seconds[i] for trace, i in zip(traces[name], first, strict=True)]
            rows.append(row | {"iterations": float(np.mean(first)), "seconds": float(np.exp(np.mean(np.log(seconds))))})
            print(markdown_row(rows[-1]), flush=True)
    return rows


def table(rows):
    """Rows with the same keys, or the longest of them, as a table."""
    header = list(max(rows, key=len))
    header += [key for row in rows for key in row if key not in header]
    cells = [[row.get(key, "") for key in header] for row in rows]
    return markdown(header, [[digits(cell, 4) if isinstance(cell, float) else cell for cell in line] for line in cells])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="gestures,genres,partial,states,solvers", help="parts, with commas")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences of CoNLL-2000 to train on")
    parser.add_argument("--starts", type=int, default=5, help="starts of each solver")
    arguments = parser.parse_args()
    with_threads(1)  # hmmlearn's small products and clusters are many times slower on more
    print_load("start")
    warnings.simplefilter("ignore")  # of fits that stop at the limit of iterations
    parts = {"gestures": run_gestures, "genres": run_genres, "partial": lambda: run_partial(arguments.sentences)}
    parts |= {"states": lambda: run_states(arguments.sentences // 2), "solvers": lambda: run_solvers(arguments.starts)}
    for name in arguments.only.split(","):
        start = time.perf_counter()
        rows = parts[name]()
        print(f"\n{name}, {time.perf_counter() - start:.0f} s\n\n{table(rows)}\n", flush=True)
        write_results("hidden_chains", read_results("hidden_chains") | {name: {"rows": rows, "machine": machine()}})
    print_load("end")


if __name__ == "__main__":
    main()

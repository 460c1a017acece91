"""Stochastic composite likelihood on chains: the studies of chunking and of sentiment of its paper (sections 8.2 to 8.5).

Pseudo-likelihood (PL1) always counts, with weight 1 - beta; the likelihood (FL) or that of pairs (PL2) counts with
weight beta for objects drawn once with probability lambda. Reported are negative log-likelihoods of sentences (documents
for sentiment), in nats, under the full model. The penalty is that of a sum over sentences, ``l2 = 1 / sigma^2``. A mixture
has another total weight than the likelihood, and so another penalty in proportion: the last table takes that into account.
"""

import argparse
import gzip
import itertools
import re
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from datasets import data_directory
from harness import digits, machine, markdown, print_load, read_results, write_results
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from partita import CompositeLikelihood, SequenceData, minimize
from partita.chain.estimators.scores import log_probabilities, potentials
from partita.chain.features.chain import ChainFeatures
from partita.chain.features.layout import ChainLayout
from partita.chain.features.pairs import label_indicator, state_pairs
from partita.chain.objective.boltzmann import BoltzmannChainLikelihood, token_sums
from partita.chain.structure.forbidden import Forbidden
from partita.core import Workers
from partita.io import read_columns
from partita.objectives import ChainComposite
from partita.structures import Chain

POLICIES = {"PL1/FL": "full", "PL1/PL2": 2}
BETAS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: The largest are those of the captions of Figures 10 to 19, some of them; the optimum is far below.
SIGMAS = dict.fromkeys(("boltzmann", "crf"), (0.1, 1.0, 2.5, 5.0, 10.0, 50.0, 500.0, 5000.0, 15000.0))
SIGMAS |= dict.fromkeys(("sentiment5", "sentiment3"), (0.01, 0.03, 0.1, 0.3, 1.0, 10.0))
#: What the captions of Figures 10, 12 and 16 say of the best test set.
PAPER = {("boltzmann", "PL1/FL"): 190.0, ("boltzmann", "PL1/PL2"): 189.5, ("crf", "PL1/FL"): 5.5}


class Tagger:
    """A CRF on a training and a test part of sequences, with weights for given pairs of attributes and labels."""

    def __init__(self, train, test, pairs):
        self.train, self.test = train, test
        attribute, label = pairs
        used = np.bincount(train.X.indices, minlength=train.X.shape[1])[attribute] > 0
        n = len(train.labels.classes)
        everything = np.argwhere(np.ones((n, n)))
        self.features = ChainFeatures(
            *(train.X, train.offsets, n, attribute[used], label[used], everything), workers=Workers(1)
        )
        self.layout = ChainLayout.of(self.features, train.labels.classes, None)

    def objective(self, composite, l2):
        return ChainComposite(self.features, self.train.labels.codes, composite, penalty=l2)

    def losses(self, objective, theta):
        """Of a sequence of training and of the test part."""
        out = []
        for data in (self.train, self.test):
            scores = potentials(self.layout, theta, data, Forbidden(), Workers(1))
            chain = Chain(self.layout.n_labels, data.lengths, 1)
            out.append(-float(log_probabilities(chain, scores, data.labels).mean()))
        return out


class Generator:
    """A Boltzmann chain on a training and a test part of sequences; tokens that are not in training are alike."""

    def __init__(self, train, test, n_tokens):
        (x, self.y, self.offsets), self.test = train, test
        seen, self.x = np.unique(x, return_inverse=True)
        self.row = np.full(n_tokens, len(seen))
        self.row[seen] = np.arange(len(seen))
        self.sizes = np.append(np.ones(len(seen)), n_tokens - len(seen))
        self.n_labels = int(max(self.y.max(), test[1].max())) + 1

    def objective(self, composite, l2):
        parts = (self.x, self.y, self.offsets, self.sizes, self.n_labels)
        return BoltzmannChainLikelihood(*parts, composite=composite, l2=l2)

    def losses(self, objective, theta):
        token, A = objective.unpack(theta)
        b, _ = token_sums(token, self.sizes)
        x, y, offsets = self.test
        out = []
        for rows, labels, bounds in ((self.x, self.y, self.offsets), (self.row[x], y, offsets)):
            chain = Chain(self.n_labels, np.diff(bounds), 1)
            log_z = chain.log_partition((np.tile(b, (len(rows), 1)), A))
            out.append(float((log_z - chain.score((token[rows], A), labels)).mean()))
        return out


def chunking():
    """Words, tags and labels of CoNLL-2000, as lists of sentences, and how many of them are for training."""
    parts = [read_columns(data_directory() / "conll2000" / f"{name}.txt.gz") for name in ("train", "test")]
    lists = [list(itertools.chain.from_iterable(part.sequences(c) for part in parts)) for c in range(3)]
    return *lists, len(parts[0].offsets) - 1


def attributes(words, tags):
    """The seven kinds of the paper, one attribute of each."""
    padded = [["<", *row, ">"] for row in (words, tags)]
    for t in range(1, len(words) + 1):
        w, p = (row[t - 1 : t + 2] for row in padded)
        stop = "stop" if w[1].lower() in ENGLISH_STOP_WORDS else "no stop"
        yield [
            f"w={w[1]}",
            f"p={p[1]}",
            f"w-={w[0]}|{w[1]}",
            f"w+={w[1]}|{w[2]}",
            f"p-={p[0]}|{p[1]}",
            f"p+={p[1]}|{p[2]}",
            stop,
        ]


def reviews(n_labels):
    """Sentences of reviews as bags of words, with five labels, or three."""
    path = data_directory() / "finegrained_sentiment" / "finegrained.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        documents = [block.splitlines()[2:] for block in file.read().split("\n\n") if block.strip()]
    pairs = [[line.split("\t", 1) for line in document] for document in documents]
    X = [[sorted(set(re.findall(r"[a-z']+|[!?]", text.lower()))) or ["nothing"] for _, text in d] for d in pairs]
    y = [[label if n_labels == 5 or label in ("neg", "pos") else "neu" for label, _ in d] for d in pairs]
    return SequenceData.from_tokens(X, y)


def supported(data):
    """The pairs of attribute and label that occur."""
    return state_pairs(data.X, label_indicator(data.labels.codes, len(data.labels.classes)), False, 0.0)


def problems(study, sets, size):
    """The training sets of a study, one after the other."""
    rng = np.random.default_rng(0)
    if study.startswith("sentiment"):
        data = reviews(int(study[-1]))
        for _ in range(sets):
            order = rng.permutation(len(data))
            train, test = data[order[: len(data) // 2]], data[order[len(data) // 2 :]]
            yield Tagger(train, test, supported(train))
        return
    words, tags, labels, n_train = chunking()
    chosen = [rng.permutation(n_train)[:size] for _ in range(sets)]
    if study == "crf":
        tokens = [list(attributes(*pair)) for pair in zip(words, tags, strict=True)]
        data = SequenceData.from_tokens(tokens, labels)
        pairs = supported(data)
        print(
            f"crf: {data.X.shape[1]} attributes (paper 273571), {len(pairs[0])} pairs with labels (paper 297041)", flush=True
        )
        for order in chosen:
            yield Tagger(data[order], data[n_train:], pairs)
        return
    codes = []
    for column in (words, labels):
        values, flat = np.unique(list(itertools.chain.from_iterable(column)), return_inverse=True)
        codes.append((len(values), np.split(flat, np.cumsum([len(row) for row in column])[:-1])))
    (n_tokens, x), (_, y) = codes
    print(f"boltzmann: {n_tokens} tokens (paper 21589)", flush=True)

    def stacked(chains):
        bounds = np.concatenate(([0], np.cumsum([len(x[i]) for i in chains])))
        return np.concatenate([x[i] for i in chains]), np.concatenate([y[i] for i in chains]), bounds

    for order in chosen:
        yield Generator(stacked(order), stacked(range(n_train, len(x))), n_tokens)


def run(job):
    """All cells of one training set and one sigma^2: rows of policy, sigma^2, beta, lambda, train, test, seconds, status."""
    problem, seed, sigma, lambdas = job
    rows, start = [], None
    for policy, other in POLICIES.items():
        for beta in BETAS:
            for share in lambdas if beta > 0.0 else lambdas[-1:]:
                composite = CompositeLikelihood(
                    {1: 1.0, other: share}, weights={1: 1.0 - beta, other: beta}, refresh=False, random_state=seed
                )
                objective = problem.objective(composite, 1.0 / sigma)
                began = time.perf_counter()
                solution = minimize(objective, start, max_iter=1000, tol=1e-7)
                seconds, start = time.perf_counter() - began, solution.parameters
                train, test = problem.losses(objective, start)
                rows.append((policy, sigma, beta, share, seed, train, test, seconds, bool(solution.status.ok)))
    return rows


def means(rows):
    """Mean train and test over sets, and the list of tests, of every (policy, sigma^2, beta, lambda)."""
    cells = {}
    for policy, sigma, beta, share, _, train, test, *_ in rows:
        cells.setdefault((policy, sigma, beta, share), []).append((train, test))
    return {key: np.array(values) for key, values in cells.items()}


def whole(job):
    """The test loss of the full likelihood with the penalty that it would have at the total weight of a mixture."""
    problem, seed, (policy, sigma, beta, share) = job
    other = POLICIES[policy]
    rates, weights = {1: 1.0, other: share}, {1: 1.0 - beta, other: beta}
    mixture = problem.objective(CompositeLikelihood(rates, weights=weights, refresh=False, random_state=seed), 1.0)
    full = CompositeLikelihood({"full": 1.0})
    weight = mixture.scale / problem.objective(full, 1.0).scale
    objective = problem.objective(full, 1.0 / (sigma * weight))
    theta = minimize(objective, max_iter=1000, tol=1e-7).parameters
    return (policy, sigma, beta, share), weight, problem.losses(objective, theta)[1]


def compare(study, rows, examples, pool):
    """A table: for every sigma^2 the best cell against the full likelihood with the same penalty, and in proportion."""
    cells = {key: values[:, 1].mean() for key, values in means(rows).items()}
    sigmas = sorted({key[1] for key in cells})
    best = [min((k for k in cells if k[:2] == (p, s)), key=cells.get) for p in POLICIES for s in sigmas]
    jobs = [(problem, seed, key) for key in best for seed, problem in enumerate(examples)]
    found = {}
    for key, weight, loss in pool.map(whole, jobs):
        found.setdefault(key, []).append((weight, loss))
    lines = []
    for key in best:
        weight, loss = np.mean(found[key], axis=0)
        policy, sigma, beta, share = key
        full = cells["PL1/FL", sigma, 1.0, 1.0]
        lines.append([policy, f"{sigma:g}", beta, share, *(digits(v, 5) for v in (cells[key], full, weight, loss))])
    header = [study, "sigma^2", "beta", "lambda", "test", "FL", "weight", "FL with sigma^2 times weight"]
    print(markdown(header, lines), flush=True)
    return lines


def report(study, rows):
    """A table: by policy, the best full likelihood, pseudo-likelihood and mixture, and whether weaker penalties win."""
    cells, out, lines = means(rows), [], []
    for policy in POLICIES:
        mine = {key[1:]: values for key, values in cells.items() if key[0] == policy}
        whole = {key[1:]: values for key, values in cells.items() if key[0] == "PL1/FL" and key[2:] == (1.0, 1.0)}
        kinds = {
            "FL": whole,
            "PL1": {key: values for key, values in mine.items() if key[1] == 0.0},
            "mixture": {key: values for key, values in mine.items() if 0.0 < key[1] < 1.0},
            "part of the higher": {key: values for key, values in mine.items() if key[1] == 1.0},
        }
        best = {kind: min(found.items(), key=lambda item: item[1][:, 1].mean()) for kind, found in kinds.items()}
        (fl_sigma, _, _), fl = best["FL"]
        for kind, ((sigma, beta, share), values) in best.items():
            lines.append([policy, kind, f"{sigma:g}", beta, share, *(digits(v, 5) for v in values.mean(0))])
        weaker = {key: values for key, values in mine.items() if key[0] > fl_sigma and key[1:] != (1.0, 1.0)}
        verdict = "no weaker penalty tried"
        if weaker:
            (sigma, beta, share), values = min(weaker.items(), key=lambda item: item[1][:, 1].mean())
            gain = fl[:, 1] - values[:, 1]
            error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
            verdict = (
                f"best with sigma^2 > {fl_sigma:g}: sigma^2 {sigma:g}, beta {beta}, lambda {share}, test "
                f"{values[:, 1].mean():.3f}, better than FL at its best by {gain.mean():.3f} +- {error:.3f}"
            )
        out.append({"policy": policy, "win-win": verdict, "paper": PAPER.get((study, policy))})
    print(markdown([study, "best of", "sigma^2", "beta", "lambda", "train", "test"], lines))
    for line in out:
        print(f"{line['policy']}: {line['win-win']}; the paper's best test: {line['paper']}", flush=True)
    return {"best": lines, "win-win": out}


def draw(studies):
    """Contours of the test loss over (beta, lambda), a row for each study and policy, a column for each sigma^2."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    grid = [(study, policy) for study in studies for policy in POLICIES]
    columns = max(len({row[1] for row in rows}) for rows in studies.values())
    figure = Figure(figsize=(2.4 * columns, 2.3 * len(grid)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(grid), columns, squeeze=False)
    for line, (study, policy) in zip(axes, grid, strict=True):
        cells = {key[1:]: values[:, 1].mean() for key, values in means(studies[study]).items() if key[0] == policy}
        sigmas, lambdas = sorted({key[0] for key in cells}), sorted({key[2] for key in cells})
        low = min(cells.values())
        levels = low + np.geomspace(1e-3, 1.0, 13) * (np.percentile(list(cells.values()), 90) - low)
        for plot, sigma in itertools.zip_longest(line, sigmas):
            if sigma is None:
                plot.set_axis_off()
                continue
            values = [[cells[sigma, b, share if b > 0.0 else lambdas[-1]] for b in BETAS] for share in lambdas]
            plot.contourf(BETAS, lambdas, values, levels=[low - 1e-9, *levels], cmap="viridis", extend="max")
            plot.set_title(f"{study} {policy}\nσ² = {sigma:g}, best {np.min(values):.5g}", fontsize=7)
            plot.set(xlabel="β" if line is axes[-1] else "", ylabel="λ" if plot is line[0] else "")
            plot.tick_params(labelsize=6)
    path = Path(__file__).resolve().parent / "results" / "composite_chunking.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help=f"studies, with commas between them; default: {','.join(SIGMAS)}")
    parser.add_argument("--sets", type=int, default=5, help="training sets")
    parser.add_argument("--size", type=int, default=100, help="sentences in a training set for chunking")
    parser.add_argument("--lambdas", default="0.1,0.25,0.5,0.75,1", help="probabilities of the higher order; the last is 1")
    parser.add_argument("--sigmas", help="values of sigma^2, with commas between them")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--stored", action="store_true", help="report on the fits of the last run, with the same --sets")
    options = parser.parse_args()
    lambdas = tuple(float(value) for value in options.lambdas.split(","))
    print_load("start")
    results = read_results("composite_chunking")
    results.setdefault("studies", {})
    for study in options.only.split(",") if options.only else SIGMAS:
        sigmas = SIGMAS[study] if options.sigmas is None else [float(value) for value in options.sigmas.split(",")]
        began = time.perf_counter()
        examples = list(problems(study, options.sets, options.size))
        jobs = [(problem, seed, sigma, lambdas) for seed, problem in enumerate(examples) for sigma in sigmas]
        with ProcessPoolExecutor(options.processes) as pool:
            if options.stored:
                rows = [tuple(row) for row in results["studies"][study]["rows"]]
            else:
                rows = [row for found in pool.map(run, jobs) for row in found]
            unfinished = sum(not row[-1] for row in rows)
            print(f"{study}: {len(rows)} fits, {time.perf_counter() - began:.0f} s, {unfinished} not converged", flush=True)
            found = {**report(study, rows), "proportion": compare(study, rows, examples, pool)}
        results["studies"][study] = {**found, "rows": rows, "sets": options.sets, "size": options.size}
    write_results("composite_chunking", {**results, "machine": machine()})
    rows = {name: [tuple(row) for row in study["rows"]] for name, study in results["studies"].items()}
    contours = {name: found for name, found in rows.items() if len({row[3] for row in found}) > 1}
    if contours:  # one probability alone has none
        draw(contours)
    print_load("end")


if __name__ == "__main__":
    main()

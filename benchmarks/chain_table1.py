"""Table 1 of the majorization paper, its two chain models: CoNLL-2002 Spanish (9 labels) and Penn tags (UD English here).

Protocol of the paper: 90 % of t = 1000 sentences, sum_j -log p(y_j | x_j) + (t lambda / 2) ||theta||^2 with lambda = 10,
starts near 0. L-BFGS runs until its relative change is below 1e-6; every method is timed to the first iterate within 1e-4
(relative) of that value. Features: the most frequent words, suffixes and shapes at -1, 0, +1, as many as give about the
paper's number of parameters (all pairs of attribute and label, all pairs of labels). And again with l2 = 1, since
the paper's penalty is so large that a few steps of any method are enough.
"""

import argparse
import gzip
from collections import Counter
from typing import Any

import numpy as np
from datasets import data_directory
from harness import digits, machine, markdown, print_load, with_threads, write_results
from scipy import sparse
from table1 import lbfgs_value

SENTENCES, SHARE = 1000, 0.9
LAMBDA = 10.0
NEAR_ZERO = 0.01
WITHIN = 1e-4
TIME_LIMIT = 40.0
#: File, column of the word and of the label, separator, attributes (the paper's d is labels x (attributes + labels)).
SETS = {
    "conll": ("conll2002_esp/esp.train.gz", 0, 2, " ", 3726),
    "penn": ("ud_english_ewt/en_ewt-ud-train.conllu.gz", 1, 4, "\t", 270),
}
# Seconds / iterations in the paper.
PAPER = {
    "LBFGS": {"conll": "25661.54 / 17", "penn": "62848.08 / 7"},
    "SD": {"conll": "93821.72 / 12", "penn": "156319.31 / 12"},
    "CG": {"conll": "88973.93 / 23", "penn": "76332.39 / 18"},
    "Bound": {"conll": "16445.93 / 4", "penn": "27073.42 / 2"},
}


def sentences(name: str) -> list[list[tuple[str, str]]]:
    """The first sentences of a file, as (word, label) pairs."""
    file, word, label, separator, _ = SETS[name]
    found: list[list[tuple[str, str]]] = [[]]
    with gzip.open(data_directory() / file, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split(separator)
            if line.startswith("#") or (separator == "\t" and len(fields) > 1 and not fields[0].isdigit()):
                continue
            if len(fields) > label:
                found[-1].append((fields[word], fields[label]))
            elif found[-1]:
                if len(found) == SENTENCES:
                    break
                found.append([])
    return [sentence for sentence in found if sentence]


def shape(word: str) -> str:
    """Xx-style shape with runs shortened to one letter."""
    kinds = ["X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word]
    return "".join(kind for k, kind in enumerate(kinds) if k == 0 or kind != kinds[k - 1])


def attributes(words: list[str], t: int) -> list[str]:
    """What is known of position t."""
    found = ["bias"]
    for offset in (-1, 0, 1):
        if 0 <= t + offset < len(words):
            word = words[t + offset]
            found += [f"w{offset}={word.lower()}", f"s{offset}={shape(word)}"]
            found += [f"e{offset}={word[-k:].lower()}" for k in (1, 2, 3)]
        else:
            found.append(f"edge{offset}")
    return found


def objective(name: str, seed: int, l2: float | None) -> Any:
    """The objective on a random 90 % of the sentences; `l2` None is the paper's."""
    from partita.chain.features.chain import ChainFeatures
    from partita.objectives import ChainLikelihood

    read = sentences(name)
    codes = {label: k for k, label in enumerate(sorted({label for sentence in read for _, label in sentence}))}
    rng = np.random.default_rng(seed)
    chosen = [read[i] for i in np.sort(rng.permutation(len(read))[: round(SHARE * len(read))])]
    rows = [attributes([word for word, _ in sentence], t) for sentence in chosen for t in range(len(sentence))]
    common = Counter(a for row in rows for a in row).most_common(SETS[name][4])
    index = {attribute: k for k, (attribute, _) in enumerate(common)}
    pairs = np.array([(t, index[a]) for t, row in enumerate(rows) for a in row if a in index])
    X = sparse.csr_matrix((np.ones(len(pairs)), pairs.T), shape=(len(rows), len(index)))
    n, m = len(codes), len(index)
    offsets = np.concatenate(([0], np.cumsum([len(sentence) for sentence in chosen])))
    y = np.array([codes[label] for sentence in chosen for _, label in sentence])
    every = np.array([(u, v) for u in range(n) for v in range(n)])
    features = ChainFeatures(X, offsets, n, np.repeat(np.arange(m), n), np.tile(np.arange(n), m), every)
    return ChainLikelihood(features, y, penalty=len(chosen) * LAMBDA if l2 is None else l2)


def methods() -> dict[str, tuple[str | None, Any]]:
    """Solvers by name, with their row in the paper."""
    from partita.solvers import LBFGS, ConjugateGradient, Majorize, Newton, SteepestDescent

    return {
        "L-BFGS": ("LBFGS", LBFGS()),
        "steepest descent": ("SD", SteepestDescent()),
        "conjugate gradient": ("CG", ConjugateGradient()),
        "majorize (bound on a line)": ("Bound", Majorize()),
        "Newton": (None, Newton()),
    }


class Evaluations:
    """Counts the points at which an objective was evaluated, along rays too."""

    def __init__(self) -> None:
        from partita.chain.objective import likelihood as chain

        self.count, make = 0, chain.ChainPoint.__init__

        def counted(point: Any, *arguments: Any) -> None:
            self.count += 1
            make(point, *arguments)

        chain.ChainPoint.__init__ = counted  # type: ignore[method-assign]


def tightness(problem: Any, theta: np.ndarray) -> tuple[float, float]:
    """The bound's curvature over the Hessian's along the preconditioned gradient: for all steps, and for the step taken."""
    point = problem.at(theta)
    ray = point.along(-point.preconditioner()(point.gradient))
    bound = ray.bound(2.0 * ray.bound().step())
    return bound.curvature() / bound.hessian, bound.curvature(bound.step()) / bound.hessian


def race(name: str, l2: float | None, starts: int, counter: Evaluations) -> dict[str, Any]:
    """Medians of seconds, iterations and evaluations of each solver; the first start only warms up."""
    from partita import minimize

    runs: dict[str, list[tuple[float | None, int, int]]] = {method: [] for method in methods()}
    for seed in range(starts + 1):
        problem = objective(name, max(0, seed - 1), l2)
        start = NEAR_ZERO * np.random.default_rng(100 + seed).standard_normal(problem.size)
        value = lbfgs_value(problem, start)
        target = value + WITHIN * abs(value)
        for method, (_, solver) in methods().items():
            counter.count = 0
            solution = minimize(
                problem,
                start,
                solver,
                tol=0.0,
                max_iter=1 if seed == 0 else 100_000,
                time_limit=TIME_LIMIT,
                callbacks=[lambda progress, target=target: progress.objective <= target],
            )
            if seed:
                reached = solution.value <= target
                runs[method].append((solution.trace.seconds[-1] if reached else None, solution.n_iter, counter.count))
    medians: dict[str, Any] = {
        method: [
            float(np.median([run[0] for run in taken])) if all(run[0] is not None for run in taken) else None,
            *(float(np.median([run[k] for run in taken])) for k in (1, 2)),
        ]
        for method, taken in runs.items()
    }
    first = tightness(problem, start)
    return {
        "size": problem.size,
        "methods": medians,
        "tightness": {"start": first, "end": tightness(problem, solution.parameters)},
    }


def main() -> None:
    """Print the tables and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--sets", default="conll,penn")
    arguments = parser.parse_args()
    with_threads(arguments.threads)
    print_load("start")
    counter = Evaluations()
    results: dict[str, Any] = {"machine": machine()}
    for l2 in (None, 1.0):
        names = arguments.sets.split(",")
        table = {name: race(name, l2, arguments.starts, counter) for name in names}
        rows = []
        for method, (row, _) in methods().items():
            cells = []
            for name in names:
                seconds, iterations, evaluations = table[name]["methods"][method]
                cells += [PAPER[row][name] if row and l2 is None else "-"]
                cells += [f"{digits(seconds)} / {iterations:.0f} / {evaluations:.0f}"]
            rows.append([method, *cells])
        penalty = "the paper's penalty (lambda = 10)" if l2 is None else f"l2 = {l2:g}"
        print(f"\n{penalty}: seconds / iterations / evaluations to 1e-4 of the L-BFGS solution\n")
        heads = [head for name in names for head in (f"{name}: paper", f"ours (d = {table[name]['size']})")]
        print(markdown(["method", *heads], rows))
        for name in names:
            for where, (everywhere, taken) in table[name]["tightness"].items():
                ratios = f"{digits(everywhere)} for all steps, {digits(taken)} for the step taken"
                print(f"{name}, bound / Hessian at the {where}: {ratios}")
        results[penalty] = table
    print_load("end")
    write_results(f"chain-table1-{arguments.threads}t", results)


if __name__ == "__main__":
    main()

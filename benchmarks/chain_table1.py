"""Table 1 of the majorization paper, its two chain models: CoNLL-2002 Spanish (9 labels) and Penn tags (UD English here).

Protocol of the paper: t = 1000 sentences of which 90 % train, sum_j -log p(y_j | x_j) + (t lambda / 2) ||theta||^2 with lambda = 10,
starts near 0. L-BFGS runs until its relative change is below 1e-6; every method is timed to the first iterate within 1e-4
(relative) of that value. Features: the most frequent words, suffixes and shapes at -1, 0, +1, as many as give the paper's number
of parameters (all attribute x label and label x label pairs). The same again with l2 = 1, which is what such models need.
"""

import argparse
import gzip
from collections import Counter
from typing import Any

import numpy as np
from datasets import data_directory
from harness import digits, machine, markdown, print_load, with_threads, write_results
from scipy import sparse

SENTENCES, SHARE = 1000, 0.9
LAMBDA = 10.0
NEAR_ZERO = 0.01
WITHIN = 1e-4
TIME_LIMIT = 60.0
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
    from partita.features.chain import ChainFeatures
    from partita.objectives.chain import ChainLikelihood

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


class Counted:
    """An objective that counts its evaluations."""

    def __init__(self, objective: Any) -> None:
        self.objective, self.evaluations = objective, 0

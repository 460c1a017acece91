"""Dependency parsing on UD English EWT: `DependencyCRF` against heads that are chosen word by word, on the same features.

python benchmarks/dependency.py --sentences 2000
"""

import argparse
import time

import numpy as np
from datasets import data_directory
from harness import digits, machine, markdown, print_load, write_results
from scipy.optimize import minimize
from sklearn.base import clone

from partita import DependencyCRF
from partita.io import read_conllu
from partita.structures import DependencyTrees
from partita.tree import PairFeatures
from partita.tree.data import read_heads, read_sentences
from partita.tree.features.attributes import PairAttributes


def sentences(part: str, longest: int, most: int | None):
    """Tokens with form and part of speech, and heads, of sentences of at most so many words."""
    table = read_conllu(data_directory() / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz", ("form", "upos", "head"))
    form, upos, head = (words[table.codes[:, c]] for c, words in enumerate(table.vocabularies))
    X, y = [], []
    for lo, hi in zip(table.offsets[:-1], table.offsets[1:], strict=True):
        if hi - lo <= longest and (most is None or len(X) < most):
            X.append([{"form": form[i].lower(), "upos": upos[i]} for i in range(lo, hi)])
            y.append([int(head[i]) for i in range(lo, hi)])
    return X, y


def by_word(scores, trees):
    """The best head of each word by itself, which need not give a tree."""
    pairs, best = trees.pairs(), np.empty(trees.n_words, np.int64)
    starts = np.concatenate([trees.offsets[i] + np.arange(n) * n for i, n in enumerate(trees.lengths)])
    for w, lo in enumerate(starts):
        n = trees.lengths[np.searchsorted(trees.word_offsets, w, side="right") - 1]
        best[w] = pairs[lo + np.argmax(scores[lo : lo + n]), 0]
    return best


def head_selection(features, trees, heads, l2, max_iter):
    """Softmax over the heads of each word by itself, on the same features and penalty, by SciPy's L-BFGS."""
    starts = np.concatenate([trees.offsets[i] + np.arange(n) * n for i, n in enumerate(trees.lengths)])
    chosen = trees.chosen(heads)
    counts = np.diff(np.append(starts, trees.n_pairs))
    used = np.zeros(trees.n_pairs)
    used[chosen] = 1.0

    def value(theta):
        s = features.forward(theta)
        top = np.maximum.reduceat(s, starts)
        p = np.exp(s - np.repeat(top, counts))
        z = np.add.reduceat(p, starts)
        loss = float(np.sum(np.log(z) + top) - s[chosen].sum()) + 0.5 * l2 * float(theta @ theta)
        return loss, features.adjoint(p / np.repeat(z, counts) - used) + l2 * theta

    return minimize(value, np.zeros(features.size), jac=True, method="L-BFGS-B", options={"maxiter": max_iter}).x


def attached(heads, gold):
    return float(np.mean(heads == gold))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--longest", type=int, default=30)
    parser.add_argument("--l2", type=float, default=1.0)
    parser.add_argument("--max-iter", type=int, default=200)
    options = parser.parse_args()
    print_load("start")
    X, y = sentences("train", options.longest, options.sentences)
    X_test, y_test = sentences("test", options.longest, None)
    begin = time.perf_counter()
    model = DependencyCRF(l2=options.l2, max_iter=options.max_iter, tol=1e-4).fit(X, y)
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    predicted = np.concatenate(model.predict(X_test))
    parsing = time.perf_counter() - begin
    data = read_sentences(X_test, True, None)
    gold = read_heads(y_test, data.trees)
    risk = clone(model).set_params(decoding="marginals")
    vars(risk).update({name: value for name, value in vars(model).items() if name.endswith("_")})
    # heads word by word, on the same features
    train = read_sentences(X, True, None)
    heads = read_heads(y, train.trees)
    attributes = PairAttributes.learned(train.tokens, train.trees, train.trees.chosen(heads))
    features = PairFeatures(attributes.matrix(train.tokens, train.trees), train.trees.offsets)
    begin = time.perf_counter()
    local = head_selection(features, train.trees, heads, options.l2, options.max_iter)
    local_seconds = time.perf_counter() - begin
    test = PairFeatures(attributes.matrix(data.tokens, data.trees), data.trees.offsets)
    own, greedy = test.forward(model.parameters_), test.forward(local)
    trees: DependencyTrees = data.trees
    previous = np.concatenate([np.arange(n) for n in trees.lengths])
    following = np.concatenate([np.append(np.arange(2, n + 1), 0) for n in trees.lengths])
    found = {
        "the word before": (previous, None, None),
        "the word behind": (following, None, None),
        "greedy: softmax over the heads of each word, best head": (by_word(greedy, trees), local_seconds, None),
        "the same weights, best tree": (trees.argmax(greedy)[0], None, None),
        "DependencyCRF's weights, best head of each word": (by_word(own, trees), None, None),
        "DependencyCRF, best tree": (predicted, seconds, trees.n_words / parsing),
        "DependencyCRF, tree of largest expected UAS": (np.concatenate(risk.predict(X_test)), None, None),
    }
    rows = [
        [name, f"{attached(heads, gold):.4f}", digits(spent), digits(speed, 4)]
        for name, (heads, spent, speed) in found.items()
    ]
    print(
        f"{len(X)} sentences of training, {train.trees.n_pairs} pairs, {features.size} weights; {len(X_test)} of test, "
        f"{trees.n_words} words; {model.n_iter_} iterations, {model.status_.name}"
    )
    print(markdown(["", "UAS", "seconds of training", "words a second"], rows))
    print_load("end")
    write_results("dependency", {"machine": machine(), "options": vars(options), "rows": rows})


if __name__ == "__main__":
    main()

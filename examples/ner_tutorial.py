"""Named entities in Spanish newspaper text with dict features: the tutorial of sklearn-crfsuite, on `partita.ChainCRF`.

A script for ``sklearn_crfsuite.CRF`` changes two lines: the import, and ``CRF(...)`` into ``ChainCRF.from_crfsuite(...)``.

    python examples/ner_tutorial.py                  # all sentences, about a minute
    python examples/ner_tutorial.py --sentences 500  # a few

The data (CoNLL-2002) are looked for in ``$PARTITA_DATA/conll2002_esp`` and ``../shared/data/conll2002_esp``; without them
made-up postal addresses stand in.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

from addresses import make_addresses
from scipy.stats import expon
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV

from partita import ChainCRF, metrics
from partita.io import read_columns
from partita.report import format_table

Sentence = list[tuple[str, str]]  # word and part of speech


def load_data(sentences: int | None) -> tuple[list[Sentence], list[list[str]], list[Sentence], list[list[str]]]:
    """Training and test sentences with their labels, the first `sentences` of each."""
    here = Path(__file__).resolve().parents[1]
    for root in (os.environ.get("PARTITA_DATA"), here.parent / "shared" / "data"):
        folder = Path(root or ".") / "conll2002_esp"
        if root and folder.is_dir():
            parts = []
            for name in ("esp.train.gz", "esp.testb.gz"):
                columns = read_columns(folder / name)
                words, tags = columns.sequences(0), columns.sequences(1)
                rows = [list(zip(*pair, strict=True)) for pair in zip(words, tags, strict=True)]
                parts += [rows[:sentences], columns.sequences(2)[:sentences]]
            return tuple(parts)
    count = 600 if sentences is None else sentences
    tokens, labels = make_addresses(2 * count, random_state=0)
    rows = [[(word, "NUM" if word.isdigit() else "WORD") for word in row] for row in tokens]
    return rows[:count], labels[:count], rows[count:], labels[count:]


def word_features(sentence: Sentence, i: int) -> dict[str, str | bool | float]:
    """What is known of a word and its neighbours; strings and booleans become one attribute each."""
    word, tag = sentence[i]
    features: dict[str, str | bool | float] = {
        "bias": 1.0,
        "word": word.lower(),
        "ends with 3": word[-3:],
        "ends with 2": word[-2:],
        "upper": word.isupper(),
        "title": word.istitle(),
        "digits": word.isdigit(),
        "tag": tag,
        "tag group": tag[:2],
    }
    for step in (-1, 1):
        if 0 <= i + step < len(sentence):
            word, tag = sentence[i + step]
            features |= {
                f"{step:+} word": word.lower(),
                f"{step:+} title": word.istitle(),
                f"{step:+} upper": word.isupper(),
                f"{step:+} tag": tag,
                f"{step:+} tag group": tag[:2],
            }
        else:
            features["first" if step < 0 else "last"] = True
    return features


def show(title: str, weights: list[tuple[tuple[str, str], float]], arrow: str) -> None:
    print(f"\n{title}")
    print(format_table(("", "weight"), [[f"{a} {arrow} {b}", f"{weight:+.3f}"] for (a, b), weight in weights]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=None, help="how many sentences to train and to test on")
    parser.add_argument("--candidates", type=int, default=10, help="how many penalties to try; 0 skips the search")
    options = parser.parse_args(arguments)

    train, y_train, test, y_test = load_data(options.sentences)
    X_train = [[word_features(sentence, i) for i in range(len(sentence))] for sentence in train]
    X_test = [[word_features(sentence, i) for i in range(len(sentence))] for sentence in test]
    print(f"{len(train)} sentences to train on, {len(test)} to test on; the first word is {X_train[0][0]}")

    crf = ChainCRF.from_crfsuite(algorithm="lbfgs", c1=0.0, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(X_train, y_train)
    labels = [label for label in crf.classes_.tolist() if label != "O"]  # O is most words, and easy
    y_pred = crf.predict(X_test)
    f1 = metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels, zero_division=0)
    print(f"\n{crf.status_}: weighted F1 of labels other than O {f1:.3f}, {crf.trace_.seconds[-1]:.1f} s")
    order = sorted(labels, key=lambda name: (name[1:], name[0]))
    print(metrics.flat_classification_report(y_test, y_pred, labels=order, digits=3, zero_division=0))
    print(metrics.chunk_scores(y_test, y_pred))

    if options.candidates:
        scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels, zero_division=0)
        penalties = {"l1": expon(scale=0.5), "l2": expon(scale=0.1)}  # c1 and 2 c2
        base = ChainCRF(transitions="all", max_iter=100, tol=1e-4)
        search = RandomizedSearchCV(base, penalties, cv=3, n_iter=options.candidates, scoring=scorer, random_state=0)
        search.fit(X_train, y_train)
        crf = search.best_estimator_
        best = ", ".join(f"{name} = {value:.4f}" for name, value in search.best_params_.items())
        print(f"\nbest of {options.candidates} by cross-validation: {best}, F1 {search.best_score_:.3f}")
        print(f"{len(crf.state_features_)} weights of attributes are not zero")
        f1 = metrics.flat_f1_score(y_test, crf.predict(X_test), average="weighted", labels=labels, zero_division=0)
        print(f"weighted F1 on the test sentences {f1:.3f}")

    transitions = Counter(crf.transition_features_)
    show("Likely transitions", transitions.most_common(8), "->")
    show("Unlikely transitions", transitions.most_common()[-8:], "->")
    states = Counter(crf.state_features_)
    show("Strongest for", states.most_common(10), "=>")
    show("Strongest against", states.most_common()[-10:], "=>")

    sentence, x = test[0], X_test[0]
    print("\nThe first test sentence, with the probability of each label")
    for (word, _), label, marginals in zip(sentence, crf.predict_single(x), crf.predict_marginals_single(x), strict=True):
        print(f"  {word:20} {label:10} {marginals[label]:.3f}")
    print("\nIts three best labellings")
    for labelling, value in crf.predict_kbest([x], 3)[0]:
        print(f"  log-probability {value:8.3f}: {' '.join(labelling)}")
    print(f"\nWhy\n{crf.explain(x, position=0)}")


if __name__ == "__main__":
    main()

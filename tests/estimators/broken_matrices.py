"""Break sparse matrices at random and give them to everything that takes them.

Run as a program by `test_sparse_doors.py`, because what it looks for ends the process: prints a line before each case, and
at the end how many were refused and how many were taken (a change may leave a matrix whole).
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import numpy as np
import scipy.sparse as sp

from partita import (
    ChainCRF,
    GraphCRF,
    HiddenChainCRF,
    LatentDynamicCRF,
    LatentSoftmax,
    SequenceData,
    SoftmaxRegression,
    l1_max,
)
from partita.softmax.estimators.softmax_regression import softmax_objective

ROWS, COLUMNS = 12, 6
FORMATS = ("csr", "csc", "coo", "bsr", "lil")
WRONG = (-1, COLUMNS, ROWS, 100, 10**6, 2**31 - 1, -(2**31))
QUICK = {"max_iter": 3}
Y = np.arange(ROWS) % 3
EDGES = np.column_stack([np.arange(ROWS - 1), np.arange(1, ROWS)])
LENGTHS = [5, 4, 3]
CHAINS = [Y[:5].tolist(), Y[5:9].tolist(), Y[9:].tolist()]
WORDS = ["a", "b", "c"]


def whole(rng, kind):
    dense = np.where(rng.random((ROWS, COLUMNS)) < 0.5, rng.normal(size=(ROWS, COLUMNS)), 0.0)
    return sp.csr_matrix(dense).asformat(kind)


def broken(rng, kind):
    """A matrix with one or two of its arrays cut, longer, of wrong numbers, in another order or of another type."""
    X = whole(rng, kind)
    names = [name for name in ("indices", "indptr", "data", "row", "col", "rows") if hasattr(X, name)]
    for _ in range(rng.integers(1, 3)):
        name = names[rng.integers(len(names))]
        values = np.array(getattr(X, name))
        at, how = rng.integers(max(1, len(values))), rng.integers(5)
        if not len(values):
            continue
        if values.dtype == object:  # lists of lil
            values[at] = [WRONG[rng.integers(len(WRONG))]] * rng.integers(3)
        elif how == 0:
            values = values[:at]
        elif how == 1:
            values = np.concatenate([values, values[: at + 1]])
        elif how == 2 and name != "data":
            values[at] = WRONG[rng.integers(len(WRONG))]
        elif how == 3:
            values = rng.permutation(values)
        else:
            values = values.astype((np.int64, np.float64, np.uint8)[rng.integers(3)])
        setattr(X, name, values)
    return X


def sequence_data(X):
    """Made of a whole matrix, whose arrays are broken afterwards."""
    data = SequenceData(whole(np.random.default_rng(0), "csr"), LENGTHS)
    data.X.data, data.X.indices, data.X.indptr = X.data, X.indices, X.indptr
    return data


def calls():
    good = whole(np.random.default_rng(1), "csr")
    softmax = SoftmaxRegression(**QUICK).fit(good, Y)
    latent = LatentSoftmax(random_state=0, **QUICK).fit(good, Y)
    chain = ChainCRF(**QUICK).fit(good, CHAINS, lengths=LENGTHS)
    hidden = HiddenChainCRF(random_state=0, **QUICK).fit(SequenceData(good, LENGTHS), WORDS)
    dynamic = LatentDynamicCRF(random_state=0, **QUICK).fit(SequenceData(good, LENGTHS), CHAINS)
    graph = GraphCRF(**QUICK).fit([(good, EDGES)], [Y])
    return {
        "SoftmaxRegression.fit": lambda X: SoftmaxRegression(**QUICK).fit(X, Y),
        "SoftmaxRegression.fit, two classes": lambda X: SoftmaxRegression(**QUICK).fit(X, Y > 1),
        "SoftmaxRegression(l1).fit": lambda X: SoftmaxRegression(l1=0.1, l2=0.0, **QUICK).fit(X, Y),
        "SoftmaxRegression.partial_fit": lambda X: SoftmaxRegression().partial_fit(X, Y, classes=[0, 1, 2]),
        "SoftmaxRegression.predict_proba": softmax.predict_proba,
        "LatentSoftmax.fit": lambda X: LatentSoftmax(random_state=0, **QUICK).fit(X, Y),
        "LatentSoftmax.fit, sets": lambda X: LatentSoftmax(random_state=0, **QUICK).fit(X, [None, *Y[1:].tolist()]),
        "LatentSoftmax.predict_proba": latent.predict_proba,
        "softmax_objective": lambda X: softmax_objective(X, Y).at(np.zeros(3 * (COLUMNS + 1))).gradient,
        "l1_max": lambda X: l1_max(X, Y),
        "ChainCRF.fit": lambda X: ChainCRF(**QUICK).fit(X, CHAINS, lengths=LENGTHS),
        "ChainCRF.fit, a list": lambda X: ChainCRF(**QUICK).fit([X], [Y.tolist()]),
        "ChainCRF.fit, SequenceData": lambda X: ChainCRF(**QUICK).fit(sequence_data(X), CHAINS),
        "ChainCRF.predict": lambda X: chain.predict(X, lengths=LENGTHS),
        "ChainCRF.predict, SequenceData": lambda X: chain.predict(sequence_data(X)),
        "ChainCRF.predict_marginals": lambda X: chain.predict_marginals([X]),
        "SequenceData.take": lambda X: sequence_data(X).take(np.array([1, 0])),
        "HiddenChainCRF.fit": lambda X: HiddenChainCRF(random_state=0, **QUICK).fit(sequence_data(X), WORDS),
        "HiddenChainCRF.predict": lambda X: hidden.predict(sequence_data(X)),
        "LatentDynamicCRF.fit": lambda X: LatentDynamicCRF(random_state=0, **QUICK).fit(sequence_data(X), CHAINS),
        "LatentDynamicCRF.predict": lambda X: dynamic.predict(sequence_data(X)),
        "GraphCRF.fit": lambda X: GraphCRF(**QUICK).fit([(X, EDGES)], [Y]),
        "GraphCRF.predict": lambda X: graph.predict([(X, EDGES)]),
    }


def main(seed, rounds):
    rng, counts = np.random.default_rng(seed), Counter()
    for name, call in calls().items():
        for _ in range(rounds):
            kind = "csr" if "SequenceData" in name or "hain" in name or "Dynamic" in name else FORMATS[rng.integers(5)]
            X = broken(rng, kind)
            print(name, kind, flush=True)
            try:
                call(X)
                counts["taken"] += 1
            except (ValueError, TypeError) as error:
                counts["refused"] += 1
                if "broken sparse matrix" not in str(error):
                    counts[f"{name}: {type(error).__name__}: {error}"[:200]] += 1
    print(dict(counts))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:3]))

"""Every public estimator on a little data: how to make it, fit it, use it, and what its objective is; and every objective.

A new estimator is one row of `CASES` (and one function of `questions`). Conformance, traces, faults and interrupts use the
same rows. Without a penalty the objective is minus the log-likelihood, whatever a penalty would be of.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from partita import (
    LBFGS,
    BayesianNetwork,
    BlockFrankWolfe,
    BoltzmannChain,
    ChainCRF,
    ColumnTagger,
    CompositeLikelihood,
    DependencyCRF,
    GraphCRF,
    HiddenChainCRF,
    LatentDynamicCRF,
    LatentSoftmax,
    MarkovNetwork,
    MatchingCRF,
    MaxEnt,
    OracleCRF,
    SoftmaxRegression,
)
from partita.bayesnet.objective import NetworkLikelihood
from partita.bayesnet.structure.bayes_net import BayesNet
from partita.chain.features.chain import ChainFeatures
from partita.chain.features.tied import TiedFeatures
from partita.chain.objective.boltzmann import BoltzmannChainLikelihood
from partita.constraints import Box
from partita.core.arrays.columns import Columns
from partita.features import LabelFeatures, TableType, Templates, TiedTables
from partita.graph.objective.composite import GraphComposite
from partita.matching.features import EdgeFeatures
from partita.matching.objective.exact import ExactMatchingLikelihood
from partita.matching.objective.likelihood import Group, MatchingLikelihood
from partita.objectives import (
    L1,
    ChainComposite,
    ChainLikelihood,
    Constrained,
    GraphLikelihood,
    LatentLikelihood,
    Likelihood,
    NamedWeights,
    compile_constraints,
)
from partita.oracle import register_oracle
from partita.softmax.estimators.softmax_regression import softmax_objective
from partita.structures import BipartiteMatching, Categorical, DependencyTrees, FactorGraph
from partita.tree import PairFeatures, TreeLikelihood

GRADIENT = ("auto", "lbfgs", "cg", "steepest")


@dataclass(frozen=True)
class Case:
    """An estimator.

    Attributes
    ----------
    make, fit, use : callables
        The estimator from options, its fit, and something to ask of it.
    objective : callable or None
        What the last row of its trace should say.
    solvers : tuple
        Names that it takes.
    options : dict
        Those it is made with.
    bad : callable or None
        A fit that must fail, because of the data.
    iterates : bool
        Whether its fit takes steps, and is not done at once.
    """

    make: Callable[..., Any]
    fit: Callable[[Any], Any]
    use: Callable[[Any], Any]
    objective: Callable[[Any], float] | None = None
    solvers: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    bad: Callable[[Any], Any] | None = None
    iterates: bool = True

    def made(self, **options: Any) -> Any:
        return self.make(**{**self.options, **options})

    def fitted(self, **options: Any) -> Any:
        return self.trained(self.made(**options))

    def trained(self, model: Any) -> Any:
        """The model after its fit, without warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.fit(model)
        return model


def contents(model: Any) -> list[dict[str, Any]]:
    """Attributes of an estimator and of those within it that a fit changes."""
    return [dict(vars(part)) for part in (model, getattr(model, "model", None), getattr(model, "templates", None)) if part]


def unchanged(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> bool:
    """Whether all attributes are the same objects."""
    return all(a.keys() == b.keys() and all(a[key] is b[key] for key in a) for a, b in zip(before, now, strict=True))


def _table(n: int = 120, width: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, width))
    return X, np.argmax(X[:, :3] + 0.7 * rng.gumbel(size=(n, 3)), axis=1)


def _sentences(n: int = 25) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    words = [[f"w{rng.integers(6)}" for _ in range(rng.integers(1, 7))] for _ in range(n)]
    y = [["a" if (int(w[1]) + rng.integers(2)) % 3 else "b" for w in sentence] for sentence in words]
    return words, y


def two_best_parts(scores: Any) -> Any:
    """Stands for a solver that somebody else wrote."""
    return np.isin(np.arange(len(scores)), np.argsort(-scores, kind="stable")[:2])


def _parts(n: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    X = [rng.standard_normal((2, 4 + i % 3)) for i in range(n)]
    return X, [two_best_parts(x[0] + rng.gumbel(size=x.shape[1])) for x in X]


def _graphs(n: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    X = [(rng.standard_normal((4, 2)), edges) for _ in range(n)]
    return X, [((F[:, 0] + 0.5 * rng.standard_normal(4)) > 0).astype(int) for F, _ in X]


def _matchings(n: int = 4, m: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = [rng.standard_normal((2, n, n)) for _ in range(m)]
    return X, [BipartiteMatching(n).sample(F[0] - 0.5 * F[1], 1, rng)[0] for F in X]


def _columns(n: int = 20) -> Any:
    words, labels = _sentences(n)
    flat = [[w for s in words for w in s], [v for s in labels for v in s]]
    codes, vocabularies = zip(*(reversed(np.unique(column, return_inverse=True)) for column in flat), strict=True)
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in words])])
    return Columns(
        np.column_stack(codes), tuple(v.astype(object) for v in vocabularies), offsets, np.arange(offsets[-1]) + 1, "zoo"
    )


X, Y = _table()
TOKENS, TAGS = _sentences()
ATTRIBUTES = [[[w, "1"] for w in sentence] for sentence in TOKENS]
#: Every word hangs on the next, now and then on the one after it.
HEADS = [[min(i + 2 + (i % 3 == 0), len(s)) for i in range(len(s) - 1)] + [0] for s in TOKENS]
WHOLE = ["long" if len(sentence) > 3 else "short" for sentence in TOKENS]
GRAPHS, NODES = _graphs()
PARTS, CHOSEN = _parts()
register_oracle("two best parts", two_best_parts)
MATCHES, PAIRS = _matchings()
#: The same, but that the last column is nobody's.
LONELY = [np.where(y == 3, -1, y) for y in PAIRS]
#: Two columns for every row: its own and the next.
TABLES = [np.eye(4, dtype=int)[y] + np.eye(4, dtype=int)[(y + 1) % 4] for y in PAIRS]
STATES = (np.random.default_rng(4).random((60, 4)) < 0.3 + 0.4 * np.random.default_rng(5).integers(0, 2, (60, 1))).astype(
    int
)
FACES = np.arange(1.0, 7.0)
COLUMNS = _columns()
REFINED = CompositeLikelihood({1: 1.0}, refine="full")
NAMES = np.array(["a", "b", "c"])[Y]
MATRICES = [np.random.default_rng(6).standard_normal((k, 3)) for k in (5, 2, 4, 1, 6, 3)]
NUMBERS = [(F[:, 0] + np.random.default_rng(7).standard_normal(len(F)) > 0.0).astype(int).tolist() for F in MATRICES]
COMPOSITE = CompositeLikelihood({1: 1.0, "full": 0.25}, refresh=False, random_state=0)
#: Labels that keep the rule that no "b" follows another.
RULED = [["a" if t % 2 else label for t, label in enumerate(labels)] for labels in TAGS]
PATH = [(0, 1), (1, 2), (2, 3)]
TYPED = [{"nodes": {"p": np.ones((2, 1)), "q": np.ones((2, 2))}, "edges": {("p", "q"): np.array([[0, 1]])}}]
TYPED_LABELS = [{"p": ["x", "y"], "q": [3, 4]}]


def _log_loss(model: Any) -> float:
    return -float(model.predict_log_proba(X)[np.arange(len(Y)), Y].sum())


def _dual(model: Any) -> float:
    """log Z of the shifted moments, which the solver minimises (a prior of ones)."""
    return float(np.logaddexp.reduce((FACES - 4.5) * model.coef_[0]))


def _hidden(options: dict[str, Any]) -> dict[str, Any]:
    return {"edges": [("h", "a"), ("h", "b"), ("h", "c"), ("h", "d")], "hidden": {"h": 2}, "random_state": 0, **options}


def _rows() -> Any:
    return {name: STATES[:, i] for i, name in enumerate("abcd")}


CASES = {
    "SoftmaxRegression": Case(
        SoftmaxRegression,
        lambda m: m.fit(X, Y),
        lambda m: m.predict_proba(X),
        _log_loss,
        (*GRADIENT, "newton", "majorize", "stochastic", "sgd"),
        {"l2": 0.0},
        bad=lambda m: m.fit(X[:-1], Y),
    ),
    "SoftmaxRegression l1": Case(
        SoftmaxRegression,
        lambda m: m.fit(X, Y),
        lambda m: m.predict_proba(X),
        lambda m: _log_loss(m) + 2.0 * float(np.abs(m.coef_).sum()),
        ("auto", "proximal"),
        {"l2": 0.0, "l1": 2.0},
        bad=lambda m: m.fit(X[:-1], Y),
    ),
    "SoftmaxRegression in a box": Case(
        SoftmaxRegression,
        lambda m: m.fit(X, Y),
        lambda m: m.predict_proba(X),
        _log_loss,
        ("auto", "majorize", "constrained_newton"),
        {"l2": 0.0, "constraints": [Box(lower=-0.2, upper=0.6)]},
        bad=lambda m: m.fit(X[:-1], Y),
    ),
    "SoftmaxRegression in pieces": Case(
        SoftmaxRegression,
        lambda m: m.partial_fit(X, Y, classes=[0, 1, 2]),
        lambda m: m.predict_proba(X),
        bad=lambda m: m.partial_fit(X[:-1], Y, classes=[0, 1, 2]),
    ),
    "SoftmaxRegression on a stream": Case(
        SoftmaxRegression,
        lambda m: m.fit_stream([(X[:60], Y[:60]), (X[60:], Y[60:])], classes=[0, 1, 2]),
        lambda m: m.predict_proba(X),
        bad=lambda m: m.fit_stream([(X[:60], Y[:60]), (X[60:], Y[:60])], classes=[0, 1]),
    ),
    "SoftmaxRegression of names": Case(
        SoftmaxRegression,
        lambda m: m.fit(X, NAMES),
        lambda m: m.predict_proba(X),
        bad=lambda m: m.fit(X, NAMES[:-1]),
    ),
    "SoftmaxRegression of two classes": Case(
        SoftmaxRegression,
        lambda m: m.fit(X, Y == 0),
        lambda m: m.predict_proba(X),
        None,
        (LBFGS(),),
        {"prior": [0.4, 0.6]},
        bad=lambda m: m.fit(X, Y),
    ),
    "LatentSoftmax": Case(
        LatentSoftmax,
        lambda m: m.fit(X, Y),
        lambda m: m.predict_proba(X),
        _log_loss,
        (*GRADIENT, "newton", "majorize", "em"),
        {"l2": 0.0, "n_init": 2, "random_state": 0},
        bad=lambda m: m.fit(X[:-1], Y),
    ),
    "MaxEnt": Case(
        MaxEnt,
        lambda m: m.fit(),
        lambda m: m.sample(3, 0),
        None,
        (*GRADIENT, "newton", "majorize"),
        {"features": FACES, "equality": [4.5]},
    ),
    "ChainCRF": Case(
        ChainCRF,
        lambda m: m.fit(ATTRIBUTES, TAGS),
        lambda m: m.predict(ATTRIBUTES),
        lambda m: -float(m.log_likelihood(ATTRIBUTES, TAGS).sum()),
        (*GRADIENT, "newton", "majorize", "stochastic", "sgd"),
        {"l2": 0.0},
        bad=lambda m: m.fit(ATTRIBUTES[:-1], TAGS),
    ),
    "ChainCRF l1": Case(
        ChainCRF,
        lambda m: m.fit(ATTRIBUTES, TAGS),
        lambda m: m.predict(ATTRIBUTES),
        lambda m: -float(m.log_likelihood(ATTRIBUTES, TAGS).sum()) + 0.5 * float(np.abs(m.parameters_).sum()),
        ("auto", "owlqn"),
        {"l2": 0.0, "l1": 0.5},
        bad=lambda m: m.fit(ATTRIBUTES[:-1], TAGS),
    ),
    "ChainCRF with a dev set": Case(
        ChainCRF,
        lambda m: m.fit(ATTRIBUTES[:18], TAGS[:18], X_dev=ATTRIBUTES[18:], y_dev=TAGS[18:]),
        lambda m: m.predict(ATTRIBUTES),
        lambda m: -float(m.log_likelihood(ATTRIBUTES[:18], TAGS[:18]).sum()),
        ("auto", "lbfgs"),
        {"l2": 0.0, "patience": 2},
        bad=lambda m: m.fit(ATTRIBUTES, TAGS, X_dev=ATTRIBUTES, y_dev=TAGS[1:]),
    ),
    "ChainCRF refined": Case(
        ChainCRF,
        lambda m: m.fit(ATTRIBUTES, TAGS),
        lambda m: m.predict(ATTRIBUTES),
        None,
        ("auto",),
        {"l2": 0.5, "likelihood": REFINED},
        bad=lambda m: m.fit(ATTRIBUTES[:-1], TAGS),
    ),
    "ChainCRF with rules": Case(
        ChainCRF,
        lambda m: m.fit(ATTRIBUTES, RULED),
        lambda m: m.predict(ATTRIBUTES),
        None,
        ("auto", "newton"),
        {"l2": 0.5, "start_end": True, "forbidden": [("b", "b")]},
        bad=lambda m: m.fit(ATTRIBUTES, TAGS),
    ),
    "ChainCRF hashed": Case(
        ChainCRF,
        lambda m: m.fit(ATTRIBUTES, TAGS),
        lambda m: m.predict(ATTRIBUTES),
        None,
        ("auto",),
        {"l2": 0.5, "hashing": 64},
        bad=lambda m: m.fit(ATTRIBUTES, TAGS[:-1]),
    ),
    "ChainCRF of matrices": Case(
        ChainCRF,
        lambda m: m.fit(MATRICES, NUMBERS),
        lambda m: m.predict(MATRICES),
        None,
        ("auto",),
        {"l2": 0.5, "likelihood": COMPOSITE},
        bad=lambda m: m.fit([F * np.nan for F in MATRICES], NUMBERS),
    ),
    "ChainCRF in pieces": Case(
        ChainCRF,
        lambda m: m.partial_fit(ATTRIBUTES, TAGS),
        lambda m: m.predict(ATTRIBUTES),
        None,
        (),
        {"l2": 0.5},
        bad=lambda m: m.partial_fit(ATTRIBUTES[:-1], TAGS),
    ),
    "HiddenChainCRF": Case(
        HiddenChainCRF,
        lambda m: m.fit(ATTRIBUTES, WHOLE),
        lambda m: m.predict(ATTRIBUTES),
        lambda m: -float(m.log_likelihood(ATTRIBUTES, WHOLE).sum()),
        ("auto", "lbfgs", "steepest"),
        {"l2": 0.0, "n_init": 2, "random_state": 0},
        bad=lambda m: m.fit(ATTRIBUTES[:-1], WHOLE),
    ),
    "LatentDynamicCRF": Case(
        LatentDynamicCRF,
        lambda m: m.fit(ATTRIBUTES, TAGS),
        lambda m: m.predict(ATTRIBUTES),
        lambda m: -float(m.log_likelihood(ATTRIBUTES, TAGS).sum()),
        ("auto", "lbfgs", "steepest"),
        {"l2": 0.0, "n_init": 2, "random_state": 0},
        bad=lambda m: m.fit(ATTRIBUTES[:-1], TAGS),
    ),
    "BoltzmannChain": Case(
        BoltzmannChain,
        lambda m: m.fit(TOKENS, TAGS),
        lambda m: m.predict(TOKENS),
        lambda m: -float(m.log_likelihood(TOKENS, TAGS).sum()),
        ("auto", "lbfgs", "newton"),
        {"l2": 0.0, "likelihood": "full"},
        bad=lambda m: m.fit(TOKENS[:-1], TAGS),
    ),
    "OracleCRF": Case(
        OracleCRF,
        lambda m: m.fit(PARTS, CHOSEN),
        lambda m: m.predict(PARTS),
        None,
        ("block_frank_wolfe", BlockFrankWolfe(batch=True)),
        {"oracle": "two best parts", "tol": 1e-3},
        bad=lambda m: m.fit(PARTS[:-1], CHOSEN),
    ),
    "GraphCRF": Case(
        GraphCRF,
        lambda m: m.fit(GRAPHS, NODES),
        lambda m: m.predict(GRAPHS),
        lambda m: -float(m.log_likelihood(GRAPHS, NODES).sum()),
        (*GRADIENT, "newton", "majorize"),
        {"l2": 0.0},
        bad=lambda m: m.fit(GRAPHS[:-1], NODES),
    ),
    "GraphCRF bethe": Case(
        GraphCRF,
        lambda m: m.fit(GRAPHS, NODES),
        lambda m: m.predict(GRAPHS),
        None,
        ("auto", "block_frank_wolfe"),
        {"l2": 1.0, "likelihood": "bethe"},
        bad=lambda m: m.fit(GRAPHS[:-1], NODES),
    ),
    "GraphCRF with tables": Case(
        GraphCRF,
        lambda m: m.fit(GRAPHS, NODES),
        lambda m: m.predict(GRAPHS),
        None,
        ("auto",),
        {"l2": 0.5, "tables": {"edge": [[0.0, 0.1], [0.1, 0.0]]}},
        bad=lambda m: m.fit(GRAPHS, [np.ones(7)] * len(GRAPHS)),
    ),
    "GraphCRF with types": Case(
        GraphCRF,
        lambda m: m.fit(TYPED, TYPED_LABELS),
        lambda m: m.predict(TYPED),
        None,
        ("auto",),
        {"l2": 1.0},
        bad=lambda m: m.fit(TYPED, [{"p": ["x", "y"]}]),
    ),
    "MarkovNetwork": Case(
        lambda **options: MarkovNetwork.ising(PATH, **options),
        lambda m: m.fit(STATES),
        lambda m: m.predict(STATES),
        lambda m: -float(m.log_likelihood(STATES).sum()),
        (*GRADIENT, "newton", "majorize"),
        {"l2": 0.0},
        bad=lambda m: m.fit(STATES + 2),
    ),
    "MarkovNetwork refined": Case(
        lambda **options: MarkovNetwork.ising(PATH, **options),
        lambda m: m.fit(STATES),
        lambda m: m.predict(STATES),
        lambda m: -float(m.log_likelihood(STATES).sum()),
        ("auto",),
        {"l2": 0.0, "likelihood": REFINED},
        bad=lambda m: m.fit(STATES + 2),
    ),
    "MarkovNetwork tied": Case(
        lambda **options: MarkovNetwork.potts(PATH, 2, **options),
        lambda m: m.fit(STATES),
        lambda m: m.predict(STATES),
        None,
        ("auto",),
        {"l2": 0.1},
        bad=lambda m: m.fit(STATES[:, :3]),
    ),
    "MarkovNetwork by pseudo-likelihood": Case(
        lambda **options: MarkovNetwork.boltzmann(4, **options),
        lambda m: m.fit(STATES),
        lambda m: m.predict(STATES),
        None,
        ("auto",),
        {"l2": 0.1, "likelihood": "pseudo"},
        bad=lambda m: m.fit(STATES * 0.5),
    ),
    "MatchingCRF": Case(
        MatchingCRF,
        lambda m: m.fit(MATCHES, PAIRS),
        lambda m: m.predict(MATCHES),
        lambda m: -float(np.sum(m.log_likelihood(MATCHES, PAIRS))) + 0.25 * float((m.parameters_**2).sum()),
        ("auto", "lbfgs", "newton"),
        {"l2": 0.5},
        bad=lambda m: m.fit(MATCHES[:-1], PAIRS),
    ),
    "MatchingCRF bethe": Case(
        MatchingCRF,
        lambda m: m.fit(MATCHES, PAIRS),
        lambda m: m.predict(MATCHES),
        lambda m: -float(np.sum(m.log_likelihood(MATCHES, PAIRS))) + 0.25 * float((m.parameters_**2).sum()),
        ("auto", "lbfgs", "block_frank_wolfe"),
        {"l2": 0.5, "likelihood": "bethe"},
        bad=lambda m: m.fit(MATCHES[:-1], PAIRS),
    ),
    "MatchingCRF that may leave alone": Case(
        MatchingCRF,
        lambda m: m.fit(MATCHES, LONELY),
        lambda m: m.predict(MATCHES),
        lambda m: (
            -float(np.sum(m.log_likelihood(MATCHES, LONELY)))
            + 0.25 * float((m.parameters_**2).sum() + (m.row_parameters_**2).sum())
        ),
        ("auto", "lbfgs", "newton"),
        {"l2": 0.5, "allow_unmatched": True},
        bad=lambda m: m.fit(MATCHES, [[0, 0, 1, 2]] * len(MATCHES)),
    ),
    "MatchingCRF of b-matchings": Case(
        MatchingCRF,
        lambda m: m.fit(MATCHES, TABLES),
        lambda m: m.predict(MATCHES),
        lambda m: -float(np.sum(m.log_likelihood(MATCHES, TABLES))) + 0.25 * float((m.parameters_**2).sum()),
        ("auto", "lbfgs"),
        {"l2": 0.5, "b": 2},
        bad=lambda m: m.fit(MATCHES, PAIRS),
    ),
    "BayesianNetwork": Case(
        lambda **options: BayesianNetwork(**_hidden(options)),
        lambda m: m.fit(frame()),
        lambda m: m.log_likelihood(frame()),
        lambda m: -float(m.log_likelihood(frame()).sum()),
        (),
        {"alpha": 0.0, "n_init": 3},
        bad=lambda m: m.fit(frame("ab")),
    ),
    "BayesianNetwork convex": Case(
        lambda **options: BayesianNetwork(**_hidden(options)),
        lambda m: m.fit(frame()),
        lambda m: m.log_likelihood(frame()),
        None,
        (),
        {"method": "convex+em"},
        bad=lambda m: m.fit(frame("ab")),
    ),
    "BayesianNetwork without hidden variables": Case(
        lambda **options: BayesianNetwork([("a", "b"), ("b", "c")], **options),
        lambda m: m.fit(frame("abc")),
        lambda m: m.log_likelihood(frame("abc")),
        bad=lambda m: m.fit(frame("abd")),
        iterates=False,
    ),
    "DependencyCRF": Case(
        DependencyCRF,
        lambda m: m.fit(TOKENS, HEADS),
        lambda m: m.predict(TOKENS),
        lambda m: -float(m.log_likelihood(TOKENS, HEADS).sum()) + 0.25 * float((m.parameters_**2).sum()),
        ("auto", "newton", *GRADIENT[1:]),
        {"l2": 0.5},
        bad=lambda m: m.fit(TOKENS, HEADS[:-1]),
    ),
    "ColumnTagger": Case(
        lambda **options: ColumnTagger(Templates.parse("U0:%x[0,0]\nB\n"), ChainCRF(**options)),
        lambda m: m.fit(COLUMNS),
        lambda m: m.predict(COLUMNS),
        None,
        (),
        {"l2": 0.5},
        bad=lambda m: m.fit(COLUMNS, TAGS[:3]),
    ),
}


def frame(columns: str = "abcd") -> Any:
    """The states as a data frame."""
    import pandas as pd

    return pd.DataFrame(_rows())[list(columns)]


def _softmax(data: Any = X, **options: Any) -> Any:
    return softmax_objective(data, Y, **{"l2": 0.5, "penalize_intercept": True, **options})


def _labels_of_pairs(**options: Any) -> Any:
    rng = np.random.default_rng(6)
    F, y = rng.standard_normal((30, 4, 3)), rng.integers(0, 4, 30)
    return Likelihood(LabelFeatures(F), Categorical(4), y, penalty=0.5, **options)


def _latent() -> Any:
    objective = _softmax()
    allowed = (np.arange(3) == Y[:, None]) | (np.arange(len(Y)) % 5 == 0)[:, None]
    return LatentLikelihood(objective.features, objective.structure, allowed, penalty=0.5)


def _boxed(objective: Any, weights: Any = None) -> Any:
    return Constrained(objective, compile_constraints([Box(lower=-0.2, upper=0.6)], weights or objective.features))


def chain_features(n_attributes: int = 6) -> ChainFeatures:
    """Thirty short chains of three labels."""
    rng = np.random.default_rng(7)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(1, 9, 30))))
    rows = sp.random(offsets[-1], n_attributes, 3.0 / n_attributes, format="csr", random_state=0)
    pairs = np.repeat(np.arange(n_attributes), 3), np.tile(np.arange(3), n_attributes)
    return ChainFeatures(rows, offsets, 3, *pairs, np.argwhere(np.ones((3, 3))), starts=True, ends=True)


def _chains(n_attributes: int = 6, tied: bool = False, unknown: bool = False, orders: Any = None) -> Any:
    features: Any = chain_features(n_attributes)
    y = np.random.default_rng(8).integers(0, 3, features.n_positions)
    if tied:
        features = TiedFeatures(features, np.arange(features.size) // 2)
    if orders:
        return ChainComposite(features, y, CompositeLikelihood(orders), penalty=0.5)
    if unknown:
        y[::3] = -1
    return ChainLikelihood(features, y, sets=np.ones((1, 3), bool), penalty=0.5)


def _boltzmann(unknown: bool = False) -> Any:
    rng = np.random.default_rng(9)
    offsets = np.arange(0, 61, 4)
    x, y = rng.integers(0, 5, 60), rng.integers(0, 2, 60)
    if unknown:
        y[::5] = -1
    return BoltzmannChainLikelihood(x, y, offsets, np.ones(5), 2, sets=np.ones((1, 2), bool), l2=0.5)


def tied_tables() -> TiedTables:
    """Five paths of three variables with two states."""
    rng = np.random.default_rng(4)
    graph = FactorGraph.union([FactorGraph([2] * 3, [(0,), (1,), (2,), (0, 1), (1, 2)])] * 5)
    k = np.arange(graph.n_factors)
    return TiedTables(graph, [TableType(k[k % 5 < 3], rng.standard_normal((15, 2))), TableType(k[k % 5 >= 3])])


def _paths(unknown: bool = False, **options: Any) -> Any:
    y = np.random.default_rng(5).integers(0, 2, 15)
    y[::4] = -1 if unknown else y[::4]
    return GraphLikelihood(tied_tables(), y, penalty=0.5, **options)


def _composite_paths(orders: Any = None) -> Any:
    y = np.random.default_rng(5).integers(0, 2, 15)
    return GraphComposite(tied_tables(), y, CompositeLikelihood(orders or {1: 1.0}), penalty=0.5)


def edge_features() -> EdgeFeatures:
    """Two features of the edges of twelve bipartite graphs."""
    return EdgeFeatures(np.array(MATCHES).reshape(len(MATCHES), 2, -1).transpose(1, 0, 2))


def _matching_likelihood() -> Any:
    structure = BipartiteMatching(4)
    return MatchingLikelihood([Group(structure, edge_features(), structure.indicators(np.array(PAIRS)), np.ones(12))], 0.5)


def _exact_matchings() -> Any:
    structure = BipartiteMatching(4)
    group = Group(structure, edge_features(), structure.indicators(np.array(PAIRS)), np.ones(12))
    return ExactMatchingLikelihood([group], 0.5)


def _trees() -> Any:
    rng = np.random.default_rng(10)
    trees = DependencyTrees([3, 2, 4])
    features = PairFeatures(rng.standard_normal((trees.n_pairs, 3)), trees.offsets)
    return TreeLikelihood(features, trees, trees.sample(np.zeros(trees.n_pairs), 1, 0)[0], penalty=0.5)


def _open_trees() -> Any:
    objective = _trees()
    allowed = np.arange(objective.structure.n_pairs) % 7 != 3
    return TreeLikelihood(objective.features, objective.structure, None, allowed=allowed, penalty=0.5)


def _network() -> Any:
    net = BayesNet([2, 2, 2], [(), (0,), (0,)])
    states = np.column_stack([np.full(60, -1), STATES[:, :2]])
    return NetworkLikelihood(net, states, alpha=0.5)


OBJECTIVES: dict[str, Callable[[], Any]] = {
    "softmax": _softmax,
    "softmax, sparse": lambda: _softmax(sp.csr_matrix(X)),
    "softmax, wide": lambda: _softmax(np.tile(X, 20)),
    "labels": _labels_of_pairs,
    "labels, linear term": lambda: _labels_of_pairs(linear=np.ones(3)),
    "latent": _latent,
    "elastic net": lambda: _softmax(l1=2.0),
    "l1": lambda: L1(_softmax(), 2.0),
    "l1, chains": lambda: L1(_chains(), 0.5),
    "l1, graphs, reweighted": lambda: L1(_paths(engine="trw"), 0.5),
    "in a box": lambda: _boxed(_softmax()),
    "in a box, graphs, reweighted": lambda: _boxed(_paths(engine="trw"), NamedWeights.of_features(_paths().size)),
    "chains": _chains,
    "chains, many attributes": lambda: _chains(120),
    "chains, tied weights": lambda: _chains(tied=True),
    "chains, unknown labels": lambda: _chains(unknown=True),
    "chains, composite": lambda: _chains(orders={1: 1.0, 2: 0.5}),
    "boltzmann chains": _boltzmann,
    "boltzmann chains, unknown labels": lambda: _boltzmann(unknown=True),
    "graphs": _paths,
    "graphs, unknown states": lambda: _paths(unknown=True),
    "graphs, reweighted": lambda: _paths(engine="trw"),
    "graphs, composite": _composite_paths,
    "graphs, composite, drawn": lambda: _composite_paths({1: 1.0, 2: 0.5}),
    "matchings": _matching_likelihood,
    "matchings, exact": _exact_matchings,
    "trees": _trees,
    "trees, unknown heads": _open_trees,
    "network": _network,
}

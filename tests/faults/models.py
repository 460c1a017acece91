"""A small fitted model of every estimator, and the questions that are put to it."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import partita as pt
from partita.constraints import Box
from partita.features import Templates
from partita.io import read_columns

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
STATES = RNG.integers(0, 2, size=(60, 4))
TOKENS = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "cat"}, {"w": "sat"}]]
WORDS = [["the", "cat"], ["a", "cat", "sat"]]
LABELS = [["D", "N"], ["D", "N", "V"]]
MATRICES = [RNG.normal(size=(5, 3)) for _ in range(6)]
NUMBERS = [RNG.integers(0, 2, 5).tolist() for _ in range(6)]
LETTERS = [[[letter] for letter in word] for word in ("aabb", "ab", "aab", "bbaa", "ba", "baa")]
EDGES = np.array([[0, 1], [1, 2]])
GRAPHS = [(np.array([[1.0], [0.2], [0.9]]), EDGES), (np.array([[-1.0], [0.1], [-0.8]]), EDGES)]
ON = [["on", "on", "on"], ["off", "off", "off"]]
TYPED = [{"nodes": {"p": np.ones((2, 1)), "q": np.ones((2, 2))}, "edges": {("p", "q"): np.array([[0, 1]])}}]
MATCHINGS = RNG.normal(size=(6, 2, 4, 4)) + np.array([2.0, 0.0])[:, None, None] * np.eye(4)
COLUMNS = b"the D\ncat N\n\na D\ncat N\nsat V\n"


def _columns(content: bytes = COLUMNS) -> Any:
    return read_columns(io.BytesIO(content))


def _frame(states: Any = STATES) -> Any:
    import pandas

    return pandas.DataFrame({"a": states[:, 0], "b": states[:, 1], "c": states[:, 2]})


def fits() -> dict[str, Callable[[], Any]]:
    """How each model is made."""
    composite = pt.CompositeLikelihood({1: 1.0, "full": 0.25}, refresh=False, random_state=0)
    ising = [(0, 1), (1, 2), (2, 3)]
    return {
        "softmax": lambda: pt.SoftmaxRegression().fit(X, Y),
        "softmax of two": lambda: pt.SoftmaxRegression(solver=pt.LBFGS(), prior=[0.5, 0.5]).fit(X, Y == "a"),
        "softmax with constraints": lambda: pt.SoftmaxRegression(constraints=[Box(lower=0.0)]).fit(X, Y),
        "softmax of a stream": lambda: pt.SoftmaxRegression(solver="stochastic").partial_fit(X, Y, classes=["a", "b", "c"]),
        "latent softmax": lambda: pt.LatentSoftmax(n_hidden=2, l2=0.1, random_state=0).fit(X, Y),
        "maximum entropy": lambda: pt.MaxEnt(features=X[:20], equality=np.zeros(3)).fit(),
        "chain": lambda: pt.ChainCRF(l2=0.1, start_end=True, forbidden=[("V", "D")]).fit(TOKENS, LABELS),
        "hashed chain": lambda: pt.ChainCRF(l2=0.1, hashing=64).fit(TOKENS, LABELS),
        "chain of matrices": lambda: pt.ChainCRF(likelihood=composite).fit(MATRICES, NUMBERS),
        "chain of a stream": lambda: pt.ChainCRF().partial_fit(TOKENS, LABELS),
        "hidden chain": lambda: pt.HiddenChainCRF(n_hidden=2, l2=0.1, random_state=0).fit(LETTERS, list("rrrfff")),
        "latent-dynamic chain": lambda: pt.LatentDynamicCRF(n_hidden=2, random_state=0).fit(TOKENS, LABELS),
        "Boltzmann chain": lambda: pt.BoltzmannChain().fit(WORDS, LABELS),
        "tagger": lambda: pt.ColumnTagger(Templates.builtin("word"), pt.ChainCRF(l2=0.1)).fit(_columns()),
        "graph": lambda: pt.GraphCRF(l2=0.1, tables={"edge": [[0.0, 0.1], [0.1, 0.0]]}).fit(GRAPHS, ON),
        "graph with types": lambda: pt.GraphCRF(l2=1.0).fit(TYPED, [{"p": ["x", "y"], "q": [3, 4]}]),
        "Markov network": lambda: pt.MarkovNetwork.ising(ising, l2=0.1).fit(STATES),
        "tied Markov network": lambda: pt.MarkovNetwork.potts(ising, 2, l2=0.1).fit(STATES),
        "pseudo-likelihood": lambda: pt.MarkovNetwork.boltzmann(4, likelihood="pseudo", l2=0.1).fit(STATES),
        "matching": lambda: pt.MatchingCRF().fit(MATCHINGS, [np.arange(4)] * 6),
        "Bayesian network": lambda: pt.BayesianNetwork([("a", "b"), ("b", "c")]).fit(_frame()),
    }


def answers(model: Any) -> Iterator[Any]:
    """What a model says: arrays and lists, the same every time."""
    ask = {
        pt.SoftmaxRegression: _softmax,
        pt.LatentSoftmax: _latent_softmax,
        pt.MaxEnt: _max_entropy,
        pt.ChainCRF: _chain,
        pt.HiddenChainCRF: _hidden_chain,
        pt.LatentDynamicCRF: _latent_dynamic,
        pt.BoltzmannChain: _boltzmann,
        pt.ColumnTagger: _tagger,
        pt.GraphCRF: _graph,
        pt.MarkovNetwork: _markov,
        pt.MatchingCRF: _matching,
        pt.BayesianNetwork: _bayesian,
    }[type(model)]
    if not isinstance(model, pt.ColumnTagger):
        check_is_fitted(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from ask(model)


def _softmax(model: Any) -> Iterator[Any]:
    yield model.predict(X)
    yield Probabilities(model.predict_proba(X))
    yield model.decision_function(X)
    if model.l1 == 0.0 and not model.constraints:
        yield model.partial_fit(X, Y if model.classes_.dtype.kind in "UO" else Y == "a").coef_


def _latent_softmax(model: Any) -> Iterator[Any]:
    yield model.predict(X)
    yield Probabilities(model.predict_proba(X))
    yield model.hidden_proba(X)


def _max_entropy(model: Any) -> Iterator[Any]:
    yield model.log_prob()
    yield model.sample(10, random_state=0)
    yield model.probabilities_ @ X[:20]


def _sequences(model: Any) -> tuple[Any, Any]:
    return (MATRICES, NUMBERS) if model.vocabulary_bytes_ is None and model.hashing_ is None else (TOKENS, LABELS)


def _chain(model: Any) -> Iterator[Any]:
    sequences, labels = _sequences(model)
    yield model.predict(sequences)
    yield Probabilities(np.concatenate(model.predict_marginals(sequences, as_array=True)))
    yield [[(labelling, round(value, 9)) for labelling, value in best] for best in model.predict_kbest(sequences, 3)]
    yield float(model.log_likelihood(sequences, labels))
    if model.hashing_ is None:
        yield sorted(model.state_features_.items(), key=str)
        yield sorted(model.transition_features_.items(), key=str)
    if model.precision_ is not None and model.likelihood == "full":
        yield model.partial_fit(sequences, labels).parameters_


def _hidden_chain(model: Any) -> Iterator[Any]:
    yield model.predict(LETTERS)
    yield Probabilities(model.predict_proba(LETTERS))
    yield np.concatenate(model.hidden_proba(LETTERS))
    yield sorted(model.state_features_.items(), key=str)


def _latent_dynamic(model: Any) -> Iterator[Any]:
    yield model.predict(TOKENS)
    yield Probabilities(np.concatenate(model.predict_marginals(TOKENS, as_array=True)))
    yield sorted(model.transition_features_.items(), key=str)


def _boltzmann(model: Any) -> Iterator[Any]:
    yield model.predict(WORDS)
    yield Probabilities(np.concatenate(model.predict_marginals(WORDS, as_array=True)))
    yield model.joint_log_proba(WORDS, LABELS)
    yield model.sample([3, 2], random_state=0)


def _tagger(model: Any) -> Iterator[Any]:
    yield model.predict(_columns(b"the\ncat\nsat\n"))
    yield [str(model.summary_["tokens"]), f"{model.summary_['objective']:.8g}"]


def _graph(model: Any) -> Iterator[Any]:
    graphs = TYPED if isinstance(model.classes_, dict) else GRAPHS
    for part in model.predict(graphs):
        yield part if isinstance(part, np.ndarray) else list(map(np.asarray, part.values()))
    for marginals in model.predict_marginals(graphs):
        for table in marginals.values() if isinstance(marginals, dict) else [marginals]:
            yield Probabilities(table)
    yield model.log_partition(graphs)
    yield [np.asarray(table) for table in model.weights_.values()]


def _markov(model: Any) -> Iterator[Any]:
    yield model.predict(np.array([[1, -1, 1, -1], [0, 0, -1, -1]]))
    for table in model.predict_marginals(STATES[:3]):
        yield Probabilities(table)
    yield model.log_likelihood(STATES[:5])
    yield model.sample(3, random_state=0)
    yield [np.asarray(table) for table in model.tables_]


def _matching(model: Any) -> Iterator[Any]:
    yield model.predict(MATCHINGS)
    yield np.array(model.predict_marginals(MATCHINGS))
    yield model.log_likelihood(MATCHINGS, [np.arange(4)] * 6)


def _bayesian(model: Any) -> Iterator[Any]:
    frame = _frame(STATES[:5])
    yield np.asarray(model.log_likelihood(frame))
    yield [np.asarray(table) for table in model.tables_.values()]
    hidden = frame.astype(object)
    hidden["b"] = None
    yield np.asarray(model.predict(hidden), dtype=str)


class Probabilities:
    """Rows that must sum to one."""

    def __init__(self, table: Any) -> None:
        self.table = np.asarray(table)

    @property
    def right(self) -> bool:
        P = self.table
        return bool(np.isfinite(P).all() and P.min(initial=0.0) >= -1e-12 and np.allclose(P.sum(-1), 1.0, atol=1e-9))


def well_formed(answer: Any) -> bool:
    """Whether an answer could be one: no NaN, and probabilities where they are due."""
    if isinstance(answer, Probabilities):
        return answer.right
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        return not bool(np.isnan(answer).any())
    if isinstance(answer, float):
        return answer == answer
    if isinstance(answer, list | tuple):
        return all(map(well_formed, answer))
    return True


def plain(answer: Any) -> Any:
    """An answer as a value that can be compared and sent."""
    if isinstance(answer, Probabilities):
        return plain(answer.table)
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, list | tuple):
        return [plain(part) for part in answer]
    return answer

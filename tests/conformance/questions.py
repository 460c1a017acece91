"""What is asked of a fitted model of each kind: arrays and lists, the same every time."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import zoo
from sklearn.utils.validation import check_is_fitted

import partita as pt


def answers(model: Any, learns: bool = True) -> Iterator[Any]:
    """What a model says: arrays and lists, the same every time. If it `learns`, in the end also what comes of more data."""
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
        pt.DependencyCRF: _dependency,
        pt.OracleCRF: _oracle,
    }[type(model)]
    if not isinstance(model, pt.ColumnTagger):
        check_is_fitted(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from ask(model)
        if learns:
            yield from _learned(model)


def _softmax(model: Any) -> Iterator[Any]:
    yield model.predict(zoo.X)
    yield Probabilities(model.predict_proba(zoo.X))
    yield model.decision_function(zoo.X)


def _learned(model: Any) -> Iterator[Any]:
    if isinstance(model, pt.SoftmaxRegression) and model.l1 == 0.0 and not model.constraints:
        labels = {"b": zoo.Y == 0, "i": zoo.Y}.get(model.classes_.dtype.kind, zoo.NAMES)
        yield model.partial_fit(zoo.X, labels).coef_
    if isinstance(model, pt.ChainCRF) and model.precision_ is not None and model.likelihood == "full":
        yield model.partial_fit(*_sequences(model)).parameters_


def _oracle(model: Any) -> Iterator[Any]:
    yield from model.predict(zoo.PARTS)
    yield from model.predict_marginals(zoo.PARTS)
    yield from model.log_likelihood(zoo.PARTS, zoo.CHOSEN, bounds=True)
    yield model.score(zoo.PARTS, zoo.CHOSEN)


def _latent_softmax(model: Any) -> Iterator[Any]:
    yield model.predict(zoo.X)
    yield Probabilities(model.predict_proba(zoo.X))
    yield model.hidden_proba(zoo.X)


def _max_entropy(model: Any) -> Iterator[Any]:
    yield model.log_prob()
    yield model.sample(10, random_state=0)
    yield Probabilities(model.probabilities_)


def _sequences(model: Any) -> tuple[Any, Any]:
    if model.vocabulary_bytes_ is None and model.hashing_ is None:
        return zoo.MATRICES, zoo.NUMBERS
    return zoo.ATTRIBUTES, zoo.RULED if model.forbidden else zoo.TAGS


def _chain(model: Any) -> Iterator[Any]:
    sequences, labels = _sequences(model)
    yield model.predict(sequences)
    yield Probabilities(np.concatenate(model.predict_marginals(sequences, as_array=True)))
    yield [[(labelling, round(value, 9)) for labelling, value in best] for best in model.predict_kbest(sequences, 3)]
    yield model.log_likelihood(sequences, labels)
    if model.hashing_ is None:
        yield sorted(model.state_features_.items(), key=str)
        yield sorted(model.transition_features_.items(), key=str)


def _hidden_chain(model: Any) -> Iterator[Any]:
    yield model.predict(zoo.ATTRIBUTES)
    yield Probabilities(model.predict_proba(zoo.ATTRIBUTES))
    yield np.concatenate(model.hidden_proba(zoo.ATTRIBUTES))
    yield sorted(model.state_features_.items(), key=str)


def _latent_dynamic(model: Any) -> Iterator[Any]:
    yield model.predict(zoo.ATTRIBUTES)
    yield Probabilities(np.concatenate(model.predict_marginals(zoo.ATTRIBUTES, as_array=True)))
    yield sorted(model.transition_features_.items(), key=str)


def _boltzmann(model: Any) -> Iterator[Any]:
    yield model.predict(zoo.TOKENS)
    yield Probabilities(np.concatenate(model.predict_marginals(zoo.TOKENS, as_array=True)))
    yield model.joint_log_proba(zoo.TOKENS, zoo.TAGS)
    yield model.sample([3, 2], random_state=0)


def _tagger(model: Any) -> Iterator[Any]:
    yield model.predict([[[word] for word in sentence] for sentence in zoo.TOKENS[:5]])
    yield [str(model.summary_["tokens"]), f"{model.summary_['objective']:.8g}"]


def _graph(model: Any) -> Iterator[Any]:
    graphs = zoo.TYPED if isinstance(model.classes_, dict) else zoo.GRAPHS
    for part in model.predict(graphs):
        yield part if isinstance(part, np.ndarray) else list(map(np.asarray, part.values()))
    for marginals in model.predict_marginals(graphs):
        for table in marginals.values() if isinstance(marginals, dict) else [marginals]:
            yield Probabilities(table)
    yield model.log_partition(graphs)
    yield [np.asarray(table) for table in model.weights_.values()]


def _markov(model: Any) -> Iterator[Any]:
    yield model.predict(np.array([[1, -1, 1, -1], [0, 0, -1, -1]]))
    for table in model.predict_marginals(zoo.STATES[:3]):
        yield Probabilities(table)
    yield model.log_likelihood(zoo.STATES[:5])
    yield model.sample(3, random_state=0)
    yield [np.asarray(table) for table in model.tables_]


def _matching(model: Any) -> Iterator[Any]:
    yield model.predict(zoo.MATCHES)
    yield np.array(model.predict_marginals(zoo.MATCHES))
    yield model.log_likelihood(zoo.MATCHES, zoo.PAIRS if model.b == 1 else zoo.TABLES)
    yield model.sample(zoo.MATCHES, 2, random_state=0)
    if model.b == 1:
        yield [y for y, _ in model.kbest(zoo.MATCHES, 3)[0]]
    yield [model.row_parameters_, model.column_parameters_]


def _dependency(model: Any) -> Iterator[Any]:
    yield model.predict(zoo.TOKENS)
    for table in model.predict_marginals(zoo.TOKENS):
        yield Probabilities(table[:, 1:].T)
    yield model.log_likelihood(zoo.TOKENS, zoo.HEADS)
    yield model.attributes_


def _bayesian(model: Any) -> Iterator[Any]:
    frame = zoo.frame("abcd" if "d" in model.nodes_ else "abc")[:5]
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


def told(model: Any, learns: bool = True) -> str:
    """All answers as text."""
    return json.dumps([plain(answer) for answer in answers(model, learns)])

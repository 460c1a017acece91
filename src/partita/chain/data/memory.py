"""What chains remember of the sequences they learned from, for labels that come later.

A label that is new was not among the earlier sequences: that they had other labels says as much about its weights as the
sequences that have it. The Laplace approximation has no place for weights that did not exist, so a sample of the earlier
sequences is kept, and their likelihood of having any of the labels known then, ``log Z(known labels) - log Z(all labels)``,
is added to the objective. Copies and files keep no data; one position for each attribute stands in for them there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ...estimators.labels import UNKNOWN, Labels
from ..features.attribute_index import AttributeIndex, assemble
from ..features.layout import ChainLayout
from ..structure.forbidden import BoolArray
from .examples import Examples
from .inputs import ChainInputs
from .sequences import DENSE, SequenceData

#: Most sequences that are kept, and most positions in them, about.
KEPT_SEQUENCES, KEPT_POSITIONS = 500, 50_000


def remembered(earlier: SequenceData | None, count: int, data: SequenceData, seed: int = 0) -> SequenceData:
    """A sample of all sequences so far: `count` of which `earlier` is one, and new ones."""
    mean = max(1.0, data.X.shape[0] / len(data))
    room = min(KEPT_SEQUENCES, max(1, int(KEPT_POSITIONS / mean)))
    share = len(data) if earlier is None else max(1, round(room * len(data) / (count + len(data))))
    random = np.random.default_rng([seed, count])
    chosen = _some(data, min(share, room), random)
    if earlier is None:
        return chosen
    return stacked(_some(in_columns(earlier, data), room - len(chosen), random), chosen)


def _some(data: SequenceData, count: int, random: np.random.Generator) -> SequenceData:
    return data if count >= len(data) else data.take(np.sort(random.choice(len(data), count, replace=False)))


def in_columns(data: SequenceData, like: SequenceData) -> SequenceData:
    """The data in the columns of others; attributes that those do not have are dropped."""
    if data.attributes is None or like.attributes is None or data.attributes is like.attributes:
        X = data.X
        if X.shape[1] < like.X.shape[1]:
            X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], like.X.shape[1]))
    else:
        columns, X = AttributeIndex(like.attributes).find(data.attributes), data.X
        X = assemble(columns[X.indices], X.data, np.diff(X.indptr), like.X.shape[1])
    return SequenceData.unchecked(X, data.offsets, None, like.attributes, like.kind)


def stacked(first: SequenceData, second: SequenceData) -> SequenceData:
    """The sequences of both, without labels."""
    X = sp.vstack([first.X, second.X], format="csr")
    offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
    return SequenceData.unchecked(X, offsets, None, second.attributes, second.kind)


def stand_in(inputs: ChainInputs, old: ChainLayout, data: SequenceData) -> SequenceData:
    """Sequences of two equal positions each, for attributes that an earlier layout has weights for and that are here.

    Attributes of tokens stand alone; numbers are at their means, one of them off by the root of their number.
    """
    count = data.X.shape[1]
    if data.kind == DENSE and inputs.intercept:
        away = np.sqrt(count) * np.diag(inputs.spread)
        rows = sp.csr_matrix(np.vstack([inputs.mean + away, inputs.mean - away]))
    else:
        used = np.zeros(count, bool)
        used[old.state[old.state[:, 0] < min(count, old.n_columns), 0]] = True
        used &= np.bincount(data.X.indices, minlength=count) > 0
        rows = sp.eye(count, format="csr")[np.flatnonzero(used)]
    X = rows[np.repeat(np.arange(rows.shape[0]), 2)]
    return SequenceData.unchecked(X, 2 * np.arange(rows.shape[0] + 1), None, data.attributes, data.kind)


def new_labels(old: ChainLayout, labels: Labels) -> BoolArray:
    """Which of the labels have no weight of an attribute or a transition in an earlier layout."""
    weighted = np.union1d(old.state[:, 1], old.transitions.ravel())
    here = np.zeros(len(labels.classes), bool)
    here[labels.codes[labels.codes >= 0]] = True
    if labels.sets is not None:
        partly = labels.sets[np.unique(-1 - labels.codes[labels.codes < UNKNOWN])]
        here |= partly.any(axis=0)
    return np.asarray(here & ~np.isin(labels.classes, old.classes[weighted]))


def with_earlier(piece: Examples, earlier: SequenceData, new: BoolArray, count: int) -> Examples:
    """A piece and earlier sequences, which stand for `count`, of which none had the `new` labels."""
    labels = piece.labels
    sets = np.ones((1, len(new)), bool) if labels.sets is None else labels.sets
    codes = np.full(earlier.X.shape[0], -1 - len(sets))
    both = replace(labels, codes=np.concatenate([labels.codes, codes]), sets=np.vstack([sets, ~new]))
    weights = np.concatenate([piece.weights, np.full(len(earlier), count / max(1, len(earlier)))])
    return replace(piece, data=stacked(piece.data, earlier), labels=both, weights=weights)

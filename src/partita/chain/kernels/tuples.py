"""What travels together through the kernels of chains, by name.

Positions of all chains are stacked; n is the number of labels, and `width` is n with its padding (see `chain_padded`).
A call from Python costs a microsecond more for each tuple. What is called for every chain or position takes arrays one by
one: there, large tuples were measured to cost time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray


class Entries(NamedTuple):
    """A sparse matrix by rows: row i holds ``values[q]`` in column ``indices[q]`` for ``indptr[i] <= q < indptr[i + 1]``.

    Attributes
    ----------
    values : array of shape (entries,)
        Empty if every value is 1.
    indices : array of uint32 of shape (entries,)
    indptr : array of uint64 of shape (rows + 1,)
    """

    values: FloatArray
    indices: Any
    indptr: Any

    def squared(self) -> Entries:
        """The same with the squares of the values."""
        return self._replace(values=self.values**2)


class Attributes(NamedTuple):
    """The attributes of all positions, each with a row in both matrices.

    Attributes
    ----------
    common : Entries of shape (positions, rows of the table)
        Attributes that have a row of weights, one for each label.
    rare : Entries of shape (positions, rare weights)
        Weights, for one label each, of all other attributes.
    label : array of uint16 of shape (rare weights,)
        The label of each of these.
    """

    common: Entries
    rare: Entries
    label: Any


class Weights(NamedTuple):
    """The weights of a model of chains, or a gradient in them.

    Attributes
    ----------
    table : array of shape (common attributes, n)
    rare : array of shape (rare weights,)
    transitions : array of shape (n, n)
    first, last : arrays of shape (n,)
        What labels get for standing first and last. Those of a model without such weights are empty.
    """

    table: FloatArray
    rare: FloatArray
    transitions: FloatArray
    first: FloatArray
    last: FloatArray


class Potentials(NamedTuple):
    """Scores of labels, U of shape (positions, n), and of transitions, A of shape (n, n); or a direction of both."""

    U: FloatArray
    A: FloatArray


class Transitions(NamedTuple):
    """Factors of transitions: M holds ``exp(A - shift)`` and MT its transpose, both (n, width), padded by zeros."""

    M: FloatArray
    MT: FloatArray
    shift: float


class Chains(NamedTuple):
    """Chain s has the positions ``offsets[s] : offsets[s + 1]`` and the weight ``weights[s]``.

    Arrays of shape (chains + 1,) and (chains,).
    """

    offsets: IntArray
    weights: FloatArray


class Messages(NamedTuple):
    """What forward-backward leaves at every position, each (positions, n or width).

    Attributes
    ----------
    alpha : array
        Forward messages; each row sums to 1.
    B : array
        Backward messages with the scores of their position: the probability of labels u, v at t - 1, t is ``alpha[t - 1, u]
        M[u, v] B[t, v]``. They carry the weight of their chain.
    P : array
        Marginals: the probability of each label, times the weight of its chain.
    """

    alpha: FloatArray
    B: FloatArray
    P: FloatArray


class Workspace(NamedTuple):
    """Padded rows for the positions of a few chains: their scores U, -inf in the padding, and messages."""

    U: FloatArray
    messages: Messages


class Windows(NamedTuple):
    """Windows of chains as chains of their own.

    Attributes
    ----------
    begin : array of shape (chains + 1,)
        Windows ``begin[s] : begin[s + 1]`` are those of chain s. Empty if there are no windows but whole chains.
    rows : array
        Row r of the windows is the position ``rows[r]``.
    offsets : array of shape (windows + 1,)
        The rows of window w are ``offsets[w] : offsets[w + 1]``.
    left, right : arrays of shape (windows,)
        The known labels before and after each window; -1 where it begins or ends its chain.
    """

    begin: IntArray
    rows: IntArray
    offsets: IntArray
    left: IntArray
    right: IntArray


class Totals(NamedTuple):
    """Sums over chains.

    Attributes
    ----------
    weights : Weights
        Expectations of features, or their variances. The transitions are those to known labels around windows.
    counts : array of shape (n, width)
        Expected transitions between labels that are summed over, up to the factor M.
    log_z : array
        log Z of every chain or window.
    """

    weights: Weights
    counts: FloatArray
    log_z: FloatArray


class Segments(NamedTuple):
    """Runs of *open* positions, those with several likely labels. A *pair* is an open position and one of its likely labels.

    Attributes
    ----------
    offsets : array of shape (segments + 1,)
        Segment s has the open positions ``offsets[s] : offsets[s + 1]``.
    first : array of shape (open positions + 1,)
        Open position i has the pairs ``first[i] : first[i + 1]``.
    label : array of shape (pairs,)
    edges : array of shape (open positions,)
        Transitions from the pairs of i - 1 to those of i are the edges from ``edges[i]`` on, the pairs of i next to each
        other.
    p, e : arrays of shape (pairs,) and (edges,)
        Probabilities of pairs and edges, times the weights of their chains.
    """

    offsets: IntArray
    first: IntArray
    label: IntArray
    edges: IntArray
    p: FloatArray
    e: FloatArray


class LineBounds(NamedTuple):
    """Of each chain, along a half-line of scores; arrays of shape (chains,).

    Attributes
    ----------
    curvature : array
        K with ``log Z(t) <= log Z(0) + t slope + K t^2 / 2`` for all t >= 0.
    nearby : array
        The same for all t up to a radius.
    variance : array
        The second derivative at 0: the variance of the score, along the line, of a labelling.
    above : array
        How far the largest such score is above the mean.
    """

    curvature: FloatArray
    nearby: FloatArray
    variance: FloatArray
    above: FloatArray


#: In place of windows: whole chains.
WHOLE = Windows(*(np.zeros(0, np.int64) for _ in range(5)))

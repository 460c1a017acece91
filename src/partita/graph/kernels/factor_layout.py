"""Named tuples of arrays that kernels of factor graphs share: message passing, mean field, Gibbs sampling, search.

There are n variables with S states in all, F factors with T table entries in all, and E edges. An edge joins a factor with
one of its variables, and has a message for every state of that variable: M in all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray, IntArray


class FactorLayout(NamedTuple):
    """Where everything is. All arrays are int64.

    Variable i has the states ``var_offsets[i]:var_offsets[i + 1]`` and the edges ``var_edges[var_ptr[i]:var_ptr[i + 1]]``.
    Factor f has the table entries ``fac_offsets[f]:fac_offsets[f + 1]`` and the edges ``fac_ptr[f]:fac_ptr[f + 1]``. Edge e
    joins ``edge_factor[e]`` with ``edge_var[e]``; its messages are ``edge_offsets[e]:edge_offsets[e + 1]``, and the next
    state of its variable is ``strides[e]`` entries further in the table.
    """

    var_offsets: IntArray  #: (n + 1,)
    var_ptr: IntArray  #: (n + 1,)
    var_edges: IntArray  #: (E,)
    var_examples: IntArray  #: (n,) the example of each variable
    fac_offsets: IntArray  #: (F + 1,)
    fac_ptr: IntArray  #: (F + 1,)
    fac_examples: IntArray  #: (F,) the example of each factor
    edge_var: IntArray  #: (E,)
    edge_factor: IntArray  #: (E,)
    edge_offsets: IntArray  #: (E + 1,)
    strides: IntArray  #: (E,)


class Entries(NamedTuple):
    """A number for every state of every variable and for every table entry: log potentials, beliefs, or counts."""

    states: NDArray[Any]  #: (S,)
    tables: NDArray[Any]  #: (T,)


class Chunk(NamedTuple):
    """Whole examples that are worked on together: their factors in the order of sweeps, and variables first..last."""

    factors: IntArray
    first: int
    last: int


class Messages(NamedTuple):
    """Log messages from factors to variables, and the log beliefs of variables that follow from them.

    ``log_beliefs[s] = potentials.states[s] + sum of rho * to_variables`` over the edges of the variable. Forbidden states
    have a log belief of -inf and messages of zero. All other messages are finite: arc consistency has removed the states
    that no table allows.
    """

    to_variables: FloatArray  #: (M,)
    log_beliefs: FloatArray  #: (S,)


class Update(NamedTuple):
    """How messages are updated."""

    rho: FloatArray  #: (F,) counting numbers: all one is loopy belief propagation, shares of trees are tree-reweighted
    max_product: bool  #: maxima in place of sums
    damping: float  #: the share of the old message that is kept
    cap: float  #: how far below the largest a log message may be


class Workspace(NamedTuple):
    """What the update of one factor works in, with room for the largest table and for the states of most variables."""

    log_belief: FloatArray  #: of the factor, an entry for each of its table
    belief: FloatArray  #: its exponential, the largest entry being one
    incoming: FloatArray  #: log messages from its variables, one variable after another
    outgoing: FloatArray  #: log messages to them


def workspace(largest: int, widest: int) -> Workspace:
    """For tables of at most `largest` entries, and factors whose variables have at most `widest` states in all."""
    return Workspace(np.empty(largest), np.empty(largest), np.empty(widest), np.empty(widest))

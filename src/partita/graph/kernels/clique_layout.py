"""Named tuples of arrays that the kernels of junction trees share.

The table of a clique is never stored whole: a block of entries at a time is the sum of its *inputs* (tables of factors,
messages of children). Its axes are ordered from the slowest to the fastest: those of the separator, then those summed out
here, which are its residual. Outer axes run from block to block, inner ones within a block. A row is the entries for one
configuration of the separator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray, IntArray
from ...numerics.jit import kernel

#: Columns of `CliqueLayout.cliques`.
FIRST_AXIS, LAST_AXIS, FIRST_INPUT, LAST_INPUT, INNER, RESIDUAL, ADDED = range(7)
#: Columns of `CliqueLayout.inputs`, and the kinds and forms of an input.
KIND, OFFSET, MAP, STRIDE, FORM, PERIOD = range(6)
FACTOR, SEPARATOR = range(2)
GATHER, RUN, ONE = range(3)
#: Columns of `CliqueLayout.targets` after `KIND`.
TARGET, AREA = 1, 2


class CliqueLayout(NamedTuple):
    """The cliques of a junction tree, children before parents, as index arrays (int64, `maps` int32).

    - ``cliques`` (cliques, 7): first and last outer axis, first and last input, entries of a block, entries of a row, and
      whether the message is added to what is there;
    - ``axes``: the number of states of each outer axis;
    - ``inputs`` (inputs, 6): the kind (factor or separator), the offset of the table, the first entry of the map, the first
      stride, the form, and the period. Entry i of a block is ``map[i % period]`` entries from where the block begins in the
      table (`GATHER`), i entries from it (`RUN`), or there (`ONE`);
    - ``maps``, ``strides``: flat, an entry of strides for each outer axis of each input;
    - ``targets`` (inputs, 3): where the probabilities of an input go: the kind (marginals of factors or beliefs of
      separators), the offset, and how many entries are to be set to zero before;
    - ``largest`` (3,): the most entries of a block, inputs of a clique, and outer axes.

    The input after the last of a clique is its own message, which moves from block to block as the others do. Only cliques
    whose rows are within a block may add to the same message.
    """

    cliques: IntArray
    axes: IntArray
    inputs: IntArray
    maps: NDArray[np.int32]
    strides: IntArray
    targets: IntArray
    largest: IntArray


class CliqueScopes(NamedTuple):
    """``variables[bounds[c, 0]:bounds[c, 1]]`` are the separator of clique c, up to ``bounds[c, 2]`` its residual."""

    variables: IntArray
    bounds: IntArray  #: (cliques, 3)
    cardinalities: IntArray  #: (variables of the graph,)


class Tables(NamedTuple):
    """A number for each entry of all factors and of all separators.

    Log potentials and messages; marginals and beliefs; or derivatives of either along a direction.
    """

    factors: FloatArray
    separators: FloatArray


class Cursor(NamedTuple):
    """The block of a clique that is worked on."""

    offsets: IntArray  #: where it begins in each input, and in the clique's own message
    states: IntArray  #: of the outer axes


class Tiles(NamedTuple):
    """Entries of the inputs that are picked by maps, kept while blocks begin at the same offset of a table."""

    entries: FloatArray  #: (inputs, entries of a block)
    offsets: IntArray  #: (inputs,) -1 where there is nothing


class Scratch(NamedTuple):
    """What kernels of cliques work in."""

    block: FloatArray  #: sums of inputs, or probabilities
    change: FloatArray  #: sums of rows, or derivatives of a block
    cursor: Cursor
    read: Tiles  #: of the inputs
    changes: Tiles  #: of their derivatives
    written: Tiles  #: what goes to the targets


@kernel
def _tiles(largest):
    return Tiles(np.empty((largest[1], largest[0])), np.empty(largest[1], np.int64))


@kernel
def cursor(tree):
    """Room for a cursor of any clique."""
    return Cursor(np.empty(tree.largest[1], np.int64), np.empty(tree.largest[2], np.int64))


@kernel
def scratch(tree):
    """Room for the largest clique."""
    n = tree.largest
    return Scratch(np.empty(n[0]), np.empty(n[0]), cursor(tree), _tiles(n), _tiles(n), _tiles(n))

"""Trees over the words of many sentences of any lengths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.arrays.potentials import are_potentials, not_potential, real_array, refusal, whole_array
from ...core.memory import check_memory, check_sample
from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_choice, check_flag, check_no_options
from ...inference.black_box import infer_black_box
from ..kernels import checks
from ..kernels.graphs import Graphs
from . import sums
from .black_box import sentence_examples
from .layout import complete_digraphs
from .spanning_tree import ENGINES, check_direction


class DependencyTrees:
    """Directed trees over words: every word has another word, or the artificial root 0, as its head.

    Parameters
    ----------
    lengths : array of int
        Words of each sentence, at least one; they are numbered from 1.
    single_root : bool
        Only trees in which one word has the root as its head. That is how treebanks are annotated, and a model that may use
        more gives a part of its probability to trees that cannot be. It is the default here because it costs nothing: sums,
        best trees and samples under it are exact, and as fast as without.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Attributes
    ----------
    offsets, word_offsets : arrays of int64
        Sentence i has the pairs ``offsets[i]:offsets[i + 1]`` and the words ``word_offsets[i]:word_offsets[i + 1]``.
    n_sentences, n_words, n_pairs : int

    Notes
    -----
    Potentials are one vector with a number for each pair of a head and a dependent, sentence after sentence. Those of a
    sentence of n words go by dependents 1..n, and for each by heads 0..n but itself: n^2 in all (see `pairs`). -inf
    forbids a pair. Marginals come in the same shape. y has the head of each word, one integer per word, as in CoNLL files.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.tree import DependencyTrees
    >>> trees = DependencyTrees([2, 1])
    >>> trees.pairs().tolist()
    [[0, 1], [2, 1], [0, 2], [1, 2], [0, 1]]
    >>> potentials = np.log([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> np.exp(trees.log_partition(potentials)).round(6)  # 1 * 4 + 2 * 3, and 5
    array([10.,  5.])
    >>> trees.argmax(potentials)[0]
    array([2, 0, 0])
    """

    n_jobs: int | None
    workers: Workers
    n_sentences: int
    n_words: int
    n_pairs: int

    def __init__(self, lengths: ArrayLike, single_root: bool = True, n_jobs: int | None = None) -> None:
        counts = np.asarray(lengths)
        if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
            raise ValueError("lengths must be a vector of integers >= 1, the number of words of each sentence")
        total = float((counts.astype(np.float64) ** 2).sum())
        check_memory(f"all pairs of words, {total:.4g} in all", 48.0 * total, "Give fewer or shorter sentences at a time")
        self.single_root: bool = check_flag("single_root", single_root)
        self.n_jobs, self.workers = n_jobs, Workers(n_jobs)
        self.lengths: IntArray = counts.astype(np.int64)
        self.graphs: Graphs = complete_digraphs(self.lengths, self.single_root)
        self.offsets: IntArray = self.graphs.starts
        self.word_offsets: IntArray = self.graphs.vertices
        self.n_sentences, self.n_words, self.n_pairs = len(counts), int(self.word_offsets[-1]), int(self.offsets[-1])

    def pairs(self) -> IntArray:
        """Head and dependent of every pair, both numbered within their sentence: shape (pairs, 2)."""
        graphs = self.graphs
        place = np.repeat(graphs.templates - graphs.starts[:-1], np.diff(graphs.starts)) + np.arange(self.n_pairs)
        return np.column_stack([graphs.columns[place], graphs.rows[place]])

    @cached_property
    def _words(self) -> tuple[IntArray, IntArray, IntArray]:
        """Sentence of each word, its number there, and where the pairs begin of which it is the dependent."""
        sentence = np.repeat(np.arange(self.n_sentences), self.lengths)
        number = np.arange(self.n_words) - self.word_offsets[sentence] + 1
        return sentence, number, self.offsets[sentence] + (number - 1) * self.lengths[sentence]

    @property
    def word_starts(self) -> IntArray:
        """Where the pairs of each word as a dependent begin; they are as many as its sentence has words."""
        return self._words[2]

    def _where(self, pair: int) -> str:
        i = int(np.searchsorted(self.offsets, pair, side="right")) - 1
        d, h = divmod(pair - int(self.offsets[i]), int(self.lengths[i]))
        return f"head {h + (h > d)} of word {d + 1} in sentence {i}"

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials."""
        flat = self._vector("potentials", potentials)
        if not are_potentials(flat):
            pair = int(not_potential(flat).argmax())
            raise refusal("potentials", float(flat[pair]), f": {self._where(pair)}", "forbids a pair")
        return flat

    def _vector(self, name: str, values: ArrayLike) -> FloatArray:
        flat = real_array(name, values)
        if flat.shape != (self.n_pairs,):
            raise ValueError(
                f"{name} must have shape ({self.n_pairs},), a number for each pair of words; got {flat.shape}: "
                "see `pair_values` for matrices"
            )
        return flat

    def trees(self, y: ArrayLike) -> IntArray:
        """Checked heads of all words."""
        shape = f"{self.n_words} integers, the head of each word"
        heads = whole_array("y", y, shape)
        if heads.shape != (self.n_words,):
            raise ValueError(f"y must be {shape}; got shape {heads.shape}")
        sentence, number, _ = self._words
        wrong = (heads < 0) | (heads > self.lengths[sentence]) | (heads == number)
        if wrong.any():
            w = int(wrong.argmax())
            raise ValueError(
                "y must be heads from 0, the root, to the number of words, and other than the word itself; "
                f"got {heads[w]} for word {number[w]} of {self.lengths[sentence[w]]} in sentence {sentence[w]}"
            )
        flat, codes = np.require(heads, np.int64, ["C", "W"]), np.empty(self.n_sentences, np.int64)
        checks.head_vectors(self.word_offsets, flat, self.single_root, 0, self.n_sentences, codes)
        if codes.any():
            i = int(np.argmax(codes != checks.TREE))
            own = flat[self.word_offsets[i] : self.word_offsets[i + 1]]
            fault = "it has a cycle" if codes[i] == checks.CYCLE else _many_roots(int((own == 0).sum()))
            raise ValueError(f"y is not a tree in sentence {i}: {fault}")
        return flat

    def chosen(self, heads: ArrayLike) -> IntArray:
        """Where the pairs of a tree are among the potentials: one for each word."""
        return self.places(self.trees(heads))

    def places(self, heads: IntArray) -> IntArray:
        """The same for heads that need not be a tree."""
        _, number, start = self._words
        return np.asarray(start + heads - (heads > number))

    def pair_values(self, matrices: Iterable[ArrayLike]) -> FloatArray:
        """Numbers of pairs from one matrix for each sentence, of shape (words + 1, words + 1), with heads as rows.

        The diagonal and the column of the root do not matter.
        """
        given = [real_array("matrices", matrix) for matrix in matrices]
        if len(given) != self.n_sentences:
            raise ValueError(f"matrices must be {self.n_sentences}, one for each sentence; got {len(given)}")
        pairs, out = self.pairs(), np.empty(self.n_pairs)
        for i, (matrix, n) in enumerate(zip(given, self.lengths.tolist(), strict=True)):
            if matrix.shape != (n + 1, n + 1):
                raise ValueError(f"the matrix of sentence {i} must have shape ({n + 1}, {n + 1}); got {matrix.shape}")
            own = slice(self.offsets[i], self.offsets[i + 1])
            out[own] = matrix[pairs[own, 0], pairs[own, 1]]
        return out

    def score(self, potentials: ArrayLike, y: ArrayLike) -> FloatArray:
        """The sum of the potentials of the pairs in the tree of each sentence; -inf if one is forbidden."""
        return self._score(self.weights(potentials), self.trees(y))

    def _score(self, flat: FloatArray, heads: IntArray) -> FloatArray:
        return np.asarray(np.add.reduceat(flat[self.places(heads)], self.word_offsets[:-1]))

    def log_partition(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> FloatArray:
        """log Z of each sentence."""
        if check_choice("engine", engine, ENGINES) == "frank_wolfe":
            return self.infer(potentials, engine, **options).log_z
        check_no_options(engine, options)
        log_z = sums.log_partitions(self.graphs, self.weights(potentials), self.workers)
        self._possible(log_z > -np.inf)
        return log_z

    def infer(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> Result:
        """log Z of each sentence, and the probability of every pair; engines and options are those of `SpanningTree.infer`.

        A solver (`oracle`) is asked about one sentence at a time, with a number for each of its pairs, and returns heads.
        """
        if check_choice("engine", engine, ENGINES) == "frank_wolfe":
            flat = self.weights(potentials)
            self.argmax(flat)  # refuses what has no tree
            alone = [DependencyTrees([n], self.single_root, self.n_jobs) for n in self.lengths.tolist()]
            marginals, result = infer_black_box(sentence_examples(alone, np.split(flat, self.offsets[1:-1])), **options)
            return replace(result, marginals=np.concatenate(marginals))
        check_no_options(engine, options)
        found = sums.infer(self.graphs, self.weights(potentials), self.workers)
        self._possible(found.log_z > -np.inf)
        return Result(found.log_z, found.marginals, lower=found.log_z, upper=found.log_z)

    def covariance_product(self, potentials: ArrayLike, direction: ArrayLike) -> FloatArray:
        """The Hessian of the sum of log Z times a direction; see `SpanningTree.covariance_product`."""
        flat, along = self.weights(potentials), self._vector("direction", direction)
        check_direction(along)
        found = sums.infer(self.graphs, flat, self.workers, along)
        self._possible(found.log_z > -np.inf)
        return found.products

    def _possible(self, possible: Any) -> None:
        if not possible.all():
            kind = "tree with one word at the root" if self.single_root else "tree"
            raise ValueError(f"potentials forbid every {kind} of sentence {int(np.argmin(possible))}")

    def argmax(self, potentials: ArrayLike) -> tuple[IntArray, FloatArray]:
        """The heads of all words in the best trees, and the score of each sentence."""
        flat = self.weights(potentials)
        heads, found = sums.best_heads(self.graphs, flat, self.workers)
        self._possible(found)
        return heads, self._score(flat, heads)

    def sample(self, potentials: ArrayLike, size: int, random_state: Any = None) -> IntArray:
        """The heads of all words in `size` independent trees, shape (size, words)."""
        n, flat = check_sample(size, self.n_words), self.weights(potentials)
        self._possible(sums.log_partitions(self.graphs, flat, self.workers) > -np.inf)
        return sums.draw_heads(self.graphs, flat, self.workers, n, generator(random_state))


def _many_roots(count: int) -> str:
    return f"{count} words have the root as head, and one should (or set single_root=False)"

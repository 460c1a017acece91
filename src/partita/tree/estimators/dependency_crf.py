"""Conditional random fields over dependency trees: which word is the head of which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.contracts import AnySolver
from ...core.errors import DataWarning, ModelFileError
from ...core.parameters import Check, checked, choice, count, flag, real, seed, threads, verbosity
from ...core.random import generator
from ...core.results import FloatArray, IntArray
from ...core.types import RandomState
from ...core.validation import check_choice, check_weights
from ...core.warn import warn
from ...estimators.data import ListInput
from ...estimators.loaded import RUN, check_array, check_run, check_text, is_fitted
from ...estimators.restrictions import RESTRICTIONS, check_errors, feasible_weights
from ...estimators.streaming import Posterior, StreamedExamples, after
from ...estimators.trained import training
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.named import NamedWeights
from ...objectives.information import warn_of_many_weights
from ...objectives.restricted import restricted, smooth_point
from ...objectives.uncertainty import FIT_AGAIN, METHODS, errors
from ...report.explanation import Explanation, explained
from ...solvers.named import make_solver
from ..data import NUMBERS, TOKENS, Sentences, read_known_heads, read_sentences
from ..features.attributes import PairAttributes
from ..features.pairs import PairFeatures
from ..objective import TreeLikelihood
from ..structure.kbest import k_best_trees


class DependencyCRF(ListInput, StreamedExamples):
    """Non-projective dependency parsing: p(tree | sentence) is log-linear in features of (head, dependent) pairs.

    Minimises ``sum_i w_i (-log p(y_i | x_i)) + (l2 / 2) ||theta||^2``. The sum over all trees is exact, by the matrix-tree
    theorem (Koo et al. 2007), and so are the probabilities of pairs; the best tree is that of Chu-Liu and Edmonds.

    Parameters
    ----------
    l2 : float
        Strength of the quadratic penalty.
    single_root : bool
        Only one word hangs on the root, as treebanks have it.
    decoding : {"map", "marginals"}
        Predict the most probable tree, or the tree with the most expected right heads (minimum Bayes risk).
    solver : str or solver object
        ``"auto"``, ``"lbfgs"``, ``"newton"``, …; see `SoftmaxRegression`.
    max_iter : int
        Most iterations of the solver.
    tol : float
        Stop when the largest absolute entry of the gradient, divided by the number of words, is at most `tol`.
    warm_start : bool
        Start from the last fit, if the features are the same.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    random_state : None, int or generator
        Seed of a stochastic solver.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.
    l1 : float
        Strength of a penalty on absolute values.
    constraints : list of constraints, optional
        Convex sets of weights by the names in `attributes_` (``features=``), or by position; see `partita.constraints`.
        Every iterate satisfies them.

    Attributes
    ----------
    parameters_ : array
        A weight for each feature.
    input_kind_ : {"tokens", "numbers"}
        What X was.
    precision_ : array or None
        Curvature of the objective along each weight, from which `partial_fit` goes on.
    n_seen_ : int
        Sentences learned from, over all calls of `partial_fit`.
    n_iter_, trace_, status_

    Notes
    -----
    X is a list of sentences. A sentence is a list of tokens: strings, or dicts of strings such as
    ``{"form": "the", "upos": "DET"}``, whose pairs have attributes made of the values of head and dependent, their
    neighbours and their distance (`attributes_` lists those with a weight: the ones of observed trees). Or it is numbers: an
    array of shape (words + 1, words + 1, features) with heads first and the root as number 0, or a matrix, sparse or dense,
    with a row for each pair in the order of `partita.structures.DependencyTrees.pairs`.

    y is a list with the heads of the words of each sentence, 0 for the root, as in CoNLL files. A head that is None is
    unknown and summed out, and of a set of heads one is the head: the likelihood is then that of all trees that agree, which
    is not convex, and the optimum a local one.

    Examples
    --------
    >>> from partita import DependencyCRF
    >>> X = [["the", "cat", "sat"], ["a", "cat", "saw", "a", "dog"]]
    >>> y = [[2, 3, 0], [2, 3, 0, 5, 3]]
    >>> model = DependencyCRF(l2=0.1).fit(X, y)
    >>> [heads.tolist() for heads in model.predict([["the", "dog", "sat"]])]
    [[2, 3, 0]]
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "l2": real(minimum=0.0),
        "single_root": flag,
        "decoding": choice("map", "marginals"),
        "solver": checked(make_solver),
        "max_iter": count(),
        "tol": real(minimum=0.0),
        "warm_start": flag,
        "n_jobs": threads,
        "random_state": seed,
        "verbose": verbosity,
        **RESTRICTIONS,
    }
    TRANSIENT = ("_attributes", "_point")

    _point: Any = None

    parameters_: FloatArray
    input_kind_: str

    def __init__(
        self,
        l2: float = 1.0,
        single_root: bool = True,
        decoding: str = "map",
        solver: str | AnySolver = "auto",
        max_iter: int = 500,
        tol: float = 1e-5,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
    ) -> None:
        self.l2 = l2
        self.single_root = single_root
        self.decoding = decoding
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.l1 = l1
        self.constraints = constraints

    @training
    def fit(self, X: Sequence[Any], y: Sequence[ArrayLike], sample_weight: ArrayLike | None = None) -> DependencyCRF:
        """Fit to sentences X and the heads y of their words. A failed fit changes nothing.

        Parameters
        ----------
        X, y
            See the notes of the class.
        sample_weight : array of shape (n_sentences,), optional
        """
        return self._learn(None, X, y, sample_weight)

    def _learn(self, before: Posterior | None, *data: Any) -> DependencyCRF:
        X, y, sample_weight = data
        read = read_sentences(X, bool(self.single_root), self.n_jobs) if before is None else self._read(X)
        known = read_known_heads(y, read.trees)
        weights = check_weights("sample_weight", sample_weight, len(X))
        attributes = None
        if read.kind == TOKENS:
            named = known.named(read.trees)
            if before is None:
                attributes = PairAttributes.learned(read.tokens, read.trees, named)
            else:
                attributes, place = self._vocabulary().grown(read.tokens, read.trees, named)
                before = self._moved(before, place, attributes.size)
        features = self._features(read, attributes)
        heads = known.heads if known.allowed is None else None
        penalty = float(self.l2)
        likelihood = TreeLikelihood(features, read.trees, heads, allowed=known.allowed, weights=weights, penalty=penalty)
        objective = after(likelihood, before)
        names = None if attributes is None else attributes.names()
        feasible = feasible_weights(self.constraints, NamedWeights.of_features(features.size, names))
        start = self._start(read.kind, attributes, features.size) if before is None else before.mean
        solution = self._minimize(restricted(objective, float(self.l1), feasible), start)
        self.input_kind_, self.parameters_ = read.kind, np.array(solution.parameters)
        self._store_attributes(attributes)
        self._store_run(solution)
        self._point = smooth_point(solution.point)
        self._store_precision(objective, self._point, len(X))
        self._warn_if_short(solution)
        return self

    def _moved(self, before: Posterior, place: IntArray, size: int) -> Posterior:
        """What is known, with attributes at other places and among new ones."""
        mean, precision, kept = np.zeros(size), np.full(size, float(self.l2)), place >= 0
        mean[place[kept]], precision[place[kept]] = before.mean[kept], before.precision[kept]
        return Posterior(mean, precision)

    def _features(self, data: Sentences, attributes: PairAttributes | None) -> PairFeatures:
        return PairFeatures(self._matrix(data, attributes), data.trees.offsets, self.n_jobs)

    def _matrix(self, data: Sentences, attributes: PairAttributes | None) -> Any:
        """The features of all pairs, a row each."""
        return data.matrix if attributes is None else attributes.matrix(data.tokens, data.trees)

    def _start(self, kind: str, attributes: PairAttributes | None, size: int) -> FloatArray | None:
        """The weights of the last fit, where features are the same."""
        if (
            not self.warm_start
            or "parameters_" not in vars(self)
            or self.input_kind_ != kind
            or len(self.parameters_) != size
        ):
            return None
        same = attributes is None or attributes.names() == self.attributes_
        return self.parameters_ if same else None

    def _store_attributes(self, attributes: PairAttributes | None) -> None:
        """The vocabulary as arrays, which files keep."""
        values = {} if attributes is None else attributes.values
        keys = () if attributes is None else attributes.keys
        self.columns_: NDArray[Any] = np.array(list(values), dtype=object)
        self.vocabulary_: NDArray[Any] = np.array([value for column in values.values() for value in column], dtype=object)
        self.vocabulary_sizes_: IntArray = np.array([len(column) for column in values.values()], dtype=np.int64)
        self.keys_: NDArray[Any] = np.concatenate([np.zeros(0, np.int64), *keys])
        self.key_counts_: IntArray = np.array([len(part) for part in keys], dtype=np.int64)
        self._attributes = attributes

    def _vocabulary(self) -> PairAttributes:
        found: PairAttributes | None = self.__dict__.get("_attributes")
        if found is None:
            parts = np.split(self.vocabulary_, np.cumsum(self.vocabulary_sizes_)[:-1]) if len(self.columns_) else []
            values = {str(name): [str(v) for v in part] for name, part in zip(self.columns_, parts, strict=True)}
            keys = tuple(np.split(self.keys_, np.cumsum(self.key_counts_)[:-1])) if len(self.key_counts_) else ()
            found = self._attributes = PairAttributes(values, keys)
        return found

    @property
    def attributes_(self) -> list[str]:
        """What each weight belongs to, where X was tokens: such as ``"head upos=VERB & dependent upos=NOUN"``."""
        check_is_fitted(self, "parameters_")
        return self._vocabulary().names() if self.input_kind_ == TOKENS else [str(k) for k in range(len(self.parameters_))]

    def _scores(self, X: Sequence[Any]) -> tuple[Sentences, FloatArray]:
        """New sentences, and the scores of their pairs."""
        check_is_fitted(self, "parameters_")
        data = self._read(X)
        features = self._features(data, self._vocabulary() if data.kind == TOKENS else None)
        return data, features.forward(self.parameters_)

    def _read(self, X: Sequence[Any]) -> Sentences:
        """New sentences, of the kind of those in training."""
        data = read_sentences(X, bool(self.single_root), self.n_jobs)
        if data.kind != self.input_kind_:
            raise ValueError(f"X must be {self.input_kind_}, as in training; got {data.kind}")
        if data.kind == NUMBERS and data.matrix.shape[1] != len(self.parameters_):
            raise ValueError(f"X has {data.matrix.shape[1]} features, but the model was fitted to {len(self.parameters_)}")
        if data.kind == TOKENS:
            self._warn_of_columns(data)
        return data

    def _warn_of_columns(self, data: Sentences) -> None:
        missing = sorted(
            set(self.columns_.tolist()) - {name for sentence in data.tokens for token in sentence for name in token}
        )
        if missing:
            warn(f"X has no token with {missing[0]!r}, which the model was fitted to: its values are unseen", DataWarning)

    def predict(self, X: Sequence[Any]) -> list[IntArray]:
        """The head of each word, 0 for the root: the best tree (Chu-Liu/Edmonds), or that of the marginals."""
        data, scores = self._scores(X)
        if self.decoding == "marginals":
            scores = data.trees.infer(scores).marginals
        return data.split(data.trees.argmax(scores)[0])

    def predict_kbest(self, X: Sequence[Any], k: int) -> list[list[tuple[IntArray, float]]]:
        """The k most probable trees of each sentence, best first: heads of words, and the log-probability of the tree."""
        data, scores = self._scores(X)
        log_z = data.trees.log_partition(scores).tolist()
        out, offsets = [], data.trees.offsets.tolist()
        for i, n in enumerate(data.trees.lengths.tolist()):
            found = k_best_trees(n, scores[offsets[i] : offsets[i + 1]], k, bool(self.single_root))
            out.append([(heads, value - log_z[i]) for heads, value in zip(found[0], found[1].tolist(), strict=True)])
        return out

    def explain(self, sentence: Any) -> Explanation:
        """Which attributes of pairs of words pushed which head of each word of a sentence. ``print`` the answer.

        A push is what an attribute adds to the score of the predicted head, less what it adds to that of the runner-up, the
        most probable other head of that word. (Two trees may differ in more heads than one.)
        """
        data, scores = self._scores([sentence])
        matrix = self._matrix(data, self._vocabulary() if data.kind == TOKENS else None)
        n, names = int(data.trees.lengths[0]), self.attributes_
        heads, P = data.split(data.trees.argmax(scores)[0])[0], data.trees.infer(scores).marginals.reshape(n, n)
        entries = []
        for d in range(n):
            candidates = [h for h in range(n + 1) if h != d + 1]
            part = matrix[d * n : d * n + n]
            part = (part.toarray() if sp.issparse(part) else np.asarray(part)) * self.parameters_
            rows = [(names[j], part[:, j]) for j in np.flatnonzero(part.any(axis=0)).tolist()]
            best = candidates.index(int(heads[d]))
            entries.append(explained(d + 1, candidates, P[d], rows, best, what="head of word"))
        return Explanation(tuple(entries))

    def predict_marginals(self, X: Sequence[Any]) -> list[FloatArray]:
        """The probability of each head of each word: matrices of shape (words + 1, words + 1), heads first.

        Column d sums to one over the heads of word d; column 0, that of the root, is zero.
        """
        data, scores = self._scores(X)
        marginals, pairs, out = data.trees.infer(scores).marginals, data.trees.pairs(), []
        for i, n in enumerate(data.trees.lengths.tolist()):
            own = slice(int(data.trees.offsets[i]), int(data.trees.offsets[i + 1]))
            table = np.zeros((n + 1, n + 1))
            table[pairs[own, 0], pairs[own, 1]] = marginals[own]
            out.append(table)
        return out

    def sample(
        self, X: Sequence[Any], size: int = 1, random_state: int | np.random.Generator | None = None
    ) -> list[IntArray]:
        """Independent trees of each sentence, drawn exactly (Wilson's algorithm): arrays of shape (size, words)."""
        data, scores = self._scores(X)
        drawn = data.trees.sample(scores, size, generator(random_state))
        return list(np.split(drawn, data.trees.word_offsets[1:-1], axis=1))

    def log_likelihood(self, X: Sequence[Any], y: Sequence[ArrayLike]) -> FloatArray:
        """log p of the given tree of each sentence; of all trees that agree with y, where a head is None or a set."""
        data, scores = self._scores(X)
        known = read_known_heads(y, data.trees)
        if known.allowed is None:
            given = data.trees.score(scores, known.heads)
        else:
            given = data.trees.log_partition(np.where(known.allowed, scores, -np.inf))
        return np.asarray(given - data.trees.log_partition(scores))

    def score(self, X: Sequence[Any], y: Sequence[ArrayLike], sample_weight: ArrayLike | None = None) -> float:
        """The unlabelled attachment score: the share of words whose predicted head is right, or in the set that y has.

        Words whose head is None do not count. Weights are by sentence.
        """
        predicted = np.concatenate(self.predict(X))
        trees = read_sentences(X, False, self.n_jobs).trees  # gold trees may have several roots
        known = read_known_heads(y, trees)
        weights = np.repeat(check_weights("sample_weight", sample_weight, len(X)), trees.lengths)
        weights = weights * known.told(trees)
        right = known.right(predicted, trees)
        if not weights.any():
            raise ValueError("y holds no head at all, and a score needs one")
        return float(weights @ right / weights.sum())

    def standard_errors(self, method: str = "sandwich", draws: int = 100, random_state: RandomState = None) -> FloatArray:
        """Standard errors of `parameters_`, from the training data.

        Parameters
        ----------
        method : {"sandwich", "information", "bootstrap"}
            The sandwich stays right when the model is wrong; the inverse of the observed Fisher information (penalty
            included; what is not known of heads is taken off) when it is true; or refits to resampled sentences. Where a
            penalised fit has many effective parameters for its sentences, these are too small, and a warning says so.
        draws, random_state
            Number of refits of the bootstrap, and seed. Above 3000 weights, of random vectors that the sandwich is estimated
            from.
        """
        check_is_fitted(self, "parameters_")
        check_choice("method", method, METHODS)
        if method == "bootstrap":
            return self._bootstrap(draws, random_state)
        check_errors(self.l1, self.constraints)
        if self._point is None:
            raise ValueError(FIT_AGAIN)
        n = self._point.objective.n_examples
        warn_of_many_weights(len(self.parameters_), n, "sentences", self.l2, "fewer attributes")
        return errors(self._point, method, draws, random_state)

    def _estimates_like(self, other: Self) -> FloatArray:
        if other.input_kind_ != TOKENS or other.attributes_ == self.attributes_:
            return other.parameters_
        found = dict(zip(other.attributes_, other.parameters_.tolist(), strict=True))
        return np.array([found.get(name, 0.0) for name in self.attributes_])

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        stored = ("columns_", "vocabulary_", "vocabulary_sizes_", "keys_", "key_counts_")
        if not is_fitted(self, "parameters_", "input_kind_", *stored, *RUN):
            return
        if check_text(self, "input_kind_") not in (TOKENS, NUMBERS):
            raise ModelFileError(f"input_kind_ must be {TOKENS!r} or {NUMBERS!r}, got {self.input_kind_!r}")
        check_array(self, "parameters_", (None,))
        for name in ("vocabulary_sizes_", "keys_", "key_counts_"):
            if check_array(self, name, (None,), np.int64).min(initial=0) < 0:
                raise ModelFileError(f"{name} must not be negative")
        for name in ("columns_", "vocabulary_"):
            if not isinstance(getattr(self, name), np.ndarray) or getattr(self, name).ndim != 1:
                raise ModelFileError(f"{name} must be a list of strings")
        tokens = self.input_kind_ == TOKENS
        fits = (
            len(self.vocabulary_sizes_) == len(self.columns_) == len(set(self.columns_.tolist()))
            and int(self.vocabulary_sizes_.sum()) == len(self.vocabulary_)
            and int(self.key_counts_.sum()) == len(self.keys_)
            and (not tokens or len(self.keys_) == len(self.parameters_))
        )
        if not fits or (tokens and len(self._vocabulary().templates) != len(self.key_counts_)):
            raise ModelFileError("the arrays of this model do not fit together: its file was changed or damaged")
        if tokens and not all((np.diff(keys) > 0).all() for keys in self._vocabulary().keys):
            raise ModelFileError("keys_ must rise within each template")
        check_run(self)

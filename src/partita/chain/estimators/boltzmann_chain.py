"""Markov random fields on chains of tokens and labels, which model both."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.simplex import normalized
from ...core.errors import ModelFileError
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Solution
from ...core.validation import check_count, check_real, check_verbose, check_weights
from ...estimators.composite_fit import fit_weights
from ...estimators.convergence import warn_if_short
from ...estimators.data import unchanged_on_failure
from ...estimators.labels import Labels, encode_labels, split
from ...estimators.loaded import RUN, check_array, check_integers, check_labels, check_run, check_whole, is_fitted
from ...estimators.persistence import SavedModel
from ...objectives.composite.likelihood import CompositeLikelihood
from ...report.progress import ProgressPrinter
from ...solvers.auto import make_solver
from ...solvers.loop import minimize
from ..objective.boltzmann import BoltzmannChainLikelihood, token_sums
from ..objective.composite import composite_of
from ..objective.operations import chain_operations
from ..structure.chain import Chain


class BoltzmannChain(SavedModel, BaseEstimator):
    """A Markov random field on chains of tokens and labels, the generative counterpart of `ChainCRF`.

    Among all tokens x and labels y of a given length, ``p(x, y)`` is proportional to
    ``exp(sum_t theta[x_t, y_t] + sum_t A[y_{t-1}, y_t])``. Fitting minimises ``-sum_i w_i log p(x_i, y_i)`` plus
    ``l2 / 2`` times the sum of squares of all weights.

    Parameters
    ----------
    l2 : float
        Strength of the quadratic penalty on all weights.
    likelihood : {"full", "pseudo"} or CompositeLikelihood
        What is maximised: the likelihood; that of every token and label given the labels next to them; or a weighted sum
        over windows of positions, given the labels before and after (see `CompositeLikelihood`).
    n_tokens : int or None
        How many different tokens there are. Those that are not in training have the same weights, because nothing tells
        them apart, and are penalised one by one. None: one more than in training.
    solver : str or solver object
        See `SoftmaxRegression`.
    max_iter : int
        Most iterations of the solver.
    tol : float
        Stop when the largest absolute entry of the gradient, divided by the number of positions (counted as often as they
        are in windows), is at most `tol`.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    random_state : None, int or generator
        Of objects that are drawn, and of `sample`.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.

    Attributes
    ----------
    classes_, tokens_ : arrays
        The labels and the tokens of training, sorted.
    token_weights_ : array of shape (tokens + 1, labels)
        theta; the last row is that of every token that is not in training.
    transition_weights_ : array of shape (labels, labels)
        A.
    n_unseen_ : int
        How many tokens the last row stands for.
    lengths_ : array
        Of the sequences of training.
    beta_ : dict
        The weight of every order of the likelihood, 0 for those that ``weights="auto"`` dropped.
    n_iter_ : int
    trace_ : Trace
    status_ : Status

    Examples
    --------
    >>> from partita import BoltzmannChain
    >>> X = [["the", "cat"], ["a", "cat", "sat"]]
    >>> y = [["D", "N"], ["D", "N", "V"]]
    >>> model = BoltzmannChain(l2=0.1).fit(X, y)
    >>> model.predict([["the", "dog"]])
    [['D', 'N']]
    """

    def __init__(
        self,
        l2: float = 1.0,
        likelihood: Any = "full",
        n_tokens: int | None = None,
        solver: Any = "auto",
        max_iter: int = 500,
        tol: float = 2e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.l2 = l2
        self.likelihood = likelihood
        self.n_tokens = n_tokens
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> Any:
        return {key: value for key, value in super().__getstate__().items() if key != "_numbers"}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoltzmannChain:
        """Fit to lists of tokens X and lists of labels y. A failed fit changes nothing.

        Parameters
        ----------
        X : list of lists of str
        y : list of lists of labels
            Strings or integers; every label must be known.
        sample_weight : array of shape (n_sequences,), optional
        """
        with unchanged_on_failure(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> BoltzmannChain:
        self._check_parameters()
        for name, value in (("X", X), ("y", y)):
            if isinstance(value, str) or not hasattr(value, "__len__"):
                raise ValueError(f"{name} must be a list with one list per sequence, got {type(value).__name__}")
        weights = check_weights("sample_weight", sample_weight, len(X))
        if len(X) != len(y):
            raise ValueError(f"X and y must have as many sequences; got {len(X)} and {len(y)}")
        kept = [i for i in range(len(X)) if len(X[i]) and weights[i] > 0.0]
        if not kept:
            raise ValueError("X has no sequence with a position and a positive weight")
        flat, offsets = _tokens([X[i] for i in kept])
        labels = _known(encode_labels([y[i] for i in kept], offsets))
        tokens, codes = np.unique(np.array(flat), return_inverse=True)
        if self.n_tokens is not None and self.n_tokens < len(tokens):
            raise ValueError(f"n_tokens must be at least {len(tokens)}, the tokens in X; got {self.n_tokens}")
        unseen = 1 if self.n_tokens is None else self.n_tokens - len(tokens)
        composite = composite_of(self.likelihood, self.random_state)
        objective = BoltzmannChainLikelihood(
            *(codes, labels.codes, offsets, np.append(np.ones(len(tokens)), unseen), len(labels.classes)),
            composite=composite,
            weights=weights[kept],
            l2=float(self.l2),
            workers=Workers(self.n_jobs),
        )
        solution, beta = fit_weights(objective, composite, self._minimize, None)
        warn_if_short(self, solution)
        self.classes_, self.tokens_, self.n_unseen_, self.beta_ = labels.classes, tokens, int(unseen), beta
        self.token_weights_, self.transition_weights_ = (part.copy() for part in objective.unpack(solution.parameters))
        self.n_iter_, self.trace_, self.status_ = solution.n_iter, solution.trace, solution.status
        self.lengths_ = np.diff(offsets)
        self.__dict__.pop("_numbers", None)
        return self

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        if is_fitted(
            *(self, "classes_", "tokens_", "n_unseen_", "beta_", "token_weights_", "transition_weights_", "lengths_"),
            *RUN,
        ):
            n = len(check_labels("classes_", self.classes_))
            if check_labels("tokens_", self.tokens_).dtype.kind not in "UO":
                raise ModelFileError(f"tokens_ must be strings, got {self.tokens_.dtype}")
            check_whole(self, "n_unseen_")
            check_array(self, "token_weights_", (len(self.tokens_) + 1, n))
            check_array(self, "transition_weights_", (n, n))
            check_integers(self, "lengths_", (None,), 1)
            check_run(self)

    def _check_parameters(self) -> None:
        check_real("l2", self.l2, minimum=0.0)
        composite_of(self.likelihood)
        if self.n_tokens is not None:
            check_count("n_tokens", self.n_tokens, minimum=1)
        make_solver(self.solver)
        check_count("max_iter", self.max_iter)
        check_real("tol", self.tol, minimum=0.0)
        check_verbose(self.verbose)
        Workers(self.n_jobs)

    def _operations(self, composite: CompositeLikelihood) -> FloatArray:
        """Operations for a sequence, of each order."""
        return chain_operations(self.lengths_, len(self.classes_), composite)

    def _minimize(self, objective: Any, start: FloatArray | None) -> Solution:
        printer = [ProgressPrinter(0.5 if self.verbose == 1 else 0.0)] if self.verbose else []
        solver: Any = make_solver(self.solver)
        return minimize(objective, start, solver, max_iter=self.max_iter, tol=self.tol, callbacks=printer)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.tokens_.tolist())}

    def _read(self, X: Any) -> tuple[IntArray, IntArray]:
        """Numbers of tokens and where sequences begin and end."""
        check_is_fitted(self, "token_weights_")
        flat, offsets = _tokens(X)
        unseen, numbers = len(self.tokens_), self._numbers
        codes = np.fromiter((numbers.get(token, unseen) for token in flat), np.int64, len(flat))
        if not self.n_unseen_ and (codes == unseen).any():
            token = flat[int((codes == unseen).argmax())]
            raise ValueError(f"X has the token {token!r}, but all {self.n_tokens} tokens were in training; raise n_tokens")
        return codes, offsets

    def _chain(self, offsets: IntArray) -> Chain | None:
        lengths = np.diff(offsets)
        return Chain(len(self.classes_), lengths[lengths > 0], self.n_jobs) if lengths.any() else None

    def _decode(self, codes: IntArray, offsets: IntArray) -> list[list[Any]]:
        return [part.tolist() for part in split(self.classes_[codes], offsets)]

    def predict(self, X: Any) -> list[list[Any]]:
        """The most probable labels of each sequence, given its tokens."""
        x, offsets = self._read(X)
        chain = self._chain(offsets)
        codes = np.zeros(0, np.int64)
        if chain is not None:
            codes = chain.argmax((self.token_weights_[x], self.transition_weights_))[0]
        return self._decode(codes, offsets)

    def predict_marginals(self, X: Any, as_array: bool = False) -> list[Any]:
        """The probability of every label at every position, given the tokens.

        For each sequence a list of dicts ``{label: probability}``; with `as_array`, an array of shape (positions, labels)
        in the order of `classes_`.
        """
        x, offsets = self._read(X)
        chain, P = self._chain(offsets), np.zeros((0, len(self.classes_)))
        if chain is not None:
            P = normalized(chain.infer((self.token_weights_[x], self.transition_weights_)).marginals[0])
        if as_array:
            return split(P, offsets)
        labels = self.classes_.tolist()
        return split([dict(zip(labels, row, strict=True)) for row in P.tolist()], offsets)

    def joint_log_proba(self, X: Any, y: Any) -> FloatArray:
        """Log-probability of the tokens and labels of each sequence, among all of its length."""
        x, offsets = self._read(X)
        labels = _known(encode_labels(y, offsets, self.classes_))
        chain, out = self._chain(offsets), np.zeros(len(offsets) - 1)
        if chain is None:
            return out
        scores = chain.score((self.token_weights_[x], self.transition_weights_), labels.codes)
        lengths, which = np.unique(np.diff(chain.offsets), return_inverse=True)
        out[np.diff(offsets) > 0] = scores - self._chain_of_labels(lengths).log_partition(self._label_scores(lengths))[which]
        return out

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Sum of the log-probabilities of tokens and labels."""
        return float(self.joint_log_proba(X, y).sum())

    def score(self, X: Any, y: Any) -> float:
        """The share of positions whose label is predicted right."""
        found = list(itertools.chain.from_iterable(self.predict(X)))
        labels = encode_labels(y, _tokens(X)[1])
        if not found:
            raise ValueError("y holds no label at all, and a score needs one")
        return float(np.mean([a == b for a, b in zip(labels.values().tolist(), found, strict=True)]))

    def sample(self, lengths: Any, random_state: Any = None) -> tuple[list[list[Any]], list[list[Any]]]:
        """Tokens and labels of sequences of the given lengths, drawn by their probability.

        A token that is not in training is None: which one it is cannot be known.
        """
        check_is_fitted(self, "token_weights_")
        rng = generator(self.random_state if random_state is None else random_state)
        total = sum(map(float, np.ravel(lengths))) if np.asarray(lengths).dtype.kind in "iu" else 0.0
        check_memory(
            f"a sample of {total:.3g} positions", 16.0 * total * (4 + len(self.classes_)), "Draw fewer or shorter sequences"
        )
        chain = self._chain_of_labels(lengths)
        codes = chain.sample(self._label_scores(lengths), 1, rng)[0]
        q = np.cumsum(self._tokens_given_labels()[1], axis=0)
        x, uniform = np.empty(len(codes), np.int64), rng.random(len(codes))
        for label in np.unique(codes):
            here = codes == label
            x[here] = np.searchsorted(q[:-1, label], uniform[here] * q[-1, label], side="right")
        table = np.array([*self.tokens_.tolist(), None], dtype=object)
        return [part.tolist() for part in split(table[x], chain.offsets)], self._decode(codes, chain.offsets)

    def _tokens_given_labels(self) -> tuple[FloatArray, FloatArray]:
        """Scores of labels after summing over tokens, and the probability of tokens given labels."""
        return token_sums(self.token_weights_, np.append(np.ones(len(self.tokens_)), float(self.n_unseen_)))

    def _chain_of_labels(self, lengths: Any) -> Chain:
        return Chain(len(self.classes_), lengths, self.n_jobs)

    def _label_scores(self, lengths: Any) -> tuple[FloatArray, FloatArray]:
        b = self._tokens_given_labels()[0]
        return np.tile(b, (int(np.sum(lengths)), 1)), self.transition_weights_


def _tokens(X: Any) -> tuple[list[str], IntArray]:
    """All tokens in a row, and where sequences begin and end."""
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a list with one list of tokens per sequence, got {type(X).__name__}")
    for i, row in enumerate(X):
        if isinstance(row, str | bytes | dict) or not hasattr(row, "__len__"):
            raise ValueError(f"X must be a list with one list of tokens per sequence; sequence {i} is {row!r}")
    flat = list(itertools.chain.from_iterable(X))
    wrong = next((token for token in flat if not isinstance(token, str)), None)
    if wrong is not None:
        raise ValueError(f"tokens must be strings, got {wrong!r}")
    return flat, np.concatenate(([0], np.cumsum([len(row) for row in X], dtype=np.int64)))


def _known(labels: Labels) -> Labels:
    if labels.sets is not None:
        raise ValueError("every label must be known, but y has None or sets of labels: leave out sequences that have them")
    return labels

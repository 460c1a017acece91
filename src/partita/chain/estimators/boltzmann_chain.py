"""Markov random fields on chains of tokens and labels, which model both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.simplex import normalized
from ...core.errors import ModelFileError
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.parameters import Check, checked, count, real, seed, threads, verbosity
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Solution
from ...core.types import LabelArray, RandomState, SampleWeight, SolverLike
from ...core.validation import check_count, check_weights
from ...estimators.composite_fit import BUDGET_ORDERS, check_budget, fit_weights, within_budget
from ...estimators.labels import Labels, encode_labels, split
from ...estimators.loaded import RUN, check_array, check_integers, check_labels, check_run, check_whole, is_fitted
from ...estimators.restrictions import RESTRICTIONS, check_refinement, feasible_weights
from ...estimators.streaming import Posterior, StreamedExamples, after
from ...estimators.trained import solver_like, training
from ...objectives.composite.likelihood import FULL, CompositeLikelihood
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.named import TRANSITIONS, NamedWeights
from ...objectives.refinement import newton_step
from ...objectives.restricted import restricted, smooth_point
from ...objectives.uncertainty import influence
from ...report.explanation import Explanation, explained
from ..data.sequences import ATTRIBUTES, SequenceData
from ..data.types import Label, LabelSequences
from ..objective.boltzmann import BoltzmannChainLikelihood, token_sums
from ..objective.composite import composite_of
from ..objective.operations import chain_operations
from ..structure.chain import Chain
from .scores import ScoredSequences
from .token_uncertainty import TokenUncertainty

#: Lists of tokens, one for each sequence.
TokenLists: TypeAlias = Sequence[Sequence[str]]


class Words(NamedTuple):
    """Sequences to learn from: all tokens in a row, where sequences begin and end, their labels and weights."""

    tokens: list[str]
    offsets: IntArray
    labels: Labels
    weights: FloatArray


class BoltzmannChain(TokenUncertainty, StreamedExamples):
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
    budget : float, optional
        Operations of an evaluation, in units of those of the pseudo-likelihood: the most accurate policy of at most two
        orders within it is chosen, by the scores of the sequences. `likelihood` then stays ``"full"``.
    l1 : float
        Strength of a penalty on absolute values, on all weights.
    constraints : list of constraints, optional
        Convex sets of weights by names of tokens (``features=``, None is a token that is not in training), labels and
        transitions; see `partita.constraints`. Every iterate satisfies them.

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
    likelihood_ : "full" or CompositeLikelihood
        What was maximised.
    choice_ : dict
        With a budget: the cost of the policy, and the expected efficiency.
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

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "l2": real(0.0),
        "likelihood": checked(composite_of),
        "n_tokens": count(1, optional=True),
        "solver": solver_like,
        "max_iter": count(),
        "tol": real(0.0),
        "verbose": verbosity,
        "n_jobs": threads,
        "random_state": seed,
        "budget": real(0.0, strict=True, optional=True),
        **RESTRICTIONS,
    }
    TRANSIENT: ClassVar[tuple[str, ...]] = ("_numbers", "_point")

    classes_: LabelArray
    tokens_: NDArray[np.str_]
    token_weights_: FloatArray
    transition_weights_: FloatArray
    n_unseen_: int
    lengths_: IntArray
    beta_: dict[Any, float]
    likelihood_: str | CompositeLikelihood
    choice_: dict[str, Any]

    def __init__(
        self,
        l2: float = 1.0,
        likelihood: str | CompositeLikelihood = "full",
        n_tokens: int | None = None,
        solver: SolverLike = "auto",
        max_iter: int = 500,
        tol: float = 2e-6,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        budget: float | None = None,
        l1: float = 0.0,
        constraints: Constraint | Iterable[Constraint] | None = None,
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
        self.budget = budget
        self.l1 = l1
        self.constraints = constraints

    def _check_combinations(self) -> None:
        check_budget(self.budget, self.likelihood)
        check_refinement(composite_of(self.likelihood), self.l1, self.constraints)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    @training
    def fit(self, X: TokenLists, y: LabelSequences, sample_weight: SampleWeight = None) -> BoltzmannChain:
        """Fit to lists of tokens X and lists of labels y. A failed fit changes nothing.

        Parameters
        ----------
        X : list of lists of str
        y : list of lists of labels
            Strings or integers; None where a label is unknown, or a set of labels one of which is right: they are summed
            out, which takes ``likelihood="full"``, and the objective has local minima.
        sample_weight : array of shape (n_sequences,), optional
        """
        return self._learn(None, X, y, sample_weight)

    def _mean(self) -> FloatArray | None:
        if "token_weights_" not in vars(self):
            return None
        return np.concatenate([self.token_weights_.ravel(), self.transition_weights_.ravel()])

    def _grown(self, before: Posterior, tokens: NDArray[Any]) -> Posterior:
        """What is known, in the rows of tokens of which some are new: these have been those that nobody saw so far."""
        n, place = len(self.classes_), np.full(len(tokens) + 1, len(self.tokens_))
        place[np.searchsorted(tokens, self.tokens_)] = np.arange(len(self.tokens_))
        new = place[:-1] == len(self.tokens_)
        mean, precision = (part[: -n * n].reshape(-1, n)[place] for part in before)
        precision[:-1][new] = float(self.l2)
        rest = (part[-n * n :] for part in before)
        return Posterior(*(np.concatenate([a.ravel(), b]) for a, b in zip((mean, precision), rest, strict=True)))

    def _learn(self, before: Posterior | None, *data: Any) -> BoltzmannChain:
        X, y, sample_weight = data
        words = self._read_training(X, y, sample_weight, None if before is None else self.classes_)
        tokens = np.unique(np.array(words.tokens))
        if before is not None:
            tokens = np.union1d(self.tokens_, tokens)
            before = self._grown(before, tokens)
        codes = np.searchsorted(tokens, np.array(words.tokens))
        if self.n_tokens is not None and self.n_tokens < len(tokens):
            raise ValueError(f"n_tokens must be at least {len(tokens)}, the tokens in X; got {self.n_tokens}")
        unseen = 1 if self.n_tokens is None else self.n_tokens - len(tokens)
        labels = words.labels
        sizes = np.append(np.ones(len(tokens)), unseen)
        options: dict[str, Any] = {"weights": words.weights, "l2": float(self.l2), "workers": Workers(self.n_jobs)}
        options["sets"] = labels.sets
        chains = (codes, labels.codes, words.offsets, sizes, len(labels.classes))
        known = before

        def objective(composite: CompositeLikelihood | None) -> BoltzmannChainLikelihood:
            return after(BoltzmannChainLikelihood(*chains, composite=composite, **options), known)

        start = None if before is None else before.mean
        self._solve(objective, start, np.diff(words.offsets), labels.classes.tolist(), tokens.tolist())
        self.classes_, self.tokens_, self.n_unseen_ = labels.classes, tokens, int(unseen)
        self.lengths_ = np.diff(words.offsets)
        self._forget("_numbers")
        return self

    def _solve(
        self,
        make: Callable[[CompositeLikelihood | None], BoltzmannChainLikelihood],
        start: FloatArray | None,
        lengths: IntArray,
        labels: list[Any],
        tokens: list[str],
    ) -> None:
        """Minimise a likelihood that is made of sequences, or the one that the budget allows, and keep what was found."""
        composite, choice = composite_of(self.likelihood, self.random_state), None
        solve = self._solving(make(None), labels, tokens)
        if self.budget is not None:
            every = CompositeLikelihood(dict.fromkeys(BUDGET_ORDERS, 1.0))
            costs = dict(zip(BUDGET_ORDERS, chain_operations(lengths, len(labels), every), strict=True))
            composite, choice = within_budget(make, solve, costs, self.budget)
        objective = make(composite)
        solution, beta = fit_weights(objective, composite, solve, start)
        point: Any = solution.point
        if composite is not None and composite.refine is not None:
            point = newton_step(make(None if composite.refine == FULL else composite.refinement), point.parameters)
        self._warn_if_short(solution)
        self._store_precision(objective, smooth_point(point), objective.n_examples)
        self._store_run(solution.at(point, point.objective.scale))
        self.token_weights_, self.transition_weights_ = (part.copy() for part in objective.unpack(point.parameters))
        self._point, self.beta_, self.likelihood_ = smooth_point(point), beta, composite or FULL
        self._forget("choice_")
        if choice is not None:
            self.choice_ = choice

    def _solving(
        self, objective: BoltzmannChainLikelihood, labels: list[Any], tokens: list[str]
    ) -> Callable[[BoltzmannChainLikelihood, FloatArray | None], Solution]:
        """How a likelihood of these weights is minimised: with the l1 penalty, within the constraints."""
        feasible = feasible_weights(self.constraints, _named(objective, labels, tokens))
        l1 = np.full(objective.size, float(self.l1))
        objective.unpack(l1)[0][-1] *= objective.sizes[-1]  # the weights of tokens that are all alike

        def solve(objective: BoltzmannChainLikelihood, start: FloatArray | None) -> Solution:
            return self._minimize(restricted(objective, l1, feasible), start)

        return solve

    def influence(self, X: TokenLists | None = None, y: LabelSequences = None) -> FloatArray:
        """How much the weights would change if a sequence were in the training data once more, to first order.

        Parameters
        ----------
        X, y : optional
            New sequences; without them, those of training.

        Returns
        -------
        array of shape (sequences, weights): `token_weights_`, then `transition_weights_`.
        """
        point = self._fitted_point()
        if X is None:
            return influence(point) / point.objective.chain_weights[:, None]
        x, offsets = self._read(X)
        labels = encode_labels(y, offsets, self.classes_)
        new = point.objective.with_data(x, labels.codes, offsets, labels.sets).at(point.parameters)
        return influence(point, np.concatenate(list(new.score_chunks())))

    def _read_training(
        self, X: TokenLists, y: LabelSequences, sample_weight: SampleWeight, classes: LabelArray | None
    ) -> Words:
        """The sequences that are not empty and have a positive weight."""
        for name, value in (("X", X), ("y", y)):
            if isinstance(value, str) or not isinstance(value, Sized):
                raise ValueError(f"{name} must be a list with one list per sequence, got {type(value).__name__}")
        rows: Any = y
        weights = check_weights("sample_weight", sample_weight, len(X))
        if len(X) != len(rows):
            raise ValueError(f"X and y must have as many sequences; got {len(X)} and {len(rows)}")
        kept = [i for i in range(len(X)) if len(X[i]) and weights[i] > 0.0]
        if not kept:
            raise ValueError("X has no sequence with a position and a positive weight")
        flat, offsets = _tokens([X[i] for i in kept])
        labels = encode_labels([rows[i] for i in kept], offsets, classes)
        return Words(flat, offsets, labels.compact() if classes is None else labels, weights[kept])

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

    def _operations(self, composite: CompositeLikelihood) -> FloatArray:
        """Operations for a sequence, of each order."""
        return chain_operations(self.lengths_, len(self.classes_), composite, draws=False)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.tokens_.tolist())}

    def _read(self, X: TokenLists) -> tuple[IntArray, IntArray]:
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

    def _decode(self, codes: IntArray, offsets: IntArray) -> list[list[Label]]:
        return [part.tolist() for part in split(self.classes_[codes], offsets)]

    def predict(self, X: TokenLists) -> list[list[Label]]:
        """The most probable labels of each sequence, given its tokens, by the Viterbi algorithm."""
        scored = self._scored(X)
        return scored.decode(scored.viterbi())

    def predict_kbest(self, X: TokenLists, k: int) -> list[list[tuple[list[Label], float]]]:
        """The k most probable labellings of each sequence given its tokens (n-best), best first, each with its
        log-probability.

        Fewer than k where a sequence has fewer.
        """
        check_count("k", k, minimum=1)
        return self._scored(X).kbest(k)

    def explain(self, sequence: Sequence[str]) -> Explanation:
        """Which token and which neighbours pushed which label, at each position. ``print`` the answer.

        A push is what something adds to the score of the predicted label, less what it adds to that of the runner-up (the
        most probable other label there), the neighbours' labels being as predicted.
        """
        scored = self._scored([sequence])
        codes, P, (U, A), labels = scored.viterbi(), scored.marginals(), scored.scores, self.classes_.tolist()
        entries = []
        for t, token in enumerate(sequence):
            rows = [(f"token {token}", U[t])]
            rows += [(f"after {labels[codes[t - 1]]}", A[codes[t - 1]])] if t else []
            rows += [(f"before {labels[codes[t + 1]]}", A[:, codes[t + 1]])] if t + 1 < len(codes) else []
            entries.append(explained(t, labels, P[t], rows, int(codes[t])))
        return Explanation(tuple(entries))

    def _scored(self, X: TokenLists) -> ScoredSequences:
        """Sequences with the scores of their labels, given the tokens."""
        x, offsets = self._read(X)
        data = SequenceData.unchecked(sp.csr_matrix((len(x), 0)), offsets, None, None, ATTRIBUTES)
        scores = self.token_weights_[x], self.transition_weights_
        return ScoredSequences(data, self.classes_.tolist(), self._chain(offsets), scores)

    @overload
    def predict_marginals(self, X: TokenLists, as_array: Literal[False] = False) -> list[list[dict[Label, float]]]: ...

    @overload
    def predict_marginals(self, X: TokenLists, as_array: Literal[True]) -> list[FloatArray]: ...

    def predict_marginals(self, X: TokenLists, as_array: bool = False) -> list[list[dict[Label, float]]] | list[FloatArray]:
        """The probability of every label at every position, given the tokens, by forward-backward.

        For each sequence a list of dicts ``{label: probability}``; with `as_array`, an array of shape (positions, labels)
        in the order of `classes_`.
        """
        scored = self._scored(X)
        P, offsets = normalized(scored.marginals()), scored.offsets
        if as_array:
            return split(P, offsets)
        labels = self.classes_.tolist()
        return split([dict(zip(labels, row, strict=True)) for row in P.tolist()], offsets)

    def joint_log_proba(self, X: TokenLists, y: LabelSequences) -> FloatArray:
        """Log-probability of the tokens and labels of each sequence, among all of its length.

        Of labels that are None or sets, it is that of all that agree.
        """
        x, offsets = self._read(X)
        labels = encode_labels(y, offsets, self.classes_)
        chain, out = self._chain(offsets), np.zeros(len(offsets) - 1)
        if chain is None:
            return out
        allowed = np.where(labels.allowed(), self.token_weights_[x], -np.inf)
        scores = chain.log_partition((allowed, self.transition_weights_))
        lengths, which = np.unique(np.diff(chain.offsets), return_inverse=True)
        out[np.diff(offsets) > 0] = scores - self._chain_of_labels(lengths).log_partition(self._label_scores(lengths))[which]
        return out

    def log_likelihood(self, X: TokenLists, y: LabelSequences) -> FloatArray:
        """The same as `joint_log_proba`: the name that all Partita estimators share."""
        return self.joint_log_proba(X, y)

    def score(self, X: TokenLists, y: LabelSequences) -> float:
        """The share of right labels, one of the set where y has a set; positions where y is None do not count."""
        found = list(itertools.chain.from_iterable(self.predict(X)))
        return encode_labels(y, _tokens(X)[1]).share_right(found, np.ones(len(found)))

    def sample(
        self, lengths: ArrayLike, random_state: RandomState = None
    ) -> tuple[list[list[str | None]], list[list[Label]]]:
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

    def _chain_of_labels(self, lengths: ArrayLike) -> Chain:
        return Chain(len(self.classes_), lengths, self.n_jobs)

    def _label_scores(self, lengths: ArrayLike) -> tuple[FloatArray, FloatArray]:
        b = self._tokens_given_labels()[0]
        return np.tile(b, (int(np.sum(lengths)), 1)), self.transition_weights_


def _named(objective: BoltzmannChainLikelihood, labels: list[Any], tokens: list[str]) -> NamedWeights:
    """Weights by label and token (None: those that are not in training) and by pairs of labels."""
    token, move = objective.unpack(np.arange(objective.size, dtype=np.float64))
    pairs = {(a, b): [int(place)] for a, row in zip(labels, move, strict=True) for b, place in zip(labels, row, strict=True)}
    table, names = token.T.astype(np.int64), [*tokens, None]
    more: dict[str, Any] = {"labels": labels, "features": names, "groups": {TRANSITIONS: pairs}}
    return NamedWeights.of_table(objective.size, table, whole=np.arange(objective.size), **more)


def _tokens(X: TokenLists) -> tuple[list[str], IntArray]:
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

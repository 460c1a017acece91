"""Bayesian networks with hidden variables and unknown values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ...core.parameters import Check, anything, choice, count, instance, items, real, seed, threads, verbosity
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Solution, Status
from ...core.types import RandomState, SampleWeight, TableLike
from ...core.validation import check_choice, check_weights
from ...estimators.bootstrap import copied
from ...estimators.loaded import check_run
from ...estimators.restarts import end_values
from ...estimators.trained import Trained, training
from ...objectives.uncertainty import METHODS as ERRORS
from ...solvers.em import EM
from ..data.network import NetworkLayout, describe
from ..data.tables import Table, read_table
from ..objective import NetworkLikelihood
from .convex_em import ROUNDINGS, ConvexEM, solve_relaxation
from .inference import EdgesLike, NetworkInference
from .parts import PARTS, checked_layout
from .problem import NetworkProblem, in_standard_units
from .starts import fresh_states, given_start, random_starts
from .table_errors import KnownRows

#: What is maximised by each method that iterates, and how.
ITERATIVE: dict[str, tuple[str, str | None]] = {
    "em": ("marginal", "squarem"),
    "viterbi": ("joint", None),
    "conditional": ("conditional", None),
}
#: What tables are mixed with uniform ones by before a refit: EM never leaves a zero.
SMOOTH = 1e-6
METHODS = ("auto", "supervised", *ITERATIVE, "convex", "convex+em")
VARIANCES = ("tied", "free")

#: The lowest end of some starts, and the ends of all.
Ends = tuple[Solution, list[Solution | None]]


class BayesianNetwork(Trained, NetworkInference):
    """A directed model p(x) = prod_j p(x_j | parents of x_j), from data with hidden variables and unknown values.

    Distributions are tables: p(a | b) = exp(W[b, a]) / sum exp(W[b]). Minimises
    ``-sum_i log p(what is known in row i) + (alpha / 2) ||W||^2``. With hidden variables that has local minima, so that
    several starts are run.

    Parameters
    ----------
    edges : list of pairs, path, DiscreteNetwork or networkx graph
        (parent, child) by name, or a BIF file, of which structure and states are taken; without a `fit` its tables too.
    cardinalities : dict, optional
        Number of states of variables (their values are then 0, 1, ...), or lists of states. Default: the values that occur.
    hidden : dict or list, optional
        Variables that are not in the data, with their numbers of states (known already from a BIF file: a list). If the
        data have a column of that name, its values are used where they are known.
    alpha : float, default 1.0
        Strength of the penalty, which draws distributions to uniform ones. Zero is plain maximum likelihood: then states
        that never occur have probability zero, and what was never seen given some parents is uniform.
    method : str, default "auto"
        ``"supervised"``: all values must be known. ``"em"``: marginal likelihood, by accelerated EM. ``"viterbi"``: the
        likelihood of known and most probable unknown values together. ``"conditional"``: the probability of the most
        probable unknown values given the known ones. ``"convex"``: a convex relaxation says which rows agree in hidden
        variables, which is rounded and then supervised; no random start. ``"convex+em"``: ``"em"`` from there, about as
        good as one or two random starts. ``"auto"`` is ``"em"``, or ``"supervised"`` if all values are known.
    n_init : int, default 10
        Random starts, in parallel; the best is kept. One is enough, and used, if rows show every state of hidden variables.
    random_state : int, Generator or None
        Of the starts.
    gaussian : list, optional
        Observed leaves that are real numbers: each has a mean for every configuration of its parents.
    variance : {"tied", "free"}
        Whether a Gaussian leaf has one variance, or one for each configuration of its parents.
    rounding : {"kmeans", "random", "simplex"}
        How states are made of the relaxation, see `ConvexEM`.
    init : dict, optional
        Tables to start from, by name, an axis for each parent and the last for the variable, instead of random ones. A
        hidden variable of which two states are alike there is refused: EM would never tell them apart.
    max_iter : int
        Most iterations from each start.
    tol : float
        Stop when the largest absolute entry of the gradient, divided by the total weight of the rows, is at most `tol`.
    n_jobs : int or None
        Threads; None means all cores. The result does not depend on it.
    verbose : int
        1 shows progress twice a second, 2 every iteration, on standard error.

    Attributes
    ----------
    nodes_ : list
        Names of all variables; columns of arrays that are returned are in this order.
    states_ : dict
        The states of every variable that is not Gaussian.
    tables_ : dict
        p(variable | parents): an axis for each parent, the last for the variable.
    means_, variances_ : dict
        Of Gaussian variables, an axis for each parent.
    objective_ : float
        The objective reached.
    objectives_ : array
        From each start; NaN where an interrupt came first.
    traces_ : list of arrays
        The objective after every iteration, from each start.
    n_iter_, trace_, status_
        Of the best start.

    Notes
    -----
    Data are a data frame (pandas, polars, pyarrow), a dict of columns, a list of dicts, or an array; what comes back is
    of the same kind. Names win: columns may be in any order, and those that the network does not have are ignored with a
    `DataWarning`. At `fit` every variable that is not hidden needs a column; afterwards an absent one is unknown. An
    array has a column for each observed variable (or for all) in the order in which names first occur in `edges` or in
    the file, integers in ascending order; after a fit to a frame, its columns are those of that frame.

    None, NaN and ``pd.NA`` are unknown, and in arrays of integers also -1, unless it is a state. States of a variable are
    of one kind: numbers, text or truth values. How a value is read depends on the states alone: text is itself; a number
    is the state that is this number, or text that reads so (1 is "1"), and where no state is a number it counts states
    from 0. A value that is none of the states is an error.

    A BIF file or DiscreteNetwork has tables: without a fit, `predict` and the others use these. Rows in which nothing is
    known have log-likelihood zero and are left out of training. Rows that look the same to a hidden variable are one to
    inference.

    Examples
    --------
    Two groups of rows, and a hidden variable that finds them:

    >>> import numpy as np
    >>> from partita import BayesianNetwork
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(2, size=300)
    >>> X = (rng.random((300, 5)) < np.where(group, 0.9, 0.2)[:, None]).astype(int)
    >>> model = BayesianNetwork([("H", f"x{i}") for i in range(5)], hidden={"H": 2}, random_state=0).fit(X)
    >>> found = model.predict_proba(X)["H"].argmax(axis=1)
    >>> bool(max(np.mean(found == group), np.mean(found != group)) > 0.95)
    True
    >>> int(model.predict([[1, 1, 1, -1, 1]])[0, 4])  # the unknown value, filled in (H is the first of `nodes_`)
    1
    """

    PARAMETERS: ClassVar[Mapping[str, Check]] = {
        "edges": anything,
        "cardinalities": items("a dict or a list of names"),
        "hidden": items("a dict or a list of names"),
        "alpha": real(0.0),
        "method": choice(*METHODS),
        "n_init": count(1),
        "random_state": seed,
        "gaussian": items("a dict or a list of names"),
        "variance": choice(*VARIANCES),
        "rounding": choice(*ROUNDINGS),
        "init": instance(Mapping, what="a dict of tables"),
        "max_iter": count(),
        "tol": real(0.0),
        "n_jobs": threads,
        "verbose": verbosity,
    }

    TRANSIENT: ClassVar[tuple[str, ...]] = ("_known_rows",)

    _known_rows: KnownRows | None = None
    objective_: float
    objectives_: FloatArray
    traces_: list[FloatArray]
    _convex: ConvexEM

    def __init__(
        self,
        edges: EdgesLike,
        cardinalities: Mapping[Any, int | Sequence[Hashable]] | None = None,
        hidden: Mapping[Any, int | Sequence[Hashable]] | Sequence[Hashable] | None = None,
        alpha: float = 1.0,
        method: str = "auto",
        n_init: int = 10,
        random_state: RandomState = None,
        gaussian: Sequence[Hashable] | None = None,
        variance: str = "tied",
        rounding: str = "kmeans",
        init: Mapping[Any, ArrayLike] | None = None,
        max_iter: int = 1000,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.edges = edges
        self.cardinalities = cardinalities
        self.hidden = hidden
        self.alpha = alpha
        self.method = method
        self.n_init = n_init
        self.random_state = random_state
        self.gaussian = gaussian
        self.variance = variance
        self.rounding = rounding
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    @training
    def fit(self, X: TableLike, y: object = None, sample_weight: SampleWeight = None) -> Self:
        """Fit to a table of data. A failed fit changes nothing."""
        table = read_table(X)
        layout, states, values = self._learn_states(table)
        weights = check_weights("sample_weight", sample_weight, len(states))
        problem = NetworkProblem.of(layout, states, values, weights)
        best, solutions = self._learn(problem)
        self._store(problem, best, solutions)
        known = problem.is_complete and len(layout.discrete) == len(layout.nodes)
        self._known_rows = KnownRows(problem.states, problem.weights, dict(layout.number)) if known else None
        self._store_columns(table, layout)
        self._warn_if_short(best)
        return self

    def standard_errors(
        self, method: str = "bootstrap", draws: int = 100, random_state: RandomState = None
    ) -> dict[Any, FloatArray]:
        """Standard errors of `tables_`, and of `means_` under the names of Gaussian variables.

        Parameters
        ----------
        method : {"bootstrap", "information", "sandwich"}
            Refits to resampled rows, which start from the tables, so that hidden states keep their numbers. Where a
            penalised fit has many effective parameters for its rows, these are too small, and a warning says so. Where all
            values are known and no variable is Gaussian, also the inverse of the observed information (penalty included), or
            the sandwich, in closed form.
        draws, random_state
            Number of refits, and seed.
        """
        check_is_fitted(self, "parameters_")
        check_choice("method", method, ERRORS)
        if method != "bootstrap":
            rows, alpha, robust = self._known_rows, float(self.alpha), method == "sandwich"
            if rows is None:
                raise ValueError(
                    f"method={method!r} has a closed form right after a fit where all values are known and no variable is "
                    "Gaussian (else the curvature is one of sums over what is unknown, and EM knows their gradient only): "
                    "use method='bootstrap'"
                )
            parents, tables = self.parents_, self.tables_
            return {name: rows.table_errors(name, parents[name], p, alpha, robust) for name, p in tables.items()}
        found, tables = self._bootstrap(draws, random_state), self._tables_and_means()
        ends = np.cumsum([table.size for table in tables.values()])[:-1]
        parts = zip(tables.items(), np.split(found, ends), strict=True)
        return {name: part.reshape(table.shape) for (name, table), part in parts}

    def _tables_and_means(self) -> dict[Any, FloatArray]:
        return {**self.tables_, **{name: np.asarray(mean) for name, mean in self.means_.items()}}

    def _estimates(self) -> FloatArray:
        return np.concatenate([np.ravel(table) for table in self._tables_and_means().values()])

    def _warm_copy(self) -> Self:
        smooth = {name: (1.0 - SMOOTH) * table + SMOOTH / table.shape[-1] for name, table in self.tables_.items()}
        other: Self = copied(self, init=smooth, n_init=1)
        return other

    def _learn_states(self, table: Table) -> tuple[NetworkLayout, IntArray, FloatArray]:
        """The network with the states that a table shows, and what the table has."""
        layout = NetworkLayout.learn(describe(self.edges, self.cardinalities, self.hidden, self.gaussian), table)
        return layout, *layout.read(table, fitted=False, known=table.names or ())

    def _store(self, problem: NetworkProblem, best: Solution, solutions: list[Solution | None]) -> None:
        self._store_network(problem.layout, best.parameters, (problem.location, problem.scale), self.variance)
        self.objective_ = best.value
        self.objectives_ = end_values(solutions)
        self.traces_ = [np.zeros(0) if s is None else s.trace.objective for s in solutions]
        self._store_run(best)

    def _learn(self, problem: NetworkProblem) -> Ends:
        self._forget("_convex")
        method = self.method
        if method == "auto":
            method = "supervised" if problem.is_complete else "em"
        if method == "supervised":
            problem.check_complete()
        if not method.startswith("convex"):
            return self._iterate(problem, *ITERATIVE.get(method, ("marginal", None)))
        solution = self._rounded(problem)
        if method == "convex" or solution.status is Status.INTERRUPTED:
            return solution, [solution]
        objective = self._objective(problem, problem.states, "marginal", self.n_jobs)
        return self._run(objective, [solution.parameters], "squarem")

    def _iterate(self, problem: NetworkProblem, kind: str, acceleration: str | None) -> Ends:
        """From random starts, or from those that were given."""
        layout = problem.layout
        fresh = fresh_states(layout, problem.states)
        n_starts = self.n_init if any(part.any() for part in fresh) else 1
        # Starts or items in parallel, not both.
        objective = self._objective(problem, problem.states, kind, 1 if n_starts > 1 else self.n_jobs)
        starts = random_starts(objective, fresh, generator(self.random_state), n_starts)
        if self.init is not None:
            starts = [given_start(layout, objective, fresh, self.init, start) for start in starts]
            starts = starts[:1] if set(layout.discrete) <= set(self.init) else starts
        return self._run(objective, starts, acceleration)

    def _objective(self, problem: NetworkProblem, states: IntArray, kind: str, n_jobs: int | None) -> NetworkLikelihood:
        return problem.objective(states, alpha=self.alpha, kind=kind, tied_variance=self.variance == "tied", n_jobs=n_jobs)

    def _run(self, objective: Any, starts: list[FloatArray], acceleration: str | None) -> Ends:
        return self._minimize_from(objective, starts, EM(acceleration), self.n_jobs)

    def _rounded(self, problem: NetworkProblem) -> Solution:
        """The relaxation, states made of it, and the network that fits these."""
        problem.check_equal_weights()
        layout, states = problem.layout, problem.states
        options: dict[str, Any] = {"callbacks": self._progress(), "n_jobs": self.n_jobs}
        self._convex = solve_relaxation(layout, states, problem.values, None, **options)
        rng, filled = generator(self.random_state), states.copy()
        for name in self._convex.names:
            filled[:, layout.number[name]] = self._convex.labels(name, self.rounding, rng)
        objective = self._objective(problem, filled, "marginal", self.n_jobs)
        solution = self._run(objective, [np.zeros(objective.size)], None)[0]
        return replace(solution, status=Status.INTERRUPTED) if self._convex.status is Status.INTERRUPTED else solution

    def convex_relaxation(self, X: TableLike, alpha: float | None = None, units: str = "absolute") -> ConvexEM:
        """The convex relaxation of joint EM on these data. Needs no fit.

        Parameters
        ----------
        X : table of data
            In which hidden variables are unknown in all rows and all others known.
        alpha : float, optional
            The penalty. Small ones relax too much, and from `alpha_crit` on, which grows with the number of rows, the
            solution is trivial. Default: about where as many groups as there are hidden states begin to show. That is not
            the `alpha` of this network, so that `lower` is no bound on its `objective_`; give ``alpha=model.alpha`` for
            that, or compare with `joint_objective`.
        units : {"absolute", "critical"}
            Whether `alpha` is the penalty, or to be multiplied with `alpha_crit`.

        Returns
        -------
        ConvexEM
            With `alpha`, `objective`, `lower`, `gap`, `M`, `alpha_crit`, `trivial`, `labels()`, and `joint_objective()`,
            which is never below `lower`.
        """
        check_choice("units", units, ("absolute", "critical"))
        layout, states, values = self._learn_states(read_table(X))
        return solve_relaxation(layout, states, in_standard_units(values), alpha, units=units, n_jobs=self.n_jobs)

    @property
    def convex_(self) -> ConvexEM:
        """The relaxation that a ``"convex"`` fit began with. It is not saved with the model."""
        if not hasattr(self, "_convex"):
            raise AttributeError("there is no relaxation: fit with method='convex' or 'convex+em'")
        return self._convex

    def set_params(self, **params: Any) -> Self:
        """Set parameters. Tables that were read from a file, not fitted, are forgotten if they are of another network."""
        super().set_params(**params)
        if "_given" in vars(self) and {"edges", "cardinalities", "hidden", "gaussian"} & set(params):
            self._forget(*PARTS, "columns_", "n_features_in_", "_given")
        return self

    def _pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        if "parameters_" not in vars(self):
            self._adopt_tables()
        return super()._pack()

    def _validate_loaded(self) -> None:
        """Raise a ValueError if the parts of a model file do not fit together."""
        self._check_parameters()
        if not set(PARTS) & set(vars(self)):
            return
        layout = checked_layout(vars(self))
        if "trace_" in vars(self):
            check_run(self)
        if "columns_" not in vars(self):  # a file of an older version
            self._name_columns(self.feature_names_in_.tolist() if "feature_names_in_" in vars(self) else None, layout)

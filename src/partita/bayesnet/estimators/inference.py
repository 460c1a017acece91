"""What a Bayesian network says once its distributions are known, by a fit or from a file."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ...core.arrays.simplex import normalized
from ...core.errors import DataWarning, NumericalError
from ...core.memory import check_memory
from ...core.random import generator
from ...core.results import FloatArray, IntArray
from ...core.types import LabelArray, Pairs, RandomState, SampleWeight, TableLike
from ...core.validation import check_count, check_weights
from ...core.warn import warn
from ...graph import Evidence
from ...report.explanation import Explanation, explained
from ..bif import write_bif
from ..data.network import NetworkLayout
from ..data.tables import Table, read_table
from ..objective import NEVER, NetworkLikelihood
from ..structure.discrete_network import DiscreteNetwork
from .parts import PARTS, checked_layout, given_parts

#: A directed graph: pairs (parent, child), a BIF file or what was read from one, or a graph of networkx.
EdgesLike: TypeAlias = str | os.PathLike[str] | DiscreteNetwork | Pairs


class NetworkInference(BaseEstimator):
    """The part of `BayesianNetwork` that answers questions."""

    edges: EdgesLike
    cardinalities: Mapping[Any, int | Sequence[Hashable]] | None
    hidden: Mapping[Any, int | Sequence[Hashable]] | Sequence[Hashable] | None
    gaussian: Sequence[Hashable] | None
    n_jobs: int | None
    nodes_: list[Hashable]
    hidden_: tuple[Hashable, ...]
    parents_: dict[Hashable, tuple[Hashable, ...]]
    states_: dict[Hashable, list[Any]]
    parameters_: FloatArray
    location_: FloatArray
    scale_: FloatArray
    variance_: str
    table_: str
    columns_: list[Hashable | None] | None
    n_features_in_: int
    feature_names_in_: LabelArray

    def __sklearn_is_fitted__(self) -> bool:
        try:
            return "parameters_" in vars(self) or self._adopt_tables()
        except (OSError, ValueError):  # a file that cannot be read is told about when it is used
            return False

    def __getattr__(self, name: str) -> Any:
        if name in (*PARTS, "columns_", "n_features_in_") and "edges" in vars(self) and "parameters_" not in vars(self):
            try:
                if self._adopt_tables():
                    return vars(self)[name]
            except (OSError, ValueError) as error:
                raise AttributeError(f"{name} is not there: {error}") from error
        return object.__getattribute__(self, name)  # raises, and a property says why

    def _adopt_tables(self) -> bool:
        """Take the tables of a BIF file or a DiscreteNetwork as they are; whether there are any."""
        parts = given_parts(self.edges, self.cardinalities, self.hidden, self.gaussian)
        if parts is None:
            return False
        self.__dict__.update(parts)
        self._given = True
        return True

    def _store_network(
        self, layout: NetworkLayout, parameters: FloatArray, units: tuple[FloatArray, FloatArray], variance: str
    ) -> None:
        """Keep what was learned; `units` are the location and scale of Gaussian variables."""
        self.nodes_, self.parents_, self.states_, self.hidden_ = layout.nodes, layout.parents, layout.states, layout.hidden
        self.parameters_, self.variance_ = parameters, variance
        self.location_, self.scale_ = units

    def _store_columns(self, table: Table, layout: NetworkLayout) -> None:
        """Remember what the columns were: arrays that come later are read in the same order."""
        names = table.names if table.names is not None and set(table.names) & set(layout.nodes) else None
        self.table_ = table.kind
        self._name_columns(names, layout)
        self.n_features_in_ = len(layout.nodes) - len(layout.hidden) if names is None else len(names)
        for name in ("feature_names_in_", "_given"):
            self.__dict__.pop(name, None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _name_columns(self, names: Sequence[Hashable] | None, layout: NetworkLayout) -> None:
        """Which variable each column of the fit was, None for one that was ignored."""
        self.columns_ = None if names is None else [name if name in layout.parents else None for name in names]

    def _layout(self) -> NetworkLayout:
        if "parameters_" not in vars(self):
            self._adopt_tables()
        check_is_fitted(self)
        return checked_layout(vars(self))

    def _read(self, X: TableLike) -> tuple[NetworkLayout, NetworkLikelihood, FloatArray]:
        """The data as an objective, and its potentials at the fitted parameters."""
        layout, table = self._layout(), read_table(X)
        columns = getattr(self, "columns_", None)
        known = self.feature_names_in_.tolist() if "feature_names_in_" in vars(self) else ()
        if table.names is None and columns is not None and len(columns) == table.n_columns:
            shown = ", ".join("(ignored)" if name is None else str(name) for name in columns)
            warn(
                "X does not have valid feature names, but BayesianNetwork was fitted with feature names; its columns are "
                f"taken in the order of the fit: {shown}",
                DataWarning,
            )
        objective = self._fitted(layout, *layout.read(table, columns, known=known))
        return layout, objective, objective.potentials(self.parameters_)

    def _fitted(self, layout: NetworkLayout, states: IntArray, values: FloatArray) -> NetworkLikelihood:
        values = (values - self.location_) / self.scale_
        return NetworkLikelihood(layout.net, states, values, tied_variance=self.variance_ == "tied", n_jobs=self.n_jobs)

    @property
    def tables_(self) -> dict[Hashable, FloatArray]:
        """p(variable | parents) of every variable that is not Gaussian."""
        layout = self._layout()
        return dict(zip(layout.discrete, layout.net.tables(np.exp(self._log_distributions(layout))), strict=True))

    def _log_distributions(self, layout: NetworkLayout) -> FloatArray:
        w = self.parameters_[: layout.net.size]
        return np.where(w <= NEVER, -np.inf, layout.net.log_distributions(w))

    def _leaves(self) -> tuple[dict[Hashable, FloatArray], dict[Hashable, FloatArray]]:
        layout = self._layout()
        empty = np.zeros((1, layout.net.n), np.int64), np.zeros((1, len(layout.gaussian)))
        _, means, variances = self._fitted(layout, *empty).split(self.parameters_)
        shapes = [tuple(layout.net.cardinalities[list(of)].tolist()) for of in layout.net.leaves]
        parts = zip(layout.gaussian, means, variances, shapes, self.location_, self.scale_, strict=True)
        found = [(name, (m * s + c).reshape(k), (v * s**2).reshape(k)) for name, m, v, k, c, s in parts]
        return {name: m for name, m, _ in found}, {name: v for name, _, v in found}

    @property
    def means_(self) -> dict[Hashable, FloatArray]:
        """Means of Gaussian variables, an axis for each parent."""
        return self._leaves()[0]

    @property
    def variances_(self) -> dict[Hashable, FloatArray]:
        """Variances of Gaussian variables, an axis for each parent."""
        return self._leaves()[1]

    def log_likelihood(self, X: TableLike) -> FloatArray:
        """log p of what is known in each row: at most 0 without Gaussian variables; -inf where that is impossible."""
        layout, objective, u = self._read(X)
        logs = self._row_values(layout, objective, u)
        if not layout.gaussian:
            return np.minimum(logs, 0.0)  # what is more is rounding
        return np.asarray(logs - ~np.isnan(objective.leaves) @ np.log(self.scale_))

    def _row_values(self, layout: NetworkLayout, objective: NetworkLikelihood, u: FloatArray) -> FloatArray:
        """log p of rows, in standard units, with true zeros."""
        true = u.copy()
        true[: layout.net.size][self.parameters_[: layout.net.size] <= NEVER] = -np.inf
        return _refuse_nan(objective.sets.row_values(true))

    def _warn_impossible(self, layout: NetworkLayout, objective: NetworkLikelihood, u: FloatArray) -> None:
        """Say so if what is known in rows has probability zero: then nothing follows for what is unknown."""
        if (self.parameters_[: layout.net.size] > NEVER).all():
            return
        rows = np.flatnonzero(np.isneginf(self._row_values(layout, objective, u)))
        if len(rows):
            warn(
                f"{len(rows)} of {len(objective.sets.states)} rows are impossible here, the first is row {rows[0]}: what is "
                "said of their unknown values counts zeros in tables as tiny numbers",
                DataWarning,
            )

    def score(self, X: TableLike, y: object = None, sample_weight: SampleWeight = None) -> float:
        """Mean log-likelihood of the rows."""
        logs = self.log_likelihood(X)
        return float(np.average(logs, weights=check_weights("sample_weight", sample_weight, len(logs))))

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        layout = self._layout()
        net = layout.net
        leaves = sum(size + (1 if self.variance_ == "tied" else size) for size in net.leaf_sizes)
        return int(net.size - (len(net.starts) - 1) + leaves)

    def bic(self, X: TableLike) -> float:
        """Bayesian information criterion: the lower the better."""
        logs = self.log_likelihood(X)
        return float(np.log(len(logs)) * self.n_parameters_ - 2.0 * logs.sum())

    def aic(self, X: TableLike) -> float:
        """Akaike information criterion: the lower the better."""
        return float(2.0 * self.n_parameters_ - 2.0 * self.log_likelihood(X).sum())

    def predict(self, X: TableLike) -> Any:
        """The table with unknown values filled in and columns for all of `nodes_`.

        States of a row that are unknown are together the most probable ones; a Gaussian variable has its mean given its
        parents.
        """
        layout, objective, u = self._read(X)
        self._warn_impossible(layout, objective, u)
        states = objective.sets.filled(u)[:, : layout.net.n]
        _, means, _ = objective.split(self.parameters_)
        values = objective.leaves.copy()
        for j, (of, mean) in enumerate(zip(layout.net.leaves, means, strict=True)):
            values[:, j] = np.where(np.isnan(values[:, j]), mean[layout.net.codes(states, of)], values[:, j])
        table = read_table(X)
        return layout.write(states, values * self.scale_ + self.location_, table.kind, X, table.names or ())

    def predict_kbest(self, X: TableLike, k: int) -> list[list[tuple[dict[Hashable, Any], float]]]:
        """Of each row, the k most probable states of its unknown variables together, best first (Lawler's algorithm).

        Each is a dict by variable, with its log-probability given what is known. Unknown Gaussian variables are summed out.
        """
        layout, objective, u = self._read(X)
        self._warn_impossible(layout, objective, u)
        out = []
        for row in objective.sets.states:
            evidence = Evidence(objective.graph, row)
            found, scores = evidence.k_best(u, k)
            given = float(evidence.log_weights(u)[0, 0])
            unknown = np.flatnonzero(row[: layout.net.n] < 0).tolist()
            names = [layout.discrete[v] for v in unknown]
            values = [[self.states_[layout.discrete[v]][s] for v, s in zip(unknown, y[unknown], strict=True)] for y in found]
            states = [dict(zip(names, row_values, strict=True)) for row_values in values]
            out.append([(y, float(score) - given) for y, score in zip(states, scores, strict=True)])
        return out

    def explain(self, X: TableLike) -> Explanation:
        """Which distributions pushed which state of the unknown variables of a row; of all given the others, if none are.

        X is a table of one row. ``print`` the answer. A push is what the logarithm of a distribution has for the most
        probable state, or that which is known, more than for the runner-up, the other variables being as they are known or
        predicted.
        """
        layout, objective, u = self._read(X)
        if len(objective.sets.states) != 1:
            raise ValueError(f"X must be a table of one row to explain, got {len(objective.sets.states)}")
        known, states, graph = objective.sets.states[0], objective.sets.filled(u)[0], objective.graph
        tables = objective.sets.variable_marginals(u, layout.net.n)
        unknown = np.flatnonzero(known[: layout.net.n] < 0).tolist()
        called = [*layout.discrete, *layout.gaussian]
        entries = []
        for v in unknown or range(layout.net.n):
            rows = [
                (f"{called[f]} given its parents" if f != v else "its own parents", u[graph.entries_of(f, v, states)])
                for f in np.flatnonzero([v in scope for scope in graph.factors]).tolist()
            ]
            total = np.sum([row for _, row in rows], axis=0)
            p = np.exp(total - np.logaddexp.reduce(total)) if not unknown else normalized(tables[v])[0]
            labels = list(self.states_[layout.discrete[v]])
            entries.append(explained(called[v], labels, p, rows, int(states[v]), what="variable"))
        return Explanation(tuple(entries))

    def predict_proba(self, X: TableLike) -> dict[Hashable, FloatArray]:
        """For hidden variables, and others that are unknown in some row: probabilities of states, (n_rows, n_states)."""
        layout, objective, u = self._read(X)
        self._warn_impossible(layout, objective, u)
        tables = objective.sets.variable_marginals(u, layout.net.n)
        some: Any = (objective.sets.states[:, : layout.net.n] < 0).any(axis=0)
        asked = [v for v, name in enumerate(layout.discrete) if some[v] or name in layout.hidden]
        with np.errstate(invalid="ignore"):
            found = {layout.discrete[v]: normalized(tables[v]) for v in asked}
        for table in found.values():
            _refuse_nan(table.sum(1))
        return found

    def predict_marginals(self, X: TableLike) -> dict[Hashable, FloatArray]:
        """The same as `predict_proba`: the name that all Partita estimators share."""
        return self.predict_proba(X)

    def sample(self, size: int = 1, random_state: RandomState = None) -> Any:
        """Independent rows with all of `nodes_`, as a data frame if the network was fitted to one, else an array."""
        layout, rng = self._layout(), generator(random_state)
        check_count("size", size)
        check_memory(f"size={size} rows of {len(layout.nodes)} variables", 24.0 * size * len(layout.nodes), "Lower size")
        states = layout.net.sample(self._log_distributions(layout), size, rng)
        values = np.empty((size, len(layout.gaussian)))
        means, variances = self._leaves()
        for j, (name, of) in enumerate(zip(layout.gaussian, layout.net.leaves, strict=True)):
            code = layout.net.codes(states, of)
            noise = rng.standard_normal(size) * np.sqrt(variances[name].ravel()[code])
            values[:, j] = means[name].ravel()[code] + noise
        return layout.write(states, values, "pandas" if self.table_ == "frame" else self.table_)

    def to_bif(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a BIF file. Gaussian variables cannot be written."""
        layout = self._layout()
        if layout.gaussian:
            raise ValueError(f"a BIF file has no Gaussian variables, but {layout.gaussian[0]!r} is one")
        names = tuple(map(str, layout.discrete))
        states = tuple(tuple(map(str, self.states_[name])) for name in layout.discrete)
        parents = tuple(tuple(map(str, self.parents_[name])) for name in layout.discrete)
        write_bif(path, DiscreteNetwork(names, states, parents, tuple(self.tables_.values())))


def _refuse_nan(values: FloatArray) -> FloatArray:
    """Values of rows, if they are numbers."""
    if np.isnan(values).any():
        row = int(np.argmax(np.isnan(values)))
        raise NumericalError(f"row {row} is too far from all that the network knows: its probability cannot be computed")
    return values

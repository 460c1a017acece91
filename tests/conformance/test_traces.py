"""What is returned is what the last row of the trace describes, for every estimator and every solver that it takes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from zoo import CASES, X, Y

from partita import SGD, BlockFrankWolfe, Majorize, NumericalError, Status, StochasticBound, minimize
from partita.core.contracts import DualPoint
from partita.core.results import conclude, measure
from partita.features import TableType, TiedTables
from partita.objectives import L1, GraphLikelihood
from partita.softmax.estimators.softmax_regression import softmax_objective
from partita.solvers import make_solver
from partita.solvers.named import solver_classes
from partita.structures import FactorGraph

LIMITS = (0, 1, 4)
TABLE = [
    (name, solver, limit)
    for name, case in CASES.items()
    if " in pieces" not in name and " on a stream" not in name  # these have no trace of the whole
    for solver in case.solvers or (None,)
    for limit in (LIMITS if solver in (None, "auto") else LIMITS[2:])
]


@pytest.mark.parametrize(("name", "solver", "limit"), TABLE)
def test_the_last_row_of_the_trace_is_what_was_returned(name, solver, limit):
    """Stopped early, so that no value is the optimum's."""
    case = CASES[name]
    options = {} if solver is None else {"solver": solver}
    model = case.fitted(max_iter=limit, **options)
    case.use(model)
    inner = getattr(model, "model", model)
    assert np.isfinite(inner.trace_.objective[-1])
    assert inner.trace_.gradient_norm[-1] >= 0.0
    if case.objective is not None and solver == "block_frank_wolfe":  # whose value is what the objective is at most
        assert inner.trace_.objective[-1] >= case.objective(model) - 1e-9
    elif case.objective is not None:
        assert inner.trace_.objective[-1] == pytest.approx(case.objective(model), rel=1e-7)
    if hasattr(model, "gap_") and name != "MaxEnt":  # whose gap is that of the primal
        assert model.gap_ == pytest.approx(inner.trace_.gap[-1])
    if hasattr(model, "objective_"):
        assert model.objective_ == inner.trace_.objective[-1]


def graphs():
    rng = np.random.default_rng(4)
    graph = FactorGraph.union([FactorGraph([2] * 3, [(0,), (1,), (2,), (0, 1), (1, 2)])] * 5)
    k = np.arange(graph.n_factors)
    types = [TableType(k[k % 5 < 3], rng.standard_normal((15, 2))), TableType(k[k % 5 >= 3])]
    return GraphLikelihood(TiedTables(graph, types), rng.integers(0, 2, 15), penalty=0.5, engine="trw")


OBJECTIVES = {
    "softmax": lambda: softmax_objective(X, Y, l2=0.5, penalize_intercept=True),
    "lasso": lambda: softmax_objective(X, Y, l2=0.5, l1=2.0),
    "orthant": lambda: L1(softmax_objective(X, Y, l2=0.5, penalize_intercept=True), 2.0),
    "graphs": graphs,
}
VARIANTS = [
    *solver_classes(),
    *(Majorize(acceleration=a) for a in ("anderson", "squarem", None)),
    *(SGD(batch_size=5, method=m) for m in ("plain", "averaged", "adam", "saga", "svrg")),
    *(StochasticBound(batch_size=b, validation=v) for b in (1, 20) for v in (0.0, 0.3)),
    StochasticBound(batch_size=2, curvature="batch", step="4/t"),
    SGD(batch_size=5, learning_rate=300.0, decay=0.0),
    BlockFrankWolfe(averaging=False),
]


PAIRS = [
    pytest.param(kind, make_solver(solver), id=f"{kind}-{make_solver(solver).name}")
    for kind, make in OBJECTIVES.items()
    for solver in VARIANTS
    if make_solver(solver).requires <= make().capabilities
]


@pytest.mark.parametrize(("kind", "method"), PAIRS)
@pytest.mark.parametrize("ended", ["max_iter", "tol", "callback", "interrupt"])
def test_every_solver_returns_what_its_trace_ends_with(kind, method, ended):
    objective = OBJECTIVES[kind]()

    def callback(progress):
        if ended == "interrupt" and progress.iteration == 3:
            raise KeyboardInterrupt
        return ended == "callback" and progress.iteration == 2

    limits = {"max_iter": 5, "tol": 0.0} if ended != "tol" else {"max_iter": 30, "tol": 1e-2}
    solution = minimize(objective, solver=method, callbacks=[callback], **limits)
    exact = objective.at(solution.parameters)
    row = [column[-1] for column in (solution.trace.objective, solution.trace.gradient_norm, solution.trace.gap)]
    if isinstance(solution.point, DualPoint):  # the objective is not evaluated: it is at most what the row says
        assert solution.point.certified == (ended != "interrupt")
        assert exact.value <= row[0] + 1e-9 or ended == "interrupt"
        assert row[0] - row[2] <= exact.value + 1e-9
    else:
        np.testing.assert_allclose(row, measure(exact, objective.scale, 0.0)[:3], rtol=1e-6, atol=1e-9)
    assert solution.value == solution.trace.objective[-1]
    if solution.status is Status.CONVERGED:
        assert solution.trace.gradient_norm[-1] <= limits["tol"]
    assert np.all(np.diff(solution.trace.seconds) >= 0.0)


class _Place:
    def __init__(self, value, slope, gap=np.inf):
        self.parameters, self.value, self.gradient, self.gap = np.zeros(1), value, np.array([slope]), gap


def test_converged_is_measured_and_nan_is_an_error():
    given = {"n_iter": 1, "solver": "some solver", "status": Status.CONVERGED}
    rows = [(3.0, 1.0, np.inf, 0.0)]

    def ends(place, **options):
        return conclude(place, measure(place, 1.0, 1.0), rows, **given, **options)

    assert ends(_Place(2.0, 1e-7), tol=1e-6).status is Status.CONVERGED
    assert ends(_Place(2.0, 1e-5), tol=1e-6).status is Status.PRECISION
    assert ends(_Place(2.0, 1e-5, 1e-9), tol=1e-6, gap_tol=1e-8).status is Status.CONVERGED
    assert ends(_Place(3.0, 1.0)).trace.objective.tolist() == [3.0]
    assert ends(_Place(2.0, 1.0)).trace.objective.tolist() == [3.0, 2.0]
    for place in (_Place(np.nan, 1.0), _Place(np.inf, 1.0), _Place(1.0, np.nan)):
        with pytest.raises(NumericalError, match="some solver ended where the objective is"):
            ends(place)


def test_a_rise_on_the_way_does_not_end_the_trace():
    """The last iterate is far above the best one, which is returned and described."""
    objective = OBJECTIVES["softmax"]()
    solver = SGD(batch_size=5, learning_rate=300.0, decay=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = minimize(objective, solver=solver, max_iter=30)
    assert solution.status is Status.UNSTABLE
    assert len(solution.trace) == solution.n_iter + 2
    assert solution.trace.objective[-1] == objective.at(solution.parameters).value

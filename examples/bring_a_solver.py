"""What makes a dispatcher choose an order? Learned from past loads of a truck, by maximum likelihood over all loads.

A load is any set of orders within the truck's capacity. Nobody can sum over all of them, but CP-SAT, the solver of OR-tools
(``pip install ortools``), finds the best one; nothing else is asked of it.
"""

import numpy as np
from ortools.sat.python import cp_model

from partita import OracleCRF

CAPACITY, FEATURES = 30, ("profit", "days late", "distance")


def packer(orders):
    """A solver for one day: the best load for given scores of orders."""

    def best(scores):
        model = cp_model.CpModel()
        taken = [model.new_bool_var("") for _ in scores]
        model.add(cp_model.LinearExpr.weighted_sum(taken, orders["weights"]) <= CAPACITY)
        model.maximize(cp_model.LinearExpr.weighted_sum(taken, np.rint(1e6 * scores).astype(int).tolist()))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.solve(model)
        return [solver.value(chosen) for chosen in taken]

    return best


def main(days=40, orders=12, seed=0):
    rng = np.random.default_rng(seed)
    X = [{"features": rng.normal(size=(3, orders)), "weights": rng.integers(1, 10, orders).tolist()} for _ in range(days)]
    taste = np.array([1.0, 2.0, -1.0])  # what we pretend not to know
    y = [packer(x)(taste @ x["features"] + rng.logistic(size=orders)) for x in X]
    # CP-SAT takes whole numbers: rounding scores costs at most half a millionth for each order, which delta says
    model = OracleCRF(packer, per_example=True, delta=1e-6 * orders, tol=1e-2).fit(X, y)
    for name, weight in zip(FEATURES, model.parameters_, strict=True):
        print(f"{name:10s} {weight:+.2f}")
    print(f"{model.n_oracle_calls_} calls of CP-SAT; the objective is at most {model.gap_:.2f} above its minimum")
    print(f"orders that it would choose as the dispatcher did (F1): {model.score(X, y):.2f}")
    return model


if __name__ == "__main__":
    main()

"""Grids of pixels with two labels: best labellings by several solvers, and messages against them.

Potentials are standard normal for states, and couplings of either sign (standard normal, halved) for neighbours, so that
flows run on the doubled graph. `agree` has couplings of one sign. All solvers get the same call from potentials to the best
point, and take turns. PyMaxflow is under the GPL and only measured here, if it is installed. The last table has planar Ising
models: zero field, couplings standard normal.
"""

import argparse
from typing import Any

import numpy as np
from harness import digits, machine, markdown, print_load, write_results
from uai import timed

import partita.graph.oracles.max_flow as flows
from partita.graph.oracles.max_flow import MaxFlowOracle
from partita.graph.oracles.planar_ising import PlanarIsingOracle
from partita.graph.oracles.polytopes import LinearProgramOracle
from partita.structures import FactorGraph


def potentials(graph: FactorGraph, agree: bool, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pairs = graph.n_factors - graph.n_variables
    couplings = 0.5 * rng.standard_normal(pairs)
    tables = np.outer(np.abs(couplings) if agree else couplings, [1.0, 0.0, 0.0, 1.0])
    return np.concatenate([rng.standard_normal(2 * graph.n_variables), tables.ravel()])


def pymaxflow_cut(tails: Any, heads: Any, capacity: Any, source: int, sink: int) -> np.ndarray:
    """The cut by PyMaxflow, from the same arcs."""
    import maxflow

    inner = (tails < source) & (heads < source)
    graph = maxflow.GraphInt(source, int(inner.sum()))
    nodes = graph.add_nodes(source)
    graph.add_edges(tails[inner], heads[inner], capacity[inner], np.zeros(int(inner.sum()), np.int64))
    into, out = np.zeros(source, np.int64), np.zeros(source, np.int64)
    first, last = tails == source, heads == sink
    np.add.at(into, heads[first], capacity[first])
    np.add.at(out, tails[last], capacity[last])
    graph.add_grid_tedges(nodes, into, out)
    graph.maxflow()
    return np.concatenate([1.0 - graph.get_grid_segments(nodes), [1.0, 0.0]])


def best(side: int, turns: int) -> list[list[Any]]:
    """Milliseconds of a best labelling; messages to a certificate of 1e-6."""
    rows = []
    graph = FactorGraph.grid(side, side)
    for agree in (False, True):
        solvers: dict[str, Any] = {name: MaxFlowOracle(graph, name) for name in ("ortools", "scipy")}
        try:
            import maxflow  # noqa: F401

            solvers["PyMaxflow"] = MaxFlowOracle(graph, "scipy")
        except ImportError:
            print("PyMaxflow is not installed")
        scipy_cut = flows._scipy_cut
        times: dict[str, list[float]] = {name: [] for name in [*solvers, "messages"]}
        values: dict[str, float] = {}
        sweeps, gap = 0, 0.0
        for turn in range(turns + 1):
            u = potentials(graph, agree, turn)
            for name, oracle in solvers.items():
                flows._scipy_cut = pymaxflow_cut if name == "PyMaxflow" else scipy_cut
                answer, seconds = timed(lambda o=oracle, u=u: o(u))
                values[name] = answer.value
                if turn:  # the first loads and compiles
                    times[name].append(seconds)
            flows._scipy_cut = scipy_cut
            assert max(values.values()) - min(values.values()) < 1e-2
            result, seconds = timed(lambda u=u: graph.infer(u, "trw", lower=False, certify=True, tol=1e-7))
            sweeps, gap = max(sweeps, result.n_iter), max(gap, float(result.gap[0]))
            if turn:
                times["messages"].append(seconds)
        program, seconds = timed(lambda u=u: LinearProgramOracle(graph)(u))
        times["HiGHS"] = [seconds]
        assert abs(program.value - values["ortools"]) < 1e-3
        mine = float(np.median(times["ortools"]))
        for name, found in times.items():
            note = f"{sweeps} sweeps at most, gap at most {gap:.1e}" if name == "messages" else ""
            middle = float(np.median(found))
            rows.append(["agree" if agree else "mixed", name, digits(1e3 * middle), digits(middle / mine), note])
    print(markdown(["pairs", "solver", "ms", "of OR-tools", ""], rows), flush=True)
    return rows


def planar() -> list[list[Any]]:
    """Seconds of best configurations and log Z of planar Ising models; the specification has 3.7 s for log Z at 100."""
    rows = []
    for side in (30, 100):
        graph = FactorGraph.grid(side, side)
        J = np.random.default_rng(side).standard_normal(graph.n_factors - side**2)
        u = np.concatenate([np.zeros(2 * side**2), np.outer(J, [1.0, -1.0, -1.0, 1.0]).ravel()])
        answer, seconds = timed(lambda g=graph, u=u: PlanarIsingOracle(g)(u))
        log_z, more = timed(lambda g=graph, u=0.3 * u: g.log_partition(u, "planar"))
        _, both = timed(lambda g=graph, u=0.3 * u: g.infer(u, "planar"))
        value = f"{float(np.ravel(log_z)[0]):.6f}"
        rows.append([side, digits(seconds), f"{answer.value:.4f}", digits(more), digits(both), value])
    print(markdown(["side", "best s", "its score", "log Z s", "marginals s", "log Z (couplings x 0.3)"], rows), flush=True)
    return rows


def main() -> None:
    """Run both, print their tables, and write `results/grids.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=100)
    parser.add_argument("--turns", type=int, default=9)
    arguments = parser.parse_args()
    print_load("start")
    found = {"best": best(arguments.side, arguments.turns), "planar": planar()}
    print_load("end")
    write_results("grids", {"machine": machine(), **found})


if __name__ == "__main__":
    main()

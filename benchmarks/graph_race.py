"""Exact sums on factor graphs against other libraries: seconds for log Z and all marginals, on UAI instances.

aGrUM (C++, `pip install pyagrum`) and pgmpy are raced where they are installed and finish in time. Each has a process
of its own for each instance; what is timed begins with the model in memory and ends with the marginals of all variables.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from datasets import data_directory
from harness import digits, machine, markdown, print_load, write_results

INSTANCES = (
    "Promedus_13 Promedus_16 Promedus_24 Promedus_28 Grids_12 Grids_11 Segmentation_11 Segmentation_13 Pedigree_12 DBN_11"
)


def partita(model: str, evidence: str) -> list[float]:
    """Seconds in a process that has used a kernel before, order and compilation of the tree included."""
    from partita.io import read_uai
    from partita.structures import FactorGraph

    small = FactorGraph.grid(3, 3)
    small.infer(np.zeros(small.size))
    graph, potentials = read_uai(model, evidence)
    start = time.perf_counter()
    result = graph.infer(potentials, "exact", memory_limit=1.2e10)
    marginals = graph.variable_marginals(result.marginals)
    seconds = time.perf_counter() - start
    return [seconds, float(result.log_z[0]), float(sum(p[0] for p in marginals if len(p) > 1))]


def agrum(model: str, evidence: str) -> list[float]:
    """Shafer-Shenoy on aGrUM's own junction tree."""
    import pyagrum as gum

    network = gum.loadMRF(model)
    words = Path(evidence).read_text().split()
    known = {int(words[1 + 2 * i]): int(words[2 + 2 * i]) for i in range(int(words[0]))}
    start = time.perf_counter()
    engine = gum.ShaferShenoyMRFInference(network)
    if known:
        engine.setEvidence({network.variable(v).name(): state for v, state in known.items()})
    engine.makeInference()
    marginals = [engine.posterior(v).toarray() for v in sorted(network.nodes())]
    seconds = time.perf_counter() - start
    return [seconds, np.nan, float(sum(p[0] for v, p in enumerate(marginals) if v not in known))]


def pgmpy(model: str, evidence: str) -> list[float]:
    """Belief propagation on pgmpy's junction tree."""
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation
    from pgmpy.models import DiscreteMarkovNetwork

    from partita.io import read_uai

    graph, potentials = read_uai(model, evidence)  # given the evidence
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(range(graph.n_variables))
    for scope in graph.factors:
        network.add_edges_from((a, b) for i, a in enumerate(scope) for b in scope[i + 1 :])
    for scope, table in zip(graph.factors, graph.tables(np.exp(potentials)), strict=True):
        network.add_factors(DiscreteFactor(list(scope), table.shape, table.ravel()))
    start = time.perf_counter()
    engine = BeliefPropagation(network)
    engine.calibrate()
    total = 0.0
    for v in range(graph.n_variables):
        clique = next(c for c in engine.junction_tree.nodes() if v in c)
        belief = engine.clique_beliefs[clique].marginalize([u for u in clique if u != v], inplace=False)
        belief.normalize()
        total += float(belief.values[0]) if graph.cardinalities[v] > 1 else 0.0
    return [time.perf_counter() - start, np.nan, total]


RUNNERS = {"partita": partita, "aGrUM": agrum, "pgmpy": pgmpy}


def run(name: str, model: str, evidence: str, limit: float) -> list[float] | str:
    command = [sys.executable, __file__, "--child", name, model, evidence]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"> {limit:.0f}"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:60] if done.stderr.strip() else "failed"
    return list(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Race, print, and write `results/graph_race.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", nargs="+", default=INSTANCES.split())
    parser.add_argument("--limit", type=float, default=120.0, help="most seconds for a program on an instance")
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        name, model, evidence = arguments.child
        print(json.dumps(RUNNERS[name](model, evidence)))
        return
    print_load("start")
    folder = data_directory() / "uai2014_pr"
    rows, results = [], []
    for instance in arguments.instances:
        found = {}
        for name in RUNNERS:
            found[name] = run(name, str(folder / f"{instance}.uai"), str(folder / f"{instance}.uai.evid"), arguments.limit)
        results.append({"instance": instance, **found})
        ours = found["partita"]
        cells = [instance]
        for name in RUNNERS:
            value = found[name]
            if isinstance(value, str):
                cells.append(value)
            else:
                same = abs(value[2] - ours[2]) < 1e-6 * max(1.0, abs(ours[2])) if not isinstance(ours, str) else False
                ratio = f" ({value[0] / ours[0]:.1f}x)" if name != "partita" and not isinstance(ours, str) else ""
                cells.append(digits(value[0]) + ratio + ("" if same else " DIFFERENT"))
        rows.append(cells)
        print(markdown(["instance", *RUNNERS], rows[-1:]).splitlines()[-1], flush=True)
    print(markdown(["seconds", *RUNNERS], rows))
    print_load("end")
    write_results("graph_race", {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()

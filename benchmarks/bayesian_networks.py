"""Bayesian networks with hidden variables.

`table`: Table 1 of the convex EM paper by its protocol: 10 repeats, t rows to train on, 1000 to test on (the rest, where
there are not as many), 10 restarts of joint (Viterbi) EM, and soft EM, which the paper left out. Losses are -log p per row
of data in which all is known, the hidden variable too; its states are matched to the true ones on the training rows. All
models have alpha = 1. The synthetic networks are described in words only, so that ours have other tables. `pgmpy`: one
iteration of EM on the Alarm network against pgmpy, where that is installed.
"""

import argparse
import itertools
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from datasets import data_directory
from harness import digits, machine, markdown, print_load, read_results, write_results

from partita import EM, BayesianNetwork, minimize
from partita.bayesnet.data.network import NetworkLayout, describe
from partita.bayesnet.objective import NetworkLikelihood
from partita.io import DiscreteNetwork, read_bif, read_uai

METHODS = ("supervised", "viterbi", "em", "convex", "convex+em")
SIZES = (50, 100, 150)
#: The paper's test loss: supervised, Viterbi EM, convex EM.
PAPER = {
    "synth1": (7.90, 11.73, 9.16),
    "synth2": (4.50, 6.41, 5.55),
    "synth3": (5.32, 8.18, 6.41),
    "pima": (5.32, 6.93, 6.03),
    "metastatic cancer": (2.31, 3.94, 3.06),
    "alarm": (12.30, 13.75, 13.62),
    "asia (either)": (2.33, 2.36, 2.78),
}
#: Edges and hidden variables of the synthetic networks. The paper's losses exceed log 2 per variable: all have three states.
SYNTHETIC: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "synth1": ([("a", "G"), ("b", "G"), ("c", "H"), ("G", "d"), ("G", "e"), ("H", "f"), ("H", "g")], ["G", "H"]),
    "synth2": ([("a", "H"), ("b", "H"), ("H", "c"), ("H", "d"), ("c", "e"), ("d", "e")], ["H"]),
    "synth3": ([("H", f"x{i}") for i in range(6)], ["H"]),
}
#: Dirichlet parameter of their distributions: that of 0.3, 0.5, 1, 2 whose supervised losses are nearest to the paper's.
STRENGTH = 0.5
FILES = {
    "cancer (bnlearn)": ("cancer.bif.gz", "Cancer"),
    "asia (either)": ("asia.bif.gz", "either"),
    "asia (smoke)": ("asia.bif.gz", "smoke"),
    "alarm": ("alarm.bif.gz", "INTUBATION"),
}


def synthetic(name: str, rng: np.random.Generator) -> DiscreteNetwork:
    """A network with random distributions."""
    edges, _ = SYNTHETIC[name]
    nodes = list(dict.fromkeys(node for edge in edges for node in edge))
    parents = tuple(tuple(a for a, b in edges if b == node) for node in nodes)
    tables = tuple(rng.dirichlet(np.full(3, STRENGTH), size=(3,) * len(of)) for of in parents)
    return DiscreteNetwork(tuple(nodes), (("0", "1", "2"),) * len(nodes), parents, tables)


def metastatic() -> DiscreteNetwork:
    """The five binary variables of the metastatic cancer network; in the file, each factor ends with its child."""
    graph, potentials = read_uai(data_directory() / "bif" / "metastatic_cancer.uai")
    names = ("metastatic", "calcium", "tumour", "coma", "headaches")
    tables = [np.exp(table) for table in graph.tables(potentials)]
    parents = tuple(tuple(names[v] for v in scope[:-1]) for scope in graph.factors)
    return DiscreteNetwork(names, (("true", "false"),) * 5, parents, tuple(tables))


def draws(network: DiscreteNetwork, n: int, rng: np.random.Generator) -> pd.DataFrame:
    graph, u = network.factor_graph()
    states = graph.sample(u, n, rng)
    return pd.DataFrame(
        {name: np.array(network.states[v], dtype=object)[states[:, v]] for v, name in enumerate(network.variables)}
    )


def pima(n: int, rng: np.random.Generator) -> tuple[DiscreteNetwork, pd.DataFrame, pd.DataFrame]:
    """Naive Bayes on Pima: eight columns cut at their medians, the class hidden."""
    table = np.genfromtxt(data_directory() / "uci" / "pima-indians-diabetes.csv", delimiter=",")
    codes = [(column > np.median(column)).astype(int) for column in table[:, :-1].T]
    names = ("H", *(f"x{i}" for i in range(8)))
    data = pd.DataFrame(np.column_stack([table[:, -1].astype(int), *codes]).astype(str), columns=names)
    tables = (np.full(2, 0.5), *((np.full((2, 2), 0.5),) * 8))
    network = DiscreteNetwork(names, (("0", "1"),) * 9, ((), *((("H",),) * 8)), tables)
    order = rng.permutation(len(data))
    return network, data.iloc[order[:n]], data.iloc[order[n:]]


def problem(name: str, t: int, seed: int) -> tuple[DiscreteNetwork, list[str], pd.DataFrame, pd.DataFrame]:
    """Network, hidden variables, training and test rows."""
    rng = np.random.default_rng(seed)
    if name == "pima":
        network, train, test = pima(t, rng)
        return network, ["H"], train, test
    if name in SYNTHETIC:
        network, hidden = synthetic(name, rng), SYNTHETIC[name][1]
    elif name == "metastatic cancer":
        network, hidden = metastatic(), ["tumour"]
    else:
        file, variable = FILES[name]
        network, hidden = read_bif(data_directory() / "bif" / file), [variable]
    rows = draws(network, t + 1000, rng)
    return network, hidden, rows.iloc[:t], rows.iloc[t:]


def relabelled(data: pd.DataFrame, hidden: str, states: tuple[str, ...], order: tuple[int, ...]) -> pd.DataFrame:
    return data.assign(**{hidden: data[hidden].map({states[i]: states[j] for i, j in enumerate(order)})})


def losses(
    model: BayesianNetwork, network: DiscreteNetwork, hidden: list[str], train: Any, test: Any
) -> tuple[float, float]:
    """-log p per row, with states of the hidden variables matched on the training rows, one variable after another."""
    for variable in hidden:
        states = network.states[network.index[variable]]
        orders = list(itertools.permutations(range(len(states))))
        best = max(orders, key=lambda order, h=variable, s=states: model.score(relabelled(train, h, s, order)))
        train, test = (relabelled(part, variable, states, best) for part in (train, test))
    return -model.score(train), -model.score(test)


def run_table(names: list[str], sizes: list[int], repeats: int) -> dict[str, Any]:
    """Mean losses by network, size and method."""
    results: dict[str, Any] = {}
    for name in names:
        for t in sizes:
            found: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
            seconds = dict.fromkeys(METHODS, 0.0)
            for seed in range(repeats):
                network, hidden, train, test = problem(name, t, seed)
                for method in METHODS:
                    model = BayesianNetwork(network, hidden=hidden, method=method, random_state=seed)
                    start = time.perf_counter()
                    model.fit(train if method == "supervised" else train.drop(columns=hidden))
                    seconds[method] += (time.perf_counter() - start) / repeats
                    found[method].append(losses(model, network, hidden, train, test))
            results[f"{name}, t = {t}"] = {
                method: {"losses": found[method], "seconds": seconds[method]} for method in METHODS
            }
            print(table_row(f"{name}, t = {t}", results[f"{name}, t = {t}"]), flush=True)
    return results


def table_row(label: str, cell: dict[str, Any]) -> list[str]:
    row = [label]
    for method in METHODS:
        pairs = np.array(cell[method]["losses"])
        row.append(f"{pairs[:, 0].mean():.2f} / {pairs[:, 1].mean():.2f} ± {pairs[:, 1].std():.2f}")
    paper = PAPER.get(label.split(", t = ")[0])
    return [*row, " / ".join(f"{value:.2f}" for value in paper) if paper and label.endswith(" 100") else ""]


def print_table(results: dict[str, Any]) -> None:
    header = ["train / test loss", *METHODS, "paper's test: sup / Vit / convex"]
    print("\n" + markdown(header, [table_row(label, cell) for label, cell in results.items()]))
    seconds = {m: float(np.mean([cell[m]["seconds"] for cell in results.values()])) for m in METHODS}
    print("\nmean seconds of a fit: " + ", ".join(f"{method} {digits(value)}" for method, value in seconds.items()))


HIDDEN = ("HYPOVOLEMIA", "LVFAILURE", "ANAPHYLAXIS", "INSUFFANESTH", "KINKEDTUBE")


def alarm(rows: int) -> tuple[DiscreteNetwork, pd.DataFrame, dict[str, np.ndarray]]:
    """Rows of Alarm without the hidden variables, and tables to start from."""
    network = read_bif(data_directory() / "bif" / "alarm.bif.gz")
    data = draws(network, rows, np.random.default_rng(0)).drop(columns=list(HIDDEN))
    rng = np.random.default_rng(1)
    start = {
        name: rng.dirichlet(np.ones(t.shape[-1]), t.shape[:-1])
        for name, t in zip(network.variables, network.tables, strict=True)
    }
    return network, data, start


def likelihood(network: DiscreteNetwork, data: pd.DataFrame, tables: dict[str, Any]) -> tuple[NetworkLikelihood, np.ndarray]:
    """What EM minimises without a penalty, and parameters with these tables."""
    layout = NetworkLayout.learn(describe(network, None, list(HIDDEN), None), data)
    objective = NetworkLikelihood(layout.net, layout.read(data)[0], alpha=0.0)
    return objective, np.log(np.maximum(np.concatenate([tables[name].ravel() for name in layout.discrete]), 1e-300))


def ours(rows: int, iterations: int) -> dict[str, float]:
    """Seconds of an iteration (the shortest of five runs), and the log-likelihood after it."""
    network, data, start = alarm(rows)
    begin = time.perf_counter()
    objective, theta = likelihood(network, data, start)
    setup = time.perf_counter() - begin
    minimize(objective, theta, EM(None), max_iter=1, tol=0.0)  # compiled now
    seconds = []
    for _ in range(5):
        found = minimize(objective, theta, EM(None), max_iter=iterations + 10, tol=0.0)
        seconds.append(float(np.diff(found.trace.seconds).mean()))
    return {"seconds": min(seconds), "setup": setup, "log_likelihood": -float(found.trace.objective[iterations])}


def pgmpy(rows: int, iterations: int) -> dict[str, float]:
    """The same by pgmpy: each iteration expands the data to all configurations of hidden variables."""
    import warnings

    warnings.simplefilter("ignore")
    from pgmpy.estimators import ExpectationMaximization
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    network, data, start = alarm(rows)
    # pgmpy numbers the states of hidden variables.
    names = {
        n: list(range(len(s))) if n in HIDDEN else list(s) for n, s in zip(network.variables, network.states, strict=True)
    }
    edges = [(parent, name) for name, of in zip(network.variables, network.parents, strict=True) for parent in of]
    model = DiscreteBayesianNetwork(edges, latents=set(HIDDEN))
    cpds = {}
    for name, parents in zip(network.variables, network.parents, strict=True):
        table = start[name].reshape(-1, len(names[name])).T
        options = {"evidence": list(parents), "evidence_card": [len(names[p]) for p in parents]} if parents else {}
        own = {variable: names[variable] for variable in (name, *parents)}
        cpds[name] = TabularCPD(name, len(names[name]), table, state_names=own, **options)
    em = ExpectationMaximization(model, data, state_names={n: s for n, s in names.items() if n not in HIDDEN})
    begin = time.perf_counter()
    cards = {name: len(names[name]) for name in HIDDEN}
    found = em.get_parameters(latent_card=cards, max_iter=iterations, init_cpds=cpds, show_progress=False)
    seconds = (time.perf_counter() - begin) / iterations
    tables = {}
    for cpd in found:
        parents = network.parents[network.index[cpd.variable]]
        order = [cpd.variables.index(parent) for parent in parents]
        tables[cpd.variable] = np.transpose(cpd.values, [*order, 0])
    objective, theta = likelihood(network, data, tables)
    return {"seconds": seconds, "log_likelihood": -objective.at(theta).value}


def run_pgmpy(rows: int) -> dict[str, Any]:
    """Each program in a process of its own."""
    results: dict[str, Any] = {}
    for n, iterations in ((min(rows, 300), 3), (rows, 1)):
        for name in ("ours", "pgmpy"):
            command = [sys.executable, __file__, "--child", name, str(n), str(iterations)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(done.stderr.strip().splitlines()[-1])
                return results
            results[f"{name}, {n} rows"] = json.loads(done.stdout.splitlines()[-1]) | {"iterations": iterations}
        a, b = results[f"ours, {n} rows"], results[f"pgmpy, {n} rows"]
        ratio = b["seconds"] / a["seconds"]
        print(
            f"{n} rows, five hidden variables: {digits(a['seconds'])} s an iteration (setup {digits(a['setup'])} s), pgmpy "
            f"{digits(b['seconds'])} s: {ratio:.0f}x; log-likelihood after {iterations}: {a['log_likelihood']:.9f}, pgmpy "
            f"{b['log_likelihood']:.9f}",
            flush=True,
        )
    return results


def main() -> None:
    """Run the parts, print tables, write `results/bayesian_networks.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="table,pgmpy", help="parts, comma-separated")
    parser.add_argument("--networks", default=",".join([*SYNTHETIC, "pima", "metastatic cancer", *FILES]))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", type=int, default=10_000, help="rows of Alarm for pgmpy")
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        name, rows, iterations = options.child
        print(json.dumps({"ours": ours, "pgmpy": pgmpy}[name](int(rows), int(iterations))))
        return
    print_load("start")
    results = read_results("bayesian_networks")
    if "table" in options.only:
        sizes = [int(size) for size in options.sizes.split(",")]
        results["table"] = run_table(options.networks.split(","), sizes, options.repeats)
        print_table(results["table"])
    if "pgmpy" in options.only:
        results["pgmpy"] = run_pgmpy(options.rows)
    write_results("bayesian_networks", results | {"machine": machine()})
    print_load("end")


if __name__ == "__main__":
    main()

"""Majorization on chains, lattices and images: by products, in low rank, along lines, beside `auto` and L-BFGS.

CoNLL-2000 (first sentences, all attributes of words within one position), an Ising lattice that is sampled exactly, and
Weizmann's horses with a tree-reweighted likelihood (`horses.py`). Every solver starts at zero; the optimum is the lowest
value that any of them finds. Times are to the first iterate within a relative 1e-3 and 1e-6 of it. The paper's columns are
those of its Table 1, seconds and iterations to 1e-4 on other text (CoNLL-2002, Penn tags); its "Bound" is the low-rank one.
"""

import argparse
import gzip
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from chain_table1 import PAPER, attributes
from datasets import data_directory
from harness import digits, machine, markdown, print_load, write_results
from scipy import sparse

from partita.chain.features.chain import ChainFeatures
from partita.objectives import ChainLikelihood, GraphLikelihood
from partita.solvers import LBFGS, Auto, Majorize, minimize
from partita.structures import FactorGraph

NEAR = (1e-3, 1e-6)
SIDE_LIMIT = 12


def chunking(count: int, l2: float) -> ChainLikelihood:
    """CoNLL-2000: chunk labels from words."""
    flat: list[list[str]] = [[]]
    y_names: list[str] = []
    with gzip.open(data_directory() / "conll2000" / "train.txt.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split()
            if fields:
                flat[-1].append(fields[0])
                y_names.append(fields[2])
            elif len(flat) == count:
                break
            else:
                flat.append([])
    flat = [sentence for sentence in flat if sentence]
    offsets = np.concatenate(([0], np.cumsum([len(sentence) for sentence in flat])))
    rows = [attributes(sentence, t) for sentence in flat for t in range(len(sentence))]
    index = {name: k for k, name in enumerate(sorted({a for row in rows for a in row}))}
    cells = np.array([(t, index[a]) for t, row in enumerate(rows) for a in row])
    X = sparse.csr_matrix((np.ones(len(cells)), cells.T), shape=(len(rows), len(index)))
    names, y = np.unique(y_names, return_inverse=True)
    n = len(names)
    seen = np.unique(np.array([index[a] * n + y[t] for t, row in enumerate(rows) for a in row]))
    every = np.argwhere(np.ones((n, n)))
    return ChainLikelihood(ChainFeatures(X, offsets, n, seen // n, seen % n, every), y, penalty=l2)


def lattice(side: int, rows: int, l2: float) -> GraphLikelihood:
    """A grid of spins with fields and couplings of their own, from exact samples."""
    from partita.features import TableType, TiedTables

    graph, rng = FactorGraph.grid(side, side), np.random.default_rng(0)
    sizes = np.diff(graph.offsets)
    spins = {2: np.array([[-1.0], [1.0]]), 4: np.array([[1.0], [-1.0], [-1.0], [1.0]])}
    kinds = [
        TableType(np.flatnonzero(sizes == size), features=sparse.identity(int((sizes == size).sum())), basis=basis)
        for size, basis in spins.items()
    ]
    features = TiedTables(graph, kinds)
    truth = features.forward(rng.uniform(-0.5, 0.5, features.size))
    return GraphLikelihood(features, graph.sample(truth, rows, rng), penalty=l2)


def horses(scale: float, images: int) -> GraphLikelihood:
    """Pixels of horses, by a tree-reweighted likelihood."""
    import horses as made

    made.TRAIN = images
    return made.Problem(made.images(scale)[: images + 1], scale, 100.0).objective(tol=1e-8)


def solvers() -> dict[str, Any]:
    """By name."""
    return {
        "majorize": Majorize(),
        "majorize, rank 2": Majorize(rank=2),
        "majorize, rank 8": Majorize(rank=8),
        "auto": Auto(),
        "lbfgs": LBFGS(),
    }


def race(objective: Any, limit: float) -> dict[str, list[tuple[float, float]]]:
    """Seconds and values of each solver."""
    found = {}
    for name, solver in solvers().items():
        rows: list[tuple[float, float]] = []

        def record(progress: Any, rows: list[tuple[float, float]] = rows) -> None:
            rows.append((progress.seconds, progress.objective))

        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            minimize(objective, solver=solver, tol=1e-9, max_iter=100_000, time_limit=limit, callbacks=[record])
        found[name] = rows
        print(f"  {name}: {len(rows) - 1} iterations in {time.perf_counter() - begin:.1f} s, {rows[-1][1]:.6f}", flush=True)
    return found


def table(found: dict[str, list[tuple[float, float]]]) -> list[list[Any]]:
    """A row for each solver: milliseconds per iteration, and seconds and iterations to each accuracy."""
    best, out = min(value for rows in found.values() for _, value in rows), []
    for name, rows in found.items():
        each = 1e3 * rows[-1][0] / max(1, len(rows) - 1)
        cells = []
        for near in NEAR:
            hit = next((k for k, (_, value) in enumerate(rows) if value - best <= near * abs(best)), None)
            cells.append("–" if hit is None else f"{digits(rows[hit][0])} / {hit}")
        out.append([name, digits(each), *cells, f"{(rows[-1][1] - best) / abs(best):.1e}"])
    return out


def main() -> None:
    """Race on all problems, print the tables, write `results/majorize_structured.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--side", type=int, default=SIDE_LIMIT)
    parser.add_argument("--scale", type=float, default=0.33)
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for each solver")
    parser.add_argument("--only", nargs="+", default=["chunking", "lattice", "horses"])
    given = parser.parse_args()
    print_load("start")
    problems: dict[str, Callable[[], Any]] = {
        "chunking": lambda: chunking(given.sentences, 1.0),
        "lattice": lambda: lattice(given.side, 1000, 1.0),
        "horses": lambda: horses(given.scale, given.images),
    }
    results: dict[str, Any] = {}
    header = ["solver", "ms per iteration", *(f"s / iterations to {near:g}" for near in NEAR), "left at the end"]
    for name in given.only:
        objective = problems[name]()
        print(f"\n{name}: {objective.size} weights, {objective.n_examples} examples\n", flush=True)
        objective.at(np.zeros(objective.size)).gradient  # noqa: B018 - compiles
        rows = table(race(objective, given.limit))
        print("\n" + markdown(header, rows))
        results[name] = {"weights": objective.size, "header": header, "rows": rows}
    print("\nThe paper's Table 1 (seconds / iterations to 1e-4):\n")
    print(markdown(["", "CoNLL", "Penn"], [[name, row["conll"], row["penn"]] for name, row in PAPER.items()]))
    write_results("majorize_structured", {"machine": machine(), "limit": given.limit, "paper": PAPER, "problems": results})


if __name__ == "__main__":
    main()

"""Objective against seconds for every solver on CoNLL-2000 chunking: a picture in `docs/` and a table of times."""

import argparse
import warnings
from pathlib import Path

import numpy as np
from chain_race import L2, evaluated, read
from harness import digits, machine, markdown, print_load, write_results

from partita import LBFGS, SGD, ConjugateGradient, Majorize, Newton, SequenceData, SteepestDescent, StochasticBound, minimize
from partita.features import Templates
from partita.report import plot_convergence
from partita.solvers import StochasticStart

SOLVERS = {
    "auto": "auto",
    "lbfgs, scaled": LBFGS(memory=20, scaled=True),
    "lbfgs": LBFGS(),
    "newton (cg)": Newton("cg"),
    "majorize (bound along lines)": Majorize(),
    "conjugate gradient": ConjugateGradient(),
    "steepest descent": SteepestDescent(),
    "stochastic start, newton": StochasticStart(Newton("cg"), epochs=4),
    "stochastic bound": StochasticBound(batch_size=64),
    "SGD": SGD(batch_size=16),
    "averaged SGD": SGD(batch_size=16, method="averaged"),
    "Adam": SGD(batch_size=64, method="adam"),
}
TARGETS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, help="sequences to train on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0, help="most seconds for each solver")
    options = parser.parse_args()
    print_load("start")
    columns, label, kind = read("conll2000", "train")
    matrix, _ = Templates.builtin(kind).fit(columns)
    data = SequenceData(matrix, lengths=np.diff(columns.offsets))[: options.limit]
    objective = evaluated(data, columns.sequences(label)[: options.limit], options.threads)
    traces = {}
    for name, solver in SOLVERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            minimize(objective, solver=solver, max_iter=2)  # load the compiled kernels
            traces[name] = minimize(objective, solver=solver, tol=1e-8, time_limit=options.seconds).trace
        print(f"{name}: {np.nanmin(traces[name].objective):.3f} after {traces[name].seconds[-1]:.1f} s", flush=True)
    best = min(float(np.nanmin(trace.objective)) for trace in traces.values())
    rows = []
    for name, trace in traces.items():
        reached = [trace.seconds[trace.objective <= best * (1.0 + target)] for target in TARGETS]
        rows.append([name, *(digits(float(seconds[0])) if len(seconds) else "-" for seconds in reached)])
    print(markdown([f"seconds to (l2 = {L2:g})", *(f"{target:g}" for target in TARGETS)], rows))
    picture = Path(__file__).resolve().parents[1] / "docs" / "chain-solvers.png"
    if options.limit is None:
        plot_convergence(traces, picture, "CoNLL-2000 chunking, 452,755 weights")
    write_results("chain_curves", {"machine": machine(), "seconds": rows, "threads": options.threads})
    print_load("end")


if __name__ == "__main__":
    main()

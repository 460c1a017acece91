"""Standard errors of chain CRFs from random draws: seconds against those of the fit, and what the approximations cost.

A first table has the seconds of the fit and of the draws. A second one compares solutions for the same right sides: labels
left out from different probabilities on, against the Hessian itself. Its figures are roots of ratios of summed squares, over
the weights of attributes with many labels, of other attributes, and of transitions. A third one compares with 400 draws.
"""

import argparse
import itertools
import time

import numpy as np
from chain_race import L2, read
from harness import digits, machine, markdown, print_load, write_results

from partita import ChainCRF, SequenceData
from partita.chain.kernels.blocks import WIDTH
from partita.chain.objective import information
from partita.features import Templates

#: Accuracy of solves for 100 draws.
TOL = information.TOLERANCE / np.sqrt(200.0)
#: Draws solved with the Hessian itself, and how accurately.
EXACT_DRAWS, EXACT_TOL = 2, 1e-3


def fitted(name, limit):
    """A model, and the seconds that it took."""
    columns, label, kind = read(name, "train")
    matrix, _ = Templates.builtin(kind).fit(columns)
    y = columns.sequences(label)[:limit]
    data = SequenceData(matrix, lengths=np.diff(columns.offsets))[:limit]
    ChainCRF().fit(data[:50], y[:50])  # load the compiled kernels
    model = ChainCRF(l2=L2)
    start = time.perf_counter()
    model.fit(data, y)
    return model, time.perf_counter() - start


def exact_solutions(point, H, right):
    """H^-1 r with products that leave nothing out, preconditioned by those that do."""
    product, out = point.hessian_product(), []
    for r in np.ascontiguousarray(right.T):
        x, R, P, square, first = np.zeros_like(r), r.copy(), None, None, None
        while square is None or square > EXACT_TOL**2 * first:
            z = R / H.diagonal
            part = np.tile(R[H.active][:, None], WIDTH)
            H._add_span(H._on_span(part, np.zeros(WIDTH))[0], added := np.zeros_like(part))
            z[H.active] += added[:, 0]
            new = float(R @ z)
            P = z if P is None else z + new / square * P
            image = product(P)
            step = new / float(P @ image)
            x, R, square, first = x + step * P, R - step * image, new, first or new
        out.append(x)
    return np.array(out).T


def ratios(features, found, expected):
    """Roots of ratios of summed squares, by the kind of weight."""
    edges = (0, features.n_common, features.n_state, features.size)
    parts = [slice(*edge) for edge in itertools.pairwise(edges)]
    return [float(np.sqrt(np.sum(found[part] ** 2) / np.sum(expected[part] ** 2))) for part in parts]


def timed(point, method, draws, seed):
    start = time.perf_counter()
    errors = information.sampled_errors(point, method, draws, np.random.default_rng(seed))
    return errors, time.perf_counter() - start


def one(name, limit, skip):
    """All figures of a data set."""
    model, fit = fitted(name, limit)
    objective = model._objective
    features = objective.features
    for method in ("sandwich", "information"):  # load the compiled kernels
        timed(objective.at(model.parameters_), method, WIDTH, 0)
    result = {"weights": objective.size, "fit": fit, "methods": {}, "deltas": {}}
    for method in ("sandwich", "information"):
        errors, seconds = timed(objective.at(model.parameters_), method, 100, 1)
        result["methods"][method] = {"seconds": seconds, "ratio": seconds / fit}
        if method == "sandwich":
            hundred = errors
    point = objective.at(model.parameters_)
    H = information.CorrectedHessian(point)
    signs = np.random.default_rng(2).choice([-1.0, 1.0], (objective.n_examples, WIDTH))
    right = information.ChainScores(point).signed_sums(signs)
    H.solve(right, TOL)
    result |= {"pairs": len(H.chains.label), "all_pairs": int(point.sums.P.size), "iterations": H.n_iter}
    if not skip:
        exact = exact_solutions(point, H, right[:, :EXACT_DRAWS])
        for delta in (3e-2, 1e-2, 3e-3):
            pruned = information.CorrectedHessian(point, delta)
            start = time.perf_counter()
            found = pruned.solve(right, TOL)
            seconds, pairs = time.perf_counter() - start, len(pruned.chains.label)
            parts = ratios(features, found[:, :EXACT_DRAWS], exact)
            result["deltas"][delta] = {"pairs": pairs, "block": seconds, "iterations": pruned.n_iter, "ratios": parts}
        many, seconds = timed(point, "sandwich", 400, 3)
        spread = np.log(hundred / many)
        result["many"] = {
            "seconds": seconds,
            "ratios": ratios(features, hundred, many),
            "rms": float(np.sqrt(np.mean(spread**2))),
            "expected": float(np.sqrt(1 / 200 + 1 / 800)),
        }
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["conll2000"])
    parser.add_argument("--limit", type=int, help="sequences to train on")
    parser.add_argument("--skip-accuracy", action="store_true", help="only the seconds")
    options = parser.parse_args()
    print_load("start")
    results = {"machine": machine(), "data": {}}
    times, deltas, many = [], [], []
    for name in options.data:
        found = results["data"][name] = one(name, options.limit, options.skip_accuracy)
        for method, run in found["methods"].items():
            size = [found["weights"], f"{found['pairs']} of {found['all_pairs']}", found["iterations"]]
            times.append([name, method, *size, digits(found["fit"]), digits(run["seconds"]), digits(run["ratio"])])
        for delta, run in found["deltas"].items():
            figures = [run["pairs"], run["iterations"], digits(run["block"]), *(f"{r:.3f}" for r in run["ratios"])]
            deltas.append([name, delta, *figures])
        if "many" in found:
            run = found["many"]
            many.append([name, *(f"{r:.3f}" for r in run["ratios"]), f"{run['rms']:.3f}", f"{run['expected']:.3f}"])
    kinds = ["common", "rare", "transitions"]
    print(markdown(["data", "method", "weights", "likely pairs", "CG", "fit, s", "100 draws, s", "over fit"], times))
    if deltas:
        print(markdown(["data", "left out below", "pairs", "CG", f"s for {WIDTH} draws", *kinds], deltas))
        print(markdown(["100 over 400 draws", *kinds, "rms of log", "expected"], many))
    write_results("standard_errors", results)
    print_load("end")


if __name__ == "__main__":
    main()

"""Figures 2 and 3 of the composite likelihood paper: accuracy of mixtures of pseudo-likelihoods, and what they cost.

Boltzmann machines of 5 and 9 units without biases, the first half of the weights -1 and the others 1. Variances are limits,
relative to maximum likelihood, for objects drawn in every pass (refreshed) and once for each example (frozen). The paper has
one formula, that of the first, for both. By it, objects drawn half as often are as accurate for half the price, so that only
the frozen diagram says what a policy is worth. Operations are the published count, for one example.
"""

import argparse
import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, machine, markdown, print_load, write_results

from partita import CompositeLikelihood, MarkovNetwork, tradeoff
from partita.graph.objective.asymptotics import Limits, blocks_given_rest
from partita.graph.objective.operations import published_operations
from partita.objectives.composite.efficiency import efficiency
from partita.report.plots import new_figure
from partita.report.tradeoff import Tradeoff

DOCS = Path(__file__).resolve().parents[1] / "docs"
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Of the specification of the method: units, orders, refreshed, and determinants at `ALPHAS`, or if frozen their roots.
SPECIFIED = (
    (5, (1, 2), True, (1.624489, 1.448236, 1.388490, 1.358738, 1.340994)),
    (5, (1, 2), False, (1.049716, 1.257834, 1.181192, 1.097861, 1.029776)),
    (5, (2, 3), True, (1.340994, 1.268077, 1.217681, 1.181372, 1.154390)),
    (5, (2, 3), False, (1.029776, 1.093792, 1.097997, 1.066876, 1.014461)),
    (5, (3, 4), True, (1.154390, 1.126772, 1.097948, 1.068636, 1.040530)),
    (5, (3, 4), False, (1.014461, 1.061842, 1.092824, 1.087968, 1.003981)),
    (9, (1, 2), True, (1.078213, 1.059756, 1.055964, 1.054334, 1.053428)),
    (9, (1, 2), False, (1.002094, 1.141991, 1.072585, 1.029325, 1.001447)),
    (9, (2, 3), True, (1.053428, 1.043067, 1.038783, 1.036457, 1.035000)),
    (9, (3, 4), True, (1.035000, 1.029245, 1.025669, 1.023253, 1.021523)),
)
FAMILIES = ((1, 2), (1, 3), (2, 3))
RATES = tuple(np.linspace(0.1, 1.0, 10).round(1).tolist())
BETAS = tuple(np.linspace(0.05, 0.95, 19).round(2).tolist())
MODES = {"refreshed": True, "frozen": False}


def machine_of(m: int) -> tuple[MarkovNetwork, np.ndarray]:
    return MarkovNetwork.boltzmann(m), np.repeat([-1.0, 1.0], math.comb(m, 2) // 2)


def mixture(orders: tuple[int, int], alpha: float, refresh: bool) -> CompositeLikelihood:
    """(1 - alpha) of the first order and alpha of the second, with weights of one."""
    rates = {k: rate for k, rate in zip(orders, (1.0 - alpha, alpha), strict=True) if rate > 0.0}
    return CompositeLikelihood(rates, refresh=refresh)


def published_cost(m: int, rates: dict[int, float]) -> float:
    """Operations that are expected for an example."""
    return sum(rate * math.comb(m, k) * published_operations(m, k) for k, rate in rates.items())


class Orders:
    """Moments of orders of one machine, so that a grid of policies costs little: J_k = sum_j V_j and the covariances C_kl of
    the sums of scores."""

    def __init__(self, m: int, orders: tuple[int, ...]) -> None:
        listed = Limits(machine_of(m)[0].feature_map(), machine_of(m)[1]).enumeration
        assert listed is not None
        self.m, self.information, p = m, listed.information, listed.p
        self.J: dict[int, np.ndarray] = {}
        sums = {}
        for k in orders:
            scores = [listed.score(pair) for pair in blocks_given_rest(m, k)]
            self.J[k] = sum((s.T * p) @ s for s in scores)
            sums[k] = sum(scores)
        self.C = {(k, j): (sums[k].T * p) @ sums[j] for k in orders for j in orders}

    def ratio(self, rates: dict[int, float], weights: dict[int, float], refresh: bool, measure: str) -> float:
        """The same as `CompositeLikelihood.efficiency` for objects that are drawn independently."""
        used = {k: weights[k] * rate for k, rate in rates.items()}
        J = sum(used[k] * self.J[k] for k in rates)
        S = sum(used[k] * used[j] * self.C[k, j] for k in rates for j in rates)
        if not refresh:
            S = S + sum(used[k] * weights[k] * (1.0 - rates[k]) * self.J[k] for k in rates)
        inverse = np.linalg.inv(J)
        return efficiency(inverse @ S @ inverse, self.information, measure)


def specified_table() -> dict[str, Any]:
    """Mixtures beside the numbers of the specification."""
    rows, largest, found = [], 0.0, []
    for m, orders, refresh, expected in SPECIFIED:
        net, theta = machine_of(m)
        measure = "det" if refresh else "rdet"
        ours = [mixture(orders, a, refresh).efficiency(net, theta, measure) for a in ALPHAS]
        difference = float(np.abs(np.subtract(ours, expected)).max())
        largest = max(largest, difference)
        name = f"m = {m}, PL{orders[0]}/PL{orders[1]}, {measure}, {'refreshed' if refresh else 'frozen'}"
        cells = [f"{a:.6f} ({b:.6f})" for a, b in zip(ours, expected, strict=True)]
        rows.append([name, *cells, f"{difference:.1e}"])
        found.append({"name": name, "ours": ours, "specified": expected})
    print("\nMixtures (1 - alpha) PLa + alpha PLb: ours (specified)\n")
    print(markdown(["", *(f"alpha = {a:g}" for a in ALPHAS), "largest difference"], rows))
    print(f"\nLargest difference of all cells: {largest:.1e} (the specification has six decimals)", flush=True)
    return {"rows": found, "largest": largest}


def figure_two(points: int) -> dict[str, Any]:
    """Curves over alpha for m = 5: {mode: {measure: {orders: values}}}."""
    net, theta = machine_of(5)
    alphas = np.linspace(0.0, 1.0, points).tolist()
    curves = {
        mode: {
            measure: {
                f"PL{a}/PL{b}": [mixture((a, b), x, refresh).efficiency(net, theta, measure) for x in alphas]
                for a, b in ((1, 2), (2, 3), (3, 4))
            }
            for measure in ("trace", "det")
        }
        for mode, refresh in MODES.items()
    }
    rows = []
    for mode, measure in itertools.product(MODES, ("trace", "det")):
        for name, values in curves[mode][measure].items():
            peak = int(np.argmax(values))
            falls = "yes" if (np.diff(values) <= 0.0).all() else "no"
            rows.append([mode, measure, name, *(f"{values[i]:.4f}" for i in (0, -1)), f"{values[peak]:.4f}"])
            rows[-1] += [f"{alphas[peak]:.2f}", falls]
    print("\nFigure 2, m = 5: does the variance fall as alpha rises?\n")
    print(markdown(["", "measure", "", "alpha = 0", "alpha = 1", "largest", "at alpha", "falls"], rows), flush=True)
    return {"alphas": alphas, "curves": curves}


@dataclass(frozen=True)
class Diagram:
    """Policies of Figure 3: family, what they are, operations, and variances by mode; pure ones, and the cost of FL."""

    families: list[str]
    policies: list[str]
    cost: np.ndarray
    loss: dict[str, np.ndarray]
    pure: dict[str, tuple[float, float]]
    full: float

    def frontier(self, mode: str) -> np.ndarray:
        """Numbers of the policies that no other beats, the cheapest first."""
        loss = self.loss[mode].round(9)  # some are equal
        best = Tradeoff(tuple(self.families), self.cost, np.zeros(len(loss)), loss, "variance", "").frontier()
        return np.flatnonzero(best)[np.argsort(self.cost[best])]


def figure_three(measure: str) -> tuple[Diagram, dict[str, Any]]:
    """The families on grids and shares of single orders, m = 9; some are compared with `CompositeLikelihood.efficiency`."""
    m, (net, theta) = 9, machine_of(9)
    orders = Orders(m, (1, 2, 3))
    families, policies, cost = [], [], []
    loss: dict[str, list[float]] = {mode: [] for mode in MODES}
    worst = 0.0
    grid: list[tuple[dict[int, float], dict[int, float]]] = [
        ({a: first, b: second}, {a: beta, b: 1.0 - beta})
        for (a, b), first, second, beta in itertools.product(FAMILIES, RATES, RATES, BETAS)
    ]
    grid += [({k: rate}, {k: 1.0}) for k in (1, 2, 3) for rate in RATES]
    for rates, weights in grid:
        families.append("/".join(f"PL{k}" for k in rates))
        policies.append(" + ".join(f"{rate:g} x {weights[k]:.2g} PL{k}" for k, rate in rates.items()))
        cost.append(published_cost(m, rates))
        for mode, refresh in MODES.items():
            loss[mode].append(orders.ratio(rates, weights, refresh, measure))
            if len(cost) % 700 == 0:
                exact = CompositeLikelihood(rates, weights=weights, refresh=refresh).efficiency(net, theta, measure)
                worst = max(worst, abs(loss[mode][-1] - exact))
    pure = {f"PL{k}": (published_cost(m, {k: 1.0}), orders.ratio({k: 1.0}, {k: 1.0}, True, measure)) for k in (1, 2, 3)}
    full = published_operations(m, m)
    for values, value in ((families, "FL"), (policies, "FL"), (cost, full), *((found, 1.0) for found in loss.values())):
        values.append(value)
    found = Diagram(families, policies, np.array(cost), {k: np.array(v) for k, v in loss.items()}, pure, full)
    print(f"\nFigure 3, m = 9, {measure}: {len(cost)} policies; largest difference from efficiency() on some: {worst:.1e}\n")
    rows = [[name, f"{c:.0f}", f"{v:.6f}", ""] for name, (c, v) in pure.items()] + [["FL", f"{full:.0f}", "1", ""]]
    for mode in MODES:
        best = found.frontier(mode)
        for i in best[np.linspace(0, len(best) - 1, min(8, len(best))).astype(int)]:
            rows.append([policies[i], f"{cost[i]:.0f}", f"{loss[mode][i]:.6f}", f"frontier of {len(best)}, {mode}"])
    print(markdown(["rate x weight", "operations", f"variance ({measure})", ""], rows), flush=True)
    record = {"families": families, "policies": policies, "cost": cost, "loss": loss, "pure": pure, "full": full}
    return found, record | {"difference": worst, "measure": measure}


def seconds_table(m: int) -> tuple[Tradeoff, dict[str, Any]]:
    """Seconds of a pass over 1000 examples."""
    net, theta = machine_of(m)
    some: dict[str, Any] = {f"PL{k}": CompositeLikelihood({k: 1.0}) for k in range(1, 5)}
    operations = [published_cost(m, {k: 1.0}) for k in range(1, 5)]
    for rates in ({1: 0.7, 2: 0.3}, {1: 1.0, 2: 0.3}, {1: 1.0, 3: 0.3}, {2: 0.3, 3: 0.1}):
        name = " + ".join(f"{rate:g} PL{k}" for k, rate in rates.items())
        some[f"{name}, frozen"] = CompositeLikelihood(rates, weights="auto", refresh=False, random_state=1)
        operations.append(published_cost(m, rates))
    some["FL"] = "full"
    operations.append(published_operations(m, m))
    found = tradeoff(net, likelihoods=some, theta=theta)
    rows = [
        [name, f"{published:.0f}", f"{found.operations[i]:.0f}", f"{1e3 * found.seconds[i]:.2f}", f"{found.loss[i]:.6f}"]
        for i, (name, published) in enumerate(zip(some, operations, strict=True))
    ]
    print(f"\nm = {m}: a pass over 1000 examples; mixtures with weights='auto'. Operations are of an example by itself, but")
    print("rows that agree around a set are computed once: FL is one sum for all, and any pass takes 0.1 ms.\n")
    print(markdown(["", "published operations", "our count", "measured ms", "variance (rdet)"], rows), flush=True)
    record = {"names": found.names, "published": operations, "operations": found.operations.tolist()}
    return found, record | {"seconds": found.seconds.tolist(), "loss": found.loss.tolist()}


def draw_curves(axes: Any, two: dict[str, Any], measure: str) -> None:
    """Figure 2: refreshed solid, frozen dashed."""
    for mode, style in (("refreshed", "-"), ("frozen", "--")):
        for i, (name, values) in enumerate(two["curves"][mode][measure].items()):
            axes.plot(two["alphas"], values, style, color=f"C{i}", label=f"{name}, {mode}")
    axes.axhline(1.0, color="0.5", lw=0.8)
    said = {"det": "determinant", "trace": "trace"}[measure]
    axes.set(xlabel="α in (1 − α) PLa + α PLb", ylabel=f"{said} of the variance, over that of the MLE", yscale="log")
    axes.set_yticks((1, 1.05, 1.1, 1.15, 1.2) if measure == "trace" else (1, 2, 3, 5, 10), minor=False)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)


def draw_diagram(axes: Any, three: Diagram, mode: str) -> None:
    """Figure 3: the families, what is beyond their reach, pure policies, and the cost of the likelihood of the whole."""
    names, excess = np.array(three.families), np.maximum(three.loss[mode] - 1.0, 1e-9)
    for i, (a, b) in enumerate(FAMILIES):
        mine = names == f"PL{a}/PL{b}"
        axes.scatter(
            three.cost[mine], excess[mine], s=2, color=f"C{i}", alpha=0.35, lw=0, label=f"PL{a}/PL{b}", rasterized=True
        )
    best = three.frontier(mode)
    axes.step(three.cost[best], excess[best], where="post", color="k", lw=1, label="frontier")
    for name, (cost, value) in three.pure.items():
        axes.plot(cost, value - 1.0, "ko", ms=6)
        axes.annotate(name, (cost, value - 1.0), xytext=(6, 4), textcoords="offset points", fontsize=8)
    axes.axvline(three.full, color="k", ls="--", lw=1, label="cost of FL")
    axes.set(xscale="log", yscale="log", xlabel="published operations for an example", ylim=(0.7 * excess[:-1].min(), None))
    axes.set_ylabel("excess of the variance over the MLE's (rdet − 1)")
    axes.legend(fontsize=7, markerscale=4)
    axes.grid(alpha=0.3)


def draw(two: dict[str, Any], three: Diagram, timed: dict[int, Tradeoff], docs: Path) -> None:
    """Save all pictures."""
    RESULTS.mkdir(exist_ok=True)
    figure = new_figure(11.0, 4.4)
    for axes, measure in zip(figure.subplots(1, 2), ("trace", "det"), strict=True):
        draw_curves(axes, two, measure)
    figure.suptitle("Figure 2, m = 5")
    figure.savefig(RESULTS / "composite-figure2.png", dpi=120)
    figure = new_figure(11.0, 4.4)
    for axes, mode in zip(figure.subplots(1, 2), MODES, strict=True):
        draw_diagram(axes, three, mode)
        axes.set_title(mode)
    figure.suptitle("Figure 3, m = 9")
    figure.savefig(RESULTS / "composite-figure3.png", dpi=120)
    for m, found in timed.items():
        found.plot(RESULTS / f"composite-seconds-{m}.png", cost="seconds", title=f"m = {m}")
    figure = new_figure(10.0, 4.0)
    left, right = figure.subplots(1, 2)
    draw_curves(left, two, "det")
    left.set_title("m = 5: objects drawn in every pass, or once", fontsize=10)
    draw_diagram(right, three, "frozen")
    right.set_title("m = 9: cost and accuracy, drawn once", fontsize=10)
    figure.savefig(docs / "composite.png", dpi=100)


def main() -> None:
    """Print tables, draw `docs/composite.png` and pictures in `benchmarks/results/`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=41, help="values of alpha")
    parser.add_argument("--out", type=Path, default=DOCS)
    arguments = parser.parse_args()
    print_load("start")
    results: dict[str, Any] = {"machine": machine(), "specified": specified_table()}
    two = results["figure2"] = figure_two(arguments.points)
    three, results["figure3"] = figure_three("rdet")
    timed = {}
    for m in (5, 9):
        timed[m], results[f"seconds{m}"] = seconds_table(m)
    draw(two, three, timed, arguments.out)
    write_results("composite_figures", results)
    print_load("end")


if __name__ == "__main__":
    main()

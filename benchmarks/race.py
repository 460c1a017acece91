"""The race: seconds until the objective is within a relative gap of the optimum, Partita against the others.

For every cell (data set, l2, kind of intercept, gap) each rival first gets the loosest tolerance on a grid
that reaches the gap; then all rivals run interleaved, in random order, in several rounds; a slow rival leaves
after fewer rounds. The gap is always judged by `rivals.objective`, outside the timed region. Needs POSIX (the
time limit is an alarm signal).
"""

import argparse
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from datasets import Problem, load
from harness import digits, machine, markdown, print_load, read_results, with_threads, write_results
from rivals import AUTO, Rival, line_up, objective

CELLS: dict[str, list[float]] = {
    "wine": [0.1, 1.0],
    "breast_cancer": [0.1, 1.0],
    "digits": [0.01, 1.0, 100.0],
    **{name: [1.0] for name in ("adult", "a9a", "w8a", "secstr", "text", "srbct")},
    **{name: [1.0] for name in ("fashion_mnist", "dense_20k", "sparse_20k")},
}
# The least ratio of seconds asked for: (best scikit-learn solver / auto, SciPy L-BFGS / auto).
TARGETS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("wine", "breast_cancer"), (2.0, 4.0)),
    "digits": (1.5, 2.5),
    "dense_20k": (2.5, 3.0),
    "sparse_20k": (1.3, 5.0),
    **dict.fromkeys(("a9a", "w8a", "text"), (1.0, 4.0)),
    **dict.fromkeys(("fashion_mnist", "secstr"), (2.0, 3.0)),
}
GRID = 10.0 ** -np.arange(1.0, 12.25, 0.5)
REFERENCE_TOL = 1e-12
ROUNDS = (3, 50)
ONE_ROUND_IS_ENOUGH = 20.0


class OutOfTime(BaseException):
    """Raised by the alarm; not an `Exception`, so that no library swallows it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in the body after `seconds` (as soon as compiled code returns to Python)."""

    def stop(*_: Any) -> None:
        raise OutOfTime

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


@dataclass(frozen=True)
class Attempt:
    """One fit of the search: what it reached, its time, and whether the budget or an error ended it."""

    value: float
    seconds: float
    stopped: bool
    error: str = ""


@dataclass
class Race:
    """One problem, its rivals, and everything tried on it so far."""

    problem: Problem
    l2: float
    penalize_intercept: bool
    rivals: list[Rival]
    search_budget: float
    cell_seconds: float
    attempts: dict[str, dict[int, Attempt]] = field(default_factory=dict)
    reference: float = np.inf

    def try_once(self, rival: Rival, tol: float, budget: float) -> Attempt:
        """Fit within `budget` seconds and judge the answer."""
        X, y = self.problem.X, self.problem.y
        start = time.perf_counter()
        try:
            with time_limit(1.2 * budget):
                coef, intercept = rival.fit(X, y, self.l2, tol, self.penalize_intercept)
        except OutOfTime:
            return Attempt(np.inf, time.perf_counter() - start, True)
        except Exception as error:
            return Attempt(np.inf, time.perf_counter() - start, True, f"{type(error).__name__}: {error}")
        seconds = time.perf_counter() - start
        value = self.judge(coef, intercept)
        # A fit that nearly filled its budget would not arrive with a tighter tolerance either.
        return Attempt(value if np.isfinite(value) else np.inf, seconds, seconds > 0.8 * budget)

    def judge(self, coef: np.ndarray, intercept: Any) -> float:
        """The objective of an answer."""
        return objective(self.problem.X, self.problem.y, coef, intercept, self.l2, self.penalize_intercept)

    def best(self) -> float:
        """The lowest objective seen by anyone."""
        values = (each.value for tried in self.attempts.values() for each in tried.values())
        return min([self.reference, *values])

    def spent(self, rival: Rival) -> float:
        """The seconds a rival has used up in the search."""
        return sum(each.seconds for each in self.attempts[rival.name].values())

    def loosest(self, rival: Rival, goal: float) -> int | None:
        """Find by bisection the first tolerance of `GRID` with which `rival` gets down to `goal`."""
        tried = self.attempts[rival.name]
        low, high, found = 0, len(GRID) - 1, None
        while low <= high:
            middle = (low + high) // 2
            if middle not in tried:
                if self.spent(rival) > self.search_budget:
                    return found
                tried[middle] = self.try_once(rival, GRID[middle], rival.fit_budget)
            if tried[middle].value <= goal:
                found, high = middle, middle - 1
            elif tried[middle].stopped:
                high = middle - 1
            else:
                low = middle + 1
        return found

    def search(self, gaps: list[float]) -> dict[float, dict[str, int | None]]:
        """Choose a tolerance for every gap and rival, again if somebody went below the known optimum."""
        self.attempts = {rival.name: {} for rival in self.rivals}
        for rival in self.rivals:
            self.try_once(rival, 0.1, rival.fit_budget)
        for rival in self.rivals:
            self.reference = self.try_once(rival, REFERENCE_TOL, self.search_budget).value
            if np.isfinite(self.reference):
                break
        chosen: dict[float, dict[str, int | None]] = {}
        for _ in range(5):
            best = self.best()
            for gap in gaps:
                goal = best + gap * abs(best)
                chosen[gap] = {rival.name: self.loosest(rival, goal) for rival in self.rivals}
            if best - self.best() <= 1e-3 * min(gaps) * abs(best):
                break
        return chosen

    def failure(self, rival: Rival) -> str:
        """Say why a rival did not arrive."""
        tried = list(self.attempts[rival.name].values())
        errors = [each.error for each in tried if each.error]
        if errors:
            return errors[0].splitlines()[0][:80]
        if any(each.stopped for each in tried):
            return f"> {rival.fit_budget:g} s"
        spent = self.spent(rival)
        return f"> {spent:.0f} s of search" if spent > self.search_budget else "never"

    def run(self, chosen: dict[str, int | None]) -> list[dict[str, Any]]:
        """Time the rivals that arrive, interleaved; give one row per rival."""
        known = {name: self.attempts[name][k].seconds for name, k in chosen.items() if k is not None}
        times = {name: [seconds] for name, seconds in known.items() if seconds > ONE_ROUND_IS_ENOUGH}
        fast = [rival for rival in self.rivals if rival.name in known and rival.name not in times]
        times |= {rival.name: [] for rival in fast}
        share = self.cell_seconds / max(len(fast), 1)
        rounds = {rival.name: int(np.clip(share / known[rival.name], *ROUNDS)) for rival in fast}
        rng = np.random.default_rng(0)
        for done in range(max(rounds.values(), default=0)):
            for rival in rng.permutation([rival for rival in fast if rounds[rival.name] > done]):
                tol = GRID[chosen[rival.name]]
                start = time.perf_counter()
                rival.fit(self.problem.X, self.problem.y, self.l2, tol, self.penalize_intercept)
                times[rival.name].append(time.perf_counter() - start)
        return [self.row(rival, chosen[rival.name], times.get(rival.name, [])) for rival in self.rivals]

    def row(self, rival: Rival, chosen: int | None, seconds: list[float]) -> dict[str, Any]:
        """Describe the result of one rival; `median` is None if it did not arrive."""
        row: dict[str, Any] = {"rival": rival.name, "family": rival.family, "rounds": len(seconds)}
        if chosen is None:
            return row | {"tol": None, "min": None, "median": None, "note": self.failure(rival)}
        best = self.best()
        gap = (self.attempts[rival.name][chosen].value - best) / abs(best)
        row |= {"tol": float(GRID[chosen]), "reached": gap}
        row |= {"min": min(seconds), "median": statistics.median(seconds)}
        notes = ["one round"] if len(seconds) == 1 else []
        if self.spent(rival) > self.search_budget:
            notes.append("search cut short, a looser tol may do")
        return row | {"note": ", ".join(notes)}


def compare(rows: list[dict[str, Any]], family: str, target: float | None) -> dict[str, Any]:
    """Divide the best median of `family` by that of `partita auto` and judge the ratio against the target."""
    auto = next((row["median"] for row in rows if row["rival"] == AUTO), None)
    family_rows = [row for row in rows if row["family"] == family]
    arrived = [row for row in family_rows if row["median"] is not None]
    best = min(arrived, key=lambda row: row["median"], default=None)
    answer = {"rival": best["rival"] if best else "none arrived", "target": target}
    if target is None or not family_rows or not any(row["rival"] == AUTO for row in rows):
        verdict = "-"
    elif auto is None:
        verdict = "miss (auto did not arrive)"
    elif best is None:
        verdict = "only auto arrived"
    else:
        verdict = "pass" if best["median"] / auto >= target else "miss"
    return answer | {"verdict": verdict, "ratio": best["median"] / auto if best and auto else None}


def race(problem: Problem, l2: float, penalize: bool, options: argparse.Namespace) -> dict[str, Any]:
    """Run all gaps of one problem; the keys name the cells."""
    rivals = line_up(problem, l2, penalize, options.threads, options.budget, options.all)
    rivals = [rival for rival in rivals if any(part in rival.name for part in options.rivals.split(","))]
    contest = Race(problem, l2, penalize, rivals, options.search_budget, options.cell_seconds)
    intercept = "penalised" if penalize else "free"
    cells = {}
    for gap, chosen in contest.search(options.gaps).items():
        print(f"{problem.name} l2={l2:g} intercept {intercept}, gap {gap:g}", file=sys.stderr, flush=True)
        rows = contest.run(chosen)
        targets = TARGETS.get(problem.name, (None, None))
        cells[f"{problem.name}|{l2:g}|{intercept}|{gap:g}"] = {
            "set": problem.name,
            "l2": l2,
            "intercept": intercept,
            "gap": gap,
            "optimum": contest.best(),
            "rows": rows,
            "sklearn": compare(rows, "sklearn", targets[0]),
            "scipy": compare(rows, "scipy", targets[1]),
            "machine": machine(),
        }
    return cells


def detail_table(cells: list[dict[str, Any]]) -> str:
    """One line per rival and cell."""
    header = ["set", "l2", "intercept", "gap", "rival", "tol", "min s", "median s", "/ auto"]
    header += ["rounds", "note"]
    lines = []
    for cell in cells:
        auto = next((row["median"] for row in cell["rows"] if row["rival"] == AUTO), None)
        for row in cell["rows"]:
            ratio = row["median"] / auto if auto and row["median"] else None
            tol = "-" if row["tol"] is None else f"{row['tol']:.0e}"
            place = [cell["set"], f"{cell['l2']:g}", cell["intercept"], f"{cell['gap']:g}"]
            numbers = [digits(row["min"]), digits(row["median"]), digits(ratio), row["rounds"], row["note"]]
            lines.append([*place, row["rival"], tol, *numbers])
    return markdown(header, lines)


def summary_table(cells: list[dict[str, Any]]) -> str:
    """One line per cell: the ratios and the verdicts."""
    names = ["ratio", "target", "verdict"]
    header = ["set", "l2", "intercept", "gap", "best sklearn", *names, "scipy", *names[1:]]
    lines = []
    for cell in cells:
        place = [cell["set"], f"{cell['l2']:g}", cell["intercept"], f"{cell['gap']:g}"]
        ours, scipy = cell["sklearn"], cell["scipy"]
        line = [*place, ours["rival"], digits(ours["ratio"]), digits(ours["target"], 2), ours["verdict"]]
        lines.append([*line, digits(scipy["ratio"]), digits(scipy["target"], 2), scipy["verdict"]])
    return markdown(header, lines)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(CELLS), help="data sets, comma-separated (default: all)")
    parser.add_argument("--gaps", default="1e-6,1e-8", help="relative gaps to reach, comma-separated")
    parser.add_argument("--threads", type=int, default=1, choices=(1, 2))
    parser.add_argument("--all", action="store_true", help="every Partita solver, not only auto")
    parser.add_argument("--rivals", default="", help="only rivals whose name contains one of these parts")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for one fit (saga: at most 20)")
    parser.add_argument("--search-budget", type=float, default=180.0, help="seconds to find a rival's tolerances")
    parser.add_argument("--cell-seconds", type=float, default=20.0, help="seconds of timed rounds per cell")
    options = parser.parse_args(arguments)
    options.gaps = [float(gap) for gap in options.gaps.split(",")]
    options.sets = options.sets.split(",")
    if unknown := set(options.sets) - set(CELLS):
        parser.error(f"unknown sets {sorted(unknown)}; expected some of {', '.join(CELLS)}")
    return options


def main() -> None:
    """Run the cells asked for, print the tables, merge the results into the JSON file."""
    options = parse()
    with_threads(options.threads)
    warnings.simplefilter("ignore")
    print_load("start")
    done: list[dict[str, Any]] = []
    for name in options.sets:
        problem = load(name)
        for l2 in CELLS[name]:
            for penalize in (False, True) if problem.n_classes == 2 else (False,):
                cells = race(problem, l2, penalize, options)
                done += cells.values()
                results = read_results(f"race-{options.threads}t")
                write_results(f"race-{options.threads}t", results | cells)
    print(detail_table(done), summary_table(done), sep="\n\n")
    print_load("end")


if __name__ == "__main__":
    main()

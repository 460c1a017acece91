"""The command ``partita infer``: answers about a graphical model, in the format of the UAI competitions."""

from __future__ import annotations

import argparse
import math
import re
import time
from typing import TYPE_CHECKING, Any

from .tools import check_output, naming, output, say

if TYPE_CHECKING:
    from ..bayesnet import DiscreteNetwork
    from ..graph import FactorGraph

TASKS = ("PR", "MAR", "MAP")
#: The engines of factor graphs, and those of best configurations; a test keeps them the same.
ENGINES = ("auto", "exact", "bp", "trw", "mean_field", "gibbs", "frank_wolfe", "perturb_and_map", "planar")
DECODERS = ("auto", "exact", "bp", "max_flow", "planar")


#: What log Z of an engine is that is not exact.
KINDS = {
    "bp": "an estimate, the Bethe approximation",
    "trw": "an upper bound, by tree-reweighted belief propagation",
    "mean_field": "a lower bound, by mean field",
    "frank_wolfe": "an upper bound, by Frank-Wolfe",
    "gibbs": "not known",
    "perturb_and_map": "an estimate, the mean of best scores under noise",
}


def add_arguments(command: Any) -> None:
    """What the command takes."""
    command.add_argument("model", metavar="MODEL", help="UAI file, or .bif; plain or gzip")
    command.add_argument("--evid", metavar="FILE", help="evidence, as a UAI file")
    command.add_argument(
        "--observe",
        action="append",
        metavar="X=S,X=S",
        help="evidence: variables and states by number, with .bif also by name; may be repeated",
    )
    command.add_argument("--task", choices=TASKS, default="PR", help="log10 Z, marginals of variables, MAP (default: PR)")
    command.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="auto: exact if that is small enough; else bounds by trw and an estimate of log Z between them by bp; "
        "for MAP bp, which is max-product there (default: auto)",
    )
    command.add_argument(
        "--memory-limit", default="4G", metavar="N", help="bytes for exact sums, as 500M or 4G (default: 4G)"
    )
    command.add_argument("--json", action="store_true", help="everything that is known, as JSON")
    command.add_argument("-o", "--output", default="-", help="file to write (default: stdout)")
    command.add_argument("-q", "--quiet", action="store_true", help="nothing about engine, width and memory on stderr")
    command.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")


def run(args: argparse.Namespace) -> int:
    """Read, answer, print."""
    with naming("--memory-limit", args.memory_limit):
        memory = _bytes(args.memory_limit)
    if args.task == "MAP" and args.engine not in DECODERS:
        raise ValueError(f"--task MAP takes --engine {', '.join(DECODERS)}; got {args.engine}")
    check_output(args.output)
    began = time.perf_counter()
    from ..core.warn import holding
    from ..graph import uai  # noqa: F401

    imported = time.perf_counter()
    graph, potentials, network = _read_graph(args)
    evidence = _observed(args, graph.cardinalities, network)
    given, index = graph.condition(evidence) if evidence else (graph, slice(None))
    read = time.perf_counter()
    with holding() as held:
        known = _answers(given, potentials[index], args, memory)
    for v, state in evidence.items():
        if "marginals" in known:
            known["marginals"][v] = [float(s == state) for s in range(graph.cardinalities[v])]
        if "states" in known:
            known["states"][v] = state
    seconds = {"starting": imported - began, "reading": read - imported, "inference": time.perf_counter() - read}
    with output(args.output) as out:
        out.write(_answer_text(args, known, network, evidence, seconds).encode())
    about = [held[0]] if held else []
    quality = _quality(known) if args.task == "PR" else None
    if not args.quiet:
        width = "" if known["width"] is None else f", width {known['width']}, {_size(known['memory'])}"
        told = "; ".join([*(about or [known["status"]]), *([quality] if quality else [])])
        say(f"engine {known['engine']}{width}, {seconds['inference']:.2f} seconds; {told}")
    elif about or quality:
        say(f"partita: warning: {'; '.join([*about, *([quality] if quality else [])])}")
    return 0


def _quality(known: dict[str, Any]) -> str | None:
    """What log10 Z is if it is not exact, and what is known of it."""
    if known["exact"]:
        return None
    bounds = [
        f"{side} {known[name] / math.log(10.0):.6g}"
        for side, name in (("at least", "lower"), ("at most", "upper"))
        if known[name] is not None and math.isfinite(known[name])
    ]
    between = f": log10 Z is {' and '.join(bounds)}" if bounds else ""
    if math.isnan(known["log_z"]):
        return f"log10 Z is not known{between.replace(': log10 Z is', '; it is')}"
    return f"log10 Z = {known['log_z'] / math.log(10.0):.6g} is {known['kind']}{between}"


def _bytes(text: str) -> float:
    """A number of bytes, with or without a unit."""
    match = re.fullmatch(r"([0-9.]+(?:e\+?[0-9]+)?)(?:([kmgt])(i?))?b?", text.strip().lower())
    try:
        value = float(match[1]) * (1024.0 if match[3] else 1e3) ** " kmgt".index(match[2] or " ") if match else 0.0
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise ValueError("it must be a positive number of bytes, with or without K, M, G or T")
    return value


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1e3:
            return f"{count:.3g} {unit}"
        count /= 1e3
    return f"{count:.3g} GB"


def _read_graph(args: argparse.Namespace) -> tuple[FactorGraph, Any, DiscreteNetwork | None]:
    if args.model.lower().removesuffix(".gz").endswith(".bif"):
        from ..bayesnet import read_bif

        network = read_bif(args.model)
        return *network.factor_graph(n_jobs=args.n_jobs), network
    from ..graph import read_uai

    return *read_uai(args.model, n_jobs=args.n_jobs), None


def _observed(args: argparse.Namespace, cardinalities: Any, network: DiscreteNetwork | None) -> dict[int, int]:
    """The evidence of --evid and --observe."""
    from ..graph import read_evidence

    known = {} if args.evid is None else read_evidence(args.evid, cardinalities)
    for text in args.observe or ():
        with naming("--observe", text):
            for pair in text.split(","):
                name, equals, state = map(str.strip, pair.partition("="))
                if not (name and equals and state):
                    raise ValueError(f"it must be variable=state, got {pair!r}")
                v, s = _observation(name, state, cardinalities, network)
                if known.setdefault(v, s) != s:
                    raise ValueError(f"variable {name} is observed in two states")
    return known


def _observation(name: str, state: str, cardinalities: Any, network: DiscreteNetwork | None) -> tuple[int, int]:
    if network is not None:
        return next(iter(network.evidence({name: state}).items()))
    if not (name.isdecimal() and int(name) < len(cardinalities)):
        raise ValueError(f"a variable must be a number below {len(cardinalities)}, got {name!r}")
    v = int(name)
    if not (state.isdecimal() and int(state) < cardinalities[v]):
        raise ValueError(f"the state of variable {v} must be a number below {cardinalities[v]}, got {state!r}")
    return v, int(state)


def _answers(graph: FactorGraph, potentials: Any, args: argparse.Namespace, memory: float) -> dict[str, Any]:
    """What is asked for, and how it was found."""
    from ..core.results import Status

    engine = graph.choose(args.engine, memory_limit=memory)
    if args.task == "MAP" and engine not in ("exact", "planar"):
        engine = "bp"
    options = {"memory_limit": memory} if engine == "exact" else {}
    known: dict[str, Any] = {"engine": engine, "width": None, "memory": None, "exact": True, "status": str(Status.EXACT)}
    known |= {"kind": "exact", "lower": None, "upper": None}
    if engine == "exact":
        found = graph.tree(memory).elimination
        known |= {"width": found.width, "memory": found.memory}
    if args.task == "MAP":
        states, value = graph.argmax(potentials, engine, **options)
        if value[0] == float("-inf"):
            raise ValueError("max-product found no configuration that is not forbidden: use --engine exact")
        known |= {"states": states.tolist(), "score": float(value[0])}
        if engine not in ("exact", "planar"):
            known |= {
                "exact": False,
                "status": "max-product: the best configuration that was found, and the best of all if there are no cycles",
            }
    if args.json or args.task == "MAR" or (args.task == "PR" and engine != "exact"):
        result = graph.infer(potentials, engine, **options)
        known |= {"exact": result.exact, "status": str(result.status), "kind": "exact" if result.exact else KINDS[engine]}
        known |= {"log_z": float(result.log_z[0])}
        known["lower"], known["upper"] = (None if b is None else float(b[0]) for b in (result.lower, result.upper))
        known["marginals"] = [p.tolist() for p in graph.variable_marginals(result.marginals)]
        if args.engine == "auto" and engine == "trw" and args.task != "MAP" and not result.exact:
            known |= _estimate(graph, potentials, known)
        if args.task == "PR" and not args.json and math.isnan(known["log_z"]):
            raise ValueError(f"--engine {engine} does not estimate log Z here: choose auto, bp or trw, or --task MAR")
    elif args.task == "PR":
        known["log_z"] = float(graph.log_partition(potentials, engine, **options)[0])
    return known


def _estimate(graph: FactorGraph, potentials: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Where exact sums do not fit: the Bethe approximation, if it lies within the bounds, else the middle between them."""
    import numpy as np

    from ..core.warn import holding

    with holding():
        result = graph.infer(potentials, "bp")
    lower = max(known["lower"], float(np.asarray(result.lower)[0]))
    upper = min(known["upper"], float(np.asarray(result.upper)[0]))
    value = float(result.free_energy[0])
    settled = "whose messages have settled" if result.status.ok else "whose messages have not settled"
    if lower <= value <= upper:
        kind = f"an estimate, the Bethe approximation ({settled})"
    elif math.isfinite(lower):
        value, kind = 0.5 * (lower + upper), "an estimate, the middle between bounds (the Bethe approximation is outside)"
    else:
        value, kind = upper, "an upper bound: there is no estimate, because the Bethe approximation is above it"
    return {"log_z": value, "lower": lower, "upper": upper, "kind": kind, "engine": "trw, bp"}


def _answer_text(
    args: argparse.Namespace,
    known: dict[str, Any],
    network: DiscreteNetwork | None,
    evidence: dict[int, int],
    seconds: dict[str, float],
) -> str:
    from ..graph import format_marginals, format_partition, format_states

    if not args.json:
        if args.task == "PR":
            return format_partition(known["log_z"])
        return format_marginals(known["marginals"]) if args.task == "MAR" else format_states(known["states"])
    import json

    about: dict[str, Any] = {"model": args.model, "task": args.task, "evidence": {str(v): s for v, s in evidence.items()}}
    if network is not None:
        about |= {"variables": network.variables, "state_names": network.states}
    about |= known | {"log10_z": known["log_z"] / math.log(10.0), "seconds": seconds}
    for bound in ("log_z", "log10_z", "lower", "upper"):  # JSON has no infinity
        about[bound] = about[bound] if about[bound] is not None and math.isfinite(about[bound]) else None
    return json.dumps(about, allow_nan=False) + "\n"

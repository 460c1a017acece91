"""The command ``partita dump``: a model as text."""

from __future__ import annotations

import argparse
from typing import Any

from .column_files import load_tagger
from .tools import check_output, write


def add_arguments(command: Any) -> None:
    """What the command takes."""
    command.add_argument("-m", "--model", required=True, help="model file")
    command.add_argument(
        "--top", type=int, metavar="N", help="the N largest weights of attributes of each label (default: all)"
    )
    command.add_argument("--label", action="append", metavar="L", help="this label only; may be repeated")


def run(args: argparse.Namespace) -> int:
    """Print labels, transitions and weights of attributes."""
    if args.top is not None and args.top < 0:
        raise ValueError(f"--top must be at least 0, got {args.top}")
    check_output("-")
    import numpy as np

    tagger = load_tagger(args.model, None)
    about, model = tagger.summary_, tagger.model
    layout, labels = model.chain_.layout, model.classes_.tolist()
    wanted = labels if args.label is None else args.label
    for label in wanted:
        if label not in labels:
            raise ValueError(f"{args.model} has no label {label!r}; its labels are {', '.join(labels)}")
    write(
        f"# partita {about['version']}: {about['tokens']} tokens in {about['sequences']} sequences, "
        f"{about['attributes']} attributes, {about['features']} features\n"
        f"# l2 {model.l2:g}, l1 {model.l1:g}, solver {about['solver']}, {about['iterations']} iterations, "
        f"objective {about['objective']:.8g}; {model.status_}\n"
        f"# labels: {' '.join(labels)}\n"
    )
    state, transition, start, end = layout.parts(model.parameters_)
    chosen = set(wanted)
    for (u, v), weight in zip(layout.transitions.tolist(), transition.tolist(), strict=True):
        if labels[u] in chosen or labels[v] in chosen:
            write(f"transition\t{labels[u]}\t{labels[v]}\t{weight:.6g}\n")
    for kind, part in (("start", start), ("end", end)):
        for label, weight in zip(labels, part.tolist(), strict=False):
            if label in chosen:
                write(f"{kind}\t{label}\t{weight:.6g}\n")
    for label in wanted:
        rows = np.flatnonzero(layout.state[:, 1] == labels.index(label))
        rows = rows[np.argsort(-np.abs(state[rows]), kind="stable")][: args.top]
        for attribute, weight in zip(layout.state[rows, 0].tolist(), state[rows].tolist(), strict=True):
            write(f"state\t{label}\t{layout.feature(attribute)}\t{weight:.6g}\n")
    return 0

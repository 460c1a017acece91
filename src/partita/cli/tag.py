"""The command ``partita tag``: column files with predicted labels."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, BinaryIO

from .column_files import add_reading, check_columns, column_list, data_source, load_tagger, reading_options
from .tools import check_output, output

if TYPE_CHECKING:
    from ..chain import ColumnTagger
    from ..core.arrays.columns import Columns
    from ..io.columns import Block


def add_arguments(command: Any) -> None:
    """What the command takes."""
    command.add_argument("data", nargs="?", default="-", metavar="DATA", help="with or without labels (default: stdin)")
    command.add_argument("-m", "--model", required=True, help="model file")
    command.add_argument("-o", "--output", default="-", help="file to write (default: stdout)")
    extra = command.add_mutually_exclusive_group()
    extra.add_argument("--marginals", action="store_true", help="add the probability of the label as a further column")
    extra.add_argument(
        "--kbest",
        type=int,
        metavar="K",
        help="the K best labellings of each sequence, each below a line '# RANK PROBABILITY'",
    )
    add_reading(command, "as in training")
    command.add_argument("--columns", metavar="C,C", help="columns for features (default: as in training)")
    command.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")


def run(args: argparse.Namespace) -> int:
    """Read block by block, label, write."""
    if args.kbest is not None and args.kbest < 1:
        raise ValueError(f"--kbest must be at least 1, got {args.kbest}")
    check_output(args.output)
    source = data_source(args.data)
    from ..io import iter_columns

    tagger = load_tagger(args.model, args.n_jobs)
    blocks = iter_columns(source, **reading_options(args, tagger.reading))
    chosen = column_list(args)
    with output(args.output) as out:
        for block in blocks:
            check_columns("--columns", args.columns, block.columns, chosen)
            if args.kbest is not None:
                _write_kbest(tagger, block, chosen, args.kbest, out)
            else:
                added = _added_columns(tagger, block.columns, chosen, args.marginals)
                out.write(b"".join([line + b"\n" for line in block.lines(*added)]))
    return 0


def _added_columns(tagger: ColumnTagger, columns: Columns, chosen: Any, marginals: bool) -> list[list[str]]:
    """The predicted label of every token and, if asked for, its probability."""
    import numpy as np

    if not columns.n_tokens:
        return [[], []] if marginals else [[]]
    data = tagger.sequences(columns, chosen=chosen)
    labels = [label for sequence in tagger.model.predict(data) for label in sequence]
    if not marginals:
        return [labels]
    P = np.concatenate(tagger.model.predict_marginals(data, as_array=True))
    p = P[np.arange(len(P)), np.searchsorted(tagger.model.classes_, labels)]
    return [labels, [f"{value:.6f}" for value in p.tolist()]]


def _write_kbest(tagger: ColumnTagger, block: Block, chosen: Any, k: int, out: BinaryIO) -> None:
    import math

    if not block.columns.n_tokens:
        return
    best = tagger.model.predict_kbest(tagger.sequences(block.columns, chosen=chosen), k)
    ranked = []
    for rank in range(max(map(len, best))):
        labellings = [entry[min(rank, len(entry) - 1)][0] for entry in best]
        ranked.append(block.lines([label for labels in labellings for label in labels]))
    rows = block.token_lines.tolist()
    lo = 0
    for entries in best:
        hi = lo + len(entries[0][0])
        for rank, (_, value) in enumerate(entries):
            lines = [ranked[rank][row] for row in rows[lo:hi]]
            out.write(b"\n".join([f"# {rank} {math.exp(value):.6f}".encode(), *lines, b"", b""]))
        lo = hi

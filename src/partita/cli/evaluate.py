"""The command ``partita eval``: scores of labels, of a model or in the data."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from .column_files import add_reading, column_number, data_source, load_tagger, reading_options
from .tools import check_output, naming, say, write

if TYPE_CHECKING:
    from ..chain import ColumnTagger

SCHEMES = ("conlleval", "iob2", "iobes")
#: Labels that speak of chunks: O, B-NP, I-NP, …
CHUNK_LABEL = re.compile(r"O|[BIES]-.+")


def add_arguments(command: Any) -> None:
    """What the command takes."""
    command.add_argument(
        "data", metavar="DATA", help="labelled data; without -m, with the predicted label beside the true one"
    )
    command.add_argument("-m", "--model", help="model file")
    command.add_argument("--scheme", choices=SCHEMES, help="how labels make chunks (default: conlleval, which is lenient)")
    command.add_argument("--tokens", action="store_true", help="scores of single tokens (default if labels are no chunks)")
    command.add_argument("--allow-unknown", action="store_true", help="count labels that the model does not know as wrong")
    command.add_argument("--label-column", metavar="C", help="column of the true labels without -m (default: -2)")
    command.add_argument("--predicted-column", metavar="C", help="column of the predicted labels without -m (default: -1)")
    add_reading(command, "as in training")
    command.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")


def run(args: argparse.Namespace) -> int:
    """Read, predict if there is a model, print scores."""
    check_output("-")
    source = data_source(args.data)
    from ..io import iter_columns, read_columns

    if args.model is None:
        columns = read_columns(source, **reading_options(args))
        with naming("--label-column", args.label_column or "-2"):
            true = columns.sequences(column_number(args.label_column or "-2", args))
        with naming("--predicted-column", args.predicted_column or "-1"):
            found = columns.sequences(column_number(args.predicted_column or "-1", args))
    else:
        if args.label_column or args.predicted_column:
            raise ValueError("--label-column and --predicted-column are for data without -m; the model knows its own")
        tagger = load_tagger(args.model, args.n_jobs)
        blocks = iter_columns(source, **reading_options(args, tagger.reading))
        true, found = true_and_predicted(tagger, (block.columns for block in blocks), args.allow_unknown)
    write_scores(true, found, args.scheme, args.tokens)
    return 0


def true_and_predicted(tagger: ColumnTagger, tables: Any, allow_unknown: bool) -> tuple[list[list[str]], list[list[str]]]:
    """True and predicted labels of columns."""
    from ..chain import check_labels

    true: list[list[str]] = []
    found: list[list[str]] = []
    warned = False
    for columns in tables:
        if columns.n_tokens:
            data = tagger.sequences(columns, labelled=True)
            try:
                check_labels(columns, tagger.label_, tagger.model.classes_)
            except ValueError as error:
                if not allow_unknown:
                    raise ValueError(f"{error}; --allow-unknown counts such labels as wrong") from error
                if not warned:
                    say(f"partita: warning: {error}")
                warned = True
            true += columns.sequences(tagger.label_)
            found += tagger.model.predict(data)
    return true, found


def write_scores(true: Any, found: Any, scheme: str | None = None, tokens: bool = False) -> None:
    """Scores of chunks, or of single tokens if asked for or if labels are no chunks."""
    from ..report.chunks import chunk_scores
    from ..report.labels import label_scores, sequence_accuracy, token_accuracy

    if scheme is None and not all(CHUNK_LABEL.fullmatch(label) for sequence in true for label in set(sequence)):
        tokens = True
    if not tokens:
        text = str(chunk_scores(true, found, scheme or "conlleval"))
    else:
        shares = f"tokens right: {token_accuracy(true, found):.2%}; sequences right: {sequence_accuracy(true, found):.2%}"
        text = f"{label_scores(true, found)}\n{shares}"
    write(text + "\n")

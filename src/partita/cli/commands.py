"""The command ``partita``: train, tag, eval, dump on column files; infer is in `cli_infer`. Parses, calls, prints.

Nothing heavy is imported before the arguments are known.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from .. import __version__
from . import infer
from .tools import check_output, flush, give_up, naming, open_missing, output, say, standard_input, write

if TYPE_CHECKING:
    from ..chain import ColumnTagger, Templates
    from ..core.arrays.columns import Columns
    from ..io.columns import Block

USAGE_ERROR, BROKEN_PIPE, INTERRUPTED = 2, 141, 130
FEATURES = ("word", "chunking", "ner")
SCHEMES = ("conlleval", "iob2", "iobes")
#: Labels that speak of chunks: O, B-NP, I-NP, …
CHUNK_LABEL = re.compile(r"O|[BIES]-.+")
EPILOG = (
    "DATA: one token a line, columns separated by white space, a blank line between sequences; plain or gzip; - is stdin."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0, 2 for bad usage or input, 130 after Ctrl-C, 141 if nobody reads on."""
    open_missing()
    args = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *rest, **options: say(f"partita: warning: {_one_line(message)}")
            status: int = args.run(args)
        flush()
    except BrokenPipeError:  # whoever read our output has enough
        return BROKEN_PIPE
    except KeyboardInterrupt:
        say("partita: interrupted")
        return INTERRUPTED
    except MemoryError:
        say("partita: error: out of memory")
        return 1
    except OSError as error:
        say(f"partita: error: {error.filename}: {error.strerror}" if error.filename else f"partita: error: {error}")
        return USAGE_ERROR
    except (ValueError, NotImplementedError) as error:
        say(f"partita: error: {_one_line(error)}")
        return USAGE_ERROR
    except TypeError as error:
        from ..core.errors import CapabilityError

        if not isinstance(error, CapabilityError):
            raise
        say(f"partita: error: {_one_line(error)}")
        return USAGE_ERROR
    finally:
        give_up(sys.stdout)
        give_up(sys.stderr)
    return status


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


# Arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "partita",
        description="Label sequences in column files by a chain CRF; answer questions about graphical models.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"partita {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="train|tag|eval|dump|infer")
    for add in (_add_train, _add_tag, _add_eval, _add_dump):
        add(commands)
    text = "Partition function, marginals or best configuration of a graphical model, as the UAI competitions write them."
    infer.add_arguments(_command(commands, "infer", infer.run, text))
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> Any:
    command = commands.add_parser(name, help=text, description=text, epilog=None if name in ("dump", "infer") else EPILOG)
    command.set_defaults(run=run)
    return command


def _add_train(commands: Any) -> None:
    command = _command(commands, "train", _train, "Train a model on labelled data.")
    command.add_argument("data", nargs="+", metavar="DATA", help="training files")
    command.add_argument("-m", "--model", required=True, help="model file to write")
    source = command.add_mutually_exclusive_group()
    source.add_argument("--template", metavar="FILE", help="template file like those of CRF++")
    source.add_argument("--features", choices=FEATURES, help="built-in features (default: word)")
    _add_reading(command)
    command.add_argument(
        "--label-column", metavar="C", help="column of the labels; 0 is the first (default: -1; upos with --conllu)"
    )
    command.add_argument(
        "--columns",
        metavar="C,C",
        help="columns for features, in the order in which templates count them (default: all others)",
    )
    command.add_argument("--dev", metavar="FILE", help="held-out data: print scores after training")
    command.add_argument("--early-stop", action="store_true", help="stop when the likelihood of --dev falls")
    command.add_argument("--l2", type=float, default=1.0, help="quadratic penalty, twice CRFsuite's c2 (default: 1)")
    command.add_argument("--l1", type=float, default=0.0, help="penalty on absolute values, CRFsuite's c1 (default: 0)")
    command.add_argument("--solver", default="auto", help="auto, lbfgs, newton, … (default: auto)")
    command.add_argument("--all-features", action="store_true", help="weights for all pairs of attribute and label")
    command.add_argument("--all-transitions", action="store_true", help="weights for all pairs of labels")
    command.add_argument("--start-end", action="store_true", help="weights for labels that stand first and last")
    command.add_argument("--min-frequency", type=int, default=0, metavar="N", help="drop features that come less often")
    command.add_argument("--hashing", type=int, metavar="N", help="hash attributes into N columns; keep no names")
    command.add_argument("--forbid", choices=SCHEMES[1:], help="forbid labellings that are no chunks")
    command.add_argument("--max-iter", type=int, default=500, metavar="N", help="most iterations (default: 500)")
    command.add_argument("--tol", type=float, default=2e-6, help="gradient per token at which to stop (default: 2e-6)")
    command.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")
    command.add_argument("--random-state", type=int, metavar="N", help="seed of stochastic solvers")
    loudness = command.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="no progress and no summary")
    loudness.add_argument("-v", "--verbose", action="store_true", help="progress of every iteration")


def _add_tag(commands: Any) -> None:
    command = _command(commands, "tag", _tag, "Write data with the predicted label as one more column.")
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
    _add_reading(command, "as in training")
    command.add_argument("--columns", metavar="C,C", help="columns for features (default: as in training)")
    command.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")


def _add_eval(commands: Any) -> None:
    command = _command(commands, "eval", _eval, "Score labels: of a model, or those in the data.")
    command.add_argument(
        "data", metavar="DATA", help="labelled data; without -m, with the predicted label beside the true one"
    )
    command.add_argument("-m", "--model", help="model file")
    command.add_argument("--scheme", choices=SCHEMES, help="how labels make chunks (default: conlleval, which is lenient)")
    command.add_argument("--tokens", action="store_true", help="scores of single tokens (default if labels are no chunks)")
    command.add_argument("--allow-unknown", action="store_true", help="count labels that the model does not know as wrong")
    command.add_argument("--label-column", metavar="C", help="column of the true labels without -m (default: -2)")
    command.add_argument("--predicted-column", metavar="C", help="column of the predicted labels without -m (default: -1)")
    _add_reading(command, "as in training")
    command.add_argument("--n-jobs", type=int, metavar="N", help="threads (default: all cores)")


def _add_dump(commands: Any) -> None:
    command = _command(commands, "dump", _dump, "Print a model as text: labels, transitions, weights of attributes.")
    command.add_argument("-m", "--model", required=True, help="model file")
    command.add_argument(
        "--top", type=int, metavar="N", help="the N largest weights of attributes of each label (default: all)"
    )
    command.add_argument("--label", action="append", metavar="L", help="this label only; may be repeated")


def _add_reading(command: Any, default: str | None = None) -> None:
    separator, encoding = (default, default) if default else ("white space", "utf-8")
    command.add_argument("--separator", metavar="S", help=f"one character, or 'tab' or 'space' (default: {separator})")
    command.add_argument("--encoding", metavar="E", help=f"of the data (default: {encoding})")
    command.add_argument("--conllu", action="store_true", help="CoNLL-U files; columns may be given by name (form, upos, …)")


def _reading(args: argparse.Namespace, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Options of `read_columns`: those given, over those that are known."""
    from ..io.columns import CONLLU

    options = dict(known or {}) | (CONLLU if args.conllu else {})
    if args.separator is not None:
        options["separator"] = {"tab": "\t", "\\t": "\t", "space": " "}.get(args.separator, args.separator)
    if args.encoding is not None:
        options["encoding"] = args.encoding
    return options


def _column(name: str, args: argparse.Namespace) -> int:
    """A column by number, or by name in CoNLL-U files."""
    from ..io.columns import CONLLU_COLUMNS

    if args.conllu and name in CONLLU_COLUMNS:
        return CONLLU_COLUMNS.index(name)
    try:
        return int(name)
    except ValueError:
        names = f" or one of {', '.join(CONLLU_COLUMNS)}" if args.conllu else ""
        raise ValueError(f"a column must be a number{names}, got {name!r}") from None


def _column_list(args: argparse.Namespace) -> list[int] | None:
    with naming("--columns", args.columns):
        return None if args.columns is None else [_column(name, args) for name in args.columns.split(",")]


def _check_columns(option: str, value: str | None, columns: Columns, chosen: Sequence[int] | None) -> None:
    with naming(option, value):
        for number in chosen or ():
            columns.index(number)


def _source(name: str) -> Any:
    return standard_input() if name == "-" else name


# Commands


def _train(args: argparse.Namespace) -> int:
    check_output(args.model)
    if args.dev:
        check_output("-")
    sources = [_source(name) for name in args.data]
    if args.early_stop and not args.dev:
        raise ValueError("--early-stop needs held-out data: give --dev FILE")
    began = time.perf_counter()
    from ..chain import ChainCRF, ColumnTagger, join_columns
    from ..core.errors import ConvergenceWarning
    from ..core.results import Status
    from ..io.columns import read_columns

    imported = time.perf_counter()
    reading = _reading(args)
    model = ChainCRF(
        l2=args.l2,
        l1=args.l1,
        solver=args.solver,
        features="all" if args.all_features else "observed",
        transitions="all" if args.all_transitions else "observed",
        start_end=args.start_end,
        min_frequency=args.min_frequency,
        hashing=args.hashing,
        forbidden=args.forbid,
        max_iter=args.max_iter,
        tol=args.tol,
        n_jobs=args.n_jobs,
        random_state=args.random_state,
        verbose=0 if args.quiet else 2 if args.verbose else 1,
    )
    model._check_parameters()
    args.label_column = args.label_column or ("upos" if args.conllu else "-1")
    if args.conllu and args.columns is None:
        args.columns = "form"
    with naming("--label-column", args.label_column):
        label = _column(args.label_column, args)
    tagger = ColumnTagger(_templates(args), model, label, _column_list(args), reading)
    train = join_columns([read_columns(source, **reading) for source in sources])
    dev = None if args.dev is None else read_columns(args.dev, **reading)
    _check_columns("--label-column", args.label_column, train, [label])
    _check_columns("--columns", args.columns, train, tagger.columns)
    read = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the summary says it
        tagger.fit(train, dev if args.early_stop else None)
    trained = time.perf_counter()
    if not tagger.templates.transitions:
        say("partita: warning: the template has no B line; pairs of labels get weights all the same")
    model.set_params(verbose=0)
    tagger.save(args.model)
    saved = time.perf_counter()
    if not args.quiet:
        seconds = (imported - began, read - imported, tagger.summary_["feature_seconds"])
        say(_summary(tagger, (*seconds, tagger.summary_["training_seconds"], saved - trained)))
    if model.status_ is Status.INTERRUPTED:
        say(f"partita: interrupted; the best weights so far are in {args.model}")
        return INTERRUPTED
    if dev is not None:
        _write_scores(*_labels(tagger, [dev], allow_unknown=True))
    return 0


def _summary(tagger: ColumnTagger, seconds: tuple[float, ...]) -> str:
    about, stages = tagger.summary_, ("starting", "reading", "features", "training", "writing")
    return (
        f"{about['tokens']} tokens in {about['sequences']} sequences, {about['attributes']} attributes, "
        f"{about['features']} features, {about['labels']} labels\n"
        f"objective {about['objective']:.8g} after {about['iterations']} iterations; {tagger.model.status_}\n"
        f"seconds: {', '.join(f'{stage} {t:.2f}' for stage, t in zip(stages, seconds, strict=True))}"
    )


def _templates(args: argparse.Namespace) -> Templates:
    from ..chain import Templates

    if args.template is None:
        return Templates.builtin(args.features or "word", hashing=args.hashing)
    with open(args.template, "rb") as file:
        content = file.read()
    try:
        return Templates.parse(content.decode("utf-8-sig"), hashing=args.hashing)
    except ValueError as error:
        raise ValueError(f"{args.template}: {error}") from error


def _load(path: str, n_jobs: int | None) -> ColumnTagger:
    from ..chain import ColumnTagger
    from ..core.errors import ModelFileError
    from ..estimators.persistence import load

    tagger = load(path)
    if not isinstance(tagger, ColumnTagger):
        raise ModelFileError(f"{path} holds a {type(tagger).__name__} without templates, which cannot label columns")
    tagger.model.set_params(n_jobs=n_jobs)
    return tagger


def _tag(args: argparse.Namespace) -> int:
    if args.kbest is not None and args.kbest < 1:
        raise ValueError(f"--kbest must be at least 1, got {args.kbest}")
    check_output(args.output)
    source = _source(args.data)
    from ..io import iter_columns

    tagger = _load(args.model, args.n_jobs)
    blocks = iter_columns(source, **_reading(args, tagger.reading))
    chosen = _column_list(args)
    with output(args.output) as out:
        for block in blocks:
            _check_columns("--columns", args.columns, block.columns, chosen)
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


def _eval(args: argparse.Namespace) -> int:
    check_output("-")
    source = _source(args.data)
    from ..io import iter_columns, read_columns

    if args.model is None:
        columns = read_columns(source, **_reading(args))
        with naming("--label-column", args.label_column or "-2"):
            true = columns.sequences(_column(args.label_column or "-2", args))
        with naming("--predicted-column", args.predicted_column or "-1"):
            found = columns.sequences(_column(args.predicted_column or "-1", args))
    else:
        if args.label_column or args.predicted_column:
            raise ValueError("--label-column and --predicted-column are for data without -m; the model knows its own")
        tagger = _load(args.model, args.n_jobs)
        blocks = iter_columns(source, **_reading(args, tagger.reading))
        true, found = _labels(tagger, (block.columns for block in blocks), args.allow_unknown)
    _write_scores(true, found, args.scheme, args.tokens)
    return 0


def _labels(tagger: ColumnTagger, tables: Any, allow_unknown: bool) -> tuple[list[list[str]], list[list[str]]]:
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


def _write_scores(true: Any, found: Any, scheme: str | None = None, tokens: bool = False) -> None:
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


def _dump(args: argparse.Namespace) -> int:
    if args.top is not None and args.top < 0:
        raise ValueError(f"--top must be at least 0, got {args.top}")
    check_output("-")
    import numpy as np

    tagger = _load(args.model, None)
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

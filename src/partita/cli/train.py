"""The command ``partita train``: a chain CRF from labelled column files."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import TYPE_CHECKING, Any

from .column_files import add_reading, check_columns, column_list, column_number, data_source, reading_options
from .evaluate import SCHEMES, true_and_predicted, write_scores
from .tools import INTERRUPTED, check_output, naming, say

if TYPE_CHECKING:
    from ..chain import ChainCRF, ColumnTagger, Templates

FEATURES = ("word", "chunking", "ner")
LIKELIHOODS = ("full", "pseudo")


def add_arguments(command: Any) -> None:
    """What the command takes."""
    command.add_argument("data", nargs="+", metavar="DATA", help="training files")
    command.add_argument("-m", "--model", required=True, help="model file to write")
    source = command.add_mutually_exclusive_group()
    source.add_argument("--template", metavar="FILE", help="template file like those of CRF++")
    source.add_argument("--features", choices=FEATURES, help="built-in features (default: word)")
    add_reading(command)
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
    command.add_argument(
        "--likelihood",
        choices=LIKELIHOODS,
        default="full",
        help="what is maximised: full, or pseudo, that of each label given its neighbours (default: full)",
    )
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


def run(args: argparse.Namespace) -> int:
    """Read, train, save, and tell how it went."""
    check_output(args.model)
    if args.dev:
        check_output("-")
    sources = [data_source(name) for name in args.data]
    if args.early_stop and not args.dev:
        raise ValueError("--early-stop needs held-out data: give --dev FILE")
    began = time.perf_counter()
    from ..chain import ColumnTagger, join_columns
    from ..core.errors import ConvergenceWarning
    from ..core.results import Status
    from ..io.columns import read_columns

    imported = time.perf_counter()
    reading = reading_options(args)
    model = _model(args)
    args.label_column = args.label_column or ("upos" if args.conllu else "-1")
    if args.conllu and args.columns is None:
        args.columns = "form"
    with naming("--label-column", args.label_column):
        label = column_number(args.label_column, args)
    tagger = ColumnTagger(_templates(args), model, label, column_list(args), reading)
    train = join_columns([read_columns(source, **reading) for source in sources])
    dev = None if args.dev is None else read_columns(args.dev, **reading)
    check_columns("--label-column", args.label_column, train, [label])
    check_columns("--columns", args.columns, train, tagger.columns)
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
        write_scores(*true_and_predicted(tagger, [dev], allow_unknown=True))
    return 0


def _model(args: argparse.Namespace) -> ChainCRF:
    """The chain that was asked for, with parameters that are sound."""
    from ..chain import ChainCRF

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
        likelihood=args.likelihood,
        max_iter=args.max_iter,
        tol=args.tol,
        n_jobs=args.n_jobs,
        random_state=args.random_state,
        verbose=0 if args.quiet else 2 if args.verbose else 1,
    )
    model._check_parameters()
    return model


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

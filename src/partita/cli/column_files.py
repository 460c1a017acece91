"""What the commands on column files share: options that say how to read them, columns by name, models of them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .tools import naming, standard_input

if TYPE_CHECKING:
    from ..chain import ColumnTagger
    from ..core.arrays.columns import Columns


def add_reading(command: Any, default: str | None = None) -> None:
    """Options for `reading_options`; `default` says where they come from if they are not given."""
    separator, encoding = (default, default) if default else ("white space", "utf-8")
    command.add_argument("--separator", metavar="S", help=f"one character, or 'tab' or 'space' (default: {separator})")
    command.add_argument("--encoding", metavar="E", help=f"of the data (default: {encoding})")
    command.add_argument("--conllu", action="store_true", help="CoNLL-U files; columns may be given by name (form, upos, …)")


def reading_options(args: argparse.Namespace, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Options of `read_columns`: those given, over those that are known."""
    from ..io.columns import CONLLU

    options = dict(known or {}) | (CONLLU if args.conllu else {})
    if args.separator is not None:
        options["separator"] = {"tab": "\t", "\\t": "\t", "space": " "}.get(args.separator, args.separator)
    if args.encoding is not None:
        options["encoding"] = args.encoding
    return options


def column_number(name: str, args: argparse.Namespace) -> int:
    """A column by number, or by name in CoNLL-U files."""
    from ..io.columns import CONLLU_COLUMNS

    if args.conllu and name in CONLLU_COLUMNS:
        return CONLLU_COLUMNS.index(name)
    try:
        return int(name)
    except ValueError:
        names = f" or one of {', '.join(CONLLU_COLUMNS)}" if args.conllu else ""
        raise ValueError(f"a column must be a number{names}, got {name!r}") from None


def column_list(args: argparse.Namespace) -> list[int] | None:
    """Columns for features, if they were given."""
    with naming("--columns", args.columns):
        return None if args.columns is None else [column_number(name, args) for name in args.columns.split(",")]


def check_columns(option: str, value: str | None, columns: Columns, chosen: Sequence[int] | None) -> None:
    """Fail, with the name of the option, where the data do not have the chosen columns."""
    with naming(option, value):
        for number in chosen or ():
            columns.index(number)


def data_source(name: str) -> Any:
    """A file by name; - is standard input."""
    return standard_input() if name == "-" else name


def load_tagger(path: str, n_jobs: int | None) -> ColumnTagger:
    """A model of column files."""
    from ..chain import ColumnTagger
    from ..core.errors import ModelFileError
    from ..estimators.persistence import load

    tagger = load(path)
    if not isinstance(tagger, ColumnTagger):
        raise ModelFileError(f"{path} holds a {type(tagger).__name__} without templates, which cannot label columns")
    tagger.model.set_params(n_jobs=n_jobs)
    return tagger

"""The command ``partita``: parses and calls. What train, tag, eval, dump and infer do is in files beside this one.

Nothing heavy is imported before the arguments are known.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .. import __version__
from . import dump, evaluate, infer, tag, train
from .tools import INTERRUPTED, flush, give_up, open_missing, say

USAGE_ERROR, BROKEN_PIPE = 2, 141
EPILOG = (
    "DATA: one token a line, columns separated by white space, a blank line between sequences; plain or gzip; - is stdin."
)
INFER = "Partition function, marginals or best configuration of a graphical model, as the UAI competitions write them."


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "partita",
        description="Label sequences in column files by a chain CRF; answer questions about graphical models.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"partita {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="train|tag|eval|dump|infer")
    for name, module, text in (
        ("train", train, "Train a model on labelled data."),
        ("tag", tag, "Write data with the predicted label as one more column."),
        ("eval", evaluate, "Score labels: of a model, or those in the data."),
        ("dump", dump, "Print a model as text: labels, transitions, weights of attributes."),
        ("infer", infer, INFER),
    ):
        module.add_arguments(_command(commands, name, module.run, text))
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> Any:
    command = commands.add_parser(name, help=text, description=text, epilog=None if name in ("dump", "infer") else EPILOG)
    command.set_defaults(run=run)
    return command

"""The command ``partita``: train, tag, eval, dump on column files, infer on graphical models."""

from .commands import main as main

"""Traces, tables, scores and plots for people to read."""

from .chunks import ChunkScores, chunk_scores
from .labels import Confusion, LabelScores, confusion, label_scores, sequence_accuracy, token_accuracy
from .plots import plot_boundary, plot_confusion, plot_convergence, plot_restarts
from .progress import CountPrinter, ProgressPrinter
from .relation import plot_relation
from .tables import CoefficientTable, format_table
from .terminal import label_types, render_legend, render_tagged, wants_color

__all__ = [
    "ChunkScores",
    "CoefficientTable",
    "Confusion",
    "CountPrinter",
    "LabelScores",
    "ProgressPrinter",
    "chunk_scores",
    "confusion",
    "format_table",
    "label_scores",
    "label_types",
    "plot_boundary",
    "plot_confusion",
    "plot_convergence",
    "plot_relation",
    "plot_restarts",
    "render_legend",
    "render_tagged",
    "sequence_accuracy",
    "token_accuracy",
    "wants_color",
]

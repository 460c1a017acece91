"""Traces, tables and plots for people to read."""

from .plots import plot_convergence
from .progress import ProgressPrinter
from .tables import CoefficientTable, format_table

__all__ = ["CoefficientTable", "ProgressPrinter", "format_table", "plot_convergence"]

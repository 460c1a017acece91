"""Partita: log-linear models by maximum likelihood, when the partition function is the hard part.

Names are imported when first used, so that ``import partita`` costs almost nothing."""

from ._lazy import names_of_stub

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__, moved={"ConvexEM": "partita.objectives"})

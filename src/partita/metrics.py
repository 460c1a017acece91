"""How good label sequences are: ``metrics.chunk_scores(y_true, y_pred)``. Names of ``sklearn_crfsuite.metrics`` work too."""

from ._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)

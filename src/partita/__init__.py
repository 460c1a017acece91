"""Partita: log-linear models by maximum likelihood, when the partition function is the hard part.

Names are imported when first used, so that ``import partita`` costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .core import (
        CapabilityError,
        ConvergenceWarning,
        DataWarning,
        ModelFileError,
        NumericalError,
        Status,
        TooLargeError,
    )
    from .estimators import (
        BayesianNetwork,
        BoltzmannChain,
        ChainCRF,
        ColumnTagger,
        ConvexEM,
        GraphCRF,
        HiddenChainCRF,
        LatentDynamicCRF,
        LatentSoftmax,
        MarkovNetwork,
        MatchingCRF,
        MaxEnt,
        SequenceData,
        SoftmaxRegression,
        l1_max,
        load,
        save,
        tradeoff,
    )
    from .objectives.composite_likelihood import CompositeLikelihood
    from .solvers import (
        EM,
        LBFGS,
        OWLQN,
        SGD,
        BlockFrankWolfe,
        ConjugateGradient,
        ConstrainedNewton,
        Majorize,
        Newton,
        ProximalNewton,
        SteepestDescent,
        StochasticBound,
        StochasticStart,
        minimize,
    )

_ROOMS = {
    "core": (
        *("CapabilityError", "ConvergenceWarning", "DataWarning", "ModelFileError", "NumericalError", "Status"),
        "TooLargeError",
    ),
    "estimators": (
        "BayesianNetwork",
        "BoltzmannChain",
        "ChainCRF",
        "ColumnTagger",
        "ConvexEM",
        "GraphCRF",
        "HiddenChainCRF",
        "LatentDynamicCRF",
        "LatentSoftmax",
        "MarkovNetwork",
        "MatchingCRF",
        "MaxEnt",
        "SequenceData",
        "SoftmaxRegression",
        "l1_max",
        "load",
        "save",
        "tradeoff",
    ),
    "objectives.composite_likelihood": ("CompositeLikelihood",),
    "solvers": (
        "EM",
        *(
            "BlockFrankWolfe",
            "ConjugateGradient",
            "ConstrainedNewton",
            "LBFGS",
            "Majorize",
            "Newton",
            "OWLQN",
            "ProximalNewton",
        ),
        *("SGD", "SteepestDescent", "StochasticBound", "StochasticStart", "minimize"),
    ),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "EM",
    "LBFGS",
    "OWLQN",
    "SGD",
    "BayesianNetwork",
    "BlockFrankWolfe",
    "BoltzmannChain",
    "CapabilityError",
    "ChainCRF",
    "ColumnTagger",
    "CompositeLikelihood",
    "ConjugateGradient",
    "ConstrainedNewton",
    "ConvergenceWarning",
    "ConvexEM",
    "DataWarning",
    "GraphCRF",
    "HiddenChainCRF",
    "LatentDynamicCRF",
    "LatentSoftmax",
    "Majorize",
    "MarkovNetwork",
    "MatchingCRF",
    "MaxEnt",
    "ModelFileError",
    "Newton",
    "NumericalError",
    "ProximalNewton",
    "SequenceData",
    "SoftmaxRegression",
    "Status",
    "SteepestDescent",
    "StochasticBound",
    "StochasticStart",
    "TooLargeError",
    "l1_max",
    "load",
    "minimize",
    "save",
    "tradeoff",
]

__getattr__, __dir__ = lazy_names(globals(), _HOME)

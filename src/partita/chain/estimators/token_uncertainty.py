"""Standard errors and efficiency of chains of tokens and labels."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...core.results import FloatArray
from ...core.types import LabelArray, RandomState
from ...core.validation import check_choice
from ...estimators.trained import Trained
from ...objectives.composite.likelihood import FULL, CompositeLikelihood
from ...objectives.information import warn_of_many_weights
from ...objectives.uncertainty import FIT_AGAIN, METHODS, NOT_OF_COMPOSITES, errors, relative_variance
from ..objective.boltzmann import BoltzmannChainPoint
from ..objective.composite import composite_of


class TokenUncertainty(Trained):
    """What `BoltzmannChain` says about how accurate its weights are."""

    l2: float
    random_state: RandomState
    tokens_: LabelArray
    token_weights_: FloatArray
    transition_weights_: FloatArray
    n_unseen_: int

    #: Where training ended.
    _point: BoltzmannChainPoint | None = None

    def _fitted_point(self) -> BoltzmannChainPoint:
        check_is_fitted(self, "token_weights_")
        if self._point is None:
            raise ValueError(FIT_AGAIN)
        return self._point

    def standard_errors(
        self, method: str = "sandwich", draws: int = 100, random_state: RandomState = None
    ) -> dict[str, FloatArray]:
        """Standard errors of the weights, from the training data.

        Parameters
        ----------
        method : {"sandwich", "information", "bootstrap"}
            The sandwich stays right when the model is wrong, and for composite likelihoods; the inverse of the observed
            information (penalty included) when it is true; or refits to resampled sequences. Where a penalised fit has many
            effective parameters for its sequences, the latter are too small, and a warning says so.
        draws : int
            Refits of the bootstrap; above 3000 weights, random vectors that the sandwich is estimated from.
        random_state : None, int or generator
            Of the draws; None means that of the model.

        Returns
        -------
        dict
            "token" and "transition", in the shapes of `token_weights_` and `transition_weights_`.
        """
        check_choice("method", method, METHODS)
        seed = self.random_state if random_state is None else random_state
        if method == "bootstrap":
            found = self._bootstrap(draws, seed)
        else:
            point = self._fitted_point()
            o = point.objective
            if method == "information" and not o.is_full:
                raise ValueError(NOT_OF_COMPOSITES)
            warn_of_many_weights(o.size, o.n_examples, "sequences", self.l2, "fewer tokens")
            found = errors(point, method, draws, seed)
        token, transition = np.split(found, [self.token_weights_.size])
        token = token.reshape(self.token_weights_.shape)
        token[len(self.tokens_) :] *= self.n_unseen_ > 0  # what stands for no token is no estimate
        return {"token": token, "transition": transition.reshape(self.transition_weights_.shape)}

    def _estimates(self) -> FloatArray:
        return np.concatenate([self.token_weights_.ravel(), self.transition_weights_.ravel()])

    def efficiency(self, reference: str | CompositeLikelihood = FULL, measure: str = "rdet") -> float:
        """How many times the variance that another likelihood would have, both estimated from the training data.

        Parameters
        ----------
        reference : "full" or CompositeLikelihood
        measure : {"rdet", "det", "trace"}
            Of the covariance matrices: determinant, its root by the number of weights, or trace. Directions that nothing
            determines are left out.
        """
        point, composite = self._fitted_point(), composite_of(reference)
        other = point.objective.with_composite(composite).at(point.parameters)
        return relative_variance(point, other, composite is not None, measure)

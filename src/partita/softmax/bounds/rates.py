"""What Theorem 2 of the stochastic paper promises: how fast steps scaled by a bound approach the optimum."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.validation import check_real

#: Twice the smallest eigenvalues times the step, where the constant of the noise is smallest.
BEST = 1.5


@dataclass(frozen=True)
class DecayRate:
    """The expected excess of the t-th parameters, counted from one, is at most ``constant / t``.

    Attributes
    ----------
    step : float
        Steps are ``step / t`` times the scaled gradient.
    constant : float
        Q in the paper, mended.
    published : float
        Q as printed, which may be too small.
    """

    step: float
    constant: float
    published: float

    def excess(self, t: int) -> float:
        """What the expected excess of the t-th parameters is at most."""
        return self.constant / t


def decay_rate(
    hessian: tuple[float, float], scaling: tuple[float, float], noise: float, start: float, step: float | None = None
) -> DecayRate:
    """Theorem 2 of the stochastic paper: steps ``step / t`` scaled by a bound's curvature come within ``Q / t``.

    Everything is for the mean objective L (the sum over the number of examples).

    Parameters
    ----------
    hessian : (float, float)
        What the eigenvalues of the Hessian of L lie between, at all parameters between iterates and optimum.
    scaling : (float, float)
        What the eigenvalues of the matrices that scale gradients, ``(Sigma_t + lambda I)^-1``, lie between.
    noise : float
        A bound on the expected squared norm of the gradient of one batch, at all iterates.
    start : float
        Excess of the first parameters.
    step : float, optional
        Default: the one with the smallest constant for the noise.

    Returns
    -------
    DecayRate

    Notes
    -----
    With ``c = 2 scaling[0] hessian[0] step``, which must be above one, and ``A = hessian[1] scaling[1]^2 step^2 noise / 2``
    the paper says Q = max(A / (c - 1), start). Two things are not right there.

    - The induction multiplies its hypothesis by 1 - c / t, which is negative while t < c, so always at t = 1. From the
      optimum of ``L = x^2 / 2``, with gradients 1 or -1 and c = 4, the second excess is A, where the paper has A / 6. With
      ``Q = max(A / (c - 1), 2 A, start)`` the induction holds: where 1 - c / t is negative, what is left of the
      recursion is A / t^2.
    - The proof needs a scaling that does not depend on the example drawn. The published method takes both from the same
      example, and is biased: started at the optimum it moves away and stays away. ``curvature="ema"`` and ``"fixed"`` take
      the scaling from what was drawn before, and the theorem is about them.

    Examples
    --------
    >>> from partita.bounds import decay_rate
    >>> rate = decay_rate(hessian=(0.5, 0.75), scaling=(1.0, 2.0), noise=0.25, start=0.1)
    >>> rate.step
    1.5
    >>> rate.excess(1000) < 0.01
    True
    """
    least, most = _pair("hessian", hessian)
    shortest, longest = _pair("scaling", scaling)
    check_real("noise", noise, minimum=0.0)
    check_real("start", start, minimum=0.0)
    step = BEST / (2.0 * shortest * least) if step is None else check_real("step", step, minimum=0.0, strict=True)
    c = 2.0 * shortest * least * step
    if c <= 1.0:
        raise ValueError(
            f"step={step!r} is too short for a rate of 1 / t: it must be above 1 / (2 scaling[0] hessian[0]) = "
            f"{1.0 / (2.0 * shortest * least):.6g}"
        )
    kick = 0.5 * most * (longest * step) ** 2 * noise
    return DecayRate(step, max(kick / (c - 1.0), 2.0 * kick, start), max(kick / (c - 1.0), start))


def _pair(name: str, values: tuple[float, float]) -> tuple[float, float]:
    least, most = values
    check_real(f"{name}[0]", least, minimum=0.0, strict=True)
    check_real(f"{name}[1]", most, minimum=0.0, strict=True)
    if least > most:
        raise ValueError(f"{name} must be the smallest and the largest eigenvalue, in this order; got {values!r}")
    return least, most

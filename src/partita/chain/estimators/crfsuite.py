"""Options of sklearn-crfsuite, as parameters of a chain CRF."""

from __future__ import annotations

#: Options that steer CRFsuite's optimisers or its files, and have nothing to do here.
UNUSED = frozenset(
    {
        *("num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch", "calibration_eta"),
        *("calibration_rate", "calibration_samples", "calibration_candidates", "calibration_max_trials", "pa_type", "c"),
        *("error_sensitive", "averaging", "variance", "gamma", "keep_tempfiles", "trainer_cls"),
    }
)


def check_crfsuite(algorithm: str | None, model_filename: str | None, options: dict[str, object]) -> None:
    """Raise an error for what CRFsuite has and chains here have not, and for options that it does not know either."""
    if algorithm in ("ap", "pa", "arow"):
        raise ValueError(
            f"algorithm={algorithm!r} maximises no likelihood (it is a perceptron or margin method); "
            "ChainCRF stands in for 'lbfgs' and 'l2sgd'"
        )
    if algorithm not in (None, "lbfgs", "l2sgd"):
        raise ValueError(f"algorithm must be one of 'lbfgs', 'l2sgd'; got {algorithm!r}")
    if model_filename is not None:
        raise ValueError(f"model_filename={model_filename!r}: models are kept in memory; use save and ChainCRF.load")
    unknown = options.keys() - UNUSED
    if unknown:
        raise TypeError(f"sklearn_crfsuite.CRF has no option {min(unknown)!r}")

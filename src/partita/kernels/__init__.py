"""Numba functions on plain arrays: the only hot code.

Conventions: ``lo, hi`` is the range of examples a call handles, so that callers can split work over threads;
outputs come last; nothing here raises, validates or logs.
"""

"""Solvers that step on batches of examples, an epoch for each iteration of the loop."""

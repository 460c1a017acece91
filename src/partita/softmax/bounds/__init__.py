"""Quadratic majorizers of log Z: in potential space, in parameter space, low-rank, summed over mini-batches."""

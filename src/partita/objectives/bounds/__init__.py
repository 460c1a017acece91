"""Quadratics above sums of log Z that are known by their products: blocks of probabilities, low rank, planes."""

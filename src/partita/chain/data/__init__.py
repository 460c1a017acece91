"""Sequences, labels and constraints on weights, as users give them."""

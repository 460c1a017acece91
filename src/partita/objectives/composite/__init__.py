"""Composite likelihoods: which objects, how often, with which weights, and what that costs in accuracy."""

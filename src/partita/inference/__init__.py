"""Approximate engines: answers about a structure from its potentials, with their quality."""

"""Solvers that find one best configuration, of other people's libraries: one file each, imported when first asked for."""

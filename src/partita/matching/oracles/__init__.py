"""Solvers for the best matching: SciPy or lapx, rustworkx, HiGHS for b-matchings."""

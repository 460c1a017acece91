"""Solvers for the best configuration of a graph: Viterbi, junction trees, linear programs, maximum flow, planar Ising."""

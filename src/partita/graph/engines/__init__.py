"""Approximate engines: loopy and tree-reweighted belief propagation, mean field, Gibbs, Frank-Wolfe, perturb-and-MAP."""

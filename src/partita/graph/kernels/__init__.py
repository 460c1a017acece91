"""Junction trees, loopy belief propagation, mean field, Gibbs sampling, arc consistency."""

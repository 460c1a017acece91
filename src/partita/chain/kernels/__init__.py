"""Forward-backward, Viterbi, n-best and sampling on chains; products with attributes; stochastic gradient steps."""

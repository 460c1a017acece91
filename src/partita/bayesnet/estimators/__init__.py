"""BayesianNetwork, and the relaxation as a result."""

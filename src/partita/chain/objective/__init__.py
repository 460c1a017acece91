"""Penalised likelihoods of chains: whole, composite, in mini-batches; their bounds and standard errors."""

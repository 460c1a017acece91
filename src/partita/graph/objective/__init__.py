"""Penalised likelihoods of factor graphs: whole, composite, the Bethe dual; bounds and standard errors."""

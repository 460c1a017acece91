"""Penalised likelihoods of matchings, and their Bethe dual."""

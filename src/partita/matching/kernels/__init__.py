"""Bethe free energies, permanents, assignments and Markov chains of matchings."""

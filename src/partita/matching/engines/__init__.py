"""Bethe free energies by messages, scalings and best matchings; perturb-and-MAP; a Markov chain."""

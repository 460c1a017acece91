"""Maps that give every label weights on the columns of X, and units in which to see these."""

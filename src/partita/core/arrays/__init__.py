"""Arrays as they come in: the doors for potentials, sparse matrices, names, unknown values, tables of words."""

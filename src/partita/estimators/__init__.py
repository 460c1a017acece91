"""What estimators share: reading data and labels, training, restarts, convergence, files."""

"""M-steps of conditional tables, rows with unknown states, relations of the relaxed EM objective."""

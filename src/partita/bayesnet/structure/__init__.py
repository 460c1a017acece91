"""Directed graphs of variables, and sums over what is unknown of rows."""

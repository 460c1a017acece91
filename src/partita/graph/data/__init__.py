"""Graphs, edges and their features, as users give them."""

"""Convex sets of parameters: as users write them, compiled to bounds, rows and cones, and whether they are empty."""

"""Compiled functions of arrays for spanning trees."""

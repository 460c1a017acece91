"""Chains with hidden states: one class for a sequence, or a label for each position."""

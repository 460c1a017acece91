"""Attributes of tokens, templates, and the map from their weights to scores of labels and transitions."""

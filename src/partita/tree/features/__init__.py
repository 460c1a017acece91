"""Maps from weights of features of (head, dependent) pairs to scores of edges; attributes of pairs of tokens."""

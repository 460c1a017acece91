"""The structure `FactorGraph`: scopes, elimination orders, junction trees, evidence, sets of free variables."""

"""MatchingCRF."""

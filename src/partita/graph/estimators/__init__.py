"""GraphCRF, MarkovNetwork, and the dial between cost and accuracy."""

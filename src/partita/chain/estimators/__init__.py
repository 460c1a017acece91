"""ChainCRF, HiddenChainCRF, LatentDynamicCRF, BoltzmannChain, ColumnTagger."""

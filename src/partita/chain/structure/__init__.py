"""The structure `Chain`, forward-backward sums of many chains, windows and pruned chains."""

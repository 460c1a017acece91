"""SoftmaxRegression, LatentSoftmax, MaxEnt."""

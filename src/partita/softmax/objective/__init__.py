"""Penalised likelihoods of softmax models: plain, latent, with l1, within constraints, in mini-batches."""

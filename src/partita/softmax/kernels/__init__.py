"""Losses, marginals and Newton steps of softmax models; coordinate descent."""

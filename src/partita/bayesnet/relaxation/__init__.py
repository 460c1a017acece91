"""The convex relaxation of joint EM, over equivalence relations of hidden variables."""

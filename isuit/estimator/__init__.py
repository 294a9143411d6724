"""Marginal maximum likelihood for skill and difficulty. Numpy and scipy only."""

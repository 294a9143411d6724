"""Tests of the model: curves, counts, the population of skills."""

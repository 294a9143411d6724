"""The model: counts of outcomes, the curves' space and its basis, the population of skills, how strongly to smooth."""

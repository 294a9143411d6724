"""Tests of the estimator, one module for each of its modules."""

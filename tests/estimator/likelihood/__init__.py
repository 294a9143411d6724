"""Tests of the likelihood and its maximum."""

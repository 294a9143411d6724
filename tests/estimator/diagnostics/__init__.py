"""Tests of what a fit says about itself."""

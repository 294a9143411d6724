"""Erasure, the disclosure policy and public releases."""

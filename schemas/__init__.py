"""The published JSON Schemas of everything that leaves a store."""

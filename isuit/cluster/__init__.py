"""Fits on many machines: the engine that keeps shares of riders on the workers of a Dask cluster."""

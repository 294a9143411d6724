"""How hard conditions are, net of who faced them."""

__version__ = "0.1.0"

"""The use cases, one function each: what the command line and a notebook both call."""

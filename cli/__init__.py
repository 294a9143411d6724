"""The command line: it parses, calls `isuit.service`, and renders. It decides nothing else."""

"""The public atlas: whose outcomes, which cells and bins, their fit, rounding, what changes, and the files."""

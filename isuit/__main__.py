"""`python -m isuit`: the command line, where its script is not on the path."""

from isuit.cli.app import main  # type: ignore[import-not-found]  # in the tree it is cli/app.py

main()

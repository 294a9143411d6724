"""The programs that `benchmarks/peers.py` compares, and what it needs to run and to judge them.

`exchange.py` is the form in which a cohort goes to a program and its answer comes back, `processes.py` runs one program
with a limit, `accuracy.py` holds the answer against the truth, `programs.py` lists who takes part and how to find them.
"""

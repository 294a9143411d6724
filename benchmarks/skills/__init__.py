"""What `benchmarks/skill.py` measures beside its table, and the populations it draws from."""

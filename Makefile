# Every target sets up what it needs: a machine with Python and make is enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SHARED ?= ../shared/data

.PHONY: setup demo repro test quick lint types bench docs clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

demo: $(READY)  ## the paper's experiment, and its table
	$(BIN)/isuit latent-demo --out demo
	@cat demo/results.md

repro: $(READY)  ## every number, table and figure of the paper's experiment
	$(BIN)/isuit latent-demo --out repro
	$(BIN)/isuit latent-demo --out repro/replicates --replicates 20

# Two processes use two cores; BLAS threads inside each would only wait for one another.
test quick: export OPENBLAS_NUM_THREADS = 1

test: $(READY)  ## every test
	$(BIN)/python -m pytest -n 2

quick: $(READY)  ## the tests that take seconds
	$(BIN)/python -m pytest -n 2 -m "not long"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/recovery.py
	$(BIN)/python benchmarks/hashing.py

clean:
	rm -rf $(VENV) build dist demo repro .pytest_cache .mypy_cache .ruff_cache

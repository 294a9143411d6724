# Every target sets up what it needs: a machine with Python and make is enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SHARED ?= ../shared/data

.PHONY: setup demo repro test test-oldest-duckdb quick lint types bench docs site package schemas chromium browser pictures world clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@# setuptools warns of every editable installation
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

demo: $(READY)  ## the paper's experiment, and its table
	$(BIN)/isuit latent-demo --out demo

repro: $(READY)  ## every number, table and figure of the paper's experiment
	$(BIN)/isuit latent-demo --out repro
	$(BIN)/isuit latent-demo --out repro/replicates --replicates 20

# Two processes use two cores; BLAS threads inside each would only wait for one another. Each takes one half of the tests
# in their order, so that files share what they make, and the rest of the other's when it is done.
PYTEST := -m pytest -n 2 --dist worksteal
test quick test-oldest-duckdb: export OPENBLAS_NUM_THREADS = 1

test: $(READY)  ## every test
	$(BIN)/python $(PYTEST)

OLDEST := .venv-duckdb-1.5

$(OLDEST)/.ready: $(READY)
	$(PYTHON) -m venv --clear --without-pip $(OLDEST)
	@# the versions are equal: an extension serves one version of DuckDB
	PYTHONWARNINGS=ignore $(BIN)/python -m pip --python $(OLDEST)/bin/python install --quiet --no-deps --editable . duckdb==1.5.5 duckdb-extension-httpfs==1.5.5
	@# every other library is that of the first environment, which is looked at after its own
	for packages in $(OLDEST)/lib/*/site-packages; do echo "$(abspath $(VENV))/lib/$$(basename $$(dirname $$packages))/site-packages" > $$packages/others.pth; done
	@touch $@

test-oldest-duckdb: $(READY) $(OLDEST)/.ready  ## the store on the oldest DuckDB, and each reads what the other wrote
	@# whether each stored number counts is arithmetic on what was read, not the database's
	$(OLDEST)/bin/python $(PYTEST) -m "not long" -k "not every_stored_number" tests/store tests/audit tests/release/test_site.py tests/ingest/test_addresses.py
	rm -rf $(OLDEST)/stores && mkdir $(OLDEST)/stores
	$(BIN)/isuit init --store $(OLDEST)/stores/new && $(OLDEST)/bin/isuit verify --store $(OLDEST)/stores/new
	$(OLDEST)/bin/isuit init --store $(OLDEST)/stores/old && $(BIN)/isuit verify --store $(OLDEST)/stores/old

quick: $(READY)  ## the tests that take seconds
	$(BIN)/python $(PYTEST) -m "not long"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/recovery.py
	$(BIN)/python benchmarks/hashing.py

docs: $(READY)  ## the command-line reference and the README's picture, from the app
	$(BIN)/python docs/reference/make_cli.py
	$(BIN)/isuit latent-demo --out demo --json > /dev/null
	cp demo/difficulty.svg docs/pictures/difficulty.svg

site: $(READY)  ## the documentation as a static site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

package: $(READY)  ## the sdist and the wheel, in dist/, and what an index would say of them
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*

schemas: $(READY)  ## the JSON Schemas of everything that leaves the store, from its models
	$(BIN)/python -m isuit.schemas

chromium:  ## the browser of the tests of the pages, where it may be installed
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  if [ -e /etc/debian_version ] && [ "$$(id -u)" = 0 ]; then apt-get update --quiet && apt-get install --yes chromium chromium-driver; \
	  else echo "Chromium is not here: on Debian, run apt-get install chromium chromium-driver as root" >&2; exit 1; fi

browser: $(READY) chromium  ## the HTML pages in headless Chromium
	$(BIN)/python -m pytest tests/browser

pictures: $(READY) chromium  ## screenshots of every page, into docs/pictures/pages
	$(BIN)/python tools/pictures.py

world:  ## the coast lines of the pages' maps, from the npm package that tools/world.py names
	$(PYTHON) tools/world.py

clean:
	rm -rf $(VENV) $(OLDEST) build dist site demo repro .pytest_cache .mypy_cache .ruff_cache

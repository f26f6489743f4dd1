# make bench   install, then run the mini suite and write reports/; with another Python: make bench PYTHON=python3.12
# make test    install, then every check: lint, types, floors, tests
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin

# The installer is pinned as well: dependency groups need pip 25.1.
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: bench test lint types floors perf chaos matrix install install-dev clean

bench: $(VENV)/.bench
	$(BIN)/python -m pytest benchmarks -n $(WORKERS) -q

test: lint types floors
	$(BIN)/python -m pytest tests -n $(WORKERS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

floors: $(VENV)/.dev
	$(BIN)/lint-imports

# Ratios against plain references, each measured in the same run.
perf: $(VENV)/.dev
	for script in perf/*.py; do $(BIN)/python $$script || exit 1; done

# A hundred kills of workers and controllers, which must lose nothing: seven minutes.
chaos: $(VENV)/.dev
	$(BIN)/python -m tools.chaos

# The torch-free tests on every supported Python and pytest, each in a bare environment.
matrix: $(VENV)/.dev
	$(BIN)/python tools/matrix.py

install: $(VENV)/.bench
install-dev: $(VENV)/.dev

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "expected Python 3.11 to 3.13, but $(PYTHON) is $$($(PYTHON) --version 2>&1): say, for example, make bench PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -q -c constraints.txt pip

$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -q -c constraints.txt -e '.[mini]'
	touch $@

$(VENV)/.dev: $(VENV)/.bench
	$(PIP) install -q -c constraints.txt -e '.[mini]' --group dev
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

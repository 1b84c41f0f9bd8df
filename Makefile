# Everything a person or CI runs. `make demo` and `make test` work on a machine with Python 3.11+ and make.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2

.PHONY: help demo test check bench install clean

help:
	@echo "make demo    play three turns on the offline model, against a real Temporal server"
	@echo "make test    the whole test suite"
	@echo "make check   format, lint, types, import rules, fast tests"
	@echo "make bench   what the product costs beside hand-written Temporal code"
	@echo "make clean   remove .venv and .turnwright"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=…" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

install: $(READY)

demo: $(READY)
	@$(BIN)/turnwright demo $(DEMO)

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov=kernel --cov-report=term --cov-fail-under=95 tests

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not slow' tests

bench: $(READY)
	@$(BIN)/python -m bench $(BENCH)

clean:
	rm -rf $(VENV) .turnwright

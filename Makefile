# make demo   install what is needed and solve a small problem: bound, exact optimum, index
# make test   every test;  make test-fast leaves the slow ones out
# make check  format, lint, types, layers
# make bench  the benchmarks, with a printed table
# make reproduce  every study of docs/results.md into out/; DATA=folder with rte/ and temp/, QUICK=--quick for a look

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip --disable-pip-version-check -q
WORKERS ?= auto
DATA ?= data
QUICK ?=
DEMO := --tasks 10 --budget 12

BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev

.PHONY: demo test test-fast check bench reproduce format clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@ $(BASE)

demo: $(BASE)
	$(BIN)/nextlabel bound $(DEMO)
	$(BIN)/nextlabel exact $(DEMO) --policy index
	$(BIN)/nextlabel index $(DEMO)

test: $(DEV)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: $(DEV)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow'

check: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(DEV)
	$(BIN)/python -m benchmarks

reproduce: $(DEV)
	$(BIN)/nextlabel reproduce all --data $(DATA) $(QUICK)

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist out .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

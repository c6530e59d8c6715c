# make demo   install what is needed and run a whole campaign here: service, simulated crowd, certificate
# make test   every test, in a random order whose seed is printed (SEED=n for another);
#             make test-fast leaves the slow ones out, make coverage counts the lines that tests reach
# make test-long  what takes minutes: 2,000 random horizons against an oracle that shares no code with the solver, a million labels,
#             live campaigns against the simulator
# make test-label-studio  a campaign and a real Label Studio server, which is installed in an environment of its own (1 GB);
#             make bench-label-studio: 300 tasks, six people by its API and one in a browser, both servers killed on the way
# make test-mlflow  the same with a real MLflow server (850 MB); make bench-mlflow: 64 workers, both servers killed on the way
# make test-elsewhere  the numerical tests again as other machines would run them: generic code, other BLAS kernels
# make check  format, lint, types, layers
# make docs   the documentation site into site/, with warnings as errors;  make docs-serve shows it while you write
# make bench  the benchmarks, into docs/benchmarks.md;  make bench-live: the service under load
# make endurance  hours of kills, wrong clocks, random requests and everything at once, which must leave no trace
# make paper  the report, out/report.pdf, from the committed results of the studies; installs LaTeX if it is missing
# make reproduce  every study of docs/results.md into out/; DATA=folder with rte/ and temp/, QUICK=--quick for a look

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip --disable-pip-version-check -q
# Half of a test's time is waiting for servers and browsers, so that two processes per core keep a small machine busy.
WORKERS ?= $(shell cores=$$(nproc 2> /dev/null || echo 2); echo $$((cores < 5 ? 2 * cores : cores)))
DATA ?= data
QUICK ?=
SEED ?= 20161
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --randomly-seed=$(SEED)

# Tests start hundreds of processes, which would all compile the same modules if nobody kept them.
export PYTHONDONTWRITEBYTECODE :=

BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev
BROWSER := $(VENV)/.installed-browser
# Label Studio has hundreds of pinned requirements of its own, so that it gets an environment of its own.
LABEL_STUDIO_VENV := .venv-label-studio
LABEL_STUDIO := $(LABEL_STUDIO_VENV)/.installed
# MLflow pins versions that are not ours.
MLFLOW_VENV := .venv-mlflow
MLFLOW := $(MLFLOW_VENV)/.installed

.PHONY: demo test test-fast coverage test-long test-label-studio test-mlflow test-elsewhere check docs docs-serve bench \
        bench-live bench-label-studio bench-mlflow endurance reproduce paper format clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[figures,service]'
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@ $(BASE)

# The browser tests drive Debian's Chromium, some of them through Debian's nginx.
$(BROWSER): | $(BIN)/python
	@{ command -v chromium && PATH=$$PATH:/usr/sbin command -v nginx; } > /dev/null || { \
	  echo "Installing Chromium and nginx for the browser tests ..."; \
	  as_root=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$as_root apt-get -qq update && \
	  DEBIAN_FRONTEND=noninteractive $$as_root apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core nginx-light > /dev/null; }
	@touch $@

demo: $(BASE)
	$(BIN)/nextlabel demo

test: $(DEV) $(BROWSER)
	$(PYTEST) --durations=15

coverage: $(DEV) $(BROWSER)
	$(PYTEST) --cov --cov-report=term

test-fast: $(DEV) $(BROWSER)
	$(PYTEST) -m 'not slow'

test-long: $(DEV)
	$(PYTEST) -m long -rP

$(LABEL_STUDIO) $(MLFLOW): .venv-%/.installed: constraints-%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check -q install -r $<
	@touch $@

test-label-studio: $(DEV) $(LABEL_STUDIO)
	$(BIN)/python -m pytest -m label_studio --randomly-seed=$(SEED)

bench-label-studio: $(DEV) $(BROWSER) $(LABEL_STUDIO)
	$(BIN)/python -m benchmarks.live.label_studio

test-mlflow: $(DEV) $(MLFLOW)
	$(BIN)/python -m pytest -m mlflow --randomly-seed=$(SEED)

bench-mlflow: $(DEV) $(MLFLOW)
	$(BIN)/python -m benchmarks.live.mlflow

test-elsewhere: $(DEV)
	$(BIN)/python tests/elsewhere.py --workers $(WORKERS) --randomly-seed=$(SEED)

check: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(DEV)
	$(BIN)/mkdocs build --strict --quiet

docs-serve: $(DEV)
	$(BIN)/mkdocs serve

bench: $(DEV)
	$(BIN)/python -m benchmarks --write docs/benchmarks.md

bench-live: $(DEV)
	$(BIN)/python -m benchmarks.live --write docs/benchmarks.md

endurance: $(DEV)
	for store in sqlite postgresql; do \
	  $(BIN)/python -m benchmarks.live.faults --case kill --store $$store || exit 1; \
	  $(BIN)/python -m benchmarks.live.faults --case clock --store $$store || exit 1; \
	done
	$(BIN)/python -m benchmarks.live.faults --case postgres --store postgresql
	NEXTLABEL_EXAMPLES=250 $(PYTEST) tests/service/test_schemathesis.py
	$(BIN)/python -m benchmarks.live.soak

reproduce: $(DEV)
	$(BIN)/nextlabel reproduce all --data $(DATA) $(QUICK)

paper: | $(BIN)/python
	@command -v pdflatex > /dev/null || { \
	  echo "Installing LaTeX ..."; \
	  as_root=$$(test "$$(id -u)" = 0 || echo sudo); \
	  $$as_root apt-get -qq update && \
	  DEBIAN_FRONTEND=noninteractive $$as_root apt-get -qq install -y --no-install-recommends \
	    texlive-latex-recommended texlive-fonts-recommended lmodern > /dev/null; }
	$(BIN)/python docs/paper/build.py

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(LABEL_STUDIO_VENV) $(MLFLOW_VENV) build dist out site nextlabel-demo .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

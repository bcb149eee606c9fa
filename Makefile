# Every task of the house. `make setup` first; each other target runs it when needed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= $(shell command -v python3.11 || command -v python3)
IMAGE := build/protos.binpb
NODE := examples/node console
CODE := palimpsest services gateway tests benchmarks scripts
# Three processes, some of whose tests wait, share the tests: a whole file each, so that fixtures of a file
# are made once, in the order of the folders, so that the long ones come first.
WORKERS ?= -n 3 --dist loadfile --no-loadscope-reorder
# Tests start many processes: each would compile all that it imports where an environment forbids bytecode.
export PYTHONDONTWRITEBYTECODE :=
LOCK := $(BIN)/python -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-config
KEEP ?=
STORES ?= embedded
UPGRADE ?=

.PHONY: help
help: ## Lists the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: setup
setup: $(STAMP) ## Makes .venv with exactly the locked packages.

$(STAMP): constraints.txt pyproject.toml
	@$(if $(PYTHON),,echo "Python 3.11 is needed, and no python3 is on PATH." >&2; exit 1)
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null \
	  || { echo "Python 3.11 is needed; $(PYTHON) is another. Name one: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "This Python lacks venv. On Debian: apt-get install python3.11-venv" >&2; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: lock
lock: setup ## Resolves pyproject.toml into constraints.txt, and what servers need of it; UPGRADE=1 takes newer ones.
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra server --extra mcp --extra pydantic-ai --extra langgraph --group dev \
	  pyproject.toml -o constraints.txt
	$(LOCK) --constraint constraints.txt --extra server --group build pyproject.toml -o constraints-server.txt

.PHONY: protos
protos: setup ## Generates the Python stubs and docs/api.md from protos/.
	$(BIN)/python scripts/protos.py
	$(BIN)/python scripts/api_page.py

.PHONY: fmt
fmt: setup ## Formats Python and protos, mends what ruff can mend.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@if [ -d protos ]; then $(BIN)/buf format --write protos; fi

.PHONY: check
check: setup ## All that needs no running: format, lint, types, import arrows, protos and their stubs.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/protos.py --check
	$(BIN)/buf lint $(IMAGE) --path palimpsest
	$(BIN)/buf format --diff --exit-code protos

.PHONY: node
node: ## Installs the npm packages of examples/node and console; where that can't be, tests that need them are skipped.
	@for folder in $(NODE); do \
	  if ! command -v npm >/dev/null; then echo "npm is missing: tests of $$folder are skipped (see \`make doctor\`)"; \
	  elif [ ! $$folder/node_modules/.installed -nt $$folder/package-lock.json ]; then \
	    { (cd $$folder && npm ci --prefer-offline --loglevel=error) && touch $$folder/node_modules/.installed; } \
	    || { rm -rf $$folder/node_modules; echo "npm ci failed: tests of $$folder are skipped; with CI=true they fail" >&2; }; fi; \
	done

.PHONY: console
console: node ## Builds the page of `palimpsest console` into the package, where it is committed.
	cd console && npm run --silent check && npm run --silent build

.PHONY: test
test: setup node ## The tests of every day (200 examples a law); eight minutes.
	PALIMPSEST_HYPOTHESIS=$${PALIMPSEST_HYPOTHESIS:-ci} $(BIN)/python -m pytest $(WORKERS) -m "not slow"

.PHONY: test-all
test-all: setup node ## Everything, with 2,000 examples a law, each with time for them.
	PALIMPSEST_HYPOTHESIS=$${PALIMPSEST_HYPOTHESIS:-long} $(BIN)/python -m pytest $(WORKERS) --timeout=900

.PHONY: doctor
doctor: ## Says what this machine lacks, and which tests are skipped for it.
	@bash scripts/doctor

.PHONY: demo
demo: setup ## A story told by real calls; KEEP=1 leaves it running, STORES=... chooses the stores.
	KEEP="$(KEEP)" STORES="$(STORES)" $(BIN)/python -m gateway.demo

.PHONY: clean
clean: ## Removes what setup, tools and runs made here: .venv, caches, build, data.
	rm -rf $(VENV) $(NODE:%=%/node_modules) build dist .palimpsest .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf *.egg-info

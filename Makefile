# `make help` says what there is. Each target makes .venv on first use, and again when the dependencies change.

PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
# Test processes side by side; each computes with one thread (see tests/conftest.py).
JOBS ?= 2

BIN := .venv/bin
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test lint bench

help: ## this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16
	@echo
	@echo "  PYTHON=python3.12 picks the interpreter of a new .venv (3.11 or newer; now $(PYTHON)),"
	@echo "  JOBS=4 the number of test processes, CONSTRAINTS=FILE other versions than constraints.txt."

demo: .venv/core.installed ## train a judge on the sample and examine it: a few minutes on two cores, no GPU
	$(BIN)/python scripts/demo.py

test: .venv/dev.installed ## the test suite, but for what is marked slow: under ten minutes on two cores
	$(BIN)/python -m pytest -q -n $(JOBS)

lint: .venv/dev.installed ## style, types, and which room imports which
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.installed ## scoring, answering and training beside what people use, which it installs first: hours on two cores
	$(BIN)/python scripts/bench.py

# A dot for each package that pip finds: an install takes minutes, and pip says nothing or too much of it.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "%s is Python %d.%d; 3.11 or newer is needed: make PYTHON=python3.11" % (sys.executable, *sys.version_info[:2]))'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing $(1) into .venv with the versions of $(CONSTRAINTS); this takes some minutes"
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -c $(CONSTRAINTS) -e '$(1)' 2>&1 \
	    | tee .venv/install.log \
	    | while read -r word next _; do case "$$word $$next" in Collecting*) printf .;; "Installing collected") printf ' unpacking';; esac; done \
	    || { printf '\n'; tail -n 20 .venv/install.log; exit 1; }
	@echo " done"
	@touch $@
endef

.venv/core.installed: pyproject.toml $(CONSTRAINTS)
	$(call install,.)

.venv/dev.installed: pyproject.toml $(CONSTRAINTS)
	$(call install,.[dev])
	@touch .venv/core.installed

# Everything runs from a private virtual environment; VENV=... chooses another one.
VENV ?= .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PIP := $(PY) -m pip --disable-pip-version-check

.PHONY: help setup demo test lint type bench reproduce docs gpu-check fuzz build clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(STAMP)  ## create the virtual environment with everything for development
$(STAMP): pyproject.toml constraints.txt
	test -x $(PY) || python3 -m venv $(VENV)
	$(PIP) install -q -c constraints.txt -e '.[train,dev]'
	touch $@

# The demo needs less than development does, and a newcomer waits for it.
$(VENV)/.runs: pyproject.toml constraints.txt
	test -x $(PY) || python3 -m venv $(VENV)
	$(PIP) install -q -c constraints.txt -e '.[train,report]'
	touch $@

demo: $(VENV)/.runs  ## measure, fit, plan and picture: the whole chain on real input, left in demo/
	PATH="$(abspath $(VENV))/bin:$$PATH" sh examples/demo.sh demo

test: setup  ## all tests
	$(PY) -m pytest -n 2 --dist loadgroup

lint: setup  ## ruff and the import contracts
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports

type: setup  ## mypy --strict
	$(VENV)/bin/mypy

bench: setup  ## accuracy and speed, beside their peers (PARTS="accuracy planner scale")
	$(PY) -m benchmarks $(PARTS)

reproduce: setup  ## from the traces to the tables and figures of docs/results.md (benchmarks/DATA.md: the data)
	$(PY) -m benchmarks peers || test $$? -eq 6
	$(PY) -m benchmarks._results_page

docs: setup  ## write the pages that the code says: docs/cli.md, docs/formats.md
	$(PY) docs/make.py

gpu-check:  ## one GPU, no network, 8 minutes: profiles, fit and sensor report in gpu-check/ (GPU_PY=python to choose)
	$(or $(GPU_PY),python3) -m benchmarks._gpu_check -o gpu-check

fuzz: setup  ## the property tests, with many more examples
	PFPROFILE_HYPOTHESIS=fuzz $(PY) -m pytest -n 2 -q -k "any_text or mangled or property" tests

build: setup  ## wheel and sdist in dist/
	$(PY) -m build

clean:  ## remove what the other targets made, the virtual environment included
	rm -rf demo dist build .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

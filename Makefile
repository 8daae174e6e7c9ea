# make demo   set everything up, then learn, evaluate and draw on the embedded data (about a minute the first time)
# make test   set everything up, then run every check that CI runs
# make quick  what needs no server, browser, cluster or data set, in about a minute
# make fuzz   the state machines with random seeds, for as long as it takes
# make docs   the documentation as a site, in site/; it needs no network once this is set up
# make results  every experiment whose row is missing in results/, then the documents from the rows: hours
# make bench  the speed benchmarks, as ratios against plain twins and peers

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
DATA := $(wildcard ../shared/data)
export STREAMHASH_DATA ?= $(if $(DATA),$(abspath $(DATA)))
# Two test processes share the machine's cores, so that each keeps its kernels to one.
export OPENBLAS_NUM_THREADS ?= 1
# Tests start hundreds of processes: where bytecode may not be kept, each compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

# What each claim of docs/performance.md and docs/scale.md stands on, in short forms; other scripts
# in benchmarks/ are experiments of quality, of faults, and long runs. To keep what one prints, run
# it by itself into results/benchmarks/NAME.txt (search: with --keep, which keeps its rows).
BENCHMARKS := search "answers --quick" "approximate --quick" encoding \
  "reencoding --items 128:500000,784:200000,4096:30000 --rounds 1" \
  "commits --adds 20000 --part single --part threads --part http --part batches" \
  "commits --adds 20000 --part lasting" \
  "scale --memory 1000000 --ids any,ascending,strings" "past_memory --mapped 2000000" \
  "serve_empty --items 10000 --rounds 3" "serve_profile --clients 1 --clients 64 --seconds 2" \
  "serve_large --items 10000 --rounds 3" \
  "filters --items 100000" "rescore --items 100000" \
  evaluation places sdoh_step one_by_one bit_updates pairwise mihash sketch

.PHONY: demo test quick fuzz lint check browser bench results docs screenshots format clean

demo: .venv/user
	$(BIN)/streamhash demo

test: lint check

lint: .venv/developer
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: .venv/developer browser
	$(BIN)/pytest -n 2 --dist worksteal

quick: .venv/developer
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow" -q

fuzz: .venv/developer
	STREAMHASH_FUZZ=20 $(BIN)/pytest -n 2 -m machine

# The page is tested in Debian's Chromium; without it those tests are skipped and say so.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && echo "installing Chromium" && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || echo "Chromium is missing and could not be installed; the page is not tested"

docs: .venv/developer
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in site/index.html; for its search: $(BIN)/python -m http.server -d site"

screenshots: .venv/developer browser
	$(BIN)/python docs/screenshots.py

bench: .venv/developer
	$(BIN)/pip install --quiet --editable '.[peers]'
	for each in $(BENCHMARKS); do set -- $$each; echo "== $$each"; name=$$1; shift; \
	  $(BIN)/python benchmarks/$$name.py "$$@" || exit 1; done

results: .venv/developer
	PATH="$(abspath $(BIN)):$$PATH" results/run.sh

format: .venv/developer
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

clean:
	rm -rf site .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "streamhash needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip

.venv/user: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[all]'
	touch $@

.venv/developer: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ .venv/user

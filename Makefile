# The commands of minijax. Each makes what it needs; nothing is assumed but
# Python 3.11 or newer. `make PYTHON=/path/to/python` chooses another one.

VENV ?= .venv
BIN := $(VENV)/bin
# On two cores: a test that waits for a browser or a child process leaves one free.
JOBS ?= 3
export PYTHON

# Every test that must hold: tests/ and all notebooks, cell by cell. A file stays with
# one worker, which shares its fixtures; the longest come first, by tests/timings.json.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadscope --no-loadscope-reorder -q
# Child processes of the tests import minijax: compiled, in half of the time. All workers
# import all test modules, compiled as pytest does it.
COMPILED := $(BIN)/python -m compileall -q -j 0 minijax widgets/minijax_* tests \
	-x /test_ && $(BIN)/python tests/house/compile_tests.py
NBVAL := --nbval --nbval-current-env --nbval-cell-timeout 120 \
	--nbval-sanitize-with tests/notebooks/sanitize.cfg

.PHONY: help env lab check test test-all test-gpu lint bench book wheel clean

help:
	@echo "make lab       the course: environment, install, JupyterLab on chapter 00"
	@echo "make check     in two minutes: lint, golden tests, those nearest to a change"
	@echo "make test      everything that must hold on one machine without a GPU"
	@echo "make test-all  all claims, long random runs, repetitions, in a shuffled order"
	@echo "make test-gpu  the tests that need an accelerator"
	@echo "make lint      style, types, floors, line counts only"
	@echo "make bench     minijax beside jax, as ratios"
	@echo "make book      the course as a site, in book/_build/html"
	@echo "make wheel     the installable package, in dist/"

env: $(VENV)/.ready

# The stamp depends on what decides the environment's content, so that a changed
# pin is followed and an unchanged one costs nothing.
$(VENV)/.ready: pyproject.toml constraints.txt scripts/environment.sh
	sh scripts/environment.sh $(VENV) lab,test,book
	@touch $@

lab: env
	$(BIN)/minijax lab my

check: env
	$(BIN)/python tests/house/check.py

test: env
	@$(BIN)/python tests/house/missing_tools.py
	@$(COMPILED)
	MINIJAX_TEST_PART=1 $(PYTEST) $(NBVAL) tests notebooks

test-all: env
	@$(BIN)/python tests/house/missing_tools.py
	@$(COMPILED)
	MINIJAX_TEST_ALL=1 MINIJAX_TEST_TIMINGS=1 $(PYTEST) $(NBVAL) tests notebooks

test-gpu: env
	MINIJAX_TEST_GPU=1 $(BIN)/python -m pytest -q -m gpu tests

lint: env
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/house/count_lines.py

bench: env
	$(BIN)/python benchmarks/compare.py --write

book: env
	$(BIN)/python book/make_pages.py build/book --html book

wheel: env
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache \
		.import_linter_cache .hypothesis

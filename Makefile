# Every command sets up its own virtual environment; a second call reuses it and starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(wildcard cpp/*) CMakeLists.txt pyproject.toml

.PHONY: demo test lint clean

$(VENV)/ready: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check scikit-build-core nanobind ninja cmake
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[dev]'
	touch $@

test: $(VENV)/ready  ## style, types, import directions and the whole test suite
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2

clean:
	rm -rf $(VENV) build

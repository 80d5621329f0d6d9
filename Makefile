# Each target makes .venv if it is not there and installs what it needs into it;
# only Python >= 3.11 and make are expected. PYTHON=... picks another interpreter.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
OUT := flambeau-demo
# The tests start hundreds of processes: without byte code each compiles a tenth of the package again, 0.6 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test quick test-cuda sanitize-cuda smoke lint bench bench-cuda docs docs-pictures package clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    traces, gradient descent and a trained classifier, with pictures in $(OUT)/"
	@echo "make test    every test (compared with PyTorch if it is installed)"
	@echo "make quick   the tests nearest to what changed, within two minutes"
	@echo "make smoke   the tests that take seconds"
	@echo "make test-cuda the tests of GPU kernels and devices, and all operators' records, on a GPU"
	@echo "make sanitize-cuda the tests of GPU kernels under NVIDIA's compute-sanitizer, on a GPU"
	@echo "make bench-cuda timings compared with PyTorch and jax on a GPU, written to benchmarks/results_gpu.md"
	@echo "make lint    ruff and mypy"
	@echo "make bench   timings compared with PyTorch and jax, written to benchmarks/results.md"
	@echo "make docs    the manual, in docs/_build/html"
	@echo "make package wheel and sdist in dist/, checked, installed in an empty environment, smoke-tested"
	@echo "make clean   removes everything that make made"

# The first Python on the path that is new enough.
$(BIN)/python:
	@for candidate in $(PYTHON) python3 python python3.14 python3.13 python3.12 python3.11; do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        python="$$candidate"; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "flambeau needs Python 3.11 or newer, and none is on the PATH." >&2; \
	    echo "Install one, or say where it is: make PYTHON=/path/to/python3.12 demo" >&2; \
	    exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip' >/dev/null 2>&1; then \
	    echo "$$python has no ensurepip, which making a virtual environment needs." >&2; \
	    echo "On Debian or Ubuntu: sudo apt install python3-venv" >&2; \
	    exit 1; \
	fi; \
	echo "making $(VENV) with $$("$$python" --version)"; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# One stamp for each extra: installed again when pyproject.toml changes.
$(VENV)/.has-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

demo: $(VENV)/.has-demo
	$(BIN)/python -m flambeau demo --out $(OUT)

# As many tests at a time as JOBS says.
JOBS := 2
test: $(VENV)/.has-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

# Changed against BASE (default: the branch's upstream, else HEAD).
quick: $(VENV)/.has-test
	$(BIN)/python -m tests.lazy_modules --write
	$(BIN)/python -m tests.quick --jobs $(JOBS) $(if $(BASE),--base $(BASE)) $(ARGS)

# The tests of GPU kernels on the first GPU, not on the emulator; devices through CuPy, not the module of the tests; then
# all records, and random programs beside PyTorch's. Needs NVIDIA's driver, for CUDA 13 or for CUDA=cuda CUDA 12; another
# environment: VENV=/path.
CUDA := cuda13
test-cuda: $(VENV)/.has-test $(VENV)/.has-$(CUDA)
	FLAMBEAU_TEST_CUDA=1 $(BIN)/python -m pytest -q -n $(JOBS) tests/codegen/gpu tests/ir/gpu tests/backends/cuda_devices \
	    tests/cuda tests/compiler/on_devices tests/_tensor/accelerated $(ARGS)
	for dtype in float32 bfloat16 float64 complex64; do \
	    FLAMBEAU_TEST_CUDA=1 $(BIN)/python -m tests.backends.cuda_devices.operators $$dtype || exit 1; \
	done
	FLAMBEAU_TEST_CUDA=1 $(BIN)/python -m tests.random_programs.on_a_device --seeds 0-200 --processes $(JOBS)

# Out-of-bounds and misaligned accesses, races in shared memory, memory that is read before it is written, and barriers.
sanitize-cuda: $(VENV)/.has-test
	for tool in memcheck racecheck initcheck synccheck; do \
	    FLAMBEAU_TEST_CUDA=1 compute-sanitizer --tool $$tool --error-exitcode 1 \
	        $(BIN)/python -m pytest -q tests/codegen/gpu tests/ir/gpu $(ARGS) || exit 1; \
	done

smoke: $(VENV)/.has-test
	$(BIN)/python -m tests.lazy_modules --write
	$(BIN)/python -m pytest -q -m smoke $$(grep -rl --include='test_*.py' mark.smoke tests) $(ARGS)

lint: $(VENV)/.has-dev
	$(BIN)/ruff check .
	$(BIN)/mypy

# PyTorch and jax come with the extra `bench`; `make bench EXTRA=test` does without those that are not there.
EXTRA := bench
bench: $(VENV)/.has-$(EXTRA)
	$(BIN)/python benchmarks/bench.py --write benchmarks/results.md $(ARGS)

bench-cuda: $(VENV)/.has-bench $(VENV)/.has-$(CUDA)
	$(BIN)/python -m benchmarks.gpu --write benchmarks/results_gpu.md $(ARGS)

docs: $(VENV)/.has-docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

docs-pictures: $(VENV)/.has-docs
	$(BIN)/python docs/draw_pictures.py

# Build isolation makes sure that the sdist holds all that a wheel is built from.
package: $(VENV)/.has-release
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	@for archive in dist/*.whl dist/*.tar.gz; do \
	    echo "installing $$archive in an empty environment"; \
	    empty=$$(mktemp -d) && $(BIN)/python -m venv $$empty/env \
	    && $$empty/env/bin/python -m pip install --quiet --disable-pip-version-check $$archive \
	    && (root=$$(pwd) && cd $$empty \
	        && env/bin/python $$root/.ci/smoke_test.py) \
	    || exit 1; \
	    rm -rf $$empty; \
	done

clean:
	rm -rf $(VENV) $(OUT) build dist docs/_build .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

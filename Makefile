# make build   the virtual environment and the extension, in place; quick when nothing changed
# make run     a small transformer compiled, beside torch.compile
# make test    the tests
# make fuzz    2,000 random programs against eager; SEED=1 for others
# make cpython-tests   CPython's own tests with each test's body captured
# make leaks   every case of the differential tests called many times: nothing may grow per call
# make bench   capture and call speed beside torch.compile
# make lint    formatting, warnings as errors, ruff, mypy; make format repairs the first
# make asan    the tests with the address and undefined-behaviour sanitizers
#
# On another torch or Python: make build TORCH=2.11.0 PYTHON=python3.12

TORCH ?= 2.13.0
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV := .venv
PY := $(VENV)/bin/python
DEPENDENCIES := $(VENV)/.installed-$(TORCH)-$(shell cksum < requirements.txt | cut -d' ' -f1)
# The venv's own programs first, so that cmake and ninja need not be on the machine.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
CXX_FILES = $(shell find csrc -name '*.cpp' -o -name '*.h' -o -name '*.c')

.PHONY: build run test fuzz cpython-tests leaks bench lint format asan clean

build: $(DEPENDENCIES) build/build.ninja
	@ninja -C build --quiet

$(DEPENDENCIES):
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check torch==$(TORCH) -r requirements.txt
	@echo $(CURDIR) > $$($(PY) -c "import sysconfig; print(sysconfig.get_path('purelib'))")/cdynamo-in-place.pth
	@rm -f $(VENV)/.installed-*
	@touch $@

build/build.ninja: CMakeLists.txt | $(DEPENDENCIES)
	cmake -S . -B build -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(PY) > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log

run: build
	$(PY) examples/run.py

test: build
	$(PY) -m pytest -x -q tests

SEED ?= 0
fuzz: build
	$(PY) tests/fuzz/fuzz.py --seed $(SEED)

cpython-tests: build
	$(PY) tests/cpython/cpython_tests.py

leaks: build
	CDYNAMO_LEAKS=1 $(PY) -m pytest -q tests/breaks/test_leaks.py

bench: build
	$(PY) bench/bench.py

lint: build
	@if command -v clang-format > /dev/null; then clang-format --dry-run --Werror $(CXX_FILES); else echo "no clang-format here: C++ layout not checked"; fi
	cmake -S . -B build-lint -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(PY) -DCDYNAMO_WERROR=ON -DCDYNAMO_OUTPUT_DIRECTORY=$(CURDIR)/build-lint > /dev/null
	ninja -C build-lint --quiet
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: build
	clang-format -i $(CXX_FILES)
	$(PY) -m ruff format --quiet .

# A tree of links with its own extension, so that the normal build stays as it is.
ASAN := build-asan/tree
# RSS means nothing under the sanitizer, which keeps freed memory aside.
ASAN_TESTS ?= -k "not inductor and not real_graphs and not memory_over_many and not no_leak_over_many_calls"
asan: build
	cmake -S . -B build-asan -G Ninja -DPython_EXECUTABLE=$(CURDIR)/$(PY) -DCDYNAMO_ASAN=ON -DCDYNAMO_OUTPUT_DIRECTORY=$(CURDIR)/$(ASAN)/cdynamo > /dev/null
	ninja -C build-asan --quiet
	@for f in cdynamo/*.py cdynamo/*.pyi; do ln -sf $(CURDIR)/$$f $(ASAN)/cdynamo/; done
	@ln -sfn $(CURDIR)/tests $(ASAN)/tests; ln -sf $(CURDIR)/pyproject.toml $(ASAN)/
	cd $(ASAN) && LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so) $$(g++ -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  $(CURDIR)/$(PY) -m pytest -x -q -p no:cacheprovider $(ASAN_TESTS) tests

clean:
	rm -rf build build-* cdynamo/_C*.so

# tarsus: all tasks of the project. `make` without a target lists them.
#
# Each task installs what it needs: system packages by apt (tools/setup.sh lists them and skips installed ones), and
# Python packages in .venv. Nothing else is installed.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PYTHON ?= python3
WERROR ?= OFF
# Instruction sets of the kernels that `make build` compiles. `native`, this machine's only, takes least time.
ISA ?= all
FUZZ_SECONDS ?= 60
BUILD := build
VENV := .venv

# 1: a test that is skipped although a checkout and `make` provide what it needs is a failure, as in CI.
STRICT ?=
STAGE := tools/stage.sh $(BUILD)/stages.tsv

DEMO_MODEL := models/humanoid.xml
DEMO_CLIP := models/clips/humanoid_walk.json
DEMO_OUT := out/demo_walk.npz
DEMO_PAGE := out/demo_walk.html

.PHONY: help
help: ## This list
	@echo 'tarsus: constrained multibody dynamics. Two commands to begin with:'
	@echo
	@echo '  make demo    the humanoid tracks a walk; ends with a table and a page to open in a browser'
	@echo '  make test    builds and runs all tests but the long ones'
	@echo
	@echo 'All tasks (set JOBS=n for other than $(JOBS) compilers at once):'
	@echo
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'
	@echo
	@echo 'Where things land: $(BUILD)/bin/tarsus (the command line), $(BUILD)/ (release), $(BUILD)/{dev,asan,tsan,fuzz}/'
	@echo '(presets), out/ (recordings, benchmark results), $(VENV)/ (Python). More in docs/building.md.'

# -- the two commands -----------------------------------------------------------------------------------------------

.PHONY: demo
demo: ## Stable PD tracks a walk at 1/30 s, with built-in data
	@rm -f $(BUILD)/stages.tsv
	@$(MAKE) cli
	@mkdir -p $(dir $(DEMO_OUT))
	@$(STAGE) 'run' $(BUILD)/bin/tarsus run $(DEMO_MODEL) --clip $(DEMO_CLIP) --dt 0.0333333 --duration 10 --out $(DEMO_OUT) \
	  --page $(DEMO_PAGE)
	@$(STAGE) 'picture' tools/picture.sh $(DEMO_PAGE) $(DEMO_PAGE:.html=.png)
	@$(PYTHON) tools/times.py $(BUILD)/stages.tsv --ninja $(BUILD)/.ninja_log --top 0

.PHONY: test
test: ## Builds and runs all tests except the long ones; STRICT=1: avoidable skips are failures
	@rm -f $(BUILD)/stages.tsv
	@$(MAKE) python BENCH=$(or $(BENCH),OFF) LONG=$(or $(LONG),OFF)
	@echo '-- Python'
	@$(STAGE) 'Python tests' $(VENV)/bin/python -m pytest tests/python -n $(JOBS) --dist loadgroup -q -rs --junitxml=$(BUILD)/python_tests.xml
	@echo '-- C++'
	@$(STAGE) 'C++ tests' ctest --preset release -j $(JOBS) --output-on-failure --output-junit cpp_tests.xml
	@$(PYTHON) tools/check_skips.py $(BUILD)/python_tests.xml $(BUILD)/cpp_tests.xml$(if $(STRICT),, || true)
	@$(PYTHON) tools/times.py $(BUILD)/stages.tsv --ninja $(BUILD)/.ninja_log

# -- building -------------------------------------------------------------------------------------------------------

# Only the library and the command line, for this machine's instruction set and in double precision. `make build` adds
# the rest to the same tree. A tree that `make build` has configured is not changed.
.PHONY: cli
cli:
	@$(STAGE) 'system packages' tools/setup.sh build
	@test -f $(BUILD)/build.ninja || $(STAGE) 'configure' cmake --preset release -DTARSUS_TESTS=OFF -DTARSUS_BENCH=OFF \
	  -DTARSUS_ISA=native -DTARSUS_DOUBLE_ONLY=ON -DTARSUS_WERROR=$(WERROR)
	@$(STAGE) 'compile' cmake --build $(BUILD) --parallel $(JOBS) --target tarsus_cli

# BENCH=OFF and LONG=OFF leave out benchmarks and long tests. The Python packages of the tests are installed during
# compilation, which needs few Python packages.
.PHONY: build
build: ## Release build of library, command line, tests, benchmarks and Python extension, for all instruction sets
	@$(STAGE) 'system packages' tools/setup.sh build test python
	@$(STAGE) 'Python to build with' env PYTHON=$(PYTHON) tools/setup_venv.sh $(VENV) python/requirements-build.txt
	@$(STAGE) 'configure' cmake --preset release -DTARSUS_TESTS=ON -DTARSUS_PYTHON=ON -DTARSUS_DOUBLE_ONLY=OFF -DTARSUS_ISA=$(ISA) \
	  -DTARSUS_BENCH=$(or $(BENCH),ON) -DTARSUS_LONG_TESTS=$(or $(LONG),ON) \
	  -DTARSUS_WERROR=$(WERROR) -DPython_EXECUTABLE=$(abspath $(VENV)/bin/python)
	@$(STAGE) 'Python for the tests (beside)' $(MAKE) venv & installing=$$!; \
	$(STAGE) 'compile' cmake --build $(BUILD) --parallel $(JOBS) && compiled=0 || compiled=$$?; \
	wait $$installing && exit $$compiled

.PHONY: dev
dev: ## Quick inner loop: scalar double kernels only, light optimisation, all tests
	@tools/setup.sh build test
	@cmake --preset dev
	@cmake --build --preset dev --parallel $(JOBS)
	ctest --preset dev -j $(JOBS)

# Installs from the tree of `make build`, without compiling again.
.PHONY: python
python: build ## Installs the Python package into .venv
	@$(STAGE) 'install the package' env CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
	  $(VENV)/bin/pip install --quiet --no-build-isolation --no-deps .

.PHONY: wheel
wheel: build ## A manylinux wheel in dist/: extension, command line and built-in models; tested in an empty environment
	tools/wheel.sh $(VENV)

.PHONY: venv
venv:
	@tools/setup.sh python
	@PYTHON=$(PYTHON) tools/setup_venv.sh $(VENV) python/requirements-test.txt

# -- longer checks --------------------------------------------------------------------------------------------------

.PHONY: test-long
test-long: test ## make test, the long tests, the sanitizers, a minute of every fuzzer, a wheel, clang and aarch64
	@$(MAKE) build
	ctest --test-dir $(BUILD) -L '^long$$' -j $(JOBS) --output-on-failure
	$(VENV)/bin/python -m pytest tests/python -n $(JOBS) --dist loadgroup -q -rs -m long
	@$(MAKE) sanitize SANITIZER=asan
	@$(MAKE) sanitize SANITIZER=tsan
	@$(MAKE) fuzz
	@$(MAKE) wheel
	@$(MAKE) hashes

SANITIZER ?= asan
export ASAN_OPTIONS ?= detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS ?= print_stacktrace=1

.PHONY: sanitize
sanitize: ## All short tests under SANITIZER=asan (address, undefined behaviour) or tsan (threads)
	@tools/setup.sh build test fuzz
	@cmake --preset $(SANITIZER)
	@cmake --build --preset $(SANITIZER) --parallel $(JOBS)
	ctest --preset $(SANITIZER) -j $(JOBS)

.PHONY: fuzz
fuzz: ## Every fuzzer for FUZZ_SECONDS (60)
	@tools/setup.sh build fuzz
	@cmake --preset fuzz
	@cmake --build --preset fuzz --parallel $(JOBS)
	tools/fuzz.sh $(BUILD)/fuzz $(FUZZ_SECONDS)

.PHONY: clang
clang: ## Builds everything with clang, warnings as errors; runs the short C++ tests
	@tools/setup.sh build test fuzz
	@cmake --preset clang
	@cmake --build --preset clang --parallel $(JOBS)
	ctest --preset clang -j $(JOBS)

.PHONY: aarch64
aarch64: ## Builds the library with Debian's cross compiler for 64-bit Arm; runs the short C++ tests under qemu-user
	@if tools/setup.sh build test aarch64; then \
	  cmake --preset aarch64 && cmake --build --preset aarch64 --parallel $(JOBS) && ctest --preset aarch64 -j $(JOBS); \
	else echo 'SKIPPED: aarch64, whose packages cannot be had here'; fi

.PHONY: hashes
hashes: build clang aarch64 ## State hashes by instruction set, with clang and on aarch64, side by side
	@others=("clang=$(BUILD)/clang/bin/state_hashes"); \
	if [[ -x $(BUILD)/aarch64/bin/state_hashes ]]; then \
	  others+=("aarch64=qemu-aarch64 $(BUILD)/aarch64/bin/state_hashes"); fi; \
	tools/state_hashes.sh $(BUILD)/bin/state_hashes "$${others[@]}"

.PHONY: lint
lint: build ## Include table, formatting, headers, words, lengths, objects' symbols
	@tools/setup.sh lint
	$(PYTHON) tools/lint.py --build $(BUILD)

.PHONY: format
format: ## Rewrites the C++ files in the project's format
	@tools/setup.sh lint
	git ls-files '*.hpp' '*.cpp' '*.inl' | xargs clang-format-14 -i

# -- results and documentation --------------------------------------------------------------------------------------

.PHONY: view-test
view-test: python ## The viewer in Chromium by mouse and keyboard, its files read by other programs (installs Chromium)
	@tools/setup.sh view
	@PYTHON=$(PYTHON) tools/setup_venv.sh $(VENV) python/requirements-view.txt
	@PYTHON=$(PYTHON) tools/setup_venv.sh $(VENV) python/requirements-docs.txt
	@mkdir -p $(BUILD)/page && cp python/viewer/package.json $(BUILD)/page/
	npm install --prefix $(BUILD)/page --no-audit --no-fund --silent
	$(VENV)/bin/python -m pytest tests/view -q -rs

.PHONY: view-rates
view-rates: python ## First frame, frames a second in the page, what the viewer costs a simulation; JSON lines
	@tools/setup.sh view
	@PYTHON=$(PYTHON) tools/setup_venv.sh $(VENV) python/requirements-view.txt
	$(VENV)/bin/python bench/view_rates.py

.PHONY: pictures
pictures: python ## Every picture in README, docs and the gallery, by Chromium
	@tools/setup.sh view
	$(VENV)/bin/python tools/pictures.py

.PHONY: retarget-report
retarget-report: python ## BVH files of a dozen conventions on the humanoid: a table and a picture of each, out/retarget/report.md
	@$(MAKE) build
	$(VENV)/bin/python bench/retarget_report.py

.PHONY: bench
bench: build venv ## Every benchmark; JSON lines in out/bench/
	tools/bench.sh $(BUILD) $(VENV)

.PHONY: docs
docs: ## Checks links, spelling, notation, decisions and the include table
	@tools/setup.sh python
	@PYTHON=$(PYTHON) tools/setup_venv.sh $(VENV) python/requirements-docs.txt
	$(VENV)/bin/python tools/docs.py

.PHONY: site
site: build docs ## The documentation and the API of both languages as a site: build/site/html/index.html
	$(VENV)/bin/python tools/docs_site.py --build $(BUILD)

QUICK ?=

.PHONY: experiments
experiments: build python ## Every published table and figure, experiments/report.md; QUICK=1: under 5 minutes, out/experiments/
	@$(MAKE) -C experiments $(if $(QUICK),quick,all) PYTHON=$(abspath $(VENV)/bin/python) TARSUS=$(abspath $(BUILD)/bin/tarsus)

.PHONY: figure7
figure7: python ## Trains the policies of the report's last section, TASKS=walk,pace SEEDS=5: most of an hour for each skill, four for an acrobatic one; resumes where it was stopped
	@$(MAKE) -C experiments figure7 PYTHON=$(abspath $(VENV)/bin/python)

# Bundles three.js and the sources of python/viewer/ into one file, which is checked in. npm is needed only after
# changing these sources.
.PHONY: page
page: ## Bundles the viewer's page (npm) into python/tarsus/view/page.html
	@tools/setup.sh view
	@mkdir -p $(BUILD)/page && cp python/viewer/* $(BUILD)/page/
	cd $(BUILD)/page && npm install --no-audit --no-fund --silent && node build.mjs $(CURDIR)/python/tarsus/view/page.html

.PHONY: clean
clean: ## Removes build/ and out/ (keeps .venv)
	rm -rf $(BUILD) out

# The few words a person types; CMake does the work below. `make help` explains.

PREFIX  ?= /usr/local
SAN     ?=
WERROR  ?=
TESTS   ?=
SECONDS ?= 60
ONLY    ?=

ifeq ($(origin CC),default)
CC := gcc
endif

# Each way of building has its own tree, so that changing over costs nothing.
is_clang = $(findstring clang,$(notdir $(firstword $(CC))))
BUILD = build$(if $(is_clang),-clang)$(if $(SAN),$(if $(findstring thread,$(SAN)),-tsan,-san))

ifdef JOBS
test_jobs := $(JOBS)
else
JOBS := $(shell nproc 2>/dev/null || echo 2)
test_jobs := 2
endif

setup = tools/setup.sh $(if $(is_clang),clang)
configure = cmake -S . -B $(BUILD) -D CMAKE_C_COMPILER=$(CC) \
	-D FINETTI_SANITIZE=$(SAN) -D FINETTI_WERROR=$(if $(filter-out 0 no off,$(WERROR)),ON,OFF)
# CMake starts a make of its own; it must not look for the job server of this one.
compile = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake --build $(BUILD) -j $(JOBS) --target
run_tests = bash tests/run.sh $(BUILD) $(1) $(test_jobs) '$(TESTS)'

.NOTPARALLEL:
.PHONY: build wheel dist deb web site check-arm64 reproduce check check-all check-clang check-sanitizers check-races check-slow check-long fuzz mutants bench install \
	clean help

build:
	@$(setup) build
	@$(configure) >/dev/null
	@$(compile) product

wheel:
	@$(setup) build wheel
	@$(configure) >/dev/null
	@$(compile) wheel finetti_cli
	@python3 tools/bundle.py wheel $(BUILD)/python/finetti-*.whl $(BUILD)/finetti $(BUILD)/dist

# The tool and what it needs, for any Linux with a C library that is not older than the one that is named.
dist: build
	@$(setup) build wheel
	@rm -rf $(BUILD)/dist/tree
	@cmake --install $(BUILD) --component tool --prefix $(abspath $(BUILD))/dist/tree >/dev/null
	@python3 tools/bundle.py tar $(BUILD)/dist/tree $(BUILD)/dist
	@rm -rf $(BUILD)/dist/tree

# Debian packages: finetti, libfinetti0.1, libfinetti-dev, python3-finetti.
deb:
	@$(setup) build wheel deb
	@bash packaging/deb.sh $(abspath $(BUILD))/deb

# The page to play with: from then on this tree builds it, and the tool carries it.
web:
	@$(setup) build web
	@$(configure) -D FINETTI_WEB=ON >/dev/null
	@$(compile) web product
	@ls $(BUILD)/web/index.html

# The documentation as pages of HTML, from docs/ and the docstrings; nothing is downloaded.
site:
	@$(setup) build wheel check-all
	@$(configure) >/dev/null
	@$(compile) python_venv
	@$(BUILD)/python/venv/bin/python tools/site.py . $(BUILD)/site

reproduce: web
	@$(BUILD)/finetti reproduce $(ARGS)

check:
	@$(setup) build check
	@$(configure) >/dev/null
	@$(compile) tests
	@$(call run_tests,lean)

# What `make check` does not: the other compiler, the sanitizers, the slow tests. Each can be run alone.
check-all:
	@bash tests/stages.sh clang sanitizers races slow

# With clang all that is installed is built, and what computes is run, with clang's OpenMP run-time.
check-clang: override CC := clang
check-clang: override SAN :=
check-clang: override TESTS := ^test_(kernel|math|attention|context)_|^test_(train|bags)_bytes$$
check-clang:
	@$(setup) build check check-all
	@$(configure) >/dev/null
	@$(compile) product test_kernel test_math test_attention test_context test_train test_bags
	@$(call run_tests,lean)

check-sanitizers:
	@tools/setup.sh build check check-all
	@$(MAKE) --no-print-directory check CC=gcc SAN=address,undefined

# What several threads of a caller do at once, under ThreadSanitizer: clang's, whose OpenMP run-time tells it of its locks.
check-races: override CC := clang
check-races: override SAN := thread
check-races:
	@$(setup) build check check-all
	@$(configure) >/dev/null
	@$(compile) test_train test_study
	@bash tests/run.sh $(BUILD) lean 1 '^test_(train|study)_'

check-slow:
	@tools/setup.sh build check check-all
	@$(configure) -D FINETTI_WEB=ON >/dev/null
	@$(compile) tests
	@$(call run_tests,all)

# Real data, laws at full size: five minutes. Nothing here is unguarded in check or check-all; each test says by what.
check-long:
	@tools/setup.sh build check check-all
	@$(configure) >/dev/null
	@$(compile) tests
	@$(call run_tests,long)

# arm64 in an emulator: unit tests and examples, an hour or so. Not part of check-all.
check-arm64:
	@JOBS=$(JOBS) bash tools/arm64.sh build-arm64 $(if $(TESTS),'$(TESTS)')

# Every reader with libFuzzer, one after the other.
fuzz:
	@tools/setup.sh build clang
	@FUZZ_JOBS=$(JOBS) bash tests/fuzz/run.sh $(SECONDS) $(ONLY)

# How many small faults the tests find, one fault at a time, in a copy of the tree; takes an hour or more.
mutants:
	@$(setup) build check
	@tools/mutants.py $(if $(N),-n $(N)) $(if $(SEED),--seed $(SEED)) --jobs $(test_jobs) $(ARGS)

bench:
	@tools/setup.sh build bench
	@$(configure) >/dev/null
	@$(compile) product python_venv
	@BUILD=$(abspath $(BUILD)) bash bench/run.sh $(ARGS)

install: build
	@cmake --install $(BUILD) --prefix $(abspath $(PREFIX))

clean:
	rm -rf build build-clang build-san build-tsan build-clang-san build-clang-tsan build-arm64 build-fuzz build-fuzz.log build-mutants

help:
	@echo 'make            build the library and build/finetti (missing packages are installed first)'
	@echo 'make wheel      the Python package with all it needs, build/dist/finetti-...whl, for pip install'
	@echo 'make dist       the tool with all it needs, build/dist/finetti-...tar.gz, to unpack anywhere'
	@echo 'make deb        Debian packages, in build/deb'
	@echo 'make web        the page to play with, build/web/index.html, which the tool carries from then on (needs clang)'
	@echo 'make reproduce  every claim of the papers, tested in three minutes, and report/index.html'
	@echo 'make check      build and run the tests: five minutes on two cores'
	@echo 'make check-all  what check leaves out, a quarter of an hour: check-clang, check-sanitizers, check-races, check-slow'
	@echo 'make check-long real data and laws at full size: five minutes'
	@echo 'make check-arm64 unit tests and examples for arm64, in an emulator'
	@echo 'make site       the documentation as pages of HTML, build/site/html'
	@echo 'make fuzz       give every reader made-up bytes, with sanitizers; a minute each'
	@echo 'make mutants    how many small faults in the sources the tests find; takes an hour or more'
	@echo 'make bench      time this library beside others, in one run'
	@echo 'make install    install below PREFIX (and DESTDIR, for packagers)'
	@echo 'make clean      remove what was built'
	@echo
	@echo 'PREFIX=/usr/local       where to install'
	@echo 'CC=gcc                  the compiler; CC=clang builds in build-clang'
	@echo 'SAN=address,undefined   build with sanitizers, in build-san'
	@echo 'WERROR=1                warnings are errors'
	@echo 'JOBS=N                  how many things at a time'
	@echo 'TESTS=regex             only the tests whose name matches, as in make check TESTS=kernel'
	@echo 'SECONDS=60              of make fuzz, for each reader'
	@echo 'ONLY="text store"       the readers that make fuzz is to try'
	@echo 'ARGS=...                further words for finetti reproduce and for bench/run.sh'
	@echo 'N=60 SEED=1             how many faults make mutants makes, and which'
	@echo 'FINETTI_SETUP=no        do not look for missing packages'

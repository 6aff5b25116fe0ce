# The few words a person types; CMake does the work below. `make help` explains.

PREFIX  ?= /usr/local
SAN     ?=
WERROR  ?=
TESTS   ?=

ifeq ($(origin CC),default)
CC := gcc
endif

# Each way of building has its own tree, so that changing over costs nothing.
is_clang := $(findstring clang,$(notdir $(firstword $(CC))))
BUILD := build$(if $(is_clang),-clang)$(if $(SAN),-san)

ifdef JOBS
test_jobs := $(JOBS)
else
JOBS := $(shell nproc 2>/dev/null || echo 2)
test_jobs := 2
endif

setup := tools/setup.sh $(if $(is_clang),clang)
configure = cmake -S . -B $(BUILD) -D CMAKE_C_COMPILER=$(CC) \
	-D FINETTI_SANITIZE=$(SAN) -D FINETTI_WERROR=$(if $(filter-out 0 no off,$(WERROR)),ON,OFF)
# CMake starts a make of its own; it must not look for the job server of this one.
compile = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake --build $(BUILD) -j $(JOBS) --target
run_tests = ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(test_jobs) $(if $(TESTS),-R '$(TESTS)')

.NOTPARALLEL:
.PHONY: build wheel reproduce check check-all check-labelled-all bench install clean help

build:
	@$(setup) build
	@$(configure) >/dev/null
	@$(compile) product

wheel:
	@$(setup) build wheel
	@$(configure) >/dev/null
	@$(compile) wheel
	@ls $(BUILD)/python/finetti-*.whl

reproduce: build
	@$(BUILD)/finetti reproduce $(ARGS)

check:
	@$(setup) build check
	@$(configure) >/dev/null
	@$(compile) tests
	@$(run_tests) -L '^lean$$'

# What `make check` does not: the other compiler (all is built with it, and what computes is run), the
# sanitizers, the slow tests.
check-all:
	@tools/setup.sh build check check-all
	@$(MAKE) --no-print-directory check CC=clang SAN= WERROR=1 TESTS='^test_(kernel|math|attention)'
	@$(MAKE) --no-print-directory check CC=gcc SAN=address,undefined
	@$(MAKE) --no-print-directory check-labelled-all CC=gcc SAN=

check-labelled-all:
	@$(configure) >/dev/null
	@$(compile) tests
	@$(subst --no-tests=error,--no-tests=ignore,$(run_tests)) -L '^all$$'

bench:
	@tools/setup.sh build bench
	@$(configure) >/dev/null
	@$(compile) product python_venv
	@BUILD=$(abspath $(BUILD)) bash bench/run.sh $(ARGS)

install: build
	@cmake --install $(BUILD) --prefix $(abspath $(PREFIX))

clean:
	rm -rf build build-clang build-san build-clang-san

help:
	@echo 'make            build the library and build/finetti (missing packages are installed first)'
	@echo 'make wheel      build the Python package, build/python/finetti-...whl, for pip install'
	@echo 'make reproduce  every claim of the papers, tested in half a minute, and report/index.html'
	@echo 'make check      build and run the tests that take a minute'
	@echo 'make check-all  what check leaves out: clang, sanitizers, valgrind and other slow tests'
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
	@echo 'ARGS=...                further words for finetti reproduce and for bench/run.sh'
	@echo 'FINETTI_SETUP=no        do not look for missing packages'

# Thin verbs: every one makes .venv if it must and hands over to a program in it.
SHELL := /bin/bash
.DEFAULT_GOAL := help

WORKLOAD ?= minilm-projection
CONFIG ?= small
SEED ?= 1
SEEDS ?= 1 2 3
JOBS ?= 2
SET ?=
PARAMS ?=
WAVES ?=

BIN := .venv/bin
PY := $(BIN)/python
STAMP := .venv/.ok-$(shell cat requirements.lock requirements-models.lock | cksum | cut -d' ' -f1)
PYTEST := $(PY) -m pytest -q
PARALLEL := -n $(JOBS) --dist loadfile
RUN := $(BIN)/plexus run $(WORKLOAD) --config $(CONFIG) --seed $(SEED) \
	$(foreach s,$(SET),--set $(s)) $(foreach p,$(PARAMS),-p $(p))

export PLEXUS_SEEDS = $(SEEDS)

.PHONY: help setup sim test regress lint types law unit launchers system formal coverage bench explore \
	firmware waves clean

help:
	@echo "make sim       run WORKLOAD ($(WORKLOAD)) at CONFIG ($(CONFIG)); also SET=\"key=value ...\", PARAMS, SEED, WAVES=file"
	@echo "make test      lint, types, law, unit, cocotb and system tests (JUnit in build/)"
	@echo "make regress   the cocotb benches with other seeds: SEEDS=\"4 5 6\""
	@echo "make lint      style            make types     types            make law    import and naming law"
	@echo "make formal    proofs           make coverage  coverage table   make bench  speed and size figures"
	@echo "make explore   SWEEP=file.toml  make waves     make sim with a wave file in build/waves.vcd"
	@echo "make firmware  GPSIMD programs  make setup     only .venv       make clean  remove build/"

setup: $(STAMP)

$(STAMP):
	@tools/setup $(patsubst .venv/.ok-%,%,$@)

sim: $(STAMP)
	@$(RUN) $(if $(WAVES),--waves $(WAVES))

waves: $(STAMP)
	@mkdir -p build
	@$(RUN) --waves $(or $(WAVES),build/waves.vcd)

lint: $(STAMP)
	@$(BIN)/ruff check .

types: $(STAMP)
	@$(BIN)/pyright

law: $(STAMP)
	@$(PYTEST) tests/law

unit: $(STAMP)
	@mkdir -p build
	@$(PYTEST) $(PARALLEL) tests/unit tests/firmware --junitxml build/junit-unit.xml

launchers: $(STAMP)
	@mkdir -p build
	@$(PYTEST) $(PARALLEL) tests/sim --junitxml build/junit-sim.xml

system: $(STAMP)
	@mkdir -p build
	@$(PYTEST) $(PARALLEL) tests/system --junitxml build/junit-system.xml

test: $(STAMP)
	@set -e; for stage in lint types law unit launchers system; do \
		tools/stage $$stage $(MAKE) --no-print-directory $$stage; done

regress: $(STAMP)
	@tools/stage "launchers, seeds $(SEEDS)" $(MAKE) --no-print-directory launchers

formal: $(STAMP)
	@$(PY) -m verif.formal.run

coverage: $(STAMP)
	@mkdir -p build && touch build/coverage-start
	@$(MAKE) --no-print-directory launchers
	@$(PY) -m verif.checks.merge

bench: $(STAMP)
	@$(PY) -m sim.bench

explore: $(STAMP)
	@$(BIN)/plexus explore $(SWEEP) --jobs $(JOBS)

firmware: $(STAMP)
	@$(BIN)/plexus firmware

clean:
	@rm -rf build

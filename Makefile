# Thin verbs: every one makes .venv if it must and hands over to a program in it.
SHELL := /bin/bash
.DEFAULT_GOAL := help

WORKLOAD ?= attention
CONFIG ?= small
FRESH ?=
SEED ?=
SEEDS ?= 1 2 3
JOBS ?= 2
SET ?=
PARAMS ?=
WAVES ?=
UNITS ?=
MUTANTS ?=
WRITE ?=
SWEEP ?= sweeps/memory.toml
REGRESS ?=
TORCH_INDEX ?=

# Not in the lock: an installed torch has a gigabyte, few want it, and the build that pip finds first may be one for GPUs.
TORCH := torch==2.14.1

BIN := .venv/bin
BUILD := $(or $(PLEXUS_BUILD),build)
PY := $(BIN)/python
STAMP := .venv/.ok-$(shell cat requirements.lock requirements-models.lock | cksum | cut -d' ' -f1)
PYTEST := $(PY) -m pytest -q
PARALLEL := -n $(JOBS) --dist loadfile
BY_MODEL := -n $(JOBS) --dist loadgroup --no-loadscope-reorder
SIZES := $(if $(REGRESS),,-m "not regress")
RUN := $(BIN)/plexus run $(WORKLOAD) --config $(CONFIG) $(if $(SEED),--seed $(SEED)) \
	$(foreach s,$(SET),--set $(s)) $(foreach p,$(PARAMS),-p $(p)) --report

# Where it is set, every start of Python compiles all it imports anew: 4 s for each bench.
unexport PYTHONDONTWRITEBYTECODE

export PLEXUS_SEEDS = $(SEEDS)
export FRESH

.PHONY: help setup sim test regress lint types law unit launchers system skips formal mutants coverage accuracy soak bench browser profile \
	explore firmware firmware-tools torch torch-tests waves clean

help:
	@echo "make sim       run WORKLOAD ($(WORKLOAD)) at CONFIG ($(CONFIG)); also SET=\"key=value ...\", PARAMS, SEED, WAVES=file"
	@echo "make test      lint, types, law, unit, cocotb and system tests (JUnit in build/)"
	@echo "make regress   the cocotb benches with other seeds: SEEDS=\"4 5 6\"; switches of 20, 40 and 72 ports; cycles"
	@echo "make lint      style            make types     types            make law    import and naming law"
	@echo "make formal    proofs           make bench     docs/figures.md"
	@echo "make coverage  functional, line and toggle coverage: build/coverage/index.html; units below 90 % need a reason"
	@echo "make mutants   faults that nobody chose against the benches: UNITS=\"fifo alu\"; WRITE=1 renews docs/mutants.md"
	@echo "make soak      a link: 10^7 damaged flits, 1,200 refused ones in chosen states, 10^6 flits a rate"
	@echo "make accuracy  functions against mpmath, docs/accuracy.md; 10^7 MX dot products a pair of formats"
	@echo "make browser   a headless Chromium in build/, for the tests of the page: without it they are skipped"
	@echo "make profile   where a simulation's time goes: RUNS=\"gemm attention mxfp8 idle minilm switch\""
	@echo "make waves     make sim with a wave file in build/waves.vcd      make setup  only .venv"
	@echo "make explore   many runs from one file, to a table and a page: SWEEP=sweeps/attention-exp.toml"
	@echo "make firmware  the library of GPSIMD operators, images of firmware/gpsimd/apps in build/firmware; gets the RISC-V compiler first (101 MB): docs/firmware.md"
	@echo "make torch     PyTorch into .venv, and a first layer on the RTL: docs/pytorch.md; TORCH_INDEX=URL of an index with builds for CPUs; make torch-tests"
	@echo "make clean     remove build/"

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
	@$(PYTEST) tests/law --junitxml build/junit-law.xml

unit: $(STAMP)
	@mkdir -p build
	@$(PYTEST) -n $(JOBS) --dist worksteal $(SIZES) tests/unit tests/firmware --junitxml build/junit-unit.xml

launchers: $(STAMP)
	@mkdir -p build
	@$(PYTEST) $(BY_MODEL) $(SIZES) tests/sim --junitxml build/junit-sim.xml

system: $(STAMP)
	@mkdir -p build
	@$(PYTEST) $(PARALLEL) $(SIZES) tests/system --junitxml build/junit-system.xml

test: $(STAMP)
	@mkdir -p build && touch build/test-start
	@$(PY) tools/stages lint types+law unit launchers system skips

skips: $(STAMP)
	@$(PY) -m verif.checks.skips

regress: $(STAMP)
	@tools/stage "unit and system, other sizes" $(PYTEST) -n $(JOBS) --dist worksteal -m regress tests/unit tests/system
	@tools/stage "launchers, all sizes, seeds $(SEEDS)" $(MAKE) --no-print-directory REGRESS=1 launchers
	@tools/stage "switches of 20, 40 and 72 ports" $(PY) -m verif.checks.switch_presets --run
	@tools/stage "every top emitted, for Yosys and lint" $(PY) -m verif.checks.emitted
	@tools/stage "the whole ledger of cycles" $(PY) -m verif.checks.cycles

formal: $(STAMP)
	@$(PY) -m verif.formal.run

mutants: $(STAMP)
	@$(PY) -m verif.mutants $(UNITS) --jobs $(JOBS) $(if $(MUTANTS),--mutants $(MUTANTS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(WRITE),--write)

coverage: $(STAMP)
	@mkdir -p $(BUILD) && touch $(BUILD)/coverage-start
	@PLEXUS_COVERAGE=1 $(PYTEST) $(BY_MODEL) $(SIZES) tests/sim/test_benches.py::test_bench
	@$(PY) -m verif.checks.merge; functional=$$?; $(PY) -m verif.checks.code_coverage && exit $$functional

accuracy: $(STAMP)
	@$(PY) -m verif.accuracy.report
	@$(PY) -m verif.checks.mx_dot

soak: $(STAMP)
	@$(PY) -m verif.checks.codec_soak
	@$(PY) -m verif.checks.link_placed
	@$(PY) -m verif.checks.link_markers
	@$(PY) -m sim.figures.link
	@$(PY) -m sim.figures.switch --soak

bench: $(STAMP)
	@$(PY) -m sim.bench
	@$(PY) -m sim.figures.page

browser: $(STAMP)
	@$(PY) -m sim.page.fetch_browser

profile: $(STAMP)
	@$(PY) -m sim.figures.profile $(RUNS)

explore: $(STAMP)
	@$(BIN)/plexus explore $(SWEEP) --jobs $(JOBS)

firmware-tools: $(STAMP)
	@$(PY) tools/extra firmware

firmware: firmware-tools
	@$(PY) -m firmware.gpsimd.library --write
	@for app in firmware/gpsimd/apps/*.cpp firmware/gpsimd/apps/*/*.cpp; do \
		name=$${app##*/}; $(BIN)/plexus firmware build $$app -o $(BUILD)/firmware/$${name%.*}.elf || exit; done

torch: $(STAMP)
	@$(PY) tools/torch_packages $(TORCH) $(TORCH_INDEX)
	@$(PY) -m sim.torch.examples.first --config tiny

torch-tests: torch
	@$(BIN)/pyright --project sim/torch/pyrightconfig.json
	@$(PYTEST) -n $(JOBS) --dist worksteal tests/unit/torch tests/unit/test_torch_missing.py tests/system/test_torch.py \
		--junitxml $(BUILD)/junit-torch.xml

clean:
	@rm -rf build

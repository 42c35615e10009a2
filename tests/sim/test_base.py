"""Launchers of the benches of rtl/base."""

import ctypes
from pathlib import Path

import pytest

from rtl.base.fifo import Fifo, RamFifo
from rtl.emit.verilog import emit
from sim.build.compile import compile_model
from sim.progress import progress
from sim.toolchain import ROOT, activate
from verif.benches.base.gate_top import GateTop
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

FIFO = "verif.benches.base.bench_fifo"
SHAPE = {"shape": 16, "depth": 4}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("top", ["fifo", "ram_fifo"])
def test_fifo(top: str, seed: int) -> None:
    must_pass(top, FIFO, seed, options=SHAPE)


@pytest.mark.parametrize("fault", faults_of(Fifo))
def test_fifo_fault_is_noticed(fault: int) -> None:
    must_notice("fifo", FIFO, fault, options=SHAPE)


@pytest.mark.parametrize("fault", faults_of(RamFifo))
def test_ram_fifo_fault_is_noticed(fault: int) -> None:
    must_notice("ram_fifo", FIFO, fault, options=SHAPE)


GATE = "verif.benches.base.bench_clock_gate"


@pytest.mark.parametrize("seed", SEEDS)
def test_clock_gate(seed: int) -> None:
    must_pass("clock_gate", GATE, seed)


@pytest.mark.parametrize("fault", faults_of(GateTop))
def test_clock_gate_fault_is_noticed(fault: int) -> None:
    must_notice("clock_gate", GATE, fault)


def test_clock_gate_under_a_native_driver(tmp_path: Path) -> None:
    """The same promise where no cocotb settles the model between two evaluations."""
    activate()
    driver = ROOT / "verif" / "benches" / "base" / "gate_drive.cpp"
    with progress("clock gate") as steps:
        name = compile_model(tmp_path, emit(GateTop(), "top"), "native", extra_cpp=[driver], progress=steps)
    drive = ctypes.CDLL(str(tmp_path / name)).gate_drive
    drive.argtypes, drive.restype = [ctypes.c_long, ctypes.c_uint64], ctypes.c_long
    for seed in SEEDS:
        assert drive(100_000, seed) == -1, "the first cycle that differs"

"""The clock gate's promise under a driver that is not cocotb."""

import ctypes
from pathlib import Path

import pytest

from rtl.emit.verilog import emit
from sim.compile import compile_model
from sim.progress import progress
from sim.toolchain import ROOT, activate
from verif.bench import SEEDS
from verif.benches.base.gate_top import GateTop

pytestmark = pytest.mark.sim


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

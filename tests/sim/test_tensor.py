"""Launchers of the benches of the systolic array, bottom-up, and of the proof that its two forms are one."""

import re
from pathlib import Path

import pytest

from rtl.contract.config import Config, load, named
from rtl.tensor.native import NativeArray
from rtl.tensor.pe import PE
from rtl.tensor.structural import StructuralArray
from rtl.tensor.tile import Tile
from sim.run.runner import run_bench
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

PE_BENCH = "verif.benches.tensor.bench_pe"
TILE_BENCH = "verif.benches.tensor.bench_tile"
ARRAY_BENCH = "verif.benches.tensor.bench_array"
LOCKSTEP = "verif.benches.tensor.bench_lockstep"

TILED = load("small", ["tensor.cols=8", "tensor.nvfp4=true"])
"""Four row groups in the smallest array that has them, and every kind of beat."""

SIZES = {
    "8x8": named("tiny"),
    "8x8 without MX": load("tiny", ["tensor.mx=false"]),
    "16x8": load("small", ["tensor.rows=16", "tensor.cols=8"]),
    "16x8 without sparsity": load("small", ["tensor.rows=16", "tensor.cols=8", "tensor.sparsity=false"]),
    "32x32": named("small"),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_pe(seed: int) -> None:
    must_pass("pe", PE_BENCH, seed)


@pytest.mark.parametrize("fault", faults_of(PE))
def test_pe_fault_is_noticed(fault: int) -> None:
    must_notice("pe", PE_BENCH, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_tile(seed: int) -> None:
    must_pass("tile", TILE_BENCH, seed)


@pytest.mark.parametrize("fault", faults_of(Tile))
def test_tile_fault_is_noticed(fault: int) -> None:
    must_notice("tile", TILE_BENCH, fault)


@pytest.mark.parametrize("seed", SEEDS)
def test_array(seed: int) -> None:
    must_pass("array", ARRAY_BENCH, seed, TILED)


def test_array_of_one_row_group() -> None:
    must_pass("array", ARRAY_BENCH, 1)


@pytest.mark.parametrize("fault", faults_of(StructuralArray))
def test_array_fault_is_noticed(fault: int) -> None:
    must_notice("array", ARRAY_BENCH, fault, TILED)


PATHS = {"avx512": {"avx512f"}, "avx2": {"avx2", "fma"}, "portable": set[str]()}
"""Instruction sets of the native model, and the flags of a processor that has them."""


def host_flags() -> set[str]:
    """What Linux says that the processor can do."""
    file = Path("/proc/cpuinfo")
    flags = re.search(r"^flags\s*:(.*)$", file.read_text(), re.MULTILINE) if file.exists() else None
    return set(flags[1].split()) if flags else set()


@pytest.mark.parametrize("path", PATHS)
def test_native_array_at_full_size(path: str) -> None:
    """Every instruction set of the C++ model, at the size where its widest loops run."""
    if missing := PATHS[path] - host_flags():
        pytest.skip(f"this processor has no {', '.join(sorted(missing))}")
    verdict = run_bench(
        "array",
        ARRAY_BENCH,
        named("full"),
        options={"form": "native"},
        environment={"PLEXUS_NATIVE_PATH": path},
    ).require()
    assert f"plexus_native_array uses {path}\n" in (verdict.folder / "run.log").read_text()


@pytest.mark.parametrize("seed", SEEDS)
def test_forms_in_lockstep(seed: int) -> None:
    must_pass("array_lockstep", LOCKSTEP, seed, TILED)


@pytest.mark.parametrize("size", list(SIZES))
def test_forms_in_lockstep_at_other_sizes(size: str) -> None:
    cfg: Config = SIZES[size]
    must_pass("array_lockstep", LOCKSTEP, 1, cfg, planted=False)


@pytest.mark.parametrize("fault", faults_of(NativeArray))
def test_lockstep_notices_fault_of_native_form(fault: int) -> None:
    must_notice("array_lockstep", LOCKSTEP, fault, TILED)

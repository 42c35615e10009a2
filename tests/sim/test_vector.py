"""Launchers of the vector engine's bench, at the clock ratios of the named configurations and between."""

import pytest

from rtl.contract.config import load
from rtl.vector.engine import VectorEngine
from rtl.vector.lanes import Lanes
from rtl.vector.quantize import QuantizeMx
from verif.launch import SEEDS, faults_of, must_notice, must_pass

pytestmark = pytest.mark.sim

BENCH = "verif.benches.vector.bench_engine"
INSTRUCTIONS = "verif.benches.vector.bench_instructions"
QUANTIZE = "verif.benches.vector.bench_quantize"
OF_QUANTIZE = (75, 76, *QuantizeMx.FAULTS)
WIDE = load("tiny", ["partitions=64", "sbuf.partition_bytes=2048"])
"""Several blocks of MX elements, two groups of their scales."""
SEVERAL_BLOCKS = (243,)
"""Faults that show only there."""
OF_INSTRUCTIONS = (73, 74, 77, 82, 94, *(n for n in Lanes.FAULTS if n > 100 and n not in OF_QUANTIZE))
"""Faults that copies cannot show."""


@pytest.mark.parametrize("seed", SEEDS)
def test_vector_engine_at_half_the_clock(seed: int) -> None:
    must_pass("vector_engine", BENCH, seed)


@pytest.mark.parametrize("mhz", [960, 1800])
def test_vector_engine_at_other_ratios(mhz: int) -> None:
    must_pass("vector_engine", BENCH, SEEDS[0], load("tiny", [f"vector.clock_mhz={mhz}"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_vector_instructions(seed: int) -> None:
    must_pass("vector_engine", INSTRUCTIONS, seed)


@pytest.mark.parametrize("mhz", [960, 1800])
def test_vector_instructions_at_other_ratios(mhz: int) -> None:
    must_pass("vector_engine", INSTRUCTIONS, SEEDS[0], load("tiny", [f"vector.clock_mhz={mhz}"]))


@pytest.mark.parametrize("fault", faults_of(VectorEngine))
def test_vector_engine_fault_is_noticed(fault: int) -> None:
    bench = QUANTIZE if fault in OF_QUANTIZE else INSTRUCTIONS if fault in OF_INSTRUCTIONS else BENCH
    must_notice("vector_engine", bench, fault, WIDE if fault in SEVERAL_BLOCKS else "tiny")


@pytest.mark.parametrize("seed", SEEDS)
def test_vector_quantize(seed: int) -> None:
    must_pass("vector_engine", QUANTIZE, seed)


def test_vector_quantize_of_several_blocks() -> None:
    must_pass("vector_engine", QUANTIZE, SEEDS[0], WIDE)


@pytest.mark.parametrize("mhz", [960, 1800])
def test_vector_quantize_at_other_ratios(mhz: int) -> None:
    must_pass("vector_engine", QUANTIZE, SEEDS[0], load("tiny", [f"vector.clock_mhz={mhz}"]))

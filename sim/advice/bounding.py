"""What bounds a run: fewest cycles of each part of the machine, and the part that its cycles were spent on."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from firmware.program import Program
from rtl.contract.config import Config
from sim.run.result import RunResult

__all__ = ["Bounding", "bounding", "bounds"]

MOVER_BYTES = 16  # a mover moves so much a cycle
BOUNDING_SHARE = 0.5  # below this nothing bounds the run but waiting for each other
_COMPUTE = ("tensor", "vector", "scalar", "gpsimd")


def bounds(cfg: Config, program: Program, hbm_bytes: int, one_way: int = 0) -> dict[str, int]:
    """Fewest cycles that each part of the machine needs for this work, by name, rounded up.

    compute: every PE does as many useful multiply-adds each cycle as its kind of elements allows. hbm: bytes at full
    bandwidth, or those of one direction, `one_way`, over the ports, if that is more. vector_port, scalar_port: elements
    over the rate of their instruction. dma_port: 16 bytes a mover a cycle.
    """
    moved = sum(d.bytes for d in program.copies())
    exact = {
        "compute": program.macs / (cfg.tensor.rows * cfg.tensor.cols * program.pe_macs),
        "hbm": max(Fraction(hbm_bytes, cfg.hbm.bytes_per_cycle), Fraction(one_way, cfg.hbm.ports * cfg.hbm.port_bytes)),
        "vector_port": program.vector_cycles * Fraction(cfg.tensor.clock_mhz, cfg.vector.clock_mhz),
        "scalar_port": program.scalar_cycles * Fraction(cfg.tensor.clock_mhz, cfg.scalar.clock_mhz),
        "dma_port": Fraction(moved, MOVER_BYTES * cfg.dma.engines),
    }
    return {name: -(-value.numerator // value.denominator) for name, value in exact.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounding:
    """What most of the cycles went to. Shares are parts of the run's cycles."""

    engine: str  # an engine, "hbm", or "latency" if nothing is busy half of the time
    share: float  # how busy that is; with "latency", the busiest engine
    busiest: str  # the engine meant by `share` and `stall`
    stall: str  # the largest stall cause of that engine, or nothing
    stall_share: float


def bounding(result: RunResult, limits: Mapping[str, int]) -> Bounding:
    """What bounds `result`; `limits` are its `bounds`.

    The busiest of the computing engines. HBM or the DMA if the bound of HBM or of the DMA's ports is nearer than that
    engine's busy cycles: HBM if its bound is the nearer one and half of the run. The DMA too if no computing engine
    is busy half of the time and it is busier.
    """
    cycles = max(1, result.cycles)
    busy = {name: engine.busy / cycles for name, engine in result.engines.items()}
    busiest = max(_COMPUTE, key=lambda name: busy[name])
    hbm, port = limits["hbm"] / cycles, limits["dma_port"] / cycles
    by_hbm = hbm >= max(port, BOUNDING_SHARE) and hbm > busy[busiest]
    waits = busy[busiest] < min(BOUNDING_SHARE, busy["dma"])
    if by_hbm or waits or port > busy[busiest]:
        busiest = "dma"
    share = hbm if by_hbm else busy[busiest]
    stalls = result.engines[busiest].stall
    stall = max(stalls, key=lambda cause: stalls[cause])
    return Bounding(
        engine="latency" if share < BOUNDING_SHARE else "hbm" if by_hbm else busiest,
        share=round(share, 6),
        busiest=busiest,
        stall=stall if stalls[stall] else "",
        stall_share=round(stalls[stall] / cycles, 6),
    )

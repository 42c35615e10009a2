"""Which engine bounds a run, and the sentence about it, on made-up counters."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest

from firmware.program import Descriptor, Instruction, Place, Program
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.config import Config, load, named
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Opcode, Queue
from rtl.contract.memmap import Space
from rtl.contract.timing import STALLS, Engine
from sim.native.library import RETIRED
from sim.report.bounding import bounding, bounds
from sim.report.relief import heaviest, relief
from sim.report.relief_settings import relief_settings
from sim.run.result import EngineCycles, RunResult

CFG = named("small")
CYCLES = 1000


def pattern(dtype: str, space: Space = Space.SBUF, offset: int = 0, count: int = 64) -> AccessPattern:
    return AccessPattern(
        space=space,
        dtype=FORMATS[dtype].code,
        partition_start=0,
        partition_count=8,
        offset=offset,
        dims=((1, count), (0, 1), (0, 1), (0, 1)),
    )


def vector(opcode: Opcode, src: AccessPattern, dst: AccessPattern, cfg: Config = CFG) -> Program:
    two = src if opcode == Opcode.TENSOR_TENSOR else None
    queue = [Instruction(opcode=opcode, update=0, src0=src, src1=two, dst=dst)]
    return Program(name="made up", config=cfg, queues={Queue.VECTOR: queue})


def rows(row_bytes: int, count: int) -> Program:
    descriptor = Descriptor(
        source=Place(Space.HBM, 0, "A"),
        destination=Place(Space.SBUF, 0),
        row_bytes=row_bytes,
        dims=((count, row_bytes, 1 << 18),),
        signal=0,
    )
    return Program(name="made up", config=CFG, rings=[[descriptor]])


def run(busy: Mapping[str, int], stall: Mapping[str, Mapping[str, int]] | None = None) -> RunResult:
    engines = {}
    for engine in Engine:
        name = engine.name.lower()
        stalls = {**dict.fromkeys(STALLS[engine], 0), **(stall or {}).get(name, {})}
        idle = CYCLES - busy.get(name, 0) - sum(stalls.values())
        engines[name] = EngineCycles(busy=busy.get(name, 0), idle=idle, stall=stalls)
    return RunResult(
        device="rtl",
        end="done",
        message="",
        cycles=CYCLES,
        engines=engines,
        windows={},
        hbm_bytes_read=0,
        hbm_bytes_written=0,
        conflicts={},
        faults=(),
        outputs={},
        wall_seconds=0.0,
        cpu_seconds=0.0,
        retired=np.empty(0, RETIRED),
        retired_total=0,
    )


def said(result: RunResult, program: Program | None = None, *, cfg: Config = CFG, hbm: int = 0) -> tuple[str, str]:
    """Name of what bounds, and the sentence."""
    program = program or Program(name="made up", config=cfg)
    bound = bounding(result, bounds(cfg, program, hbm))
    text = relief(cfg, program, result, bound)
    assert text[0].isupper() and text.endswith(".") and "{" not in text
    return bound.engine, text


def test_the_busiest_engine_bounds() -> None:
    result = run({"tensor": 600, "vector": 800, "dma": 900}, {"vector": {"semaphore": 20, "psum": 50}})
    bound = bounding(result, bounds(CFG, Program(name="", config=CFG), 0))
    assert (bound.engine, bound.busiest, bound.share) == ("vector", "vector", 0.8)
    assert (bound.stall, bound.stall_share) == ("psum", 0.05)


def test_nearer_bound_of_movement_wins() -> None:
    result = run({"vector": 700, "dma": 950})
    assert said(result, hbm=64 * 690)[0] == "vector"
    engine, text = said(result, hbm=64 * 880)
    assert engine == "hbm" and "hbm.bytes_per_cycle (now 64)" in text
    fetched = dataclasses.replace(result, hbm_bytes_read=64 * 880)
    assert said(fetched, hbm=64 * 880)[1] == (
        "Fewer, longer instructions would relieve it: 100 % of the bytes are instructions."
    )
    program = rows(1024, 900 * 64 // 1024 + 1)
    assert said(result, program, hbm=64 * 100)[0] == "dma"


def test_dma_that_is_busy_alone() -> None:
    result = run({"vector": 100, "dma": 700}, {"dma": {"hbm_latency": 200}})
    assert said(result, rows(64, 100)) == (
        "dma", "Longer rows would relieve it: they have 64 bytes on average."
    )  # fmt: skip
    engine, text = said(result, rows(2048, 4))
    assert engine == "dma" and "dma.buffer_bytes (now 8192)" in text and "hbm.latency_ns (now 100)" in text
    assert "dma.engines (now 4)" in said(run({"dma": 700}), rows(2048, 4))[1]


@pytest.mark.parametrize("cause", [c for c in STALLS[Engine.VECTOR] if c != "fault"])
def test_latency_names_the_wait(cause: str) -> None:
    engine, text = said(run({"vector": 200}, {"vector": {cause: 300}}))
    keys = {
        "semaphore": "more buffers in flight would let the vector engine work",
        "fetch": "issue.queue_depth (now 16)",
        "sbuf": "sbuf.banks (now 4)",
        "psum": "psum.banks (now 8)",
        "fill": "fill the pipeline of the vector engine less often",
        "drain": "hide the draining of the vector engine",
        "clock": "vector.clock_mhz (now 1200)",
        "unit": "longer groups",
    }
    assert engine == "latency" and keys[cause].lower() in text.lower()


@pytest.mark.parametrize("engine", Engine)
def test_every_stall_has_a_sentence(engine: Engine) -> None:
    for cause in STALLS[engine]:
        name = engine.name.lower()
        assert said(run({name: 300}, {name: {cause: 100}}))[0] == "latency"


def test_nothing_stalls() -> None:
    engine, text = said(run({"tensor": 100}))
    assert engine == "latency" and text.startswith("A longer problem would hide")


def test_tensor() -> None:
    program = Program(name="", config=CFG, macs=32 * 32 * 400)
    result = run({"tensor": 800}, {"tensor": {"load": 100}})
    engine, text = said(result, program)
    assert engine == "tensor" and "tensor.rows (now 32)" in text and "use 50 % of it" in text
    full = dataclasses.replace(program, macs=32 * 32 * 800)
    assert "tensor.moving_max (now 512)" in said(result, full)[1]
    assert "tensor.clock_mhz (now 2400)" in said(run({"tensor": 990}), full)[1]


def test_vector_exp() -> None:
    result = run({"vector": 800, "scalar": 700})
    wide = vector(Opcode.EXP, pattern("fp32"), pattern("bf16"))
    assert (
        "16 bits at aligned offsets would let exp run vector.exp_rate (now 4) a cycle, not 2" in (said(result, wide)[1])
    )
    old = load("small", ["vector.exp_rate=1"])
    slow = vector(Opcode.EXP, pattern("bf16"), pattern("bf16"), old)
    assert "A higher vector.exp_rate (now 1)" in said(result, slow, cfg=old)[1]
    best = vector(Opcode.EXP, pattern("bf16"), pattern("bf16"))
    assert "vector.clock_mhz (now 1200)" in said(result, best)[1]
    assert said(run({"vector": 800, "scalar": 70}), best)[1] == (
        "Some of exp on the scalar engine, which is 7 % busy, would relieve it."
    )


def test_vector_other_instructions() -> None:
    result = run({"vector": 800, "scalar": 700})
    copies = vector(Opcode.TENSOR_COPY, pattern("fp32"), pattern("fp32"))
    assert "16 bits in SBUF at aligned offsets would let tensor_copy run 4 a cycle, not 1" in (said(result, copies)[1])
    sums = vector(Opcode.TENSOR_TENSOR, pattern("fp32"), pattern("fp32"))
    assert "would let tensor_tensor run 2 a cycle, not 0.5" in said(result, sums)[1]
    psum = vector(Opcode.TENSOR_COPY, pattern("fp32", Space.PSUM), pattern("bf16"))
    assert "vector.clock_mhz" in said(result, psum)[1]
    assert "some of tensor_copy on the scalar engine" in said(run({"vector": 800}), psum)[1].lower()
    one = vector(Opcode.RECIPROCAL, pattern("fp32"), pattern("fp32"))
    assert "8 cycles an element" in said(result, one)[1]
    assert "vector.clock_mhz" in said(result)[1]  # no instructions are known


def test_scalar() -> None:
    engine, text = said(run({"scalar": 800, "vector": 100}))
    assert engine == "scalar" and "the vector engine, which is 10 % busy" in text
    assert "scalar.clock_mhz (now 1200)" in said(run({"scalar": 800, "vector": 700}))[1]


def test_a_run_without_cycles() -> None:
    result = dataclasses.replace(run({}), cycles=0)
    assert said(result)[0] == "latency"


@pytest.mark.parametrize(("clock", "cycles"), [(1200, 128), (600, 256), (2400, 64), (960, 160)])
def test_scalar_bound_counts_by_its_own_clock(clock: int, cycles: int) -> None:
    cfg = load("small", [f"scalar.clock_mhz={clock}"])
    one = Instruction(opcode=Opcode.ACTIVATION, update=0, src0=pattern("bf16"), dst=pattern("bf16"))
    limits = bounds(cfg, Program(name="", config=cfg, queues={Queue.SCALAR: [one]}), 0)
    assert limits["scalar_port"] == cycles and limits["vector_port"] == 0


def test_instruction_fetch_alone_does_not_make_the_dma_the_busiest() -> None:
    result = run({"vector": 200, "dma": 40})
    bound = bounding(result, bounds(CFG, Program(name="", config=CFG), 64 * 300))
    assert (bound.engine, bound.busiest, bound.share) == ("latency", "vector", 0.2)


def settings(result: RunResult, program: Program | None = None, *, cfg: Config = CFG) -> list[str]:
    """What the report tells to set."""
    program = program or Program(name="made up", config=cfg)
    ways = result.hbm_bytes_read, result.hbm_bytes_written
    bound = bounding(result, bounds(cfg, program, sum(ways), max(ways)))
    return relief_settings(cfg, program, result, bound, heaviest(program))


def moves(busy: int, read: int, written: int = 0, cfg: Config = CFG) -> tuple[RunResult, Program]:
    """A run of copies: rows of 4 KiB."""
    program = dataclasses.replace(rows(4096, (read + written) // 4096), config=cfg)
    return dataclasses.replace(run({"dma": busy}), hbm_bytes_read=read, hbm_bytes_written=written), program


def test_movers_and_hbm_that_are_as_near_their_limits_are_moved_together() -> None:
    """4 movers of 16 bytes a cycle behind HBM of 64: neither alone helps; nor do ports of 64 bytes, one way."""
    one_way, both_ways = moves(960, 61_440), moves(960, 32_768, 28_672)
    assert settings(*one_way) == ["hbm.port_bytes=128", "hbm.bytes_per_cycle=128", "dma.engines=8"]
    assert settings(*both_ways) == ["hbm.bytes_per_cycle=128", "dma.engines=8"]
    text = said(one_way[0], one_way[1], hbm=61_440)[1]
    assert "dma.engines (now 4)" in text and "hbm.bytes_per_cycle (now 64)" in text


def test_what_goes_mostly_one_way_needs_wider_ports_too() -> None:
    """Bandwidth and movers alone would lower the bound by a tenth, and the run by a thirtieth."""
    result, program = moves(960, 53_248, 8_192)
    assert settings(result, program) == ["hbm.bytes_per_cycle=128", "dma.engines=8", "hbm.port_bytes=128"]
    assert "through wider ports, hbm.port_bytes (now 64)" in said(result, program, hbm=61_440)[1]


def test_no_more_movers_than_half_of_the_partitions() -> None:
    tiny = load("tiny", ["hbm.bytes_per_cycle=64"])
    assert settings(*moves(960, 32_768, 28_672, tiny), cfg=tiny) == []


def test_settings_by_what_bounds() -> None:
    full = Program(name="", config=CFG, macs=32 * 32 * 990)
    assert settings(run({"tensor": 990}), full) == []  # the array is as large as its partitions allow
    wide = load("small", ["partitions=64"])
    assert settings(run({"tensor": 990}), full, cfg=wide) == ["tensor.rows=64", "tensor.cols=64"]
    assert settings(run({"vector": 800})) == ["vector.clock_mhz=2400"]
    assert settings(run({"vector": 800}), cfg=load("small", ["vector.clock_mhz=2400"])) == []
    slow = load("small", ["vector.exp_rate=1"])
    exp = vector(Opcode.EXP, pattern("bf16"), pattern("bf16"), slow)
    assert settings(run({"vector": 800}), exp, cfg=slow) == ["vector.exp_rate=2"]
    assert settings(run({"scalar": 800})) == ["scalar.clock_mhz=2400"]
    assert settings(run({"vector": 200}, {"vector": {"fetch": 300}})) == ["issue.queue_depth=32"]
    assert settings(run({"vector": 200}, {"vector": {"semaphore": 300}})) == []
    waits = run({"vector": 200}, {"vector": {"semaphore": 300}, "dma": {"hbm_latency": 200}})
    assert settings(waits) == ["hbm.latency_ns=50"]

"""Which engine bounds a run, and what the rules say, on made-up counters without a trace."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest

from firmware.kernel import Kernel
from firmware.program import Descriptor, Instruction, Place, Program
from rtl.contract.access_pattern import AccessPattern
from rtl.contract.config import Config, load, named
from rtl.contract.formats import FORMATS
from rtl.contract.isa import Function, Opcode, Queue
from rtl.contract.memmap import Space
from rtl.contract.timing import STALLS, Engine
from sim.advice.advise import RULES, advise, no_advice
from sim.advice.bounding import bounding, bounds
from sim.advice.facts import facts_of
from sim.advice.rule import Rule
from sim.native.library import RETIRED
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


def told(result: RunResult, program: Program | None = None, *, cfg: Config = CFG) -> dict[str, tuple[str, list[str]]]:
    """Sentence and settings by rule, in their order."""
    found = advise(facts_of(cfg, program or Program(name="made up", config=cfg), result))
    for advice in found:
        assert advice.text[0].isupper() and advice.text.endswith(".") and "{" not in advice.text
        assert 0 < advice.share <= 1
    assert [a.share for a in found] == sorted((a.share for a in found), reverse=True)
    return {advice.rule: (advice.text, list(advice.settings)) for advice in found}


def test_the_busiest_engine_bounds() -> None:
    result = run({"tensor": 600, "vector": 800, "dma": 900}, {"vector": {"semaphore": 20, "psum": 50}})
    bound = bounding(result, bounds(CFG, Program(name="", config=CFG), 0))
    assert (bound.engine, bound.busiest, bound.share) == ("vector", "vector", 0.8)
    assert (bound.stall, bound.stall_share) == ("psum", 0.05)


def read(result: RunResult, read_bytes: int, written: int = 0) -> RunResult:
    """With bytes of HBM."""
    return dataclasses.replace(result, hbm_bytes_read=read_bytes, hbm_bytes_written=written)


def moves(busy: int, read_bytes: int, written: int = 0, cfg: Config = CFG) -> tuple[RunResult, Program]:
    """A run of copies: rows of 4 KiB."""
    program = dataclasses.replace(rows(4096, (read_bytes + written) // 4096), config=cfg)
    return read(run({"dma": busy}), read_bytes, written), program


def test_nearer_bound_of_movement_wins() -> None:
    result = run({"vector": 700, "dma": 950})
    program = Program(name="", config=CFG)
    assert bounding(result, bounds(CFG, program, 64 * 690)).engine == "vector"
    assert bounding(result, bounds(CFG, program, 64 * 880)).engine == "hbm"
    fetched = told(read(result, 64 * 880))
    assert fetched["fetched-bytes"][0].startswith("Fewer, longer instructions would relieve HBM: 100 % of its bytes")
    port = rows(1024, 900 * 64 // 1024 + 1)
    assert bounding(result, bounds(CFG, port, 64 * 100)).engine == "dma"


def test_what_a_program_copies_is_not_fetched() -> None:
    """Ten instructions of 128 bytes, of which one runs a program that moved the rest."""
    nop, runs = (Instruction(opcode=op, update=0) for op in (Opcode.NOP, Opcode.GP_RUN))
    program = Program(name="", config=CFG, queues={Queue.GPSIMD: [*[nop] * 9, runs]})
    result = read(run({"dma": 950}), 12_800)
    assert facts_of(CFG, program, result).fetched_share == 0.1
    without = dataclasses.replace(program, queues={Queue.GPSIMD: [nop] * 10})
    assert facts_of(CFG, without, result).fetched_share == 1.0


def test_rows_that_are_shorter_than_what_hbm_moves_meanwhile() -> None:
    """200 ns are 480 cycles, in which 4 movers, and a port, wait for 256 rows: 64 bytes a cycle want rows of 120."""
    result = run({"dma": 700}, {"dma": {"hbm_latency": 200}})
    far = load("small", ["hbm.latency_ns=200"])
    text = told(result, rows(64, 150), cfg=far)["short-rows"][0]
    assert text.startswith("Longer rows") and "they have 64 bytes on average, and HBM moves 120" in text
    assert "short-rows" not in told(result, rows(128, 150), cfg=far)
    assert "short-rows" not in told(result, rows(64, 50), cfg=far)  # 44 cycles of a thousand
    more = load("small", ["hbm.latency_ns=200", "dma.engines=8"])  # of which the port waits for as many
    assert told(result, rows(64, 150), cfg=more)["short-rows"][0] == text
    near = load("small", ["hbm.latency_ns=10"])
    assert "short-rows" not in told(result, rows(64, 300), cfg=near)
    assert "short-rows" in told(result, rows(32, 300), cfg=near)  # half a beat of the port


def test_latency_halves() -> None:
    far = told(run({"dma": 700}, {"dma": {"hbm_latency": 200}}), rows(2048, 4))
    assert far["latency"][1] == ["hbm.latency_ns=50"]
    at_once = load("small", ["hbm.latency_ns=1"])
    assert "latency" not in told(run({"dma": 700}, {"dma": {"hbm_latency": 200}}), cfg=at_once)


@pytest.mark.parametrize(
    ("stall", "rule", "key", "settings"),
    [
        ("fetch", "fetch", "issue.queue_depth (now 16)", ["issue.queue_depth=32"]),
        ("sbuf", "sbuf-banks", "sbuf.banks (now 4)", ["sbuf.banks=8"]),
        ("psum", "psum-banks", "another would end its refusals", []),
        ("fill", "short-instructions", "fewer, longer instructions", []),
        ("drain", "short-instructions", "the pipeline of the vector engine", []),
        ("clock", "engine-clock", "vector.clock_mhz (now 1200)", ["vector.clock_mhz=2400"]),
    ],
)
def test_waits_of_an_engine(stall: str, rule: str, key: str, settings: list[str]) -> None:
    copies = vector(Opcode.TENSOR_COPY, pattern("fp32"), pattern("fp32"))
    many = dataclasses.replace(copies, queues={Queue.VECTOR: copies.queues[Queue.VECTOR] * 20})
    text, sets = told(run({"vector": 200}, {"vector": {stall: 300}}), many)[rule]
    assert key.lower() in text.lower() and sets == settings


def test_a_deeper_queue_does_not_hide_a_full_hbm() -> None:
    copies = vector(Opcode.TENSOR_COPY, pattern("fp32"), pattern("fp32"))
    many = dataclasses.replace(copies, queues={Queue.VECTOR: copies.queues[Queue.VECTOR] * 20})
    text, sets = told(read(run({"vector": 900}, {"vector": {"fetch": 90}}), 64 * 800), many)["fetch"]
    assert text.startswith("Fewer, longer instructions") and sets == []
    assert "fetch" not in told(run({"vector": 200}, {"vector": {"fetch": 300}}), copies)  # one is fetched first


def test_nothing_stalls() -> None:
    result = run({"tensor": 100})
    assert told(result) == {}
    facts = facts_of(CFG, Program(name="", config=CFG), result)
    assert no_advice(facts).startswith("No rule applies; a longer problem")


def test_a_run_that_broke_off_gets_no_advice() -> None:
    result = dataclasses.replace(run({"vector": 200}, {"vector": {"fetch": 300}}), end="fault")
    assert told(result) == {}
    assert "mended first" in no_advice(facts_of(CFG, Program(name="", config=CFG), result))
    assert told(dataclasses.replace(run({}), cycles=0)) == {}


def products(count: int, accumulate: bool, macs: int, cfg: Config = CFG) -> Program:
    """As many loads and products of 64 columns, all but the first on top of it if `accumulate`."""
    load_ = Instruction(opcode=Opcode.LOAD_STATIONARY, update=0, src0=pattern("bf16"))
    queue = [
        i
        for n in range(count)
        for i in (
            load_,
            Instruction(
                opcode=Opcode.MULTIPLY_MOVING,
                update=0,
                src0=pattern("bf16"),
                dst=pattern("fp32", Space.PSUM),
                accumulate=accumulate and n % 2 > 0,
            ),
        )
    ]
    return Program(name="", config=cfg, queues={Queue.TENSOR: queue}, macs=macs)


def test_tensor() -> None:
    program = products(16, True, 32 * 32 * 400)
    result = run({"tensor": 800}, {"tensor": {"load": 100}})
    text = told(result, program)["array-unfilled"][0]
    assert "tensor.rows (now 32)" in text and "use 50 % of it" in text
    full = dataclasses.replace(program, macs=32 * 32 * 800)
    assert list(told(result, full)) == ["exposed-load"]  # the array is as large as its partitions allow
    assert "tensor.moving_max (now 512)" in told(result, full)["exposed-load"][0]
    wide = load("small", ["partitions=64"])
    busy = run({"tensor": 990})
    larger = told(busy, products(16, True, 32 * 32 * 990), cfg=wide)["larger-array"]
    assert larger[1] == ["tensor.rows=64", "tensor.cols=64"]
    shallow = told(busy, products(16, False, 32 * 32 * 990), cfg=wide)["larger-array"]
    assert shallow[1] == ["tensor.cols=64"]  # no K tile behind another: more rows would be empty
    one = told(busy, products(1, False, 32 * 32 * 990), cfg=wide)
    assert "larger-array" not in one


def test_transposes_are_not_products_that_leave_the_array_empty() -> None:
    program = products(10, True, 32 * 32 * 8 * 64)
    turned = [dataclasses.replace(i, part="transpose") for i in program.queues[Queue.TENSOR][:4]]
    program.queues[Queue.TENSOR][:4] = turned  # 2 of 10 products
    found = told(run({"tensor": 640}), program)
    assert list(found) == ["transposes"]


def test_vector_exp() -> None:
    result = run({"vector": 800, "scalar": 700})
    wide = vector(Opcode.EXP, pattern("fp32"), pattern("bf16"))
    assert (
        "aligned offsets would let exp run vector.exp_rate (now 4) a cycle, not 2"
        in told(result, wide)["wide-operands"][0]
    )
    old = load("small", ["vector.exp_rate=1"])
    slow = vector(Opcode.EXP, pattern("bf16"), pattern("bf16"), old)
    assert told(result, slow, cfg=old)["exp-rate"][1] == ["vector.exp_rate=2"]
    best = vector(Opcode.EXP, pattern("bf16"), pattern("bf16"))
    assert list(told(result, best)) == ["engine-clock"]
    # the scalar engine would take four times as long for it
    assert list(told(run({"vector": 800, "scalar": 70}), best)) == ["engine-clock"]
    two = load("small", ["vector.exp_rate=2"])
    half = vector(Opcode.EXP, pattern("fp32"), pattern("fp32"), two)
    assert "exp-rate" not in told(result, half, cfg=two)  # exp of FP32 runs 2 a cycle at any rate
    text = told(run({"vector": 800, "scalar": 70}), half, cfg=two)["vector-to-scalar"][0]
    assert text.startswith("About 30 % of exp on the scalar engine, which is 7 % busy")  # (800 - 70) / (800 * 3)


def test_vector_other_instructions() -> None:
    result = run({"vector": 800, "scalar": 700})
    copies = vector(Opcode.TENSOR_COPY, pattern("fp32"), pattern("fp32"))
    assert "would let tensor_copy run 4 a cycle, not 1" in told(result, copies)["wide-operands"][0]
    sums = vector(Opcode.TENSOR_TENSOR, pattern("fp32"), pattern("fp32"))
    assert "would let tensor_tensor run 2 a cycle, not 0.5" in told(result, sums)["wide-operands"][0]
    psum = vector(Opcode.TENSOR_COPY, pattern("fp32", Space.PSUM), pattern("bf16"))
    assert list(told(result, psum)) == ["engine-clock"]
    assert "About 33 % of tensor_copy on the scalar engine" in told(run({"vector": 800}), psum)["vector-to-scalar"][0]
    assert told(run({"vector": 800}), cfg=load("small", ["vector.clock_mhz=2400"])) == {}
    halves = vector(Opcode.TENSOR_COPY, pattern("bf16"), pattern("bf16"))  # 4 a cycle here, 2 there
    assert "About 33 % of tensor_copy on the scalar engine" in told(run({"vector": 800}), halves)["vector-to-scalar"][0]


def activations(function: Function, count: int = 4) -> Program:
    one = Instruction(
        opcode=Opcode.ACTIVATION, update=0, src0=pattern("bf16"), dst=pattern("bf16"), imm2=int(function) << 32
    )
    return Program(name="", config=CFG, queues={Queue.SCALAR: [one] * count})


def test_scalar() -> None:
    found = told(run({"scalar": 800, "vector": 100}), activations(Function.EXP))["scalar-to-vector"][0]
    assert found.startswith("About 44 % of exp on the vector engine, which is 10 % busy")  # (800 - 100) / (800 * 2)
    assert list(told(run({"scalar": 800, "vector": 100}), activations(Function.TANH))) == ["engine-clock"]
    assert told(run({"scalar": 800, "vector": 700}), activations(Function.EXP)) == {
        "engine-clock": ("A higher scalar.clock_mhz (now 1200) would shorten its beats.", ["scalar.clock_mhz=2400"])
    }


def test_names_with_braces_are_left_as_they_are() -> None:
    facts = facts_of(CFG, Program(name="", config=CFG), run({"vector": 100}))
    facts = dataclasses.replace(facts, waited_tiles={"{hbm.x}": 200, "{hbm.latency_ns}0": 1}, path={})
    assert "{hbm.x}" in advise(facts)[0].text


@pytest.mark.parametrize(("clock", "cycles"), [(1200, 64), (600, 128), (2400, 32), (960, 80)])
def test_scalar_bound_counts_by_its_own_clock(clock: int, cycles: int) -> None:
    cfg = load("small", [f"scalar.clock_mhz={clock}"])
    one = Instruction(opcode=Opcode.ACTIVATION, update=0, src0=pattern("bf16"), dst=pattern("bf16"))
    limits = bounds(cfg, Program(name="", config=cfg, queues={Queue.SCALAR: [one]}), 0)
    assert limits["scalar_port"] == cycles and limits["vector_port"] == 0


def test_instruction_fetch_alone_does_not_make_the_dma_the_busiest() -> None:
    result = run({"vector": 200, "dma": 40})
    bound = bounding(result, bounds(CFG, Program(name="", config=CFG), 64 * 300))
    assert (bound.engine, bound.busiest, bound.share) == ("latency", "vector", 0.2)


def wider(result: RunResult, program: Program, cfg: Config = CFG) -> list[str]:
    return sorted(told(result, program, cfg=cfg).get("wider-ways", ("", []))[1])


def test_movers_and_hbm_that_are_as_near_their_limits_are_moved_together() -> None:
    """4 movers of 16 bytes a cycle behind HBM of 64: neither alone helps; nor do ports of 64 bytes, one way."""
    one_way, both_ways = moves(960, 61_440), moves(960, 32_768, 28_672)
    assert wider(*one_way) == ["dma.engines=8", "hbm.bytes_per_cycle=128", "hbm.port_bytes=128"]
    assert wider(*both_ways) == ["dma.engines=8", "hbm.bytes_per_cycle=128"]
    text = told(*one_way)["wider-ways"][0]
    assert "dma.engines (now 4)" in text and "hbm.bytes_per_cycle (now 64)" in text


def test_what_goes_mostly_one_way_needs_wider_ports_too() -> None:
    """Bandwidth and movers alone would lower the bound by a tenth, and the run by a thirtieth."""
    assert wider(*moves(960, 53_248, 8_192)) == ["dma.engines=8", "hbm.bytes_per_cycle=128", "hbm.port_bytes=128"]


def test_no_more_movers_than_half_of_the_partitions() -> None:
    tiny = load("tiny", ["hbm.bytes_per_cycle=64"])
    assert wider(*moves(960, 32_768, 28_672, tiny), cfg=tiny) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_what_it_is(rule: Rule) -> None:
    assert "{threshold}" in rule.when and 0 < rule.threshold < 1 and rule.reads and rule.advice


def tables(cfg: Config, *said: list[str] | str) -> str:
    """What is told of a run that waits half of the time for tables: lists are loaded, functions applied."""
    k = Kernel(cfg, "tables")
    tile = k.sbuf("x", partitions=8, columns=64, dtype="fp32")
    for one in said:
        if isinstance(one, list):
            k.scalar.load_table(one)
        else:
            k.scalar.activation(tile[:, :], tile[:, :], one)
    facts = facts_of(k.cfg, k.program(), run({"scalar": 900}))
    found = advise(dataclasses.replace(facts, path={}, path_work={("scalar", "load_table"): CYCLES // 2}))
    return next((advice.text for advice in found if advice.rule == "table-loads"), "")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ((["gelu"], "gelu"), ""),  # several pieces, one load: nothing can be spared
        ((["gelu", "tanh"], "gelu", "tanh"), ""),
        ((["gelu"], "gelu", ["tanh"], "tanh"), ""),  # together they take as many words
        ((["gelu"], "gelu", ["tanh"], "tanh", ["gelu"], "gelu"), "One table of tanh, gelu in place of 3 loads would"),
        ((["gelu", "tanh"], "gelu"), "A table without tanh, which nothing uses, would help: everything waits 50 % of"),
    ],
)
def test_loads_of_tables_that_could_be_spared(said: tuple[list[str] | str, ...], text: str) -> None:
    found = tables(named("tiny"), *said)
    assert found.startswith(text) and bool(found) == bool(text)


def test_tables_that_do_not_fit_together_are_loaded_in_fewer_turns() -> None:
    few = load("tiny", ["scalar.table_rows=1024"])
    by_turns = (["sigmoid"], "sigmoid", ["gelu"], "gelu")
    assert tables(few, *by_turns) == ""
    assert tables(few, *by_turns, *by_turns).startswith("Work in an order that loads 2 tables, and not 4 by turns, wo")

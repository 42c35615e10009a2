"""Instruction checks against the golden check: legal words, near misses, noise; rate as promised."""

from typing import Any

import cocotb
import numpy as np

from rtl.base.dma_port import CAUSE_BITS
from rtl.contract.config import load
from rtl.contract.isa import COPY_QUEUES, INSTRUCTION, PATTERN, Cause, Function, Opcode, Queue
from rtl.contract.kinds import Kind
from rtl.contract.sparsity import PATTERNS
from verif.agents.bench import manifest
from verif.agents.stall import bursty, never
from verif.bench import Run, noticed_by
from verif.benches.issue.check_driver import ARRAY, COVERAGE, CheckBench, ends, nested, plain
from verif.benches.issue.spoilt_fields import wrong_numbers, wrong_operands
from verif.benches.issue.words import Fields, legal, opcodes_of, pack, spoiled
from verif.golden.groups import kept_of

_EVERY_KIND = load("tiny", ["tensor.nvfp4=true"])
_TILED = load("small", ["tensor.cols=8", "tensor.nvfp4=true"])
_TENSOR, _VECTOR, _SCALAR, _GPSIMD = ({"queue": number} for number in range(4))
_OF_VECTOR = (
    "every operator exists",
    "a shuffle may take any partition",
    "elements may be no multiple of what the opcode takes",
    "blocks of partitions may be cut",
    "blocks of 8 partitions may be cut",
    "what must be one row may have more",
    "groups of elements may lie anywhere",
    "four elements take as much room as one",
    "bits are moved between different formats",
    "scales need not be in SBUF's range",
)
_OF_SCALAR = (
    "functions need no table",
    "a program finds the table of the one before",
    "a column need not be in SBUF's range",
)
"""Faults of what the tensor queue has not."""

_PLANTED = (
    *noticed_by("refuses_what_it_is_told_to", "a word that the sequencer refuses is checked like others"),
    "reserved fields are not looked at",
    "every semaphore exists",
    "any ring of a DMA exists",
    "row tiles need no row groups",
    "a pattern of sparsity goes with any kind",
    "a seed needs no random rounding",
    "the range forgets steps that go downwards",
    "a count of the outermost dimension is not part of the elements",
    "partitions may start anywhere",
    "elements of packed formats count as single ones",
    "scales of every kind are E8M0",
    "the shapes of source and destination may differ",
    "scales of the array may be fewer than their elements",
    "raw bits may be multiplied, and numbers moved",
    "a transpose may have another shape than its source",
    "the clock of a check stops too early",
    "weights may be of another pattern of sparsity",
    *noticed_by(
        "refuses_what_is_next_to_a_legal_word",
        "scales may lie in another block of partitions than their elements",
    ),
    *noticed_by(
        "patterns_of_sparsity_have_whole_buses_and_stay_apart",
        "the moving numbers of a sparse row take as much room as one",
        "a bus of sparse rows may be cut",
        "sparse rows may begin at any bus",
        "tags may lie on other partitions than their elements",
    ),
)

RUNS = (
    Run("check", config=_EVERY_KIND, options=_TENSOR, faults=_PLANTED),
    Run("check", config=_EVERY_KIND, options=_VECTOR, faults=_OF_VECTOR),
    Run("check", config=_EVERY_KIND, options=_SCALAR, faults=_OF_SCALAR),
    Run("check", config=_EVERY_KIND, options=_GPSIMD, seeds=(1,), regress=True),
    Run("check", config=_TILED, options=_TENSOR, seeds=(1,), faults=("an operand may reach beyond its row tile",)),
    Run("check", config=load("tiny", ["tensor.sparsity=false"]), options=_TENSOR, seeds=(1,), regress=True),
)

_ALL_TABLES = sum(1 << f for f in Function if f >= 16)
_QUEUE = Queue(manifest().options["queue"])
_MANY = len(opcodes_of(_QUEUE)) > 6
_BASES = 2 if _MANY else 5  # legal words of an opcode that are then spoiled


def _bits_of(first: str, count: int) -> range:
    """So many bits of an instruction from a field on."""
    start = INSTRUCTION.offset(first)
    return range(start, start + count)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agrees_with_the_golden_check(dut: Any) -> None:
    """Random words with random stalls on both sides."""
    bench = CheckBench(dut)
    bench.source.stall = bursty(bench.rng)
    bench.sink.stall = bursty(bench.rng)
    await bench.start()
    for _ in range(10):  # in batches, so that a difference is met before all words are made
        for n in range(50):
            wrong = spoiled(bench.rng, bench.cfg, bench.queue, bench.loaded, bench.weights)
            bench.add(wrong if n % 3 else bench.legal())
        await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def refuses_what_it_is_told_to(dut: Any) -> None:
    """A cause that comes with a word is what is said of it, whatever else would be; the word leaves nothing behind."""
    bench = CheckBench(dut)
    bench.sink.stall = bursty(bench.rng)
    await bench.start()
    for refuse in (*(1 << bit for bit in range(CAUSE_BITS)), int(Cause.ENDLESS_LOOP), 0):
        bench.refuse = refuse
        dut.refuse.value = refuse
        for _ in range(4):
            bench.add(legal(bench.rng, bench.cfg, bench.queue, None, bench.loaded, bench.weights))
            bench.add(spoiled(bench.rng, bench.cfg, bench.queue, bench.loaded, bench.weights))
        await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def refuses_what_breaks_one_rule(dut: Any) -> None:
    """Each rule at its edge: the last legal value and the first that is not."""
    bench = CheckBench(dut)
    await bench.start()
    for name, last, width in (
        ("op0", 0, 6), ("reduce", 0, 2), ("flags", 0, 1),
        ("kind", 0, 3), ("tile", 0, 2), ("sparsity", 0, 3), ("rounding", 0, 2),
        ("header_reserved", 0, 6), ("header_pad", 0, 64), ("imm2", 0, 64),
    ):  # fmt: skip
        assert bench.add({"opcode": 0, name: last}) == Cause.NONE
        for bit in (0, width - 1):
            assert bench.add({"opcode": 0, name: 1 << bit}) == Cause.ILLEGAL_OPCODE
    for which in ("wait0", "wait1", "update"):
        for index in (0, 255, 256, 4095):
            expected = Cause.BAD_SEMAPHORE if index >= bench.cfg.issue.semaphores else Cause.NONE
            assert bench.add({"opcode": 0, which: 1, f"{which}_semaphore": index}) == expected
        bench.add({"opcode": 0, which: 3})
        bench.add({"opcode": 0, f"{which}_semaphore": 4000})  # not used, not looked at
    for ring in (0, bench.cfg.dma.rings - 1, bench.cfg.dma.rings, 16, 1 << 63):
        for count in (0, 1, (1 << 32) - 1, 1 << 32, 1 << 63):
            bench.add({"opcode": 1, "imm0": ring, "imm1": count})
    for _ in range(20):
        copy = legal(bench.rng, bench.cfg, bench.queue, Opcode.DMA_COPY)
        assert (bench.add(copy) == Cause.NONE) == (bench.queue in COPY_QUEUES)
        for bit in bench.rng.integers(64, size=4).tolist():
            assert bench.add(copy | {"imm2": 1 << bit}) == Cause.ILLEGAL_OPCODE
        for name in ("flags", "kind", "tile", "accumulate", "header_pad", "header_reserved"):
            assert bench.add(copy | {name: 1}) == Cause.ILLEGAL_OPCODE
    for opcode in (2, 3, 15, 16, 17, 18, 31, 32, 33, 52, 63, 64, 65, 66, 95, 96, 97, 98, 99, 255):
        bench.add({"opcode": opcode})
    await bench.finish()


def _wide(rng: np.random.Generator, base: Fields, name: str) -> list[Fields]:
    """Steps and counts of any size, most of one bit: an end of the range that differs from a legal one in few bits."""
    changes: list[Fields] = []
    for k in range(4):
        if base[f"{name}_count{k}"] > 1:
            changes += [{f"{name}_step{k}": sign << a} for a in range(15) for sign in (1, -1)]
            changes += [{f"{name}_step{k}": -1 << 15}, {f"{name}_step{k}": (1 << 15) - 1}]
        changes += [{f"{name}_count{k}": 1 << a} for a in range(16)]
        changes += [{f"{name}_count{k}": (1 << a) + 1} for a in range(16)]
    return [changes[n] for n in rng.permutation(len(changes))[:24]]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def refuses_what_is_next_to_a_legal_word(dut: Any) -> None:
    """Every opcode, one field of a legal word after the other."""
    bench = CheckBench(dut)
    await bench.start()
    for opcode in opcodes_of(bench.queue):
        for _ in range(_BASES if len(opcodes_of(bench.queue)) > 2 else 4 * _BASES):
            base = bench.legal(opcode)
            assert bench.add(base) == Cause.NONE
            for change in wrong_numbers(base):
                bench.add(base | change)
            for name in ("src0", "src1", "dst"):
                if f"{name}_space" in base:
                    for change in [*wrong_operands(base, name), *_wide(bench.rng, base, name)]:
                        bench.add(base | change)
        await bench.finish()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def every_operand_ends_where_its_memory_does(dut: Any) -> None:
    """Of every format of every kind: places and steps that differ from legal ones in one bit."""
    bench = CheckBench(dut)
    await bench.start()
    for opcode in opcodes_of(bench.queue):
        bases: dict[tuple[int, int], Fields] = {}
        for _ in range(60 if opcode in ARRAY else 2 if _MANY else 4):
            base = bench.legal(opcode)
            assert bench.add(base) == Cause.NONE
            bases.setdefault((base.get("kind", 0), base.get("src0_dtype", 0)), base)
        for base in bases.values():
            for name in ("src0", "src1", "dst"):
                if f"{name}_space" in base:
                    for change in [*ends(base, name), *nested(name)]:
                        bench.add(base | change)
        await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=_QUEUE != Queue.TENSOR or not manifest().config.tensor.sparsity)
async def patterns_of_sparsity_have_whole_buses_and_stay_apart(dut: Any) -> None:
    """Every pattern: buses of its rows, room of its moving numbers, as many tags as columns, weights of its own."""
    bench = CheckBench(dut)
    await bench.start()
    rows, room, bf16 = bench.cfg.tensor.rows, bench.cfg.sbuf.partition_bytes, 1
    for p in PATTERNS.values():
        code = {"sparsity": p.code}
        load, multiply = (plain(opcode, Kind.SPARSE, bf16, 0, rows) | code for opcode in (16, 17))
        for columns in (1, 3, 4, 5, 8):
            for elements in range(1, 4):
                enough = elements == -(-columns // 4)
                more = {"src0_count0": columns, "src1_count0": elements, "src1_step0": 1}
                assert (bench.add(load | more) == Cause.NONE) == enough
        assert bench.add(load) == Cause.NONE
        assert bench.add(multiply) == Cause.NONE
        assert bench.add(load | {"src1_partition_count": rows - p.kept}) == Cause.BAD_PARTITION
        for count in range(1, 5):
            cause = bench.add(multiply | {"src0_partition_count": count})
            assert (cause == Cause.NONE) == (count % kept_of(p.code) == 0)
            COVERAGE.when(cause == Cause.BAD_PARTITION, "bus cut")
        for quarter in range(4):
            start = quarter * (bench.cfg.partitions // 4)
            cause = bench.add(multiply | {"src0_partition_start": start, "src0_partition_count": p.kept})
            assert (cause == Cause.NONE) == (start % 4 == 0 and start + p.kept <= rows)
            COVERAGE.when(start % 4 > 0, "sparse rows not aligned")
        bytes_ = 4 if p.ratio == 2 else 8
        for at in (2, 4, 8, room - 8, room - 4, room - 2):
            cause = bench.add(multiply | {"src0_offset": at})
            expected = Cause.MISALIGNED if at % bytes_ else Cause.OUT_OF_RANGE if at + bytes_ > room else Cause.NONE
            assert cause == expected
        for other in PATTERNS.values():
            cause = bench.add(multiply | {"sparsity": other.code})
            assert cause == (Cause.NONE if other is p else Cause.ILLEGAL_DTYPE)
            COVERAGE.when(other is not p, "other pattern")
        for kind in (Kind.ONE, Kind.HIGH):
            cause = bench.add(plain(16, kind, 0 if kind == Kind.HIGH else bf16, 0, rows) | code)
            assert cause == (Cause.ILLEGAL_OPCODE if p.code else Cause.NONE)
            COVERAGE.when(cause == Cause.ILLEGAL_OPCODE, "pattern without sparsity")
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=_QUEUE != Queue.TENSOR)
async def operands_lie_in_a_row_tile(dut: Any) -> None:
    """All counts of rows from each quarter, in tiles that there are and in others."""
    bench = CheckBench(dut)
    await bench.start()
    rows, groups = bench.cfg.tensor.rows, bench.cfg.tensor.groups
    for tile in range(4):
        for start in range(0, rows, rows // 4):
            for count in {1, rows >> 2, (rows >> 2) + 1, rows >> 1, (rows >> 1) + 1, rows}:
                fields = plain(16, Kind.ONE, 1, start, count) | {"tile": tile}
                cause = bench.add(fields)
                if 1 << tile > groups:
                    assert cause == Cause.ILLEGAL_OPCODE
                    COVERAGE.hit("no such tile")
                elif count > rows >> tile:
                    assert cause == Cause.BAD_PARTITION
                    COVERAGE.when(start + count <= rows, "operand beyond its tile")
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms", skip=_QUEUE != Queue.SCALAR)
async def functions_need_the_table_loaded_last(dut: Any) -> None:
    """A refused LOAD_TABLE changes nothing, a start forgets everything."""
    bench = CheckBench(dut)
    await bench.start()
    load = legal(bench.rng, bench.cfg, bench.queue, Opcode.LOAD_TABLE)
    function = legal(bench.rng, bench.cfg, bench.queue, Opcode.ACTIVATION)
    function |= {"imm0": 0, "column0": 0, "reduce": 0, "store": 0}
    for held in (0, _ALL_TABLES, 1 << 20, 1 << 31 | 1 << 16):
        assert bench.add(load | {"imm0": held}) == Cause.NONE
        assert bench.add(load | {"imm0": _ALL_TABLES, "src0_space": 2}) == Cause.BAD_SPACE
        for code in range(16, 32):
            expected = Cause.NONE if held >> code & 1 else Cause.NOT_LOADED
            assert bench.add(function | {"imm2": code << 32}) == expected
    await bench.finish()
    dut.start.value = 1
    await bench.edge
    dut.start.value = 0
    bench.loaded = 0
    assert bench.add(function | {"imm2": 16 << 32}) == Cause.NOT_LOADED
    await bench.finish()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def looks_at_each_bit(dut: Any) -> None:
    """Words with one bit turned: of a NOP each, of every other opcode mostly those of the header and immediates."""
    bench = CheckBench(dut)
    await bench.start()
    opcodes = (0, 1, *opcodes_of(bench.queue))
    patterns = [n for name in ("src0", "src1", "dst") for n in _bits_of(f"{name}_offset", PATTERN.width)]
    others = [n for n in range(INSTRUCTION.width) if n not in patterns]
    for opcode in opcodes:
        word = pack(bench.legal(opcode))
        most = min(len(others), 2000 // len(opcodes))
        some = (*bench.rng.choice(others, most, replace=False), *bench.rng.choice(patterns, 30, replace=False))
        for bit in some if opcode else range(INSTRUCTION.width):
            bench.add(INSTRUCTION.unpack(word ^ 1 << int(bit)))
        await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def keeps_the_rate(dut: Any) -> None:
    """One instruction in 7 cycles with operands, in 2 without."""
    bench = CheckBench(dut)
    bench.source.stall = never()
    await bench.start()
    for opcode, most in (*((opcode, 7) for opcode in opcodes_of(bench.queue)[:1]), (0, 3)):
        first = len(bench.sink.taken)
        for _ in range(64):
            bench.add(bench.legal(opcode))
        cycles = 0
        while len(bench.sink.taken) < first + 64:
            await bench.edge
            cycles += 1
            assert cycles <= 64 * most + 4, f"more than {most} cycles an instruction with opcode {opcode}"
    COVERAGE.require_all()

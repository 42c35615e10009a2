"""Instruction checks against the golden check: legal words, near misses, noise; rate as promised."""

from typing import Any

import cocotb

from rtl.contract.formats import by_code
from rtl.contract.isa import Cause, Function, Opcode, Queue, block
from rtl.contract.kinds import Kind
from rtl.contract.sparsity import PATTERNS
from verif.agents.bench import Bench, manifest
from verif.agents.stall import bursty, never
from verif.agents.stream import StreamSink, StreamSource
from verif.benches.issue.near_misses import wrong_numbers, wrong_operands
from verif.benches.issue.words import Fields, legal, opcodes_of, pack, spoiled
from verif.checks.coverage import Coverage
from verif.golden.groups import WeightKinds, formats_of, kept_of
from verif.golden.issue import check

_OF_OPERANDS = ("ILLEGAL_DTYPE", "BAD_SPACE", "BAD_PARTITION", "BAD_PATTERN", "MISALIGNED", "OUT_OF_RANGE")
_WITH_OPERATORS = (33, 34, 35, 36, 37, 40, 49, 50, 64)
_WORD_BITS = 1024
_ALL_TABLES = sum(1 << f for f in Function if f >= 16)
_PLACE = ("space", "dtype", "partition_start", "partition_count")
_BASES = 5  # legal words of an opcode that are then spoiled


def _coverage() -> Coverage:
    queue = Queue(manifest().options["queue"])
    bins = ["NOP_BAD_SEMAPHORE", "NOP_ILLEGAL_OPCODE", "DMA_TRIGGER_BAD_RING", "no_such_opcode"]
    bins += [f"{Opcode(o).name}_NONE" for o in (0, 1, *opcodes_of(queue))]
    for opcode in opcodes_of(queue):
        causes = ["ILLEGAL_OPCODE", "BAD_SEMAPHORE", *_OF_OPERANDS]
        causes += ["BAD_OPERATOR"] if opcode in _WITH_OPERATORS else []
        causes += ["NOT_LOADED"] if opcode == Opcode.ACTIVATION else []
        bins += [f"{Opcode(opcode).name}_{cause}" for cause in causes]
    if opcodes_of(queue):
        bins += ["downwards", "broadcast", "several_dimensions"]
    if queue == Queue.TENSOR:
        cfg = manifest().config
        bins += [f"{Kind(k).name} {by_code(d).name}" for k in range(8) for d in formats_of(k, cfg)]
        bins += ["other kind", "other E4M3", "kinds by row", "kinds by column"]
        bins += [f"tile {tile}" for tile in range(cfg.tensor.groups.bit_length())] + ["no such tile"]
        bins += ["operand beyond its tile"] if cfg.tensor.groups > 1 else []
        bins += [f"{side} of {name}" for name in PATTERNS for side in ("load", "matmul")] if cfg.tensor.sparsity else []
        bins += ["other pattern", "bus cut", "pattern without sparsity"] if cfg.tensor.sparsity else []
    return Coverage(f"check_{queue.name.lower()}", bins)


COVERAGE = _coverage()


class CheckBench(Bench):
    """Words in, (word, cause, address) out, compared in order."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.queue = int(self.options["queue"])
        self.source = StreamSource(self, "i")
        self.sink = StreamSink(self, "o")
        self.expected: list[tuple[int, int, int]] = []
        self.sink.on_taken = self.compare
        self.loaded = 0  # functions of the table that the last word leaves
        self.weights = WeightKinds(self.cfg.tensor.rows, self.cfg.tensor.cols)  # what the loads so far leave
        dut.start.value = 0

    def add(self, fields: Fields) -> Cause:
        """One more word to check."""
        word = pack(fields)
        cause, address = check(word, self.cfg, self.queue, loaded=self.loaded, weights=self.weights)
        self.expected.append((word, int(cause), address))
        self.source.send([word])
        opcode = fields["opcode"] & 0xFF
        name = f"{Opcode(opcode).name}_{cause.name}" if opcode in list(Opcode) else "no_such_opcode"
        COVERAGE.when(name in COVERAGE.hits, name)
        if cause == Cause.NONE:
            if opcode == Opcode.LOAD_TABLE:
                self.loaded = fields["imm0"]
            if opcode == Opcode.LOAD_STATIONARY:
                self.weights.load(fields)
            if opcode in (Opcode.LOAD_STATIONARY, Opcode.MULTIPLY_MOVING):
                COVERAGE.hit(f"{Kind(fields.get('kind', 0)).name} {by_code(fields['src0_dtype']).name}")
                COVERAGE.hit(f"tile {fields.get('tile', 0)}")
                if fields.get("kind", 0) == Kind.SPARSE:
                    name = next(p.name for p in PATTERNS.values() if p.code == fields["sparsity"])
                    COVERAGE.hit(f"{'load' if opcode == Opcode.LOAD_STATIONARY else 'matmul'} of {name}")
            if "src0_step0" in fields:
                used = [fields[f"src0_step{i}"] for i in range(4) if fields[f"src0_count{i}"] > 1]
                COVERAGE.when(any(s < 0 for s in used), "downwards")
                COVERAGE.when(0 in used, "broadcast")
                COVERAGE.when(len(used) > 1, "several_dimensions")
        return cause

    def compare(self, payload: int) -> None:
        """The next result."""
        word, cause, address = self.expected[len(self.sink.taken) - 1]
        got = payload >> _WORD_BITS
        assert payload & ((1 << _WORD_BITS) - 1) == word, "the word changed on its way"
        assert (got & 0xFF, got >> 8) == (cause, address), (
            f"word {word:#x}: cause {Cause(got & 0xFF).name} at {got >> 8:#x}, not {Cause(cause).name} at {address:#x}"
        )

    def legal(self, opcode: int | None = None) -> Fields:
        """A legal word; of `opcode`, with loads before it until there is one."""
        while True:
            fields = legal(self.rng, self.cfg, self.queue, opcode, self.loaded, self.weights)
            if opcode is None or fields["opcode"] == opcode:
                return fields
            assert self.add(fields) == Cause.NONE

    async def finish(self) -> None:
        """Wait for all results."""
        for _ in range(40 * len(self.expected) + 100):
            if len(self.sink.taken) == len(self.expected):
                return
            await self.edge
        raise AssertionError(f"{len(self.sink.taken)} of {len(self.expected)} words came through")


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def agrees_with_the_golden_check(dut: Any) -> None:
    """Random words with random stalls on both sides."""
    bench = CheckBench(dut)
    bench.source.stall = bursty(bench.rng)
    bench.sink.stall = bursty(bench.rng)
    await bench.start()
    for n in range(1500):
        wrong = spoiled(bench.rng, bench.cfg, bench.queue, bench.loaded, bench.weights)
        bench.add(wrong if n % 3 else bench.legal())
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def refuses_what_breaks_one_rule(dut: Any) -> None:
    """Each rule at its edge: the last legal value and the first that is not."""
    bench = CheckBench(dut)
    await bench.start()
    for name, last, width in (
        ("op0", 0, 6), ("reduce", 0, 2), ("flags", 0, 1),
        ("kind", 0, 3), ("tile", 0, 2), ("sparsity", 0, 3),
        ("header_reserved", 0, 8), ("header_pad", 0, 64), ("imm2", 0, 64),
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
    for opcode in (2, 15, 16, 17, 18, 31, 32, 33, 52, 63, 64, 65, 66, 255):
        bench.add({"opcode": opcode})
    await bench.finish()


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
                for change in wrong_operands(base, name) if f"{name}_space" in base else ():
                    bench.add(base | change)
    await bench.finish()


def _plain(opcode: int, kind: int, dtype: int, start: int, count: int) -> Fields:
    """An instruction of the tensor queue with one column from byte 0."""
    f: Fields = {"opcode": opcode, "kind": kind}
    patterns = {"src0": (1, dtype, start, count)} | ({"dst": (2, 0, 0, 1)} if opcode == 17 else {})
    patterns |= (
        {"src1": (1, 8, start // 32 * 32, block(manifest().config.partitions) // 8)} if kind == Kind.QUAD else {}
    )
    patterns |= {"src1": (1, 13, start, count)} if kind == Kind.SPARSE and opcode == 16 else {}
    for name, values in patterns.items():
        f |= {f"{name}_{k}": v for k, v in zip(_PLACE, values, strict=True)} | {f"{name}_count{i}": 1 for i in range(4)}
    return f


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def weights_and_moving_operands_are_of_one_kind(dut: Any) -> None:
    """Row by row; rows that nothing was loaded into go with all, and a start forgets the kinds."""
    bench = CheckBench(dut)
    await bench.start()
    if bench.queue != Queue.TENSOR:
        return
    whole, quarter = bench.cfg.partitions, bench.cfg.partitions // 4
    e4m3fn, e4m3, e5m2, bf16 = 4, 5, 6, 1
    assert bench.add(_plain(17, Kind.PAIR, e4m3, 0, whole)) == Cause.NONE  # nothing is loaded
    assert bench.add(_plain(16, Kind.PAIR, e4m3fn, 0, whole)) == Cause.NONE
    assert bench.add(_plain(17, Kind.PAIR, e5m2, 0, whole)) == Cause.NONE
    assert bench.add(_plain(17, Kind.PAIR, e4m3, 0, whole)) == Cause.ILLEGAL_DTYPE
    COVERAGE.hit("other E4M3")
    assert bench.add(_plain(17, Kind.ONE, e4m3fn, 0, whole)) == Cause.ILLEGAL_DTYPE
    assert bench.add(_plain(17, Kind.QUAD, e4m3fn, 0, whole)) == Cause.ILLEGAL_DTYPE
    COVERAGE.hit("other kind")
    assert bench.add(_plain(16, Kind.ONE, bf16, quarter, quarter)) == Cause.NONE
    assert bench.add(_plain(16, Kind.PAIR, e4m3, 2 * quarter, quarter)) == Cause.NONE
    for start, kind, dtype, expected in (
        (0, Kind.PAIR, e4m3fn, Cause.NONE),
        (0, Kind.ONE, bf16, Cause.ILLEGAL_DTYPE),
        (quarter, Kind.ONE, bf16, Cause.NONE),
        (quarter, Kind.PAIR, e4m3fn, Cause.ILLEGAL_DTYPE),
        (2 * quarter, Kind.PAIR, e4m3, Cause.NONE),
        (2 * quarter, Kind.PAIR, e4m3fn, Cause.ILLEGAL_DTYPE),
        (3 * quarter, Kind.PAIR, e4m3fn, Cause.NONE),
    ):
        assert bench.add(_plain(17, kind, dtype, start, quarter)) == expected
    COVERAGE.hit("kinds by row")
    every = {"dst_partition_count": bench.cfg.tensor.cols}
    assert bench.add(_plain(17, Kind.PAIR, e4m3fn, 0, quarter) | every) == Cause.NONE  # zeros beside one column
    assert bench.add(_plain(16, Kind.HIGH, 0, 0, whole)) == Cause.NONE
    two = {"dst_partition_count": 2}
    assert bench.add(_plain(17, Kind.LOW, 0, 0, whole) | two) == Cause.ILLEGAL_DTYPE  # column 1 holds what was there
    assert bench.add(_plain(16, Kind.LOW, 0, 0, whole)) == Cause.NONE
    assert bench.add(_plain(17, Kind.LOW, 0, 0, whole) | two) == Cause.NONE
    three = {"dst_partition_count": 3}
    assert bench.add(_plain(17, Kind.LOW, 0, 0, whole) | three) == Cause.ILLEGAL_DTYPE
    COVERAGE.hit("kinds by column")
    assert bench.add(_plain(16, Kind.HIGH, 0, 0, whole) | {"src0_count0": bench.cfg.tensor.cols}) == Cause.NONE
    assert bench.add(_plain(17, Kind.LOW, 0, 0, whole) | every) == Cause.NONE
    assert bench.add(_plain(17, Kind.LOW, 0, 0, whole)) == Cause.NONE
    await bench.finish()
    dut.start.value = 1
    await bench.edge
    dut.start.value = 0
    bench.weights = WeightKinds(bench.cfg.tensor.rows, bench.cfg.tensor.cols)
    assert bench.add(_plain(17, Kind.PAIR, e4m3, 0, whole)) == Cause.NONE
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def patterns_of_sparsity_have_whole_buses_and_stay_apart(dut: Any) -> None:
    """Every pattern: buses of its rows, room of its moving numbers, as many tags as columns, weights of its own."""
    bench = CheckBench(dut)
    await bench.start()
    if bench.queue != Queue.TENSOR or not bench.cfg.tensor.sparsity:
        return
    rows, room, bf16 = bench.cfg.tensor.rows, bench.cfg.sbuf.partition_bytes, 1
    for p in PATTERNS.values():
        code = {"sparsity": p.code}
        load, multiply = (_plain(opcode, Kind.SPARSE, bf16, 0, rows) | code for opcode in (16, 17))
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
            cause = bench.add(_plain(16, kind, 0 if kind == Kind.HIGH else bf16, 0, rows) | code)
            assert cause == (Cause.ILLEGAL_OPCODE if p.code else Cause.NONE)
            COVERAGE.when(cause == Cause.ILLEGAL_OPCODE, "pattern without sparsity")
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def operands_lie_in_a_row_tile(dut: Any) -> None:
    """All counts of rows from each quarter, in tiles that there are and in others."""
    bench = CheckBench(dut)
    await bench.start()
    if bench.queue != Queue.TENSOR:
        return
    rows, groups = bench.cfg.tensor.rows, bench.cfg.tensor.groups
    for tile in range(4):
        for start in range(0, rows, rows // 4):
            for count in {1, rows >> 2, (rows >> 2) + 1, rows >> 1, (rows >> 1) + 1, rows}:
                fields = _plain(16, Kind.ONE, 1, start, count) | {"tile": tile}
                cause = bench.add(fields)
                if 1 << tile > groups:
                    assert cause == Cause.ILLEGAL_OPCODE
                    COVERAGE.hit("no such tile")
                elif count > rows >> tile:
                    assert cause == Cause.BAD_PARTITION
                    COVERAGE.when(start + count <= rows, "operand beyond its tile")
    await bench.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def functions_need_the_table_loaded_last(dut: Any) -> None:
    """A refused LOAD_TABLE changes nothing, a start forgets everything."""
    bench = CheckBench(dut)
    await bench.start()
    if bench.queue != Queue.SCALAR:
        return
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

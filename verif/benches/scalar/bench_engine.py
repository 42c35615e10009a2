"""Scalar engine: programs of activations and table loads against the golden machine's, its pace, what it reports."""

from dataclasses import dataclass
from math import gcd
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.contract.activation_tables import ENTRIES, FIRST_TABLE_FUNCTION, image
from rtl.contract.formats import FORMATS, by_code
from rtl.contract.isa import (
    INSTRUCTION,
    REDUCTIONS,
    AccessPattern,
    AluOp,
    Function,
    Opcode,
    Reduce,
    start_partition_rule,
)
from rtl.contract.memmap import Space
from rtl.contract.timing import STALLS, Engine
from verif.agents.bench import Bench
from verif.agents.memory_port import MemoryPorts
from verif.agents.patterns import contiguous, random_partitions, random_pattern
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSource
from verif.checks.coverage import Coverage
from verif.golden.memory import Memory, offsets
from verif.golden.operands import Operands, pattern_of
from verif.golden.scalar_instructions import ScalarInstructions

SOURCES = tuple(n for n, f in FORMATS.items() if f.bytes and n not in ("tf32", "e8m0"))
TARGETS = (*SOURCES, "tf32")
PAIRS = (
    (AluOp.MULTIPLY, AluOp.ADD),
    (AluOp.MULTIPLY, AluOp.SUBTRACT),
    (AluOp.MULTIPLY, AluOp.BYPASS),
    (AluOp.ADD, AluOp.BYPASS),
    (AluOp.SUBTRACT, AluOp.BYPASS),
    (AluOp.BYPASS, AluOp.BYPASS),
)
DIRECT = tuple(f for f in Function if f < FIRST_TABLE_FUNCTION)
STATES = ("busy", "", *STALLS[Engine.SCALAR])
COVERAGE = Coverage(
    "scalar.engine",
    [f"from {n}" for n in SOURCES]
    + [f"to {n}" for n in TARGETS]
    + [f"{a.name} to {b.name}" for a in (Space.SBUF, Space.PSUM) for b in (Space.SBUF, Space.PSUM)]
    + [f"{n} quadrants up" for n in range(4)]
    + [f.name for f in DIRECT]
    + ["a table of its own", "a table of random cubics", "a table over another"]
    + [f"{a.name}, {b.name}" for a, b in PAIRS]
    + ["a op0 x", "b op1 x", "a is a column", "b is a column", "both are columns"]
    + [f"{r.name} {op.name}" for r in Reduce if r != Reduce.IDLE for op in REDUCTIONS]
    + ["b of a reduction is a column", "accumulator stored", "accumulator kept for the next"]
    + ["one element", "all partitions", "some partitions"]
    + ["sbuf read refused", "psum read refused", "sbuf write refused", "psum write refused"]
    + ["reads what the one before wrote to SBUF", "reads what the one before wrote to PSUM"]
    + ["reads a column that the one before wrote", "reads what the one before stored"]
    + ["fill", "drain", "sbuf", "psum", "unit", "clock stands still"],
)
LATENCY = 16  # scalar cycles from the grant of a read to its write
TURNAROUND = LATENCY + 2  # from the last write of an instruction to the first one of one that waited for it
GAP = {Reduce.RESET_REDUCE: 8, Reduce.REDUCE: 17}  # from the last write of a reduction to the next write

Fields = dict[str, int]


@dataclass(frozen=True)
class Room:
    """A piece of SBUF that programs leave alone but for what it is named for."""

    offset: int
    size: int


class EngineBench:
    """The engine with memories around it and everything that is measured on the way."""

    def __init__(self, dut: Any, style: str = "never"):
        self.bench = Bench(dut)
        self.cfg = self.bench.cfg
        self.rng = self.bench.rng
        self.style = style
        cfg = self.cfg
        self.sbuf = Memory(cfg.partitions, cfg.sbuf.partition_bytes)
        self.psum = Memory(cfg.partitions, cfg.psum.partition_bytes)
        for memory in (self.sbuf, self.psum):
            memory.bytes[:] = self.rng.integers(0, 256, memory.bytes.shape, dtype=np.uint8)
            self._some_numbers(memory)
        self.tables = Room(cfg.sbuf.partition_bytes // 2, cfg.sbuf.partition_bytes // 2)
        self.accumulator = np.zeros(cfg.partitions, np.uint32)
        self.program: list[Fields] = []
        self.writes: list[int] = []  # of each instruction
        self.dones: list[int] = []
        self.ticks: list[int] = []
        self.states: dict[str, int] = {}
        self.trace: list[str] = []
        divisor = gcd(cfg.scalar.clock_mhz, cfg.tensor.clock_mhz)
        self.num, self.den = cfg.scalar.clock_mhz // divisor, cfg.tensor.clock_mhz // divisor

    def _some_numbers(self, memory: Memory) -> None:
        """FP32 numbers of ordinary size in half the words, some of few digits: random bits are mostly huge or tiny."""
        words = memory.bytes.view("<u4")
        numbers = self.rng.standard_normal(words[:, ::2].shape) * 3
        few = self.rng.random(numbers.shape) < 0.4
        words[:, ::2] = np.where(few, np.round(numbers * 2) / 2, numbers).astype(np.float32).view(np.uint32)

    async def start(self) -> None:
        """Connect the agents and reset."""
        stalls = [styled(self.style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(5)]
        self.commands = StreamSource(self.bench, "queue__command", stalls[0])
        self.ports = MemoryPorts(self.bench, self.sbuf, self.psum)
        self.ports.add_sbuf_read("sbuf_read", stalls[1])
        self.ports.add_psum_read("psum_read", stalls[2])
        self.ports.add_sbuf_write("sbuf_write", stalls[3])
        self.ports.add_psum_write("psum_write", stalls[4])
        dut = self.bench.dut
        self._watched = (
            dut.tick,
            dut.queue__done,
            dut.queue__status__holds,
            dut.queue__status__state,
            dut.queue__status__draining,
        )
        self._valids = (dut.sbuf_read__valid, dut.psum_read__valid, dut.sbuf_write__valid, dut.psum_write__valid)
        self.ports.on_cycle.append(self._watch)
        await self.bench.start()
        self.ports.start()

    def _watch(self, now: int) -> None:
        tick, done, holds, state, draining = (int(s.value) for s in self._watched)
        if tick:
            self.ticks.append(now)
        else:
            assert not any(v.value == 1 for v in self._valids), f"cycle {now}: a request without a scalar edge"
        what = STATES[state] if holds else "drain" if draining else "idle"
        self.trace.append(what)
        self.states[what] = self.states.get(what, 0) + 1
        if done:
            assert tick, f"cycle {now}: done without a scalar edge"
            number = len(self.dones)
            assert number < len(self.program), "done without an instruction"
            self.dones.append(now)
            made = sum(self.writes[: number + 1])
            assert len(self.ports.written) == made, (
                f"instruction {number} is done with {len(self.ports.written)} of {made} writes made"
            )

    async def run(self, program: list[Fields]) -> None:
        """Send the program, wait for its end, compare the memories with what the golden engine leaves."""
        self.program = program
        self.writes = [
            0 if f["opcode"] == Opcode.LOAD_TABLE else pattern_of(f, "dst").elements + f["store"] for f in program
        ]
        sbuf = Memory(self.cfg.partitions, self.cfg.sbuf.partition_bytes)
        psum = Memory(self.cfg.partitions, self.cfg.psum.partition_bytes)
        sbuf.bytes[:] = self.sbuf.bytes
        psum.bytes[:] = self.psum.bytes
        golden = ScalarInstructions(Operands(sbuf, psum), self.cfg.scalar.table_rows)
        golden.operands.accumulator[:] = self.accumulator
        changed = [np.full(memory.bytes.shape, -1, np.int32) for memory in (sbuf, psum)]  # last by which instruction
        for n, f in enumerate(program):
            before = [memory.bytes.copy() for memory in (sbuf, psum)]
            golden.write(f, golden.read(f))
            for by, old, memory in zip(changed, before, (sbuf, psum), strict=True):
                by[old != memory.bytes] = n
        self.accumulator[:] = golden.operands.accumulator
        self.commands.send(
            INSTRUCTION.pack(f) | (n % (1 << SEQUENCE_BITS)) << INSTRUCTION.width for n, f in enumerate(program)
        )
        work = sum(_cycles(f) + 60 for f in program)
        slowness = {"never": 4, "rarely": 6, "half": 20, "bursty": 20, "mostly": 60}
        limit = 2000 + slowness[self.style] * self.den * work // self.num
        edge = RisingEdge(self.bench.clk)
        while len(self.dones) < len(program):
            await edge
            assert self.ports.cycle < limit, f"{len(self.dones)} of {len(program)} instructions after {limit} cycles"
        ticks = len(self.ticks)
        await self.bench.cycles(80)
        assert len(self.dones) == len(program), "an instruction was done twice"
        COVERAGE.when(len(self.ticks) <= ticks + 20, "clock stands still")
        assert len(self.ticks) <= ticks + 20, "the clock runs without work"
        assert self.trace[-1] == "idle"
        for by, found, right in zip(changed, (self.sbuf, self.psum), (sbuf, psum), strict=True):
            wrong = np.argwhere(found.bytes != right.bytes)
            if wrong.size:
                p, at = min(wrong.tolist(), key=lambda w: by[tuple(w)] % len(program))
                n = by[p, at]
                text = {k: v for k, v in program[n].items() if v} if n >= 0 else "no instruction"
                name = "SBUF" if right is sbuf else "PSUM"
                raise AssertionError(
                    f"{name} partition {p} byte {at} is {found.bytes[p, at]:#x}, must be {right.bytes[p, at]:#x} "
                    f"({len(wrong)} bytes differ); {n}: {text}"
                )
        self.cover()

    def load(self, functions: list[str] | None = None, *, partitions: int | None = None) -> Fields:
        """A LOAD_TABLE of these functions, or of random cubics for SIGMOID; its image lies in `self.tables`."""
        count = self.cfg.partitions if partitions is None else partitions
        if functions is None:
            words = np.array(self._random_image(count), np.uint32)
            names = ["sigmoid"]
        else:
            words = np.array(image(functions, self.cfg.scalar.table_rows, count), np.uint32)
            names = functions
        assert 4 * words.shape[1] <= self.tables.size
        place = AccessPattern(
            space=Space.SBUF, dtype=FORMATS["uint32"].code, partition_start=0, partition_count=count,
            offset=self.tables.offset, dims=((1, words.shape[1]),),
        )  # fmt: skip
        self.sbuf.write(place, words)
        mask = sum(1 << Function[name.upper()] for name in names)
        return _word(Opcode.LOAD_TABLE, src0=place, imm0=mask)

    def _random_image(self, partitions: int, rows: int = 40) -> list[list[int]]:
        rng = self.rng
        first = 1 << 20 | (Function.SIGMOID - FIRST_TABLE_FUNCTION) * ENTRIES
        base = int(rng.integers(0, self.cfg.scalar.table_rows - 256 - rows))
        pairs = []
        for i in range(ENTRIES):
            bits = int(rng.integers(0, 9))
            row = base + int(rng.integers(0, max(1, rows - (1 << bits)))) if 1 << bits < rows else base
            pairs.append((first + i, row | bits << 16 | int(rng.choice([0, 1, 1023, 1000, 40, 600, 894, 890])) << 20))
        cubics = (rng.standard_normal((256 + rows, 4)) * 2).astype(np.float32).view(np.uint32)
        cubics[rng.random(cubics.shape) < 0.02] = 0x7F800000
        pairs += [(4 * (base + r) + c, int(w)) for r, row in enumerate(cubics) for c, w in enumerate(row)]
        pairs = [pairs[i] for i in rng.permutation(len(pairs))]
        pairs += pairs[-1:] * (-len(pairs) % partitions)
        return [[n for pair in pairs[p::partitions] for n in pair] for p in range(partitions)]

    def random_program(self, length: int, loaded: tuple[Function, ...] = ()) -> list[Fields]:
        """Legal activations of all kinds; no destination meets a source of its own, some read the one before."""
        program: list[Fields] = []
        while len(program) < length:
            one = self._random_activation(program[-1] if program else None, loaded)
            if one is not None:
                program.append(one)
        return program

    def _random_activation(self, before: Fields | None, loaded: tuple[Function, ...]) -> Fields | None:
        rng, cfg = self.rng, self.cfg
        start, count = random_partitions(rng, cfg.partitions)
        elements = 1 if rng.random() < 0.15 else int(rng.integers(1, 40))
        src = self._pattern((start, count), elements, SOURCES)
        follows = before is not None and rng.random() < 0.4
        if follows and before is not None:
            last = pattern_of(before, "dst")
            if by_code(last.dtype).name in SOURCES:
                src = last
            start, count, elements = src.partition_start, src.partition_count, src.elements
        legal = [q * (cfg.partitions // 4) for q in range(4)]
        legal = [s for s in legal if start_partition_rule(s, count, cfg.partitions) and s + count <= cfg.partitions]
        dst = self._pattern((start if follows else int(rng.choice(legal)), count), elements, TARGETS)
        if _meet(src, dst):
            return None
        op0, op1 = PAIRS[rng.integers(len(PAIRS))]
        reduce = Reduce(int(rng.choice(4, p=[0.4, 0.2, 0.25, 0.15])))
        codes = [f for f in (*DIRECT, *loaded, *loaded)]
        by = int(rng.choice(REDUCTIONS)) if reduce != Reduce.IDLE else 0
        store = reduce != Reduce.IDLE and rng.random() < 0.5
        free = self.tables.offset - 4
        columns = rng.random(2) < 0.3
        places = [4 * int(rng.integers(free // 4)) for _ in range(3)]
        if before is not None and before["store"] and rng.random() < 0.5:
            columns[0], places[0] = True, before["imm2"] & 0xFFFFFF
        elif before is not None and _fp32_in_sbuf(before) and rng.random() < 0.7:
            columns[0], places[0] = True, int(offsets(pattern_of(before, "dst"))[-1])
        values = [int(v) for v in self._constants(2)]
        has_a, has_b = op0 != AluOp.BYPASS, op1 != AluOp.BYPASS or reduce == Reduce.LOAD_REDUCE
        columns &= (has_a, has_b)
        imm0 = (places[0] if columns[0] else values[0]) if has_a else 0
        imm1 = (places[1] if columns[1] else values[1]) if has_b else 0
        imm2 = int(rng.choice(codes)) << 32 | by << 40 | (places[2] if store else 0)
        return _word(
            Opcode.ACTIVATION, src0=src, dst=dst, op0=op0, op1=op1,
            reverse0=int(has_a and rng.random() < 0.4), reverse1=int(op1 != AluOp.BYPASS and rng.random() < 0.4),
            column0=int(columns[0]), column1=int(columns[1]), reduce=reduce, store=int(store),
            imm0=imm0 | int(self._constants(1)[0]) << 32, imm1=imm1, imm2=imm2,
        )  # fmt: skip

    def _constants(self, count: int) -> np.ndarray:
        numbers = self.rng.standard_normal(count).astype(np.float32).view(np.uint32)
        odd = self.rng.integers(0, 1 << 32, count, dtype=np.uint32)
        special = self.rng.choice(np.array([0, 1 << 31, 0x3F800000, 0x7F800000, 0x7FC00001], np.uint32), count)
        return np.choose(self.rng.choice(3, count, p=[0.7, 0.1, 0.2]), [numbers, odd, special])

    def _pattern(self, partitions: tuple[int, int], elements: int, formats: tuple[str, ...]) -> AccessPattern:
        if self.rng.random() < 0.35:
            return random_pattern(
                self.rng, space=Space.PSUM, dtype="fp32", partitions=partitions, elements=elements,
                partition_bytes=self.cfg.psum.partition_bytes,
            )  # fmt: skip
        return random_pattern(
            self.rng, space=Space.SBUF, dtype=str(self.rng.choice(formats)), partitions=partitions,
            elements=elements, partition_bytes=self.tables.offset,
        )  # fmt: skip

    def cover(self) -> None:
        """Bins of the program that ran."""
        before: Fields | None = None
        for f in self.program:
            if f["opcode"] == Opcode.ACTIVATION:
                self._cover(f, before)
                before = f
        for port in ("sbuf_read", "psum_read", "sbuf_write", "psum_write"):
            COVERAGE.when(self.ports.refusals[port], f"{port.replace('_', ' ')} refused")
        for state in ("fill", "drain", "sbuf", "psum", "unit"):
            COVERAGE.when(self.states.get(state), state)

    def _cover(self, f: Fields, before: Fields | None) -> None:
        src, dst = pattern_of(f, "src0"), pattern_of(f, "dst")
        quarter = self.cfg.partitions // 4
        COVERAGE.hit(f"from {by_code(src.dtype).name}")
        COVERAGE.hit(f"to {by_code(dst.dtype).name}")
        COVERAGE.hit(f"{Space(src.space).name} to {Space(dst.space).name}")
        COVERAGE.hit(f"{(dst.partition_start - src.partition_start) // quarter % 4} quadrants up")
        function = Function(f["imm2"] >> 32 & 0xFF)
        COVERAGE.when(function in DIRECT, function.name)
        op0, op1, reduce = AluOp(f["op0"]), AluOp(f["op1"]), Reduce(f["reduce"])
        COVERAGE.hit(f"{op0.name}, {op1.name}")
        COVERAGE.when(f["reverse0"], "a op0 x")
        COVERAGE.when(f["reverse1"], "b op1 x")
        COVERAGE.when(f["column0"], "a is a column")
        COVERAGE.when(f["column1"], "b is a column")
        COVERAGE.when(f["column0"] and f["column1"], "both are columns")
        if reduce != Reduce.IDLE:
            COVERAGE.hit(f"{reduce.name} {AluOp(f['imm2'] >> 40 & 63).name}")
            COVERAGE.when(reduce == Reduce.LOAD_REDUCE and f["column1"], "b of a reduction is a column")
            COVERAGE.hit("accumulator stored" if f["store"] else "accumulator kept for the next")
        COVERAGE.when(src.elements == 1, "one element")
        COVERAGE.hit("all partitions" if src.partition_count == self.cfg.partitions else "some partitions")
        if before is None:
            return
        wrote = pattern_of(before, "dst")
        COVERAGE.when(src == wrote, f"reads what the one before wrote to {Space(src.space).name}")
        column = f["imm0"] & 0xFFFFFF
        COVERAGE.when(
            f["column0"] and wrote.space == Space.SBUF and column in offsets(wrote),
            "reads a column that the one before wrote",
        )
        stored = before["store"] and column == before["imm2"] & 0xFFFFFF
        COVERAGE.when(f["column0"] and stored, "reads what the one before stored")


def _word(opcode: Opcode, *, src0: AccessPattern, dst: AccessPattern | None = None, **fields: int) -> Fields:
    """All fields of an instruction."""
    values = {"opcode": int(opcode), **{k: int(v) for k, v in fields.items()}}
    for name, pattern in (("src0", src0), ("dst", dst)):
        if pattern is not None:
            values |= {f"{name}_{k}": v for k, v in pattern.fields().items()}
    return INSTRUCTION.unpack(INSTRUCTION.pack(values))


def _fp32_in_sbuf(f: Fields) -> bool:
    return f["dst_space"] == Space.SBUF and f["dst_dtype"] == FORMATS["fp32"].code


def _cycles(f: Fields) -> int:
    """Scalar cycles of an instruction without overheads."""
    src = pattern_of(f, "src0")
    return src.elements * (src.partition_count // 2 + 1 if f["opcode"] == Opcode.LOAD_TABLE else 1)


def _meet(a: AccessPattern, b: AccessPattern) -> bool:
    """Whether two patterns share a byte offset (whatever their partitions)."""
    spans = [{int(at) + n for at in offsets(p) for n in range(by_code(p.dtype).bytes)} for p in (a, b)]
    return a.space == b.space and bool(spans[0] & spans[1])


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def random_programs_leave_the_golden_bytes(dut: Any, style: str) -> None:
    bench = EngineBench(dut, style)
    await bench.start()
    await bench.run(bench.random_program(110 if style == "never" else 30))


@cocotb.test()
async def tables_give_their_functions(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    load = bench.load(["sqrt", "reciprocal"])
    await bench.run([load, *bench.random_program(25, (Function.SQRT, Function.RECIPROCAL))])
    COVERAGE.hit("a table of its own")


@cocotb.test()
@cocotb.parametrize(style=["never", "half"])
async def random_cubics_are_looked_up(dut: Any, style: str) -> None:
    bench = EngineBench(dut, style)
    await bench.start()
    first = bench.load(partitions=bench.cfg.partitions if style == "never" else 4)
    before = bench.random_program(3)
    await bench.run([*before, first, *bench.random_program(15, (Function.SIGMOID,))])
    COVERAGE.hit("a table of random cubics")
    if style != "never":
        return
    done = len(bench.dones)
    second = bench.load()
    bench.dones.clear()
    bench.ports.written.clear()
    await bench.run([second, *bench.random_program(15, (Function.SIGMOID,))])
    assert done and bench.dones
    COVERAGE.hit("a table over another")


@cocotb.test()
async def a_program_of_everything(dut: Any) -> None:
    """The one that planted faults must not pass."""
    bench = EngineBench(dut, "rarely")
    await bench.start()
    everyone = (0, bench.cfg.partitions)
    end = bench.cfg.sbuf.partition_bytes - 256  # nothing random comes here
    ties = contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=16, offset=end)
    bench.sbuf.write(ties, np.tile(np.arange(-7.5, 8, dtype=np.float32).view(np.uint32), (everyone[1], 1)))
    narrow = contiguous(space=Space.SBUF, dtype="int8", partitions=everyone, elements=16, offset=end + 64)
    closely = [
        _word(
            Opcode.ACTIVATION,
            src0=contiguous(space=Space.PSUM, dtype="fp32", partitions=everyone, elements=5),
            dst=contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=5, offset=end + 128 + 20 * n),
            imm2=function << 32,
        )
        for n, function in enumerate((Function.SQUARE, Function.COPY, Function.SIGN))
    ]
    program = [*bench.random_program(2), bench.load(), *bench.random_program(50, (Function.SIGMOID,))]
    sums = {"reduce": Reduce.RESET_REDUCE, "store": 1, "imm2": AluOp.ADD << 40 | end + 192}
    program += [_word(Opcode.ACTIVATION, src0=ties, dst=narrow, **sums), *closely]
    await bench.run([*program, *_reductions(bench, Reduce.REDUCE, 12, store=1)])


@cocotb.test()
@cocotb.parametrize(space=[Space.PSUM, Space.SBUF], dtype=["fp32", "bf16", "uint8"])
async def activations_one_element_a_scalar_cycle(dut: Any, space: Space, dtype: str) -> None:
    bench = EngineBench(dut)
    await bench.start()
    cfg = bench.cfg
    everyone = (0, cfg.partitions)
    elements, instructions = 100, 4
    src = contiguous(
        space=space, dtype="fp32" if space == Space.PSUM else dtype, partitions=everyone, elements=elements
    )
    program = [
        _word(
            Opcode.ACTIVATION,
            src0=src,
            dst=contiguous(
                space=Space.SBUF, dtype=dtype, partitions=everyone, elements=elements, offset=4 * elements * (n + 1)
            ),
            op0=AluOp.MULTIPLY,
            imm0=0x40000000,
            imm2=Function.SQUARE << 32,
        )
        for n in range(instructions)
    ]
    await bench.run(program)
    busy = bench.states["busy"]
    exact = instructions * elements * bench.den / bench.num
    assert abs(busy - exact) <= instructions * 2, f"busy for {busy} cycles, {exact} expected"
    gaps, ends = _gaps(bench, elements)
    assert (np.delete(gaps, ends) == 1).all(), "a bubble inside an activation"
    right = 1 if space == Space.PSUM else TURNAROUND
    assert (gaps[ends] == right).all(), f"{gaps[ends]} scalar cycles between two activations"
    assert set(bench.states) <= {"idle", "busy", "fill", "drain"}


@cocotb.test()
@cocotb.parametrize(reduce=[Reduce.RESET_REDUCE, Reduce.REDUCE], store=[0, 1])
async def reductions_end_in_time(dut: Any, reduce: Reduce, store: int) -> None:
    bench = EngineBench(dut)
    await bench.start()
    elements = 20
    program = _reductions(bench, reduce, elements, store)
    await bench.run(program)
    if not store:
        gaps, ends = _gaps(bench, elements)
        assert (np.delete(gaps, ends) == 1).all(), "a bubble inside a reduction"
        assert (gaps[ends] == GAP[reduce]).all(), f"{gaps[ends]} scalar cycles between two reductions"
    assert bench.states["unit"] > 0


@cocotb.test()
async def a_table_is_loaded_at_a_word_a_cycle(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    load = bench.load(["selu"])
    await bench.run([load])
    src = pattern_of(load, "src0")
    pairs = src.elements * src.partition_count // 2
    took = len(bench.ticks)
    assert took == pairs + 4, f"{took} scalar cycles for {pairs} words"
    assert bench.states["busy"] > 0 and bench.states["unit"] > 0


@cocotb.test()
async def moves_any_quadrant_to_any(dut: Any) -> None:
    bench = EngineBench(dut)
    await bench.start()
    quarter = bench.cfg.partitions // 4
    program = []
    for a in range(4):
        for b in range(4):
            src = contiguous(space=Space.PSUM, dtype="fp32", partitions=(a * quarter, quarter), elements=3)
            dst = contiguous(
                space=Space.SBUF, dtype="fp32", partitions=(b * quarter, quarter), elements=3,
                offset=16 * (4 * a + b),
            )  # fmt: skip
            fields = {"op0": AluOp.ADD, "column0": 1, "imm0": 2048 + 4 * a, "reduce": Reduce.LOAD_REDUCE}
            place = 3072 + 4 * (4 * a + b)
            more = {"column1": 1, "imm1": 2080, "store": 1, "imm2": AluOp.MAX << 40 | place}
            program.append(_word(Opcode.ACTIVATION, src0=src, dst=dst, **fields, **more))
    await bench.run(program)


def _reductions(bench: EngineBench, reduce: Reduce, elements: int, store: int) -> list[Fields]:
    """Four that follow each other as closely as reductions can."""
    everyone = (0, bench.cfg.partitions)
    return [
        _word(
            Opcode.ACTIVATION,
            src0=contiguous(space=Space.PSUM, dtype="fp32", partitions=everyone, elements=elements),
            dst=contiguous(space=Space.SBUF, dtype="bf16", partitions=everyone, elements=elements, offset=64 * n),
            reduce=reduce,
            store=store,
            imm2=AluOp.ADD << 40 | (2048 + 4 * n if store else 0),
        )
        for n in range(4)
    ]


def _gaps(bench: EngineBench, elements: int) -> tuple[np.ndarray, np.ndarray]:
    """Scalar cycles between neighbouring writes, and which of them lie between instructions."""
    gaps = np.diff(np.searchsorted(bench.ticks, bench.ports.written))
    return gaps, np.arange(elements - 1, len(gaps), elements)


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    COVERAGE.require_all()

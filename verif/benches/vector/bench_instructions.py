"""Vector engine: programs of all its instructions against the golden models, with refusals; their pace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from numpy.typing import NDArray

from rtl.contract.formats import FORMATS, by_code
from rtl.contract.isa import INSTRUCTION, REDUCTIONS, AccessPattern, AluOp, Opcode, Reduce, start_partition_rule
from rtl.contract.memmap import Space
from verif.agents.bench import Bench
from verif.agents.memory_port import MemoryPorts
from verif.agents.patterns import contiguous, random_partitions, random_pattern
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSource
from verif.checks.coverage import Coverage
from verif.golden.alu import alu, reduce
from verif.golden.conversion import convert, from_fp32, to_fp32
from verif.golden.exp import exp
from verif.golden.memory import Memory, offsets
from verif.golden.reciprocal import reciprocal

U32 = NDArray[np.uint32]
FORMAT_NAMES = ("fp32", "bf16", "fp16", "e4m3fn", "e4m3", "e5m2", "int8", "int16", "int32", "uint8", "uint16", "uint32")
WHOLE = ("int32", "uint32", "int16", "uint16", "int8", "uint8")
OPCODES = (
    Opcode.TENSOR_COPY,
    Opcode.TENSOR_TENSOR,
    Opcode.TENSOR_SCALAR,
    Opcode.SCALAR_TENSOR_TENSOR,
    Opcode.TENSOR_REDUCE,
    Opcode.RECIPROCAL,
    Opcode.EXP,
)
BITS = (AluOp.BIT_AND, AluOp.BIT_OR, AluOp.BIT_XOR, AluOp.BIT_NOT, AluOp.SHIFT_LEFT, AluOp.SHIFT_RIGHT)
NUMBERS = tuple(op for op in AluOp if op not in BITS)
COVERAGE = Coverage(
    "vector.instructions",
    [o.name for o in OPCODES]
    + [f"from {n}" for n in FORMAT_NAMES]
    + [f"to {n}" for n in FORMAT_NAMES]
    + [f"exp {r.name}" for r in Reduce]
    + [f"reduce {op.name}" for op in REDUCTIONS]
    + [f"{n} axes" for n in (1, 2, 3, 4)]
    + ["column a", "column b", "constant a", "bit operators", "reversed", "negated", "stored", "first from psum"]
    + ["second from psum", "quadrants differ", "read refused", "write refused", "some partitions keep their sum"],
)


@dataclass
class Item:
    """One instruction."""

    opcode: Opcode
    src0: AccessPattern
    dst: AccessPattern
    src1: AccessPattern | None = None
    fields: Mapping[str, int] = field(default_factory=dict)

    def word(self, sequence: int) -> int:
        """dispatch.COMMAND as an integer."""
        values = {"opcode": int(self.opcode), **self.fields}
        for name, pattern in (("src0", self.src0), ("src1", self.src1), ("dst", self.dst)):
            if pattern is not None:
                values |= {f"{name}_{k}": v for k, v in pattern.fields().items()}
        return INSTRUCTION.pack(values) | sequence << INSTRUCTION.width

    @property
    def column(self) -> AccessPattern:
        """Where the accumulator goes."""
        return contiguous(
            space=Space.SBUF, dtype="fp32", partitions=(self.dst.partition_start, self.dst.partition_count),
            elements=1, offset=self.fields.get("imm2", 0),
        )  # fmt: skip


class Golden:
    """What SBUF and the accumulators then hold."""

    def __init__(self, sbuf: Memory, psum: Memory):
        self.sbuf = Memory(*sbuf.bytes.shape)
        self.sbuf.bytes[:] = sbuf.bytes
        self.psum = psum
        self.accumulator = np.zeros(sbuf.bytes.shape[0], np.uint32)

    def _source(self, pattern: AccessPattern) -> NDArray[Any]:
        return (self.psum if pattern.space == Space.PSUM else self.sbuf).read(pattern)

    def _operand(self, item: Item, name: str) -> U32:
        """a or b: [partitions, 1]."""
        number = {"a": "0", "b": "1"}[name]
        value = item.fields.get(f"imm{number}", 0)
        count = item.src0.partition_count
        if not item.fields.get(f"column{number}", 0):
            return np.full((count, 1), value & 0xFFFFFFFF, np.uint32)
        where = (item.src0.partition_start, count)
        return self.sbuf.read(
            contiguous(space=Space.SBUF, dtype="fp32", partitions=where, elements=1, offset=value & 0xFFFFFF)
        ).astype(np.uint32)

    def run(self, item: Item) -> None:
        """One instruction."""
        f = item.fields
        op0, op1 = AluOp(f.get("op0", 0)), AluOp(f.get("op1", 0))
        raw = op0 in BITS or op1 in BITS
        names = by_code(item.src0.dtype).name, by_code(item.dst.dtype).name
        bits = self._source(item.src0)
        if item.opcode == Opcode.TENSOR_COPY:
            self.sbuf.write(item.dst, convert(bits, *names))
            return
        x = self._bits(bits, names[0]) if raw else to_fp32(bits, names[0])
        y: U32 = np.zeros_like(x)
        if item.src1 is not None:
            other = by_code(item.src1.dtype).name
            y = self._bits(self._source(item.src1), other) if raw else to_fp32(self._source(item.src1), other)
        a, b = self._operand(item, "a"), self._operand(item, "b")
        r0, r1 = bool(f.get("reverse0")), bool(f.get("reverse1"))
        if item.opcode == Opcode.TENSOR_TENSOR:
            out = alu(op0, x, y, r0)
        elif item.opcode == Opcode.TENSOR_SCALAR:
            out = alu(op1, alu(op0, x, a, r0), b, r1)
        elif item.opcode == Opcode.SCALAR_TENSOR_TENSOR:
            out = alu(op1, alu(op0, x, a, r0), y, r1)
        elif item.opcode == Opcode.RECIPROCAL:
            out = reciprocal(x)
        elif item.opcode == Opcode.TENSOR_REDUCE:
            length = int(np.prod([count for _, count in item.src0.dims[: f.get("axes", 0) + 1]]))
            out = reduce(x.reshape(x.shape[0], -1, length), op0)
            if f.get("negate"):
                out = np.where(out & np.uint32(0x7FFFFFFF) > 0x7F800000, out, out ^ np.uint32(1 << 31))
        else:
            out = exp(x.ravel(), np.broadcast_to(a, x.shape).ravel().copy()).reshape(x.shape)
            self._fold(item, out, b)
        if raw:
            self.sbuf.write(item.dst, out.astype(np.dtype(f"u{by_code(item.dst.dtype).bytes}")))
        else:
            self.sbuf.write(item.dst, from_fp32(out, names[1]))
        if f.get("store"):
            mine = slice(item.dst.partition_start, item.dst.partition_start + item.dst.partition_count)
            self.sbuf.write(item.column, self.accumulator[mine][:, None])

    def _fold(self, item: Item, out: U32, b: U32) -> None:
        how = Reduce(item.fields.get("reduce", 0))
        mine = slice(item.dst.partition_start, item.dst.partition_start + item.dst.partition_count)
        total = reduce(out, AluOp.ADD)
        if how == Reduce.RESET_REDUCE:
            self.accumulator[mine] = total
        elif how != Reduce.IDLE:
            before = self.accumulator[mine] if how == Reduce.REDUCE else b[:, 0]
            self.accumulator[mine] = alu(AluOp.ADD, before, total)

    @staticmethod
    def _bits(codes: NDArray[Any], name: str) -> U32:
        fmt = FORMATS[name]
        if not fmt.signed:
            return codes.astype(np.uint32)
        return codes.view(f"i{fmt.bytes}").astype(np.int32).view(np.uint32)


class InstructionBench:
    """The engine with memories around it."""

    def __init__(self, dut: Any, style: str = "never"):
        self.bench = Bench(dut)
        self.cfg, self.rng, self.style = self.bench.cfg, self.bench.rng, style
        cfg = self.cfg
        self.sbuf = Memory(cfg.partitions, cfg.sbuf.partition_bytes)
        self.psum = Memory(cfg.partitions, cfg.psum.partition_bytes)
        for memory in (self.sbuf, self.psum):
            shape = memory.bytes.shape[0], memory.bytes.shape[1] // 4
            values = self.rng.normal(size=shape) * 2.0 ** self.rng.integers(-6, 6, shape)
            memory.bytes[:] = values.astype(np.float32).view(np.uint8)
        wild = self.rng.random(self.sbuf.bytes.shape) < 0.02
        self.sbuf.bytes[wild] = self.rng.integers(0, 256, int(wild.sum()), dtype=np.uint8)
        self.dones: list[int] = []
        self.ticks = 0

    async def start(self) -> None:
        """Connect the agents and reset."""
        stalls = [styled(self.style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(4)]
        self.commands = StreamSource(self.bench, "queue__command", stalls[0])
        self.ports = MemoryPorts(self.bench, self.sbuf, self.psum)
        self.ports.add_sbuf_read("sbuf_read", stalls[1])
        self.ports.add_psum_read("psum_read", stalls[2])
        self.ports.add_sbuf_write("sbuf_write", stalls[3])
        dut = self.bench.dut

        def watch(now: int) -> None:
            self.ticks += int(dut.tick.value)
            if int(dut.queue__done.value):
                self.dones.append(self.ticks)

        self.ports.on_cycle.append(watch)
        await self.bench.start()
        self.ports.start()

    async def run(self, program: list[Item]) -> None:
        """Send all, wait for the end, compare SBUF."""
        golden = Golden(self.sbuf, self.psum)
        for item in program:
            golden.run(item)
        self.commands.send(item.word(n) for n, item in enumerate(program))
        cost = sum(12 * item.src0.elements + 100 for item in program)
        limit = 2000 + (4 if self.style == "never" else 30) * cost
        edge = RisingEdge(self.bench.clk)
        while len(self.dones) < len(program):
            await edge
            assert self.ports.cycle < limit, f"{len(self.dones)} of {len(program)} instructions after {limit} cycles"
        await self.bench.cycles(60)
        assert len(self.dones) == len(program), "an instruction was done twice"
        wrong = np.argwhere(self.sbuf.bytes != golden.sbuf.bytes)
        if wrong.size:
            p, byte = (int(v) for v in wrong[0])
            at = byte // 4 * 4
            words = [m.bytes[p, at : at + 4].copy().view(np.uint32)[0] for m in (self.sbuf, golden.sbuf)]
            raise AssertionError(
                f"SBUF partition {p} byte {byte} is in {words[0]:#x}, not {words[1]:#x} ({len(wrong)} bytes differ) "
                f"after {program if len(program) < 3 else len(program)}"
            )
        for port, name in (("sbuf_read", "read refused"), ("sbuf_write", "write refused")):
            COVERAGE.when(self.ports.refusals[port], name)

    def _pattern(
        self, dtype: str, partitions: tuple[int, int], elements: int, space: int = Space.SBUF
    ) -> AccessPattern:
        memory = self.cfg.psum if space == Space.PSUM else self.cfg.sbuf
        return random_pattern(
            self.rng, space=space, dtype=dtype, partitions=partitions, elements=elements,
            partition_bytes=memory.partition_bytes,
        )  # fmt: skip

    def _constant(self) -> int:
        return int(np.float32(self.rng.normal(scale=3)).view(np.uint32)) if self.rng.random() < 0.9 else 0

    def item(self, opcode: Opcode) -> Item:
        """A random legal instruction whose destination meets none of its operands."""
        while True:
            made = self._item(opcode)
            if not _meets(made):
                return made

    def _item(self, opcode: Opcode) -> Item:
        rng, cfg = self.rng, self.cfg
        start, count = random_partitions(rng, cfg.partitions)
        quarter = cfg.partitions // 4
        legal = [s for s in range(0, cfg.partitions, quarter) if start_partition_rule(s, count, cfg.partitions)]
        elsewhere = int(rng.choice([s for s in legal if s + count <= cfg.partitions]))
        elements = int(rng.integers(1, 26))
        f: dict[str, int] = {}
        numbers = tuple(int(op) for op in NUMBERS)
        operators = (Opcode.TENSOR_TENSOR, Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR)
        bits = opcode in operators and rng.random() < 0.25
        names = WHOLE if bits else FORMAT_NAMES
        src, dst = str(rng.choice(names)), str(rng.choice(names))
        if bits:
            size = FORMATS[src].bits
            dst = str(rng.choice([n for n in WHOLE if FORMATS[n].bits == size]))
            numbers = tuple(int(op) for op in BITS)
        second: AccessPattern | None = None
        space = Space.PSUM if rng.random() < 0.25 and not bits else Space.SBUF
        if space == Space.PSUM:
            src = "fp32"
        if opcode in (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR):
            other = Space.PSUM if space == Space.SBUF and rng.random() < 0.25 and not bits else Space.SBUF
            name = "fp32" if other == Space.PSUM else dst if bits else str(rng.choice(names))
            begin = int(rng.choice([s for s in legal if s + count <= cfg.partitions]))
            second = self._pattern(name, (begin, count), elements, other)
        source = self._pattern(src, (start, count), elements, space)
        if opcode in operators:
            f["op0"], f["reverse0"] = int(rng.choice(numbers)), int(rng.integers(2))
        if opcode in (Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR):
            f["op1"], f["reverse1"] = int(rng.choice([0, *numbers])), int(rng.integers(2))
        uses = {
            Opcode.TENSOR_SCALAR: (0, 1),
            Opcode.SCALAR_TENSOR_TENSOR: (0,),
            Opcode.EXP: (0, 1),
        }.get(opcode, ())
        for number in uses:
            if rng.random() < 0.5 and not bits:
                f[f"column{number}"], f[f"imm{number}"] = 1, 4 * int(rng.integers(cfg.sbuf.partition_bytes // 4))
            else:
                f[f"imm{number}"] = self._constant() if not bits else int(rng.integers(1 << 32))
        results = elements
        if opcode == Opcode.TENSOR_REDUCE:
            source = self._pattern(src, (start, count), int(rng.integers(1, 5)) * int(rng.integers(1, 13)), space)
            f["op0"], f["axes"] = int(rng.choice([int(op) for op in REDUCTIONS])), int(rng.integers(4))
            f["negate"] = int(rng.integers(2))
            dims = [*(n for _, n in source.dims), 1, 1, 1][:4]
            results = int(np.prod(dims[f["axes"] + 1 :]))
        if opcode == Opcode.EXP:
            f["reduce"] = int(rng.integers(4))
            f["store"] = int(f["reduce"] != 0 and rng.random() < 0.7)
            f["imm2"] = 4 * int(rng.integers(cfg.sbuf.partition_bytes // 4)) if f["store"] else 0
            if f["reduce"] != Reduce.LOAD_REDUCE:
                f.pop("column1", None)
                f["imm1"] = 0
        return Item(opcode, source, self._pattern(dst, (elsewhere, count), results), second, f)

    def cover(self, program: list[Item]) -> None:
        """Bins of a program that ran."""
        for item in program:
            f = item.fields
            COVERAGE.hit(item.opcode.name)
            COVERAGE.hit(f"from {by_code(item.src0.dtype).name}")
            COVERAGE.hit(f"to {by_code(item.dst.dtype).name}")
            COVERAGE.when(f.get("column0"), "column a")
            COVERAGE.when(f.get("column1"), "column b")
            COVERAGE.when("imm0" in f and not f.get("column0"), "constant a")
            COVERAGE.when(f.get("op0", 0) in [int(op) for op in BITS], "bit operators")
            COVERAGE.when(f.get("reverse0"), "reversed")
            COVERAGE.when(item.src0.space == Space.PSUM, "first from psum")
            COVERAGE.when(item.src1 is not None and item.src1.space == Space.PSUM, "second from psum")
            COVERAGE.when(item.src0.partition_start != item.dst.partition_start, "quadrants differ")
            if item.opcode == Opcode.TENSOR_REDUCE:
                COVERAGE.hit(f"reduce {AluOp(f['op0']).name}")
                COVERAGE.hit(f"{f['axes'] + 1} axes")
                COVERAGE.when(f["negate"], "negated")
            if item.opcode == Opcode.EXP:
                COVERAGE.hit(f"exp {Reduce(f['reduce']).name}")
                COVERAGE.when(f.get("store"), "stored")
                part = item.dst.partition_count < self.cfg.partitions
                COVERAGE.when(part and f["reduce"] == Reduce.REDUCE, "some partitions keep their sum")


def _meets(item: Item) -> bool:
    """Whether the destination, or the accumulator's place, shares a byte with an operand or with the other."""

    def touched(pattern: AccessPattern) -> set[int]:
        return {int(at) + n for at in offsets(pattern) for n in range(by_code(pattern.dtype).bytes)}

    sources = [p for p in (item.src0, item.src1) if p is not None and p.space == Space.SBUF]
    read: set[int] = set().union(*(touched(p) for p in sources))
    for number in (0, 1):
        if item.fields.get(f"column{number}"):
            at = item.fields[f"imm{number}"]
            read |= set(range(at, at + 4))
    wrote = touched(item.dst)
    place = touched(item.column) if item.fields.get("store") else set()
    return bool(wrote & read) or bool(place & wrote)


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def random_programs_leave_the_golden_bytes(dut: Any, style: str) -> None:
    bench = InstructionBench(dut, style)
    await bench.start()
    count = 90 if style == "never" else 30
    # all partitions start their sums, for the engine's have no meaning before
    everyone = contiguous(space=Space.PSUM, dtype="fp32", partitions=(0, bench.cfg.partitions), elements=3)
    target = contiguous(space=Space.SBUF, dtype="fp32", partitions=(0, bench.cfg.partitions), elements=3)
    first = [Item(Opcode.EXP, everyone, target, None, {"reduce": int(Reduce.RESET_REDUCE), "imm0": 0})]
    program = first + [bench.item(OPCODES[int(bench.rng.integers(len(OPCODES)))]) for _ in range(count)]
    await bench.run(program)
    bench.cover(program)


@cocotb.test()
@cocotb.parametrize(opcode=[Opcode.TENSOR_SCALAR, Opcode.EXP, Opcode.TENSOR_REDUCE, Opcode.TENSOR_TENSOR])
async def keeps_the_pace(dut: Any, opcode: Opcode) -> None:
    """An element a lane a vector cycle, two for two sources; little more from start to end."""
    bench = InstructionBench(dut)
    await bench.start()
    everyone, n = (0, bench.cfg.partitions), 64
    source = contiguous(space=Space.SBUF, dtype="bf16", partitions=everyone, elements=n)
    second = contiguous(space=Space.SBUF, dtype="bf16", partitions=everyone, elements=n, offset=256)
    results = 1 if opcode == Opcode.TENSOR_REDUCE else n
    target = contiguous(space=Space.SBUF, dtype="bf16", partitions=everyone, elements=results, offset=1024)
    fields = {"imm0": 0x3F000000, "op0": int(AluOp.ADD)}
    if opcode == Opcode.TENSOR_REDUCE:
        fields = {"op0": int(AluOp.MAX)}
    elif opcode == Opcode.TENSOR_TENSOR:
        fields = {"op0": int(AluOp.MULTIPLY)}
    elif opcode == Opcode.EXP:
        fields = {"imm0": 0x3F000000, "reduce": int(Reduce.RESET_REDUCE), "store": 1, "imm2": 2048}
    two = opcode == Opcode.TENSOR_TENSOR
    item = Item(opcode, source, target, second if two else None, fields)
    await bench.run([item, item, item])
    gap = bench.dones[2] - bench.dones[1]
    assert gap <= n * (1 + two) + 24, f"{gap} vector cycles for {n} elements"


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    COVERAGE.require_all()

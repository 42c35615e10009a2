"""Vector engine: programs of all its instructions against the golden models, with refusals; their pace."""

from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from rtl.contract.config import load
from rtl.contract.formats import by_code
from rtl.contract.isa import REDUCTIONS, AluOp, Opcode, Reduce
from rtl.contract.memmap import Space
from rtl.contract.rates import cycles, width
from rtl.contract.timing import Engine
from verif.agents.bench import Bench
from verif.agents.current import CurrentOpcode
from verif.agents.memory_port import MemoryPorts
from verif.agents.patterns import contiguous
from verif.agents.stall import STYLES, styled
from verif.agents.stream import StreamSource
from verif.bench import SEEDS, Run, noticed_by
from verif.benches.vector.items import BITS, FORMAT_NAMES, OPCODES, Item, Items
from verif.checks.coverage import Coverage
from verif.golden.memory import Memory
from verif.golden.operands import Operands
from verif.golden.vector_instructions import VectorInstructions

_RATIOS = tuple(load("tiny", [f"vector.clock_mhz={mhz}"]) for mhz in (960, 1800))
"""Other than half the clock."""
_FAULTS = (
    "the second source is read first",
    "the counters are told the opcode of the instruction behind",
    "a single byte is taken from the wrong place",
    "the second operator is left out",
    "exp takes another element",
    "the ALU ignores `reverse`",
    "a difference is a sum in the ALU",
    "a predicate is the sign of its number",
    "a scan begins anew with every element",
    *noticed_by("exp_keeps_to_its_limit/rate=1", "exp is as fast as is built"),
    *noticed_by(
        "each_instruction_leaves_the_golden_bytes/opcode=COPY_PREDICATED",
        "lanes that were not chosen are written too",
    ),
    *noticed_by(
        "each_instruction_leaves_the_golden_bytes/opcode=TENSOR_TENSOR",
        "an 8-bit element is written over its neighbour as well",
    ),
    *noticed_by("random_programs_leave_the_golden_bytes/style=mostly", "groups do not wait for the sums before them"),
    *noticed_by(
        "each_instruction_leaves_the_golden_bytes/opcode=RANGE_SELECT",
        "a number outside its bounds stays",
        "the accumulator forgets what it held",
    ),
)
"""Copies cannot show them."""

RUNS = (
    Run("vector_engine", faults=_FAULTS),
    *(Run("vector_engine", config=ratio, seeds=SEEDS[:1], regress=True) for ratio in _RATIOS),
)

COVERAGE = Coverage(
    "vector.instructions",
    [o.name for o in OPCODES]
    + [f"from {n}" for n in FORMAT_NAMES]
    + [f"to {n}" for n in FORMAT_NAMES]
    + [f"exp {r.name}" for r in Reduce]
    + [f"range {r.name}" for r in Reduce if r != Reduce.LOAD_REDUCE]
    + [f"reduce {op.name}" for op in REDUCTIONS]
    + [f"{n} axes" for n in (1, 2, 3, 4)]
    + [f"{n} at once" for n in (1, 2, 4)]
    + ["column a", "column b", "constant a", "bit operators", "reversed", "negated", "stored", "first from psum"]
    + ["second from psum", "to psum", "quadrants differ", "read refused", "write refused"]
    + ["some partitions keep their sum"],
)
OVERHEAD = 24  # vector cycles from start to end that are not elements
_ENDINGS = {Opcode.BN_STATS: 20, Opcode.MAX8: 12, Opcode.FIND_INDEX8: 24, Opcode.TRANSPOSE: 40, Opcode.BN_AGGR: 12}


class InstructionBench:
    """The engine with memories around it."""

    def __init__(self, dut: Any, style: str = "never"):
        self.bench = Bench(dut)
        self.cfg, self.rng, self.style = self.bench.cfg, self.bench.rng, style
        cfg = self.cfg
        self.items = Items(cfg, self.rng)
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
        stalls = [styled(self.style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(5)]
        self.commands = StreamSource(self.bench, "queue__command", stalls[0])
        self.ports = MemoryPorts(self.bench, self.sbuf, self.psum)
        self.ports.add_sbuf_read("sbuf_read", stalls[1])
        self.ports.add_psum_read("psum_read", stalls[2])
        self.ports.add_sbuf_write("sbuf_write", stalls[3])
        self.ports.add_psum_write("psum_write", stalls[4])
        dut = self.bench.dut

        def watch(now: int) -> None:
            self.ticks += int(dut.tick.value)
            if int(dut.queue__done.value):
                self.dones.append(self.ticks)

        self.ports.on_cycle += [watch, CurrentOpcode(dut, Engine.VECTOR).watch]
        await self.bench.start()
        self.ports.start()

    async def run(self, program: list[Item]) -> None:
        """Send all, wait for the end, compare both memories."""
        expected = {name: Memory(*getattr(self, name).bytes.shape) for name in ("sbuf", "psum")}
        for name, memory in expected.items():
            memory.bytes[:] = getattr(self, name).bytes
        golden = VectorInstructions(Operands(expected["sbuf"], expected["psum"]), self.cfg.partitions)
        for item in program:
            golden.write(item.decoded, golden.read(item.decoded))
        self.commands.send(item.word(n) for n, item in enumerate(program))
        cost = max(12 * item.elements + 100 for item in program)
        limit = 2000 + (4 if self.style == "never" else 30) * cost  # from one end to the next
        ended, since = len(self.dones), self.ports.cycle
        edge = RisingEdge(self.bench.clk)
        while len(self.dones) < len(program):
            await edge
            if len(self.dones) != ended:
                ended, since = len(self.dones), self.ports.cycle
            assert self.ports.cycle - since < limit, f"{ended} of {len(program)} ended, then none in {limit} cycles"
        await self.bench.cycles(60)
        assert len(self.dones) == len(program), "an instruction was done twice"
        for name, memory in expected.items():
            wrong = np.argwhere(getattr(self, name).bytes != memory.bytes)
            if wrong.size:
                p, byte = (int(v) for v in wrong[0])
                at = byte // 4 * 4
                words = [m.bytes[p, at : at + 4].copy().view(np.uint32)[0] for m in (getattr(self, name), memory)]
                what = program if len(program) < 3 else sorted({item.opcode.name for item in program})
                raise AssertionError(
                    f"{name} partition {p} byte {byte} is in {words[0]:#x}, not {words[1]:#x} ({len(wrong)} bytes "
                    f"differ) after {what}"
                )
        for port, name in (("sbuf_read", "read refused"), ("sbuf_write", "write refused")):
            COVERAGE.when(self.ports.refusals[port], name)

    def everyone_sums(self) -> Item:
        """All partitions start their sums, for the accumulators have no meaning before."""
        everyone = (0, self.cfg.partitions)
        source = contiguous(space=Space.PSUM, dtype="fp32", partitions=everyone, elements=3)
        target = contiguous(space=Space.SBUF, dtype="fp32", partitions=everyone, elements=3)
        return Item(Opcode.EXP, target, source, None, {"reduce": int(Reduce.RESET_REDUCE), "imm0": 0})

    def cover(self, program: list[Item]) -> None:
        """Bins of a program that ran."""
        for item in program:
            f = item.fields
            COVERAGE.hit(item.opcode.name)
            COVERAGE.hit(f"to {by_code(item.dst.dtype).name}")
            COVERAGE.hit(f"{width(item.opcode, self.cfg, item.src0, item.src1, item.dst)} at once")
            COVERAGE.when(item.dst.space == Space.PSUM, "to psum")
            COVERAGE.when(f.get("column0"), "column a")
            COVERAGE.when(f.get("column1"), "column b")
            COVERAGE.when("imm0" in f and not f.get("column0"), "constant a")
            COVERAGE.when(f.get("op0", 0) in [int(op) for op in BITS], "bit operators")
            COVERAGE.when(f.get("reverse0"), "reversed")
            COVERAGE.when(item.src1 is not None and item.src1.space == Space.PSUM, "second from psum")
            if item.src0 is not None:
                COVERAGE.hit(f"from {by_code(item.src0.dtype).name}")
                COVERAGE.when(item.src0.space == Space.PSUM, "first from psum")
                COVERAGE.when(item.src0.partition_start != item.dst.partition_start, "quadrants differ")
            if item.opcode == Opcode.TENSOR_REDUCE:
                COVERAGE.hit(f"reduce {AluOp(f['op0']).name}")
                COVERAGE.hit(f"{f['axes'] + 1} axes")
                COVERAGE.when(f["negate"], "negated")
            if item.opcode in (Opcode.EXP, Opcode.RANGE_SELECT):
                COVERAGE.hit(f"{'exp' if item.opcode == Opcode.EXP else 'range'} {Reduce(f['reduce']).name}")
                COVERAGE.when(f.get("store"), "stored")
                part = item.dst.partition_count < self.cfg.partitions
                COVERAGE.when(part and f["reduce"] == Reduce.REDUCE, "some partitions keep their sum")


@cocotb.test()
@cocotb.parametrize(opcode=OPCODES)
async def each_instruction_leaves_the_golden_bytes(dut: Any, opcode: Opcode) -> None:
    bench = InstructionBench(dut, "rarely")
    await bench.start()
    program = [bench.everyone_sums(), *(bench.items.item(opcode) for _ in range(8))]
    await bench.run(program)
    bench.cover(program)


@cocotb.test()
@cocotb.parametrize(style=STYLES)
async def random_programs_leave_the_golden_bytes(dut: Any, style: str) -> None:
    bench = InstructionBench(dut, style)
    await bench.start()
    count = 90 if style == "never" else 40
    chosen = [OPCODES[int(n)] for n in bench.rng.integers(len(OPCODES), size=count)]
    program = [bench.everyone_sums(), *(bench.items.item(opcode) for opcode in chosen)]
    await bench.run(program)
    bench.cover(program)


@cocotb.test()
@cocotb.parametrize(
    kind=[
        (Opcode.TENSOR_COPY, "bf16", Space.SBUF, "bf16"),
        (Opcode.TENSOR_COPY, "fp32", Space.PSUM, "bf16"),
        (Opcode.TENSOR_SCALAR, "bf16", Space.SBUF, "bf16"),
        (Opcode.TENSOR_SCALAR, "fp32", Space.SBUF, "bf16"),
        (Opcode.TENSOR_TENSOR, "bf16", Space.SBUF, "bf16"),
        (Opcode.TENSOR_TENSOR, "fp32", Space.PSUM, "bf16"),
        (Opcode.TENSOR_TENSOR, "fp32", Space.SBUF, "bf16"),
        (Opcode.SCALAR_TENSOR_TENSOR, "fp32", Space.PSUM, "fp32"),
        (Opcode.TENSOR_REDUCE, "bf16", Space.SBUF, "fp32"),
        (Opcode.TENSOR_REDUCE, "fp32", Space.PSUM, "fp32"),
        (Opcode.TENSOR_SCAN, "fp32", Space.SBUF, "fp32"),
        (Opcode.EXP, "bf16", Space.SBUF, "bf16"),
        (Opcode.EXP, "fp32", Space.PSUM, "bf16"),
        (Opcode.EXP, "bf16", Space.SBUF, "fp32"),
        (Opcode.RANGE_SELECT, "fp32", Space.PSUM, "fp32"),
        (Opcode.MAX8, "bf16", Space.SBUF, "fp32"),
        (Opcode.BN_STATS, "fp32", Space.SBUF, "fp32"),
        (Opcode.BN_AGGR, "fp32", Space.SBUF, "fp32"),
        (Opcode.RECIPROCAL, "fp32", Space.SBUF, "fp32"),
        (Opcode.TRANSPOSE, "bf16", Space.SBUF, "bf16"),
        (Opcode.MEMSET, "bf16", Space.SBUF, "bf16"),
    ]
)
async def keeps_the_pace(dut: Any, kind: tuple[Opcode, str, Space, str]) -> None:
    """What the table of rates says, and little more from start to end."""
    opcode, src, space, dst = kind
    bench = InstructionBench(dut)
    await bench.start()
    everyone, n = (0, bench.cfg.partitions), 96
    source = contiguous(space=space, dtype=src, partitions=everyone, elements=n)
    second = contiguous(space=Space.SBUF, dtype="bf16", partitions=everyone, elements=n, offset=512)
    results = {Opcode.TENSOR_REDUCE: 1, Opcode.MAX8: 8, Opcode.BN_STATS: 6, Opcode.BN_AGGR: 2}.get(opcode, n)
    target = contiguous(space=Space.SBUF, dtype=dst, partitions=everyone, elements=results, offset=1024)
    fields = {}
    if opcode not in (Opcode.TENSOR_COPY, Opcode.BN_STATS, Opcode.BN_AGGR, Opcode.RECIPROCAL, Opcode.TRANSPOSE):
        fields["imm0"] = 0x3F000000
    if opcode in (Opcode.TENSOR_SCALAR, Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_REDUCE):
        fields["op0"] = int(AluOp.ADD)
    if opcode == Opcode.TENSOR_SCAN:
        fields |= {"op0": int(AluOp.MULTIPLY), "op1": int(AluOp.ADD)}
    if opcode == Opcode.RANGE_SELECT:
        fields |= {"op0": int(AluOp.GE), "op1": int(AluOp.LT), "imm1": 0x42000000}
    if opcode == Opcode.EXP:
        fields |= {"reduce": int(Reduce.RESET_REDUCE), "store": 1, "imm2": 2052}
    two = opcode in (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_SCAN)
    reads = None if opcode == Opcode.MEMSET else source
    item = Item(opcode, target, reads, second if two else None, fields)
    await bench.run([item, item, item])
    gap = bench.dones[2] - bench.dones[1]
    exact = cycles(opcode, bench.cfg, item.src0, item.src1, item.dst)
    assert gap <= exact + OVERHEAD + _ENDINGS.get(opcode, 0), f"{gap} vector cycles, {float(exact)} expected"


@cocotb.test()
@cocotb.parametrize(rate=[1, 2, 4])
async def exp_keeps_to_its_limit(dut: Any, rate: int) -> None:
    """As slow as an engine that was built for so many results a cycle, and the same bytes."""
    bench = InstructionBench(dut)
    slower = replace(bench.cfg, vector=replace(bench.cfg.vector, exp_rate=rate))
    bench.bench.limit(slower)
    await bench.start()
    reads = contiguous(space=Space.SBUF, dtype="bf16", partitions=(0, bench.cfg.partitions), elements=96)
    target = contiguous(space=Space.SBUF, dtype="bf16", partitions=(0, bench.cfg.partitions), elements=96, offset=1024)
    item = Item(Opcode.EXP, target, reads, None, {"imm0": 0x3F000000})
    await bench.run([item, item, item])
    gap = bench.dones[2] - bench.dones[1]
    exact = cycles(Opcode.EXP, slower, item.src0, item.src1, item.dst)
    assert exact == 96 // rate
    assert exact <= gap <= exact + OVERHEAD, f"{gap} vector cycles, {float(exact)} expected"


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    COVERAGE.require_all()

"""Feed: random operands of every kind in SBUF against what each beat must hold; its pace with and without scales."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import cocotb
import numpy as np

from rtl.contract.access_pattern import PATTERN, AccessPattern
from rtl.contract.config import load
from rtl.contract.formats import FORMATS, by_code
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from rtl.contract.sparsity import PATTERNS
from rtl.tensor.feed_command import feed_command
from verif.agents.bench import Bench, manifest
from verif.agents.memory_port import MemoryPorts
from verif.agents.patterns import contiguous, random_columns
from verif.agents.stall import STYLES, never, styled
from verif.agents.stream import StreamSource
from verif.agents.tags import random_tags
from verif.bench import SEEDS, Run
from verif.checks.coverage import Coverage
from verif.golden.array_kinds import scale_codes
from verif.golden.groups import (
    beat_formats_of,
    bytes_of,
    formats_of,
    moving_bytes_of,
    scale_format_of,
    scale_rows_of,
    scaled,
)
from verif.golden.memory import Memory
from verif.golden.sparsity import moving_numbers, tags_of, tags_stand

_WIDE = load("tiny", ["partitions=32", "tensor.rows=32", "tensor.nvfp4=true", "tensor.row_groups=1"])
"""Blocks of 32 partitions, as in the larger configurations, and scales of both kinds; a feed of all rows."""
_LESS = (load("tiny", ["tensor.mx=false"]), load("tiny", ["tensor.sparsity=false"]))
_MOVING, _STATIONARY = {"reverse": False}, {"reverse": True}
_OF_TAGS = (
    "tags are those of the column beside it",
    "columns of the last element are counted from its end",
    "tags may repeat or descend",
    "tags may lie beyond the group",
)

_PLANTED = (
    "the word buffer does not go on after the last element of a word",
    "the row mask of the next command is used",
    "elements do not wait for their scales and tags",
    "scales come from the first slot",
    "scales are those of the element beside it",
    "two blocks of rows exchange their scales",
    "neighbouring entries of the map are exchanged",
    "the four numbers of a row are reversed",
    "negative numbers take the entries of positive ones",
)

RUNS = (
    Run("feed", config=_WIDE, options=_MOVING, seeds=SEEDS[:2], faults=_PLANTED),
    Run("feed", config=_WIDE, options=_STATIONARY, seeds=SEEDS[:2], faults=_OF_TAGS),
    *(
        Run("feed", config=less, options=side, seeds=(1,), regress=True)
        for less in _LESS
        for side in (_MOVING, _STATIONARY)
    ),
)

_CARRIER = {1: "uint8", 2: "uint16", 4: "uint32"}
_LAYOUT = feed_command()
CFG = manifest().config


def _coverage() -> Coverage:
    run = manifest()
    kinds = [(k, d) for k in range(8) for d in beat_formats_of(k, run.config)]
    bins = [f"{Kind(k).name} {by_code(d).name}" for k, d in kinds]
    with_scales = sorted({k for k, _ in kinds if scaled(k)})
    bins += [f"{Kind(k).name} slot {s}" for k in with_scales for s in range(scale_rows_of(k) // 2)]
    bins += [f"element at byte {b}" for b in range(8)]
    bins += [f"scale at byte {b}" for b in range(8) if with_scales]
    bins += [f"{name}" for name in PATTERNS] if run.config.tensor.sparsity else []
    if run.config.tensor.sparsity and run.options.get("reverse"):
        bins += ["tags stand", "tags fail", "tags fail in an earlier column", *(f"{n} columns more" for n in range(4))]
    bins += ["read refused", "beat held back", "operand from the middle", "kind changes", "swap"]
    return Coverage("tensor.feed_reverse" if run.options.get("reverse") else "tensor.feed", bins)


COVERAGE = _coverage()


@dataclass(frozen=True)
class Operand:
    """A command: elements, scales or tags if its kind has any, the map of FP4."""

    kind: int
    elements: AccessPattern
    scales: AccessPattern | None
    table: int
    sequence: int
    swap: int
    awaits: int
    sparsity: int = 0
    reserved: tuple[int, int] = (0, 0)

    def word(self) -> int:
        """As the port has it. `reserved`: bits of both patterns that mean nothing."""
        of_elements, of_scales = ({"reserved": bits} for bits in self.reserved)
        values = {
            "pattern": PATTERN.pack(self.elements.fields() | of_elements),
            "scales": PATTERN.pack((self.scales.fields() if self.scales else {}) | of_scales),
            "kind": self.kind,
            "sparsity": self.sparsity,
            "map": self.table,
            "sequence": self.sequence,
            "swap": self.swap,
            "awaits": self.awaits,
        }
        return sum(value << _LAYOUT[name].offset for name, value in values.items())


class FeedBench(Bench):
    """A feed with SBUF behind it and a taker in front."""

    def __init__(self, dut: Any, style: str = "never"):
        super().__init__(dut)
        self.reverse = bool(self.options.get("reverse"))
        cfg = self.cfg
        self.memory = Memory(cfg.partitions, cfg.sbuf.partition_bytes)
        self.memory.bytes[:] = self.rng.integers(0, 256, self.memory.bytes.shape, np.uint8)
        stalls = [styled(style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(3)]
        self.commands = StreamSource(self, "command", stalls[0])
        self.ports = MemoryPorts(self, self.memory, Memory(cfg.partitions, 8))
        self.ports.add_sbuf_read("sbuf", stalls[1])
        self.taking: Iterator[bool] = stalls[2]
        self.beats: list[int] = []  # cycles
        dut.take.value = 0

    def operand(self, kind: int | None = None) -> Operand:
        """A random legal one."""
        rng, cfg = self.rng, self.cfg
        kinds = [k for k in range(8) if beat_formats_of(k, cfg)]
        if kind is None:  # single numbers more often: only they lie at odd bytes
            kind = int(Kind.ONE if rng.random() < 0.25 else rng.choice(kinds))
        dtype = int(rng.choice(beat_formats_of(kind, cfg)))
        sparsity = int(rng.integers(7)) if kind == Kind.SPARSE else 0
        columns = int(rng.integers(1, 40))
        elements, scales = random_columns(rng, cfg, kind, dtype, columns, sparsity, not self.reverse)
        if kind == Kind.SPARSE:
            COVERAGE.hit(next(p.name for p in PATTERNS.values() if p.code == sparsity))
            if scales is not None and rng.random() < 0.8:
                COVERAGE.hit(f"{columns % 4} columns more")
                self.memory.write(scales, random_tags(rng, sparsity, elements.partition_count, columns))
        elif scales is not None:
            slot = scales.partition_start % min(32, cfg.partitions) // scales.partition_count
            COVERAGE.hit(f"{Kind(kind).name} slot {slot}")
        COVERAGE.hit(f"{Kind(kind).name} {by_code(dtype).name}")
        COVERAGE.when(elements.partition_start > 0, "operand from the middle")
        table = int.from_bytes(rng.bytes(16), "little") if dtype == FORMATS["e2m1"].code else 0
        swap, awaits, sequence = int(rng.integers(2)), int(rng.integers(8)), int(rng.integers(256))
        COVERAGE.when(swap, "swap")
        reserved = int(rng.integers(1 << 16)), int(rng.integers(1 << 16))
        return Operand(kind, elements, scales, table, sequence, swap, awaits, sparsity, reserved)

    def expected(self, x: Operand) -> list[tuple[int, ...]]:
        """Beats of an operand: mode, active, data, scales or tags of active rows, first, last, what else it knows."""
        if x.kind == Kind.SPARSE:
            return self.expected_sparse(x)
        size = bytes_of(x.kind, x.elements.dtype)
        raw = self.memory.read(replace(x.elements, dtype=FORMATS[_CARRIER[size]].code)).astype(np.uint64)
        dtype = x.elements.dtype
        if dtype == FORMATS["e2m1"].code:
            codes = [raw >> np.uint64(4 * q) & np.uint64(15) for q in range(4)]
            entries = np.array([x.table >> 8 * i & 0xFF for i in range(16)], np.uint64)
            raw = sum((entries[c.astype(np.int64)] << np.uint64(8 * q) for q, c in enumerate(codes)), np.uint64(0))
            dtype, size = FORMATS["e4m3fn"].code, 4
        scales = scale_codes(self.memory, x.elements, x.scales, x.kind) if x.scales else np.zeros(raw.shape, np.uint8)
        start, count = x.elements.partition_start, x.elements.partition_count
        active = (1 << count) - 1 << start
        beats = []
        order = range(raw.shape[1])
        for n, column in enumerate(reversed(order) if self.reverse else order):
            data = sum(int(v) << 64 * (start + i) for i, v in enumerate(raw[:, column]))
            scale = sum(int(v) << 8 * (start + i) for i, v in enumerate(scales[:, column]))
            ends = int(n == 0), int(n == len(order) - 1)
            known = x.sequence, x.swap, x.awaits, 0, start, count
            beats.append((dtype | x.kind << 4, active, size, data, scale, *ends, *known))
        return beats

    def expected_sparse(self, x: Operand) -> list[tuple[int, ...]]:
        """The same of a sparse operand: numbers of a moving one side by side, tags of a stationary one."""
        start, count = x.elements.partition_start, x.elements.partition_count
        columns = x.elements.elements
        if x.scales is None:
            numbers, size = moving_numbers(self.memory, x.elements, x.sparsity), moving_bytes_of(x.sparsity)
            size = 6 if x.sparsity == PATTERNS["4:12"].code else size
            tags = np.zeros((count, columns), np.uint8)
        else:
            numbers, size = self.memory.read(x.elements)[..., None], 2
            tags = tags_of(self.memory, x.scales, columns)
        lanes = np.ascontiguousarray(numbers).view(f"<u{2 * numbers.shape[2]}")[..., 0]
        beats = []
        failed = False
        order = range(columns)
        for n, column in enumerate(reversed(order) if self.reverse else order):
            if x.scales is not None:
                stands = tags_stand(tags[:, column : column + 1], x.sparsity)
                COVERAGE.when(failed and stands, "tags fail in an earlier column")
                failed |= not stands
            data = sum(int(v) << 64 * (start + i) for i, v in enumerate(lanes[:, column]))
            tag = sum(int(v) << 4 * (start + i) for i, v in enumerate(tags[:, column]))
            mode = x.elements.dtype | x.kind << 4 | x.sparsity << 7
            ends = int(n == 0), int(n == columns - 1)
            known = x.sequence, x.swap, x.awaits, int(failed), start, count
            beats.append((mode, (1 << count) - 1 << start, size, data, tag, *ends, *known))
        if x.scales is not None:
            COVERAGE.hit("tags fail" if failed else "tags stand")
        return beats

    async def run(self, operands: list[Operand]) -> None:
        """Send them, take every beat and compare it."""
        dut = self.dut
        wanted = [(x, beat) for x in operands for beat in self.expected(x)]
        self.commands.send([x.word() for x in operands])
        taking = False
        limit = self.ports.cycle + 40 * len(wanted) + 60 * len(operands) + 400
        while len(self.beats) < len(wanted):
            await self.edge
            assert self.ports.cycle < limit, f"{len(self.beats)} of {len(wanted)} beats in time"
            valid = dut.valid.value == 1
            if valid and taking:
                self.check(*wanted[len(self.beats)])
                self.beats.append(self.ports.cycle)
            COVERAGE.when(valid and not taking, "beat held back")
            taking = not next(self.taking)
            dut.take.value = int(taking)
        for _ in range(20):
            await self.edge
            assert dut.valid.value == 0 and dut.holds.value == 0, "something is left"
        COVERAGE.when(self.ports.refusals["sbuf"], "read refused")
        for x, y in zip(operands, operands[1:], strict=False):
            COVERAGE.when(x.kind != y.kind, "kind changes")
        for x in operands:
            for pattern, what in ((x.elements, "element"), (x.scales, "scale")):
                if pattern is not None and (what == "element" or x.kind != Kind.SPARSE):
                    COVERAGE.hit(f"{what} at byte {pattern.offset % 8}")

    def check(self, x: Operand, beat: tuple[int, ...]) -> None:
        """Compare the beat at the port."""
        mode, active, size, data, scale, *rest = beat
        dut = self.dut
        names = ("first", "last", "ticket", "swap", "awaits", "failed", "start", "count")
        got = [int(getattr(dut, name).value) for name in names]
        number = len(self.beats)
        assert int(dut.mode.value) == mode, f"beat {number}: mode {int(dut.mode.value):#x}, not {mode:#x}"
        assert int(dut.active.value) == active, f"beat {number}: active {int(dut.active.value):#x}, not {active:#x}"
        assert got == rest, f"beat {number}: {dict(zip(names, got, strict=True))}, not {rest}"
        sparse = x.kind == Kind.SPARSE
        bits_beside = 4 if sparse else 8
        lanes, each = int(dut.data.value), int((dut.tags if sparse else dut.scale).value)
        for row in range(self.cfg.tensor.rows):
            if active >> row & 1:
                bits = (1 << 8 * size) - 1
                have, want = lanes >> 64 * row & bits, data >> 64 * row & bits
                assert have == want, f"beat {number} of {x} row {row}: {have:#x}, not {want:#x}"
                if x.scales is not None:
                    bits = (1 << bits_beside) - 1
                    have, want = each >> bits_beside * row & bits, scale >> bits_beside * row & bits
                    assert have == want, f"beat {number} of {x} row {row}: scale or tag {have:#x}, not {want:#x}"


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(style=STYLES)
async def operands_of_every_kind(dut: Any, style: str) -> None:
    bench = FeedBench(dut, style)
    await bench.start()
    bench.ports.start()
    await bench.run([bench.operand() for _ in range(300 if style == "never" else 75)])


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(kind=[k for k in (Kind.PAIR, Kind.QUAD, Kind.HIGH, Kind.SPARSE) if formats_of(k, CFG)])
async def a_beat_a_cycle(dut: Any, kind: int) -> None:
    """Contiguous operands one after the other: no gap, and no word read twice. Sparse ones are 4:16."""
    bench = FeedBench(dut)
    bench.taking = never()
    await bench.start()
    bench.ports.start()
    columns, count = 64, 4
    dtype = formats_of(kind, bench.cfg)[0]
    sparse = kind == Kind.SPARSE
    size = 8 if sparse and not bench.reverse else bytes_of(kind, dtype)
    whole = (0, bench.cfg.partitions)
    operands = []
    for n in range(count):
        at = size * columns * n
        x = contiguous(space=Space.SBUF, dtype="uint8", partitions=whole, elements=columns, offset=at)
        scales = None
        if sparse and bench.reverse:
            at = 4096 + columns // 2 * n
            scales = contiguous(space=Space.SBUF, dtype="uint16", partitions=whole, elements=columns // 4, offset=at)
        if scaled(kind):
            place = 0, min(32, bench.cfg.partitions) // scale_rows_of(kind)
            of = by_code(scale_format_of(kind)).name
            scales = contiguous(
                space=Space.SBUF, dtype=of, partitions=place, elements=columns, offset=4096 + columns * n
            )
        operands.append(Operand(kind, replace(x, dtype=dtype), scales, 0, n, 0, 0))
    await bench.run(operands)
    last = bench.beats[-columns:]
    if not bench.reverse:  # finding the last element takes time, which a longer operand hides
        gaps = bench.beats[-1] - bench.beats[0] + 1 - len(bench.beats)
        assert gaps == 0, f"{gaps} cycles without a beat"
    assert last[-1] - last[0] + 1 == columns, "gaps within an operand"
    words = count * columns * size // 8 + (count * columns // 8 if scaled(kind) else 0)
    words += count * columns // 16 if sparse and bench.reverse else 0
    assert bench.ports.grants["sbuf"] == words, f"{bench.ports.grants['sbuf']} words read, not {words}"


@cocotb.test()
async def everything_was_covered(dut: Any) -> None:
    COVERAGE.require_all()

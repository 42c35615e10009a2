"""The check of one queue's instructions beside the golden check; what its benches drive."""

from itertools import product
from typing import Any

import cocotb

from rtl.contract.formats import by_code
from rtl.contract.isa import COPY_QUEUES, Cause, Opcode, Queue, Rounding, block
from rtl.contract.kinds import Kind
from rtl.contract.memmap import Space
from rtl.contract.sparsity import PATTERNS
from verif.agents.bench import Bench, manifest
from verif.agents.stream import StreamSink, StreamSource
from verif.benches.issue.shapes import BYTES
from verif.benches.issue.words import Fields, legal, opcodes_of, pack
from verif.checks.coverage import Coverage
from verif.golden.groups import WeightKinds, beat_formats_of, bytes_of, moving_bytes_of
from verif.golden.issue import check

__all__ = ["ARRAY", "COVERAGE", "OF_WEIGHTS", "CheckBench", "ends", "nested", "plain"]

_OF_OPERANDS = ("ILLEGAL_DTYPE", "BAD_SPACE", "BAD_PARTITION", "BAD_PATTERN", "MISALIGNED", "OUT_OF_RANGE")
_WITH_OPERATORS = (33, 34, 35, 36, 37, 40, 49, 50, 64, 67)
ARRAY = (Opcode.LOAD_STATIONARY, Opcode.MULTIPLY_MOVING, Opcode.TENSOR_TRANSPOSE)
_WORD_BITS = 1024
_PLACE = ("space", "dtype", "partition_start", "partition_count")


def _coverage() -> Coverage:
    queue = Queue(manifest().options["queue"])
    bins = ["NOP_BAD_SEMAPHORE", "NOP_ILLEGAL_OPCODE", "DMA_TRIGGER_BAD_RING", "no_such_opcode"]
    bins += [f"{Opcode(o).name}_NONE" for o in (0, 1, *opcodes_of(queue))]
    bins += ["DMA_COPY_NONE", "DMA_COPY_ILLEGAL_OPCODE"] if queue in COPY_QUEUES else []
    for opcode in opcodes_of(queue):
        causes = ["ILLEGAL_OPCODE", "BAD_SEMAPHORE", *(_OF_OPERANDS if opcode != Opcode.GP_RUN else ())]
        causes += ["BAD_OPERATOR"] if opcode in _WITH_OPERATORS else []
        causes += ["NOT_LOADED"] if opcode == Opcode.ACTIVATION else []
        bins += [f"{Opcode(opcode).name}_{cause}" for cause in causes]
    if opcodes_of(queue):
        bins += ["downwards", "broadcast", "several_dimensions"]
    if queue == Queue.TENSOR:
        cfg = manifest().config
        bins += [f"{Kind(k).name} {by_code(d).name}" for k in range(8) for d in beat_formats_of(k, cfg)]
        bins += [f"tile {tile}" for tile in range(cfg.tensor.groups.bit_length())] + ["no such tile"]
        bins += [f"rounding {way.name}" for way in Rounding]
        bins += [f"{side} of {name}" for name in PATTERNS for side in ("load", "matmul")] if cfg.tensor.sparsity else []
        bins += ["other pattern", "bus cut", "pattern without sparsity"] if cfg.tensor.sparsity else []
        bins += ["sparse rows not aligned"] if cfg.tensor.sparsity and cfg.partitions // 4 % 4 else []
        bins += ["operand beyond its tile"] if cfg.tensor.groups > 1 else []
    return Coverage(f"check_{queue.name.lower()}", bins)


COVERAGE = _coverage()
OF_WEIGHTS = Coverage(
    "check.weights",
    ["other kind", "other E4M3", "kinds by row", "kinds by column", "load before a transpose"]
    + ["zeros behind a transpose", "weights beside a transpose"]
    + ["random LOAD_STATIONARY NONE", "random MULTIPLY_MOVING NONE", "random MULTIPLY_MOVING ILLEGAL_DTYPE"]
    + ["random TENSOR_TRANSPOSE NONE", "random TENSOR_TRANSPOSE LOAD_PENDING"]
    + ["load in another tile", "transpose of another tile"] * (manifest().config.tensor.groups > 1),
)


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
        self.refuse: int = Cause.NONE  # that comes with every word
        self.forget()
        dut.start.value = dut.refuse.value = 0
        cocotb.start_soon(self.watch_wake())

    def forget(self) -> None:
        """A program starts: no load has left anything."""
        tensor = self.cfg.tensor
        self.weights = WeightKinds(tensor.rows, tensor.cols, tensor.groups)

    def add(self, fields: Fields) -> Cause:
        """One more word to check."""
        word = pack(fields)
        cause, address = check(word, self.cfg, self.queue, loaded=self.loaded, weights=self.weights)
        self.source.send([word])
        if self.refuse:
            self.expected.append((word, self.refuse, 0))
            return cause
        self.expected.append((word, int(cause), address))
        opcode = fields["opcode"] & 0xFF
        name = f"{Opcode(opcode).name}_{cause.name}" if opcode in list(Opcode) else "no_such_opcode"
        COVERAGE.when(name in COVERAGE.hits, name)
        if cause == Cause.NONE:
            if opcode == Opcode.LOAD_TABLE:
                self.loaded = fields["imm0"]
            self.weights.issue(fields)
            if opcode in ARRAY:
                COVERAGE.hit(f"{Kind(fields.get('kind', 0)).name} {by_code(fields['src0_dtype']).name}")
                COVERAGE.hit(f"tile {fields.get('tile', 0)}")
                COVERAGE.hit(f"rounding {Rounding(fields.get('rounding', 0)).name}")
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
            f"word {word:#x}: cause {got & 0xFF} at {got >> 8:#x}, not {cause} at {address:#x}"
        )

    def legal(self, opcode: int | None = None) -> Fields:
        """A legal word; of `opcode`, with loads before it until there is one."""
        while True:
            fields = legal(self.rng, self.cfg, self.queue, opcode, self.loaded, self.weights)
            if opcode is None or fields["opcode"] == opcode:
                return fields
            assert self.add(fields) == Cause.NONE

    async def watch_wake(self) -> None:
        """From start on: awake exactly while a word is looked at or taken, and when a program starts."""
        dut = self.dut
        while True:
            await self.edge
            waits = dut.o__valid.value and not dut.o__ready.value
            awake = bool(dut.start.value or (dut.i__valid.value and not waits))
            assert bool(dut.wake.value) == awake, f"wake {dut.wake.value} in a cycle that needs {int(awake)}"

    async def finish(self) -> None:
        """Wait for all results."""
        for _ in range(40 * len(self.expected) + 100):
            if len(self.sink.taken) == len(self.expected):
                return
            await self.edge
        raise AssertionError(f"{len(self.sink.taken)} of {len(self.expected)} words came through")


def plain(opcode: int, kind: int, dtype: int, start: int, count: int) -> Fields:
    """An instruction of the tensor queue with one column from byte 0."""
    f: Fields = {"opcode": opcode, "kind": kind}
    patterns = {"src0": (1, dtype, start, count)} | ({"dst": (2, 0, 0, 1)} if opcode > 16 else {})
    patterns |= (
        {"src1": (1, 8, start // 32 * 32, block(manifest().config.partitions) // 8)} if kind == Kind.QUAD else {}
    )
    patterns |= {"src1": (1, 13, start, count)} if kind == Kind.SPARSE and opcode == Opcode.LOAD_STATIONARY else {}
    for name, values in patterns.items():
        f |= {f"{name}_{k}": v for k, v in zip(_PLACE, values, strict=True)} | {f"{name}_count{i}": 1 for i in range(4)}
    if opcode == Opcode.TENSOR_TRANSPOSE:
        f |= {"dst_count0": count, "dst_step0": 1}
    return f


def ends(base: Fields, name: str) -> list[Fields]:
    """Beside an operand's last legal place: an element cut, and ends beyond the memory by a single bit."""
    memory = manifest().config.psum if base[f"{name}_space"] == Space.PSUM else manifest().config.sbuf
    reach = sum(max(0, base[f"{name}_step{k}"]) * (base[f"{name}_count{k}"] - 1) for k in range(4)) + 1
    size = BYTES.get(base[f"{name}_dtype"], 1)
    if base["opcode"] in ARRAY and name == "src0":
        moves = base["opcode"] == Opcode.MULTIPLY_MOVING and base["kind"] == Kind.SPARSE
        size = moving_bytes_of(base["sparsity"]) if moves else bytes_of(base["kind"], base["src0_dtype"])
    last = memory.partition_bytes - size * reach
    places = [last, *(last + (1 << bit) for bit in range(24)), *(size * n + size // 2 for n in range(2))]
    return [{f"{name}_offset": at} for at in places if at >= 0]


def nested(name: str) -> list[Fields]:
    """Steps of two dimensions that just do not meet, or just do, of every size."""
    changes: list[Fields] = []
    for power, count, less in product(range(13), (2, 3), (0, 1)):
        step = min(count << power, (1 << 15) - 1) - less
        new = {"step0": 1 << power, "count0": count, "step1": step, "count1": 2, "count2": 1, "count3": 1}
        changes.append({f"{name}_{field}": value for field, value in new.items()})
    return changes

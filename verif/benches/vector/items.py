"""Random legal instructions of the vector queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rtl.contract.access_pattern import AccessPattern, start_partition_rule
from rtl.contract.config import Config
from rtl.contract.formats import FORMATS, by_code
from rtl.contract.isa import INSTRUCTION, REDUCTIONS, SHUFFLE_KEEP, AluOp, Opcode, Reduce, block
from rtl.contract.memmap import Space
from verif.agents.patterns import contiguous, random_partitions, random_pattern
from verif.golden.memory import offsets

__all__ = ["BITS", "FORMAT_NAMES", "OPCODES", "Item", "Items"]

FORMAT_NAMES = ("fp32", "bf16", "fp16", "e4m3fn", "e4m3", "e5m2", "int8", "int16", "int32", "uint8", "uint16", "uint32")
OPCODES = tuple(opcode for opcode in Opcode if Opcode.TENSOR_COPY <= opcode <= Opcode.EXP)
BITS = (AluOp.BIT_AND, AluOp.BIT_OR, AluOp.BIT_XOR, AluOp.BIT_NOT, AluOp.SHIFT_LEFT, AluOp.SHIFT_RIGHT)
_NUMBERS = tuple(op for op in AluOp if op not in BITS)
_SCANS = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)
_COMPARISONS = (AluOp.EQ, AluOp.NE, AluOp.GT, AluOp.GE, AluOp.LT, AluOp.LE)
_WHOLE = ("int32", "uint32", "int16", "uint16", "int8", "uint8")
_OPERATORS = (Opcode.TENSOR_TENSOR, Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR)
_TWO = (Opcode.TENSOR_TENSOR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_SCAN, Opcode.SELECT, Opcode.COPY_PREDICATED)
_EIGHT = (Opcode.MAX8, Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8)
_BLOCKS = (Opcode.TRANSPOSE, Opcode.SHUFFLE)
_SBUF_ONLY = (*_EIGHT, *_BLOCKS, Opcode.BN_STATS, Opcode.BN_AGGR)
_COLUMNS = {
    Opcode.TENSOR_SCALAR: (0, 1),
    Opcode.SCALAR_TENSOR_TENSOR: (0,),
    Opcode.TENSOR_SCAN: (0,),
    Opcode.SELECT: (0,),
    Opcode.RANGE_SELECT: (0, 1),
    Opcode.MEMSET: (0,),
    Opcode.MATCH_REPLACE8: (0,),
    Opcode.EXP: (0, 1),
}
_VALUES = 8


@dataclass
class Item:
    """One instruction."""

    opcode: Opcode
    dst: AccessPattern
    src0: AccessPattern | None = None
    src1: AccessPattern | None = None
    fields: Mapping[str, int] = field(default_factory=dict)

    @property
    def decoded(self) -> dict[str, int]:
        """All fields of the instruction word."""
        values = {f.name: 0 for f in INSTRUCTION} | {"opcode": int(self.opcode), **self.fields}
        for name, pattern in (("src0", self.src0), ("src1", self.src1), ("dst", self.dst)):
            if pattern is not None:
                values |= {f"{name}_{k}": v for k, v in pattern.fields().items()}
        return values

    def word(self, sequence: int) -> int:
        """dispatch.COMMAND as an integer."""
        return INSTRUCTION.pack(self.decoded) | sequence << INSTRUCTION.width

    @property
    def elements(self) -> int:
        """Elements of a partition that it works on."""
        return (self.src0 or self.dst).elements

    @property
    def overlaps(self) -> bool:
        """Whether the destination, or the accumulator's place, shares a byte with an operand or with the other."""
        places = [(p.space, p) for p in (self.src0, self.src1) if p is not None]
        read = {(space, at) for space, p in places for at in _bytes(p)}
        for number in (0, 1):
            if self.fields.get(f"column{number}"):
                at = self.fields[f"imm{number}"] & 0xFFFFFF
                read |= {(int(Space.SBUF), at + n) for n in range(4)}
        wrote = {(self.dst.space, at) for at in _bytes(self.dst)}
        at = self.fields.get("imm2", 0) & 0xFFFFFF
        stored = {(int(Space.SBUF), at + n) for n in range(4)} if self.fields.get("store") else set()
        return bool(wrote & read) or bool(stored & wrote)


def _bytes(pattern: AccessPattern) -> set[int]:
    return {int(at) + n for at in offsets(pattern) for n in range(by_code(pattern.dtype).bytes)}


class Items:
    """Makes instructions for a configuration."""

    def __init__(self, cfg: Config, rng: np.random.Generator):
        self.cfg = cfg
        self.rng = rng
        self._reductions = 0

    def item(self, opcode: Opcode) -> Item:
        """A random legal instruction whose destination meets none of its operands."""
        while True:
            made = self._item(opcode)
            if not made.overlaps:
                self._reductions += opcode == Opcode.TENSOR_REDUCE
                return made

    def _one(self, options: tuple) -> int:  # type: ignore[type-arg]
        return options[int(self.rng.integers(len(options)))]

    def _flag(self, probability: float = 0.5) -> bool:
        return bool(self.rng.random() < probability)

    def _pattern(self, dtype: str, partitions: tuple[int, int], elements: int, space: int) -> AccessPattern:
        """An operand; often neighbours from an aligned byte, which run several at a time."""
        memory = self.cfg.psum if space == Space.PSUM else self.cfg.sbuf
        if self._flag(0.5):
            size = FORMATS[dtype].bytes
            step = 8 if self._flag(0.7) else size
            most = (memory.partition_bytes - size * elements) // step
            offset = step * int(self.rng.integers(most + 1))
            return contiguous(space=space, dtype=dtype, partitions=partitions, elements=elements, offset=offset)
        return random_pattern(
            self.rng, space=space, dtype=dtype, partitions=partitions, elements=elements,
            partition_bytes=memory.partition_bytes,
        )  # fmt: skip

    def _places(self, opcode: Opcode) -> tuple[int, list[int]]:
        """How many partitions, and where operands may start."""
        q = block(self.cfg.partitions)
        if opcode in _BLOCKS:
            count = q * int(self.rng.integers(1, self.cfg.partitions // q + 1))
        else:
            _, count = random_partitions(self.rng, self.cfg.partitions)
        quarter = self.cfg.partitions // 4
        starts = [s for s in range(0, self.cfg.partitions, quarter) if s + count <= self.cfg.partitions]
        starts = [s for s in starts if start_partition_rule(s, count, self.cfg.partitions)]
        return count, [s for s in starts if opcode not in _BLOCKS or s % q == 0]

    def _elements(self, opcode: Opcode) -> tuple[int, int]:
        """Elements of src0 and of dst."""
        rng = self.rng
        n = int(rng.integers(1, 26)) if self._flag() else 4 * int(rng.integers(1, 9))
        if opcode in _EIGHT:
            n = int(rng.integers(8, 30))
            return n, n if opcode == Opcode.MATCH_REPLACE8 else _VALUES
        if opcode == Opcode.BN_STATS:
            return n, 6
        if opcode == Opcode.BN_AGGR:
            return 3 * int(rng.integers(1, 6)), 2
        if opcode == Opcode.TRANSPOSE:
            n = block(self.cfg.partitions) * int(rng.integers(1, 5))
        return n, n

    def _item(self, opcode: Opcode) -> Item:
        rng, cfg = self.rng, self.cfg
        count, starts = self._places(opcode)
        n, results = self._elements(opcode)
        f: dict[str, int] = {}
        numbers: tuple[AluOp, ...] = _NUMBERS
        bits = opcode in _OPERATORS and self._flag(0.25)
        names = _WHOLE if bits else FORMAT_NAMES
        src, dst = str(self._one(names)), str(self._one(names))
        if opcode in (Opcode.EXP, Opcode.TENSOR_SCALAR, Opcode.TENSOR_TENSOR) and not bits and self._flag(0.4):
            src, dst = str(self._one(("bf16", "fp16", "e5m2"))), str(self._one(("bf16", "e4m3fn")))
        if bits:
            dst = str(self._one(tuple(n for n in _WHOLE if FORMATS[n].bits == FORMATS[src].bits)))
            numbers = BITS
        spaces = [Space.PSUM if self._flag(0.25) and not bits else Space.SBUF for _ in range(3)]
        if spaces[0] == Space.PSUM:
            spaces[1] = Space.SBUF
        if opcode in (*_SBUF_ONLY, Opcode.COPY_PREDICATED):
            spaces[2] = Space.SBUF
        if opcode == Opcode.FIND_INDEX8:
            dst = str(self._one(("uint16", "uint32")))
        if opcode in _BLOCKS:
            spaces[0] = Space.SBUF
            dst = src
        if opcode == Opcode.COPY_PREDICATED and self._flag():
            dst = src

        def pattern(which: int, name: str, elements: int) -> AccessPattern:
            space = spaces[which]
            where = int(self._one(tuple(starts))), count
            return self._pattern("fp32" if space == Space.PSUM else name, where, elements, space)

        second = None
        if opcode in _TWO:
            second = pattern(1, dst if bits else str(self._one(names)), n)
        elif opcode in (Opcode.FIND_INDEX8, Opcode.MATCH_REPLACE8):
            second = pattern(1, src, _VALUES)
        source = None if opcode == Opcode.MEMSET else pattern(0, src, n)
        if opcode in _OPERATORS:
            f["op0"], f["reverse0"] = int(self._one(numbers)), int(rng.integers(2))
        if opcode in (Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR):
            f["op1"], f["reverse1"] = int(self._one((AluOp.BYPASS, *numbers))), int(rng.integers(2))
        if opcode == Opcode.TENSOR_SCAN:
            f |= {"op0": int(self._one(_SCANS)), "op1": int(self._one(_SCANS))}
            f |= {"reverse0": int(rng.integers(2)), "reverse1": int(rng.integers(2))}
        if opcode == Opcode.RANGE_SELECT:
            f |= {"op0": int(self._one(_COMPARISONS)), "op1": int(self._one(_COMPARISONS))}
        for number in _COLUMNS.get(opcode, ()):
            if self._flag() and not bits:
                f[f"column{number}"], f[f"imm{number}"] = 1, 4 * int(rng.integers(cfg.sbuf.partition_bytes // 4))
            else:
                f[f"imm{number}"] = int(rng.integers(1 << 32)) if bits else self._constant()
        if opcode == Opcode.TENSOR_REDUCE:
            source = pattern(0, src, int(rng.integers(1, 5)) * int(rng.integers(1, 17)))
            # in turn: eight of them may all miss one
            f["op0"] = int(REDUCTIONS[self._reductions % len(REDUCTIONS)])
            f["axes"] = int(self._reductions // len(REDUCTIONS) + rng.integers(4)) % 4
            f["negate"] = int(rng.integers(2))
            dims = [*(n for _, n in source.dims), 1, 1, 1][:4]
            results = int(np.prod(dims[f["axes"] + 1 :]))
        if opcode in (Opcode.EXP, Opcode.RANGE_SELECT):
            f["reduce"] = int(rng.integers(4 if opcode == Opcode.EXP else 3))
            f["store"] = int(f["reduce"] != 0 and self._flag(0.7))
            f["imm2"] = 4 * int(rng.integers(cfg.sbuf.partition_bytes // 4)) if f["store"] else 0
            if opcode == Opcode.EXP and f["reduce"] != Reduce.LOAD_REDUCE:
                f.pop("column1", None)
                f["imm1"] = 0
        if opcode == Opcode.RANGE_SELECT:
            f["imm1"] |= int(np.float32(rng.integers(-9, 9)).view(np.uint32)) << 32
        if opcode == Opcode.SHUFFLE:
            q = block(cfg.partitions)
            mask = [SHUFFLE_KEEP if self._flag(0.2) else int(rng.integers(q)) for _ in range(q)]
            packed = sum(entry << 6 * j for j, entry in enumerate(mask))
            f |= {f"imm{i}": packed >> 64 * i & (1 << 64) - 1 for i in range(3)}
        return Item(opcode, pattern(2, dst, results), source, second, f)

    def _constant(self) -> int:
        value = self.rng.normal(scale=3) if self._flag(0.9) else 0.0
        return int(np.float32(value).view(np.uint32))

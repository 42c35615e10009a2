"""Instructions of the vector queue: what each reads, and what it then stores."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rtl.contract.access_pattern import AccessPattern
from rtl.contract.formats import FORMATS
from rtl.contract.isa import MX_ROWS, SHUFFLE_KEEP, AluOp, Opcode, Reduce, block, mx_scale_partition
from rtl.contract.memmap import Space
from verif.golden import quantize, special, vector
from verif.golden.alu import reduce
from verif.golden.operands import Fields, Operands, Stored, format_of, pattern_of
from verif.golden.vector import U32

__all__ = ["VectorInstructions"]

_FIRST_BIT_OPERATOR = 32
_MASK_BITS = 6


def _raw(f: Fields) -> bool:
    """Whether elements are bits and not numbers."""
    return max(f["op0"], f["op1"]) >= _FIRST_BIT_OPERATOR


def shuffle_mask(f: Fields, partitions: int) -> list[int]:
    """Source partition, in its block, of each partition of a block."""
    packed = f["imm0"] | f["imm1"] << 64 | f["imm2"] << 128
    return [packed >> _MASK_BITS * j & 63 for j in range(partitions)]


class VectorInstructions:
    """The vector engine without time: `read` computes, `write` stores what it gave."""

    def __init__(self, operands: Operands, partitions: int):
        self.operands = operands
        self.partitions = partitions
        self.block = block(partitions)
        self._of: dict[Opcode, Callable[[Fields], Stored]] = {
            Opcode.TENSOR_COPY: self._copy,
            Opcode.TENSOR_TENSOR: self._tensor_tensor,
            Opcode.TENSOR_SCALAR: self._tensor_scalar,
            Opcode.SCALAR_TENSOR_TENSOR: self._scalar_tensor_tensor,
            Opcode.TENSOR_REDUCE: self._reduce,
            Opcode.TENSOR_SCAN: self._scan,
            Opcode.SELECT: self._select,
            Opcode.COPY_PREDICATED: self._copy_predicated,
            Opcode.RANGE_SELECT: self._range_select,
            Opcode.BN_STATS: lambda f: self._function(f, special.bn_stats),
            Opcode.BN_AGGR: lambda f: self._function(f, special.bn_aggr),
            Opcode.RECIPROCAL: lambda f: self._function(f, vector.reciprocal),
            Opcode.MEMSET: self._memset,
            Opcode.MAX8: lambda f: self._function(f, special.max8),
            Opcode.FIND_INDEX8: self._find_index8,
            Opcode.MATCH_REPLACE8: self._match_replace8,
            Opcode.TRANSPOSE: self._transpose,
            Opcode.SHUFFLE: self._shuffle,
            Opcode.EXP: self._exp,
            Opcode.QUANTIZE_MX: self._quantize,
        }

    def read(self, f: Fields) -> Stored:
        """What the instruction stores. Reads memory and moves the accumulator."""
        return self._of[Opcode(f["opcode"])](f)

    def write(self, f: Fields, stored: Stored) -> None:
        """Put what `read` gave into memory."""
        if f["opcode"] == Opcode.QUANTIZE_MX:
            self._write_mx(f, stored)
        else:
            self.operands.write(f, stored)

    def _function(self, f: Fields, function: Callable[[U32], U32]) -> Stored:
        return self.operands.stored(f, function(self.operands.values(f, "src0")))

    def _copied(self, f: Fields) -> np.ndarray:
        """Elements of src0 in the format of dst; equal formats pass unchanged."""
        source = pattern_of(f, "src0")
        return vector.tensor_copy(self.operands.bits(source), format_of(source), format_of(pattern_of(f, "dst")))

    def _copy(self, f: Fields) -> Stored:
        return Stored(self._copied(f))

    def _tensor_tensor(self, f: Fields) -> Stored:
        o, raw = self.operands, _raw(f)
        x, y = o.values(f, "src0", raw), o.values(f, "src1", raw)
        return o.stored(f, vector.alu(AluOp(f["op0"]), x, y, bool(f["reverse0"])), raw)

    def _tensor_scalar(self, f: Fields) -> Stored:
        o, raw = self.operands, _raw(f)
        out = vector.tensor_scalar(
            o.values(f, "src0", raw),
            AluOp(f["op0"]),
            o.scalar(f, 0),
            AluOp(f["op1"]),
            o.scalar(f, 1),
            bool(f["reverse0"]),
            bool(f["reverse1"]),
        )
        return o.stored(f, out, raw)

    def _scalar_tensor_tensor(self, f: Fields) -> Stored:
        o, raw = self.operands, _raw(f)
        out = vector.scalar_tensor_tensor(
            o.values(f, "src0", raw),
            AluOp(f["op0"]),
            o.scalar(f, 0),
            AluOp(f["op1"]),
            o.values(f, "src1", raw),
            bool(f["reverse0"]),
            bool(f["reverse1"]),
        )
        return o.stored(f, out, raw)

    def _reduce(self, f: Fields) -> Stored:
        inner = 1
        for i in range(f["axes"] + 1):
            inner *= f[f"src0_count{i}"]
        x = self.operands.values(f, "src0")
        return self.operands.stored(f, vector.tensor_reduce(x, AluOp(f["op0"]), inner, bool(f["negate"])))

    def _scan(self, f: Fields) -> Stored:
        o = self.operands
        x, y = o.values(f, "src0"), o.values(f, "src1")
        ops = AluOp(f["op0"]), AluOp(f["op1"])
        out = vector.tensor_scan(x, y, o.scalar(f, 0), *ops, bool(f["reverse0"]), bool(f["reverse1"]))
        return o.stored(f, out)

    def _mask(self, f: Fields) -> np.ndarray:
        mask = pattern_of(f, "src1")
        return vector.is_true(self.operands.bits(mask), format_of(mask))

    def _select(self, f: Fields) -> Stored:
        o = self.operands
        return o.stored(f, vector.select(o.values(f, "src0"), self._mask(f), o.scalar(f, 0)))

    def _copy_predicated(self, f: Fields) -> Stored:
        return Stored(self._copied(f), self._mask(f))

    def _range_select(self, f: Fields) -> Stored:
        o = self.operands
        ops = AluOp(f["op0"]), AluOp(f["op1"])
        out = vector.range_select(o.values(f, "src0"), ops[0], o.scalar(f, 0), ops[1], o.scalar(f, 1), f["imm1"] >> 32)
        return self._with_accumulator(f, out, AluOp.MAX)

    def _exp(self, f: Fields) -> Stored:
        o = self.operands
        return self._with_accumulator(f, vector.exp(o.values(f, "src0"), o.scalar(f, 0)), AluOp.ADD)

    def _with_accumulator(self, f: Fields, out: U32, op: AluOp) -> Stored:
        kept = None
        if f["reduce"] != Reduce.IDLE:
            kept = self.operands.reduced(f, op, reduce(out, op))
        return Stored(self.operands.stored(f, out).bits, accumulator=kept)

    def _memset(self, f: Fields) -> Stored:
        target = pattern_of(f, "dst")
        shape = (target.partition_count, target.elements)
        return self.operands.stored(f, np.broadcast_to(self.operands.scalar(f, 0, "dst"), shape))

    def _find_index8(self, f: Fields) -> Stored:
        o = self.operands
        found = special.find_index8(o.values(f, "src0"), o.values(f, "src1"))
        integer = FORMATS[format_of(pattern_of(f, "dst"))]
        return o.stored(f, found & np.uint32((1 << integer.bits) - 1), raw=True)

    def _match_replace8(self, f: Fields) -> Stored:
        o = self.operands
        x = o.values(f, "src0")
        a = np.broadcast_to(o.scalar(f, 0), (x.shape[0], 1))[:, 0]
        return o.stored(f, special.match_replace8(x, o.values(f, "src1"), a))

    def _transpose(self, f: Fields) -> Stored:
        return Stored(special.transpose(self.operands.bits(pattern_of(f, "src0")), self.block))

    def _shuffle(self, f: Fields) -> Stored:
        source = self.operands.bits(pattern_of(f, "src0"))
        mask = shuffle_mask(f, self.block)
        moved = special.shuffle(source, np.zeros_like(source), mask, self.block)
        written = np.tile(np.array(mask) != SHUFFLE_KEEP, source.shape[0] // self.block)
        return Stored(moved, np.broadcast_to(written[:, None], source.shape))

    def _quantize(self, f: Fields) -> Stored:
        source, target = pattern_of(f, "src0"), pattern_of(f, "dst")
        rule = quantize.RULES[f["imm0"] >> 26 & 1]
        bits, scales = quantize.columns(self.operands.bits(source), format_of(target), rule, format_of(source))
        return Stored(bits, scales=scales)

    def _write_mx(self, f: Fields, stored: Stored) -> None:
        """Columns of four elements to dst, scales to the partitions that belong to its blocks of 8."""
        target, place = pattern_of(f, "dst"), f["imm0"]
        column = "uint16" if format_of(target) == "e2m1" else "uint32"
        self.operands.write_bits(replace(target, dtype=FORMATS[column].code), stored.bits)
        assert stored.scales is not None
        for b, row in enumerate(stored.scales):
            at = mx_scale_partition(target.partition_start + MX_ROWS * b, place >> 24 & 3, self.partitions)
            pattern = AccessPattern(
                space=Space.SBUF,
                dtype=FORMATS["uint8"].code,
                partition_start=at,
                partition_count=1,
                offset=place & 0xFFFFFF,
                dims=((1, row.size),),
            )
            self.operands.write_bits(pattern, row[None, :])

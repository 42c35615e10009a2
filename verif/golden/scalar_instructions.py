"""Instructions of the scalar queue: what each reads, and what it then stores."""

import numpy as np

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.isa import AluOp, Function, Opcode, Reduce
from verif.golden.activation import TableMemory, direct
from verif.golden.alu import reduce
from verif.golden.operands import Fields, Operands, Stored, format_of, pattern_of
from verif.golden.vector import U32, tensor_copy, tensor_scalar

__all__ = ["ScalarInstructions"]


class ScalarInstructions:
    """The scalar engine without time, with its table: `read` computes, `write` stores what it gave."""

    def __init__(self, operands: Operands, rows: int):
        self.operands = operands
        self.table = TableMemory(rows)

    def read(self, f: Fields) -> Stored:
        """What the instruction stores. Reads memory, moves the accumulator, fills the table."""
        if f["opcode"] == Opcode.LOAD_TABLE:
            self.table.load(self.operands.values(f, "src0", raw=True))
            return Stored(None)
        if f["opcode"] == Opcode.SCALAR_COPY:
            source, target = pattern_of(f, "src0"), pattern_of(f, "dst")
            return Stored(tensor_copy(self.operands.bits(source), format_of(source), format_of(target)))
        if f["opcode"] == Opcode.SCALAR_AFFINE:
            return self.operands.stored(f, self._affine(f))
        out = self._function(f)
        kept = None
        if f["reduce"] != Reduce.IDLE:
            op = AluOp(f["imm2"] >> 40 & 63)
            kept = self.operands.reduced(f, op, reduce(out, op))
        return Stored(self.operands.stored(f, out).bits, accumulator=kept)

    def write(self, f: Fields, stored: Stored) -> None:
        """Put what `read` gave into memory."""
        self.operands.write(f, stored)

    def _affine(self, f: Fields) -> U32:
        """(x op0 a) op1 b: what an instruction does before its function."""
        o = self.operands
        return tensor_scalar(
            o.values(f, "src0"),
            AluOp(f["op0"]),
            o.scalar(f, 0),
            AluOp(f["op1"]),
            o.scalar(f, 1),
            bool(f["reverse0"]),
            bool(f["reverse1"]),
        )

    def _function(self, f: Fields) -> U32:
        x = self._affine(f)
        function = Function(f["imm2"] >> 32 & 0xFF)
        if function >= FIRST_TABLE_FUNCTION:
            return self.table.function(x, function)
        return direct(x, function.name.lower(), np.array(f["imm0"] >> 32, np.uint32))

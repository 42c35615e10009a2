"""Instructions of the scalar queue: what each reads, and what it then stores."""

import numpy as np

from rtl.contract.activation_tables import FIRST_TABLE_FUNCTION
from rtl.contract.isa import AluOp, Function, Opcode, Reduce
from verif.golden.activation import TableMemory, direct
from verif.golden.alu import reduce
from verif.golden.operands import Fields, Operands, Stored
from verif.golden.vector import U32, tensor_scalar

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
        out = self._function(f)
        kept = None
        if f["reduce"] != Reduce.IDLE:
            op = AluOp(f["imm2"] >> 40 & 63)
            kept = self.operands.reduced(f, op, reduce(out, op))
        return Stored(self.operands.stored(f, out).bits, accumulator=kept)

    def write(self, f: Fields, stored: Stored) -> None:
        """Put what `read` gave into memory."""
        self.operands.write(f, stored)

    def _function(self, f: Fields) -> U32:
        o = self.operands
        x = tensor_scalar(
            o.values(f, "src0"),
            AluOp(f["op0"]),
            o.scalar(f, 0),
            AluOp(f["op1"]),
            o.scalar(f, 1),
            bool(f["reverse0"]),
            bool(f["reverse1"]),
        )
        function = Function(f["imm2"] >> 32 & 0xFF)
        if function >= FIRST_TABLE_FUNCTION:
            return self.table.function(x, function)
        return direct(x, function.name.lower(), np.array(f["imm0"] >> 32, np.uint32))

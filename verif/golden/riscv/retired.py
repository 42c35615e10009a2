"""What an instruction leaves behind at the retire port, under the names of the RISC-V Formal Interface."""

from dataclasses import dataclass

__all__ = ["Retired"]


@dataclass(frozen=True, slots=True)
class Retired:
    """One instruction. Registers it does not use, and their values, are 0, and so is rd_wdata of x0.

    `insn` is as fetched, of 16 bits with zeros above; 0 if it could not be fetched. `trap`: only CSRs and the pc
    change, pc_wdata is the handler. `intr`: the first of an interrupt's handler. Memory is the aligned word at
    `mem_addr`, a bit of the masks is a byte of it; bytes outside them are 0. `cause` is mcause if trap or intr, else 0.
    """

    order: int
    insn: int
    trap: int
    intr: int
    pc_rdata: int
    pc_wdata: int
    rs1_addr: int
    rs2_addr: int
    rs1_rdata: int
    rs2_rdata: int
    rd_addr: int
    rd_wdata: int
    mem_addr: int
    mem_rmask: int
    mem_wmask: int
    mem_rdata: int
    mem_wdata: int
    cause: int

"""What travels between the stages of a scalar core, and what it shows of each instruction that retires."""

from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

__all__ = [
    "ACCESS",
    "DECODED",
    "DEVICE",
    "EXECUTED",
    "FETCHED",
    "ISSUED",
    "MOVED_BITS",
    "RETIRED",
    "TRAPPED",
    "Branch",
    "CsrUse",
    "Operator",
    "Place",
    "Unit",
    "look_ports",
    "rows_ports",
    "scalar_ports",
]


class Operator(enum.IntEnum, shape=4):
    """Of the ALU; the first eight are funct3 of OP with funct7 0."""

    ADD = 0
    SLL = 1
    SLT = 2
    SLTU = 3
    XOR = 4
    SRL = 5
    OR = 6
    AND = 7
    SUB = 8
    SRA = 13
    SECOND = 15  # the second operand alone


class Unit(enum.IntEnum, shape=4):
    """Who makes the result, or what else an instruction does."""

    ALU = 0
    LINK = 1  # jal, jalr: the address behind
    MULTIPLY = 2
    DIVIDE = 3
    CSR = 4
    LOAD = 5
    STORE = 6
    NOTHING = 7  # branches and fences
    ECALL = 8
    EBREAK = 9
    MRET = 10
    WFI = 11
    VECTOR = 12


class Branch(enum.IntEnum, shape=2):
    """Where the next instruction is."""

    NEXT = 0
    CONDITIONAL = 1
    JUMP = 2  # pc + immediate
    INDIRECT = 3  # rs1 + immediate, bit 0 cleared


class CsrUse(enum.IntEnum, shape=2):
    """What a CSR instruction writes."""

    NOTHING = 0
    WRITE = 1
    SET = 2
    CLEAR = 3


class Place(enum.IntEnum, shape=3):
    """Who answers a load or store."""

    LOCAL = 0
    ROWS = 1  # SBUF, a partition after the other
    LANES = 2  # SBUF, a column of all partitions after the other
    REGISTER = 3  # of the mailbox
    SEMAPHORE = 4
    SHARED = 5
    PUSH = 6  # a store to DMA_PUSH


FETCHED = data.StructLayout(
    {
        "pc": 32,
        "bits": 32,  # an instruction of 16 bits in the low half
        "short": 1,  # it has 16 bits
        "fault": 1,  # no memory is there
        "fault_second": 1,  # ... at its second half only
    }
)

DECODED = data.StructLayout(
    {
        "rs1": 5,  # 0 if not read
        "rs2": 5,
        "rd": 5,  # 0 if nothing is written
        "immediate": 32,
        "operator": Operator,
        "unit": Unit,
        "branch": Branch,
        "first_is_pc": 1,  # the ALU's first operand, else rs1
        "second_is_immediate": 1,  # the ALU's second operand, else rs2
        "funct3": 3,
        "csr": 12,
        "csr_use": CsrUse,
        "csr_immediate": 1,  # rs1 is the value
        "csr_writes": 1,
        "flush": 1,  # fence.i
        "illegal": 1,
    }
)

ISSUED = data.StructLayout({"fetched": FETCHED, "what": DECODED, "a": 32, "b": 32})
"""What enters the execute stage, with the values of rs1 and rs2."""

EXECUTED = data.StructLayout(
    {
        "result": 32,  # for rd, but of loads and products, which come a stage later
        "address": 32,  # of a load or store
        "mask": 4,
        "data": 32,
        "taken": 1,  # it goes elsewhere than behind it
        "next_pc": 32,  # unless it traps
        "traps": 1,
        "cause": 5,
        "tval": 32,
    }
)
"""What the execute stage makes of it."""

RETIRED = data.StructLayout(
    {
        "order": 64,
        "insn": 32,
        "trap": 1,  # it did not do what it says: the handler comes next
        "intr": 1,  # the first of an interrupt's handler
        "pc_rdata": 32,
        "pc_wdata": 32,
        "rs1_addr": 5,
        "rs1_rdata": 32,
        "rs2_addr": 5,
        "rs2_rdata": 32,
        "rd_addr": 5,
        "rd_wdata": 32,
        "mem_addr": 32,  # of the word of 4 bytes
        "mem_rmask": 4,
        "mem_wmask": 4,
        "mem_rdata": 32,
        "mem_wdata": 32,
        "cause": 5,  # mcause's number if trap or intr
    }
)
"""The RISC-V Formal Interface's names (RVFI), of a core that retires one a cycle, and one more."""

TRAPPED = data.StructLayout(
    {
        "valid": 1,  # a trap or an interrupt is taken in this cycle
        "nowhere": 1,  # mtvec is 0
        "cause": 5,
        "pc": 32,  # mepc's
    }
)
"""What is told of a trap as it is taken."""

ACCESS = data.StructLayout({"address": 32, "write": 1, "mask": 4, "data": 32})
"""A load or store: `address` of a byte, `mask` and `data` of the word of 4 bytes that holds it."""


MOVED_BITS = 8
"""Of how many bytes of SBUF a core moves in a cycle."""

DEVICE = data.StructLayout({"place": Place, "access": ACCESS})
"""A load or store that local memory does not answer. It is aligned, and its place has what it asks for."""


def rows_ports(lanes: int) -> dict[str, wiring.Member]:
    """Of a vector unit towards rows of memory; rtl/gpsimd/vector/memory.py says what each is for."""
    rows, bits = 32 - exact_log2(4 * lanes), 32 * lanes
    return {
        "span_first": Out(32),
        "span_last": Out(32),
        "span_narrow": Out(1),
        "in_rows": In(1),
        "beyond": In(1),
        "line_en": Out(1),
        "line_beyond": Out(1),
        "line_row": Out(rows),
        "line_ready": In(1),
        "line": In(bits),
        "line_moved": Out(MOVED_BITS),
        "row_en": Out(1),
        "row_beyond": Out(1),
        "row": Out(rows),
        "row_data": Out(bits),
        "row_mask": Out(4 * lanes),
        "row_last": Out(1),
        "row_ready": In(1),
        "row_moved": Out(MOVED_BITS),
        **look_ports(lanes),
    }


def look_ports(lanes: int) -> dict[str, wiring.Member]:
    """Towards LocalLookup: words of the lanes `look_en` are loaded, or stored, once they are `look_ready`; a lane whose
    address is not `look_allowed` is none of them. `look_found`: in the cycle after."""
    words = 32 * lanes
    return {
        "look_en": Out(lanes),
        "look_write": Out(1),
        "look_address": Out(words),
        "look_data": Out(words),
        "look_allowed": In(lanes),
        "look_ready": In(lanes),
        "look_found": In(words),
    }


def scalar_ports(line_bits: int, vectors: bool) -> dict[str, wiring.Member]:
    """Of a scalar core that reads code in lines of `line_bits`, with or without vectors; ScalarCore says what each is
    for."""
    return {
        **({"rows": Out(wiring.Signature(rows_ports(line_bits // 32)))} if vectors else {}),
        "start": In(1),
        "entry": In(32),
        "line": Out(stream.Signature(32 - exact_log2(line_bits // 8))),
        "reply": In(line_bits),
        "reply_valid": In(1),
        "reply_fault": In(1),
        "access": Out(stream.Signature(ACCESS)),
        "access_allowed": In(1),
        "access_reply": In(32),
        "access_reply_valid": In(1),
        "moves": Out(2),
        "pending": In(3),
        "hart": In(32),
        "mtime": In(64),
        "waits": Out(1),
        "state": Out(4),
        "trapped": Out(TRAPPED),
        "retired": Out(RETIRED),
        "retired_valid": Out(1),
    }

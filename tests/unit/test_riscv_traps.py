"""CSRs, traps and interrupts of the golden RISC-V hart against tables written from the privileged specification."""

import pytest

from verif.golden.riscv.csrs import ADDRESSES, NO_EVENTS
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Device, Memory
from verif.golden.riscv.retired import Retired
from verif.golden.riscv.traps import Cause, Trap

BASE, BYTES = 0x10000000, 0x1000
HANDLER = BASE + 0x800
DEVICE = 0x40000000
ONES = 0xFFFFFFFF
MSIP, MTIP, MEIP = 1 << 3, 1 << 7, 1 << 11
CSRRW, CSRRS, CSRRC, CSRRWI, CSRRSI, CSRRCI = 1, 2, 3, 5, 6, 7
ECALL, EBREAK, MRET, WFI = 0x73, 0x100073, 0x30200073, 0x10500073
NOP, C_NOP = 0x13, 0x0001


def csr(funct3: int, rd: int, address: int, source: int) -> int:
    """A CSR instruction; `source` is rs1 or the immediate."""
    return address << 20 | source << 15 | funct3 << 12 | rd << 7 | 0x73


class Rig:
    """A hart, its memory, a device that notes accesses, and the handler's address in mtvec."""

    def __init__(self, hart_id: int = 0):
        self.ram = bytearray(BYTES)
        self.seen: list[tuple[int, ...]] = []
        memory = Memory()
        memory.add(BASE, self.ram)
        memory.add(DEVICE, Device(16, self.load, self.store))
        self.hart = Hart(memory, hart_id, BASE)
        self.csrs = self.hart.csrs
        self.csrs.mtvec = HANDLER

    def load(self, address: int, size: int) -> int:
        self.seen.append((address, size))
        if size < 4:
            raise Trap(Cause.LOAD_ACCESS, address)
        return 0x1_2345_6789

    def store(self, address: int, size: int, value: int) -> None:
        self.seen.append((address, size, value))

    def put(self, address: int, *instructions: int) -> None:
        """Instructions one behind the other, of 2 or 4 bytes."""
        at = address - BASE
        for bits in instructions:
            size = 4 if bits & 3 == 3 else 2
            self.ram[at : at + size] = bits.to_bytes(size, "little")
            at += size

    def do(self, *instructions: int, pending: int = 0) -> Retired:
        """Execute from the pc on; the record of the last."""
        self.put(self.hart.pc, *instructions)
        return [self.hart.step(pending) for _ in instructions][-1]

    def read(self, name: str) -> int:
        """A CSR as CSRRS with x0 reads it."""
        return self.do(csr(CSRRS, 31, ADDRESSES[name], 0)).rd_wdata

    def write(self, name: str, value: int) -> None:
        self.hart.x[30] = value
        assert not self.do(csr(CSRRW, 0, ADDRESSES[name], 30)).trap


@pytest.fixture
def rig() -> Rig:
    return Rig()


AFTER_RESET_ONES_ZEROS = {
    # Volume II, 3.1: value after reset, after ones were written, after zeros were written
    "mstatus": (0x1800, 0x1888, 0x1800),  # MPP can only be machine mode
    "misa": (0x40001104, 0x40001104, 0x40001104),
    "mie": (0, 0x888, 0),
    "mtvec": (HANDLER, 0xFFFFFFFD, 0),
    "mstatush": (0, 0, 0),
    "mcountinhibit": (0, 0, 0),
    "mscratch": (0, ONES, 0),
    "mepc": (0, 0xFFFFFFFE, 0),
    "mcause": (0, ONES, 0),
    "mtval": (0, ONES, 0),
    "mip": (0, 0, 0),
}


@pytest.mark.parametrize("name", AFTER_RESET_ONES_ZEROS)
def test_what_a_register_keeps(rig: Rig, name: str) -> None:
    reset, ones, zeros = AFTER_RESET_ONES_ZEROS[name]
    assert rig.read(name) == reset
    rig.write(name, ONES)
    assert rig.read(name) == ones
    rig.write(name, 0)
    assert rig.read(name) == zeros


def test_identity() -> None:
    rig = Rig(hart_id=5)
    assert rig.read("mhartid") == 5
    for name in ("mvendorid", "marchid", "mimpid", "mconfigptr"):
        assert rig.read(name) == 0


def test_which_csr_accesses_are_legal() -> None:
    """Every address with every instruction: it must exist, and those from 0xC00 on cannot be written."""
    known = {*ADDRESSES.values(), *NO_EVENTS}
    assert len(known) == 26 + 87
    for funct3 in (CSRRW, CSRRS, CSRRC, CSRRWI, CSRRSI, CSRRCI):
        for source in (0, 7):
            rig = Rig()
            writes = funct3 & 3 == CSRRW or source != 0
            for address in range(1 << 12):
                rig.hart.pc = BASE
                bits = csr(funct3, 0, address, source)
                legal = address in known and not (writes and address >= 0xC00)
                retired = rig.do(bits)
                assert retired.trap == (not legal), (hex(address), funct3, source)
                if not legal:
                    assert (retired.cause, rig.csrs.mtval, rig.csrs.mepc) == (Cause.ILLEGAL, bits, BASE)


@pytest.mark.parametrize(
    ("funct3", "after"),
    [
        (CSRRW, 0x0F), (CSRRS, 0xFF00FF0F), (CSRRC, 0xFF00FF00),
        (CSRRWI, 0x0F), (CSRRSI, 0xFF00FF0F), (CSRRCI, 0xFF00FF00),
    ],
)  # fmt: skip
def test_csr_instructions(rig: Rig, funct3: int, after: int) -> None:
    """With 0x0F, from x15 or as immediate 15; the old value goes to rd, also if rd is rs1."""
    for rd in (0, 14, 15):
        rig.csrs.mscratch = 0xFF00FF00
        rig.hart.x[15] = 0x0F
        retired = rig.do(csr(funct3, rd, ADDRESSES["mscratch"], 15))
        assert rig.csrs.mscratch == after
        immediate = funct3 & 4
        assert (retired.rs1_addr, retired.rs1_rdata) == ((0, 0) if immediate else (15, 0x0F))
        assert (retired.rd_addr, retired.rd_wdata) == (rd, 0xFF00FF00 if rd else 0)


def test_counters_count_and_can_be_written(rig: Rig) -> None:
    assert [rig.read("minstret") for _ in range(3)] == [0, 1, 2]
    rig.do(ECALL)  # is not retired, and takes a step
    assert (rig.read("minstret"), rig.read("instret"), rig.read("mcycle"), rig.read("time")) == (3, 4, 6, 7)
    rig.write("minstret", 100)
    assert (rig.read("minstret"), rig.read("instret")) == (100, 101)  # Zicsr: the write is made instead of counting
    rig.write("minstreth", 7)
    assert (rig.read("instreth"), rig.read("minstreth")) == (7, 7)
    assert rig.read("minstret") == 104
    rig.write("minstret", ONES)
    assert [rig.read("minstret"), rig.read("minstret"), rig.read("minstreth")] == [ONES, 0, 8]
    rig.write("mcycle", 50)
    assert (rig.read("mcycle"), rig.read("cycle")) == (50, 51)
    rig.write("mcycleh", ONES)
    assert (rig.read("cycleh"), rig.read("timeh"), rig.read("mcycleh")) == (ONES, ONES, ONES)


def test_reads_can_be_given(rig: Rig) -> None:
    asked: list[int] = []

    def hardware(address: int) -> int | None:
        asked.append(address)
        return 1234 if address == ADDRESSES["mcycle"] else None

    rig.hart.read_csr_value = hardware
    assert (rig.read("mcycle"), rig.read("mscratch")) == (1234, 0)
    rig.do(csr(CSRRW, 0, ADDRESSES["mscratch"], 0))  # does not read
    assert asked == [ADDRESSES["mcycle"], ADDRESSES["mscratch"]]
    rig.do(csr(CSRRSI, 5, ADDRESSES["mcycle"], 1))
    rig.hart.read_csr_value = None
    assert (rig.hart.x[5], rig.read("mcycle")) == (1234, 1235)


LW, LH, LHU, LB, LBU = (f << 12 | 5 << 15 | 6 << 7 | 0x03 for f in (2, 1, 5, 0, 4))  # x6 from (x5)
SW, SH, SB = (f << 12 | 6 << 20 | 5 << 15 | 0x23 for f in (2, 1, 0))
C_LW, C_SW = 0x4080, 0xC080  # x8 from (x9), to (x9)
LAST = BASE + BYTES

TRAPS = [
    # instruction, x5 and x9, cause, mtval
    (ECALL, 0, Cause.ECALL, 0),
    (EBREAK, 0, Cause.BREAKPOINT, BASE),
    (0x9002, 0, Cause.BREAKPOINT, BASE),
    (0x0000, 0, Cause.ILLEGAL, 0),
    (0x6085 & ~0x7C & ~0x1000, 0, Cause.ILLEGAL, 0x6081),  # C.LUI x1, 0
    (0xFFFFFFFF, 0, Cause.ILLEGAL, ONES),
    (0x00200073, 0, Cause.ILLEGAL, 0x00200073),  # URET
    (0x10200073, 0, Cause.ILLEGAL, 0x10200073),  # SRET
    (0x12000073, 0, Cause.ILLEGAL, 0x12000073),  # SFENCE.VMA
    (MRET | 1 << 7, 0, Cause.ILLEGAL, MRET | 1 << 7),
    (WFI | 1 << 15, 0, Cause.ILLEGAL, WFI | 1 << 15),
    (0x00004073, 0, Cause.ILLEGAL, 0x00004073),  # SYSTEM, funct3 4
    *((op, BASE + 0x100 + off, Cause.LOAD_MISALIGNED, BASE + 0x100 + off) for op in (LW, C_LW) for off in (1, 2, 3)),
    *((op, BASE + 0x101, Cause.LOAD_MISALIGNED, BASE + 0x101) for op in (LH, LHU)),
    *((op, BASE + 0x100 + off, Cause.STORE_MISALIGNED, BASE + 0x100 + off) for op in (SW, C_SW) for off in (1, 2, 3)),
    (SH, BASE + 0x103, Cause.STORE_MISALIGNED, BASE + 0x103),
    *((op, LAST, Cause.LOAD_ACCESS, LAST) for op in (LW, LH, LHU, LB, LBU, C_LW)),
    *((op, BASE - 4, Cause.STORE_ACCESS, BASE - 4) for op in (SW, SH, SB, C_SW)),
    (LW, 0, Cause.LOAD_ACCESS, 0),
    (SB, 0xFFFFFFFF, Cause.STORE_ACCESS, 0xFFFFFFFF),
    (LW, LAST + 1, Cause.LOAD_MISALIGNED, LAST + 1),  # misaligned comes first
    (SH, 1, Cause.STORE_MISALIGNED, 1),
    (LB, DEVICE, Cause.LOAD_ACCESS, DEVICE),  # the device refuses
    (LW, DEVICE + 16, Cause.LOAD_ACCESS, DEVICE + 16),
]


@pytest.mark.parametrize(("bits", "address", "cause", "value"), TRAPS)
def test_exceptions(rig: Rig, bits: int, address: int, cause: int, value: int) -> None:
    rig.csrs.enabled = True
    rig.hart.x[5] = rig.hart.x[9] = address
    before, ram = rig.hart.x[:32], bytes(rig.ram)
    retired = rig.do(bits)
    rig.ram[:4] = ram[:4]
    csrs = rig.csrs
    assert (retired.trap, retired.cause, retired.insn) == (1, cause, bits)
    assert (csrs.mcause, csrs.mtval, csrs.mepc) == (cause, value, BASE)
    assert (retired.pc_rdata, retired.pc_wdata, rig.hart.pc) == (BASE, HANDLER, HANDLER)
    assert (csrs.enabled, csrs.enabled_before) == (False, True)
    assert (rig.hart.x[:32], rig.ram) == (before, ram)
    assert (retired.rd_addr, retired.rd_wdata, retired.mem_rmask, retired.mem_wmask) == (0, 0, 0, 0)
    back = rig.do(MRET)
    assert (back.trap, back.pc_wdata, csrs.enabled, csrs.enabled_before) == (0, BASE, True, True)


@pytest.mark.parametrize("pc", [0, 4, BASE - 2, LAST, DEVICE])
def test_fetch_outside_memory(rig: Rig, pc: int) -> None:
    rig.hart.x[5] = pc
    rig.do(5 << 15 | 0x67)  # JALR
    retired = rig.hart.step()
    assert (retired.trap, retired.cause, retired.pc_rdata, retired.insn) == (1, Cause.FETCH_ACCESS, pc, 0)
    assert (rig.csrs.mepc, rig.csrs.mtval, rig.hart.pc) == (pc, pc, HANDLER)


def test_fetch_across_the_end_of_memory(rig: Rig) -> None:
    rig.put(LAST - 2, C_NOP)
    rig.hart.pc = LAST - 2
    assert rig.hart.step().trap == 0
    rig.ram[-2:] = b"\x13\x00"
    rig.hart.pc = LAST - 2
    retired = rig.hart.step()
    assert (retired.cause, rig.csrs.mepc, rig.csrs.mtval) == (Cause.FETCH_ACCESS, LAST - 2, LAST)


def test_an_instruction_may_lie_in_two_regions() -> None:
    memory = Memory()
    memory.add(BASE, b"\x01\x00\x13\x05")
    memory.add(BASE + 4, b"\x15\x00\x00\x00")
    hart = Hart(memory, reset_pc=BASE)
    hart.step()
    assert (hart.step().rd_wdata, hart.pc) == (1, BASE + 6)


def test_lanes_of_memory_accesses(rig: Rig) -> None:
    at = BASE + 0x100
    rig.ram[0x100:0x104] = b"\x11\x82\x33\xc4"
    table = [
        # instruction, address, mask, data on the lanes, rd
        (LW, at, 0xF, 0xC4338211, 0xC4338211), (LH, at, 3, 0x8211, 0xFFFF8211),
        (LH, at + 2, 0xC, 0xC4330000, 0xFFFFC433),
        (LHU, at + 2, 0xC, 0xC4330000, 0xC433),
        (LB, at + 1, 2, 0x8200, 0xFFFFFF82), (LBU, at + 3, 8, 0xC4000000, 0xC4),
        (LB, at + 2, 4, 0x330000, 0x33),
    ]  # fmt: skip
    for bits, address, mask, data, rd in table:
        rig.hart.x[5] = address
        r = rig.do(bits)
        assert (r.mem_addr, r.mem_rmask, r.mem_wmask, r.mem_rdata, r.rd_wdata) == (at, mask, 0, data, rd)
    rig.hart.x[6] = 0xA1B2C3D4
    stores = [
        (SB, at + 3, 8, 0xD4000000),
        (SH, at, 3, 0xC3D4),
        (SH, at + 2, 0xC, 0xC3D40000),
        (SW, at, 0xF, 0xA1B2C3D4),
    ]
    for bits, address, mask, data in stores:
        rig.hart.x[5] = address
        rig.ram[0x100:0x104] = b"\x11\x82\x33\xc4"
        r = rig.do(bits)
        assert (r.mem_addr, r.mem_rmask, r.mem_wmask, r.mem_wdata, r.rd_addr) == (at, 0, mask, data, 0)
        lanes = sum(0xFF << 8 * n for n in range(4) if mask >> n & 1)
        assert int.from_bytes(rig.ram[0x100:0x104], "little") == data | 0xC4338211 & ~lanes


def test_device(rig: Rig) -> None:
    rig.hart.x[5], rig.hart.x[6] = DEVICE + 4, 0xA1B2C3D4
    assert rig.do(SH).mem_wdata == 0xC3D4
    assert rig.do(LW).rd_wdata == 0x23456789
    assert rig.seen == [(DEVICE + 4, 2, 0xC3D4), (DEVICE + 4, 4)]


def test_interrupt_priority_and_vectors(rig: Rig) -> None:
    """MEI, MSI, MTI; each is taken before the instruction, and the record is the handler's first."""
    rig.put(HANDLER, *[NOP] * 16)
    for vectored in (0, 1):
        for pending in range(8):
            for enabled in range(8):
                bits = [sum(b for n, b in enumerate((MEIP, MSIP, MTIP)) if v >> n & 1) for v in (pending, enabled)]
                rig.csrs.enabled, rig.csrs.mie, rig.csrs.mtvec = True, bits[1], HANDLER | vectored
                rig.hart.pc = BASE
                retired = rig.do(NOP, pending=bits[0])
                active = bits[0] & bits[1]
                number = next((n for n in (11, 3, 7) if active >> n & 1), None)
                if number is None:
                    assert (retired.intr, retired.pc_rdata, retired.cause) == (0, BASE, 0)
                    continue
                handler = HANDLER + 4 * number * vectored
                assert (retired.intr, retired.trap, retired.pc_rdata) == (1, 0, handler)
                assert retired.cause == rig.csrs.mcause == 1 << 31 | number
                assert (rig.csrs.mepc, rig.csrs.mtval, rig.csrs.enabled, rig.csrs.enabled_before) == (
                    BASE,
                    0,
                    False,
                    True,
                )


def test_mret_twice(rig: Rig) -> None:
    """MPIE goes to MIE and becomes 1."""
    assert rig.read("mstatus") == 0x1800
    rig.csrs.enabled = True
    rig.csrs.mepc = BASE + 0x100
    for status in (0x1880, 0x1888, 0x1888):
        assert rig.do(MRET).pc_wdata == BASE + 0x100
        assert rig.read("mstatus") == status


def test_vectors_are_for_interrupts_only(rig: Rig) -> None:
    rig.csrs.mtvec = HANDLER | 1
    assert rig.do(ECALL).pc_wdata == HANDLER


def test_a_disabled_interrupt_waits_for_mret(rig: Rig) -> None:
    rig.csrs.mie = ONES & 0x888
    rig.put(HANDLER, MRET)
    assert rig.do(NOP, pending=MTIP).intr == 0
    assert rig.read("mip") == 0
    assert rig.do(csr(CSRRS, 5, ADDRESSES["mip"], 0), pending=MTIP | 1 << 9).rd_wdata == MTIP
    assert rig.do(csr(CSRRSI, 0, ADDRESSES["mstatus"], 8), pending=MTIP).intr == 0
    there = rig.hart.pc
    taken = rig.do(NOP, pending=MTIP)
    assert (taken.intr, taken.insn, taken.pc_wdata) == (1, MRET, there)
    assert rig.hart.step(MTIP).intr == 1  # enabled again, and nothing was done in between
    assert rig.csrs.mepc == there


def test_a_trap_in_the_first_instruction_of_a_handler(rig: Rig) -> None:
    rig.csrs.enabled, rig.csrs.mie = True, MEIP
    rig.put(HANDLER, ECALL)
    retired = rig.do(NOP, pending=MEIP)
    assert (retired.intr, retired.trap, retired.cause, retired.pc_rdata) == (1, 1, Cause.ECALL, HANDLER)
    assert (rig.csrs.mepc, rig.csrs.enabled, rig.csrs.enabled_before) == (HANDLER, False, False)


@pytest.mark.parametrize("bits", [WFI, 0x0FF0000F, 0x8330000F, 0xFFF0828F | 0xF80, 0x0000100F, 0xABCD9F8F])
def test_nothing_to_do(rig: Rig, bits: int) -> None:
    """WFI; FENCE and FENCE.I, whose other fields a hart must ignore (volume I, "Memory Ordering Instructions")."""
    before = rig.hart.x[:32]
    retired = rig.do(bits)
    assert (retired.trap, retired.pc_wdata, retired.rd_addr, retired.rs1_addr) == (0, BASE + 4, 0, 0)
    assert rig.hart.x[:32] == before


def test_code_that_changes_itself(rig: Rig) -> None:
    """C.LI x8, 1 becomes C.LI x8, 2 at an address that was executed before."""
    assert rig.do(0x4405).rd_wdata == 1
    rig.hart.pc = BASE
    assert rig.do(0x4409).rd_wdata == 2


def test_run_equals_steps(rig: Rig) -> None:
    """Also where an interrupt becomes enabled on the way, and up to a WFI."""
    program = [ECALL, csr(CSRRWI, 0, ADDRESSES["mie"], 8), csr(CSRRSI, 0, ADDRESSES["mstatus"], 8), NOP, WFI, NOP]
    advance = [
        csr(CSRRS, 5, ADDRESSES["mepc"], 0),
        4 << 20 | 5 << 15 | 5 << 7 | 0x13,
        csr(CSRRW, 0, ADDRESSES["mepc"], 5),
    ]
    handler = [*advance, csr(CSRRCI, 0, ADDRESSES["mie"], 8), MRET]
    other = Rig()
    for each in (rig, other):
        each.put(BASE, *program)
        each.put(HANDLER, *handler)
    made = rig.hart.run(1000, MSIP)
    records = [other.hart.step(MSIP) for _ in range(made)]
    assert records[-1].insn == WFI and sum(r.intr for r in records) == 1 and sum(r.trap for r in records) == 1
    assert (rig.hart.pc, rig.hart.x) == (other.hart.pc, other.hart.x)
    for name in ("mstatus", "mepc", "mcause", "minstret", "mcycle"):
        assert rig.read(name) == other.read(name)
    assert rig.hart.step().order == made + 5


def test_run_ends_where_every_fetch_traps(rig: Rig) -> None:
    rig.csrs.mtvec = 0
    rig.hart.pc = 0
    assert rig.hart.run(100) == 100
    assert rig.csrs.trapped == 100


@pytest.mark.parametrize(
    ("base", "content", "says"),
    [
        (BASE + 2, b"1234", "a region is whole words"),
        (BASE, b"123", "a region is whole words, not 3 bytes from 0x10000000"),
        (BASE, b"", "a region is whole words"),
        (0xFFFFFFFC, b"12345678", "leaves the 32 bits of an address"),
        (BASE - 4, b"12345678", "a region of 8 bytes from 0xffffffc overlaps that from 0x10000000"),
        (DEVICE + 12, b"1234", "overlaps that from 0x40000000"),
    ],
)
def test_regions_that_cannot_be(rig: Rig, base: int, content: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        rig.hart.memory.add(base, content)

"""Vectors of the golden hart where QEMU is no judge: VS, CSRs, vtype, vstart, tails, records, from the text of RVV 1.0.

Loads and stores are in test_riscv_vector_memory.py.
"""

from itertools import pairwise

import numpy as np
import pytest

from verif.checks.vector_formats import (
    BYTE,
    HALF,
    INDEXED,
    LOAD,
    MASK,
    STORE,
    STRIDED,
    WHOLE,
    WORD,
    arithmetic,
    memory,
    vsetivli,
    vsetvl,
    vsetvli,
)  # fmt: skip
from verif.checks.vector_rig import CODE, DATA, VectorRig
from verif.golden.riscv.csrs import ADDRESSES
from verif.golden.riscv.traps import Cause
from verif.golden.riscv.vector.csrs import VECTOR_CSRS

VILL, SD, VS, DIRTY = 1 << 31, 1 << 31, 9, 3
E8, E16, E32 = 0, 8, 16
M2, M8, MF2 = 1, 3, 7
VID = 0x5208A057
ONES = 0xFFFFFFFF
CSRRW, CSRRS, CSRRSI = 1, 2, 6


def csr(funct3: int, rd: int, address: int, source: int) -> int:
    return address << 20 | source << 15 | funct3 << 12 | rd << 7 | 0x73


@pytest.fixture
def rig() -> VectorRig:
    return VectorRig()


VADD = arithmetic(0, 0, 4, 8, 12)
ANY = [
    VADD, VID, vsetvli(0, 1, E8), vsetivli(0, 1, E8), vsetvl(0, 1, 2), memory(LOAD, BYTE, 4, 1),
    memory(STORE, BYTE, 4, 1, second=WHOLE), arithmetic(0x10, 2, 5, 3, 0), arithmetic(0x27, 3, 4, 8, 0),
]  # fmt: skip


def test_without_vectors_all_is_illegal() -> None:
    rig = VectorRig(None)
    assert rig.hart.vector is None
    for word in (*ANY, *(csr(CSRRS, 5, address, 0) for address in VECTOR_CSRS.values())):
        retired = rig.do(word)
        assert (retired.cause, retired.rs1_addr, retired.rd_addr) == (Cause.ILLEGAL, 0, 0)
    rig.hart.x[1] = ONES
    rig.do(csr(CSRRW, 0, ADDRESSES["mstatus"], 1))
    assert rig.hart.csrs.read(ADDRESSES["mstatus"]) == 0x1888


@pytest.mark.parametrize("word", ANY)
def test_off_and_dirty(rig: VectorRig, word: int) -> None:
    """3.2: all raise illegal instruction while VS is off; those that execute make it dirty, stores too."""
    rig.configure(E8, 4)
    rig.hart.x[1], rig.hart.x[2] = DATA, E16
    rig.state.status = 0
    retired = rig.do(word)
    assert (retired.cause, rig.hart.csrs.mtval, rig.state.status) == (Cause.ILLEGAL, word, 0)
    assert (retired.rs1_addr, retired.rs1_rdata, retired.rs2_addr) == (0, 0, 0)
    for on in (1, 2, 3):
        rig.state.status = on
        assert not rig.do(word).trap
        assert rig.hart.csrs.read(ADDRESSES["mstatus"]) == 0x1800 | DIRTY << VS | SD


def test_an_illegal_one_leaves_vs(rig: VectorRig) -> None:
    rig.configure(VILL, 0)
    assert rig.do(VADD).cause == Cause.ILLEGAL
    assert rig.hart.csrs.read(ADDRESSES["mstatus"]) == 0x1800 | 1 << VS


def test_one_that_faults_makes_vs_dirty(rig: VectorRig) -> None:
    rig.configure(E8, 4)
    assert rig.do(memory(LOAD, BYTE, 4, 0)).cause == Cause.LOAD_ACCESS
    assert rig.state.status == DIRTY


def test_vs_can_be_written(rig: VectorRig) -> None:
    for vs in range(4):
        rig.hart.x[1] = vs << VS
        rig.do(csr(CSRRW, 0, ADDRESSES["mstatus"], 1))
        assert rig.hart.csrs.read(ADDRESSES["mstatus"]) == 0x1800 | vs << VS | (SD if vs == DIRTY else 0)


@pytest.mark.parametrize("name", VECTOR_CSRS)
def test_csrs_off_and_dirty(rig: VectorRig, name: str) -> None:
    address = VECTOR_CSRS[name]
    read, set_none, write = csr(CSRRS, 5, address, 0), csr(CSRRSI, 5, address, 0), csr(CSRRW, 5, address, 6)
    rig.state.status = 0
    for word in (read, write):
        retired = rig.do(word)
        assert (retired.cause, rig.hart.csrs.mtval, retired.rs1_addr) == (Cause.ILLEGAL, word, 0)
    rig.state.status = 1
    assert not rig.do(read).trap and not rig.do(set_none).trap
    assert rig.state.status == 1
    assert rig.do(write).trap == (name in ("vl", "vtype", "vlenb"))
    assert rig.state.status == (1 if name in ("vl", "vtype", "vlenb") else DIRTY)


@pytest.mark.parametrize("vlen", [128, 256, 512])
def test_what_csrs_keep(vlen: int) -> None:
    rig = VectorRig(vlen)

    def read(name: str) -> int:
        return rig.do(csr(CSRRS, 5, VECTOR_CSRS[name], 0)).rd_wdata

    assert [read(name) for name in VECTOR_CSRS] == [0, 0, 0, 0, 0, VILL, vlen // 8]
    rig.hart.x[6] = ONES
    for name, kept in {"vstart": vlen - 1, "vxsat": 1, "vxrm": 3, "vcsr": 7}.items():
        rig.do(csr(CSRRW, 0, VECTOR_CSRS[name], 6))
        assert read(name) == kept
        rig.do(csr(CSRRW, 0, VECTOR_CSRS[name], 0))
        assert read(name) == 0
    rig.hart.x[6] = 0b101
    rig.do(csr(CSRRW, 0, VECTOR_CSRS["vcsr"], 6))
    assert (read("vxrm"), read("vxsat")) == (2, 1)


VLMAX = 16  # of e32, m4 at VLEN 128
E32M4 = E32 | 2


@pytest.mark.parametrize(
    ("rd", "rs1", "avl", "before", "vl"),
    [
        (5, 6, 0, 3, 0), (5, 6, 16, 3, 16), (5, 6, 17, 3, 16), (0, 6, 31, 3, 16), (5, 6, ONES, 3, 16),
        (5, 0, 0, 3, 16), (0, 0, 0, 3, 3), (0, 0, 0, 16, 16), (0, 0, 0, 100, 16),
    ],
)  # fmt: skip
def test_vsetvli(rig: VectorRig, rd: int, rs1: int, avl: int, before: int, vl: int) -> None:
    """6.2: rs1 x0 is the largest AVL, with rd x0 the vl there is, here also where VLMAX becomes smaller."""
    rig.configure(E8 | M8, before)
    rig.hart.x[6] = avl
    retired = rig.do(vsetvli(rd, rs1, E32M4 | 0xC0))
    assert (rig.state.vl, rig.state.vtype) == (vl, E32M4 | 0xC0)
    assert (retired.rd_addr, retired.rd_wdata) == (rd, vl if rd else 0)
    assert (retired.rs1_addr, retired.rs1_rdata) == (rs1, avl if rs1 else 0)


@pytest.mark.parametrize("vtype", [24, 32, 4, 5, E32 | MF2, E16 | 6, 1 << 8, 1 << 10])
def test_a_vtype_that_is_none(rig: VectorRig, vtype: int) -> None:
    """6.1: vill, all other bits and vl 0."""
    for word in (vsetvli(5, 0, vtype), vsetvl(5, 0, 7)) + ((vsetivli(5, 3, vtype),) if vtype < 1 << 10 else ()):
        rig.configure(E8, 3)
        rig.hart.x[7] = vtype
        retired = rig.do(word)
        assert (rig.state.vl, rig.state.vtype, retired.rd_wdata, retired.trap) == (0, VILL, 0, 0)


@pytest.mark.parametrize("bit", range(8, 32))
def test_vsetvl_looks_at_all_bits(rig: VectorRig, bit: int) -> None:
    rig.hart.x[7] = 1 << bit
    retired = rig.do(vsetvl(5, 0, 7))
    assert (rig.state.vtype, retired.rs2_addr, retired.rs2_rdata) == (VILL, 7, 1 << bit)


def test_what_is_legal_while_vill(rig: VectorRig) -> None:
    """3.4.4: what does not depend on vtype."""
    rig.hart.x[1], rig.hart.x[2] = DATA, E16
    wholes = [memory(LOAD, WORD, 8, 1, second=WHOLE, fields=4), memory(STORE, BYTE, 8, 1, second=WHOLE, fields=8)]
    for word in (vsetvli(0, 1, VILL >> 21), vsetivli(0, 1, 0x100), *wholes):
        rig.configure(VILL, 0)
        assert not rig.do(word).trap
    move, masks = arithmetic(0x27, 3, 4, 8, 0), arithmetic(0x19, 2, 4, 8, 12)
    for word in (VADD, VID, move, masks, memory(LOAD, BYTE, 4, 1), memory(STORE, BYTE, 4, 1, second=MASK)):
        rig.configure(VILL, 0)
        assert rig.do(word).cause == Cause.ILLEGAL


ARITHMETIC = {
    "vadd": VADD, "vid": VID, "vmv.x.s": arithmetic(0x10, 2, 5, 3, 0), "vmv.s.x": arithmetic(0x10, 6, 3, 0, 5),
    "vcpop": arithmetic(0x10, 2, 5, 3, 16), "vredsum": arithmetic(0, 2, 4, 8, 12),
    "vmand": arithmetic(0x19, 2, 4, 8, 12), "vmv1r": arithmetic(0x27, 3, 4, 8, 0),
    "vslideup": arithmetic(0x0E, 3, 4, 8, 1), "vmseq": arithmetic(0x18, 0, 4, 8, 12),
    "vcompress": arithmetic(0x17, 2, 4, 8, 12), "vrgather": arithmetic(0x0C, 0, 4, 8, 12),
    "vmv.v": arithmetic(0x17, 3, 4, 0, 9), "vdiv": arithmetic(0x21, 2, 4, 8, 12), "vmsbf": arithmetic(0x14, 2, 4, 8, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_starts_at_0(rig: VectorRig, name: str) -> None:
    """3.7 permits it: vstart that the hart never leaves for these is illegal, and stays."""
    rig.configure(E8, 4)
    before = rig.state.v.copy()
    rig.state.vstart = 1
    retired = rig.do(ARITHMETIC[name])
    assert (retired.cause, rig.state.vstart) == (Cause.ILLEGAL, 1)
    assert np.array_equal(before, rig.state.v)
    rig.state.vstart = 0
    assert not rig.do(ARITHMETIC[name]).trap


def test_what_ends_sets_vstart_0(rig: VectorRig) -> None:
    rig.hart.x[1], rig.hart.x[2] = DATA, E16
    memories = memory(LOAD, BYTE, 4, 1), memory(STORE, HALF, 4, 1)
    for word in (vsetvli(0, 1, E8), vsetivli(0, 1, E8), vsetvl(0, 1, 2), *memories):
        rig.configure(E8, 2)
        rig.state.vstart = 3
        assert not rig.do(word).trap
        assert rig.state.vstart == 0


def test_floating_point_is_illegal(rig: VectorRig) -> None:
    rig.configure(E32, 4)
    rig.hart.x[1] = DATA
    for funct6 in range(64):
        for funct3 in (1, 5):
            assert rig.do(arithmetic(funct6, funct3, 4, 8, 0)).cause == Cause.ILLEGAL
    for opcode in (LOAD, STORE):
        for width in (1, 2, 3, 4):
            assert rig.do(memory(opcode, width, 4, 1)).cause == Cause.ILLEGAL


@pytest.mark.parametrize("policy", [0, 0x40, 0x80, 0xC0])
def test_tails_and_inactive_elements_stay(rig: VectorRig, policy: int) -> None:
    """3.4.3 with agnostic as undisturbed; of masks too, which are always agnostic."""
    rig.configure(E16 | M2 | policy, 5)
    mask, before, a, b = rig.elements(0, 8)[0], rig.elements(4, 16), rig.elements(8, 16), rig.elements(12, 16)
    rig.do(arithmetic(0, 0, 4, 8, 12, vm=0))
    wanted = before.copy()
    active = [i for i in range(5) if mask >> i & 1]
    wanted[active] = a[active] + b[active]
    assert 0 < len(active) < 5
    assert np.array_equal(rig.elements(4, 16), wanted)
    before = rig.elements(6, 8)
    rig.do(arithmetic(0x18, 0, 6, 8, 8))  # vmseq of equals
    assert rig.elements(6, 8)[0] == before[0] | 31
    assert np.array_equal(rig.elements(6, 8)[1:], before[1:])


def test_nothing_for_vl_0(rig: VectorRig) -> None:
    """But vmv.x.s reads, and whole registers move. 16.1, 16.6."""
    rig.configure(E8, 0)
    rig.hart.x[1] = 0
    before, data = rig.state.v.copy(), bytes(rig.data)
    memories = memory(LOAD, BYTE, 4, 1), memory(STORE, HALF, 4, 1)
    for word in (VADD, VID, ARITHMETIC["vredsum"], ARITHMETIC["vmv.s.x"], *memories):
        assert not rig.do(word).trap
    assert np.array_equal(before, rig.state.v) and data == rig.data
    rig.state.v[3, 0] = 0x80
    assert rig.do(ARITHMETIC["vmv.x.s"]).rd_wdata == 0xFFFFFF80
    assert rig.do(arithmetic(0x10, 2, 5, 3, 17)).rd_wdata == ONES
    rig.do(ARITHMETIC["vmv1r"])
    assert np.array_equal(rig.state.v[4], before[8])


def test_records(rig: VectorRig) -> None:
    """Registers x that are used, and no other."""
    rig.configure(E32, 4)
    rig.hart.x[1:32] = range(DATA + 4, DATA + 4 + 31 * 4, 4)
    uses = {
        VADD: (0, 0, 0), arithmetic(0, 4, 4, 8, 12): (12, 0, 0), arithmetic(0, 3, 4, 8, 12): (0, 0, 0),
        ARITHMETIC["vmv.x.s"]: (0, 0, 5), ARITHMETIC["vmv.s.x"]: (5, 0, 0),
        arithmetic(0x10, 2, 6, 3, 16): (0, 0, 6), arithmetic(0x10, 2, 7, 3, 17): (0, 0, 7),
        vsetvl(3, 2, 1): (2, 1, 3), vsetivli(3, 4, E32): (0, 0, 3),
        memory(LOAD, WORD, 4, 9): (9, 0, 0), memory(STORE, WORD, 4, 9, STRIDED, 0): (9, 0, 0),
        memory(STORE, WORD, 4, 9, STRIDED, 10): (9, 10, 0), memory(LOAD, BYTE, 4, 9, INDEXED, 8): (9, 0, 0),
    }  # fmt: skip
    for word, (rs1, rs2, rd) in uses.items():
        rig.configure(E32, 1)
        rig.state.elements(8, 8)[:4] = 0
        x = rig.hart.x[:]
        retired = rig.do(word)
        assert (retired.trap, retired.rs1_addr, retired.rs2_addr, retired.rd_addr) == (0, rs1, rs2, rd), hex(word)
        assert (retired.rs1_rdata, retired.rs2_rdata) == (x[rs1], x[rs2])
        assert retired.rd_wdata == (rig.hart.x[rd] if rd else 0)
        assert (retired.mem_addr, retired.mem_rmask, retired.mem_wmask) == (0, 0, 0)
        assert rig.hart.x[:rd] + rig.hart.x[rd + 1 : 32] == x[:rd] + x[rd + 1 : 32] or not rd


def test_run_does_what_steps_do() -> None:
    """A loop that adds arrays of 100 words, however long a vector is."""
    for vlen in (128, 256, 512):
        rigs = [VectorRig(vlen), VectorRig(vlen)]
        program = [
            vsetvli(5, 10, E32M4), memory(LOAD, WORD, 8, 11), memory(LOAD, WORD, 12, 12), arithmetic(0, 0, 8, 8, 12),
            memory(STORE, WORD, 8, 11),
            0x00229313, 0x006585B3, 0x00660633,  # slli x6, x5, 2; add x11, x11, x6; add x12, x12, x6
            0x40550533, 0xFC051EE3,  # sub x10, x10, x5; bne x10, x0, -36
        ]  # fmt: skip
        for rig in rigs:
            for at, word in enumerate(program):
                rig.code[4 * at : 4 * at + 4] = word.to_bytes(4, "little")
            rig.hart.x[10:13] = [100, DATA, DATA + 512]
        a, b = rigs[0].words(0, 100), rigs[0].words(512, 100)
        steps = 0
        while rigs[0].hart.x[10] or rigs[0].hart.pc != CODE + 40:
            assert not rigs[0].hart.step().trap
            steps += 1
            assert steps < 300
        assert rigs[1].hart.run(steps) == steps
        assert np.array_equal(rigs[0].words(0, 100), a + b)
        assert all(one.data == other.data for one, other in pairwise(rigs))
        assert np.array_equal(rigs[0].state.v, rigs[1].state.v)

"""Vector loads and stores of the golden hart where QEMU is no judge: faults, vstart, devices. From RVV 1.0."""

import numpy as np
import pytest

from verif.checks.vector_formats import (
    BYTE,
    FIRST,
    HALF,
    INDEXED,
    LOAD,
    MASK,
    STORE,
    STRIDED,
    WHOLE,
    WORD,
    memory,
)  # fmt: skip
from verif.checks.vector_rig import BYTES, CODE, DATA, DEVICE, DEVICE_BYTES, VectorRig
from verif.golden.gpsimd.ended import Ended
from verif.golden.gpsimd.tohost import TohostMemory
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.traps import Cause

E8, E16, E32 = 0, 8, 16
M8 = 3
ONES = 0xFFFFFFFF


@pytest.fixture
def rig() -> VectorRig:
    return VectorRig()


SIZES = {BYTE: 1, HALF: 2, WORD: 4}


@pytest.mark.parametrize("opcode", [LOAD, STORE])
@pytest.mark.parametrize("width", SIZES)
def test_out_of_memory_and_again(rig: VectorRig, opcode: int, width: int) -> None:
    """17.1: what came before is done, vstart is the element, and from there the instruction goes on."""
    size = SIZES[width]
    rig.configure(width if width == 0 else E16 if width == HALF else E32, 4)
    rig.hart.x[1] = DATA + BYTES - 3 * size
    before, data = rig.elements(4, 8 * size), rig.words(0, BYTES // size, 8 * size)
    retired = rig.do(memory(opcode, width, 4, 1))
    assert retired.cause == (Cause.LOAD_ACCESS if opcode == LOAD else Cause.STORE_ACCESS)
    assert (rig.hart.csrs.mtval, rig.state.vstart) == (DATA + BYTES, 3)
    assert (retired.mem_addr, retired.mem_rmask, retired.mem_wmask, retired.rd_addr) == (0, 0, 0, 0)
    assert (retired.rs1_addr, retired.rs1_rdata) == (1, rig.hart.x[1])
    if opcode == LOAD:
        assert np.array_equal(rig.elements(4, 8 * size)[:4], [*data[-3:], before[3]])
    else:
        assert np.array_equal(rig.words(0, BYTES // size, 8 * size), [*data[:-3], *before[:3]])
    rig.hart.x[1] = DATA
    assert not rig.do(memory(opcode, width, 4, 1)).trap
    assert rig.state.vstart == 0
    if opcode == LOAD:
        assert np.array_equal(rig.elements(4, 8 * size)[:4], [*data[-3:], data[3]])
    else:
        assert np.array_equal(rig.words(0, 5, 8 * size), [*data[:3], before[3], data[4]])


@pytest.mark.parametrize(("opcode", "cause"), [(LOAD, Cause.LOAD_MISALIGNED), (STORE, Cause.STORE_MISALIGNED)])
@pytest.mark.parametrize("at", [DATA + 2, 2])
def test_misaligned_comes_first(rig: VectorRig, opcode: int, cause: Cause, at: int) -> None:
    rig.configure(E32, 4)
    rig.hart.x[1] = at
    before, data = rig.state.v.copy(), bytes(rig.data)
    assert rig.do(memory(opcode, WORD, 4, 1)).cause == cause
    assert (rig.hart.csrs.mtval, rig.state.vstart) == (at, 0)
    assert np.array_equal(before, rig.state.v) and data == rig.data


def test_strided_becomes_misaligned(rig: VectorRig) -> None:
    rig.configure(E32, 4)
    rig.hart.x[1], rig.hart.x[2] = DATA + 64, -7 & ONES
    retired = rig.do(memory(LOAD, WORD, 4, 1, STRIDED, 2))
    assert (retired.cause, rig.hart.csrs.mtval, rig.state.vstart) == (Cause.LOAD_MISALIGNED, DATA + 57, 1)
    assert (retired.rs2_addr, retired.rs2_rdata) == (2, -7 & ONES)
    assert rig.elements(4, 32)[0] == rig.words(64, 1)[0]


def test_indexed_keeps_indices_until_the_end(rig: VectorRig) -> None:
    """A load into its own indices, of elements that follow the faulting one still whole."""
    rig.configure(E32, 4)
    rig.state.elements(4, 32)[:4] = 0, 8, BYTES, 16
    rig.hart.x[1] = DATA
    load = memory(LOAD, WORD, 4, 1, INDEXED, 4)
    retired = rig.do(load)
    assert (retired.cause, rig.hart.csrs.mtval, rig.state.vstart) == (Cause.LOAD_ACCESS, DATA + BYTES, 2)
    first, third = rig.words(0, 1)[0], rig.words(8, 1)[0]
    assert rig.elements(4, 32)[:4].tolist() == [first, third, BYTES, 16]
    rig.state.elements(4, 32)[2] = 12
    assert not rig.do(load).trap
    assert rig.elements(4, 32)[:4].tolist() == [first, third, rig.words(12, 1)[0], rig.words(16, 1)[0]]


@pytest.mark.parametrize("opcode", [LOAD, STORE])
def test_a_segment_is_done_up_to_its_fault(rig: VectorRig, opcode: int) -> None:
    """7.8 leaves it open: fields of the segment before the faulting one are done."""
    rig.configure(E32, 4)
    rig.hart.x[1] = DATA + BYTES - 16
    before, data = rig.state.v.copy(), rig.words(0, BYTES // 4)
    assert rig.do(memory(opcode, WORD, 4, 1, fields=3)).cause in (Cause.LOAD_ACCESS, Cause.STORE_ACCESS)
    assert (rig.hart.csrs.mtval, rig.state.vstart) == (DATA + BYTES, 1)
    if opcode == LOAD:
        fields = before.view("<u4")
        assert rig.elements(4, 32)[:12].tolist() == [
            *data[-4:-3], data[-1], *fields[4, 2:], data[-3], *fields[5, 1:], data[-2], *fields[6, 1:]
        ]  # fmt: skip
    else:
        fields = before.view("<u4")
        assert rig.words(0, BYTES // 4)[-4:].tolist() == [fields[4, 0], fields[5, 0], fields[6, 0], fields[4, 1]]
        assert np.array_equal(rig.words(0, BYTES // 4)[:-4], data[:-4])


@pytest.mark.parametrize("opcode", [LOAD, STORE])
def test_inactive_elements_do_not_fault(rig: VectorRig, opcode: int) -> None:
    rig.configure(E8, 16)
    rig.state.v[0, :2] = 0b11000111, 0b10000000
    rig.hart.x[1] = DATA + BYTES - 8
    retired = rig.do(memory(opcode, BYTE, 4, 1, vm=0))
    assert retired.trap and (rig.state.vstart, rig.hart.csrs.mtval) == (15, DATA + BYTES + 7)
    rig.state.v[0, 1], rig.state.vstart = 0, 0
    assert not rig.do(memory(opcode, BYTE, 4, 1, vm=0)).trap


FIRST_LOAD = memory(LOAD, WORD, 4, 1, second=FIRST)


def test_fault_only_first(rig: VectorRig) -> None:
    """7.7: vl becomes the index of the element that would have trapped; element 0 traps."""
    rig.configure(E32, 4)
    rig.hart.x[1] = DATA + BYTES - 12
    before = rig.elements(4, 32)
    retired = rig.do(FIRST_LOAD)
    assert (retired.trap, rig.state.vl, rig.state.vstart) == (0, 3, 0)
    assert rig.elements(4, 32)[:4].tolist() == [*rig.words(BYTES - 12, 3), before[3]]
    rig.configure(E32, 4)
    rig.hart.x[1] = DATA + BYTES
    retired = rig.do(FIRST_LOAD)
    assert (retired.cause, rig.state.vl, rig.state.vstart) == (Cause.LOAD_ACCESS, 4, 0)
    rig.hart.x[1] = DATA + 1
    assert rig.do(FIRST_LOAD).cause == Cause.LOAD_MISALIGNED
    assert rig.state.vl == 4


def test_fault_only_first_behind_element_0(rig: VectorRig) -> None:
    """From vstart on, and where element 0 is inactive, every fault is at another element."""
    rig.configure(E32, 4)
    rig.hart.x[1], rig.state.vstart = DATA + BYTES - 8, 2
    assert not rig.do(FIRST_LOAD).trap
    assert (rig.state.vl, rig.state.vstart) == (2, 0)
    rig.configure(E32, 4)
    rig.hart.x[1], rig.state.v[0, 0] = DATA + BYTES, 0b1110
    assert not rig.do(memory(LOAD, WORD, 4, 1, second=FIRST, vm=0)).trap
    assert rig.state.vl == 1


def test_fault_only_first_of_segments(rig: VectorRig) -> None:
    """Fields of the segment that trims are loaded up to the fault."""
    rig.configure(E32, 4)
    rig.hart.x[1] = DATA + BYTES - 12
    data = rig.words(BYTES - 12, 3).tolist()
    assert not rig.do(memory(LOAD, WORD, 4, 1, second=FIRST, fields=2)).trap
    assert (rig.state.vl, rig.elements(4, 32)[:2].tolist(), rig.elements(5, 32)[0]) == (1, [data[0], data[2]], data[1])


@pytest.mark.parametrize("vl", [1, 7, 8, 9, 16])
def test_masks_move_whole_bytes(rig: VectorRig, vl: int) -> None:
    """7.4: evl is vl / 8 rounded up, whatever LMUL is."""
    rig.configure(E16 | M8, vl)
    rig.hart.x[1] = DATA
    before, count = rig.elements(3, 8), -(-vl // 8)
    rig.do(memory(LOAD, BYTE, 3, 1, second=MASK))
    assert rig.elements(3, 8)[:16].tolist() == [*rig.words(0, count, 8), *before[count:16]]
    data = rig.words(0, 16, 8)
    rig.do(memory(STORE, BYTE, 5, 1, second=MASK))
    assert rig.words(0, 16, 8).tolist() == [*rig.elements(5, 8)[:count], *data[count:]]


@pytest.mark.parametrize(("width", "size"), [(BYTE, 1), (HALF, 2), (WORD, 4)])
def test_whole_registers(rig: VectorRig, width: int, size: int) -> None:
    """7.9: vstart counts elements of the hinted width; from evl on nothing moves; alignment is that of the width."""
    load = memory(LOAD, width, 4, 1, second=WHOLE, fields=2)
    rig.hart.x[1], rig.state.vstart = DATA, 3
    before = rig.elements(4, 8)
    assert not rig.do(load).trap
    assert rig.elements(4, 8)[:32].tolist() == [*before[: 3 * size], *rig.words(3 * size, 32 - 3 * size, 8)]
    before, rig.state.vstart = rig.elements(4, 8), 32 // size
    assert not rig.do(load).trap
    assert np.array_equal(rig.elements(4, 8), before) and rig.state.vstart == 0
    rig.hart.x[1] = DATA + 1
    assert rig.do(load).cause == (Cause.LOAD_MISALIGNED if size > 1 else 0)
    rig.hart.x[1] = DATA + BYTES - 16
    rig.do(load)
    assert (rig.state.vstart, rig.hart.csrs.mtval) == (16 // size, DATA + BYTES)


def test_addresses_wrap(rig: VectorRig) -> None:
    rig.configure(E32, 4)
    rig.hart.x[1], rig.hart.x[2] = 0xFFFFFFF0, DATA + 0x10
    retired = rig.do(memory(LOAD, WORD, 4, 1, STRIDED, 2))
    assert (retired.cause, rig.state.vstart, rig.hart.csrs.mtval) == (Cause.LOAD_ACCESS, 0, 0xFFFFFFF0)
    rig.state.v[0, 0], rig.state.vstart = 0b10, 0
    assert not rig.do(memory(LOAD, WORD, 4, 1, STRIDED, 2, vm=0)).trap
    assert rig.elements(4, 32)[1] == rig.words(0, 1)[0]


def test_devices_see_elements_in_order(rig: VectorRig) -> None:
    rig.configure(E32, 3)
    rig.hart.x[1] = DEVICE
    assert not rig.do(memory(LOAD, WORD, 4, 1, fields=2)).trap
    assert rig.seen == [(0,), (4,), (8,), (12,), (16,), (20,)]
    assert rig.elements(4, 32)[:3].tolist() == [DEVICE, DEVICE + 8, DEVICE + 16]
    rig.seen.clear()
    rig.hart.x[2] = -4 & ONES
    rig.hart.x[1] = DEVICE + 8
    values = rig.elements(4, 32)
    assert not rig.do(memory(STORE, WORD, 4, 1, STRIDED, 2)).trap
    assert rig.seen == [(8, values[0]), (4, values[1]), (0, values[2])]
    assert rig.do(memory(STORE, HALF, 4, 1)).cause == Cause.STORE_ACCESS
    rig.hart.x[1] = DEVICE + DEVICE_BYTES - 8
    assert rig.do(memory(LOAD, WORD, 4, 1)).cause == Cause.LOAD_ACCESS
    assert rig.state.vstart == 2


def test_a_store_of_one_register_may_repeat_an_address(rig: VectorRig) -> None:
    """7.6: elements go to memory in order, so the last of two stays."""
    rig.configure(E32, 4)
    rig.hart.x[1] = DATA
    rig.state.elements(8, 32)[:4] = 4, 0, 4, 0
    values = rig.elements(4, 32)
    rig.do(memory(STORE, WORD, 4, 1, INDEXED, 8))
    assert rig.words(0, 2).tolist() == [values[3], values[2]]


@pytest.mark.parametrize("fields", [1, 2])
def test_a_vector_store_to_tohost_ends_the_run(fields: int) -> None:
    """Elements before it are stored, it is, those behind are not."""
    code, data = bytearray(16), bytearray(64)
    space = TohostMemory(DATA + 12, 64)
    space.add(CODE, code)
    space.add(DATA, data)
    hart = Hart(space, reset_pc=CODE, vlen=128)
    assert hart.vector
    hart.vector.status, hart.vector.vtype, hart.vector.vl = 1, E32, 4
    hart.vector.elements(4, 32)[:8] = [2, 4, 6, 7, 10, 11, 12, 13]
    code[:4] = memory(STORE, WORD, 4, 1, fields=fields).to_bytes(4, "little")
    hart.x[1] = DATA
    with pytest.raises(Ended) as end:
        hart.step()
    assert end.value.low == (3 if fields == 1 else 5)
    assert data[12] == (7 if fields == 1 else 11) and not any(data[16:])


@pytest.mark.parametrize("opcode", [LOAD, STORE])
@pytest.mark.parametrize("vstart", [4, 5, 127])
def test_nothing_is_left_to_do_from_vl_on(rig: VectorRig, opcode: int, vstart: int) -> None:
    """5.4: nothing is written; 3.7: vstart becomes 0 all the same. QEMU leaves it."""
    rig.configure(E32, 4)
    rig.state.vstart = vstart
    before, data = rig.state.v.copy(), bytes(rig.data)
    assert not rig.do(memory(opcode, WORD, 4, 0)).trap
    assert (rig.state.vstart, rig.state.vl) == (0, 4)
    assert np.array_equal(before, rig.state.v) and data == rig.data

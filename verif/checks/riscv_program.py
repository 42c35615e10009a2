"""Random programs for a hart of RV32IMC_Zicsr_Zifencei: they use everything, trap in every way, and end.

Registers: x1 link, x2, x8 and x9 point into the data, x14 and x15 count loops, x30 and x31 belong to the trap handler.
"""

import random
from collections.abc import Callable

from verif.checks import riscv_words as w

__all__ = ["random_program"]

LINK, STACK, POINTERS, COUNTERS = 1, 2, (2, 8, 9), (14, 15)
FREE = tuple(n for n in range(32) if n not in (LINK, *POINTERS, *COUNTERS))
COMPRESSED = (10, 11, 12, 13)
KEPT = tuple(n for n in FREE if n not in (0, *COMPRESSED, 30, 31))  # by interrupts and by code that is overwritten
DEPTH = 2
ECALL, EBREAK, MRET, WFI, FENCE, FENCE_I = (
    v.to_bytes(4, "little") for v in (0x73, 0x100073, 0x30200073, 0x10500073, 0x0FF0000F, 0x100F)
)
C_NOP, C_EBREAK = b"\x01\x00", b"\x02\x90"
MSTATUS, MIE, MTVEC, MEPC, MCAUSE = 0x300, 0x304, 0x305, 0x341, 0x342
CSRS = (
    0x300, 0x301, 0x304, 0x310, 0x320, 0x340, 0x341, 0x342, 0x343, 0x344,
    0xF11, 0xF12, 0xF13, 0xF14, 0xF15, 0xB02, 0xB82, 0xC02, 0xC82,
)  # fmt: skip
CYCLES = (0xB00, 0xB80, 0xC00, 0xC80, 0xC01, 0xC81)
NO_CSRS = (0x000, 0x001, 0x100, 0x106, 0x180, 0x302, 0x303, 0x306, 0x3A0, 0x7A0, 0x7B0, 0xC03, 0xFFF)
ILLEGAL = (
    0x0000, 0x2000, 0x6000, 0x8000, 0xA000, 0xE000, 0x6081, 0x9001, 0x9101, 0x9C01, 0x1002, 0x2002, 0x4002, 0x6002,
    0x8002, 0xFFFFFFFF, 0x00200073, 0x10200073, 0x12000073, 0x00004073, 0x0000003B, 0x00003003, 0x00003023, 0x00002063,
    0x40001013, 0x20005013, 0x02001013, 0x40001033, 0x40007033, 0x04000033, 0x00002067, 0x0000200F, 0x0000202F,
    0x00000007, 0x00000027, 0x00000057, 0x0000001F, 0x0000007F,
)  # fmt: skip


def _handler() -> bytes:
    """Steps over the instruction that trapped, of 2 or 4 bytes as it reads there; a failed fetch returns by x1."""
    link = w.immediate(0x73, 1, 0, LINK, MEPC) + MRET
    step = (
        w.immediate(0x73, 2, 31, 0, MEPC)
        + w.immediate(0x03, 5, 30, 31, 0)  # LHU
        + w.immediate(0x13, 7, 30, 30, 3)
        + w.immediate(0x13, 0, 30, 30, -3)
        + w.c_immediate(0, 31, 2)
        + w.branch(1, 30, 0, 6)
        + w.c_immediate(0, 31, 2)
        + w.immediate(0x73, 1, 0, 31, MEPC)
    )
    cause = w.immediate(0x73, 2, 31, 0, MCAUSE)
    after_interrupt = w.branch(4, 31, 0, 4 + 4 + 4 + len(link) + len(step))
    one = w.immediate(0x13, 0, 30, 0, 1)
    return cause + after_interrupt + one + w.branch(1, 31, 30, 4 + len(link)) + link + step + MRET


class _Maker:
    """Statements as bytes; each may be put anywhere."""

    def __init__(self, seed: int, data_bytes: int, cycles: bool, wfi: bool, interrupts: bool):
        self.rng = random.Random(seed)
        self.half_bytes = data_bytes // 2
        self.csrs = CSRS + CYCLES if cycles else CSRS
        self.left = 0  # statements to be made
        self.leaf = False  # x1 is in use
        self.loops = 0
        self.plain: list[Callable[[], bytes]] = [
            self.alu, self.alu, self.alu, self.c_alu, self.c_alu, self.c_alu, self.multiply, self.memory, self.memory,
            self.c_memory, self.c_memory, self.csr, self.trap, self.change, self.fetch,
            self.wait if wfi else self.fence,
        ]  # fmt: skip
        if interrupts:
            self.plain.append(self.enable)

    def block(self, depth: int, most: int) -> bytes:
        """Up to `most` statements."""
        out = b""
        for _ in range(self.rng.randint(1, most)):
            if self.left <= 0:
                break
            out += self.statement(depth)
        return out

    def statement(self, depth: int) -> bytes:
        self.left -= 1
        if depth < DEPTH and self.rng.random() < 0.25:
            return self.rng.choice((self.skip, self.skip, self.loop, self.call))(depth + 1)
        return self.rng.choice(self.plain)()

    def number(self) -> int:
        rng = self.rng
        return rng.choice((rng.choice((0, 1, 2, 31, 32, 1 << 31, (1 << 31) - 1, (1 << 32) - 1)), rng.getrandbits(32)))

    def alu(self) -> bytes:
        rng = self.rng
        rd, rs1, rs2, funct3 = rng.choice(FREE), rng.randrange(32), rng.randrange(32), rng.randrange(8)
        kind = rng.randrange(4)
        if kind == 0:
            return w.upper(rng.choice((0x37, 0x17)), rd, rng.getrandbits(20))
        if kind == 1:
            return w.load_constant(rd, self.number())
        if kind == 2:
            shift = rng.randrange(32) | (0x400 if funct3 == 5 and rng.random() < 0.5 else 0)
            return w.immediate(0x13, funct3, rd, rs1, shift if funct3 in (1, 5) else rng.randrange(-2048, 2048))
        return w.register(0x20 if funct3 in (0, 5) and rng.random() < 0.5 else 0, funct3, rd, rs1, rs2)

    def multiply(self) -> bytes:
        rng = self.rng
        out = w.load_constant(rng.choice(FREE), self.number()) if rng.random() < 0.3 else b""
        return out + w.register(1, rng.randrange(8), rng.choice(FREE), rng.randrange(32), rng.randrange(32))

    def c_alu(self) -> bytes:
        rng = self.rng
        rd, small, amount = rng.choice(FREE), rng.choice(COMPRESSED), rng.randrange(32)
        imm = rng.randrange(-32, 32)
        two = rng.randrange(4) << 3 | rng.randrange(8)
        kind = rng.randrange(3)
        return rng.choice(
            (
                w.c_immediate(0, rd, imm),
                w.c_immediate(2, rd, imm),
                w.c_immediate(3, rd, imm or 1),
                w.c_immediate(0, rd, amount, 2),
                w.c_alu(small, kind, amount, rng.randrange(2) if kind == 2 else 0),
                w.c_alu(small, 3, two),
                w.c_register(rng.random() < 0.5, rd, rng.randrange(1, 32)),
                (rng.randrange(1, 256) << 5 | (small & 7) << 2).to_bytes(2, "little"),  # C.ADDI4SPN
                w.c_immediate(3, STACK, 16) + w.c_immediate(3, STACK, 0x3F),  # C.ADDI16SP 16 and -16
                w.c_immediate(3, STACK, 1) + w.c_immediate(3, STACK, 0x2F),  # 32 and -32
                C_NOP,
            )
        )

    def memory(self) -> bytes:
        """Mostly aligned and inside the data; else misaligned, or near address 0 where nothing is."""
        rng = self.rng
        stores = rng.random() < 0.5
        funct3 = rng.choice((0, 1, 2) if stores else (0, 1, 2, 4, 5))
        size = 1 << (funct3 & 3)
        base = rng.choice(POINTERS)
        imm = rng.randrange(-self.half_bytes, self.half_bytes, size)
        if rng.random() < 0.15:
            imm += rng.randrange(1, 4)
        if rng.random() < 0.15:
            base = 0
        if stores:
            return w.store(funct3, rng.randrange(32), base, imm)
        return w.immediate(0x03, funct3, rng.choice(FREE), base, imm)

    def c_memory(self) -> bytes:
        rng = self.rng
        if rng.random() < 0.5:
            stores = rng.random() < 0.5
            return w.c_stack(stores, rng.randrange(32) if stores else rng.choice(FREE[1:]), 4 * rng.randrange(63))
        funct3 = rng.choice((2, 6))
        return w.c_memory(funct3, rng.choice(COMPRESSED), rng.choice((8, 9)), 4 * rng.randrange(32))

    def csr(self) -> bytes:
        rng = self.rng
        address = rng.choice(self.csrs if rng.random() < 0.9 else NO_CSRS)
        source = rng.choice((0, rng.randrange(32)))
        return w.immediate(0x73, rng.choice((1, 2, 3, 5, 6, 7)), rng.choice(FREE), source, address)

    def trap(self) -> bytes:
        illegal = self.rng.choice(ILLEGAL)
        return self.rng.choice(
            (ECALL, EBREAK, C_EBREAK, *[illegal.to_bytes(4 if illegal & 3 == 3 else 2, "little")] * 3)
        )

    def enable(self) -> bytes:
        enables = self.rng.choice((0x888, 0x888, 0x800, 0x080, 0x008))
        return w.load_constant(10, enables) + w.immediate(0x73, 1, 0, 10, MIE) + w.immediate(0x73, 6, 0, 8, MSTATUS)

    def fence(self) -> bytes:
        return self.rng.choice((FENCE, FENCE_I))

    def wait(self) -> bytes:
        return self.rng.choice((FENCE, FENCE_I, WFI))

    def fetch(self) -> bytes:
        """A call to where nothing is; x1 leads back."""
        return C_NOP if self.leaf else w.immediate(0x67, 0, LINK, 0, self.rng.randrange(0, 2048, 4))

    def change(self) -> bytes:
        """An instruction is executed, overwritten and executed anew: a whole one of 2 bytes, or half of one of 4."""
        rng = self.rng
        counter, address, value = rng.sample(KEPT, 3)
        if rng.random() < 0.5:
            old, new, at = w.c_immediate(2, 10, 1), self.c_half(), 0
        else:
            old, new, at = w.immediate(0x13, 0, 11, 11, 1), rng.randbytes(2), 2
        begin = w.immediate(0x13, 0, counter, 0, 2)
        store = w.upper(0x17, address, 0) + w.load_constant(value, int.from_bytes(new, "little"))
        store += w.store(1, value, address, at - len(old)) + FENCE_I
        back = w.immediate(0x13, 0, counter, counter, -1)
        return begin + old + store + back + w.branch(1, counter, 0, -len(old) - len(store) - len(back))

    def c_half(self) -> bytes:
        return w.c_alu(self.rng.choice(COMPRESSED), 3, self.rng.randrange(32))

    def skip(self, depth: int) -> bytes:
        """A branch over a block, taken or not."""
        rng = self.rng
        body = self.block(depth, 5)
        if rng.random() < 0.5 and len(body) < 200:
            return w.c_branch(rng.choice((6, 7)), rng.choice(COMPRESSED), 2 + len(body)) + body
        if rng.random() < 0.2:
            return w.c_jump(5, 2 + len(body)) + body
        return w.branch(rng.choice((0, 1, 4, 5, 6, 7)), rng.randrange(32), rng.randrange(32), 4 + len(body)) + body

    def loop(self, depth: int) -> bytes:
        counter = COUNTERS[self.loops]
        self.loops += 1
        body = self.block(depth, 5) + w.c_immediate(0, counter, -1)
        self.loops -= 1
        begin = w.c_immediate(2, counter, self.rng.randint(1, 4))
        if self.rng.random() < 0.5 and len(body) < 200:
            return begin + body + w.c_branch(7, counter, -len(body))
        return begin + body + w.branch(*self.rng.choice(((1, counter, 0), (4, 0, counter))), -len(body))

    def call(self, depth: int) -> bytes:
        """Around a function, then back to it by one of the ways there are."""
        rng = self.rng
        if self.leaf:
            return C_NOP
        self.leaf = True
        body = self.block(depth, 4) + rng.choice((w.c_register(False, LINK, 0), w.immediate(0x67, 0, 0, LINK, 0)))
        self.leaf = False
        target = rng.choice(KEPT)
        calls = (
            w.jump(LINK, -len(body)),
            w.c_jump(1, -len(body)),
            w.upper(0x17, target, 0) + w.immediate(0x67, 0, LINK, target, rng.randrange(2) - len(body)),
            w.upper(0x17, target, 0) + w.immediate(0x13, 0, target, target, -len(body)) + w.c_register(True, target, 0),
        )
        return w.jump(0, 4 + len(body)) + body + rng.choice(calls)


def random_program(
    seed: int,
    length: int,
    base: int,
    data: int,
    data_bytes: int,
    tohost: int,
    *,
    cycles: bool = True,
    interrupts: bool = False,
    wfi: bool = False,
) -> bytes:
    """About `length` random statements, to be loaded at `base` (a multiple of 64) and entered there.

    It uses `data_bytes` (1024 to 4096, a multiple of 8) of memory at `data`, and ends with a store of 1 to `tohost` and
    a jump to itself. Interrupts return at once, through a table if mtvec is vectored; `interrupts`: it enables them
    again and again. `cycles`: it reads mcycle and its shadows. `wfi`: it waits. The lowest and the highest 2048
    addresses must be no memory. Errors: ValueError for a place or a size that breaks these rules.
    """
    if base % 64 or not 1024 <= data_bytes <= 4096 or data % 4 or data_bytes % 8:
        raise ValueError(
            f"a program at {base:#x} with {data_bytes} bytes at {data:#x}: see the rules of random_program"
        )
    maker = _Maker(seed, data_bytes, cycles, wfi, interrupts)
    rng = maker.rng
    handler = _handler()
    table_bytes = 4 * 12
    table = b"".join(w.jump(0, table_bytes - at) for at in range(0, table_bytes, 4))
    begin = w.jump(0, 64 + len(table) + len(handler)).ljust(64, b"\0")
    setup = w.load_constant(31, base + 64 | rng.randrange(2)) + w.immediate(0x73, 1, 0, 31, MTVEC)
    for number in range(1, 30):
        setup += w.load_constant(number, data + data_bytes // 2 & ~3 if number in POINTERS else maker.number())
    maker.left = length
    body = b""
    while maker.left > 0:
        body += maker.statement(0)
    end = w.load_constant(29, tohost) + w.immediate(0x13, 0, 28, 0, 1) + w.store(2, 28, 29, 0) + w.c_jump(5, 0)
    return begin + table + handler + setup + body + end

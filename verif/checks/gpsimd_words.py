"""Short programs of GPSIMD cores, word by word: loops over partitions, waits, ends; for kernels that need no compiler.

Register 28 points at the mailbox; 6, 7 and 10 to 12 are used by what is here.
"""

from pathlib import Path

from firmware.gpsimd.image import Image, Section
from rtl.contract.gpsimd import Mailbox, Region, WaitFor, row_address
from verif.checks import riscv_words as w

__all__ = [
    "BOX", "DONE", "IMM1", "IMM2", "TO", "VALUE", "VALUE2", "argument", "code_image", "each", "enabled", "waited",
]  # fmt: skip

IMM1, IMM2 = 0x70, 0x78
"""Bytes of GP_RUN in the mailbox."""
BOX, VALUE, VALUE2, TO = 28, 6, 7, 11
"""Registers: the mailbox; for the body of `each` the element, one that is free, and where it stores to."""

_FROM, _LEFT = 10, 12
_WFI = (0x10500073).to_bytes(4, "little")
_EXTERNAL, _MIE = 1 << 11, 0x304

DONE = w.store(2, 0, BOX, Mailbox.DONE)


def code_image(name: str, code: bytes) -> Image:
    """An image of code that begins with its first instruction."""
    start = Region.LOCAL + 0x1000
    whole = w.load_constant(BOX, Region.MAILBOX) + code
    return Image(Path(name), start, (Section("text", start, len(whole), True, whole),), None, {}, {})


def argument(rd: int, byte: int) -> bytes:
    """A word of the instruction."""
    return w.immediate(0x03, 2, rd, BOX, byte)


def each(count: int, lane: int, body: bytes, step: int) -> bytes:
    """For `count` words of partition `lane`: `body` has one in VALUE and stores to TO.

    Registers 8 and 9 hold the byte of the first one and that where TO begins; TO goes on by `step`.
    """
    code = w.load_constant(VALUE, row_address(lane, 0)) + w.load_constant(_LEFT, count)
    code += w.register(0, 0, _FROM, VALUE, 8) + w.register(0, 0, TO, VALUE, 9)
    loop = w.immediate(0x03, 2, VALUE, _FROM, 0) + body
    loop += w.immediate(0x13, 0, _FROM, _FROM, 4) + w.immediate(0x13, 0, TO, TO, step)
    loop += w.immediate(0x13, 0, _LEFT, _LEFT, -1)
    return code + loop + w.branch(1, _LEFT, 0, -len(loop))


def enabled() -> bytes:
    """What a core waits for ends its sleep, from here on."""
    return w.load_constant(VALUE, _EXTERNAL) + w.immediate(0x73, 1, 0, VALUE, _MIE)


def waited(semaphore: int, register: int) -> bytes:
    """Asleep until a semaphore is at least what a register holds."""
    code = w.load_constant(VALUE, semaphore) + w.store(2, VALUE, BOX, Mailbox.WAIT_SEMAPHORE)
    code += w.store(2, register, BOX, Mailbox.WAIT_VALUE)
    code += w.load_constant(VALUE, WaitFor.SEMAPHORE_GE) + w.store(2, VALUE, BOX, Mailbox.WAIT_COMPARE)
    asks = w.immediate(0x03, 2, VALUE, BOX, Mailbox.WAIT_STATUS)
    return code + asks + w.branch(1, VALUE, 0, 12) + _WFI + w.jump(0, -len(asks) - 8)

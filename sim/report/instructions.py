"""Instructions of GPSIMD cores as lines for a person."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from firmware.gpsimd.image import Image
from firmware.gpsimd.mnemonic import mnemonic
from firmware.gpsimd.where import where
from sim.run.retired import RetiredInstruction

__all__ = ["instruction_lines"]

_HEAD = f"{'cycle':>10} core pc       insn     {'mnemonic':12} {'writes':14} {'memory':26} {'reads':28} where"


def _bytes(value: int, mask: int) -> str:
    """Those of a word that its mask has, as a number of 2, 4 or 8 digits."""
    first, count = (mask & -mask).bit_length() - 1, mask.bit_count()
    return f"{value >> 8 * first & (1 << 8 * count) - 1:0{2 * count}x}"


def _memory(one: RetiredInstruction) -> str:
    """`[10002004] -> 2a` is a load, `[10002004] <- 2a` a store."""
    mask = one.mem_rmask or one.mem_wmask
    if not mask:
        return ""
    address = one.mem_addr + (mask & -mask).bit_length() - 1
    way, value = ("->", one.mem_rdata) if one.mem_rmask else ("<-", one.mem_wdata)
    return f"[{address:08x}] {way} {_bytes(value, mask)}"


def _line(one: RetiredInstruction, place: str) -> str:
    writes = f"x{one.rd_addr} = {one.rd_wdata:08x}" if one.rd_addr else ""
    reads = " ".join(
        f"x{register}={value:08x}"
        for register, value in ((one.rs1_addr, one.rs1_rdata), (one.rs2_addr, one.rs2_rdata))
        if register
    )
    insn = f"{one.insn:08x}" if one.insn & 3 == 3 else f"{one.insn:04x}"
    what = f"trap {one.cause}" if one.trap else mnemonic(one.insn)
    mark = f"{place} (interrupt {one.cause})".lstrip() if one.intr and not one.trap else place
    line = (
        f"{one.cycle:10} gp{one.core}  {one.pc_rdata:08x} {insn:8} {what:12} {writes:14} {_memory(one):26} {reads:28} "
    )
    return (line + mark).rstrip()


def instruction_lines(retired: Iterable[RetiredInstruction], image: Image | None) -> Iterator[str]:
    """A head, then a line each; with an image the function and, if it was built with lines, the line of its source."""

    @lru_cache(maxsize=1 << 16)
    def place(pc: int) -> str:
        if image is None:
            return ""
        return " ".join(filter(None, (image.function_at(pc), where(image.path, pc))))

    for n, one in enumerate(retired):
        if n == 0:
            yield _HEAD.rstrip()
        yield _line(one, place(one.pc_rdata))

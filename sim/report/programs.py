"""What a report says of programs on GPSIMD cores: how one ended, what it printed, where its cycles went."""

from collections.abc import Mapping
from typing import Any

from firmware.gpsimd.image import Image
from firmware.gpsimd.where import where
from firmware.program import Program
from rtl.contract.gpsimd import FAULT, RUN, WATCHDOG_CYCLES
from rtl.contract.isa import Cause, Queue
from rtl.contract.memmap import ADDRESS
from sim.run.result import Fault, RunResult

__all__ = ["cores_of_report", "ended", "lines_of", "printed_of"]

_TRAPS = {
    0: "misaligned instruction", 1: "instruction fetch outside memory", 2: "illegal instruction", 3: "ebreak",
    4: "misaligned load", 5: "load outside memory", 6: "misaligned store", 7: "store outside memory", 11: "ecall",
}  # fmt: skip
"""Names of mcause; those of the specification, by what a core does with them."""

_COPIES = {
    int(Cause.MISALIGNED): "its descriptor's address is no multiple of 128",
    int(Cause.OUT_OF_RANGE): "its descriptor, or a row of it, lies outside its memory",
    int(Cause.BAD_DESCRIPTOR): "a row of 0 bytes or more than 2^18, a count of 0, or a reserved field that is set",
    int(Cause.BAD_SPACE): "a side of it is neither in HBM nor in SBUF",
    int(Cause.NO_ROUTE): "a side of it is in a core that cannot be reached",
    int(Cause.BAD_SEMAPHORE): "its signal is no semaphore",
    int(Cause.BUS_ERROR): "HBM, or the core that it reads from, answered with an error",
}
"""Why the DMA refuses a descriptor, or a copy fails."""


def ended(fault: Fault, program: Program) -> str:
    """How a program ended that did not end well, in a sentence; empty for another fault."""
    if fault.cause not in (Cause.GP_TRAP, Cause.GP_WATCHDOG, Cause.GP_EXIT, Cause.GP_DMA):
        return ""
    word = FAULT.unpack(ADDRESS.unpack(fault.address)["offset"])
    low, core = word["low"], f"core gp{word['core']}"
    runs = program.queues.get(Queue.GPSIMD, [])
    run = runs[fault.sequence] if fault.sequence < len(runs) else None
    image = run.image if run else None
    of = f" of {image.path.name}" if image else ""
    if fault.cause == Cause.GP_EXIT:
        return f"{core}{of} ended with exit value {low if low < 1 << 31 else low - (1 << 32)}, not 0"
    if fault.cause == Cause.GP_WATCHDOG:
        cycles = RUN.unpack(run.imm0)["watchdog"] if run else 0
        return f"{core}{of} still ran after {cycles or WATCHDOG_CYCLES:,} GPSIMD cycles, the limit of its watchdog"
    if fault.cause == Cause.GP_DMA:
        why = _COPIES.get(word["cause"], f"cause {word['cause']}")
        return f"{core}{of} pushed a copy that failed: {why}, at pc {low:#010x}{_place(image, low)}"
    trap = _TRAPS.get(word["cause"], "trap")
    return f"{core}{of} trapped: {trap} (mcause {word['cause']}) at pc {low:#010x}{_place(image, low)}"


def _place(image: Image | None, pc: int) -> str:
    """`, topk.cpp:41 in sift`, as far as the image tells."""
    if image is None:
        return ""
    line, function = where(image.path, pc), image.function_at(pc)
    return (f", {line}" if line else "") + (f" in {function}" if function else "")


def printed_of(result: RunResult) -> dict[str, str]:
    """Text by core; bytes that are no UTF-8 as the mark of such."""
    return {f"gp{core}": text.decode(errors="replace") for core, text in sorted(result.printed.items())}


def cores_of_report(result: RunResult) -> list[dict[str, Any]]:
    """GPSIMD cycles of each core by state, and the instructions that retired."""
    return [
        {"busy": one.busy, "idle": one.idle, "stall": dict(one.stall), "instructions": one.instructions}
        for one in result.gpsimd_cores
    ]


def lines_of(printed: Mapping[str, str]) -> list[str]:
    """`[gp3] text`, a line each; what would move a terminal's cursor is shown as a mark."""
    return [
        f"[{core}] " + "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)
        for core, text in printed.items()
        for line in text.removesuffix("\n").replace("\r\n", "\n").split("\n")
    ]

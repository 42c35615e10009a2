"""A core's image on RTL and on the golden machine: what differs, of outputs, semaphores, texts and faults."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from firmware.image import Image, Segment
from rtl.contract.config import Config
from rtl.contract.gpsimd import FAULT, Counter, cores
from rtl.contract.isa import Cause
from rtl.contract.memmap import ADDRESS, Control
from sim.run.result import RunResult
from sim.systems.core.verilated import VerilatedDevice, build_core
from verif.checks.gpsimd_program import WordImage
from verif.golden.machine import GoldenMachine

__all__ = ["Beside", "beside", "of_words"]


@dataclass(frozen=True, slots=True)
class Beside:
    """`differences`: sentences; all else is of the RTL. `sbuf_bytes`: loaded and stored by each GPSIMD core."""

    differences: list[str]
    result: RunResult
    semaphores: list[int]
    sbuf_bytes: list[int]

    @property
    def instructions(self) -> int:
        """Retired on all GPSIMD cores."""
        return sum(core.instructions for core in self.result.gpsimd_cores)


def _texts(got: Mapping[int, bytes], want: Mapping[int, bytes], victims: set[int], failed: bool) -> list[str]:
    """What differs. A core that is stopped by the failure of another has printed a part of its text, or all of it."""
    found: list[str] = []
    for core in sorted({*got, *want}):
        have, need = got.get(core, b""), want.get(core, b"")
        short = min(len(have), len(need)) if failed and core not in victims else max(len(have), len(need))
        if have[:short] != need[:short]:
            found.append(f"gp{core} prints {have!r}, must print {need!r}")
    return found


def of_words(words: WordImage) -> Image:
    """`words` as an image that a device can load."""
    memory = words.memory()
    return Image(
        segments=(Segment(0, memory),),
        queues=words.queues,
        instructions=words.instructions,
        rings=words.rings,
        outputs=words.outputs,
        tensors={},
        hbm_bytes=len(memory),
    )


def beside(cfg: Config, asked: Image | WordImage, seed: int | None = None) -> Beside:
    """Run both; `seed` is the golden machine's. Without a fault everything is compared, else the faults and texts."""
    image = of_words(asked) if isinstance(asked, WordImage) else asked
    golden = GoldenMachine(cfg, seed)
    golden.load(image)
    want = golden.run()
    with VerilatedDevice(cfg, build_core(cfg).binary) as device:
        device.load(image)
        got = device.run()
        read = device.core.host_read
        values = [read(Control.SEMAPHORE + 8 * n) for n in range(cfg.issue.semaphores)]
        moved = [read(Control.GPSIMD + 0x100 * core + 8 * Counter.BYTES) for core in range(cores(cfg.partitions))]
    semaphores = [(value + (1 << 31)) % (1 << 32) - (1 << 31) for value in values]
    have, need = (
        sorted((f.queue, f.sequence, Cause(f.cause).name, hex(f.address)) for f in faults)
        for faults in (got.faults, want.faults)
    )
    differences = [] if have == need else [f"faults are {have}, must be {need}"]
    end = "fault" if want.faults else "done"
    if got.end != end:
        differences.append(f"it ends as {got.end}, must end as {end}: {got.message} {got.progress}")
    told = [f for f in want.faults if f.cause in (Cause.GP_TRAP, Cause.GP_EXIT, Cause.GP_DMA)]
    victims = {FAULT.unpack(ADDRESS.unpack(f.address)["offset"])["core"] for f in told}
    differences += _texts(got.printed, want.printed, victims, bool(want.faults))
    if not want.faults:
        for name, bits in want.outputs.items():
            wrong = np.argwhere(got.outputs[name] != bits)
            if len(wrong):
                differences.append(f"{name} differs in {len(wrong)} of {bits.size} elements, first at {wrong[0]}")
        for index, (mine, theirs) in enumerate(zip(semaphores, want.semaphores, strict=True)):
            if mine != theirs:
                differences.append(f"semaphore {index} is {mine}, must be {theirs}")
    return Beside(differences, got, semaphores, moved)

"""The cores of the programmable engine: their memories, and what the instructions of its queue do."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rtl.contract.config import Config
from rtl.contract.gpsimd import LANE_BITS, LOAD, RUN, SHARED_BYTES, WATCHDOG_CYCLES, Region, cores, lanes
from rtl.contract.isa import INSTRUCTION, Cause, Opcode
from verif.golden.gpsimd.barrier import Barrier
from verif.golden.gpsimd.copies import CoreCopies, Start
from verif.golden.gpsimd.core import Core
from verif.golden.gpsimd.mailbox import MailboxRegisters, Semaphores
from verif.golden.gpsimd.place import Place
from verif.golden.gpsimd.run import Run
from verif.golden.gpsimd.tohost import TohostMemory
from verif.golden.gpsimd.windows import Windows
from verif.golden.memory import Memory as Sbuf
from verif.golden.operands import Fields, pattern_of
from verif.golden.riscv.hart import Hart
from verif.golden.riscv.memory import Memory

__all__ = ["Cluster"]

WORD_BYTES = 4

Words = NDArray[np.unsignedinteger]


class Cluster:
    """The engine without time. Memories start as 0xFF and survive runs; nothing else of a core does.

    `local[core]` and `shared` are memories, `printed[core]` is what a core has printed, `windows[core]` are those of
    its last run. With `rng` slices of cores come in any order. With gpsimd.vectors each has Zve32x; its vector
    registers are 0 when a run starts, and MTIME is `began`. `copy`: what a descriptor does that a core pushes;
    `copies.line` has those under way.
    """

    def __init__(
        self,
        cfg: Config,
        sbuf: Sbuf,
        semaphores: Semaphores,
        rng: np.random.Generator | None = None,
        *,
        copy: Start,
        began: int = 0,
    ):
        self.copies = CoreCopies(copy)
        self._began = began
        self.cores = cores(cfg.partitions)
        self.lanes = lanes(cfg.partitions)
        self.local_bytes = cfg.gpsimd.local_bytes
        self.local = [bytearray(b"\xff" * self.local_bytes) for _ in range(self.cores)]
        self.shared = bytearray(b"\xff" * SHARED_BYTES)
        self.printed = [bytearray() for _ in range(self.cores)]
        self.windows: dict[int, Windows] = {}
        self._tohost = [0] * self.cores
        self._filled = 0  # a bit for each core that a GP_LOAD has filled
        self._sbuf, self._semaphores, self._rng = sbuf, semaphores, rng
        self._vlen = LANE_BITS * self.lanes if cfg.gpsimd.vectors else None

    def read(self, f: Fields) -> Words | Cause:
        """Words that a GP_LOAD or GP_STORE moves, [element, partition], or why it does not."""
        name = "src0" if f["opcode"] == Opcode.GP_LOAD else "dst"
        pattern = pattern_of(f, name)
        to = LOAD.unpack(f["imm0"])
        row = WORD_BYTES * self.lanes
        if not self._exist(to["cores"]) or (name == "dst" and to["cores"].bit_count() != 1):
            return Cause.GP_CORES
        if pattern.partition_count != self.lanes:
            return Cause.BAD_PARTITION
        if len([count for _, count in pattern.dims[1:] if count != 1]):
            return Cause.BAD_PATTERN
        if to["offset"] % row:
            return Cause.MISALIGNED
        if to["offset"] + row * pattern.elements > self.local_bytes:
            return Cause.OUT_OF_RANGE
        if name == "src0":
            return self._sbuf.read(pattern).T
        words = self._words(to["cores"].bit_length() - 1, to["offset"], pattern.elements)
        return words.copy()

    def write(self, f: Fields, stored: Words | Cause) -> None:
        """Put what `read` gave where it belongs."""
        if isinstance(stored, Cause):
            return
        if f["opcode"] == Opcode.GP_STORE:
            self._sbuf.write(pattern_of(f, "dst"), np.ascontiguousarray(stored.T))
            return
        to = LOAD.unpack(f["imm0"])
        for core in self._numbers(to["cores"]):
            self._words(core, to["offset"], len(stored))[:] = stored
            self._tohost[core] = f["imm1"]
        self._filled |= to["cores"]

    def run(self, word: int) -> Run:
        """The execution of a GP_RUN, which begins with its first slice."""
        f = RUN.unpack(INSTRUCTION.unpack(word)["imm0"])
        watchdog = f["watchdog"] or WATCHDOG_CYCLES
        return Run(partial(self._begin, word, f["entry"], f["cores"]), watchdog, self.copies, self._rng)

    def _begin(self, word: int, entry: int, mask: int) -> Cause | tuple[Barrier, Mapping[int, Core]]:
        if not self._exist(mask):
            return Cause.GP_CORES
        if mask & ~self._filled:
            return Cause.GP_NO_IMAGE
        self.copies.begin()
        barrier = Barrier(self._numbers(mask))
        return barrier, {number: self._core(number, word, entry, barrier) for number in self._numbers(mask)}

    def _core(self, number: int, word: int, entry: int, barrier: Barrier) -> Core:
        tohost = self._tohost[number]
        memory = TohostMemory(tohost, self.local_bytes) if tohost else Memory()
        hart = Hart(memory, number, entry & ~1, self._vlen)
        place = Place(core=number, cores=self.cores, lanes=self.lanes, local_bytes=self.local_bytes)
        mailbox = MailboxRegisters(
            place,
            word,
            hart,
            self._semaphores,
            barrier,
            self.printed[number],
            self.copies,
            self.local[number],
            self._began,
        )
        self.windows[number] = windows = Windows(self._sbuf, number * self.lanes, self.lanes)
        memory.add(Region.LOCAL, self.local[number])
        memory.add(Region.LOCAL_TOO, self.local[number])
        memory.add(Region.SHARED, self.shared, code=False)
        memory.add(Region.SBUF_LANES, windows.lanes)
        memory.add(Region.SBUF_ROWS, windows.rows)
        memory.add(Region.MAILBOX, mailbox.device)
        return Core(hart, mailbox)

    def _exist(self, mask: int) -> bool:
        """Whether it names a core, and only such that exist."""
        return 0 < mask < 1 << self.cores

    def _numbers(self, mask: int) -> list[int]:
        return [core for core in range(self.cores) if mask >> core & 1]

    def _words(self, core: int, offset: int, elements: int) -> Words:
        """A part of local memory as words, [element, partition]; it may be written."""
        words = np.frombuffer(self.local[core], "<u4")
        first = offset // WORD_BYTES
        return words[first : first + elements * self.lanes].reshape(elements, self.lanes)

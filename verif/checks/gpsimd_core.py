"""Programs of the GPSIMD engine as those of a core: copies bring images and data, other queues set semaphores."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from firmware.image import Region
from rtl.contract.access_pattern import PATTERN
from rtl.contract.config import Config
from rtl.contract.gpsimd import Region as Place
from rtl.contract.gpsimd import cores
from rtl.contract.isa import INSTRUCTION, Cause, Queue, Update
from rtl.contract.memmap import PARTITION_STRIDE_BYTES, Space
from verif.checks.gpsimd_copies import COPIES, HBM, HBM_BYTES
from verif.checks.gpsimd_program import (
    WordImage,
    after,
    by_lane,
    copy,
    gp_load,
    gp_run,
    gp_store,
    nop,
    pattern,
    then,
    trigger,
)
from verif.checks.gpsimd_random import EngineProgram
from verif.checks.gpsimd_statements import CODE, DATA, DATA_BYTES, TOHOST
from verif.checks.riscv_program import random_program

__all__ = ["CODE_BYTES", "core_image", "hart_program"]

CODE_BYTES = DATA - CODE
"""Of a core, at most."""

_ARRIVED, _LOADED, _BEGUN, _STORED, _LATE = 8, 9, 10, 11, 12  # semaphores that random programs leave alone
_WORDS_END = HBM  # the rest is data
_SCRATCH_BYTES = 1 << 16
_OPEN_BYTES, _LAST_BYTES = 8192, 16  # of each partition that programs reach: its first and its last
_IMAGE, _DATA, _BACK = 4096, 6144, 6656  # bytes of partitions: what is loaded, and what is stored back
_KEPT_BYTES = 2 * DATA_BYTES  # of local memory, from DATA on, that are stored back
_OTHERS = (Queue.TENSOR, Queue.VECTOR, Queue.SCALAR, Queue.SYNC)
_COPIES, _DELAYS = 0, 1  # rings


@dataclass
class _Maker:
    cfg: Config
    rng: np.random.Generator
    words: dict[Queue, list[int]] = field(default_factory=lambda: {queue: [] for queue in Queue})
    rings: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    data: dict[int, bytes] = field(default_factory=dict[int, bytes])
    outputs: dict[str, Region] = field(default_factory=dict[str, Region])
    end: int = _WORDS_END
    released: int = 0  # of the copies
    loaded: int = 0
    begun: int = 0
    stored: int = 0

    def __post_init__(self) -> None:
        self.count = cores(self.cfg.partitions)
        self.lanes = self.cfg.partitions // self.count
        self.parts = self._place(self.count * HBM_BYTES)
        self.data[self.parts] = self.rng.bytes(self.count * HBM_BYTES)
        self.scratch = self._place(2 * _SCRATCH_BYTES)

    def _place(self, size: int) -> int:
        at, self.end = self.end, -(-(self.end + size) // 128) * 128
        return at

    def say(self, word: int) -> None:
        """The next instruction of the GPSIMD queue."""
        self.words[Queue.GPSIMD].append(word)

    def bring(self, partition: int, byte: int, rows: np.ndarray, **fields: int) -> None:
        """Copy rows of bytes to successive partitions."""
        at = self._place(rows.size)
        self.data[at] = rows.tobytes()
        target = (Space.SBUF, partition * PARTITION_STRIDE_BYTES + byte)
        self.rings[_COPIES].append(copy(target, (Space.HBM, at), rows.shape[0], rows.shape[1], _ARRIVED))
        self.say(trigger(_COPIES, **fields))
        self.released += 1

    def all_of_sbuf(self) -> list[tuple[int, int]]:
        """First byte and number of bytes of each partition."""
        size = self.cfg.sbuf.partition_bytes
        return [(0, _OPEN_BYTES)] + [(size - _LAST_BYTES, _LAST_BYTES)] * (size > _OPEN_BYTES)

    def begin(self) -> None:
        for byte, size in self.all_of_sbuf():
            self.bring(0, byte, self.rng.integers(0, 256, (self.cfg.partitions, size), dtype=np.uint8))
        self.say(nop(**after(_ARRIVED, self.released)))

    def load(self, content: bytes, byte: int, offset: int, mask: int, tohost: int) -> None:
        """Local memory of these cores, by way of some partitions; the load before must have read what lies there."""
        start = self.lanes * int(self.rng.integers(self.count))
        rows = by_lane(content, self.lanes)
        self.bring(start, byte, rows, **after(_LOADED, self.loaded))
        source = pattern("src0", start, self.lanes, byte, rows.shape[1] // 4)
        self.say(gp_load(source, mask, offset, tohost, **after(_ARRIVED, self.released), **then(_LOADED)))
        self.loaded += 1

    def delay(self) -> None:
        """A copy from HBM to HBM of any length."""
        size = int(self.rng.integers(1, _SCRATCH_BYTES // 2))
        target, source = self.scratch, self.scratch + _SCRATCH_BYTES
        self.rings[_DELAYS].append(copy((Space.HBM, target), (Space.HBM, source), 1, size, _LATE))

    def set_outside(self, semaphore: int, value: int) -> None:
        """Some other queue sets it, at once or later."""
        words = self.words[_OTHERS[int(self.rng.integers(len(_OTHERS)))]]
        ready = after(_BEGUN, self.begun)
        if self.rng.random() < 0.7:
            words.append(trigger(_DELAYS, **ready))
            self.delay()
            ready = after(_LATE, len(self.rings[_DELAYS]))
        words.append(nop(**ready, **then(semaphore, value, Update.SET)))

    def run(self, program: EngineProgram) -> None:
        mask = sum(1 << core for core in program.code)
        tohost = TOHOST if program.end in ("tohost", "tohost fails") or self.rng.random() < 0.5 else 0
        tohost += int(self.rng.choice([Place.LOCAL, Place.LOCAL_TOO])) if tohost else 0
        for core, code in program.code.items():
            assert len(code) <= CODE_BYTES
            self.load(code, _IMAGE, CODE, 1 << core, tohost)
        for core, pushed in program.copies.items():
            self.load(pushed, _IMAGE, COPIES, 1 << core, tohost)
        self.load(self.rng.bytes(DATA_BYTES), _DATA, DATA, mask, tohost)
        ready = after(_STORED, self.stored)
        for at, value in [(at, before) for at, (before, _) in program.outside.items()] + [
            (at, 0) for at in program.signals
        ]:
            self.say(nop(**ready, **then(at, value, Update.SET)))
        self.say(nop(**ready, **then(_BEGUN)))
        self.begun += 1
        for at, (_, value) in program.outside.items():
            self.set_outside(at, value)
        arguments = sum(
            int.from_bytes(self.rng.bytes(PATTERN.offset("reserved") // 8), "little")
            << INSTRUCTION.offset(f"{name}_offset")
            for name in ("src0", "src1", "dst")
        )
        free = {name: int(self.rng.integers(1 << 63)) for name in ("imm1", "imm2")} | after(_BEGUN, self.begun)
        self.say(gp_run(Place.LOCAL + CODE, mask, program.watchdog, **free) | arguments)
        for core in program.code:
            start = self.lanes * int(self.rng.integers(self.count))
            step = int(self.rng.choice([1, 2]))
            target = pattern("dst", start, self.lanes, _BACK, _KEPT_BYTES // (4 * self.lanes), step=step)
            self.say(gp_store(target, 1 << core, DATA, **then(_STORED)))
            self.stored += 1

    def finish(self) -> WordImage:
        for byte, size in self.all_of_sbuf():
            shape = (self.cfg.partitions, size)
            at = self._place(shape[0] * size)
            self.data[at] = bytes(shape[0] * size)
            self.rings[_COPIES].append(copy((Space.HBM, at), (Space.SBUF, byte), *shape, _ARRIVED))
            self.say(trigger(_COPIES, **after(_STORED, self.stored)))
            name = f"SBUF from byte {byte}"
            self.outputs[name] = Region(name=name, space=Space.HBM, offset=at, shape=shape, dtype="uint8")
        name, shape = "parts of HBM", (self.count, HBM_BYTES)
        self.outputs[name] = Region(name=name, space=Space.HBM, offset=self.parts, shape=shape, dtype="uint8")
        self.data[self.scratch] = bytes(2 * _SCRATCH_BYTES)
        image = WordImage(words=self.words, descriptors=self.rings, outputs=self.outputs, data=self.data)
        assert max(base + 128 * count for base, count in (*image.queues.values(), *image.rings)) <= _WORDS_END
        return image


def hart_program(seed: int, cfg: Config, length: int = 400) -> EngineProgram:
    """Every instruction, loops, calls and traps that a handler takes, on some cores: verif/checks/riscv_program.py."""
    rng = random.Random(seed)
    mask = rng.randrange(1, 1 << cores(cfg.partitions))
    places = (Place.LOCAL + CODE, Place.LOCAL + DATA + DATA_BYTES, DATA_BYTES, Place.LOCAL + TOHOST)
    code = {
        core: random_program(rng.getrandbits(32), length, *places, cycles=False)
        for core in range(cores(cfg.partitions))
        if mask >> core & 1
    }
    return EngineProgram(code, "tohost", Cause.NONE)


def core_image(cfg: Config, programs: Sequence[EngineProgram], seed: int) -> WordImage:
    """These runs, one behind the other, between copies that fill SBUF and store it. Only the last may fail."""
    maker = _Maker(cfg, np.random.default_rng(seed))
    maker.begin()
    for program in programs:
        maker.run(program)
    return maker.finish()

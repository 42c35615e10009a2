"""The GPSIMD engine with SBUF, semaphores and time around it, and a golden engine that is given the same programs."""

from collections import Counter as Count
from types import SimpleNamespace
from typing import Any

import numpy as np
from cocotb.triggers import RisingEdge

from rtl.base.dispatch import SEQUENCE_BITS
from rtl.base.dma_port import SEMAPHORE_UPDATE
from rtl.contract.gpsimd import CORES_MAX, SHARED_BYTES, Counter, Region, cores
from rtl.contract.isa import INSTRUCTION, INSTRUCTION_BYTES, Cause, Opcode, Update
from verif.agents.bench import Bench
from verif.agents.memory_port import MemoryPorts
from verif.agents.opened import opened
from verif.agents.stall import styled
from verif.agents.stream import StreamSource
from verif.benches.gpsimd.copy_ring import CopyRing
from verif.benches.gpsimd.engine_parts import Semaphores, StatusCheck
from verif.checks.gpsimd_copies import COPIES, HBM
from verif.checks.gpsimd_program import by_lane, gp_load, gp_run, gp_store, pattern
from verif.checks.gpsimd_random import EngineProgram
from verif.checks.gpsimd_statements import CODE, DATA, DATA_BYTES, TOHOST
from verif.golden.copies import Alone
from verif.golden.gpsimd.cluster import Cluster
from verif.golden.lines import Failed, Item
from verif.golden.memory import Memory

__all__ = ["FIRST_GP_CYCLES", "LAST_GP_CYCLES", "EngineDriver"]

FIRST_GP_CYCLES, LAST_GP_CYCLES = 12, 8
"""Most of the engine's cycles from GP_RUN to its first instruction, and from the last one to its end."""

_UPDATE = opened(SEMAPHORE_UPDATE)
_IMAGE, _BACK = 4096, 6144  # bytes of partitions: images, and what is stored back
_COPIES_PLACE, _DATA_PLACE = _IMAGE + 1536, _IMAGE + 1792
_CODE_BYTES = 3072  # of a core, at most


_OF_RUN = ("opcode", "imm0")
"""Fields that GP_RUN gives a meaning; a program reads all."""


_SHARED = bytearray(b"\xff" * SHARED_BYTES)
"""What shared memory holds: all tests of a bench run in one simulation, and a reset does not clear it."""


class EngineDriver:
    """`rng`: of the test. What an engine leaves in SBUF, in semaphores and in print is the golden engine's."""

    def __init__(self, dut: Any, rng: np.random.Generator, style: str):
        self.bench = Bench(dut)
        self.dut, self.cfg, self.rng = dut, self.bench.cfg, rng
        self.root_cycles = self.cfg.tensor.clock_mhz // self.cfg.gpsimd.clock_mhz  # of one of the engine
        self.cores = cores(self.cfg.partitions)
        self.lanes = self.cfg.partitions // self.cores
        self.sbuf = Memory(self.cfg.partitions, self.cfg.sbuf.partition_bytes)
        self.sbuf.bytes[:] = rng.integers(0, 256, self.sbuf.bytes.shape, dtype=np.uint8)
        self.shared = _SHARED
        self.semaphores = Semaphores([0] * self.cfg.issue.semaphores)
        self.style = style
        self.printed = [bytearray() for _ in range(self.cores)]
        self.ends: list[tuple[int, int]] = []  # cause and address of each instruction
        self.ticks = 0
        self.shown = [[0] * 16 for _ in range(CORES_MAX)]
        self.states: Count[int] = Count()
        self.accepted = self.first_busy = self.last_busy = 0  # the last also of a copy that completes
        self.longest = [0, 0]  # of FIRST and LAST
        self.time = int(rng.integers(1 << 16)) << 32 | int(rng.integers(1 << 31))  # MTIME at the start
        self.others: list[tuple[int, int, int]] = []  # cycle, semaphore and value that somebody else sets
        self.updates = 0
        self.moved_bytes: dict[int, int] = {}  # of SBUF by each core; empty if the program fails
        self.began = 0
        self.alone = style != "never"  # an instruction is sent when the one before is done
        self.opcode = 0
        self.status = StatusCheck(self.cores)
        self.running = False  # the instruction in hand is a GP_RUN

    async def start(self) -> None:
        """Connect everything and reset."""
        dut = self.dut
        stalls = [styled(self.style, np.random.default_rng(self.rng.integers(1 << 32))) for _ in range(5)]
        for name in ("start", "running", "mtime", "value", "update__ready", "told_core", "told_index"):
            getattr(dut, name).value = 0
        for name in ("psum_read__ready", "psum_read__data_valid", "psum_write__ready"):
            getattr(dut, name).value = 0
        self.commands = StreamSource(self.bench, "queue__command", stalls[0])
        self.ports = MemoryPorts(self.bench, self.sbuf, Memory(self.cfg.partitions, 8))
        self.ports.add_sbuf_read("sbuf_read", stalls[1])
        self.ports.add_sbuf_write("sbuf_write", stalls[2])
        self._taken = stalls[3]
        rng = np.random.default_rng(self.rng.integers(1 << 32))
        self.copies = CopyRing(self.bench, self.sbuf, stalls[4], rng, lambda *signal: self.semaphores.update(*signal))
        self._ready = False
        self.ports.on_cycle.append(self._cycle)
        await self.bench.start()
        self.ports.start()
        dut.running.value = 1

    def _cycle(self, now: int) -> None:
        dut = self.dut
        if self.copies.cycle(now):
            self.last_busy = now
        tick = dut.tick.value == 1
        self.ticks += tick
        if tick:
            shown = int(dut.core_state.value)
            for core, states in enumerate(self.shown):
                states[shown >> 4 * core & 15] += 1
        if dut.update__valid.value == 1 and self._ready:
            assert tick, "a semaphore changes between the engine's edges"
            told = _UPDATE(int(dut.update__payload.value))
            self.semaphores.update(told.index, Update(told.update), told.value)
            self.updates += 1
        for at, semaphore, value in self.others:
            if at == now:
                self.semaphores.update(semaphore, Update.SET, value)
        self._ready = not next(self._taken)
        dut.update__ready.value = int(self._ready)
        dut.value.value = self.semaphores.semaphores[int(dut.index.value) % len(self.semaphores.semaphores)]
        dut.mtime.value = self.time + now
        assert dut.psum_read__valid.value == 0 and dut.psum_write__valid.value == 0, "the engine asks for PSUM"
        if dut.debug_valid.value == 1:
            self.printed[int(dut.debug_core.value)].append(int(dut.debug_byte.value))
        holds, state = dut.queue__status__holds.value == 1, int(dut.queue__status__state.value)
        if dut.queue__command__valid.value == 1 and dut.queue__command__ready.value == 1:
            self.accepted, self.first_busy = now, 0
            self.opcode = int(dut.queue__command__payload.value) & 0xFF
            self.running = self.opcode == Opcode.GP_RUN
        if tick:
            if holds:
                self.status.check(state, int(dut.queue__status__opcode.value))
            self.status.before = shown, self.opcode
        if holds:
            self.states[state] += 1
            if state == Counter.BUSY:
                self.first_busy = self.first_busy or now
                self.last_busy = now
        if dut.queue__done.value == 1:
            self.ends.append((int(dut.queue__cause.value), int(dut.queue__address.value)))
            if not self.ends[-1][0] and self.running:
                for n, taken in enumerate((self.first_busy - self.accepted, now - self.last_busy)):
                    self.longest[n] = max(self.longest[n], taken)
        if dut.queue__done.value == 1:
            self.running = False

    def _words(self, program: EngineProgram) -> list[int]:
        """The instructions of a program; images and data go to SBUF."""
        words: list[int] = []
        tohost = 0 if program.end not in ("tohost", "tohost fails") and self.rng.random() < 0.5 else TOHOST
        tohost += int(self.rng.choice([Region.LOCAL, Region.LOCAL_TOO])) if tohost else 0
        quadrants = self.cfg.partitions // self.lanes
        data = self.rng.bytes(DATA_BYTES)
        row = 4 * self.lanes

        def load(content: bytes, place: int, offset: int, mask: int, tohost: int) -> None:
            start = self.lanes * int(self.rng.integers(quadrants))
            rows = by_lane(content, self.lanes)
            self.sbuf.bytes[start : start + self.lanes, place : place + rows.shape[1]] = rows
            source = pattern("src0", start, self.lanes, place, rows.shape[1] // 4)
            words.append(gp_load(source, mask, offset, tohost))

        each = _CODE_BYTES // self.lanes
        for n, (core, code) in enumerate(program.code.items()):
            assert len(code) <= _CODE_BYTES and CODE % row == 0
            load(code, _IMAGE + each * n, CODE, 1 << core, tohost)
        mask = sum(1 << core for core in program.code)
        for core, pushed in program.copies.items():
            load(pushed, _COPIES_PLACE, COPIES, 1 << core, tohost)
        load(data, _DATA_PLACE, DATA, mask, tohost)
        entry = int(self.rng.choice([Region.LOCAL, Region.LOCAL_TOO])) + CODE
        free = INSTRUCTION.unpack(int.from_bytes(self.rng.bytes(INSTRUCTION_BYTES), "little"))  # all that it may be
        words.append(gp_run(entry, mask, program.watchdog, **{k: v for k, v in free.items() if k not in _OF_RUN}))
        if program.cause:
            return words  # nothing behind it has a meaning
        for core in program.code:
            start = self.lanes * int(self.rng.integers(quadrants))
            target = pattern("dst", start, self.lanes, _BACK, DATA_BYTES // row, step=int(self.rng.choice([1, 2])))
            words.append(gp_store(target, 1 << core, DATA))
        return words

    async def begin(self, program: EngineProgram, cycles: int) -> None:
        """The first so many of a program whose end nobody waits for."""
        self.commands.send(
            [word | n % (1 << SEQUENCE_BITS) << INSTRUCTION.width for n, word in enumerate(self._words(program))]
        )
        await self.bench.cycles(cycles)

    async def run(self, program: EngineProgram) -> None:
        """Send a program, wait for its end, compare what it left."""
        await self.new_program()
        self.copies.restart()
        for at in program.signals:
            self.semaphores.update(at, Update.SET, 0)
        for at, (before, _) in program.outside.items():
            self.semaphores.update(at, Update.SET, before)
        words = self._words(program)
        golden, memory, printed = self._golden(program, words)
        self.others = [
            (self.ports.cycle + int(self.rng.integers(20, 3000)), at, value)
            for at, (_, value) in program.outside.items()
        ]
        self.ends.clear()
        for p in self.printed:
            p.clear()
        since = self.ports.cycle
        for n, word in enumerate(words):
            self.commands.send([word | n % (1 << SEQUENCE_BITS) << INSTRUCTION.width])
            if self.alone:
                await self.ended(n + 1)
        while len(self.ends) < len(words) and not (self.ends and self.ends[-1][0]):
            await RisingEdge(self.bench.clk)
            assert self.ports.cycle - since < 100_000, (
                f"{program.end}: {len(self.ends)} of {len(words)} instructions ended"
            )
        wanted = golden[: len(self.ends)]
        shown = [(Cause(cause).name, hex(where)) for cause, where in self.ends]
        assert self.ends == wanted, f"{program.end}: {shown}, golden {[(Cause(c).name, hex(a)) for c, a in golden]}"
        await self.bench.cycles(60 + max((0, *(at - self.ports.cycle for at, _, _ in self.others))))
        ticks = self.ticks
        await self.bench.cycles(40)
        if not program.cause:
            self._compare(memory, printed)
            assert self.ticks == ticks, "the clock runs without work"
        self.others = []

    async def ended(self, count: int) -> None:
        """So many instructions are done, and nothing comes of them any more."""
        since = self.ports.cycle
        while len(self.ends) < count:
            await RisingEdge(self.bench.clk)
            assert self.ports.cycle - since < 100_000, f"instruction {count - 1} does not end"
        assert not self.copies.under_way, f"instruction {count - 1} was done before its copies"
        before = self._changes()
        await self.bench.cycles(12)
        late = self._changes() - before
        assert late == 0, f"instruction {count - 1} was done before {late} of its stores"

    def _changes(self) -> int:
        """Made by cores: of SBUF, of semaphores, and copies."""
        return self.ports.grants["sbuf_write"] + self.updates + self.copies.completed + len(self.copies.under_way)

    async def refuse(self, word: int) -> None:
        """An instruction ends as the golden engine says, and does nothing; no core has an image."""
        golden = Cluster(self.cfg, self.sbuf, self.semaphores, copy=lambda _: (Cause.NONE, 0, None))
        f = INSTRUCTION.unpack(word)
        if f["opcode"] == Opcode.GP_RUN:
            run = golden.run(word)
            run.advance()
            failed = run.outcome()
            cause = failed.cause if failed else Cause.NONE
        else:
            found = golden.read(f)
            cause = found if isinstance(found, Cause) else Cause.NONE
        before = self.sbuf.bytes.copy()
        self.ends.clear()
        self.commands.send([word])
        await self.ended(1)
        assert self.ends == [(int(cause), 0)], f"{self.ends}, golden {cause.name}: {f}"
        assert cause == Cause.NONE or (self.sbuf.bytes == before).all()

    async def new_program(self) -> None:
        """As the host begins one."""
        self.dut.start.value = 1
        await RisingEdge(self.bench.clk)
        self.dut.start.value = 0
        self.began = self.ports.cycle
        self.shown = [[0] * 16 for _ in range(CORES_MAX)]

    def _golden(self, program: EngineProgram, words: list[int]) -> tuple[list[tuple[int, int]], Memory, list[bytes]]:
        """How each instruction ends on the golden engine, SBUF then, and what was printed."""
        memory = Memory(self.cfg.partitions, self.cfg.sbuf.partition_bytes)
        memory.bytes[:] = self.sbuf.bytes
        self.expected = Semaphores(self.semaphores.semaphores)
        for at, (_, value) in program.outside.items():
            self.expected.update(at, Update.SET, value)
        self.hbm = self.copies.hbm.copy()
        sees = SimpleNamespace(cfg=self.cfg, core_id=0, hbm=self.hbm, sbuf=memory, grow=lambda _: None)
        rng = np.random.default_rng(self.rng.integers(1 << 32))
        cluster = Cluster(
            self.cfg, memory, self.expected, rng, copy=lambda word: Alone().start(sees, word), began=self.time
        )
        cluster.shared[:] = self.shared
        ends: list[tuple[int, int]] = []
        for word in words:
            f = INSTRUCTION.unpack(word)
            failed: Failed | None = None
            if f["opcode"] == Opcode.GP_RUN:
                run = cluster.run(word)
                while not run.advance():
                    if cluster.copies.line.flight:
                        self._complete(cluster.copies.line.flight)
                    elif not run.ready:
                        run.expire()
                failed = run.outcome()
            else:
                cluster.write(f, cluster.read(f))
            ends.append((int(failed.cause), failed.address) if failed else (0, 0))
            if failed:
                break
        self.moved_bytes = {}
        if not program.cause:
            self.shared[:] = cluster.shared
            self.moved_bytes = {core: windows.moved_bytes for core, windows in cluster.windows.items()}
        return ends, memory, [bytes(p) for p in cluster.printed]

    def _complete(self, flight: list[Item]) -> None:
        """Copies of the golden engine, in their order."""
        for item in flight:
            item.commit(item.read())
            if item.signal:
                self.expected.update(*item.signal)
            if item.ended:
                item.ended()
        flight.clear()

    def _compare(self, memory: Memory, printed: list[bytes]) -> None:
        wrong = np.argwhere(memory.bytes != self.sbuf.bytes)
        if wrong.size:
            p, at = wrong[0]
            raise AssertionError(
                f"SBUF partition {p} byte {at} is {self.sbuf.bytes[p, at]:#x}, must be {memory.bytes[p, at]:#x} "
                f"({len(wrong)} bytes differ)"
            )
        for index, (have, want) in enumerate(zip(self.semaphores.semaphores, self.expected.semaphores, strict=True)):
            assert have == want, f"semaphore {index} is {have}, must be {want}"
        wrong = np.flatnonzero(self.copies.hbm != self.hbm)
        assert not wrong.size, f"{wrong.size} bytes of HBM differ, first {wrong[0] - HBM} of those that copies reach"
        assert [bytes(p) for p in self.printed] == printed

"""Fetch, semaphores, engine and DMA around one queue, and what it must do with a program."""

from collections import deque
from typing import Any

from cocotb.triggers import FallingEdge

from rtl.base.dma_port import COUNT_BITS, RELEASE, SEMAPHORE_UPDATE
from rtl.contract.isa import COPY_AT, COPY_QUEUES, INSTRUCTION, Cause, Opcode, Queue, Update, Wait
from rtl.issue.queue import QUEUE_STATUS, has_engine
from verif.agents.bench import Bench, manifest
from verif.agents.opened import opened
from verif.agents.stall import never
from verif.agents.stream import StreamSource
from verif.benches.issue.expected import Expected
from verif.benches.issue.issue_watch import IssueWatch
from verif.benches.issue.semaphore_values import any_value, value_beside
from verif.benches.issue.words import legal, pack, spoiled
from verif.checks.coverage import Coverage
from verif.golden.groups import WeightKinds
from verif.golden.issue import check

__all__ = ["COVERAGE", "QueueBench"]

_CAUSES = (Cause.ILLEGAL_OPCODE, Cause.BAD_RING, Cause.BAD_SEMAPHORE, Cause.BUS_ERROR)
_WITH_ENGINE = ["several_outstanding", "done_before_update_was_taken"]
COVERAGE = Coverage(
    "issue_queue",
    [
        "wait_ge",
        "wait_eq",
        "wait_two",
        "waits_for_semaphore",
        "add",
        "set",
        "no_update",
        "refused",
        "fault_behind_running_work",
    ]
    + [
        "fetch_fault",
        *(["engine_fault"] if has_engine(manifest().config, Queue(manifest().options["queue"])) else []),
        *(["copy"] if Queue(manifest().options["queue"]) in COPY_QUEUES else []),
        *(_WITH_ENGINE if has_engine(manifest().config, Queue(manifest().options["queue"])) else []),
    ]
    + [c.name for c in _CAUSES],
)
_RELEASE, _STATUS, _UPDATE = opened(RELEASE), opened(QUEUE_STATUS), opened(SEMAPHORE_UPDATE)
_SEMAPHORES = 6


class QueueBench(Bench):
    """Plays fetch, semaphores, engine and DMA around one queue, and watches in every cycle."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.queue = Queue(int(self.options["queue"]))
        self.has_engine = has_engine(self.cfg, self.queue)
        self.source = StreamSource(self, "words")
        self.program: list[Expected] = []
        self.weights = WeightKinds(
            self.cfg.tensor.rows, self.cfg.tensor.cols, self.cfg.tensor.groups
        )  # that the program so far leaves
        self.semaphores = [0] * _SEMAPHORES
        self.update_stall = never()
        self.engine_stall = never()
        self.release_stall = never()
        self.speed = 10
        self.now = 0
        self.next = 0  # instruction to be dispatched
        self.trace = IssueWatch(self.dut, self.has_engine)
        self.cleared = False  # its conditions have held
        self.count = 0
        self.sent, self.has_ended = 0, False  # as the sequencer tells
        self.last_progress = 0
        self.previous_dispatch = 0
        self.engine: deque[tuple[int, int]] = deque()  # (number, cycle when it is done)
        self.ended: set[int] = set()
        self.updated = 0
        self.updates: list[int] = []
        self.records: list[tuple[int, int]] = []
        for name in ("start", "sent", "ended", "fetch_cause", "fetch_address", "refused", "value__0", "value__1"):
            getattr(dut, name).value = 0
        for name in ("update__ready", "release__ready"):
            getattr(dut, name).value = 0
        self.copies = self.queue in COPY_QUEUES
        if self.copies:
            dut.copy__ready.value = 0
        if self.has_engine:
            dut.engine__command__ready.value = 0
            dut.engine__done.value = 0
            dut.engine__cause.value = 0

    def forget(self) -> None:
        """The program so far, before the next `run`. Nothing of it may still run."""
        assert not self.engine and not self.source.queue
        self.program.clear()
        self.ended.clear()
        self.updates.clear()
        self.records.clear()
        self.next = self.trace.told = self.source.sent = 0
        self.previous_dispatch = self.last_progress = self.now
        self.cleared = False

    def random_program(self, length: int, faults: float) -> None:
        """Instructions with waits and updates; each goes wrong with probability `faults`."""
        rng = self.rng
        if not self.program:
            self.weights = WeightKinds(self.cfg.tensor.rows, self.cfg.tensor.cols, self.cfg.tensor.groups)
        for _ in range(length):
            f = legal(rng, self.cfg, self.queue, weights=self.weights)
            for n in range(2):
                if rng.random() < 0.4:
                    f[f"wait{n}"] = int(rng.integers(1, 3))
                    f[f"wait{n}_semaphore"] = int(rng.integers(_SEMAPHORES))
                    f[f"wait{n}_value"] = any_value(rng)
            if f.get("wait0") and f.get("wait1") and f["wait0_semaphore"] == f["wait1_semaphore"]:
                f["wait1"] = 0  # two conditions on one semaphore may exclude each other
            if rng.random() < 0.7:
                f["update"] = int(rng.integers(1, 3))
                f["update_semaphore"] = int(rng.integers(self.cfg.issue.semaphores))
                f["update_value"] = int(rng.integers(-(1 << 31), 1 << 31))
            if rng.random() < faults:
                spoilt = spoiled(rng, self.cfg, self.queue, weights=self.weights)
                f = spoilt if rng.random() < 0.7 else f | {"opcode": 99}
            word = pack(f)
            f = INSTRUCTION.unpack(word)
            cause, address = check(word, self.cfg, self.queue, weights=self.weights)
            refused = cause == 0 and f["opcode"] == 1 and rng.random() < 3 * faults
            told = int(rng.integers(1, 256)) if rng.random() < faults / 2 else 0
            if told:
                cause, address, refused = told, 0, False
            if refused:
                cause = Cause.BAD_RING
            if cause == 0 or refused:
                for n in range(2):  # spoiling may have asked for a semaphore that nobody moves
                    if f[f"wait{n}_semaphore"] >= _SEMAPHORES:
                        f[f"wait{n}"] = 0
                word = INSTRUCTION.pack(f)
            if cause == 0 or refused:
                self.weights.issue(f)
            self.program.append(Expected(word, f, cause, address, refused, told=told))

    def holds(self, e: Expected, values: list[int]) -> bool:
        """Both conditions."""
        for n in range(2):
            kind, limit = e.f[f"wait{n}"], e.f[f"wait{n}_value"]
            value = values[e.f[f"wait{n}_semaphore"]] if kind else 0
            if (kind == Wait.GE and value < limit) or (kind == Wait.EQ and value != limit):
                return False
        return True

    def move_semaphores(self) -> None:
        """At random, or to fulfil what is waited for, just, or just not."""
        if self.rng.random() < 0.3:
            self.semaphores[int(self.rng.integers(_SEMAPHORES))] = any_value(self.rng)
        e = self.program[self.next] if self.next < len(self.program) else None
        kind = self.rng.random()
        if e is not None and e.cause in (Cause.NONE, Cause.BAD_RING) and kind < 0.45:
            for n in range(2):
                if e.f[f"wait{n}"] and e.f[f"wait{n}_semaphore"] < _SEMAPHORES:
                    limit = e.f[f"wait{n}_value"]
                    self.semaphores[e.f[f"wait{n}_semaphore"]] = limit if kind < 0.15 else value_beside(self.rng, limit)

    def dispatched(self, number: int) -> None:
        """Instruction `number` has been dispatched in the cycle before this one."""
        assert number < len(self.program), "more was dispatched than the program has"
        e = self.program[number]
        assert self.cleared, f"instruction {number} did not wait"
        self.cleared = False
        COVERAGE.when(e.f["wait0"] == Wait.GE or e.f["wait1"] == Wait.GE, "wait_ge")
        COVERAGE.when(e.f["wait0"] == Wait.EQ or e.f["wait1"] == Wait.EQ, "wait_eq")
        COVERAGE.when(e.f["wait0"] and e.f["wait1"], "wait_two")
        self.previous_dispatch = self.now - 1
        self.last_progress = self.now
        self.next = number + 1

    def fault_at(self) -> int | None:
        """Number of the first instruction that faults."""
        return next((n for n, e in enumerate(self.program) if e.cause), None)

    async def run(self, count: int | None = None) -> None:
        """The whole program, until it has retired or halted."""
        dut = self.dut
        dut.start.value = 1
        await self.begin(len(self.program) if count is None else count)
        while len(self.records) < len(self.program) and not (self.records and self.records[-1][1]):
            await self.cycle()
        for _ in range(60):
            await self.cycle()

    async def begin(self, count: int) -> None:
        """Start; the sequencer will have `count` instructions, of which those of the program come."""
        dut = self.dut
        self.count = count
        dut.start.value = 1
        self.sent, self.has_ended = 0, False
        dut.sent.value = dut.ended.value = 0
        await self.edge
        dut.start.value = 0
        self.source.send(
            e.word | int(self.rng.integers(1 << 32)) << 1024 | e.told << 1024 + COUNT_BITS for e in self.program
        )

    async def cycle(self) -> None:
        """Drive at the falling edge, when index is settled; look at the rising one."""
        dut = self.dut
        await FallingEdge(self.clk)
        self.now += 1
        status = _STATUS(int(dut.status.value))
        for number in range(self.next, status.issued):
            self.dispatched(number)
        self.look_at_status(status)
        self.move_semaphores()
        values = list(self.semaphores)
        for n in range(2):
            index = int(getattr(dut, f"index__{n}").value)
            getattr(dut, f"value__{n}").value = (values[index] if index < _SEMAPHORES else 0) & 0xFFFFFFFF
        pending = self.program[self.next] if self.next < len(self.program) else None
        if pending is not None and self.source.sent > self.next:
            self.cleared |= self.holds(pending, values + [0] * 4096)
        self.sent = self.source.sent
        # that no more comes may be known at once or later
        self.has_ended |= self.sent == self.count and bool(self.rng.random() < 0.3)
        dut.sent.value, dut.ended.value = self.sent, int(self.has_ended)
        dut.update__ready.value = int(not next(self.update_stall))
        dut.release__ready.value = int(not next(self.release_stall))
        if self.copies:
            dut.copy__ready.value = int(not next(self.release_stall))
        dut.refused.value = int(pending is not None and pending.refused)
        done = None
        if self.has_engine:
            dut.engine__command__ready.value = int(len(self.engine) < 20 and not next(self.engine_stall))
            if self.engine and self.engine[0][1] <= self.now:
                done = self.engine.popleft()[0]
            dut.engine__done.value = int(done is not None)
            failure = Cause.NONE if done is None else self.program[done].failure
            dut.engine__cause.value = int(failure) if done is not None else int(self.rng.integers(256))
        await self.edge
        self.look(done)
        assert self.now - self.last_progress < 1500, f"instruction {self.next} never went"

    def look_at_status(self, status: Any) -> None:
        """What it waits for, and how far it is."""
        retired = sum(not cause for _, cause in self.records)
        assert status.retired == retired and status.finished == (self.has_ended and retired == self.sent)
        assert int(self.dut.drained.value) == (status.issued == self.sent)
        more = not (self.has_ended and status.issued == self.sent)
        assert not (status.fetch and status.semaphore), "a queue waits for a word and for a semaphore"
        if self.next >= len(self.program) or (status.halted and self.program[self.next].faulty):
            assert not status.semaphore and status.fetch == (not status.halted and more)
            return
        e = self.program[self.next]
        here = self.source.sent > self.next  # the word has been taken
        waits = here and bool(e.f["wait0"] or e.f["wait1"]) and not self.cleared and not e.faulty
        assert status.semaphore == waits and status.fetch == (not here and not status.halted and more)
        COVERAGE.when(waits, "waits_for_semaphore")

    def look(self, done: int | None) -> None:
        """What happened in the cycle that ends."""
        dut = self.dut
        if done is not None:
            self.ended.add(done)
        if self.copies and dut.copy__valid.value == 1 and dut.copy__ready.value == 1:
            e = self.program[self.next]
            assert e.f["opcode"] == Opcode.DMA_COPY and not e.cause, "a copy nobody asked for"
            assert int(dut.copy__payload.value) == e.word >> COPY_AT, "another descriptor"
            COVERAGE.hit("copy")
        if dut.release__valid.value == 1 and dut.release__ready.value == 1:
            e = self.program[self.next]
            got = _RELEASE(int(dut.release__payload.value))
            assert e.f["opcode"] == 1 and e.cause in (0, Cause.BAD_RING), "a release nobody asked for"
            assert (got.ring, got.count) == (e.f["imm0"], e.f["imm1"])
            COVERAGE.when(e.refused, "refused")
        if self.has_engine and dut.engine__command__valid.value == 1:
            payload = int(dut.engine__command__payload.value)
            number = payload >> 1024
            if dut.engine__command__ready.value == 1:
                assert number == self.next, f"instruction {number} goes before {self.next}"
                e = self.program[number]
                assert e.cause == Cause.NONE, f"faulty instruction {number} reached the engine"
                assert payload & ((1 << 1024) - 1) == e.word
                wait = int(self.rng.integers(1, self.speed + 1))
                last = self.engine[-1][1] if self.engine else self.now
                self.engine.append((number, max(self.now + 1 + wait, last + 1)))
                if len(self.engine) > 3:
                    COVERAGE.hit("several_outstanding")
        self.trace.look(self.program)
        halted = any(cause for _, cause in self.records)
        if not halted and done == len(self.records) and not self.program[done].failure:
            assert dut.update__valid.value == 1 or dut.retired__valid.value == 1, f"{done} waits for nothing"
        self.look_at_end()

    def look_at_end(self) -> None:
        """Updates and records."""
        dut = self.dut
        number = len(self.records)
        if dut.update__valid.value == 1:
            e = self.program[number]
            assert e.f["update"], f"instruction {number} has no update"
            assert not e.to_engine or number in self.ended, f"instruction {number} updates before it has ended"
            got = _UPDATE(int(dut.update__payload.value))
            assert (got.index, got.update, got.value) == tuple(
                e.f[k] for k in ("update_semaphore", "update", "update_value")
            )
            if dut.update__ready.value == 1:
                self.updates.append(number)
                COVERAGE.hit("set" if e.f["update"] == Update.SET else "add")
            elif number + 1 in self.ended:
                COVERAGE.hit("done_before_update_was_taken")
        if dut.retired__valid.value == 1:
            assert dut.retired__queue.value == self.queue
            sequence, cause = int(dut.retired__sequence.value), int(dut.retired__cause.value)
            assert sequence == number, f"record of {sequence}, not {number}"
            self.records.append((sequence, cause))
            self.last_progress = self.now
            if number == len(self.program):
                assert cause, "more records than instructions"
                return
            e = self.program[number]
            expected = e.cause or e.failure
            assert cause == expected, f"instruction {number} ends with cause {cause}, not {int(expected)}"
            if not cause:
                assert not e.to_engine or number in self.ended, f"instruction {number} retires before it has ended"
                assert not e.f["update"] or self.updates[-1:] == [number], f"instruction {number} did not update"
                COVERAGE.when(not e.f["update"], "no_update")
            assert number < self.next or cause, f"instruction {number} retires before it was dispatched"
            assert number < self.trace.told or cause, f"no trace was told that instruction {number} went"

    def check_end(self, *, missing: int = Cause.NONE, at: int = 0) -> None:
        """Registers after the run. `missing`: why no more words came, with the address `at`."""
        status = _STATUS(int(self.dut.status.value))
        fault = self.fault_at()
        retired = len(self.program) if fault is None else fault
        assert status.issued == status.retired == self.trace.told == retired
        if fault is None and not missing:
            assert status.finished and not status.cause and not status.halted
            return
        cause = missing if fault is None else self.program[fault].cause
        address = at if fault is None else self.program[fault].address
        assert (status.cause, status.sequence, status.address) == (cause, retired, address)
        assert status.halted and not status.finished and self.records[-1] == (retired, cause)
        if cause in _CAUSES:
            COVERAGE.hit(Cause(cause).name)

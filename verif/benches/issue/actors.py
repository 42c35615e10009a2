"""What surrounds issue in its bench: engines and a DMA that take random time, and remember what they saw."""

from collections import deque

import cocotb
import numpy as np

from rtl.base.dma_port import RELEASE, ROW_BYTES_BITS
from rtl.contract.isa import COPY_QUEUES, Queue
from rtl.contract.timing import PARTS, STALLS, Engine
from verif.agents.bench import Bench
from verif.agents.opened import opened
from verif.benches.issue.programs import Node, Program

__all__ = ["DmaActor", "EngineActor"]

_ELEMENTWISE = ("sbuf", "psum", "fill", "clock", "unit")
_OWN = {
    Engine.TENSOR: ("load", "sbuf", "fill"),
    Engine.VECTOR: _ELEMENTWISE,
    Engine.SCALAR: _ELEMENTWISE,
    Engine.GPSIMD: ("sleep", "branch", "load", "unit", "memory", "sbuf"),
}
_RELEASE = opened(RELEASE)
_HOLD = 2


class EngineActor:
    """An engine: a command is held while its beats go, then drains, then is done; they overlap."""

    def __init__(self, bench: Bench, engine: Engine, nodes: list[Node], slow: int):
        name = engine.name.lower()
        self.dut = bench.dut
        self.clk_edge = bench.edge
        self.engine = engine
        self.rng: np.random.Generator = np.random.default_rng(int(bench.rng.integers(1 << 32)))
        self.nodes = [n for n in nodes if n.fields["opcode"] >= 16]
        self.slow = slow
        self.command = {p: getattr(bench.dut, f"{name}__command__{p}") for p in ("valid", "ready", "payload")}
        self.done = getattr(bench.dut, f"{name}__done")
        members = ("holds", "state", "draining", "opcode")
        self.status = {p: getattr(bench.dut, f"{name}__status__{p}") for p in members}
        self.parts: dict[tuple[str, int], int] = {}  # the same by state, of timing.PARTS, and opcode modulo 32
        for signal in (self.command["ready"], self.done, *self.status.values()):
            signal.value = 0
        self.counted: dict[int, int] = {}  # cycles in each state that this engine reported
        self.final_drain = 0  # cycles of draining when the queue has no instruction left
        self.drained = 0  # all cycles of draining in which it holds nothing
        self.last_is_own = bool(nodes) and nodes[-1].fields["opcode"] >= 16
        self.taken = 0
        self.now = 0
        self.window = [0, 0]  # first busy cycle, and the one in which something ended last; 0 if there is none
        self.task = cocotb.start_soon(self.run())

    def _states(self) -> deque[int]:
        own = [_HOLD + STALLS[self.engine].index(name) for name in _OWN[self.engine]]
        states = [own[-1]] * int(self.rng.integers(1, 4))
        for _ in range(int(self.rng.integers(1, self.slow + 1))):
            states.append(0 if self.rng.random() < 0.7 else int(self.rng.choice(own)))
        return deque(states)

    async def run(self) -> None:
        """A cycle at a time: what happened, then what to show in the next."""
        waiting: deque[Node] = deque()
        current: tuple[Node, deque[int], int] | None = None
        drains: deque[tuple[Node, int]] = deque()
        ready = False
        while True:
            await self.clk_edge
            self.now += 1
            if ready and self.command["valid"].value == 1:
                node = self.nodes[self.taken]
                number = int(self.command["payload"].value) >> 1024
                assert number == node.number, f"{self.engine.name}: command {number} instead of {node.number}"
                for other in node.after:
                    assert other.ended >= 0, f"{self.engine.name} {number} runs before what it waits for has ended"
                node.went = self.now
                waiting.append(node)
                self.taken += 1
            if current is None and waiting:
                node = waiting.popleft()
                told = node.fields["opcode"] if self.rng.random() < 0.5 else int(self.rng.integers(1, 256))
                current = node, self._states(), told
            holds, state = 0, 0
            shown = 0
            if current is not None:
                holds, state, shown = 1, current[1].popleft(), current[2]
                if not current[1]:
                    drains.append((current[0], self.now + 2 + int(self.rng.integers(self.slow))))
                    current = None
            finished = drains[0][0] if drains and drains[0][1] <= self.now else None
            if finished is not None:
                drains.popleft()
                finished.ended = self.now
            draining = int(bool(drains) or finished is not None)
            opcode = int(self.rng.integers(256))  # without an instruction it means nothing
            if holds:
                self.counted[state] = self.counted.get(state, 0) + 1
                opcode = shown or opcode
                name = ["busy", "idle", *STALLS[self.engine]][state]
                if name in PARTS:
                    part = name, opcode % 32
                    self.parts[part] = self.parts.get(part, 0) + 1
            elif draining:
                self.drained += 1
                self.final_drain += self.last_is_own and self.taken == len(self.nodes)
            if holds and state == 0 and not self.window[0]:
                self.window[0] = self.now
            if finished is not None:
                self.window[1] = self.now
            self.status["holds"].value = holds
            self.status["state"].value = state
            self.status["draining"].value = draining
            self.status["opcode"].value = opcode
            self.done.value = int(finished is not None)
            ready = len(waiting) < 2 and self.rng.random() < 0.8
            self.command["ready"].value = int(ready)
            if self.engine == Engine.TENSOR:
                self.dut.tensor_moving.value = int(bool(holds) and state == 0)
                self.dut.tensor_sum.value = int(finished is not None)


class DmaActor:
    """The DMA: runs what is released, in ring order, signals, then counts it as completed. Behind the rings of HBM come
    those of the queues with DMA_COPY, where all that comes is released."""

    def __init__(self, bench: Bench, program: Program, slow: int):
        dut = bench.dut
        self.dut = dut
        self.edge = bench.edge
        self.rng: np.random.Generator = np.random.default_rng(int(bench.rng.integers(1 << 32)))
        self.in_hbm = bench.cfg.dma.rings
        self.rings = [*program.rings, *(program.own.get(q, []) for q in COPY_QUEUES)]
        self.words = [program.words(len(Queue) + r) for r in range(self.in_hbm)]
        self.words += [program.own_words(q) for q in COPY_QUEUES]
        self.slow = slow
        rings = [f"{r}" for r in range(self.in_hbm)]
        own = [f"{n}" for n in range(len(COPY_QUEUES))]
        streams = [f"ring__{r}" for r in rings] + [f"copy__{n}" for n in own]
        tells = [f"ring_status__{r}" for r in rings] + [f"copy_status__{n}" for n in own]
        self.counted: dict[int, int] = {}
        self.told = {
            p: [getattr(dut, f"{name}__{p}") for name in tells]
            for p in ("completed", "busy", "cause", "sequence", "address")
        }
        for signals in self.told.values():
            for signal in signals:
                signal.value = 0
        self.stream = {p: [getattr(dut, f"{name}__{p}") for name in streams] for p in ("payload", "valid", "ready")}
        for ready in self.stream["ready"]:
            ready.value = 0
        dut.release__ready.value = 0
        dut.signal__valid.value = 0
        dut.dma_status__holds.value = 0
        dut.dma_status__state.value = 0
        dut.dma_status__draining.value = 0
        self.released = [0] * len(streams)
        self.read_bytes = 0
        self.written_bytes = 0
        self.now = 0
        self.task = cocotb.start_soon(self.run())

    def _row_bytes(self) -> int:
        """What a row may move: nothing, or 1 to 2^18 bytes, every bit of which is high at times."""
        most = 1 << int(self.rng.integers(0, ROW_BYTES_BITS))
        return (
            0 if self.rng.random() < 0.5 else most if self.rng.random() < 0.2 else int(self.rng.integers(1, most + 1))
        )

    async def run(self) -> None:
        """A cycle at a time."""
        dut = self.dut
        count = len(self.rings)
        taken = [0] * count
        completed = [0] * count
        moving: list[deque[tuple[Node, int]]] = [deque() for _ in range(count)]
        signals: deque[tuple[int, Node]] = deque()
        asked: tuple[int, Node] | None = None
        release_ready = False
        ready = [False] * count
        while True:
            await self.edge
            self.now += 1
            pulses = [0] * count
            if release_ready and dut.release__valid.value == 1:
                got = _RELEASE(int(dut.release__payload.value))
                self.released[got.ring] += got.count
                assert self.released[got.ring] <= len(self.rings[got.ring]), "more was released than the ring has"
            for r in range(count):
                if ready[r] and self.stream["valid"][r].value == 1:
                    assert int(self.stream["payload"][r].value) == self.words[r][taken[r]], "another descriptor"
                    last = moving[r][-1][1] if moving[r] else self.now
                    until = max(last, self.now) + int(self.rng.integers(1, self.slow))
                    moving[r].append((self.rings[r][taken[r]], until))
                    taken[r] += 1
                    self.released[r] += r >= self.in_hbm
                    ready[r] = False
            if asked is not None and dut.signal__ready.value == 1:
                asked[1].ended = self.now
                pulses[asked[0]] += 1
                asked = None
            for r in range(count):
                while moving[r] and moving[r][0][1] <= self.now and not pulses[r]:
                    if any(ring == r for ring, _ in signals) or (asked is not None and asked[0] == r):
                        break
                    node = moving[r].popleft()[0]
                    if node.signal is None:
                        node.ended = self.now
                        pulses[r] += 1
                    else:
                        signals.append((r, node))
            if asked is None and signals:
                asked = signals.popleft()
                index, update, value, _ = asked[1].signal or (0, 0, 0, 0)
                dut.signal__payload.value = index | update << 8 | (value & 0xFFFFFFFF) << 10
            dut.signal__valid.value = int(asked is not None)
            busy = 0
            for r in range(count):
                completed[r] += pulses[r]
                open_ = self.released[r] - completed[r]
                busy |= open_
                self.told["completed"][r].value = pulses[r]
                self.told["busy"][r].value = int(open_ > 0)
                released = taken[r] < self.released[r] or r >= self.in_hbm
                ready[r] = released and bool(self.rng.random() < 0.6)
                self.stream["ready"][r].value = int(ready[r])
            state = int(self.rng.integers(0, _HOLD + len(STALLS[Engine.DMA]) - 1))
            state = 0 if state == 1 else state
            if busy:
                self.counted[state] = self.counted.get(state, 0) + 1
            dut.dma_status__holds.value = int(bool(busy))
            dut.dma_status__state.value = state
            read, written = (self._row_bytes() if busy else 0 for _ in range(2))
            self.read_bytes += read
            self.written_bytes += written
            dut.hbm_read_bytes.value = read
            dut.hbm_written_bytes.value = written
            release_ready = bool(self.rng.random() < 0.7)
            dut.release__ready.value = int(release_ready)

"""HBM, host, engines and DMA around the issue of a core, and what each queue must do with its program."""

from collections import defaultdict
from typing import Any

import cocotb

from rtl.contract.isa import Cause, Opcode, Queue
from rtl.contract.memmap import Control, QueueRegister, RingRegister
from rtl.contract.rules import RULES
from rtl.contract.timing import PARTED, PARTS, STALLS, WINDOWS, Engine
from verif.agents.axi_read import AxiReadMemory
from verif.agents.bench import Bench
from verif.agents.host import Host
from verif.benches.issue.actors import DmaActor, EngineActor
from verif.benches.issue.programs import Node, Program
from verif.checks.coverage import Coverage
from verif.checks.sequence_programs import Data, scrambled

__all__ = ["COVERAGE", "OF_COPIES", "RING_FAULT", "IssueBench"]

COVERAGE = Coverage(
    "issue",
    [f"stall_{e.name.lower()}_{s}" for e in (Engine.TENSOR, Engine.VECTOR) for s in STALLS[e]]
    + [f"retired_{o.name}" for o in RULES]
    + [
        "descriptor_signal",
        "second_program",
        "empty_program",
        "ring_fault",
        "dma_fault",
        "copy_fault",
        "trigger_beyond_ring",
    ]
    + ["many_descriptors"]
    + ["stopped", "conflict", "endpoint", "scrambled"]
    + ["window_tensor", "window_vector", "long_rows"]
    + [f"parts_{e.name.lower()}_{s}" for e in PARTED for s in PARTS],
)
_WORD = 128
OF_COPIES = (
    QueueRegister.COPIES,
    QueueRegister.COPIED,
    QueueRegister.COPY_FAULT,
    QueueRegister.COPY_FAULT_ADDRESS,
)
RING_FAULT = int(Cause.NO_ROUTE)


class IssueBench(Bench):
    """HBM, host, engines and DMA around issue."""

    def __init__(self, dut: Any):
        super().__init__(dut)
        self.host = Host(self)
        self.image: dict[int, int] = defaultdict(int)
        self.any_word = False
        self.scrambles = False  # the queues show their instructions by operations, registers and branches
        self.memory = AxiReadMemory(self, "axi", self.cfg.hbm.port_bytes, self.read, jitter=10)
        self.retire = [
            {p: getattr(dut, f"retire__{q}__{p}") for p in ("valid", "queue", "sequence", "cause")} for q in range(5)
        ]
        self.records: list[list[tuple[int, int]]] = [[] for _ in Queue]
        self.cores = int(self.rng.integers(1 << 18))
        self.conflicts = [0] * len(dut.refused)
        self.traced = [0] * len(Queue)  # instructions whose issue a trace was told of
        self.states = [[0] * 16 for _ in Engine]  # cycles of each engine in each state, as a trace is told
        self.program = Program([], [[] for _ in Queue], [[] for _ in range(self.cfg.dma.rings)], {})
        self.engines: list[EngineActor] = []
        self.dma: DmaActor | None = None
        dut.core_id.value = self.cores
        for name in ("refused", "tensor_moving", "tensor_sum", "hbm_read_bytes", "hbm_written_bytes", "gpsimd_value"):
            getattr(dut, name).value = 0
        dut.endpoint.value = 0
        dut.gpsimd_semaphore.value = 0
        dut.gpsimd_update__valid.value = 0
        dut.link_value.value = 0
        self.play(self.program, 1)
        self.watcher = cocotb.start_soon(self.watch())

    async def refuse(self, cycles: int) -> None:
        """Ports are refused at random in so many cycles of a run, which must not end before; all of them after it."""
        self.conflicts = [0] * len(self.conflicts)
        for _ in range(cycles):
            ports = [self.rng.random() < 0.7 for _ in self.conflicts]
            self.dut.refused.value = sum(1 << n for n, refused in enumerate(ports) if refused)
            self.conflicts = [count + refused for count, refused in zip(self.conflicts, ports, strict=True)]
            await self.edge
            assert self.dut.done.value == 0, "the run has ended before"
        self.dut.refused.value = 0
        while self.dut.done.value == 0:
            await self.edge
        self.dut.refused.value = (1 << len(self.conflicts)) - 1

    def read(self, address: int, count: int) -> bytes:
        """Bytes of HBM; a word that is not there is an error, unless `any_word`."""
        word = address & -_WORD
        assert self.any_word or word in self.image, f"{word:#x} is read, where nothing is"
        return self.image[word].to_bytes(_WORD, "little")[address - word :][:count]

    def play(self, program: Program, slow: int) -> None:
        """New actors for a program; the old ones stop."""
        for actor in (*self.engines, *([self.dma] if self.dma else [])):
            actor.task.cancel()
        self.program = program
        self.engines = [
            EngineActor(self, engine, program.queues[engine.value], slow)
            for engine in (Engine.TENSOR, Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD)
        ]
        self.dma = DmaActor(self, program, slow + 5)

    async def watch(self) -> None:
        """Retire records; refused ports."""
        while True:
            await self.edge
            if self.dut.start.value == 1:
                self.traced = [0] * len(Queue)
                self.states = [[0] * 16 for _ in Engine]
            if self.dut.running.value == 1:
                states = int(self.dut.states.value)
                for engine in Engine:
                    self.states[engine][states >> 4 * engine & 15] += 1
            for q in Queue:
                if getattr(self.dut, f"issued__{int(q)}__valid").value == 1:
                    assert int(getattr(self.dut, f"issued__{int(q)}__sequence").value) == self.traced[q]
                    self.traced[q] += 1
            for q, port in enumerate(self.retire):
                if port["valid"].value == 1:
                    number, cause = int(port["sequence"].value), int(port["cause"].value)
                    assert port["queue"].value == q and number == len(self.records[q])
                    self.records[q].append((number, cause))
                    if not cause:
                        assert number < self.traced[q], f"no trace was told that instruction {number} went"
                        self.retired(self.program.queues[q][number])

    def retired(self, node: Node) -> None:
        """What ends must have been allowed to run."""
        for other in node.after:
            assert other.ended >= 0, f"instruction {node.number} of queue {node.queue} did not wait"
        opcode = node.fields["opcode"]
        if opcode < 16:
            node.ended = 1
        assert node.ended >= 0, f"instruction {node.number} of queue {node.queue} retires before its end"
        COVERAGE.hit(f"retired_{Opcode(opcode).name}")

    def place(self, program: Program) -> dict[int, tuple[int, int]]:
        """Put the words into HBM somewhere; base and count of each client."""
        regions = {}
        self.image.clear()
        at = 0
        for client in range(5 + self.cfg.dma.rings):
            at += _WORD * int(self.rng.integers(1, 50))
            words = program.words(client)
            if client < len(Queue) and self.scrambles:
                data = Data(at // 4)
                words = scrambled(self.rng, words, data)
                numbers = data.bytes()
                for n in range(0, len(numbers), _WORD):
                    self.image[at + n] = int.from_bytes(numbers[n : n + _WORD], "little")
                at += -(-len(numbers) // _WORD) * _WORD
                COVERAGE.hit("scrambled")
            regions[client] = at, len(words)
            for n, word in enumerate(words):
                self.image[at + _WORD * n] = word
            at += _WORD * len(words)
        return regions

    async def write_regions(self, regions: dict[int, tuple[int, int]]) -> None:
        """Program the base and count registers."""
        for client, (base, count) in regions.items():
            block = Control.QUEUE + client * 0x100 if client < 5 else Control.RING + (client - 5) * 0x100
            for values in (self.rng.bytes(16), base.to_bytes(8, "little") + count.to_bytes(8, "little")):
                written = [int.from_bytes(part, "little") for part in (values[:8], values[8:])]
                await self.host.write(block + QueueRegister.BASE, written[0])
                await self.host.write(block + QueueRegister.COUNT, written[1])
                assert await self.host.read_all([block + QueueRegister.BASE, block + QueueRegister.COUNT]) == written

    async def run(self, program: Program, slow: int = 12, *, keep: bool = False) -> dict[int, tuple[int, int]]:
        """Load and start; `keep`: with the semaphores as they are."""
        self.records = [[] for _ in Queue]
        self.conflicts = [0] * len(self.conflicts)
        self.dut.refused.value = 0
        regions = self.place(program)
        await self.write_regions(regions)
        self.memory.beats = 0
        self.play(program, slow)
        await self.host.write(Control.RUN, 3 if keep else 1)
        return regions

    async def until(self, name: str, cycles: int = 20_000) -> None:
        """Wait for an output."""
        await self.cycles(3)
        for _ in range(cycles):
            if getattr(self.dut, name).value == 1:
                return
            await self.edge
        left = [len(q) - len(r) for q, r in zip(self.program.queues, self.records, strict=True)]
        raise AssertionError(f"no {name}; instructions left in the queues: {left}")

    async def quiet(self) -> None:
        """Until no record comes for a while."""
        last = -1
        while sum(map(len, self.records)) != last:
            last = sum(map(len, self.records))
            await self.cycles(400)

    async def counters(self, *, running: bool = False) -> None:
        """The counters of every engine sum to CYCLES, and have what the engine said."""
        if running:
            await self.host.write(Control.RUN, 0)
            COVERAGE.hit("stopped")
        cycles, read, written = await self.host.read_all([Control.CYCLES, Control.HBM_READ, Control.HBM_WRITTEN])
        assert self.dma is not None
        for engine in Engine:
            base = Control.ENGINE + engine * 0x100
            values = await self.host.read_all([base + 8 * n for n in range(2 + len(STALLS[engine]))])
            assert sum(values) == cycles, f"{engine.name}: {values} do not sum to {cycles} cycles"
            told_to_trace = self.states[engine][: len(values)]
            assert values == told_to_trace, f"{engine.name}: {values}, and a trace is told {told_to_trace}"
            actor = [*self.engines, self.dma][engine]
            told = actor.counted if actor is not None else {}
            names = ["busy", "idle", *STALLS[engine]]
            for n, name in enumerate(names):
                if name in ("idle", "semaphore", "fetch", "fault") and engine != Engine.DMA:
                    continue
                if name == "drain":
                    assert isinstance(actor, EngineActor)
                    # A queue that still works out that nothing comes waits for a word: that goes before draining.
                    late = running or self.scrambles
                    assert values[n] >= actor.final_drain or late, "final drain was not counted"
                    assert values[n] <= actor.drained, f"{values[n]} cycles of draining, of at most {actor.drained}"
                elif name != "idle" and not running:
                    assert values[n] == told.get(n, 0), f"{engine.name}: {name} {values[n]}, not {told.get(n, 0)}"
            if engine in (Engine.TENSOR, Engine.VECTOR):
                for n, name in enumerate(STALLS[engine]):
                    COVERAGE.when(values[2 + n], f"stall_{engine.name.lower()}_{name}")
        if not running:
            assert read == self.dma.read_bytes + self.memory.beats * self.cfg.hbm.port_bytes
            assert written == self.dma.written_bytes
            COVERAGE.when(self.dma.read_bytes >> 18, "long_rows")
            await self.windows(cycles)
            values = await self.host.read_all([Control.CONFLICT + 8 * n for n in range(len(self.conflicts))])
            assert values == self.conflicts, f"conflicts are {values}, not {self.conflicts}"
        await self.parts(running)

    async def parts(self, running: bool) -> None:
        """Parts of busy and of unit, by opcode: they sum to their counter, and are what the engine said."""
        for engine in PARTED:
            for n, state in enumerate(PARTS):
                block = Control.PART + engine * 0x200 + n * 0x100
                values = await self.host.read_all([block + 8 * opcode for opcode in range(32)])
                at = Control.ENGINE + engine * 0x100 + 8 * ["busy", "idle", *STALLS[engine]].index(state)
                whole = await self.host.read(at)
                assert sum(values) == whole, f"{engine.name}: parts of {state} are {sum(values)}, not {whole}"
                told = {opcode: v for (s, opcode), v in self.engines[engine].parts.items() if s == state}
                got = {opcode: value for opcode, value in enumerate(values) if value}
                assert running or got == told, f"{engine.name}: {state} by opcode is {got}, not {told}"
                COVERAGE.when(len(got) > 1, f"parts_{engine.name.lower()}_{state}")

    async def windows(self, cycles: int) -> None:
        """First beat and last result of the engines are where these saw them, on one and the same clock."""
        starts = set()
        for actor, engine in zip(self.engines[: len(WINDOWS)], WINDOWS, strict=True):
            names = (f"{engine.name}_FIRST", f"{engine.name}_LAST")
            window = await self.host.read_all([Control[name] for name in names])
            for seen, told in zip(actor.window, window, strict=True):
                assert told < cycles and (seen or not told)
                starts |= {seen - told} if seen else set()
            if engine in (Engine.TENSOR, Engine.VECTOR):
                COVERAGE.when(all(actor.window), f"window_{engine.name.lower()}")
        assert len(starts) < 2, f"cycles of first beats and last results do not fit: {starts}"

    async def results(self, regions: dict[int, tuple[int, int]]) -> None:
        """Registers of queues and rings, and every semaphore, after a run without fault."""
        for q in Queue:
            base = Control.QUEUE + q * 0x100
            offsets = (QueueRegister.ISSUED, QueueRegister.RETIRED, QueueRegister.FAULT, QueueRegister.FAULT_ADDRESS)
            count = len(self.program.queues[q])
            assert await self.host.read_all([base + o for o in offsets]) == [count, count, 0, 0]
            assert self.records[q] == [(n, 0) for n in range(count)]
            own = [base + o for o in OF_COPIES]
            copies = len(self.program.own.get(q, []))
            assert await self.host.read_all(own) == [copies, copies, 0, 0]
        for r in range(self.cfg.dma.rings):
            base = Control.RING + r * 0x100
            offsets = (RingRegister.RELEASED, RingRegister.COMPLETED, RingRegister.FAULT, RingRegister.FAULT_ADDRESS)
            count = regions[5 + r][1]
            assert await self.host.read_all([base + o for o in offsets]) == [count, count, 0, 0]
        got = await self.host.read_all([Control.SEMAPHORE + 8 * s for s in range(self.cfg.issue.semaphores)])
        for s, value in enumerate(got):
            assert value == self.program.semaphores.get(s, 0), f"semaphore {s} is {value}"

"""The whole issue unit: programs over all queues and rings, from registers and HBM to registers."""

from typing import Any

import cocotb
from cocotb.triggers import First

from rtl.base.dma_port import ENDPOINT_STATUS
from rtl.contract.isa import COPY_QUEUES, Cause, Opcode
from rtl.contract.memmap import Control, EndpointRegister, QueueRegister, RingRegister
from rtl.contract.sequence import SEQUENCE
from rtl.contract.timing import STALLS, Engine
from verif.agents.stall import randomly
from verif.bench import Run, noticed_by
from verif.benches.issue.issue_driver import COVERAGE, OF_COPIES, RING_FAULT, IssueBench
from verif.benches.issue.programs import Node, Program, random_program
from verif.benches.issue.words import legal

_FAULTS = (
    *noticed_by(
        "faults_of_rings_are_seen", "done does not wait for the DMA", "the fault of a queue is forgotten by the run"
    ),
    *noticed_by("an_empty_program_is_done_at_once", "a control register is read a cycle late"),
)
"""Faults that make every test time out: one test is enough to notice."""

_PLANTED = (
    "a draining engine counts as idle",
    "the state of an engine is told as the one beside it",
    "an engine that holds an instruction counts while the queue waits",
    "idle cycles after a busy one are not counted",
    "a window begins with its last beat",
    "a window ends with its first result",
    "bytes of HBM are counted in 12 bits",
    "cycles that wait for a unit are parts of busy",
    "what the last program counted stays",
    "a counter of parts goes on from that of the opcode before",
    *noticed_by(
        "registers_keep_their_place",
        "counters of the endpoint stand in each other's place",
    ),
    *noticed_by(
        "a_copy_that_fails_names_its_instruction/number=0",
        "a copy that failed is told by its number in the ring",
    ),
    *noticed_by(
        "a_fault_halts_its_queue_alone/queue=0",
        "the sequence number is not in the fault register",
    ),
    *noticed_by(
        "a_trigger_beyond_its_ring_releases_nothing",
        "more descriptors than the ring has may be released",
        "a trigger that is refused counts",
    ),
)

RUNS = (Run("issue", faults=(*_FAULTS, *_PLANTED)),)


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def runs_programs_that_wait_for_each_other(dut: Any) -> None:
    """Random programs in a row, long and short: all retires, in order, nothing before what it waits for."""
    bench = IssueBench(dut)
    bench.memory.stall = randomly(bench.rng, 0.3)
    await bench.start()
    for number, length in enumerate((120, 120, 120, 10, 10, 4)):
        program = random_program(bench.rng, bench.cfg, length)
        COVERAGE.when(any(n.descriptor and n.signal for n in program.nodes), "descriptor_signal")
        bench.memory.latency = int(bench.rng.integers(2, 80))
        keep = number % 2 == 1
        bench.scrambles = number % 3 == 1
        if keep:
            await bench.host.write(Control.CLEAR, 1)
        regions = await bench.run(program, slow=int(bench.rng.integers(4, 30)), keep=keep)
        if length > 100:
            await bench.cycles(20)
            await bench.refuse(200)
        await bench.until("done")
        status, running, core = await bench.host.read_all([Control.STATUS, Control.RUN, Control.CORE_ID])
        assert (status, running, core) == (1, 0, bench.cores)
        await bench.counters()
        await bench.results(regions)
        COVERAGE.when(number, "second_program")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_empty_program_is_done_at_once(dut: Any) -> None:
    """All counts 0, which is what they are after reset."""
    bench = IssueBench(dut)
    await bench.start()
    await bench.host.write(Control.RUN, 1)
    await bench.until("done", 60)
    assert bench.memory.requests == []
    await bench.counters()
    COVERAGE.hit("empty_program")


@cocotb.test(timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(queue=list(range(5)))
async def a_fault_halts_its_queue_alone(dut: Any, queue: int) -> None:
    """One queue meets an illegal instruction; the others run as far as they can; nothing is reported twice."""
    bench = IssueBench(dut)
    await bench.start()
    program = random_program(bench.rng, bench.cfg, 80)
    while not program.queues[queue]:
        program = random_program(bench.rng, bench.cfg, 80)
    victim = program.queues[queue][int(bench.rng.integers(len(program.queues[queue])))]
    # The wrong instruction does not wait, so that it is reached whatever the others do.
    for node in program.queues[queue][: victim.number + 1]:
        node.after.clear()
        node.fields |= {"wait0": 0, "wait1": 0}
    by_sequencer = queue % 2 == 1
    victim.fields |= {"opcode": SEQUENCE, "accumulate": 1} if by_sequencer else {"opcode": 77}
    cause = Cause.BAD_SEQUENCE if by_sequencer else Cause.ILLEGAL_OPCODE
    regions = await bench.run(program)
    await bench.until("fault")
    await bench.quiet()
    base = Control.QUEUE + queue * 0x100
    offsets = (QueueRegister.ISSUED, QueueRegister.RETIRED, QueueRegister.FAULT)
    fault = int(cause) | victim.number << 16
    assert await bench.host.read_all([base + o for o in offsets]) == [victim.number, victim.number, fault]
    assert bench.records[queue][-1] == (victim.number, cause)
    assert await bench.host.read(Control.STATUS) == 2 and dut.done.value == 0
    for q in range(5):
        if q != queue:
            assert all(not cause for _, cause in bench.records[q])
    if queue < 2:
        value = await bench.host.read(Control.ENGINE + queue * 0x100 + 0x10 + 8 * STALLS[Engine(queue)].index("fault"))
        assert value > 0, "the cycles of a halted queue are not counted as such"
    await bench.counters(running=True)
    assert regions[queue][1] > victim.number


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_trigger_beyond_its_ring_releases_nothing(dut: Any) -> None:
    """Two triggers fit, the third asks for one more than is left."""
    bench = IssueBench(dut)
    await bench.start()
    triggers = [Node(4, n, {"opcode": 1, "imm0": 1, "imm1": count}) for n, count in enumerate((2, 3, 2))]
    moved = [Node(1, n, {"row_bytes": 64, "count0": 1, "count1": 1, "count2": 1}, True) for n in range(6)]
    program = Program([], [[], [], [], [], triggers], [[], moved] + [[]] * (bench.cfg.dma.rings - 2), {})
    await bench.run(program)
    await bench.until("fault")
    await bench.quiet()
    assert bench.records[4] == [(0, 0), (1, 0), (2, Cause.BAD_RING)]
    base = Control.RING + 0x100
    assert await bench.host.read_all([base + RingRegister.RELEASED, base + RingRegister.COMPLETED]) == [5, 5]
    COVERAGE.hit("trigger_beyond_ring")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def many_descriptors_are_released(dut: Any) -> None:
    """Triggers of any size add up, from any queue; nobody takes the descriptors."""
    bench = IssueBench(dut)
    bench.any_word = True
    largest = (bench.cfg.hbm.capacity_mib << 20 >> 7).bit_length() - 4  # ten of them lie in HBM
    await bench.start()
    for _ in range(6):
        sizes = [
            [1 << int(bench.rng.integers(1, largest)) for _ in range(int(bench.rng.integers(3)))] for _ in range(5)
        ]
        queues = [
            [
                Node(q, n, {"opcode": 1, "imm0": 1, "imm1": size - int(bench.rng.integers(2))})
                for n, size in enumerate(own)
            ]
            for q, own in enumerate(sizes)
        ]
        total = sum(node.fields["imm1"] for own in queues for node in own)
        program = Program([], queues, [[]] * bench.cfg.dma.rings, {})
        regions = bench.place(program)
        regions[6] = 0, total
        await bench.write_regions(regions)
        bench.play(program, 1)
        assert bench.dma is not None
        bench.dma.task.cancel()
        dut.release__ready.value = 1
        bench.records = [[] for _ in queues]
        await bench.host.write(Control.RUN, 1)
        await bench.quiet()
        assert [len(records) for records in bench.records] == [len(own) for own in queues]
        offsets = (RingRegister.RELEASED, RingRegister.COMPLETED, RingRegister.FAULT)
        assert await bench.host.read_all([Control.RING + 0x100 + o for o in offsets]) == [total, 0, 0]
        await bench.reset()
    COVERAGE.hit("many_descriptors")


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def faults_of_rings_are_seen(dut: Any) -> None:
    """A ring that does not lie in HBM; a descriptor that the DMA refuses; done does not come before the DMA."""
    bench = IssueBench(dut)
    await bench.start()
    dma = bench.dma
    assert dma is not None
    await bench.host.write(Control.RING + RingRegister.BASE, 64)
    await bench.host.write(Control.RING + RingRegister.COUNT, 3)
    await bench.host.write(Control.RUN, 1)
    await bench.until("fault", 60)
    fault, address = await bench.host.read_all(
        [Control.RING + RingRegister.FAULT, Control.RING + RingRegister.FAULT_ADDRESS]
    )
    assert (fault, address) == (Cause.OUT_OF_RANGE, 64)
    COVERAGE.hit("ring_fault")
    dma.task.cancel()
    for ring in range(bench.cfg.dma.rings):
        told = {name: getattr(dut, f"ring_status__{ring}__{name}") for name in ("busy", "cause", "sequence", "address")}
        await bench.reset()
        await bench.host.write(Control.RUN, 1)
        await bench.until("done", 60)
        told["busy"].value = 1  # something is still on its way
        await bench.host.write(Control.RUN, 1)
        await bench.cycles(100)
        assert dut.done.value == 0 and dut.fault.value == 0, "done although the DMA is busy"
        told["cause"].value = RING_FAULT
        told["sequence"].value = 700
        told["address"].value = 0xABCDEF0123456789
        await bench.until("fault", 10)
        base = Control.RING + 0x100 * ring
        values = await bench.host.read_all(
            [base + RingRegister.FAULT, base + RingRegister.FAULT_ADDRESS, Control.STATUS]
        )
        assert values == [RING_FAULT | 700 << 16, 0xABCDEF0123456789, 2]
        for port in told.values():
            port.value = 0
    COVERAGE.hit("dma_fault")


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(number=list(range(len(COPY_QUEUES))))
async def a_copy_that_fails_names_its_instruction(dut: Any, number: int) -> None:
    """Some copies complete, then one fails: its record has the ticket of its DMA_COPY; the queue itself goes on."""
    bench = IssueBench(dut)
    await bench.start()
    queue, depth = COPY_QUEUES[number], bench.cfg.dma.ring_depth
    told = {
        n: getattr(dut, f"copy_status__{number}__{n}") for n in ("completed", "busy", "cause", "sequence", "address")
    }
    stream = {n: getattr(dut, f"copy__{number}__{n}") for n in ("valid", "ready")}
    for _ in range(4):
        opcodes = [Opcode.DMA_COPY if bench.rng.random() < 0.4 else Opcode.NOP for _ in range(60)]
        nodes = [Node(queue, n, legal(bench.rng, bench.cfg, queue, o)) for n, o in enumerate(opcodes)]
        copies = [n for n, o in enumerate(opcodes) if o == Opcode.DMA_COPY]
        good = int(bench.rng.integers(len(copies)))
        queues: list[list[Node]] = [nodes if q == queue else [] for q in range(5)]
        await bench.run(Program([], queues, [[]] * bench.cfg.dma.rings, {}))
        assert bench.dma is not None
        bench.dma.task.cancel()
        taken = completed = 0
        while taken < len(copies) and not (completed == good and taken > good and bench.rng.random() < 0.05):
            room = taken - completed < depth
            ends = completed < min(taken, good) and bench.rng.random() < 0.3
            stream["ready"].value, told["completed"].value = int(room), int(ends)
            await bench.edge
            taken += room and stream["valid"].value == 1
            completed += ends
            if completed == good and taken == good + depth:
                break
        stream["ready"].value = told["completed"].value = 0
        address = int.from_bytes(bench.rng.bytes(8), "little")
        told["cause"].value, told["sequence"].value, told["address"].value = int(Cause.BUS_ERROR), completed, address
        await bench.until("fault")
        await bench.quiet()
        registers = [Control.QUEUE + queue * 0x100 + o for o in OF_COPIES]
        fault = Cause.BUS_ERROR | copies[good] << 16
        assert await bench.host.read_all(registers) == [taken, good, fault, address]
        assert await bench.host.read(Control.QUEUE + queue * 0x100 + QueueRegister.FAULT) == 0
        assert await bench.host.read(Control.STATUS) == 2
        assert len(bench.records[queue]) == (len(opcodes) if taken == len(copies) else copies[taken])
        for port in told.values():
            port.value = 0
        await bench.reset()
    COVERAGE.hit("copy_fault")


async def _port(dut: Any, registers: list[int]) -> None:
    """The registers of a port: shows the one whose address is there."""
    while True:
        dut.link_value.value = registers[int(dut.link_address.value) // 8]
        await dut.link_address.value_change


async def _gpsimd(dut: Any, counters: list[int]) -> None:
    """The counters of GPSIMD cores."""
    while True:
        dut.gpsimd_value.value = counters[int(dut.gpsimd_core.value) << 5 | int(dut.gpsimd_index.value)]
        await First(dut.gpsimd_core.value_change, dut.gpsimd_index.value_change)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def registers_keep_their_place(dut: Any) -> None:
    """Nothing is where nothing should be; conflicts count while running only; writes to others do nothing."""
    bench = IssueBench(dut)
    await bench.start()
    nowhere = [0x68, 0x4C, 0x4, 0x1030, 0x1500, 0x2030, 0x2000 + 0x100 * bench.cfg.dma.rings, 0x3030, 0x57F8, 0x6004]
    nowhere += [0x4500, 0x4058, 0x7000, 0x8000, 0x8600, 0x8204, 0x9000, 0xFFF8, 0x6000 + 8 * bench.cfg.issue.semaphores]
    for address in nowhere:
        await bench.host.write(address, (1 << 64) - 1)
    assert await bench.host.read_all(nowhere) == [0] * len(nowhere)
    places = {name: Control.ENDPOINT + EndpointRegister[name.upper()] for name, _ in ENDPOINT_STATUS}
    for _ in range(8):
        told = {n: int.from_bytes(bench.rng.bytes(8), "little") % (1 << field.width) for n, field in ENDPOINT_STATUS}
        dut.endpoint.value = ENDPOINT_STATUS.const(told).as_bits()
        await bench.host.write(places["refused"], 5)
        assert dict(zip(told, await bench.host.read_all(list(places.values())), strict=True)) == told
    COVERAGE.hit("endpoint")
    registers = [int.from_bytes(bench.rng.bytes(8), "little") for _ in range(32)]
    port = cocotb.start_soon(_port(dut, registers))
    order = bench.rng.permutation(32).tolist()
    assert await bench.host.read_all([0x7000 + 8 * n for n in order]) == [registers[n] for n in order], "of a port"
    assert await bench.host.read_all([0x7100, 0x7F00]) == [0, 0], "behind the registers of a port"
    port.cancel()
    dut.link_value.value = 0
    counters = [int.from_bytes(bench.rng.bytes(6), "little") for _ in range(256)]
    cores = cocotb.start_soon(_gpsimd(dut, counters))
    order = bench.rng.permutation(256).tolist()
    assert await bench.host.read_all([Control.GPSIMD + 8 * n for n in order]) == [counters[n] for n in order], "cores"
    assert await bench.host.read_all([Control.GPSIMD + 4, Control.CONFLICT + 0x700]) == [0, 0]
    cores.cancel()
    dut.gpsimd_value.value = 0
    for address in (Control.STATUS, Control.CYCLES, Control.HBM_READ, 0x1010, 0x1020, 0x2010, 0x4000, 0x5000, 0x6000):
        await bench.host.write(address, 5)
        assert await bench.host.read(address) == 0
    dut.refused.value = 1
    dut.ring_status__0__busy.value = 1
    bench.dma.task.cancel() if bench.dma else None
    await bench.cycles(5)
    await bench.host.write(Control.RUN, 1)
    await bench.host.write(Control.QUEUE + QueueRegister.COUNT, 9)  # not while it runs
    await bench.cycles(10)
    dut.refused.value = 1 << (len(bench.conflicts) - 1)
    await bench.cycles(7)
    dut.refused.value = 0
    last = Control.CONFLICT + 8 * (len(bench.conflicts) - 1)
    values = await bench.host.read_all([Control.CONFLICT, last, Control.QUEUE + QueueRegister.COUNT])
    assert 8 <= values[0] <= 12 and values[1] == 7 and values[2] == 0, f"conflicts and count: {values}"
    COVERAGE.hit("conflict")
    COVERAGE.require_all()
